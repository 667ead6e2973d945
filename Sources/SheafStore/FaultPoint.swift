internal import Foundation
internal import Glibc
internal import Synchronization
internal import SheafModel

/// The durable steps of the store: each transaction by name, and the steps outside of transactions.
package enum DurableStep: String, CaseIterable, Sendable {
  case accounts, create, mkdir, symlink, link, unlink, rmdir, rename, setAttributes, setXattr, removeXattr
  case spill, save, endSession, settle, label, comment, restore, recover, purge, thin, sweep, pack, compress, times,
    share, transfer, workingCopy, replica

  /// Whether the step takes names away. What they named stays in the trash, so no page of the file gets free by that.
  var onlyRemovesNames: Bool { [.unlink, .rmdir, .rename].contains(self) }

  /// Whether the change is answered once it is recorded, before SQLite runs it. That goes for changes that programs in
  /// the mount wait for, whose rows the library has checked. Any other change runs in SQLite first, so that its caller
  /// hears of a refusal.
  var isAnsweredFirst: Bool {
    switch self {
    case .create, .mkdir, .symlink, .link, .unlink, .rmdir, .rename, .setAttributes, .setXattr, .removeXattr, .times,
      .spill, .save, .endSession, .settle, .workingCopy:
      true
    case .accounts, .label, .comment, .restore, .recover, .purge, .thin, .sweep, .pack, .compress, .share, .transfer,
      .replica:
      false
    }
  }
}

/// A named point at which a test can kill the process or make the step fail (LiteFS, SQLite's test harness).
///
/// `SHEAF_FAULT=NAME:ACTION[:COUNT]` arms one point: at its COUNT-th passage (default 1) the process is killed
/// (`kill`), the step fails with an I/O error (`fail`), or fails as on a full disk (`full`).
package struct FaultPoint: Hashable, Sendable, CaseIterable {
  package let rawValue: String

  /// Before the transaction's first statement.
  package static func begin(_ step: DurableStep) -> FaultPoint { FaultPoint(rawValue: step.rawValue + ".begin") }
  /// All statements done, not yet committed.
  package static func commit(_ step: DurableStep) -> FaultPoint { FaultPoint(rawValue: step.rawValue + ".commit") }
  /// Recorded or committed, not yet answered.
  package static func committed(_ step: DurableStep) -> FaultPoint {
    FaultPoint(rawValue: step.rawValue + ".committed")
  }
  /// Before SQLite runs a statement of a change that was recorded.
  package static let changesApply = FaultPoint(rawValue: "changes.apply")
  /// Before the transaction that holds a group of changes is committed.
  package static let changesCommit = FaultPoint(rawValue: "changes.commit")
  /// Before the record of changes is synced.
  package static let changesSync = FaultPoint(rawValue: "changes.sync")
  /// Before SQLite's log is synced.
  package static let logSync = FaultPoint(rawValue: "log.sync")
  /// Before the working file is synced.
  package static let workingSync = FaultPoint(rawValue: "working.sync")
  package static let checkpoint = FaultPoint(rawValue: "checkpoint")
  package static let reserveRelease = FaultPoint(rawValue: "reserve.release")
  package static let shrink = FaultPoint(rawValue: "shrink")

  package static let allCases: [FaultPoint] =
    DurableStep.allCases.flatMap { [begin($0), commit($0), committed($0)] } + [
      changesApply, changesCommit, changesSync, logSync, workingSync, checkpoint, reserveRelease, shrink,
    ]
}

/// The armed fault of this process, if any.
enum Faults {
  private enum Action { case kill, fail, full }
  private static let armed: (point: String, action: Action, count: Int)? = {
    guard let text = ProcessInfo.processInfo.environment["SHEAF_FAULT"] else { return nil }
    let parts = text.split(separator: ":").map(String.init)
    guard parts.count >= 2 else { return nil }
    let actions: [String: Action] = ["kill": .kill, "fail": .fail, "full": .full]
    guard let action = actions[parts[1]] else { return nil }
    return (parts[0], action, parts.count > 2 ? Int(parts[2]) ?? 1 : 1)
  }()
  private static let passed = Atomic<Int>(0)

  /// Passes `point`: returns at once unless it is the armed one and its count has come.
  @inline(__always)
  static func pass(_ point: @autoclosure () -> FaultPoint) throws(SheafError) {
    if armed != nil { try trigger(point()) }
  }

  private static func trigger(_ point: FaultPoint) throws(SheafError) {
    guard let armed, armed.point == point.rawValue else { return }
    guard passed.add(1, ordering: .relaxed).newValue == armed.count else { return }
    switch armed.action {
    case .kill:
      kill(getpid(), SIGKILL)
      // SIGKILL arrives before this thread runs on; pause() only tells the compiler so.
      while true { pause() }
    case .fail: throw SheafError(.inputOutput, subject: point.rawValue, reason: "failed on purpose")
    case .full: throw SheafError(.noSpace, subject: point.rawValue)
    }
  }
}
