import SheafStore

/// A tree that is about to be another account's, as it was found beside the lock and brought up to the present since.
struct TransferredTree {
  let top: Int64
  private(set) var inos: Set<Int64> = []
  private(set) var items: Set<Int64> = []
  /// The highest number of the inodes that were looked at one by one.
  private(set) var last: Int64
  /// That number when the tree was found.
  private let begin: Int64

  /// - Parameter last: the highest number of an inode before the tree was looked at.
  init(top: Int64, _ members: [TreeMember], after last: Int64) {
    (self.top, self.last, begin) = (top, last, last)
    for member in members { insert(member) }
  }

  private mutating func insert(_ member: TreeMember) {
    inos.insert(member.ino)
    if let item = member.item { items.insert(item) }
  }

  /// Whether a name that an inode got leaves the tree what it was found to be: what was in it is in it, and nothing
  /// else is.
  func holds(_ move: TransferWatch.Move) -> Bool {
    // The place of the top is looked at last, and what is new when its turn comes.
    if move.ino == top || move.ino > last { return true }
    let isInside = inos.contains(move.folder)
    // A new folder may turn out to be in the tree.
    return isInside == inos.contains(move.ino) && (isInside || move.folder <= last)
  }

  /// Adds those of new inodes that are in the tree, in the order of their numbers; returns whether it is certain which
  /// ones are.
  mutating func add(_ members: [TreeMember]) -> Bool {
    for member in members {
      last = member.ino
      // The folder is newer than what came to lie in it; another name may lie in any folder.
      if member.hasLinks || member.parent > member.ino && member.parent > begin { return false }
      if inos.contains(member.parent) {
        insert(member)
      } else {
        inos.remove(member.ino)
        if let item = member.item { items.remove(item) }
      }
    }
    return true
  }
}

/// A tree that was given away, with what is yet to follow.
struct PendingTransfer {
  /// Inodes, and items, that one transaction has follow.
  private static let step = 32

  let change: OwnerChange
  private var inos: ArraySlice<Int64>
  private var items: ArraySlice<Int64>

  init(_ change: OwnerChange, inos: [Int64], items: [Int64]) {
    (self.change, self.inos, self.items) = (change, inos[...], items[...])
  }

  var next: (inos: ArraySlice<Int64>, items: ArraySlice<Int64>) { (inos.prefix(Self.step), items.prefix(Self.step)) }

  /// Whether nothing follows what is next.
  var isLast: Bool { max(inos.count, items.count) <= Self.step }

  mutating func removeNext() {
    inos = inos.dropFirst(Self.step)
    items = items.dropFirst(Self.step)
  }
}
