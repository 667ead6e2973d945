/// What the mounts of accounts were last shown in `Shared/OWNER`, so that they can be told what changes there.
struct ShownEntries {
  /// An account and one of those who share with it.
  struct Pair: Hashable {
    let account: Int64
    let owner: Int64
  }

  /// A change of entries that a mount's own kernel made, and knows of.
  struct Change {
    let account: Int64
    let door: Int
    let names: [[UInt8]]
  }

  private var entries: [Pair: [SharedEntry]] = [:]
  /// Whether entries may be others than those last shown.
  private(set) var areStale = false
  /// The change that the running operation makes, where a mount's kernel asked for it.
  private var change: Change?

  /// The pairs that something was shown of.
  var pairs: Set<Pair> { Set(entries.keys) }

  /// The entries as they were last shown.
  subscript(pair: Pair) -> [SharedEntry]? {
    get { entries[pair] }
    set { entries[pair] = newValue }
  }

  /// Notes that entries may be others than those last shown.
  mutating func markStale() { areStale = true }

  /// Whether entries may be others than those last shown; they count as shown from here on.
  mutating func takeStale() -> Bool {
    defer { areStale = false }
    return areStale
  }

  /// Notes the change that the running operation makes for a mount's kernel.
  mutating func begin(_ change: Change) { self.change = change }

  /// Forgets the change, as the operation ends.
  mutating func endChange() { change = nil }

  /// The door whose kernel knows that these names of an account's entries change, since it asked for that; 0 for none.
  func door(of account: Int64, changing names: [[UInt8]]) -> Int {
    guard let change, change.account == account, names.allSatisfy(change.names.contains) else { return 0 }
    return change.door
  }
}
