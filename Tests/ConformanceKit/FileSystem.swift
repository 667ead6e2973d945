/// The abilities of a file system under test, or of the process that tests it, beyond the plain calls. A case names
/// those that it needs.
public struct Features: OptionSet, Hashable, Sendable, CustomStringConvertible {
  public let rawValue: UInt32
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Paths and permissions are judged by a kernel above the file system.
  public static let kernel = Features(rawValue: 1 << 0)
  /// Open files have descriptors, so that `mmap`, locks and sockets can be tried.
  public static let descriptors = Features(rawValue: 1 << 1)
  /// The tests run as root: ownership can be given away, device nodes made, other users impersonated.
  public static let root = Features(rawValue: 1 << 2)
  /// `O_TMPFILE` works.
  public static let temporaryFiles = Features(rawValue: 1 << 3)
  /// An extended attribute's value may have 64 KiB.
  public static let largeAttributes = Features(rawValue: 1 << 4)
  /// A second process can be started to hold locks.
  public static let helper = Features(rawValue: 1 << 5)

  private static let names: [(Features, String)] = [
    (.kernel, "kernel"), (.descriptors, "descriptors"), (.root, "root"), (.temporaryFiles, "temporaryFiles"),
    (.largeAttributes, "largeAttributes"), (.helper, "helper"),
  ]

  public var description: String {
    Features.names.filter { contains($0.0) }.map(\.1).joined(separator: ", ")
  }
}

/// `O_PATH`, which Swift's Glibc does not have.
public let pathOnly: Int32 = 0o10_000_000
/// `O_TMPFILE`, which Swift's Glibc does not have.
public let unnamedFile: Int32 = 0o20_000_000 | 0o200_000

/// The user and the umask of calls, other than root's and the process's. A value that is nil stays as it is.
public struct Credentials: Hashable, Sendable {
  public var user: UInt32?
  public var group: UInt32?
  public var otherGroups: [UInt32]
  public var umask: UInt32?

  public init(user: UInt32? = nil, group: UInt32? = nil, otherGroups: [UInt32] = [], umask: UInt32? = nil) {
    self.user = user
    self.group = group ?? user
    self.otherGroups = otherGroups
    self.umask = umask
  }
}

/// A POSIX file system as the conformance suite sees it: the system calls, with paths relative to a folder of its own.
///
/// Flags and modes are those of the kernel (`O_CREAT`, `RENAME_EXCHANGE`, `FALLOC_FL_PUNCH_HOLE`, …).
public protocol FileSystem: Sendable {
  var features: Features { get }

  func open(_ path: Path, _ flags: Int32, mode: UInt32) throws(Errno) -> any OpenFile
  func openFolder(_ path: Path) throws(Errno) -> any OpenFolder
  /// `fstatat` with `AT_SYMLINK_NOFOLLOW`.
  func lstat(_ path: Path) throws(Errno) -> FileStatus
  func stat(_ path: Path) throws(Errno) -> FileStatus
  func mkdir(_ path: Path, mode: UInt32) throws(Errno)
  func rmdir(_ path: Path) throws(Errno)
  func unlink(_ path: Path) throws(Errno)
  /// `renameat2`.
  func rename(_ from: Path, _ to: Path, flags: UInt32) throws(Errno)
  /// `linkat`, which does not follow a symbolic link unless `following`.
  func link(_ existing: Path, _ new: Path, following: Bool) throws(Errno)
  func symlink(_ target: Path, at path: Path) throws(Errno)
  func readlink(_ path: Path) throws(Errno) -> Path
  /// `mode` includes the kind (`S_IFIFO`, …).
  func mknod(_ path: Path, mode: UInt32, device: UInt64) throws(Errno)
  func truncate(_ path: Path, _ size: Int64) throws(Errno)
  func chmod(_ path: Path, _ mode: UInt32) throws(Errno)
  /// A value that is nil stays as it is.
  func chown(_ path: Path, user: UInt32?, group: UInt32?, following: Bool) throws(Errno)
  func utimens(_ path: Path, accessed: TimeChange, modified: TimeChange, following: Bool) throws(Errno)
  func getxattr(_ path: Path, _ name: Path, following: Bool) throws(Errno) -> [UInt8]
  func setxattr(_ path: Path, _ name: Path, _ value: [UInt8], flags: Int32, following: Bool) throws(Errno)
  func removexattr(_ path: Path, _ name: Path, following: Bool) throws(Errno)
  func listxattr(_ path: Path, following: Bool) throws(Errno) -> [Path]
  func access(_ path: Path, _ mode: Int32) throws(Errno)
  func statfs() throws(Errno) -> Space

  /// Runs `body` with calls made by `caller`; needs ``Features/root`` for another user.
  func acting<Result: Sendable>(
    as caller: Credentials, _ body: @escaping @Sendable (any FileSystem) throws -> Result
  ) throws -> Result

  /// A path by which this process reaches the file: for a helper process, a socket's address. Nil without a kernel.
  func absolutePath(_ path: Path) -> String?
}

/// An open file description.
public protocol OpenFile: AnyObject, Sendable {
  /// The kernel's descriptor; nil where no kernel is involved.
  var descriptor: Int32? { get }

  func read(_ count: Int) throws(Errno) -> [UInt8]
  func write(_ bytes: [UInt8]) throws(Errno) -> Int
  func pread(_ count: Int, at offset: Int64) throws(Errno) -> [UInt8]
  func pwrite(_ bytes: [UInt8], at offset: Int64) throws(Errno) -> Int
  func seek(_ offset: Int64, _ whence: Int32) throws(Errno) -> Int64
  func status() throws(Errno) -> FileStatus
  func truncate(_ size: Int64) throws(Errno)
  func synchronize(dataOnly: Bool) throws(Errno)
  func allocate(_ mode: Int32, _ offset: Int64, _ length: Int64) throws(Errno)
  func copyRange(_ offset: Int64, to target: any OpenFile, _ targetOffset: Int64, _ count: Int) throws(Errno) -> Int
  func chmod(_ mode: UInt32) throws(Errno)
  func chown(user: UInt32?, group: UInt32?) throws(Errno)
  func utimens(accessed: TimeChange, modified: TimeChange) throws(Errno)
  func getxattr(_ name: Path) throws(Errno) -> [UInt8]
  func setxattr(_ name: Path, _ value: [UInt8], flags: Int32) throws(Errno)
  /// Gives an unnamed file (`O_TMPFILE`) a name.
  func link(to path: Path) throws(Errno)
  /// Closing twice is a programmer error.
  func close() throws(Errno)
}

/// An open folder that is being read.
public protocol OpenFolder: AnyObject, Sendable {
  /// The next entry, `.` and `..` included; nil at the end.
  func next() throws(Errno) -> FolderEntry?
  func rewind()
  /// Goes to a position that an entry bore.
  func seek(_ position: Int)
  func status() throws(Errno) -> FileStatus
  func synchronize() throws(Errno)
  func close() throws(Errno)
}
