import Synchronization

/// Generations of folders whose names rmdir(2) or rename(2) took away in a mount. Its kernel takes such an inode for
/// dead as long as anyone uses it, such as a shell that is in it. A folder that comes back, recovered or shared again,
/// has to be another inode to the kernel; the generation, which comes with each entry, says so.
final class Generations: Sendable {
  /// Most folders to remember that did not come back.
  private static let limit = 16_384

  private struct State {
    var numbers: [Int64: UInt64] = [:]
    /// Those of them that came back: the kernel was told their generations, which must stay.
    var returned: Set<Int64> = []
  }

  private let state = Mutex(State())

  /// Notes that the kernel takes the inode for dead from now on.
  func noteDead(_ ino: Int64) {
    state.withLock { state in
      if state.numbers.count - state.returned.count >= Self.limit {
        state.numbers = state.numbers.filter { state.returned.contains($0.key) }
      }
      state.numbers[ino, default: 0] += 1
    }
  }

  /// The generation of a folder that the kernel is told of.
  func number(of ino: Int64) -> UInt64 {
    state.withLock { state in
      guard let number = state.numbers[ino] else { return 0 }
      state.returned.insert(ino)
      return number
    }
  }
}
