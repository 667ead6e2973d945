import Crypto
import Foundation
import GRDB
import Glibc
import SheafModel
import Synchronization
import Testing

@testable import SheafStore

/// The library file as a file: its rights, its mark, its migrations, and files that are none.
struct StoreFileTests {
  @Test func aNewLibraryIsPrivate() throws {
    try withFolder { folder in
      let path = folder + "/new/folders/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      defer { try? store.close() }
      #expect(try mode(folder + "/new") == 0o700 && mode(folder + "/new/folders") == 0o700)
      for suffix in ["", "-wal", "-shm", "-lock", "-reserve"] { #expect(try mode(path + suffix) == 0o600, "\(suffix)") }
      let settings = try store.read { transaction in
        (
          application: try transaction.first("PRAGMA application_id") { try $0[0] as Int },
          vacuum: try transaction.first("PRAGMA auto_vacuum") { try $0[0] as Int },
          secure: try transaction.first("PRAGMA secure_delete") { try $0[0] as Int },
          journal: try transaction.first("PRAGMA journal_mode") { try $0[0] as String }
        )
      }
      #expect(settings == (0x5348_4546, 2, 2, "wal"))
    }
  }

  /// The blocks that an operation freeing space got are not taken back under it, as upkeep would do at any moment.
  @Test func nobodyTakesTheReserveBackWhileItIsLent() throws {
    try withFolder { folder in
      let path = folder + "/small-reserve"
      let reserve = Reserve(path: path, of: folder + "/small")
      var blocks: Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_blocks) : -1
      }
      #expect(reserve.establish() && blocks > 0)
      try reserve.lend {
        #expect(!reserve.establish() && blocks == 0)
        // One operation may need another one's commit.
        #expect(throws: CancellationError.self) { try reserve.lend { throw CancellationError() } }
        #expect(!reserve.establish() && blocks == 0)
      }
      #expect(reserve.establish() && blocks > 0)
    }
  }

  /// If a file gets no spare pages, no transaction stays open in which later changes would be lost.
  @Test(arguments: [true, false]) func sparePagesThatCannotBeMadeLeaveNoTransaction(_ isFull: Bool) throws {
    try withFolder { folder in
      let path = folder + "/small.sqlite"
      try Data().write(to: URL(fileURLWithPath: path))
      let connection = try Connection(path: path)
      defer { connection.close() }
      func pages() throws -> Int? { try StoreTransaction(connection).first("PRAGMA page_count") { try $0[0] as Int } }
      try connection.execute("CREATE TABLE settings (key TEXT PRIMARY KEY NOT NULL, value ANY NOT NULL) STRICT")
      // As SQLite says it of a full disk (SQLITE_FULL); or only the commit fails, after which a transaction stays open.
      try connection.execute(
        isFull
          ? "PRAGMA max_page_count = 60"
          : """
          PRAGMA foreign_keys = ON;
          CREATE TABLE top (id INTEGER PRIMARY KEY);
          CREATE TABLE part (id INTEGER REFERENCES top (id) DEFERRABLE INITIALLY DEFERRED);
          CREATE TRIGGER breaks AFTER DELETE ON settings BEGIN INSERT INTO part VALUES (1); END
          """)
      let before = try #require(try pages())
      #expect(throws: (any Error).self) { try SparePages.add(to: connection) }
      try connection.execute("BEGIN IMMEDIATE; COMMIT")
      #expect(try pages() == before)
      try connection.execute(isFull ? "PRAGMA max_page_count = 1000000" : "DROP TRIGGER breaks")
      try SparePages.add(to: connection)
      #expect(try pages() ?? 0 >= 128)
    }
  }

  /// Root may mount a library for whom it belongs to, who opens it next.
  @Test(.enabled(if: geteuid() == 0)) func whatRootMakesBesideALibraryIsItsOwners() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      try Store(path: path, lockPath: path + "-lock").close()
      for suffix in ["-lock", "-reserve"] { unlink(path + suffix) }
      #expect(chown(path, 65534, 65534) == 0)
      let store = try Store(path: path, lockPath: path + "-lock")
      defer { try? store.close() }
      _ = try [UInt8(1)].withUnsafeBytes { try store.working.area().append($0) }
      for suffix in ["-lock", "-reserve", "-changes", "-working", "-wal", "-shm"] {
        var status = stat()
        #expect(stat(path + suffix, &status) == 0 && status.st_uid == 65534 && status.st_gid == 65534, "\(suffix)")
      }
    }
  }

  /// What was closed last is in it: to go without it is nothing that a program decides.
  @Test func aRecordThatCannotBeReadIsNotTakenForNone() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      try Store(path: path, lockPath: path + "-lock").close()
      // Root reads everything but what is no file.
      let record = path + "-changes"
      mkdir(record, 0o700)
      #expect { try Store(path: path, lockPath: path + "-lock") } throws: {
        ($0 as? SheafError)?.kind == .inputOutput && "\($0)".contains(record)
      }
      #expect(rmdir(record) == 0, "it is still there")
      try Store(path: path, lockPath: path + "-lock").close()
      var log = WriteLog()
      log.append(.write(offset: 0, length: 1, place: 0, checksum: 0))
      #expect(throws: SheafError.self) { try WorkingFile.holds(log, path: folder) }
      #expect(try !WorkingFile.holds(log, path: folder + "/none"))
    }
  }

  @Test func numbersThatNoLibraryGetsToAreDamage() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      defer { try? store.close() }
      try store.write(.label) { try $0.setSetting("chunksPacked", Int64.max) }
      #expect { try store.read { try $0.highestNumbers() } } throws: { ($0 as? SheafError)?.kind == .corrupt }
    }
  }

  @Test func aFileOpenToOthersIsClosed() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      try Store(path: path, lockPath: path + "-lock").close()
      chmod(path, 0o644)
      try Store(path: path, lockPath: path + "-lock").close()
      #expect(try mode(path) == 0o600)
    }
  }

  @Test func aSecondOpenerIsTold() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      #expect { try Store(path: path, lockPath: path + "-lock") } throws: { error in
        (error as? SheafError)?.kind == .busy && "\(error)".contains("\(getpid())")
      }
      #expect(LibraryLock.owner(path: path + "-lock") == getpid())
      try store.close()
    }
  }

  @Test func aNewerFormatIsNotTouched() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      try Store(path: path, lockPath: path + "-lock").close()
      let queue = try DatabaseQueue(path: path)
      try queue.writeWithoutTransaction {
        try $0.execute(sql: "PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)")
      }
      try queue.close()
      let before = try Data(contentsOf: URL(fileURLWithPath: path))
      #expect { try Store(path: path, lockPath: path + "-lock") } throws: { error in
        (error as? SheafError)?.kind == .newerFormat && "\(error)".contains("99")
      }
      #expect(try SHA256.hash(data: Data(contentsOf: URL(fileURLWithPath: path))) == SHA256.hash(data: before))
      #expect(access(path + "-wal", F_OK) != 0)
    }
  }

  @Test func aDatabaseOfAnotherProgramIsRefused() throws {
    try withFolder { folder in
      let path = folder + "/other.sqlite"
      let queue = try DatabaseQueue(path: path)
      try queue.write { try $0.execute(sql: "CREATE TABLE notes (text TEXT)") }
      try queue.close()
      chmod(path, 0o644)
      let before = try Data(contentsOf: URL(fileURLWithPath: path))
      #expect { try Store(path: path, lockPath: path + "-lock") } throws: { ($0 as? SheafError)?.kind == .corrupt }
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
      #expect(try mode(path) == 0o644)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["other.sqlite"])
    }
  }

  @Test func whatIsNoDatabaseIsRefused() throws {
    try withFolder { folder in
      let path = folder + "/text"
      for text in ["x", String(repeating: "not a database ", count: 100)] {
        for hasLock in [false, true] {
          try Data(text.utf8).write(to: URL(fileURLWithPath: path))
          chmod(path, 0o644)
          if hasLock { try Data().write(to: URL(fileURLWithPath: path + "-lock")) }
          #expect { try Store(path: path, lockPath: path + "-lock") } throws: { ($0 as? SheafError)?.kind == .corrupt }
          #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(text.utf8))
          // As it was for others, too: it may be theirs.
          #expect(try mode(path) == 0o644)
          #expect(access(path + "-lock", F_OK) == (hasLock ? 0 : -1))
        }
        unlink(path + "-lock")
      }
    }
  }

  @Test func aDamagedFileIsCorrupt() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      try Store(path: path, lockPath: path + "-lock").close()
      var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
      for index in 100..<bytes.count { bytes[index] = UInt8(truncatingIfNeeded: index &* 31) }
      try bytes.write(to: URL(fileURLWithPath: path))
      #expect {
        let store = try Store(path: path, lockPath: path + "-lock")
        _ = try store.read { try $0.accounts() }
      } throws: {
        ($0 as? SheafError)?.kind == .corrupt
      }
    }
  }

  // MARK: - Migrations

  private static let second = "ALTER TABLE accounts ADD COLUMN colour TEXT; UPDATE accounts SET colour = 'blue'"

  @Test func anOlderFormatIsMigrated() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      try Store(path: path, lockPath: path + "-lock").close()
      let pool = try DatabasePool(path: path)
      try pool.write {
        try $0.execute(sql: "INSERT INTO accounts (id, handle, name, created, documents) VALUES (1, 'a@b', 'A', 0, 16)")
      }
      try Migrator.migrate(pool, path: path, to: Schema.version + 1, migrations: Schema.migrations + [Self.second])
      let found = try pool.read {
        (try Int.fetchOne($0, sql: "PRAGMA user_version"), try String.fetchOne($0, sql: "SELECT colour FROM accounts"))
      }
      #expect(found == (Int(Schema.version) + 1, "blue"))
      // The header says so without the log.
      #expect(try Data(contentsOf: URL(fileURLWithPath: path))[60..<64] == Data([0, 0, 0, UInt8(Schema.version) + 1]))
      try pool.close()
      #expect { try Store(path: path, lockPath: path + "-lock") } throws: { ($0 as? SheafError)?.kind == .newerFormat }
    }
  }

  @Test func aLibraryOfTheFirstFormatIsTakenOver() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let pool = try DatabasePool(path: path)
      try Migrator.migrate(pool, path: path, to: 1)
      try pool.write { database in
        let key = try Int64.fetchOne(database, sql: "SELECT value FROM settings WHERE key = 'hashKey'") ?? 0
        try database.execute(
          sql: """
            INSERT INTO accounts VALUES (1, 'a@b.c', 'A', 5, 16);
            INSERT INTO items (id, uuid, kind, owner, created) VALUES (1, randomblob(16), 2, 1, 5);
            INSERT INTO items VALUES (2, randomblob(16), 1, 1, 5, 1, 1, NULL, 0);
            INSERT INTO inodes VALUES (16, 1, 1, 0, x'', 16877, 2, 0, 0, 0, 0, 5, 5, 5, NULL, NULL);
            INSERT INTO inodes VALUES (17, 2, 1, 16, x'646f63', 33188, 1, 0, 0, 0, 0, 5, 5, 5, x'00', NULL);
            INSERT INTO versions VALUES (2, 1, 5, 1, 0, 1, NULL, NULL, x'00', 0);
            INSERT INTO items VALUES (3, randomblob(16), 3, 1, 5, 0, 0, NULL, 0);
            INSERT INTO inodes VALUES (18, 3, 1, 16, x'6c', 41471, 0, 0, 0, 0, 1, 5, 5, 5, NULL, x'61');
            INSERT INTO deleted VALUES (18, 16, x'6c', 7, 1);
            INSERT INTO events VALUES
              (1, randomblob(16), 'sheaf.persistence.created', 5, 1, 2,
               '{"item":{"id":"x","kind":"document","name":"doc","path":"doc"}}');
            """)
        try database.execute(
          sql: "INSERT INTO entries VALUES (16, ?, CAST('doc' AS BLOB), 17, 0)",
          arguments: [NameHash(key: key)(Array("doc".utf8))])
      }
      try pool.close()
      let store = try Store(path: path, lockPath: path + "-lock")
      #expect(try store.read { try $0.check { _ in } }.problems == [])
      #expect(try store.read { try $0.item(2) }?.creator == 1)
      #expect(try store.read { try $0.events(after: 0, limit: 10) }.map(\.owner) == [1])
      // What was deleted had its name until then; what is there has had it for long.
      let (past, entries) = try store.read {
        (try $0.pastNames(in: 16, after: nil, limit: 10), try $0.entries(16, after: 0, limit: 10))
      }
      let (began, ended) = (Timestamp(nanoseconds: 0), Timestamp(nanoseconds: 7))
      #expect(
        past == [PastNameRow(parent: 16, name: Array("l".utf8), until: ended, item: 3, since: began, actor: 1)])
      #expect(entries.map(\.since) == [began])
      try store.close()
    }
  }

  @Test func aMigrationThatFailsLeavesTheFileAsItWas() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      try Store(path: path, lockPath: path + "-lock").close()
      let pool = try DatabasePool(path: path)
      let broken = Self.second + "; DROP TABLE events; SELECT no_such_function()"
      #expect(throws: (any Error).self) {
        try Migrator.migrate(
          pool, path: path, to: Schema.version + 2, migrations: Schema.migrations + [Self.second, broken])
      }
      try pool.close()
      let store = try Store(path: path, lockPath: path + "-lock")
      let columns = try store.read {
        try $0.all("SELECT name FROM pragma_table_info('accounts')") { try $0[0] as String }
      }
      #expect(!columns.contains("colour"))
      let report = try store.read { try $0.check { _ in } }
      #expect(report.problems == [])
      try store.close()
    }
  }

  @Test func everyFormatHasAMigration() { #expect(Schema.migrations.count == Int(Schema.version)) }

  // MARK: - Transactions and copies

  @Test func whatThrowsLeavesNothing() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      struct Stop: Error {}
      #expect(throws: SheafError.self) {
        try store.write(.accounts) { transaction in
          try transaction.setSetting("publicAddress", "x")
          throw Stop()
        }
      }
      #expect(try store.read { try $0.setting("publicAddress") } == nil)
      try store.write(.accounts) { try $0.setSetting("publicAddress", "y") }
      #expect(!store.isDurable)
      try store.sync()
      #expect(store.isDurable)
      try store.close()
    }
  }

  /// The writer's connection remembers rows; what is rolled back must not be among them.
  @Test func whatThrowsIsNotRemembered() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      struct Stop: Error {}
      let time = Timestamp(nanoseconds: 1)
      var kept = ItemRow(
        id: 1_000_001, uuid: .timeOrdered(time), kind: .document, owner: 1, creator: 1, created: time)
      let lost = ItemRow(
        id: 1_000_002, uuid: .timeOrdered(time), kind: .document, owner: 1, creator: 1, created: time)
      let name = EntryRow(
        parent: 1, hash: 77, name: Array("a.txt".utf8), ino: 1_000_001, since: Timestamp(nanoseconds: 0))
      try store.write(.create) {
        try $0.insert(kept)
        try $0.insert(name)
      }
      var isDone = false
      #expect(throws: SheafError.self) {
        try store.write(.save) { transaction in
          (kept.version, kept.lastVersion) = (7, 7)
          try transaction.update(kept)
          try transaction.insert(lost)
          try transaction.delete(name)
          #expect(try transaction.item(kept.id)?.version == 7)
          #expect(try transaction.item(lost.id) == lost)
          isDone = true
          throw Stop()
        }
      }
      #expect(isDone)
      #expect(try store.read { try $0.item(kept.id) }?.version == 0)
      #expect(try store.read { try $0.item(lost.id) } == nil)
      #expect(try store.read { try $0.entry(1, hash: 77, name: name.name) } == name)
      try store.write(.purge) { try $0.deleteItem(kept.id) }
      #expect(try store.read { try $0.item(kept.id) } == nil)
      try store.close()
    }
  }

  @Test func aBackupIsOneMoment() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      let stop = Atomic(false)
      let written = DispatchSemaphore(value: 0)
      let ended = DispatchSemaphore(value: 0)
      let thread = Thread {
        var number = 0
        while !stop.load(ordering: .relaxed) {
          number += 1
          // Two settings that are equal at every moment.
          try? store.write(.accounts) { transaction in
            try transaction.setSetting("one", "\(number)")
            try transaction.setSetting("two", "\(number)")
          }
          written.signal()
        }
        ended.signal()
      }
      thread.start()
      for copy in 0..<5 {
        written.wait()
        let file = folder + "/copy\(copy)"
        try store.backup(to: file) { _ in }
        #expect(try mode(file) == 0o600)
        let other = try Store(path: file, lockPath: file + "-lock")
        #expect(try other.integrityProblems() == [])
        let (one, two) = try other.read { (try $0.setting("one"), try $0.setting("two")) }
        #expect(one == two && one != nil)
        try other.close()
      }
      #expect { try store.backup(to: folder + "/copy0") { _ in } } throws: { ($0 as? SheafError)?.kind == .exists }
      stop.store(true, ordering: .relaxed)
      ended.wait()
      try store.close()
    }
  }

  /// Another library, or a text, that happens to have the name of one of its files.
  /// The last changes of a library that was not closed are done in that library alone, whatever is copied over it.
  @Test func changesOfAnotherFileAreNotDone() throws {
    try withFolder { folder in
      func path(_ name: String) -> String { "\(folder)/\(name).sqlite" }
      func copy(_ name: String, _ other: String) throws {
        try Data(contentsOf: URL(fileURLWithPath: name)).write(to: URL(fileURLWithPath: other))
      }
      func value(_ name: String) throws -> String? {
        let store = try Store(path: path(name), lockPath: path(name) + "-lock")
        let value = try store.read {
          try $0.first("SELECT value FROM settings WHERE key = 'x'") { try $0[0] as String }
        }
        try store.close()
        return value
      }
      let store = try Store(path: path("a"), lockPath: path("a") + "-lock")
      func set(_ value: String) throws { try store.write(.accounts) { try $0.setSetting("x", value) } }
      try set("1")
      try store.backup(to: path("backup")) { _ in }
      try set("2")
      // As a crash leaves it: once all is only in the record, then in the log, too.
      for crash in ["recorded", "logged"] {
        if crash == "logged" { try store.sync(log: true) }
        for suffix in ["", "-wal", "-changes"] { try copy(path("a") + suffix, path(crash) + suffix) }
        for suffix in ["", "-wal", "-changes"] { try copy(path("a") + suffix, path("\(crash)-old") + suffix) }
      }
      try set("3")
      try store.close()
      for crash in ["recorded", "logged"] {
        #expect(try value(crash) == "2")
        let old = "\(crash)-old"
        let remains = try ["-wal", "-changes"].map { try Data(contentsOf: URL(fileURLWithPath: path(old) + $0)) }
        // A backup, and a library that was closed.
        for other in ["backup", "a"] {
          try copy(path(other), path(old))
          let error = #expect(throws: SheafError.self) { _ = try value(old) }
          #expect(error?.kind == .exists, "\(crash), \(other)")
          let saved = path("\(crash)-saved")
          let refused = #expect(throws: SheafError.self) {
            try Store.repair(
              path(old), lockPath: path(old) + "-lock", to: saved, destinationLockPath: saved + "-lock")
          }
          #expect(refused?.kind == .exists && access(saved, F_OK) != 0)
          #expect(
            try Data(contentsOf: URL(fileURLWithPath: path(old))) == Data(contentsOf: URL(fileURLWithPath: path(other)))
          )
        }
        #expect(try ["-wal", "-changes"].map { try Data(contentsOf: URL(fileURLWithPath: path(old) + $0)) } == remains)
        // Nor is a backup made beside them.
        unlink(path(old))
        let again = try Store(path: path("a"), lockPath: path("a") + "-lock")
        let refused = #expect(throws: SheafError.self) { try again.backup(to: path(old)) { _ in } }
        #expect(refused?.kind == .exists)
        #expect(access(path(old), F_OK) != 0)
        for suffix in ["-wal", "-changes"] { unlink(path(old) + suffix) }
        try again.backup(to: path(old)) { _ in }
        try again.close()
        #expect(try value(old) == "3")
      }
    }
  }

  /// Nor are those of a journal, which SQLite would play into the file.
  @Test func aJournalOfAnotherFileIsNotPlayed() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      try Store(path: path, lockPath: path + "-lock").close()
      let closed = try Data(contentsOf: URL(fileURLWithPath: path))
      try Data(repeating: 1, count: 4096).write(to: URL(fileURLWithPath: path + "-journal"))
      let error = #expect(throws: SheafError.self) { try Store(path: path, lockPath: path + "-lock") }
      #expect(error?.kind == .exists && error?.reason.contains("library.sqlite-journal") ?? false)
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == closed)
      unlink(path + "-journal")
      try Store(path: path, lockPath: path + "-lock").close()
    }
  }

  /// Another program can make such a journal beside a closed library, too: moving it away would destroy the library.
  @Test func aProgramThatChangedAClosedLibraryAndWasEndedIsTakenBack() throws {
    try withFolder { folder in
      func path(_ name: String) -> String { "\(folder)/\(name).sqlite" }
      func value(_ store: Store) throws -> String? {
        try store.read { try $0.first("SELECT value FROM settings WHERE key = 'x'") { try $0[0] as String } }
      }
      let store = try Store(path: path("a"), lockPath: path("a") + "-lock")
      try store.write(.accounts) { try $0.setSetting("x", "saved") }
      try store.close()
      let other = try DatabaseQueue(path: path("a"))
      try other.writeWithoutTransaction { database in
        try database.execute(
          sql: """
            PRAGMA cache_size = 2;
            BEGIN;
            UPDATE settings SET value = 'changed';
            CREATE TABLE other AS WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 200)
              SELECT randomblob(3000) FROM n;
            """)
        // As it lies there if the program ends now.
        for suffix in ["", "-journal"] {
          let data = try Data(contentsOf: URL(fileURLWithPath: path("a") + suffix))
          try data.write(to: URL(fileURLWithPath: path("b") + suffix))
        }
        try database.execute(sql: "ROLLBACK")
      }
      try other.close()
      let error = #expect(throws: SheafError.self) { try Store(path: path("b"), lockPath: path("b") + "-lock") }
      #expect(error?.kind == .exists && error?.advice?.contains("sqlite3 \(path("b")) .schema") ?? false)
      let back = try DatabaseQueue(path: path("b"))
      try back.read { _ = try String.fetchAll($0, sql: "SELECT name FROM sqlite_schema") }
      try back.close()
      for name in ["a", "b"] {
        let store = try Store(path: path(name), lockPath: path(name) + "-lock")
        #expect(try value(store) == "saved")
        try store.close()
      }
    }
  }

  /// What lies beside it then would be taken for another file's.
  @Test func aFileWhoseRecordIsStillThereIsNotMarkedAsClosed() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      func isClosed() throws -> Bool { try Data(contentsOf: URL(fileURLWithPath: path))[18..<20] == Data([1, 1]) }
      let store = try Store(path: path, lockPath: path + "-lock")
      // A folder cannot be removed like a file.
      #expect(rename(path + "-changes", path + "-former") == 0 && mkdir(path + "-changes", 0o700) == 0)
      try store.close()
      #expect(try !isClosed())
      #expect(rmdir(path + "-changes") == 0 && unlink(path + "-former") == 0)
      try Store(path: path, lockPath: path + "-lock").close()
      #expect(try isClosed())
    }
  }

  /// A program that reads a closed library without its log keeps it from being opened, and is named.
  @Test func whoReadsAClosedLibraryIsNamed() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      try Store(path: path, lockPath: path + "-lock").close()
      let (reader, input, output) = (Process(), Pipe(), Pipe())
      reader.executableURL = URL(fileURLWithPath: "/usr/bin/sqlite3")
      reader.arguments = [path]
      (reader.standardInput, reader.standardOutput) = (input, output)
      try reader.run()
      try input.fileHandleForWriting.write(contentsOf: Data("BEGIN; SELECT count(*) FROM items;\n".utf8))
      #expect(!output.fileHandleForReading.availableData.isEmpty)
      let error = #expect(throws: SheafError.self) { try Store(path: path, lockPath: path + "-lock") }
      #expect(error?.kind == .busy && error?.reason.contains("\(reader.processIdentifier)") ?? false)
      try input.fileHandleForWriting.close()
      reader.waitUntilExit()
      try Store(path: path, lockPath: path + "-lock").close()
    }
  }

  @Test(arguments: ["-lock", "-reserve", "-changes"]) func whatIsNoFileOfALibrarysStaysAsItIs(_ suffix: String) throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      try Store(path: path, lockPath: path + "-lock").close()
      let library = try Data(contentsOf: URL(fileURLWithPath: path))
      for bytes in suffix == "-changes" ? [library] : [library, Data("notes of mine".utf8)] {
        unlink(path + suffix)
        try bytes.write(to: URL(fileURLWithPath: path + suffix))
        #expect { try Store(path: path, lockPath: path + "-lock") } throws: {
          ($0 as? SheafError)?.kind == .exists && "\($0)".contains(path + suffix)
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path + suffix)) == bytes)
      }
      unlink(path + suffix)
      try Store(path: path, lockPath: path + "-lock").close()
    }
  }

  /// Without a reserve, every change would be refused as on a full disk.
  @Test(arguments: ["folder", "link"]) func whatIsInTheReservesPlaceIsNamed(_ kind: String) throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      try Store(path: path, lockPath: path + "-lock").close()
      unlink(path + "-reserve")
      #expect((kind == "folder" ? mkdir(path + "-reserve", 0o700) : symlink("/nowhere", path + "-reserve")) == 0)
      let error = #expect(throws: SheafError.self) { try Store(path: path, lockPath: path + "-lock") }
      #expect(error?.kind == .inputOutput && error?.subject == path + "-reserve", "\(error as Any)")
    }
  }

  @Test func anInterruptedBackupIsNoneAndInNobodysWay() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      let copy = folder + "/copy"
      // What a process leaves that is killed in the middle.
      let left = Data("SQLite format 3\0".utf8) + Data(repeating: 7, count: 4080)
      #expect(FileManager.default.createFile(atPath: copy + ".sheaf-part", contents: left))
      try store.backup(to: copy) { _ in
        #expect(!FileManager.default.fileExists(atPath: copy))
        #expect { try store.backup(to: copy) { _ in } } throws: { ($0 as? SheafError)?.kind == .busy }
      }
      let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasPrefix("copy") }
      #expect(names == ["copy"])
      // What is no part of a backup is somebody's.
      let text = folder + "/text"
      #expect(FileManager.default.createFile(atPath: text + ".sheaf-part", contents: Data("mine".utf8)))
      #expect { try store.backup(to: text) { _ in } } throws: { ($0 as? SheafError)?.kind == .exists }
      #expect(try String(contentsOfFile: text + ".sheaf-part", encoding: .utf8) == "mine")
      unlink(text + ".sheaf-part")
      // Who makes the file meanwhile keeps it.
      let other = folder + "/other"
      #expect {
        try store.backup(to: other) { _ in try? Data("mine".utf8).write(to: URL(fileURLWithPath: other)) }
      } throws: {
        ($0 as? SheafError)?.kind == .exists
      }
      #expect(try String(contentsOfFile: other, encoding: .utf8) == "mine")
      #expect(try !FileManager.default.contentsOfDirectory(atPath: folder).contains { $0.contains("sheaf-part") })
      try store.close()
    }
  }

  @Test func numbersOfItemsAreNotGivenAgain() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      try store.write(.create) { transaction in
        for id: Int64 in 1...3 {
          try transaction.insert(
            ItemRow(
              id: id, uuid: .timeOrdered(.init(seconds: 0)), kind: .document, owner: 1, creator: 1,
              created: .init(seconds: 0)))
        }
        try transaction.deleteItem(2)
      }
      #expect(try store.read { try $0.highestNumbers().item } == 3)
      try store.write(.purge) { try $0.deleteItem(3) }
      #expect(try store.read { try $0.highestNumbers().item } == 3)
      try store.close()
    }
  }
}

/// Runs `body` with a new folder, removed afterwards.
func withFolder(_ body: (String) throws -> Void) throws {
  var template = Array("/var/tmp/sheaf-store-XXXXXX".utf8CString)
  try #require(mkdtemp(&template) != nil)
  let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  defer { try? FileManager.default.removeItem(atPath: folder) }
  try body(folder)
}

/// The permission bits of a file.
func mode(_ path: String) throws -> UInt32 {
  var status = stat()
  try #require(stat(path, &status) == 0, "\(path)")
  return status.st_mode & 0o7777
}
