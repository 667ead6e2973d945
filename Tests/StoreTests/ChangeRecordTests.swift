import Foundation
import GRDB
import Glibc
import SheafModel
import Testing

@testable import SheafStore

/// What a killed process leaves in the record of changes is done again by the next, as far as it is whole.
struct ChangeRecordTests {
  /// A store whose files are copied in the midst of a group, as a kill would leave them.
  private func withRemains(_ changes: Int, _ body: (_ path: String) throws -> Void) throws {
    var template = Array("/var/tmp/sheaf-store-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let path = folder + "/library.sqlite"
    let store = try Store(path: path, lockPath: path + "-lock")
    try store.sync()
    for number in 1...changes {
      try store.write(.accounts) { try $0.setSetting("test", "\(number)") }
    }
    let copy = folder + "/copy.sqlite"
    for suffix in ["-changes", "", "-wal"] {
      try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
    }
    try store.close()
    try body(copy)
  }

  private func setting(_ path: String) throws -> Int {
    let store = try Store(path: path, lockPath: path + "-lock")
    defer { try? store.close() }
    return try Int(store.read { try $0.setting("test") } ?? "0") ?? 0
  }

  @Test func everyChangeOutlivesItsProcess() throws {
    for changes in [1, 2, 500] {
      try withRemains(changes) { path in
        let found = try setting(path)
        #expect(found == changes)
      }
    }
  }

  @Test func aTornRecordEndsWhatCounts() throws {
    try withRemains(20) { path in
      var bytes = try Data(contentsOf: URL(fileURLWithPath: path + "-changes"))
      // The last record whose length leads to another one.
      var places: [Int] = []
      var place = 0
      while place + 24 < bytes.count {
        let length = bytes[place..<(place + 8)].reversed().reduce(0) { $0 << 8 | Int($1) }
        guard length >= 24, length < 4096 else { break }
        places.append(place)
        place += length
      }
      try #require(places.count >= 10)
      let torn = places.count / 2
      bytes[places[torn] + 30] ^= 1
      try bytes.write(to: URL(fileURLWithPath: path + "-changes"))
      let reached = try setting(path)
      #expect(reached < 20 && reached >= 20 - places.count, "\(reached) of 20, record \(torn) of \(places.count) torn")
    }
  }

  @Test func aRecordOfAnotherTimeIsNotDone() throws {
    try withRemains(20) { path in
      let record = try Data(contentsOf: URL(fileURLWithPath: path + "-changes"))
      #expect(try setting(path) == 20)
      let store = try Store(path: path, lockPath: path + "-lock")
      try store.write(.accounts) { try $0.setSetting("test", "21") }
      try store.close()
      try record.write(to: URL(fileURLWithPath: path + "-changes"))
      let error = #expect(throws: SheafError.self) { try setting(path) }
      #expect(error?.kind == .exists)
      unlink(path + "-changes")
      #expect(try setting(path) == 21)
    }
  }

  @Test func whatThrowsTakesNothingElseAlong() throws {
    try withRemains(1) { path in
      let store = try Store(path: path, lockPath: path + "-lock")
      defer { try? store.close() }
      for number in 1...50 {
        try store.write(.accounts) { try $0.setSetting("kept\(number)", "yes") }
        #expect(throws: SheafError.self) {
          try store.write(.accounts) {
            try $0.setSetting("kept\(number)", "no")
            throw SheafError(.invalid)
          }
        }
      }
      for number in 1...50 {
        let kept = try store.read { try $0.setting("kept\(number)") }
        #expect(kept == "yes")
      }
    }
  }

  /// Of a change that is too large to be recorded, and throws then, nothing is left.
  @Test func aLargeChangeThatThrowsLeavesNothing() throws {
    try withRemains(1) { path in
      let store = try Store(path: path, lockPath: path + "-lock")
      defer { try? store.close() }
      let text = String(repeating: "x", count: 1 << 20)
      try store.write(.accounts) { try $0.setSetting("before", "yes") }
      #expect(throws: SheafError.self) {
        try store.write(.accounts) {
          try $0.setSetting("large", text)
          throw SheafError(.invalid)
        }
      }
      #expect(try store.read { try $0.setting("large") } == nil)
      try store.sync(log: true)
      #expect(try store.snapshot { try $0.setting("large") } == nil)
      #expect(try store.snapshot { try $0.setting("before") } == "yes")
    }
  }

  /// SQLite ends the transaction of a group by itself when the disk fails under a statement, one that only reads
  /// included.
  @Test(arguments: ["a read", "a read that is tried", "a change", "a change that goes on", "a large change"])
  func aGroupThatSQLiteGaveUpIsMadeAgain(_ moment: String) throws {
    try withRemains(1) { path in
      let store = try Store(path: path, lockPath: path + "-lock")
      func giveUp(_ transaction: StoreTransaction) throws {
        try transaction.connection.execute("ROLLBACK")
        throw SheafError(.inputOutput)
      }
      for number in 1...3 {
        try store.write(.accounts) { try $0.setSetting("before\(number)", "yes") }
        try store.write(.setXattr) { try $0.setXattr(Int64(number), [65], [1]) }
        // Not while the commit thread runs statements, which SQLite would not bear.
        _ = try store.read { try $0.setting("before\(number)") }
        switch moment {
        case "a read": #expect(throws: SheafError.self) { try store.read(giveUp) }
        case "a read that is tried": try store.read { try? giveUp($0) }
        case "a change": #expect(throws: SheafError.self) { try store.write(.setXattr, giveUp) }
        case "a change that goes on":
          try store.write(.setXattr) {
            try? giveUp($0)
            try $0.setXattr(Int64(number), [66], [2])
          }
        default:
          #expect(throws: SheafError.self) {
            try store.write(.accounts) {
              try $0.setSetting("large", String(repeating: "x", count: 1 << 20))
              try? giveUp($0)
              try $0.setSetting("rest", "yes")
            }
          }
        }
        #expect(try store.read { try $0.setting("before\(number)") } == "yes")
        if number == 2 { try store.sync(log: true) }
      }
      try store.write(.accounts) { try $0.setSetting("after", "yes") }
      try store.sync(log: true)
      func check(_ transaction: StoreTransaction) throws {
        for number in 1...3 {
          #expect(try transaction.setting("before\(number)") == "yes")
          #expect(try transaction.xattr(Int64(number), [65]) == [1])
          if moment == "a change that goes on" { #expect(try transaction.xattr(Int64(number), [66]) == [2]) }
        }
        #expect(try transaction.setting("after") == "yes")
        #expect(try transaction.setting("large") == nil && transaction.setting("rest") == nil)
      }
      try store.read(check)
      try store.close()
      let again = try Store(path: path, lockPath: path + "-lock")
      try again.read(check)
      try again.close()
    }
  }

  /// A change that is too large to be recorded is committed with all before it.
  @Test func aLargeChangeIsThereAtOnce() throws {
    try withRemains(1) { path in
      let store = try Store(path: path, lockPath: path + "-lock")
      let text = String(repeating: "x", count: 1 << 20)
      try store.write(.accounts) { try $0.setSetting("before", "yes") }
      try store.write(.accounts) { try $0.setSetting("large", text) }
      for suffix in ["", "-wal"] {
        try FileManager.default.copyItem(atPath: path + suffix, toPath: path + ".2" + suffix)
      }
      try store.close()
      let copy = try Store(path: path + ".2", lockPath: path + ".2-lock")
      let large = try copy.read { try $0.setting("large") }
      #expect(large == text)
      let before = try copy.read { try $0.setting("before") }
      #expect(before == "yes")
      try copy.close()
    }
  }

  /// A record of one change in the place of the first that is to be done. `stored` is the setting without that: 1 where
  /// the process had come to store its change.
  private func withCraftedRecord(_ body: [UInt8], _ check: (_ path: String, _ stored: Int) throws -> Void) throws {
    try withRemains(1) { path in
      let queue = try DatabaseQueue(path: path)
      let (last, stored) = try queue.read { database in
        func number(_ key: String) throws -> Int64? {
          try Int64.fetchOne(database, sql: "SELECT value FROM settings WHERE key = ?", arguments: [key])
        }
        return (try number("change"), try number("test"))
      }
      try queue.close()
      var crafted = [UInt8](repeating: 0, count: ChangeRecorder.headerBytes) + body
      crafted.withUnsafeMutableBytes { ChangeRecorder.seal($0, number: (last ?? 0) + 1) }
      try Data(crafted).write(to: URL(fileURLWithPath: path + "-changes"))
      try check(path, Int(stored ?? 0))
    }
  }

  private func statement(_ text: String, count: UInt32? = nil) -> [UInt8] {
    [0, 0, 0, 0, 0, 0, 0, 0x80, 2] + withUnsafeBytes(of: count ?? UInt32(text.utf8.count)) { Array($0) }
      + Array(text.utf8)
  }

  @Test(arguments: [UInt32(5000), .max])
  func aRecordOfWhichAStatementEndsBeyondItIsKeptAside(_ count: UInt32) throws {
    try withCraftedRecord(statement("DELETE FROM settings", count: count)) { path, stored in
      let found = try setting(path)
      #expect(found == stored)
      #expect(FileManager.default.fileExists(atPath: path + "-changes-refused"))
    }
  }

  @Test func aRecordReachesNoOtherFile() throws {
    var template = Array("/var/tmp/sheaf-attached-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let other = folder + "/other"
    for text in [
      "ATTACH DATABASE '\(other)' AS other", "VACUUM INTO '\(other)'", "CREATE TABLE more (x)",
      "PRAGMA user_version = 99",
      // What would end the transaction in which the changes are done.
      "COMMIT", "ROLLBACK", "RELEASE change", "SAVEPOINT another",
      // What would take long, or much memory.
      "SELECT count(*) FROM settings",
      "UPDATE settings SET value = (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c)",
      "UPDATE settings SET value = length(hex(zeroblob(100000000)))",
      """
      UPDATE settings SET value = (SELECT count(*) FROM sqlite_schema a, sqlite_schema b, sqlite_schema c, sqlite_schema d,
        sqlite_schema e, sqlite_schema f, sqlite_schema g)
      """,
    ] {
      try withCraftedRecord(statement(text)) { path, stored in
        let found = try setting(path)
        #expect(found == stored, "\(text)")
        #expect(FileManager.default.fileExists(atPath: path + "-changes-refused"), "\(text)")
        #expect(!FileManager.default.fileExists(atPath: other))
      }
    }
  }
}
