import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// Editing sessions and the versions that they make.
struct VersionTests {
  @Test func aSaveIsAVersion() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a.md", "one")
    fixture.clock.advance(60)
    try fixture.save("a.md", "two")
    let versions = try fixture.versions("a.md")
    #expect(versions.map(\.number) == [1, 2])
    #expect(versions.map(\.base) == [nil, 1])
    #expect(versions.map(\.size) == [3, 3])
    #expect(versions.allSatisfy { $0.cause == .save && !$0.open && $0.author == fixture.account && $0.label == nil })
    #expect(versions[1].time == fixture.clock.now)
    #expect(try fixture.version("a.md", 1) == "one" && fixture.version("a.md", 2) == "two")
    try fixture.finish()
  }

  @Test func touchMakesAnEmptyFirstVersion() throws {
    let fixture = try LibraryFixture()
    try fixture.close(try fixture.open("a", O_WRONLY | O_CREAT))
    #expect(try fixture.versions("a").map(\.size) == [0])
    try fixture.close(try fixture.open("a", O_WRONLY))
    #expect(try fixture.versions("a").count == 1)
    try fixture.finish()
  }

  @Test func aNodeThatNobodyOpenedHasNone() throws {
    let fixture = try LibraryFixture()
    _ = try fixture.library.make(.file, fixture.root, Array("a".utf8), mode: 0o644, .library)
    #expect(try fixture.versions("a") == [])
    try fixture.finish()
  }

  @Test func equalContentsMakeNone() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "same")
    fixture.clock.advance(60)
    try fixture.save("a", "same")
    #expect(try fixture.versions("a").count == 1)
    // Reading and closing makes none either.
    _ = try fixture.read("a")
    try fixture.finish()
  }

  @Test func equalContentsOfALargeDocumentMakeNone() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    // More than one list of extents, written at once and then in pieces that are stored in between.
    let bytes = random.bytes(48 << 20)
    try fixture.save("a", bytes)
    let ino = try fixture.ino("a")
    #expect(try fixture.versions("a").count == 1)
    let stored = try fixture.library.locked { try fixture.library.inode(ino).row.content }
    fixture.clock.advance(60)
    let handle = try fixture.open("a", O_RDWR | O_TRUNC)
    for start in stride(from: 0, to: bytes.count, by: 3 << 20) {
      try fixture.write(handle, Array(bytes[start..<min(bytes.count, start + 3 << 20)]), at: Int64(start))
    }
    try fixture.close(handle)
    #expect(try fixture.versions("a").count == 1, random.note)
    let again = try fixture.library.locked { try fixture.library.inode(ino).row.content }
    #expect(again == stored, random.note)
    #expect(try fixture.read("a") == bytes, random.note)
    try fixture.finish()
  }

  /// A save is its program's once it is closed, whoever has the document open and writes on.
  @Test(arguments: [3, 9 << 20]) func aClosedSaveIsNotWrittenOver(_ size: Int) throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "first")
    fixture.clock.advance(60)
    let open = try fixture.open("a", O_RDWR, by: 1)
    try fixture.write(open, Array("second".utf8))
    for byte in [66, 67] as [UInt8] {
      let other = try fixture.open("a", O_RDWR | O_TRUNC, by: 2)
      try fixture.write(other, [UInt8](repeating: byte, count: size))
      try fixture.close(other)
      try fixture.write(open, Array("thi".utf8))
      try fixture.write(open, Array("!".utf8), at: 1)
    }
    try fixture.library.flush(open)
    try fixture.write(open, Array("?".utf8), at: 1)
    try fixture.close(open)
    let versions = try fixture.versions("a")
    func bytes(_ number: Int64) throws -> [UInt8] { Array(try fixture.version("a", number).utf8) }
    #expect(versions.map(\.number) == [1, 2, 3, 4] && versions.map(\.base) == [nil, 1, 2, 3])
    #expect(try bytes(2) == [UInt8](repeating: 66, count: size))
    #expect(try bytes(3) == [UInt8](repeating: 67, count: size))
    #expect(try bytes(4) == Array("t?i".utf8) + [UInt8](repeating: 67, count: size - 3))
    try fixture.finish()
  }

  /// An editor that saves in place makes a version each time, though a program has the document open.
  @Test func eachOfSeveralClosedSavesIsAVersion() throws {
    let fixture = try LibraryFixture()
    let open = try fixture.open("a", O_RDWR | O_CREAT, by: 1)
    try fixture.write(open, Array("open".utf8))
    for number in 0..<3 {
      let editor = try fixture.open("a", O_RDWR | O_TRUNC, by: 2)
      try fixture.write(editor, Array("draft \(number)".utf8))
      try fixture.close(editor)
    }
    try fixture.close(open)
    let texts = try fixture.versions("a").map { try fixture.version("a", $0.number) }
    #expect(texts == ["draft 0", "draft 1", "draft 2"])
    try fixture.finish()
  }

  /// Who closes while another program is in the middle of writing ends nothing: a database would be torn.
  @Test func whoDidNotWriteLastEndsNoVersion() throws {
    let fixture = try LibraryFixture()
    let (one, two) = (try fixture.open("a", O_RDWR | O_CREAT, by: 1), try fixture.open("a", O_RDWR, by: 2))
    try fixture.write(two, Array("before".utf8))
    try fixture.write(one, Array("half".utf8))
    try fixture.close(two)
    try fixture.write(one, Array("whole".utf8))
    try fixture.close(one)
    #expect(try fixture.versions("a").map { try fixture.version("a", $0.number) } == ["wholee"])
    try fixture.finish()
  }

  @Test func linesAppendedToAnOpenLogAreVersions() throws {
    let fixture = try LibraryFixture()
    let log = try fixture.open("log", O_WRONLY | O_CREAT, by: 1)
    try fixture.write(log, Array("1".utf8))
    let other = try fixture.open("log", O_WRONLY, by: 2)
    try fixture.write(other, Array("2".utf8), at: 1)
    try fixture.close(other)
    try fixture.write(log, Array("3".utf8), at: 2)
    try fixture.write(log, Array("4".utf8), at: 3)
    try fixture.close(log)
    let texts = try fixture.versions("log").map { try fixture.version("log", $0.number) }
    #expect(texts == ["12", "1234"])
    try fixture.finish()
  }

  /// `: >log` of a document that a program writes to is no save.
  @Test func whatOneProgramEmptiesAnotherGoesOnWith() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "first")
    fixture.clock.advance(60)
    let open = try fixture.open("a", O_RDWR, by: 1)
    try fixture.write(open, Array("second".utf8))
    try fixture.close(try fixture.open("a", O_RDWR | O_TRUNC, by: 2))
    try fixture.write(open, Array("third".utf8))
    try fixture.close(open)
    #expect(try fixture.versions("a").map { try fixture.version("a", $0.number) } == ["first", "third"])
    try fixture.finish()
  }

  @Test func zerosForAHoleMakeNone() throws {
    let fixture = try LibraryFixture()
    let handle = try fixture.open("a", O_RDWR | O_CREAT)
    try fixture.write(handle, [1], at: 100_000)
    try fixture.close(handle)
    fixture.clock.advance(60)
    try fixture.save("a", [UInt8](repeating: 0, count: 100_000) + [1])
    #expect(try fixture.versions("a").count == 1)
    try fixture.finish()
  }

  @Test func autosaveRenewsOneVersion() throws {
    let fixture = try LibraryFixture()
    let handle = try fixture.open("a", O_RDWR | O_CREAT)
    try fixture.write(handle, Array("one".utf8))
    #expect(try fixture.versions("a") == [])
    fixture.clock.advance(2)
    fixture.autosave()
    var versions = try fixture.versions("a")
    #expect(versions.map(\.number) == [1] && versions[0].open && versions[0].cause == .autosave)
    try fixture.write(handle, Array(" and two".utf8), at: 3)
    fixture.clock.advance(2)
    fixture.autosave()
    versions = try fixture.versions("a")
    #expect(versions.map(\.number) == [1] && versions[0].open && versions[0].size == 11)
    #expect(versions[0].time == fixture.clock.now)
    try fixture.close(handle)
    versions = try fixture.versions("a")
    #expect(versions.map(\.number) == [1] && !versions[0].open && versions[0].cause == .save)
    #expect(try fixture.version("a", 1) == "one and two")
    try fixture.finish()
  }

  /// The version of a document that stays open ends after ten minutes, and that of a database in a quiet moment.
  @Test(arguments: [(false, false), (true, false), (true, true)])
  func aDatabaseIsVersionedInQuietMoments(_ isDatabase: Bool, _ isNeverQuiet: Bool) throws {
    let fixture = try LibraryFixture()
    let handle = try fixture.open("a", O_RDWR | O_CREAT)
    let header = isDatabase ? "SQLite format 3\0" : "SQLite format 4\0"
    try fixture.write(handle, Array(header.utf8) + [UInt8](repeating: 0, count: 4080))
    var count = 0
    /// Writes ten times a second.
    func write(for seconds: Int) throws {
      for _ in 0..<10 * seconds {
        count += 1
        fixture.clock.advance(milliseconds: 100)
        try fixture.write(handle, Array("\(count)".utf8), at: 100)
        if count % 3 == 0 { fixture.autosave() }
      }
    }
    try write(for: 599)
    #expect(try fixture.versions("a").map(\.open) == [true])
    try write(for: 60)
    #expect(try fixture.versions("a").map(\.open) == (isDatabase ? [true] : [false, true]))
    if isNeverQuiet {
      try write(for: 2940)
      #expect(try fixture.versions("a").map(\.open) == [true])
      try write(for: 60)
    } else {
      fixture.clock.advance(milliseconds: 999)
      fixture.autosave()
      #expect(try fixture.versions("a").count == (isDatabase ? 1 : 2))
      fixture.clock.advance(milliseconds: 1)
      fixture.autosave()
      #expect(try fixture.versions("a").first?.open == false)
      try write(for: 2)
    }
    #expect(try fixture.versions("a").map(\.open) == [false, true])
    try fixture.close(handle)
    try fixture.finish()
  }

  @Test func fsyncStoresAndEndsNothing() throws {
    let fixture = try LibraryFixture()
    let handle = try fixture.open("a", O_RDWR | O_CREAT)
    for text in ["1", "22", "333"] {
      try fixture.write(handle, Array(text.utf8))
      try fixture.library.fsync(fixture.ino("a"))
      #expect(fixture.library.store.isDurable)
      #expect(try fixture.versions("a").map(\.size) == [Int64(text.utf8.count)])
    }
    #expect(try fixture.versions("a")[0].open)
    try fixture.close(handle)
    #expect(try fixture.versions("a").count == 1)
    try fixture.finish()
  }

  @Test func twoHandlesAreOneSession() throws {
    let fixture = try LibraryFixture()
    let one = try fixture.open("a", O_RDWR | O_CREAT)
    let two = try fixture.open("a", O_RDWR)
    try fixture.write(one, Array("aa".utf8))
    try fixture.write(two, Array("bb".utf8), at: 2)
    #expect(try fixture.read(one) == Array("aabb".utf8))
    try fixture.close(one)
    #expect(try fixture.versions("a").map(\.open) == [true])
    try fixture.write(two, Array("cc".utf8), at: 4)
    try fixture.close(two)
    #expect(try fixture.versions("a").map(\.open) == [false])
    #expect(try fixture.version("a", 1) == "aabbcc")
    try fixture.finish()
  }

  @Test func aSessionLastsTenMinutesAtMost() throws {
    let fixture = try LibraryFixture()
    let handle = try fixture.open("a", O_RDWR | O_CREAT)
    try fixture.write(handle, Array("one".utf8))
    fixture.clock.advance(2)
    fixture.autosave()
    fixture.clock.advance(599)
    fixture.autosave()
    #expect(try fixture.versions("a").map(\.open) == [false])
    try fixture.write(handle, Array("two".utf8))
    try fixture.close(handle)
    #expect(try fixture.versions("a").map(\.number) == [1, 2])
    #expect(try fixture.version("a", 1) == "one")
    try fixture.finish()
  }

  @Test func truncatingByPathIsAVersion() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "12345")
    _ = try fixture.library.setAttributes(fixture.ino("a"), .init(size: 2), handle: nil, .library)
    #expect(try fixture.text("a") == "12")
    #expect(try fixture.versions("a").map(\.size) == [5, 2])
    _ = try fixture.library.setAttributes(fixture.ino("a"), .init(size: 2), handle: nil, .library)
    #expect(try fixture.versions("a").count == 2)
    try fixture.finish()
  }

  @Test func aTruncatedDocumentIsNotCutAtItsEmptyMoment() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "old")
    let handle = try fixture.open("a", O_RDWR | O_TRUNC)
    fixture.clock.advance(5)
    fixture.autosave()
    #expect(try fixture.versions("a").count == 1)
    try fixture.write(handle, Array("new".utf8))
    try fixture.close(handle)
    #expect(try fixture.versions("a").map(\.size) == [3, 3])
    try fixture.finish()
  }

  @Test func closingTheLibraryEndsSessions() throws {
    let fixture = try LibraryFixture()
    let handle = try fixture.open("a", O_RDWR | O_CREAT)
    try fixture.write(handle, Array("kept".utf8))
    try fixture.library.close()
    let again = try LibraryFixture(at: fixture.path)
    #expect(try again.text("a") == "kept")
    #expect(try again.versions("a").map(\.open) == [false])
    try again.finish()
  }

  // MARK: - What a session's own chunks are

  @Test func equalChunksOfOneDocumentAreOne() throws {
    let fixture = try LibraryFixture()
    // Blocks without a boundary are cut at the limit: the same chunk several times, stored by one save.
    let block = [UInt8](repeating: 7, count: 256 << 10)
    let handle = try fixture.open("a", O_RDWR | O_CREAT)
    try fixture.write(handle, block + block + block)
    fixture.clock.advance(2)
    fixture.autosave()
    let other = [UInt8](repeating: 9, count: block.count)
    try fixture.write(handle, other)
    fixture.clock.advance(2)
    fixture.autosave()
    #expect(try fixture.read(handle) == other + block + block)
    try fixture.expectSound()
    try fixture.close(handle)
    #expect(try fixture.read("a") == other + block + block)
    try fixture.finish()
  }

  @Test func aDamagedDocumentCanBeWrittenAnew() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    try fixture.save("a", random.bytes(10_000))
    let damaged = StoredContent.extents([Extent(chunk: 999_999, length: 10_000)])
    let ino = try fixture.ino("a")
    try fixture.library.locked {
      let inode = try fixture.library.inode(ino)
      inode.row.content = damaged
      inode.own.working = nil
    }
    let bytes = random.bytes(10_000)
    try fixture.save("a", bytes)
    #expect(try fixture.read("a") == bytes)
    #expect(try fixture.versions("a").count == 2)
    try fixture.finish()
  }

  /// Its writer goes on writing the document; the history that it had stays among the deleted.
  @Test func whatIsRenamedOverADocumentWhileItIsWrittenEndsItsOwnVersion() throws {
    let fixture = try LibraryFixture()
    try fixture.save("doc", "document")
    fixture.clock.advance(60)
    try fixture.save("new", "one")
    try fixture.save("new", "two")
    let handle = try fixture.open("new")
    try fixture.write(handle, Array("three".utf8))
    try fixture.rename("new", "doc")
    try fixture.close(handle)
    _ = try fixture.library.recover(fixture.path("new"), id: nil) { _ in }
    #expect(try fixture.versions("new").map(\.open) == [false, false, false])
    try fixture.save("new", "again")
    #expect(try fixture.versions("new").count == 4)
    try fixture.finish()
  }

  @Test func renewedVersionsGiveTheirChunksBack() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let handle = try fixture.open("a", O_RDWR | O_CREAT)
    for _ in 0..<20 {
      try fixture.write(handle, random.bytes(300_000))
      try fixture.library.fsync(fixture.ino("a"))
    }
    #expect(try fixture.chunkCount < 40)
    try fixture.close(handle)
    try fixture.finish()
  }

  /// Two documents that take chunks from each other while both are written, saved, spilled, restored and swept.
  @Test func nothingThatIsReferredToIsFreed() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let names = ["a", "b", "c"]
    var handles = try names.map { try fixture.open($0, O_RDWR | O_CREAT) }
    var oracle = names.map { _ in [UInt8]() }
    let blocks = (0..<3).map { _ in random.bytes(200_000) } + [[UInt8](repeating: 1, count: 300_000)]
    for step in 0..<250 {
      let which = Int.random(in: 0..<3, using: &random)
      switch Int.random(in: 0..<12, using: &random) {
      case 0..<5:
        let block = blocks.randomElement(using: &random) ?? []
        let data = Array(block.prefix(Int.random(in: 1...block.count, using: &random)))
        let offset = Int.random(in: 0...oracle[which].count, using: &random)
        try fixture.write(handles[which], data, at: Int64(offset))
        if offset + data.count > oracle[which].count {
          oracle[which] += [UInt8](repeating: 0, count: offset + data.count - oracle[which].count)
        }
        oracle[which].replaceSubrange(offset..<(offset + data.count), with: data)
      case 5:
        let source = (which + 1) % 3
        guard oracle[source].count > 10 else { continue }
        let offset = Int.random(in: 0..<oracle[source].count, using: &random)
        let count = Int.random(in: 1...(oracle[source].count - offset), using: &random)
        let target = Int.random(in: 0...oracle[which].count, using: &random)
        _ = try fixture.library.copy(
          from: handles[source], at: Int64(offset), to: handles[which], at: Int64(target), count: Int64(count))
        let data = oracle[source][offset..<(offset + count)]
        let end = min(oracle[which].count, target + count)
        oracle[which].replaceSubrange(target..<end, with: data)
      case 6:
        guard oracle[which].count > 10 else { continue }
        let offset = Int.random(in: 0..<oracle[which].count, using: &random)
        let count = Int.random(in: 1...(oracle[which].count - offset), using: &random)
        try fixture.library.allocate(handles[which], Int64(offset)..<Int64(offset + count), .punchHole)
        oracle[which].replaceSubrange(offset..<(offset + count), with: [UInt8](repeating: 0, count: count))
      case 7:
        let size = Int.random(in: 0...oracle[which].count, using: &random)
        let ino = try fixture.ino(names[which])
        _ = try fixture.library.setAttributes(ino, .init(size: Int64(size)), handle: handles[which], .library)
        oracle[which] = Array(oracle[which].prefix(size))
      case 8:
        fixture.clock.advance(2)
        fixture.autosave()
      case 9:
        let ino = try fixture.ino(names[which])
        try fixture.library.locked {
          let inode = try fixture.library.inode(ino)
          try fixture.library.spill(inode, inode.own)
          if Bool.random(using: &random) { _ = try fixture.library.keep(inode, inode.own, cause: .autosave) }
        }
      case 10:
        try fixture.close(handles[which])
        handles[which] = try fixture.open(names[which])
      default:
        _ = try fixture.library.sweep()
      }
      try #require(
        try fixture.read(handles[which]) == oracle[which],
        "\(names[which]) at step \(step) of SHEAF_SEED=\(random.seed)")
    }
    for handle in handles { try fixture.close(handle) }
    for (name, bytes) in zip(names, oracle) { #expect(try fixture.read(name) == bytes, random.note) }
    // Another thread completes the saves that wait in the working file.
    fixture.library.completeSaves()
    // The session of one that was only emptied goes on for a moment.
    fixture.clock.advance(30)
    fixture.autosave()
    #expect(fixture.library.locked { fixture.library.sessions.unsavedBytes } == 0, random.note)
    #expect(fixture.library.locked { fixture.library.chunks.ownedCount == 0 }, random.note)
    _ = try fixture.library.compact { _ in }
    for (name, bytes) in zip(names, oracle) { #expect(try fixture.read(name) == bytes, random.note) }
    try fixture.finish()
  }

  @Test func whatIsUnsavedIsCountedRight() throws {
    let fixture = try LibraryFixture()
    func unsaved() -> Int { fixture.library.locked { fixture.library.sessions.unsavedBytes } }
    let handle = try fixture.open("a", O_RDWR | O_CREAT)
    try fixture.write(handle, [UInt8](repeating: 1, count: 1000))
    try fixture.write(handle, [UInt8](repeating: 2, count: 1000), at: 500)
    #expect(unsaved() == 1500)
    // Removed while it is open, and written on.
    try fixture.library.purge(fixture.path("a"), version: nil)
    try fixture.write(handle, [UInt8](repeating: 3, count: 1000), at: 5000)
    #expect(unsaved() == 2500)
    try fixture.close(handle)
    #expect(unsaved() == 0)
    // Never stored, and gone: nobody has it open whose close would count it.
    let made = try fixture.library.create(fixture.root, Array(".x.swp".utf8), mode: 0o600, flags: O_RDWR, .library)
    try fixture.write(made.handle, [UInt8](repeating: 1, count: 1000))
    fixture.library.locked {
      fixture.library.inodes[made.attributes.ino]?.own.openCount = 0
      fixture.library.files.remove(made.handle)
    }
    try fixture.unlink(".x.swp")
    #expect(unsaved() == 0)
    try fixture.finish()
  }

  /// Undone in the program, what was edited is as it was before; but that version is gone.
  @Test func contentsOfAVersionThatWasPurgedStayANewOne() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "one")
    let handle = try fixture.open("a")
    try fixture.write(handle, Array("two".utf8))
    fixture.clock.advance(2)
    fixture.autosave()
    #expect(try fixture.versions("a").map(\.number) == [1, 2])
    try fixture.library.purge(fixture.path("a"), version: 1)
    try fixture.write(handle, Array("one".utf8))
    try fixture.close(handle)
    #expect(try fixture.versions("a").map(\.number) == [2])
    #expect(try fixture.text("a") == "one" && fixture.version("a", 2) == "one")
    try fixture.finish()
  }

  @Test func anAutosaveComesThoughTheClockIsPutBack() throws {
    let fixture = try LibraryFixture()
    let handle = try fixture.open("a", O_RDWR | O_CREAT)
    try fixture.write(handle, Array("one".utf8))
    fixture.clock.advance(-3600)
    fixture.autosave()
    #expect(try fixture.version("a", 1) == "one")
    // So does the end of a long session.
    fixture.clock.advance(-3600)
    fixture.autosave()
    #expect(try fixture.versions("a").map(\.open) == [false])
    try fixture.close(handle)
    try fixture.finish()
  }
}
