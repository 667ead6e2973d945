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
}
