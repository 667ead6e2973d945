import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// Temporary files of programs beside a document that is shared by itself (BesideDocuments.swift).
struct TemporaryFileTests {
  /// Numbers of processes that there are none of.
  private static let (editor, other): (Int32, Int32) = (5_000_001, 5_000_002)

  /// A document of alice's that bob may edit and carol may read, each by itself.
  private func story(_ body: (People) throws -> Void) throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/doc", "old") }
      people.clock.advance(60)
      try people.share("Documents/doc", with: [(.bob, .readWrite), (.carol, .readOnly)])
      people.clock.advance(60)
      people.library.keepUp()
      try body(people)
    }
  }

  private func counts(_ people: People) throws -> [Int] {
    let facts = try people.library.counts()
    return [facts.documents, facts.versions]
  }

  private func lastEvents(_ people: People, after number: Int64) throws -> [String] {
    people.clock.advance(60)
    people.library.keepUp()
    return try people.library.events(after: number, limit: 100, for: People.Name.alice.handle).events.map {
      "\($0.type.rawValue) \($0.data.item.path)"
    }
  }

  /// Others would take up half a transaction without it.
  @Test(arguments: ["-journal", "-wal", "-shm"]) func aDatabaseHasNothingBesideItself(_ ending: String) throws {
    try story { people in
      try people.as(.bob, process: Self.editor) { (bob) throws in
        expect(.accessDenied) { try bob.create(.alice, "doc" + ending, "x") }
        try bob.create(.alice, "other" + ending, "x")
        expect(.accessDenied) { try bob.renameEntry(.alice, "other" + ending, "doc" + ending) }
        #expect(try bob.entries(.alice) == ["doc", "other" + ending])
      }
    }
  }

  @Test func renamedOverTheDocumentItIsItsNextVersion() throws {
    try story { people in
      let id = try people.as(.alice) { try $0.attribute("id", "Documents/doc") }
      let before = try counts(people)
      let number = people.library.lastEvent
      try people.as(.bob, process: Self.editor) { (bob) throws in
        try bob.create(.alice, "doc.tmp", "new")
        #expect(try bob.readEntry(.alice, "doc.tmp") == "new")
        #expect(try bob.entries(.alice) == ["doc", "doc.tmp"])
      }
      // Nobody else sees it, and it is nothing.
      #expect(try counts(people) == before)
      #expect(try people.as(.alice) { try $0.names("Documents") } == ["doc"])
      #expect(try people.as(.carol) { try $0.entries(.alice) } == ["doc"])
      let ino = try people.as(.bob) { try $0.entryInode(.alice, "doc.tmp") }
      for name in [People.Name.alice, .carol, .dan] {
        try people.as(name) { (person) throws in
          expect(.accessDenied) { _ = try people.library.attributes(ino, person.caller) }
          expect(.notFound) { _ = try people.library.open(ino, flags: O_RDONLY, person.caller) }
          #expect(try !people.library.sees(ino, person.caller.account ?? 0))
        }
      }
      try people.as(.bob, process: Self.editor) { (bob) throws in
        try bob.renameEntry(.alice, "doc.tmp", "doc")
        #expect(try bob.entries(.alice) == ["doc"])
        #expect(try bob.read("Shared/alice@example.com/doc") == "new")
        #expect(try bob.entryInode(.alice, "doc") == ino)
      }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.read("Documents/doc") == "new")
        #expect(try alice.attribute("id", "Documents/doc") == id)
        let versions = try alice.versions("Documents/doc")
        #expect(versions.map(\.number) == [1, 2] && versions.last?.author == People.Name.bob.handle)
        #expect(versions.last?.cause == .replace && versions.last?.base == 1)
      }
      #expect(try lastEvents(people, after: number) == ["sheaf.change.edit doc"])
    }
  }

  @Test func onlyWhatLooksTemporaryIsMadeByThoseWhoMayWrite() throws {
    try story { people in
      try people.as(.bob, process: Self.editor) { (bob) throws in
        for name in ["report.pdf", "notes", ".versions", ".deleted"] {
          expect(.accessDenied) { try bob.create(.alice, name, "x") }
        }
        expect(.exists) { try bob.create(.alice, "doc", "x") }
        // As mkstemp(3) opens it, whatever its name.
        let handle = try bob.createEntry(.alice, "sedabcde", mode: 0o600, flags: O_RDWR | O_CREAT | O_EXCL)
        try bob.close(handle)
        expect(.accessDenied) {
          _ = try bob.createEntry(.alice, "sedabcdf", mode: 0o600, flags: O_WRONLY | O_CREAT | O_EXCL)
        }
        // As patch(1) does, with letters that could be a word's.
        expect(.accessDenied) {
          _ = try bob.createEntry(.alice, "doc.ocounts", mode: 0o644, flags: O_WRONLY | O_CREAT)
        }
        expect(.accessDenied) {
          _ = try bob.createEntry(.alice, "dot.oFblnx2", mode: 0o644, flags: O_WRONLY | O_CREAT | O_EXCL)
        }
        let flags = O_WRONLY | O_CREAT | O_EXCL
        let patched = try bob.createEntry(.alice, "doc.oFblnx2", mode: 0o644, flags: flags)
        try bob.close(patched)
        try bob.renameEntry(.alice, "doc.oFblnx2", "doc.old~")
        try bob.removeEntry(.alice, "doc.old~")
        // It stays one under another name, and gets none that would make it seem to stay.
        try bob.renameEntry(.alice, "sedabcde", "doc.tmp")
        expect(.accessDenied) { try bob.renameEntry(.alice, "doc.tmp", "report.pdf") }
        #expect(try bob.entries(.alice) == ["doc", "doc.tmp"])
        try bob.create(.alice, "doc.new", "y")
        expect(.exists) { try bob.renameEntry(.alice, "doc.new", "doc.tmp", .noReplace) }
        expect(.exists) { try bob.renameEntry(.alice, "doc.new", "doc", .noReplace) }
        try bob.renameEntry(.alice, "doc.new", "doc.tmp")
        #expect(try bob.readEntry(.alice, "doc.tmp") == "y")
        #expect(try bob.symlinkEntry(.alice, ".#doc", "bob@host.1") == "bob@host.1")
        try bob.removeEntry(.alice, "doc.tmp")
        try bob.removeEntry(.alice, ".#doc")
        #expect(try bob.entries(.alice) == ["doc"])
      }
      try people.as(.carol, process: Self.editor) { (carol) throws in
        expect(.accessDenied) { try carol.create(.alice, "doc.tmp", "x") }
        expect(.accessDenied) { _ = try carol.symlinkEntry(.alice, ".#doc", "x") }
        expect(.accessDenied) { try carol.renameEntry(.alice, "doc", "doc~") }
        expect(.accessDenied) { try carol.linkEntry(.alice, "doc", "doc~") }
      }
      // Rights are those of the moment.
      try people.as(.bob, process: Self.editor) { try $0.create(.alice, "doc.tmp", "x") }
      try people.as(.alice) { try $0.set("Documents/doc", .bob, .readOnly) }
      try people.as(.bob, process: Self.editor) { (bob) throws in
        expect(.accessDenied) { try bob.renameEntry(.alice, "doc.tmp", "doc") }
        expect(.accessDenied) {
          _ = try people.library.open(bob.entryInode(.alice, "doc.tmp"), flags: O_RDWR, bob.caller)
        }
      }
      // A folder is no place for them.
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      try people.share("Documents/plans", with: [(.dan, .readWrite)])
      try people.as(.dan, process: Self.editor) { (dan) throws in
        expect(.accessDenied) { try dan.create(.alice, "x.tmp", "x") }
      }
    }
  }

  @Test func itDissolves() throws {
    try story { people in
      let library = people.library
      try people.as(.bob, process: Self.editor) { (bob) throws in
        try bob.create(.alice, "a.tmp", "a")
        let open = try bob.createEntry(.alice, "b.tmp", mode: 0o644, flags: O_RDWR | O_CREAT | O_EXCL)
        try bob.write(open, "b")
        try people.as(.bob, process: getpid()) { try $0.create(.alice, "c.tmp", "c") }
        people.clock.advance(14)
        library.keepUp()
        #expect(try bob.entries(.alice) == ["a.tmp", "b.tmp", "c.tmp", "doc"])
        people.clock.advance(2)
        library.keepUp()
        // One that is open, and one whose program goes on, stay.
        #expect(try bob.entries(.alice) == ["b.tmp", "c.tmp", "doc"])
        try bob.close(open)
        library.keepUp()
        people.clock.advance(16)
        library.keepUp()
        #expect(try bob.entries(.alice) == ["c.tmp", "doc"])
        let kept = try library.open(bob.entryInode(.alice, "c.tmp"), flags: O_RDONLY, bob.caller)
        try bob.removeEntry(.alice, "c.tmp")
        #expect(try bob.read(kept) == "c")
        try library.release(kept)
        // With the share.
        try people.as(.bob, process: getpid()) { try $0.create(.alice, "d.tmp", "d") }
        try people.as(.alice) { try $0.remove("Documents/doc", .bob) }
        expect(.notFound) { _ = try bob.entryInode(.alice, "d.tmp") }
        library.keepUp()
        #expect(library.locked { library.temporaryFiles.isEmpty })
        #expect(try bob.names("Documents") == [])
      }
    }
  }

  /// Beside `doc` there is a folder of alice's that bob may edit, too: a temporary file gets no name in it, and nothing
  /// is half made of it.
  @Test func theyGetNoOtherName() throws {
    try story { people in
      try people.as(.alice) { (alice) throws in
        try alice.mkdir("Documents/dir")
        try alice.save("Documents/dir/hist", "one")
      }
      people.clock.advance(60)
      try people.share("Documents/dir", with: [(.bob, .readWrite)])
      try people.as(.bob, process: Self.editor) { (bob) throws in
        try bob.create(.alice, "doc.tmp", "new")
        let ino = try bob.entryInode(.alice, "doc.tmp")
        let folder = try bob.inode("Shared/alice@example.com/dir")
        for name in ["hist2", "doc.tmp"] {
          expect(.crossDevice) { _ = try people.library.link(ino, folder, Array(name.utf8), bob.caller) }
        }
        try bob.unlink("Shared/alice@example.com/dir/hist")
        expect(.crossDevice) { _ = try people.library.link(ino, folder, Array("hist".utf8), bob.caller) }
        try bob.renameEntry(.alice, "doc.tmp", "doc~")
        try bob.renameEntry(.alice, "doc~", "doc")
        #expect(try bob.read("Shared/alice@example.com/doc") == "new")
      }
      #expect(try people.as(.alice) { try $0.names("Documents/dir") } == [])
      #expect(try people.library.check { _ in }.problems == [])
    }
  }

  @Test func aBackupIsMadeAnewWhereNoFurtherFileHasRoom() throws {
    try story { people in
      try people.as(.bob, process: Self.editor) { (bob) throws in
        try bob.create(.alice, "doc~", "former")
        for number in 1..<TemporaryFiles.limit { try bob.create(.alice, "doc.\(number).tmp", "x") }
        #expect(try bob.readEntry(.alice, "doc~") == "former")
        try bob.renameEntry(.alice, "doc", "doc~")
        #expect(try bob.readEntry(.alice, "doc~") == "old")
      }
    }
  }

  @Test func theyAreBounded() throws {
    try story { people in
      try people.as(.bob, process: getpid()) { (bob) throws in
        for index in 0..<TemporaryFiles.limit { try bob.create(.alice, "\(index).tmp", "") }
        expect(.noSpace) { try bob.create(.alice, "x.tmp", "") }
        try bob.removeEntry(.alice, "0.tmp")
        try bob.create(.alice, "x.tmp", "")
      }
    }
  }

  /// Past the limits of memory, through a sweep, and as a version then.
  @Test func aLargeOneIsWhole() throws {
    try story { people in
      let size = Library.spillLimit + 4096
      let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 11) }
      try people.as(.bob, process: Self.editor) { (bob) throws in
        let handle = try bob.createEntry(.alice, "doc.tmp", mode: 0o644, flags: O_WRONLY | O_CREAT | O_EXCL)
        for start in stride(from: 0, to: size, by: 1 << 20) {
          try bytes[start..<min(size, start + 1 << 20)].withUnsafeBytes {
            try people.library.write(handle, at: Int64(start), $0)
          }
        }
        try bob.close(handle)
        _ = try people.library.sweep()
        try bob.renameEntry(.alice, "doc.tmp", "doc")
      }
      try people.as(.alice) { (alice) throws in
        let handle = try people.library.open(alice.inode("Documents/doc"), flags: O_RDONLY, alice.caller)
        var read = [UInt8](repeating: 0, count: size + 1)
        let count = try read.withUnsafeMutableBytes { try people.library.read(handle, at: 0, into: $0) }
        #expect(count == size && Array(read.prefix(size)) == bytes)
        try people.library.release(handle)
        #expect(try alice.versions("Documents/doc").map(\.size) == [3, Int64(size)])
      }
    }
  }

  @Test func aDocumentThatIsSetAsideStaysForEverybodyElse() throws {
    try story { people in
      let id = try people.as(.alice) { try $0.attribute("id", "Documents/doc") }
      try people.as(.bob, process: Self.editor) { (bob) throws in
        try bob.renameEntry(.alice, "doc", "doc~")
        #expect(try bob.readEntry(.alice, "doc~") == "old")
        expect(.notFound) { _ = try bob.entryInode(.alice, "doc") }
        #expect(try people.as(.bob, process: Self.other) { try $0.readEntry(.alice, "doc") } == "old")
        #expect(try people.as(.alice) { try $0.read("Documents/doc") } == "old")
        try bob.create(.alice, "doc", "new")
        #expect(try bob.readEntry(.alice, "doc") == "new" && bob.readEntry(.alice, "doc~") == "old")
        // A save that failed is undone by the backup.
        try bob.renameEntry(.alice, "doc~", "doc")
        #expect(try bob.readEntry(.alice, "doc") == "old")
      }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.attribute("id", "Documents/doc") == id)
        #expect(try alice.names("Documents") == ["doc"])
        #expect(try alice.versions("Documents/doc").map(\.size) == [3, 3, 3])
      }
      // A program that does not make the name again finds the document in the end.
      try people.as(.bob, process: Self.editor) { (bob) throws in
        try bob.renameEntry(.alice, "doc", "doc.bak")
        people.clock.advance(16)
        #expect(try bob.readEntry(.alice, "doc") == "old")
        // A link is a copy as well, and hides nothing.
        try bob.linkEntry(.alice, "doc", "doc.orig")
        #expect(try bob.readEntry(.alice, "doc") == "old" && bob.readEntry(.alice, "doc.orig") == "old")
        // With contents that do not change, the document does not either.
        let count = try bob.versions("Shared/alice@example.com/doc").count
        try bob.renameEntry(.alice, "doc.orig", "doc")
        #expect(try bob.versions("Shared/alice@example.com/doc").count == count)
      }
    }
  }

  @Test func theyEndWithTheProcess() throws {
    let people = try People()
    try people.as(.alice) { try $0.save("Documents/doc", "old") }
    try people.share("Documents/doc", with: [(.bob, .readWrite)])
    let before = try counts(people)
    try people.as(.bob, process: getpid()) { (bob) throws in
      try bob.create(.alice, "doc.tmp", String(repeating: "x", count: 100_000))
      try bob.renameEntry(.alice, "doc", "doc~")
    }
    try people.library.close()
    let library = try Library.open(people.library.location)
    let alice = try library.number(of: People.Name.alice.handle)
    let bob = try library.number(of: People.Name.bob.handle)
    #expect(try library.sharedEntries(bob, owner: alice).map { String(decoding: $0.name, as: UTF8.self) } == ["doc"])
    let after = try library.counts()
    #expect([after.documents, after.versions] == before)
    #expect(try library.check { _ in }.problems == [])
    try library.close()
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }
}

extension Person {
  private func folder(_ owner: People.Name) throws -> (account: Int64, owner: Int64) {
    (try library.number(of: name.handle), try library.number(of: owner.handle))
  }

  func createEntry(_ owner: People.Name, _ entry: String, mode: UInt32, flags: Int32) throws -> UInt64 {
    let (account, owner) = try folder(owner)
    return try library.createShared(account, owner: owner, Array(entry.utf8), mode: mode, flags: flags, caller).handle
  }

  func entryInode(_ owner: People.Name, _ entry: String) throws -> Int64 {
    let (account, owner) = try folder(owner)
    return try library.sharedEntry(account, owner: owner, Array(entry.utf8), caller).ino
  }

  func readEntry(_ owner: People.Name, _ entry: String) throws -> String {
    let handle = try library.open(entryInode(owner, entry), flags: O_RDONLY, caller)
    defer { try? library.release(handle) }
    return try read(handle)
  }

  /// Makes a symbolic link, and reads it.
  func symlinkEntry(_ owner: People.Name, _ entry: String, _ target: String) throws -> String {
    let (account, owner) = try folder(owner)
    let made = try library.symlinkShared(account, owner: owner, Array(entry.utf8), target: Array(target.utf8), caller)
    return String(decoding: try library.readLink(made.ino, caller), as: UTF8.self)
  }

  func linkEntry(_ owner: People.Name, _ entry: String, _ new: String) throws {
    let ino = try entryInode(owner, entry)
    let (account, owner) = try folder(owner)
    _ = try library.linkShared(ino, account, owner: owner, Array(new.utf8), caller)
  }
}
