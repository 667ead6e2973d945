import SheafLibrary

/// How long a replica waits before it goes on after a step that was not possible.
///
/// A step that a change overtook is planned anew as another one, and nothing waits for it. With each one that is planned
/// anew as it was, the replica waits longer.
struct ImpossibleSteps {
  /// Seconds, after a step that was not planned before, and at most.
  static let pauses = (first: 0.01, longest: 60.0)
  /// Steps that are remembered; with more of them, each one counts as planned anew.
  static let limit = 1_024

  private var steps: Set<ReplicaStep> = []
  private var pause = Self.pauses.first

  /// Notes that a step was not possible; returns for how many seconds to wait.
  mutating func pause(after step: ReplicaStep) -> Double {
    if steps.count < Self.limit, steps.insert(step).inserted { return Self.pauses.first }
    pause = min(pause * 2, Self.pauses.longest)
    return pause
  }
}
