/// The facts that commands and the API tell, with the keys of docs/REFERENCE.md, "JSON".

/// An account of a library.
package struct Account: Hashable, Sendable, Codable {
  package let handle: AccountHandle
  /// Display name; the handle if none was given.
  package let name: String

  package init(handle: AccountHandle, name: String) {
    self.handle = handle
    self.name = name
  }
}

/// The settings of a library.
package struct LibrarySettings: Hashable, Sendable, Codable {
  /// Host that links point to; nil for `sheaf://` links.
  @OrNull package var publicAddress: String?
  /// The account that acts if none is named; nil in a library without accounts.
  @OrNull package var defaultAccount: AccountHandle?
  package let rapidSaves: RapidSavesSetting
  /// Seconds for which deleted items are kept, where no folder says otherwise.
  package let keepDeleted: Int64
  /// Seconds for which versions are kept, where no folder says otherwise.
  package let keepVersions: Int64
  /// Whether a search looks into contents, too.
  package let searchContents: Bool
  /// Bytes that contents of connected accounts may take on this machine; nil where nothing limits them.
  @OrNull package var cache: Int64?

  package init(
    publicAddress: String?, defaultAccount: AccountHandle?, rapidSaves: RapidSavesSetting, keepDeleted: Int64,
    keepVersions: Int64, searchContents: Bool, cache: Int64?
  ) {
    self.cache = cache
    self.searchContents = searchContents
    self.keepDeleted = keepDeleted
    self.keepVersions = keepVersions
    self.publicAddress = publicAddress
    self.defaultAccount = defaultAccount
    self.rapidSaves = rapidSaves
  }
}

/// Whether versions stay that follow each other faster than a person saves.
package enum RapidSavesSetting: String, Sendable, Codable, CaseIterable {
  /// Some of a series stay.
  case thin
  /// All stay for as long as others do.
  case keep
}

/// The reason why a version exists.
package enum VersionCause: String, Sendable, Codable, CaseIterable {
  case save, autosave, replace, restore, recover, merge

  /// Whether a program made it of what it had read.
  package var isSave: Bool { [.save, .autosave, .replace].contains(self) }
}

/// An immutable state of a document's contents; still renewed by autosaves while `open`.
package struct Version: Hashable, Sendable, Codable {
  package let number: Int64
  package let time: Timestamp
  package let author: AccountHandle
  /// Bytes.
  package let size: Int64
  package let cause: VersionCause
  @OrNull package var label: String?
  /// Number of the version that this one was made from; nil for the first.
  @OrNull package var base: Int64?
  /// Whether the editing session that makes it still goes on.
  package let open: Bool

  package init(
    number: Int64, time: Timestamp, author: AccountHandle, size: Int64, cause: VersionCause, label: String?,
    base: Int64?, open: Bool
  ) {
    self.number = number
    self.time = time
    self.author = author
    self.size = size
    self.cause = cause
    self.label = label
    self.base = base
    self.open = open
  }
}

/// A deleted item that can be recovered.
package struct DeletedItem: Hashable, Sendable, Codable {
  /// UUID in lower case.
  package let id: String
  /// Its former path, relative to the mount point: `Documents/…`.
  package let path: String
  package let time: Timestamp
  package let actor: AccountHandle

  package init(id: String, path: String, time: Timestamp, actor: AccountHandle) {
    self.id = id
    self.path = path
    self.time = time
    self.actor = actor
  }
}

/// A deleted item with what was deleted in it.
package struct DeletedTree: Hashable, Sendable, Codable {
  package let item: DeletedItem
  /// How many items lie in the folder, up to ``PurgeExtent/limit``; 0 if it is no folder.
  package let items: Int

  package init(item: DeletedItem, items: Int) {
    self.item = item
    self.items = items
  }
}

/// Deleted items, latest first, and how many more there are.
package struct DeletedTrees: Sendable, Codable {
  package let trees: [DeletedTree]
  package let more: Int

  package init(trees: [DeletedTree], more: Int) {
    self.trees = trees
    self.more = more
  }
}

/// The extent of a purge beside the item itself.
package struct PurgeExtent: Sendable, Codable {
  /// The highest count of items.
  package static let limit = 100_000

  /// How many items lie in the folder or were deleted from it.
  package let items: Int
  /// The people who lose access to something shared with them.
  package let people: [AccountHandle]

  package init(items: Int, people: [AccountHandle]) {
    self.items = items
    self.people = people
  }
}

/// A selection of an account's trash.
package struct TrashSelection: Hashable, Sendable, Codable {
  /// The longest span, in seconds, which no calculation with times goes beyond.
  package static let longestSpan: Int64 = 1_000_000_000_000

  /// Only items that were deleted more than so many seconds ago.
  package var olderThan: Int64?
  /// Only items of more than so many bytes, a folder with everything in it.
  package var largerThan: Int64?

  package init(olderThan: Int64? = nil, largerThan: Int64? = nil) {
    self.olderThan = olderThan
    self.largerThan = largerThan
  }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    olderThan = try values.decodeIfPresent(Int64.self, forKey: .olderThan)
    largerThan = try values.decodeIfPresent(Int64.self, forKey: .largerThan)
    if let olderThan, !(0...Self.longestSpan).contains(olderThan) {
      throw SheafError(.invalid, subject: "olderThan", reason: "is no span of up to \(Self.longestSpan) seconds")
    }
    if let largerThan, largerThan < 0 {
      throw SheafError(.invalid, subject: "largerThan", reason: "is less than 0 bytes")
    }
  }
}

/// How much of the trash is meant, or was destroyed.
package struct TrashExtent: Hashable, Sendable, Codable {
  /// Documents, folders and symbolic links, those in folders included.
  package private(set) var items: Int
  /// Bytes of the documents, as their sizes tell, without their history.
  package private(set) var bytes: Int64

  package init(items: Int, bytes: Int64) {
    self.items = items
    self.bytes = bytes
  }

  package mutating func add(_ other: TrashExtent) {
    items += other.items
    bytes = bytes.addingSaturated(other.bytes)
  }
}

/// For how many seconds a hub keeps versions and deleted items of a folder.
package struct HubRetention: Hashable, Sendable, Codable {
  package enum State: String, Hashable, Sendable, Codable {
    /// The hub knows what the folder and those around it say.
    case told
    /// It is to be told that.
    case waiting
    /// It has not said yet what it keeps.
    case unknown
    /// Its program is older: it keeps things by its own rules alone.
    case older
    /// It never gets the folder.
    case absent
  }

  package let state: State
  /// Whether the hub is reached now.
  package let isReached: Bool
  /// Nil for ever, and where the state is not `told`.
  package let keepDeleted: Int64?
  package let keepVersions: Int64?
  /// What would hold if the folder had no spans of its own; nil as above.
  package let aroundKeepDeleted: Int64?
  package let aroundKeepVersions: Int64?

  package init(
    state: State, isReached: Bool, keepDeleted: Int64? = nil, keepVersions: Int64? = nil,
    aroundKeepDeleted: Int64? = nil, aroundKeepVersions: Int64? = nil
  ) {
    self.state = state
    self.isReached = isReached
    self.keepDeleted = keepDeleted
    self.keepVersions = keepVersions
    self.aroundKeepDeleted = aroundKeepDeleted
    self.aroundKeepVersions = aroundKeepVersions
  }
}

/// For how many seconds a folder keeps versions and deleted items.
package struct Retention: Hashable, Sendable, Codable {
  package let path: String
  package let keepDeleted: Int64
  package let keepVersions: Int64
  /// The folder's own span; nil if that of a folder around it or of the library counts.
  @OrNull package var ownKeepDeleted: Int64?
  @OrNull package var ownKeepVersions: Int64?
  /// What would hold if the folder had no spans of its own; nil where an older process answers.
  package var aroundKeepDeleted: Int64?
  package var aroundKeepVersions: Int64?
  /// What holds at the hub; nil for what belongs to no connected account.
  package var hub: HubRetention?

  package init(
    path: String, keepDeleted: Int64, keepVersions: Int64, ownKeepDeleted: Int64?, ownKeepVersions: Int64?,
    aroundKeepDeleted: Int64, aroundKeepVersions: Int64, hub: HubRetention?
  ) {
    self.hub = hub
    self.aroundKeepDeleted = aroundKeepDeleted
    self.aroundKeepVersions = aroundKeepVersions
    self.path = path
    self.keepDeleted = keepDeleted
    self.keepVersions = keepVersions
    self.ownKeepDeleted = ownKeepDeleted
    self.ownKeepVersions = ownKeepVersions
  }
}

/// Bytes of the library's file.
package struct Usage: Hashable, Sendable {
  package private(set) var contents: Int64
  package private(set) var history: Int64
  package private(set) var trash: Int64

  package init(contents: Int64 = 0, history: Int64 = 0, trash: Int64 = 0) {
    self.contents = contents
    self.history = history
    self.trash = trash
  }

  package mutating func add(_ other: Usage) {
    contents += other.contents
    history += other.history
    trash += other.trash
  }
}

/// The space that a folder takes, with everything below it.
package struct FolderUsage: Hashable, Sendable, Codable {
  @OrNull package var id: String?
  package let path: String
  package let contents: Int64
  package let history: Int64
  package let trash: Int64

  package init(id: String?, path: String, _ usage: Usage) {
    self.id = id
    self.path = path
    (contents, history, trash) = (usage.contents, usage.history, usage.trash)
  }

  package var total: Int64 { contents + history + trash }
}

/// The space that an item takes, and for a folder the space of each folder in it, the largest first.
package struct UsageReport: Hashable, Sendable, Codable {
  @OrNull package var id: String?
  package let path: String
  /// Bytes that present contents need.
  package let contents: Int64
  /// Further bytes that earlier versions need.
  package let history: Int64
  /// Further bytes that deleted items need.
  package let trash: Int64
  package let folders: [FolderUsage]

  package init(id: String?, path: String, _ usage: Usage, folders: [FolderUsage]) {
    self.id = id
    self.path = path
    (contents, history, trash) = (usage.contents, usage.history, usage.trash)
    self.folders = folders
  }

  package var total: Int64 { contents + history + trash }
}

/// One mount of the running process.
package struct MountInfo: Hashable, Sendable, Codable {
  package let mountpoint: String
  package let account: AccountHandle
  /// Whether neither programs nor commands can change anything through it.
  package let readOnly: Bool

  package init(mountpoint: String, account: AccountHandle, readOnly: Bool) {
    self.mountpoint = mountpoint
    self.account = account
    self.readOnly = readOnly
  }
}

/// The state of a library, as `sheaf status` tells it.
package struct LibraryStatus: Sendable, Codable {
  /// Path of the library file.
  package var library: String
  /// The process that owns it.
  package var pid: Int32
  package var mounts: [MountInfo]
  /// Mounts that are not up, though nobody took them away: their process or the machine ended.
  package var notMounted: [MountRequest]
  /// The counts of its contents; nil at the socket of one user, who does not see these.
  package var counts: LibraryCounts?
  /// The status of the sidecars' sinks; empty if no sidecar has reported.
  package var sinks: [SinkStatus]
  /// Events that the sink which is furthest behind has yet to deal with.
  package var undelivered: Int64
  /// The accounts that are connected to hubs.
  package var connections: [ConnectionStatus]

  package init(
    library: String, pid: Int32, mounts: [MountInfo], notMounted: [MountRequest], counts: LibraryCounts?,
    sinks: [SinkStatus], connections: [ConnectionStatus] = []
  ) {
    self.connections = connections
    self.library = library
    self.pid = pid
    self.mounts = mounts
    self.notMounted = notMounted
    self.counts = counts
    self.sinks = sinks
    undelivered = sinks.compactMap(\.undelivered).max() ?? 0
  }

  private enum CodingKeys: CodingKey { case library, pid, mounts, notMounted, sinks, undelivered, connections }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      library: try container.decode(String.self, forKey: .library),
      pid: try container.decode(Int32.self, forKey: .pid),
      mounts: try container.decode([MountInfo].self, forKey: .mounts),
      notMounted: try container.decode([MountRequest].self, forKey: .notMounted),
      counts: try? LibraryCounts(from: decoder), sinks: try container.decode([SinkStatus].self, forKey: .sinks),
      connections: try container.decodeIfPresent([ConnectionStatus].self, forKey: .connections) ?? [])
  }

  /// Encodes all in one object.
  package func encode(to encoder: any Encoder) throws {
    try counts?.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(library, forKey: .library)
    try container.encode(pid, forKey: .pid)
    try container.encode(mounts, forKey: .mounts)
    try container.encode(notMounted, forKey: .notMounted)
    try container.encode(sinks, forKey: .sinks)
    try container.encode(undelivered, forKey: .undelivered)
    try container.encode(connections, forKey: .connections)
  }
}

/// The counts of a library's contents.
package struct LibraryCounts: Sendable, Codable {
  package var accounts: Int
  package var documents: Int
  package var folders: Int
  package var versions: Int
  package var deleted: Int
  /// Logged events.
  package var events: Int
  /// Bytes of all current contents together, by their size in stat(2).
  package var contentBytes: Int64
  /// Bytes that chunks take after deduplication.
  package var storedBytes: Int64
  /// Bytes of the library's files.
  package var fileBytes: Int64
  /// Bytes that can still be written.
  package var availableBytes: Int64
  /// Documents whose changes wait for room on the disk, to be kept as `NAME (not saved)`.
  package var notSaved: Int
  /// Documents with a conflict; nil from an older process.
  package var conflicts: Int?

  package init(
    accounts: Int, documents: Int, folders: Int, versions: Int, deleted: Int, events: Int, contentBytes: Int64,
    storedBytes: Int64, fileBytes: Int64, availableBytes: Int64, notSaved: Int, conflicts: Int
  ) {
    self.conflicts = conflicts
    self.notSaved = notSaved
    self.accounts = accounts
    self.documents = documents
    self.folders = folders
    self.versions = versions
    self.deleted = deleted
    self.events = events
    self.contentBytes = contentBytes
    self.storedBytes = storedBytes
    self.fileBytes = fileBytes
    self.availableBytes = availableBytes
  }
}

/// Contents of documents of which a hub has something that is not here.
package struct ContentsAtHub: Hashable, Sendable, Codable {
  /// Documents of which a version is not here as a whole.
  package let documents: Int
  /// The sizes of these versions.
  package let bytes: Int64

  package init(documents: Int, bytes: Int64) {
    self.documents = documents
    self.bytes = bytes
  }

  package static let none = ContentsAtHub(documents: 0, bytes: 0)
}

/// The findings of `sheaf check`.
package struct CheckReport: Sendable, Codable {
  /// One line for each problem, naming the thing and the rule; empty for a sound library.
  package var problems: [String]
  package var chunks: Int
  package var versions: Int
  package var items: Int
  /// Documents of which something cannot be read, at most a hundred.
  package var damaged: [DamagedDocument]
  /// What cannot be verified, since it is not here.
  package var atHub: ContentsAtHub

  package init(
    problems: [String], chunks: Int, versions: Int, items: Int, damaged: [DamagedDocument],
    atHub: ContentsAtHub = .none
  ) {
    self.problems = problems
    self.chunks = chunks
    self.versions = versions
    self.items = items
    self.damaged = damaged
    self.atHub = atHub
  }

  private enum CodingKeys: CodingKey { case problems, chunks, versions, items, damaged, atHub }

  /// An older process does not tell which documents are damaged, and what is not here.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      problems: try container.decode([String].self, forKey: .problems),
      chunks: try container.decode(Int.self, forKey: .chunks),
      versions: try container.decode(Int.self, forKey: .versions),
      items: try container.decode(Int.self, forKey: .items),
      damaged: try container.decodeIfPresent([DamagedDocument].self, forKey: .damaged) ?? [],
      atHub: try container.decodeIfPresent(ContentsAtHub.self, forKey: .atHub) ?? .none)
  }
}

/// The copy that `sheaf backup` made.
package struct BackupReport: Sendable, Codable {
  /// Absolute path.
  package let file: String
  /// What is not in it.
  package let atHub: ContentsAtHub

  package init(file: String, atHub: ContentsAtHub) {
    self.file = file
    self.atHub = atHub
  }

  private enum CodingKeys: CodingKey { case file, atHub }

  /// An older process tells the file alone.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      file: try container.decode(String.self, forKey: .file),
      atHub: try container.decodeIfPresent(ContentsAtHub.self, forKey: .atHub) ?? .none)
  }
}

/// A document of whose versions some cannot be read as a whole.
package struct DamagedDocument: Sendable, Codable, Equatable {
  /// UUID of the item.
  package var id: String
  /// Handle of the owner.
  package var account: String
  /// From `Documents` on, for people.
  package var path: String
  /// Whether it is in the trash.
  package var isDeleted: Bool
  /// Numbers of the versions that cannot be read as a whole, the newest first, at most a hundred.
  package var versions: [Int64]
  /// Whether the current version is among them.
  package var isCurrent: Bool

  package init(id: String, account: String, path: String, isDeleted: Bool, versions: [Int64], isCurrent: Bool) {
    self.id = id
    self.account = account
    self.path = path
    self.isDeleted = isDeleted
    self.versions = versions
    self.isCurrent = isCurrent
  }
}

/// The results of `sheaf compact`.
package struct CompactReport: Sendable, Codable {
  package var versionsThinned: Int
  /// Versions that are now stored as their difference from their successor.
  package var versionsPacked: Int
  package var chunksFreed: Int
  /// Bytes by which the library's files shrank.
  package var bytesFreed: Int64
  /// Whether nothing was removed for its age, since the clock is far ahead of everything in the library.
  package var isClockDoubted: Bool

  package init(
    versionsThinned: Int, versionsPacked: Int, chunksFreed: Int, bytesFreed: Int64, isClockDoubted: Bool
  ) {
    self.versionsThinned = versionsThinned
    self.versionsPacked = versionsPacked
    self.chunksFreed = chunksFreed
    self.bytesFreed = bytesFreed
    self.isClockDoubted = isClockDoubted
  }
}

/// The progress of a long job, for a progress line.
package struct Progress: Sendable, Codable {
  package var done: Int64
  package var total: Int64
  /// Told once, before the first thing is done: the moment to which to restore to undo the work. Nil for work that
  /// cannot be undone so.
  package var before: Timestamp?

  package init(done: Int64, total: Int64, before: Timestamp? = nil) {
    self.done = done
    self.total = total
    self.before = before
  }
}
