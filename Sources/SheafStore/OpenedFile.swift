internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import SheafModel

extension Configuration {
  /// Makes connections refuse any file but the one named `path`, such as the target of a symbolic link: SQLite follows
  /// links, and GRDB does not pass on SQLITE_OPEN_NOFOLLOW.
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
