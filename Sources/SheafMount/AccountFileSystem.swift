import Glibc
import Fuse
import Logging
import SheafLibrary
import SheafModel
import Synchronization

/// A library as one account sees it, as a file system: `Documents`, `Shared`, and `.versions` and `.deleted` in
/// every folder.
///
/// The kernel caches names, attributes and pages without limit of time: changes by other doors are invalidated
/// (``Invalidator``), and changes by this one the kernel knows.
final class AccountFileSystem: FileSystem {
  let library: any InodeInterface
  /// Inode of the account's `Documents`.
  let documents: Int64
  /// The account, as the library numbers it.
  let account: Int64
  /// This mount's door of the library.
  let door: Int
  let log = Logger(label: "sheaf.mount")
  /// The user of the mount, who owns in it the entries that Sheaf makes up and those that others share.
  let user: Caller.User
  private let mounted = Library.systemClock()
  let listings = Listings()
  /// The nodes of other accounts that the kernel knows.
  let foreignNodes: ForeignNodes
  let restrictedFolders: RestrictedFolders
  let changedFolders: ChangedFolders
  /// Whether the kernel may keep the listings of folders.
  let keepsListings: Bool
  let directWrites: DirectWrites
  let accessTimes: AccessTimes
  /// Whether listings of attributes name those that Sheaf computes.
  private let listsComputed: Bool
  let generations = Generations()
  let unlinkedOpens = UnlinkedOpens()
  let pastFolders = PastFolders()
  let repeater: Repeater
  /// Requests that wait for contents which a hub has.
  let waiting: WaitingRequests

  /// Seconds for which the kernel may keep anything that changes only by requests or invalidations.
  static let forever = Entry.forever

  init(
    library: any InodeInterface, account: Int64, documents: Int64, door: Int, user: Caller.User,
    foreignNodes: ForeignNodes, restrictedFolders: RestrictedFolders, changedFolders: ChangedFolders,
    keepsListings: Bool, directWrites: DirectWrites, accessTimes: AccessTimes, listsComputed: Bool, repeater: Repeater,
    waiting: WaitingRequests
  ) {
    self.waiting = waiting
    self.library = library
    self.account = account
    self.documents = documents
    self.door = door
    self.user = user
    self.foreignNodes = foreignNodes
    self.restrictedFolders = restrictedFolders
    self.changedFolders = changedFolders
    self.keepsListings = keepsListings
    self.directWrites = directWrites
    self.accessTimes = accessTimes
    self.listsComputed = listsComputed
    self.repeater = repeater
  }

  func initialize(_ connection: ConnectionInfo) -> ConnectionOptions {
    var options = ConnectionOptions()
    options.cacheSymlinks = true
    // Without it the kernel asks for security.capability before every write.
    options.handleKillprivV2 = true
    // A lock that one person holds keeps out the others.
    options.locks = true
    options.directIOMappings = true
    // The kernel drops the pages below an asynchronous direct write only before it, not after it as well: pages that
    // somebody reads meanwhile would stay as they were (mm/filemap.c, `generic_file_direct_write`).
    options.asyncDirectIO = false
    // Read-ahead of one file may wait for a hub; that of others goes on.
    options.maximumBackground = 1024
    directWrites.connect(connection)
    return options
  }

  func destroy() {}

  func forget(_ nodes: [Forgotten]) {
    foreignNodes.forget(nodes)
    pastFolders.forget(nodes)
    let inodes = nodes.compactMap { Node($0.node).ino }
    if !inodes.isEmpty { library.forget(inodes) }
  }

  func credentials(_ caller: RequestContext) -> Caller {
    Caller(
      uid: caller.uid, gid: caller.gid, umask: caller.umask, thread: caller.pid, door: door, account: account,
      user: user
    ) { (try? caller.groups()) ?? [] }
  }

  /// The inode of a node that can be changed.
  ///
  /// - Throws: EROFS below `.versions` and `.deleted`, EPERM for the root of the mount, EACCES for `Shared` and its own entries.
  func changeable(_ node: NodeID) throws(Errno) -> Int64 {
    switch Node(node) {
    case .inode(let ino): return ino
    case .root: throw .notPermitted
    case .shared, .sharedOwner, .formerOwner: throw .permissionDenied
    case .versions, .versionFolder, .versionFile, .pastFolder, .pastLink, .trash, .deleted: throw .readOnlyFileSystem
    }
  }

  /// Seconds for which the kernel may remember a name in a folder.
  func timeout(in folder: Int64) -> Double {
    min(restrictedFolders.timeout(in: folder), changedFolders.timeout(in: folder))
  }

  // MARK: - Attributes

  /// An entry that the kernel remembers from now on.
  ///
  /// - Parameter timeout: seconds for which its name holds.
  func entry(_ attributes: Attributes, timeout: Double = AccountFileSystem.forever) -> Entry {
    if attributes.isForeign { foreignNodes.note(Node.inode(attributes.ino).id) }
    return shownEntry(attributes, timeout: timeout)
  }

  /// An entry as folders list it.
  func shownEntry(_ attributes: Attributes, timeout: Double = AccountFileSystem.forever) -> Entry {
    restrictedFolders.note(attributes)
    return Entry(
      node: Node.inode(attributes.ino).id, generation: generation(attributes), attributes: FileAttributes(attributes),
      entryTimeout: timeout, attributeTimeout: Self.forever)
  }

  func generation(_ attributes: Attributes) -> UInt64 {
    attributes.mode & S_IFMT == S_IFDIR ? generations.number(of: attributes.ino) : 0
  }

  /// A folder that Sheaf makes up.
  func folder(_ node: Node, mode: UInt32 = 0o555, links: UInt32 = 2, time: Timestamp? = nil) -> FileAttributes {
    let time = TimeSpec(time ?? mounted)
    return FileAttributes(
      node: node.id, mode: S_IFDIR | mode, linkCount: links, uid: user.uid, gid: user.gid, size: 4096, blocks: 8,
      accessTime: time, modificationTime: time, changeTime: time)
  }

  /// `Shared/OWNER`: the kernel lets its user remove entries, which leaves their shares. The library refuses everything
  /// else there.
  func sharedFolderAttributes(_ node: Node) -> FileAttributes { folder(node, mode: 0o755) }

  func file(_ version: Library.VersionFile, owner: (uid: UInt32, gid: UInt32)) -> FileAttributes {
    let time = TimeSpec(version.mtime)
    // In a damaged library it can be any number.
    let size = max(0, version.size)
    return FileAttributes(
      node: Node.versionFile(item: version.item, number: version.number).id, mode: S_IFREG | 0o444, uid: owner.uid,
      gid: owner.gid, size: size, blocks: UInt64(size / 4096 * 8 + (size % 4096 > 0 ? 8 : 0)), accessTime: time,
      modificationTime: time, changeTime: time)
  }

  /// A node's attributes, and for how many seconds the kernel may keep them.
  func attributes(_ node: Node, _ caller: RequestContext) throws -> (FileAttributes, Double) {
    try attributes(node, credentials(caller))
  }

  func attributes(_ node: Node, _ credentials: Caller) throws -> (FileAttributes, Double) {
    switch node {
    case .root: return (folder(.root, mode: user.ownsAll ? 0o700 : 0o555, links: 4), Self.forever)
    case .shared: return (folder(node), Self.forever)
    case .sharedOwner, .formerOwner: return (sharedFolderAttributes(node), Self.forever)
    case .inode(let ino): return (FileAttributes(try library.attributes(ino, credentials)), Self.forever)
    case .versions(let ino):
      let parent = try library.attributes(ino, credentials)
      var attributes = folder(node, mode: parent.mode & 0o555, time: parent.mtime)
      (attributes.uid, attributes.gid) = (parent.uid, parent.gid)
      return (attributes, 0)
    case .trash(let ino):
      let parent = try library.attributes(ino, credentials)
      // As writable as the folder, for a kernel that checks permissions to let things be renamed out of it.
      var attributes = folder(node, mode: parent.mode & 0o777, time: parent.mtime)
      (attributes.uid, attributes.gid) = (parent.uid, parent.gid)
      return (attributes, 0)
    case .deleted(let ino): return (deletedEntry(try library.attributes(deleted: ino, credentials)).attributes, 0)
    case .versionFolder(let item): return (try versionFolder(item, credentials), 0)
    case .versionFile(let item, let number):
      let file = try library.versionFile(of: item, number: number, credentials)
      return (self.file(file, owner: try library.versionOwner(of: item, credentials)), file.isOpen ? 0 : Self.forever)
    case .pastFolder(let number):
      let place = try pastFolders[number]
      return (FileAttributes(try library.pastFolder(place.ino, at: place.time, credentials), of: node.id), 0)
    case .pastLink(let ino): return (FileAttributes(try library.pastLink(ino, credentials).attributes, of: node.id), 0)
    }
  }

  /// An entry of `.deleted`, for the kernel to keep for no time: nobody tells it what is recovered or purged.
  func deletedEntry(_ attributes: Attributes) -> Entry {
    var shown = FileAttributes(attributes)
    shown.node = Node.deleted(attributes.ino).id
    return Entry(node: shown.node, attributes: shown)
  }

  func versionFolder(
    _ item: Int64, time: Timestamp? = nil, _ caller: Caller
  ) throws -> FileAttributes {
    var attributes = folder(.versionFolder(item: item), time: time)
    (attributes.uid, attributes.gid) = try library.versionOwner(of: item, caller)
    return attributes
  }

  func getattr(_ node: NodeID, handle: FileHandle?, caller: RequestContext, reply: consuming AttributesReply) {
    let replay = repeater.replay(of: caller)
    if let replay, node == replay.made.node.id {
      return reply.succeed(forLoopback(formerAttributes(replay.made, caller).shown), timeout: 0)
    }
    var found: (attributes: FileAttributes, timeout: Double)
    do throws(Errno) {
      found = try translatedForNode {
        guard case .deleted(let ino) = Node(node), let reader = handle.flatMap(listings.reader) else {
          return try self.attributes(Node(node), caller)
        }
        // A program that has it open can go on using it, even after it was recovered or purged.
        let shown = try library.attributes(deleted: ino, openAs: reader, credentials(caller))
        return (deletedEntry(shown).attributes, 0)
      }
    } catch {
      return reply.fail(error)
    }
    if replay != nil { found = (forLoopback(found.attributes), 0) }
    reply.succeed(found.attributes, timeout: found.timeout)
  }

  func setattr(_ node: NodeID, _ changes: SetAttributes, caller: RequestContext, reply: consuming AttributesReply) {
    do throws(Errno) {
      if let replay = try repeater.serve(node, caller) {
        return reply.succeed(formerAttributes(replay.made, caller).shown, timeout: 0)
      }
    } catch {
      return reply.fail(error)
    }
    let body = { @Sendable [self] () throws -> FileAttributes in
      let ino = try changeable(node)
      let change = Library.AttributeChange(
        mode: changes.mode, uid: changes.uid, gid: changes.gid, size: changes.size,
        atime: changes.accessTime.map(Library.AttributeChange.Time.init),
        mtime: changes.modificationTime.map(Library.AttributeChange.Time.init))
      let attributes: Attributes
      do {
        attributes = try library.setAttributes(ino, change, handle: changes.handle?.rawValue, credentials(caller))
      } catch let error as SheafError where error.kind == .notFound {
        throw Errno.staleFileHandle
      }
      if change.mode != nil || change.uid != nil || change.gid != nil { restrictedFolders.noteChange(of: ino) }
      return FileAttributes(attributes)
    }
    answer(node, reply, body) { reply, result in
      switch result {
      case .success(let attributes): reply.succeed(attributes, timeout: Self.forever)
      case .failure(let error): reply.fail(error)
      }
    }
  }

  func access(_ node: NodeID, _ wanted: AccessMode, caller: RequestContext, reply: consuming EmptyReply) {
    reply.answer { () throws(Errno) in
      // The loopback caller's own calls decide what they need.
      if repeater.replay(of: caller) == nil { try permit(node, wanted, caller) }
    }
  }

  /// Checks permission bits as path_resolution(7) says.
  func permit(_ node: NodeID, _ wanted: AccessMode, _ caller: RequestContext) throws(Errno) {
    try translated {
      if let ino = Node(node).ino { return try library.checkAccess(ino, wanted.rawValue, credentials(caller)) }
      let (shown, _) = try attributes(Node(node), caller)
      try Permission.check(
        shown.mode, uid: shown.uid, gid: shown.gid, credentials(caller), UInt32(wanted.rawValue))
    }
  }

  func statfs(_ node: NodeID, caller: RequestContext, reply: consuming StatFSReply) {
    let space = library.space()
    let block: UInt64 = 4096
    reply.succeed(
      StatFS(
        blockSize: block, fragmentSize: block, blocks: UInt64(space.total) / block,
        freeBlocks: UInt64(space.free) / block, availableBlocks: UInt64(space.available) / block,
        files: UInt64(space.total) / block, freeFiles: UInt64(space.available) / block, maximumNameLength: 255))
  }

  // MARK: - Extended attributes

  func setxattr(
    _ node: NodeID, name: FileName, value: UnsafeRawBufferPointer, flags: XattrFlags, caller: RequestContext,
    reply: consuming EmptyReply
  ) {
    reply.answer { () throws(Errno) in
      try Self.checkNamespace(name)
      let ino = try changeable(node)
      let mode: Library.XattrMode = flags.contains(.create) ? .create : flags.contains(.replace) ? .replace : .set
      try translated { try library.setXattr(ino, name.bytes, Array(value), mode, credentials(caller)) }
    }
  }

  func getxattr(_ node: NodeID, name: FileName, caller: RequestContext, reply: consuming XattrReply) {
    reply.answer { () throws(Errno) in
      try Self.checkNamespace(name)
      if case .deleted(let ino) = Node(node) {
        return try translated { try library.xattr(deleted: ino, name.bytes, credentials(caller)) }
      }
      guard let ino = Node(node).ino else { throw .attributeNotFound }
      return try translated { try library.xattr(ino, name.bytes, credentials(caller)) }
    }
  }

  func listxattr(_ node: NodeID, caller: RequestContext, reply: consuming XattrListReply) {
    reply.answer { () throws(Errno) in
      let names: [[UInt8]] = try translated {
        switch Node(node) {
        case .inode(let ino): try library.xattrNames(ino, listsComputed: listsComputed, credentials(caller))
        case .deleted(let ino):
          try library.xattrNames(deleted: ino, listsComputed: listsComputed, credentials(caller))
        default: []
        }
      }
      return names.map { FileName($0) }
    }
  }

  func removexattr(_ node: NodeID, name: FileName, caller: RequestContext, reply: consuming EmptyReply) {
    reply.answer { () throws(Errno) in
      try Self.checkNamespace(name)
      let ino = try changeable(node)
      try translated { try library.removeXattr(ino, name.bytes, credentials(caller)) }
    }
  }

  /// Namespaces of xattr(7) that are stored. Access control lists (`system.`) are not, and programs that ask for them
  /// (vim, sed, install) get the usual answer (acl(5)).
  private static let namespaces = ["user.", "trusted.", "security."].map { Array($0.utf8) }

  private static func checkNamespace(_ name: FileName) throws(Errno) {
    guard let namespace = namespaces.first(where: { name.bytes.starts(with: $0) }) else { throw .notSupported }
    if name.bytes.count == namespace.count { throw .invalidArgument }
  }
}

extension FileAttributes {
  init(_ attributes: Attributes) { self.init(attributes, of: Node.inode(attributes.ino).id) }

  init(_ attributes: Attributes, of node: NodeID) {
    self.init(
      node: node, mode: attributes.mode, linkCount: UInt32(clamping: attributes.nlink),
      uid: attributes.uid, gid: attributes.gid, device: attributes.rdev, size: attributes.size,
      blocks: UInt64(attributes.blocks), accessTime: TimeSpec(attributes.atime),
      modificationTime: TimeSpec(attributes.mtime), changeTime: TimeSpec(attributes.ctime))
  }
}

extension TimeSpec {
  init(_ time: Timestamp) { self.init(seconds: time.seconds, nanoseconds: time.subsecondNanoseconds) }
}

extension Library.AttributeChange.Time {
  fileprivate init(_ time: SetAttributes.Time) {
    self =
      switch time {
      case .now: .now
      case .at(let time): .at(Timestamp(seconds: time.seconds, nanoseconds: time.nanoseconds))
      }
  }
}
