import ConformanceKit
import struct Fuse.Errno
import Glibc
import SheafLibrary
import SheafModel

@testable import SheafMount

/// `Documents` of a library without a mount: what the kernel does above a file system (walking paths, positions of open
/// files, bits of open(2)) done here, everything else by the library.
struct LibraryDirectory: ConformanceKit.FileSystem {
  let library: Library
  /// The folder that paths are relative to.
  let root: Int64
  var caller = Credentials()

  var features: Features { [.root] }

  var credentials: SheafLibrary.Caller {
    let groups = caller.otherGroups
    return SheafLibrary.Caller(
      uid: caller.user ?? 0, gid: caller.group ?? 0, umask: caller.umask ?? 0, thread: 0, door: 0, groups: { groups })
  }

  func acting<Result: Sendable>(
    as caller: Credentials, _ body: @escaping @Sendable (any ConformanceKit.FileSystem) throws -> Result
  ) throws -> Result {
    var other = self
    if let user = caller.user {
      (other.caller.user, other.caller.group) = (user, caller.group)
      other.caller.otherGroups = caller.otherGroups
    }
    if let umask = caller.umask { other.caller.umask = umask }
    return try body(other)
  }

  func absolutePath(_ path: Path) -> String? { nil }

  // MARK: - Walking

  func failing<Value>(_ operation: String, _ body: () throws -> Value) throws(ConformanceKit.Errno) -> Value {
    do {
      return try body()
    } catch let error as SheafError {
      throw ConformanceKit.Errno(Fuse.Errno(error.kind).rawValue, operation)
    } catch let error as ConformanceKit.Errno {
      throw error
    } catch {
      throw ConformanceKit.Errno(EIO, "\(operation): \(error)")
    }
  }

  private func names(_ path: Path) -> [[UInt8]] { path.bytes.split(separator: UInt8(ascii: "/")).map(Array.init) }

  /// The folder that the last name of a path is in, and that name.
  func place(_ path: Path) throws -> (parent: Int64, name: [UInt8]) {
    let names = names(path)
    guard let name = names.last else { throw SheafError(.busy) }
    var parent = root
    for name in names.dropLast() { parent = try child(parent, name) }
    return (parent, name)
  }

  private func child(_ parent: Int64, _ name: [UInt8]) throws -> Int64 {
    try library.lookup(parent, name, credentials).ino
  }

  func find(_ path: Path, following: Bool = true, depth: Int = 0) throws -> Attributes {
    guard !path.bytes.isEmpty else { return try library.attributes(root, .library) }
    guard depth < 40 else { throw ConformanceKit.Errno(ELOOP, "walking \(path)") }
    let (parent, name) = try place(path)
    let found = try library.lookup(parent, name, credentials)
    guard following, found.mode & S_IFMT == S_IFLNK else { return found }
    let target = Path(try library.readLink(found.ino, .library))
    let folder = Path(Array(names(path).dropLast().joined(separator: [UInt8(ascii: "/")])))
    return try find(folder / target, depth: depth + 1)
  }

  // MARK: - Calls

  func open(_ path: Path, _ flags: Int32, mode: UInt32) throws(ConformanceKit.Errno) -> any ConformanceKit.OpenFile {
    try failing("open \(path)") {
      let (parent, name) = try place(path)
      let found: Attributes
      do {
        found = try find(path)
      } catch let error as SheafError where error.kind == .notFound && flags & O_CREAT != 0 {
        let mode = mode & 0o7777 & ~(caller.umask ?? 0)
        let (attributes, handle, _) = try library.create(parent, name, mode: mode, flags: flags, credentials)
        return LibraryFile(self, attributes.ino, handle, flags)
      }
      if flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL { throw SheafError(.exists) }
      if found.mode & S_IFMT == S_IFDIR {
        if flags & (O_ACCMODE | O_CREAT) != 0 { throw SheafError(.isDirectory) }
        try permit(found, R_OK)
        return LibraryFile(self, found.ino, nil, flags)
      }
      return LibraryFile(self, found.ino, try library.open(found.ino, flags: flags, credentials), flags)
    }
  }

  func openFolder(_ path: Path) throws(ConformanceKit.Errno) -> any OpenFolder {
    try failing("open \(path)") {
      let found = try find(path)
      guard found.mode & S_IFMT == S_IFDIR else { throw SheafError(.notDirectory) }
      try permit(found, R_OK)
      return LibraryFolder(self, found.ino)
    }
  }

  private func permit(_ found: Attributes, _ wanted: Int32) throws {
    try library.checkAccess(found.ino, wanted, credentials)
  }

  func lstat(_ path: Path) throws(ConformanceKit.Errno) -> FileStatus {
    try failing("lstat \(path)") { FileStatus(try find(path, following: false)) }
  }

  func stat(_ path: Path) throws(ConformanceKit.Errno) -> FileStatus {
    try failing("stat \(path)") { FileStatus(try find(path)) }
  }

  private func make(_ node: Library.NewNode, _ path: Path, _ mode: UInt32) throws(ConformanceKit.Errno) {
    try failing("make \(path)") {
      let (parent, name) = try place(path)
      _ = try library.make(node, parent, name, mode: mode & ~(caller.umask ?? 0), credentials)
    }
  }

  func mkdir(_ path: Path, mode: UInt32) throws(ConformanceKit.Errno) { try make(.folder, path, mode) }

  func symlink(_ target: Path, at path: Path) throws(ConformanceKit.Errno) {
    guard !target.bytes.isEmpty else { throw ConformanceKit.Errno(ENOENT, "symlink \(path)") }
    try make(.symbolicLink(target: target.bytes), path, 0o777)
  }

  func mknod(_ path: Path, mode: UInt32, device: UInt64) throws(ConformanceKit.Errno) {
    let type = mode & S_IFMT
    try make(type == S_IFREG || type == 0 ? .file : .special(type: type, rdev: device), path, mode & 0o7777)
  }

  func rmdir(_ path: Path) throws(ConformanceKit.Errno) {
    try failing("rmdir \(path)") {
      let (parent, name) = try place(path)
      try library.rmdir(parent, name, credentials)
    }
  }

  func unlink(_ path: Path) throws(ConformanceKit.Errno) {
    try failing("unlink \(path)") {
      let (parent, name) = try place(path)
      try library.unlink(parent, name, credentials)
    }
  }

  func rename(_ from: Path, _ to: Path, flags: UInt32) throws(ConformanceKit.Errno) {
    try failing("rename \(from) to \(to)") {
      let mode: Library.RenameMode
      switch flags {
      case 0: mode = .replace
      case 1: mode = .noReplace
      case 2: mode = .exchange
      default: throw SheafError(.invalid)
      }
      let (source, target) = (try place(from), try place(to))
      try library.rename(source.parent, source.name, to: target.parent, target.name, mode, credentials)
    }
  }

  func link(_ existing: Path, _ new: Path, following: Bool) throws(ConformanceKit.Errno) {
    try failing("link \(existing) to \(new)") {
      let found = try find(existing, following: following)
      let (parent, name) = try place(new)
      _ = try library.link(found.ino, parent, name, credentials)
    }
  }

  func readlink(_ path: Path) throws(ConformanceKit.Errno) -> Path {
    try failing("readlink \(path)") { Path(try library.readLink(try find(path, following: false).ino, .library)) }
  }

  // MARK: - Attributes

  func change(
    _ ino: Int64, _ change: Library.AttributeChange, handle: UInt64? = nil
  ) throws {
    _ = try library.setAttributes(ino, change, handle: handle, credentials)
  }

  /// chown(2) as the kernel passes it on: with the set-id bits of a program gone.
  func ownership(_ user: UInt32?, _ group: UInt32?, of found: Attributes) -> Library.AttributeChange {
    var change = Library.AttributeChange(uid: user, gid: group)
    guard found.mode & S_IFMT == S_IFREG, found.mode & 0o6000 != 0 else { return change }
    change.mode = Self.withoutSetID(found.mode) & 0o7777
    return change
  }

  static func withoutSetID(_ mode: UInt32) -> UInt32 { mode & ~(mode & 0o010 != 0 ? 0o6000 : 0o4000) }

  func truncate(_ path: Path, _ size: Int64) throws(ConformanceKit.Errno) {
    try failing("truncate \(path)") { try change(try find(path).ino, .init(size: size)) }
  }

  func chmod(_ path: Path, _ mode: UInt32) throws(ConformanceKit.Errno) {
    try failing("chmod \(path)") { try change(try find(path).ino, .init(mode: mode)) }
  }

  func chown(_ path: Path, user: UInt32?, group: UInt32?, following: Bool) throws(ConformanceKit.Errno) {
    try failing("chown \(path)") {
      let found = try find(path, following: following)
      try change(found.ino, ownership(user, group, of: found))
    }
  }

  func utimens(
    _ path: Path, accessed: TimeChange, modified: TimeChange, following: Bool
  ) throws(ConformanceKit.Errno) {
    try failing("utimensat \(path)") {
      let found = try find(path, following: following)
      try change(found.ino, .init(atime: .init(accessed), mtime: .init(modified)))
    }
  }

  func getxattr(_ path: Path, _ name: Path, following: Bool) throws(ConformanceKit.Errno) -> [UInt8] {
    try failing("getxattr \(path)") {
      try library.xattr(try find(path, following: following).ino, name.bytes, credentials)
    }
  }

  func setxattr(
    _ path: Path, _ name: Path, _ value: [UInt8], flags: Int32, following: Bool
  ) throws(ConformanceKit.Errno) {
    try failing("setxattr \(path)") {
      let mode: Library.XattrMode = flags == 1 ? .create : flags == 2 ? .replace : .set
      try library.setXattr(try find(path, following: following).ino, name.bytes, value, mode, credentials)
    }
  }

  func removexattr(_ path: Path, _ name: Path, following: Bool) throws(ConformanceKit.Errno) {
    try failing("removexattr \(path)") {
      try library.removeXattr(try find(path, following: following).ino, name.bytes, credentials)
    }
  }

  func listxattr(_ path: Path, following: Bool) throws(ConformanceKit.Errno) -> [Path] {
    try failing("listxattr \(path)") {
      // The kernel keeps `trusted.` to root.
      try library.xattrNames(try find(path, following: following).ino, listsComputed: true, .library).map { Path($0) }
        .filter { (caller.user ?? 0) == 0 || !$0.bytes.starts(with: "trusted.".utf8) }
    }
  }

  func access(_ path: Path, _ mode: Int32) throws(ConformanceKit.Errno) {
    try failing("access \(path)") { try permit(try find(path), mode) }
  }

  func statfs() throws(ConformanceKit.Errno) -> Space {
    let space = library.space()
    return Space(
      blockSize: 4096, blocks: UInt64(space.total) / 4096, free: UInt64(space.free) / 4096,
      available: UInt64(space.available) / 4096, longestName: 255)
  }
}

extension FileStatus {
  init(_ attributes: Attributes) {
    var status = Glibc.stat()
    status.st_mode = attributes.mode
    status.st_ino = ino_t(attributes.ino)
    status.st_nlink = nlink_t(attributes.nlink)
    (status.st_uid, status.st_gid) = (attributes.uid, attributes.gid)
    status.st_rdev = dev_t(attributes.rdev)
    status.st_size = Int(attributes.size)
    status.st_blocks = Int(attributes.blocks)
    status.st_atim = attributes.atime.timespec
    status.st_mtim = attributes.mtime.timespec
    status.st_ctim = attributes.ctime.timespec
    self.init(status)
  }
}

extension Timestamp {
  fileprivate var timespec: Glibc.timespec {
    Glibc.timespec(tv_sec: Int(seconds), tv_nsec: Int(subsecondNanoseconds))
  }
}

extension Library.AttributeChange.Time {
  init?(_ change: TimeChange) {
    switch change {
    case .keep: return nil
    case .now: self = .now
    case .set(let time): self = .at(Timestamp(seconds: Int64(time.seconds), nanoseconds: Int64(time.nanoseconds)))
    }
  }
}
