/// The inodes whose access times wait to be stored, bounded (rule 7 of docs/ARCHITECTURE.md).
struct UnstoredAccessTimes {
  private var inodes: [Int64: Inode] = [:]

  var isEmpty: Bool { inodes.isEmpty }

  /// Notes that the access time of an inode is to be stored; false where it waits already, and where there are too
  /// many: if they cannot be stored, reading on must not fill the memory.
  mutating func insert(_ inode: Inode) -> Bool {
    guard !inode.hasNewAccessTime, inodes.count < InodeTable.limit else { return false }
    inode.hasNewAccessTime = true
    inodes[inode.ino] = inode
    return true
  }

  /// Some of them.
  func prefix(_ count: Int) -> [Inode] { Array(inodes.values.prefix(count)) }

  /// Notes that the access times of these inodes are stored.
  mutating func remove(_ stored: [Inode]) {
    for inode in stored {
      inode.hasNewAccessTime = false
      inodes[inode.ino] = nil
    }
  }
}
