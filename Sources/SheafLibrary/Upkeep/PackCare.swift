/// Packs that hold what nothing refers to; of whoever frees chunks or packs them.
struct PackCare {
  /// Those that wait to be made anew, how much of each is gone, and whether its base is in use.
  private(set) var waiting: [(id: Int64, gone: Int, hasBase: Bool)] = []
  /// How much was gone of those that could not be made anew.
  private var refused: [Int64: Int] = [:]

  mutating func wait(_ id: Int64, gone: Int, hasBase: Bool) { waiting.append((id, gone, hasBase)) }

  mutating func forgetWaiting() { waiting = [] }

  mutating func noteMended(_ id: Int64) { refused[id] = nil }

  /// Notes that a pack could not be made anew; says whether another part of it is gone than when that was so before.
  mutating func noteRefused(_ id: Int64, gone: Int) -> Bool { refused.updateValue(gone, forKey: id) != gone }

  /// How much of a pack was gone when it could not be made anew; 0 for every other one.
  func refusedPart(of id: Int64) -> Int { refused[id] ?? 0 }
}
