import Synchronization

/// Recently read chunks, bounded in bytes and number (rule 7 of docs/ARCHITECTURE.md); the oldest go first.
///
/// It has a lock of its own, since reads put in what they fetched without the library's.
final class ChunkCache: Sendable {
  private struct Slot {
    let bytes: [UInt8]
    var used: UInt64
  }

  private struct State {
    var slots: [Int64: Slot] = [:]
    var bytes = 0
    var clock: UInt64 = 0
    var removals: UInt64 = 0
  }

  /// Chunks that are kept at most: a small one takes more memory than its bytes, and many take long to sort.
  static let countLimit = 32_768

  private let state = Mutex(State())
  private let limit: Int

  /// - Parameter limit: bytes of all chunks together.
  init(limit: Int) { self.limit = limit }

  /// How often a chunk was removed, for ``insert(_:_:since:)``.
  var removals: UInt64 { state.withLock { $0.removals } }

  func value(_ id: Int64) -> [UInt8]? {
    state.withLock { state in
      guard let index = state.slots.index(forKey: id) else { return nil }
      state.clock += 1
      state.slots.values[index].used = state.clock
      return state.slots.values[index].bytes
    }
  }

  func insert(_ id: Int64, _ value: [UInt8]) { state.withLock { insert(id, value, &$0) } }

  /// Keeps what was fetched beside the library's lock, unless a chunk was removed since ``removals`` had this value: it
  /// may have been this one, which is gone or holds other bytes by now.
  func insert(_ id: Int64, _ value: [UInt8], since removals: UInt64) {
    state.withLock { state in
      if state.removals == removals { insert(id, value, &state) }
    }
  }

  private func insert(_ id: Int64, _ value: [UInt8], _ state: inout State) {
    state.clock += 1
    if let old = state.slots.updateValue(Slot(bytes: value, used: state.clock), forKey: id) {
      state.bytes -= old.bytes.count
    }
    state.bytes += value.count
    guard state.bytes > limit || state.slots.count > Self.countLimit else { return }
    // Half at a time, so that the sort is rare.
    for (id, slot) in state.slots.sorted(by: { $0.value.used < $1.value.used }) {
      guard state.bytes > limit / 2 || state.slots.count > Self.countLimit / 2 else { break }
      state.slots[id] = nil
      state.bytes -= slot.bytes.count
    }
  }

  func remove(_ id: Int64) {
    state.withLock { state in
      state.removals += 1
      if let slot = state.slots.removeValue(forKey: id) { state.bytes -= slot.bytes.count }
    }
  }
}
