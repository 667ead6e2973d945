import SheafWire

/// What tells two changes with the same number apart: one was lost with the store that had it, as when an older copy
/// takes the store's place or a standby that lagged behind, and the other one was made since.
///
/// Each transaction that changes a zone gives the number that it ends at a random id. A feed of a share does so for each
/// of its numbers.
struct ChangeID: Hashable, Sendable {
  static let length = 8
  /// Of the beginning, and of what an older program wrote.
  static let none = ChangeID(bytes: [UInt8](repeating: 0, count: length))

  let bytes: [UInt8]

  static func random() -> ChangeID { ChangeID(bytes: Array(WireID().bytes.suffix(length))) }
}
