/// Which names items get while a tree is looked at that is about to be another account's.
///
/// The tree is read beside the lock. What is made meanwhile has a number above those that were given before. What had a
/// number and got a name is here.
struct TransferWatch {
  /// A name that an inode got, in a folder.
  struct Move {
    let ino: Int64
    let folder: Int64
  }

  /// Names that are kept; a tree is looked at anew where there were more.
  private static let limit = 512

  /// Nil while nobody watches, and once there were too many.
  private var moves: [Move]?
  /// Whether rows are yet to follow a tree that was given away.
  private(set) var isPending = false

  mutating func begin() { moves = [] }

  mutating func end() { moves = nil }

  mutating func note(_ change: LibraryChange) {
    if moves == nil { return }
    switch change {
    case .made(let inode): note(inode.ino, in: inode.place)
    case .renamed(let inode, let place, let replaced, let exchanged):
      note(inode.ino, in: place)
      if exchanged, let replaced { note(replaced.ino, in: inode.place) }
    default: break
    }
  }

  private mutating func note(_ ino: Int64, in place: LibraryPlace) {
    guard case .inode(let folder) = place.folder else { return }
    if moves?.count == Self.limit { moves = nil }
    moves?.append(Move(ino: ino, folder: folder))
  }

  /// Takes the names that were noted since the last time; nil where there were too many.
  mutating func take() -> [Move]? {
    defer { if moves != nil { moves = [] } }
    return moves
  }

  mutating func note(isPending: Bool) { self.isPending = isPending }
}
