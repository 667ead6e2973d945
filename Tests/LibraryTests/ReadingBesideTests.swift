import Dispatch
import Foundation
import GRDB
import Glibc
import SheafModel
import SheafStore
import Synchronization
import Testing

@testable import SheafLibrary

/// What a read sees if something else happens between its plan and its fetching, when it does not hold the lock.
struct ReadingBesideTests {
  private static let length = 300_000
  private static let descriptors = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

  /// Reads the beginning of a file; `meanwhile` happens once the read has its plan, and none of its chunks.
  private func read(
    _ library: Library, _ handle: UInt64, isBeside: Bool = true, _ meanwhile: @escaping () throws -> Void = {},
    _ location: SourceLocation = #_sourceLocation
  ) throws -> [UInt8] {
    try fetching(meanwhile, isBeside, location) { try library.read(handle, at: 0, into: $0, beforeFetching: $1) }
  }

  private func read(
    _ library: Library, _ reader: VersionReader, _ meanwhile: @escaping () throws -> Void = {},
    _ location: SourceLocation = #_sourceLocation
  ) throws -> [UInt8] {
    try fetching(meanwhile, true, location) { try library.read(reader, at: 0, into: $0, beforeFetching: $1) }
  }

  /// - Parameter isBeside: whether the read may have a connection; without a descriptor for one it begins again with the
  ///   lock held.
  private func fetching(
    _ meanwhile: @escaping () throws -> Void, _ isBeside: Bool, _ location: SourceLocation,
    _ body: (UnsafeMutableRawBufferPointer, () -> Void) throws -> Int
  ) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0xEE, count: Self.length)
    var (calls, failure) = (0, (any Error)?.none)
    var limit = rlimit()
    getrlimit(Self.descriptors, &limit)
    let result = Result {
      try buffer.withUnsafeMutableBytes { buffer in
        try body(buffer) {
          calls += 1
          do { try meanwhile() } catch { failure = error }
          if isBeside { return }
          let next = dup(0)
          close(next)
          var full = limit
          full.rlim_cur = rlim_t(next)
          setrlimit(Self.descriptors, &full)
        }
      }
    }
    setrlimit(Self.descriptors, &limit)
    if let failure { throw failure }
    let count = try result.get()
    #expect(calls == 1, "the read had nothing to fetch", sourceLocation: location)
    return Array(buffer.prefix(count))
  }

  /// Whether they are the same; telling how long arrays differ would take very long.
  private func same(_ one: [UInt8], _ other: [UInt8]) -> Bool { one == other }

  /// Brings all changes to where other connections see them.
  private func commit(_ fixture: LibraryFixture) throws { try fixture.library.store.snapshot { _ in } }

  /// A document of several chunks, which are committed, and none of which is in memory.
  private func document(_ bytes: [UInt8], in fixture: LibraryFixture) throws {
    try fixture.save("a", bytes)
    try commit(fixture)
  }

  @Test func fetchingNeedsNoLock() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let bytes = random.bytes(Self.length)
    try document(bytes, in: fixture)
    let handle = try fixture.open("a", O_RDONLY)
    let reader = try fixture.library.versionReader(fixture.path("a"), number: 1)
    let (isHeld, mayGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let isOver = DispatchSemaphore(value: 0)
    /// From the plan on, another thread holds the lock until `mayGo`.
    func hold() {
      Thread.detachNewThread { [library = fixture.library] in
        library.locked {
          isHeld.signal()
          #expect(mayGo.wait(timeout: .now() + 60) == .success, "the read waited for the lock")
        }
        isOver.signal()
      }
      isHeld.wait()
    }
    #expect(try same(read(fixture.library, handle, hold), bytes), random.note)
    mayGo.signal()
    isOver.wait()
    try forget(fixture)
    #expect(try same(read(fixture.library, reader, hold), bytes), random.note)
    mayGo.signal()
    isOver.wait()
    try fixture.library.release(handle)
    try fixture.finish()
  }

  /// Takes all chunks out of memory.
  private func forget(_ fixture: LibraryFixture) throws {
    let library = fixture.library
    let last = try library.store.snapshot { transaction in
      var last: Int64 = 0
      try transaction.chunkIDs { last = $0 }
      return last
    }
    library.locked { for chunk in 0...last { library.chunks.cache.remove(chunk) } }
  }

  @Test func whatWasFetchedIsKept() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let bytes = random.bytes(Self.length)
    try document(bytes, in: fixture)
    let handle = try fixture.open("a", O_RDONLY)
    // Large parts are not kept: they are copied without the rest of their chunks.
    var buffer = [UInt8](repeating: 0, count: 4096)
    var fetches = 0
    for _ in 0..<2 {
      let count = try buffer.withUnsafeMutableBytes { buffer in
        try fixture.library.read(handle, at: 0, into: buffer) { fetches += 1 }
      }
      #expect(count == buffer.count && same(buffer, Array(bytes.prefix(count))), random.note)
    }
    #expect(fetches == 1)
    try fixture.library.release(handle)
    try fixture.finish()
  }

  /// Parts of all lengths, from the middle of one chunk to that of another, around holes and what is not stored yet.
  @Test func anyPartIsWhatWasWritten() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var bytes = random.bytes(Self.length)
    let hole = 90_000..<150_000
    try document(bytes, in: fixture)
    let handle = try fixture.open("a", O_RDWR)
    try fixture.library.allocate(handle, Int64(hole.lowerBound)..<Int64(hole.upperBound), .punchHole)
    for index in hole { bytes[index] = 0 }
    try fixture.library.fsync(fixture.ino("a"))
    try commit(fixture)
    let fresh = random.bytes(20_000)
    try fresh.withUnsafeBytes { try fixture.library.write(handle, at: 200_000, $0) }
    bytes.replaceSubrange(200_000..<220_000, with: fresh)
    for _ in 0..<200 {
      try forget(fixture)
      let offset = Int.random(in: 0..<Self.length, using: &random)
      var buffer = [UInt8](repeating: 0xEE, count: Int.random(in: 1...120_000, using: &random))
      let count = try buffer.withUnsafeMutableBytes { try fixture.library.read(handle, at: Int64(offset), into: $0) }
      #expect(same(Array(buffer.prefix(count)), Array(bytes[offset...].prefix(buffer.count))), random.note)
    }
    try fixture.library.release(handle)
    try fixture.finish()
  }

  @Test(arguments: [true, false])
  func aReadSeesOneMomentWhateverIsWritten(_ isBeside: Bool) throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var bytes = random.bytes(Self.length)
    try document(bytes, in: fixture)
    let handle = try fixture.open("a")
    // A part lies in memory, and is not stored.
    let unsaved = random.bytes(50_000)
    try fixture.write(handle, unsaved, at: 100_000)
    bytes.replaceSubrange(100_000..<150_000, with: unsaved)
    let other = random.bytes(Self.length)
    let seen = try read(fixture.library, handle, isBeside: isBeside) { try fixture.write(handle, other) }
    #expect(same(seen, isBeside ? bytes : other), random.note)
    try fixture.close(handle)
    try fixture.finish()
  }

  @Test func whatIsFreedMeanwhileIsNotMissed() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    try document(random.bytes(Self.length), in: fixture)
    let handle = try fixture.open("a", O_RDONLY)
    let other = random.bytes(Self.length / 2)
    let seen = try read(fixture.library, handle) {
      try fixture.save("a", other)
      try fixture.library.purge(fixture.path("a"), version: 1)
      _ = try fixture.library.sweep()
      try commit(fixture)
      #expect(try !fixture.library.store.snapshot { try $0.hasChunk(1) })
    }
    #expect(same(seen, other), random.note)
    try fixture.library.release(handle)
    try fixture.finish()
  }

  @Test func aPurgedVersionIsReadToItsEnd() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let bytes = random.bytes(Self.length)
    try document(bytes, in: fixture)
    try fixture.save("a", random.bytes(Self.length))
    let reader = try fixture.library.versionReader(fixture.path("a"), number: 1)
    let seen = try read(fixture.library, reader) {
      try fixture.library.purge(fixture.path("a"), version: 1)
      _ = try fixture.library.sweep()
      try commit(fixture)
    }
    #expect(same(seen, bytes), random.note)
    try fixture.finish()
  }

  /// Chunks are compressed and go into a pack, and from there into another one.
  @Test func packingMeanwhileChangesNothing() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var bytes = Array(repeating: random.bytes(1000), count: 20).flatMap { $0 }
    let first = bytes
    for number in 0..<20 {
      try fixture.save("a", bytes)
      bytes[number * 500] ^= 1
    }
    let reader = try fixture.library.versionReader(fixture.path("a"), number: 1)
    try forget(fixture)
    var seen = try read(fixture.library, reader) {
      #expect(try fixture.library.compact { _ in }.versionsPacked > 0)
      try commit(fixture)
    }
    #expect(same(seen, first), random.note)
    try forget(fixture)
    seen = try read(fixture.library, reader) {
      for number in 20..<40 {
        try fixture.save("a", bytes)
        bytes[number * 500 - 9_000] ^= 1
      }
      #expect(try fixture.library.compact { _ in }.versionsPacked > 0)
      try commit(fixture)
    }
    #expect(same(seen, first), random.note)
    try fixture.finish()
  }

  /// Bob's read began before he lost the right; what alice writes afterwards is not for him.
  @Test(arguments: [true, false])
  func aReadThatBeganBeforeShowsNothingOfAfter(_ isBeside: Bool) throws {
    var random = SeededRandom()
    let (before, after) = (random.bytes(Self.length), random.bytes(Self.length))
    try People.story { people in
      let library = people.library
      try people.fixture.save("a", before)
      try people.share("Documents/a", with: [(.bob, .readWrite)])
      try commit(people.fixture)
      try people.as(.bob) { (bob) throws in
        let handle = try library.open(bob.inode("Shared/alice@example.com/a"), flags: O_RDONLY, bob.caller)
        let seen = Result {
          try read(library, handle, isBeside: isBeside) {
            try people.as(.alice) { try $0.remove("Documents/a", .bob) }
            try people.fixture.save("a", after)
          }
        }
        switch seen {
        case .success(let bytes): #expect(isBeside && same(bytes, before), random.note)
        case .failure(let error): #expect((error as? SheafError)?.kind == .accessDenied && !isBeside, "\(error)")
        }
        // All of it is in memory by now, or nothing: a read that begins later may see neither.
        var buffer = [UInt8](repeating: 0, count: 10)
        expect(.accessDenied) { _ = try buffer.withUnsafeMutableBytes { try library.read(handle, at: 0, into: $0) } }
        try library.release(handle)
      }
    }
  }

  /// The library closes once the read has its bytes.
  @Test func closingWaitsForReaders() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let bytes = random.bytes(Self.length)
    try document(bytes, in: fixture)
    let handle = try fixture.open("a", O_RDONLY)
    // It has a connection from here on.
    #expect(try same(read(fixture.library, handle), bytes), random.note)
    try forget(fixture)
    let reader = try fixture.library.versionReader(fixture.path("a"), number: 1)
    let isClosed = DispatchSemaphore(value: 0)
    let seen = try read(fixture.library, reader) {
      Thread.detachNewThread { [library = fixture.library] in
        do { try library.close() } catch { Issue.record("\(error)") }
        isClosed.signal()
      }
      while !fixture.library.store.readers.isClosed { sched_yield() }
      // It cannot happen at all; nobody can wait for ever to see that.
      #expect(isClosed.wait(timeout: .now() + 0.2) == .timedOut)
    }
    #expect(same(seen, bytes), random.note)
    isClosed.wait()
    let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
      try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
    }
    #expect(!open.contains(fixture.path), "a connection is open")
    try? FileManager.default.removeItem(atPath: fixture.folder)
  }

  @Test(arguments: ["data = zeroblob(10)", "encoding = 1", "encoding = 2, data = x'0700'", "data = x'', size = 0"])
  func aDamagedChunkIsNamed(_ damage: String) throws {
    try withLibraryFolder { folder in
      let path = folder + "/library.sqlite"
      var random = SeededRandom()
      var fixture = try LibraryFixture(at: path)
      try document(random.bytes(Self.length), in: fixture)
      try fixture.finish()
      let queue = try DatabaseQueue(path: path)
      try queue.writeWithoutTransaction { try $0.execute(sql: "UPDATE chunks SET \(damage) WHERE id = 2") }
      try queue.close()
      fixture = try LibraryFixture(at: path, clock: fixture.clock)
      let handle = try fixture.open("a", O_RDONLY)
      for _ in 1...2 {
        do {
          _ = try read(fixture.library, handle)
          Issue.record("it was read")
        } catch let error as SheafError {
          #expect(error.kind == .corrupt && error.subject == "chunk 2", "\(error)")
        }
      }
      try fixture.library.release(handle)
      try fixture.library.close()
      try? FileManager.default.removeItem(atPath: fixture.folder)
    }
  }

  @Test func theCacheKeepsNothingThatWasRemovedMeanwhile() {
    let cache = ChunkCache(limit: 1000)
    let before = cache.removals
    cache.insert(1, [1])
    cache.remove(1)
    cache.insert(1, [0], since: before)
    #expect(cache.value(1) == nil)
    cache.insert(1, [2], since: cache.removals)
    #expect(cache.value(1) == [2])
  }

  /// Without a descriptor for a connection of its own, a read goes by the writer's.
  @Test func aFullTableOfDescriptorsKeepsNobodyFromReading() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let bytes = random.bytes(Self.length)
    try document(bytes, in: fixture)
    let handle = try fixture.open("a", O_RDONLY)
    #expect(try same(read(fixture.library, handle, isBeside: false), bytes), random.note)
    // The next one has a connection again.
    try forget(fixture)
    #expect(try same(read(fixture.library, handle), bytes), random.note)
    try fixture.library.release(handle)
    try fixture.finish()
  }

  /// A library whose file was moved away, and another one put in its place, reads on in its own.
  @Test func anotherFileAtThePathIsNotRead() throws {
    var random = SeededRandom()
    let (bytes, others) = (random.bytes(Self.length), random.bytes(Self.length))
    let (fixture, other) = (try LibraryFixture(), try LibraryFixture())
    try document(bytes, in: fixture)
    try document(others, in: other)
    try other.library.close()
    // All is in the file, and nothing in the log, which stays where it was.
    _ = try fixture.library.compact { _ in }
    try forget(fixture)
    let handle = try fixture.open("a", O_RDONLY)
    #expect(rename(fixture.path, fixture.path + ".mine") == 0)
    #expect(rename(other.path, fixture.path) == 0)
    #expect(try same(read(fixture.library, handle), bytes), random.note)
    #expect(rename(fixture.path + ".mine", fixture.path) == 0)
    try fixture.library.release(handle)
    try fixture.finish()
    try? FileManager.default.removeItem(atPath: other.folder)
  }

  /// Many readers at once, more than there are connections, while the document is saved, compacted and purged: each
  /// read gives one version, whole.
  @Test func manyReadersSeeWholeVersions() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let versions = (0..<6).map { _ in random.bytes(Self.length) }
    try fixture.save("a", versions[0])
    let isOver = Atomic(false)
    let group = DispatchGroup()
    let reads = Atomic(0)
    for _ in 0..<8 {
      group.enter()
      Thread.detachNewThread { [seed = random.seed] in
        defer { group.leave() }
        do {
          let handle = try fixture.open("a", O_RDONLY)
          var buffer = [UInt8](repeating: 0, count: Self.length)
          while !isOver.load(ordering: .relaxed) {
            let count = try buffer.withUnsafeMutableBytes { try fixture.library.read(handle, at: 0, into: $0) }
            // A save truncates first, and then writes in one request.
            if count > 0, !(count == Self.length && versions.contains(buffer)) {
              Issue.record("\(count) bytes of no version, SHEAF_SEED=\(seed)")
              break
            }
            reads.add(1, ordering: .relaxed)
          }
          try fixture.library.release(handle)
        } catch {
          Issue.record("\(error)")
        }
      }
    }
    for round in 0..<30 {
      try fixture.save("a", versions[round % versions.count])
      fixture.clock.advance(60)
      if round % 5 == 4 { _ = try fixture.library.compact { _ in } }
      if round % 7 == 6 { try fixture.library.purge(fixture.path("a"), version: Int64(round)) }
      let before = reads.load(ordering: .relaxed)
      while reads.load(ordering: .relaxed) < before + 8 { sched_yield() }
    }
    isOver.store(true, ordering: .relaxed)
    group.wait()
    try fixture.finish()
  }
}
