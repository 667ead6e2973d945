import Glibc
import SheafModel
import SheafStore

/// Storing old history in few bytes: every version but the current one as the difference from its successor.
///
/// ```
///   current ◄── 41 ◄── 40 ◄── 39 …        a pack: members, each made from the one before, the first one from the base
///   (chunks)   └────── pack ──────┘
/// ```
/// Rules:
/// 1. A version's bytes never change, only the form in which they are stored: each pack is verified before it is
///    written.
/// 2. The base of a pack is not packed itself. If anything else refers to it, it is the contents of a version or an
///    inode. A pack that breaks this rule is made anew (``mendPacks(_:)``).
/// 3. A run of versions becomes a pack in one transaction, in which each is still what it was when it was read.
/// 4. Contents that are current, open or being edited are left alone, so that reading them stays fast.
///
/// Rooms: `Chunks`, `InodeTable`, `Numbers`.
extension Library {
  /// The marks that packing takes of the library as it begins.
  private struct PackMarks {
    /// The chunks that inodes refer to, and the members of packs.
    var live: ChunkMarks
    var packed: ChunkMarks
    /// In how many packs' bases a chunk is, with those that are written meanwhile.
    var bases: [Int64: Int] = [:]
    /// The highest chunk of the last time: versions that were there then need not be compared again.
    let settled: Int64
    let limit: Int64
  }

  /// The outcome of packing for a while.
  private struct PackOutcome {
    var versions = 0
    /// Whether something could not be packed now that may be later.
    var isRefused = false
  }

  /// Bytes of a document so short that it is packed however much of it changed.
  private static let shortText = 512

  /// Seconds for which sweeping has to wait at most.
  private static let packSeconds: Int64 = 5

  /// Packs the history that came since the last time; returns how many versions.
  func packHistory(_ progress: (Double) -> Void) throws -> Int {
    var outcome = PackOutcome()
    var settled: Int64 = 0
    var items: ArraySlice<Int64>?
    var total = 0
    while items?.isEmpty != true, !maintenance.isStopping {
      try packCare.withLock { care in
        var marks = try packMarks()
        if items == nil {
          settled = marks.limit
          let found = try itemsToPack(marks)
          (items, total) = (found[...], found.count)
          try unpackReferred(marks, &care)
        }
        let end = clock().seconds + Self.packSeconds
        while let item = items?.popFirst(), !maintenance.isStopping {
          try packHistory(of: item, &marks, &outcome)
          progress(Double(total - (items?.count ?? 0)) / Double(total))
          if clock().seconds > end { break }
        }
      }
      // Threads that wait for the lock go first.
      if items?.isEmpty == false { usleep(1000) }
    }
    if !outcome.isRefused, !maintenance.isStopping {
      try locked { try makeChange(.pack, freesSpace: true) { try $0.rows.setSetting("chunksPacked", settled) } }
    }
    return outcome.versions
  }

  private func packMarks() throws -> PackMarks {
    try store.snapshot { transaction in
      let limit = try transaction.highestNumbers().chunk
      var marks = PackMarks(
        live: ChunkMarks(limit: limit), packed: ChunkMarks(limit: limit),
        settled: try transaction.numberSetting("chunksPacked") ?? 0, limit: limit)
      try transaction.currentContents { content in for chunk in content.chunks { marks.live.insert(chunk) } }
      try transaction.packs { _, base, chunks in
        for chunk in base.chunks { marks.bases[chunk, default: 0] += 1 }
        for chunk in chunks { marks.packed.insert(chunk) }
      }
      return marks
    }
  }

  /// Items with several versions of which something is newer than the last time.
  private func itemsToPack(_ marks: PackMarks) throws -> [Int64] {
    var items: [Int64] = []
    var current: (item: Int64, versions: Int, isNew: Bool) = (0, 0, false)
    func end() { if current.versions > 1, current.isNew { items.append(current.item) } }
    try store.snapshot { transaction in
      try transaction.versionContents { item, content in
        if item != current.item {
          end()
          current = (item, 0, false)
        }
        current.versions += 1
        current.isNew = current.isNew || content.chunks.contains { $0 > marks.settled }
      }
    }
    end()
    return items
  }

  /// Takes out of packs what is current, so that reading it needs none, and what is another pack's base (rule 2).
  private func unpackReferred(_ marks: PackMarks, _ care: inout PackCare) throws {
    var waiting: [Int64] = []
    care.forgetWaiting()
    try store.snapshot { transaction in
      try transaction.packs { id, _, chunks in
        let found = chunks.filter { marks.live.contains($0) || marks.bases[$0, default: 0] > 0 }
        waiting += found
        // A chunk that is taken out of it is not gone.
        if !found.isEmpty { care.wait(id, gone: care.refusedPart(of: id), hasBase: true) }
      }
    }
    // One can be read only when the base of its pack is none of them any more.
    var count = 0
    repeat {
      count = waiting.count
      waiting = try waiting.filter { try !unpack($0) }
    } while waiting.count < count
    _ = try mendPacks(&care)
  }

  /// Stores a packed chunk by itself; false where it cannot be read.
  private func unpack(_ chunk: Int64) throws -> Bool {
    guard let (bytes, hash) = try? store.read({ try $0.verifiedBytes(chunk) }) else { return false }
    let frame = try Zstandard.compress(bytes, level: Zstandard.chunkLevel)
    try locked { try makeChange(.pack, freesSpace: true) { try $0.rows.recode(chunk, hash: hash, compressed: frame) } }
    return true
  }

  // MARK: - One document

  /// Packs a document's versions, from the latest to the first.
  private func packHistory(of item: Int64, _ marks: inout PackMarks, _ outcome: inout PackOutcome) throws {
    guard let current = try store.read({ try $0.item(item) })?.version else { return }
    var history = HistoryCursor(item)
    var verified = ChunkCache(limit: 8 << 20)
    var run: PackRun?
    while let version = try history.next(self) {
      if maintenance.isStopping { return }
      guard !version.isOpen else { return outcome.isRefused = true }
      let content = version.content
      guard content.length > 0 else { continue }
      guard Self.canBePacked(content) else {
        try finish(&run, of: item, &marks, &outcome)
        run = nil
        continue
      }
      let place = try Self.wholeChunk(content).flatMap { chunk in try store.read { try $0.packPlace(chunk) } }
      if let place, version.number != current {
        try take(place, &run, of: item, &marks, &outcome)
        continue
      }
      func startAnew(_ bytes: [UInt8]? = nil) throws {
        try finish(&run, of: item, &marks, &outcome)
        run = place == nil ? PackRun(base: content, bytes: bytes) : nil
      }
      guard version.number != current, var longer = run else {
        try startAnew()
        continue
      }
      // The version based on this one must fit behind it; else this one stays the base.
      let following = try history.peek(self).flatMap { try packAfter($0, base: content) }
      if let following, !longer.hasRoom(for: following, after: []) {
        try startAnew()
        continue
      }
      let isNew = (content.chunks + longer.last.chunks).contains { $0 > marks.settled }
      guard isNew || following != nil else {
        // Compared the last time.
        try startAnew()
        continue
      }
      let own = Self.wholeChunk(content)
      if let own, longer.base.chunks.contains(own) || marks.live.contains(own) { continue }
      if let own, marks.bases[own, default: 0] > (following == nil ? 0 : 1) { continue }
      do {
        let bytes = try bytes(of: content, &verified)
        if longer.bytes == nil { longer.bytes = try self.bytes(of: longer.last, &verified) }
        let hash = bytes.withUnsafeBytes { ChunkHash(of: $0) }
        let present = try store.read { try $0.chunk(hash: hash) }
        if longer.join(version, hash: hash) {
          run = longer
        } else if let present, present != own {
          // Where that is damaged, this is what is left of it.
          let whole = StoredContent.extents([Extent(chunk: present, length: Int64(bytes.count))])
          if (try? self.bytes(of: whole, &verified)) == bytes {
            longer.redirect(version, to: present)
            run = longer
          } else {
            try startAnew(bytes)
          }
        } else if let delta = Delta.encode(
          bytes, from: longer.bytes ?? [], literalLimit: max(Self.shortText, bytes.count / 2)),
          longer.hasRoom(for: delta, size: bytes.count),
          following.map({ longer.hasRoom(for: $0, after: delta) }) ?? true
        {
          // A chunk of which the version is only the beginning is another one.
          longer.add(version, bytes, hash: hash, delta: delta, chunk: present)
          run = longer
        } else {
          try startAnew(bytes)
        }
      } catch let error as SheafError where error.kind == .corrupt {
        // `check` reports it; damaged versions stay as they are.
        log.error("a version was not packed", metadata: ["item": "\(item)", "error": "\(error)"])
        try finish(&run, of: item, &marks, &outcome)
        run = nil
      }
    }
    try finish(&run, of: item, &marks, &outcome)
  }

  /// Goes on past a version that is packed: with its pack in the run, or without a run.
  private func take(
    _ place: PackPlace, _ run: inout PackRun?, of item: Int64, _ marks: inout PackMarks, _ outcome: inout PackOutcome
  ) throws {
    if run?.merged.contains(place.pack) ?? false {
      return
    } else if var longer = run, !longer.isEmpty, let pack = try pack(from: place, base: longer.last),
      longer.hasRoom(for: pack), let last = pack.chunks.last, let size = try store.read({ try $0.chunkSize(last) }),
      (1...Pack.memberLimit).contains(size)
    {
      longer.merge(pack, last: .extents([Extent(chunk: last, length: size)]))
      run = longer
    } else {
      try finish(&run, of: item, &marks, &outcome)
      run = nil
    }
  }

  /// The pack that begins with `version`, if `base` is what it is made from.
  private func packAfter(_ version: VersionRow, base: StoredContent) throws -> Pack? {
    guard let chunk = Self.wholeChunk(version.content) else { return nil }
    return try store.read({ try $0.packPlace(chunk) }).flatMap { try pack(from: $0, base: base) }
  }

  /// The pack of which `place` is the first, if `base` is what it is made from and all of its members are in use.
  private func pack(from place: PackPlace, base: StoredContent) throws -> Pack? {
    guard place.index == 0 else { return nil }
    return try store.read { transaction in
      guard let pack = try transaction.pack(place.pack), pack.base == base,
        try pack.chunks.enumerated().allSatisfy({ index, chunk in
          try transaction.packPlace(chunk) == PackPlace(pack: pack.id, index: index)
        })
      else { return nil }
      return pack
    }
  }

  /// Whether contents are a list of extents, all on this machine and without holes, that is not too long for a pack.
  private static func canBePacked(_ content: StoredContent) -> Bool {
    guard case .extents(let extents) = content else { return false }
    return content.length <= Pack.memberLimit && extents.allSatisfy(\.isStored)
  }

  /// The chunk that contents consist of, where they are a single one from its beginning.
  private static func wholeChunk(_ content: StoredContent) -> Int64? {
    guard case .extents(let extents) = content, extents.count == 1, extents[0].offset == 0, extents[0].isStored else {
      return nil
    }
    return extents[0].chunk
  }

  /// The bytes of contents, each chunk of which has its hash.
  private func bytes(of content: StoredContent, _ verified: inout ChunkCache) throws -> [UInt8] {
    guard case .extents(let extents) = content else { return [] }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(content.length))
    for extent in extents {
      var chunk = verified.value(extent.chunk)
      if chunk == nil {
        chunk = try store.read { try $0.verifiedBytes(extent.chunk).bytes }
        verified.insert(extent.chunk, chunk!)
      }
      guard let chunk, extent.offset + extent.length <= Int64(chunk.count) else {
        throw SheafError(.corrupt, subject: "chunk \(extent.chunk)", reason: "is too short", advice: "run sheaf check")
      }
      bytes += chunk[Int(extent.offset)..<Int(extent.offset + extent.length)]
    }
    return bytes
  }

  // MARK: - Writing

  /// Writes a run as a pack, if there is one.
  private func finish(
    _ run: inout PackRun?, of item: Int64, _ marks: inout PackMarks, _ outcome: inout PackOutcome
  ) throws {
    guard let ready = run, !ready.isEmpty else { return }
    run = nil
    let deltas = ready.members.map(\.delta)
    let data = try Pack(id: 0, base: ready.base, chunks: [], deltas: deltas).encodedDeltas
    // A chunk from which another pack is made stays where it is (rule 2).
    let isFree = ready.members.allSatisfy { member in
      member.chunk.map { marks.bases[$0, default: 0] <= ready.mergedBases[$0, default: 0] } ?? true
    }
    guard isFree else { return outcome.isRefused = true }
    guard (try? isSound(ready)) ?? false else {
      return log.error("versions were not packed: they would not be what they are", metadata: ["item": "\(item)"])
    }
    let isDone = try locked { () -> Bool in
      guard try isAsRead(ready, of: item) else { return false }
      try makeChange(.pack, freesSpace: true) { try write(ready, deltas, data: data, of: item, $0) }
      return true
    }
    guard isDone else { return outcome.isRefused = true }
    outcome.versions += ready.versionCount
    if !ready.members.isEmpty { for chunk in ready.base.chunks { marks.bases[chunk, default: 0] += 1 } }
    for (chunk, count) in ready.mergedBases { marks.bases[chunk, default: 0] -= count }
  }

  /// Whether every member of a run is made as it should be (rule 1).
  private func isSound(_ run: PackRun) throws -> Bool {
    let pack = Pack(id: 0, base: run.base, chunks: [], deltas: run.members.map(\.delta))
    var reader = PackReader(pack, base: try store.read { try $0.baseBytes(run.base) })
    for member in run.members {
      guard try reader.advance() else { return false }
      let hash = reader.bytes.withUnsafeBytes { ChunkHash(of: $0) }
      let (present, size) = try store.read { transaction in
        let present = try transaction.chunk(hash: hash)
        return (present, try member.chunk == nil ? member.size : present.flatMap { try transaction.chunkSize($0) })
      }
      guard member.chunk == nil ? hash == member.hash : present == member.chunk, size == Int64(reader.bytes.count)
      else { return false }
    }
    return true
  }

  /// Whether everything that a run was made from is as it was, and nobody edits the document.
  private func isAsRead(_ run: PackRun, of item: Int64) throws -> Bool {
    try read { transaction in
      guard let row = try transaction.item(item), let inode = try transaction.inode(item: item),
        inodes[inode.ino]?.hasSession != true
      else { return false }
      for chunk in run.base.chunks {
        guard try transaction.hasChunk(chunk), try transaction.packPlace(chunk) == nil else { return false }
      }
      for member in run.members {
        if let chunk = member.chunk {
          let pack = try transaction.packPlace(chunk)?.pack
          guard member.hash == nil ? run.merged.contains(pack ?? 0) : pack == nil && !run.base.chunks.contains(chunk)
          else { return false }
        } else if let hash = member.hash, try transaction.chunk(hash: hash) != nil {
          return false
        }
      }
      for rewrite in run.rewrites {
        guard rewrite.number != row.version, let version = try transaction.version(item, rewrite.number),
          !version.isOpen, version.content == rewrite.old
        else { return false }
        if case .chunk(let present) = rewrite.target, try !transaction.hasChunk(present) { return false }
      }
      return true
    }
  }

  private func write(
    _ run: PackRun, _ deltas: [ArraySlice<UInt8>], data: [UInt8], of item: Int64, _ change: Change
  ) throws {
    // From here on a session is not alone with them.
    for chunk in run.base.chunks { chunks.removeOwner(of: chunk) }
    let members = try run.members.map { member in
      if let chunk = member.chunk { return chunk }
      let chunk = numbers.nextChunk()
      try change.rows.insertPackedChunk(chunk, hash: member.hash!, size: member.size)
      return chunk
    }
    if !members.isEmpty {
      try change.rows.set(
        Pack(id: change.rows.nextPack, base: run.base, chunks: members, deltas: deltas), data: data)
    }
    for old in run.merged { try change.rows.deletePack(old) }
    for rewrite in run.rewrites {
      let chunk: Int64
      switch rewrite.target {
      case .member(let index): chunk = members[index]
      case .chunk(let present): chunk = present
      }
      chunks.removeOwner(of: chunk)
      try change.rows.recode(
        item, rewrite.number, to: .extents([Extent(chunk: chunk, length: rewrite.old.length)]))
    }
  }
}

/// Goes through an item's versions, the latest first, some at a time.
private struct HistoryCursor {
  private let item: Int64
  private var page: ArraySlice<VersionRow> = []
  private var below = Int64.max
  private static let pageSize = 512

  init(_ item: Int64) { self.item = item }

  mutating func peek(_ library: Library) throws -> VersionRow? {
    if page.isEmpty {
      page = try library.store.read { try $0.versions(item, below: below, limit: Self.pageSize) }[...]
      below = page.last?.number ?? below
    }
    return page.first
  }

  mutating func next(_ library: Library) throws -> VersionRow? {
    _ = try peek(library)
    return page.popFirst()
  }
}
