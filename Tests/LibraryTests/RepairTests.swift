import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// What is saved of a library whose pages are damaged.
struct RepairTests {
  private static let seed =
    ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? .random(in: 1 ... .max)

  private struct Random: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let mixed = (state ^ (state >> 33)) &* 0xFF51_AFD7_ED55_8CCD
      return mixed ^ (mixed >> 29)
    }
  }

  /// A library of two people with folders, versions, links, deleted items, attributes, a share and packed history,
  /// which is closed.
  private func made() throws -> People {
    let people = try People()
    let fixture = people.fixture
    for folder in ["plans", "plans/deep", "old"] { try fixture.mkdir(folder) }
    var random = Random(state: 7)
    for index in 0..<40 {
      let folder = ["", "plans/", "plans/deep/", "old/"][index % 4]
      for round in 0..<3 {
        try fixture.save(
          "\(folder)doc\(index)", (0..<2000).map { _ in UInt8.random(in: 0...(8 << round), using: &random) })
        people.clock.advance(60)
      }
    }
    _ = try people.library.label(fixture.path("doc0"), name: "first", version: 1)
    _ = try people.library.link(fixture.ino("doc0"), fixture.root, Array("second name".utf8), .library)
    try people.library.setXattr(fixture.ino("doc4"), Array("user.colour".utf8), Array("blue".utf8), .set, .library)
    _ = try people.library.make(
      .symbolicLink(target: Array("doc0".utf8)), fixture.root, Array("link".utf8), mode: 0o777, .library)
    try people.share("Documents/plans", with: [(.bob, .readWrite), (.carol, .readOnly)])
    for index in [3, 7] { try fixture.unlink("old/doc\(index)") }
    people.clock.advance(60)
    people.library.keepUp()
    _ = try people.library.compact { _ in }
    try fixture.expectSound()
    try people.library.close()
    return people
  }

  private func repair(_ people: People, _ name: String) throws -> (report: RepairReport, location: LibraryLocation) {
    let location = LibraryLocation(path: "\(people.fixture.folder)/\(name).sqlite")
    return (try Library.repair(people.library.location, to: location), location)
  }

  @Test func ofASoundLibraryNothingIsLost() throws {
    let people = try made()
    let (report, location) = try repair(people, "saved")
    #expect(report.lost == [] && report.problems == [])
    #expect(report.documents == 38 && report.folders == 3 && report.accounts == 4 && report.deleted == 2)
    let before = try Library.open(people.library.location) { people.clock.now }
    let after = try Library.open(location) { people.clock.now }
    #expect(after.id == before.id)
    for index in 0..<40 where index != 3 && index != 7 {
      let path = try ItemPath(
        account: people.fixture.account, "Documents/\(["", "plans/", "plans/deep/", "old/"][index % 4])doc\(index)")
      #expect(try after.versions(path) == before.versions(path))
      #expect(try after.itemStatus(path).id == before.itemStatus(path).id)
      #expect(try contents(after, path) == contents(before, path))
    }
    let plans = try ItemPath(account: people.fixture.account, "Documents/plans")
    #expect(try after.participants(plans) == before.participants(plans))
    #expect(try after.share(of: plans)?.url == before.share(of: plans)?.url)
    let names = { (library: Library) in
      try library.list(library.documents(of: people.fixture.account), after: 0, limit: 1000, .library).map(\.name)
    }
    #expect(try names(after) == names(before))
    try before.close()
    try after.close()
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  private func contents(_ library: Library, _ path: ItemPath) throws -> [UInt8] {
    var bytes: [UInt8] = []
    for version in try library.versions(path) {
      try library.readVersion(path, number: version.number) { bytes += $0 }
    }
    return bytes
  }

  /// Whatever pages are damaged, the new library is sound, and the damaged one stays as it is.
  /// What is left of another library may hold its last saves: nothing of it is touched.
  @Test(arguments: ["", "-wal", "-changes", "-shm", "-journal", "-working", "-reserve", "-lock", "-damaged"])
  func nothingThatIsThereGoes(_ suffix: String) throws {
    let people = try made()
    let place = "\(people.fixture.folder)/saved.sqlite"
    let text = Data("somebody's".utf8)
    try text.write(to: URL(fileURLWithPath: place + suffix))
    let before = try FileManager.default.contentsOfDirectory(atPath: people.fixture.folder).sorted()
    if suffix == "-damaged" {
      _ = try repair(people, "saved")
    } else {
      expect(.exists) { _ = try repair(people, "saved") }
      #expect(try FileManager.default.contentsOfDirectory(atPath: people.fixture.folder).sorted() == before)
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: place + suffix)) == text)
  }

  /// As when the damaged library was set aside under such a name, to be saved at its former place.
  @Test func theDamagedLibraryStaysWhateverItIsCalled() throws {
    let people = try made()
    let damaged = LibraryLocation(path: "\(people.fixture.folder)/saved.sqlite-damaged")
    try FileManager.default.moveItem(atPath: people.library.location.path, toPath: damaged.path)
    let sound = try Data(contentsOf: URL(fileURLWithPath: damaged.path))
    let saved = LibraryLocation(path: "\(people.fixture.folder)/saved.sqlite")
    #expect(try Library.repair(damaged, to: saved).lost == [])
    #expect(try Data(contentsOf: URL(fileURLWithPath: damaged.path)) == sound)
    let names = try FileManager.default.contentsOfDirectory(atPath: people.fixture.folder)
    #expect(!names.contains { $0.hasPrefix(".sheaf-repair") })
  }

  /// SQLite opens nothing by a link, such as one that took the place of the new library's folder meanwhile.
  @Test func whatKeepsTheNewLibraryFromBeingMadeIsToldOfThat() throws {
    let people = try made()
    let link = "\(people.fixture.folder)/link"
    #expect(symlink(people.fixture.folder, link) == 0)
    let error = #expect(throws: SheafError.self) {
      _ = try Library.repair(people.library.location, to: LibraryLocation(path: link + "/saved.sqlite"))
    }
    #expect(error?.subject.hasPrefix(link) == true, "\(error as Any)")
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  @Test func whatLostItsEndIsReadUpToThere() throws {
    let people = try made()
    let path = people.library.location.path
    let sound = try Data(contentsOf: URL(fileURLWithPath: path))
    try sound.dropLast(4096).write(to: URL(fileURLWithPath: path))
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [] && report.documents > 0)
    let after = try Library.open(location) { people.clock.now }
    #expect(try after.check { _ in }.problems == [])
    try after.close()
  }

  /// SQLite's list of tables is not at the end of the file, how young that may be, and written anew or not.
  @Test(arguments: [1, 2, nil], [false, true])
  func aYoungLibraryThatLostItsEndIsRead(_ pages: Int?, _ isCompact: Bool) throws {
    let people = try People()
    for name in ["a", "b", "c"] { try people.fixture.save(name, Array("\(name) holds this".utf8)) }
    if isCompact { _ = try people.library.compact { _ in } }
    try people.library.close()
    let path = people.library.location.path
    let sound = try Data(contentsOf: URL(fileURLWithPath: path))
    try sound.dropLast(pages.map { $0 * 4096 } ?? sound.count / 2).write(to: URL(fileURLWithPath: path))
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [] && report.accounts == 4 && report.documents == 3)
    let after = try Library.open(location) { people.clock.now }
    #expect(try after.check { _ in }.problems == [])
    if pages != nil {
      let path = try ItemPath(account: people.fixture.account, "Documents/b")
      #expect(try contents(after, path) == Array("b holds this".utf8))
    }
    try after.close()
    // The new library can lose its end as well.
    let saved = try Data(contentsOf: URL(fileURLWithPath: location.path))
    try saved.dropLast(4096).write(to: URL(fileURLWithPath: location.path))
    let again = LibraryLocation(path: "\(people.fixture.folder)/again.sqlite")
    #expect(try Library.repair(location, to: again).documents == 3)
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  @Test func whateverIsDamagedTheNewLibraryIsSound() throws {
    let people = try made()
    let path = people.library.location.path
    let sound = try Data(contentsOf: URL(fileURLWithPath: path))
    var random = Random(state: Self.seed)
    var saved = 0
    for round in 0..<24 {
      var damaged = sound
      // Not the first page, which says where the tables are.
      let pages = damaged.count / 4096
      for _ in 0...Int.random(in: 0..<6, using: &random) {
        let start = Int.random(in: 1..<pages, using: &random) * 4096
        let length = round % 3 == 0 ? 4096 : Int.random(in: 1...64, using: &random)
        let offset = start + Int.random(in: 0...(4096 - length), using: &random)
        for index in offset..<(offset + length) { damaged[index] = UInt8.random(in: 0...255, using: &random) }
      }
      try damaged.write(to: URL(fileURLWithPath: path))
      do {
        let (report, location) = try repair(people, "saved\(round)")
        #expect(report.problems == [], "seed \(Self.seed), round \(round)")
        saved += report.documents
        // It opens, and can be used.
        let library = try Library.open(location) { people.clock.now }
        #expect(try library.check { _ in }.problems == [], "seed \(Self.seed), round \(round)")
        for account in try library.accounts() {
          _ = try library.list(library.documents(of: account.handle), after: 0, limit: 1000, .library)
        }
        try library.close()
      } catch let error as SheafError where error.kind == .corrupt {
        // Only a schema that is damaged leaves nothing.
        #expect(error.reason.contains("nothing of it can be read"), "seed \(Self.seed), round \(round): \(error)")
      }
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == damaged)
    }
    #expect(saved > 24 * 10, "seed \(Self.seed): \(saved) documents were saved")
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// Each table but those that say where everything is can be empty.
  @Test(arguments: [
    "accounts", "items", "entries", "xattrs", "versions", "chunks", "packs", "deleted", "shares", "participants",
    "events", "settings", "past_names", "inodes",
  ])
  func aTableIsLost(_ table: String) throws {
    let people = try made()
    let path = people.library.location.path
    let statement = table == "settings" ? "DELETE FROM settings WHERE key <> 'change'" : "DELETE FROM \(table)"
    _ = try Self.sqlite(path, statement)
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [])
    let library = try Library.open(location) { people.clock.now }
    #expect(try library.check { _ in }.problems == [])
    let accounts = try library.accounts()
    let alice = try #require(accounts.first { $0.handle == people.fixture.account } ?? accounts.first)
    let names = try library.list(library.documents(of: alice.handle), after: 0, limit: 1000, .library)
      .map { String(decoding: $0.name, as: UTF8.self) }
    switch table {
    case "inodes": #expect(names == ["Repaired"] && report.documents == 40)
    case "accounts":
      #expect(report.lost.contains { $0.contains("account 1 has lost its handle") } && names.contains("doc0"))
    case "versions": #expect(report.versions == 0 && names.contains("doc0"))
    case "chunks": #expect(report.lost.contains { $0.contains("none is left") } && names.contains("doc0"))
    default: #expect(names.contains("doc0") && names.contains("plans"))
    }
    try library.close()
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// The first page of a table is lost, which alone leads to the others: of numbered rows none is lost with it, of others
  /// those that it has itself.
  @Test(arguments: ["items", "inodes", "chunks", "events", "entries", "versions"])
  func whatNoPageLeadsToIsRead(_ table: String) throws {
    let people = try People()
    let names = (0..<300).map { "a document with the number \($0)" }
    var random = Random(state: 11)
    for round in 0..<2 {
      for name in names {
        let bytes = (0..<900).map { _ in UInt8.random(in: 0 ... .max, using: &random) }
        try people.fixture.save(name, bytes + Array("\(round) \(name)".utf8))
      }
      people.clock.advance(60)
    }
    people.library.keepUp()
    let paths = try names.map { try ItemPath(account: people.fixture.account, "Documents/\($0)") }
    let before = try paths.map { try contents(people.library, $0) }
    try people.library.close()
    let path = people.library.location.path
    _ = try Self.sqlite(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    let root = try #require(
      Int(Self.sqlite(path, "SELECT rootpage FROM sqlite_schema WHERE name = '\(table)'")))
    var damaged = try Data(contentsOf: URL(fileURLWithPath: path))
    let place = (root - 1) * 4096
    #expect([0x02, 0x05].contains(damaged[place]), "\(table) has one page alone")
    let isNumbered = damaged[place] == 0x05
    let rows = Int(damaged[place + 3]) << 8 | Int(damaged[place + 4])
    damaged.replaceSubrange(place..<place + 4096, with: Data(count: 4096))
    try damaged.write(to: URL(fileURLWithPath: path))
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [] && report.documents == names.count)
    let after = try Library.open(location) { people.clock.now }
    #expect(try after.check { _ in }.problems == [])
    var different = 0
    for (path, bytes) in zip(paths, before) {
      let found = try? contents(after, path)
      if found != bytes { different += 1 }
    }
    #expect(isNumbered ? different == 0 && report.lost == [] : different <= rows, "\(different): \(report.lost)")
    try after.close()
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// The rows of folders and documents are lost. Folders of which an entry is left are where they were, and documents have
  /// the names that events tell.
  @Test func whatEntriesAndEventsTellIsNotLost() throws {
    let people = try People()
    let fixture = people.fixture
    for folder in ["plans", "plans/deep"] { try fixture.mkdir(folder) }
    for name in ["plans/kept.md", "plans/deep/inner.md", "letter.md"] { try fixture.save(name, Array(name.utf8)) }
    try fixture.rename("letter.md", "plans/letter (2).md")
    people.clock.advance(60)
    people.library.keepUp()
    try people.library.close()
    let path = people.library.location.path
    let lost = ["plans", "deep", "letter (2).md"].map { Self.named($0) }.joined(separator: " OR ")
    _ = try Self.sqlite(path, "DELETE FROM inodes WHERE \(lost)")
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [] && report.documents == 3)
    let after = try Library.open(location) { people.clock.now }
    for (path, text) in [
      ("plans/kept.md", "plans/kept.md"), ("plans/deep/inner.md", "plans/deep/inner.md"),
      ("Repaired/letter (2).md", "letter.md"),
    ] {
      let found = try contents(after, ItemPath(account: fixture.account, "Documents/\(path)"))
      #expect(found == Array(text.utf8), "\(path)")
    }
    #expect(report.lost.contains { $0.hasPrefix("plans is a folder that has a new id") }, "\(report.lost)")
    #expect(report.lost.contains { $0.hasPrefix("Repaired/letter (2).md has lost its folder") }, "\(report.lost)")
    try after.close()
    try FileManager.default.removeItem(atPath: fixture.folder)
  }

  /// A field that only describes costs no row, and nobody may do more by what takes its place.
  @Test func aFieldThatCannotBeCostsNoRow() throws {
    let people = try made()
    let whole = try repair(people, "whole").report
    _ = try Self.sqlite(
      people.library.location.path,
      """
      PRAGMA ignore_check_constraints = ON;
      UPDATE versions SET cause = 17, open = 5, size = -1; UPDATE items SET quiet = 7, kind = 9;
      UPDATE shares SET title = '', public_permission = 9, permission = 9;
      UPDATE shares SET allow_invites = 3, allow_requests = 3, active = 5;
      UPDATE participants SET role = 9, permission = 9, acceptance = 9 WHERE role <> 1
      """)
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [] && report.documents == whole.documents && report.versions == whole.versions)
    #expect(report.lost.contains("the cause of \(whole.versions) of the versions, which is save now"), "\(report.lost)")
    #expect(report.lost.contains("the state of 1 of the shares, which is ended now"), "\(report.lost)")
    #expect(report.lost.contains("the acceptance of 2 of the participants, which is removed now"), "\(report.lost)")
    func count(_ rows: String) throws -> String { try Self.sqlite(location.path, "SELECT count(*) FROM \(rows)") }
    #expect(try count("versions WHERE cause = 1 AND open = 0 AND size = 2000") == "\(whole.versions)")
    #expect(
      try count(
        """
        shares WHERE title = 'Repaired' AND public_permission = 0 AND permission = 1
          AND allow_invites = 0 AND allow_requests = 0 AND active = 0
        """) == "1")
    #expect(try count("participants WHERE role = 3 AND permission = 1 AND acceptance = 3") == "2")
    #expect(try count("participants WHERE role = 1 AND permission = 2 AND acceptance = 2") == "1")
    let library = try Library.open(location) { people.clock.now }
    #expect(try library.check { _ in }.problems == [])
    try library.close()
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// Others are counted on from such numbers, so no library is opened that has one. Work that a process had not finished
  /// is not saved.
  @Test(
    arguments: [
      "UPDATE accounts SET id = ? WHERE id = (SELECT max(id) FROM accounts)",
      "UPDATE accounts SET documents = ? WHERE id = (SELECT max(id) FROM accounts)",
      "UPDATE items SET id = ? WHERE id = (SELECT max(id) FROM items)",
      "UPDATE items SET last_version = ? WHERE id = (SELECT max(id) FROM items WHERE kind = 1)",
      "UPDATE inodes SET ino = ? WHERE ino = (SELECT max(ino) FROM inodes)",
      "UPDATE inodes SET item = ? WHERE ino = (SELECT max(ino) FROM inodes)",
      "UPDATE versions SET item = ? WHERE (item, number) = (SELECT item, number FROM versions LIMIT 1)",
      "UPDATE versions SET number = ? WHERE (item, number) = (SELECT item, number FROM versions LIMIT 1)",
      "UPDATE chunks SET id = ? WHERE id = (SELECT max(id) FROM chunks)",
      "UPDATE events SET sequence = ? WHERE sequence = (SELECT max(sequence) FROM events)",
      """
      UPDATE past_names SET parent = ?
      WHERE (parent, name, until, item) = (SELECT parent, name, until, item FROM past_names LIMIT 1)
      """,
      """
      UPDATE past_names SET item = ?
      WHERE (parent, name, until, item) = (SELECT parent, name, until, item FROM past_names LIMIT 1)
      """,
      "INSERT OR REPLACE INTO settings (key, value) VALUES ('itemsBefore', ?)",
      "INSERT OR REPLACE INTO settings (key, value) VALUES ('chunksPacked', ?)",
      "INSERT OR REPLACE INTO settings (key, value) VALUES ('chunksCompressed', ?)",
      "INSERT OR REPLACE INTO settings (key, value) VALUES ('eventsBefore', ?)",
      "INSERT OR REPLACE INTO settings (key, value) VALUES ('eventsTo', ?)",
      """
      INSERT INTO pending_events SELECT ?, uuid, type, time, actor, owner, item, data, share, depth, previous_share,
        previous_depth, 0 FROM events LIMIT 1
      """,
      """
      INSERT INTO waiting_events SELECT ?, uuid, type, time, actor, owner, item, data, share, depth, previous_share,
        previous_depth FROM events LIMIT 1
      """,
      """
      INSERT INTO replica_events (sequence, account, log, number, uuid, type, time, subject, past, repeated, event)
      SELECT ?, owner, uuid, 1, uuid, type, time, uuid, 0, 0, data FROM events LIMIT 1
      """,
    ], [1 << 53, Int64.max])
  func aNumberThatNoLibraryReachesIsToldOf(_ statement: String, _ number: Int64) throws {
    let people = try made()
    let change = statement.replacing("?", with: "\(number)") + "; SELECT changes()"
    #expect(try Self.sqlite(people.library.location.path, change) == "1")
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [])
    // Not all that is stored is still a document's.
    let maySayNothing = statement.hasPrefix("INSERT INTO") || statement.hasPrefix("UPDATE chunks")
    #expect(maySayNothing || !report.lost.isEmpty)
    let library = try Library.open(location) { people.clock.now }
    #expect(try library.check { _ in }.problems == [])
    try library.close()
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// Bytes that have their hash are whole, whatever their row says of their size: as they are, compressed and packed.
  @Test(arguments: [7, -1, Int64.max]) func bytesOfAWrongSizeStay(_ size: Int64) throws {
    let fixture = try LibraryFixture()
    var random = SeededRandom()
    try fixture.save("plain", random.bytes(5000))
    var text = (0..<3000).map { "line \($0 * $0 % 997)\n" }
    var versions: [[UInt8]] = []
    for index in 0..<20 {
      text[index * 100] = "changed \(index)\n"
      versions.append(Array(text.joined().utf8))
      try fixture.save("packed", versions[index])
      fixture.clock.advance(60)
    }
    _ = try fixture.library.compact { _ in }
    let plain = try fixture.read("plain")
    try fixture.library.close()
    #expect(try Self.sqlite(fixture.path, "SELECT DISTINCT encoding FROM chunks ORDER BY 1") == "0\n1\n2")
    let changed = try Self.sqlite(
      fixture.path, "UPDATE chunks SET size = \(size) WHERE size <> \(size); SELECT changes()")
    let location = LibraryLocation(path: "\(fixture.folder)/saved.sqlite")
    let report = try Library.repair(fixture.library.location, to: location)
    #expect(report.problems == [])
    #expect(report.lost == ["the size of \(changed) of the chunks, which is that of their bytes now"])
    let library = try Library.open(location) { fixture.clock.now }
    for (index, version) in versions.enumerated() {
      let isSame = try Self.contents(of: Int64(index + 1), library, fixture.path("packed")) == version
      #expect(isSame, "version \(index + 1)")
    }
    #expect(try Self.contents(of: nil, library, fixture.path("plain")) == plain)
    try library.close()
    try FileManager.default.removeItem(atPath: fixture.folder)
  }

  /// Of versions with one label each stays, and one has it: one that can be read.
  @Test(arguments: [false, true]) func ofTwoEqualLabelsOneIsLost(_ firstIsLost: Bool) throws {
    let people = try made()
    let item = "item = (SELECT item FROM inodes WHERE name = CAST('doc0' AS BLOB))"
    _ = try Self.sqlite(
      people.library.location.path,
      """
      DROP INDEX versions_label; UPDATE versions SET label = 'first' WHERE \(item);
      UPDATE versions SET content = x'09' WHERE \(item) AND number = 1 AND \(firstIsLost ? 1 : 0)
      """)
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [])
    let holder: Int64 = firstIsLost ? 2 : 1
    let lines = (holder + 1...3).map {
      "Documents/doc0: the label first of version \($0), which version \(holder) has as well, is lost"
    }
    #expect(report.lost.filter { $0.contains("label") } == lines && report.lost.count == 2, "\(report.lost)")
    let library = try Library.open(location) { people.clock.now }
    let versions = try library.versions(ItemPath(account: people.fixture.account, "Documents/doc0"))
    #expect(versions.map(\.number) == Array(firstIsLost ? 2...3 : 1...3))
    #expect(versions.filter { $0.label == "first" }.map(\.number) == [holder])
    try library.close()
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// Changes rows of a table as if no column were unique. Its indexes stay as they are.
  private static func change(_ library: String, _ table: String, _ statements: String) throws {
    _ = try sqlite(
      library,
      """
      PRAGMA writable_schema = ON;
      CREATE TEMP TABLE kept AS SELECT * FROM sqlite_schema WHERE tbl_name = '\(table)';
      UPDATE sqlite_schema SET sql = replace(sql, ' UNIQUE', '') WHERE name = '\(table)';
      DELETE FROM sqlite_schema WHERE name LIKE 'sqlite_autoindex_\(table)_%';
      PRAGMA writable_schema = RESET;
      \(statements);
      PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = (SELECT sql FROM kept WHERE name = '\(table)') WHERE name = '\(table)';
      INSERT INTO sqlite_schema SELECT * FROM kept WHERE name LIKE 'sqlite_autoindex_\(table)_%';
      PRAGMA writable_schema = RESET
      """)
  }

  /// A way to give two rows of a table one value in a column that is unique, and how a line about it begins.
  struct Repetition: CustomStringConvertible, Sendable {
    let table: String
    let sql: String
    let line: String

    var description: String { "\(line): \(sql)" }

    init(_ table: String, _ sql: String, _ line: String) { (self.table, self.sql, self.line) = (table, sql, line) }

    /// A row gets the value of another one.
    init(_ table: String, _ column: String, of other: String, for row: String, _ line: String) {
      let sql = "UPDATE \(table) SET \(column) = (SELECT \(column) FROM \(table) WHERE \(other)) WHERE \(row)"
      self.init(table, sql, line)
    }
  }

  static let repetitions = [
    Repetition("accounts", "handle", of: "id = 1", for: "id = 3", "account 3 has the handle of another account"),
    Repetition("accounts", "handle", of: "id = 3", for: "id = 1", "account 1 has the handle of another account"),
    Repetition("accounts", "documents", of: "id = 1", for: "id = 3", "account 3 has lost its Documents"),
    Repetition("accounts", "documents", of: "id = 3", for: "id = 1", "account 1 has lost its Documents"),
    Repetition("items", "uuid", of: "id = 3", for: "id = 5", "the ids of 1 of the files"),
    Repetition("items", "uuid", of: "id = 5", for: "id = 3", "the ids of 1 of the files"),
    Repetition("inodes", "item", of: named("doc0"), for: named("doc4"), "Documents/doc4 has a new id"),
    Repetition("inodes", "item", of: named("doc4"), for: named("doc0"), "Documents/doc0 has a new id"),
    Repetition("shares", secondShare, "Documents/old has a new link"),
    Repetition("shares", secondShare, "the ids of 1 of the shares"),
    Repetition(
      "webhooks",
      """
      INSERT INTO webhooks VALUES (1, zeroblob(16), 1, 'https://x', 'whsec_', '[]', 0);
      INSERT INTO webhooks VALUES (2, zeroblob(16), 1, 'https://y', 'whsec_', '[]', 0)
      """, "the ids of 1 of the webhooks"),
  ]

  private static func named(_ name: String) -> String { "name = CAST('\(name)' AS BLOB)" }

  /// Another share with the id and the link of the first one.
  private static let secondShare = """
    INSERT INTO shares
      SELECT (SELECT item FROM inodes WHERE \(named("old"))), uuid, token, 'old', 0, 1, 0, 0, 1, created, since, url
      FROM shares
    """

  /// Both rows stay, whichever comes first, and the command says which one got another value.
  @Test(arguments: repetitions) func ofTwoEqualValuesOneGetsAnother(_ repetition: Repetition) throws {
    let people = try made()
    let whole = try repair(people, "whole").report
    try Self.change(people.library.location.path, repetition.table, repetition.sql)
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [] && report.lost.contains { $0.hasPrefix(repetition.line) }, "\(report.lost)")
    #expect(report.accounts == whole.accounts && report.versions == whole.versions)
    let counts = try [people.library.location.path, location.path].compactMap {
      Int(try Self.sqlite($0, "SELECT count(*) FROM \(repetition.table) NOT INDEXED"))
    }
    #expect(counts.count == 2 && counts[0] <= counts[1], "\(counts)")
    let library = try Library.open(location) { people.clock.now }
    #expect(try library.check { _ in }.problems == [])
    try library.close()
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// A chunk that is there twice stands for itself where one of the two is damaged.
  @Test(arguments: [false, true]) func ofTwoEqualChunksTheWholeOneStays(_ firstIsDamaged: Bool) throws {
    let fixture = try LibraryFixture()
    var random = SeededRandom()
    try fixture.save("plain", random.bytes(1000))
    let plain = try fixture.read("plain")
    try fixture.library.close()
    try Self.change(
      fixture.path, "chunks",
      """
      INSERT INTO chunks SELECT 999, hash, size, encoding, data FROM chunks WHERE size = 1000;
      UPDATE chunks SET data = zeroblob(1000) WHERE size = 1000 AND id \(firstIsDamaged ? "<" : "=") 999
      """)
    let location = LibraryLocation(path: "\(fixture.folder)/saved.sqlite")
    let report = try Library.repair(fixture.library.location, to: location)
    #expect(report.problems == [] && report.lost == [])
    let library = try Library.open(location) { fixture.clock.now }
    #expect(try Self.contents(of: nil, library, fixture.path("plain")) == plain)
    try library.close()
    try FileManager.default.removeItem(atPath: fixture.folder)
  }

  /// Whom nobody can be does not own a file, and nobody becomes who takes their place by running it.
  @Test func whoCannotBeOwnsNothing() throws {
    let people = try made()
    let name = "name = CAST('doc0' AS BLOB)"
    _ = try Self.sqlite(
      people.library.location.path,
      """
      UPDATE inodes SET uid = 11, gid = 12 WHERE parent = 0;
      UPDATE inodes SET uid = -1, gid = 4294967295, mode = 33261 + 3072 + 65536 * 5 WHERE \(name);
      UPDATE inodes SET uid = 4294967296 WHERE parent = 0 AND owner = 2
      """)
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [] && report.lost.count == 4, "\(report.lost)")
    #expect(try Self.sqlite(location.path, "SELECT uid, gid, mode FROM inodes WHERE \(name)") == "11|12|33261")
    let documents = try Self.sqlite(location.path, "SELECT uid, gid FROM inodes WHERE parent = 0 AND owner = 2")
    #expect(documents == "\(getuid())|12")
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// A share by whose token nobody can join is none.
  @Test func aShareOfAForeignTokenIsNone() throws {
    let people = try made()
    _ = try Self.sqlite(people.library.location.path, "UPDATE shares SET token = '0123456789012345678901/'")
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [] && report.lost.count == 1)
    #expect(report.lost.first?.hasPrefix("Documents/plans is not shared") == true, "\(report.lost)")
    #expect(try Self.sqlite(location.path, "SELECT count(*) FROM shares") == "0")
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// What lies behind the last page is not read. Where the header does not tell that page, the hole takes no time.
  @Test(.timeLimit(.minutes(1)), arguments: [true, false])
  func aHoleAtTheEndTakesNoTime(_ isCounted: Bool) throws {
    let people = try made()
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: people.library.location.path))
    if !isCounted {
      // The number of the change for which the number of pages holds (SQLite file format, 1.3.7).
      try file.seek(toOffset: 92)
      try file.write(contentsOf: Data(repeating: 0xFF, count: 4))
    }
    try file.truncate(atOffset: 1 << 40)
    try file.close()
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [] && report.lost == [] && report.documents == 38)
    #expect(try FileHandle(forReadingFrom: URL(fileURLWithPath: location.path)).seekToEnd() < 1 << 30)
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// What of a document is destroyed; pieces of it lie 16 KiB apart.
  enum Loss: CaseIterable {
    /// A piece that both versions have, and one that the second has alone.
    case piece, newPiece
    /// The list of the extents of the last part of both.
    case node
  }

  /// Of a document of which some bytes are damaged the rest stays, under the numbers that its versions have.
  @Test(arguments: [16, 400], Loss.allCases) func ofADamagedDocumentTheRestStays(_ pieces: Int, _ loss: Loss) throws {
    guard loss != .node || pieces > 100 else { return }
    let fixture = try LibraryFixture()
    var random = SeededRandom()
    try fixture.save("whole", "this is whole")
    let handle = try fixture.open("doc", O_RDWR | O_CREAT)
    var parts = (0..<pieces).map { _ in random.bytes(4096) }
    for (index, part) in parts.enumerated() { try fixture.write(handle, part, at: Int64(index) * 16384) }
    try fixture.close(handle)
    let path = try fixture.path("doc")
    let first = try fixture.read("doc")
    fixture.clock.advance(60)
    parts[1] = random.bytes(4096)
    let again = try fixture.open("doc", O_RDWR)
    try fixture.write(again, parts[1], at: 16384)
    try fixture.close(again)
    let second = try fixture.read("doc")
    fixture.clock.advance(60)
    fixture.library.keepUp()
    #expect(try fixture.library.check { _ in }.damaged == [])
    try fixture.library.close()

    let chunk =
      switch loss {
      case .piece: "instr(data, x'\(Self.hex(parts[5].prefix(16)))') > 0"
      case .newPiece: "instr(data, x'\(Self.hex(parts[1].prefix(16)))') > 0"
      case .node: "id = \(try Self.lastNode(fixture.path))"
      }
    let changed = try Self.sqlite(
      fixture.path, "UPDATE chunks SET data = zeroblob(length(data)) WHERE \(chunk); SELECT changes()")
    #expect(changed == "1")
    let versions: [Int64] = loss == .newPiece ? [2] : [2, 1]

    let damaged = try Library.open(fixture.library.location) { fixture.clock.now }
    let report = try damaged.check { _ in }
    #expect(report.problems.count > 0 && report.damaged.count == 1)
    #expect(
      report.damaged.first
        == DamagedDocument(
          id: try damaged.itemStatus(path).id, account: "alice@example.com", path: "Documents/doc", isDeleted: false,
          versions: versions, isCurrent: true))
    try damaged.close()

    let location = LibraryLocation(path: "\(fixture.folder)/saved.sqlite")
    let repaired = try Library.repair(fixture.library.location, to: location)
    #expect(repaired.problems == [] && repaired.lost.count == 1, random.note)
    let line = repaired.lost.first ?? ""
    #expect(line.hasPrefix("Documents/doc: version 2 lacks "), "\(line)")
    #expect(line.hasSuffix("; version 1 is whole") == (loss == .newPiece), "\(line)")
    let library = try Library.open(location) { fixture.clock.now }
    #expect(try library.check { _ in }.problems == [])
    #expect(try library.versions(path).map(\.number) == [1, 2])
    for (number, before) in [(1, first), (2, second)] as [(Int64, [UInt8])] {
      var bytes: [UInt8] = []
      try library.readVersion(path, number: number) { bytes += $0 }
      guard versions.contains(number) else {
        #expect(bytes == before, "version \(number)")
        continue
      }
      #expect(bytes.count == before.count)
      // Nothing but zeros takes the place of what is lost, and that is as much as was told.
      let lost = zip(bytes, before).count { $0 != $1 }
      #expect(zip(bytes, before).allSatisfy { $0 == $1 || $0 == 0 } && lost > 0)
      if loss != .node {
        #expect(lost <= 64 << 10 && bytes.suffix(4096) == before.suffix(4096))
      } else {
        #expect(bytes.prefix(4096) == before.prefix(4096))
      }
    }
    var whole: [UInt8] = []
    try library.readVersion(fixture.path("whole"), number: nil) { whole += $0 }
    #expect(whole == Array("this is whole".utf8))
    // It can be used as any other one.
    let ino = try library.lookup(library.documents(of: fixture.account), Array("doc".utf8), .library).ino
    let opened = try library.open(ino, flags: O_RDWR, .library)
    try parts[2].withUnsafeBytes { try library.write(opened, at: 0, $0) }
    try library.flush(opened)
    try library.release(opened)
    #expect(try library.check { _ in }.problems == [])
    try library.close()
    try FileManager.default.removeItem(atPath: fixture.folder)
  }

  /// The pages of the list of tables, behind the first one (SQLite file format, 1.6).
  private func pagesOfList(_ data: Data) throws -> [Int] {
    let number = { (place: Int, count: Int) in data[place..<(place + count)].reduce(0) { $0 << 8 | Int($1) } }
    try #require(data[100] == 0x05)
    let cells = (0..<number(103, 2)).map { number(112 + 2 * $0, 2) }
    return cells.map { number($0, 4) } + [number(108, 4)]
  }

  /// SQLite takes no table of such a list. One row costs no more than its own table.
  @Test(arguments: ["bit of a header", "pointer", "statement", "column", "bytes"])
  func oneRowOfTheListOfTablesIsDamaged(_ damage: String) throws {
    let people = try made()
    let path = people.library.location.path
    let sound = try Data(contentsOf: URL(fileURLWithPath: path))
    let pages = try pagesOfList(sound)
    let all = try repair(people, "all").report
    var random = Random(state: Self.seed)
    var (refused, whole, rounds) = (0, 0, 0)
    while refused < 12 {
      rounds += 1
      try #require(rounds < 400, "\(damage) is no damage")
      var damaged = sound
      let start = (pages.randomElement(using: &random)! - 1) * 4096
      let count = Int(damaged[start + 3]) << 8 | Int(damaged[start + 4])
      let pointer = start + 8 + 2 * Int.random(in: 0..<count, using: &random)
      let cell = start + (Int(damaged[pointer]) << 8 | Int(damaged[pointer + 1]))
      switch damage {
      case "bit of a header":
        damaged[start + Int.random(in: 0..<8, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case "pointer":
        damaged[pointer + Int.random(in: 0..<2, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case "column":
        damaged[cell + Int.random(in: 0..<10, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case "statement": damaged[cell + Int.random(in: 40..<70, using: &random)] = 0xFF
      default:
        let length = Int.random(in: 1..<200, using: &random)
        let offset = start + Int.random(in: 8..<(4096 - length), using: &random)
        for index in offset..<(offset + length) { damaged[index] = UInt8.random(in: 0...255, using: &random) }
      }
      try damaged.write(to: URL(fileURLWithPath: path))
      guard try Self.isRefused(path) else { continue }
      refused += 1
      let (report, location) = try repair(people, "saved\(refused)")
      #expect(report.problems == [], "seed \(Self.seed), \(damage), \(refused)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == damaged)
      let library = try Library.open(location) { people.clock.now }
      #expect(try library.check { _ in }.problems == [], "seed \(Self.seed), \(damage), \(refused)")
      if report.documents == all.documents, report.versions == all.versions { whole += 1 }
      try library.close()
    }
    // Most tables have a row of which nothing is lost, or say nothing of documents.
    #expect(whole >= 5, "seed \(Self.seed), \(damage): \(whole) of \(refused) are whole")
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// Items whose rows are lost are as old as their names and versions: who restores a folder as it was before the repair
  /// loses none of them.
  @Test func whatIsMendedDoesNotCountAsNew() throws {
    let people = try made()
    let path = people.library.location.path
    let names = ["doc0", "doc4", "plans"].map { "CAST('\($0)' AS BLOB)" }.joined(separator: ", ")
    let lost = "SELECT item FROM inodes WHERE name IN (\(names))"
    // All of it was done long before the repair, which goes by the machine's clock.
    let age: Int64 = 400 * 86_400
    let shift = "= since - \(age * 1_000_000_000)"
    _ = try Self.sqlite(
      path,
      """
      DELETE FROM items WHERE id IN (\(lost)); UPDATE entries SET since \(shift);
      UPDATE versions SET time \(shift.replacing("since", with: "time"));
      UPDATE items SET created \(shift.replacing("since", with: "created"))
      """)
    #expect(try Self.sqlite(path, "SELECT changes() + count(*) FROM items WHERE id IN (\(lost))") == "0")
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [])
    let library = try Library.open(location) { people.clock.now }
    let documents = try ItemPath(account: people.fixture.account, "Documents")
    let restoration = try library.restoreFolder(
      documents, FolderRestoreRequest(time: Timestamp(seconds: people.clock.now.seconds - age), dryRun: true)
    ) { _ in }
    #expect(!restoration.steps.contains { $0.action == .delete }, "\(restoration.steps)")
    try library.close()
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// Programs that noted when something came to this machine, and not when it was made, made items look new: who restores
  /// a folder as it was before they came loses none of them.
  @Test func whatCameLateDoesNotCountAsNew() throws {
    let people = try made()
    let late = people.clock.now.seconds + 60
    _ = try Self.sqlite(
      people.library.location.path,
      "UPDATE items SET created = \(late)000000000 WHERE id > 2; UPDATE entries SET since = \(late)000000000")
    people.clock.advance(120)
    let library = try Library.open(people.library.location) { people.clock.now }
    let documents = try ItemPath(account: people.fixture.account, "Documents")
    let restoration = try library.restoreFolder(
      documents, FolderRestoreRequest(time: Timestamp(seconds: late - 30), dryRun: true)
    ) { _ in }
    #expect(!restoration.steps.contains { $0.action == .delete }, "\(restoration.steps)")
    #expect(restoration.steps.contains { $0.action == .leave })
    try library.close()
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// Somebody elsewhere of whom only the hub is known is an account of the library.
  @Test(arguments: ["NULL", "'bob'", "'x'"]) func whoHasLostTheirHandleAtAHubIsAnAccount(_ shown: String) throws {
    let people = try made()
    _ = try Self.sqlite(people.library.location.path, "UPDATE accounts SET hub = 'x', shown = \(shown) WHERE id = 3")
    let (report, location) = try repair(people, "saved")
    #expect(report.problems == [] && report.accounts == 4 && report.lost.contains { $0.contains("account 3") })
    let library = try Library.open(location) { people.clock.now }
    #expect(try library.accounts().count == 4)
    #expect(try library.check { _ in }.problems == [])
    try library.close()
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// Nobody can have set these.
  @Test(arguments: ["keepDeleted", "keepDeleted.3", "keepVersions", "keepVersions.3", "chunksCompressed"])
  func settingsAtTheirExtremesEndNothing(_ key: String) throws {
    for value in [Int64.min, -1, .max] {
      let people = try made()
      _ = try Self.sqlite(
        people.library.location.path, "INSERT OR REPLACE INTO settings (key, value) VALUES ('\(key)', \(value))")
      let library = try Library.open(people.library.location) { people.clock.now }
      library.keepUp()
      _ = try library.compact { _ in }
      #expect(try library.check { _ in }.problems == [])
      try library.close()
      try FileManager.default.removeItem(atPath: people.fixture.folder)
    }
  }

  /// The error names the library, and not the folder at which it is mounted.
  @Test(arguments: [
    "UPDATE accounts SET documents = 99 WHERE id = 1",
    "UPDATE accounts SET documents = -9223372036854775808 WHERE id = 1",
    "UPDATE inodes SET mode = 2",
  ])
  func aLibraryWithoutDocumentsIsCorrupt(_ sql: String) throws {
    let people = try made()
    _ = try Self.sqlite(people.library.location.path, sql)
    let library = try Library.open(people.library.location) { people.clock.now }
    let error = #expect(throws: SheafError.self) { _ = try library.documents(of: people.fixture.account) }
    #expect(error?.kind == .corrupt && error?.subject == library.location.path, "\(error as Any)")
    try? library.close()
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// A row whose key is damaged is nobody else's row, and takes no other one along. An index knows the number.
  @Test(arguments: ["inodes", "items", "chunks", "versions"], [true, false])
  func aRowOfAnotherNumberIsNoOthers(_ table: String, _ hasIndex: Bool) throws {
    let people = try made()
    let path = people.library.location.path
    let names = try (0..<40).filter { $0 != 3 && $0 != 7 }.map {
      try ItemPath(
        account: people.fixture.account, "Documents/\(["", "plans/", "plans/deep/", "old/"][$0 % 4])doc\($0)")
    }
    let before = try Library.open(people.library.location) { people.clock.now }
    let texts = try names.map { name in
      try before.versions(name).map { try Self.contents(of: $0.number, before, name) }
    }
    try before.close()
    // Folders do not count, whose items would be elsewhere.
    let key = ["inodes": "ino", "versions": "item"][table] ?? "id"
    // The key of a version is its item and its number, and no index has it.
    let hasIndex = hasIndex && table != "versions"
    let documents =
      table == "chunks" || table == "versions"
      ? "SELECT \(key) FROM \(table)"
      : "SELECT \(table == "items" ? "item" : "ino") FROM inodes WHERE content IS NOT NULL AND nlink > 0"
    let candidates = Set(
      try Self.sqlite(path, "SELECT \(key) FROM \(table) WHERE \(key) IN (\(documents))").split(separator: "\n")
        .compactMap { Int64($0) })
    let index = try Self.sqlite(path, "SELECT pageno FROM dbstat WHERE name = 'sqlite_autoindex_\(table)_1'")
    var sound = try Data(contentsOf: URL(fileURLWithPath: path))
    for page in index.split(separator: "\n").compactMap({ Int($0) }) where !hasIndex {
      sound.replaceSubrange((page - 1) * 4096..<page * 4096, with: repeatElement(0xFF, count: 4096))
    }
    let cells = try Self.cells(of: table, path, sound)
    #expect(cells.count > 30)
    var random = SeededRandom()
    for round in 0..<12 {
      let cell = try #require(cells.filter { candidates.contains($0.number) }.randomElement(using: &random))
      let others = cells.filter {
        $0.length == cell.length && $0.number != cell.number && candidates.contains($0.number)
      }
      let other = try #require(
        round % 4 == 3
          ? others.min { abs($0.number - cell.number) < abs($1.number - cell.number) }
          : others.randomElement(using: &random))
      var damaged = sound
      func set(_ number: Int64, _ cell: Cell) {
        let bytes = cell.length == 1 ? [UInt8(number)] : [UInt8(number >> 7) | 0x80, UInt8(number & 0x7F)]
        damaged.replaceSubrange(cell.offset..<(cell.offset + cell.length), with: bytes)
      }
      // Another row's, or any one of that length. If the other row has this one's, no later row takes its place; or they
      // are neighbours.
      let number =
        round % 4 == 1 ? Int64.random(in: cell.length == 1 ? 1...127 : 128...16383, using: &random) : other.number
      if number == cell.number { continue }
      set(number, cell)
      if round % 4 > 1 { set(cell.number, other) }
      try damaged.write(to: URL(fileURLWithPath: path))
      let (report, location) = try repair(people, "saved\(round)")
      // Of neighbours whose numbers do not fit, nobody knows which one is wrong.
      let note = "round \(round): \(table) \(cell.number) became \(number): \(random.note)"
      #expect(report.problems == [], "\(note)")
      let library = try Library.open(location) { people.clock.now }
      var changed: [String] = []
      for (name, texts) in zip(names, texts) {
        let found = try? Self.contents(of: nil, library, name)
        if found == texts.last { continue }
        changed.append("\(name)")
        guard let found else { continue }
        let isOwn = texts.contains { text in
          found.count <= text.count && zip(found, text).allSatisfy { $0 == $1 || $0 == 0 }
        }
        #expect(isOwn, "\(note): \(name)")
      }
      let isMended = hasIndex && round % 4 < 2
      #expect(changed.count <= (isMended ? 0 : 3) && (report.lost == [] || !isMended), "\(note): \(report.lost)")
      try library.close()
    }
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  private static func contents(of version: Int64?, _ library: Library, _ path: ItemPath) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try library.readVersion(path, number: version) { bytes += $0 }
    return bytes
  }

  /// Where the number of a row is in the file, and in how many bytes.
  private struct Cell {
    let number: Int64
    let offset: Int
    let length: Int
  }

  /// The numbers with which the keys of a table's rows begin, of those that have one byte or two (SQLite file format,
  /// 1.6 and 2.1).
  private static func cells(of table: String, _ library: String, _ file: Data) throws -> [Cell] {
    let pages = try sqlite(library, "SELECT pageno FROM dbstat WHERE name = '\(table)' AND pagetype = 'leaf'")
    var cells: [Cell] = []
    for page in pages.split(separator: "\n").compactMap({ Int($0) }) {
      let start = (page - 1) * 4096
      let number = { (offset: Int) in Int(file[start + offset]) << 8 | Int(file[start + offset + 1]) }
      for index in 0..<number(3) {
        var offset = start + number(8 + 2 * index)
        // The length of the row comes before.
        while file[offset] & 0x80 != 0 { offset += 1 }
        offset += 1
        if file[start] == 0x0A {
          // A row that is its own key: its first column follows the header, which has the form of that first.
          let column = offset + Int(file[offset])
          if file[offset + 1] == 1 { cells.append(Cell(number: Int64(file[column]), offset: column, length: 1)) }
          continue
        }
        if file[offset] & 0x80 == 0 {
          cells.append(Cell(number: Int64(file[offset]), offset: offset, length: 1))
        } else if file[offset + 1] & 0x80 == 0 {
          let number = Int64(file[offset] & 0x7F) << 7 | Int64(file[offset + 1])
          cells.append(Cell(number: number, offset: offset, length: 2))
        }
      }
    }
    return cells
  }

  private static func hex(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// The chunk of the last node of the second version of the only document that has nodes.
  private static func lastNode(_ library: String) throws -> Int64 {
    let hex = Array(try sqlite(library, "SELECT hex(content) FROM versions WHERE number = 2"))
    let bytes = stride(from: 0, to: hex.count - 1, by: 2).compactMap { UInt8(String(hex[$0...($0 + 1)]), radix: 16) }
    guard case .nodes(let nodes) = try StoredContent(encoded: bytes) else { return 0 }
    #expect(nodes.count > 1)
    return nodes.last?.chunk ?? 0
  }

  /// Whether SQLite reads nothing of a file.
  private static func isRefused(_ library: String) throws -> Bool {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/sqlite3")
    process.arguments = [library, "SELECT count(*) FROM sqlite_schema"]
    (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
    try process.run()
    process.waitUntilExit()
    return process.terminationStatus != 0
  }

  private static func sqlite(_ library: String, _ statement: String) throws -> String {
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(fileURLWithPath: "/usr/bin/sqlite3")
    process.arguments = [library, statement]
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    return text.trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
