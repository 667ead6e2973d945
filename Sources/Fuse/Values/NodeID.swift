/// The number by which the kernel knows a file for as long as it remembers it.
///
/// The corresponding C type is `fuse_ino_t`. The file system chooses it in the entry that it gives; 0 stands for none.
package struct NodeID: Hashable, Sendable, RawRepresentable {
  package let rawValue: UInt64

  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// The mount's root, which the kernel knows from the start (`FUSE_ROOT_ID`).
  package static let root = NodeID(rawValue: 1)
  /// No node: in an entry, a name that does not exist and may be remembered as such.
  package static let none = NodeID(rawValue: 0)
}

extension NodeID: CustomStringConvertible {
  package var description: String { "node \(rawValue)" }
}

/// The number that the file system gave an open file description or directory stream.
///
/// The corresponding C member is `fuse_file_info.fh`.
package struct FileHandle: Hashable, Sendable, RawRepresentable {
  package let rawValue: UInt64

  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }
}

/// A node that the kernel forgets, and how many of its references it gives back.
///
/// The corresponding C type is `struct fuse_forget_data`.
package struct Forgotten: Hashable, Sendable {
  package let node: NodeID
  /// How many successful entries of this node the kernel returns (lookup, create, mknod, mkdir, symlink, link,
  /// and each entry of readdirplus but `.` and `..` count one).
  package let count: UInt64

  package init(node: NodeID, count: UInt64) {
    self.node = node
    self.count = count
  }
}
