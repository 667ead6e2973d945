import Foundation
import GRDB
import Glibc
import SheafLibrary
import SheafModel
import SheafStore
import SheafWire
import Synchronization

/// A small library that uses every table.
enum Template {
  static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  /// Makes an account's documents a replica, in the middle of a plan.
  private static func connect(_ library: Library, _ account: Int64) throws {
    guard let zone = WireID(bytes: (1...16).map { $0 }), let folder = WireID(bytes: (2...17).map { $0 }) else { return }
    try library.connect(account, zone: zone, hub: "hub.example")
    let state = ItemState(
      number: 7, item: folder, kind: .folder, isDeleted: false, places: [Place(parent: .root, "from the hub")],
      mode: 0o755, mtime: 0, target: nil, attributes: [:], version: nil, copyOf: nil)
    try library.noteListed([state], begins: true, of: account)
    try library.endListing(token: "7", read: 7, of: account)
    for _ in 0..<64 where try library.sends(of: account, limit: 1).isEmpty {
      while let (number, step) = try library.step(of: account) {
        _ = try library.carryOut(number, step, of: account, contents: nil)
      }
      _ = try library.plan(account)
    }
  }

  static func make(at path: String) throws {
    let time = Mutex(Timestamp(seconds: 1_700_000_000))
    let library = try Library.open(LibraryLocation(path: path)) { time.withLock { $0 } }
    func pass(_ seconds: Int64) {
      time.withLock { $0 = Timestamp(nanoseconds: $0.nanoseconds + seconds * 1_000_000_000) }
      library.keepUp()
    }
    func folder(_ parent: Int64, _ name: String) throws -> Int64 {
      try library.make(.folder, parent, bytes(name), mode: 0o755, .library).ino
    }
    func save(_ parent: Int64, _ name: String, _ contents: [UInt8]) throws {
      let found = try? library.lookup(parent, bytes(name), .library)
      let handle =
        try found.map { try library.open($0.ino, flags: O_RDWR | O_TRUNC, .library) }
        ?? library.create(parent, bytes(name), mode: 0o644, flags: O_RDWR | O_CREAT, .library).handle
      try contents.withUnsafeBytes { try library.write(handle, at: 0, $0) }
      try library.flush(handle)
      try library.release(handle)
      pass(60)
    }
    let handles = try ["alice@example.com", "bob@example.com", "carol@example.com", "dave@example.com"].map {
      try AccountHandle($0)
    }
    for handle in handles { _ = try library.addAccount(handle, name: nil) }
    let alice = handles[0]
    func item(_ text: String) throws -> ItemPath { try ItemPath(account: alice, "Documents/" + text) }
    let root = try library.documents(of: alice)
    var words = (0..<400).map { "word \($0 * 7919 % 1000)" }
    for round in 0..<6 {
      words[round * 31] = "changed in round \(round)"
      try save(root, "notes.txt", bytes(words.joined(separator: " ")))
    }
    _ = try library.label(item("notes.txt"), name: "first", version: 1)
    let notes = try library.lookup(root, bytes("notes.txt"), .library).ino
    try library.setXattr(notes, bytes("user.colour"), bytes("red"), .set, .library)
    _ = try library.link(notes, root, bytes("another name"), .library)
    let outer = try folder(root, "outer")
    let inner = try folder(outer, "inner")
    try save(inner, "deep.txt", bytes("deep"))
    // Folders that were elsewhere before.
    for name in ["first", "second"] { _ = try folder(outer, name) }
    pass(60)
    try library.rename(outer, bytes("first"), to: outer, bytes("one"), .noReplace, .library)
    try library.rename(outer, bytes("second"), to: inner, bytes("two"), .noReplace, .library)
    pass(60)
    _ = try library.make(.symbolicLink(target: bytes("notes.txt")), root, bytes("link"), mode: 0o777, .library)
    _ = try library.make(.special(type: S_IFIFO, rdev: 0), root, bytes("fifo"), mode: 0o644, .library)
    try save(root, "~$lock.tmp", bytes("quiet"))
    try save(outer, "sparse", bytes("sparse"))
    let sparse = try library.lookup(outer, bytes("sparse"), .library).ino
    _ = try library.setAttributes(sparse, .init(size: 1 << 40), handle: nil, .library)
    pass(60)
    let team = try folder(root, "team")
    try save(team, "plan.txt", bytes("plan"))
    _ = try folder(team, "sub")
    var change = ShareChange()
    (change.with, change.anyone, change.title) = ([handles[1], handles[2]], .readOnly, "Team")
    (change.allowInvites, change.allowRequests) = (true, true)
    let share = try library.share(item("team"), change)
    _ = try library.accept(share.url, as: handles[1])
    _ = try library.inviteOnce(item("team"), permission: .readOnly)
    (change.with, change.anyone) = ([], PublicPermission.none)
    _ = try library.share(item("team"), change)
    _ = try? library.accept(share.url, as: handles[3])
    try save(team, "mine.txt", bytes("mine"))
    _ = try library.comment(item("team/plan.txt"), text: "for @bob@example.com")
    _ = try library.addWebhook(for: alice, WebhookRequest(url: "https://example.com/hook"))
    try save(outer, "gone.txt", bytes("gone"))
    try library.unlink(outer, bytes("gone.txt"), .library)
    let lost = try folder(root, "lost")
    try save(lost, "with it.txt", bytes("with it"))
    pass(60)
    try library.unlink(lost, bytes("with it.txt"), .library)
    _ = try library.rmdir(root, bytes("lost"), .library)
    pass(3600)
    _ = try library.compact { _ in }
    try save(root, "plain", (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* $0) })
    try connect(library, library.number(of: alice))
    try library.close()

    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { database in
      // What waits while a library is open.
      let step = WriteLog(steps: [.truncate(5)])
      try database.execute(sql: "INSERT INTO working_copies VALUES (?, 1, 0, 1, ?)", arguments: [notes, Data(step)])
      try database.execute(
        sql: """
          INSERT INTO replica_versions SELECT item, number, randomblob(16), 1, 5 FROM versions LIMIT 2;
          INSERT INTO absent_contents SELECT (1 << 62) + 1, item, randomblob(16), 9 FROM versions LIMIT 1;
          INSERT INTO kept_contents SELECT id, 1 FROM items LIMIT 1;
          INSERT INTO replica_histories SELECT account, item, 7, 0, 1, NULL FROM replica_items LIMIT 1;
          INSERT INTO replica_requests SELECT account, item, zeroblob(16), 'label' FROM replica_items LIMIT 1;
          INSERT INTO replica_shares SELECT account, zone,
            '{"share":"01020304-0506-0708-090a-0b0c0d0e0f10","owner":"bob@hub.example","acceptance":"pending"}',
            NULL, 0, 0 FROM replicas LIMIT 1;
          INSERT INTO replica_events SELECT 100000, account, log, 1, randomblob(16), 'sheaf.change.edit', 0,
            randomblob(16), NULL, 0, 0, '{}' FROM replica_logs LIMIT 1;
          INSERT INTO waiting_events SELECT sequence, uuid, type, time, actor, owner, item, data, share, depth,
            previous_share, previous_depth FROM events LIMIT 1;
          INSERT INTO replica_comments SELECT account, randomblob(16), item, 0, 'text' FROM replica_items LIMIT 1;
          INSERT INTO pending_events SELECT sequence, uuid, type, time, actor, owner, item, data, share, depth,
            previous_share, previous_depth, 1 FROM events LIMIT 1;
          """)
      for table in try Crafted.tables(database) {
        guard try Int.fetchOne(database, sql: "SELECT count(*) FROM \(table)") ?? 0 > 0 else {
          throw SheafError(.notFound, subject: table, reason: "has no row in the template")
        }
      }
      // Whoever crafts a file need not have SQLite hold to what the tables say.
      try database.execute(sql: "PRAGMA writable_schema = ON")
      for row in try GRDB.Row.fetchAll(database, sql: "SELECT name, sql FROM sqlite_schema WHERE type = 'table'") {
        var text: String = row["sql"]
        text.replace(/,?\s*CHECK\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)/, with: "")
        text.replace(/\s+NOT NULL/, with: "")
        text.replace(/\)\s*STRICT, WITHOUT ROWID\s*$/, with: ") WITHOUT ROWID")
        text.replace(/\)\s*STRICT\s*$/, with: ")")
        let name: String = row["name"]
        try database.execute(sql: "UPDATE sqlite_schema SET sql = ? WHERE name = ?", arguments: [text, name])
      }
      try database.execute(sql: "PRAGMA writable_schema = RESET; PRAGMA journal_mode = DELETE")
      guard try String.fetchOne(database, sql: "PRAGMA quick_check") == "ok" else {
        throw SheafError(.corrupt, subject: "the template")
      }
    }
    try queue.close()
  }
}

extension WriteLog {
  fileprivate init(steps: [Step]) {
    self.init()
    for step in steps { append(step) }
  }
}

extension Data {
  fileprivate init(_ log: WriteLog) { self.init(log.encoded) }
}
