import SheafWire

/// What people are told of an item.
struct ItemNotice: Hashable, Sendable {
  let item: WireID
  /// A sentence of which the item is the subject.
  let text: String
  /// The document that the hub put beside the item, if the notice tells of that: it ends once people decided about it.
  var copy: WireID?
}

/// The latest notices for people, each once.
struct NoticeList: Sendable {
  private static let limit = 20

  /// The latest last.
  private(set) var notices: [ItemNotice] = []

  /// Adds a notice, or moves an equal one to the end.
  ///
  /// - Returns: whether there was none like it.
  mutating func add(_ notice: ItemNotice) -> Bool {
    let isNew = !notices.contains(notice)
    notices = Array((notices.filter { $0 != notice } + [notice]).suffix(Self.limit))
    return isNew
  }
}
