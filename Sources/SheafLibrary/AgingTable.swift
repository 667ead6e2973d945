/// A table that knows the order in which its entries came.
///
/// Adding, renewing and removing an entry cost the same however many there are.
struct AgingTable<Key: Hashable, Value> {
  private struct Entry {
    let key: Key
    var value: Value
    /// The places of the entries that came just before and just after.
    var older: Int?
    var newer: Int?
  }

  private var places = SegmentedDictionary<Key, Int>()
  private var entries: [Entry?] = []
  private var freePlaces: [Int] = []
  private var oldest: Int?
  private var newest: Int?

  var count: Int { places.count }
  var isEmpty: Bool { places.isEmpty }
  var oldestKey: Key? { oldest.flatMap { entries[$0]?.key } }

  /// The value of a key. One that is set where there is one keeps that one's age.
  subscript(key: Key) -> Value? {
    get { places[key].flatMap { entries[$0]?.value } }
    set {
      guard let newValue else { return remove(key) }
      if let place = places[key] { entries[place]?.value = newValue } else { append(key, newValue) }
    }
  }

  /// Adds an entry as the newest, in place of one of the same key.
  mutating func append(_ key: Key, _ value: Value) {
    remove(key)
    let place = freePlaces.popLast() ?? entries.count
    if place == entries.count { entries.append(nil) }
    entries[place] = Entry(key: key, value: value, older: newest)
    if let newest { entries[newest]?.newer = place } else { oldest = place }
    newest = place
    places[key] = place
  }

  /// Makes an entry the newest.
  mutating func renew(_ key: Key) {
    if let value = self[key] { append(key, value) }
  }

  mutating func remove(_ key: Key) {
    guard let place = places.removeValue(forKey: key), let entry = entries[place] else { return }
    if let older = entry.older { entries[older]?.newer = entry.newer } else { oldest = entry.newer }
    if let newer = entry.newer { entries[newer]?.older = entry.older } else { newest = entry.older }
    entries[place] = nil
    freePlaces.append(place)
  }

  /// The keys of the entries from the oldest on for which something holds, not more than `limit`.
  func oldestKeys(_ limit: Int, while holds: (Value) -> Bool) -> [Key] {
    var keys: [Key] = []
    var next = oldest
    while keys.count < limit, let place = next, let entry = entries[place], holds(entry.value) {
      keys.append(entry.key)
      next = entry.newer
    }
    return keys
  }

  /// The values of the newest entries, the newest first.
  func newestValues(_ limit: Int) -> [Value] {
    var values: [Value] = []
    var next = newest
    while values.count < limit, let place = next, let entry = entries[place] {
      values.append(entry.value)
      next = entry.older
    }
    return values
  }

  /// All values, in any order.
  var values: some Sequence<Value> { entries.lazy.compactMap { $0?.value } }
}
