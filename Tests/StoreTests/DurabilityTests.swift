import Foundation
import GRDB
import SheafModel
import Testing

@testable import SheafStore

/// After a power loss each file is as it was when it was last synced, or at any later moment, or part this, part that.
/// Whatever it is, the library holds a whole prefix of its changes, with all that ``Store/sync(log:)`` promised.
struct DurabilityTests {
  /// The files in one moment of a store's life.
  private struct Moment {
    let main: [UInt8]
    let log: [UInt8]
    let record: [UInt8]
    /// Number of a change up to which the log has all.
    let committed: Int64
  }

  private struct Life {
    var moments: [Moment] = []
    /// Where the log and the record were synced last.
    var loggedAt = 0
    var recordedAt = 0
    var made = 0
    var synced = 0
  }

  private let page = 4096

  private func moment(of store: Store) throws -> Moment {
    func bytes(_ suffix: String) throws -> [UInt8] {
      [UInt8](try Data(contentsOf: URL(fileURLWithPath: store.path + suffix)))
    }
    // Before the log is read, which may get more meanwhile.
    let committed = store.writer.committed
    let record = try bytes("-changes")
    let end = record.lastIndex { $0 != 0 }.map { $0 + 1 } ?? 0
    return Moment(
      main: try bytes(""), log: try bytes("-wal"), record: Array(record.prefix((end + page - 1) / page * page)),
      committed: committed)
  }

  /// Does random things with a store, and calls `body` after each with all moments so far.
  private func live(_ seed: UInt64, steps: Int, _ body: (Life) throws -> Void) throws {
    var random = SeededRandom(seed: seed)
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      defer { try? store.close() }
      try store.sync()
      var life = Life()
      life.moments = [try moment(of: store)]
      for _ in 0..<steps {
        let (logged, promised) = (store.writer.logged, store.writer.promised)
        switch Int.random(in: 0..<10, using: &random) {
        case 0...4: try change(store, &life, bytes: Int.random(in: 1...6000, using: &random))
        // Too large to be recorded.
        case 5: try change(store, &life, bytes: 600_000)
        // A reader has what is recorded committed.
        case 6: try store.snapshot { _ in }
        case 7: try store.sync(log: true)
        default: try store.sync()
        }
        life.moments.append(try moment(of: store))
        if store.isDurable { life.synced = life.made }
        if store.writer.logged > logged {
          life.loggedAt = life.moments.firstIndex { $0.committed >= store.writer.logged } ?? 0
        }
        if store.writer.promised > promised { life.recordedAt = life.moments.count - 1 }
        try body(life)
      }
    }
  }

  private func change(_ store: Store, _ life: inout Life, bytes: Int) throws {
    life.made += 1
    let number = life.made
    try store.write(.accounts) {
      try $0.setSetting("test", "\(number)")
      try $0.setSetting("test\(number)", String(repeating: "x", count: bytes))
    }
  }

  /// A file of which the disk has some pages of one moment, and others of a later one.
  private func torn(_ old: [UInt8], _ new: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
    let length = max(old.count, new.count)
    var mixed = [UInt8]()
    for start in stride(from: 0, to: length, by: page) {
      let source = Bool.random(using: &random) ? old : new
      let piece = source.dropFirst(start).prefix(page)
      mixed += piece + repeatElement(0, count: page - piece.count)
    }
    return mixed
  }

  private func found(_ main: [UInt8], _ log: [UInt8], _ record: [UInt8]) throws -> (last: Int, isWhole: Bool) {
    var found = (last: 0, isWhole: true)
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      for (suffix, bytes) in [("", main), ("-wal", log), ("-changes", record)] {
        try Data(bytes).write(to: URL(fileURLWithPath: path + suffix))
      }
      let store = try Store(path: path, lockPath: path + "-lock")
      try store.read { transaction in
        found.last = Int(try transaction.setting("test") ?? "0") ?? 0
        for number in 1..<(found.last + 2) where found.last > 0 {
          let isThere = try transaction.setting("test\(number)") != nil
          if isThere != (number <= found.last) { found.isWhole = false }
        }
      }
      try store.close()
    }
    return found
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func whateverTheDiskHasIsAPrefixWithWhatWasPromised(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    try live(seed, steps: 24) { life in
      let now = life.moments.count - 1
      let logs = [life.loggedAt, now, Int.random(in: life.loggedAt...now, using: &random)]
      let records = [life.recordedAt, life.recordedAt, Int.random(in: life.recordedAt...now, using: &random)]
      // As little as can be of both, and then of the record alone, or something between.
      for choice in [0, Int.random(in: 1...2, using: &random)] {
        let (log, index) = (logs[choice], records[choice])
        let later = Int.random(in: index...now, using: &random)
        let record = torn(life.moments[index].record, life.moments[later].record, &random)
        // No checkpoint happens here, so that the main file is that of the beginning.
        let found = try found(life.moments[log].main, life.moments[log].log, record)
        #expect(
          found.isWhole && found.last >= life.synced && found.last <= life.made,
          """
          seed \(seed), step \(now): \(found.last) of \(life.made), \(life.synced) synced;
          log of \(log), record of \(index)
          """)
      }
    }
  }

  /// Syncing the record alone is worth something only if it is what happens.
  @Test func theSecondSyncLeavesTheLogAlone() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      defer { try? store.close() }
      try store.write(.accounts) { try $0.setSetting("test", "1") }
      try store.sync()
      let logged = store.writer.logged
      #expect(logged == store.writer.number)
      for number in 2...5 {
        try store.write(.accounts) { try $0.setSetting("test", "\(number)") }
        try store.sync()
        #expect(store.writer.promised == store.writer.number)
      }
      #expect(store.writer.logged == logged)
      // The record does not grow without end: at some time the log is synced, and it begins anew.
      let text = String(repeating: "x", count: 100_000)
      for number in 1...60 {
        try store.write(.accounts) { try $0.setSetting("test\(number)", text) }
        try store.sync()
      }
      #expect(store.writer.logged > logged)
    }
  }

  /// After a sync that failed, one that the kernel lets pass says nothing of what was written before.
  @Test func aFailedSyncOfTheLogIsRemembered() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      defer { try? store.close() }
      for number in 1...3 {
        try store.write(.accounts) {
          try $0.setSetting("test", "\(number)")
          try $0.setSetting("test\(number)", String(repeating: "x", count: 300_000))
        }
        store.writer.log.markUnreliable()
        #expect(throws: SheafError.self) { try store.writer.log.sync() }
        let before = try moment(of: store).log
        // It is written again as it is, with what came since.
        try store.sync(log: true)
        #expect(!store.writer.log.isUnreliable && store.writer.logged == store.writer.number)
        #expect(try moment(of: store).log.starts(with: before))
      }
      let last = try moment(of: store)
      let found = try found(last.main, last.log, [])
      #expect(found.last == 3 && found.isWhole)
    }
  }

  /// The statements of a record are those of the format that the file had.
  @Test func whatIsRecordedIsDoneBeforeMigrating() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let pool = try DatabasePool(path: path)
      try Migrator.migrate(pool, path: path, to: 1)
      try pool.write { try $0.execute(sql: "INSERT INTO settings (key, value) VALUES ('change', 7)") }
      try pool.close()
      let recorder = try #require(ChangeRecorder(path: path + "-changes", of: path, number: 7))
      let connection = try Connection(path: path)
      connection.recorder = recorder
      recorder.begin()
      // Not done for good: only the record tells of it.
      try connection.execute("BEGIN")
      let statement = try connection.statement(
        "INSERT INTO accounts (id, handle, name, created, documents) VALUES (?,?,?,?,?)")
      try connection.run(statement, 1, "a@b.c", "A", 5, 16)
      #expect(recorder.seal())
      try connection.execute("ROLLBACK")
      connection.close()
      let store = try Store(path: path, lockPath: path + "-lock")
      #expect(try store.read { try $0.accounts() }.map(\.handle.description) == ["a@b.c"])
      try store.close()
    }
  }
}
