/// The inodes that are in memory, bounded (rule 7 of docs/ARCHITECTURE.md): of those that nobody uses the ones go that
/// were used longest ago.
struct InodeTable {
  /// Inodes kept in memory that nobody uses.
  static let limit = 16_384

  private var inodes: [Int64: Inode] = [:]
  private var useCount: UInt64 = 0
  /// Inodes in memory at which those that nobody uses are let go: never less than twice of what stayed last time, so
  /// that many inodes in use do not have every look-up go through them all.
  private var evictionLimit = InodeTable.limit
  /// Inodes to let go, with each that comes some of them, unless they were used after `oldest`.
  private var evicted: [Int64] = []
  private var oldest: UInt64 = 0
  private static let evictedAtOnce = 32
  /// What was read while a change is made, and is not so if that fails: inodes, and inodes whose items were read.
  private var readNow: (inodes: [Int64], items: [Inode]) = ([], [])
  private var isChanging = false

  /// The inode of a number, where it is in memory.
  subscript(ino: Int64) -> Inode? { inodes[ino] }

  /// All that are in memory.
  var all: some Collection<Inode> { inodes.values }

  /// The inode of a number, where it is in memory, for someone who uses it now.
  mutating func use(_ ino: Int64) -> Inode? {
    useCount += 1
    guard let inode = inodes[ino] else { return nil }
    inode.used = useCount
    return inode
  }

  @discardableResult
  mutating func insert(_ inode: Inode) -> Inode {
    inode.used = useCount
    inodes[inode.ino] = inode
    if !evicted.isEmpty {
      evictSome()
    } else if inodes.count > evictionLimit {
      oldest = useCount - min(useCount, UInt64(Self.limit / 2))
      evicted = inodes.values.lazy.filter { [oldest] in !$0.isPinned && $0.used <= oldest }.map(\.ino)
      evictionLimit = max(Self.limit, (inodes.count - evicted.count) * 2)
    }
    return inode
  }

  /// Lets go of some of those that are chosen, unless somebody used them since: to free all at once takes long.
  private mutating func evictSome() {
    for ino in evicted.suffix(Self.evictedAtOnce) {
      if let inode = inodes[ino], !inode.isPinned, inode.used <= oldest { inodes[ino] = nil }
    }
    evicted.removeLast(min(evicted.count, Self.evictedAtOnce))
  }

  /// Adds an inode whose row was read.
  mutating func insert(read inode: Inode) -> Inode {
    if isChanging { readNow.inodes.append(inode.ino) }
    return insert(inode)
  }

  /// Notes that the item of an inode was read.
  mutating func noteItemRead(of inode: Inode) {
    if isChanging { readNow.items.append(inode) }
  }

  /// Notes that a change begins, which may read what it has written.
  mutating func beginChange() { isChanging = true }

  /// Notes that the change is over.
  ///
  /// - Parameter isRecorded: whether what it read is so.
  mutating func endChange(isRecorded: Bool) {
    isChanging = false
    if readNow.inodes.isEmpty, readNow.items.isEmpty { return }
    if !isRecorded {
      for ino in readNow.inodes { inodes[ino] = nil }
      for inode in readNow.items { inode.item = nil }
    }
    readNow = ([], [])
  }

  mutating func remove(_ ino: Int64) { inodes[ino] = nil }

  /// Removes the inodes without a row that nobody has open.
  mutating func removeClosedOrphans() { inodes = inodes.filter { !$0.value.isOrphan || $0.value.openCount > 0 } }
}
