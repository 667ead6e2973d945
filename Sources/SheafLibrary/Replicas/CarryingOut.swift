import Foundation
import SheafModel
import SheafReplica
import SheafStore
package import SheafWire

/// The steps of a replica's plans, carried out: what the hub told becomes so in this library, for every mount and
/// watcher, as if another account of it had done so.
///
/// Rules:
/// 1. Each operation of a step is a change of its own, and finds out itself whether it is still to be done. So a step
///    that was cut short is done again.
/// 2. What could not be made is not taken for deleted: it is news again.
/// 3. Programs go on meanwhile. What they changed since the plan was made stays, and the next plan tells the hub of it.
///    Nothing that was saved here is lost: contents that were not sent are never replaced.
/// 4. What was done elsewhere counts as done by whom it was done, and when, as far as the hub tells.
///
/// Rooms: `EditingSessions`, `Identity`, `InodeTable`, `Numbers`, `OpenFiles`.
extension Library {
  /// The next step of a plan.
  package func step(of account: Int64) throws -> (number: Int64, step: ReplicaStep)? {
    try locked {
      try read { try $0.replicaStep(of: account) }.map { ($0.number, try replicaTexts.decode($0.step)) }
    }
  }

  /// The version whose contents a step needs, if they are not here.
  package func needsContents(_ step: ReplicaStep, of account: Int64) throws -> (item: WireID, version: ItemVersion)? {
    guard let needed = step.contents, needed.version.size > 0 else { return nil }
    return try locked { () -> (item: WireID, version: ItemVersion)? in
      let replica = try connected(account)
      let inode = try replicaInode(needed.item, of: account)
      if let inode, let item = try item(of: inode),
        try replicaVersions(of: item, replica).numbers[needed.version.id] != nil
      {
        return nil
      }
      return try comesAbsent(needed.version, inode, in: folder(of: step, account)) ? nil : needed
    }
  }

  /// The folder in which a step makes something; nil for other steps, and where it is not here yet.
  private func folder(of step: ReplicaStep, _ account: Int64) throws -> Int64? {
    guard case .make(let item, _) = step, let place = item.places.min() else { return nil }
    return try ReplicaTree(self, connected(account)).inode(place.parent)?.ino
  }

  /// The versions whose contents the next steps need, if they are not here.
  package func neededContents(of account: Int64, limit: Int) throws -> [(item: WireID, version: ItemVersion)] {
    let steps = try locked { try read { try $0.replicaSteps(of: account, limit: limit) } }
    return try steps.compactMap { try needsContents(replicaTexts.decode($0.step), of: account) }
  }

  /// Opens a file without a name for the contents of a version, to be written and handed on as
  /// ``ReceivedContents/file(_:)``, and released in any case.
  package func beginContents(of account: Int64) throws -> UInt64 {
    let documents = try locked { try self.documents(ofConnected: account) }
    return try createNameless(documents, mode: 0o600, flags: O_RDWR, .replica(account)).handle
  }

  /// The latest versions of a document that are looked at for what a new one may have of them.
  private static let versionsLookedAt = 16
  private static let versionsCompared = 3

  /// The versions of a document that are here and that the hub has, with their bytes: those first of which a version of
  /// `size` bytes may have most. Programs empty a document before they write it anew, so the latest one is not always
  /// that.
  package func versionsHere(
    ofItem id: WireID, like size: Int64, of account: Int64
  ) throws -> [(version: WireID, size: Int64)] {
    try locked {
      guard let inode = try replicaInode(id, of: account), let item = try item(of: inode) else { return [] }
      let replica = try connected(account)
      var found: [(version: WireID, size: Int64)] = []
      for facts in try read({ try $0.versionFacts(item.id) }).reversed().prefix(Self.versionsLookedAt) {
        guard facts.isSent, !facts.isOpen, let row = try read({ try $0.version(item.id, facts.number) }),
          row.content.absentLength == 0, row.content.length > 0
        else { continue }
        found.append((Self.versionID(of: facts, of: item, replica), row.content.length))
      }
      let isLarge = Dictionary(grouping: found) { $0.size >= size / 2 }
      let best = (isLarge[true] ?? []) + (isLarge[false] ?? []).sorted { $0.size > $1.size }
      return Array(best.prefix(Self.versionsCompared))
    }
  }

  /// Gives a file that ``beginContents(of:)`` opened its length, and parts of a version that is here: chunks are shared,
  /// no data is copied. What is no part of it reads as zeros.
  ///
  /// - Returns: false where the version is not here any more; nothing is done then.
  package func copy(
    _ parts: [ContentCopies.Copy], of version: WireID, ofItem id: WireID, size: Int64, to handle: UInt64,
    of account: Int64
  ) throws -> Bool {
    try locked {
      guard let (inode, row) = try localVersion(version, ofItem: id, of: account) else { return false }
      // A session that goes on renews no chunk that is shared.
      shareChunks(of: inode)
      try assemble(
        parts.compactMap { part in
          part.source.map { (part.offset, $0..<($0 + part.length)) }
        }, of: row.content, size: size, in: handle)
      return true
    }
  }

  /// Where two versions of a document that are here have the same bytes at the same place, as far as they share chunks;
  /// nothing where one of them is not here.
  package func sameRanges(
    _ version: WireID, _ other: WireID, ofItem id: WireID, of account: Int64
  ) throws -> [Range<Int64>] {
    try locked {
      guard let one = try localVersion(version, ofItem: id, of: account)?.row.content,
        let other = try localVersion(other, ofItem: id, of: account)?.row.content
      else { return [] }
      return try Content.sharedRanges(one, other, from: self)
    }
  }

  private func localVersion(
    _ version: WireID, ofItem id: WireID, of account: Int64
  ) throws -> (inode: Inode, row: VersionRow)? {
    guard let inode = try replicaInode(id, of: account), let item = try item(of: inode),
      let number = try replicaVersions(of: item, connected(account)).numbers[version],
      let row = try read({ try $0.version(item.id, number) }), !row.isOpen, row.content.absentLength == 0
    else { return nil }
    return (inode, row)
  }

  /// Does a step, and notes that it was done.
  ///
  /// - Parameter contents: The contents that ``needsContents(_:of:)`` asked for; nil also where the hub has them no more.
  /// - Returns: whether it could be done. What could not be is compared anew.
  /// - Throws: `inputOutput` and what else keeps this library from changing at all: the step is still to be done.
  package func carryOut(
    _ number: Int64, _ step: ReplicaStep, of account: Int64, contents: ReceivedContents?
  ) throws -> Bool {
    var isDone = true
    var missing: WireID?
    do {
      try carryOut(step, of: account, contents)
    } catch let error as SheafError where !Self.isLasting(error.kind) {
      // It is not as it was when the plan was made. The next plan compares it anew.
      log.info("a step of a replica was not possible", metadata: ["error": "\(error)"])
      isDone = false
      if case .make(let item, _) = step { missing = item.item }
    }
    try locked {
      try makeChange(.replica) { change in
        try change.rows.removeReplicaStep(of: account, number)
        if let missing { try tellAgain(missing, account, change) }
        if !isDone {
          switch step {
          case .place(let id, _), .delete(let id, _): try noteReturning(id, account, change)
          case .set(let item, let before, _): try noteUnset(item, since: before, account, change)
          default: break
          }
        }
        if !isDone, case .make(let item, let version?) = step {
          // When it is shown, the hub may have a later one.
          try noteHistory(item.item, told: 0, after: version.number - 1, isWhole: false, account, change)
        }
        if case .set(let item, _, let version?) = step {
          try noteUnseen(version, of: item.item, told: 0, account, change)
        }
        for id in step.items {
          try change.rows.noteReplicaChange(of: account, id.bytes)
          if isDone { try wakeHistory(of: id, account, change) }
        }
      }
    }
    return isDone
  }

  /// Has what the hub has of an item shown as if it had been told now.
  func tellAgain(_ id: WireID, _ account: Int64, _ change: Change) throws {
    var row = try change.rows.replicaItem(of: account, id.bytes)
    guard let base: ItemState = try row.base.map({ try replicaTexts.decode($0) }), row.news == nil else { return }
    row.mark = try replicaTexts.encode(ReplicaMark.undone)
    (row.news, row.newsNumber) = (row.base, base.number)
    try change.rows.setReplicaItem(of: account, id.bytes, row)
  }

  /// Notes that an item could not be made as the hub has it. What it has here is older, and is no change that was made
  /// here: as such it would go to the hub, and bring back what others deleted meanwhile.
  private func noteUnset(_ item: LocalItem, since before: LocalItem, _ account: Int64, _ change: Change) throws {
    var row = try change.rows.replicaItem(of: account, item.item.bytes)
    guard var base: ItemState = try row.base.map({ try replicaTexts.decode($0) }) else { return }
    if row.news == nil { (row.news, row.newsNumber) = (row.base, base.number) }
    if item.mode != before.mode { base.mode = before.mode }
    if item.mtime != before.mtime { base.mtime = before.mtime }
    if item.target != before.target { base.target = before.target }
    if item.attributes != before.attributes { base.attributes = before.attributes }
    row.base = try replicaTexts.encode(base)
    try change.rows.setReplicaItem(of: account, item.item.bytes, row)
  }

  /// Notes that an item has names here that are older than the deed by which the hub has others for it.
  private func noteReturning(_ id: WireID, _ account: Int64, _ change: Change) throws {
    var row = try change.rows.replicaItem(of: account, id.bytes)
    guard row.mark == nil else { return }
    row.mark = try replicaTexts.encode(ReplicaMark.returning)
    try change.rows.setReplicaItem(of: account, id.bytes, row)
  }

  /// Whether an error says something of this machine, and not of the item.
  private static func isLasting(_ kind: SheafError.Kind) -> Bool {
    switch kind {
    case .inputOutput, .corrupt, .readOnly: true
    default: false
    }
  }

  private func carryOut(_ step: ReplicaStep, of account: Int64, _ contents: ReceivedContents?) throws {
    switch step {
    case .make(let item, let version): try make(item, version, contents, account)
    case .set(let item, let before, let version): try set(item, since: before, version, contents, account)
    case .place(let id, let places): try place(id, at: places, account)
    case .delete(let id, let told): try delete(id, told: told, account)
    case .destroy(let id): try destroy(id, account)
    case .destroySent(let id): try destroySent(id, account)
    case .identify(let id, let new, let versions): try identify(id, as: new, versions, account)
    case .renew(let id): try renew(id, account)
    case .absorb(let id, let other, let versions): try absorb(id, into: other, versions, account)
    case .moveVersion(let version, let id, let other): try moveVersion(version, from: id, to: other, account)
    }
  }

  // MARK: - Making

  private func make(
    _ item: LocalItem, _ version: ItemVersion?, _ contents: ReceivedContents?, _ account: Int64
  ) throws {
    let found = try locked { () -> (isHere: Bool, deleted: DeletedRow?)? in
      try replicaInode(item.item, of: account).map {
        ($0.row.nlink > 0, try read { [ino = $0.ino] in try $0.deleted(ino) })
      }
    }
    guard let place = item.places.min() else { throw SheafError(.invalid, subject: "item without a name") }
    guard let found else { return try makeAnew(item, at: place, version, contents, account) }
    if !found.isHere {
      guard let deleted = found.deleted else { throw SheafError(.notFound) }
      let (folder, name) = try locked { () -> (Int64, [UInt8]) in
        let folder = try self.folder(place.parent, account)
        return (folder.ino, try freeName(place.name, in: folder.ino, isFolder: item.kind == .folder))
      }
      let caller = Caller.replica(account, name == place.name ? try locked { try deed(item.item, account) } : nil)
      _ = try recover(
        deleted, called: String(decoding: place.name, as: UTF8.self).printable,
        to: .init(folder: folder, name: name, mover: caller), isAlone: true, caller
      ) { _ in }
    }
    guard
      let now = try locked({ () -> LocalItem? in
        var tree = try ReplicaTree(self, connected(account))
        return try tree.local(item.item)
      })
    else { throw SheafError(.notFound) }
    var wanted = item
    // What was saved here before it was deleted, and not sent, the hub does not have. It is shown until it was sent.
    wanted.unsent = now.unsent
    try set(wanted, since: now, version, contents, account)
    guard !now.unsent.isEmpty, let version else { return }
    try locked { try makeChange(.replica) { try noteUnseen(version, of: item.item, told: 0, account, $0) } }
  }

  /// The folder that an id names.
  ///
  /// - Throws: `notFound`, `notDirectory`.
  private func folder(_ id: WireID, _ account: Int64) throws -> Inode {
    guard let inode = try ReplicaTree(self, connected(account)).inode(id) else { throw SheafError(.notFound) }
    guard inode.isFolder else { throw SheafError(.notDirectory) }
    return inode
  }

  private func makeAnew(
    _ wanted: LocalItem, at place: Place, _ version: ItemVersion?, _ contents: ReceivedContents?, _ account: Int64
  ) throws {
    let parent = try locked { try folder(place.parent, account).ino }
    try lockedNear([parent]) {
      let folder = try folder(parent)
      guard folder.row.nlink > 0 else { throw SheafError(.notFound) }
      let origin = try origin(of: wanted.item, known(wanted.item, account), version, account)
      try makeChange(.replica, by: .replica(account)) { change in
        let name = try freeName(place.name, in: parent, isFolder: wanted.kind == .folder)
        try insert(wanted, in: folder, called: name, version, contents, origin, account, change)
        try touch(folder, change.time, links: wanted.kind == .folder ? 1 : 0, change)
      }
    }
  }

  /// Makes an item that is not here, without touching its folder.
  ///
  /// - Parameter name: One that is free.
  /// - Throws: `exists` where another account's item has the id: ids are the hub's word.
  private func insert(
    _ wanted: LocalItem, in folder: Inode, called name: [UInt8], _ version: ItemVersion?, _ contents: ReceivedContents?,
    _ origin: Origin, _ account: Int64, _ change: Change
  ) throws {
    let (parent, time) = (folder.ino, change.time)
    guard try change.rows.item(uuid: UUID(bytes: wanted.item.bytes)) == nil else { throw SheafError(.exists) }
    let type = wanted.kind == .folder ? S_IFDIR : wanted.kind == .symlink ? S_IFLNK : S_IFREG
    let mode = wanted.kind == .symlink ? 0o777 : UInt32(truncatingIfNeeded: wanted.mode) & 0o1777
    var row = newRow(type, in: folder, name, mode: mode, .replica(account), time)
    (row.uid, row.gid) = (folder.row.uid, folder.row.gid)
    if wanted.kind == .folder { row.nlink = 2 } else { row.mtime = Timestamp(nanoseconds: wanted.mtime) }
    if wanted.kind == .symlink {
      guard let target = wanted.target, Self.isTarget(target) else { throw SheafError(.invalid) }
      row.target = [UInt8](target)
      row.size = Int64(target.count)
    }
    var item = ItemRow(
      id: numbers.nextItem(), uuid: UUID(bytes: wanted.item.bytes), kind: wanted.kind.local, owner: row.owner,
      creator: origin.creator, created: min(origin.created ?? time, time))
    row.item = item.id
    if wanted.kind == .document {
      if let version, contents == nil, try comesAbsent(version, nil, in: parent) {
        row.content = try absentContent(of: version, item.id, change)
      } else {
        row.content = try storedContents(contents, account, change)
      }
      row.size = row.content?.length ?? 0
      guard row.size == version?.size ?? 0 else { throw SheafError(.notFound, subject: "contents at the hub") }
      if let version {
        item.version = max(1, min(version.number, Self.highestVersion))
        item.lastVersion = item.version
      }
    }
    if try isSharedHereAlone(parent) { item.entered = max(time, Timestamp(nanoseconds: version?.time ?? 0)) }
    try change.rows.insert(item)
    try change.rows.insert(row)
    // A name that differs from the hub's is this machine's.
    let since = name == wanted.places.min()?.name ? min(origin.placed ?? item.created, time) : time
    try change.rows.insert(EntryRow(parent: parent, hash: nameHash(name), name: name, ino: row.ino, since: since))
    if let version {
      try change.rows.insert(
        VersionRow(
          item: item.id, number: item.version, time: Timestamp(nanoseconds: version.time), author: origin.author,
          size: row.size, cause: version.cause.local, base: nil, content: row.content ?? .empty, isOpen: false))
      try change.rows.set(ReplicaVersionRow(number: item.version, uuid: version.id.bytes, isSent: true), of: item.id)
    }
    for (name, value) in wanted.attributes.sorted(by: { $0.key < $1.key }) where Self.travels(Array(name.utf8)) {
      try change.rows.setXattr(row.ino, Array(name.utf8), [UInt8](value))
    }
    let inode = Inode(row)
    inode.item = item
    change.whenRecorded { [self] in
      inodes.insert(inode)
      identity.settle(parent, name)
      tell(.made(NamedInode(inode, parent, name)), from: 0)
    }
  }

  // MARK: - Making many

  /// Steps that are done together with the lock held.
  private static let madeAtOnce = 16
  /// Bytes of contents that are stored with it held; no matter how large the first is.
  private static let bytesAtOnce: Int64 = 128 << 10

  /// Does the next steps in one change, as far as each makes a document or a symbolic link that is not here, in a folder
  /// that is: where very many come, each costs less.
  ///
  /// - Parameter contents: The contents of a small version, if they were fetched; asked for once, with the lock held.
  /// - Returns: How many were done; where it is none, the next step is to be done by itself.
  package func makeTogether(of account: Int64, contents: (ItemVersion) -> [UInt8]?) throws -> Int {
    try locked {
      let rows = try read { try $0.replicaSteps(of: account, limit: Self.madeAtOnce) }
      var new: [NewItem] = []
      var bytes: Int64 = 0
      for row in rows {
        guard let item = try newItem(row.number, replicaTexts.decode(row.step), account) else { break }
        bytes = bytes.addingSaturated(item.comesAbsent ? 0 : item.version?.size ?? 0)
        guard new.isEmpty || bytes <= Self.bytesAtOnce else { break }
        new.append(item)
      }
      // One that has no room, or cannot be made for another reason, says so by itself.
      guard new.count > 1, store.reserve.establish(), store.hasRoom(for: bytes) else { return 0 }
      var made: [(NewItem, ReceivedContents?)] = []
      for each in new {
        var received: ReceivedContents?
        if let version = each.version, version.size > 0, !each.comesAbsent {
          guard let bytes = contents(version) else { break }
          received = .bytes(bytes)
        }
        made.append((each, received))
      }
      guard !made.isEmpty else { return 0 }
      do {
        try makeChange(.replica, by: .replica(account)) { change in
          for (new, received) in made { try make(new, received, account, change) }
          for folder in Set(made.map(\.0.folder.ino)) { try touch(inode(folder), change.time, change) }
        }
      } catch let error as SheafError where !Self.isLasting(error.kind) {
        log.info("steps of a replica were not possible together", metadata: ["error": "\(error)"])
        return 0
      }
      return made.count
    }
  }

  /// An item that is made by a step, and whose folder is here.
  private struct NewItem {
    let number: Int64
    let item: LocalItem
    let version: ItemVersion?
    let name: [UInt8]
    let folder: Inode
    let origin: Origin
    let comesAbsent: Bool
  }

  /// What a step makes, if it makes a document or a symbolic link anew.
  private func newItem(_ number: Int64, _ step: ReplicaStep, _ account: Int64) throws -> NewItem? {
    guard case .make(let item, let version) = step, item.kind != .folder, let place = item.places.min(),
      (0...WireLimits.documentBytes).contains(version?.size ?? 0), try replicaInode(item.item, of: account) == nil,
      let folder = try ReplicaTree(self, connected(account)).inode(place.parent), folder.isFolder,
      folder.row.nlink > 0, try isNear(folder.ino, asksTime: false)
    else { return nil }
    return NewItem(
      number: number, item: item, version: version, name: place.name, folder: folder,
      origin: try origin(of: item.item, known(item.item, account), version, account),
      comesAbsent: try version.map { try comesAbsent($0, nil, in: folder.ino) } ?? false)
  }

  private func make(_ new: NewItem, _ contents: ReceivedContents?, _ account: Int64, _ change: Change) throws {
    let id = new.item.item
    let name = try freeName(new.name, in: new.folder.ino, isFolder: false)
    try insert(new.item, in: new.folder, called: name, new.version, contents, new.origin, account, change)
    try change.rows.removeReplicaStep(of: account, new.number)
    try wakeHistory(of: id, account, change)
    let base: ItemState? = try change.rows.replicaItem(of: account, id.bytes).base.map { try replicaTexts.decode($0) }
    if let base, name == new.name, new.item == LocalItem(base), Self.isKeptWhole(new.item, new.version) {
      // It is as the hub has it, so the next plan need not compare it.
      try change.rows.removeReplicaChange(of: account, id.bytes)
    } else {
      try change.rows.noteReplicaChange(of: account, id.bytes)
    }
  }

  /// Whether this machine keeps all that the hub says of a new item.
  private static func isKeptWhole(_ item: LocalItem, _ version: ItemVersion?) -> Bool {
    let mode = item.kind == .symlink ? 0o777 : item.mode & 0o1777
    return item.mode == mode && item.places.count == 1 && item.attributes.keys.allSatisfy { travels(Array($0.utf8)) }
      && version.map { (1...highestVersion).contains($0.number) } ?? true
  }

  /// Who saved a version that the hub told of: the owner, if it names nobody.
  func author(of version: ItemVersion?, _ account: Int64) throws -> Int64 { try person(version?.author, account) }

  /// Where an item comes from that was made on another machine.
  struct Origin {
    /// Who saved the version that it is made with.
    let author: Int64
    let creator: Int64
    /// By the clock of the machine that made it; nil where nothing says so.
    let created: Timestamp?
    /// When it got its names; nil where it has had them since.
    let placed: Timestamp?
  }

  /// Where an item comes from, as far as its hub says so. The time of its making is in its id, but for that of what the
  /// hub put beside a document: that was there when it got its name, and its first version may not be known.
  ///
  /// - Parameter state: The item as the hub told of it; nil where it did not.
  func origin(of id: WireID, _ state: ItemState?, _ version: ItemVersion?, _ account: Int64) throws -> Origin {
    return Origin(
      author: try author(of: version, account), creator: try person(state?.madeBy, account),
      created: (id.time ?? [version?.time, state?.placed].compactMap(\.self).min()).map { Timestamp(nanoseconds: $0) },
      placed: state?.placed.map { Timestamp(nanoseconds: $0) })
  }

  /// Who gave an item its names last, and when; nil where its hub does not say.
  private func deed(_ id: WireID, _ account: Int64) throws -> Caller.Deed? {
    guard let state = try known(id, account), !state.isDeleted, let time = state.placed else { return nil }
    return .init(person: try person(state.placedBy, account), time: Timestamp(nanoseconds: time))
  }

  /// Who made an item, and when, that has had all of its names since; nil where its hub says otherwise, or does not say.
  private func making(_ id: WireID, _ account: Int64) throws -> Caller.Deed? {
    guard let state = try known(id, account), !state.isDeleted, state.placed == nil,
      let time = id.time
    else { return nil }
    return .init(person: try person(state.madeBy, account), time: Timestamp(nanoseconds: time))
  }

  private func deed(_ deletion: Deletion, _ account: Int64) throws -> Caller.Deed {
    .init(person: try person(deletion.person, account), time: Timestamp(nanoseconds: deletion.time))
  }

  /// An item as its hub told of it last.
  private func known(_ id: WireID, _ account: Int64) throws -> ItemState? {
    let row = try read { try $0.replicaItem(of: account, id.bytes) }
    return try (row.news ?? row.base).map { try replicaTexts.decode($0) }
  }

  /// The account of somebody whom the hub of an account names. It is made where it is missing.
  ///
  /// - Parameter handle: Nil for the owner of what the account shows.
  func person(_ handle: String?, _ account: Int64) throws -> Int64 {
    guard let handle, let hub = try connected(account).hub else { return person(of: account) }
    return try self.account(of: handle, at: hub)
  }

  /// No document has so many versions that another one cannot follow.
  static let highestVersion: Int64 = 1 << 51

  /// The stored form of contents that came from the hub; nothing where there are none.
  func storedContents(_ contents: ReceivedContents?, _ account: Int64, _ change: Change) throws -> StoredContent {
    switch contents {
    case nil: return .empty
    case .bytes(let bytes):
      var working = WorkingCopy(.empty)
      try bytes.withUnsafeBytes { try working.write($0, at: 0, from: change) }
      var content = try working.stored(in: change)
      return try content.stored(in: change)
    case .file(let handle): return try storedContents(ofFile: handle, account, change)
    }
  }

  private func storedContents(ofFile handle: UInt64, _ account: Int64, _ change: Change) throws -> StoredContent {
    guard let inode = files[handle]?.inode, inode.isNameless else { return .empty }
    let draft = inode.draft(of: account)
    try prepareNaming(inode, draft, change.time)
    guard let working = draft.working else { return .empty }
    var content = try working.stored(in: change)
    let stored = try content.stored(in: change)
    change.whenRecorded { [self, content] in
      sessions.addUnsaved(-draft.unsavedBytes)
      draft.working?.adopt(content)
      draft.working?.markUnchanged()
    }
    return stored
  }

  // MARK: - Setting

  private func set(
    _ item: LocalItem, since before: LocalItem, _ version: ItemVersion?, _ contents: ReceivedContents?, _ account: Int64
  ) throws {
    guard
      let (now, ino, setID) = try locked({ () -> (LocalItem, Int64, UInt32)? in
        var tree = try ReplicaTree(self, connected(account))
        guard let now = try tree.local(item.item), let inode = try tree.inode(item.item) else { return nil }
        return (now, inode.ino, inode.row.mode & 0o6000)
      }), now.kind == item.kind
    else { return }
    if item.unsent != before.unsent {
      try locked { try makeChange(.replica) { try setSent(item, since: before, account, $0) } }
    }
    if item.version != before.version, now.version == before.version, let version {
      try receive(version, of: item, contents, account)
    }
    let caller = Caller.replica(account)
    for (name, value) in item.attributes.sorted(by: { $0.key < $1.key })
    where Self.travels(Array(name.utf8)) && before.attributes[name] != value
      && now.attributes[name] == before.attributes[name]
    {
      try setXattr(ino, Array(name.utf8), [UInt8](value), .set, caller)
    }
    for name in before.attributes.keys.sorted()
    where item.attributes[name] == nil && now.attributes[name] == before.attributes[name] {
      try removeXattr(ino, Array(name.utf8), caller)
    }
    var change = AttributeChange()
    if item.mode != before.mode, now.mode == before.mode, item.kind != .symlink {
      // Set-id bits are each machine's own.
      change.mode = UInt32(truncatingIfNeeded: item.mode) & 0o1777 | setID
    }
    // New contents have brought their time with them.
    if item.kind != .folder, item.version == before.version, item.mtime != before.mtime, now.mtime == before.mtime {
      change.mtime = .at(Timestamp(nanoseconds: item.mtime))
    }
    if change.mode != nil || change.mtime != nil { _ = try setAttributes(ino, change, handle: nil, caller) }
    if let target = item.target, target != before.target, now.target == before.target {
      try setTarget([UInt8](target), of: ino, account)
    }
  }

  /// Notes which versions the hub has by now, or has no more.
  func setSent(_ item: LocalItem, since before: LocalItem, _ account: Int64, _ change: Change) throws {
    let (sent, unsent) = (Set(before.unsent.map(\.id)), Set(item.unsent.map(\.id)))
    guard sent != unsent, let inode = try replicaInode(item.item, of: account), let row = try self.item(of: inode)
    else { return }
    let numbers = try replicaVersions(of: row, connected(account)).numbers
    for id in sent.symmetricDifference(unsent) {
      guard let number = numbers[id] else { continue }
      try change.rows.set(
        ReplicaVersionRow(
          number: number, uuid: id.bytes, isSent: !unsent.contains(id),
          acknowledged: unsent.contains(id) ? nil : clock()), of: row.id)
    }
  }

  /// Gives a document the contents of a version that the hub told of, if nothing was saved here since.
  private func receive(
    _ version: ItemVersion, of wanted: LocalItem, _ contents: ReceivedContents?, _ account: Int64
  ) throws {
    try locked {
      let replica = try connected(account)
      guard let inode = try replicaInode(wanted.item, of: account), inode.isRegular else { return }
      // What a program is about to save comes after this, and is based on what it saw.
      guard !inode.drafts.contains(where: { $0.session != nil || $0.isChanged }) else { return }
      guard var item = try item(of: inode) else { return }
      let versions = try replicaVersions(of: item, replica)
      guard versions.unsent.isEmpty else { return }
      let number = versions.numbers[version.id] ?? max(item.lastVersion + 1, min(version.number, Self.highestVersion))
      let (author, time) = (try author(of: version, account), clock())
      try makeChange(.replica, by: .replica(account), at: time) { change in
        let row: VersionRow
        if let known = try change.rows.version(item.id, number) {
          row = known
        } else {
          let isAbsent = try contents == nil && comesAbsent(version, inode, in: nil)
          row = VersionRow(
            item: item.id, number: number, time: Timestamp(nanoseconds: version.time), author: author,
            size: version.size, cause: version.cause.local, base: version.base.flatMap { versions.numbers[$0] },
            content: isAbsent
              ? try absentContent(of: version, item.id, change) : try storedContents(contents, account, change),
            isOpen: false)
          guard row.content.length == version.size else { throw SheafError(.notFound, subject: "contents at the hub") }
          try change.rows.insert(row)
        }
        try change.rows.set(ReplicaVersionRow(number: number, uuid: version.id.bytes, isSent: true), of: item.id)
        item.conflict = nil
        try show(row, of: item, inode, mtime: Timestamp(nanoseconds: wanted.mtime), ctime: time, change)
        if number != version.number {
          try noteHistory(wanted.item, told: 0, after: version.number - 1, isWhole: true, account, change)
        }
      }
    }
  }

  /// Whether a symbolic link can lead there.
  static func isTarget(_ target: Data) -> Bool { (1..<4096).contains(target.count) && !target.contains(0) }

  private func setTarget(_ target: [UInt8], of ino: Int64, _ account: Int64) throws {
    guard Self.isTarget(Data(target)) else { throw SheafError(.invalid) }
    try locked {
      let inode = try inode(ino)
      let time = clock()
      try makeChange(.replica, by: .replica(account), at: time) { change in
        var row = inode.row
        (row.target, row.size, row.ctime) = (target, Int64(target.count), time)
        try change.rows.update(row)
        let final = row
        change.whenRecorded { [self] in
          inode.row = final
          tell(.contents(ino), from: 0)
        }
      }
    }
  }

  // MARK: - Names

  private func place(_ id: WireID, at places: Set<Place>, _ account: Int64) throws {
    let (told, made) = try locked { (try deed(id, account), try making(id, account)) }
    guard
      let (ino, current, wanted) = try locked({ () -> (Int64, [(folder: Int64, name: [UInt8])], [NamePlace])? in
        let tree = try ReplicaTree(self, connected(account))
        guard let inode = try tree.inode(id) else { return nil }
        let wanted = try places.sorted().compactMap { place in
          try tree.inode(place.parent).flatMap { $0.isFolder ? NamePlace(folder: $0.ino, name: place.name) : nil }
        }
        return (inode.ino, try read { try $0.names(of: inode.ino) }, wanted)
      }), !wanted.isEmpty
    else { return }
    let here = Set(current.map { NamePlace(folder: $0.folder, name: $0.name) })
    var leaving = here.subtracting(wanted).sorted()
    for place in wanted where !here.contains(place) {
      let free = try makeWay(at: place, account)
      // It has a name like it already, which it got when it was made.
      if free != place, leaving.contains(where: { $0.isNumbered(of: place, before: free) }) { continue }
      // A name that differs from the hub's is this machine's.
      let isHubs = free == place
      if let former = leaving.popLast() {
        let caller = Caller.replica(account, isHubs ? told : nil)
        _ = try rename(former.folder, former.name, to: free.folder, free.name, .noReplace, caller)
      } else {
        _ = try link(ino, free.folder, free.name, Caller.replica(account, isHubs ? told ?? made : nil))
      }
    }
    if try locked({ try read { try $0.names(of: ino) } }).count <= leaving.count { return }
    for place in leaving { try unlink(place.folder, place.name, .replica(account, told)) }
  }

  /// A name in a folder of this library.
  private struct NamePlace: Hashable, Comparable {
    let folder: Int64
    let name: [UInt8]

    static func < (left: NamePlace, right: NamePlace) -> Bool {
      left.folder == right.folder
        ? left.name.lexicographicallyPrecedes(right.name) : left.folder < right.folder
    }

    /// Whether it is what another one became while its name was taken (`NAME (2)`).
    ///
    /// - Parameter free: What that would become now.
    func isNumbered(of other: NamePlace, before free: NamePlace) -> Bool {
      guard folder == other.folder else { return false }
      for isFolder in [false, true] {
        for number in 2...Self.highestNumber {
          let candidate = MarkedName.numbered(other.name, number, isFolder: isFolder)
          if candidate == name { return true }
          if candidate == free.name { break }
        }
      }
      return false
    }

    /// Of names that are taken; with more of them in a folder, an item gets one more.
    private static let highestNumber = 1_000
  }

  /// Has what is at a place get another name for now, if it is placed later; else tells one like it that is free.
  private func makeWay(at place: NamePlace, _ account: Int64) throws -> NamePlace {
    let occupant = try locked { () -> (free: [UInt8], makesWay: Bool)? in
      guard let entry = try entry(place.folder, place.name) else {
        return Self.isReserved(place.name)
          ? (try freeName(place.name, in: place.folder, isFolder: false), false) : nil
      }
      let free = try freeName(place.name, in: place.folder, isFolder: inode(entry.ino).isFolder)
      guard let item = try item(of: inode(entry.ino)) else { return (free, false) }
      let steps = try read { try $0.replicaSteps(of: account) }
      var tree = try ReplicaTree(self, connected(account))
      let folder = try tree.folderID(place.folder)
      let makesWay = try steps.dropFirst().contains {
        guard case .place(let id, let places) = try replicaTexts.decode($0.step) as ReplicaStep else { return false }
        return id == WireID(item.uuid) && !places.contains { $0.name == place.name && $0.parent == folder }
      }
      return (free, makesWay)
    }
    guard let occupant else { return place }
    let free = NamePlace(folder: place.folder, name: occupant.free)
    guard occupant.makesWay else { return free }
    _ = try rename(place.folder, place.name, to: free.folder, free.name, .noReplace, .replica(account))
    return place
  }

  // MARK: - Going

  /// - Parameter keepsUnsent: whether what was saved here and is not at the hub keeps the item.
  private func delete(
    _ id: WireID, told: Deletion? = nil, _ account: Int64, keepsUnsent: Bool = true
  ) throws {
    let names = try locked { () -> [(folder: Int64, name: [UInt8])] in
      var tree = try ReplicaTree(self, connected(account))
      guard id != .root, let inode = try tree.inode(id) else { return [] }
      // What is ignored would be gone for good, and nobody elsewhere knew of it: its folder stays, too. The rule may be
      // gone already, with that folder.
      let isPassing = try FileRole(inode.row.name).isQuiet { try entry(inode.row.parent, $0) != nil }
      if try self.item(of: inode).map({ $0.isQuiet && $0.lastVersion == 0 }) ?? true,
        try !isPassing || isIgnored(inode.row.parent, inode.row.name, isFolder: inode.isFolder)
      {
        throw SheafError(.notEmpty)
      }
      // The hub never hears of what is temporary; it goes to the trash.
      let keepsUnsent = try keepsUnsent && tree.local(id)?.readiness != .never
      if keepsUnsent, inode.drafts.contains(where: { $0.session != nil || $0.isChanged }) { return [] }
      if keepsUnsent, let item = try item(of: inode), item.kind == .document,
        try !replicaVersions(of: item, connected(account)).unsent.isEmpty
      {
        return []
      }
      return try read { try $0.names(of: inode.ino) }
    }
    let caller = Caller.replica(account, try locked { try told.map { try deed($0, account) } })
    let isFolder = try locked { try ReplicaTree(self, connected(account)).inode(id)?.isFolder ?? false }
    for (folder, name) in names {
      if isFolder { try rmdir(folder, name, caller) } else { try unlink(folder, name, caller) }
    }
  }

  private func destroy(_ id: WireID, _ account: Int64) throws {
    try keepUnsentTrash(of: id, account)
    try delete(id, account)
    guard
      let handle = try locked({ () -> AccountHandle? in
        try replicaInode(id, of: account)?.row.nlink == 0 ? key(account) : nil
      })
    else { return }
    try purge(path(ofItem: id.description, for: handle, isExact: true), version: nil)
  }

  /// Keeps documents that were deleted from a folder, or from one that was deleted in it, and that the hub never had:
  /// nobody who destroys the folder, or gives it away, knows of them. From now on they were deleted from the folder around.
  private func keepUnsentTrash(of id: WireID, _ account: Int64) throws {
    let folders = try locked { try replicaInode(id, of: account).flatMap { $0.isFolder ? [$0.ino] : nil } ?? [] }
    var (waiting, seen) = (folders, Set(folders))
    while let folder = waiting.popLast() {
      try locked {
        guard let top = try replicaInode(id, of: account) else { return }
        let place = top.row.nlink > 0 ? top.row.parent : try read { try $0.deleted(top.ino) }?.parent ?? 0
        // Where others see the trash, they may not see this.
        let isOwn =
          try (try? self.folder(place)).map { try $0.row.nlink > 0 && share(ofFolder: $0.ino) == nil } ?? false
        let target = isOwn ? place : try documents(ofConnected: account)
        for row in try read({ try $0.deleted(from: folder) }) {
          let inode = try inode(row.ino)
          if inode.isFolder {
            // Once it is deleted nothing tells whether the hub had it, and it holds nothing by itself.
            if seen.insert(row.ino).inserted { waiting.append(row.ino) }
            continue
          }
          guard try isUnknownToHub(inode, account) else { continue }
          try makeChange(.replica) { change in
            var moved = inode.row
            moved.parent = target
            try change.rows.removeDeleted(row.ino)
            try change.rows.insert(
              DeletedRow(ino: row.ino, parent: target, name: row.name, time: row.time, actor: row.actor))
            try change.rows.update(moved)
            change.whenRecorded { inode.row = moved }
          }
        }
      }
    }
  }

  /// Whether a hub never had a deleted item, which is no ignored or temporary one.
  private func isUnknownToHub(_ inode: Inode, _ account: Int64) throws -> Bool {
    guard let item = try item(of: inode), !item.isQuiet else { return false }
    return try read { rows in
      try rows.replicaItem(of: account, item.uuid.bytes).base == nil
        && !rows.replicaVersions(of: item.id).contains(where: \.isSent)
    }
  }

  /// Destroys the versions of a document that the hub had, unless one is the current one.
  private func destroySent(_ id: WireID, _ account: Int64) throws {
    let sent = try locked { () -> (numbers: [Int64], handle: AccountHandle)? in
      guard let inode = try replicaInode(id, of: account), let item = try item(of: inode) else { return nil }
      let here = try replicaVersions(of: item, connected(account)).ids
      let numbers = try notedVersions(of: item).filter { $0.key != item.version && here[$0.key] == $0.value }.keys
      return (numbers.sorted(), try key(account))
    }
    guard let sent else { return }
    for number in sent.numbers {
      do {
        try purge(path(ofItem: id.description, for: sent.handle, isExact: true), version: number)
      } catch let error as SheafError where error.kind == .busy || error.kind == .notFound {
        continue
      }
    }
  }

  // MARK: - Ids

  private func identify(_ id: WireID, as new: WireID, _ versions: [WireID: WireID], _ account: Int64) throws {
    try locked {
      let replica = try connected(account)
      guard let inode = try replicaInode(id, of: account), let item = try item(of: inode) else { return }
      let known = try replicaVersions(of: item, replica).numbers
      let facts = try read { try $0.replicaVersions(of: item.id) }
      let holder = id == new ? nil : try read { try $0.item(uuid: UUID(bytes: new.bytes)) }
      // A hub gives away no id of another account's item, nor of one that is here.
      if let holder, try replicaInode(new, of: account)?.row.nlink != 0 {
        throw SheafError(.exists, subject: "id:\(holder.uuid.text)")
      }
      try makeChange(.replica) { change in
        // The item that had that id is one of the deleted here.
        if let holder { try change.rows.setUUID(.timeOrdered(change.time), ofItem: holder.id) }
        if id != new { try change.rows.setUUID(UUID(bytes: new.bytes), ofItem: item.id) }
        for (former, number) in known {
          let fact = facts.first { $0.number == number }
          // The id of a version that was not noted follows from that of the document, and stays what it was.
          guard let other = versions[former] ?? (id != new && fact == nil ? former : nil) else { continue }
          try change.rows.set(
            ReplicaVersionRow(
              number: number, uuid: other.bytes, isSent: fact?.isSent ?? false), of: item.id)
        }
        // By the ids that the versions have now.
        if id != new || !versions.isEmpty { try renewRequests(of: item, replica, change) }
        change.whenRecorded { [self] in
          inode.item = nil
          tell(.appearance(inode.ino), from: 0)
        }
      }
    }
  }

  /// Has the current version of a document sent, with all labels.
  private func renew(_ id: WireID, _ account: Int64) throws {
    try locked {
      let replica = try connected(account)
      guard let inode = try replicaInode(id, of: account), let item = try item(of: inode),
        let version = try replicaVersions(of: item, replica).ids[item.version]
      else { return }
      try makeChange(.replica) { change in
        try change.rows.set(
          ReplicaVersionRow(number: item.version, uuid: version.bytes, isSent: false), of: item.id)
        try requestLabels(of: item, replica, change)
        change.whenRecorded { [self] in tell(.appearance(inode.ino), from: 0) }
      }
    }
  }

  private func absorb(_ id: WireID, into other: WireID, _ versions: [WireID], _ account: Int64) throws {
    try locked {
      let replica = try connected(account)
      guard let source = try replicaInode(id, of: account), let item = try item(of: source),
        let target = try replicaInode(other, of: account), item.kind == .document
      else { return }
      try endSession(source)
      let numbers = try replicaVersions(of: item, replica).numbers
      let rows = try versions.compactMap { version in
        try numbers[version].flatMap { number in try read { try $0.version(item.id, number) } }.map { (version, $0) }
      }
      // What is at the hub alone is no news to it.
      for (version, row) in rows where row.content.absentLength == 0 {
        try add(row, version, isSent: false, to: target, account)
      }
    }
    try delete(id, account, keepsUnsent: false)
    // At the hub its id is the other one's: brought back from the trash, it is an item of its own.
    try locked {
      guard let inode = try replicaInode(id, of: account), inode.row.nlink == 0, let item = inode.row.item
      else { return }
      try makeChange(.replica) { change in
        try change.rows.setUUID(.timeOrdered(change.time), ofItem: item)
        change.whenRecorded { inode.item = nil }
      }
    }
  }

  /// Makes a version of one document the newest one of another.
  private func add(_ row: VersionRow, _ id: WireID, isSent: Bool, to inode: Inode, _ account: Int64) throws {
    let replica = try connected(account)
    try endSession(inode)
    guard let item = try item(of: inode), try replicaVersions(of: item, replica).numbers[id] == nil else { return }
    let time = clock()
    let version = VersionRow(
      item: item.id, number: item.lastVersion + 1, time: row.time, author: row.author, size: row.size,
      cause: row.cause, base: item.version == 0 ? nil : item.version, content: row.content, isOpen: false)
    try makeChange(.replica, by: .replica(account), at: time) { change in
      try change.rows.insert(version)
      try change.rows.moveAbsentContents(of: version.content, to: item.id)
      try change.rows.set(ReplicaVersionRow(number: version.number, uuid: id.bytes, isSent: isSent), of: item.id)
      try show(version, of: item, inode, mtime: inode.row.mtime, ctime: time, change)
    }
  }

  private func moveVersion(_ version: WireID, from id: WireID, to other: LocalItem, _ account: Int64) throws {
    let row = try locked { () -> VersionRow? in
      let replica = try connected(account)
      guard let inode = try replicaInode(id, of: account), let item = try item(of: inode),
        let number = try replicaVersions(of: item, replica).numbers[version]
      else { return nil }
      shareChunks(of: inode)
      return try read { try $0.version(item.id, number) }
    }
    guard let row else { return }
    if try locked({ try replicaInode(other.item, of: account) }) == nil, let place = other.places.min() {
      var empty = other
      empty.version = nil
      try makeAnew(empty, at: place, nil, nil, account)
    }
    try locked {
      guard let target = try replicaInode(other.item, of: account) else { return }
      try add(row, version, isSent: true, to: target, account)
    }
    try takeVersion(version, row.number, from: id, account)
  }

  /// Takes a version, which another document has by now, from the one that had it. That has the contents again of the
  /// newest version that the hub knows.
  private func takeVersion(_ version: WireID, _ number: Int64, from id: WireID, _ account: Int64) throws {
    try locked {
      guard let inode = try replicaInode(id, of: account), var item = try item(of: inode) else { return }
      let facts = try read { try $0.versionFacts(item.id) }
      let left = try facts.last { $0.isSent && $0.number != number }.flatMap { fact in
        try read { try $0.version(item.id, fact.number) }
      }
      let isCurrent = item.version == number && !inode.drafts.contains { $0.session != nil || $0.isChanged }
      let time = clock()
      try makeChange(.replica, by: .replica(account), at: time) { change in
        var row = inode.row
        if isCurrent {
          item.version = left?.number ?? 0
          (row.content, row.size, row.ctime) = (left?.content ?? .empty, left?.size ?? 0, time)
        }
        item.conflict = nil
        try change.rows.update(item)
        try change.rows.update(row)
        if item.version != number {
          try change.rows.deleteVersion(item.id, number)
          // What its author saves next is based on it.
          try change.rows.set(ReplicaVersionRow(number: number, uuid: version.bytes, isSent: true), of: item.id)
        }
        let (final, finalItem) = (row, item)
        change.whenRecorded { [self] in
          inode.row = final
          inode.item = finalItem
          if isCurrent {
            for draft in inode.drafts where draft.working != nil {
              draft.working = WorkingCopy(final.content ?? .empty)
            }
            tell(.saved(inode.ino), from: 0)
          }
        }
      }
    }
  }
}

extension SheafWire.ItemKind {
  var local: SheafStore.ItemKind {
    switch self {
    case .document: .document
    case .folder: .folder
    case .symlink: .symbolicLink
    }
  }
}

extension LocalItem {
  /// Whether it is as it was, but that the hub has versions which it had not.
  func isAcknowledged(_ before: LocalItem) -> Bool {
    guard unsent.count < before.unsent.count else { return false }
    var same = before
    same.unsent = unsent
    return self == same
  }
}

extension ReplicaStep {
  /// The items that it changes.
  var items: [WireID] {
    switch self {
    case .make(let item, _), .set(let item, _, _): [item.item]
    case .place(let id, _), .delete(let id, _), .destroy(let id), .destroySent(let id), .renew(let id): [id]
    case .identify(let id, let other, _), .absorb(let id, let other, _): [id, other]
    case .moveVersion(_, let id, let other): [id, other.item]
    }
  }
}
