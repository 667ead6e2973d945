internal import Foundation
internal import GRDBSQLite
internal import Glibc
internal import SheafModel

/// Makes a sound library of the rows that could be read of a damaged one: every rule of docs/FORMAT.md holds afterwards.
///
/// What has lost its folder comes to a folder `Repaired` of its owner. What nothing refers to any more goes.
struct Mending {
  private let connection: Connection
  private let rows: StoreTransaction
  private let time: Int64
  private var nextNumber: Int64 = 0
  private var repairedFolders: [Int64: Int64] = [:]
  private let repetitions: [Salvage.Repetition]
  /// By chunks that had the hash of another one, and go, the chunk that has the same bytes.
  private var twins: [Int64: Int64] = [:]
  /// What a person should know, a line each.
  private(set) var losses: [String] = []
  /// Lines of one kind at most.
  private static let lossLimit = 100
  private static let folderType: Int64 = 0o040000
  private static let handleDomain = "repaired.invalid"

  init(_ connection: Connection, repetitions: [Salvage.Repetition]) {
    self.connection = connection
    self.repetitions = repetitions
    rows = StoreTransaction(connection)
    time = Int64(Date().timeIntervalSince1970 * 1e9)
  }

  mutating func run() throws {
    try connection.execute(
      "CREATE TEMP TABLE was (parent INTEGER, name BLOB, ino INTEGER, extra INTEGER, since INTEGER)")
    try connection.execute("INSERT INTO was SELECT parent, name, ino, extra, since FROM entries; DELETE FROM entries")
    try dropWhatNoLibraryHas()
    nextNumber = try number(
      """
      SELECT max(coalesce((SELECT max(ino) FROM inodes), 0), coalesce((SELECT max(id) FROM items), 0),
        coalesce((SELECT max(item) FROM versions), 0), coalesce((SELECT max(ino) FROM was), 0),
        coalesce((SELECT max(documents) FROM accounts), 0), coalesce((SELECT max(parent) FROM past_names), 0)) + 1
      """)
    try mendSettings()
    try mendAccounts()
    try mendOwners()
    try mendInodes()
    try remakeFolders()
    try mendItems()
    try mendTree()
    try mendContents()
    try mendNames()
    try mendShares()
    try mendEvents()
    try connection.execute("DROP TABLE was")
  }

  /// The handle of an account that has lost its own.
  static func handle(ofLost account: Int64) -> String { "account-\(account)@\(handleDomain)" }

  // MARK: - Statements

  private func number(_ sql: String) throws -> Int64 {
    let found = try rows.first(sql) { try $0[0] as Int64? }
    return found.flatMap { $0 } ?? 0
  }

  private func numbers<each Argument: Bindable>(_ sql: String, _ arguments: repeat each Argument) throws -> [Int64] {
    try rows.all(sql, repeat each arguments) { try $0[0] as Int64 }
  }

  private func set<each Argument: Bindable>(_ sql: String, _ arguments: repeat each Argument) throws {
    try rows.change(sql, repeat each arguments) { _ in }
  }

  /// Changes rows, and tells of them if there are any.
  ///
  /// - Parameter what: What they are, in words that follow their number.
  private mutating func mend<each Argument: Bindable>(
    _ sql: String, _ arguments: repeat each Argument, telling what: String
  ) throws {
    try set(sql, repeat each arguments)
    let count = try rows.changes
    if count > 0 { losses.append("\(count) of the \(what)") }
  }

  private mutating func newNumber() -> Int64 {
    defer { nextNumber += 1 }
    return nextNumber
  }

  /// Notes things of one kind, of which there may be many.
  private mutating func note(_ things: [String], _ what: String) {
    losses += things.prefix(Self.lossLimit).map { "\($0) \(what)" }
    if things.count > Self.lossLimit { losses.append("the same is true of \(things.count - Self.lossLimit) more") }
  }

  private func count(_ number: some BinaryInteger, _ thing: String) -> String {
    "\(number) \(thing)\(number == 1 ? "" : "s")"
  }

  /// The rows that came with another value in a column, for another row has theirs.
  ///
  /// - Parameter key: The number of the row's key that tells whether it is still there.
  private func repeated(_ table: String, _ column: String, _ key: String = "id") throws -> [Salvage.Repetition] {
    try repetitions.filter { repetition in
      guard repetition.table == table, repetition.column == column else { return false }
      return try rows.first("SELECT 1 FROM \(table) WHERE \(key) = ?", repetition.number) { _ in true } ?? false
    }
  }

  /// Numbers that no library reaches are damage, and others are counted on from them.
  private mutating func dropWhatNoLibraryHas() throws {
    let highest = StoreTransaction.numberLimit / 2
    let isReached = "BETWEEN 1 AND \(highest)"
    // The files that lose by it tell of these.
    for (table, column) in [("items", "id"), ("chunks", "id"), ("packs", "id"), ("was", "ino")] {
      try connection.execute("DELETE FROM \(table) WHERE \(column) NOT \(isReached)")
    }
    for (table, column, what) in [
      ("accounts", "id", "accounts"), ("inodes", "ino", "files and folders"), ("versions", "item", "versions"),
      ("versions", "number", "versions"), ("events", "sequence", "events"), ("replica_events", "sequence", "events"),
      ("webhooks", "id", "webhooks"), ("past_names", "parent", "former names"), ("past_names", "item", "former names"),
    ] {
      try mend(
        "DELETE FROM \(table) WHERE \(column) NOT \(isReached)",
        telling: "\(what), which had a number that no library reaches")
    }
    try mend(
      "UPDATE inodes SET item = NULL WHERE item NOT \(isReached)",
      telling: "files and folders, which have lost their id, and have a new one now")
    try mend(
      "UPDATE items SET version = 0, last_version = 0 WHERE last_version NOT BETWEEN 0 AND \(highest) OR version < 0",
      telling: "documents, which have lost the number of their current version, and show the latest one now")
    let isForeign = """
      key IN ('itemsBefore', 'chunksPacked', 'chunksCompressed', 'eventsBefore', 'eventsTo')
        AND (typeof(value) <> 'integer' OR value NOT BETWEEN 0 AND \(highest))
      """
    note(
      try rows.all("SELECT key FROM settings WHERE \(isForeign)") { try $0[0] as String },
      "is a setting that had a number that no library reaches, and is not set")
    // Of the record of changes, which does not come along, the library keeps no sign.
    try connection.execute("DELETE FROM settings WHERE key = 'change' OR \(isForeign)")
    try connection.execute("UPDATE OR IGNORE accounts SET documents = -id WHERE documents NOT \(isReached)")
  }

  // MARK: - Settings and accounts

  private mutating func mendSettings() throws {
    for (kind, condition) in [("number", CheckRules.isNoNumber), ("text", CheckRules.isNoText)] {
      note(
        try rows.all("SELECT key FROM settings WHERE \(condition) AND key NOT IN ('hashKey', 'library')") {
          (try $0[0] as String).printable
        }, "is a setting that was no \(kind), and is not set")
      try connection.execute("DELETE FROM settings WHERE \(condition)")
    }
    let id = try rows.first("SELECT value FROM settings WHERE key = 'library' AND typeof(value) = 'text'") {
      try $0[0] as String
    }
    if id.flatMap({ UUID(uuidString: $0) }) == nil {
      try set(
        "INSERT OR REPLACE INTO settings (key, value) VALUES ('library', ?)", UUID().uuidString.lowercased())
      losses.append("the library's id: links that begin with sheaf:// are new ones")
    }
    if try number("SELECT count(*) FROM settings WHERE key = 'hashKey' AND typeof(value) = 'integer'") == 0 {
      try set(
        "INSERT OR REPLACE INTO settings (key, value) VALUES ('hashKey', ?)", Int64.random(in: .min ... .max))
    }
  }

  /// Has a tree that was on its way to another account go there.
  private func mendOwners() throws {
    let text = try rows.first(
      "SELECT value FROM settings WHERE key = '\(OwnerChange.setting)' AND typeof(value) = 'text'"
    ) { try $0[0] as String }
    if let change = text.flatMap(OwnerChange.init(_:)) {
      var isLeft = true
      while isLeft {
        // One of it in each round is that below which the next ones are.
        let inos = try rows.all(
          "SELECT i.ino FROM inodes i JOIN inodes p ON p.ino = i.parent WHERE i.owner = ? AND p.owner = ?",
          change.former, change.owner
        ) { try $0[0] as Int64 }
        try rows.follow(change, inos: inos, items: [])
        isLeft = !inos.isEmpty
      }
    }
    try set("DELETE FROM settings WHERE key = ?", OwnerChange.setting)
  }

  private mutating func mendAccounts() throws {
    try connection.execute("DELETE FROM accounts WHERE id <= 0")
    for (id, handle) in try rows.all(
      "SELECT id, handle FROM accounts", decode: { (try $0[0] as Int64, try $0[1] as String) })
    where (try? AccountHandle(handle)) == nil {
      try set(
        "UPDATE accounts SET handle = ?, name = ? WHERE id = ?", Self.handle(ofLost: id), "\(id)", id)
    }
    note(
      try repeated("accounts", "handle").map { "account \($0.number)" },
      "has the handle of another account, and is account-NUMBER@\(Self.handleDomain) now")
    let elsewhere = try rows.all(
      "SELECT id, shown FROM accounts WHERE hub IS NOT NULL", decode: { (try $0[0] as Int64, try $0[1] as String?) }
    ).filter { _, shown in shown.flatMap { try? AccountHandle($0) } == nil }.map(\.0)
    for id in elsewhere { try set("UPDATE accounts SET hub = NULL, shown = NULL, person = NULL WHERE id = ?", id) }
    note(elsewhere.map { "account \($0)" }, "has lost who it is at a hub, and is an account of this library now")
    let missing = try numbers(
      "SELECT DISTINCT owner FROM inodes WHERE owner > 0 AND owner NOT IN (SELECT id FROM accounts) ORDER BY owner")
    for id in missing {
      let folder = try rows.first(
        """
        SELECT ino FROM inodes WHERE owner = ? AND parent = 0 AND mode & 61440 = 16384
          AND ino NOT IN (SELECT documents FROM accounts) ORDER BY ino LIMIT 1
        """, id
      ) { try $0[0] as Int64 }
      try set(
        "INSERT INTO accounts (id, handle, name, created, documents) VALUES (?,?,?,?,?)", id,
        Self.handle(ofLost: id), "\(id)", time, folder ?? newNumber())
    }
    note(missing.map { "account \($0)" }, "has lost its handle, and is account-NUMBER@\(Self.handleDomain) now")
    if try number("SELECT count(*) FROM accounts") == 0 {
      try set(
        "INSERT INTO accounts (id, handle, name, created, documents) VALUES (1,?,?,?,?)", Self.handle(ofLost: 1), "1",
        time, newNumber())
    }
    let homeless = try rows.all(
      """
      SELECT id, documents FROM accounts a
      WHERE NOT EXISTS (SELECT 1 FROM inodes WHERE ino = a.documents AND mode & 61440 = 16384)
      """, decode: { (try $0[0] as Int64, try $0[1] as Int64) })
    note(homeless.map { "account \($0.0)" }, "has lost its Documents, and has a new one")
    for (id, folder) in homeless {
      let isFree = try rows.first("SELECT 1 FROM inodes WHERE ino = ?", folder) { _ in true } == nil && folder > 0
      let ino = isFree ? folder : newNumber()
      try set("UPDATE accounts SET documents = ? WHERE id = ?", ino, id)
      try insertFolder(ino, owner: id, parent: 0, name: [])
    }
    // Of who is not known any more, the first account has what is left.
    let first = try rows.first("SELECT id, handle FROM accounts ORDER BY id LIMIT 1") {
      (id: try $0[0] as Int64, handle: try ($0[1] as String).printable)
    }
    guard let first else { return }
    for (table, column, what) in [
      ("inodes", "owner", "files and folders, whose owner"), ("versions", "author", "versions, whose author"),
      ("deleted", "actor", "deletions, whose actor"), ("past_names", "actor", "former names, whose ending actor"),
    ] {
      try mend(
        "UPDATE \(table) SET \(column) = ? WHERE \(column) NOT IN (SELECT id FROM accounts)", first.id,
        telling: "\(what) is lost, and is \(first.handle) now")
    }
    try mend(
      "UPDATE accounts SET person = NULL WHERE person NOT IN (SELECT id FROM accounts)",
      telling: "accounts, which have lost the person whose share they are, and stand for themselves now")
    try connection.execute(
      """
      UPDATE inodes SET parent = 0, owner = (SELECT id FROM accounts WHERE documents = ino), nlink = 2
      WHERE ino IN (SELECT documents FROM accounts);
      UPDATE inodes SET parent = (SELECT documents FROM accounts WHERE id = owner)
      WHERE parent = 0 AND ino NOT IN (SELECT documents FROM accounts);
      """)
  }

  private mutating func insertFolder(_ ino: Int64, owner: Int64, parent: Int64, name: [UInt8]) throws {
    try set(
      """
      INSERT INTO inodes (ino, item, owner, parent, name, mode, nlink, uid, gid, atime, mtime, ctime)
      VALUES (?,NULL,?,?,?,?,2,?,?,?,?,?)
      """, ino, owner, parent, name, Self.folderType | 0o755, Int64(getuid()), Int64(getgid()), time, time, time)
  }

  /// The folder of an account in which everything comes that has lost its own.
  private mutating func repairedFolder(_ owner: Int64) throws -> Int64 {
    if let known = repairedFolders[owner] { return known }
    let ino = newNumber()
    let parent = try rows.first("SELECT documents FROM accounts WHERE id = ?", owner) { try $0[0] as Int64 } ?? 0
    try insertFolder(ino, owner: owner, parent: parent, name: Array("Repaired".utf8))
    try insertItem(newNumber(), kind: .folder, owner: owner)
    try set("UPDATE inodes SET item = ? WHERE ino = ?", nextNumber - 1, ino)
    repairedFolders[owner] = ino
    return ino
  }

  // MARK: - Inodes and items

  private mutating func mendInodes() throws {
    try connection.execute(
      """
      DELETE FROM inodes WHERE ino <= 0 OR \(CheckRules.hasNoType)
        OR mode & 61440 = 40960 AND (target IS NULL OR length(target) NOT BETWEEN 1 AND 4095);
      UPDATE inodes SET target = NULL WHERE mode & 61440 <> 40960;
      UPDATE inodes SET size = length(target) WHERE target IS NOT NULL;
      UPDATE inodes SET content = NULL WHERE mode & 61440 <> 32768;
      UPDATE inodes SET item = NULL WHERE mode & 61440 NOT IN (16384, 32768, 40960);
      UPDATE inodes SET size = 0 WHERE size < 0;
      """)
    try set(
      "UPDATE inodes SET content = ? WHERE mode & 61440 = 32768 AND content IS NULL", StoredContent.empty.encoded)
    for (ino, name) in try rows.all(
      "SELECT ino, name FROM inodes WHERE parent > 0", decode: { (try $0[0] as Int64, try $0.bytes(1)) })
    where !Self.isName(name) {
      try set("UPDATE inodes SET name = ? WHERE ino = ?", Array("Repaired \(ino)".utf8), ino)
    }
    try mendRights()
    try mend(
      "DELETE FROM xattrs WHERE ino NOT IN (SELECT ino FROM inodes)", telling: "extended attributes, whose file is lost"
    )
    try connection.execute(
      """
      DELETE FROM xattrs WHERE length(name) > 255 OR instr(name, x'00')
        OR instr(substr(name, 2), x'2E') = 0 OR substr(name, 1, 11) = CAST('user.sheaf.' AS BLOB)
      """)
  }

  /// Gives files whose user or group cannot be those of their account's `Documents`, and takes bits away that no mode has.
  private mutating func mendRights() throws {
    try mend(
      "UPDATE inodes SET mode = mode & 65535 WHERE \(CheckRules.hasForeignMode)",
      telling: "files and folders, whose mode has bits that no mode has, and has lost them")
    try connection.execute("UPDATE inodes SET size = 0 WHERE \(CheckRules.hasForeignSize)")
    for (column, own) in [("uid", getuid()), ("gid", getgid())] {
      let isNone = CheckRules.isNoUser(column)
      try mend(
        "UPDATE inodes SET \(column) = ? WHERE ino IN (SELECT documents FROM accounts) AND \(isNone)", Int64(own),
        telling: "Documents, whose \(column) is none, and is \(own) now")
      // As after chown(2), nobody becomes another one by running it.
      try mend(
        """
        UPDATE inodes SET mode = CASE mode & 61440 WHEN 32768 THEN mode & ~3072 ELSE mode END, \(column) = (
          SELECT d.\(column) FROM accounts a JOIN inodes d ON d.ino = a.documents WHERE a.id = inodes.owner)
        WHERE \(isNone)
        """, telling: "files and folders, whose \(column) is none, and is that of Documents now")
    }
  }

  private static func isName(_ name: [UInt8]) -> Bool {
    (1...255).contains(name.count) && !name.contains(0) && !name.contains(UInt8(ascii: "/"))
      && ![Array(".".utf8), Array("..".utf8), Array(".versions".utf8)].contains(name)
  }

  private func insertItem(_ id: Int64, kind: ItemKind, owner: Int64) throws {
    try set(
      "INSERT INTO items (id, uuid, kind, owner, creator, created) VALUES (?,?,?,?,?,?)", id, UUID(),
      Int64(kind.rawValue), owner, owner, time)
  }

  private mutating func mendItems() throws {
    try connection.execute("DELETE FROM items WHERE id <= 0; DELETE FROM versions WHERE item <= 0")
    let isKnown = "SELECT 1 FROM inodes WHERE item = ?1 UNION ALL SELECT 1 FROM versions WHERE item = ?1"
    var renewed = try repeated("items", "uuid").count { try !numbers(isKnown, $0.number).isEmpty }
    // Items of inodes, whose own rows may be lost.
    for (ino, item, mode, owner) in try rows.all(
      """
      SELECT ino, coalesce(item, 0), mode & 61440, owner FROM inodes i WHERE mode & 61440 IN (16384, 32768, 40960)
        AND NOT EXISTS (SELECT 1 FROM items WHERE id = i.item)
      """, decode: { (try $0[0] as Int64, try $0[1] as Int64, try $0[2] as Int64, try $0[3] as Int64) })
    {
      let id = item > 0 ? item : newNumber()
      try insertItem(id, kind: mode == 16384 ? .folder : mode == 32768 ? .document : .symbolicLink, owner: owner)
      try set("UPDATE inodes SET item = ? WHERE ino = ?", id, ino)
      if item > 0 { renewed += 1 }
    }
    if renewed > 0 { losses.append("the ids of \(renewed) of the files and folders, which have new ones now") }
    // Documents of which only versions are left, or nothing but the row of the item.
    try connection.execute(
      "DELETE FROM items WHERE id NOT IN (SELECT item FROM inodes WHERE item > 0) AND id NOT IN (SELECT item FROM versions)"
    )
    let lost = try rows.all(
      """
      SELECT v.item, coalesce(t.owner, v.author), t.id IS NULL FROM versions v LEFT JOIN items t ON t.id = v.item
      WHERE v.item NOT IN (SELECT item FROM inodes WHERE item > 0) GROUP BY v.item
      """, decode: { (item: try $0[0] as Int64, owner: try $0[1] as Int64, isNew: try $0[2] as Int64 == 1) })
    let known = lost.isEmpty ? [:] : try lastNames()
    var names: [String] = []
    for (item, owner, isNew) in lost {
      let isThere = try rows.first("SELECT 1 FROM accounts WHERE id = ?", owner) { _ in true } ?? false
      let owner = isThere ? owner : try number("SELECT min(id) FROM accounts")
      if isNew { try insertItem(item, kind: .document, owner: owner) }
      let name = known[item] ?? "Document \(item)"
      names.append(name)
      try set(
        """
        INSERT INTO inodes (ino, item, owner, parent, name, mode, nlink, uid, gid, atime, mtime, ctime, content)
        VALUES (?,?,?,?,?,?,1,?,?,?,?,?,?)
        """, newNumber(), item, owner, repairedFolder(owner), Array(name.utf8), Int64(0o100644), Int64(getuid()),
        Int64(getgid()), time, time, time, StoredContent.empty.encoded)
    }
    note(names.map { "Repaired/\($0.printable)" }, "has lost its folder, its mode and its attributes")
    try connection.execute(
      """
      UPDATE items SET owner = i.owner,
        kind = CASE i.mode & 61440 WHEN 32768 THEN 1 WHEN 16384 THEN 2 ELSE 3 END
      FROM inodes i WHERE i.item = items.id;
      DELETE FROM versions WHERE item NOT IN (SELECT id FROM items WHERE kind = 1);
      """)
    try mend(
      "UPDATE items SET creator = owner WHERE creator NOT IN (SELECT id FROM accounts)",
      telling: "files and folders, whose maker is lost, and is their owner now")
    try mend(
      "DELETE FROM past_names WHERE item NOT IN (SELECT id FROM items)", telling: "former names, whose item is lost")
    // What is older than the repair does not count as made by it: restoring a folder would delete it.
    try set(
      """
      UPDATE items SET created = min(created,
        coalesce((SELECT min(time) FROM versions WHERE item = items.id), created),
        coalesce((SELECT min(since) FROM entries JOIN inodes USING (ino) WHERE inodes.item = items.id), created))
      WHERE created = ?
      """, time)
  }

  /// The names that documents without an inode had by the latest events about them.
  private func lastNames() throws -> [Int64: String] {
    let named = try rows.all(
      """
      SELECT item, CAST(json_extract(data, '$.item.name') AS TEXT) FROM events
      WHERE item IN (SELECT item FROM versions WHERE item NOT IN (SELECT item FROM inodes WHERE item > 0))
        AND json_valid(data) ORDER BY sequence
      """, decode: { (try $0[0] as Int64, try $0[1] as String?) })
    return Dictionary(named.compactMap { item, name in name.map { (item, $0) } }) { $1 }
      .filter { Self.isName(Array($0.value.utf8)) }
  }

  // MARK: - The tree

  /// Makes folders anew of which an entry is left and something that is in them.
  private mutating func remakeFolders() throws {
    var names: [String] = []
    while true {
      let lost = try rows.all(
        """
        SELECT w.ino, min(c.owner), w.parent, w.name FROM inodes c JOIN was w ON w.ino = c.parent
        WHERE c.nlink > 0 AND c.parent NOT IN (SELECT ino FROM inodes) AND w.extra = 0 AND w.parent > 0
          AND c.owner IN (SELECT id FROM accounts)
        GROUP BY w.ino
        """, decode: { (try $0[0] as Int64, try $0[1] as Int64, try $0[2] as Int64, try $0.bytes(3)) })
      // Those around them may be lost, too.
      let named = lost.filter { Self.isName($0.3) }
      for (ino, owner, parent, name) in named {
        try insertFolder(ino, owner: owner, parent: parent, name: name)
        names.append(String(decoding: name, as: UTF8.self).printable)
      }
      if named.isEmpty { break }
    }
    note(names, "is a folder that has a new id and mode now, and is not shared, for its own are lost")
  }

  private mutating func mendTree() throws {
    note(
      try rows.all(
        """
        SELECT name FROM deleted WHERE ino NOT IN (SELECT ino FROM inodes)
          AND (parent, name) NOT IN (SELECT parent, name FROM inodes WHERE nlink = 0) LIMIT 10000
        """, decode: { String(decoding: try $0.bytes(0), as: UTF8.self).printable }), "was deleted, and is lost")
    try connection.execute(
      """
      DELETE FROM deleted WHERE ino NOT IN (SELECT ino FROM inodes WHERE nlink = 0);
      UPDATE inodes SET nlink = 1 WHERE nlink < 0;
      """)
    try mend(
      """
      INSERT OR IGNORE INTO deleted (ino, parent, name, time, actor)
        SELECT ino, parent, name, ctime, owner FROM inodes WHERE nlink = 0
      """, telling: "deletions, of which nobody knows who did it and when, and which count as the owner's now")
    // A folder that is among the deleted has nothing in it that is not.
    var moved: [Int64] = []
    while true {
      let lost = try rows.all(
        """
        SELECT i.ino, i.owner FROM inodes i LEFT JOIN inodes p ON p.ino = i.parent
        WHERE i.nlink > 0 AND i.parent > 0
          AND (p.ino IS NULL OR p.mode & 61440 <> 16384 OR p.nlink = 0 OR p.owner <> i.owner)
        """, decode: { (try $0[0] as Int64, try $0[1] as Int64) })
      for (ino, owner) in lost {
        let folder = try repairedFolder(owner)
        try set("UPDATE inodes SET parent = ? WHERE ino = ?", folder, ino)
      }
      moved += lost.map(\.0)
      // Folders that lie in each other: one of them leads the others out.
      let unreached = try rows.first(
        """
        WITH RECURSIVE reached (ino) AS (
          SELECT documents FROM accounts UNION
          SELECT i.ino FROM reached r JOIN inodes i ON i.parent = r.ino
          WHERE i.mode & 61440 = 16384 AND i.nlink > 0 AND i.parent > 0)
        SELECT ino, owner FROM inodes WHERE mode & 61440 = 16384 AND nlink > 0 AND ino NOT IN (SELECT ino FROM reached)
        ORDER BY ino LIMIT 1
        """
      ) { (try $0[0] as Int64, try $0[1] as Int64) }
      guard let (ino, owner) = unreached else { break }
      let folder = try repairedFolder(owner)
      try set("UPDATE inodes SET parent = ? WHERE ino = ?", folder, ino)
      moved.append(ino)
    }
    let names = try moved.compactMap { ino in
      try rows.first("SELECT name FROM inodes WHERE ino = ?", ino) { String(decoding: try $0.bytes(0), as: UTF8.self) }
    }
    note(names.map { "Repaired/\($0.printable)" }, "has lost its folder")
    try mend(
      """
      UPDATE deleted SET parent = (SELECT documents FROM accounts JOIN inodes i ON i.owner = accounts.id WHERE i.ino = deleted.ino)
      WHERE NOT EXISTS (
        SELECT 1 FROM inodes p JOIN inodes i ON i.ino = deleted.ino
        WHERE p.ino = deleted.parent AND p.mode & 61440 = 16384 AND p.owner = i.owner AND p.ino <> i.ino)
      """, telling: "deleted files and folders, whose folder is lost, and is Documents now")
    try connection.execute(
      """
      UPDATE inodes SET parent = (SELECT parent FROM deleted d WHERE d.ino = inodes.ino) WHERE nlink = 0;
      UPDATE deleted SET name = (SELECT name FROM inodes i WHERE i.ino = deleted.ino)
      WHERE \(CheckRules.isNoName("name"));
      """)
    // Deleted folders that lie in each other could not come back.
    try connection.execute(
      """
      WITH RECURSIVE reached (ino) AS (
        SELECT ino FROM inodes WHERE mode & 61440 = 16384 AND nlink > 0 UNION
        SELECT d.ino FROM reached r JOIN deleted d ON d.parent = r.ino JOIN inodes i ON i.ino = d.ino
        WHERE i.mode & 61440 = 16384)
      UPDATE deleted SET parent = (SELECT documents FROM accounts JOIN inodes i ON i.owner = accounts.id WHERE i.ino = deleted.ino)
      WHERE ino IN (SELECT ino FROM inodes WHERE mode & 61440 = 16384) AND ino NOT IN (SELECT ino FROM reached);
      UPDATE inodes SET parent = (SELECT parent FROM deleted d WHERE d.ino = inodes.ino) WHERE nlink = 0;
      """)
  }

  /// Makes the entries anew: an inode tells its oldest name itself, and the old entries the others.
  private mutating func mendNames() throws {
    let hash = NameHash(key: try number("SELECT value FROM settings WHERE key = 'hashKey'"))
    let insertion = "INSERT OR IGNORE INTO entries (parent, hash, name, ino, extra, since) VALUES (?,?,?,?,?,?)"
    let named = try rows.all(
      """
      SELECT i.parent, i.name, i.ino, coalesce(max(w.since), 0) FROM inodes i
      LEFT JOIN was w ON w.ino = i.ino AND w.parent = i.parent AND w.name = i.name
      WHERE i.nlink > 0 AND i.parent > 0 GROUP BY i.ino ORDER BY i.ino
      """, decode: { (try $0[0] as Int64, try $0.bytes(1), try $0[2] as Int64, try $0[3] as Int64) })
    for (parent, name, ino, since) in named {
      try set(insertion, parent, hash(name), name, ino, 0, since)
      guard try rows.changes == 0 else { continue }
      // Something else has it.
      let name = Array(name.prefix(200)) + Array(" (\(ino))".utf8)
      try set("UPDATE inodes SET name = ? WHERE ino = ?", name, ino)
      try set(insertion, parent, hash(name), name, ino, 0, since)
    }
    let further = try rows.all(
      """
      SELECT w.parent, w.name, w.ino, w.since FROM was w JOIN inodes i ON i.ino = w.ino
      JOIN inodes p ON p.ino = w.parent AND p.mode & 61440 = 16384 AND p.nlink > 0 AND p.owner = i.owner
      WHERE i.nlink > 0 AND i.mode & 61440 <> 16384 AND w.extra = 1
      """, decode: { (try $0[0] as Int64, try $0.bytes(1), try $0[2] as Int64, try $0[3] as Int64) })
    var taken: [String] = []
    for (parent, name, ino, since) in further where Self.isName(name) {
      try set(insertion, parent, hash(name), name, ino, 1, since)
      guard try rows.changes == 0 else { continue }
      let holder = try rows.first("SELECT ino FROM entries WHERE parent = ? AND name = ?", parent, name) {
        try $0[0] as Int64
      }
      if holder != ino { taken.append(String(decoding: name, as: UTF8.self).printable) }
    }
    note(taken, "was a further name of a file, and is lost, for another one has it")
    try connection.execute(
      """
      UPDATE inodes SET nlink = (SELECT count(*) FROM entries e WHERE e.ino = inodes.ino)
      WHERE mode & 61440 <> 16384 AND nlink > 0;
      UPDATE inodes SET nlink = 2 + (
        SELECT count(*) FROM entries e JOIN inodes c ON c.ino = e.ino WHERE e.parent = inodes.ino AND c.mode & 61440 = 16384)
      WHERE mode & 61440 = 16384 AND nlink > 0;
      """)
    let lost = try rows.all(
      """
      SELECT w.name FROM was w WHERE w.ino NOT IN (SELECT ino FROM inodes) AND w.extra = 0
        AND (w.parent, w.name) NOT IN (SELECT parent, name FROM inodes WHERE nlink > 0) LIMIT 10000
      """,
      decode: { String(decoding: try $0.bytes(0), as: UTF8.self).printable })
    note(lost, "is lost")
  }

  // MARK: - Contents

  private mutating func mendContents() throws {
    try mendChunks()
    var contents = try ReadableContents(rows, twins: twins)
    var damages: [Int64: Damage] = [:]
    var versions: [(item: Int64, number: Int64, rest: StoredContent?)] = []
    try rows.each("SELECT item, number, size, content FROM versions") { row in
      let (item, number, bytes): (Int64, Int64, [UInt8]) = (try row[0], try row[1], try row.bytes(3))
      let rest = try contents.rest(of: bytes, rows)
      if rest == nil { damages[item, default: Damage()].versionsLost += 1 }
      if let lost = rest?.lost, lost > 0 { damages[item, default: Damage()].bytesLost[number] = lost }
      if try rest?.content.encoded != bytes || rest?.content.length != row[2] as Int64 {
        versions.append((item, number, rest?.content))
      }
      return true
    }
    for version in versions {
      if let rest = version.rest {
        try set(
          "UPDATE versions SET size = ?, content = ? WHERE item = ? AND number = ?", rest.length, rest.encoded,
          version.item, version.number)
      } else {
        try set("DELETE FROM versions WHERE item = ? AND number = ?", version.item, version.number)
      }
    }
    // Of these a line of their own tells.
    let damaged = try Set(
      damages.keys.compactMap { item in
        try rows.first("SELECT ino FROM inodes WHERE item = ?", item) { try $0[0] as Int64 }
      })
    // Plain files have contents of their own.
    var inodes: [(ino: Int64, rest: StoredContent, lost: Int64?)] = []
    try rows.each(
      """
      SELECT i.ino, i.size, i.content FROM inodes i JOIN items t ON t.id = i.item
      WHERE i.mode & 61440 = 32768 AND NOT EXISTS (SELECT 1 FROM versions WHERE item = t.id)
      """
    ) { row in
      let bytes = try row.bytes(2)
      let rest = try contents.rest(of: bytes, rows)
      let content = rest?.content ?? .empty
      guard try content.encoded != bytes || content.length != row[1] as Int64 else { return true }
      inodes.append((try row[0], content, rest?.lost))
      return true
    }
    for (ino, rest, _) in inodes {
      try set("UPDATE inodes SET size = ?, content = ? WHERE ino = ?", rest.length, rest.encoded, ino)
    }
    try connection.execute(
      """
      UPDATE versions SET open = 0 WHERE open <> 0;
      UPDATE versions SET base = NULL WHERE base NOT BETWEEN 1 AND number - 1;
      UPDATE items SET version = 0 WHERE NOT EXISTS (SELECT 1 FROM versions WHERE item = id AND number = version);
      UPDATE items SET last_version = max(last_version, coalesce((SELECT max(number) FROM versions WHERE item = id), 0));
      UPDATE items SET version = coalesce((SELECT max(number) FROM versions WHERE item = id), 0) WHERE version = 0;
      UPDATE items SET last_version = 0 WHERE last_version < 0;
      UPDATE items SET conflict = NULL WHERE conflict NOT BETWEEN 1 AND last_version;
      UPDATE items SET quiet = 0 WHERE quiet = 1 AND version > 0;
      UPDATE inodes SET size = v.size, content = v.content FROM items t JOIN versions v ON v.item = t.id AND v.number = t.version
      WHERE t.id = inodes.item;
      """)
    note(
      try inodes.filter { $0.lost == nil && !damaged.contains($0.ino) }.map { try rows.placeForPeople($0.ino) },
      "has lost its contents, and is empty")
    note(
      try inodes.filter { $0.lost ?? 0 > 0 }.map {
        "\(try rows.placeForPeople($0.ino)) lacks \(count($0.lost ?? 0, "byte")),"
      },
      "and has zeros there")
    note(
      try repeated("inodes", "item", "ino").map { try rows.placeForPeople($0.number) },
      "has a new id and no earlier versions, for another file has the id that it had")
    try noteDamages(damages)
    try mendLabels()
  }

  /// Removes the chunks whose bytes are not theirs. Of the others the bytes tell the size.
  private mutating func mendChunks() throws {
    try mendHashes()
    var bad: [Int64] = []
    var sizes: [(chunk: Int64, size: Int)] = []
    try rows.each("SELECT id, size, encoding, data FROM chunks WHERE encoding <> 2") { row in
      let (id, size): (Int64, Int64) = (try row[0], try row[1])
      let data = try row.bytes(3)
      let bytes: [UInt8]? =
        switch ChunkEncoding(rawValue: try row[2]) {
        case .plain: data
        case .compressed: StoreTransaction.decompress(data, size: Pack.memberLimit)
        case .packed, nil: nil
        }
      guard let bytes, (try? rows.verifiedHash(bytes, of: id)) != nil else {
        bad.append(id)
        return true
      }
      if size != Int64(bytes.count) { sizes.append((id, bytes.count)) }
      return true
    }
    // Packs are made from them.
    for (chunk, size) in sizes { try setSize(size, ofChunk: chunk) }
    let packed = try mendPacks()
    for id in bad { try set("DELETE FROM chunks WHERE id = ?", id) }
    let count = sizes.count + packed
    if count > 0 { losses.append("the size of \(count) of the chunks, which is that of their bytes now") }
  }

  /// Finds those chunks of one hash that have its bytes: one of them keeps it, and stands for the others.
  private mutating func mendHashes() throws {
    let groups = Dictionary(grouping: try repeated("chunks", "hash")) { Array($0.value.bytes) }
    for (hash, others) in groups {
      let chunks = try numbers("SELECT id FROM chunks WHERE hash = ?", hash) + others.map(\.number)
      let sound = chunks.first { chunk in
        guard let bytes = try? rows.chunkBytes(chunk) else { return false }
        return bytes.withUnsafeBytes { ChunkHash(of: $0).bytes } == hash
      }
      guard let sound else { continue }
      try set("UPDATE chunks SET hash = randomblob(32) WHERE hash = ?", hash)
      try set("UPDATE chunks SET hash = ? WHERE id = ?", hash, sound)
      for chunk in chunks where chunk != sound { twins[chunk] = sound }
    }
  }

  private func setSize(_ size: Int, ofChunk chunk: Int64) throws {
    try set("UPDATE chunks SET size = ? WHERE id = ?", size, chunk)
  }

  /// Gives labels back where the version is lost that had the same, and tells of the others.
  private mutating func mendLabels() throws {
    var lines: [String] = []
    for repetition in repetitions where repetition.column == "label" {
      let (item, number) = (repetition.group, repetition.number)
      let label = String(repetition.value.text ?? "".unicodeScalars)
      let holder = try rows.first("SELECT number FROM versions WHERE item = ? AND label = ?", item, label) {
        try $0[0] as Int64
      }
      guard let holder else {
        try set("UPDATE versions SET label = ? WHERE item = ? AND number = ?", label, item, number)
        continue
      }
      let ino = try rows.first("SELECT ino FROM inodes WHERE item = ?", item) { try $0[0] as Int64 }
      let place = try ino.map(rows.placeForPeople) ?? "item \(item)"
      lines.append("\(place): the label \(label.printable) of version \(number), which version \(holder) has as well,")
    }
    note(lines, "is lost")
  }

  /// Puts the members of damaged packs that can still be made into chunks of their own.
  ///
  /// - Returns: How many members got another size.
  private func mendPacks() throws -> Int {
    var resized = 0
    for id in try numbers("SELECT id FROM packs") {
      let members = try numbers("SELECT id FROM chunks WHERE encoding = 2 ORDER BY id").count
      guard members > 0 || id > 0 else { continue }
      var made: [(chunk: Int64, bytes: [UInt8])] = []
      var sizes: [(chunk: Int64, size: Int)] = []
      // The base of a pack may be made of chunks that go.
      var isWhole = id > 0 && twins.isEmpty
      if let pack = try? rows.pack(id), let base = try? rows.baseBytes(pack.base) {
        var reader = PackReader(pack, base: base)
        for (index, chunk) in pack.chunks.enumerated() {
          guard (try? reader.advance()) == true else {
            isWhole = false
            break
          }
          let isPlaced = (try? rows.packPlace(chunk)) == PackPlace(pack: id, index: index)
          if isPlaced, (try? rows.verifiedHash(reader.bytes, of: chunk)) != nil {
            made.append((chunk, reader.bytes))
            if try rows.chunkSize(chunk) != Int64(reader.bytes.count) { sizes.append((chunk, reader.bytes.count)) }
          } else {
            isWhole = false
          }
        }
      } else {
        isWhole = false
      }
      for (chunk, size) in sizes { try setSize(size, ofChunk: chunk) }
      resized += sizes.count
      if isWhole { continue }
      for (chunk, bytes) in made { try bytes.withUnsafeBytes { try rows.restoreChunk(chunk, bytes: $0) } }
      try set("DELETE FROM packs WHERE id = ?", id)
    }
    // Those of which nothing leads to a pack any more.
    var lost: [Int64] = []
    try rows.each("SELECT id, data FROM chunks WHERE encoding = 2") { row in
      let place = try? PackPlace(encoded: row.bytes(1))
      let isThere = try place.map { place in
        try rows.first("SELECT 1 FROM packs WHERE id = ?", place.pack) { _ in true } ?? false
      }
      if isThere != true { lost.append(try row[0]) }
      return true
    }
    for chunk in lost { try set("DELETE FROM chunks WHERE id = ?", chunk) }
    return resized
  }

  /// What a document has lost.
  private struct Damage {
    var versionsLost = 0
    /// By number of version; its other bytes are there.
    var bytesLost: [Int64: Int64] = [:]
  }

  /// Tells which documents have lost versions, or parts of them, and what is left.
  private mutating func noteDamages(_ damages: [Int64: Damage]) throws {
    var lines: [String] = []
    for (item, damage) in damages.sorted(by: { $0.key < $1.key }) {
      let ino = try rows.first("SELECT ino FROM inodes WHERE item = ?", item) { try $0[0] as Int64 }
      let numbers = try rows.all("SELECT number FROM versions WHERE item = ? ORDER BY number", item) {
        try $0[0] as Int64
      }
      var parts: [String] = []
      if damage.versionsLost > 0 {
        let areLost = damage.versionsLost == 1 ? "version of it is lost" : "versions of it are lost"
        let rest = numbers.last.map { "the latest that is left is \($0)" } ?? "none is left, and it is empty"
        parts.append("\(damage.versionsLost) \(areLost); \(rest)")
      }
      for (number, bytes) in damage.bytesLost.sorted(by: { $0.key > $1.key }).prefix(3) {
        parts.append("version \(number) lacks \(count(bytes, "byte")), and has zeros there")
      }
      if damage.bytesLost.count > 3 {
        parts.append("\(count(damage.bytesLost.count - 3, "earlier version")) lack some, too")
      }
      if !damage.bytesLost.isEmpty, let whole = numbers.last(where: { damage.bytesLost[$0] == nil }) {
        parts.append("version \(whole) is whole")
      }
      lines.append("\(try ino.map(rows.placeForPeople) ?? "item \(item)"): \(parts.joined(separator: "; "))")
    }
    losses += lines.prefix(Self.lossLimit)
    if lines.count > Self.lossLimit { losses.append("\(lines.count - Self.lossLimit) more documents lost something") }
  }

  // MARK: - Sharing and events

  private mutating func mendShares() throws {
    for (table, key) in [("shares", "item"), ("webhooks", "id")] {
      let count = try repeated(table, "uuid", key).count
      if count > 0 { losses.append("the ids of \(count) of the \(table), which have new ones now") }
    }
    let relinked = try repeated("shares", "token", "item").compactMap { share in
      try rows.first("SELECT ino FROM inodes WHERE item = ?", share.number) { try $0[0] as Int64 }
    }
    note(try relinked.map { try rows.placeForPeople($0) }, "has a new link, for another share has the one that it had")
    let unreachable = try numbers(
      "SELECT ino FROM shares JOIN inodes USING (item) WHERE \(CheckRules.hasForeignToken) ORDER BY ino")
    note(
      try unreachable.map { try rows.placeForPeople($0) }, "is not shared, for the token of its share cannot be read")
    try connection.execute(
      """
      DELETE FROM participants WHERE share IN (SELECT item FROM shares WHERE \(CheckRules.hasForeignToken));
      DELETE FROM access_requests WHERE share IN (SELECT item FROM shares WHERE \(CheckRules.hasForeignToken));
      DELETE FROM one_time_links WHERE share IN (SELECT item FROM shares WHERE \(CheckRules.hasForeignToken));
      DELETE FROM shares WHERE \(CheckRules.hasForeignToken);
      DELETE FROM one_time_links WHERE \(CheckRules.hasForeignToken);
      """)
    try mend(
      "DELETE FROM shares WHERE item NOT IN (SELECT id FROM items WHERE kind IN (1, 2))",
      telling: "shares, whose item is lost")
    for (table, what) in [("participants", "participants"), ("access_requests", "requests for access")] {
      try mend(
        "DELETE FROM \(table) WHERE share NOT IN (SELECT item FROM shares) OR account NOT IN (SELECT id FROM accounts)",
        telling: "\(what), whose share or account is lost")
    }
    try connection.execute(
      """
      UPDATE participants SET name = NULL WHERE \(CheckRules.isNoName("name"));
      DELETE FROM past_names WHERE \(CheckRules.isNoName("name"));
      UPDATE participants SET role = 2 WHERE role = 1
        AND account <> (SELECT coalesce(a.person, a.id) FROM items t JOIN accounts a ON a.id = t.owner WHERE t.id = share);
      INSERT INTO participants (share, account, role, permission, acceptance, since, joined)
        SELECT s.item, coalesce(a.person, a.id), 1, 2, 2, s.since, s.since
        FROM shares s JOIN items t ON t.id = s.item JOIN accounts a ON a.id = t.owner WHERE true
        ON CONFLICT DO UPDATE SET role = 1, permission = 2, acceptance = 2;
      """)
    try mend(
      """
      DELETE FROM one_time_links
      WHERE NOT EXISTS (SELECT 1 FROM participants p WHERE p.share = one_time_links.share AND account = inviter)
      """, telling: "one-time links, whose share or inviter is lost")
    let nested = try numbers(
      """
      WITH RECURSIVE above (item, ino) AS (
        SELECT s.item, i.parent FROM shares s JOIN inodes i ON i.item = s.item WHERE s.active = 1 AND i.nlink > 0 UNION
        SELECT a.item, i.parent FROM above a JOIN inodes i ON i.ino = a.ino)
      SELECT DISTINCT a.item FROM above a JOIN inodes i ON i.ino = a.ino JOIN shares s ON s.item = i.item
      WHERE s.active = 1
      """)
    for item in nested { try set("UPDATE shares SET active = 0 WHERE item = ?", item) }
    // Nobody hears of what would be written there, as where an account was disconnected.
    try connection.execute(
      """
      UPDATE participants SET permission = 1 WHERE role <> 1 AND share IN (
        SELECT s.item FROM shares s JOIN items t ON t.id = s.item JOIN accounts a ON a.id = t.owner
        WHERE a.hub IS NOT NULL)
      """)
  }

  /// Gives numbers to events for which a hub was to give them: the library is connected with none.
  private func numberWaitingEvents() throws {
    let columns = "uuid, type, time, actor, owner, item, data, share, depth, previous_share, previous_depth"
    var last = try rows.eventBounds().last
    for id in try numbers("SELECT id FROM waiting_events ORDER BY id") {
      last += 1
      try set(
        "INSERT INTO events (sequence, \(columns)) SELECT ?, \(columns) FROM waiting_events WHERE id = ?", last, id)
    }
    try connection.execute("DELETE FROM waiting_events")
  }

  private mutating func mendEvents() throws {
    try numberWaitingEvents()
    for (table, what) in [
      ("replica_logs", "places up to which logs of hubs were read"), ("replica_events", "events of hubs"),
      ("replica_comments", "comments that no hub had yet"),
    ] {
      try mend(
        "DELETE FROM \(table) WHERE account NOT IN (SELECT id FROM accounts)",
        telling: "\(what), whose account is lost")
    }
    try mend(
      "DELETE FROM events WHERE actor NOT IN (SELECT id FROM accounts) OR owner NOT IN (SELECT id FROM accounts)",
      telling: "events, whose actor or owner is lost")
    try mend("DELETE FROM events WHERE \(CheckRules.hasNoEventType)", telling: "events, whose type is none")
    try mend(
      "DELETE FROM webhooks WHERE account NOT IN (SELECT id FROM accounts)", telling: "webhooks, whose account is lost")
    try connection.execute(
      """
      DELETE FROM events WHERE length(uuid) <> 16 OR NOT json_valid(data) OR substr(data, 1, 1) <> '{'
        OR sequence <= coalesce((SELECT value FROM settings WHERE key = 'eventsBefore'), 0);
      DELETE FROM replica_events WHERE NOT json_valid(event) OR substr(event, 1, 1) <> '{'
        OR sequence <= coalesce((SELECT value FROM settings WHERE key = 'eventsBefore'), 0);
      DELETE FROM webhooks WHERE NOT json_valid(types) OR substr(types, 1, 1) <> '[';
      """)
  }
}
