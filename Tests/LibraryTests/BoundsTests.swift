import Foundation
import Glibc
import SheafModel
import SheafStore
import Synchronization
import Testing

@testable import SheafLibrary

/// What must stay bounded, and what many threads at once must not break.
struct BoundsTests {
  @Test func manyLookupsKeepFewInodes() throws {
    let fixture = try LibraryFixture()
    let folder = try fixture.root
    let count = 200_000
    // Made by rows: what is tried here is looking up.
    try fixture.library.store.write(.create) { transaction in
      var root = try #require(try transaction.inode(folder))
      for number in 0..<count {
        let ino = Int64(1_000_000 + number)
        let name = Array("\(number)".utf8)
        let item = ItemRow(
          id: ino, uuid: .timeOrdered(fixture.clock.now), kind: .folder, owner: root.owner, creator: root.owner,
          created: fixture.clock.now)
        try transaction.insert(item)
        try transaction.insert(
          InodeRow(
            ino: ino, item: item.id, owner: root.owner, parent: folder, name: name, mode: S_IFDIR | 0o755, nlink: 2,
            uid: 0, gid: 0, time: fixture.clock.now))
        try transaction.insert(
          EntryRow(
            parent: folder, hash: fixture.library.nameHash(name), name: name, ino: ino, since: Timestamp(nanoseconds: 0)
          ))
      }
      root.nlink += Int64(count)
      try transaction.update(root)
    }
    var largest = 0
    for number in 0..<count {
      _ = try fixture.library.lookup(folder, Array("\(number)".utf8), .library)
      if number % 1000 == 0 { largest = max(largest, fixture.library.locked { fixture.library.inodes.all.count }) }
    }
    #expect(largest <= InodeTable.limit)
    try fixture.library.close()
    try? FileManager.default.removeItem(atPath: fixture.folder)
  }

  @Test func chosenModesDoNotKeepInodes() throws {
    let fixture = try LibraryFixture()
    for round in 0..<12 {
      // Files unpacked from an archive: made, and given their mode.
      fixture.library.locked {
        for number in 0..<2000 {
          let ino = Int64(1_000_000 + round * 2000 + number)
          let row = InodeRow(
            ino: ino, item: nil, owner: 1, parent: 16, name: [], mode: S_IFREG | 0o600, nlink: 1, uid: 0, gid: 0,
            time: fixture.clock.now)
          fixture.library.inodes.insert(Inode(row))
          fixture.library.identity.noteCreated(ino, process: 1, at: fixture.clock.now)
          fixture.library.identity.choseMode(ino)
          _ = try? fixture.library.inode(ino)
        }
      }
      fixture.clock.advance(20)
    }
    #expect(fixture.library.locked { fixture.library.inodes.all.count } <= InodeTable.limit)
    try fixture.finish()
  }

  @Test func theChunkCacheKeepsToItsLimit() {
    let cache = ChunkCache(limit: 1_000_000)
    for id: Int64 in 0..<1000 {
      cache.insert(id, [UInt8](repeating: 1, count: 10_000))
      #expect(cache.value(id) != nil)
    }
    #expect((0..<1000).count { cache.value($0) != nil } <= 100)
    #expect(cache.value(0) == nil)
  }

  @Test func theChunkCacheKeepsNoMoreThanSoManySmallChunks() {
    let cache = ChunkCache(limit: 1 << 30)
    for id in 0..<Int64(3 * ChunkCache.countLimit) {
      cache.insert(id, [1])
      #expect(cache.value(id) != nil)
    }
    let kept = (0..<Int64(3 * ChunkCache.countLimit)).count { cache.value($0) != nil }
    #expect((ChunkCache.countLimit / 2...ChunkCache.countLimit).contains(kept))
  }

  @Test func manyThreadsAtOnce() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    for name in ["x", "y", "z"] { try fixture.mkdir(name) }
    let failures = Mutex<[String]>([])
    let seeds = (0..<6).map { _ in random.next() }
    let threads = seeds.map { seed in
      Thread {
        var random = SeededRandom(seed: seed)
        for _ in 0..<100 {
          do {
            try Self.step(fixture, &random)
          } catch let error as SheafError
            where [.notFound, .exists, .isDirectory, .notDirectory, .notEmpty, .busy].contains(error.kind)
          {
            // Another thread was there first.
          } catch {
            failures.withLock { $0.append("\(error)") }
          }
        }
      }
    }
    for thread in threads { thread.start() }
    while threads.contains(where: { !$0.isFinished }) {
      fixture.clock.advance(1)
      _ = try fixture.library.sweep()
    }
    #expect(failures.withLock { $0 } == [], random.note)
    try fixture.library.locked { try fixture.library.endAllSessions() }
    #expect(fixture.library.locked { fixture.library.sessions.unsavedBytes } == 0, random.note)
    try fixture.finish()
  }

  private static func step(_ fixture: LibraryFixture, _ random: inout SeededRandom) throws {
    func name() -> String {
      ["x/", "y/", "z/", ""].randomElement(using: &random)! + ["a", "b", "c", "d"].randomElement(using: &random)!
    }
    let path = name()
    switch Int.random(in: 0..<12, using: &random) {
    case 0..<4:
      let byte = UInt8.random(in: 1...255, using: &random)
      try fixture.save(path, [UInt8](repeating: byte, count: Int.random(in: 1...200_000, using: &random)))
    case 4, 5: try fixture.rename(path, name())
    case 6: try fixture.unlink(path)
    case 7:
      let (parent, last) = try fixture.place(name())
      if let ino = try fixture.find(path) { _ = try fixture.library.link(ino, parent, last, .library) }
    case 8:
      let library = fixture.library
      // At one moment: a name that means another document later gives that one's versions.
      let readers = try library.locked {
        let (inode, item) = try library.document(fixture.path(path), for: .readHistory)
        library.shareChunks(of: inode)
        return try library.read { try $0.versions(item.id) }.map {
          ($0, library.reader(of: $0.content, item.id, $0.number, inode, .library))
        }
      }
      for (version, reader) in readers {
        var size: Int64 = 0
        try library.readAll(reader) { size += Int64($0.count) }
        guard size == version.size else {
          throw SheafError(.corrupt, subject: path, reason: "version \(version.number) has \(size) bytes")
        }
      }
    case 9: _ = try fixture.library.recover(fixture.path(path), id: nil) { _ in }
    case 10: try fixture.library.purge(fixture.path(path), version: nil)
    default: _ = try fixture.read(path)
    }
  }

  @Test func otherDoorsLearnOfEveryChangeOfContents() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "contents")
    try fixture.save("b", "other")
    let (a, b) = (try fixture.ino("a"), try fixture.ino("b"))
    let told = Mutex<[LibraryNews]>([])
    let own = fixture.library.observe(account: nil) { news in
      // But for a truncation by open(2), of which its kernel tells nobody.
      if news.map(\.change) != [.contents(a)] { Issue.record("a door is not told of what came by it") }
    }
    let other = fixture.library.observe(account: nil) { changes in told.withLock { $0 += changes } }
    let caller = Caller(uid: 0, gid: 0, thread: 0, door: own) { [] }
    func expectTold(_ ino: Int64, _ what: Comment, _ body: () throws -> Void) rethrows {
      told.withLock { $0 = [] }
      try body()
      #expect(told.withLock { $0.contains { $0.change == .contents(ino) } }, what)
    }
    let source = try fixture.library.open(a, flags: O_RDWR, caller)
    let target = try fixture.library.open(b, flags: O_RDWR, caller)
    try expectTold(b, "write") { try fixture.write(target, [1]) }
    try expectTold(b, "copy") { _ = try fixture.library.copy(from: source, at: 0, to: target, at: 0, count: 8) }
    try expectTold(b, "fallocate") { try fixture.library.allocate(target, 0..<4, .punchHole) }
    try expectTold(b, "ftruncate") {
      _ = try fixture.library.setAttributes(b, .init(size: 0), handle: target, caller)
    }
    try expectTold(b, "truncate") { _ = try fixture.library.setAttributes(b, .init(size: 9), handle: nil, caller) }
    try expectTold(a, "open") { try fixture.close(try fixture.library.open(a, flags: O_RDWR | O_TRUNC, caller)) }
    for handle in [source, target] { try fixture.close(handle) }
    fixture.library.endObserving(own)
    fixture.library.endObserving(other)
    try fixture.finish()
  }

  /// What changes while upkeep is at work is looked at in another round, whatever that one finds left.
  @Test func aChangeDuringARoundHasAnother() throws {
    let schedule = MaintenanceSchedule()
    #expect(schedule.wait() == .everything)
    schedule.wake()
    schedule.note(busy: false)
    let woken = DispatchSemaphore(value: 0)
    Thread {
      if schedule.wait() == .everything { woken.signal() }
    }.start()
    #expect(woken.wait(timeout: .now() + 10) == .success)
    // Then there is nothing to do.
    schedule.note(busy: false)
    schedule.start {
      if schedule.wait() == nil { woken.signal() }
    }
    schedule.stop()
    #expect(woken.wait(timeout: .now() + 10) == .success)
  }

  @Test func whatIsReadIsNotKeptForItsTime() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.save("a", "one")
    let ino = try fixture.ino("a")
    library.locked {
      // In memory alone, as if nothing could be stored.
      for number in 0..<(2 * Int64(InodeTable.limit)) {
        var row = library.inodes[ino]!.row
        row.ino = 1_000_000 + number
        library.noteAccess(library.inodes.insert(Inode(row)))
      }
      #expect(library.inodes.all.count { $0.hasNewAccessTime } <= InodeTable.limit)
      library.accessTimes = UnstoredAccessTimes()
      for inode in library.inodes.all where inode.ino >= 1_000_000 { library.inodes.remove(inode.ino) }
    }
    try fixture.finish()
  }

  /// Nobody writes anything, and yet the time of a read is stored.
  @Test func aReadAloneHasItsTimeStored() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "one")
    let ino = try fixture.ino("a")
    for _ in 1...2 {
      fixture.clock.advance(86_400)
      let end = ContinuousClock.now + .seconds(30)
      while !fixture.library.maintenance.isResting, ContinuousClock.now < end { sched_yield() }
      #expect(try fixture.text("a") == "one")
      var stored: Timestamp?
      while stored != fixture.clock.now, ContinuousClock.now < end {
        stored = try fixture.library.store.read { try $0.inode(ino) }?.atime
        sched_yield()
      }
      try #require(stored == fixture.clock.now)
    }
    try fixture.finish()
  }
}
