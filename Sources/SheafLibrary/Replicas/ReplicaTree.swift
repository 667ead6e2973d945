import Foundation
import SheafModel
import SheafReplica
import SheafStore
import SheafWire

/// What a plan reads of a connected account's replica: its items as they are on this machine, and what the replica
/// remembers of the hub. It is used with the lock held, and not longer.
struct ReplicaTree: ReplicaReader {
  private let library: Library
  private let replica: ReplicaRow
  private let documents: Int64
  private let now: Timestamp
  /// Items that changed since the hub refused them, so that what it refused counts no more.
  private let changed: Set<WireID>
  private var folders: [Int64: WireID] = [:]
  private var remembered: [WireID: Remembered] = [:]

  /// What a row of `replica_items` says.
  private struct Remembered {
    var base: ItemState?
    var news: ItemState?
    var mark: ReplicaMark?
    var alias: WireID?
  }

  init(_ library: Library, _ replica: ReplicaRow, changed: [WireID] = []) throws {
    self.library = library
    self.replica = replica
    self.changed = Set(changed)
    documents = try library.documents(ofConnected: replica.account)
    now = library.clock()
  }

  // MARK: - What the replica remembers

  private mutating func row(_ id: WireID) throws -> Remembered {
    if let known = remembered[id] { return known }
    let row = try library.read { try $0.replicaItem(of: replica.account, id.bytes) }
    var read = Remembered(
      base: try row.base.map { try library.replicaTexts.decode($0) },
      news: try row.news.map { try library.replicaTexts.decode($0) },
      mark: try row.mark.map { try library.replicaTexts.decode($0) }, alias: row.alias.flatMap { WireID(bytes: $0) })
    if case .refused = read.mark, changed.contains(id) { read.mark = nil }
    remembered[id] = read
    return read
  }

  mutating func base(_ id: WireID) throws -> ItemState? { try row(id).base }
  mutating func news(_ id: WireID) throws -> ItemState? { try row(id).news }
  mutating func mark(_ id: WireID) throws -> ReplicaMark? { try row(id).mark }
  mutating func alias(_ id: WireID) throws -> WireID? { try row(id).alias }

  func baseOccupant(of place: Place) throws -> WireID? {
    try library.read { try $0.replicaOccupant(of: replica.account, place.parent.bytes, place.name) }
      .flatMap { WireID(bytes: $0) }
  }

  func baseChildren(of folder: WireID) throws -> [WireID] {
    try library.read { try $0.replicaChildren(of: replica.account, folder.bytes) }.compactMap { WireID(bytes: $0) }
  }

  func newID() -> WireID { WireID(UUID.timeOrdered(now)) }

  // MARK: - What is here

  /// The inode of an item of the account that has a name.
  func inode(_ id: WireID) throws -> Inode? {
    if id == .root { return try library.inode(documents) }
    // `Documents` is an item of the library, too, and has another id there.
    return try library.replicaInode(id, of: replica.account).flatMap {
      $0.row.nlink > 0 && $0.ino != documents ? $0 : nil
    }
  }

  /// The id by which the hub knows a folder of this library.
  mutating func folderID(_ ino: Int64) throws -> WireID? {
    if ino == documents { return .root }
    if let known = folders[ino] { return known }
    guard let item = try library.item(of: library.inode(ino)) else { return nil }
    let id = WireID(item.uuid)
    folders[ino] = id
    return id
  }

  mutating func local(_ id: WireID) throws -> LocalItem? {
    guard id != .root, let inode = try inode(id), let item = try library.item(of: inode) else { return nil }
    var places: Set<Place> = []
    for (folder, name) in try library.read({ try $0.names(of: inode.ino) }) {
      if let parent = try folderID(folder) { places.insert(Place(parent: parent, name: name)) }
    }
    guard !places.isEmpty else { return nil }
    let versions = item.kind == .document ? try library.replicaVersions(of: item, replica) : .init()
    let base = try base(id)
    var readiness = try library.readiness(of: inode, item, isKnown: base != nil, at: now)
    if readiness == .ready, versions.unsent.isEmpty, let base, base.version?.id != versions.current,
      inode.drafts.contains(where: { $0.session != nil || $0.isChanged })
    {
      // The hub's version is not shown while a program writes to the document.
      readiness = .waiting
    }
    let lacking = try library.lackingVersions(of: item, versions)
    if readiness == .ready, let current = versions.current, lacking.contains(current),
      base?.version.map({ versions.numbers[$0.id] != nil }) ?? true
    {
      // The hub lost it. A machine that has its contents sends it.
      readiness = .waiting
    }
    if readiness == .waiting, base == nil, inode.writerCount > 0, let last = versions.unsent.last,
      now.nanoseconds &- last.time >= Library.replicaPause
    {
      // A program that has it open for long keeps nobody from what was saved in it.
      readiness = .ready
    }
    var local = LocalItem(
      item: id, kind: item.kind.wire, places: places,
      mode: item.kind == .symbolicLink ? 0o777 : Int(inode.row.mode & 0o1777),
      mtime: inode.isFolder ? 0 : inode.row.mtime.nanoseconds, target: inode.row.target.map { Data($0) },
      attributes: try library.replicaAttributes(of: inode), version: versions.current,
      unsent: versions.unsent(without: lacking),
      readiness: readiness)
    if base == nil, local.unsent.count > 1 {
      local.unsentBytes = try library.read { try $0.versionBytes(of: item.id) }
    }
    if base == nil, versions.unsent.isEmpty, item.version > 0 {
      local.isLacking =
        try library.read { try $0.version(item.id, item.version)?.content.absentLength ?? 0 } > 0
    }
    return local
  }

  func entry(_ id: WireID) throws -> ShareEntry? {
    // Whoever takes part in a share has nothing of before in it.
    guard replica.reader == nil, !library.shares.isEmpty, let inode = try inode(id),
      let share = try library.share(of: inode), share.row.isActive,
      let item = try library.read({ try $0.item(share.row.item) })
    else { return nil }
    return ShareEntry(
      item: item.id == library.inodes[documents]?.row.item ? .root : WireID(item.uuid),
      time: try library.entryTime(of: inode, in: share).nanoseconds)
  }

  func isShared(_ id: WireID) throws -> Bool {
    guard replica.reader == nil, !library.shares.isEmpty else { return false }
    let inode = id == .root ? library.inodes[documents] : try library.replicaInode(id, of: replica.account)
    return inode?.row.item.map { library.shares.active($0) != nil } ?? false
  }

  func localOccupant(of place: Place) throws -> WireID? {
    guard let folder = try inode(place.parent), let entry = try library.entry(folder.ino, place.name) else {
      return nil
    }
    return try library.item(of: library.inode(entry.ino)).map { WireID($0.uuid) }
  }

  func localChildren(of folder: WireID) throws -> [WireID] {
    guard let inode = try inode(folder) else { return [] }
    var children: Set<WireID> = []
    for row in try library.read({ try $0.listing(inode.ino, after: 0, limit: .max) }) {
      if let item = try library.item(of: library.inode(row.inode.ino)) { children.insert(WireID(item.uuid)) }
    }
    return children.sorted()
  }

  func isGone(_ id: WireID) throws -> Bool {
    guard let inode = try library.replicaInode(id, of: replica.account),
      let deleted = try library.read({ try $0.deleted(inode.ino) })
    else { return true }
    // A program that saves may be about to make it again. Where the clock was put back, nobody can tell since when.
    let since = now.nanoseconds.subtractingReportingOverflow(deleted.time.nanoseconds)
    return since.overflow || since.partialValue < 0 || since.partialValue >= Library.replicaPause
  }
}

/// The versions of a document, as a plan sees them.
struct ReplicaVersions {
  /// The current one of those that ended.
  var current: WireID?
  /// Those that ended and that the hub has not acknowledged, the oldest first.
  var unsent: [LocalVersion] = []
  /// Numbers by id.
  var numbers: [WireID: Int64] = [:]
  var ids: [Int64: WireID] = [:]

  /// Those that the hub has not acknowledged, but for some. What is based on one of these is based on what it was based on.
  func unsent(without left: Set<WireID>) -> [LocalVersion] {
    if left.isEmpty { return unsent }
    // The oldest are first, so what a version is based on was replaced before.
    var bases: [WireID: WireID?] = [:]
    return unsent.compactMap { version in
      var version = version
      if let base = version.base, let other = bases[base] { version.base = other }
      guard left.contains(version.id) else { return version }
      bases[version.id] = .some(version.base)
      return nil
    }
  }
}

extension Library {
  /// Nanoseconds for which a new item, or the absence of one, is to last before the hub hears of it: an editor's dance
  /// is over then.
  static let replicaPause: Int64 = 1_000_000_000

  /// The inode of an account's `Documents`.
  ///
  /// - Throws: `notFound` where the account was removed.
  func documents(ofConnected account: Int64) throws -> Int64 { try self.account(key(account)).documents }

  /// The inode of an item of an account, which may be among the deleted.
  func replicaInode(_ id: WireID, of account: Int64) throws -> Inode? {
    guard let item = try read({ try $0.item(uuid: UUID(bytes: id.bytes)) }), item.owner == account,
      let row = try read({ try $0.inode(item: item.id) })
    else { return nil }
    return try inode(row.ino)
  }

  /// The id that a version of a document has, or gets when the hub hears of it.
  static func versionID(of facts: StoreTransaction.VersionFacts, of item: ItemRow, _ replica: ReplicaRow) -> WireID {
    facts.uuid.flatMap { WireID(bytes: $0) } ?? versionID(replica.seed, item.uuid, facts.number, facts.time)
  }

  /// The versions of a document with the ids that they have, or get when the hub hears of them.
  ///
  /// - Parameter withSent: whether those that the hub has acknowledged are among ``ReplicaVersions/unsent``, too.
  func replicaVersions(
    of item: ItemRow, _ replica: ReplicaRow, withSent: Bool = false
  ) throws -> ReplicaVersions {
    var versions = ReplicaVersions()
    let facts = try read { try $0.versionFacts(item.id) }
    for fact in facts {
      let id = Self.versionID(of: fact, of: item, replica)
      versions.ids[fact.number] = id
      versions.numbers[id] = fact.number
    }
    var former: (number: Int64, id: WireID)?
    var noted: [Int64: WireID]?
    for fact in facts where !fact.isOpen {
      let id = versions.ids[fact.number]
      if withSent || !fact.isSent, let id {
        var base = fact.base.flatMap { versions.ids[$0] }
        if base == nil, let number = fact.base {
          // It went beside the document, or was thinned, and the hub knows it. Where it was thinned before the hub knew
          // it, the version before it is nearest to what its author saw, which may be one that the hub alone has.
          let known = try noted ?? notedVersions(of: item)
          noted = known
          let last = known.keys.filter { $0 < number && $0 > former?.number ?? 0 }.max()
          base = known[number] ?? last.flatMap { known[$0] } ?? former?.id
        }
        versions.unsent.append(
          LocalVersion(id: id, base: base, cause: fact.cause.wire, time: fact.time.nanoseconds))
      }
      former = id.map { (fact.number, $0) }
      // The hub may have gone back to one that is not the newest here.
      if fact.number <= item.version { versions.current = id }
    }
    return versions
  }

  /// The versions of a document that a hub which went back has lost, and that have bytes which this machine has not. A
  /// machine that has them sends them.
  fileprivate func lackingVersions(of item: ItemRow, _ versions: ReplicaVersions) throws -> Set<WireID> {
    try read { store in
      try Set(
        versions.unsent.map(\.id).filter { id in
          guard let number = versions.numbers[id] else { return false }
          return try (store.version(item.id, number)?.content.absentLength ?? 0) > 0
        })
    }
  }

  /// The ids of those versions of a document that the hub knows, by the numbers that they have or had here.
  func notedVersions(of item: ItemRow) throws -> [Int64: WireID] {
    let rows = try read { try $0.replicaVersions(of: item.id) }.filter(\.isSent)
    return Dictionary(uniqueKeysWithValues: rows.compactMap { row in WireID(bytes: row.uuid).map { (row.number, $0) } })
  }

  /// Whether a version of a document of a connected account was saved on another machine.
  func isReceived(_ version: VersionRow, of item: ItemRow) throws -> Bool {
    guard let replica = try read({ try $0.replica(item.owner) }),
      let row = try read({ try $0.replicaVersions(of: item.id) }).first(where: { $0.number == version.number })
    else { return false }
    return WireID(bytes: row.uuid) != Self.versionID(replica.seed, item.uuid, version.number, version.time)
  }

  /// The id of a version that this library made: the same one however often it is asked for, and no other library's.
  private static func versionID(_ seed: [UInt8], _ item: UUID, _ number: Int64, _ time: Timestamp) -> WireID {
    var bytes = seed + item.bytes
    for value in [number, time.nanoseconds] { withUnsafeBytes(of: value.bigEndian) { bytes += $0 } }
    var id = Array(bytes.withUnsafeBytes { SheafStore.ChunkHash(of: $0) }.bytes.prefix(16))
    // RFC 9562, version 8.
    id[6] = 0x80 | (id[6] & 0x0F)
    id[8] = 0x80 | (id[8] & 0x3F)
    return WireID(UUID(bytes: id))
  }

  /// The numbers of the versions of a document that were sent to the hub, and of which is not noted yet what it answered.
  /// Until then this library is to have them: what was saved after one of them is based on it.
  func versionsBeingSent(of item: ItemRow) throws -> Set<Int64> {
    guard let replica = try read({ try $0.replica(item.owner) }) else { return [] }
    let sends: [Send] = try read { try $0.replicaSends(of: item.owner, limit: .max) }.map {
      try replicaTexts.decode($0.send)
    }
    let steps: [ReplicaStep] = try read { try $0.replicaSteps(of: item.owner) }.map { try replicaTexts.decode($0.step) }
    let ids = sends.compactMap(\.version?.id) + steps.flatMap(\.versions)
    if ids.isEmpty { return [] }
    let numbers = try replicaVersions(of: item, replica).numbers
    return Set(ids.compactMap { numbers[$0] })
  }

  /// Whether an extended attribute is one that the hub may know, and tell.
  static func travels(_ name: [UInt8]) -> Bool {
    isUserAttribute(name) && name.count <= 255 && !name.contains(0) && !name.starts(with: "user.sheaf.".utf8)
  }

  /// The attributes of an inode that travel: those of programs, with names that JSON can hold.
  func replicaAttributes(of inode: Inode) throws -> [String: Data] {
    var attributes: [String: Data] = [:]
    for name in try xattrNames(of: inode, listsComputed: false, .library) where Self.travels(name) {
      guard let text = String(validating: name, as: UTF8.self) else { continue }
      attributes[text] = Data(try xattr(of: inode, name, .library))
    }
    return attributes
  }

  /// For how many nanoseconds an item that the hub knows may have a name that will not last: an editor that saves gives a
  /// document its own again, with what is new.
  private static func span(of role: FileRole, isQuiet: Bool) -> Int64 {
    switch role {
    case .document: 0
    case .backup where !isQuiet: Identity.standing
    case .backup, .scratch, .temporary: Identity.window
    }
  }

  /// Whether the hub may hear of an item.
  func readiness(of inode: Inode, _ item: ItemRow, isKnown: Bool, at time: Timestamp) throws -> LocalItem.Readiness {
    if item.isQuiet { return .never }
    let role = FileRole(inode.row.name)
    let isPassing = try role.isQuiet { try entry(inode.row.parent, $0) != nil }
    let age = time.nanoseconds.subtractingReportingOverflow(inode.row.ctime.nanoseconds)
    let isOlder = { span in age.overflow || age.partialValue < 0 || age.partialValue >= span }
    if isPassing, !isKnown { return .never }
    if inode.isFolder { return .ready }
    if isKnown { return isOlder(Self.span(of: role, isQuiet: isPassing)) ? .ready : .waiting }
    if inode.writerCount > 0 { return .waiting }
    return isOlder(Self.replicaPause) ? .ready : .waiting
  }
}

extension SheafStore.ItemKind {
  var wire: SheafWire.ItemKind {
    switch self {
    case .document: .document
    case .folder: .folder
    case .symbolicLink: .symlink
    }
  }
}

extension SheafModel.VersionCause {
  var wire: SheafWire.VersionCause { SheafWire.VersionCause(rawValue: rawValue) ?? .save }
}

extension SheafWire.VersionCause {
  var local: SheafModel.VersionCause { SheafModel.VersionCause(rawValue: rawValue) ?? .save }
}
