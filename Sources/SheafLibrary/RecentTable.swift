/// A table that remembers what was noted last, `limit` entries at most.
///
/// When it is full it forgets only the older half, so that a program finds what was noted just before.
struct RecentTable<Key: Hashable, Value> {
  private let limit: Int
  private var newer: [Key: Value] = [:]
  private var older: [Key: Value] = [:]

  init(limit: Int) { self.limit = limit }

  subscript(key: Key) -> Value? { newer[key] ?? older[key] }

  mutating func note(_ key: Key, _ value: Value) {
    if newer.count >= limit / 2 { (older, newer) = (newer, [:]) }
    newer[key] = value
  }

  mutating func removeAll() { (newer, older) = ([:], [:]) }
}
