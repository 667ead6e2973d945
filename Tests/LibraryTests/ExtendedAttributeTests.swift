import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// The room that extended attributes may take, and what they cost whoever does something else with the file.
struct ExtendedAttributeTests {
  private static let large = 60_000
  private static let program = Caller(uid: 0, gid: 0, thread: getpid(), door: 0) { [] }

  private func name(_ text: String) -> [UInt8] { Array("user.\(text)".utf8) }

  private func set(_ fixture: LibraryFixture, _ file: String, _ text: String, _ value: [UInt8]) throws {
    try fixture.library.setXattr(fixture.ino(file), name(text), value, .set, .library)
  }

  private func names(_ fixture: LibraryFixture, _ file: String) throws -> [[UInt8]] {
    try fixture.library.xattrNames(fixture.ino(file), listsComputed: false, .library)
  }

  /// Attributes of an older library, whose values had no limit together: 3.6 MB of them.
  private func load(_ fixture: LibraryFixture, _ file: String, _ letter: String = "l") throws {
    let ino = try fixture.ino(file)
    try fixture.library.store.write(.setXattr) { transaction in
      for number in 0..<60 {
        try transaction.setXattr(ino, name("\(letter)\(10 + number)"), .init(repeating: 7, count: Self.large))
      }
    }
    fixture.library.locked { fixture.library.inodes[ino]?.xattrSpace = nil }
  }

  private func bytes(_ fixture: LibraryFixture, _ file: String) throws -> Int {
    let ino = try fixture.ino(file)
    return try fixture.library.store.read { try $0.xattrSpace(ino).bytes }
  }

  @Test func listingReadsNamesAlone() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "text")
    try load(fixture, "a")
    let ino = try fixture.ino("a")
    let listing = try StoreWork.of(fixture.library) { () throws in
      #expect(try fixture.library.xattrNames(ino, listsComputed: false, .library).count == 60)
    }
    #expect(listing.bytes < 2000, "\(listing)")
    // What the kernel asks for before it writes.
    let asking = try StoreWork.of(fixture.library) {
      expect(.noAttribute) { _ = try fixture.library.xattr(ino, Array("security.capability".utf8), .library) }
    }
    #expect(asking.bytes < 100 && asking.rows < 3, "\(asking)")
    try fixture.finish()
  }

  /// Files take each other's places without anybody reading what their attributes hold.
  @Test func replacingAndRemovingReadsNoValues() throws {
    let fixture = try LibraryFixture()
    let (library, root) = (fixture.library, try fixture.root)
    func save(_ name: String) throws {
      let made = try library.create(root, Array(name.utf8), mode: 0o644, flags: O_RDWR, Self.program)
      try fixture.write(made.handle, Array("new".utf8))
      try fixture.close(made.handle)
    }
    func expectNoValues(_ what: Comment, _ body: () throws -> Void) throws {
      let work = try StoreWork.of(library, body)
      #expect(work.bytes < 20_000, "\(what): \(work)")
    }
    for document in ["renamed", "exchanged", "remade", "removed"] {
      try fixture.save(document, "text")
      try load(fixture, document)
      fixture.clock.advance(60)
    }
    try save("renamed.tmp")
    try set(fixture, "renamed.tmp", "own", [1])
    try expectNoValues("a rename") {
      try library.rename(root, Array("renamed.tmp".utf8), to: root, Array("renamed".utf8), .replace, Self.program)
    }
    try save("exchanged.tmp")
    try expectNoValues("an exchange") {
      try library.rename(root, Array("exchanged.tmp".utf8), to: root, Array("exchanged".utf8), .exchange, Self.program)
    }
    try expectNoValues("an unlink") { try library.unlink(root, Array("remade".utf8), Self.program) }
    try expectNoValues("a document made anew") { try save("remade") }
    try expectNoValues("a removal") { try library.unlink(root, Array("removed".utf8), .library) }
    // An established document becomes another one: what it was keeps its attributes among the deleted.
    try fixture.save("old", "text")
    try load(fixture, "old", "o")
    try fixture.save("over", "text")
    try load(fixture, "over")
    fixture.clock.advance(60)
    try expectNoValues("a rename that leaves a deleted document") {
      try library.rename(root, Array("old".utf8), to: root, Array("over".utf8), .replace, Self.program)
    }
    // With the one of the new file there is room for all but one.
    #expect(try names(fixture, "renamed").count == 60 && names(fixture, "exchanged").count == 60)
    #expect(try names(fixture, "remade").count == 60)
    #expect(try library.xattr(fixture.ino("remade"), name("l69"), .library) == .init(repeating: 7, count: Self.large))
    #expect(try library.xattr(fixture.ino("renamed"), name("own"), .library) == [1])
    try fixture.finish()
  }

  /// A file without a name is kept in memory: what it held stays for who has it open, up to the limit.
  @Test func aFileWithoutANameKeepsItsAttributesForWhoHasItOpen() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    let made = try library.create(fixture.root, Array("t.tmp".utf8), mode: 0o644, flags: O_RDWR, Self.program)
    let ino = made.attributes.ino
    try set(fixture, "t.tmp", "a", [1, 2, 3])
    try load(fixture, "t.tmp")
    try library.unlink(fixture.root, Array("t.tmp".utf8), Self.program)
    #expect(library.locked { library.inodes[ino]?.isOrphan ?? false })
    #expect(try library.xattr(ino, name("a"), .library) == [1, 2, 3])
    let kept = try library.xattrNames(ino, listsComputed: false, .library)
    #expect((2...18).contains(kept.count))
    expect(.noSpace) {
      for number in 0..<20 {
        try library.setXattr(ino, name("n\(number)"), .init(repeating: 1, count: Self.large), .set, .library)
      }
    }
    try library.removeXattr(ino, kept[1], .library)
    try library.setXattr(ino, name("b"), .init(repeating: 1, count: 50_000), .set, .library)
    try fixture.close(made.handle)
    try fixture.finish()
  }

  @Test func namesAndValuesHaveALimitTogether() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        try alice.mkdir("Documents/team")
        try alice.save("Documents/team/plan", "text")
      }
      try people.share("Documents/team", with: [(.bob, .readWrite)])
      func fill(_ person: Person, _ path: String, _ letter: String) throws -> Int {
        let ino = try person.inode(path)
        for number in 0..<100 {
          do {
            try person.library.setXattr(
              ino, name("\(letter)\(number)"), .init(repeating: 1, count: 65_536), .set, person.caller)
          } catch let error as SheafError where error.kind == .noSpace {
            return number
          }
        }
        Issue.record("there is no limit")
        return 100
      }
      let shared = "Shared/alice@example.com/team/plan"
      try people.as(.bob) { (bob) throws in
        #expect(try fill(bob, shared, "b") == 7)
        // A value can be replaced by one that is no longer.
        let ino = try bob.inode(shared)
        try bob.library.setXattr(ino, name("b0"), .init(repeating: 2, count: 65_536), .set, bob.caller)
        try bob.library.setXattr(ino, name("b1"), [], .set, bob.caller)
        try bob.library.setXattr(ino, name("b2"), .init(repeating: 2, count: 65_536), .replace, bob.caller)
      }
      try people.as(.alice) { (alice) throws in
        let path = "Documents/team/plan"
        #expect(try fill(alice, path, "a") == 9)
        try alice.library.removeXattr(alice.inode(path), name("a0"), alice.caller)
        try alice.library.setXattr(
          alice.inode(path), name("a9"), .init(repeating: 1, count: 65_536), .set, alice.caller)
      }
      try people.as(.bob) { (bob) throws in
        expect(.noSpace) { try bob.library.setXattr(bob.inode(shared), name("b9"), [], .set, bob.caller) }
      }
    }
  }

  /// What an older library holds stays: it can be read, replaced and removed, and does not grow.
  @Test func moreThanTheLimitStaysReadable() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.save("a", "text")
    try load(fixture, "a")
    let before = try bytes(fixture, "a")
    expect(.noSpace) { try set(fixture, "a", "new", []) }
    try set(fixture, "a", "l10", .init(repeating: 8, count: Self.large))
    #expect(try library.xattr(fixture.ino("a"), name("l10"), .library) == .init(repeating: 8, count: Self.large))
    try library.removeXattr(fixture.ino("a"), name("l11"), .library)
    try set(fixture, "a", "l12", [1])
    #expect(try bytes(fixture, "a") < before - Self.large)
    #expect(try names(fixture, "a").count == 59)
    try fixture.finish()
  }

  /// A document keeps its attributes through every save, and gets no more than it may have from the files that replace
  /// it.
  @Test func aDocumentThatIsReplacedGetsNoMoreThanItMayHave() throws {
    let fixture = try LibraryFixture()
    let (library, root) = (fixture.library, try fixture.root)
    try fixture.save("a", "text")
    let id = try library.locked { try library.inode(fixture.library.entry(root, Array("a".utf8))!.ino).row.item }
    for round in 0..<4 {
      fixture.clock.advance(60)
      let made = try library.create(root, Array("a.tmp".utf8), mode: 0o644, flags: O_RDWR, Self.program)
      try fixture.write(made.handle, Array("text \(round)".utf8))
      try fixture.close(made.handle)
      for number in 0..<15 {
        try library.setXattr(
          made.attributes.ino, name("\(9 - round)-\(number)"), .init(repeating: UInt8(round), count: 65_536), .set,
          .library)
      }
      try library.rename(root, Array("a.tmp".utf8), to: root, Array("a".utf8), .replace, Self.program)
      let ino = try fixture.ino("a")
      #expect(try library.locked { try library.inode(ino).row.item } == id)
      #expect(try bytes(fixture, "a") <= 1 << 20)
      // Those of the new file are all there.
      #expect(try names(fixture, "a").count { $0.starts(with: name("\(9 - round)-")) } == 15)
      #expect(try names(fixture, "a").count == 15)
      let space = library.locked { library.inodes[ino]?.xattrSpace }
      let counted = try library.store.read { try $0.xattrSpace(ino) }
      #expect(space == nil || space == counted)
    }
    // Of an older library's it keeps all.
    try load(fixture, "a")
    let before = try bytes(fixture, "a")
    try fixture.save("a.tmp", "text")
    try library.rename(root, Array("a.tmp".utf8), to: root, Array("a".utf8), .replace, Self.program)
    #expect(try bytes(fixture, "a") == before)
    try fixture.finish()
  }

  /// The thousandth name costs as much as the first.
  @Test func settingOneOfManyCountsNone() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "text")
    let ino = try fixture.ino("a")
    var largest = StoreWork?.none
    for number in 0..<3000 {
      let body = { try fixture.library.setXattr(ino, name("\(number)"), [], .set, .library) }
      if number % 1000 == 999 {
        let work = try StoreWork.of(fixture.library, body)
        #expect(work.rows < 5 && work.steps < 200, "\(number): \(work)")
        largest = work
      } else {
        try body()
      }
    }
    #expect(largest != nil)
    let (known, counted) = try fixture.library.locked {
      (fixture.library.inodes[ino]?.xattrSpace, try fixture.library.read { try $0.xattrSpace(ino) })
    }
    #expect(known == counted && counted.count == 3000)
    try fixture.finish()
  }
}
