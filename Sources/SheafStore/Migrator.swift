internal import Foundation
internal import GRDB
internal import SheafModel

/// Brings a library file to the newest format, in one transaction.
enum Migrator {
  /// Migrates the file that `pool` has open; does nothing for a file of the newest format.
  ///
  /// - Parameter migrations: ``Schema/migrations``, except in tests of migrations.
  static func migrate(
    _ pool: DatabasePool, path: String, to version: Int32 = Schema.version,
    migrations: [String] = Schema.migrations
  ) throws {
    try pool.writeWithoutTransaction { database in
      let present = try Int32.fetchOne(database, sql: "PRAGMA user_version") ?? 0
      guard present <= version else {
        throw SheafError(
          .newerFormat, subject: path, reason: "was written by a newer version of Sheaf (format \(present))",
          advice: "update Sheaf")
      }
      guard present < version else { return }
      try database.inTransaction(.immediate) {
        for step in Int(present)..<Int(version) { try database.execute(sql: migrations[step]) }
        if present == 0 {
          try database.execute(
            sql: "INSERT INTO settings (key, value) VALUES ('library', ?), ('hashKey', ?), ('created', ?)",
            arguments: [
              UUID().uuidString.lowercased(), Int64.random(in: .min ... .max),
              Int64(Date().timeIntervalSince1970 * 1e9),
            ])
        }
        try database.execute(
          sql: "PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = \(version)")
        return .commit
      }
      // A program that does not read the log must find the format in the header, too.
      _ = try database.checkpoint(.truncate)
    }
  }
}
