import Crypto
package import SheafWire

/// A version that is not based on the current one, as a decision meets it.
package struct SaveConflict: Hashable, Sendable {
  package let item: WireID
  package let sent: WireID
  /// What its author saw: another version of the item.
  package let base: WireID
  package let current: WireID
}

/// What the hub made of a conflict before it took the zone. It counts as long as `current` is the current version.
package struct PreparedMerge: Hashable, Sendable {
  package let item: WireID
  package let current: WireID
  /// The version that it will be.
  package let version: WireID
  package let digest: [UInt8]
  package let size: Int64

  package init(of conflict: SaveConflict, _ manifest: Manifest) {
    item = conflict.item
    current = conflict.current
    version = Self.version(of: conflict.sent, and: conflict.current)
    digest = manifest.digest
    size = manifest.size
  }

  /// The id of the version that merges two: the same for the same two, so that its parents can be told by it.
  static func version(of sent: WireID, and current: WireID) -> WireID {
    WireID(hashOf: Array("merge".utf8) + sent.bytes + current.bytes)
  }
}

extension WireID {
  /// An id made from bytes, the same for the same ones (RFC 9562, version 8).
  init(hashOf bytes: [UInt8]) {
    var hash = Array(SHA256.hash(data: bytes).prefix(16))
    hash[6] = hash[6] & 0x0F | 0x80
    hash[8] = hash[8] & 0x3F | 0x80
    guard let id = WireID(bytes: hash) else { fatalError("an id has 16 bytes") }
    self = id
  }
}
