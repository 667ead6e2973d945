import CTestSystem
import Glibc
import Synchronization

/// A folder of a kernel's file system, reached by system calls: the oracle on a local disk, or a mount under test.
///
/// Calls are relative to a descriptor of the folder, so that the whole of PATH_MAX is there for the path under test.
public final class PlainDirectory: FileSystem {
  public let root: String
  public let features: Features
  let descriptor: Int32

  /// - Parameter root: an existing folder.
  /// - Parameter features: its features; see ``probe(_:helper:)``.
  public init(root: String, features: Features) throws(Errno) {
    self.root = root
    self.features = features
    descriptor = Glibc.open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .last("open \(root)") }
  }

  deinit { Glibc.close(descriptor) }

  /// A `/proc` path, for calls that take no descriptor.
  private func reach(_ path: Path) -> Path { Path("/proc/self/fd/\(descriptor)") / (path.bytes.isEmpty ? "." : path) }

  public func absolutePath(_ path: Path) -> String? { String(decoding: (Path(root) / path).bytes, as: UTF8.self) }

  public func open(_ path: Path, _ flags: Int32, mode: UInt32) throws(Errno) -> any OpenFile {
    let file = path.withCString { Glibc.openat(descriptor, $0, flags | O_CLOEXEC, mode) }
    guard file >= 0 else { throw .last("open \(path)") }
    return PlainFile(file, path, of: self)
  }

  public func openFolder(_ path: Path) throws(Errno) -> any OpenFolder {
    let folder = path.withCString { Glibc.openat(descriptor, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    guard folder >= 0, let stream = fdopendir(folder) else { throw .last("open \(path)") }
    return PlainFolder(stream, path)
  }

  public func lstat(_ path: Path) throws(Errno) -> FileStatus { try status(path, AT_SYMLINK_NOFOLLOW) }
  public func stat(_ path: Path) throws(Errno) -> FileStatus { try status(path, 0) }

  private func status(_ path: Path, _ flags: Int32) throws(Errno) -> FileStatus {
    var facts = Glibc.stat()
    let result = path.withCString { fstatat(descriptor, $0, &facts, flags) }
    try check(result, "stat \(path)")
    return FileStatus(facts)
  }

  public func mkdir(_ path: Path, mode: UInt32) throws(Errno) {
    try check(path.withCString { mkdirat(descriptor, $0, mode) }, "mkdir \(path)")
  }

  public func rmdir(_ path: Path) throws(Errno) {
    try check(path.withCString { unlinkat(descriptor, $0, AT_REMOVEDIR) }, "rmdir \(path)")
  }

  public func unlink(_ path: Path) throws(Errno) {
    try check(path.withCString { unlinkat(descriptor, $0, 0) }, "unlink \(path)")
  }

  public func rename(_ from: Path, _ to: Path, flags: UInt32) throws(Errno) {
    let result = from.withCString { old in
      to.withCString { new in sheaf_test_rename(descriptor, old, new, flags) }
    }
    try check(result, "rename \(from) to \(to)")
  }

  public func link(_ existing: Path, _ new: Path, following: Bool) throws(Errno) {
    let result = existing.withCString { old in
      new.withCString { new in linkat(descriptor, old, descriptor, new, following ? AT_SYMLINK_FOLLOW : 0) }
    }
    try check(result, "link \(existing) to \(new)")
  }

  public func symlink(_ target: Path, at path: Path) throws(Errno) {
    // An empty target is tried as such, not as the root.
    let result = path.withCString { path in
      target.bytes.isEmpty
        ? symlinkat("", descriptor, path) : target.withCString { symlinkat($0, descriptor, path) }
    }
    try check(result, "symlink \(path)")
  }

  public func readlink(_ path: Path) throws(Errno) -> Path {
    var buffer = [UInt8](repeating: 0, count: 8192)
    let count = path.withCString { path in
      buffer.withUnsafeMutableBytes { raw in
        readlinkat(descriptor, path, raw.baseAddress!.assumingMemoryBound(to: CChar.self), raw.count)
      }
    }
    guard count >= 0 else { throw .last("readlink \(path)") }
    return Path(Array(buffer[..<count]))
  }

  public func mknod(_ path: Path, mode: UInt32, device: UInt64) throws(Errno) {
    try check(path.withCString { mknodat(descriptor, $0, mode, dev_t(device)) }, "mknod \(path)")
  }

  public func truncate(_ path: Path, _ size: Int64) throws(Errno) {
    try check(reach(path).withCString { Glibc.truncate($0, Int(size)) }, "truncate \(path)")
  }

  public func chmod(_ path: Path, _ mode: UInt32) throws(Errno) {
    try check(path.withCString { fchmodat(descriptor, $0, mode, 0) }, "chmod \(path)")
  }

  public func chown(_ path: Path, user: UInt32?, group: UInt32?, following: Bool) throws(Errno) {
    let result = path.withCString {
      fchownat(descriptor, $0, user ?? .max, group ?? .max, following ? 0 : AT_SYMLINK_NOFOLLOW)
    }
    try check(result, "chown \(path)")
  }

  public func utimens(_ path: Path, accessed: TimeChange, modified: TimeChange, following: Bool) throws(Errno) {
    let times = [accessed.timespec, modified.timespec]
    let result = path.withCString { utimensat(descriptor, $0, times, following ? 0 : AT_SYMLINK_NOFOLLOW) }
    try check(result, "utimensat \(path)")
  }

  public func access(_ path: Path, _ mode: Int32) throws(Errno) {
    try check(path.withCString { faccessat(descriptor, $0, mode, AT_EACCESS) }, "access \(path)")
  }

  public func statfs() throws(Errno) -> Space {
    var facts = Glibc.statvfs()
    try check(fstatvfs(descriptor, &facts), "statvfs")
    return Space(
      blockSize: UInt64(facts.f_frsize), blocks: UInt64(facts.f_blocks), free: UInt64(facts.f_bfree),
      available: UInt64(facts.f_bavail), longestName: UInt64(facts.f_namemax))
  }

  public func getxattr(_ path: Path, _ name: Path, following: Bool) throws(Errno) -> [UInt8] {
    try readAttribute("getxattr \(name) of \(path)") { buffer, size in
      reach(path).withCString { path in
        name.withCString {
          following ? CTestSystem.getxattr(path, $0, buffer, size) : CTestSystem.lgetxattr(path, $0, buffer, size)
        }
      }
    }
  }

  public func setxattr(
    _ path: Path, _ name: Path, _ value: [UInt8], flags: Int32, following: Bool
  ) throws(Errno) {
    let result = reach(path).withCString { path in
      name.withCString {
        following
          ? CTestSystem.setxattr(path, $0, value, value.count, flags)
          : CTestSystem.lsetxattr(path, $0, value, value.count, flags)
      }
    }
    try check(result, "setxattr \(name) of \(path)")
  }

  public func removexattr(_ path: Path, _ name: Path, following: Bool) throws(Errno) {
    let result = reach(path).withCString { path in
      name.withCString { following ? CTestSystem.removexattr(path, $0) : CTestSystem.lremovexattr(path, $0) }
    }
    try check(result, "removexattr \(name) of \(path)")
  }

  public func listxattr(_ path: Path, following: Bool) throws(Errno) -> [Path] {
    let list = try readAttribute("listxattr \(path)") { buffer, size in
      let characters = buffer?.assumingMemoryBound(to: CChar.self)
      return reach(path).withCString {
        following ? CTestSystem.listxattr($0, characters, size) : CTestSystem.llistxattr($0, characters, size)
      }
    }
    return list.split(separator: 0).map { Path(Array($0)) }
  }

  public func acting<Result: Sendable>(
    as caller: Credentials, _ body: @escaping @Sendable (any FileSystem) throws -> Result
  ) throws -> Result {
    try onThread(as: caller) { try body(self) }
  }
}

/// Throws the `errno` of the last call unless it returned 0.
func check(_ result: Int32, _ operation: @autoclosure () -> String) throws(Errno) {
  guard result == 0 else { throw .last(operation()) }
}

/// Asks for an attribute's size, then for its value; again if it grew in between.
func readAttribute(
  _ operation: @autoclosure () -> String, _ call: (UnsafeMutableRawPointer?, Int) -> Int
) throws(Errno) -> [UInt8] {
  while true {
    let size = call(nil, 0)
    guard size >= 0 else { throw .last(operation()) }
    guard size > 0 else { return [] }
    var buffer = [UInt8](repeating: 0, count: size)
    let count = buffer.withUnsafeMutableBytes { call($0.baseAddress, $0.count) }
    if count < 0, errno == ERANGE { continue }
    guard count >= 0 else { throw .last(operation()) }
    return Array(buffer[..<count])
  }
}

extension TimeChange {
  var timespec: Glibc.timespec {
    switch self {
    case .now: Glibc.timespec(tv_sec: 0, tv_nsec: (1 << 30) - 1)  // UTIME_NOW
    case .keep: Glibc.timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2)  // UTIME_OMIT
    case .set(let time): Glibc.timespec(tv_sec: time.seconds, tv_nsec: time.nanoseconds)
    }
  }
}
