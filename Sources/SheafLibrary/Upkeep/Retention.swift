import Foundation
package import SheafModel
import SheafStore

/// Thinning old history and giving its space back.
///
/// Rooms: `Chunks`, `EditingSessions`, `InodeTable`, `Numbers`, `VersionReaders`.
extension Library {
  /// Seconds for which deleted items can be recovered where nobody says otherwise (``RetentionPolicy``), and for which
  /// events are kept.
  static let deletedSeconds: Int64 = 30 * 86_400
  static let eventSeconds: Int64 = 90 * 86_400
  /// Seconds for which versions are kept where nobody says otherwise.
  static let versionSeconds: Int64 = 365 * 86_400
  /// Seconds by which a clock may be ahead of what is in the library and be believed, unless something is kept for less.
  private static let doubtSeconds: Int64 = 30 * 86_400

  /// All versions for a day, hourly ones for a week, daily ones for a month, weekly ones for as long as they are kept.
  private static let spans: [(age: Int64, interval: Int64)] = [
    (86_400, 0), (7 * 86_400, 3600), (30 * 86_400, 86_400), (.max, 7 * 86_400),
  ]

  /// Thins history by the rules of retention, packs what is left of it, frees what nothing refers to, and shrinks the
  /// file.
  package func compact(progress: (SheafModel.Progress) -> Void) throws -> CompactReport {
    let before = store.fileBytes
    var report = try condense { progress(SheafModel.Progress(done: Int64($0 * 950), total: 1000)) }
    try store.tighten()
    store.reserve.establish()
    progress(SheafModel.Progress(done: 1000, total: 1000))
    report.bytesFreed = max(0, before - store.fileBytes)
    return report
  }

  /// Does what `compact` does while the library is in use, so that it does not grow for want of a command; started by
  /// upkeep every few hours. The file is shrunk only where that is worth it: else what comes next takes the room.
  func tidy() throws {
    _ = try condense { _ in }
    if try store.shouldShrink { try shrink() }
  }

  /// Thins, sweeps, packs and compresses.
  ///
  /// Freeing comes first, since what follows needs some room; where a full disk has none, the rest waits for the next
  /// time.
  private func condense(_ progress: (Double) -> Void) throws -> CompactReport {
    let isClockBelieved = try believesClock(clock())
    let thinned = isClockBelieved ? try thin() : 0
    progress(0.05)
    var freed = try sweep()
    progress(0.1)
    var packed = 0
    do {
      packed = try packHistory { progress(0.1 + $0 * 0.5) }
      if packed > 0 { freed += try sweep() }
      progress(0.65)
      try compressChunks { progress(0.65 + $0 * 0.35) }
    } catch let error as SheafError where error.kind == .noSpace {
      log.warning("history could not be packed", metadata: ["error": "\(error)"])
    }
    return CompactReport(
      versionsThinned: thinned, versionsPacked: packed, chunksFreed: freed, bytesFreed: 0,
      isClockDoubted: !isClockBelieved)
  }

  /// Events that one transaction of ``thin()`` takes away at most, so that nobody waits long.
  private static let eventBatch = 500
  /// Versions, and past names, that it takes away.
  private static let thinBatch = 64
  /// Deleted items.
  private static let erasedAtOnce = 8
  /// Chunks that one transaction of ``sweep(mustMend:)`` frees: SQLite goes through the pages of each.
  private static let freedAtOnce = 100

  /// Removes what retention has passed; returns how many versions.
  private func thin() throws -> Int {
    let time = clock()
    var removed = 0
    let surplus = try surplusVersions(at: time)
    for batch in stride(from: 0, to: surplus.count, by: Self.thinBatch) where !maintenance.isStopping {
      removed += try locked {
        try makeChange(.thin, freesSpace: true) { change in
          var spared: (item: Int64, numbers: Set<Int64>)?
          // One that got a label meanwhile stays.
          return try surplus[batch..<min(batch + Self.thinBatch, surplus.count)].reduce(0) {
            if spared?.item != $1.item {
              let sent = try change.rows.item($1.item).map { try versionsBeingSent(of: $0) } ?? []
              spared = ($1.item, try entryVersions(of: $1.item).union(sent))
            }
            if spared?.numbers.contains($1.number) ?? false { return $0 }
            return $0 + (try change.rows.thinVersion($1.item, $1.number, of: $1.time) ? 1 : 0)
          }
        }
      }
    }
    try eraseDeleted(at: time)
    try thinPastNames(at: time)
    guard !maintenance.isStopping else { return removed }
    while try dropSomeEvents(at: time) { guard !maintenance.isStopping else { return removed } }
    try locked {
      try makeChange(.thin, freesSpace: true) {
        try $0.rows.setSetting("thinned", time.nanoseconds)
        try $0.rows.setSetting("clockDoubted", nil)
        // Folders that are gone say nothing any more.
        for item in try RetentionPolicy($0.rows).items where try $0.rows.item(item) == nil {
          for key in [RetentionPolicy.deletedKey, RetentionPolicy.versionsKey, RetentionPolicy.unsentKey] {
            try $0.rows.setSetting("\(key).\(item)", nil as String?)
          }
        }
      }
    }
    return removed
  }

  /// Drops events that are older than they are kept, as many as one transaction takes away; returns whether there may
  /// be more.
  func dropSomeEvents(at time: Timestamp) throws -> Bool {
    try locked {
      try makeChange(.thin, freesSpace: true) {
        try $0.rows.dropEvents(
          before: Timestamp(seconds: time.seconds - Self.eventSeconds), limit: Int64(Self.eventBatch))
      }
    }
  }

  /// Erases what was deleted so long ago that it cannot be recovered any more.
  ///
  /// A time before that of the item's last version, or of an event that was logged before the deletion, was told by a
  /// clock that was behind: the later one counts.
  private func eraseDeleted(at time: Timestamp) throws {
    let (old, late) = try overdue(at: time)
    guard !old.isEmpty else { return }
    let borders = Dictionary(old.map { ($0.ino, $0.border) }, uniquingKeysWith: min)
    var forest = DeletedForest()
    try store.snapshot { try $0.deletedParents { forest.add($0, in: $1) } }
    var next = forest.erasable(due: Set(borders.keys).subtracting(late), late: late)[...]
    while let first = next.first, !maintenance.isStopping {
      if let folder = forest.folder(of: first) { try approach(folder) }
      try locked {
        try settleEvents(all: true)
        let begun = next
        next = try makeChange(.thin, freesSpace: true) { change in
          var next = begun
          for _ in 0..<Self.erasedAtOnce {
            guard let ino = next.popFirst() else { break }
            // An item that was recovered meanwhile stays, and so does a folder from which something was deleted.
            guard let row = try change.rows.deleted(ino), let border = borders[ino], row.time < border,
              try change.rows.deleted(from: ino, limit: 1).isEmpty
            else { continue }
            let inode = try inode(ino)
            if try eraseOldVersions(of: inode, change) {
              next = begun.suffix(next.count + 1)
              break
            }
            try change.rows.removeDeleted(ino)
            try erase(inode, change)
            letGo(inode, change)
          }
          return next
        }
      }
    }
  }

  /// For how long an item must have had a name that it lost `age` seconds ago for that to be kept.
  static func keptNameSeconds(age: Int64) -> Int64 { spans.first { age < $0.age }?.interval ?? .max }

  /// Removes past names that are old: of each span those that lasted shorter than the time between two versions that
  /// are kept of it.
  private func thinPastNames(at time: Timestamp) throws {
    var surplus: [PastNameRow] = []
    try store.snapshot { transaction in
      try transaction.pastNames { row in
        let kept = Self.keptNameSeconds(age: time.seconds - row.until.seconds)
        if row.until.seconds - row.since.seconds < kept { surplus.append(row) }
      }
    }
    for batch in stride(from: 0, to: surplus.count, by: Self.thinBatch) where !maintenance.isStopping {
      try locked {
        try makeChange(.thin, freesSpace: true) { change in
          for row in surplus[batch..<min(batch + Self.thinBatch, surplus.count)] {
            try change.rows.removePastName(row.parent, row.name, until: row.until, item: row.item)
          }
        }
      }
    }
  }

  /// The inodes that were deleted longer ago than their folders keep such, with the time before which they were to be
  /// deleted for that; and those of them whose times a clock told that was behind.
  private func overdue(at time: Timestamp) throws -> (old: [(ino: Int64, border: Timestamp)], late: Set<Int64>) {
    var all: (old: [(ino: Int64, border: Timestamp)], late: Set<Int64>) = ([], [])
    for span in try store.snapshot({ try RetentionPolicy($0).deletedSpans }).sorted(by: >) {
      let border = Timestamp(seconds: time.seconds - span)
      let (old, late) = try deleted(before: border, at: time)
      guard !old.isEmpty else { continue }
      try store.snapshot { transaction in
        var policy = try RetentionPolicy(transaction)
        func isKept(for ino: Int64) throws -> Bool {
          guard let row = try transaction.deleted(ino) else { return false }
          return try policy.spans(in: row.parent, transaction).deleted == span
        }
        for ino in old where try isKept(for: ino) { all.old.append((ino, border)) }
        for ino in late where try isKept(for: ino) { all.late.insert(ino) }
      }
    }
    return all
  }

  /// The inodes that were deleted before `border` by their times, oldest first, and those whose times a clock told that
  /// was behind, which may be among them.
  func deleted(before border: Timestamp, at time: Timestamp) throws -> (old: [Int64], late: Set<Int64>) {
    let old = try store.snapshot { try $0.deleted(before: border, at: time) }
    guard !old.isEmpty else { return ([], []) }
    try settleEventsInSteps()
    return (old, try store.snapshot { try $0.deletedByClockBehind(before: border, at: time) })
  }

  /// Whether what is old by the clock can go: a clock that is far ahead would have nearly all history go at once.
  ///
  /// It is doubted where nothing of the month before is in the library, not even a sign that it was thinned then; what
  /// was made on the last day says nothing, since it bears the time of the same clock. After a day with that time it is
  /// believed.
  func believesClock(_ time: Timestamp) throws -> Bool {
    let doubtSeconds = try min(Self.doubtSeconds, read { try RetentionPolicy($0) }.shortest)
    func isRecent(_ other: Timestamp?) -> Bool { other.map { time.seconds - $0.seconds <= doubtSeconds } ?? false }
    let dayBefore = Timestamp(seconds: time.seconds - 86_400)
    let (thinned, doubted) = try store.read { transaction in
      func setting(_ key: String) throws -> Timestamp? {
        try transaction.numberSetting(key).map { Timestamp(nanoseconds: $0) }
      }
      return (try setting("thinned"), try setting("clockDoubted"))
    }
    if isRecent(thinned) { return true }
    let latest = try store.snapshot { try $0.latestTime(upTo: dayBefore) }
    if isRecent(latest) || (thinned == nil && latest == nil) { return true }
    if let doubted, doubted <= dayBefore { return true }
    if doubted.map({ $0 > time }) ?? true {
      try locked {
        try makeChange(.thin, freesSpace: true) { try $0.rows.setSetting("clockDoubted", time.nanoseconds) }
      }
    }
    log.warning(
      "the clock is far ahead of what is in the library: nothing is removed for its age until it was so for a day",
      metadata: ["clock": "\(time)", "latest": "\(latest.map { "\($0)" } ?? "none")"])
    return false
  }

  /// The versions to remove, found while work goes on: of each interval the last one stays.
  ///
  /// A version is not older than those before it: the clock that told so was behind.
  private func surplusVersions(at time: Timestamp) throws -> [(item: Int64, number: Int64, time: Timestamp)] {
    var surplus: [(item: Int64, number: Int64, time: Timestamp)] = []
    var previous: (item: Int64, number: Int64, time: Timestamp, slot: Int64)?
    try store.snapshot { transaction in
      var policy = try RetentionPolicy(transaction)
      var kept = (item: Int64(0), span: policy.library.versions)
      var latest = (item: Int64(0), time: time)
      try transaction.versionTimes { item, number, own, canGo in
        if latest.item != item { latest = (item, Timestamp(nanoseconds: .min)) }
        // One that was made by a clock that was ahead says nothing of the others.
        if own <= time { latest.time = max(latest.time, own) }
        let made = max(own, latest.time)
        guard canGo else { return }
        let age = time.seconds - made.seconds
        if kept.item != item { kept = (item, try policy.spans(ofItem: item, transaction).versions) }
        guard age < kept.span, let span = Self.spans.first(where: { age < $0.age }) else {
          surplus.append((item, number, own))
          previous = nil
          return
        }
        guard span.interval > 0 else {
          previous = nil
          return
        }
        let slot = made.seconds / span.interval &* 8 &+ Int64(Self.spans.firstIndex { $0.age == span.age } ?? 0)
        if let last = previous, last.item == item, last.slot == slot {
          surplus.append((last.item, last.number, last.time))
        }
        previous = (item, number, own, slot)
      }
    }
    return surplus
  }

  /// Frees chunks that no version, inode, open file or reader of a version refers to; returns how many.
  ///
  /// References are found while writing goes on. The sweep looks at memory and store in one moment. A chunk that is
  /// referred to later was referred to then, or was stored or found again meanwhile, which spares it. One sweep runs at
  /// a time.
  ///
  /// - Parameter mustMend: whether to fail if a freed chunk is still in a pack.
  func sweep(mustMend: Bool = false) throws -> Int {
    try packCare.withLock { care in
      var freed = try sweepAlone(&care)
      let (mended, refusal) = try mendPacks(&care)
      // The base of a pack that was made anew may have had no other use.
      if mended > 0 { freed += try sweepAlone(&care) }
      if mustMend, let refusal { throw refusal }
      return freed
    }
  }

  private func sweepAlone(_ care: inout PackCare) throws -> Int {
    defer { locked { chunks.endSweep() } }
    var marks = ChunkMarks(limit: 0)
    var dead: [Int64] = []
    var deadPacks: [(id: Int64, base: StoredContent, chunks: [Int64])] = []
    func begin(_ snapshot: () throws -> Void) throws {
      let inMemory: [Int64] = try locked {
        try snapshot()
        chunks.beginSweep()
        marks = ChunkMarks(limit: numbers.chunk)
        let readers = versionReaders.all
        return try inodes.all.filter(\.hasContents).flatMap { inode in
          try inode.drafts.flatMap { try $0.working?.referredChunks(self) ?? [] }
        }
          + readers.flatMap { try $0.copy.referredChunks(self) }
          + sessions.inodes.flatMap { inode in
            try inode.drafts.compactMap(\.session).flatMap { try Content($0.baseContent).referredChunks(self) }
          }
      }
      for chunk in inMemory { marks.insert(chunk) }
    }
    try store.snapshot(beginningIn: begin) { transaction in
      try transaction.contents { content in
        if maintenance.isStopping { throw SheafError(.busy, subject: "the library", reason: "is being closed") }
        switch content {
        case .extents(let extents): for extent in extents { marks.insert(extent.chunk) }
        case .nodes(let nodes): for node in nodes { try markNode(node.chunk, &marks, transaction) }
        }
      }
      care.forgetWaiting()
      var bases: [Int64] = []
      try transaction.packs { id, base, chunks in
        let baseChunks = base.chunks
        if !chunks.contains(where: marks.contains) {
          deadPacks.append((id, base, chunks))
        } else {
          bases += baseChunks
          let gone = (chunks + baseChunks).count { !marks.contains($0) }
          if gone > 0 { care.wait(id, gone: gone, hasBase: baseChunks.allSatisfy(marks.contains)) }
        }
      }
      for chunk in bases { marks.insert(chunk) }
      try transaction.chunkIDs { if marks.isDead($0) { dead.append($0) } }
    }
    maintenance.noteSearched()
    var (freed, kept): (Int, Set<Int64>) = (0, [])
    for pack in deadPacks { try free(pack, &freed, &kept) }
    for batch in stride(from: 0, to: dead.count, by: Self.freedAtOnce) {
      freed += try locked {
        let spared = chunks.sparedChunks
        let doomed = try dead[batch..<min(batch + Self.freedAtOnce, dead.count)].filter { chunk in
          try !spared.contains(chunk) && !kept.contains(chunk) && read { try $0.hasChunk(chunk) }
        }
        guard !doomed.isEmpty else { return 0 }
        try makeChange(.sweep, freesSpace: true) { for chunk in doomed { try $0.rows.deleteChunk(chunk) } }
        for chunk in doomed { chunks.cache.remove(chunk) }
        return doomed.count
      }
    }
    return freed
  }

  /// Frees a pack with all its members, unless one of them was found again meanwhile.
  private func free(
    _ pack: (id: Int64, base: StoredContent, chunks: [Int64]), _ freed: inout Int, _ kept: inout Set<Int64>
  ) throws {
    try locked {
      let spared = chunks.sparedChunks
      guard !pack.chunks.contains(where: spared.contains) else {
        kept.formUnion(pack.base.chunks)
        return
      }
      let members = try pack.chunks.enumerated().filter { index, chunk in
        try read { try $0.packPlace(chunk) } == PackPlace(pack: pack.id, index: index)
      }.map(\.element)
      try makeChange(.sweep, freesSpace: true) { change in
        for chunk in members { try change.rows.deleteChunk(chunk) }
        try change.rows.deletePack(pack.id)
      }
      for chunk in members { chunks.cache.remove(chunk) }
      freed += members.count
    }
  }

  private func markNode(_ node: Int64, _ marks: inout ChunkMarks, _ transaction: StoreTransaction) throws {
    guard marks.expand(node) else { return }
    marks.insert(node)
    for extent in try StoredContent.decodeNode(transaction.chunkBytes(node)) { marks.insert(extent.chunk) }
  }
}
