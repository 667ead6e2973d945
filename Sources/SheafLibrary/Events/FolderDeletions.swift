/// Pending deletions from one folder, by one program and in one share, which the event of the folder's own deletion
/// will name.
struct FolderDeletions {
  struct Key: Hashable {
    let folder: Int64
    let process: Int32
    /// A deleted share has an event of its own, for its participants.
    let share: Int64?
  }

  /// Numbers of the events in ascending order, with those that are gone among them.
  private(set) var numbers: [Int64] = []
  /// The same as runs without a gap.
  private(set) var runs: [ClosedRange<Int64>] = []
  /// How many of them wait.
  private(set) var count = 0
  /// How many items they name, themselves included.
  private(set) var contentCount: Int64 = 0

  /// - Parameter contentCount: how many other items the deletion names.
  mutating func append(_ number: Int64, contentCount: Int64) {
    numbers.append(number)
    if let last = runs.last, last.upperBound == number - 1 {
      runs[runs.count - 1] = last.lowerBound...number
    } else {
      runs.append(number...number)
    }
    count += 1
    self.contentCount += 1 + contentCount
  }

  /// Notes that one of them waits no longer.
  mutating func remove(contentCount: Int64) {
    count -= 1
    self.contentCount -= 1 + contentCount
  }

  /// Forgets numbers that are gone, if they are most.
  mutating func compact(where isWaiting: (Int64) -> Bool) {
    guard numbers.count > 2 * count + 64 else { return }
    numbers.removeAll { !isWaiting($0) }
  }
}
