import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// What thinning takes and what it leaves.
struct RetentionTests {
  private static let hour: Int64 = 3600
  private static let day: Int64 = 86_400

  /// Saves a version at each of these ages, compacts, and returns the ages that are left.
  private func kept(_ ages: [Int64]) throws -> [Int64] {
    let now = Timestamp(seconds: 1_800_000_000)
    let clock = TestClock(Timestamp(seconds: now.seconds - (ages.first ?? 0)))
    let fixture = try LibraryFixture(clock: clock)
    for (index, age) in ages.enumerated() {
      if age == 0 {
        // The library was in use meanwhile: its clock is believed.
        clock.advance(max(0, now.seconds - 2 * Self.day - clock.now.seconds))
        try fixture.save("other", "x")
      }
      clock.advance(now.seconds - age - clock.now.seconds)
      try fixture.save("a", "version \(index)")
    }
    clock.advance(now.seconds - clock.now.seconds)
    let report = try fixture.library.compact { _ in }
    let left = try fixture.versions("a")
    #expect(!report.isClockDoubted && report.versionsThinned == ages.count - left.count)
    for version in left { #expect(try fixture.version("a", version.number) == "version \(version.number - 1)") }
    try fixture.finish()
    return left.map { now.seconds - $0.time.seconds }
  }

  @Test func everythingForADay() throws {
    let ages = (0..<50).map { Self.day - 1 - $0 * 60 }
    #expect(try kept(ages) == ages)
  }

  @Test func hourlyForAWeek() throws {
    // Ten hours of a version every ten minutes, two days ago; the last of each hour stays, and the current one.
    let ages = (0..<60).map { 2 * Self.day - $0 * 600 } + [0]
    let left = try kept(ages)
    #expect((11...12).contains(left.count) && left.last == 0)
    let hours = left.dropLast().map { (1_800_000_000 - $0) / Self.hour }
    #expect(Set(hours).count == hours.count)
  }

  @Test func dailyForAMonth() throws {
    let ages = (0..<60).map { 20 * Self.day - $0 * 4 * Self.hour } + [0]
    let left = try kept(ages)
    #expect((11...12).contains(left.count))
  }

  @Test func weeklyForAYear() throws {
    let ages = (0..<70).map { 300 * Self.day - $0 * Self.day } + [0]
    let left = try kept(ages)
    #expect((11...12).contains(left.count), "\(left)")
  }

  @Test func afterAYearTheCurrentAndTheLabelled() throws {
    let fixture = try LibraryFixture()
    for number in 1...5 { try fixture.save("a", "\(number)") }
    _ = try fixture.library.label(fixture.path("a"), name: "first draft", version: 2)
    fixture.clock.advance(400 * Self.day)
    #expect(try fixture.compactAfterLong().versionsThinned == 3)
    #expect(try fixture.versions("a").map(\.number) == [2, 5])
    try fixture.save("a", "6")
    #expect(try fixture.versions("a").map(\.number) == [2, 5, 6])
    try fixture.finish()
  }

  @Test func aVersionThatIsOpenStays() throws {
    let fixture = try LibraryFixture()
    let handle = try fixture.open("a", O_RDWR | O_CREAT)
    try fixture.write(handle, Array("x".utf8))
    try fixture.library.fsync(fixture.ino("a"))
    _ = try fixture.library.compact { _ in }
    #expect(try fixture.versions("a").count == 1)
    try fixture.close(handle)
    try fixture.finish()
  }

  @Test func whatIsDeletedStaysForAMonth() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    for name in ["a", "b"] { try fixture.save(name, random.bytes(300_000)) }
    try fixture.unlink("a")
    fixture.clock.advance(20 * Self.day)
    try fixture.unlink("b")
    fixture.clock.advance(11 * Self.day)
    _ = try fixture.library.compact { _ in }
    #expect(try fixture.library.deleted(fixture.account, below: nil).map(\.path) == ["Documents/b"])
    fixture.clock.advance(20 * Self.day)
    _ = try fixture.library.compact { _ in }
    #expect(try fixture.library.counts().deleted == 0)
    #expect(try fixture.chunkCount == 0)
    try fixture.finish()
  }

  // MARK: - Clocks that are wrong

  /// By a clock that was behind they were deleted long ago.
  @Test func whatIsDeletedByAClockBehindStaysForAMonth() throws {
    let fixture = try LibraryFixture()
    try fixture.save("report", "x")
    for folder in ["t", "t/u"] { try fixture.mkdir(folder) }
    try fixture.save("t/u/a", "x")
    fixture.clock.advance(60 * Self.day)
    try fixture.save("other", "x")
    fixture.clock.advance(2 * Self.day)
    try fixture.save("new", "x")
    fixture.clock.advance(-40 * Self.day)
    // By a program, whose deletion of a folder tells of those of what was in it.
    let caller = Caller(uid: 0, gid: 0, thread: getpid(), door: 0) { [] }
    for name in ["report", "new", "t/u/a"] {
      let (parent, name) = try fixture.place(name)
      try fixture.library.unlink(parent, name, caller)
    }
    for name in ["t/u", "t"] {
      let (parent, name) = try fixture.place(name)
      try fixture.library.rmdir(parent, name, caller)
    }
    fixture.clock.advance(40 * Self.day)
    let all = ["new", "report", "t", "t/u", "t/u/a"].map { "Documents/" + $0 }
    func deleted() throws -> [String] { try fixture.library.deleted(fixture.account, below: nil).map(\.path).sorted() }
    for _ in 0..<2 {
      _ = try fixture.library.compact { _ in }
      #expect(try deleted() == all)
      fixture.clock.advance(27 * Self.day)
    }
    _ = try fixture.library.compact { _ in }
    #expect(try deleted() == [])
    try fixture.finish()
  }

  @Test func aVersionIsNotOlderThanThoseBeforeIt() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "1")
    fixture.clock.advance(60 * Self.day)
    try fixture.save("a", "2")
    fixture.clock.advance(-400 * Self.day)
    try fixture.save("a", "3")
    fixture.clock.advance(402 * Self.day)
    try fixture.save("a", "4")
    _ = try fixture.library.compact { _ in }
    #expect(try fixture.versions("a").map(\.number) == [1, 3, 4])
    try fixture.finish()
  }

  @Test(arguments: [false, true])
  func aClockFarAheadTakesNothing(_ wasTidied: Bool) throws {
    let fixture = try LibraryFixture()
    for number in 1...3 {
      try fixture.save("a", "\(number)")
      fixture.clock.advance(Self.hour)
    }
    try fixture.save("b", "b")
    try fixture.unlink("b")
    if wasTidied { _ = try fixture.library.compact { _ in } }
    fixture.clock.advance(2 * Self.day)
    fixture.clock.advance(3650 * Self.day)
    // What is done meanwhile bears the same time.
    try fixture.save("c", "c")
    for _ in 0..<2 {
      #expect(try fixture.library.compact { _ in }.isClockDoubted)
      fixture.clock.advance(Self.hour)
    }
    #expect(try fixture.versions("a").count == 3 && fixture.library.counts().deleted == 1)
    fixture.clock.advance(-3650 * Self.day)
    #expect(try !fixture.library.compact { _ in }.isClockDoubted)
    #expect(try fixture.versions("a").count == 3 && fixture.library.counts().deleted == 1)
    // That it was ahead once says nothing of the next time.
    fixture.clock.advance(3600 * Self.day)
    #expect(try fixture.compactAfterLong().versionsThinned == 2)
    #expect(try fixture.versions("a").map(\.number) == [3] && fixture.library.counts().deleted == 0)
    try fixture.finish()
  }

  @Test func theLastTidyingIsRemembered() throws {
    let fixture = try LibraryFixture()
    try fixture.library.tidy()
    #expect(try fixture.library.store.read { try $0.numberSetting("thinned") } == fixture.clock.now.nanoseconds)
    // Some minutes after the library was opened, where it is due.
    let hour = Self.hour
    let waits = [0, hour, 4 * hour - 60, 4 * hour, 9 * hour, -hour].map {
      MaintenanceSchedule.secondsToTidying(afterLast: $0)
    }
    #expect(waits == [14_400, 10_800, 300, 300, 300, 300])
    try fixture.finish()
  }

  /// What people look for in a backup may be what retention has passed since.
  @Test func whatIsOnlyLookedIntoIsNotTidied() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    #expect(!library.maintenance.isTidyingPlanned && !library.maintenance.isTimeToTidy())
    try library.planTidying()
    #expect(library.maintenance.isTidyingPlanned)
    try fixture.finish()
  }

  @Test func manyThingsPastRetentionLeaveNothingInMemory() throws {
    let fixture = try LibraryFixture()
    for number in 0..<1200 {
      try fixture.save("\(number)", "\(number)")
      try fixture.unlink("\(number)")
    }
    fixture.clock.advance(40 * Self.day)
    _ = try fixture.compactAfterLong()
    #expect(try fixture.library.counts().deleted == 0)
    #expect(fixture.library.locked { fixture.library.inodes.all.count { $0.isOrphan } } == 0)
    try fixture.finish()
  }

  @Test func tidyingIsThinningAndSweeping() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    for _ in 0..<5 { try fixture.save("a", random.bytes(100_000)) }
    // A file that goes without a trace, and leaves its chunks.
    let made = try fixture.library.create(fixture.root, Array(".b.swp".utf8), mode: 0o600, flags: O_RDWR, .library)
    try fixture.write(made.handle, random.bytes(300_000))
    try fixture.close(made.handle)
    try fixture.unlink(".b.swp")
    fixture.clock.advance(400 * Self.day)
    let before = try fixture.chunkCount
    try fixture.library.tidy()
    #expect(try fixture.versions("a").count == 5)
    fixture.clock.advance(Self.day)
    try fixture.library.tidy()
    #expect(try fixture.versions("a").map(\.number) == [5])
    #expect(try fixture.chunkCount < before - 4)
    try fixture.finish()
  }

  /// A sweep that waits for the library has not looked at the store yet: what is stored before its turn is there for
  /// it.
  @Test func whatIsSavedWhileASweepWaitsStays() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let library = fixture.library
    for round in 0..<3 {
      let bytes = random.bytes(200_000)
      let handle = try fixture.open("a\(round)", O_RDWR | O_CREAT)
      try fixture.write(handle, bytes)
      let done = DispatchSemaphore(value: 0)
      let before = try library.locked { () -> Int in
        let file = try #require(library.files[handle])
        // In chunks to which only memory refers.
        try library.storeChunks(of: file.inode, file.draft)
        return library.waiting.load(ordering: .relaxed)
      }
      try library.locked {
        Thread {
          do { _ = try library.sweep() } catch { Issue.record("\(error)") }
          done.signal()
        }.start()
        while library.waiting.load(ordering: .relaxed) <= before { sched_yield() }
        // As the last close does.
        let file = try #require(library.files[handle])
        library.files.remove(handle)
        file.draft.openCount -= 1
        file.draft.writerCount -= 1
        try library.endSession(file.inode, file.draft)
        #expect(file.draft.working == nil)
      }
      done.wait()
      #expect(try fixture.holds("a\(round)", bytes), random.note)
    }
    try fixture.finish()
  }

  @Test func compactingWhileOneCompacts() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    for number in 0..<20 { try fixture.save("a\(number)", random.bytes(200_000)) }
    let done = DispatchSemaphore(value: 0)
    let threads = (0..<3).map { _ in
      Thread {
        _ = try? fixture.library.compact { _ in }
        done.signal()
      }
    }
    for thread in threads { thread.start() }
    for number in 0..<20 { try fixture.library.purge(fixture.path("a\(number)"), version: nil) }
    for _ in threads { done.wait() }
    #expect(try fixture.chunkCount == 0)
    try fixture.finish()
  }
}
