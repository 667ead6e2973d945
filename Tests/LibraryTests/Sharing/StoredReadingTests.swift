import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// What programs read outlives the library's process.
struct StoredReadingTests {
  private let mine = "Documents/plans/a.md"
  private let theirs = "Shared/alice@example.com/plans/a.md"
  // Programs that live, as this one does.
  private let editor = getpid()
  private let mover = getppid()

  /// The next process of a library: in order, or after kill -9.
  private func reopen(_ people: People, killed: Bool) throws -> Library {
    let clock = people.clock
    guard killed else {
      try people.library.close()
      return try Library.open(LibraryLocation(path: people.fixture.path)) { clock.now }
    }
    try people.library.storeReadings()
    let folder = people.fixture.folder + "/killed"
    try people.library.copyAsKilled(to: folder)
    try people.library.close()
    return try Library.open(LibraryLocation(path: folder + "/library.sqlite")) { clock.now }
  }

  /// Alice's version 1 is read by bob's editor; then the library's process ends.
  private func story(killed: Bool, reads: Bool = true, _ body: (Library, Person, Person) throws -> Void) throws {
    let people = try People()
    try people.as(.alice) { (me) throws in
      try me.mkdir("Documents/plans")
      try me.save(mine, "one")
    }
    people.clock.advance(20)
    try people.share("Documents/plans", with: [(.bob, .readWrite)])
    if reads { try people.as(.bob, process: editor) { (me) throws in #expect(try me.read(theirs) == "one") } }
    let library = try reopen(people, killed: killed)
    try body(
      library, Person(library: library, name: .alice, process: 0), Person(library: library, name: .bob, process: editor)
    )
    #expect(try library.check { _ in }.problems == [])
    try library.close()
    try? FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  private func expectConflict(_ alice: Person, _ conflict: Int64?, base: Int64) throws {
    #expect(try alice.versions(mine).last?.base == base)
    #expect(try alice.library.itemStatus(alice.path(mine)).conflict == conflict)
  }

  /// How bob's editor saves.
  enum Way: CaseIterable { case truncating, inPlace, renaming }

  @Test(arguments: Way.allCases, [true, false])
  func aSaveIsBasedOnWhatItsProgramReadBefore(_ way: Way, _ killed: Bool) throws {
    try story(killed: killed) { library, alice, bob in
      try alice.save(mine, "one+line")
      switch way {
      case .truncating: try bob.save(theirs, "one from bob")
      case .inPlace:
        let handle = try bob.open(theirs, O_WRONLY)
        try bob.write(handle, "one from bob")
        try bob.close(handle)
      case .renaming:
        // Whichever program does it.
        let bob = Person(library: library, name: .bob, process: mover)
        try bob.save(theirs + ".tmp", "one from bob")
        try bob.rename(theirs + ".tmp", theirs)
      }
      try expectConflict(alice, 2, base: 1)
    }
  }

  @Test(arguments: [true, false]) func whoReadsAgainIsOnTop(_ killed: Bool) throws {
    try story(killed: killed) { _, alice, bob in
      try alice.save(mine, "one+line")
      #expect(try bob.read(theirs) == "one+line")
      try bob.save(theirs, "one from bob")
      try expectConflict(alice, nil, base: 2)
    }
  }

  @Test func whoReadNothingIsOnTop() throws {
    try story(killed: false, reads: false) { _, alice, bob in
      try alice.save(mine, "one+line")
      try bob.save(theirs, "one from bob")
      try expectConflict(alice, nil, base: 2)
    }
  }

  @Test func upkeepStoresThem() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/a", "one") }
      try people.share("Documents/a", with: [(.bob, .readWrite)])
      func stored() throws -> [Readings.Reading] {
        let text = try people.library.locked { try people.library.read { try $0.setting(Library.readingsKey) } }
        return StoredReadings(text: text ?? "").readings(at: people.clock.now)
      }
      let bob = try people.library.number(of: People.Name.bob.handle)
      try people.as(.bob, process: editor) { (me) throws in _ = try me.read("Shared/alice@example.com/a") }
      func isStored() throws -> Bool {
        try stored().contains { $0.account == bob && $0.reader == .program(editor) }
      }
      // Upkeep syncs every two seconds.
      let end = ContinuousClock.now + .seconds(60)
      while try !isStored(), ContinuousClock.now < end { sched_yield() }
      #expect(try isStored())
    }
  }

  private let time = Timestamp(seconds: 1_000_000, nanoseconds: 5)

  private func reading(_ reader: Readings.Reader, item: Int64 = 7) -> Readings.Reading {
    .init(item: item, account: 2, reader: reader, version: 3, time: time)
  }

  @Test func theStoredFormHoldsWhatIsRead() {
    var writer = reading(.program(mover))
    writer.hasRead = false
    let all = [reading(.account), reading(.session(9)), reading(.program(editor)), writer]
    let stored = StoredReadings(all + [reading(.program(5_000_001))])
    // Programs that ended are left out.
    #expect(StoredReadings(text: stored.text).readings(at: time) == all)
    // From a time that is yet to come.
    #expect(StoredReadings(text: stored.text).readings(at: Timestamp(seconds: 999_999)) == [])
  }

  /// Numbers of processes are given again, and those of another run of the machine say nothing.
  @Test func onlyTheSameProgramsCount() throws {
    let text = StoredReadings([reading(.account), reading(.session(9)), reading(.program(editor))]).text
    let lines = text.split(separator: "\n")
    let later = (["another run"] + lines.dropFirst()).joined(separator: "\n")
    #expect(StoredReadings(text: later).readings(at: time) == [reading(.account)])
    let start = try #require(Caller.start(of: editor))
    let other = text.replacing(" \(start)", with: " \(start + 1)")
    #expect(StoredReadings(text: other).readings(at: time) == [reading(.account), reading(.session(9))])
  }

  @Test func whateverStandsThereIsRead() {
    let run = StoredReadings([]).text
    for line in [
      "", " ", "1", "1 2 3", "1 2 3 x", "1 2 3 -4", "1 2 3 9223372036854775807", "1 2 3 99999999999999999999",
      "1 2 3 4 5", "1 2 3 4 session", "1 2 3 4 session 99999999999", "1 2 3 4 program 1", "1 2 3 4 program -5 5",
      "1 2 3 4 program 0 0", "0 2 3 4", "-1 2 3 4", "1 0 3 4", "1 -2 3 4", "1 2 -3 4", "1 2 -9223372036854775808 4",
    ] {
      #expect(StoredReadings(text: "\(run)\n\(line)").readings(at: time) == [], "\(line)")
    }
    #expect(StoredReadings(text: "").readings(at: time) == [])
  }

  /// Whatever a crafted library says that was read, versions have a base that is there.
  @Test(arguments: [0, 1, 3, Int64.max]) func theBaseIsAVersionThatIsThere(_ version: Int64) throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        try alice.mkdir("Documents/p")
        try alice.save("Documents/p/a", "one")
        try alice.save("Documents/p/a", "one\ntwo")
      }
      try people.share("Documents/p", with: [(.bob, .readWrite)])
      let bob = try people.library.number(of: People.Name.bob.handle)
      people.library.locked {
        for item in 1...Int64(50) {
          people.library.readings.add(
            .init(item: item, account: bob, reader: .account, version: version, time: people.clock.now))
        }
      }
      try people.as(.bob, process: editor) { (me) throws in
        try me.save("Shared/alice@example.com/p/b.tmp", "three")
        try me.rename("Shared/alice@example.com/p/b.tmp", "Shared/alice@example.com/p/a")
      }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.read("Documents/p/a") == "three")
        #expect(try alice.versions("Documents/p/a").last?.base == [0: nil, 1: 1][version, default: 2])
      }
      #expect(try people.library.check { _ in }.problems == [])
    }
  }

  /// The latest are kept, in their order.
  @Test func whatIsStoredIsBounded() {
    var readings = Readings()
    for item in 1...Int64(3_000) { readings.note(1, of: item, by: 2, 0, of: nil, at: time) }
    let stored = readings.takeChanged(1024)
    #expect(stored?.map(\.item) == Array(1_977...3_000))
    #expect(readings.takeChanged(1024) == nil)
    for item in 1...Int64(5_000) { readings.note(1, of: item, by: 2, 0, of: nil, at: time) }
    #expect(readings.count == 4096)
  }
}
