import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// What files that came and went without a trace leave behind.
struct DiscardedFilesTests {
  private static let program = Caller(uid: 0, gid: 0, thread: getpid(), door: 0) { [] }

  @Test func muchOfItIsFreedByUpkeep() throws {
    let fixture = try LibraryFixture()
    var random = SeededRandom()
    let root = try fixture.root
    let name = Array("d.db-journal".utf8)
    for _ in 0..<(Chunks.discardLimit >> 20) {
      let made = try fixture.library.create(root, name, mode: 0o600, flags: O_RDWR, Self.program)
      try fixture.write(made.handle, (0..<(1 << 20)).map { _ in UInt8.random(in: 0...255, using: &random) })
      try fixture.close(made.handle)
      try fixture.library.unlink(root, name, Self.program)
      // As the kernel does.
      fixture.library.forget([made.attributes.ino])
    }
    #expect(try fixture.library.deleted(fixture.account, below: nil).isEmpty)
    let deadline = ContinuousClock.now + .seconds(30)
    while try fixture.chunkCount > 0, ContinuousClock.now < deadline { sched_yield() }
    #expect(try fixture.chunkCount == 0, random.note)
    try fixture.finish()
  }

  /// Files without a name, or that lost it, are saved by nobody: many of them with a little each take no memory for it.
  @Test(arguments: [true, false]) func manyFilesWithoutANameTakeLittleMemory(_ isNameless: Bool) throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    let root = try fixture.root
    let bytes = [UInt8](repeating: 7, count: 100_000)
    var handles: [UInt64] = []
    for number in 0..<1_000 {
      let handle: UInt64
      if isNameless {
        handle = try library.createNameless(root, mode: 0o600, flags: O_RDWR, Self.program).handle
      } else {
        let name = Array("file\(number)".utf8)
        handle = try library.create(root, name, mode: 0o600, flags: O_RDWR, Self.program).handle
        try library.unlink(root, name, Self.program)
      }
      try fixture.write(handle, bytes)
      handles.append(handle)
    }
    let unsaved = library.locked { library.sessions.unsavedBytes }
    #expect(unsaved <= 33 << 20)
    for handle in handles {
      #expect(try fixture.read(handle) == bytes)
      try library.release(handle)
    }
    #expect(library.locked { library.sessions.unsavedBytes } == 0)
    try fixture.finish()
  }

  /// What a program synced and then cut off has no use any more: a full disk has to begin a sweep.
  @Test(arguments: [0, 4096], [true, false]) func whatATruncationCutsOffCounts(_ size: Int64, _ byHandle: Bool) throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    var random = SeededRandom()
    let made = try library.create(fixture.root, Array("d.db".utf8), mode: 0o600, flags: O_RDWR, Self.program)
    try fixture.write(made.handle, (0..<(1 << 20)).map { _ in UInt8.random(in: 0...255, using: &random) })
    try library.fsync(made.attributes.ino)
    var isNoted = library.locked { library.chunks.takeDiscarded() }
    #expect(!isNoted, random.note)
    _ = try library.setAttributes(
      made.attributes.ino, .init(size: size), handle: byHandle ? made.handle : nil, Self.program)
    isNoted = library.locked { library.chunks.takeDiscarded() }
    #expect(isNoted, random.note)
    try fixture.close(made.handle)
    try fixture.finish()
  }

  /// Each looks at all that there is, so there is time between them.
  @Test func oneSweepIsEnoughForAWhile() {
    let schedule = MaintenanceSchedule()
    #expect(!schedule.isTimeToSweep())
    schedule.sweepSoon()
    #expect(schedule.isTimeToSweep())
    schedule.sweepSoon()
    #expect(!schedule.isTimeToSweep())
    schedule.endTidying()
    #expect(!schedule.isTimeToSweep())
  }

  /// Little is freed in a while, for which the thread gets up though nothing changes.
  @Test func littleIsSweptLater() {
    let patient = MaintenanceSchedule()
    patient.sweepLater()
    #expect(!patient.isTimeToSweep())
    let schedule = MaintenanceSchedule(littleSweepDelay: 0)
    #expect(schedule.wait() == .everything)
    schedule.note(busy: false)
    schedule.sweepLater()
    #expect(schedule.wait() == .everything && schedule.isTimeToSweep())
    schedule.endTidying()
    // That was all.
    #expect(!schedule.isTimeToSweep())
  }

  /// The disk gets back what a program left that wrote much at once; while it goes on, its next files take the room.
  @Test func aFileThatIsMostlyFreeShrinksOnceItIsQuiet() throws {
    let fixture = try LibraryFixture()
    var random = SeededRandom()
    let root = try fixture.root
    var inos: [Int64] = []
    for number in 0..<96 {
      let made = try fixture.library.create(
        root, Array("\(number).db-journal".utf8), mode: 0o600, flags: O_RDWR, Self.program)
      try fixture.write(made.handle, random.bytes(1 << 20))
      try fixture.close(made.handle)
      inos.append(made.attributes.ino)
    }
    _ = try fixture.library.counts()
    // Without the library: a snapshot would keep the log from being copied.
    func bytes() throws -> Int {
      try ["", "-wal"].reduce(0) { sum, suffix in
        let facts = try FileManager.default.attributesOfItem(atPath: fixture.path + suffix)
        return sum + (try #require(facts[.size] as? Int))
      }
    }
    #expect(try bytes() > 96 << 20, random.note)
    for number in 0..<96 { try fixture.library.unlink(root, Array("\(number).db-journal".utf8), Self.program) }
    // As the kernel does.
    fixture.library.forget(inos)
    let deadline = ContinuousClock.now + .seconds(120)
    while try bytes() > 32 << 20, ContinuousClock.now < deadline { sched_yield() }
    #expect(try bytes() < 32 << 20, random.note)
    try fixture.finish()
  }

  @Test func nothingShrinksWhileASweepIsWanted() {
    let schedule = MaintenanceSchedule(shrinkDelay: 0)
    #expect(!schedule.isTimeToShrink())
    schedule.sweepSoon()
    #expect(schedule.isTimeToSweep() && !schedule.isTimeToShrink())
    schedule.sweepSoon()
    schedule.endTidying()
    #expect(!schedule.isTimeToShrink())
    let quiet = MaintenanceSchedule(shrinkDelay: 0)
    quiet.sweepSoon()
    #expect(quiet.isTimeToSweep())
    quiet.endTidying()
    // The thread gets up for it though nothing changes.
    quiet.note(busy: false)
    #expect(quiet.wait() == .everything && quiet.isTimeToShrink() && !quiet.isTimeToShrink())
    quiet.endTidying()
    #expect(!quiet.isTimeToShrink())
  }
}
