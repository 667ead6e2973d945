import Fuse

/// The meaning of a node's number, which needs no table but for folders as they were (rule 7 of docs/ARCHITECTURE.md).
enum Node: Hashable {
  /// The mount point itself: `Documents` and `Shared`.
  case root
  /// `Shared`.
  case shared
  /// `Shared/OWNER` of an account that shares something with the mount's account.
  case sharedOwner(Int64)
  /// The stand-in for `Shared/OWNER`, once that is gone, whose removal a loopback caller repeats: the folder itself may
  /// come back, and must not be dead then.
  case formerOwner(Int64)
  /// An inode of the library, under its own number.
  case inode(Int64)
  /// `.versions` of a folder.
  case versions(of: Int64)
  /// A document's folder below `.versions`.
  case versionFolder(item: Int64)
  /// A version as a file.
  case versionFile(item: Int64, number: Int64)
  /// A folder as it was, by its number in ``PastFolders``.
  case pastFolder(Int64)
  /// A symbolic link that was in a folder.
  case pastLink(ino: Int64)
  /// `.deleted` of a folder.
  case trash(of: Int64)
  /// A deleted inode, as `.deleted` shows it. It is another node than the inode that it was, and that it may be again:
  /// to a kernel that one may be dead, and its pages may be those of a program that still writes to it.
  case deleted(Int64)

  /// The top four bits tell the kind; a version's file has 36 bits of item and 24 bits of number below them.
  private static let kindShift: UInt64 = 60
  private static let numberBits: UInt64 = 24

  init(_ id: NodeID) {
    let value = id.rawValue & (1 << Self.kindShift - 1)
    self =
      switch id.rawValue >> Self.kindShift {
      case 1: .versions(of: Int64(value))
      case 2: .versionFolder(item: Int64(value))
      case 4: .sharedOwner(Int64(value))
      case 5: .formerOwner(Int64(value))
      case 6: .pastFolder(Int64(value))
      case 7: .pastLink(ino: Int64(value))
      case 8: .trash(of: Int64(value))
      case 9: .deleted(Int64(value))
      case 3: .versionFile(item: Int64(value >> Self.numberBits), number: Int64(value & (1 << Self.numberBits - 1)))
      default:
        switch value {
        case 1: .root
        case 2: .shared
        default: .inode(Int64(value))
        }
      }
  }

  var id: NodeID {
    switch self {
    case .root: .root
    case .shared: NodeID(rawValue: 2)
    case .sharedOwner(let account): NodeID(rawValue: 4 << Self.kindShift | UInt64(account))
    case .formerOwner(let account): NodeID(rawValue: 5 << Self.kindShift | UInt64(account))
    case .inode(let ino): NodeID(rawValue: UInt64(ino))
    case .trash(let ino): NodeID(rawValue: 8 << Self.kindShift | UInt64(ino))
    case .deleted(let ino): NodeID(rawValue: 9 << Self.kindShift | UInt64(ino))
    case .versions(let ino): NodeID(rawValue: 1 << Self.kindShift | UInt64(ino))
    case .versionFolder(let item): NodeID(rawValue: 2 << Self.kindShift | UInt64(item))
    case .pastFolder(let number): NodeID(rawValue: 6 << Self.kindShift | UInt64(number))
    case .pastLink(let ino): NodeID(rawValue: 7 << Self.kindShift | UInt64(ino))
    case .versionFile(let item, let number):
      NodeID(rawValue: 3 << Self.kindShift | UInt64(item) << Self.numberBits | UInt64(number))
    }
  }

  /// The library's inode; nil for nodes that Sheaf makes up, which nobody can change.
  var ino: Int64? { if case .inode(let ino) = self { ino } else { nil } }

  /// The folder from which this node shows what was deleted; nil where it shows nothing of the kind.
  var trashFolder: Int64? {
    switch self {
    case .trash(let ino), .deleted(let ino): ino
    default: nil
    }
  }
}
