import Foundation
import GRDB
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary
@testable import SheafStore

/// Saves of large documents, which wait in the working file until they are stored.
struct KeptSaveTests {
  /// More than lies in memory.
  private static let large = 20_000_000

  /// A library whose threads store and copy nothing, so that what is kept stays so, and files are copied as they are.
  private func stoppedFixture() throws -> LibraryFixture {
    let fixture = try LibraryFixture()
    fixture.library.stopMaintenance()
    return fixture
  }

  private func kept(_ fixture: LibraryFixture) throws -> [WorkingCopyRow] {
    try fixture.library.store.read { try $0.workingCopies() }
  }

  private func state(_ fixture: LibraryFixture, _ name: String, _ attribute: String) throws -> String {
    let value = try fixture.library.xattr(fixture.ino(name), Array("user.sheaf.\(attribute)".utf8), .library)
    return String(decoding: value, as: UTF8.self)
  }

  /// What a process that is killed now leaves, opened by the next one.
  private func afterKill(
    of fixture: LibraryFixture, losingAt place: off_t? = nil, _ body: (LibraryFixture) throws -> Void
  ) throws {
    try withLibraryFolder { folder in
      for suffix in ["", "-wal", "-changes", "-working"] {
        let file = fixture.path + suffix
        if FileManager.default.fileExists(atPath: file) {
          try FileManager.default.copyItem(atPath: file, toPath: folder + "/library.sqlite" + suffix)
        }
      }
      if let place {
        let file = Glibc.open(folder + "/library.sqlite-working", O_RDWR)
        defer { close(file) }
        #expect(pwrite(file, "lost", 4, place) == 4)
      }
      let next = try LibraryFixture(at: folder + "/library.sqlite", clock: TestClock(fixture.clock.now))
      try body(next)
      try next.finish()
    }
  }

  @Test func aLargeSaveIsReadAtOnceAndStoredLater() throws {
    var random = SeededRandom()
    let fixture = try stoppedFixture()
    let bytes = random.bytes(Self.large)
    try fixture.save("a", bytes)
    let saved = fixture.clock.now
    #expect(try kept(fixture).map(\.ino) == [try fixture.ino("a")])
    #expect(try fixture.holds("a", bytes), random.note)
    #expect(try fixture.library.attributes(fixture.ino("a"), .library).size == Int64(Self.large))
    fixture.clock.advance(3)
    // Who looks at versions waits for it.
    let versions = try fixture.versions("a")
    #expect(versions.map(\.number) == [1] && versions.map(\.cause) == [.save] && versions.map(\.open) == [false])
    #expect(versions.first?.time == saved)
    #expect(try kept(fixture).isEmpty)
    #expect(try fixture.holds("a", bytes), random.note)
    try fixture.expectSound()
    #expect(FileManager.default.fileExists(atPath: fixture.path + "-working"))
    try fixture.library.close()
    #expect(!FileManager.default.fileExists(atPath: fixture.path + "-working"))
    try FileManager.default.removeItem(atPath: fixture.folder)
  }

  @Test func attributesAndTheNextWriterWaitToo() throws {
    var random = SeededRandom()
    let fixture = try stoppedFixture()
    try fixture.save("a", random.bytes(Self.large))
    #expect(try state(fixture, "a", "version") == "1")
    #expect(try state(fixture, "a", "state") == "saved")
    try fixture.save("a", random.bytes(Self.large))
    #expect(try kept(fixture).count == 1)
    let last = random.bytes(Self.large)
    try fixture.save("a", last)
    #expect(try fixture.versions("a").map(\.number) == [1, 2, 3])
    #expect(try fixture.holds("a", last), random.note)
    try fixture.finish()
  }

  @Test func truncatingByPathAfterACloseOutlivesAKill() throws {
    var random = SeededRandom()
    let fixture = try stoppedFixture()
    for (name, isReleased, size) in [("a", true, 1000), ("b", false, 1000), ("c", true, 0), ("d", false, 0)] {
      let bytes = random.bytes(Self.large)
      let handle = try fixture.open(name, O_RDWR | O_CREAT)
      try fixture.write(handle, bytes)
      try fixture.library.flush(handle)
      // The kernel tells of the last close later than close(2) returns.
      if isReleased { try fixture.library.release(handle) }
      _ = try fixture.library.setAttributes(fixture.ino(name), .init(size: Int64(size)), handle: nil, .library)
      let isCut = try fixture.holds(name, Array(bytes.prefix(size)))
      #expect(isCut, "\(name): \(random.note)")
      try afterKill(of: fixture) { next in
        let isLeft = try next.holds(name, Array(bytes.prefix(size)))
        #expect(isLeft, "\(name): \(random.note)")
      }
      if !isReleased { try fixture.library.release(handle) }
    }
    try fixture.finish()
  }

  @Test func whatWasClosedOrAutosavedOutlivesAKill() throws {
    var random = SeededRandom()
    let fixture = try stoppedFixture()
    let before = random.bytes(Self.large)
    try fixture.save("edited", before)
    #expect(try fixture.versions("edited").count == 1)
    // Closed, and never stored.
    let new = random.bytes(Self.large)
    try fixture.save("new", new)
    // Open: changed in place, cut short, a hole in it, autosaved; what was written after that is lost.
    let handle = try fixture.open("edited")
    var after = before
    for _ in 0..<200 {
      let page = random.bytes(100_000)
      let place = Int.random(in: 0..<(Self.large - page.count), using: &random)
      try fixture.write(handle, page, at: Int64(place))
      after.replaceSubrange(place..<(place + page.count), with: page)
    }
    _ = try fixture.library.setAttributes(
      fixture.ino("edited"), .init(size: Int64(Self.large - 1_000_000)), handle: handle, .library)
    after.removeLast(1_000_000)
    try fixture.library.allocate(handle, 5_000_000..<6_000_000, .punchHole)
    after.replaceSubrange(5_000_000..<6_000_000, with: [UInt8](repeating: 0, count: 1_000_000))
    fixture.clock.advance(2)
    fixture.autosave()
    #expect(try kept(fixture).count == 2)
    #expect(try state(fixture, "edited", "state") == "saved")
    try fixture.write(handle, [1, 2, 3])
    #expect(try state(fixture, "edited", "state") == "edited")
    try fixture.mkdir("later")
    try afterKill(of: fixture) { next in
      #expect(try next.holds("new", new), random.note)
      #expect(try next.versions("new").map(\.cause) == [.save])
      #expect(try next.holds("edited", after), random.note)
      #expect(try next.versions("edited").map(\.cause) == [.save, .autosave])
      #expect(try next.find("later") != nil)
      let events = try next.library.store.read { try $0.events(after: 0, limit: 100) }
      #expect(events.count { $0.type == "sheaf.persistence.created" } == 3)
      #expect(events.count { $0.type == "sheaf.change.edit" } == 1)
    }
    try fixture.close(handle)
    try fixture.finish()
  }

  /// The disk may have the record of changes and not the bytes that it refers to.
  @Test func whatTheDiskLostEndsThePrefixThatIsLeft() throws {
    var random = SeededRandom()
    let fixture = try stoppedFixture()
    try fixture.mkdir("before")
    try fixture.library.store.sync(log: true)
    // What comes now is in the record alone.
    fixture.library.store.writer.schedule.stop()
    try fixture.mkdir("between")
    try fixture.save("large", random.bytes(Self.large))
    try fixture.mkdir("after")
    try afterKill(of: fixture) { next in
      let found = try next.find("after")
      #expect(found != nil)
    }
    try afterKill(of: fixture, losingAt: 7_000_000) { next in
      let found = try ["before", "between", "after"].map { try next.find($0) != nil }
      #expect(found == [true, true, false])
      let bytes = try next.read("large")
      #expect(bytes.isEmpty)
    }
    // Committed, it is on the disk.
    try fixture.library.store.writer.commit()
    #expect(!fixture.library.store.working.needsSync)
    try fixture.finish()
  }

  @Test func aBackupThatWouldNotHaveWhatWasClosedIsRefused() throws {
    var random = SeededRandom()
    let fixture = try stoppedFixture()
    let bytes = random.bytes(Self.large)
    try fixture.save("a", bytes)
    let working = URL(fileURLWithPath: fixture.path + "-working")
    let contents = try Data(contentsOf: working)
    try withLibraryFolder { folder in
      let copy = folder + "/library.sqlite"
      // It cannot be stored for as long as its bytes are out of reach.
      #expect(truncate(working.path, 0) == 0)
      #expect(throws: SheafError.self) { try fixture.library.backup(to: copy) { _ in } }
      #expect(!FileManager.default.fileExists(atPath: copy))
      let file = try FileHandle(forWritingTo: working)
      try file.write(contentsOf: contents)
      try file.close()
      try fixture.library.backup(to: copy) { _ in }
      let restored = try LibraryFixture(at: copy, clock: TestClock(fixture.clock.now))
      #expect(try restored.holds("a", bytes), random.note)
      try restored.finish()
    }
    try fixture.finish()
  }

  @Test func whatIsInAShareIsStoredAtOnce() throws {
    var random = SeededRandom()
    let fixture = try stoppedFixture()
    try fixture.save("a", "shared")
    _ = try fixture.library.share(fixture.path("a"), ShareChange())
    let bytes = random.bytes(Self.large)
    try fixture.save("a", bytes)
    #expect(try kept(fixture).isEmpty)
    #expect(try fixture.holds("a", bytes), random.note)
    // What is kept is stored before others see it.
    try fixture.save("b", bytes)
    #expect(try kept(fixture).count == 1)
    _ = try fixture.library.share(fixture.path("b"), ShareChange())
    #expect(try kept(fixture).isEmpty)
    try fixture.finish()
  }

  @Test func namesComeAndGoWithWhatIsKept() throws {
    var random = SeededRandom()
    let fixture = try stoppedFixture()
    let bytes = (0..<4).map { _ in random.bytes(Self.large) }
    try fixture.save("renamed", bytes[0])
    try fixture.rename("renamed", "here")
    #expect(try fixture.holds("here", bytes[0]), random.note)
    // Saved by a temporary file.
    try fixture.save("new.tmp", bytes[1])
    try fixture.rename("new.tmp", "here")
    #expect(try fixture.holds("here", bytes[1]), random.note)
    #expect(try fixture.versions("here").count == 2)
    try fixture.save("gone", bytes[2])
    try fixture.unlink("gone")
    _ = try fixture.library.recover(fixture.path("gone"), id: nil) { _ in }
    #expect(try fixture.holds("gone", bytes[2]), random.note)
    // Of what leaves no trace nothing stays.
    try fixture.save(".scratch.swp", bytes[3])
    try fixture.unlink(".scratch.swp")
    #expect(try kept(fixture).isEmpty)
    #expect(fixture.library.locked { fixture.library.sessions.keptInodes.isEmpty })
    try fixture.finish()
  }

  /// The next process tells of it, whenever that is.
  @Test func whatWasSavedBeforeAKillIsToldWithItsTime() throws {
    let fixture = try stoppedFixture()
    try fixture.save("a", "one")
    try fixture.library.locked { try fixture.library.settleEvents(all: true) }
    let handle = try fixture.open("a")
    try fixture.write(handle, Array("two".utf8))
    try fixture.library.fsync(fixture.ino("a"))
    let saved = fixture.clock.now
    fixture.clock.advance(60)
    try afterKill(of: fixture) { next in
      let told = try next.library.store.read { try $0.events(after: 0, limit: 100) }
      #expect(told.map(\.type) == ["sheaf.persistence.created", "sheaf.change.edit"])
      #expect(told.last?.time == saved)
      #expect(try next.versions("a").last?.time == saved)
    }
    try fixture.close(handle)
    try fixture.finish()
  }

  /// One that cannot be stored keeps neither the others from it nor the library from being closed.
  @Test func oneThatCannotBeStoredConcernsItAlone() throws {
    var random = SeededRandom()
    let first = try stoppedFixture()
    let bytes = random.bytes(Self.large)
    try first.save("damaged", bytes)
    try first.library.close()
    // What is written is to be joined with bytes that are not what they were.
    let queue = try DatabaseQueue(path: first.path)
    try queue.write { try $0.execute(sql: "UPDATE chunks SET data = zeroblob(length(data))") }
    try queue.close()
    let fixture = try LibraryFixture(at: first.path, clock: first.clock)
    fixture.library.stopMaintenance()
    let handle = try fixture.open("damaged")
    var offset = 100
    while offset < Self.large - 100_000 {
      try fixture.write(handle, Array(bytes[offset..<(offset + 100_000)].reversed()), at: Int64(offset))
      offset += 150_000
    }
    try fixture.close(handle)
    for name in ["one", "two", "three"] { try fixture.save(name, random.bytes(Self.large)) }
    #expect(try kept(fixture).count == 4)
    fixture.library.completeSaves()
    #expect(try kept(fixture).map(\.ino) == [try fixture.ino("damaged")])
    for name in ["one", "two", "three"] { #expect(try fixture.versions(name).count == 1) }
    // It says what it could not do, and lets go of the library.
    #expect(throws: SheafError.self) { try fixture.library.close() }
    let next = try LibraryFixture(at: fixture.path, clock: fixture.clock)
    #expect(try kept(next).map(\.ino) == [try next.ino("damaged")])
    #expect(throws: SheafError.self) { try next.library.close() }
    for each in [first, fixture, next] { try? FileManager.default.removeItem(atPath: each.folder) }
  }
}
