import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// `.deleted/`: what it shows, and renaming things out of it.
struct TrashTests {
  private func names(_ entries: [Library.TrashEntry]) -> [String] {
    entries.map { String(decoding: $0.name, as: UTF8.self) }
  }

  private func text(_ library: Library, _ ino: Int64, _ caller: Caller = .library) throws -> String {
    let reader = try library.openDeleted(ino, caller)
    var buffer = [UInt8](repeating: 0, count: 1000)
    let count = try buffer.withUnsafeMutableBytes { try library.read(reader, at: 0, into: $0) }
    return String(decoding: buffer.prefix(count), as: UTF8.self)
  }

  /// Recovers by a rename out of the trash of one folder into another.
  private func move(
    _ fixture: LibraryFixture, _ name: String, of folder: String, to target: String, by caller: Caller = .library
  ) throws {
    let (parent, newName) = try fixture.place(target)
    try fixture.library.recover(
      Array(name.utf8), deletedFrom: fixture.ino(folder), to: parent, newName, caller)
  }

  // MARK: - What it shows

  @Test func itShowsWhatWasDeletedThere() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.mkdir("t")
    for contents in ["one", "two", "three"] {
      try fixture.save("t/a", contents)
      try fixture.unlink("t/a")
      fixture.clock.advance(60)
    }
    try fixture.save("t/a", "present")
    let folder = try fixture.ino("t")
    let entries = try library.trash(of: folder, .library)
    // What is there now takes no name from what was deleted.
    let times = [-120, -180].map { Timestamp(seconds: fixture.clock.now.seconds + $0).nameText }
    #expect(names(entries) == ["a"] + times.map { "a~deleted~\($0)" })
    #expect(try entries.map { try text(library, $0.attributes.ino) } == ["three", "two", "one"])
    for entry in entries {
      #expect(try library.trashEntry(of: folder, entry.name, .library) == entry.attributes)
      #expect(entry.attributes.mode == S_IFREG | 0o444 && entry.attributes.nlink == 1)
    }
    #expect(entries.map(\.attributes.size) == [5, 3, 3])
    for name in ["b", "a~deleted~", "a~deleted~2020-01-01T00-00-00Z", ""] {
      expect(.notFound) { _ = try library.trashEntry(of: folder, Array(name.utf8), .library) }
    }
    expect(.nameTooLong) { _ = try library.trashEntry(of: folder, .init(repeating: 97, count: 256), .library) }
    // What is there is not among the deleted.
    let present = try fixture.ino("t/a")
    expect(.notFound) { _ = try library.attributes(deleted: present, .library) }
    expect(.notFound) { _ = try library.openDeleted(present, .library) }
    try fixture.finish()
  }

  @Test func aDeletedFolderIsWalked() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    for folder in ["t", "t/in", "t/in/deep"] { try fixture.mkdir(folder) }
    try fixture.save("t/in/deep/a", "one")
    _ = try library.make(
      .symbolicLink(target: Array("deep/a".utf8)), fixture.ino("t/in"), Array("link".utf8), mode: 0, .library)
    _ = try library.setXattr(
      fixture.ino("t/in/deep/a"), Array("user.color".utf8), Array("blue".utf8), .set, .library)
    let id = try library.itemStatus(fixture.path("t/in/deep/a")).id
    for path in ["t/in/deep/a", "t/in/link"] { try fixture.unlink(path) }
    for path in ["t/in/deep", "t/in"] { try fixture.rmdir(path) }
    let folder = try fixture.ino("t")
    let top = try #require(library.trash(of: folder, .library).first?.attributes)
    #expect(top.mode & S_IFMT == S_IFDIR && top.mode & 0o200 != 0)
    #expect(try library.trashPlace(of: top.ino, .library) == .trash(of: folder))
    let inside = try library.trash(of: top.ino, .library)
    #expect(Set(names(inside)) == ["deep", "link"])
    let link = try library.trashEntry(of: top.ino, Array("link".utf8), .library)
    #expect(try library.readLink(deleted: link.ino, .library) == Array("deep/a".utf8))
    expect(.invalid) { _ = try library.openDeleted(link.ino, .library) }
    let deep = try library.trashEntry(of: top.ino, Array("deep".utf8), .library)
    expect(.isDirectory) { _ = try library.openDeleted(deep.ino, .library) }
    #expect(try library.trashPlace(of: deep.ino, .library) == .deletedFolder(top.ino))
    let file = try library.trashEntry(of: deep.ino, Array("a".utf8), .library)
    #expect(try text(library, file.ino) == "one")
    #expect(try library.xattr(deleted: file.ino, Array("user.sheaf.id".utf8), .library) == Array(id.utf8))
    #expect(try library.xattr(deleted: file.ino, Array("user.color".utf8), .library) == Array("blue".utf8))
    let listed = try library.xattrNames(deleted: file.ino, listsComputed: false, .library)
    #expect(listed == [Array("user.color".utf8)])
    try fixture.finish()
  }

  /// Whoever reads a deleted document goes on with it after it was destroyed.
  @Test func whatIsReadOutlivesAPurge() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.save("a", "one")
    let ino = try fixture.ino("a")
    try fixture.unlink("a")
    let reader = try library.openDeleted(ino, .library)
    try library.purge(fixture.path("a"), version: nil)
    expect(.notFound) { _ = try library.attributes(deleted: ino, .library) }
    var buffer = [UInt8](repeating: 0, count: 10)
    #expect(try buffer.withUnsafeMutableBytes { try library.read(reader, at: 0, into: $0) } == 3)
    let open = try library.attributes(deleted: ino, openAs: reader, .library)
    #expect(open.size == 3 && open.nlink == 0)
    try fixture.finish()
  }

  // MARK: - Renaming out of it

  @Test func whatIsRenamedOutIsRecovered() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    for folder in ["t", "u"] { try fixture.mkdir(folder) }
    try fixture.save("t/a", "one")
    fixture.clock.advance(60)
    try fixture.save("t/a", "two")
    let id = try library.itemStatus(fixture.path("t/a")).id
    try fixture.unlink("t/a")
    try library.settleEventsInSteps()
    let last = library.lastEvent
    fixture.clock.advance(60)
    try move(fixture, "a", of: "t", to: "u/b")
    #expect(try fixture.names("u") == ["b"] && fixture.names("t") == [] && fixture.text("u/b") == "two")
    #expect(try library.itemStatus(fixture.path("u/b")).id == id)
    #expect(try fixture.versions("u/b").map(\.number) == [1, 2])
    #expect(try library.trash(of: fixture.ino("t"), .library) == [])
    let events = try library.events(after: last, limit: 10, for: fixture.account).events
    #expect(events.map(\.type) == [.created] && events.first?.subject == id)
    #expect(events.first?.data.item.path == "u/b" && events.first?.data.contentCount == 0)
    expect(.notFound) { try move(fixture, "a", of: "t", to: "u/c") }
    try fixture.finish()
  }

  @Test func aFolderComesBackWithWhatWentWithItWhereverItGoes() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    for folder in ["t", "t/in", "u"] { try fixture.mkdir(folder) }
    try fixture.save("t/in/early", "early")
    try fixture.unlink("t/in/early")
    fixture.clock.advance(3600)
    for number in 0..<40 { try fixture.save("t/in/\(number)", "\(number)") }
    for number in 0..<40 { try fixture.unlink("t/in/\(number)") }
    try fixture.rmdir("t/in")
    try library.settleEventsInSteps()
    let last = library.lastEvent
    let ino = try #require(library.trash(of: fixture.ino("t"), .library).first?.attributes.ino)
    // One of it comes back alone, without the folder.
    try move(fixture, "7", ofDeleted: ino, to: "u/seven")
    #expect(try fixture.text("u/seven") == "7" && fixture.names("t") == [])
    try move(fixture, "in", of: "t", to: "u/out")
    #expect(try fixture.names("u") == ["out", "seven"])
    #expect(try Set(fixture.names("u/out")) == Set((0..<40).filter { $0 != 7 }.map(String.init)))
    #expect(try fixture.text("u/out/13") == "13")
    #expect(try names(library.trash(of: fixture.ino("u/out"), .library)) == ["early"])
    let events = try library.events(after: last, limit: 100, for: fixture.account).events
    #expect(events.map(\.data.item.path) == ["u/seven", "u/out"] && events.last?.data.contentCount == 39)
    try fixture.finish()
  }

  private func move(_ fixture: LibraryFixture, _ name: String, ofDeleted folder: Int64, to target: String) throws {
    let (parent, newName) = try fixture.place(target)
    try fixture.library.recover(Array(name.utf8), deletedFrom: folder, to: parent, newName, .library)
  }

  @Test func aRenameOutNeverTakesAName() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    for folder in ["t", "t/full"] { try fixture.mkdir(folder) }
    for name in ["a", "b", "t/full/x"] { try fixture.save(name, name) }
    try fixture.unlink("a")
    for target in ["b", "t", "t/full", ".versions", ".deleted"] {
      expect(.exists) { try move(fixture, "a", of: "", to: target) }
    }
    expect(.nameTooLong) { try move(fixture, "a", of: "", to: String(repeating: "x", count: 256)) }
    let file = try fixture.ino("b")
    expect(.notDirectory) {
      try library.recover(Array("a".utf8), deletedFrom: fixture.root, to: file, Array("c".utf8), .library)
    }
    let bob = try AccountHandle("bob@example.com")
    _ = try library.addAccount(bob, name: nil)
    expect(.crossDevice) {
      try library.recover(
        Array("a".utf8), deletedFrom: fixture.root, to: library.documents(of: bob), Array("a".utf8), .library)
    }
    #expect(try names(library.trash(of: fixture.root, .library)) == ["a"] && fixture.text("b") == "b")
    // Permission bits are those of any rename.
    let folder = try fixture.ino("t")
    _ = try library.setAttributes(fixture.root, .init(mode: 0o777), handle: nil, .library)
    _ = try library.setAttributes(folder, .init(mode: 0o755), handle: nil, .library)
    let user = Caller(uid: 1234, gid: 1234, thread: 0, door: 0) { [] }
    expect(.accessDenied) { try move(fixture, "a", of: "", to: "t/a", by: user) }
    _ = try library.setAttributes(fixture.root, .init(mode: 0o1777), handle: nil, .library)
    expect(.notPermitted) { try move(fixture, "a", of: "", to: "c", by: user) }
    _ = try library.setAttributes(fixture.root, .init(mode: 0o777), handle: nil, .library)
    try move(fixture, "a", of: "", to: "c", by: user)
    #expect(try fixture.text("c") == "a")
    try fixture.finish()
  }

  @Test func nobodyMakesItsName() throws {
    try People.story { people in
      try people.as(.alice) { alice in
        try alice.save("Documents/a", "a")
        try alice.mkdir("Documents/t")
        for name in [".versions", ".deleted"] {
          expect(.exists) { try alice.mkdir("Documents/t/\(name)") }
          expect(.exists) { try alice.symlink("a", "Documents/t/\(name)") }
          expect(.exists) { try alice.link("Documents/a", "Documents/t/\(name)") }
          expect(.exists) { try alice.rename("Documents/a", "Documents/t/\(name)") }
          expect(.exists) { _ = try alice.open("Documents/t/\(name)", O_CREAT | O_EXCL | O_RDWR) }
        }
        #expect(try alice.names("Documents/t") == [])
      }
      try people.share("Documents/t", with: [(.bob, .readWrite)])
      try people.as(.bob) { bob in
        expect(.exists) { try bob.renameEntry(.alice, "t", ".deleted") }
      }
    }
  }

  /// A folder that people called so before goes before the trash, can be renamed, and what comes back never has the
  /// name.
  @Test func aFolderOfThatNameFromBeforeStays() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.mkdir("old")
    try fixture.save("old/a", "one")
    let ino = try fixture.ino("old")
    let (name, root) = (Library.trashName, try fixture.root)
    func call(_ name: [UInt8], was former: [UInt8]) throws {
      try library.locked {
        try library.makeChange(.rename) { change in
          let entry = try #require(try library.entry(root, former))
          try change.rows.move(
            entry,
            to: EntryRow(
              parent: root, hash: library.nameHash(name), name: name, ino: ino, isExtra: false,
              since: fixture.clock.now))
          try change.rows.setPlace(root, name, time: fixture.clock.now, ino: ino)
          change.whenRecorded { library.inodes[ino]?.row.name = name }
        }
      }
    }
    #expect(try !library.hasOwnTrashName(fixture.root))
    try call(name, was: Array("old".utf8))
    #expect(try library.hasOwnTrashName(fixture.root) && fixture.text(".deleted/a") == "one")
    try fixture.unlink(".deleted/a")
    try fixture.rmdir(".deleted")
    #expect(try names(library.trash(of: fixture.root, .library)) == [".deleted"])
    #expect(try library.recover(fixture.path(".deleted"), id: nil) { _ in }.first == "Documents/.deleted (2)")
    try fixture.finish()
  }

  // MARK: - What others share

  @Test func participantsSeeWhatWasDeletedSinceTheyCouldSeeIt() throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { alice in
        for folder in ["t", "t/sub", "private"] { try alice.mkdir("Documents/\(folder)") }
        for path in ["t/before", "t/sub/before", "t/after", "t/sub/after", "private/x"] {
          try alice.save("Documents/\(path)", path)
        }
        for path in ["t/before", "t/sub/before"] { try alice.unlink("Documents/\(path)") }
      }
      people.clock.advance(60)
      try people.share("Documents/t", with: [(.bob, .readWrite), (.carol, .readOnly)])
      people.clock.advance(60)
      try people.as(.alice) { alice in
        for path in ["t/after", "t/sub/after"] { try alice.unlink("Documents/\(path)") }
        try alice.rmdir("Documents/t/sub")
      }
      let folder = try people.as(.alice) { try $0.inode("Documents/t") }
      let alice = try people.as(.alice) { try $0.caller }
      let all = try library.trash(of: folder, alice)
      #expect(Set(names(all)) == ["before", "after", "sub"])
      let before = try library.trashEntry(of: folder, Array("before".utf8), alice)
      let after = try library.trashEntry(of: folder, Array("after".utf8), alice)
      let sub = try library.trashEntry(of: folder, Array("sub".utf8), alice)
      for who in [People.Name.bob, .carol] {
        let caller = try people.as(who) { try $0.caller }
        #expect(try Set(names(library.trash(of: folder, caller))) == ["after", "sub"])
        #expect(try names(library.trash(of: sub.ino, caller)) == ["after"])
        #expect(try text(library, after.ino, caller) == "t/after")
        expect(.notFound) { _ = try library.trashEntry(of: folder, Array("before".utf8), caller) }
        expect(.accessDenied) { _ = try library.attributes(deleted: before.ino, caller) }
        expect(.accessDenied) { _ = try library.openDeleted(before.ino, caller) }
        expect(.accessDenied) { _ = try library.xattr(deleted: before.ino, Array("user.sheaf.id".utf8), caller) }
        #expect(try library.sees(deleted: after.ino, library.number(of: who.handle)))
        #expect(try !library.sees(deleted: before.ino, library.number(of: who.handle)))
        expect(.accessDenied) { _ = try library.trash(of: people.fixture.root, caller) }
      }
      let dan = try people.as(.dan) { try $0.caller }
      expect(.accessDenied) { _ = try library.trash(of: folder, dan) }
      expect(.accessDenied) { _ = try library.attributes(deleted: after.ino, dan) }
      // Who may only read recovers nothing; who may write does, in the share.
      let (bob, carol) = try (people.as(.bob) { try $0.caller }, people.as(.carol) { try $0.caller })
      let sheet = Array("sheet".utf8)
      expect(.accessDenied) {
        try library.recover(Array("after".utf8), deletedFrom: folder, to: folder, sheet, carol)
      }
      expect(.accessDenied) {
        try library.recover(Array("after".utf8), deletedFrom: folder, to: people.fixture.root, sheet, bob)
      }
      expect(.crossDevice) {
        try library.recover(
          Array("after".utf8), deletedFrom: folder, to: library.documents(of: People.Name.bob.handle), sheet, bob)
      }
      try library.recover(Array("after".utf8), deletedFrom: folder, to: folder, sheet, bob)
      #expect(try people.as(.carol) { try $0.read("Shared/alice@example.com/t/sheet") } == "t/after")
      #expect(try people.as(.bob) { try $0.versions("Shared/alice@example.com/t/sheet").count } == 1)
    }
  }

  /// What is renamed out of a private trash into a share is seen there from now on, and what leaves a share by that is
  /// gone for its people, in open files too.
  @Test func aRenameOutAcrossABorderEntersOrLeaves() throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { alice in
        for folder in ["t", "private", "private/f"] { try alice.mkdir("Documents/\(folder)") }
      }
      try people.share("Documents/t", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.as(.alice) { alice in
        for (path, text) in [("private/x", "secret"), ("private/f/y", "secret"), ("t/z", "shared")] {
          try alice.save("Documents/\(path)", text)
        }
        people.clock.advance(3600)
        try alice.save("Documents/private/x", "fit to be seen")
        try alice.save("Documents/private/f/y", "fit to be seen")
        for path in ["private/x", "private/f/y", "t/z"] { try alice.unlink("Documents/\(path)") }
        try alice.rmdir("Documents/private/f")
      }
      people.clock.advance(60)
      let (alice, bob) = try (people.as(.alice) { try $0.caller }, people.as(.bob) { try $0.caller })
      let shared = try people.as(.alice) { try $0.inode("Documents/t") }
      let hidden = try people.as(.alice) { try $0.inode("Documents/private") }
      for name in ["x", "f"] {
        try library.recover(Array(name.utf8), deletedFrom: hidden, to: shared, Array(name.utf8), alice)
      }
      #expect(try people.as(.alice) { try $0.versions("Documents/t/x").count } == 2)
      try people.as(.bob) { (bob: Person) throws in
        for path in ["x", "f/y"] {
          #expect(try bob.read("Shared/alice@example.com/t/\(path)") == "fit to be seen")
          #expect(try bob.versions("Shared/alice@example.com/t/\(path)").map(\.number) == [2])
        }
      }
      let ino = try library.trashEntry(of: shared, Array("z".utf8), bob).ino
      let reader = try library.openDeleted(ino, bob)
      try library.recover(Array("z".utf8), deletedFrom: shared, to: hidden, Array("z".utf8), alice)
      var buffer = [UInt8](repeating: 0, count: 10)
      expect(.accessDenied) { _ = try buffer.withUnsafeMutableBytes { try library.read(reader, at: 0, into: $0) } }
      expect(.notFound) { _ = try library.attributes(deleted: ino, bob) }
      #expect(try people.as(.alice) { try $0.read("Documents/private/z") } == "shared")
    }
  }

  // MARK: - Bounds and chance

  /// However much was deleted from a folder, it is read in steps, with the lock free in between, and a look-up reads a
  /// few rows.
  @Test func aLargeTrashIsReadInSteps() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.mkdir("t")
    let folder = try fixture.ino("t")
    let count = 4 * Library.listingStep
    for number in 0..<count {
      _ = try library.make(.file, folder, Array("f\(number)".utf8), mode: 0o644, .library)
    }
    for number in 0..<count { try library.unlink(folder, Array("f\(number)".utf8), .library) }
    var listed = 0
    let read = try StoreWork.of(library) { listed = try library.trash(of: folder, .library).count }
    #expect(listed == count)
    // The names are read beside the lock; with it held, each row is looked at by its key alone.
    #expect(read.steps < 60 * count, "\(read)")
    let isFew = { (work: StoreWork) in work.rows < 20 && work.steps < 500 }
    let found = try StoreWork.least(of: library, until: isFew) { () throws in
      _ = try library.trashEntry(of: folder, Array("f17".utf8), .library)
    }
    #expect(isFew(found), "\(found)")
    try fixture.finish()
  }

  /// Random actions, and a model of what was deleted from where.
  @Test func theTrashIsWhatAModelSays() throws {
    struct Gone {
      let folder: Int64
      let name: [UInt8]
      let text: String
    }
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let library = fixture.library
    let folders = ["p", "q"]
    for folder in folders { try fixture.mkdir(folder) }
    let long = [UInt8](repeating: 120, count: 255)
    let names: [[UInt8]] = [Array("a".utf8), Array("b.txt".utf8), [0xFF, 0xFE], long, long.dropLast() + [0xC3]]
    var gone: [Int64: Gone] = [:]
    for round in 0..<300 {
      let folder = try fixture.ino(folders.randomElement(using: &random)!)
      let name = names.randomElement(using: &random)!
      let entry = try library.locked { try library.entry(folder, name) }
      if let entry, random.next() % 3 > 0 {
        let handle = try library.open(entry.ino, flags: O_RDONLY, .library)
        let text = String(decoding: try fixture.read(handle), as: UTF8.self)
        gone[entry.ino] = Gone(folder: folder, name: name, text: text)
        try library.release(handle)
        try library.unlink(folder, name, .library)
      } else if entry == nil, random.next() % 2 > 0 {
        let made = try library.create(folder, name, mode: 0o644, flags: O_RDWR, .library)
        try fixture.write(made.handle, Array("round \(round)".utf8))
        try fixture.close(made.handle)
      } else {
        let source = try fixture.ino(folders.randomElement(using: &random)!)
        guard let shown = try library.trash(of: source, .library).randomElement(using: &random) else { continue }
        if entry == nil {
          try library.recover(shown.name, deletedFrom: source, to: folder, name, .library)
          let text = gone.removeValue(forKey: shown.attributes.ino)?.text
          let back = try #require(text, random.note)
          #expect(try library.lookup(folder, name, .library).ino == shown.attributes.ino, random.note)
          let handle = try library.open(shown.attributes.ino, flags: O_RDONLY, .library)
          #expect(try fixture.read(handle) == Array(back.utf8), random.note)
          try library.release(handle)
        } else {
          expect(.exists) { try library.recover(shown.name, deletedFrom: source, to: folder, name, .library) }
        }
      }
      if random.next() % 3 == 0 { fixture.clock.advance(Int64(random.next() % 30)) }
    }
    for path in folders {
      let folder = try fixture.ino(path)
      let shown = try library.trash(of: folder, .library)
      let expected = gone.filter { $0.value.folder == folder }
      #expect(Set(shown.map(\.attributes.ino)) == Set(expected.keys) && shown.count == expected.count, random.note)
      #expect(Set(shown.map(\.name)).count == shown.count, random.note)
      for entry in shown {
        let one = try #require(expected[entry.attributes.ino], random.note)
        #expect((1...255).contains(entry.name.count), random.note)
        #expect(entry.name == one.name || entry.name.starts(with: one.name.prefix(200)), random.note)
        #expect(try library.trashEntry(of: folder, entry.name, .library) == entry.attributes, random.note)
        #expect(try text(library, entry.attributes.ino) == one.text, random.note)
      }
    }
    try fixture.finish()
  }
}
