import Foundation
package import SheafModel
import SheafStore

/// Looking a library over: counts, check, backup.
extension Library {
  package func counts() throws -> LibraryCounts {
    completeSaves()
    try locked { try settleSessions() }
    let counts = try store.snapshot { try $0.counts() }
    return LibraryCounts(
      accounts: counts.accounts, documents: counts.documents, folders: counts.folders, versions: counts.versions,
      deleted: counts.deleted, events: counts.events, contentBytes: counts.contentBytes,
      storedBytes: counts.storedBytes, fileBytes: store.fileBytes, availableBytes: space().available,
      notSaved: waitingRescues, conflicts: counts.conflicts)
  }

  /// Verifies SQLite's integrity, every hash and every rule of docs/FORMAT.md, while work goes on.
  package func check(progress: (SheafModel.Progress) -> Void) throws -> CheckReport {
    completeSaves()
    let problems = try store.integrityProblems()
    var report = try store.snapshot { try $0.check(progress: progress) }
    report.problems = problems + report.problems
    return report
  }

  /// Writes a consistent copy to `file`, which must not exist; documents that are open are in it as last saved.
  ///
  /// - Throws: `noSpace` also where the library's own disk has no room for what was closed, which the copy would not
  ///   have.
  @discardableResult
  package func backup(to file: String, progress: (SheafModel.Progress) -> Void) throws -> BackupReport {
    try tryToCompleteSaves()
    try store.backup(to: file, progress: progress)
    return BackupReport(file: file, atHub: try store.snapshot { try $0.contentsAtHub() })
  }

  /// How long operations held the lock since the library was opened.
  package var lockHolds: LockHolds { locked { holds } }
}
