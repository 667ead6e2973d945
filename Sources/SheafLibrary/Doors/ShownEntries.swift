/// The entries of `Shared/OWNER` that mounts of accounts were last shown, so that the library can tell them of changes
/// there.
struct ShownEntries {
  /// A change of entries that a mount's own kernel made, and knows of.
  struct Change {
    let account: Int64
    let door: Int
    let names: [[UInt8]]
  }

  private var entries: [SharedFolder: [SharedEntry]] = [:]
  /// The change that the running operation makes, where a mount's kernel asked for it.
  private var change: Change?

  /// The entries of a folder as they were last shown.
  subscript(folder: SharedFolder) -> [SharedEntry]? {
    get { entries[folder] }
    set { entries[folder] = newValue }
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
