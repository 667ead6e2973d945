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

  /// Refuses a file that was closed, as a backup is, if changes of a file that was not lie beside it: SQLite would do
  /// them in this one.
  ///
  /// - Throws: `exists`, naming the files that lie there.
  static func refuseForeignChanges(beside path: String) throws(SheafError) {
    guard try LibraryFolder.isClosed(path) else { return }
    let isUsed = { (file: String) in isFile(file) && size(file) > 0 }
    var found = unfinished(path).filter(isUsed)
    guard !found.isEmpty else { return }
    // Alone, it can be that of a file which was closed on a full disk.
    found += [path + Store.workingSuffix].filter(isUsed)
    let those = found.count == 1 ? "that" : "those"
    if found.contains(path + "-journal") {
      // SQLite makes one beside a closed library, too, and only it can tell whose it is.
      throw SheafError(
        .exists, subject: path, reason: "was closed, but \(names(found)) beside it has changes that were broken off",
        advice: "if another program changed this file and was ended, have SQLite take that back: "
          + "sqlite3 \(path.shellWord) .schema; if it is a backup or a copy that was put here, move \(those) away")
    }
    throw SheafError(
      .exists, subject: path, reason: "is a backup or a copy, beside \(names(found)) of the file that was here before",
      advice: "to go back to the copy, move \(those) away; to keep what was saved last, bring that file back")
  }

  /// Refuses to make a file at a place where the changes of a former one lie.
  ///
  /// - Parameter folder: A descriptor of the folder of `path`.
  /// - Throws: `exists`, naming the files that lie there.
  static func refuseChanges(at path: String, in folder: CInt) throws(SheafError) {
    let found = unfinished(path).filter {
      var status = stat()
      return fstatat(folder, ($0 as NSString).lastPathComponent, &status, AT_SYMLINK_NOFOLLOW) == 0
    }
    guard found.isEmpty else {
      throw SheafError(
        .exists, subject: path, reason: "is not there, but \(names(found)) of a former file",
        advice: "move \(found.count == 1 ? "that" : "those") away, or name another file")
    }
  }

  /// The files beside a library that hold its changes while it is open.
  static func unfinished(_ path: String) -> [String] {
    [Store.recordSuffix, "-wal", "-journal"].map { path + $0 }
  }

  private static func beside(_ path: String) -> [String] {
    [Store.reserveSuffix, Store.recordSuffix, Store.workingSuffix, "-wal"].map { path + $0 }
  }

  private static func size(_ path: String) -> Int64 {
    var status = stat()
    return lstat(path, &status) == 0 ? Int64(status.st_size) : 0
  }

  private static func isFile(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
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
