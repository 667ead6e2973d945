import Glibc

/// The size and limits of a file system, as statvfs(3) tells them.
///
/// The corresponding C type is `struct statvfs`.
package struct StatFS: Hashable, Sendable {
  package var blockSize: UInt64
  package var fragmentSize: UInt64
  /// Size, in units of ``fragmentSize``.
  package var blocks: UInt64
  package var freeBlocks: UInt64
  /// Free blocks for those who are not root.
  package var availableBlocks: UInt64
  package var files: UInt64
  package var freeFiles: UInt64
  package var maximumNameLength: UInt64

  package init(
    blockSize: UInt64 = 4096, fragmentSize: UInt64 = 4096, blocks: UInt64, freeBlocks: UInt64, availableBlocks: UInt64,
    files: UInt64, freeFiles: UInt64, maximumNameLength: UInt64 = 255
  ) {
    self.blockSize = blockSize
    self.fragmentSize = fragmentSize
    self.blocks = blocks
    self.freeBlocks = freeBlocks
    self.availableBlocks = availableBlocks
    self.files = files
    self.freeFiles = freeFiles
    self.maximumNameLength = maximumNameLength
  }
}

extension StatFS {
  var statvfs: statvfs {
    var status = Glibc.statvfs()
    status.f_bsize = .init(blockSize)
    status.f_frsize = .init(fragmentSize)
    status.f_blocks = .init(blocks)
    status.f_bfree = .init(freeBlocks)
    status.f_bavail = .init(availableBlocks)
    status.f_files = .init(files)
    status.f_ffree = .init(freeFiles)
    status.f_favail = .init(freeFiles)
    status.f_namemax = .init(maximumNameLength)
    return status
  }
}
