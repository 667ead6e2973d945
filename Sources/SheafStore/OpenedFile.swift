internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import SheafModel

extension Configuration {
  /// Makes connections refuse to be to another file than the one named `path`, to which a symbolic link led: SQLite follows
  /// links, and GRDB does not pass on that it must not (SQLITE_OPEN_NOFOLLOW).
  mutating func refuseLink(at path: String) {
    let path = URL(fileURLWithPath: path)
    let expected = path.deletingLastPathComponent().resolvingSymlinksInPath()
      .appendingPathComponent(path.lastPathComponent).path
    prepareDatabase { database in
      let opened = sqlite3_db_filename(database.sqliteConnection, "main").map { String(cString: $0) }
      guard opened == expected else {
        throw SheafError(
          .invalid, subject: expected, reason: "is a symbolic link", advice: "name the file to which it leads")
      }
    }
  }
}
