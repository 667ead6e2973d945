/// What was purged and whose contents may still be in the library's file: some program had it open then, or the process
/// ended before they were freed.
struct PurgedContents {
  /// Under which the store keeps that there may be such contents, for the next process.
  static let setting = "purged"

  /// How many changes purged something.
  private(set) var count = 0
  /// Whether all of it is freed.
  private(set) var isFreed: Bool
  /// Whether whoever purged it has left some of it to upkeep. What cannot be freed is left to the next purge, or to the
  /// next process.
  private(set) var isWaiting: Bool
  /// The inodes that a program had open when they were erased.
  private var open: Set<Int64> = []

  /// - Parameter isFreed: what an earlier process left.
  init(isFreed: Bool) { (self.isFreed, isWaiting) = (isFreed, !isFreed) }

  mutating func note() {
    count += 1
    isFreed = false
  }

  mutating func noteOpen(_ ino: Int64) { open.insert(ino) }

  /// Notes whether upkeep is to free what is left.
  mutating func wait(_ isWaiting: Bool) { self.isWaiting = isWaiting }

  /// Notes that all is freed that the first `count` changes purged.
  ///
  /// - Returns: whether nothing was purged since.
  mutating func free(upTo count: Int) -> Bool {
    if self.count == count { (isFreed, isWaiting) = (true, false) }
    return isFreed
  }

  /// Whether a program still has some of it open, as `isOpen` says of an inode.
  mutating func isHeld(_ isOpen: (Int64) -> Bool) -> Bool {
    open = open.filter(isOpen)
    return !open.isEmpty
  }
}
