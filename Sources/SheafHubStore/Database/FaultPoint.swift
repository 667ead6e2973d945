import Foundation
import Glibc
import Synchronization

/// A named point of a transaction that writes, at which a test kills the process.
///
/// `SHEAF_HUB_FAULT=POINT[:COUNT]` arms one point: the process is killed when it passes it for the COUNT-th time, the
/// first by default.
package enum FaultPoint: String, CaseIterable, Sendable {
  /// Before the first statement of a body.
  case begin
  /// Before any statement of a body.
  case statement
  /// All statements are done, and nothing is committed.
  case commit
  /// Committed, and nobody is told.
  case committed

  private static let armed: (point: FaultPoint, count: Int)? = {
    let words = (ProcessInfo.processInfo.environment["SHEAF_HUB_FAULT"] ?? "").split(separator: ":")
    guard let point = words.first.flatMap({ FaultPoint(rawValue: String($0)) }) else { return nil }
    return (point, words.count > 1 ? Int(words[1]) ?? 1 : 1)
  }()
  private static let passed = Atomic<Int>(0)

  /// Passes the point: returns at once unless it is the armed one and its count has come.
  @inline(__always)
  func pass() {
    if let armed = Self.armed, armed.point == self { trigger(armed.count) }
  }

  private func trigger(_ count: Int) {
    guard Self.passed.add(1, ordering: .relaxed).newValue == count else { return }
    kill(getpid(), SIGKILL)
    // SIGKILL arrives before this thread runs on; pause(2) only keeps it from doing so.
    while true { pause() }
  }
}
