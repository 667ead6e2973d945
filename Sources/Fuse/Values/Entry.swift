import CFuse

/// The node that a name leads to, and for how long the kernel may remember both.
///
/// The corresponding C type is `struct fuse_entry_param`. Each entry given (but a negative one) adds one to the node's
/// lookup count, which the kernel gives back with forget.
package struct Entry: Hashable, Sendable {
  /// The node, or ``NodeID/none`` for a name known not to exist.
  package var node: NodeID
  /// Tells nodes of the same number apart for as long as the mount lives (NFS export).
  package var generation: UInt64
  package var attributes: FileAttributes
  /// For how many seconds the kernel may keep the name.
  package var entryTimeout: Double
  /// For how many seconds the kernel may keep the attributes.
  package var attributeTimeout: Double

  package init(
    node: NodeID, generation: UInt64 = 0, attributes: FileAttributes, entryTimeout: Double = 0,
    attributeTimeout: Double = 0
  ) {
    self.node = node
    self.generation = generation
    self.attributes = attributes
    self.entryTimeout = entryTimeout
    self.attributeTimeout = attributeTimeout
  }

  /// A time-out that never ends in practice (30 years).
  package static let forever: Double = 1e9

  /// A name that does not exist, which the kernel may remember for a time.
  package static func negative(timeout: Double) -> Entry {
    Entry(node: .none, attributes: FileAttributes(node: .none, mode: 0), entryTimeout: timeout)
  }
}

extension Entry {
  var parameters: fuse_entry_param {
    var parameters = fuse_entry_param()
    parameters.ino = node.rawValue
    parameters.generation = generation
    parameters.attr = attributes.stat
    parameters.entry_timeout = entryTimeout
    parameters.attr_timeout = attributeTimeout
    return parameters
  }
}
