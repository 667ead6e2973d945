/// A dictionary in segments that grow one at a time.
///
/// A large `Dictionary` moves all its entries when it grows, and whoever adds the next one waits for that with the
/// library's lock held. Here an entry that comes moves those of its segment at most.
struct SegmentedDictionary<Key: Hashable, Value> {
  static var segmentCount: Int { 64 }

  private var segments = [[Key: Value]](repeating: [:], count: Self.segmentCount)
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  private static func segment(of key: Key) -> Int { key.hashValue & (segmentCount - 1) }

  subscript(key: Key) -> Value? {
    get { segments[Self.segment(of: key)][key] }
    set {
      let segment = Self.segment(of: key)
      let former = segments[segment].count
      segments[segment][key] = newValue
      count += segments[segment].count - former
    }
  }

  @discardableResult
  mutating func removeValue(forKey key: Key) -> Value? {
    guard let value = segments[Self.segment(of: key)].removeValue(forKey: key) else { return nil }
    count -= 1
    return value
  }

  /// Changes a value in its place.
  ///
  /// - Parameter initial: The value to change where there is none.
  mutating func update<Result>(
    _ key: Key, default initial: @autoclosure () -> Value, _ change: (inout Value) -> Result
  ) -> Result {
    let segment = Self.segment(of: key)
    let former = segments[segment].count
    defer { count += segments[segment].count - former }
    return change(&segments[segment][key, default: initial()])
  }

  var values: some Collection<Value> { segments.lazy.flatMap(\.values) }

  /// Removes some of the entries of a segment; returns how many stay there.
  mutating func removeAll(inSegment segment: Int, where isGone: (Value) -> Bool) -> Int {
    let gone = segments[segment].filter { isGone($0.value) }.map(\.key)
    for key in gone { segments[segment][key] = nil }
    count -= gone.count
    return segments[segment].count
  }

  mutating func removeAll(where isGone: (Value) -> Bool) {
    for segment in segments.indices { _ = removeAll(inSegment: segment, where: isGone) }
  }
}
