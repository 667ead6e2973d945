import Synchronization

/// Generations of folders whose names were taken away by rmdir(2) or rename(2) in a mount: its kernel holds such an inode for
/// dead as long as anyone uses it, as a shell that is in it. A folder that comes back, recovered or shared again, is to be
/// another inode to it, which the generation says that comes with each entry.
final class Generations: Sendable {
  /// Folders remembered that did not come back.
  private static let limit = 16_384

  private struct State {
    var numbers: [Int64: UInt64] = [:]
    /// Those of them that came back: what the kernel was told of them must stay so.
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
