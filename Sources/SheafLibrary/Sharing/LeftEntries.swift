import SheafModel

/// Documents whose entries of `Shared/OWNER` a program took away just now, bounded (rule 6 of ``LeftEntry``).
struct LeftEntries {
  private static let limit = 1024

  private var entries: [LeftEntry.Name: LeftEntry] = [:]

  var isEmpty: Bool { entries.isEmpty }

  subscript(name: LeftEntry.Name) -> LeftEntry? { entries[name] }

  mutating func insert(_ left: LeftEntry, _ name: LeftEntry.Name, at time: Timestamp) {
    if entries.count >= Self.limit {
      entries = entries.filter { !$0.value.isOver(at: time) }
      if entries.count >= Self.limit { entries = [:] }
    }
    entries[name] = left
  }

  mutating func remove(_ name: LeftEntry.Name) { entries[name] = nil }

  /// Removes what an account left of the share of an item.
  mutating func remove(of account: Int64, _ item: Int64) {
    if entries.isEmpty { return }
    entries = entries.filter { $0.key.account != account || $0.value.share.item != item }
  }

  /// The entry of the share of an item that an account left, and can still undo.
  func first(of account: Int64, _ item: Int64, at time: Timestamp) -> LeftEntry? {
    entries.first { $0.key.account == account && $0.value.share.item == item && !$0.value.isOver(at: time) }?.value
  }

  /// The names in `Shared/OWNER` that an account left.
  func names(of account: Int64, owner: Int64) -> [LeftEntry.Name] {
    entries.keys.filter { $0.account == account && $0.owner == owner }
  }
}
