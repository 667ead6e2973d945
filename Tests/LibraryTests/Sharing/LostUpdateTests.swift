import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// A program writes what it made from an earlier version: that is on record, and what was written is not lost.
struct LostUpdateTests {
  private let mine = "Documents/plans/a.md"
  private let plans = "Shared/alice@example.com/plans"
  private var theirs: String { "\(plans)/a.md" }
  // Numbers of processes that there are none of.
  private let editor: Int32 = 5_000_001
  private let other: Int32 = 5_000_002

  private func together(_ body: (People) throws -> Void) throws {
    try People.story { people in
      try people.as(.alice, process: other) { (me) throws in
        try me.mkdir("Documents/plans")
        try me.save(mine, "one")
      }
      people.clock.advance(20)
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      try body(people)
    }
  }

  private func append(_ me: Person, _ path: String, _ text: String) throws {
    let handle = try me.open(path, O_WRONLY | O_APPEND)
    try Array(text.utf8).withUnsafeBytes { try me.library.write(handle, at: 0, $0, appends: true) }
    try me.close(handle)
  }

  private func expectConflict(_ people: People, _ conflict: Int64?, base: Int64) throws {
    try people.as(.alice) { (me) throws in
      #expect(try me.versions(mine).last?.base == base)
      #expect(try me.library.itemStatus(me.path(mine)).conflict == conflict)
    }
  }

  // MARK: - Files that a program made itself

  /// How a program saves.
  enum Way: CaseIterable { case truncating, inPlace, renaming, withBackup }

  private func save(_ me: Person, _ path: String, _ text: String, _ way: Way) throws {
    switch way {
    case .truncating: try me.save(path, text)
    case .inPlace:
      let handle = try me.open(path, O_RDWR | O_CREAT)
      try me.write(handle, text)
      try me.close(handle)
    case .renaming:
      try me.save("\(path).tmpz", text)
      try me.rename("\(path).tmpz", path)
    case .withBackup:
      if try me.names("Documents/plans").contains("new.md") { try me.rename(path, "\(path)~") }
      try me.save(path, text)
    }
  }

  /// A program knows what it wrote, and no more.
  @Test(arguments: Way.allCases, [0, 20])
  func whoMadeADocumentDoesNotPassOverOthersInSilence(_ way: Way, _ pause: Int64) throws {
    try together { people in
      let path = "Documents/plans/new.md"
      try people.as(.alice, process: getpid()) { try save($0, path, "mine", way) }
      people.clock.advance(pause)
      try people.as(.bob, process: getppid()) { try append($0, "\(plans)/new.md", " theirs") }
      people.clock.advance(pause)
      try people.as(.alice, process: getpid()) { try save($0, path, "mine again", way) }
      try people.as(.alice) { (me) throws in
        #expect(try me.versions(path).last?.base == 1)
        #expect(try me.library.itemStatus(me.path(path)).conflict == 2)
      }
    }
  }

  /// A young document is the same one after its program exchanged it for a file that it named after it.
  @Test func anExchangeOfYoungFilesKeepsTheDocument() throws {
    try together { people in
      let path = "Documents/plans/new.md"
      try people.as(.alice, process: getpid()) { try $0.save(path, "mine") }
      people.clock.advance(1)
      try people.as(.bob, process: getppid()) { try append($0, "\(plans)/new.md", " theirs") }
      people.clock.advance(1)
      try people.as(.alice, process: getpid()) { (me) throws in
        try me.save("\(path).x", "mine again")
        try me.exchange("\(path).x", path)
        try me.unlink("\(path).x")
        #expect(try me.versions(path).map(\.number) == [1, 2, 3])
        #expect(try me.library.itemStatus(me.path(path)).conflict == 2)
      }
    }
  }

  // MARK: - Files that were replaced

  /// A local disk loses it.
  @Test func whatIsWrittenToAFileThatAnotherProgramReplacedIsKept() throws {
    try together { people in
      let bob = try people.as(.bob, process: editor) { (me) throws in try me.open(theirs, O_RDWR) }
      let late = try people.as(.alice, process: editor) { (me) throws in try me.open(mine, O_RDWR) }
      let empty = try people.as(.alice, process: editor) { (me) throws in try me.open(mine, O_RDWR) }
      try people.as(.alice, process: other) { (me) throws in
        try me.save("Documents/plans/.a.md.new", "two")
        try me.rename("Documents/plans/.a.md.new", mine)
      }
      try people.as(.bob, process: editor) { (me) throws in
        try me.write(bob, "from bob")
        try me.library.flush(bob)
        try me.write(bob, "FROM")
        try me.close(bob)
        #expect(try me.names("Documents") == ["a (not saved).md"])
        #expect(try me.read("Documents/a (not saved).md") == "FROM bob")
        #expect(try me.read(theirs) == "two")
      }
      try people.as(.alice, process: editor) { (me) throws in
        try me.close(empty)
        try me.write(late, "late!")
        try me.close(late)
        #expect(try me.names("Documents") == ["a (not saved).md", "plans"])
        #expect(try me.read("Documents/a (not saved).md") == "late!")
        #expect(try me.versions(mine).map(\.size) == [3, 3])
      }
    }
  }

  /// Who only emptied a document when somebody else replaced it has lost nothing, and what they write then is kept.
  @Test(arguments: [false, true]) func whoOnlyEmptiedWhatIsReplacedLosesNothing(_ writes: Bool) throws {
    try together { people in
      let handle = try people.as(.bob, process: editor) { (me) throws in
        let handle = try me.open(theirs, O_RDWR)
        _ = try me.library.setAttributes(me.inode(theirs), .init(size: 0), handle: handle, me.caller)
        return handle
      }
      try people.as(.alice, process: other) { (me) throws in
        try me.save("Documents/plans/.a.md.new", "two")
        try me.rename("Documents/plans/.a.md.new", mine)
      }
      try people.as(.bob, process: editor) { (me) throws in
        if writes { try me.write(handle, "late") }
        try me.close(handle)
        #expect(try me.names("Documents") == (writes ? ["a (not saved).md"] : []))
        #expect(try me.read(theirs) == "two")
      }
    }
  }

  /// It goes by what rename(2) says.
  @Test func aProgramThatReplacedAFileItselfKeepsNothingOfIt() throws {
    try together { people in
      try people.as(.alice, process: other) { (me) throws in
        let handle = try me.open(mine, O_RDWR)
        try me.save("Documents/plans/.a.md.new", "two")
        try me.rename("Documents/plans/.a.md.new", mine)
        try me.write(handle, "own")
        try me.close(handle)
        #expect(try me.names("Documents") == ["plans"])
      }
    }
  }

  @Test func whatIsWrittenWhileAProgramLinksItsNewFileIntoPlaceIsAVersion() throws {
    for isSynced in [false, true] {
      try together { people in
        let ino = try people.as(.alice) { (me) throws in try me.inode(mine) }
        let bob = try people.as(.bob, process: editor) { (me) throws in try me.open(theirs, O_RDWR) }
        try people.as(.alice, process: other) { (me) throws in
          try me.save("Documents/plans/#a.md", "linked")
          try me.unlink(mine)
          try me.link("Documents/plans/#a.md", mine)
        }
        try people.as(.bob, process: editor) { (me) throws in
          try me.write(bob, "from bob")
          if isSynced { try me.library.fsync(ino) }
        }
        try people.as(.alice, process: other) { (me) throws in try me.unlink("Documents/plans/#a.md") }
        try people.as(.bob, process: editor) { (me) throws in
          try me.close(bob)
          #expect(try me.names("Documents") == [])
        }
        try people.as(.alice) { (me) throws in
          #expect(try me.versions(mine).map(\.size) == [3, 8, 6])
          #expect(try me.read(mine) == "linked")
        }
        #expect(try people.library.check { _ in }.problems == [])
      }
    }
  }

  @Test func aTruncationByNameIsBasedOnWhatItsProgramRead() throws {
    try together { people in
      try people.as(.bob, process: editor) { (me) throws in
        let handle = try me.open(theirs, O_RDONLY)
        #expect(try me.read(handle) == "one")
        try me.close(handle)
      }
      try people.as(.alice, process: other) { try append($0, mine, "+line") }
      try people.as(.bob, process: editor) { (me) throws in
        _ = try me.change(theirs, Library.AttributeChange(size: 0))
        let handle = try me.open(theirs, O_RDWR)
        try me.write(handle, "whole")
        try me.close(handle)
      }
      try expectConflict(people, 2, base: 1)
    }
  }

  // MARK: - Two accounts

  @Test func aHandleThatReadAnEarlierVersion() throws {
    try together { people in
      let bob = try people.as(.bob, process: editor) { me in
        let handle = try me.open(theirs, O_RDWR)
        #expect(try me.read(handle) == "one")
        return handle
      }
      try people.as(.alice, process: other) { try append($0, mine, "+line") }
      try people.as(.bob, process: editor) { (me) throws in
        try me.write(bob, "ONE from bob")
        try me.close(bob)
      }
      try expectConflict(people, 2, base: 1)
    }
  }

  /// What an autosave made is renewed no longer once another account goes on from it.
  @Test func whoGoesOnFromAnAutosavePassesOverWhatCameSince() throws {
    try together { people in
      let bob = try people.as(.bob, process: editor) { (me) throws in
        let handle = try me.open(theirs, O_RDWR)
        try me.write(handle, "two")
        return handle
      }
      people.clock.advance(2)
      people.library.keepUp()
      try people.as(.alice, process: other) { (me) throws in
        let handle = try me.open(mine, O_RDWR)
        #expect(try me.read(handle) == "two")
        try people.as(.bob, process: editor) { try $0.write(bob, "TWO") }
        try me.write(handle, "!", at: 3)
        try people.as(.bob, process: editor) { try $0.close(bob) }
        try me.close(handle)
        #expect(try me.versions(mine).map(\.size) == [3, 3, 3, 4])
      }
      try expectConflict(people, 3, base: 2)
    }
  }

  @Test(arguments: [O_RDWR, O_WRONLY]) func aProgramThatOpensAgainToWrite(_ flags: Int32) throws {
    try together { people in
      try people.as(.bob, process: editor) { (me) throws in #expect(try me.read(theirs) == "one") }
      try people.as(.alice, process: other) { try append($0, mine, "+line") }
      try people.as(.bob, process: editor) { (me) throws in
        let handle = try me.open(theirs, flags)
        try me.write(handle, "ONE from bob")
        try me.close(handle)
      }
      try expectConflict(people, 2, base: 1)
    }
  }

  @Test func whoReadsAgainIsOnTop() throws {
    try together { people in
      let bob = try people.as(.bob, process: editor) { me in
        let handle = try me.open(theirs, O_RDWR)
        #expect(try me.read(handle) == "one")
        return handle
      }
      try people.as(.alice, process: other) { try append($0, mine, "+line") }
      try people.as(.bob, process: editor) { (me) throws in
        #expect(try me.read(bob) == "one+line")
        try me.write(bob, "ONE")
        try me.close(bob)
      }
      try expectConflict(people, nil, base: 2)
    }
  }

  @Test func whoAppendsIsOnTop() throws {
    try together { people in
      let bob = try people.as(.bob, process: editor) { me in
        let handle = try me.open(theirs, O_RDWR | O_APPEND)
        #expect(try me.read(handle) == "one")
        return handle
      }
      try people.as(.alice, process: other) { try append($0, mine, "+line") }
      try people.as(.bob, process: editor) { (me) throws in
        try Array("+bob".utf8).withUnsafeBytes { try me.library.write(bob, at: 0, $0, appends: true) }
        try me.close(bob)
        #expect(try me.read(theirs) == "one+line+bob")
      }
      try expectConflict(people, nil, base: 2)
    }
  }

  /// An append makes a version on top of what is there, which the program that appends need not have seen.
  @Test(arguments: [O_RDWR, O_WRONLY | O_TRUNC], [true, false])
  func whoAppendedKnowsNoMoreThanBefore(_ flags: Int32, _ inOneSession: Bool) throws {
    try together { people in
      let bob = try people.as(.bob, process: editor) { me in
        let handle = try me.open(theirs, O_RDWR)
        #expect(try me.read(handle) == "one")
        if !inOneSession { try me.close(handle) }
        return handle
      }
      try people.as(.alice, process: other) { try append($0, mine, "+line") }
      try people.as(.bob, process: editor) { (me) throws in
        try append(me, theirs, "+bob")
        let handle = try me.open(theirs, flags)
        try me.write(handle, "ONE from bob")
        try me.close(handle)
        if inOneSession { try me.close(bob) }
        #expect(try me.read(theirs) == "ONE from bob")
      }
      try expectConflict(people, 3, base: 1)
    }
  }

  /// The session's version is not renewed by who knows less than those that made it.
  @Test(arguments: [O_RDWR, O_WRONLY | O_TRUNC], [true, false])
  func whoJoinsASessionPassesOverWhatTheyHadNotRead(_ flags: Int32, _ isStored: Bool) throws {
    try together { people in
      let handle = try people.as(.bob, process: editor) { me in
        let handle = try me.open(theirs, O_RDWR)
        #expect(try me.read(handle) == "one")
        return handle
      }
      try people.as(.alice, process: other) { try append($0, mine, "+line") }
      let second = try people.as(.bob, process: getpid()) { me in
        let second = try me.open(theirs, O_RDWR)
        #expect(try me.read(second) == "one+line")
        try me.write(second, "ONE")
        return second
      }
      if isStored {
        people.clock.advance(5)
        people.fixture.autosave()
      }
      try people.as(.bob, process: editor) { (me) throws in
        if flags & O_TRUNC != 0 {
          let third = try me.open(theirs, flags)
          try me.write(third, "whole")
          try me.close(third)
        } else {
          try me.write(handle, "one from bob")
        }
        try me.close(handle)
      }
      try people.as(.bob, process: getpid()) { try $0.close(second) }
      if flags & O_TRUNC != 0, isStored {
        // The account knows what its other program saved.
        try expectConflict(people, nil, base: 2)
        return
      }
      try expectConflict(people, isStored ? 3 : 2, base: 1)
      let sizes = try people.as(.alice) { try $0.versions(mine).map(\.size) }
      #expect(sizes == [3, 8] + (isStored ? [8] : []) + [flags & O_TRUNC != 0 ? 5 : 12])
    }
  }

  /// What a person's programs saved is known to them all: one may write what another one read.
  @Test func anAccountKnowsWhatItsProgramsSaved() throws {
    try together { people in
      try people.as(.bob, process: getppid()) { try $0.save(theirs, "one") }
      try people.as(.alice, process: other) { try append($0, mine, "+line") }
      try people.as(.bob, process: editor) { (me) throws in #expect(try me.read(theirs) == "one+line") }
      for number in 1...2 {
        // As sed -i does.
        try people.as(.bob, process: getpid()) { (me) throws in
          let text = try me.read(theirs)
          try me.save("\(plans)/sedXyz\(number)", "\(text)+\(number)")
          try me.rename("\(plans)/sedXyz\(number)", theirs)
        }
      }
      try people.as(.bob, process: getppid()) { try $0.save(theirs, "four") }
      try people.as(.alice) { (me) throws in
        #expect(try me.library.itemStatus(me.path(mine)).conflict == nil)
        #expect(try me.read(mine) == "four")
      }
    }
  }

  /// Runs `body` with the number of a program of this session that lives until it returns.
  private func withSibling(_ body: (Int32) throws -> Void) throws {
    let program = Process()
    program.executableURL = URL(fileURLWithPath: "/bin/cat")
    let input = Pipe()
    program.standardInput = input
    try program.run()
    defer {
      try? input.fileHandleForWriting.close()
      program.waitUntilExit()
    }
    try body(program.processIdentifier)
  }

  /// As `text=$(cat doc)` and later `… > doc` do.
  @Test(arguments: [true, false]) func oneProgramOfASessionWritesWhatAnotherOneRead(_ byName: Bool) throws {
    try withSibling { cat in
      try together { people in
        try people.as(.bob, process: cat) { (me) throws in #expect(try me.read(theirs) == "one") }
        try people.as(.alice, process: other) { try append($0, mine, "+line") }
        try people.as(.bob, process: getpid()) { (me) throws in
          if byName { _ = try me.change(theirs, Library.AttributeChange(size: 0)) }
          try me.save(theirs, "one from bob")
        }
        try expectConflict(people, 2, base: 1)
        // Who reads again is on top.
        try people.as(.bob, process: cat) { (me) throws in #expect(try me.read(theirs) == "one from bob") }
        try people.as(.bob, process: getpid()) { try $0.save(theirs, "the end") }
        try expectConflict(people, nil, base: 3)
      }
    }
  }

  /// A shell reads nothing itself, and knows what the programs read that it runs.
  @Test func whoNeverReadsKnowsWhatOthersOfItsSessionRead() throws {
    try withSibling { cat in
      try together { people in
        try people.as(.bob, process: getpid()) { try $0.save(theirs, "two") }
        try people.as(.alice, process: other) { try append($0, mine, "+line") }
        try people.as(.bob, process: cat) { (me) throws in #expect(try me.read(theirs) == "two+line") }
        try people.as(.bob, process: getpid()) { try $0.save(theirs, "two+line from bob") }
        try expectConflict(people, nil, base: 3)
        // It does not know what nobody read.
        try people.as(.alice, process: other) { try append($0, mine, "+line") }
        try people.as(.bob, process: getpid()) { try $0.save(theirs, "from bob") }
        try expectConflict(people, 5, base: 4)
        // Who reads has only that before it.
        try people.as(.bob, process: getpid()) { (me) throws in #expect(try me.read(theirs) == "from bob") }
        try people.as(.alice, process: other) { try append($0, mine, "+line") }
        try people.as(.bob, process: cat) { (me) throws in #expect(try me.read(theirs) == "from bob+line") }
        try people.as(.bob, process: getpid()) { try $0.save(theirs, "the end") }
        try expectConflict(people, 7, base: 6)
      }
    }
  }

  /// What programs make anew each time is made from nothing that others of their session saved, or saved since they
  /// read; and programs of other sessions have nothing to do with it.
  @Test func whoMakesADocumentAnewPassesOverNothing() throws {
    try withSibling { first in
      let second = getpid()
      try together { people in
        try people.as(.bob, process: editor) { (me) throws in #expect(try me.read(theirs) == "one") }
        // Who only opens it to write has not looked at it.
        try withSibling { third in
          try people.as(.bob, process: third) { (me) throws in try me.close(me.open(theirs, O_RDWR)) }
        }
        for round in 0..<2 {
          try people.as(.alice, process: other) { try append($0, mine, "+line") }
          try people.as(.bob, process: round == 0 ? first : second) { try $0.save(theirs, "anew \(round)") }
          try expectConflict(people, nil, base: Int64(2 * round + 2))
        }
      }
      try together { people in
        try people.as(.bob, process: first) { (me) throws in #expect(try me.read(theirs) == "one") }
        // The session's own programs pass over nothing of each other.
        try people.as(.bob, process: second) { try $0.save(theirs, "two") }
        try expectConflict(people, nil, base: 1)
        try people.as(.bob, process: first) { try $0.save(theirs, "three") }
        try expectConflict(people, nil, base: 2)
        try people.as(.alice, process: other) { (me) throws in
          #expect(try me.read(mine) == "three")
          try me.save(mine, "four")
        }
        try withSibling { third in try people.as(.bob, process: third) { try $0.save(theirs, "five") } }
        try expectConflict(people, nil, base: 4)
      }
    }
  }

  // MARK: - One account

  @Test(arguments: [true, false]) func oneAccountAndTwoPrograms(_ isShared: Bool) throws {
    try People.story { people in
      try people.as(.alice, process: other) { (me) throws in
        try me.mkdir("Documents/plans")
        try me.save(mine, "one")
      }
      people.clock.advance(20)
      if isShared { try people.share("Documents/plans", with: [(.bob, .readWrite)]) }
      let handle = try people.as(.alice, process: editor) { me in
        let handle = try me.open(mine, O_RDWR)
        #expect(try me.read(handle) == "one")
        return handle
      }
      try people.as(.alice, process: other) { try append($0, mine, "+line") }
      try people.as(.alice, process: editor) { (me) throws in
        try me.write(handle, "ONE from alice")
        try me.close(handle)
        #expect(try me.library.versions(me.path(mine)).map(\.size) == [3, 8, 14])
      }
      try expectConflict(people, 2, base: 1)
      // Who saves on top has seen both.
      try people.as(.alice, process: other) { try append($0, mine, ".") }
      try expectConflict(people, nil, base: 3)
    }
  }

  @Test func oneProgramKnowsWhatItWrote() throws {
    try together { people in
      try people.as(.alice, process: editor) { (me) throws in
        let handle = try me.open(mine, O_RDWR)
        #expect(try me.read(handle) == "one")
        try append(me, mine, "+line")
        try me.write(handle, "ONE")
        try me.close(handle)
      }
      try expectConflict(people, nil, base: 2)
    }
  }

  @Test func aProgramThatWritesForLongIsOnTopOfItself() throws {
    try together { people in
      try people.as(.alice, process: editor) { (me) throws in
        let handle = try me.open(mine, O_RDWR)
        #expect(try me.read(handle) == "one")
        for _ in 0..<3 {
          try me.write(handle, "\(people.clock.now.seconds)")
          people.clock.advance(5)
          people.fixture.autosave()
          people.clock.advance(700)
          people.fixture.autosave()
        }
        try me.close(handle)
      }
      try people.as(.alice) { (me) throws in
        let versions = try me.versions(mine)
        #expect(versions.count > 2)
        #expect(try me.library.itemStatus(me.path(mine)).conflict == nil)
      }
    }
  }

  /// A lock speaks for who holds it, and for their session; what anybody else holds changes nothing.
  @Test(arguments: ["the program", "its session", "a stranger"])
  func programsThatLockTakeTurns(_ holder: String) throws {
    try withSibling { sibling in
      try together { people in
        let handle = try people.as(.alice, process: getpid()) { me in
          let handle = try me.open(mine, O_RDWR)
          #expect(try me.read(handle) == "one")
          return handle
        }
        try people.as(.alice, process: other) { try append($0, mine, "+line") }
        try people.as(.alice, process: getpid()) { (me) throws in
          // Its kernel has the new contents, so that nobody else sees it read them.
          let owner = FileLocks.Owner(door: 0, id: 1)
          let process = holder == "the program" ? getpid() : holder == "its session" ? sibling : editor
          people.library.locks.set(
            .init(owner: owner, handle: handle, process: process, isExclusive: process == getpid()), .record,
            of: UInt64(try me.inode(mine)), waits: false, request: people.library.locks.newRequest()
          ) { _ in }
          try me.write(handle, "ONE")
          try me.close(handle)
          people.library.locks.unlock(0...Int64.max, .record, of: UInt64(try me.inode(mine)), by: owner)
        }
        try expectConflict(people, holder == "a stranger" ? 2 : nil, base: holder == "a stranger" ? 1 : 2)
      }
    }
  }

  // MARK: - Drafts of a document whose name another file takes

  /// One program has the document open at the mounts of two people.
  @Test(arguments: ["rename", "unlink"]) func theOthersDraftIsKept(_ way: String) throws {
    try together { people in
      let bob = "\(plans)/new.md"
      try people.as(.alice, process: editor) { try $0.save("Documents/plans/new.md", "one") }
      let handle = try people.as(.bob, process: editor) { me in
        let handle = try me.open(bob, O_RDWR)
        try me.write(handle, "from bob")
        return handle
      }
      try people.as(.alice, process: editor) { (me) throws in
        if way == "unlink" {
          try me.unlink("Documents/plans/new.md")
        } else {
          try me.save("Documents/plans/t", "from alice")
          try me.rename("Documents/plans/t", "Documents/plans/new.md")
        }
      }
      try people.as(.bob, process: editor) { try $0.close(handle) }
      try people.as(.alice) { (me) throws in
        if way == "unlink" {
          _ = try me.library.recover(me.path("Documents/plans/new.md"), id: nil) { _ in }
        }
        let sizes = try me.versions("Documents/plans/new.md").map(\.size)
        #expect(sizes == (way == "unlink" ? [3, 8] : [3, 8, 10]))
      }
    }
  }

  /// A file that nobody has closed yet, with what another account wrote to it.
  @Test(arguments: ["new.md", ".new.md.tmp"]) func theOthersDraftOfAFileThatWasOnlyMadeIsKept(_ name: String) throws {
    try together { people in
      let handle = try people.as(.alice, process: editor) { try $0.open("Documents/plans/\(name)", O_RDWR | O_CREAT) }
      let bob = try people.as(.bob, process: editor) { me in
        let handle = try me.open("\(plans)/\(name)", O_RDWR)
        try me.write(handle, "from bob")
        return handle
      }
      try people.as(.alice, process: editor) { (me) throws in
        try me.unlink("Documents/plans/\(name)")
        try me.close(handle)
      }
      try people.as(.bob, process: editor) { try $0.close(bob) }
      try people.as(.alice) { (me) throws in
        _ = try me.library.recover(me.path("Documents/plans/\(name)"), id: nil) { _ in }
        #expect(try me.read("Documents/plans/\(name)") == "from bob")
      }
    }
  }

  /// Two people write to the new file that takes a document's name.
  @Test func bothGoOnWritingWhatTakesTheName() throws {
    try together { people in
      let alice = try people.as(.alice, process: editor) { me in
        let handle = try me.open("Documents/plans/t", O_RDWR | O_CREAT)
        try me.write(handle, "from alice")
        return handle
      }
      let bob = try people.as(.bob, process: other) { me in
        let handle = try me.open("\(plans)/t", O_RDWR)
        try me.write(handle, "bob's")
        return handle
      }
      try people.as(.alice, process: editor) { (me) throws in
        try me.rename("Documents/plans/t", mine)
        try me.write(alice, "again alice")
      }
      try people.as(.bob, process: other) { (me) throws in
        try me.write(bob, "again bob's")
        try me.close(bob)
      }
      try people.as(.alice, process: editor) { try $0.close(alice) }
      try people.as(.alice) { (me) throws in
        let texts = try me.versions(mine).map { version in
          var bytes: [UInt8] = []
          try me.library.readVersion(me.path(mine), number: version.number) { bytes += $0 }
          return String(decoding: bytes, as: UTF8.self)
        }
        #expect(texts.contains("one") && texts.contains("again alice") && texts.contains("again bob's"))
      }
    }
  }
}
