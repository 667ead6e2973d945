import Foundation
import Glibc
import SheafModel
import SheafStore
import Synchronization
import Testing

@testable import SheafLibrary

/// Large operations, and how long each has all others wait.
struct LockHoldTests {
  private static let program = Caller(uid: 0, gid: 0, thread: getpid(), door: 0) { [] }

  /// Makes a folder with files.
  private func fill(_ fixture: LibraryFixture, _ folder: String, _ count: Int) throws {
    try fixture.mkdir(folder)
    let ino = try fixture.ino(folder)
    for number in 0..<count {
      _ = try fixture.library.make(.file, ino, Array("file-\(number)".utf8), mode: 0o644, .library)
    }
  }

  /// Removes it as `rm -r` does.
  private func remove(_ fixture: LibraryFixture, _ folder: String, _ count: Int) throws {
    let ino = try fixture.ino(folder)
    for number in 0..<count { try fixture.library.unlink(ino, Array("file-\(number)".utf8), Self.program) }
    try fixture.library.rmdir(fixture.root, Array(folder.utf8), Self.program)
  }

  /// The names of which a program took the documents are remembered, and are forgotten one by one.
  @Test func recoveringAFileCostsTheSameHoweverManyThereAre() throws {
    let fixture = try LibraryFixture()
    func cost(_ folder: String, _ count: Int) throws -> Double {
      try fill(fixture, folder, count)
      try remove(fixture, folder, count)
      #expect(fixture.library.locked { fixture.library.identity.counts.remembered } >= count)
      return try DepthTests.cost {
        let paths = try fixture.library.recover(fixture.path(folder), id: nil) { _ in }
        #expect(paths.count == count + 1)
      }
    }
    _ = try cost("first", 100)
    let (small, large) = (try cost("small", 500), try cost("large", 8000))
    #expect(large < 4 * 16 * small, "\(large) against \(small)")
    #expect(fixture.library.locked { fixture.library.identity.counts.remembered } == 0)
    try fixture.finish()
  }

  /// What a folder's deletion tells of is cleared from memory some at a time, and counts no more from the first moment
  /// on.
  @Test func theDeletionOfALargeFolderTakesOverWhatWentBefore() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.mkdir("around")
    let ino = try fixture.ino("around")
    try fill(fixture, "around/t", 3000)
    try fixture.save("around/other", "x")
    try library.settleEventsInSteps()
    let before = library.lastEvent
    let folder = try fixture.ino("around/t")
    let file = try fixture.ino("around/t/file-2999")
    let last = try library.locked { try #require(library.inode(file).row.item) }
    for number in 0..<3000 { try library.unlink(folder, Array("file-\(number)".utf8), Self.program) }
    #expect(library.locked { library.events.count } == 3000)
    try library.rmdir(ino, Array("t".utf8), Self.program)
    library.locked {
      #expect(library.events.count == 1 && library.events.pending.map(\.contentCount) == [3000])
      var isAbsorbed = library.events.isAbsorbed(last)
      #expect(isAbsorbed && !library.events.has(last))
      // Not all is cleared yet.
      let isLeft = library.events.clear(64)
      isAbsorbed = library.events.isAbsorbed(last)
      #expect(isLeft && isAbsorbed)
      // Whoever looks for what waits passes over some of the others at a time.
      var (start, steps): (Int64?, Int) = (0, 0)
      while let position = start {
        let (waiting, next) = library.events.pending(after: position, looking: 1000)
        #expect(waiting.map(\.contentCount) == (next == nil ? [3000] : []))
        (start, steps) = (next, steps + 1)
      }
      #expect(steps == 3)
    }
    try library.unlink(ino, Array("other".utf8), Self.program)
    try library.rmdir(fixture.root, Array("around".utf8), Self.program)
    library.locked {
      var isAbsorbed = library.events.isAbsorbed(last)
      #expect(isAbsorbed)
      while library.events.clear(100) {
        isAbsorbed = library.events.isAbsorbed(last)
        #expect(isAbsorbed)
      }
      isAbsorbed = library.events.isAbsorbed(last)
      #expect(isAbsorbed && library.events.count == 1)
    }
    try library.settleEventsInSteps()
    let isAbsorbed = library.locked { library.events.isAbsorbed(last) }
    #expect(!isAbsorbed)
    while library.locked({ library.events.clear(100) }) {}
    let events = try library.events(after: before, limit: 10, for: fixture.account).events
    #expect(events.map(\.type) == [.deleted] && events.first?.data.contentCount == 3002)
    #expect(events.first?.data.item.path == "around" && events.first?.data.contents?.count == 100)
    #expect(try library.store.read { try $0.pendingEvents() }.isEmpty)
    try fixture.finish()
  }

  /// What is told before a folder moves is told in steps.
  @Test func movingAFolderWithMuchThatWaitsHoldsNobodyUp() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.mkdir("t")
    let folder = try fixture.ino("t")
    try library.settleEventsInSteps()
    for number in 0..<500 {
      let made = try library.create(folder, Array("f\(number)".utf8), mode: 0o644, flags: O_RDWR, Self.program)
      try fixture.write(made.handle, Array("x".utf8))
      try fixture.close(made.handle)
    }
    let before = library.lastEvent
    let steps = Atomic(0)
    #expect(library.locked { library.events.count } == 500)
    let observer = library.observeEvents { _ in steps.add(1, ordering: .relaxed) }
    let other = Caller(uid: 0, gid: 0, thread: getppid(), door: 0) { [] }
    try library.rename(fixture.root, Array("t".utf8), to: fixture.root, Array("u".utf8), .replace, other)
    library.endObservingEvents(observer)
    #expect(steps.load(ordering: .relaxed) >= 4)
    let events = try library.events(after: before, limit: 2000, for: fixture.account).events
    #expect(events.count == 501 && events.last?.type == .renamed)
    #expect(events.dropLast().allSatisfy { $0.type == .created && $0.data.item.path.hasPrefix("t/") })
    try fixture.finish()
  }

  /// What waits below a folder is looked for in steps, and its move does not look at that again.
  @Test func whatWaitsBelowAFolderIsLookedForInSteps() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.mkdir("t")
    let folder = try fixture.ino("t")
    try library.settleEventsInSteps()
    for number in 0..<(2 * SettlingScan.step + 100) {
      _ = try library.make(.file, folder, Array("f\(number)".utf8), mode: 0o644, Self.program)
    }
    var steps = 0
    let seen = try library.settleEventsInSteps { scan in
      steps += 1
      return try library.waitingItems(below: library.inode(folder), in: &scan)
    }
    #expect(steps == 3)
    try library.locked {
      var scan = SettlingScan(after: seen, upTo: library.numbers.pending)
      let items = try library.waitingItems(below: library.inode(folder), in: &scan)
      // They are still being made, so that they wait.
      #expect(items.isEmpty && scan.isOver && library.events.count == 2 * SettlingScan.step + 100)
    }
    try fixture.finish()
  }

  /// What waits of a share is told in steps before its owner lets someone in.
  @Test func lettingSomeoneInWhereMuchWaitsHoldsNobodyUp() throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      let url = try people.share("Documents/plans", with: [(.bob, .readWrite)])
      let path = try ItemPath(account: People.Name.alice.handle, "Documents/plans")
      _ = try people.as(.alice) { try $0.share("Documents/plans") { $0.allowRequests = true } }
      try people.as(.carol) { (carol) throws in #expect(try carol.accept(url).requested) }
      try library.settleEventsInSteps()
      try people.as(.alice, process: getpid()) { alice in
        for number in 0..<200 { try alice.save("Documents/plans/f\(number)", "x") }
      }
      let before = library.lastEvent
      #expect(library.locked { library.events.count } == 200)
      let steps = Mutex<[Int64]>([])
      let observer = library.observeEvents { _ in steps.withLock { $0.append(library.lastEvent) } }
      try library.answer(path, .init(handle: People.Name.carol.handle, answer: .approve))
      library.endObservingEvents(observer)
      // As many as one transaction takes, before all others.
      #expect(steps.withLock { $0.first.map { $0 - before } ?? .max } <= 32 && steps.withLock { $0.count } >= 7)
      let events = try library.store.read { try $0.events(after: before, limit: 1000) }
      #expect(events.count == 201 && events.last?.type == EventType.memberAdded.rawValue)
    }
  }

  /// What waits elsewhere is looked at in steps, too, though nothing of it is told.
  @Test func whatWaitsElsewhereIsNotLookedAtAgain() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    for name in ["t", "u"] { try fixture.mkdir(name) }
    let (folder, other) = (try fixture.ino("t"), try fixture.ino("u"))
    try library.settleEventsInSteps()
    for number in 0..<100 {
      let made = try library.create(folder, Array("f\(number)".utf8), mode: 0o644, flags: O_RDWR, Self.program)
      try fixture.write(made.handle, Array("x".utf8))
      try fixture.close(made.handle)
    }
    let last = library.locked { library.numbers.pending }
    let seen = try library.settleEventsInSteps { try library.waitingItems(below: library.inode(other), in: &$0) }
    #expect(seen == last && library.locked { library.events.count } == 100)
    // Few that are told are told in the first look, too.
    let made = try library.create(other, Array("f".utf8), mode: 0o644, flags: O_RDWR, Self.program)
    try fixture.write(made.handle, Array("x".utf8))
    try fixture.close(made.handle)
    let next = try library.settleEventsInSteps { try library.waitingItems(below: library.inode(other), in: &$0) }
    #expect(next > last && library.locked { library.events.count } == 100)
    // Where nothing was looked at, all is left to do.
    let declined = try library.settleEventsInSteps { scan in
      scan.decline()
      return []
    }
    #expect(declined == 0)
    try fixture.finish()
  }

  /// Others have the library in between, and hear of each step; it is one action all the same.
  @Test func aRecoveryLeavesTheLibraryToOthersInBetween() throws {
    let fixture = try LibraryFixture()
    try fill(fixture, "t", 500)
    try fixture.library.locked { try fixture.library.settleEvents(all: true) }
    try remove(fixture, "t", 500)
    try fixture.library.settleEventsInSteps()
    let before = fixture.library.lastEvent
    var steps = 0
    let paths = try fixture.library.recover(fixture.path("t"), id: nil) { progress in
      steps += 1
      // The lock is free, and nobody hears of half an action.
      #expect(fixture.library.lastEvent == before || progress.done == progress.total)
      if steps == 2 { #expect((try? fixture.names("t").count) == 2 * Library.recoveryBatch - 1) }
    }
    #expect(paths.count == 501 && steps == 501 / Library.recoveryBatch + 1)
    let events = try fixture.library.events(after: before, limit: 10, for: fixture.account).events
    #expect(events.map(\.type) == [.created] && events.first?.data.contentCount == 500)
    #expect(events.first?.data.contents?.count == 100 && events.first?.data.item.path == "t")
    try fixture.finish()
  }

  /// What came back by then is told, and the rest can be recovered where the folder is by now.
  @Test func aRecoveryThatIsKilledGoesOn() throws {
    let fixture = try LibraryFixture()
    try fill(fixture, "t", 200)
    try fixture.library.locked { try fixture.library.settleEvents(all: true) }
    try remove(fixture, "t", 200)
    try fixture.library.settleEventsInSteps()
    let before = fixture.library.lastEvent
    _ = try fixture.library.recover(fixture.path("t"), id: nil) { progress in
      if progress.done == 96 { try? fixture.library.copyAsKilled(to: fixture.folder + "/killed") }
    }
    let next = try LibraryFixture(at: fixture.folder + "/killed/library.sqlite", clock: fixture.clock)
    try next.expectSound()
    #expect(try next.names("t").count == 95)
    #expect(try next.library.deleted(next.account, below: next.path("t")).count == 105)
    let events = try next.library.events(after: before, limit: 10, for: next.account).events
    #expect(events.map(\.type) == [.created] && events.first?.data.contentCount == 95)
    try next.rename("t", "u")
    #expect(try next.library.recover(next.path("u"), id: nil) { _ in }.count == 105)
    #expect(try next.names("u").count == 200)
    try next.finish()
    try fixture.finish()
  }

  /// Others may delete and purge in between what came back, or was to.
  @Test func aRecoveryPassesOverWhatIsGoneMeanwhile() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("t")
    try fill(fixture, "t/b", 100)
    try fill(fixture, "t/a", 100)
    let root = try fixture.ino("t")
    for name in ["b", "a"] {
      let ino = try fixture.ino("t/" + name)
      for number in 0..<100 { try fixture.library.unlink(ino, Array("file-\(number)".utf8), Self.program) }
      try fixture.library.rmdir(root, Array(name.utf8), Self.program)
    }
    try fixture.library.rmdir(fixture.root, Array("t".utf8), Self.program)
    var isDone = false
    let paths = try fixture.library.recover(fixture.path("t"), id: nil) { _ in
      guard !isDone else { return }
      isDone = true
      do {
        try fixture.library.purge(fixture.path("t/b"), version: nil)
        for name in try fixture.names("t/a") { try fixture.unlink("t/a/" + name) }
        try fixture.rmdir("t/a")
      } catch {
        Issue.record("\(error)")
      }
    }
    #expect(paths.count < 202)
    #expect(try fixture.names("t") == [])
    // What was deleted again is among the deleted, and comes back with what had not come back yet.
    _ = try fixture.library.recover(fixture.path("t/a"), id: nil) { _ in }
    #expect(try fixture.names("t/a").count == 100)
    try fixture.finish()
  }

  /// `recover F/G/b`, then `recover F`: the folders are there by then, and the rest is not.
  @Test func whatIsLeftOfAPartlyRecoveredFolderComesBack() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("F")
    try fixture.mkdir("F/G")
    for name in ["F/a", "F/G/b", "F/G/c"] { try fixture.save(name, name) }
    try fixture.save("F/old", "old")
    try fixture.unlink("F/old")
    fixture.clock.advance(3600)
    for name in ["F/G/b", "F/G/c"] { try fixture.unlink(name) }
    try fixture.rmdir("F/G")
    try fixture.unlink("F/a")
    try fixture.rmdir("F")
    try fixture.library.settleEventsInSteps()
    #expect(try fixture.library.recover(fixture.path("F/G/b"), id: nil) { _ in } == ["Documents/F/G/b"])
    #expect(try fixture.names("F") == ["G"])
    let before = fixture.library.lastEvent
    #expect(
      try Set(fixture.library.recover(fixture.path("F"), id: nil) { _ in }) == ["Documents/F/G/c", "Documents/F/a"])
    #expect(try fixture.names("F") == ["G", "a"] && fixture.names("F/G") == ["b", "c"])
    #expect(
      try fixture.library.events(after: before, limit: 10, for: fixture.account).events.map(\.type) == [
        .created, .created,
      ])
    // What went at another time stays where it is, until it is asked for.
    #expect(try fixture.library.recover(fixture.path("F"), id: nil) { _ in } == ["Documents/F/old"])
    expect(.notFound) { _ = try fixture.library.recover(fixture.path("F"), id: nil) { _ in } }
    try fixture.finish()
  }

  /// Others have the library in between, and hear of each step.
  @Test func aPurgeLeavesTheLibraryToOthersInBetween() throws {
    let fixture = try LibraryFixture()
    try fill(fixture, "t", 1000)
    for number in 0..<20 { try fill(fixture, "t/deep-\(number)", 20) }
    let steps = Mutex<[Int]>([])
    let door = fixture.library.observe(account: nil) { news in steps.withLock { $0.append(news.count) } }
    try fixture.library.locked { try fixture.library.settleEvents(all: true) }
    let before = fixture.library.lastEvent
    try fixture.library.purge(fixture.path("t"), version: nil)
    fixture.library.endObserving(door)
    #expect(steps.withLock { $0.reduce(0, +) } == 1421 && steps.withLock { $0.max() ?? 0 } <= 16)
    // It is one action all the same.
    let events = try fixture.library.events(after: before, limit: 10, for: fixture.account).events
    #expect(events.map(\.type) == [.deleted] && events.first?.data.contentCount == 1420)
    #expect(events.first?.data.item.path == "t")
    #expect(try fixture.names().isEmpty && fixture.library.counts().versions == 0)
    try fixture.finish()
  }

  @Test func aPurgeEndsWhereItsFolderIsMovedAway() throws {
    let fixture = try LibraryFixture()
    try fill(fixture, "t", 500)
    let library = fixture.library
    let begun = try fixture.library.locked { try library.eraseSome(library.beginPurge(fixture.path("t"))) }
    let purge = try #require(begun)
    _ = try library.locked { try library.resumed(purge) }
    try fixture.rename("t", "u")
    expect(.notFound) { _ = try library.locked { try library.resumed(purge) } }
    // What is left of it can be purged where it is.
    #expect(try fixture.names("u").count == 500 - Library.purgeBatch)
    try fixture.library.purge(fixture.path("u"), version: nil)
    #expect(try fixture.names().isEmpty)
    try fixture.finish()
  }

  @Test func aLongListOfTheDeletedIsWhole() throws {
    let fixture = try LibraryFixture()
    try fill(fixture, "t", 400)
    let ino = try fixture.ino("t")
    // Some of them within a nanosecond, and some not.
    for number in 0..<400 {
      try fixture.library.unlink(ino, Array("file-\(number)".utf8), .library)
      if number % 3 == 0 { fixture.clock.advance(milliseconds: 1) }
    }
    let items = try fixture.library.deleted(fixture.account, below: nil)
    #expect(Set(items.map(\.path)).count == 400 && items.map(\.time) == items.map(\.time).sorted(by: >))
    #expect(
      try fixture.library.deleted(fixture.account, below: fixture.path("t/file-17")).map(\.path) == [
        "Documents/t/file-17"
      ])
    try fixture.finish()
  }

  /// Versions are read some at a time, and others have the library in between.
  @Test func aLongListOfVersionsIsReadInSteps() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    let count = 2 * Library.listingStep + 10
    for number in 1...count { try fixture.save("a", "\(number)") }
    let ino = try fixture.ino("a")
    let item = try library.locked { try #require(library.inode(ino).row.item) }
    let steps = Mutex<[Int]>([])
    let door = library.observe(account: nil) { news in steps.withLock { $0.append(news.count) } }
    let numbers = try library.visibleVersions(of: item, .library) { row, inode, _ in
      library.tell(.contents(inode.ino), from: 0)
      return row.number
    }
    library.endObserving(door)
    #expect(numbers == Array(1...Int64(count)))
    #expect(steps.withLock { $0 } == [Library.listingStep, Library.listingStep, 10])
    #expect(try library.versions(fixture.path("a")).map(\.number) == numbers)
    #expect(try library.versionFiles(of: item, .library).map(\.number) == numbers)
    try fixture.finish()
  }

  /// So are the folders of `.versions/`, of what is there and of what was deleted.
  @Test func aLongListOfHistoriesIsReadInSteps() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    let count = Library.listingStep + 50
    try fill(fixture, "t", 2 * count)
    let ino = try fixture.ino("t")
    for number in 0..<count { try library.unlink(ino, Array("file-\(number)".utf8), .library) }
    let (first, second) = try library.locked {
      let first = try library.someEntries(of: ino, after: 0, .library)
      return (first, try library.someEntries(of: ino, after: #require(first.next), .library))
    }
    #expect(first.folders.count == Library.listingStep && second.folders.count == 50)
    let names = try library.versionFolders(of: ino, .library).map { String(decoding: $0.name, as: UTF8.self) }
    #expect(names.count == 2 * count && Set(names) == Set((0..<(2 * count)).map { "file-\($0)" }))
    try fixture.finish()
  }

  /// Events that are older than they are kept go some at a time, up to the first one that stays.
  @Test func oldEventsAreDroppedInSteps() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fill(fixture, "t", 1200)
    try library.settleEventsInSteps()
    let last = library.lastEvent
    fixture.clock.advance(Library.eventSeconds + 10)
    try fixture.save("new", "x")
    try library.settleEventsInSteps()
    var dropped: [Int64] = []
    var mayBeMore = true
    while mayBeMore {
      mayBeMore = try library.dropSomeEvents(at: fixture.clock.now)
      dropped.append(try library.store.read { try $0.eventBounds() }.dropped)
    }
    #expect(last > 1200 && dropped == [500, 1000, last])
    #expect(try library.store.read { try $0.events(after: 0, limit: 10) }.map(\.number) == [last + 1])
    try fixture.finish()
  }

  /// What is being written enters a share as versions of its own, which are made in steps.
  @Test func movingIntoAShareWithMuchThatIsOpenHoldsNobodyUp() throws {
    try People.story { people in
      let library = people.library
      let count = 5 * Library.endingStep
      try people.as(.alice) { alice in
        for folder in ["plans", "t", "t/deep"] { try alice.mkdir("Documents/\(folder)") }
        for number in 0..<count { try alice.save("Documents/t/deep/f\(number)", "saved") }
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      try library.settleEventsInSteps()
      people.clock.advance(60)
      for (name, isMoved) in [("Documents/plans/t", true), ("Documents/t", false)] {
        let former = isMoved ? "Documents/t" : "Documents/plans/t"
        let handles = try people.as(.alice) { (alice) throws in
          try (0..<count).map { number in
            let handle = try alice.open("\(former)/deep/f\(number)", O_RDWR)
            try alice.write(handle, "edited in \(former)")
            return handle
          }
        }
        let before = library.lastEvent
        let steps = Atomic(0)
        let observer = library.observeEvents { _ in steps.add(1, ordering: .relaxed) }
        if isMoved {
          try people.as(.alice) { try $0.rename(former, name) }
        } else {
          // And where it begins to be shared on its own.
          try people.as(.alice) { try $0.rename(former, name) }
          try people.share(name, with: [(.carol, .readWrite)])
        }
        library.endObservingEvents(observer)
        #expect(steps.load(ordering: .relaxed) >= 4)
        let events = try library.store.read { try $0.events(after: before, limit: 1000) }
        #expect(events.count { $0.type == EventType.edit.rawValue } == count)
        try people.as(.alice) { alice in for handle in handles { try alice.close(handle) } }
        people.clock.advance(60)
      }
    }
  }

  /// The log of a share may be long; who asks for its status reads it beside the lock.
  @Test func theStatusOfAShareReadsItsLogBesideTheLock() throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      try people.as(.bob) { bob in
        for number in 0..<500 { try bob.mkdir("Shared/alice@example.com/plans/d\(number)") }
      }
      try library.settleEventsInSteps()
      let path = try ItemPath(account: People.Name.alice.handle, "Documents/plans")
      // Who only comments edits nothing.
      _ = try library.comment(path, text: "fine")
      try library.settleEventsInSteps()
      let work = try StoreWork.of(library) {
        let status = try library.itemStatus(path)
        #expect(status.people.first { $0.handle == People.Name.bob.handle }?.lastEdited == people.clock.now)
        #expect(status.people.first { $0.handle == People.Name.alice.handle }?.lastEdited == nil)
      }
      #expect(work.steps < 500, "\(work)")
    }
  }

  /// Whether a file has a history of its own is clear from few of its versions.
  @Test func whatTakesADocumentsPlaceIsJudgedByFewOfItsVersions() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.save("doc", "document")
    for number in 1...300 { try fixture.save("doc.tmp", "\(number)") }
    fixture.clock.advance(60)
    try library.settleEventsInSteps()
    let work = try StoreWork.of(library) { try fixture.rename("doc.tmp", "doc") }
    #expect(work.rows < 100, "\(work)")
    #expect(try fixture.text("doc") == "300")
    try fixture.finish()
  }

  /// What was deleted from a folder is read beside the lock, and then looked at some at a time.
  @Test func aListOfHistoriesReadsTheDeletedBesideTheLock() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    let count = 1000
    try fill(fixture, "t", count)
    let ino = try fixture.ino("t")
    for number in 0..<count { try library.unlink(ino, Array("file-\(number)".utf8), .library) }
    let work = try StoreWork.of(library) { () throws in
      #expect(try library.versionFolders(of: ino, .library).count == count)
    }
    // The row of each, with the lock held.
    #expect(work.rows < count + count / 2, "\(work)")
    try fixture.finish()
  }

  /// A program that has very many documents open, all of them changed, keeps nobody waiting for all of them.
  @Test func openDocumentsAreSavedSomeAtATime() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    let count = 2_000
    try fixture.mkdir("t")
    let folder = try fixture.ino("t")
    var handles: [UInt64] = []
    for number in 0..<count {
      let made = try library.create(folder, Array("f\(number)".utf8), mode: 0o644, flags: O_RDWR, Self.program)
      handles.append(made.handle)
    }
    // The longest hold is a small part of all of it. A busy machine may stop the process in the middle of one.
    var isFree = false
    for round in 0..<10 where !isFree {
      for handle in handles { try fixture.write(handle, Array("text \(round)".utf8)) }
      fixture.clock.advance(60)
      library.locked { library.holds = LockHolds() }
      let start = LockHolds.now
      library.autosaveInSteps()
      let (all, longest) = (
        LockHolds.now - start, library.lockHolds.byOperation["autosaveInSteps"]?.longestNanoseconds ?? 0
      )
      isFree = longest * 4 < all
    }
    #expect(isFree)
    #expect(try fixture.versions("t/f\(count - 1)").count == 1)
    for handle in handles { try fixture.close(handle) }
    try fixture.finish()
  }

  @Test func longHoldsAreNoted() {
    var holds = LockHolds()
    holds.note("short(_:)", from: 0, to: 999_999)
    holds.note("recover(_:id:progress:)", from: 0, to: 2_000_000)
    holds.note("recover(_:id:progress:)", from: 5, to: 20_000_005)
    holds.note("recover(_:id:progress:)", from: 0, to: 3_000_000)
    #expect(Array(holds.byOperation.keys) == ["recover"])
    #expect(holds.byOperation["recover"]?.longestNanoseconds == 20_000_000)
    #expect(holds.byOperation["recover"]?.longCount == 1)
  }
}
