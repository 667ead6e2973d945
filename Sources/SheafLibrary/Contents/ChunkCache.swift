/// Recently read chunks, bounded in bytes (rule 7 of docs/ARCHITECTURE.md); the oldest go first.
struct ChunkCache {
  private struct Slot {
    let bytes: [UInt8]
    var used: UInt64
  }

  private var slots: [Int64: Slot] = [:]
  private var bytes = 0
  private var clock: UInt64 = 0
  private let limit: Int

  /// - Parameter limit: bytes of all chunks together.
  init(limit: Int) { self.limit = limit }

  mutating func value(_ id: Int64) -> [UInt8]? {
    guard let index = slots.index(forKey: id) else { return nil }
    clock += 1
    slots.values[index].used = clock
    return slots.values[index].bytes
  }

  mutating func insert(_ id: Int64, _ value: [UInt8]) {
    clock += 1
    if let old = slots.updateValue(Slot(bytes: value, used: clock), forKey: id) { bytes -= old.bytes.count }
    bytes += value.count
    guard bytes > limit else { return }
    // Half at a time, so that the sort is rare.
    for (id, slot) in slots.sorted(by: { $0.value.used < $1.value.used }) {
      guard bytes > limit / 2 else { break }
      slots[id] = nil
      bytes -= slot.bytes.count
    }
  }

  mutating func remove(_ id: Int64) {
    if let slot = slots.removeValue(forKey: id) { bytes -= slot.bytes.count }
  }
}
