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
      if let statements = SparePages.statements(pages: try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0) {
        try database.execute(sql: statements)
      }
      // A program that does not read the log must find the format in the header, too.
      _ = try database.checkpoint(.truncate)
    }
  }
}

/// Free pages that a young file has at its end.
///
/// SQLite's list of tables comes after the first pages of the tables, and before every other page. Without free pages it
/// is the end of a file that holds little, and nothing can be read of such a file that loses its end.
enum SparePages {
  /// Pages that a file has at least: more than twice as many as come before the end of that list.
  private static let minimum = 192

  /// What gives a file so many; nil if it has them. The pages are new, so nothing that was erased is in them.
  static func statements(pages: Int) -> String? {
    guard pages < minimum else { return nil }
    return """
      BEGIN IMMEDIATE;
      INSERT INTO settings (key, value) VALUES ('', zeroblob(\((minimum - pages) * 4096)));
      DELETE FROM settings WHERE key = '';
      COMMIT
      """
  }

  /// Gives a file so many. If that fails, no transaction stays open.
  ///
  /// - Throws: ``SQLiteError``.
  static func add(to connection: Connection) throws {
    let pages = try StoreTransaction(connection).first("PRAGMA page_count") { try $0[0] as Int } ?? 0
    guard let statements = statements(pages: pages) else { return }
    do {
      try connection.execute(statements)
    } catch {
      try? connection.execute("ROLLBACK")
      throw error
    }
  }
}
