import Glibc
import Fuse
import Logging
import SheafLibrary
import SheafModel
import Synchronization

/// A library as one account sees it, as a file system: `Documents`, `Shared`, and `.versions` in every folder.
///
/// The kernel caches names, attributes and pages without limit of time: what changes by other doors is invalidated
/// (``Invalidator``), what changes by this one the kernel knows.
final class AccountFileSystem: FileSystem {
  let library: Library
  /// Inode of the account's `Documents`.
  let documents: Int64
  /// This mount's door of the library.
  let door: Int
  let log = Logger(label: "sheaf.mount")
  /// Who owns what Sheaf makes up: the user who mounted.
  private let uid = getuid()
  private let gid = getgid()
  private let mounted = Library.systemClock()
  let listings = Listings()

  /// Seconds for which the kernel may keep what only changes by requests or invalidations.
  static let forever = Entry.forever

  init(library: Library, documents: Int64, door: Int) {
    self.library = library
    self.documents = documents
    self.door = door
  }

  func initialize(_ connection: ConnectionInfo) -> ConnectionOptions {
    var options = ConnectionOptions()
    options.cacheSymlinks = true
    // Else the kernel asks for security.capability before every write.
    options.handleKillprivV2 = true
    return options
  }

  func destroy() {}

  func forget(_ nodes: [Forgotten]) {
    let inos = nodes.compactMap { Node($0.node).ino }
    if !inos.isEmpty { library.forget(inos) }
  }

  func credentials(_ caller: Fuse.Caller) -> SheafLibrary.Caller {
    SheafLibrary.Caller(uid: caller.uid, gid: caller.gid, umask: caller.umask, thread: caller.pid, door: door) {
      (try? caller.groups()) ?? []
    }
  }

  /// The inode of a node that can be changed.
  ///
  /// - Throws: EROFS below `.versions`, EPERM for the folders of the mount itself.
  func changeable(_ node: NodeID) throws(Errno) -> Int64 {
    switch Node(node) {
    case .inode(let ino): return ino
    case .root, .shared: throw .notPermitted
    case .versions, .versionFolder, .versionFile: throw .readOnlyFileSystem
    }
  }

  // MARK: - Attributes

  func entry(_ attributes: Attributes) -> Entry {
    Entry(
      node: Node.inode(attributes.ino).id, attributes: FileAttributes(attributes), entryTimeout: Self.forever,
      attributeTimeout: Self.forever)
  }

  /// A folder that Sheaf makes up.
  func folder(_ node: Node, mode: UInt32 = 0o555, links: UInt32 = 2, time: Timestamp? = nil) -> FileAttributes {
    let time = TimeSpec(time ?? mounted)
    return FileAttributes(
      node: node.id, mode: S_IFDIR | mode, linkCount: links, uid: uid, gid: gid, size: 4096, blocks: 8,
      accessTime: time, modificationTime: time, changeTime: time)
  }

  func file(_ version: Library.VersionFile, owner: (uid: UInt32, gid: UInt32)) -> FileAttributes {
    let time = TimeSpec(version.mtime)
    return FileAttributes(
      node: Node.versionFile(item: version.item, number: version.number).id, mode: S_IFREG | 0o444, uid: owner.uid,
      gid: owner.gid, size: version.size, blocks: UInt64((version.size + 4095) / 4096 * 8), accessTime: time,
      modificationTime: time, changeTime: time)
  }

  /// What stat(2) tells of a node, and for how many seconds.
  func attributes(_ node: Node) throws -> (FileAttributes, Double) {
    switch node {
    case .root: return (folder(.root, links: 4), Self.forever)
    case .shared: return (folder(.shared), Self.forever)
    case .inode(let ino): return (FileAttributes(try library.attributes(ino)), Self.forever)
    case .versions(let ino):
      let parent = try library.attributes(ino)
      var attributes = folder(node, mode: parent.mode & 0o555, time: parent.mtime)
      (attributes.uid, attributes.gid) = (parent.uid, parent.gid)
      return (attributes, 0)
    case .versionFolder(let item): return (try versionFolder(item), 0)
    case .versionFile(let item, let number):
      let file = try library.versionFile(of: item, number: number)
      return (self.file(file, owner: try library.versionOwner(of: item)), file.isOpen ? 0 : Self.forever)
    }
  }

  func versionFolder(_ item: Int64, time: Timestamp? = nil) throws -> FileAttributes {
    var attributes = folder(.versionFolder(item: item), time: time)
    (attributes.uid, attributes.gid) = try library.versionOwner(of: item)
    return attributes
  }

  func getattr(_ node: NodeID, handle: FileHandle?, caller: Fuse.Caller, reply: consuming AttributesReply) {
    let found: (attributes: FileAttributes, timeout: Double)
    do throws(Errno) {
      found = try translated { try self.attributes(Node(node)) }
    } catch {
      return reply.fail(error)
    }
    reply.succeed(found.attributes, timeout: found.timeout)
  }

  func setattr(_ node: NodeID, _ changes: SetAttributes, caller: Fuse.Caller, reply: consuming AttributesReply) {
    reply.answer(timeout: Self.forever) { () throws(Errno) in
      let ino = try changeable(node)
      let change = Library.AttributeChange(
        mode: changes.mode, uid: changes.uid, gid: changes.gid, size: changes.size,
        atime: changes.accessTime.map(Library.AttributeChange.Time.init),
        mtime: changes.modificationTime.map(Library.AttributeChange.Time.init))
      return FileAttributes(
        try translated {
          try library.setAttributes(ino, change, handle: changes.handle?.rawValue, credentials(caller))
        })
    }
  }

  func statfs(_ node: NodeID, caller: Fuse.Caller, reply: consuming StatFSReply) {
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
    _ node: NodeID, name: FileName, value: UnsafeRawBufferPointer, flags: XattrFlags, caller: Fuse.Caller,
    reply: consuming EmptyReply
  ) {
    reply.answer { () throws(Errno) in
      try Self.checkNamespace(name)
      let ino = try changeable(node)
      let mode: Library.XattrMode = flags.contains(.create) ? .create : flags.contains(.replace) ? .replace : .set
      try translated { try library.setXattr(ino, name.bytes, Array(value), mode, credentials(caller)) }
    }
  }

  func getxattr(_ node: NodeID, name: FileName, caller: Fuse.Caller, reply: consuming XattrReply) {
    reply.answer { () throws(Errno) in
      try Self.checkNamespace(name)
      guard let ino = Node(node).ino else { throw .attributeNotFound }
      return try translated { try library.xattr(ino, name.bytes, credentials(caller)) }
    }
  }

  func listxattr(_ node: NodeID, caller: Fuse.Caller, reply: consuming XattrListReply) {
    reply.answer { () throws(Errno) in
      guard let ino = Node(node).ino else { return [] }
      return try translated { try library.xattrNames(ino).map { FileName($0) } }
    }
  }

  func removexattr(_ node: NodeID, name: FileName, caller: Fuse.Caller, reply: consuming EmptyReply) {
    reply.answer { () throws(Errno) in
      try Self.checkNamespace(name)
      let ino = try changeable(node)
      try translated { try library.removeXattr(ino, name.bytes, credentials(caller)) }
    }
  }

  /// Namespaces of xattr(7) that are kept. Access control lists (`system.`) are not: programs that ask (vim, sed,
  /// install) are told so in the usual way (acl(5)).
  private static let namespaces = ["user.", "trusted.", "security."].map { Array($0.utf8) }

  private static func checkNamespace(_ name: FileName) throws(Errno) {
    guard let namespace = namespaces.first(where: { name.bytes.starts(with: $0) }) else { throw .notSupported }
    if name.bytes.count == namespace.count { throw .invalidArgument }
  }
}

extension FileAttributes {
  init(_ attributes: Attributes) {
    self.init(
      node: Node.inode(attributes.ino).id, mode: attributes.mode, linkCount: UInt32(attributes.nlink),
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
