import Foundation
import Glibc
import SheafModel
import SheafStore
import Synchronization
import Testing

@testable import SheafLibrary

/// Stories of people who leave a share, or whose account goes.
struct DepartureStoryTests {
  @Test func removingAnEntryWithAllInItIsLeaving() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
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

  /// Alice's folder with many files in it and below, which bob removes with `rm -r` of his entry.
  private func leaveLargeFolder(
    _ people: People, _ count: Int, meanwhile: @escaping @Sendable (_ given: Int) -> Void
  ) throws -> (url: String, before: Int64, longestStep: Int) {
    let plans = "Shared/alice@example.com/plans"
    func file(_ number: Int) -> String { "\(number % 2 == 0 ? "" : "deep/deeper/")file-\(number)" }
    try people.as(.alice) { (alice) throws in
      for folder in ["plans", "plans/deep", "plans/deep/deeper"] { try alice.mkdir("Documents/\(folder)") }
      for number in 0..<count { try alice.save("Documents/plans/\(file(number))", "\(number)") }
    }
    let url = try people.share("Documents/plans", with: [(.bob, .readWrite)])
    people.clock.advance(60)
    try people.library.settleEventsInSteps()
    let before = people.library.lastEvent
    let steps = Mutex<[Int]>([])
    let door = try people.library.observe(account: people.library.number(of: People.Name.alice.handle)) { news in
      let made = news.count { if case .made = $0.change { true } else { false } }
      guard made > 0 else { return }
      let given = steps.withLock { steps in
        steps.append(made)
        return steps.reduce(0, +)
      }
      meanwhile(given)
    }
    try people.as(.bob, process: getpid()) { bob in
      for number in 0..<count { try bob.unlink("\(plans)/\(file(number))") }
      for folder in ["deep/deeper", "deep"] { try bob.rmdir("\(plans)/\(folder)") }
      try bob.removeEntry(.alice, "plans")
    }
    people.library.endObserving(door)
    #expect(steps.withLock { $0.reduce(0, +) } == count + 2)
    return (url, before, steps.withLock { $0.max() ?? 0 })
  }

  private func expectAllThere(_ people: People, _ count: Int) throws {
    try people.as(.alice) { (alice) throws in
      #expect(try alice.names("Documents/plans").count == count / 2 + 1)
      #expect(try alice.names("Documents/plans/deep/deeper").count == count / 2)
      #expect(try alice.read("Documents/plans/deep/deeper/file-1") == "1")
      #expect(try alice.library.deleted(alice.name.handle, below: nil).isEmpty)
    }
  }

  /// Others have the library in between, and one who joins then hears of nothing that was not.
  @Test func leavingALargeFolderHoldsNobodyUp() throws {
    try People.story { people in
      let url = Mutex("")
      let didJoin = Mutex(false)
      let (_, before, longest) = try leaveLargeFolder(people, 400) { given in
        guard given > 100, !didJoin.withLock({ $0 }) else { return }
        didJoin.withLock { $0 = true }
        do {
          url.withLock { url in
            url = (try? people.as(.alice) { try $0.share("Documents/plans", with: [.carol], .readOnly) }.url) ?? ""
          }
          try people.as(.carol) { (carol) throws in
            _ = try carol.accept(url.withLock { $0 })
            #expect(try carol.names("Shared/alice@example.com/plans").count < 201)
          }
        } catch {
          Issue.record("\(error)")
        }
      }
      #expect(longest == 16)
      #expect(didJoin.withLock { $0 })
      try expectAllThere(people, 400)
      try people.library.settleEventsInSteps()
      let events = try people.library.store.read { try $0.events(after: before, limit: 1000) }
      #expect(
        events.map(\.type) == ["sheaf.membership.removed", "sheaf.share.updated", "sheaf.membership.added"])
    }
  }

  /// One has deleted what is in a folder, and the other the folder: both come back, whoever leaves first.
  @Test func twoWhoLeaveAtOnceDeleteNothing() throws {
    try People.story { people in
      let plans = "Shared/alice@example.com/plans"
      try people.as(.alice) { alice in
        for folder in ["plans", "plans/x", "plans/x/y"] { try alice.mkdir("Documents/\(folder)") }
        for file in ["f", "g", "y/h"] { try alice.save("Documents/plans/x/\(file)", file) }
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite), (.carol, .readWrite)])
      people.clock.advance(60)
      try people.library.settleEventsInSteps()
      let before = people.library.lastEvent
      try people.as(.bob, process: getpid()) { bob in
        for file in ["f", "y/h"] { try bob.unlink("\(plans)/x/\(file)") }
      }
      try people.as(.carol, process: getppid()) { carol in
        try carol.unlink("\(plans)/x/g")
        for folder in ["x/y", "x"] { try carol.rmdir("\(plans)/\(folder)") }
      }
      try people.as(.bob, process: getpid()) { try $0.removeEntry(.alice, "plans") }
      try people.as(.carol, process: getppid()) { try $0.removeEntry(.alice, "plans") }
      try people.as(.alice) { (alice) throws in
        for file in ["f", "g", "y/h"] { #expect(try alice.read("Documents/plans/x/\(file)") == file) }
        #expect(try alice.library.deleted(alice.name.handle, below: nil).isEmpty)
      }
      try people.library.settleEventsInSteps()
      let events = try people.library.store.read { try $0.events(after: before, limit: 100) }
      #expect(events.map(\.type) == ["sheaf.membership.removed", "sheaf.membership.removed"])
    }
  }

  @Test func leavingThatIsKilledGoesOn() throws {
    try People.story { people in
      let folder = people.fixture.folder + "/killed"
      let (_, before, _) = try leaveLargeFolder(people, 200) { given in
        if given > 100, access(folder, F_OK) != 0 { try? people.library.copyAsKilled(to: folder) }
      }
      let next = try LibraryFixture(at: folder + "/library.sqlite", clock: people.clock)
      try next.expectSound()
      #expect(try next.library.deleted(next.account, below: nil).isEmpty)
      #expect(try next.names("plans").count == 101 && next.names("plans/deep/deeper").count == 100)
      let events = try next.library.store.read { try $0.events(after: before, limit: 1000) }
      #expect(events.map(\.type) == ["sheaf.membership.removed"])
      #expect(try next.library.store.read { try $0.numberSettings(after: Return.settingPrefix) }.isEmpty)
      try next.finish()
    }
  }

  /// A return that could not be made goes on when the library is opened next. By then they may be back, and mean what
  /// they delete.
  @Test func whatIsDeletedAfterJoiningAgainStaysDeleted() throws {
    try People.story { people in
      let plans = "Shared/alice@example.com/plans"
      try people.as(.alice) { (alice) throws in
        try alice.mkdir("Documents/plans")
        for file in ["a", "b", "c"] { try alice.save("Documents/plans/\(file)", file) }
      }
      let url = try people.share("Documents/plans", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.as(.bob, process: getpid()) { (bob) throws in
        for file in ["a", "b"] { try bob.unlink("\(plans)/\(file)") }
        people.clock.advance(1)
        let (library, ino, caller) = try (people.library, bob.inode(plans), bob.caller)
        let account = try #require(caller.account)
        // Nothing of it is given back, as where the disk is full.
        try library.locked {
          let share = try #require(try library.share(of: library.inode(ino)))
          _ = try library.leave(share, account, caller)
        }
      }
      people.clock.advance(1)
      try people.as(.alice) { _ = try $0.share("Documents/plans", with: [.bob], .readWrite) }
      try people.as(.bob, process: getppid()) { (bob) throws in
        _ = try bob.accept(url)
        try bob.unlink("\(plans)/c")
      }
      try people.library.copyAsKilled(to: people.fixture.folder + "/killed")
      let next = try LibraryFixture(at: people.fixture.folder + "/killed/library.sqlite", clock: people.clock)
      #expect(try next.names("plans") == ["a", "b"])
      #expect(try next.library.deleted(next.account, below: nil).map(\.path) == ["Documents/plans/c"])
      #expect(try next.library.store.read { try $0.numberSettings(after: Return.settingPrefix) }.isEmpty)
      try next.finish()
    }
  }

  @Test func whatWaitsIsToldOnceBeforeWhatBecomesOfTheShareNext() throws {
    try People.story { people in
      try people.as(.alice, process: getpid()) { try $0.save("Documents/plan.md", "one") }
      let url = try people.share("Documents/plan.md", with: [(.bob, .readWrite)])
      try people.as(.bob, process: getpid()) { try $0.removeEntry(.alice, "plan.md") }
      // Several events in one transaction.
      try people.as(.alice) { _ = try $0.share("Documents/plan.md", with: [.carol, .dan], .readOnly) }
      try people.as(.carol) { _ = try $0.accept(url) }
      try people.library.locked { try people.library.settleEvents(all: true) }
      let events = try people.library.store.read { try $0.events(after: 0, limit: 100) }
      #expect(
        events.map(\.type) == [
          "sheaf.persistence.created", "sheaf.share.created", "sheaf.share.updated", "sheaf.membership.added",
          "sheaf.membership.removed", "sheaf.share.updated", "sheaf.share.updated", "sheaf.membership.added",
        ])
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

  /// What another program deleted, and what the same one did before a pause, was meant.
  @Test func leavingBringsBackWhatItsProgramDeletedJustNow() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for folder in ["plans", "plans/deep"] { try alice.mkdir("Documents/\(folder)") }
        for file in ["before", "other", "deep/a", "b"] { try alice.save("Documents/plans/\(file)", file) }
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      let plans = "Shared/alice@example.com/plans"
      try people.as(.bob, process: getpid()) { try $0.unlink("\(plans)/before") }
      people.clock.advance(15)
      try people.as(.bob, process: getpid()) { try $0.unlink("\(plans)/deep/a") }
      try people.as(.bob, process: getppid()) { try $0.unlink("\(plans)/other") }
      people.clock.advance(14)
      try people.as(.bob, process: getpid()) { (bob) throws in
        try bob.rmdir("\(plans)/deep")
        try bob.unlink("\(plans)/b")
        try bob.removeEntry(.alice, "plans")
      }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.names("Documents/plans") == ["b", "deep"])
        #expect(try alice.names("Documents/plans/deep") == ["a"])
      }
    }
  }

  @Test func whoLeavesAfterAPauseLeavesDeletedWhatTheyDeleted() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/plans")
        try $0.save("Documents/plans/a", "a")
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.as(.bob, process: getpid()) { try $0.unlink("Shared/alice@example.com/plans/a") }
      people.clock.advance(15)
      try people.as(.bob, process: getpid()) { try $0.removeEntry(.alice, "plans") }
      try people.as(.alice) { (alice) throws in #expect(try alice.names("Documents/plans") == []) }
    }
  }

  /// Past the limit, all that its account deletes counts as the program's.
  @Test func aDepartureRemembersAsMuchAsItMay() {
    func deleted(_ ino: Int64, at seconds: Int64) -> DeletedRow {
      DeletedRow(ino: ino, parent: 1, name: [], time: Timestamp(seconds: seconds), actor: 1)
    }
    let limit = Int64(Departure.limit)
    var departure = Departure(at: Timestamp(seconds: 0))
    for ino in 1...limit { departure.note(ino, at: Timestamp(seconds: 1)) }
    #expect(departure.includes(deleted(1, at: 1)) && departure.includes(deleted(limit, at: 1)))
    #expect(!departure.includes(deleted(limit + 1, at: 2)))
    departure.note(limit + 2, at: Timestamp(seconds: 3))
    #expect(!departure.includes(deleted(limit + 1, at: 2)))
    #expect(departure.includes(deleted(limit + 2, at: 3)))
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
        let notices = try bob.library.notices(for: bob.name.handle).notices.map(\.text)
        #expect(
          notices.contains("What you wrote to plan.md could not be saved, and is in Documents/plan (not saved).md"),
          "\(notices)")
      }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.read("Documents/plan.md") == "one")
        #expect(try alice.versions("Documents/plan.md").count == 1)
      }
    }
  }

  /// What was in a temporary file is kept where its writer sees it.
  @Test func aTemporaryFileThatCouldNotBeSavedIsKeptInSight() throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      let handle = try people.as(.bob) {
        try $0.open("Shared/alice@example.com/plans/.a.md.tmp", O_RDWR | O_CREAT)
      }
      try people.as(.bob) { try $0.write(handle, "an afternoon's work") }
      try people.as(.alice) { try $0.set("Documents/plans", .bob, .readOnly) }
      try people.as(.bob) { (bob) throws in
        expect(.accessDenied) { try bob.library.flush(handle) }
        try bob.library.release(handle)
        #expect(try bob.names("Documents") == ["a (not saved).md"])
        #expect(try bob.read("Documents/a (not saved).md") == "an afternoon's work")
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

  /// Programs that replace a file by removing it first.
  @Test func anEntryThatItsProgramMakesAgainWasNeverLeft() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/note.md", "one") }
      try people.share("Documents/note.md", with: [(.bob, .readWrite), (.carol, .readWrite)])
      people.clock.advance(60)
      let (id, url) = try people.as(.alice) { (alice) throws in
        (try alice.attribute("id", "Documents/note.md"), try alice.attribute("share.url", "Documents/note.md"))
      }
      let before = try people.as(.alice) { try $0.participants("Documents/note.md") }
      try people.as(.bob) { try $0.renameEntry(.alice, "note.md", "mine.md") }
      try people.library.locked { try people.library.settleEvents(all: true) }
      let last = try people.library.store.read { try $0.highestNumbers().event }
      try people.as(.bob, process: getpid()) { (bob) throws in
        let reader = try bob.library.open(bob.inode("Shared/alice@example.com/mine.md"), flags: O_RDONLY, bob.caller)
        try bob.removeEntry(.alice, "mine.md")
        #expect(try bob.entries(.alice) == [])
        expect(.accessDenied) { _ = try bob.read(reader) }
        try bob.create(.alice, "mine.md", "two")
        #expect(try bob.entries(.alice) == ["mine.md"])
        // Who has the old file open goes on with it, as `perl -i` does.
        #expect(try bob.read(reader) == "one")
        try bob.library.release(reader)
        #expect(try bob.read("Shared/alice@example.com/mine.md") == "two")
      }
      try people.library.locked { try people.library.settleEvents(all: true) }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.read("Documents/note.md") == "two")
        #expect(try alice.attribute("id", "Documents/note.md") == id)
        #expect(try alice.attribute("share.url", "Documents/note.md") == url)
        #expect(try alice.versions("Documents/note.md").map(\.author) == [.alice, .bob].map(\People.Name.handle))
        #expect(try alice.participants("Documents/note.md") == before)
        #expect(try alice.library.deleted(alice.name.handle, below: nil).isEmpty)
      }
      try people.as(.carol) { (carol) throws in
        #expect(try carol.read("Shared/alice@example.com/note.md") == "two")
      }
      let events = try people.library.store.read { try $0.events(after: last, limit: 100) }
      #expect(events.map(\.type) == ["sheaf.change.edit"])
    }
  }

  @Test func oneTimeLinksOfWhoComesBackStay() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.save("Documents/note.md", "one")
        try $0.share("Documents/note.md") { $0.allowInvites = true }
      }
      try people.share("Documents/note.md", with: [(.bob, .readWrite)])
      let link = try people.as(.bob) {
        try $0.library.inviteOnce($0.path("Shared/alice@example.com/note.md"), permission: .readOnly).url
      }
      try people.as(.bob, process: getpid()) { try $0.removeEntry(.alice, "note.md") }
      expect(.notFound) { _ = try people.as(.carol) { try $0.inspect(link) } }
      try people.as(.bob, process: getpid()) { try $0.create(.alice, "note.md", "two") }
      try people.as(.carol) { (carol) throws in #expect(try carol.accept(link).permission == .readOnly) }
    }
  }

  @Test func whoMayOnlyReadIsBackAndRefused() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/note.md", "one") }
      try people.share("Documents/note.md", with: [(.bob, .readOnly)])
      try people.as(.bob, process: getpid()) { (bob) throws in
        try bob.removeEntry(.alice, "note.md")
        expect(.accessDenied) { try bob.create(.alice, "note.md", "two") }
        #expect(try bob.read("Shared/alice@example.com/note.md") == "one")
        expect(.exists) { try bob.create(.alice, "note.md", "two") }
      }
      try people.as(.alice) { (alice) throws in #expect(try alice.versions("Documents/note.md").count == 1) }
    }
  }

  /// What becomes of it between the unlink and the open.
  enum Meanwhile: CaseIterable {
    case anotherProgram, tooLate, unshared, sharedAnew, deleted, renamed, invitedAgain, full, anotherName
  }

  @Test(arguments: Meanwhile.allCases)
  func whoLeftAndMayNotComeBackHasLeft(_ meanwhile: Meanwhile) throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/note.md", "one") }
      let url = try people.share("Documents/note.md", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.library.locked { try people.library.settleEvents(all: true) }
      let last = try people.library.store.read { try $0.highestNumbers().event }
      try people.as(.bob, process: getpid()) { try $0.removeEntry(.alice, "note.md") }
      try people.as(.alice) { (alice) throws in
        switch meanwhile {
        case .anotherProgram, .anotherName: break
        case .tooLate: people.clock.advance(15)
        case .unshared: try alice.library.unshare(alice.path("Documents/note.md"))
        case .sharedAnew:
          try alice.library.unshare(alice.path("Documents/note.md"))
          people.clock.advance(1)
          try alice.share("Documents/note.md", with: [.carol])
        case .deleted: try alice.unlink("Documents/note.md")
        case .renamed: try alice.rename("Documents/note.md", "Documents/other.md")
        case .invitedAgain: try alice.share("Documents/note.md", with: [.bob])
        case .full:
          for number in 0..<99 {
            let handle = try AccountHandle("guest\(number)@example.com")
            _ = try alice.library.addAccount(handle, name: nil, uid: 2000, gid: 2000)
            var change = ShareChange()
            change.with = [handle]
            _ = try alice.library.share(alice.path("Documents/note.md"), change)
          }
        }
      }
      try people.as(.bob, process: meanwhile == .anotherProgram ? getppid() : getpid()) { (bob) throws in
        expect(.accessDenied) {
          try bob.create(.alice, meanwhile == .anotherName ? "other.md" : "note.md", "two")
        }
        #expect(try bob.entries(.alice) == [])
      }
      try people.library.locked { try people.library.settleEvents(all: true) }
      let events = try people.library.store.read { try $0.events(after: last, limit: 500) }
      // The departure is told, before what was done to the share after it.
      #expect(events.first?.type == "sheaf.membership.removed")
      #expect(events.count { $0.type == "sheaf.membership.removed" } == 1)
      if meanwhile == .invitedAgain {
        try people.as(.bob) { (bob) throws in
          #expect(try bob.inspect(url).acceptance == .pending)
          _ = try bob.accept(url)
          #expect(try bob.entries(.alice) == ["note.md"])
        }
      }
    }
  }

  @Test func aFolderThatIsLeftIsNotMadeAgain() throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      try people.as(.bob, process: getpid()) { (bob) throws in
        try bob.removeEntry(.alice, "plans")
        expect(.accessDenied) { try bob.create(.alice, "plans", "a document") }
        #expect(try bob.entries(.alice) == [])
      }
    }
  }

  /// A departure that was told already is followed by a joining, whoever sees it.
  @Test func comingBackLateIsTold() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/note.md", "one") }
      try people.share("Documents/note.md", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.library.locked { try people.library.settleEvents(all: true) }
      let last = try people.library.store.read { try $0.highestNumbers().event }
      try people.as(.bob, process: getpid()) { try $0.removeEntry(.alice, "note.md") }
      try people.as(.alice) { try $0.share("Documents/note.md") { $0.title = "A note" } }
      try people.as(.bob, process: getpid()) { try $0.create(.alice, "note.md", "two") }
      try people.library.locked { try people.library.settleSessions() }
      let events = try people.library.store.read { try $0.events(after: last, limit: 100) }
      #expect(
        events.map(\.type) == [
          "sheaf.membership.removed", "sheaf.share.updated", "sheaf.membership.added", "sheaf.change.edit",
        ])
    }
  }
}
