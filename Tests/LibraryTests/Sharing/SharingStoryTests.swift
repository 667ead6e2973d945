import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// Stories of people who share, on the library; Tests/MountTests tells them on real mounts.
struct SharingStoryTests {
  @Test func aFolderIsSharedAcceptedEditedAndTakenBack() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/plans")
        try $0.save("Documents/plans/a.md", "one")
      }
      let share = try people.as(.alice) { try $0.share("Documents/plans", with: [.bob], .readWrite) }
      #expect(share.summary == "Only invited people can edit" && share.title == "plans")
      #expect(share.url.hasPrefix("sheaf://\(people.library.id)/s/"))
      try people.as(.bob) { (bob) throws in
        #expect(try bob.entries(.alice) == [])
        let offer = try bob.inspect(share.url)
        #expect(offer.title == "plans" && offer.permission == .readWrite && offer.acceptance == .pending)
        #expect(try bob.accept(share.url).path == "Shared/alice@example.com/plans")
        #expect(try bob.accept(share.url).path == "Shared/alice@example.com/plans")
        #expect(try bob.read("Shared/alice@example.com/plans/a.md") == "one")
        try bob.save("Shared/alice@example.com/plans/a.md", "two")
        try bob.save("Shared/alice@example.com/plans/b.md", "new")
        #expect(try bob.attribute("share.status", "Shared/alice@example.com/plans") == "sharedWithMe")
        #expect(try bob.attribute("share.root", "Shared/alice@example.com/plans/a.md") == "..")
      }
      let handle = try people.as(.bob) { try $0.open("Shared/alice@example.com/plans/a.md", O_RDWR) }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.read("Documents/plans/a.md") == "two")
        #expect(
          try alice.versions("Documents/plans/a.md").map(\.author) == [
            People.Name.alice.handle, People.Name.bob.handle,
          ])
        #expect(try alice.attribute("editor", "Documents/plans/a.md") == "bob@example.com")
        #expect(try alice.attribute("share.root", "Documents/plans") == ".")
        let lines = try alice.attribute("share.participants", "Documents/plans/b.md")
        #expect(
          lines == "alice@example.com\towner\treadWrite\taccepted\nbob@example.com\tprivateUser\treadWrite\taccepted")
        try alice.remove("Documents/plans", .bob)
      }
      try people.as(.bob) { (bob) throws in
        #expect(try bob.entries(.alice) == [])
        expect(.accessDenied) { _ = try bob.read(handle) }
        expect(.accessDenied) { try bob.write(handle, "x") }
        expect(.notFound) { _ = try bob.accept(share.url) }
      }
      try people.library.release(handle)
    }
  }

  @Test func readersReadAndNothingElse() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/plans")
        try $0.save("Documents/plans/a.md", "one")
        try $0.save("Documents/plans/a.md", "two")
      }
      try people.share("Documents/plans", with: [(.bob, .readOnly)])
      try people.as(.bob) { (bob) throws in
        let file = "Shared/alice@example.com/plans/a.md"
        #expect(try bob.status(file).mode & 0o7777 == 0o444)
        #expect(try bob.status("Shared/alice@example.com/plans").mode & 0o7777 == 0o555)
        #expect(try bob.status(file).uid == 1001)
        #expect(try bob.read(file) == "two")
        for flags in [O_RDWR, O_WRONLY, O_RDONLY | O_TRUNC] { expect(.accessDenied) { _ = try bob.open(file, flags) } }
        expect(.accessDenied) { try bob.save("Shared/alice@example.com/plans/new", "x") }
        expect(.accessDenied) { try bob.mkdir("Shared/alice@example.com/plans/new") }
        expect(.accessDenied) { try bob.unlink(file) }
        expect(.accessDenied) { try bob.rename(file, "Shared/alice@example.com/plans/b.md") }
        expect(.accessDenied) { try bob.link(file, "Shared/alice@example.com/plans/b.md") }
        expect(.accessDenied) { _ = try bob.change(file, .init(mode: 0o600)) }
        expect(.accessDenied) { _ = try bob.change(file, .init(size: 0)) }
        expect(.accessDenied) {
          try bob.library.setXattr(bob.inode(file), Array("user.x".utf8), [1], .set, bob.caller)
        }
        expect(.accessDenied) { _ = try bob.library.restore(bob.path(file), version: 1) }
        expect(.accessDenied) { _ = try bob.library.label(bob.path(file), name: "x", version: nil) }
        expect(.accessDenied) { try bob.library.purge(bob.path(file), version: nil) }
        expect(.accessDenied) { try bob.remove(file, .alice) }
        expect(.accessDenied) { try bob.library.unshare(bob.path(file)) }
        expect(.accessDenied) { try bob.share(file, with: [.carol]) }
        // Programs that copy attributes are not to be disturbed.
        try bob.library.setXattr(bob.inode(file), Array("user.sheaf.id".utf8), [1], .set, bob.caller)
      }
      try people.as(.alice) { (me) throws in #expect(try me.read("Documents/plans/a.md") == "two") }
    }
  }

  @Test func demotionAndPromotionCountAtOnceInOpenFiles() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/a.md", "one") }
      try people.share("Documents/a.md", with: [(.bob, .readWrite)])
      let handle = try people.as(.bob) { try $0.open("Shared/alice@example.com/a.md", O_RDWR) }
      try people.as(.bob) { try $0.write(handle, "two") }
      try people.as(.bob) {
        try people.library.flush(handle); _ = $0
      }
      try people.as(.alice) { try $0.set("Documents/a.md", .bob, .readOnly) }
      try people.as(.bob) { (bob) throws in
        #expect(try bob.read(handle) == "two")
        expect(.accessDenied) { try bob.write(handle, "three") }
      }
      try people.as(.alice) { try $0.set("Documents/a.md", .bob, .readWrite) }
      try people.as(.bob) {
        try $0.write(handle, "four!")
        try $0.close(handle)
      }
      try people.as(.alice) { (me) throws in #expect(try me.read("Documents/a.md") == "four!") }
    }
  }

  @Test func sharesLieNeitherInNorAroundOthers() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for folder in ["plans", "plans/q1", "plans/q1/deep", "other"] { try alice.mkdir("Documents/\(folder)") }
        try alice.save("Documents/plans/q1/a.md", "a")
        try alice.share("Documents/plans/q1")
        for (path, name) in [
          ("Documents/plans/q1/deep", "q1"), ("Documents/plans", "Documents/plans/q1"),
          ("Documents", "Documents/plans/q1"),
        ] {
          do {
            try alice.share(path)
            Issue.record("\(path) can be shared")
          } catch let error as SheafError {
            #expect(error.kind == .notPermitted && error.description.contains(name), "\(error)")
          }
        }
        try alice.share("Documents/other")
        // Neither the shared folder nor one around it goes into another share.
        expect(.notPermitted) { try alice.rename("Documents/plans/q1", "Documents/other/q1") }
        expect(.notPermitted) { try alice.rename("Documents/plans", "Documents/other/plans") }
        // It may go anywhere else.
        try alice.rename("Documents/plans/q1", "Documents/q1")
        #expect(try alice.attribute("share.status", "Documents/q1/deep") == "sharedByMe")
        expect(.notPermitted) { try alice.library.unshare(alice.path("Documents/q1/deep")) }
        try alice.library.unshare(alice.path("Documents/q1"))
        try alice.rename("Documents/q1", "Documents/other/q1")
        #expect(try alice.attribute("share.title", "Documents/other/q1/a.md") == "other")
      }
    }
  }

  @Test func sharingAgainKeepsURLAndPeople() throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      let url = try people.share("Documents/plans", with: [(.bob, .readWrite)])
      try people.as(.alice) { (alice) throws in
        let again = try alice.share("Documents/plans") {
          $0.title = "Our plans"
          $0.permission = .readOnly
          $0.allowInvites = true
          $0.allowRequests = true
        }
        #expect(again.url == url && again.title == "Our plans" && again.participants.count == 2)
        let invited = try alice.share("Documents/plans", with: [.bob])
        #expect(
          invited.participants.last?.acceptance == .accepted && invited.participants.last?.permission == .readWrite)
        try alice.library.unshare(alice.path("Documents/plans"))
        expect(.notFound) { _ = try alice.participants("Documents/plans") }
      }
      try people.as(.bob) { (bob) throws in
        #expect(try bob.entries(.alice) == [])
        expect(.notFound) { _ = try bob.inspect(url) }
      }
      try people.as(.alice) { (alice) throws in
        let share = try alice.share("Documents/plans") { $0.anyone = .readOnly }
        #expect(share.url == url && share.participants.count == 1)
        // Whom the former one let in, and how, went with it.
        let ino = try alice.inode("Documents/plans")
        let row = try people.library.locked { try people.library.share(of: people.library.inode(ino))?.row }
        #expect(row?.permission == .readWrite && row?.allowsInvites == false && row?.allowsRequests == false)
        let renewed = try alice.share("Documents/plans") { $0.newLink = true }
        #expect(renewed.url != url)
      }
      try people.as(.bob) { (bob) throws in expect(.notFound) { _ = try bob.accept(url) } }
    }
  }

  @Test func leavingDeletesNothing() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/plans")
        try $0.save("Documents/plans/a.md", "one")
        try $0.save("Documents/b.md", "two")
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite), (.carol, .readWrite)])
      try people.share("Documents/b.md", with: [(.bob, .readWrite)])
      try people.as(.bob) { (bob) throws in
        #expect(try bob.entries(.alice) == ["b.md", "plans"])
        try bob.removeEntry(.alice, "plans")
        try bob.library.leave(bob.path("Shared/alice@example.com/b.md"))
        #expect(try bob.entries(.alice) == [])
      }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.read("Documents/plans/a.md") == "one")
        #expect(
          try alice.participants("Documents/plans").map(\.handle) == [
            People.Name.alice.handle, People.Name.carol.handle,
          ])
        expect(.notPermitted) { try alice.library.leave(alice.path("Documents/plans")) }
      }
      try people.as(.carol) { (me) throws in #expect(try me.read("Shared/alice@example.com/plans/a.md") == "one") }
    }
  }

  @Test func entriesHaveTheItemsNamesOrOnesOfTheirOwn() throws {
    try People.story { people in
      try people.as(.alice) {
        for folder in ["x", "y"] { try $0.mkdir("Documents/\(folder)") }
        try $0.save("Documents/x/note.md", "first")
        try $0.save("Documents/y/note.md", "second")
      }
      try people.share("Documents/x/note.md", with: [(.bob, .readOnly)])
      people.clock.advance(1)
      try people.share("Documents/y/note.md", with: [(.bob, .readOnly)])
      try people.as(.bob) { (bob) throws in
        #expect(try bob.entries(.alice) == ["note (2).md", "note.md"])
        #expect(try bob.read("Shared/alice@example.com/note (2).md") == "second")
        expect(.exists) { try bob.renameEntry(.alice, "note (2).md", "note.md") }
        try bob.renameEntry(.alice, "note.md", "mine.md")
        #expect(try bob.entries(.alice) == ["mine.md", "note.md"])
        #expect(try bob.read("Shared/alice@example.com/note.md") == "second")
      }
      try people.as(.alice) { try $0.rename("Documents/y/note.md", "Documents/y/renamed.md") }
      try people.as(.bob) { (me) throws in #expect(try me.entries(.alice) == ["mine.md", "renamed.md"]) }
    }
  }

  @Test func deletingTheItemSuspendsItsShareAndRecoveringResumesIt() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/plans")
        try $0.save("Documents/plans/a.md", "one")
      }
      let url = try people.share("Documents/plans", with: [(.bob, .readWrite)])
      try people.as(.alice) {
        try $0.unlink("Documents/plans/a.md")
        try $0.rmdir("Documents/plans")
      }
      try people.as(.bob) { (bob) throws in
        #expect(try bob.entries(.alice) == [])
        expect(.notFound) { _ = try bob.inspect(url) }
      }
      try people.as(.alice) { _ = try $0.library.recover($0.path("Documents/plans"), id: nil) { _ in } }
      try people.as(.bob) { (me) throws in #expect(try me.read("Shared/alice@example.com/plans/a.md") == "one") }
      try people.as(.alice) { (me) throws in
        try me.library.purge(me.path("Documents/plans"), version: nil)
        #expect(people.library.locked { people.library.shares.isEmpty })
      }
    }
  }

  @Test func movingOutTakesAwayAndMovingInShowsFromThenOn() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for folder in ["plans", "private"] { try alice.mkdir("Documents/\(folder)") }
        for text in ["1", "2"] {
          people.clock.advance(1)
          try alice.save("Documents/private/a.md", text)
        }
        try alice.save("Documents/private/gone.md", "gone")
        try alice.save("Documents/plans/b.md", "b")
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      let handle = try people.as(.bob) { try $0.open("Shared/alice@example.com/plans/b.md", O_RDONLY) }
      people.clock.advance(10)
      try people.as(.alice) { (alice) throws in
        try alice.unlink("Documents/private/gone.md")
        people.clock.advance(1)
        try alice.rename("Documents/private", "Documents/plans/public")
        try alice.rename("Documents/plans/b.md", "Documents/b.md")
      }
      try people.as(.bob) { (bob) throws in
        expect(.accessDenied) { _ = try bob.read(handle) }
        let folder = "Shared/alice@example.com/plans/public"
        #expect(try bob.read("\(folder)/a.md") == "2")
        #expect(try bob.versions("\(folder)/a.md").map(\.number) == [2])
        expect(.notFound) { try bob.library.readVersion(bob.path("\(folder)/a.md"), number: 1) { _ in } }
        let ino = try bob.inode(folder)
        let folders = try bob.library.versionFolders(of: ino, bob.caller)
        #expect(folders.map { String(decoding: $0.name, as: UTF8.self) } == ["a.md"])
        #expect(try bob.library.versionFiles(of: folders[0].item, bob.caller).map(\.number) == [2])
        expect(.notFound) { _ = try bob.library.openVersion(of: folders[0].item, number: 1, bob.caller) }
        expect(.notFound) { _ = try bob.library.recover(bob.path("\(folder)/gone.md"), id: nil) { _ in } }
        try bob.unlink("\(folder)/a.md")
        #expect(try bob.library.deleted(bob.name.handle, below: bob.path(folder)).map(\.path) == ["\(folder)/a.md"])
        #expect(try bob.library.recover(bob.path("\(folder)/a.md"), id: nil) { _ in } == ["\(folder)/a.md"])
      }
      try people.library.release(handle)
    }
  }

  @Test func hardLinksNeverCrossABorder() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for folder in ["plans", "private"] { try alice.mkdir("Documents/\(folder)") }
        try alice.save("Documents/plans/a.md", "a")
        try alice.link("Documents/plans/a.md", "Documents/private/a.md")
        do {
          try alice.share("Documents/plans")
          Issue.record("a folder with a link outside can be shared")
        } catch let error as SheafError {
          #expect(error.kind == .notPermitted && error.description.contains("Documents/private/a.md"), "\(error)")
        }
        try alice.unlink("Documents/private/a.md")
        try alice.share("Documents/plans")
        expect(.notPermitted) { try alice.link("Documents/plans/a.md", "Documents/private/a.md") }
        try alice.save("Documents/private/b.md", "b")
        expect(.notPermitted) { try alice.link("Documents/private/b.md", "Documents/plans/b.md") }
        try alice.link("Documents/plans/a.md", "Documents/plans/a2.md")
        expect(.notPermitted) { try alice.rename("Documents/plans/a2.md", "Documents/private/a2.md") }
        try alice.link("Documents/private/b.md", "Documents/b.md")
        expect(.notPermitted) { try alice.rename("Documents/private", "Documents/plans/private") }
      }
    }
  }

  @Test func nothingDangerousComesThroughShared() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for folder in ["plans", "plans/deep"] { try alice.mkdir("Documents/\(folder)") }
        try alice.save("Documents/plans/a.md", "a")
        for (name, target) in [
          ("in", "../a.md"), ("out", "../../secret"), ("far", "deep/../../x"), ("abs", "/etc/passwd"),
        ] {
          try alice.symlink(target, "Documents/plans/deep/\(name)")
        }
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      try people.as(.bob) { (bob) throws in
        let plans = "Shared/alice@example.com/plans"
        #expect(try bob.readLink("\(plans)/deep/in") == "../a.md")
        for name in ["out", "far", "abs"] { expect(.accessDenied) { _ = try bob.readLink("\(plans)/deep/\(name)") } }
        try bob.symlink("/tmp", "\(plans)/mine")
        #expect(try bob.readLink("\(plans)/mine") == "/tmp")
        expect(.notPermitted) { _ = try bob.change("\(plans)/a.md", .init(uid: 0)) }
        expect(.notPermitted) { _ = try bob.change("\(plans)/a.md", .init(gid: 4)) }
        _ = try bob.change("\(plans)/a.md", .init(uid: 1001, gid: 1001))
        #expect(try bob.change("\(plans)/a.md", .init(mode: 0o6755)).mode & 0o7777 == 0o755)
        expect(.notPermitted) {
          _ = try bob.library.make(
            .special(type: S_IFCHR, rdev: 5), bob.inode(plans), Array("dev".utf8), mode: 0o600, bob.caller)
        }
        expect(.notPermitted) {
          try bob.library.setXattr(
            bob.inode("\(plans)/a.md"), Array("security.capability".utf8), [1], .set, bob.caller)
        }
        let made = try bob.library.make(.file, bob.inode(plans), Array("new".utf8), mode: 0o4755, bob.caller)
        #expect(made.mode & 0o7777 == 0o755 && made.uid == 1001)
      }
      try people.as(.alice) { (alice) throws in
        expect(.accessDenied) { _ = try alice.readLink("Documents/plans/mine") }
        #expect(try alice.status("Documents/plans/new").uid == alice.status("Documents/plans").uid)
        _ = try alice.change("Documents/plans/a.md", .init(mode: 0o4755))
      }
      try people.as(.bob) { try $0.save("Shared/alice@example.com/plans/a.md", "changed") }
      try people.as(.alice) { (me) throws in #expect(try me.status("Documents/plans/a.md").mode & 0o7777 == 0o755) }
    }
  }

  @Test func treesOfTwoOwnersAreTwoDevices() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/plans")
        try $0.save("Documents/plans/a.md", "a")
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      try people.as(.bob) { (bob) throws in
        try bob.save("Documents/mine", "mine")
        expect(.crossDevice) { try bob.rename("Shared/alice@example.com/plans/a.md", "Documents/a.md") }
        expect(.crossDevice) { try bob.rename("Documents/mine", "Shared/alice@example.com/plans/mine") }
        expect(.crossDevice) { try bob.link("Documents/mine", "Shared/alice@example.com/plans/mine") }
      }
    }
  }

  @Test func aWholeDocumentsIsShared() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/a.md", "a") }
      try people.share("Documents", with: [(.bob, .readWrite)])
      try people.as(.bob) { (bob) throws in
        #expect(try bob.entries(.alice) == ["Documents"])
        try bob.save("Shared/alice@example.com/Documents/b.md", "b")
        #expect(try bob.attribute("share.root", "Shared/alice@example.com/Documents/b.md") == "..")
      }
      try people.as(.alice) { (me) throws in
        #expect(try me.read("Documents/b.md") == "b")
        #expect(try me.attribute("share.root", "Documents") == ".")
      }
    }
  }

  @Test func aSharedDocumentStaysSharedHoweverItIsSaved() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/a.md", "one") }
      try people.share("Documents/a.md", with: [(.bob, .readWrite)])
      let handle = try people.as(.bob) { try $0.open("Shared/alice@example.com/a.md", O_RDONLY) }
      try people.as(.alice, process: getpid()) { (alice) throws in
        try alice.save("Documents/a.md.tmp", "two")
        try alice.rename("Documents/a.md.tmp", "Documents/a.md")
      }
      try people.as(.bob) { (bob) throws in
        // What was renamed over it reaches the next open; who has the old contents open keeps them.
        #expect(try bob.read(handle) == "one")
        #expect(try bob.read("Shared/alice@example.com/a.md") == "two")
        #expect(try bob.attribute("version", "Shared/alice@example.com/a.md") == "2")
      }
      try people.as(.alice) { try $0.remove("Documents/a.md", .bob) }
      try people.as(.bob) { (bob) throws in expect(.accessDenied) { _ = try bob.read(handle) } }
      try people.library.release(handle)
    }
  }
}
