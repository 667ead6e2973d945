import Foundation
package import SheafModel
import SheafStore
import SheafWire

/// Which contents of connected accounts are on this machine.
///
/// Rules:
/// 1. Without a limit (`sheaf library set --cache`), everything that is current comes to this machine: small contents
///    with their documents, others afterwards. With a limit contents come when somebody needs them, and go again, those
///    that nobody used for longest first.
/// 2. What a person said of an item (`sheaf keep`, `sheaf free`) comes before that, and holds for everything below a
///    folder that says nothing else itself.
/// 3. Contents that are here are replaced by others that are here: a document never loses them to a change elsewhere.
/// 4. Nothing is freed that is open, or that the hub does not have, or has had for less than a day: a hub that is put
///    back to yesterday gets it again from here.
extension Library {
  /// Bytes of contents that come together with their document, where nothing limits what is here.
  private static let smallLength: Int64 = 64 << 10
  /// Nanoseconds for which what the hub acknowledged stays here in any case.
  static let acknowledgedPause: Int64 = 86_400 * 1_000_000_000
  /// Documents that are looked at with the lock held, and that are freed.
  private static let step = 64
  private static let freedAtOnce = 8
  /// Versions before the current one that are looked at for contents.
  private static let formerVersions = 4

  /// What a person said of an item, or of the nearest folder above it of which somebody said something.
  func isKept(_ ino: Int64) throws -> Bool? {
    guard try read({ try $0.hasKept() }) else { return nil }
    var found: Bool?
    try ascend(from: ino) { inode in
      found = try inode.row.item.flatMap { item in try read { try $0.isKept(item) } }
      return found == nil
    }
    return found
  }

  /// Whether a version comes without its contents.
  ///
  /// - Parameters:
  ///   - inode: The document, if it is here.
  ///   - parent: The folder in which it is, or will be; nil where that is not here yet.
  func comesAbsent(_ version: ItemVersion, _ inode: Inode?, in parent: Int64?) throws -> Bool {
    guard version.size > 0 else { return false }
    if let inode, inode.row.nlink > 0, inode.isRegular {
      let isHere = (inode.row.content?.absentLength ?? 0) == 0
      switch try isKept(inode.ino) {
      case true?: return false
      case false?: return true
      case nil where try isHere && hasContentsHere(inode): return false
      case nil: break
      }
    } else {
      switch try parent.flatMap(isKept) {
      case true?: return false
      case false?: return true
      case nil: break
      }
    }
    return try cacheLimit() != nil || version.size > Self.smallLength
  }

  /// Whether a document of which nothing is absent has contents here, or had them before a program emptied it.
  private func hasContentsHere(_ inode: Inode) throws -> Bool {
    if inode.row.size > 0 { return true }
    guard let item = try item(of: inode) else { return false }
    let former = try read { try $0.versions(item.id, below: item.version, limit: Self.formerVersions) }
    return former.first { $0.size > 0 }.map { $0.content.absentLength == 0 } ?? false
  }

  /// Whether earlier versions of a document come with their contents.
  package func fetchesHistory(_ due: DueHistory, of account: Int64) throws -> Bool {
    try locked { try !historyComesAbsent(replicaInode(due.item, of: account)) }
  }

  func historyComesAbsent(_ inode: Inode?) throws -> Bool {
    switch try inode.flatMap({ try isKept($0.ino) }) {
    case true?: false
    case false?: true
    case nil: try cacheLimit() != nil
    }
  }

  /// Contents of a version of which nothing is here.
  func absentContent(of version: ItemVersion, _ item: Int64, _ change: Change) throws -> StoredContent {
    try absentContent(of: version.id, size: version.size, item, change)
  }

  private func absentContent(
    of version: WireID, size: Int64, _ item: Int64, _ change: Change
  ) throws -> StoredContent {
    let id = SheafStore.Extent.firstAbsent + Int64.random(in: 0..<SheafStore.Extent.firstAbsent - 1)
    try change.rows.insert(AbsentContentsRow(id: id, item: item, version: version.bytes, size: size))
    return .absent(id, length: size)
  }

  // MARK: - What comes

  /// Puts bytes that were fetched where they are missing.
  ///
  /// - Parameter handle: As ``beginContents(of:)`` gave it; has exactly the bytes of the range.
  /// - Throws: `inputOutput` where it has others.
  package func take(_ absent: AbsentContents, contents handle: UInt64, of account: Int64) throws {
    try locked {
      guard let known = try read({ try $0.absentContents(absent.id) }),
        let item = try read({ try $0.item(known.item) }), let row = try read({ try $0.inode(item: item.id) })
      else { return }
      let inode = try inode(row.ino)
      let replica = try connected(item.owner)
      let number = try replicaVersions(of: item, replica).numbers[absent.version]
      let version = try number.flatMap { number in try read { try $0.version(item.id, number) } }
      try makeChange(.replica) { change in
        var fetched = Content(try storedContents(.file(handle), account, change))
        guard fetched.length == absent.range.count else {
          throw SheafError(.inputOutput, subject: "contents", reason: "are not what the hub said")
        }
        func filled(_ content: StoredContent) throws -> StoredContent {
          var content = Content(content)
          try content.fill(absent.id, absent.range, with: &fetched, from: change)
          return try content.stored(in: change)
        }
        let former = version?.content.absentLength ?? 0
        let stored = former > 0 ? try version.map { try filled($0.content) } : nil
        if let version, let stored { try change.rows.recode(item.id, version.number, to: stored) }
        var current = inode.row
        if current.content?.absentLength ?? 0 > 0 {
          current.content = current.content == version?.content ? stored : try current.content.map(filled)
          try change.rows.update(current, keepsItem: true)
        }
        if stored?.absentLength ?? 0 == 0, current.content?.absentLength ?? 0 == 0 {
          try change.rows.removeAbsentContents(absent.id)
        }
        let (final, filling) = (current, fetched)
        change.whenRecorded { [self] in
          inode.row = final
          for draft in inode.drafts where draft.working?.content.absentLength ?? 0 > 0 {
            draft.working = WorkingCopy(final.content ?? .empty)
          }
          fillReaders(absent.id, absent.range, with: filling)
        }
      }
      shareChunks(of: inode)
    }
  }

  /// Refuses contents where the disk has no room for all of them: a part would fill it for nothing.
  ///
  /// - Throws: `noSpace`.
  package func requireRoom(forContents bytes: Int64) throws {
    try locked {
      guard store.hasRoom(for: bytes) else {
        throw SheafError(.noSpace, subject: "contents", reason: "\(bytes) bytes do not fit")
      }
    }
  }

  /// Contents that are to come to this machine though nobody waits for them, and where the search goes on.
  ///
  /// - Parameter id: Those after this one, in no order that means anything.
  /// - Returns: One, if there is one among those that were looked at; `next` is nil at the end.
  package func wantedContents(
    of account: Int64, after id: Int64
  ) throws -> (wanted: AbsentContents?, next: Int64?) {
    try locked {
      let isLimited = try cacheLimit() != nil
      if isLimited, try !read({ try $0.hasKept() }) { return (nil, nil) }
      let rows = try read { try $0.absentContents(of: account, after: id, limit: Self.step) }
      for row in rows {
        guard let document = try read({ try $0.inode(item: row.item) }), document.nlink > 0,
          document.content?.absentLength ?? 0 > 0, var content = document.content.map(Content.init),
          let extent = try content.firstAbsent(from: self), extent.chunk == row.id
        else { continue }
        guard try isKept(document.ino) ?? !isLimited else { continue }
        return (try absence(of: [extent]) as? AbsentContents, row.id)
      }
      return (nil, rows.count < Self.step ? nil : rows.last?.id)
    }
  }

  // MARK: - What a person says

  /// Says of an item whether its contents are to be on this machine, with all that is below a folder; nil for what holds
  /// elsewhere.
  ///
  /// - Throws: `notFound`; `invalid` for what is in no connected account.
  package func setKept(_ path: ItemPath, _ isKept: Bool?) throws {
    try locked {
      let inode = try contentsPlace(path)
      guard let item = inode.row.item else { throw Self.notConnected(path) }
      try makeChange(.accounts) { change in
        try change.rows.setKept(item, isKept)
        change.whenRecorded { [self] in tell(.appearance(inode.ino), from: 0) }
      }
    }
  }

  /// An item of a connected account.
  private func contentsPlace(_ path: ItemPath) throws -> Inode {
    let inode = try resolve(path)
    try allow(.read, inode, .api(account(path.account).id))
    guard inode.isRegular || inode.isFolder, try read({ try $0.replica(inode.row.owner) }) != nil else {
      throw Self.notConnected(path)
    }
    return inode
  }

  private static func notConnected(_ path: ItemPath) -> SheafError {
    SheafError(
      .invalid, subject: "\(path)", reason: "is in no account that is connected to a hub, and all here",
      advice: "connect the account: sheaf connect LINK")
  }

  /// How much of an item is on this machine.
  package func localContents(_ path: ItemPath, progress: (SheafModel.Progress) -> Void) throws -> LocalContents {
    let top = try locked { try contentsPlace(path).ino }
    var facts = LocalContents(path: "\(path)", isKept: try locked { try isKept(top) })
    try eachDocument(below: top, progress) { inode in
      facts.documents += 1
      facts.bytes = facts.bytes.addingSaturated(inode.row.size)
      let absent = inode.row.content?.absentLength ?? 0
      if absent > 0 {
        facts.absentDocuments += 1
        if try isKept(inode.ino) == false { facts.freedDocuments += 1 }
      }
      facts.absentBytes = facts.absentBytes.addingSaturated(absent)
    }
    return facts
  }

  /// Frees what an item takes on this machine, with its earlier versions.
  package func freeContents(_ path: ItemPath, progress: (SheafModel.Progress) -> Void) throws -> FreedContents {
    completeSaves()
    let top = try locked { try contentsPlace(path).ino }
    var freed = FreedContents(path: "\(path)")
    try eachDocument(below: top, progress) { inode in
      switch try free(inode) {
      case .freed(let bytes):
        freed.documents += 1
        freed.bytes = freed.bytes.addingSaturated(bytes)
      case .nothing: break
      case .open: freed.open += 1
      case .unsent: freed.unsent += 1
      case .recent: freed.recent += 1
      }
    }
    if freed.bytes > 0 {
      _ = try sweep()
      // Whoever says so wants the room on the disk.
      try shrink()
    }
    return freed
  }

  /// Frees the contents that were used longest ago, until those of connected accounts take no more than the limit.
  package func freeBeyondLimit() throws {
    guard let limit = try locked({ try cacheLimit() }) else { return }
    var (candidates, total): ([(used: Timestamp, ino: Int64, bytes: Int64)], Int64) = ([], 0)
    for replica in try replicas() {
      var last: Int64 = 0
      while true {
        let items = try locked { () -> [Int64] in
          let items = try read { try $0.namedDocuments(of: replica.account, after: last, limit: Self.step) }
          for item in items {
            guard let row = try read({ try $0.inode(item: item) }) else { continue }
            let bytes = row.size - (row.content?.absentLength ?? 0)
            guard bytes > 0 else { continue }
            total = total.addingSaturated(bytes)
            candidates.append((max(row.atime, row.mtime), row.ino, bytes))
          }
          return items
        }
        guard let next = items.last else { break }
        last = next
      }
    }
    guard total > limit else { return }
    var isFreed = false
    for candidate in candidates.sorted(by: { $0.used < $1.used }) where total > limit {
      try locked {
        let inode = try inode(candidate.ino)
        guard try isKept(inode.ino) != true, case .freed = try free(inode) else { return }
        total -= candidate.bytes
        isFreed = true
      }
    }
    if isFreed { _ = try sweep() }
  }

  private enum Freeing {
    case freed(Int64)
    case nothing, open, unsent, recent
  }

  /// Frees the contents of a document's versions.
  private func free(_ inode: Inode) throws -> Freeing {
    guard inode.isRegular, inode.row.nlink > 0, let item = try item(of: inode), item.kind == .document,
      item.version > 0, !item.isQuiet, let replica = try read({ try $0.replica(item.owner) })
    else { return .nothing }
    if inode.openCount > 0 { return .open }
    let versions = try replicaVersions(of: item, replica)
    guard !inode.drafts.contains(where: { $0.session != nil || $0.isChanged }), versions.unsent.isEmpty,
      try versions.current == replicaBase(of: item, replica)
    else { return .unsent }
    if let time = try read({ try $0.lastAcknowledged(item.id) }) {
      let since = clock().nanoseconds.subtractingReportingOverflow(time.nanoseconds)
      if since.overflow || since.partialValue < Self.acknowledgedPause { return .recent }
    }
    let rows = try read { try $0.versions(item.id) }.filter { $0.size > 0 && $0.content.absentLength < $0.size }
    guard !rows.isEmpty else { return .nothing }
    guard rows.allSatisfy({ !$0.isOpen && versions.ids[$0.number] != nil }) else { return .unsent }
    let bytes = rows.reduce(Int64(0)) { $0.addingSaturated($1.size - $1.content.absentLength) }
    try makeChange(.replica, freesSpace: true) { change in
      var current = inode.row
      for row in rows {
        guard let id = versions.ids[row.number] else { continue }
        let content: StoredContent
        if case .extents(let extents) = row.content, let known = extents.first(where: \.isAbsent)?.chunk {
          content = .absent(known, length: row.size)
        } else {
          content = try absentContent(of: id, size: row.size, item.id, change)
        }
        try change.rows.recode(item.id, row.number, to: content)
        if row.number == item.version { current.content = content }
      }
      guard current.size == current.content?.length ?? 0 else {
        throw SheafError(.busy, subject: "id:\(item.uuid.text)", reason: "is being saved")
      }
      try change.rows.update(current, keepsItem: true)
      let final = current
      change.whenRecorded {
        inode.row = final
        for draft in inode.drafts where draft.working != nil { draft.working = WorkingCopy(final.content ?? .empty) }
      }
    }
    return .freed(bytes)
  }

  /// The current version of a document at the hub, as the replica knows it.
  private func replicaBase(of item: ItemRow, _ replica: ReplicaRow) throws -> WireID? {
    let row = try read { try $0.replicaItem(of: replica.account, item.uuid.bytes) }
    let base: ItemState? = try row.base.map { try replicaTexts.decode($0) }
    return base?.version?.id
  }

  /// Goes through the documents below a folder, or to the one that `top` is, a few with the lock held.
  private func eachDocument(
    below top: Int64, _ progress: (SheafModel.Progress) -> Void, _ body: (Inode) throws -> Void
  ) throws {
    var (folders, done) = ([Int64](), Int64(0))
    try locked {
      let inode = try inode(top)
      if inode.isFolder { folders = [top] } else { try body(inode) }
    }
    while let folder = folders.popLast() {
      var next: Int64? = Int64.min
      while let after = next {
        next = try locked { () -> Int64? in
          let rows = try read { try $0.listing(folder, after: after, limit: Self.freedAtOnce) }
          for row in rows {
            guard let inode = try? inode(row.inode.ino) else { continue }
            if inode.isFolder { folders.append(inode.ino) } else if inode.isRegular { try body(inode) }
          }
          done += Int64(rows.count)
          return rows.count < Self.freedAtOnce ? nil : rows.last.map(\.hash)
        }
        progress(.init(done: done, total: done))
      }
    }
  }

  // MARK: - The end of a connection

  /// Takes away some of what an account that is not connected any more has without contents: documents get the newest
  /// contents that are here, and those of which nothing is here go. It is called again until `next` is nil, also by the
  /// next process where this one ended before that.
  ///
  /// - Parameter after: What was returned as `next`; 0 to begin.
  /// - Returns: How many documents went, and where to go on.
  package func removeAbsent(of account: Int64, after: Int64) throws -> (removed: Int, next: Int64?) {
    let rows = try locked { () -> [AbsentContentsRow] in
      guard try read({ try $0.replica(account) }) == nil else { return [] }
      return try read { try $0.absentContents(of: account, after: after, limit: Self.step) }
    }
    var removed = 0
    for item in Set(rows.map(\.item)) where try removeAbsent(ofItem: item, account) { removed += 1 }
    return (removed, rows.last?.id)
  }

  private func removeAbsent(ofItem id: Int64, _ account: Int64) throws -> Bool {
    typealias Doomed = (
      id: String, handle: AccountHandle, deleted: DeletedRow?, names: [(folder: Int64, name: [UInt8])]
    )
    let doomed = try locked { () -> Doomed? in
      guard let row = try read({ try $0.inode(item: id) }), case let inode = try inode(row.ino),
        let item = try item(of: inode)
      else { return nil }
      let versions = try read { try $0.versions(id) }
      if row.content?.absentLength ?? 0 > 0 {
        guard row.nlink > 0, let here = versions.last(where: { $0.content.absentLength == 0 }),
          try makeCurrent(here.content, of: inode, by: .api(account)) != nil
        else {
          return (
            item.uuid.text, try key(account), row.nlink == 0 ? try read { try $0.deleted(row.ino) } : nil,
            try read { try $0.names(of: row.ino) }
          )
        }
      }
      try makeChange(.replica, freesSpace: true) { change in
        for version in versions where version.content.absentLength > 0 {
          try change.rows.deleteVersion(id, version.number)
        }
        try change.rows.removeAbsentContents(ofItem: id)
      }
      return nil
    }
    guard let doomed else { return false }
    if let row = doomed.deleted {
      try destroy(row, of: account)
    } else {
      // A file with several names goes with the last of them.
      for name in doomed.names.dropFirst() { try unlink(name.folder, name.name, .replica(account)) }
      try purge(path(ofItem: doomed.id, for: doomed.handle, isExact: true), version: nil)
    }
    return true
  }
}
