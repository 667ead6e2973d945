import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

extension Person {
  /// Offers something to somebody; returns the item's id.
  func offer(_ text: String, to who: People.Name) throws -> String {
    try library.offerTransfer(path(text), to: who.handle).id
  }

  @discardableResult
  func take(_ id: String) throws -> AcceptResult { try library.acceptTransfer(id, as: name.handle) }

  fileprivate func deletedPaths() throws -> [String] { try library.deleted(name.handle, below: nil).map(\.path) }

  fileprivate func notices() throws -> [String] { try library.notices(for: name.handle).notices.map(\.text) }

  /// The events that they see after a number: type, and path.
  fileprivate func events(after last: Int64) throws -> [String] {
    try library.events(after: last, limit: 1000, for: name.handle, in: .all).events
      .map { "\($0.type.rawValue) \($0.data.item.path)" }
  }
}

/// Giving a tree to another account.
struct TransferTests {
  private static func tree(_ alice: Person) throws {
    try alice.mkdir("Documents/team")
    try alice.mkdir("Documents/team/deep")
    try alice.save("Documents/team/plan.md", "one")
    try alice.save("Documents/team/plan.md", "two")
    try alice.save("Documents/team/deep/notes", "notes")
    try alice.symlink("plan.md", "Documents/team/link")
    try alice.link("Documents/team/plan.md", "Documents/team/deep/second")
    try alice.save("Documents/team/gone", "gone")
    try alice.unlink("Documents/team/gone")
    try alice.library.setXattr(
      alice.inode("Documents/team/plan.md"), Array("user.colour".utf8), Array("red".utf8), .set, alice.caller)
    _ = try alice.library.label(alice.path("Documents/team/plan.md"), name: "first", version: 1)
    _ = try alice.change("Documents/team/deep/notes", .init(mode: 0o640))
  }

  @Test func aTreeGoesWithAllThatItHas() throws {
    try People.story { people in
      try people.as(.alice) { alice in
        try Self.tree(alice)
        try alice.save("Documents/team/set-id", "x")
        _ = try alice.change("Documents/team/set-id", .init(mode: 0o4755))
      }
      let before = try people.as(.alice) { alice in
        (
          ids: try ["", "/plan.md", "/deep/notes"].map { try alice.attribute("id", "Documents/team" + $0) },
          versions: try alice.versions("Documents/team/plan.md")
        )
      }
      try people.as(.bob) { try $0.mkdir("Documents/team") }
      let id = try people.as(.alice) { try $0.offer("Documents/team", to: .bob) }
      // Nothing changes before.
      #expect(try people.as(.alice) { try $0.read("Documents/team/plan.md") } == "two")
      expect(.notFound) { _ = try people.as(.carol) { try $0.take(id) } }
      let result = try people.as(.bob) { try $0.take(id) }
      #expect(result.path == "Documents/team (2)")
      try people.as(.bob) { (bob: Person) throws -> Void in
        #expect(try bob.names("Documents/team (2)") == ["deep", "link", "plan.md", "set-id"])
        #expect(try bob.status("Documents/team (2)/set-id").mode & 0o7777 == 0o755)
        #expect(try bob.names("Documents/team (2)/deep") == ["notes", "second"])
        #expect(try bob.readLink("Documents/team (2)/link") == "plan.md")
        let plan = "Documents/team (2)/plan.md"
        #expect(try bob.inode(plan) == bob.inode("Documents/team (2)/deep/second"))
        #expect(try bob.status(plan).nlink == 2)
        #expect(try bob.status("Documents/team (2)/deep/notes").mode & 0o777 == 0o640)
        #expect(
          try ["", "/plan.md", "/deep/notes"].map { try bob.attribute("id", "Documents/team (2)" + $0) } == before.ids)
        #expect(try bob.versions(plan) == before.versions)
        #expect(before.versions.map(\.label).contains("first"))
        #expect(try bob.library.xattr(bob.inode(plan), Array("user.colour".utf8), bob.caller) == Array("red".utf8))
        #expect(try bob.deletedPaths() == ["Documents/team (2)/gone"])
        _ = try bob.library.recover(bob.path("Documents/team (2)/gone"), id: nil) { _ in }
        #expect(try bob.read("Documents/team (2)/gone") == "gone")
        #expect(try bob.status(plan).uid == People.Name.bob.uid)
        try bob.save(plan, "three")
        #expect(try bob.versions(plan).map(\.author).contains(People.Name.bob.handle))
      }
      try people.as(.alice) { (alice: Person) throws -> Void in
        #expect(try alice.names("Documents") == [] && alice.deletedPaths() == [])
        let ino = try people.as(.bob) { try $0.inode("Documents/team (2)/plan.md") }
        expect(.accessDenied) { _ = try alice.library.open(ino, flags: O_RDONLY, alice.caller) }
        expect(.notFound) { _ = try people.as(.bob) { try $0.take(id) } }
      }
    }
  }

  @Test func whoHasItOpenIsAStrangerFromThenOn() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/doc", "one") }
      let alice = Person(library: people.library, name: .alice, process: 0)
      let (reader, writer) = (try alice.open("Documents/doc", O_RDONLY), try alice.open("Documents/doc", O_RDWR))
      try alice.write(writer, "two")
      let id = try alice.offer("Documents/doc", to: .bob)
      // What was written is saved before.
      try people.as(.bob) { (bob: Person) throws -> Void in
        try bob.take(id)
        #expect(try bob.read("Documents/doc") == "two")
        let handle = try bob.open("Documents/doc", O_RDWR)
        try bob.write(handle, "six")
        try bob.close(handle)
      }
      expect(.accessDenied) { _ = try alice.read(reader) }
      expect(.accessDenied) { try alice.write(writer, "ten") }
      try people.library.release(reader)
      try people.library.release(writer)
      #expect(try people.as(.bob) { try $0.read("Documents/doc") } == "six")
    }
  }

  /// The program that renamed a document, or deleted it, before somebody else took it makes a new one under its former
  /// name.
  @Test(arguments: ["Documents/plan", "Documents/team/plan"])
  func itsFormerNameIsNoWayBack(_ path: String) throws {
    try People.story { people in
      let program = getpid()
      try people.as(.alice) { (alice) throws in
        try alice.mkdir("Documents/team")
        try alice.save(path, "one")
      }
      people.clock.advance(20)
      try people.as(.alice, process: program) { try $0.rename(path, path + "d") }
      let item = try people.as(.alice) { try $0.attribute("id", path + "d") }
      let id = try people.as(.alice) { try $0.offer(path + "d", to: .bob) }
      try people.as(.bob) { (bob) throws in
        _ = try bob.take(id)
        try bob.save("Documents/pland", "secret")
      }
      try people.as(.alice, process: program) { (alice) throws in
        try alice.save(path, "new")
        #expect(try alice.attribute("id", path) != item)
        #expect(try alice.versions(path).map(\.number) == [1])
      }
      try people.as(.bob) { (bob) throws in
        #expect(try bob.attribute("id", "Documents/pland") == item)
        #expect(try bob.versions("Documents/pland").map(\.number) == [1, 2])
      }
      let sound = try people.library.check { _ in }
      #expect(sound.problems == [])
    }
  }

  @Test func aShareGoesAlong() throws {
    try People.story { people in
      try people.as(.alice) { (alice: Person) throws -> Void in
        try alice.mkdir("Documents/team")
        try alice.save("Documents/team/early", "early")
      }
      people.clock.advance(60)
      let url = try people.share("Documents/team", with: [(.bob, .readOnly), (.carol, .readWrite)])
      let link = try people.as(.alice) { try $0.library.inviteOnce($0.path("Documents/team"), permission: .readOnly) }
      let handle = try people.as(.alice) { try $0.open("Documents/team/early", O_RDWR) }
      people.clock.advance(60)
      let before = try people.as(.carol) { try $0.versions("Shared/alice@example.com/team/early") }
      let id = try people.as(.alice) { try $0.offer("Documents/team", to: .bob) }
      let last = people.library.lastEvent
      try people.as(.bob) { (bob: Person) throws -> Void in
        try bob.take(id)
        #expect(try bob.entries(.alice) == [])
        #expect(try bob.attribute("share.status", "Documents/team") == "sharedByMe")
        #expect(try bob.attribute("share.url", "Documents/team") == url)
        #expect(
          try bob.participants("Documents/team").map { "\($0.handle) \($0.role) \($0.permission) \($0.acceptance)" }
            == [
              "bob@example.com owner readWrite accepted", "alice@example.com privateUser readWrite accepted",
              "carol@example.com privateUser readWrite accepted",
            ])
        #expect(try bob.events(after: last) == ["sheaf.share.updated team"])
      }
      try people.as(.carol) { (carol: Person) throws -> Void in
        #expect(try carol.entries(.alice) == [] && carol.entries(.bob) == ["team"])
        #expect(try carol.versions("Shared/bob@example.com/team/early") == before)
        #expect(try carol.events(after: last) == ["sheaf.share.updated team"])
        #expect(try carol.notices().first == "bob@example.com took over team")
      }
      try people.as(.alice) { (alice: Person) throws -> Void in
        #expect(try alice.names("Documents") == [] && alice.entries(.bob) == ["team"])
        #expect(try alice.events(after: last) == ["sheaf.share.updated team"])
        // They may go on writing, in what they have open, too.
        try alice.write(handle, "late!")
        try alice.close(handle)
        try alice.save("Shared/bob@example.com/team/new", "new")
        #expect(try alice.notices().first == "bob@example.com took over team")
      }
      #expect(try people.as(.bob) { try $0.read("Documents/team/early") } == "late!")
      try people.as(.dan) { (dan: Person) throws -> Void in
        #expect(try dan.accept(link.url).path == "Shared/bob@example.com/team")
        // The earlier owner is one participant of many.
        expect(.accessDenied) {
          _ = try people.as(.alice) { alice in try alice.share("Shared/bob@example.com/team") { $0.title = "x" } }
        }
      }
    }
  }

  @Test func eachSideIsToldOnceAndNobodyElse() throws {
    try People.story { people in
      try people.as(.alice) { (alice: Person) throws -> Void in
        try alice.mkdir("Documents/private")
        try alice.save("Documents/private/doc", "x")
      }
      people.clock.advance(60)
      try people.library.settleEventsInSteps()
      let start = people.library.lastEvent
      let id = try people.as(.alice) { try $0.offer("Documents/private/doc", to: .bob) }
      #expect(try people.as(.alice) { try $0.offer("Documents/private/doc", to: .bob) } == id)
      #expect(try people.as(.bob) { try $0.events(after: start) } == ["sheaf.share.updated doc"])
      #expect(try people.as(.alice) { try $0.events(after: start) } == ["sheaf.share.updated private/doc"])
      #expect(try people.as(.carol) { try $0.events(after: start) } == [])
      #expect(try people.as(.bob) { try $0.notices() } == ["Alice offers you doc: sheaf accept id:\(id)"])
      func isOffered(_ who: People.Name) throws -> Bool {
        try people.as(who) { try $0.notices().contains { $0.contains("offers you") } }
      }
      let list = try people.library.transfers(of: People.Name.bob.handle)
      #expect(list.byMe == [] && list.toMe.map(\.path) == [nil] && list.toMe.map(\.name) == ["doc"])
      let mine = try people.library.shares(of: People.Name.alice.handle).transfers
      #expect(mine.byMe.map(\.path) == ["Documents/private/doc"] && mine.toMe == [])
      try people.as(.bob) { try $0.library.declineTransfer(id, as: $0.name.handle) }
      #expect(try people.as(.alice) { try $0.notices() }.first == "bob@example.com declined doc, which was offered")
      #expect(try !isOffered(.bob))
      expect(.notFound) { _ = try people.as(.bob) { try $0.take(id) } }
      _ = try people.as(.alice) { try $0.offer("Documents/private/doc", to: .bob) }
      #expect(try isOffered(.bob))
      try people.as(.alice) { try $0.library.withdrawTransfer($0.path("Documents/private/doc")) }
      #expect(try people.library.transfers(of: People.Name.bob.handle).isEmpty)
      expect(.notFound) { _ = try people.as(.bob) { try $0.take(id) } }
      _ = try people.as(.alice) { try $0.offer("Documents/private/doc", to: .bob) }
      // An offer to another person ends the one before.
      _ = try people.as(.alice) { try $0.offer("Documents/private/doc", to: .carol) }
      expect(.notFound) { _ = try people.as(.bob) { try $0.take(id) } }
      #expect(try isOffered(.carol) && !isOffered(.bob))
      let last = people.library.lastEvent
      try people.as(.carol) { try $0.take(id) }
      #expect(try !isOffered(.carol))
      #expect(try people.as(.carol) { try $0.events(after: last) } == ["sheaf.persistence.created doc"])
      #expect(try people.as(.alice) { try $0.events(after: last) } == ["sheaf.persistence.deleted private/doc"])
      #expect(try people.as(.bob) { try $0.events(after: last) } == [])
      #expect(try people.as(.alice) { try $0.notices() }.first == "carol@example.com took over doc")
    }
  }

  @Test func whatCannotGoAlongIsRefused() throws {
    try People.story { people in
      try people.as(.alice) { (alice: Person) throws -> Void in
        for folder in ["team", "team/in", "other"] { try alice.mkdir("Documents/" + folder) }
        try alice.save("Documents/team/doc", "x")
        try alice.save("Documents/team/in/doc", "x")
        try alice.link("Documents/team/doc", "Documents/other/second")
        expect(.notPermitted) { _ = try alice.offer("Documents", to: .bob) }
        expect(.notPermitted) { _ = try alice.offer("Documents/team", to: .bob) }
        expect(.invalid) { _ = try alice.offer("Documents/team/in", to: .alice) }
        try alice.unlink("Documents/other/second")
      }
      let id = try people.as(.alice) { try $0.offer("Documents/team", to: .bob) }
      // It may have changed since.
      try people.as(.alice) { try $0.share("Documents/team/in", with: [.carol]) }
      expect(.notPermitted) { _ = try people.as(.bob) { try $0.take(id) } }
      try people.as(.alice) { try $0.library.unshare($0.path("Documents/team/in")) }
      try people.as(.bob) { try $0.share("Documents", with: [.carol]) }
      expect(.notPermitted) { _ = try people.as(.bob) { try $0.take(id) } }
      try people.as(.bob) { try $0.library.unshare($0.path("Documents")) }
      try people.share("Documents/team", with: [(.carol, .readWrite)])
      expect(.notPermitted) { _ = try people.as(.alice) { try $0.offer("Documents/team/in", to: .bob) } }
      expect(.accessDenied) { _ = try people.as(.carol) { try $0.offer("Shared/alice@example.com/team", to: .bob) } }
      try people.as(.bob) { try $0.take(id) }
      // The share inside that was stopped got the new owner, who can begin it again.
      try people.as(.bob) { (bob: Person) throws -> Void in
        try bob.library.unshare(bob.path("Documents/team"))
        #expect(try bob.share("Documents/team/in", with: [.dan]).owner == People.Name.bob.handle)
      }
    }
  }

  @Test func nobodySeesInFormerFoldersWhatIsTheOthers() throws {
    try People.story { people in
      try people.as(.alice) { (alice: Person) throws -> Void in
        try alice.mkdir("Documents/team")
        try alice.mkdir("Documents/own")
        try alice.save("Documents/own/came", "came")
        try alice.save("Documents/team/went", "went")
      }
      people.clock.advance(60)
      let time = people.clock.now
      people.clock.advance(60)
      try people.as(.alice) { (alice: Person) throws -> Void in
        try alice.rename("Documents/own/came", "Documents/team/came")
        try alice.rename("Documents/team/went", "Documents/own/went")
      }
      people.clock.advance(60)
      let id = try people.as(.alice) { try $0.offer("Documents/team", to: .bob) }
      try people.as(.bob) { try $0.take(id) }
      people.clock.advance(60)
      func names(_ who: People.Name, _ folder: String) throws -> [String] {
        try people.as(who) { person in
          let request = FolderRestoreRequest(time: time, dryRun: true)
          let plan = try person.library.restoreFolder(person.path(folder), request) { _ in }
          return [String(describing: plan)]
        }
      }
      #expect(try !names(.bob, "Documents/team").joined().contains("went"))
      #expect(try !names(.alice, "Documents/own").joined().contains("came"))
    }
  }

  @Test func aCrashLeavesItWholeOnOneSide() throws {
    try People.story { people in
      try people.as(.alice) { try Self.tree($0) }
      let id = try people.as(.alice) { try $0.offer("Documents/team", to: .bob) }
      let before = people.fixture.folder + "/before"
      try people.library.copyAsKilled(to: before)
      try people.as(.bob) { try $0.take(id) }
      let after = people.fixture.folder + "/after"
      try people.library.copyAsKilled(to: after)
      for (folder, owner, other) in [(before, People.Name.alice, People.Name.bob), (after, .bob, .alice)] {
        let clock = people.clock
        let library = try Library.open(LibraryLocation(path: folder + "/library.sqlite")) { clock.now }
        let person = Person(library: library, name: owner, process: 0)
        #expect(try person.read("Documents/team/plan.md") == "two")
        #expect(try person.deletedPaths() == ["Documents/team/gone"])
        #expect(try Person(library: library, name: other, process: 0).names("Documents") == [])
        #expect(try library.transfers(of: other.handle).isEmpty == (folder == after))
        #expect(try library.check { _ in }.problems == [])
        try library.close()
      }
    }
  }

  @Test func aTreeThatIsTooLargeIsRefused() throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/many") }
      let folder = try people.as(.alice) { try $0.inode("Documents/many") }
      for number in 0..<Library.transferLimit - 1 {
        _ = try people.library.make(.file, folder, Array("f\(number)".utf8), mode: 0o644, .library)
      }
      let id = try people.as(.alice) { try $0.offer("Documents/many", to: .bob) }
      _ = try people.library.make(.file, folder, Array("last".utf8), mode: 0o644, .library)
      expect(.tooLarge) { _ = try people.as(.bob) { try $0.take(id) } }
      expect(.tooLarge) { _ = try people.as(.alice) { try $0.offer("Documents/many", to: .carol) } }
      try people.as(.alice) { try $0.unlink("Documents/many/last") }
      try people.library.unlink(folder, Array("f0".utf8), .library)
      _ = try people.library.emptyTrash(People.Name.alice.handle, below: nil, TrashSelection()) { _ in }
      try people.as(.bob) { try $0.take(id) }
      #expect(try people.as(.bob) { try $0.names("Documents/many") }.count == 1000)
    }
  }

  /// Random trees go to and fro among three people, some of them shared: no version is lost, ids stay, and nobody sees
  /// more than before but the new owner.
  @Test func randomTreesKeepEverything() throws {
    var random = SeededRandom()
    print("seed \(random.seed)")
    try People.story { people in
      let names: [People.Name] = [.alice, .bob, .carol]
      for round in 0..<40 {
        let from = names[Int.random(in: 0..<3, using: &random)]
        let to = names[Int.random(in: 0..<3, using: &random)]
        guard from != to else { continue }
        let folder = "Documents/t\(round)"
        try people.as(from) { person in
          try person.mkdir(folder)
          try person.mkdir(folder + "/sub")
          for step in 0..<6 {
            let file = folder + ["/a", "/b", "/sub/c"][Int.random(in: 0..<3, using: &random)]
            if Int.random(in: 0..<4, using: &random) == 0, (try? person.inode(file)) != nil {
              try person.unlink(file)
            } else {
              try person.save(file, "\(round).\(step)")
            }
          }
        }
        people.clock.advance(60)
        let third = names.first { $0 != from && $0 != to } ?? .carol
        let isShared = Int.random(in: 0..<2, using: &random) == 0
        if isShared {
          let url = try people.as(from) { try $0.share(folder, with: [third]) }.url
          try people.as(third) { _ = try $0.accept(url) }
        }
        let ids = try facts(people, from, folder)
        let id = try people.as(from) { try $0.offer(folder, to: to) }
        try people.as(to) { try $0.take(id) }
        #expect(try facts(people, to, folder) == ids, "seed \(random.seed), round \(round)")
        for other in [from, third] {
          let inode = try people.as(to) { try $0.inode(folder) }
          #expect(
            people.library.sees(inode, try people.library.number(of: other.handle)) == isShared,
            "seed \(random.seed), round \(round)")
        }
        try people.fixture.expectSound()
      }
    }
  }

  /// Ids and versions of a folder of the random test, and what was deleted from it.
  private func facts(_ people: People, _ who: People.Name, _ folder: String) throws -> [String] {
    try people.as(who) { person in
      let files = ["", "/a", "/b", "/sub", "/sub/c"].map { folder + $0 }
      let there = try files.compactMap { file -> String? in
        guard (try? person.inode(file)) != nil else { return nil }
        let versions = (try? person.versions(file)) ?? []
        return "\(file) \(try person.attribute("id", file)) \(versions)"
      }
      let deleted = try person.library.deleted(person.name.handle, below: person.path(folder))
      return there + deleted.map { "\($0.id) \($0.path)" }.sorted()
    }
  }
}
