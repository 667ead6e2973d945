package import SheafModel

/// The attributes of an inode in the answer of stat(2).
package struct Attributes: Hashable, Sendable {
  package let ino: Int64
  package let mode: UInt32
  package let nlink: Int64
  package let uid: UInt32
  package let gid: UInt32
  package let rdev: UInt64
  /// Bytes.
  package let size: Int64
  /// Units of 512 bytes.
  package let blocks: Int64
  package let atime: Timestamp
  package let mtime: Timestamp
  package let ctime: Timestamp
  /// Whether another account than that which asks owns it.
  package let isForeign: Bool
}
