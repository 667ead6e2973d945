import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// Stories of people who leave a share, or whose account goes.
struct DepartureStoryTests {
  @Test func removingAnEntryWithAllInItIsLeaving() throws {
    try People.story { people in
      try people.as(.alice) { alice in
        for folder in ["plans", "plans/deep", "plans/deep/deeper"] { try alice.mkdir("Documents/\(folder)") }
        for file in ["plans/a", "plans/deep/b", "plans/deep/deeper/c"] { try alice.save("Documents/\(file)", file) }
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.library.locked { try people.library.settleEvents(all: true) }
      let before = try people.library.store.read { try $0.highestNumbers().event }
      try people.as(.bob, process: getpid()) { bob in
        let plans = "Shared/alice@example.com/plans"
        try bob.unlink("\(plans)/deep/deeper/c")
        try bob.rmdir("\(plans)/deep/deeper")
        try bob.unlink("\(plans)/deep/b")
        try bob.rmdir("\(plans)/deep")
        try bob.unlink("\(plans)/a")
        try bob.removeEntry(.alice, "plans")
      }
      try people.library.locked { try people.library.settleEvents(all: true) }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.names("Documents/plans") == ["a", "deep"])
        for file in ["plans/a", "plans/deep/b", "plans/deep/deeper/c"] {
          #expect(try alice.read("Documents/\(file)") == file)
        }
        #expect(try alice.library.deleted(alice.name.handle, below: nil).isEmpty)
      }
      let events = try people.library.store.read { try $0.events(after: before, limit: 100) }
      #expect(events.map(\.type) == ["sheaf.membership.removed"])
    }
  }

  @Test func furtherNamesAndSpecialFilesComeBackToo() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for folder in ["plans", "plans/deep"] { try alice.mkdir("Documents/\(folder)") }
        try alice.save("Documents/plans/first", "one")
        try alice.link("Documents/plans/first", "Documents/plans/deep/second")
        try alice.link("Documents/plans/first", "Documents/plans/third")
        try alice.symlink("first", "Documents/plans/link")
        _ = try alice.library.make(
          .special(type: S_IFIFO, rdev: 0), alice.inode("Documents/plans/deep"), Array("pipe".utf8), mode: 0o640,
          alice.caller)
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      let id = try people.as(.alice) { try $0.attribute("id", "Documents/plans/first") }
      try people.as(.bob, process: getpid()) { bob in
        let plans = "Shared/alice@example.com/plans"
        for name in ["deep/pipe", "first", "deep/second", "third", "link"] { try bob.unlink("\(plans)/\(name)") }
        try bob.rmdir("\(plans)/deep")
        try bob.removeEntry(.alice, "plans")
      }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.names("Documents/plans") == ["deep", "first", "link", "third"])
        #expect(try alice.names("Documents/plans/deep") == ["pipe", "second"])
        #expect(try alice.status("Documents/plans/deep/pipe").mode == S_IFIFO | 0o640)
        #expect(try alice.readLink("Documents/plans/link") == "first")
        for name in ["first", "deep/second", "third"] {
          #expect(try alice.status("Documents/plans/\(name)").nlink == 3)
          #expect(try alice.attribute("id", "Documents/plans/\(name)") == id)
        }
        let ino = try alice.inode("Documents/plans/third")
        #expect(try alice.library.locked { try alice.library.inode(ino).row.name } == Array("first".utf8))
        #expect(try alice.library.deleted(alice.name.handle, below: nil).isEmpty)
      }
    }
  }

  @Test func deletingByOneProgramAndLeavingByAnotherDeletes() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/plans")
        try $0.save("Documents/plans/a", "a")
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.as(.bob, process: getpid()) { try $0.unlink("Shared/alice@example.com/plans/a") }
      try people.as(.bob, process: getppid()) { try $0.removeEntry(.alice, "plans") }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.names("Documents/plans") == [])
        #expect(try alice.library.recover(alice.path("Documents/plans/a"), id: nil) { _ in } == ["Documents/plans/a"])
      }
    }
  }

  @Test(arguments: [true, false])
  func whatCouldNotBeSavedIsKeptForItsWriter(_ isRemoved: Bool) throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/plan.md", "one") }
      try people.share("Documents/plan.md", with: [(.bob, .readWrite)])
      let handle = try people.as(.bob) { try $0.open("Shared/alice@example.com/plan.md", O_RDWR) }
      try people.as(.bob) { try $0.write(handle, "an afternoon's work") }
      try people.as(.alice) {
        if isRemoved {
          try $0.remove("Documents/plan.md", .bob)
        } else {
          try $0.set("Documents/plan.md", .bob, .readOnly)
        }
      }
      try people.as(.bob) { (bob) throws in
        expect(.accessDenied) { try bob.write(handle, "more") }
        expect(.accessDenied) { try bob.library.flush(handle) }
        #expect(try bob.names("Documents") == ["plan (not saved).md"])
        #expect(try bob.read("Documents/plan (not saved).md") == "an afternoon's work")
        if !isRemoved { #expect(try bob.read("Shared/alice@example.com/plan.md") == "one") }
        try bob.library.release(handle)
      }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.read("Documents/plan.md") == "one")
        #expect(try alice.versions("Documents/plan.md").count == 1)
      }
    }
  }

  @Test func aRemovedAccountLeavesItsNameInHistoryOnly() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/a.md", "one") }
      try people.share("Documents/a.md", with: [(.bob, .readWrite)])
      try people.as(.bob) { try $0.save("Shared/alice@example.com/a.md", "two") }
      let bob = People.Name.bob.handle
      try people.library.removeAccount(bob)
      #expect(try !people.library.accounts().contains { $0.handle == bob })
      expect(.notFound) { _ = try people.library.number(of: bob) }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.participants("Documents/a.md").map(\.handle) == [alice.name.handle])
        #expect(try alice.versions("Documents/a.md").last?.author == bob)
        expect(.notFound) { try alice.share("Documents/a.md", with: [.bob]) }
      }
      _ = try people.library.addAccount(bob, name: "Bob again")
      try people.as(.bob) { (me) throws in #expect(try me.entries(.alice) == []) }
      // One that nothing tells of goes without a trace.
      try people.library.removeAccount(People.Name.dan.handle)
    }
  }
}
