import SheafStore

/// The inodes that are in memory, bounded (rule 7 of docs/ARCHITECTURE.md): of those that nobody uses the ones go that
/// were used longest ago.
///
/// When a tree becomes another account's, all its inodes do at once, though each one changes when somebody looks it up
/// (``give(_:)``): to change them all takes long.
struct InodeTable {
  /// Inodes kept in memory that nobody uses.
  static let limit = 16_384

  private var inodes = SegmentedDictionary<Int64, Inode>()
  /// How many inodes were looked up.
  private(set) var useCount: UInt64 = 0
  /// The segment of which those that nobody uses are let go next.
  private var nextSegment = 0
  /// Inodes that are read before that, so that many inodes in use do not make each read search a segment for nothing.
  private var pause = 0
  /// Rows that were read while a change is made, and that are wrong if it fails: inodes, and inodes whose items were
  /// read.
  private var readNow: (inodes: [Int64], items: [Inode]) = ([], [])
  private var isChanging = false
  /// A tree of which inodes may still be the former owner's.
  private var given: GivenTree?

  /// The inode of a number, where it is in memory.
  subscript(ino: Int64) -> Inode? {
    guard let inode = inodes[ino] else { return nil }
    if let given { inode.follow(given) }
    return inode
  }

  /// All that are in memory. Whose they are is to be asked of those that are looked up by number.
  var all: some Collection<Inode> { inodes.values }

  /// The inode of a number, where it is in memory, for someone who uses it now.
  mutating func use(_ ino: Int64) -> Inode? {
    useCount += 1
    guard let inode = self[ino] else { return nil }
    inode.used = useCount
    return inode
  }

  @discardableResult
  mutating func insert(_ inode: Inode) -> Inode {
    inode.used = useCount
    inodes[inode.ino] = inode
    if pause > 0 { pause -= 1 } else if inodes.count > Self.limit { evictSome() }
    return inode
  }

  /// Lets go of those in one segment that nobody has used for long: to go through all at once takes long.
  private mutating func evictSome() {
    let oldest = useCount - min(useCount, UInt64(Self.limit / 2))
    let count = inodes.count
    let left = inodes.removeAll(inSegment: nextSegment) { !$0.isPinned && $0.used <= oldest }
    nextSegment = (nextSegment + 1) % SegmentedDictionary<Int64, Inode>.segmentCount
    if (count - inodes.count) * 8 < left { pause = left }
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

  /// Has the inodes of a tree be another account's from now on; nil once all of them were looked up.
  mutating func give(_ tree: GivenTree?) { given = tree }

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
  mutating func removeClosedOrphans() { inodes.removeAll { $0.isOrphan && $0.openCount == 0 } }
}
