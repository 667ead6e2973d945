import Glibc

/// A file's attributes, as stat(2) tells them.
///
/// The corresponding C type is `struct stat`.
package struct FileAttributes: Hashable, Sendable {
  /// The number that `st_ino` shows.
  package var node: NodeID
  /// The file's type and permission bits (`st_mode`; inode(7)).
  package var mode: UInt32
  package var linkCount: UInt32
  package var uid: UInt32
  package var gid: UInt32
  /// The device that a device node stands for (`st_rdev`).
  package var device: UInt64
  package var size: Int64
  /// Blocks of 512 bytes (`st_blocks`).
  package var blocks: UInt64
  /// The preferred size of a read or write (`st_blksize`).
  package var blockSize: UInt32
  package var accessTime: TimeSpec
  package var modificationTime: TimeSpec
  package var changeTime: TimeSpec

  package init(
    node: NodeID, mode: UInt32, linkCount: UInt32 = 1, uid: UInt32 = 0, gid: UInt32 = 0, device: UInt64 = 0,
    size: Int64 = 0, blocks: UInt64 = 0, blockSize: UInt32 = 4096, accessTime: TimeSpec = TimeSpec(seconds: 0),
    modificationTime: TimeSpec = TimeSpec(seconds: 0), changeTime: TimeSpec = TimeSpec(seconds: 0)
  ) {
    self.node = node
    self.mode = mode
    self.linkCount = linkCount
    self.uid = uid
    self.gid = gid
    self.device = device
    self.size = size
    self.blocks = blocks
    self.blockSize = blockSize
    self.accessTime = accessTime
    self.modificationTime = modificationTime
    self.changeTime = changeTime
  }
}

extension FileAttributes {
  var stat: stat {
    var status = Glibc.stat()
    status.st_ino = .init(node.rawValue)
    status.st_mode = mode
    status.st_nlink = .init(linkCount)
    status.st_uid = uid
    status.st_gid = gid
    status.st_rdev = .init(device)
    status.st_size = .init(size)
    status.st_blocks = .init(clamping: blocks)
    status.st_blksize = .init(blockSize)
    status.st_atim = accessTime.timespec
    status.st_mtim = modificationTime.timespec
    status.st_ctim = changeTime.timespec
    return status
  }
}
