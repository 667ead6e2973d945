import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// Restoring, labelling, reading earlier versions.
struct HistoryTests {
  @Test func restoringMakesANewVersion() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "one")
    try fixture.save("a", "two")
    let made = try fixture.library.restore(fixture.path("a"), version: 1)
    #expect(made?.number == 3 && made?.cause == .restore && made?.base == 2)
    #expect(try fixture.text("a") == "one")
    #expect(try fixture.library.restore(fixture.path("a"), version: 1) == nil)
    #expect(try fixture.versions("a").count == 3)
    #expect { try fixture.library.restore(fixture.path("a"), version: 9) } throws: {
      ($0 as? SheafError)?.kind == .notFound
    }
    try fixture.finish()
  }

  @Test func restoringUnderAnOpenHandle() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "one")
    let handle = try fixture.open("a")
    try fixture.write(handle, Array("unsaved".utf8))
    _ = try fixture.library.restore(fixture.path("a"), version: 1)
    // What was not saved yet is a version before.
    #expect(try fixture.versions("a").map(\.number) == [1, 2, 3])
    #expect(try fixture.version("a", 2) == "unsaved")
    #expect(try fixture.read(handle) == Array("one".utf8))
    try fixture.write(handle, Array("!".utf8), at: 3)
    try fixture.close(handle)
    #expect(try fixture.text("a") == "one!")
    try fixture.finish()
  }

  @Test func labelsAreUniqueAndMove() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "one")
    try fixture.save("a", "two")
    try fixture.save("b", "one")
    #expect(try fixture.library.label(fixture.path("a"), name: "final", version: 1).label == "final")
    #expect(try fixture.library.label(fixture.path("b"), name: "final", version: nil).number == 1)
    #expect(try fixture.library.label(fixture.path("a"), name: "final", version: nil).number == 2)
    #expect(try fixture.versions("a").map(\.label) == [nil, "final"])
    for bad in ["", "a\nb", String(repeating: "x", count: 201)] {
      #expect { try fixture.library.label(fixture.path("a"), name: bad, version: nil) } throws: {
        ($0 as? SheafError)?.kind == .invalid
      }
    }
    try fixture.finish()
  }

  @Test func aLabelOnWhatIsBeingWritten() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "one")
    let handle = try fixture.open("a")
    try fixture.write(handle, Array("draft".utf8))
    #expect(try fixture.library.label(fixture.path("a"), name: "draft", version: nil).number == 2)
    try fixture.write(handle, Array("DRAFT".utf8))
    try fixture.close(handle)
    // What goes on being written is another version than the one that was meant.
    #expect(try fixture.versions("a").map(\.label) == [nil, "draft", nil])
    #expect(try fixture.version("a", 2) == "draft" && fixture.version("a", 3) == "DRAFT")
    try fixture.finish()
  }

  @Test func aReaderKeepsItsVersionThroughPurgeAndSweep() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let bytes = random.bytes(1_000_000)
    try fixture.save("a", bytes)
    try fixture.save("a", "small")
    let ino = try fixture.ino("a")
    let item = try #require(try fixture.library.locked { try fixture.library.inode(ino).row.item })
    var reader: VersionReader? = try fixture.library.openVersion(of: item, number: 1, .library)
    let before = try fixture.chunkCount
    try fixture.library.purge(fixture.path("a"), version: 1)
    var buffer = [UInt8](repeating: 0, count: bytes.count)
    let count = try buffer.withUnsafeMutableBytes { try fixture.library.read(#require(reader), at: 0, into: $0) }
    #expect(count == bytes.count && buffer == bytes, random.note)
    reader = nil
    _ = try fixture.library.sweep()
    #expect(try fixture.chunkCount < before)
    #expect(throws: SheafError.self) { try fixture.library.openVersion(of: item, number: 1, .library) }
    try fixture.finish()
  }

  @Test func versionsAsFiles() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("plans")
    try fixture.save("plans/a.md", "one")
    try fixture.save("plans/a.md", "three")
    let folder = try fixture.ino("plans")
    let shown = try fixture.library.versionFolders(of: folder, .library)
    #expect(shown.map(\.name) == [Array("a.md".utf8)])
    let files = try fixture.library.versionFiles(of: shown[0].item, .library)
    #expect(files.map(\.size) == [3, 5])
    let stamp = fixture.clock.now.nameText
    #expect(String(decoding: files[0].name, as: UTF8.self) == "0001~\(stamp)~alice@example.com.md")
    try fixture.unlink("plans/a.md")
    #expect(try fixture.library.versionFolder(of: folder, Array("a.md".utf8), .library).item == shown[0].item)
    try fixture.save("plans/a.md", "another")
    let both = try fixture.library.versionFolders(of: folder, .library).map { String(decoding: $0.name, as: UTF8.self) }
    #expect(both == ["a.md", "a.md~deleted~\(stamp)"])
    #expect(try fixture.library.versionFolder(of: folder, Array(both[1].utf8), .library).item == shown[0].item)
    // Another one of that name in the same second is not listed twice.
    try fixture.unlink("plans/a.md")
    try fixture.save("plans/a.md", "third")
    let names = try fixture.library.versionFolders(of: folder, .library).map(\.name)
    #expect(Set(names).count == names.count)
    try fixture.finish()
  }
}
