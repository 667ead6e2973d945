import Foundation
import GRDB
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// What `sheaf find` finds, and for whom.
struct FindTests {
  private func find(
    _ library: Library, _ account: AccountHandle, _ text: String? = nil, in path: String? = nil, name: String? = nil,
    by: AccountHandle? = nil, since: Timestamp? = nil, deleted: Bool = false, versions: Bool = false, limit: Int = 100
  ) throws -> FoundItems {
    let request = try FindRequest(
      text: text, name: name, by: by, since: since, deleted: deleted, versions: versions, limit: limit)
    return try library.find(account, in: path.map { try ItemPath(account: account, $0) }, request) { _ in }
  }

  private func paths(_ found: FoundItems) -> [String] {
    found.items.map { $0.path.replacing(#/^Documents\//#, with: "") }
  }

  private static let patterns: [(pattern: String, name: String, matches: Bool)] = [
    ("*.md", "a.md", true), ("*.md", "a.mdx", false), ("*", "", true), ("a?c", "abc", true), ("a?c", "aéc", true),
    ("a?c", "ac", false), ("[a-c]x", "bx", true), ("[!a-c]x", "bx", false), ("[^a-c]x", "dx", true),
    ("[]]x", "]x", true), ("[a-]", "-", true), ("[z-a]", "m", false), (#"\*"#, "*", true), (#"\*"#, "x", false),
    (#"[\]]"#, "]", true), ("a*b*c", "aXbYbZc", true), ("a*b*c", "aXbYbZ", false), ("**", "x", true),
    ("*a*a*a*a*a*a*a*a*a*a*a*a*b", String(repeating: "a", count: 250), false), (".*", ".x", true), ("*", ".x", true),
  ]

  @Test func aPatternIsThatOfTheShell() throws {
    for (pattern, name, matches) in Self.patterns {
      #expect(try NamePattern(pattern).matches(Array(name.utf8)) == matches, "\(pattern) and \(name)")
    }
  }

  @Test func namesOfCopiesAreToldFromOthers() {
    for name in ["a (b@c.example 2026-11-30 desk).md", "a (b@c.example 2026-11-30 my desk) (2).md", "a (b@c).md"] {
      #expect(HubCopyName.isOne(Array(name.utf8)), "\(name)")
    }
    for name in ["a.md", "a (2).md", "a (b@c", "(b@c d).md", "a(b@c d).md", "a (b c@d).md", " (", "a ()", ""] {
      #expect(!HubCopyName.isOne(Array(name.utf8)), "\(name)")
    }
  }

  @Test func aNameThatIsNoTextHasBytes() throws {
    #expect(try NamePattern("caf?.txt").matches(Array("caf".utf8) + [0xE9] + Array(".txt".utf8)))
    for wrong in ["", "[a", "[]", #"a\"#, "[a-", String(repeating: "x", count: 1025)] {
      expect(.invalid) { _ = try NamePattern(wrong) }
    }
  }

  @Test func whatIsFoundHasAllThatIsAskedFor() throws {
    let fixture = try LibraryFixture()
    let (library, alice) = (fixture.library, fixture.account)
    for folder in ["Letters", "Letters/old", "plans"] { try fixture.mkdir(folder) }
    try fixture.save("Letters/To Zoë.md", "one")
    try fixture.save("Letters/old/to zoe.txt", "two")
    fixture.clock.advance(100)
    let late = fixture.clock.now
    try fixture.save("plans/Budget.md", "three")
    try fixture.save("Letters/old/to zoe.txt", "again")
    func found(_ text: String? = nil, in path: String? = nil, name: String? = nil, since: Timestamp? = nil) throws
      -> [String]
    {
      paths(try find(library, alice, text, in: path, name: name, since: since))
    }
    let all = ["Letters", "Letters/To Zoë.md", "Letters/old", "Letters/old/to zoe.txt", "plans", "plans/Budget.md"]
    #expect(try found() == all)
    // Words of the name, in any order, whatever their case and accents; a pattern is of the whole name, as it is.
    #expect(try found("ZOE to") == ["Letters/To Zoë.md", "Letters/old/to zoe.txt"])
    #expect(try found("zöe") == ["Letters/To Zoë.md", "Letters/old/to zoe.txt"])
    #expect(try found("zoe budget") == [])
    #expect(try found(name: "*.md") == ["Letters/To Zoë.md", "plans/Budget.md"])
    #expect(try found(name: "budget*") == [])
    #expect(try found("to", name: "*.txt") == ["Letters/old/to zoe.txt"])
    #expect(try found("to", in: "Documents/Letters/old") == ["Letters/old/to zoe.txt"])
    #expect(try found(since: late) == ["Letters/old/to zoe.txt", "plans/Budget.md"])
    let document = try #require(try find(library, alice, "budget").items.first)
    #expect(document.kind == "document" && document.size == 5 && document.version == 1 && document.by == alice)
    #expect(document.id == (try library.itemStatus(fixture.path("plans/Budget.md")).id) && document.time == late)
    // One answer is so long and says if there is more.
    let some = try find(library, alice, limit: 5)
    let exactly = try find(library, alice, limit: 6)
    #expect(some.items.count == 5 && some.more && exactly.items.count == 6 && !exactly.more)
    // What is cut off comes last by path.
    for limit in 1...5 { #expect(paths(try find(library, alice, limit: limit)) == Array(all.prefix(limit))) }
    // Versions by themselves.
    let versions = try find(library, alice, "zoe", versions: true).items
    #expect(versions.map(\.version) == [1, 1, 2] && versions.map(\.size) == [3, 3, 5])
    #expect(try find(library, alice, "zoe", since: late, versions: true).items.map(\.version) == [2])
    let earliest = try find(library, alice, "zoe", versions: true, limit: 2)
    #expect(earliest.items == Array(versions.prefix(2)) && earliest.more)
    // What was deleted is elsewhere.
    try fixture.unlink("plans/Budget.md")
    try fixture.rmdir("plans")
    #expect(try found("budget") == [])
    #expect(paths(try find(library, alice, "budget", deleted: true)) == ["plans/Budget.md"])
    #expect(paths(try find(library, alice, in: "Documents/plans", deleted: true)) == ["plans/Budget.md"])
    #expect(paths(try find(library, alice, since: late, deleted: true)) == ["plans", "plans/Budget.md"])
    #expect(try find(library, alice, since: Timestamp(seconds: late.seconds + 1), deleted: true).items.isEmpty)
    expect(.notFound) { _ = try found(in: "Documents/plans") }
    expect(.notDirectory) { _ = try found(in: "Documents/Letters/To Zoë.md") }
    expect(.notFound) { _ = try find(library, alice, by: AccountHandle("nobody@example.com")) }
    for wrong in [" ", ""] { expect(.invalid) { _ = try find(library, alice, wrong) } }
    expect(.invalid) { _ = try find(library, alice, deleted: true, versions: true) }
    try fixture.finish()
  }

  @Test func everyoneFindsWhatTheySee() throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { alice in
        for folder in ["Documents/plans", "Documents/private"] { try alice.mkdir(folder) }
        for file in ["plans/budget", "plans/gone budget", "private/budget"] {
          try alice.save("Documents/\(file)", "before")
        }
        try alice.unlink("Documents/plans/gone budget")
        try alice.save("Documents/plans/budget", "still before")
      }
      people.clock.advance(10)
      try people.share("Documents/plans", with: [(.bob, .readWrite), (.carol, .readOnly)])
      people.clock.advance(10)
      try people.as(.bob) { bob in
        try bob.save("Shared/alice@example.com/plans/budget", "mine")
        try bob.save("Documents/budget of bob", "x")
      }
      func found(_ who: People.Name, deleted: Bool = false, in path: String? = nil) throws -> [String] {
        try find(library, who.handle, "budget", in: path, deleted: deleted).items.map(\.path)
      }
      let shared = "Shared/alice@example.com/plans/budget"
      #expect(try found(.alice) == ["Documents/plans/budget", "Documents/private/budget"])
      #expect(try found(.bob) == ["Documents/budget of bob", shared])
      #expect(try found(.carol) == [shared])
      #expect(try found(.dan) == [])
      for place in ["Shared", "Shared/alice@example.com", "Shared/alice@example.com/plans"] {
        #expect(try found(.carol, in: place) == [shared])
      }
      expect(.notFound) { _ = try found(.carol, in: "Shared/bob@example.com") }
      #expect(
        try find(library, People.Name.carol.handle, name: "plans").items.map(\.path) == [String(shared.dropLast(7))])
      // By whom: the current version's author, and each version's.
      let (alice, bob, carol) = (People.Name.alice.handle, People.Name.bob.handle, People.Name.carol.handle)
      #expect(try find(library, alice, by: bob).items.map(\.path) == ["Documents/plans/budget"])
      #expect(try find(library, carol, "budget", by: alice).items.isEmpty)
      #expect(
        try find(library, alice, "budget", in: "Documents/plans", by: alice, versions: true).items.map(\.version) == [
          1, 2,
        ])
      // Nothing from before it was shared: neither versions, nor what was deleted, nor when it was made.
      #expect(try find(library, carol, "budget", versions: true).items.map(\.version) == [2, 3])
      #expect(try found(.alice, deleted: true) == ["Documents/plans/gone budget"])
      #expect(try found(.carol, deleted: true) == [])
      let folder = try #require(try find(library, carol, name: "plans").items.first)
      #expect(folder.by == alice && folder.time == Timestamp(seconds: people.clock.now.seconds - 10))
      // What is deleted since then.
      try people.as(.bob) { try $0.unlink(shared) }
      #expect(try found(.carol, deleted: true) == [shared] && found(.carol) == [])
      #expect(try find(library, carol, by: bob, deleted: true).items.count == 1)
      try people.as(.alice) { try $0.remove("Documents/plans", .carol) }
      #expect(try found(.carol, deleted: true) == [] && find(library, carol).items.isEmpty)
      expect(.notFound) { _ = try found(.carol, in: "Shared/alice@example.com") }
    }
  }

  /// Whatever the order in which a folder has them, in several steps of the walk.
  @Test func whoWantsFewGetsTheFirst() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    for folder in ["t", "t/b", "u"] { try fixture.mkdir(folder) }
    var all: [String] = []
    for (folder, count) in [("t", 600), ("t/b", 20), ("u", 600)] {
      let ino = try fixture.ino(folder)
      for number in 0..<count {
        _ = try library.make(.file, ino, Array("a\(number)".utf8), mode: 0o644, .library)
        all.append("\(folder)/a\(number)")
      }
    }
    all.sort()
    for limit in [1, 3, 31, 32, 33, 610, 1219] {
      let found = try find(library, fixture.account, name: "a*", limit: limit)
      #expect(paths(found) == Array(all.prefix(limit)) && found.more, "\(limit)")
    }
    let whole = try find(library, fixture.account, name: "a*", limit: 1220)
    #expect(paths(whole) == all && !whole.more)
    try fixture.finish()
  }

  /// Names are read beside the lock, and few finds are looked at with it.
  @Test func nobodyWaitsForALargeSearch() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.mkdir("t")
    let ino = try fixture.ino("t")
    for number in 0..<3000 {
      _ = try library.make(.file, ino, Array("file-\(number)".utf8), mode: 0o644, .library)
    }
    library.locked { library.holds = LockHolds() }
    #expect(try find(library, fixture.account, "file", limit: 5000).items.count == 3000)
    for number in 0..<3000 { try library.unlink(ino, Array("file-\(number)".utf8), .library) }
    #expect(try find(library, fixture.account, "file", deleted: true, limit: 5000).items.count == 3000)
    #expect(library.locked { library.holds.mostLooks }.filter { $0.key.contains("ind") } == [:])
    try fixture.finish()
  }

  // MARK: - Contents

  private func file(_ fixture: LibraryFixture) -> String { fixture.path + "-search" }

  private func holds(_ fixture: LibraryFixture, _ word: String) throws -> Bool {
    try Data(contentsOf: URL(fileURLWithPath: file(fixture))).range(of: Data(word.utf8)) != nil
  }

  @Test func contentsAreSearchedWhereThatIsAskedFor() throws {
    let fixture = try LibraryFixture()
    let (library, alice) = (fixture.library, fixture.account)
    func found(_ text: String) throws -> [String] { paths(try find(library, alice, text)) }
    try fixture.save("one", "The Röntgen apparatus arrived")
    try fixture.save("two", [0, 1, 2] + Array("apparatus".utf8))
    #expect(try found("apparatus") == [] && access(file(fixture), F_OK) != 0)
    #expect(try !library.settings().searchContents)
    #expect(try library.change(.init(searchContents: true)).searchContents)
    // Words, by their beginnings, whatever case and accents; what is no text has none.
    for text in ["apparatus", "APPAR", "rontgen arr", "\"arrived\"", "arrived*)", "one"] {
      #expect(try found(text) == ["one"], "\(text)")
    }
    for text in ["paratus", "apparatus missing", "missing OR apparatus"] { #expect(try found(text) == [], "\(text)") }
    // The text of now, also while somebody has it open, and of an old one nothing.
    try fixture.save("one", "Telescopes")
    #expect(try found("apparatus") == [] && found("telescopes") == ["one"])
    let handle = try fixture.open("one")
    for word in ["Microscopes", "Periscopes!"] {
      try fixture.write(handle, Array(word.utf8))
      fixture.autosave()
      fixture.clock.advance(3)
      fixture.autosave()
      #expect(try found(String(word.dropLast())) == ["one"], "\(word)")
    }
    #expect(try found("microscopes") == [])
    try fixture.close(handle)
    // It goes with the document, and is there in the trash.
    try fixture.rename("one", "three")
    #expect(try found("periscopes") == ["three"])
    try fixture.unlink("three")
    #expect(try found("periscopes") == [])
    #expect(paths(try find(library, alice, "periscopes", deleted: true)) == ["three"])
    #expect(try holds(fixture, "eriscopes"))
    // A purge leaves no word of it.
    try library.purge(fixture.path("three"), version: nil)
    #expect(try !holds(fixture, "eriscopes") && !holds(fixture, "icroscopes") && !holds(fixture, "elescopes"))
    _ = try library.change(.init(searchContents: false))
    #expect(access(file(fixture), F_OK) != 0)
    try fixture.finish()
  }

  @Test func participantsFindNoWordsOfOthers() throws {
    try People.story { people in
      let library = people.library
      _ = try library.change(.init(searchContents: true))
      try people.as(.alice) { alice in
        try alice.mkdir("Documents/plans")
        try alice.save("Documents/plans/a", "the word is xylophone")
        try alice.save("Documents/b", "another xylophone")
      }
      func found(_ who: People.Name, _ text: String) throws -> [String] {
        try find(library, who.handle, text).items.map(\.path)
      }
      #expect(try found(.alice, "xylophone") == ["Documents/b", "Documents/plans/a"])
      #expect(try found(.bob, "xylophone") == [])
      // What it was before it was shared is nobody's to find.
      try people.as(.alice) { try $0.save("Documents/plans/a", "the word is trumpet") }
      try people.share("Documents/plans", with: [(.bob, .readOnly)])
      #expect(try found(.bob, "xylophone") == [] && found(.bob, "trumpet") == ["Shared/alice@example.com/plans/a"])
      try people.as(.alice) { try $0.remove("Documents/plans", .bob) }
      #expect(try found(.bob, "trumpet") == [])
      _ = try library.change(.init(searchContents: false))
    }
  }

  /// A text, a database and another library that happen to have the name of the index.
  @Test(arguments: ["text", "database", "library"]) func whatIsNoIndexStaysAsItIs(_ kind: String) throws {
    let (fixture, other) = (try LibraryFixture(), try LibraryFixture())
    try other.library.close()
    let place = URL(fileURLWithPath: file(fixture))
    switch kind {
    case "text": try Data("notes of mine".utf8).write(to: place)
    case "database":
      let database = try DatabaseQueue(path: file(fixture))
      try database.write { try $0.execute(sql: "CREATE TABLE mark (text); INSERT INTO mark VALUES ('mine')") }
      try database.close()
    default: try FileManager.default.copyItem(atPath: other.path, toPath: file(fixture))
    }
    let bytes = try Data(contentsOf: place)
    try fixture.save("one", "zeppelin")
    _ = try fixture.library.change(.init(searchContents: true))
    expect(.exists) { _ = try find(fixture.library, fixture.account, "zeppelin") }
    _ = try fixture.library.change(.init(searchContents: false))
    #expect(try Data(contentsOf: place) == bytes)
    unlink(file(fixture))
    try fixture.finish()
    try FileManager.default.removeItem(atPath: other.folder)
  }

  /// Older programs did not mark it.
  @Test func anIndexOfAnOlderProgramGoesOn() throws {
    let fixture = try LibraryFixture()
    try fixture.save("one", "zeppelin")
    _ = try fixture.library.change(.init(searchContents: true))
    #expect(paths(try find(fixture.library, fixture.account, "zeppelin")) == ["one"])
    try fixture.library.close()
    func mark(_ number: Int?) throws -> Int {
      let index = try DatabaseQueue(path: file(fixture))
      defer { try? index.close() }
      return try index.writeWithoutTransaction { index in
        if let number { try index.execute(sql: "PRAGMA application_id = \(number)") }
        return try Int.fetchOne(index, sql: "PRAGMA application_id") ?? 0
      }
    }
    #expect(try mark(0) == 0)
    let again = try Library.open(LibraryLocation(path: fixture.path)) { fixture.clock.now }
    #expect(paths(try find(again, fixture.account, "zeppelin")) == ["one"])
    try again.close()
    #expect(try mark(nil) == 0x5348_4653)
    // What is removed when contents are not searched any more is such an index, too.
    #expect(try mark(0) == 0)
    let last = try Library.open(LibraryLocation(path: fixture.path)) { fixture.clock.now }
    _ = try last.change(.init(searchContents: false))
    try last.close()
    #expect(access(file(fixture), F_OK) != 0)
    try FileManager.default.removeItem(atPath: fixture.folder)
  }

  /// It need not be opened anew for that, and a purge, which takes words out of it, is none the worse.
  @Test func theIndexIsMadeAnewWhereItIsDamagedMeanwhile() throws {
    let fixture = try LibraryFixture()
    for name in ["one", "two"] { try fixture.save(name, "zeppelin \(name)") }
    _ = try fixture.library.change(.init(searchContents: true))
    #expect(paths(try find(fixture.library, fixture.account, "zeppelin")) == ["one", "two"])
    func damage() throws {
      let index = try FileHandle(forWritingTo: URL(fileURLWithPath: file(fixture)))
      try index.seek(toOffset: 100)
      try index.write(contentsOf: Data(repeating: 0xAA, count: 20_000))
      // Another one's change has SQLite read it again.
      try index.seek(toOffset: 24)
      try index.write(contentsOf: Data([9, 9, 9, 9]))
      try index.close()
    }
    try damage()
    #expect(paths(try find(fixture.library, fixture.account, "zeppelin")) == ["one", "two"])
    try damage()
    try fixture.library.purge(fixture.path("two"), version: nil)
    #expect(paths(try find(fixture.library, fixture.account, "zeppelin")) == ["one"])
    try fixture.finish()
  }

  /// What lies in the index's place has no words of documents, so a purge has nothing to do there.
  @Test func aPurgeLeavesWhatIsNoIndex() throws {
    let fixture = try LibraryFixture()
    try fixture.save("one", "zeppelin")
    symlink("/nowhere", file(fixture))
    _ = try fixture.library.change(.init(searchContents: true))
    expect(.exists) { _ = try find(fixture.library, fixture.account, "zeppelin") }
    try fixture.library.purge(fixture.path("one"), version: nil)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: file(fixture)) == "/nowhere")
    unlink(file(fixture))
    try fixture.finish()
  }

  /// What the index has follows from the library, whatever becomes of its file.
  @Test func theIndexIsMadeAnewWhereItIsDamagedOrAnothers() throws {
    let fixture = try LibraryFixture()
    try fixture.save("one", "zeppelin")
    _ = try fixture.library.change(.init(searchContents: true))
    #expect(paths(try find(fixture.library, fixture.account, "zeppelin")) == ["one"])
    try fixture.library.close()
    for damage in 0..<3 {
      switch damage {
      case 0:
        let header = try Data(contentsOf: URL(fileURLWithPath: file(fixture))).prefix(100)
        try (header + Data(repeating: 0xAA, count: 20_000)).write(to: URL(fileURLWithPath: file(fixture)))
      case 1: unlink(file(fixture))
      default: break
      }
      let again = try Library.open(LibraryLocation(path: fixture.path)) { fixture.clock.now }
      #expect(paths(try find(again, fixture.account, "zeppelin")) == ["one"], "\(damage)")
      try again.close()
    }
    // A file of another library, in which the same number is another document.
    let other = try LibraryFixture()
    _ = try other.library.change(.init(searchContents: true))
    try other.save("other", "submarine")
    #expect(paths(try find(other.library, other.account, "submarine")) == ["other"])
    try other.library.close()
    unlink(file(fixture))
    try FileManager.default.copyItem(atPath: file(other), toPath: file(fixture))
    let again = try Library.open(LibraryLocation(path: fixture.path)) { fixture.clock.now }
    #expect(try find(again, fixture.account, "submarine").items.isEmpty)
    #expect(paths(try find(again, fixture.account, "zeppelin")) == ["one"])
    try again.close()
    for folder in [fixture.folder, other.folder] { try FileManager.default.removeItem(atPath: folder) }
  }
}
