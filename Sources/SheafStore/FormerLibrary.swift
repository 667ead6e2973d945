internal import Foundation
internal import Glibc
internal import SheafModel

/// A library that is no longer at its place: a new one there would look like the loss of everything. The files beside a
/// library's file tell of it.
enum FormerLibrary {
  /// Refuses a place without a library's file if other files of a library lie there.
  ///
  /// - Throws: `notFound`, naming the files that lie there.
  static func refuse(at path: String, lockPath: String) throws(SheafError) {
    // A process that holds the lock is about to make the library.
    guard !LibraryLock.isHeld(path: lockPath) else { return }
    var found = beside(path).filter { access($0, F_OK) == 0 }
    // A process that never held the lock left it empty.
    if size(lockPath) > 0 { found.insert(lockPath, at: 0) }
    // It may have been made since the caller looked.
    guard !found.isEmpty, access(path, F_OK) != 0 else { return }
    throw error(path, "is not there any more: only \(names(found)) of it", found)
  }

  /// Refuses an empty file, unless an interrupted making of a library left it: then its lock lies beside it, and
  /// nothing else yet.
  ///
  /// - Throws: `notFound`, naming the files that lie beside it; `corrupt` for a file that Sheaf did not make.
  static func refuseEmpty(_ path: String, lockPath: String) throws(SheafError) {
    let found = beside(path).filter { size($0) > 0 }
    guard found.isEmpty else { throw error(path, "is empty, beside \(names(found)) of a former library", found) }
    guard access(lockPath, F_OK) == 0 else {
      throw SheafError(
        .corrupt, subject: path, reason: "is an empty file, and no library",
        advice: "name another file, or remove this one for a new library")
    }
  }

  private static func beside(_ path: String) -> [String] {
    [Store.reserveSuffix, Store.recordSuffix, Store.workingSuffix, "-wal"].map { path + $0 }
  }

  private static func size(_ path: String) -> Int64 {
    var status = stat()
    return lstat(path, &status) == 0 ? Int64(status.st_size) : 0
  }

  private static func names(_ paths: [String]) -> String {
    let names = paths.map { ($0 as NSString).lastPathComponent }
    let last = names.count > 1 ? " and \(names[names.count - 1])" : ""
    return (last.isEmpty ? names : names.dropLast()).joined(separator: ", ") + last
  }

  /// These files may hold the latest saves.
  private static func error(_ path: String, _ reason: String, _ found: [String]) -> SheafError {
    SheafError(
      .notFound, subject: path, reason: reason,
      advice: "see that its disk is mounted, and bring the file back from where it was moved or from a backup; "
        + "for a new library move \(found.count == 1 ? "that" : "those") away")
  }
}
