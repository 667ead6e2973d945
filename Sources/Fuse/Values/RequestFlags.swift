import Glibc

/// The flags of renameat2(2).
package struct RenameFlags: OptionSet, Hashable, Sendable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  /// `RENAME_NOREPLACE`: fails with EEXIST where the new name is taken.
  package static let noReplace = RenameFlags(rawValue: 1)
  /// `RENAME_EXCHANGE`: both names exist and change places.
  package static let exchange = RenameFlags(rawValue: 2)
  /// `RENAME_WHITEOUT`: leaves a whiteout in the old place (overlayfs).
  package static let whiteout = RenameFlags(rawValue: 4)
}

/// The access that access(2) asks for; the empty set (`F_OK`) asks whether there is such a file.
package struct AccessMode: OptionSet, Hashable, Sendable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  /// `R_OK`.
  package static let read = AccessMode(rawValue: Glibc.R_OK)
  /// `W_OK`.
  package static let write = AccessMode(rawValue: Glibc.W_OK)
  /// `X_OK`: executing a file, searching a directory.
  package static let execute = AccessMode(rawValue: Glibc.X_OK)
}

/// The flags of setxattr(2).
package struct XattrFlags: OptionSet, Hashable, Sendable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  /// `XATTR_CREATE`: fails with EEXIST where the attribute exists.
  package static let create = XattrFlags(rawValue: 1)
  /// `XATTR_REPLACE`: fails with ENODATA where the attribute does not exist.
  package static let replace = XattrFlags(rawValue: 2)
}

/// The mode of fallocate(2).
package struct FallocateMode: OptionSet, Hashable, Sendable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  /// `FALLOC_FL_KEEP_SIZE`.
  package static let keepSize = FallocateMode(rawValue: 0x01)
  /// `FALLOC_FL_PUNCH_HOLE`.
  package static let punchHole = FallocateMode(rawValue: 0x02)
  /// `FALLOC_FL_ZERO_RANGE`.
  package static let zeroRange = FallocateMode(rawValue: 0x10)
}

/// The origin of an lseek(2); only these two reach the file system, the kernel answers the others.
package struct Whence: Hashable, Sendable, RawRepresentable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  /// `SEEK_DATA`: the first data at or after the offset.
  package static let data = Whence(rawValue: 3)
  /// `SEEK_HOLE`: the first hole at or after the offset, the end of the file being one.
  package static let hole = Whence(rawValue: 4)
}

/// The origin of a write.
package struct WriteOrigin: Hashable, Sendable {
  /// The kernel writes back a page of a shared mapping: the caller is nobody (pid 0), and the handle is any handle that
  /// is open for writing.
  package let isWriteBack: Bool
  /// The flags of the open file description.
  package let openFlags: OpenFlags

  package init(isWriteBack: Bool, openFlags: OpenFlags) {
    self.isWriteBack = isWriteBack
    self.openFlags = openFlags
  }
}
