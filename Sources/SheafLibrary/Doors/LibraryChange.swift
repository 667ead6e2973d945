package import SheafModel

/// A change through a door, for the kernels of the other doors: for their caches, and for programs that watch there.
package enum LibraryChange: Hashable, Sendable {
  /// Data and attributes of an inode.
  case contents(Int64)
  /// As `contents`, by another account, which has saved: readers get that from now on.
  case saved(Int64)
  /// Bytes of an inode are about to change: what other kernels have of them, changed by mappings, is to come before.
  case overwriting(Int64, Range<Int64>)
  /// A file that was open for writing was closed.
  case closed(Int64)
  /// Somebody set attributes of an inode.
  case attributes(Int64)
  /// Attributes of an inode are shown as others though nobody set them.
  case appearance(Int64)
  /// Inodes became another account's.
  case givenAway(Set<Int64>)
  /// A folder got a name.
  case made(NamedInode)
  /// A folder lost a name.
  case removed(NamedInode)
  /// A name became another one, which led to `replaced` before; where the two were exchanged, the first leads there
  /// now.
  case renamed(NamedInode, to: LibraryPlace, replaced: NamedInode?, exchanged: Bool)
  /// A folder of the account's `Shared` came or went.
  case sharedOwner(SharedOwner)
  /// The account may see or do something else in what others share.
  case access
}

extension LibraryChange {
  /// The inode of a change that is of one, not of a name.
  var ino: Int64? {
    switch self {
    case .contents(let ino), .saved(let ino), .overwriting(let ino, _), .closed(let ino), .attributes(let ino),
      .appearance(let ino):
      ino
    case .givenAway, .made, .removed, .renamed, .sharedOwner, .access: nil
    }
  }
}

/// A folder of `Shared`, of the account that is told.
package struct SharedOwner: Hashable, Sendable {
  package let account: Int64
  package let handle: AccountHandle
  /// Whether it came; it went where not.
  package let isThere: Bool
}

/// A name in a folder.
package struct LibraryPlace: Hashable, Sendable {
  package enum Folder: Hashable, Sendable {
    /// 0 for the root of a mount.
    case inode(Int64)
    /// `Shared/OWNER` of the account that is told.
    case shared(owner: Int64)
  }

  package let folder: Folder
  package let name: [UInt8]
}

/// An inode under one of its names.
package struct NamedInode: Hashable, Sendable {
  package let ino: Int64
  /// `st_mode` of it: the type of what is gone is known from here alone.
  package let mode: UInt32
  package let place: LibraryPlace

  init(ino: Int64, mode: UInt32, place: LibraryPlace) {
    self.ino = ino
    self.mode = mode
    self.place = place
  }

  init(_ inode: Inode, _ parent: Int64, _ name: [UInt8]) {
    self.init(ino: inode.ino, mode: inode.row.mode, place: LibraryPlace(folder: .inode(parent), name: name))
  }
}

/// A change in the form for a door.
package struct LibraryNews: Hashable, Sendable {
  package let change: LibraryChange
  /// Where the inode was that the change is of; nil where it had no name, and for changes that say it themselves.
  package let subject: NamedInode?
}
