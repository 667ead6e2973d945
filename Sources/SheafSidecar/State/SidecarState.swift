import Foundation
import GRDB
import Glibc
package import SheafModel

/// The sidecar's memory between runs: each sink's position and retries, and dead letters. One SQLite file.
///
/// A position and the outcome of the event there are one transaction, which survives the end of the process when it
/// returns. After power loss, events that were delivered lately are delivered again.
package final class SidecarState: Sendable {
  /// The position of a sink in the log of one library, and its failures.
  package struct Record: Sendable, Equatable {
    /// Sequence number of the last event that the sink is done with; nil before the first.
    package var position: Int64?
    /// Attempts that failed in a row.
    package var failures = 0
    /// When the first of them was.
    package var failingSince: Timestamp?
    /// When the last of them was.
    package var failedLast: Timestamp?
    /// The reason of the last failure.
    package var failure: String?
    /// When the next attempt is due.
    package var nextAttempt: Timestamp?
    /// The reason why the sink makes no attempts until a person resumes it.
    package var disabled: String?
    package var delivered: Int64 = 0
    /// Attempts that failed, in all.
    package var failed: Int64 = 0
    /// The positions in the logs of a hub, by log.
    package var places: [String: LogPlace] = [:]
    /// Whether nothing of the sink was ever stored.
    package var isNew = true

    package init() {}

    /// Notes that the sink is done with everything up to a place.
    mutating func pass(_ place: LogPlace) {
      if place.log.isEmpty { position = place.number } else { places[place.log] = place }
    }
  }

  private let database: DatabaseQueue

  /// Opens the file at `path`; makes it, with the folders above, if there is none.
  ///
  /// - Throws: ``SheafError``.
  package init(path: String) throws {
    try StateFiles.makeFolder(of: path)
    // Made here where it is missing, so that it never exists with other rights.
    let made = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    if made >= 0 { Glibc.close(made) }
    for suffix in ["", "-wal", "-shm", "-journal"] { try StateFiles.makePrivate(path + suffix) }
    do {
      var configuration = Configuration()
      configuration.busyMode = .timeout(Self.busySeconds)
      configuration.prepareDatabase {
        try Self.keepLog($0)
        try $0.execute(sql: "PRAGMA synchronous = NORMAL")
      }
      database = try DatabaseQueue(path: path, configuration: configuration)
      // In one transaction, since a second sidecar may find the file at the same moment.
      try database.writeWithoutTransaction { database in
        try database.inTransaction(.immediate) {
          try Self.migrate(database)
          return .commit
        }
      }
    } catch {
      throw SheafError(
        .inputOutput, subject: path.printable, reason: "cannot be used: \(error)".printable,
        advice: "name another file: --state")
    }
  }

  /// Seconds to wait for another connection that has locked the file.
  private static let busySeconds = 5.0

  /// Refuses a database of another program's, a library among them, before anything of it changes.
  private static func refuseForeign(_ database: Database) throws {
    // One statement, since another sidecar may be making the tables.
    let isOwn = try Bool.fetchOne(
      database, sql: "SELECT count(*) = 0 OR total(name = 'sinks') > 0 FROM sqlite_schema")
    let application = try Int.fetchOne(database, sql: "PRAGMA application_id")
    guard isOwn == true, application == 0 else {
      throw SheafError(.exists, reason: "it is a database of another program")
    }
  }

  /// Makes SQLite keep a log (WAL) in a file of the sidecar's own. SQLite does not wait here for another process that
  /// finds a new file at the same moment.
  private static func keepLog(_ database: Database) throws {
    let deadline = ContinuousClock.now + .seconds(busySeconds)
    while true {
      do {
        try refuseForeign(database)
        return try database.execute(sql: "PRAGMA journal_mode = WAL")
      } catch DatabaseError.SQLITE_BUSY where ContinuousClock.now < deadline {
        usleep(5000)
      }
    }
  }

  /// Brings the file to the format that this program writes, 2. Before formats had numbers, columns were missing; format
  /// 1 had no logs of hubs.
  private static func migrate(_ database: Database) throws {
    let format = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
    guard format < 2 else { return }
    if format == 0 {
      if try !database.tableExists("sinks") {
        try database.execute(sql: schema)
      } else if try !database.columns(in: "sinks").contains(where: { $0.name == "failed_last" }) {
        try database.execute(
          sql: "ALTER TABLE sinks ADD COLUMN failed_last INTEGER; ALTER TABLE sinks ADD COLUMN failure TEXT")
      }
    }
    try database.execute(sql: logs)
    try database.execute(sql: "PRAGMA user_version = 2")
  }

  private static let logs = """
    CREATE TABLE logs (
      library TEXT NOT NULL,
      sink TEXT NOT NULL,
      log TEXT NOT NULL,
      number INTEGER NOT NULL,
      token TEXT NOT NULL,
      PRIMARY KEY (library, sink, log)
    ) STRICT, WITHOUT ROWID;
    """

  private static let schema = """
    CREATE TABLE sinks (
      library TEXT NOT NULL,
      name TEXT NOT NULL,
      position INTEGER,
      failures INTEGER NOT NULL,
      failing_since INTEGER,
      next_attempt INTEGER,
      disabled TEXT,
      delivered INTEGER NOT NULL,
      failed INTEGER NOT NULL,
      failed_last INTEGER,
      failure TEXT,
      PRIMARY KEY (library, name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE dead_letters (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      library TEXT NOT NULL,
      sink TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      event TEXT NOT NULL,
      reason TEXT NOT NULL,
      time INTEGER NOT NULL,
      retry INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    """

  /// Closes the file; it must not be used any more.
  package func close() throws { try database.close() }

  // MARK: - Sinks

  package func record(_ sink: SinkKey) throws -> Record {
    try database.read { database in
      guard
        let row = try Row.fetchOne(
          database, sql: "SELECT * FROM sinks WHERE library = ? AND name = ?", arguments: [sink.library, sink.name])
      else { return Record() }
      var record = Record()
      record.isNew = false
      record.position = row["position"]
      record.failures = row["failures"]
      record.failingSince = (row["failing_since"] as Int64?).map { Timestamp(nanoseconds: $0) }
      record.nextAttempt = (row["next_attempt"] as Int64?).map { Timestamp(nanoseconds: $0) }
      record.disabled = row["disabled"]
      record.failedLast = (row["failed_last"] as Int64?).map { Timestamp(nanoseconds: $0) }
      record.failure = row["failure"]
      record.delivered = row["delivered"]
      record.failed = row["failed"]
      let logs = try Row.fetchAll(
        database, sql: "SELECT log, number, token FROM logs WHERE library = ? AND sink = ?",
        arguments: [sink.library, sink.name])
      for row in logs {
        let place = LogPlace(log: row["log"], number: row["number"], token: row["token"])
        record.places[place.log] = place
      }
      return record
    }
  }

  /// Stores a sink's record, with the places in a hub's logs and the dead letters of its last change.
  package func save(
    _ record: Record, of sink: SinkKey, places: some Sequence<LogPlace> = [LogPlace](), dead: [DeadLetter] = []
  ) throws {
    try database.write { database in
      try database.execute(
        sql: "INSERT OR REPLACE INTO sinks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        arguments: [
          sink.library, sink.name, record.position, record.failures, record.failingSince?.nanoseconds,
          record.nextAttempt?.nanoseconds, record.disabled, record.delivered, record.failed,
          record.failedLast?.nanoseconds, record.failure,
        ])
      for place in places {
        try database.execute(
          sql: "INSERT OR REPLACE INTO logs VALUES (?, ?, ?, ?, ?)",
          arguments: [sink.library, sink.name, place.log, place.number, place.token])
      }
      for letter in dead {
        try database.execute(
          sql: "INSERT INTO dead_letters (library, sink, sequence, event, reason, time) VALUES (?, ?, ?, ?, ?, ?)",
          arguments: [
            sink.library, sink.name, letter.sequence, letter.event, letter.reason, letter.time.nanoseconds,
          ])
      }
    }
  }

  /// Gives a sink another name in all libraries, unless another sink has it.
  package func rename(_ former: String, to name: String) throws {
    try database.write { database in
      try database.execute(sql: "UPDATE OR IGNORE sinks SET name = ? WHERE name = ?", arguments: [name, former])
      try database.execute(sql: "DELETE FROM sinks WHERE name = ?", arguments: [former])
      try database.execute(sql: "UPDATE OR IGNORE logs SET sink = ? WHERE sink = ?", arguments: [name, former])
      try database.execute(sql: "DELETE FROM logs WHERE sink = ?", arguments: [former])
      try database.execute(sql: "UPDATE dead_letters SET sink = ? WHERE sink = ?", arguments: [name, former])
    }
  }

  /// Resumes disabled sinks; returns their names.
  package func resume() throws -> [String] {
    try database.write { database in
      let names = try String.fetchAll(database, sql: "SELECT name FROM sinks WHERE disabled IS NOT NULL ORDER BY name")
      try database.execute(
        sql: """
          UPDATE sinks SET disabled = NULL, failures = 0, failing_since = NULL, next_attempt = NULL
          WHERE disabled IS NOT NULL
          """)
      return names
    }
  }

  // MARK: - Dead letters

  /// Passes the dead letters of all sinks to `body`, one by one, in the order in which they were given up.
  package func eachDeadLetter(_ body: (DeadLetter) throws -> Void) throws {
    try database.read { database in
      let rows = try Row.fetchCursor(database, sql: "SELECT * FROM dead_letters ORDER BY id")
      while let row = try rows.next() { try body(DeadLetter(row)) }
    }
  }

  /// The dead letter of a sink to send again next.
  func nextToRetry(of sink: SinkKey) throws -> DeadLetter? {
    try database.read { database in
      try Row.fetchOne(
        database,
        sql: "SELECT * FROM dead_letters WHERE library = ? AND sink = ? AND retry = 1 ORDER BY id LIMIT 1",
        arguments: [sink.library, sink.name]
      ).map(DeadLetter.init)
    }
  }

  package func deadLetterCount(of sink: SinkKey) throws -> Int {
    try database.read {
      try Int.fetchOne(
        $0, sql: "SELECT count(*) FROM dead_letters WHERE library = ? AND sink = ?",
        arguments: [sink.library, sink.name]) ?? 0
    }
  }

  /// Marks all dead letters to be sent once more by their sinks; returns how many.
  package func retryDeadLetters() throws -> Int {
    try database.write { database in
      try database.execute(sql: "UPDATE dead_letters SET retry = 1")
      return database.changesCount
    }
  }

  /// Forgets a letter that was delivered after all.
  package func remove(_ letter: DeadLetter) throws {
    try database.write { try $0.execute(sql: "DELETE FROM dead_letters WHERE id = ?", arguments: [letter.id]) }
  }

  /// Notes that another attempt failed.
  package func keep(_ letter: DeadLetter, reason: String) throws {
    try database.write {
      try $0.execute(sql: "UPDATE dead_letters SET retry = 0, reason = ? WHERE id = ?", arguments: [reason, letter.id])
    }
  }
}

/// A sink of one library.
package struct SinkKey: Hashable, Sendable {
  /// The library's id.
  package let library: String
  package let name: String

  package init(library: String, name: String) {
    self.library = library
    self.name = name
  }
}

/// A position in a log.
package struct LogPlace: Hashable, Sendable {
  /// Which log of a hub; empty for the log of a library.
  package let log: String
  /// The number of the last event that was read.
  package let number: Int64
  /// By which a hub knows of what time the number is; empty for a library.
  package let token: String

  package init(log: String = "", number: Int64, token: String = "") {
    self.log = log
    self.number = number
    self.token = token
  }
}

/// An event that a sink gave up.
package struct DeadLetter: Sendable, Codable {
  package let id: Int64
  package let sink: String
  package let sequence: Int64
  /// The event's JSON.
  package let event: String
  /// The failure of the last attempt.
  package let reason: String
  /// When it was given up.
  package let time: Timestamp

  package init(id: Int64 = 0, sink: String, sequence: Int64, event: String, reason: String, time: Timestamp) {
    self.id = id
    self.sink = sink
    self.sequence = sequence
    self.event = event
    self.reason = reason
    self.time = time
  }

  fileprivate init(_ row: Row) {
    self.init(
      id: row["id"], sink: row["sink"], sequence: row["sequence"], event: row["event"], reason: row["reason"],
      time: Timestamp(nanoseconds: row["time"]))
  }
}
