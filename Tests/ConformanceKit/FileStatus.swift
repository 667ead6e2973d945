public import Glibc

/// A point in time of a file's status.
public struct Time: Hashable, Comparable, Sendable, CustomStringConvertible {
  public var seconds: Int
  public var nanoseconds: Int

  public init(_ seconds: Int, _ nanoseconds: Int = 0) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  init(_ time: timespec) { self.init(time.tv_sec, time.tv_nsec) }

  public static func < (left: Time, right: Time) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }

  public var description: String { "\(seconds).\(String(nanoseconds + 1_000_000_000).dropFirst())" }
}

/// The change of one of the two times by `utimensat`.
public enum TimeChange: Hashable, Sendable {
  case now, keep
  case set(Time)
}

/// The facts of `stat`.
public struct FileStatus: Hashable, Sendable {
  public enum Kind: UInt32, Sendable {
    case fifo = 0o010000
    case characterDevice = 0o020000
    case folder = 0o040000
    case blockDevice = 0o060000
    case file = 0o100000
    case symlink = 0o120000
    case socket = 0o140000
  }

  public var kind: Kind
  /// Permission, set-id and sticky bits, without the kind.
  public var mode: UInt32
  public var inode: UInt64
  public var links: Int
  public var owner: UInt32
  public var group: UInt32
  public var size: Int64
  /// Units of 512 bytes.
  public var blocks: Int64
  /// The device that a device node stands for.
  public var device: UInt64
  public var accessed: Time
  public var modified: Time
  public var changed: Time

  public init(_ status: stat) {
    kind = Kind(rawValue: status.st_mode & S_IFMT) ?? .file
    mode = status.st_mode & 0o7777
    inode = UInt64(status.st_ino)
    links = Int(status.st_nlink)
    owner = status.st_uid
    group = status.st_gid
    size = Int64(status.st_size)
    blocks = Int64(status.st_blocks)
    device = UInt64(status.st_rdev)
    accessed = Time(status.st_atim)
    modified = Time(status.st_mtim)
    changed = Time(status.st_ctim)
  }
}

/// One entry of a folder, as reading it gave it.
public struct FolderEntry: Hashable, Sendable {
  public var name: Path
  public var inode: UInt64
  /// Nil if the file system does not tell.
  public var kind: FileStatus.Kind?
  /// The position after this entry, for `seek`.
  public var position: Int

  public init(name: Path, inode: UInt64, kind: FileStatus.Kind?, position: Int) {
    self.name = name
    self.inode = inode
    self.kind = kind
    self.position = position
  }
}

/// The facts of `statvfs`.
public struct Space: Hashable, Sendable {
  public var blockSize: UInt64
  public var blocks: UInt64
  public var free: UInt64
  public var available: UInt64
  public var longestName: UInt64

  public init(blockSize: UInt64, blocks: UInt64, free: UInt64, available: UInt64, longestName: UInt64) {
    self.blockSize = blockSize
    self.blocks = blocks
    self.free = free
    self.available = available
    self.longestName = longestName
  }
}
