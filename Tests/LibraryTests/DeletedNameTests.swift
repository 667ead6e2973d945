import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// The names of deleted documents in `.versions/`.
struct DeletedNameTests {
  private func save(_ fixture: LibraryFixture, _ folder: Int64, _ name: [UInt8]) throws {
    let made = try fixture.library.create(folder, name, mode: 0o644, flags: O_RDWR, .library)
    try fixture.write(made.handle, Array("text".utf8))
    try fixture.close(made.handle)
  }

  /// Whatever people call their documents, each name that is listed is one document's, and a look-up finds that one.
  @Test func everyNameThatIsListedIsFound() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.mkdir("t")
    let folder = try fixture.ino("t")
    let long = [UInt8](repeating: UInt8(ascii: "x"), count: 255)
    var names: [[UInt8]] =
      ["a", "a (2)", "a (2) (2)", "a~deleted~", "~deleted~", "b.md", "b (2).md"].map { Array($0.utf8) }
      + [
        long, Array(long.dropLast()), Array(long.dropLast(30)), long.dropLast(35) + [0xFF, 0xFE], [0xFF], [0xFF, 0xFE],
      ]
      + [long.dropLast(2) + [0xC3, 0xA4], long.dropLast() + [UInt8(ascii: "y")]]
    var deleted = 0
    for round in 0..<400 {
      let name = names.randomElement(using: &random)!
      if let entry = try library.locked({ try library.entry(folder, name) }) {
        try library.unlink(folder, name, .library)
        deleted += 1
        guard round % 5 == 0 else { continue }
        // What a later one might be called, made before it is.
        let mark = "~deleted~\(fixture.clock.now.nameText)"
        for ending in [mark, "\(mark) (2)", "\(mark)~\(entry.ino)", "\(mark)~\(entry.ino) (2)"] {
          names.append(Array(name.prefix(255 - ending.utf8.count)) + Array(ending.utf8))
        }
      } else {
        try save(fixture, folder, name)
      }
      if random.next() % 4 == 0 { fixture.clock.advance(1) }
    }
    try library.locked { try library.settleEvents(all: true) }
    let shown = try library.versionFolders(of: folder, .library)
    let present = try fixture.library.list(folder, after: 0, limit: 10_000, .library).count
    #expect(shown.count == present + deleted, random.note)
    #expect(Set(shown.map(\.name)).count == shown.count && Set(shown.map(\.item)).count == shown.count, random.note)
    for one in shown {
      #expect((1...255).contains(one.name.count), random.note)
      #expect(try library.versionFolder(of: folder, one.name, .library) == one, random.note)
    }
    for name in names where !shown.contains(where: { $0.name == name }) {
      expect(.notFound) { _ = try library.versionFolder(of: folder, name, .library) }
    }
    try fixture.finish()
  }

  /// Rows of deleted documents without contents.
  private func removeDestroyed(_ fixture: LibraryFixture, _ folder: Int64, _ names: [[UInt8]]) throws {
    let time = fixture.clock.now
    try fixture.library.store.write(.create) { transaction in
      let owner = try #require(try transaction.inode(folder)).owner
      for (index, name) in names.enumerated() {
        let ino = Int64(1_000_000 + index)
        try transaction.insert(
          ItemRow(id: ino, uuid: .timeOrdered(time), kind: .document, owner: owner, creator: owner, created: time))
        try transaction.insert(
          InodeRow(
            ino: ino, item: ino, owner: owner, parent: folder, name: name, mode: S_IFREG | 0o644, nlink: 0, uid: 0,
            gid: 0, time: time, content: .empty))
        try transaction.insert(DeletedRow(ino: ino, parent: folder, name: name, time: time, actor: owner))
      }
    }
  }

  /// A look-up reads the rows of one name, however many documents were deleted beside it, and however alike their names
  /// are.
  @Test func aLookUpReadsTheRowsOfOneName() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.mkdir("t")
    let folder = try fixture.ino("t")
    let long = String(repeating: "x", count: 240)
    let alike = (0..<1500).map { Array("\(long)\(10_000 + $0)".utf8) }
    try removeDestroyed(fixture, folder, alike + (0..<1500).map { Array("doc \($0)".utf8) })
    let isFew = { (work: StoreWork) in work.rows < 20 && work.steps < 500 }
    for name in [alike[700], Array("doc 7".utf8)] {
      let work = try StoreWork.least(of: library, until: isFew) {
        _ = try library.versionFolder(of: folder, name, .library)
      }
      #expect(isFew(work), "\(work)")
    }
    let absent = try StoreWork.least(of: library, until: { $0.rows < 50 && $0.steps < 2000 }) {
      for name in ["doc", "doc~deleted~2027-01-15T08-00-00Z", "doc~deleted~2027-01-15T08-00-00Z~1000007", long] {
        expect(.notFound) { _ = try library.versionFolder(of: folder, Array(name.utf8), .library) }
      }
    }
    #expect(absent.rows < 50 && absent.steps < 2000, "\(absent)")
    // Taken again, they all are called something else.
    for name in [alike[700], alike[701], alike[702]] { try save(fixture, folder, name) }
    let shown = try library.versionFolders(of: folder, .library)
    #expect(Set(shown.map(\.name)).count == 3003)
    for one in shown where one.item == 1_000_700 || one.item == 1_000_702 {
      #expect(String(decoding: one.name, as: UTF8.self).hasSuffix("Z~\(one.item)"))
      let work = try StoreWork.least(of: library, until: isFew) { () throws in
        #expect(try library.versionFolder(of: folder, one.name, .library) == one)
      }
      #expect(isFew(work), "\(work)")
    }
    try fixture.finish()
  }

  /// Each name is decided in a few steps, however many documents had it in the same second.
  @Test func documentsOfOneNameAreNamedInAFewStepsEach() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.mkdir("t")
    let folder = try fixture.ino("t")
    let name = Array("a".utf8)
    try removeDestroyed(fixture, folder, .init(repeating: name, count: 2000))
    let rows = try library.store.read {
      try $0.deleted(.documents, from: folder, since: Timestamp(nanoseconds: .min))
    }
    let names = DeletedNames(name, rows, isInUse: false)
    var asked = 0
    for index in rows.indices {
      _ = names.shownName(at: index) { _ in
        asked += 1
        return false
      }
    }
    #expect(asked == rows.count - 1)
    let shown = try library.versionFolders(of: folder, .library)
    #expect(shown.count == 2000 && Set(shown.map(\.name)).count == 2000)
    #expect(shown[0].name == name && shown[1].name == Array("a~deleted~\(fixture.clock.now.nameText)".utf8))
    for one in [shown[0], shown[1], shown[2], shown[1999]] {
      #expect(try library.versionFolder(of: folder, one.name, .library) == one)
    }
    try fixture.finish()
  }
}
