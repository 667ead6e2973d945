import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// Deleting, recovering, destroying.
struct DeletionTests {
  private func deleted(_ fixture: LibraryFixture) throws -> [String] {
    try fixture.library.deleted(fixture.account, below: nil).map(\.path)
  }

  private func recover(_ fixture: LibraryFixture, _ path: String, id: String? = nil) throws -> [String] {
    try fixture.library.recover(fixture.path(path), id: id) { _ in }
  }

  @Test func whatIsDeletedComesBackWithItsIdAndHistory() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "one")
    try fixture.save("a", "two")
    let id = try fixture.library.itemStatus(fixture.path("a")).id
    try fixture.unlink("a")
    #expect(try fixture.find("a") == nil)
    // Its history is read by the path where it was.
    #expect(try fixture.library.versions(fixture.path("a")).map(\.number) == [1, 2])
    #expect { try fixture.library.versions(fixture.path("b")) } throws: { ($0 as? SheafError)?.kind == .notFound }
    #expect(try fixture.library.deleted(fixture.account, below: nil).map(\.id) == [id])
    #expect(try recover(fixture, "a") == ["Documents/a"])
    #expect(try fixture.library.itemStatus(fixture.path("a")).id == id)
    #expect(try fixture.versions("a").count == 2 && fixture.text("a") == "two")
    #expect(try deleted(fixture) == [])
    #expect { try recover(fixture, "a") } throws: { ($0 as? SheafError)?.kind == .notFound }
    try fixture.finish()
  }

  /// What is in a deleted folder has the path that `sheaf deleted` prints, also if another folder has its name by now.
  @Test func whatIsInADeletedFolderIsFoundBesideAnotherOne() throws {
    let fixture = try LibraryFixture()
    for folder in ["p", "p/g"] { try fixture.mkdir(folder) }
    for name in ["p/one", "p/two", "p/g/b"] { try fixture.save(name, name) }
    for name in ["p/one", "p/two", "p/g/b"] { try fixture.unlink(name) }
    for folder in ["p/g", "p"] { try fixture.rmdir(folder) }
    for folder in ["p", "p/g"] { try fixture.mkdir(folder) }
    #expect(try fixture.library.versions(fixture.path("p/two")).count == 1)
    #expect(try recover(fixture, "p/g/b") == ["Documents/p (2)/g/b"])
    #expect(try fixture.text("p (2)/g/b") == "p/g/b")
    // The one that was deleted last of all, in whichever folder.
    try fixture.save("p/one", "later")
    fixture.clock.advance(60)
    try fixture.unlink("p/one")
    #expect(try recover(fixture, "p/one") == ["Documents/p/one"])
    #expect(try fixture.text("p/one") == "later")
    try fixture.finish()
  }

  /// A dot in a folder's name begins no extension.
  @Test func aFoldersTakenNameGetsItsNumberBehindItsDots() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("plan.v1")
    try fixture.save("plan.v1/a", "old")
    try fixture.unlink("plan.v1/a")
    try fixture.rmdir("plan.v1")
    try fixture.mkdir("plan.v1")
    #expect(try recover(fixture, "plan.v1").contains("Documents/plan.v1 (2)"))
    #expect(try fixture.names().contains("plan.v1 (2)"))
    try fixture.finish()
  }

  @Test func aTakenNameGetsANumber() throws {
    let fixture = try LibraryFixture()
    for name in ["a.tar.gz", ".hidden", "plain"] {
      try fixture.save(name, "old")
      try fixture.unlink(name)
      try fixture.save(name, "new")
    }
    #expect(try recover(fixture, "a.tar.gz") == ["Documents/a.tar (2).gz"])
    #expect(try recover(fixture, ".hidden") == ["Documents/.hidden (2)"])
    #expect(try recover(fixture, "plain") == ["Documents/plain (2)"])
    #expect(try fixture.text("plain") == "new" && fixture.text("plain (2)") == "old")
    try fixture.unlink("plain")
    try fixture.save("plain", "newest")
    #expect(try recover(fixture, "plain") == ["Documents/plain (3)"])
    try fixture.finish()
  }

  @Test func missingFoldersAreMadeAnew() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("x")
    try fixture.mkdir("x/y")
    try fixture.save("x/y/a", "deep")
    let folder = try fixture.library.itemStatus(fixture.path("x")).id
    try fixture.unlink("x/y/a")
    fixture.clock.advance(3600)
    try fixture.rmdir("x/y")
    fixture.clock.advance(3600)
    try fixture.rmdir("x")
    #expect(try recover(fixture, "x/y/a") == ["Documents/x/y/a"])
    #expect(try fixture.text("x/y/a") == "deep")
    #expect(try fixture.library.itemStatus(fixture.path("x")).id == folder)
    try fixture.finish()
  }

  /// `rm -r`, depth first, a second for each entry.
  private func removeTree(_ fixture: LibraryFixture, _ path: String, seconds: Int64 = 1) throws {
    for name in try fixture.names(path) {
      let child = "\(path)/\(name)"
      if try fixture.library.attributes(fixture.ino(child), .library).mode & S_IFMT == S_IFDIR {
        try removeTree(fixture, child, seconds: seconds)
      } else {
        try fixture.unlink(child)
        fixture.clock.advance(seconds)
      }
    }
    try fixture.rmdir(path)
    fixture.clock.advance(seconds)
  }

  @Test func aWholeFolderComesBackAtOnce() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("t")
    try fixture.save("t/a", "first")
    try fixture.save("t/gone", "deleted long before")
    try fixture.unlink("t/gone")
    fixture.clock.advance(3600)
    // The folder in the middle takes longer to delete than two deletions may lie apart.
    try fixture.mkdir("t/many")
    for number in 0..<30 { try fixture.save("t/many/\(number)", "\(number)") }
    try fixture.save("t/z", "last")
    let folder = try fixture.library.attributes(fixture.ino(""), .library).nlink
    try removeTree(fixture, "t")
    let paths = try recover(fixture, "t")
    #expect(paths.count == 34 && paths.first == "Documents/t")
    #expect(try fixture.names("t") == ["a", "many", "z"])
    #expect(try fixture.names("t/many").count == 30)
    #expect(try fixture.text("t/a") == "first" && fixture.text("t/many/7") == "7")
    #expect(try fixture.library.attributes(fixture.ino(""), .library).nlink == folder)
    #expect(try deleted(fixture) == ["Documents/t/gone"])
    try fixture.finish()
  }

  /// The clock is put back while `rm -r` is at it.
  @Test(arguments: [1, 3600] as [Int64])
  func aFolderComesBackThoughTheClockWasPutBack(_ seconds: Int64) throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("t")
    for name in ["t/a", "t/b", "t/c"] { try fixture.save(name, name) }
    try fixture.unlink("t/a")
    fixture.clock.advance(milliseconds: 500)
    for name in ["t/b", "t/c"] { try fixture.unlink(name) }
    fixture.clock.advance(-seconds)
    try fixture.rmdir("t")
    #expect(try recover(fixture, "t").count == 4)
    #expect(try fixture.names("t") == ["a", "b", "c"])
    try fixture.finish()
  }

  @Test func namesOfAnyBytes() throws {
    let fixture = try LibraryFixture()
    let names: [[UInt8]] = [
      [0xFF, 0xFE], [0x0A], Array("a\u{1B}[31m".utf8), Array(repeating: 0x78, count: 255),
      Array(repeating: 0x78, count: 250) + Array(".text".utf8), [0x2E] + [UInt8](repeating: 0x79, count: 254),
    ]
    for name in names {
      for _ in 0..<2 {
        let made = try fixture.library.create(fixture.root, name, mode: 0o600, flags: O_RDWR, .library)
        try fixture.write(made.handle, name)
        try fixture.close(made.handle)
        try fixture.library.unlink(fixture.root, name, .library)
      }
      let path = try ItemPath(account: fixture.account, bytes: Array("Documents/".utf8) + name)
      #expect(try fixture.library.recover(path, id: nil) { _ in }.count == 1)
      #expect(try fixture.library.recover(path, id: nil) { _ in }.count == 1)
    }
    let listed = try fixture.library.list(fixture.root, after: 0, limit: 100, .library).map(\.name)
    #expect(listed.count == names.count * 2 && listed.allSatisfy { $0.count <= 255 })
    try fixture.finish()
  }

  @Test func anIdOfAnotherAccountIsNotFound() throws {
    let fixture = try LibraryFixture()
    let bob = try AccountHandle("bob@example.com")
    _ = try fixture.library.addAccount(bob, name: nil)
    try fixture.save("a", "x")
    let id = try fixture.library.itemStatus(fixture.path("a")).id
    try fixture.unlink("a")
    let path = try ItemPath(account: bob, "Documents/a")
    #expect { try fixture.library.recover(path, id: id) { _ in } } throws: {
      ($0 as? SheafError)?.kind == .notFound
    }
    try fixture.finish()
  }

  // MARK: - Destroying

  @Test func purgingFreesChunks() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    try fixture.save("keep", random.bytes(500_000))
    let empty = try fixture.chunkCount
    // A version.
    try fixture.save("a", random.bytes(500_000))
    let one = try fixture.chunkCount
    try fixture.save("a", "small")
    try fixture.library.purge(fixture.path("a"), version: 1)
    #expect(try fixture.chunkCount == empty + 1 && one > empty + 1)
    #expect { try fixture.library.purge(fixture.path("a"), version: 2) } throws: { ($0 as? SheafError)?.kind == .busy }
    // An item that is there, and one that is deleted.
    try fixture.library.purge(fixture.path("a"), version: nil)
    #expect(try fixture.chunkCount == empty)
    try fixture.save("b", random.bytes(500_000))
    try fixture.unlink("b")
    try fixture.library.purge(fixture.path("b"), version: nil)
    #expect(try fixture.chunkCount == empty && deleted(fixture) == [])
    // A folder, with what is in it and what was deleted from it.
    try fixture.mkdir("t")
    try fixture.mkdir("t/u")
    for name in ["t/a", "t/u/b", "t/u/c"] { try fixture.save(name, random.bytes(300_000)) }
    try fixture.unlink("t/u/b")
    try fixture.library.purge(fixture.path("t"), version: nil)
    #expect(try fixture.chunkCount == empty && deleted(fixture) == [] && fixture.names() == ["keep"])
    #expect(try fixture.library.counts().versions == 1)
    try fixture.finish()
  }

  /// Names of one file in a folder that is purged: it goes with the last one, unless there is another one elsewhere.
  @Test(arguments: [false, true])
  func purgingTakesAllNamesOfAFile(_ hasNameElsewhere: Bool) throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let empty = try fixture.chunkCount
    try fixture.mkdir("t")
    try fixture.mkdir("t/u")
    try fixture.save("t/a", random.bytes(300_000))
    for name in ["t/b", "t/u/c"] + (hasNameElsewhere ? ["d"] : []) {
      let (parent, name) = try fixture.place(name)
      _ = try fixture.library.link(fixture.ino("t/a"), parent, name, .library)
    }
    try fixture.library.purge(fixture.path("t"), version: nil)
    if hasNameElsewhere {
      #expect(try fixture.library.attributes(fixture.ino("d"), .library).nlink == 1)
      try fixture.library.purge(fixture.path("d"), version: nil)
    }
    #expect(try fixture.chunkCount == empty && deleted(fixture) == [] && fixture.names() == [])
    #expect(try fixture.library.counts().versions == 0)
    try fixture.finish()
  }

  /// By one of its names a file is not destroyed: it would go on under the other.
  @Test func whatHasAnotherNameIsNotPurged() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("t")
    try fixture.save("t/a", "one")
    try fixture.save("t/a", "two")
    _ = try fixture.library.link(fixture.ino("t/a"), fixture.root, Array("b".utf8), .library)
    for (name, other) in [("t/a", "Documents/b"), ("b", "Documents/t/a")] {
      #expect { try fixture.library.purge(fixture.path(name), version: nil) } throws: {
        ($0 as? SheafError)?.kind == .busy && "\($0)".contains(other)
      }
    }
    #expect(try fixture.text("t/a") == "two" && fixture.versions("b").count == 2)
    try fixture.unlink("t/a")
    try fixture.library.purge(fixture.path("b"), version: nil)
    #expect(try fixture.library.counts().versions == 0)
    try fixture.finish()
  }

  @Test func purgingTellsWhatWasDoneBefore() throws {
    let fixture = try LibraryFixture()
    func types() throws -> [String] {
      try fixture.library.store.read { try $0.events(after: 0, limit: 100) }.map(\.type)
    }
    // By a program, whose actions wait: this process, which does not end.
    let caller = Caller(uid: 0, gid: 0, thread: getpid(), door: 0) { [] }
    let made = try fixture.library.create(fixture.root, Array("a".utf8), mode: 0o644, flags: O_RDWR, caller)
    try fixture.write(made.handle, [1])
    try fixture.close(made.handle)
    try fixture.save("b", "b")
    try fixture.library.unlink(fixture.root, Array("b".utf8), caller)
    try fixture.library.purge(fixture.path("b"), version: nil)
    try fixture.library.purge(fixture.path("a"), version: nil)
    let persistence = "sheaf.persistence."
    #expect(try types() == ["created", "created", "deleted", "deleted"].map { persistence + $0 })
    #expect(try fixture.library.store.read { try $0.pendingEvents() }.isEmpty)
    try fixture.finish()
  }

  /// Neither SQLite's log nor the record of changes has it any more.
  @Test func whatIsPurgedIsInNoFile() throws {
    let fixture = try LibraryFixture()
    let secret = "secret-\(UUID().uuidString)"
    func files() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: fixture.folder).filter {
        try Data(contentsOf: URL(fileURLWithPath: fixture.folder + "/" + $0)).range(of: Data(secret.utf8)) != nil
      }
    }
    try fixture.save("a", secret)
    #expect(try files().contains("library.sqlite-changes"))
    try fixture.library.purge(fixture.path("a"), version: nil)
    #expect(try files() == [])
    try fixture.save("b", "b")
    try fixture.finish()
  }

  /// A temporary file that is brought back under a name of its own is a document from then on, and none under its own.
  @Test(arguments: [("found", true), (".a.tmp", false)]) func whatIsBroughtBackByANameIsADocument(
    _ name: String, isTold: Bool
  ) throws {
    let fixture = try LibraryFixture()
    try fixture.save(".a.tmp", "one")
    fixture.clock.advance(30)
    try fixture.save(".a.tmp", "two")
    try fixture.library.locked { try fixture.library.settleEvents(all: true) }
    try fixture.unlink(".a.tmp")
    #expect(try deleted(fixture) == ["Documents/.a.tmp"])
    let root = try fixture.root
    try fixture.library.recover(Array(".a.tmp".utf8), deletedFrom: root, to: root, Array(name.utf8), fixture.caller)
    let ino = try fixture.ino(name)
    let found = try fixture.library.locked { try fixture.library.item(of: fixture.library.inode(ino)) }
    let item = try #require(found)
    #expect(item.isQuiet != isTold)
    #expect(try fixture.text(name) == "two")
    try fixture.finish()
  }

  /// The files of a folder that have some bytes.
  private func files(in folder: String, with bytes: [UInt8]) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder).filter {
      try Data(contentsOf: URL(fileURLWithPath: folder + "/" + $0)).range(of: Data(bytes)) != nil
    }
  }

  private func waitUntilFreed(_ library: Library) {
    let end = ContinuousClock.now + .seconds(20)
    while !library.locked({ library.purged.isFreed }), ContinuousClock.now < end { sched_yield() }
  }

  /// Who reads what is purged: the document itself, as its owner or a participant, or a version of it.
  enum Reader: CaseIterable { case owner, participant, version }

  /// What is open when it is purged is freed once it is closed: by upkeep, or by the next process where this one ended.
  @Test(arguments: Reader.allCases, [false, true]) func whatWasOpenWhenItWasPurgedIsFreed(
    _ reader: Reader, diesBefore: Bool
  ) throws {
    var random = SeededRandom()
    let secret = random.bytes(4000)
    let people = try People()
    let (fixture, library) = (people.fixture, people.library)
    try people.as(.alice) { try $0.mkdir("Documents/plans") }
    try fixture.save("plans/a", secret)
    try fixture.save("plans/a", "harmless")
    try fixture.save("plans/a", secret)
    try people.share("Documents/plans", with: [(.bob, .readWrite)])
    let path = try fixture.path("plans/a")
    var close: () throws -> Void
    switch reader {
    case .owner:
      let handle = try fixture.open("plans/a")
      #expect(try fixture.read(handle) == secret)
      close = { try fixture.close(handle) }
    case .participant:
      let handle = try people.as(.bob) { try $0.open("Shared/alice@example.com/plans/a", O_RDONLY) }
      #expect(try fixture.read(handle) == secret)
      close = { try fixture.close(handle) }
    case .version:
      var version: VersionReader? = try library.versionReader(path, number: 1)
      #expect(version?.size == 4000)
      close = { version = nil }
    }
    try library.purge(path, version: nil)
    // It is read still.
    #expect(try files(in: fixture.folder, with: secret).contains("library.sqlite"), random.note)
    guard !diesBefore else {
      let folder = fixture.folder + "/next"
      try library.copyAsKilled(to: folder)
      let next = try Library.open(LibraryLocation(path: folder + "/library.sqlite"))
      waitUntilFreed(next)
      #expect(try files(in: folder, with: secret) == [], random.note)
      try next.close()
      try close()
      return try people.finish()
    }
    try close()
    waitUntilFreed(library)
    #expect(try files(in: fixture.folder, with: secret) == [], random.note)
    #expect(try library.store.read { try $0.numberSetting(PurgedContents.setting) } == nil)
    try people.finish()
  }

  /// Whatever is written in place, cut, packed and purged, in whatever order: no chunk holds what no version has.
  @Test(arguments: 0..<8) func noChunkHoldsWhatWasPurged(_: Int) throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    try fixture.save("a", random.bytes(60_000))
    var marks: [Data] = []
    for step in 0..<40 {
      fixture.clock.advance(60)
      let current = try fixture.read("a")
      switch Int.random(in: 0..<8, using: &random) {
      case 0..<4:
        // Often over the one before, and elsewhere.
        let place =
          Int.random(in: 0..<2, using: &random) == 0 ? marks.last.flatMap { Data(current).range(of: $0) } : nil
        let start = place?.lowerBound ?? Int.random(in: 0..<max(1, current.count), using: &random)
        let mark = Data("mark-\(step)-".utf8 + random.bytes(30))
        let writer = try fixture.open("a")
        try fixture.write(writer, Array(mark), at: Int64(start))
        try fixture.close(writer)
        marks.append(mark)
      case 4:
        let size = Int64.random(in: 0...Int64(current.count), using: &random)
        _ = try fixture.library.setAttributes(fixture.ino("a"), .init(size: size), handle: nil, .library)
      case 5: _ = try fixture.library.compact { _ in }
      default:
        let versions = try fixture.versions("a").dropLast()
        guard let version = versions.randomElement(using: &random) else { continue }
        try fixture.library.purge(fixture.path("a"), version: version.number)
        let remaining = try fixture.versions("a").map { version in
          var bytes = Data()
          try fixture.library.readVersion(fixture.path("a"), number: version.number) { bytes.append(contentsOf: $0) }
          return bytes
        }
        let gone = marks.filter { mark in !remaining.contains { $0.range(of: mark) != nil } }
        let held = try fixture.library.store.read { transaction in
          var chunks: [Int64] = []
          try transaction.chunkIDs { chunks.append($0) }
          return try chunks.contains { chunk in
            let bytes = Data(try transaction.chunkBytes(chunk))
            return gone.contains { bytes.range(of: $0) != nil }
          }
        }
        try #require(!held, "step \(step) of \(random.note)")
      }
    }
    #expect(try fixture.library.check { _ in }.problems == [])
    try fixture.finish()
  }

  /// Versions that were cut short, or written in place, share parts of their chunks with the one before.
  ///
  /// With some contents chunks end between what is written in place and the end: packing makes other chunks of a version.
  @Test(arguments: [false, true], [nil, 2_808_730_512_090_099_868, 772_767_869_844_457_228] as [UInt64?])
  func whatIsPurgedIsInNoChunkOfOthers(isPacked: Bool, seed: UInt64?) throws {
    var random = seed.map { SeededRandom(seed: $0) } ?? SeededRandom()
    let fixture = try LibraryFixture()
    let secret = Array("secret-\(UUID().uuidString)".utf8)
    func holdsSecret() throws -> Bool {
      try fixture.library.store.read { transaction in
        var chunks: [Int64] = []
        try transaction.chunkIDs { chunks.append($0) }
        return try chunks.contains { Data(try transaction.chunkBytes($0)).range(of: Data(secret)) != nil }
      }
    }
    let long = random.bytes(40_000)
    let blank = [UInt8](repeating: 88, count: secret.count)
    try fixture.save("short", Array("name\n".utf8) + secret)
    try fixture.save("long", long[..<20_000] + secret + long[20_000...])
    fixture.clock.advance(60)
    _ = try fixture.library.setAttributes(fixture.ino("short"), .init(size: 5), handle: nil, .library)
    let writer = try fixture.open("long")
    try fixture.write(writer, blank, at: 20_000)
    try fixture.close(writer)
    fixture.clock.advance(60)
    // What is current uses a part of one, and is open; and a whole one of its own in the other.
    try fixture.save("short", "name\nand more")
    let reader = try fixture.open("long", O_RDONLY)
    if isPacked { _ = try fixture.library.compact { _ in } }
    #expect(try holdsSecret())
    try fixture.library.purge(fixture.path("short"), version: 1)
    #expect(try holdsSecret(), "in the other one")
    try fixture.library.purge(fixture.path("long"), version: 1)
    #expect(try !holdsSecret(), "\(random.note)")
    #expect(try fixture.version("short", 2) == "name\n")
    #expect(try fixture.version("short", 3) == "name\nand more")
    #expect(try fixture.read(reader) == long[..<20_000] + blank + long[20_000...])
    try fixture.close(reader)
    #expect(try fixture.versions("long").map(\.number) == [2])
    try fixture.expectSound()
    try fixture.finish()
  }

  @Test func purgingShrinksTheFile() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    try fixture.save("a", random.bytes(20_000_000))
    _ = try fixture.library.compact { _ in }
    let before = try fixture.library.counts().fileBytes
    try fixture.library.purge(fixture.path("a"), version: nil)
    #expect(try fixture.library.counts().fileBytes < before - 18_000_000)
    try fixture.finish()
  }

  @Test func whatIsOpenOutlivesItsPurge() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let bytes = random.bytes(500_000)
    try fixture.save("a", bytes)
    let handle = try fixture.open("a")
    try fixture.library.purge(fixture.path("a"), version: nil)
    #expect(try fixture.read(handle) == bytes)
    // Past the limit it is spilled to chunks that no row refers to.
    let more = random.bytes(9 << 20)
    try fixture.write(handle, more, at: 0)
    try fixture.write(handle, [1], at: Int64(more.count))
    _ = try fixture.library.sweep()
    #expect(try fixture.read(handle) == more + [1])
    try fixture.close(handle)
    _ = try fixture.library.sweep()
    #expect(try fixture.chunkCount == 0)
    try fixture.finish()
  }

  @Test func documentsItselfStays() throws {
    let fixture = try LibraryFixture()
    #expect { try fixture.library.purge(fixture.path(""), version: nil) } throws: {
      ($0 as? SheafError)?.kind == .notPermitted
    }
    try fixture.finish()
  }
}
