import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// `.sheafignore`: plain files, without versions and events.
struct IgnoreTests {
  private static let verdicts: [(rules: String, path: String, isFolder: Bool, ignored: Bool?)] = [
    ("*.log", "a.log", false, true), ("*.log", "in/deep/a.log", false, true), ("*.log", "a.logs", false, nil),
    ("build/", "build", true, true), ("build/", "build", false, nil), ("build/", "in/build", true, true),
    ("/build", "build", false, true), ("/build", "in/build", false, nil), ("in/build", "in/build", false, true),
    ("in/build", "deep/in/build", false, nil), ("in/*.log", "in/a.log", false, true),
    ("in/*.log", "in/deep/a.log", false, nil), ("**/build", "in/deep/build", true, true),
    ("**/build", "build", true, true), ("in/**/a", "in/a", false, true), ("in/**/a", "in/x/y/a", false, true),
    ("in/**", "in", true, nil), ("in/**", "in/x/y", false, true), ("# comment", "# comment", false, nil),
    ("\\#a", "#a", false, true), ("\\!a", "!a", false, true), ("a  ", "a", false, true), ("a\\ ", "a ", false, true),
    ("*.log\n!keep.log", "keep.log", false, false), ("!keep.log\n*.log", "keep.log", false, true),
    ("[", "[", false, nil), ("", "a", false, nil), ("a\r\nb", "a", false, true), ("/", "a", true, nil),
    ("doc/*/x", "doc/a/x", false, true), ("doc/*/x", "doc/x", false, nil), ("a/**/b/**/c", "a/1/b/2/3/c", false, true),
  ]

  @Test func rulesAreThoseOfGit() {
    for (rules, path, isFolder, ignored) in Self.verdicts {
      let names = path.split(separator: "/").map { Array($0.utf8) }
      #expect(
        IgnoreRules(Array(rules.utf8)).verdict(names, isFolder: isFolder) == ignored,
        "\(rules.debugDescription), \(path)")
    }
  }

  /// Who takes part in a share does not have what others make there be lost when it is deleted.
  @Test func onlyTheOwnerMakesRules() throws {
    try People.story { people in
      let (team, seen) = ("Documents/team", "Shared/alice@example.com/team")
      try people.as(.alice) { (alice) throws in
        for folder in [team, "\(team)/sub"] { try alice.mkdir(folder) }
        try people.share(team, with: [(.bob, .readWrite)])
      }
      func versions(_ name: String) throws -> Int {
        try people.as(.alice) { (alice) throws in
          people.clock.advance(20)
          try alice.save("\(team)/\(name)", name)
          return try alice.versions("\(team)/\(name)").count
        }
      }
      let rules = ".sheafignore"
      try people.as(.bob) { (bob) throws in
        try bob.save("\(seen)/rules", "*.log")
        expect(.notPermitted) { try bob.save("\(seen)/\(rules)", "*.log") }
        expect(.notPermitted) { try bob.rename("\(seen)/rules", "\(seen)/\(rules)") }
        expect(.notPermitted) { try bob.link("\(seen)/rules", "\(seen)/\(rules)") }
        expect(.notPermitted) { try bob.mkdir("\(seen)/\(rules)") }
      }
      #expect(try versions("1.log") == 1)
      try people.as(.alice) { try $0.save("\(team)/sub/\(rules)", "*.log") }
      #expect(try versions("sub/2.log") == 0 && versions("3.log") == 1)
      people.clock.advance(20)
      try people.as(.bob) { (bob) throws in
        expect(.notPermitted) { try bob.rename("\(seen)/sub/\(rules)", "\(seen)/\(rules)") }
        expect(.notPermitted) { try bob.exchange("\(seen)/sub/\(rules)", "\(seen)/rules") }
        try bob.save("\(seen)/sub/\(rules)", "*.log\n*.txt")
      }
      #expect(try versions("sub/4.txt") == 1 && versions("sub/5.log") == 1)
      people.clock.advance(20)
      try people.as(.alice) { try $0.save("\(team)/sub/\(rules)", "*.txt") }
      #expect(try versions("sub/6.txt") == 0 && versions("sub/7.log") == 1)
    }
  }

  /// Moving rules is making them: they have no effect where a participant put them, until the owner saves them again.
  @Test(arguments: ["renaming", "exchanging", "moving a folder around it", "recovering it elsewhere", "going back"])
  func rulesThatAParticipantMovesHaveNoEffect(_ way: String) throws {
    let people = try People()
    let (team, seen) = ("Documents/team", "Shared/alice@example.com/team")
    try people.as(.alice) { (alice) throws in
      for folder in ["", "/out", "/out/build", "/docs"] { try alice.mkdir(team + folder) }
      try people.share(team, with: [(.bob, .readWrite)])
      try alice.save("\(team)/out/build/.sheafignore", "*.md")
    }
    func versions(_ path: String, in library: Library? = nil) throws -> Int {
      people.clock.advance(20)
      let alice = Person(library: library ?? people.library, name: .alice, process: 0)
      try alice.save("\(team)/\(path)", path)
      return try alice.versions("\(team)/\(path)").count
    }
    // The owner moves them as they like.
    try people.as(.alice) { try $0.rename("\(team)/out", "\(team)/made") }
    #expect(try versions("made/build/1.md") == 0)
    let time = people.clock.now
    people.clock.advance(20)
    if way == "going back" { try people.as(.alice) { try $0.rename("\(team)/made", "\(team)/moved") } }
    var docs = "docs"
    try people.as(.bob) { (bob) throws in
      switch way {
      case "renaming":
        try bob.rmdir("\(seen)/docs")
        try bob.rename("\(seen)/made/build", "\(seen)/docs")
      case "exchanging": try bob.exchange("\(seen)/made/build", "\(seen)/docs")
      case "recovering it elsewhere":
        for path in ["made/build/1.md", "made/build/.sheafignore"] { try bob.unlink("\(seen)/\(path)") }
        try bob.rmdir("\(seen)/made/build")
        try bob.rmdir("\(seen)/docs")
        try bob.library.recover(
          Array("build".utf8), deletedFrom: bob.inode("\(seen)/made"), to: bob.inode(seen), Array("docs".utf8),
          bob.caller)
      case "going back":
        docs = "made/build"
        _ = try bob.library.restoreFolder(
          bob.path(seen), FolderRestoreRequest(time: time, by: nil, dryRun: nil)
        ) { _ in }
      default:
        docs = "docs/build"
        try bob.rename("\(seen)/made", "\(seen)/docs")
      }
    }
    #expect(try versions("\(docs)/2.md") == 1)
    // That outlives the process.
    try people.fixture.expectSound()
    try people.library.close()
    let clock = people.clock
    let library = try Library.open(LibraryLocation(path: people.fixture.path)) { clock.now }
    #expect(try versions("\(docs)/3.md", in: library) == 1)
    people.clock.advance(20)
    let alice = Person(library: library, name: .alice, process: 0)
    try alice.save("\(team)/\(docs)/.sheafignore", "*.md\n*.txt")
    #expect(try versions("\(docs)/4.md", in: library) == 0)
    #expect(try library.check { _ in }.problems == [])
    try library.close()
    try? FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// How a participant takes away the rules by which the owner cancels others.
  enum Taking: CaseIterable, Sendable {
    case deleting, renamingAway, saving, emptying, moving, movingAround, movingFromBelow, exchangingFromBelow
    case deletingAndRecovering, goingBack
  }

  /// Where rules of the owner have lost their effect by somebody else, those that they cancelled have none, either: what
  /// the owner makes there is kept when it is deleted.
  @Test(arguments: Taking.allCases)
  func rulesThatWereCancelledDoNotComeBack(_ way: Taking) throws {
    let people = try People()
    let (team, seen) = ("Documents/team", "Shared/alice@example.com/team")
    try people.as(.alice) { (alice) throws in
      for folder in ["", "/in", "/in/node_modules", "/in/deep", "/in/deep/node_modules", "/out", "/other"] {
        try alice.mkdir(team + folder)
      }
      try people.share(team, with: [(.bob, .readWrite)])
    }
    people.clock.advance(20)
    let time = people.clock.now
    people.clock.advance(20)
    try people.as(.alice) { (alice) throws in
      try alice.save("\(team)/.sheafignore", "*.log")
      try alice.save("\(team)/in/.sheafignore", "!node_modules/\n!*.log")
      try alice.save("\(team)/other/.sheafignore", "*.o")
    }
    func versions(_ path: String, in library: Library? = nil) throws -> Int {
      people.clock.advance(20)
      let alice = Person(library: library ?? people.library, name: .alice, process: 0)
      try alice.save("\(team)/\(path)", path)
      return try alice.versions("\(team)/\(path)").count
    }
    #expect(try versions("in/1.log") == 1 && versions("in/node_modules/1") == 1)
    #expect(try versions("out/1.log") == 0 && versions("in/deep/1.log") == 1 && versions("other/1.o") == 0)
    people.clock.advance(20)
    // Where what was in `in`, and what was in `in/deep`, is afterwards.
    var (place, deep) = ("in", "in/deep")
    try people.as(.bob) { (bob) throws in
      let rules = "\(seen)/in/.sheafignore"
      switch way {
      case .deleting: try bob.unlink(rules)
      case .renamingAway: try bob.rename(rules, "\(seen)/in/rules")
      case .saving: try bob.save(rules, "!*.md")
      case .emptying: try bob.save(rules, "")
      case .moving:
        try bob.rename("\(seen)/in", "\(seen)/moved")
        (place, deep) = ("moved", "moved/deep")
      case .movingAround:
        try bob.rename("\(seen)/in", "\(seen)/out/in")
        (place, deep) = ("out/in", "out/in/deep")
      case .movingFromBelow:
        try bob.rename("\(seen)/in/deep", "\(seen)/out/deep")
        (place, deep) = ("out/deep", "out/deep")
      case .exchangingFromBelow:
        try bob.exchange("\(seen)/in/deep", "\(seen)/out")
        (place, deep) = ("out", "out")
      case .deletingAndRecovering:
        try bob.unlink(rules)
        _ = try bob.library.recover(bob.path(rules), id: nil) { _ in }
      case .goingBack:
        _ = try bob.library.restoreFolder(
          bob.path("\(seen)/in"), FolderRestoreRequest(time: time, by: nil, dryRun: nil)
        ) { _ in }
      }
    }
    #expect(try versions("\(place)/2.log") == 1 && versions("\(place)/node_modules/2") == 1)
    #expect(try versions("\(deep)/2.log") == 1 && versions("\(deep)/node_modules/2") == 1)
    // Rules that nobody touched apply as before.
    if way != .exchangingFromBelow { #expect(try versions("out/2.log") == 0) }
    #expect(try versions("other/2.o") == 0 && versions("other/2.log") == 0)
    // That outlives the process, until the owner saves the rules.
    try people.fixture.expectSound()
    try people.library.close()
    let clock = people.clock
    let library = try Library.open(LibraryLocation(path: people.fixture.path)) { clock.now }
    #expect(try versions("\(deep)/3.log", in: library) == 1)
    people.clock.advance(20)
    let alice = Person(library: library, name: .alice, process: 0)
    try alice.save("\(team)/\(place)/.sheafignore", "*.md\n")
    #expect(try versions("\(place)/4.log", in: library) == 0 && versions("\(deep)/4.md", in: library) == 0)
    #expect(try library.check { _ in }.problems == [])
    try library.close()
    try? FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// Rules that had no room do not get some by somebody else.
  @Test(arguments: ["deleting", "shortening", "renaming"]) func rulesGetNoRoomByAParticipant(_ way: String) throws {
    try People.story { people in
      let (team, seen) = ("Documents/team", "Shared/alice@example.com/team")
      func rules(_ bytes: Int) -> String {
        String((0..<(bytes / 55)).map { "zz\($0)".padding(toLength: 54, withPad: "x", startingAt: 0) + "\n" }.joined())
      }
      try people.as(.alice) { (alice) throws in
        for folder in ["", "/L", "/L/X", "/L/X/drafts"] { try alice.mkdir(team + folder) }
        try people.share(team, with: [(.bob, .readWrite)])
        try alice.save("\(team)/.sheafignore", rules(way == "renaming" ? 9_000 : 110))
        try alice.save("\(team)/L/.sheafignore", rules(way == "renaming" ? 9_000 : 17_000))
        try alice.save("\(team)/L/X/.sheafignore", "drafts/")
        people.clock.advance(20)
        try alice.save("\(team)/L/X/drafts/1", "x")
        #expect(try alice.versions("\(team)/L/X/drafts/1").count == 1)
      }
      people.clock.advance(20)
      try people.as(.bob) { (bob) throws in
        switch way {
        case "deleting": try bob.unlink("\(seen)/L/.sheafignore")
        case "shortening": try bob.save("\(seen)/L/.sheafignore", "# short")
        default: try bob.rename("\(seen)/L/.sheafignore", "\(seen)/L/rules")
        }
      }
      people.clock.advance(20)
      try people.as(.alice) { (alice) throws in
        try alice.save("\(team)/L/X/drafts/2", "x")
        #expect(try alice.versions("\(team)/L/X/drafts/2").count == 1)
        people.clock.advance(20)
        try alice.save("\(team)/L/X/.sheafignore", "drafts/\n# again")
        try alice.save("\(team)/L/X/drafts/3", "x")
        #expect(try alice.versions("\(team)/L/X/drafts/3").count == 0)
      }
    }
  }

  /// Rules that a program has just made come back with their folder.
  @Test func rulesThatWereJustMadeComeBack() throws {
    try People.story { people in
      try people.as(.alice, process: getpid()) { (alice) throws in
        try alice.mkdir("Documents/p")
        try alice.save("Documents/p/.sheafignore", "!node_modules/")
        try alice.unlink("Documents/p/.sheafignore")
        #expect(
          try alice.library.deleted(People.Name.alice.handle, below: nil).map(\.path) == ["Documents/p/.sheafignore"])
      }
    }
  }

  /// A participant who renames a folder changes no rules, unless rules name its path.
  @Test func aFolderThatStaysUnderItsRulesKeepsThem() throws {
    try People.story { people in
      let (team, seen) = ("Documents/team", "Shared/alice@example.com/team")
      try people.as(.alice) { (alice) throws in
        for folder in ["", "/a", "/a/node_modules", "/b", "/b/made"] { try alice.mkdir(team + folder) }
        try people.share(team, with: [(.bob, .readWrite)])
      }
      people.clock.advance(20)
      try people.as(.bob) { (bob) throws in
        try bob.rename("\(seen)/a", "\(seen)/a2")
        try bob.rename("\(seen)/a2", "\(seen)/b/a")
      }
      people.clock.advance(20)
      try people.as(.alice) { (alice) throws in
        try alice.save("\(team)/b/a/node_modules/x", "x")
        #expect(try alice.versions("\(team)/b/a/node_modules/x").count == 0)
        try alice.save("\(team)/.sheafignore", "/c/made/*.md")
        try alice.save("\(team)/b/made/x.md", "x")
        #expect(try alice.versions("\(team)/b/made/x.md").count == 1)
      }
      people.clock.advance(20)
      try people.as(.bob) { try $0.rename("\(seen)/b", "\(seen)/c") }
      people.clock.advance(20)
      try people.as(.alice) { (alice) throws in
        try alice.save("\(team)/c/made/y.md", "y")
        #expect(try alice.versions("\(team)/c/made/y.md").count == 1)
      }
    }
  }

  /// Rules that their owner deleted are not made again by somebody else, and nothing is put where it is ignored.
  @Test func nobodyElseBringsRulesBack() throws {
    try People.story { people in
      let (team, seen) = ("Documents/team", "Shared/alice@example.com/team")
      try people.as(.alice) { (alice) throws in
        for folder in ["", "/work", "/plans", "/__pycache__"] { try alice.mkdir(team + folder) }
        try people.share(team, with: [(.bob, .readWrite)])
        try alice.save("\(team)/.sheafignore", "*.md")
        people.clock.advance(20)
        try alice.unlink("\(team)/.sheafignore")
      }
      try people.as(.bob) { (bob) throws in
        try bob.rmdir("\(seen)/work")
        func bringBack() throws {
          try bob.library.recover(
            Array("work".utf8), deletedFrom: bob.inode(seen), to: bob.inode("\(seen)/__pycache__"),
            Array("work".utf8), bob.caller)
        }
        expect(.notPermitted) { try bringBack() }
        // Without rules that have an effect nothing is ignored, until the owner saves them again.
        _ = try bob.library.recover(bob.path("\(seen)/.sheafignore"), id: nil) { _ in }
        try bringBack()
        try bob.rename("\(seen)/plans", "\(seen)/__pycache__/plans")
      }
      people.clock.advance(20)
      try people.as(.alice) { (alice) throws in
        try alice.save("\(team)/a.md", "x")
        #expect(try alice.versions("\(team)/a.md").count == 1)
        // Whoever deleted them.
        try alice.unlink("\(team)/.sheafignore")
        _ = try alice.library.recover(alice.path("\(team)/.sheafignore"), id: nil) { _ in }
        people.clock.advance(20)
        try alice.save("\(team)/.sheafignore", "*.md\n")
        try alice.save("\(team)/b.md", "x")
        #expect(try alice.versions("\(team)/b.md").count == 0)
        try alice.save("\(team)/__pycache__/own", "x")
        #expect(try alice.versions("\(team)/__pycache__/own").count == 0)
        for name in ["work", "plans"] {
          try alice.save("\(team)/__pycache__/\(name)/c", "x")
          #expect(try alice.versions("\(team)/__pycache__/\(name)/c").count == 1)
        }
      }
    }
  }

  /// Marks go with what has them, and where there are too many, the owner's top folder has one for all.
  @Test func marksAreBounded() throws {
    try People.story { people in
      let (team, seen) = ("Documents/team", "Shared/alice@example.com/team")
      func marks() throws -> [String] {
        try people.library.locked {
          try people.library.read { try $0.numberSettings(after: IgnoredFolders.movedKey + ".") }.map(\.key)
        }
      }
      try people.as(.alice) { (alice) throws in
        for folder in [team, "\(team)/a", "\(team)/b"] { try alice.mkdir(folder) }
        try people.share(team, with: [(.bob, .readWrite)])
        try alice.save("\(team)/.sheafignore", "*.md")
      }
      people.clock.advance(20)
      let ino = try people.as(.bob) { (bob) throws in
        try bob.rename("\(seen)/a", "\(seen)/a2")
        return try bob.inode("\(seen)/a2")
      }
      #expect(try marks() == ["\(ino)"])
      try people.as(.alice) { (alice) throws in try alice.library.purge(alice.path("\(team)/a2"), version: nil) }
      #expect(try marks() == [])
      let time = people.clock.now
      people.library.locked {
        for ino in 1...Int64(16_384) {
          people.library.ignored.mark(1_000_000 + ino, time, isMoved: true, changesRules: false)
        }
      }
      try people.as(.bob) { try $0.rename("\(seen)/b", "\(seen)/b2") }
      people.clock.advance(20)
      try people.as(.alice) { (alice) throws in
        #expect(try marks() == ["\(alice.inode("Documents"))"])
        try alice.save("\(team)/a.md", "x")
        #expect(try alice.versions("\(team)/a.md").count == 1)
      }
    }
  }

  /// Only the program that makes a file makes a plain one of it by its name, and nobody of another account's folder.
  @Test func nobodyElseMakesAPlainFileOfADocument() throws {
    try People.story { people in
      let (team, seen) = ("Documents/team", "Shared/alice@example.com/team")
      let (alices, another) = (getpid(), getppid())
      try people.as(.alice, process: alices) { (alice) throws in
        for folder in [team, "\(team)/work", "\(team)/__pycache__"] { try alice.mkdir(folder) }
        try people.share(team, with: [(.bob, .readWrite)])
      }
      func make() throws {
        try people.as(.alice, process: alices) { try $0.save("\(team)/new.md", "mine") }
      }
      func expectHistory(_ name: String) throws {
        try people.as(.alice, process: another) { (alice) throws in
          #expect(try alice.versions("\(team)/\(name)").count == 1)
          try alice.unlink("\(team)/\(name)")
        }
      }
      for name in ["Thumbs.db", "__pycache__/new.md"] {
        try make()
        try people.as(.bob, process: another) { try $0.rename("\(seen)/new.md", "\(seen)/\(name)") }
        try expectHistory(name)
        try make()
        try people.as(.alice, process: another) { try $0.rename("\(team)/new.md", "\(team)/\(name)") }
        try expectHistory(name)
        try make()
        try people.as(.alice, process: alices) { (alice) throws in
          try alice.rename("\(team)/new.md", "\(team)/\(name)")
          #expect(try alice.versions("\(team)/\(name)").count == 0)
          try alice.unlink("\(team)/\(name)")
        }
      }
      try people.as(.bob, process: another) { (bob) throws in
        try bob.mkdir("\(seen)/node_modules")
        expect(.notPermitted) { try bob.rename("\(seen)/work", "\(seen)/.cache") }
        expect(.notPermitted) { try bob.rename("\(seen)/work", "\(seen)/__pycache__/work") }
        expect(.notPermitted) { try bob.exchange("\(seen)/work", "\(seen)/node_modules") }
        try bob.rename("\(seen)/__pycache__", "\(seen)/node_modules/x")
      }
      try people.as(.alice, process: another) { try $0.rename("\(team)/work", "\(team)/.cache") }
    }
  }

  private func events(_ fixture: LibraryFixture, after position: Int64) throws -> [String] {
    try fixture.library.settleEventsInSteps()
    try fixture.library.locked {
      try fixture.library.settleSessions()
      try fixture.library.settleEvents(all: true)
    }
    return try fixture.library.events(after: position, limit: 1000, for: fixture.account).events.map {
      "\($0.type.rawValue.split(separator: ".").last ?? "") \($0.data.item.path)"
    }
  }

  @Test func whatIsIgnoredIsAPlainFile() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.save(".sheafignore", "*.log\nout/\n!keep.log\n")
    try fixture.mkdir("in")
    _ = try events(fixture, after: 0)
    let before = library.lastEvent
    for folder in ["out", "out/deep", "in/out"] { try fixture.mkdir(folder) }
    let plain = ["a.log", "in/b.log", "out/c", "out/deep/keep.log", "in/out/d"]
    for path in plain {
      for text in ["one", "two and more", "three"] { try fixture.save(path, "\(text) \(path)") }
      #expect(try fixture.versions(path).isEmpty && fixture.text(path) == "three \(path)", "\(path)")
    }
    let handle = try fixture.open("a.log")
    try fixture.write(handle, Array("autosaved".utf8))
    fixture.clock.advance(5)
    fixture.autosave()
    try fixture.close(handle)
    #expect(try fixture.versions("a.log").isEmpty && fixture.text("a.log").hasPrefix("autosaved"))
    try fixture.rename("a.log", "in/c.log")
    try fixture.rename("out", "in/out2")
    try fixture.rename("in/out2", "out")
    #expect(try events(fixture, after: before).filter { !$0.contains("out2") } == [])
    #expect(try fixture.text("in/c.log").hasPrefix("autosaved"))
    // What goes leaves nothing.
    for path in ["in/c.log", "in/b.log", "out/c", "out/deep/keep.log", "in/out/d"] { try fixture.unlink(path) }
    for folder in ["out/deep", "in/out"] { try fixture.rmdir(folder) }
    #expect(try library.deleted(fixture.account, below: nil).isEmpty)
    // What no rule is of, and what one takes back, is a document.
    for path in ["in/keep.log", "other"] { try fixture.save(path, "x") }
    #expect(try fixture.versions("in/keep.log").count == 1 && fixture.versions("other").count == 1)
    #expect(try events(fixture, after: before).suffix(2) == ["created in/keep.log", "created other"])
    try fixture.finish()
  }

  @Test func namesMakeDocumentsOfPlainFilesAndNeverTheOtherWay() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.save(".sheafignore", "*.log\n")
    try fixture.save("a.log", "text")
    _ = try events(fixture, after: 0)
    var before = library.lastEvent
    try fixture.rename("a.log", "a.txt")
    #expect(try fixture.versions("a.txt").map(\.size) == [4] && fixture.version("a.txt", 1) == "text")
    #expect(try events(fixture, after: before) == ["created a.txt"])
    try fixture.save("a.txt", "more text")
    #expect(try fixture.versions("a.txt").count == 2)
    // What has a history keeps it under any name, and goes to the trash.
    before = library.lastEvent
    try fixture.rename("a.txt", "b.log")
    try fixture.save("b.log", "even more text")
    #expect(try fixture.versions("b.log").count == 3)
    #expect(try events(fixture, after: before) == ["renamed b.log", "edit b.log"])
    try fixture.unlink("b.log")
    #expect(try library.deleted(fixture.account, below: nil).map(\.path) == ["Documents/b.log"])
    // A program's new file that takes an ignored name is plain.
    before = library.lastEvent
    let program = Caller(uid: 0, gid: 0, thread: getpid(), door: 0) { [] }
    for text in ["one", "two"] {
      let made = try library.create(fixture.root, Array("c.new".utf8), mode: 0o644, flags: O_RDWR, program)
      try fixture.write(made.handle, Array(text.utf8))
      try fixture.close(made.handle)
      try library.rename(fixture.root, Array("c.new".utf8), to: fixture.root, Array("c.log".utf8), .replace, program)
      #expect(try fixture.versions("c.log").isEmpty && fixture.text("c.log") == text)
    }
    #expect(try events(fixture, after: before).filter { !$0.contains("b.log") } == [])
    // A plain file that a program renames over a document is its next version.
    try fixture.save("doc", "first")
    _ = try events(fixture, after: 0)
    fixture.clock.advance(60)
    let made = try library.create(fixture.root, Array("doc.log".utf8), mode: 0o644, flags: O_RDWR, program)
    try fixture.write(made.handle, Array("second".utf8))
    try fixture.close(made.handle)
    let id = try library.itemStatus(fixture.path("doc")).id
    try library.rename(fixture.root, Array("doc.log".utf8), to: fixture.root, Array("doc".utf8), .replace, program)
    #expect(try fixture.versions("doc").count == 2 && fixture.version("doc", 2) == "second")
    #expect(try library.itemStatus(fixture.path("doc")).id == id)
    try fixture.finish()
  }

  /// What a plain file held is its first version once it is saved where it is not ignored any more.
  @Test(arguments: ["anew", "appended", "in one session"], ["moved", "ruled"])
  func whatWasPlainIsTheFirstVersion(_ way: String, _ reason: String) throws {
    let fixture = try LibraryFixture()
    for folder in ["node_modules", "node_modules/k"] { try fixture.mkdir(folder) }
    if reason == "ruled" { try fixture.save(".sheafignore", "*.o\n") }
    var path = reason == "moved" ? "node_modules/k/f" : "f.o"
    try fixture.save(path, "precious")
    let handle = way == "in one session" ? try fixture.open(path) : nil
    if let handle {
      try fixture.write(handle, Array("precious".utf8))
      try fixture.library.flush(handle)
      fixture.autosave()
    }
    fixture.clock.advance(60)
    if reason == "moved" {
      try fixture.rename("node_modules", "src")
      path = "src/k/f"
    } else {
      try fixture.save(".sheafignore", "#\n")
    }
    switch handle {
    case let handle?:
      try fixture.write(handle, Array("new".utf8))
      try fixture.close(handle)
    case nil where way == "anew": try fixture.save(path, "new")
    case nil:
      let handle = try fixture.open(path)
      try fixture.write(handle, Array("!".utf8), at: 8)
      try fixture.close(handle)
    }
    let last = ["anew": "new", "appended": "precious!", "in one session": "newcious"][way]
    #expect(try fixture.text(path) == last)
    #expect(try fixture.versions(path).map(\.number) == [1, 2])
    #expect(try fixture.version(path, 1) == "precious" && fixture.version(path, 2) == last)
    try fixture.finish()
  }

  @Test func rulesHoldFromWhenTheyAreSaved() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.mkdir("in")
    try fixture.save("in/a.tmpl", "x")
    try fixture.save("in/.sheafignore", "*.tmpl\n")
    try fixture.save("in/a.tmpl", "y")
    try fixture.save("in/b.tmpl", "y")
    try fixture.save("b.tmpl", "y")
    #expect(try fixture.versions("in/a.tmpl").count == 2 && fixture.versions("in/b.tmpl").isEmpty)
    #expect(try fixture.versions("b.tmpl").count == 1)
    // The deeper file decides, and a document of the name of rules is never ignored.
    try fixture.save(".sheafignore", "!*.tmpl\n*.md\n.sheafignore\n")
    try fixture.save("in/c.tmpl", "z")
    try fixture.save("in/c.md", "z")
    #expect(try fixture.versions("in/c.tmpl").isEmpty && fixture.versions("in/c.md").isEmpty)
    #expect(try fixture.versions(".sheafignore").count == 1)
    // Without rules it is a document from the next save on.
    try fixture.unlink("in/.sheafignore")
    _ = try events(fixture, after: 0)
    let before = library.lastEvent
    try fixture.save("in/b.tmpl", "document")
    #expect(try fixture.versions("in/b.tmpl").count == 2)
    #expect(try events(fixture, after: before) == ["created in/b.tmpl", "edit in/b.tmpl"])
    // A folder that moves comes under other rules.
    try fixture.mkdir("out")
    try fixture.save("out/.sheafignore", "*.tex\n")
    try fixture.save("in/a.tex", "x")
    try fixture.rename("in", "out/in")
    try fixture.save("out/in/b.tex", "x")
    #expect(try fixture.versions("out/in/a.tex").count == 1 && fixture.versions("out/in/b.tex").isEmpty)
    // By default.
    try fixture.mkdir("node_modules")
    for path in ["node_modules/x.js", ".DS_Store", "Thumbs.db"] {
      try fixture.save(path, "x")
      #expect(try fixture.versions(path).isEmpty, "\(path)")
    }
    // What it holds outlives the process.
    try fixture.expectSound()
    try library.close()
    let again = try Library.open(LibraryLocation(path: fixture.path)) { fixture.clock.now }
    let copy = try again.check { _ in }
    #expect(copy.problems == [])
    let ino = try again.lookup(
      again.lookup(fixtureRoot(again, fixture), Array("out".utf8), .library).ino, Array("in".utf8), .library
    ).ino
    #expect(try again.lookup(ino, Array("b.tex".utf8), .library).size == 1)
    try again.close()
    try? FileManager.default.removeItem(atPath: fixture.folder)
  }

  /// Otherwise the document's history would lie nowhere, and no other machine could show it.
  @Test(arguments: [
    "moving", "linking", "recovering", "sharing", "saving under other rules", "making under other rules",
  ])
  func aFolderWithADocumentIsAnItem(_ way: String) throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.save("doc", "text")
    try fixture.mkdir("node_modules")
    try fixture.mkdir("node_modules/deep")
    try fixture.save("node_modules/deep/plain", "plain")
    if way == "recovering" {
      try fixture.rename("doc", "node_modules/deep/doc")
      try fixture.unlink("node_modules/deep/doc")
    }
    _ = try events(fixture, after: 0)
    let before = library.lastEvent
    var told = ["created node_modules", "created node_modules/deep"]
    switch way {
    case "moving":
      try fixture.rename("doc", "node_modules/deep/doc")
      told.append("moved node_modules/deep/doc")
    case "linking":
      _ = try library.link(fixture.ino("doc"), fixture.ino("node_modules/deep"), Array("doc".utf8), .library)
    case "recovering":
      _ = try library.recover(fixture.path("node_modules/deep/doc"), id: nil) { _ in }
      // It was an item before, for the document had been there.
      told = ["created node_modules/deep/doc"]
    case "sharing":
      _ = try library.share(fixture.path("node_modules/deep/plain"), ShareChange())
      told += ["created node_modules/deep/plain", "created node_modules/deep/plain"]
      #expect(try fixture.versions("node_modules/deep/plain").map(\.size) == [5])
    default:
      try fixture.save(".sheafignore", "!node_modules/\n")
      _ = try events(fixture, after: 0)
      let name = way == "saving under other rules" ? "plain" : "new"
      try fixture.save("node_modules/deep/\(name)", "document")
      told = ["created .sheafignore"] + told + ["created node_modules/deep/\(name)"]
      if name == "plain" { told.append("edit node_modules/deep/plain") }
    }
    let logged = try events(fixture, after: before)
    #expect(logged == told)
    // What is made in it is plain as before.
    if !way.hasSuffix("rules") {
      try fixture.save("node_modules/deep/more", "more")
      #expect(try fixture.versions("node_modules/deep/more").isEmpty)
      try fixture.unlink("node_modules/deep/more")
    }
    try fixture.finish()
  }

  /// Whoever may write may make rules, and nobody is to wait long for them.
  @Test func fewRulesCount() throws {
    let fixture = try LibraryFixture()
    let filler = String(repeating: "# nothing\n", count: 1700)
    try fixture.mkdir("in")
    try fixture.save(".sheafignore", "*.a\n" + filler + "*.b\n")
    try fixture.save("in/.sheafignore", "*.c\n")
    for (path, versions) in [("x.a", 0), ("x.b", 1), ("in/x.a", 0), ("in/x.c", 1)] {
      try fixture.save(path, "x")
      #expect(try fixture.versions(path).count == versions, "\(path)")
    }
    let wild = (0..<40).map { "**/\(String(repeating: "a", count: 30))\($0)" }.joined(separator: "\n")
    try fixture.save(".sheafignore", wild + "\n*.d\n**/late\n")
    for (path, versions) in [("x.d", 0), ("late", 1)] {
      try fixture.save(path, "x")
      #expect(try fixture.versions(path).count == versions, "\(path)")
    }
    try fixture.finish()
  }

  private func fixtureRoot(_ library: Library, _ fixture: LibraryFixture) throws -> Int64 {
    try library.documents(of: fixture.account)
  }
}
