import SheafWire

/// What does not fit on the disk of this machine, until it does.
struct LackingRoom: Sendable {
  private static let limit = 20

  private var lacking: [WireID: (text: String, attempt: Int)] = [:]

  var isEmpty: Bool { lacking.isEmpty }

  /// What people are told, in the order of the items' ids.
  var notices: [ItemNotice] {
    lacking.sorted { $0.key < $1.key }.map { ItemNotice(item: $0.key, text: $0.value.text) }
  }

  /// Notes what an item lacks, unless many do already.
  ///
  /// - Parameter attempt: The attempt to get all that is to come, in which it did not fit.
  /// - Returns: whether people were not told this before.
  mutating func note(_ notice: ItemNotice, in attempt: Int) -> Bool {
    let former = lacking[notice.item]
    guard former != nil || lacking.count < Self.limit else { return false }
    lacking[notice.item] = (notice.text, attempt)
    return former?.text != notice.text
  }

  /// Notes that an item has what it lacked.
  mutating func remove(_ item: WireID) { lacking[item] = nil }

  /// Forgets what was not missed any more in an attempt that came to its end: it went, or is not to come now.
  mutating func end(_ attempt: Int) { lacking = lacking.filter { $0.value.attempt >= attempt } }
}
