import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// What was taken from someone does not come back by what they had prepared.
struct RevocationTests {
  /// What could not be kept elsewhere when access ended, as on a full disk, is not saved in its place later.
  @Test func whatMayBeWrittenNoLongerIsNeverSavedInItsPlace() throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { try $0.save("Documents/plan.md", "alice") }
      try people.share("Documents/plan.md", with: [(.bob, .readWrite)])
      let path = "Shared/alice@example.com/plan.md"
      let handle = try people.as(.bob) { (bob) throws in
        let handle = try bob.open(path, O_RDWR)
        try bob.write(handle, "bob!!")
        return handle
      }
      // As if keeping it had failed.
      let ino = try people.as(.alice) { try $0.inode("Documents/plan.md") }
      try library.locked {
        let item = try #require(try library.inode(ino).row.item)
        var share = try #require(library.shares.active(item))
        share.participants[try library.account(People.Name.bob.handle).id]?.acceptance = .removed
        library.shares.set(share)
      }
      #expect(try library.counts().notSaved == 1)
      people.clock.advance(10)
      people.fixture.autosave()
      #expect(try people.as(.alice) { try $0.read("Documents/plan.md") } == "alice")
      #expect(try people.as(.bob) { try $0.read("Documents/plan (not saved).md") } == "bob!!")
      #expect(try library.counts().notSaved == 0)
      try people.as(.bob) { (bob) throws in expect(.accessDenied) { try bob.close(handle) } }
    }
  }

  /// Deleting what is shared ends access at once, with what somebody has open in it.
  @Test func whatIsWrittenWhenTheShareIsDeletedIsKeptAtOnce() throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { (alice) throws in
        try alice.mkdir("Documents/plans")
        try alice.save("Documents/plans/log", "one\n")
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      let door = try library.observe(account: library.number(of: People.Name.bob.handle)) { _ in }
      defer { library.endObserving(door) }
      let handle = try people.as(.bob) { (bob) throws in
        let handle = try bob.open("Shared/alice@example.com/plans/log", O_WRONLY | O_APPEND)
        try people.as(.alice) { try $0.unlink("Documents/plans/log") }
        try bob.write(handle, "bob\n", at: 4)
        return handle
      }
      let documents = try library.documents(of: People.Name.bob.handle)
      try people.as(.alice) { try $0.rmdir("Documents/plans") }
      // Whatever else the library does would end access, too.
      let names = try library.locked { try library.read { try $0.entries(documents, after: 0, limit: 9) }.map(\.name) }
      #expect(names == [Array("log (not saved)".utf8)])
      try people.as(.bob) { (bob) throws in expect(.accessDenied) { try bob.close(handle) } }
      #expect(try people.as(.bob) { try $0.read("Documents/log (not saved)") } == "one\nbob\n")
    }
  }

  /// What somebody appended goes to the end of what others save for as long as they may see that, and no longer.
  @Test func whatIsKeptHasNothingThatOthersSavedLater() throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { (alice) throws in
        try alice.mkdir("Documents/plans")
        try alice.save("Documents/plans/log", "one\n")
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      let ino = try people.as(.alice) { try $0.inode("Documents/plans/log") }
      let mine = try people.as(.alice) { try $0.open("Documents/plans/log", O_RDWR) }
      let theirs = try people.as(.bob) { try $0.open("Shared/alice@example.com/plans/log", O_RDWR | O_APPEND) }
      try people.as(.alice) { (alice) throws in
        try alice.unlink("Documents/plans/log")
        try alice.write(mine, "secret\n")
      }
      try Array("bob\n".utf8).withUnsafeBytes { try library.write(theirs, at: 0, $0, appends: true) }
      // Nobody looks at what bob has before it is saved.
      try people.as(.alice) { try $0.rmdir("Documents/plans") }
      try library.fsync(ino)
      #expect(try people.as(.bob) { try $0.read("Documents/log (not saved)") } == "one\nbob\n")
      for handle in [mine, theirs] { try library.release(handle) }
    }
  }

  /// A file that never had a name is nobody's to find: it goes with its program, as on a local disk.
  @Test func nothingIsKeptOfAFileThatWasNeverLinked() throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      try people.as(.bob) { (bob) throws in
        let folder = try bob.inode("Shared/alice@example.com/plans")
        let made = try library.createNameless(folder, mode: 0o600, flags: O_RDWR, bob.caller)
        try bob.write(made.handle, "never linked")
        try people.as(.alice) { try $0.remove("Documents/plans", .bob) }
        people.clock.advance(10)
        people.fixture.autosave()
        #expect(try bob.names("Documents") == [])
        #expect(try library.counts().notSaved == 0)
        expect(.accessDenied) { try bob.write(made.handle, "more") }
        expect(.accessDenied) { try bob.close(made.handle) }
        #expect(try bob.names("Documents") == [])
      }
    }
  }

  private let item = "Documents/note.md"
  private let entry = "Shared/alice@example.com/note.md"

  /// A document whose people may invite others; `name` joins by the link or by invitation, and gives out one-time
  /// links.
  private func links(
    of name: People.Name, _ permission: SharePermission = .readWrite, role: Role,
    _ body: (People, _ editing: String, _ viewing: String) throws -> Void
  ) throws {
    try People.story { people in
      try people.as(.alice) { try $0.save(item, "one") }
      let url = try people.as(.alice) {
        try $0.share(item) {
          $0.allowInvites = true
          $0.anyone = .readWrite
        }
      }.url
      if role != .publicUser { try people.as(.alice) { try $0.add(item, name, permission, role: role) } }
      let links = try people.as(name) { (person) throws in
        _ = try person.accept(url)
        return try [SharePermission.readWrite, .readOnly].map {
          try person.library.inviteOnce(person.path(entry), permission: $0).url
        }
      }
      try body(people, links[0], links[1])
    }
  }

  private func expectDead(_ people: People, _ links: [String]) throws {
    for link in links {
      for name in [People.Name.carol, .dan] {
        try people.as(name) { (person) throws in expect(.notFound) { _ = try person.accept(link) } }
      }
    }
  }

  @Test func whoIsOutWithThePublicDoesNotComeBackByTheirOwnLink() throws {
    try links(of: .carol, role: .publicUser) { people, editing, viewing in
      try people.as(.alice) { try $0.share(item) { $0.anyone = PublicPermission.none } }
      try expectDead(people, [editing, viewing])
      // Nor do the links live again with whoever comes back.
      let url = try people.as(.alice) { try $0.share(item, with: [.carol]) }.url
      try people.as(.carol) { _ = try $0.accept(url) }
      try people.as(.dan) { (dan) throws in expect(.notFound) { _ = try dan.accept(editing) } }
    }
  }

  @Test func whoMayOnlyViewLetsNobodyEdit() throws {
    try links(of: .bob, role: .privateUser) { people, editing, viewing in
      try people.as(.alice) {
        try $0.share(item) { $0.anyone = PublicPermission.none }
        try $0.set(item, .bob, .readOnly)
      }
      try expectDead(people, [editing])
      try people.as(.carol) { (carol) throws in #expect(try carol.accept(viewing).permission == .readOnly) }
    }
  }

  @Test func linksGoWithTheRightToInvite() throws {
    for isAdministrator in [true, false] {
      try links(of: .bob, role: isAdministrator ? .administrator : .privateUser) { people, editing, viewing in
        try people.as(.alice) {
          try $0.share(item) {
            $0.anyone = PublicPermission.none
            $0.allowInvites = false
          }
        }
        if isAdministrator {
          try people.as(.dan) { (dan) throws in #expect(try dan.inspect(viewing).permission == .readOnly) }
          try people.as(.alice) { try $0.set(item, .bob, role: .privateUser) }
        }
        try expectDead(people, [editing, viewing])
      }
    }
  }

  /// A document leaves the share and is saved anew there: who has the old file open sees nothing of it.
  @Test func whatLeftTheShareDoesNotComeBackByItsOldFile() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/team")
        try $0.save("Documents/team/plan.md", "one")
      }
      try people.share("Documents/team", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      let handle = try people.as(.bob) { try $0.open("Shared/alice@example.com/team/plan.md", O_RDWR) }
      let own = try people.as(.bob) { try $0.open("Documents/mine.md", O_RDWR | O_CREAT) }
      func expectGone(_ location: SourceLocation = #_sourceLocation) throws {
        try people.as(.bob) { (bob) throws in
          expect(.accessDenied, location) { _ = try bob.read(handle) }
          expect(.accessDenied, location) { try bob.write(handle, "x") }
          expect(.accessDenied, location) { _ = try bob.library.seek(handle, 0, hole: false) }
          expect(.accessDenied, location) {
            _ = try bob.library.copy(from: handle, at: 0, to: own, at: 0, count: 10)
          }
        }
      }
      try people.as(.alice) { try $0.rename("Documents/team/plan.md", "Documents/plan.md") }
      try expectGone()
      try people.as(.alice) {
        try $0.save("Documents/plan.md", "secret")
        try $0.save("Documents/.plan.tmp", "newest")
        try $0.rename("Documents/.plan.tmp", "Documents/plan.md")
      }
      try expectGone()
      for handle in [handle, own] { try people.library.release(handle) }
    }
  }

  /// What lost its name in a share is there for who has it open, as anywhere.
  @Test func whatLostItsNameInTheShareIsStillOpen() throws {
    try People.story { people in
      let (folder, shared) = ("Documents/team", "Shared/alice@example.com/team")
      try people.as(.alice) {
        try $0.mkdir(folder)
        try $0.save("\(folder)/plan.md", "one")
        try $0.save(item, "one")
      }
      try people.share(folder, with: [(.bob, .readWrite)])
      try people.share(item, with: [(.bob, .readWrite)])
      people.clock.advance(60)
      let handles = try people.as(.bob) { bob in
        try ["\(shared)/plan.md", entry].map { try bob.library.open(bob.inode($0), flags: O_RDONLY, bob.caller) }
      }
      try people.as(.alice) { (alice) throws in
        for place in ["\(folder)/plan.md", item] {
          try alice.save("Documents/.tmp", "two")
          try alice.rename("Documents/.tmp", place)
        }
      }
      try people.as(.bob, process: getpid()) { (bob) throws in
        for handle in handles { #expect(try bob.read(handle) == "one") }
        try bob.mkdir("\(shared)/work")
        let temporary = try bob.open("\(shared)/work/.a.tmp", O_RDWR | O_CREAT)
        let ino = try bob.inode("\(shared)/work/.a.tmp")
        try bob.unlink("\(shared)/work/.a.tmp")
        try bob.rmdir("\(shared)/work")
        try bob.write(temporary, "work")
        #expect(try bob.read(temporary) == "work" && bob.library.attributes(ino, bob.caller).size == 4)
        try bob.library.release(temporary)
      }
      try people.as(.alice) {
        try $0.remove(folder, .bob)
        try $0.remove(item, .bob)
      }
      for handle in handles {
        try people.as(.bob) { (bob) throws in expect(.accessDenied) { _ = try bob.read(handle) } }
        try people.library.release(handle)
      }
    }
  }

  /// Purging destroys what nobody has saved yet, too; who wrote it hears of that.
  @Test func closingWhatWasPurgedSaysSo() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save(item, "one") }
      try people.share(item, with: [(.bob, .readWrite)])
      try people.as(.bob) { (bob) throws in
        let handle = try bob.open(entry, O_RDWR)
        try bob.write(handle, "an afternoon's work")
        try people.as(.alice) { try $0.library.purge($0.path(item), version: nil) }
        expect(.accessDenied) { try bob.close(handle) }
        #expect(try bob.names("Documents") == [])
      }
    }
  }

  /// A version that was read before its document left the share and came back is one of before by then.
  @Test func aVersionOfBeforeIsReadNoMore() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/team")
        try $0.save("Documents/team/plan.md", "one")
      }
      try people.share("Documents/team", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.as(.alice) { try $0.save("Documents/team/plan.md", "two") }
      try people.as(.bob) { (bob) throws in
        let ino = try bob.inode("Shared/alice@example.com/team/plan.md")
        let item = try #require(try people.library.locked { try people.library.inode(ino).row.item })
        let reader = try bob.library.openVersion(of: item, number: 1, bob.caller)
        var buffer = [UInt8](repeating: 0, count: 8)
        #expect(try buffer.withUnsafeMutableBytes { try bob.library.read(reader, at: 0, into: $0) } == 3)
        people.clock.advance(60)
        try people.as(.alice) {
          try $0.rename("Documents/team/plan.md", "Documents/plan.md")
          try $0.rename("Documents/plan.md", "Documents/team/plan.md")
        }
        expect(.accessDenied) {
          _ = try buffer.withUnsafeMutableBytes { try bob.library.read(reader, at: 0, into: $0) }
        }
        let account = try people.library.number(of: People.Name.bob.handle)
        #expect(!people.library.sees(version: 1, of: item, account))
        #expect(people.library.sees(version: 2, of: item, account))
      }
    }
  }

  /// What becomes of an entry that its program takes away, before it makes that again.
  enum Meanwhile: CaseIterable { case closed, lowered, removed, changed, noInvites }

  @Test(arguments: Meanwhile.allCases)
  func whatWasTakenWhileTheyWereAwayStaysTaken(_ meanwhile: Meanwhile) throws {
    let role: Role = [.closed, .lowered].contains(meanwhile) ? .publicUser : .privateUser
    try links(of: .bob, role: role) { people, editing, viewing in
      people.clock.advance(60)
      try people.as(.bob, process: getpid()) { try $0.removeEntry(.alice, "note.md") }
      try people.as(.alice) { (alice) throws in
        switch meanwhile {
        case .closed: try alice.share(item) { $0.anyone = PublicPermission.none }
        case .lowered: try alice.share(item) { $0.anyone = .readOnly }
        case .removed: try alice.remove(item, .bob)
        case .changed: expect(.notFound) { try alice.set(item, .bob, .readOnly) }
        case .noInvites: try alice.share(item) { $0.allowInvites = false }
        }
      }
      try people.as(.bob, process: getpid()) { (bob) throws in
        if meanwhile == .noInvites { return try bob.create(.alice, "note.md", "two") }
        expect(.accessDenied) { try bob.create(.alice, "note.md", "two") }
        #expect(try bob.entries(.alice) == (meanwhile == .lowered ? ["note.md"] : []))
        if meanwhile == .lowered { #expect(try bob.attribute("share.permission", entry) == "readOnly") }
      }
      if ![.lowered, .changed].contains(meanwhile) { try expectDead(people, [editing, viewing]) }
      guard meanwhile == .removed else { return }
      // As everyone who is removed, they need an invitation, and hear nothing more.
      let url = try people.as(.alice) { try $0.library.share(of: $0.path(item)) }?.url ?? ""
      try people.as(.bob) { (bob) throws in expect(.notFound) { _ = try bob.accept(url) } }
      try people.library.locked { try people.library.settleEvents(all: true) }
      let last = people.library.lastEvent
      try people.as(.alice) { try $0.save(item, "three") }
      try people.library.locked { try people.library.settleSessions() }
      #expect(try people.library.events(after: last, limit: 10, for: People.Name.bob.handle).events == [])
    }
  }
}
