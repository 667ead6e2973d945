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
      clock.advance(now.seconds - age - clock.now.seconds)
      try fixture.save("a", "version \(index)")
    }
    clock.advance(now.seconds - clock.now.seconds)
    let report = try fixture.library.compact { _ in }
    let left = try fixture.versions("a")
    #expect(report.versionsThinned == ages.count - left.count)
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
    #expect((11...12).contains(try kept(ages).count))
  }

  @Test func afterAYearTheCurrentAndTheLabelled() throws {
    let fixture = try LibraryFixture()
    for number in 1...5 { try fixture.save("a", "\(number)") }
    _ = try fixture.library.label(fixture.path("a"), name: "first draft", version: 2)
    fixture.clock.advance(400 * Self.day)
    #expect(try fixture.library.compact { _ in }.versionsThinned == 3)
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

  @Test func manyThingsPastRetentionLeaveNothingInMemory() throws {
    let fixture = try LibraryFixture()
    for number in 0..<1200 {
      try fixture.save("\(number)", "\(number)")
      try fixture.unlink("\(number)")
    }
    fixture.clock.advance(40 * Self.day)
    _ = try fixture.library.compact { _ in }
    #expect(try fixture.library.counts().deleted == 0)
    #expect(fixture.library.locked { fixture.library.inodes.values.count { $0.isOrphan } } == 0)
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
    #expect(try fixture.versions("a").map(\.number) == [5])
    #expect(try fixture.chunkCount < before - 4)
    try fixture.finish()
  }

  /// A sweep that waits for the library has not looked at the store yet: what is stored before its turn is there for it.
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
        try library.storeUnsaved(file.inode, file.draft)
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
        library.files[handle] = nil
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
