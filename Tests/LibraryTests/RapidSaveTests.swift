import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// Which versions stay of saves that follow each other faster than a person saves.
struct RapidSaveTests {
  private func withLibrary(
    _ setting: RapidSavesSetting = .thin, _ body: (LibraryFixture, (_ text: String) throws -> Void) throws -> Void
  ) throws {
    // What no process did is in no series.
    let program = Caller(uid: 0, gid: 0, thread: getpid(), door: 0, groups: { [] })
    let fixture = try LibraryFixture(rapidSaves: setting, by: program)
    try body(fixture) { text in
      let handle = try fixture.open("a", O_WRONLY | O_CREAT | O_TRUNC)
      try fixture.write(handle, Array(text.utf8))
      try fixture.library.flush(handle)
      // The kernel tells of the last close later than close(2) returns, so the session ends after its version was made.
      fixture.clock.advance(milliseconds: 1)
      try fixture.library.release(handle)
    }
    try fixture.finish()
  }

  private func numbers(_ fixture: LibraryFixture) throws -> [Int64] {
    try fixture.library.versions(fixture.path("a")).map(\.number)
  }

  /// Lets upkeep do all that is due.
  private func settle(_ fixture: LibraryFixture) {
    fixture.library.keepUp()
    fixture.library.keepUp()
  }

  @Test func aSeriesKeepsItsFirstTenItsLastAndOneAMinute() throws {
    try withLibrary { fixture, save in
      // Five a second for 150 seconds.
      for number in 1...750 {
        try save("\(number)")
        fixture.clock.advance(milliseconds: 199)
        if number % 50 == 0 { settle(fixture) }
      }
      settle(fixture)
      let kept = try numbers(fixture)
      #expect(Array(kept.prefix(10)) == Array(1...10))
      #expect(kept.last == 750)
      // A minute is 300 saves.
      #expect(kept.dropFirst(10).dropLast() == [310, 610])
      for number in kept {
        #expect(try fixture.version("a", number) == "\(number)")
      }
    }
  }

  /// Sizes of the largest sparse files add up to more than a number holds.
  @Test func theLargestFilesAreThinnedLikeOthers() throws {
    try withLibrary { fixture, _ in
      let last = WorkingCopy.maximumSize - 1
      for number in 1...30 {
        let handle = try fixture.open("a", O_WRONLY | O_CREAT)
        try fixture.write(handle, Array("\(number)".utf8))
        try fixture.write(handle, [0], at: last)
        try fixture.library.flush(handle)
        fixture.clock.advance(milliseconds: 1)
        try fixture.library.release(handle)
        fixture.clock.advance(milliseconds: 199)
      }
      settle(fixture)
      #expect(try numbers(fixture) == Array(1...10) + [30])
      for _ in 1...3 {
        for name in ["x.tmp", ".b.swp"] {
          let handle = try fixture.open(name, O_WRONLY | O_CREAT)
          try fixture.write(handle, [0], at: last)
          try fixture.close(handle)
          try fixture.unlink(name)
        }
      }
      settle(fixture)
    }
  }

  /// A busy machine makes a program pause; that is no reason to keep ten more.
  @Test func aPauseOfAProgramBringsNoOtherFirstTen() throws {
    try withLibrary { fixture, save in
      func run(_ numbers: ClosedRange<Int>) throws {
        for number in numbers {
          try save("\(number)")
          fixture.clock.advance(milliseconds: 199)
        }
      }
      var wanted = Array(Int64(1)...10) + [40]
      try run(1...40)
      for round in 1...5 {
        fixture.clock.advance(2)
        settle(fixture)
        // One save alone is as one of a person, and stays.
        let alone = round * 41
        try run(alone...alone)
        fixture.clock.advance(3)
        try run(alone + 1...alone + 40)
        wanted += [Int64(alone), Int64(alone + 1), Int64(alone + 40)]
      }
      settle(fixture)
      #expect(try numbers(fixture) == wanted)
      fixture.clock.advance(61)
      settle(fixture)
      try run(246...290)
      settle(fixture)
      #expect(try numbers(fixture) == wanted + Array(246...255) + [290])
    }
  }

  /// The library is not larger for long by what nobody wants: of 24 MB, a dozen versions stay.
  @Test func whatTheRemovedVersionsHeldIsFreed() throws {
    try withLibrary { fixture, _ in
      var random = SeededRandom()
      // Ten a second for two minutes.
      for number in 1...1200 {
        let handle = try fixture.open("a", O_WRONLY | O_CREAT | O_TRUNC)
        try fixture.write(handle, random.bytes(20_000))
        try fixture.library.flush(handle)
        fixture.clock.advance(milliseconds: 1)
        try fixture.library.release(handle)
        fixture.clock.advance(milliseconds: 99)
        if number % 100 == 0 { settle(fixture) }
      }
      settle(fixture)
      let count = try numbers(fixture).count
      #expect(count < 20, random.note)
      // Upkeep sweeps on a thread of its own.
      func left() throws -> Int64 { try fixture.library.counts().storedBytes - Int64(count) * 20_000 }
      let deadline = ContinuousClock.now + .seconds(30)
      while try left() > 11_000_000, ContinuousClock.now < deadline { sched_yield() }
      #expect(try left() <= 11_000_000, random.note)
    }
  }

  @Test func aPersonsSavesAllStay() throws {
    try withLibrary { fixture, save in
      for number in 1...60 {
        try save("\(number)")
        fixture.clock.advance(1)
        settle(fixture)
      }
      #expect(try numbers(fixture) == Array(1...60))
    }
  }

  /// What rewrites a document all the time.
  enum Rewriter: CaseIterable {
    case program
    /// A shell that starts a program for each save, and one whose programs save twice.
    case script, scriptOfTwos
    /// A shell that starts a program for each save by another one.
    case wrapped
    /// Two programs that take turns.
    case twoPrograms
  }

  /// Who saves in the middle of it.
  enum Saver: CaseIterable {
    /// A program that goes on, each second or third second, as an editor does.
    case editor
    /// A program of its own for each save, from another shell, or by another program from the shell of the terminal in
    /// which the script runs.
    case command, wrappedCommand
    /// The same, of another session that one process began, too.
    case otherSession
    /// The same, of another job of a shell that leads no session.
    case otherJob
    /// A program of the same script, which goes on beside the one that rewrites the document.
    case otherPart
    /// What is not known.
    case unknown
  }

  @Test(arguments: Rewriter.allCases, Saver.allCases)
  func aPersonsSavesStayBesideAProgram(_ rewriter: Rewriter, _ saver: Saver) throws {
    var saves = RapidSaves()
    var (time, number, kept): (Int64, Int64, [Int64]) = (1_000, 0, [])
    var living: Set<Int32> = [10, 20, 50, 100, 101, 500]
    func save(_ process: Int32, of parents: Int32..., session: Int32 = 9, group: Int32 = 9) {
      number += 1
      living.insert(process)
      saves.note(
        .init(
          item: 1, number: number, time: Timestamp(nanoseconds: time), author: 1,
          by: .init(process: process, ancestors: parents + [9], group: group, session: session), size: 1, event: 0),
        lives: living.contains)
      time += 1_000
    }
    for turn in Int32(0)..<200 {
      switch rewriter {
      case .program: save(100, of: 20, 10)
      case .script, .scriptOfTwos:
        for _ in 0..<(rewriter == .script ? 1 : 2) { save(1_000 + turn, of: 20, 10) }
        living.remove(1_000 + turn)
      case .wrapped:
        // As by `sh -c`.
        save(1_000 + turn, of: 3_000 + turn, 10)
        living.remove(1_000 + turn)
      case .twoPrograms: save(100 + turn % 2, of: 20, 10)
      }
      time += 300_000_000
      if turn % 13 == 12 {
        switch saver {
        case .editor: save(500, of: 50)
        case .command: save(2_000 + turn, of: 50)
        case .wrappedCommand: save(2_000 + turn, of: 4_000 + turn)
        case .otherSession: save(2_000 + turn, of: 20, 10, session: 8)
        case .otherJob: save(2_000 + turn, of: 20, 10, group: 8)
        // Of two programs that one shell starts by others, nobody knows which one goes on with the other's work.
        case .otherPart where rewriter == .wrapped: save(500, of: 50)
        case .otherPart: save(2_000 + turn, of: 4_000 + turn, 10)
        case .unknown: save(0)
        }
        if saver != .editor { living.remove(2_000 + turn) }
        kept.append(number)
      }
    }
    let surplus = Set(saves.takeSurplus(.max, at: Timestamp(nanoseconds: time)).map(\.number))
    #expect(kept.count == 15 && surplus.isDisjoint(with: kept))
    // The first ten, the last, and one a minute, of each series.
    let (rewrites, series) = (rewriter == .scriptOfTwos ? 400 : 200, rewriter == .twoPrograms ? 2 : 1)
    #expect(surplus.count >= rewrites - 13 * series && surplus.count <= rewrites - 11 * series, "\(surplus.count)")
  }

  /// Where nobody is above in the namespace, as in a container whose first process never called setsid(2), a shell's own
  /// programs are a series. What they start is not: the shell may be a person's.
  @Test func aSessionFromOutsideTheNamespaceHasScripts() {
    for (isWrapped, surplus) in [(false, 39), (true, 0)] {
      var saves = RapidSaves()
      for number in Int32(1)...50 {
        saves.note(
          .init(
            item: 1, number: Int64(number), time: Timestamp(nanoseconds: Int64(number)), author: 1,
            by: .init(process: 100 + number, ancestors: isWrapped ? [200 + number, 10] : [10], group: 5, session: 0),
            size: 1,
            event: 0),
          lives: { _ in false })
      }
      #expect(saves.takeSurplus(.max, at: Timestamp(nanoseconds: 60)).count == surplus)
    }
  }

  /// Programs that go on, or that have no parent in common, are nobody's script.
  @Test func programsThatHaveNothingInCommonMakeNoSeries() {
    for (parents, session, lives) in [([], 9, false), ([10], nil, false), ([10], 9, true)] as [([Int32], Int32?, Bool)]
    {
      var saves = RapidSaves()
      for number in Int64(1)...50 {
        saves.note(
          .init(
            item: 1, number: number, time: Timestamp(nanoseconds: number), author: 1,
            by: .init(process: Int32(number), ancestors: parents, group: 5, session: session), size: 1, event: 0),
          lives: { _ in lives })
      }
      #expect(saves.takeSurplus(.max, at: Timestamp(nanoseconds: 60)).isEmpty)
    }
    // Nor does what several wrote together, or who knows whom.
    for by in [SavingProcess.several, .unknown] {
      var saves = RapidSaves()
      for number in Int64(1)...50 {
        saves.note(
          .init(item: 1, number: number, time: Timestamp(nanoseconds: number), author: 1, by: by, size: 1, event: 0),
          lives: { _ in false })
      }
      #expect(saves.takeSurplus(.max, at: Timestamp(nanoseconds: 60)).isEmpty)
    }
  }

  @Test func allStayWhereTheyAreToBeKept() throws {
    try withLibrary(.keep) { fixture, save in
      for number in 1...60 { try save("\(number)") }
      settle(fixture)
      #expect(try numbers(fixture).count == 60)
      // What was saved before the setting changed is not thinned later.
      _ = try fixture.library.change(.init(rapidSaves: .thin))
      for number in 61...100 { try save("\(number)") }
      settle(fixture)
      #expect(try numbers(fixture) == Array(1...70) + [100])
    }
  }

  /// What was named, and what a command made, is not a program's.
  @Test func whatSomebodyMeantStays() throws {
    try withLibrary { fixture, save in
      for number in 1...20 { try save("\(number)") }
      let named = try fixture.library.label(fixture.path("a"), name: "mine", version: 15)
      #expect(named.number == 15)
      settle(fixture)
      #expect(try numbers(fixture) == Array(1...10) + [15, 20])
      let restored = try #require(try fixture.library.restore(fixture.path("a"), version: 3))
      #expect(restored.number == 21)
      for number in 22...26 { try save("\(number)") }
      settle(fixture)
      #expect(try numbers(fixture).suffix(7) == [20, 21, 22, 23, 24, 25, 26])
    }
  }

  /// The version with which a document entered a share stays, and so does one from which somebody goes on.
  @Test func whatOthersReferToStays() throws {
    try People.story { people in
      _ = try people.library.change(.init(rapidSaves: .thin))
      let (alice, bob) = (try people.as(.alice, process: getpid()) { $0 }, try people.as(.bob) { $0 })
      func saves(_ range: ClosedRange<Int>) throws {
        for number in range {
          try alice.save("Documents/w/a", "\(number)")
          people.clock.advance(milliseconds: 5)
        }
      }
      func numbers() throws -> [Int64] { try alice.versions("Documents/w/a").map(\.number) }
      try alice.mkdir("Documents/w")
      try saves(1...20)
      try people.share("Documents/w", with: [(.bob, .readWrite)])
      people.clock.advance(milliseconds: 5)
      try saves(21...40)
      let shared = "Shared/alice@example.com/w/a"
      let handle = try bob.open(shared, O_RDWR)
      try bob.write(handle, "bob")
      try saves(41...60)
      people.library.keepUp()
      let kept = try numbers()
      #expect(kept == Array(1...10) + [20, 21, 40, 60])
      try bob.close(handle)
      people.library.keepUp()
      // What he passed over is what the conflict names.
      let conflict = try alice.attribute("conflict", "Documents/w/a")
      #expect(try numbers().map(String.init).contains(conflict))
    }
  }

  /// A save that passed over what somebody else had saved stays among many: nobody else would tell of it.
  @Test func aSaveThatPassedOverAnotherStays() throws {
    try People.story { people in
      _ = try people.library.change(.init(rapidSaves: .thin))
      let (alice, bob) = (try people.as(.alice) { $0 }, try people.as(.bob, process: getpid()) { $0 })
      try alice.mkdir("Documents/w")
      try alice.save("Documents/w/a", "first")
      try people.share("Documents/w", with: [(.bob, .readWrite)])
      let shared = "Shared/alice@example.com/w/a"
      func saves(_ range: ClosedRange<Int>) throws {
        for number in range {
          try bob.save(shared, "\(number)")
          people.clock.advance(milliseconds: 5)
        }
      }
      try saves(1...20)
      let handle = try bob.open(shared, O_RDWR)
      _ = try bob.read(handle)
      try alice.save("Documents/w/a", "important")
      people.clock.advance(milliseconds: 5)
      try bob.write(handle, "over")
      try bob.close(handle)
      let over = try #require(try alice.versions("Documents/w/a").last?.number)
      people.clock.advance(milliseconds: 5)
      try saves(21...60)
      people.library.keepUp()
      let kept = try alice.versions("Documents/w/a").map(\.number)
      #expect(kept.count < 30 && kept.contains(over) && kept.contains(over - 1))
      let notices = try people.library.notices(for: People.Name.alice.handle).notices.map(\.text)
      #expect(notices.contains { $0.hasSuffix("edited a, but not based on version \(over - 1)") }, "\(notices)")
    }
  }

  /// Documents that are replaced by a new file are saved as much as those that are written in place.
  @Test func safeSavesAreThinned() throws {
    try withLibrary { fixture, save in
      try save("1")
      for number in 2...40 {
        let handle = try fixture.open("a.tmp", O_WRONLY | O_CREAT | O_TRUNC)
        try fixture.write(handle, Array("\(number)".utf8))
        try fixture.close(handle)
        try fixture.rename("a.tmp", "a")
      }
      settle(fixture)
      #expect(try numbers(fixture).count == 11)
      #expect(try fixture.read("a") == Array("40".utf8))
    }
  }

  /// The log tells of the saves whose versions stay, and no number of it comes twice.
  @Test func theEventsOfRemovedVersionsGo() throws {
    try withLibrary { fixture, save in
      for number in 1...64 {
        try save("\(number)")
        if number % 20 == 0 {
          fixture.clock.advance(milliseconds: 500)
          try fixture.library.locked { try fixture.library.settleEvents(all: true) }
        }
      }
      try fixture.library.locked { try fixture.library.settleEvents(all: true) }
      let last = fixture.library.lastEvent
      settle(fixture)
      let events = try fixture.library.events(after: nil, limit: 1000, for: fixture.account, in: .all).events
      let told = events.filter { $0.type == .edit }.compactMap { $0.data.version?.number }
      #expect(Set(told).isSubset(of: Set(try numbers(fixture))))
      #expect(told.last == 64)
      #expect(fixture.library.lastEvent >= last)
    }
  }
}
