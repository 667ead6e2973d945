import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// Who sees which event, and with which path.
struct EventVisibilityTests {
  /// Settles what is open; gives what someone sees, as type and path.
  func seen(_ people: People, _ name: People.Name?, after position: Int64 = 0) throws -> [String] {
    try settle(people)
    return try people.library.events(after: position, limit: 1000, for: name?.handle).events.map(Self.line)
  }

  func settle(_ people: People) throws {
    try people.library.locked {
      try people.library.settleSessions()
      try people.library.settleEvents(all: true)
    }
  }

  private static func line(_ event: Event) -> String {
    let former = event.data.previousPath.map { " was \($0)" } ?? ""
    return "\(event.type.rawValue.split(separator: ".").last ?? "") \(event.data.item.path)\(former)"
  }

  private func notices(_ people: People, _ name: People.Name) throws -> [String] {
    try settle(people)
    return try people.library.notices(for: name.handle).notices.map(\.text)
  }

  /// Unpacking an archive takes nobody's notices away.
  @Test func noticesOutlastWhatOnesOwnProgramsDo() throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      let url = try people.as(.alice) { try $0.share("Documents/plans", with: [.bob], .readWrite) }.url
      _ = try people.as(.bob) { try $0.accept(url) }
      try people.as(.bob) { try $0.save("Shared/alice@example.com/plans/a.md", "1") }
      let before = try notices(people, .alice)
      #expect(before.count == 2)
      try people.as(.alice) { alice in
        for number in 0..<1_100 { try alice.mkdir("Documents/\(number)") }
      }
      #expect(try notices(people, .alice) == before)
    }
  }

  @Test func participantsSeeTheShareFromJoiningToDeparture() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/private")
        try $0.mkdir("Documents/private/plans")
        try $0.save("Documents/private/plans/before.md", "x")
      }
      let url = try people.as(.alice) { try $0.share("Documents/private/plans", with: [.bob], .readWrite) }.url
      #expect(try notices(people, .bob).count == 1)
      #expect(try notices(people, .bob).first?.contains("invites you to plans: \(url)") ?? false)
      // Invited again, and otherwise, they have one invitation.
      try people.as(.alice) { alice in
        try alice.set("Documents/private/plans", .bob, .readOnly)
        try alice.remove("Documents/private/plans", .bob)
        _ = try alice.share("Documents/private/plans", with: [.bob], .readWrite)
      }
      #expect(try notices(people, .bob).count == 1)
      #expect(try notices(people, .bob).first?.contains("invites you to plans: \(url)") ?? false)
      try people.as(.alice) { try $0.save("Documents/private/plans/unseen.md", "x") }
      #expect(try seen(people, .bob).allSatisfy { !$0.contains(".md") })
      let invited = people.library.lastEvent
      _ = try people.as(.bob) { try $0.accept(url) }
      try people.as(.alice) {
        try $0.save("Documents/private/plans/a.md", "1")
        try $0.rename("Documents/private/plans/a.md", "Documents/private/plans/b.md")
        try $0.save("Documents/private/secret.md", "x")
      }
      try people.as(.bob) { try $0.save("Shared/alice@example.com/plans/b.md", "2") }
      let bobs = try seen(people, .bob, after: invited)
      #expect(
        bobs == ["added plans", "created plans/a.md", "renamed plans/b.md was plans/a.md", "edit plans/b.md"])
      // The owner sees all, with paths of their own.
      for viewer in [People.Name.alice, nil] {
        let all = try seen(people, viewer, after: invited)
        #expect(all.contains("created private/secret.md") && all.contains("edit private/plans/b.md"), "\(all)")
      }
      #expect(try seen(people, .carol) == [])
      let before = people.library.lastEvent
      try people.as(.alice) {
        try $0.remove("Documents/private/plans", .bob)
        try $0.save("Documents/private/plans/b.md", "3")
      }
      let news = try seen(people, .bob, after: before)
      #expect(news == ["removed plans"])
      #expect(try notices(people, .bob).first?.hasSuffix("removed you from plans") ?? false)
    }
  }

  @Test func whoTakesPartInWhatADeletedFolderHadHearsOfIt() throws {
    try People.story { people in
      try people.as(.alice) {
        for folder in ["private", "private/plans"] { try $0.mkdir("Documents/\(folder)") }
        for file in ["private/a.md", "private/plans/b.md"] { try $0.save("Documents/\(file)", "x") }
      }
      try people.share("Documents/private/plans", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try settle(people)
      var before = people.library.lastEvent
      try people.as(.alice, process: 4_100_001) {
        try $0.unlink("Documents/private/plans/b.md")
        try $0.rmdir("Documents/private/plans")
        try $0.unlink("Documents/private/a.md")
        try $0.rmdir("Documents/private")
      }
      #expect(Set(try seen(people, .alice, after: before)) == ["deleted private", "deleted private/plans"])
      #expect(try seen(people, .bob, after: before) == ["deleted plans"])
      #expect(try notices(people, .bob).first == "Alice deleted plans with the item in it")
      before = people.library.lastEvent
      _ = try people.library.recover(ItemPath(account: People.Name.alice.handle, "Documents/private"), id: nil) { _ in }
      #expect(try seen(people, .alice, after: before) == ["created private", "created private/plans"])
      #expect(try seen(people, .bob, after: before) == ["created plans"])
      #expect(try notices(people, .bob).first == "Alice recovered plans with the item in it")
    }
  }

  @Test func whatComesInIsCreatedAndWhatGoesOutIsDeleted() throws {
    try People.story { people in
      try people.as(.alice) {
        for folder in ["plans", "private"] { try $0.mkdir("Documents/\(folder)") }
        try $0.save("Documents/private/a.md", "x")
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      people.fixture.clock.advance(60)
      try settle(people)
      let before = people.library.lastEvent
      try people.as(.alice) {
        try $0.rename("Documents/private/a.md", "Documents/plans/a.md")
        try $0.rename("Documents/plans/a.md", "Documents/private/renamed.md")
      }
      let bobs = try seen(people, .bob, after: before)
      #expect(bobs == ["created plans/a.md", "deleted plans/a.md"])
      for event in try people.library.events(after: before, limit: 10, for: People.Name.bob.handle).events {
        let json = String(decoding: try JSONEncoder().encode(event), as: UTF8.self)
        #expect(!json.contains("private") && !json.contains("renamed.md"), "\(json)")
      }
      let own = try seen(people, .alice, after: before)
      #expect(own == ["moved plans/a.md was private/a.md", "moved private/renamed.md was plans/a.md"])
    }
  }

  @Test func whereTheOwnerKeepsWhatIsSharedIsToldToNobodyElse() throws {
    try People.story { people in
      try people.as(.alice) {
        for folder in ["plans", "private"] { try $0.mkdir("Documents/\(folder)") }
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      people.fixture.clock.advance(60)
      try settle(people)
      let before = people.library.lastEvent
      try people.as(.alice) {
        try $0.rename("Documents/plans", "Documents/private/plans")
        try $0.rename("Documents/private/plans", "Documents/private/trips")
        try $0.rename("Documents/private/trips", "Documents/journeys")
      }
      #expect(try seen(people, .alice, after: before).count == 3)
      #expect(
        try seen(people, .bob, after: before) == ["renamed trips was plans", "renamed journeys was trips"])
      #expect(try notices(people, .bob).first == "Alice renamed plans to journeys")
    }
  }

  @Test func aTextThatComesOverAnotherTellsNothingOfItsPlace() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/private")
        try $0.save("Documents/private/secret name.md", "new")
        try $0.save("Documents/shared.md", "old")
      }
      try people.share("Documents/shared.md", with: [(.bob, .readOnly)])
      people.fixture.clock.advance(60)
      try settle(people)
      let before = people.library.lastEvent
      try people.as(.alice) { try $0.rename("Documents/private/secret name.md", "Documents/shared.md") }
      let (own, bobs) = (try seen(people, .alice, after: before), try seen(people, .bob, after: before))
      #expect(own == ["edit shared.md was private/secret name.md"])
      #expect(bobs == ["edit shared.md"])
      #expect(try notices(people, .bob).first?.hasSuffix("edited shared.md") ?? false)
    }
  }

  @Test func mentionsGoToTheMentionedOnly() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/a.md", "x") }
      try people.share("Documents/a.md", with: [(.bob, .readWrite), (.carol, .readWrite)])
      try settle(people)
      let before = people.library.lastEvent
      let path = try ItemPath(account: People.Name.bob.handle, "Shared/alice@example.com/a.md")
      _ = try people.library.comment(path, text: "What do you think, @carol@example.com?")
      for (name, expected) in [(People.Name.alice, 1), (.bob, 1), (.carol, 2)] {
        let lines = try seen(people, name, after: before)
        #expect(lines == Array(["comment a.md", "mention a.md"].prefix(expected)))
      }
      #expect(try notices(people, .carol).first?.contains("mentioned you in a comment on a.md") ?? false)
      #expect(try notices(people, .bob).allSatisfy { !$0.contains("comment") })
      expect(.accessDenied) { _ = try people.library.comment(path, text: "@dave@example.com") }
    }
  }

  /// Whoever joined by the public permission mentions people as others do, and learns from the answer of nobody whether
  /// they take part.
  @Test func aMentionTellsAPublicUserOfNobody() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/a.md", "x") }
      try people.share("Documents/a.md", with: [(.bob, .readWrite)])
      let url = try people.as(.alice) { try $0.share("Documents/a.md") { $0.anyone = .readWrite } }.url
      _ = try people.as(.carol) { try $0.accept(url) }
      try settle(people)
      let before = people.library.lastEvent
      let path = try ItemPath(account: People.Name.carol.handle, "Shared/alice@example.com/a.md")
      for text in ["@bob@example.com x", "@dan@example.com x", "@nobody@example.com x"] {
        #expect(try people.library.comment(path, text: text).mentioned == [])
      }
      let owner = try people.library.comment(path, text: "@alice@example.com x").mentioned
      #expect(owner.map(\.handle) == [People.Name.alice.handle])
      #expect(try seen(people, .bob, after: before).filter { $0.hasPrefix("mention") }.count == 1)
      #expect(try seen(people, .dan, after: before) == [])
    }
  }

  @Test func readersDoNotComment() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/a.md", "x") }
      try people.share("Documents/a.md", with: [(.bob, .readOnly)])
      let path = try ItemPath(account: People.Name.bob.handle, "Shared/alice@example.com/a.md")
      expect(.accessDenied) { _ = try people.library.comment(path, text: "Nice.") }
    }
  }

  @Test func activityBelowSharedIsOfWhatIsThere() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/deep")
        try $0.mkdir("Documents/deep/plans")
      }
      try people.share("Documents/deep/plans", with: [(.bob, .readWrite)])
      try people.as(.bob) {
        try $0.mkdir("Shared/alice@example.com/plans/x")
        try $0.save("Shared/alice@example.com/plans/x/a.md", "1")
        try $0.save("Documents/own.md", "1")
      }
      try settle(people)
      let path = try ItemPath(account: People.Name.bob.handle, "Shared/alice@example.com/plans/x")
      let events = try people.library.latestEvents(
        limit: 10, for: People.Name.bob.handle, in: people.library.eventScope(path))
      #expect(events.map(Self.line) == ["created plans/x", "created plans/x/a.md"])
      let strangers = try ItemPath(account: People.Name.carol.handle, "Shared/alice@example.com/plans")
      expect(.notFound) { _ = try people.library.eventScope(strangers) }
    }
  }

  /// Who joins is told what is done from then on, whatever the clock says, and of nothing before.
  @Test func aClockThatIsPutBackHidesNothing() throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/plans")
        for name in ["a.md", "b.md"] { try $0.save("Documents/plans/\(name)", "x") }
      }
      let url = try people.as(.alice) { try $0.share("Documents/plans", with: [.bob], .readWrite) }.url
      people.clock.advance(60)
      try settle(people)
      // What its program may yet undo, when bob joins.
      try people.as(.alice, process: getpid()) {
        try $0.rename("Documents/plans/a.md", "Documents/plans/secret.md")
        try $0.rename("Documents/plans/secret.md", "Documents/plans/c.md")
        try $0.unlink("Documents/plans/b.md")
      }
      _ = try people.as(.bob) { try $0.accept(url) }
      people.clock.advance(-7200)
      try people.as(.alice) { try $0.save("Documents/plans/d.md", "x") }
      try people.as(.bob) { try $0.save("Shared/alice@example.com/plans/e.md", "x") }
      let bobs = try seen(people, .bob).filter { $0.contains(".md") || $0.hasPrefix("added") }
      #expect(bobs == ["added plans", "created plans/d.md", "created plans/e.md"])
      let own = try seen(people, .alice).filter { !$0.hasPrefix("created") }
      #expect(
        own == [
          "updated plans", "renamed plans/secret.md was plans/a.md", "renamed plans/c.md was plans/secret.md",
          "deleted plans/b.md", "added plans",
        ])
    }
  }

  /// What waits of an item is told before what becomes of its share.
  @Test func eventsOfAShareComeAfterThoseOfItsItem() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/plan.md", "x") }
      try people.share("Documents/plan.md", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try settle(people)
      let before = people.library.lastEvent
      try people.as(.alice, process: getpid()) { (alice) throws in
        try alice.rename("Documents/plan.md", "Documents/p2.md")
        try alice.library.unshare(alice.path("Documents/p2.md"))
      }
      #expect(try seen(people, .alice, after: before) == ["renamed p2.md was plan.md", "stopped p2.md"])
      #expect(try seen(people, .bob, after: before) == ["renamed p2.md was plan.md", "stopped p2.md"])
    }
  }

  @Test func whatIsSharedWhileItIsMadeIsCreatedFirst() throws {
    try People.story { people in
      let before = people.library.lastEvent
      let handle = try people.as(.alice) { try $0.open("Documents/plan.md", O_RDWR | O_CREAT) }
      try people.as(.alice) { (alice) throws in
        try alice.write(handle, "one")
        try alice.share("Documents/plan.md", with: [.bob])
        people.clock.advance(1)
        try alice.write(handle, "two")
        try alice.close(handle)
        #expect(try alice.versions("Documents/plan.md").map(\.number) == [1, 2])
      }
      let own = try seen(people, .alice, after: before)
      #expect(own == ["created plan.md", "created plan.md", "updated plan.md", "edit plan.md"])
    }
  }

  @Test func activityIsOfWhatIsNamedAlikeNowhereElse() throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/Notes") }
      try people.as(.bob) { try $0.mkdir("Documents/Notes") }
      try people.share("Documents/Notes", with: [(.bob, .readWrite)])
      try people.as(.alice) { try $0.save("Documents/Notes/hers.md", "x") }
      try people.as(.bob) {
        try $0.save("Documents/Notes/his.md", "x")
        try $0.save("Documents/own.md", "x")
      }
      try settle(people)
      for (place, expected) in [
        ("Documents/Notes", ["created Notes", "created Notes/his.md"]),
        ("Shared/alice@example.com/Notes", ["created Notes", "updated Notes", "added Notes", "created Notes/hers.md"]),
        ("Documents", ["created Notes", "created Notes/his.md", "created own.md"]),
      ] {
        let scope = try people.library.eventScope(ItemPath(account: People.Name.bob.handle, place))
        let latest = try people.library.latestEvents(limit: 10, for: People.Name.bob.handle, in: scope).map(Self.line)
        let page = try people.library.events(after: 0, limit: 10, for: People.Name.bob.handle, in: scope)
        #expect(latest == page.events.map(Self.line))
        #expect(latest == expected.suffix(latest.count) && latest.contains(expected.last ?? ""), "\(place): \(latest)")
      }
    }
  }

  @Test func theStatusOfAnItemTellsOfTheShareAlone() throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/folder") }
      try people.share("Documents/folder", with: [(.bob, .readWrite), (.carol, .readWrite)])
      try people.as(.alice) { try $0.save("Documents/fire-bob.md", "x") }
      people.clock.advance(60)
      try settle(people)
      try people.as(.alice) {
        try $0.rename("Documents/fire-bob.md", "Documents/plan.md")
        try $0.save("Documents/plan.md", "private")
        try $0.rename("Documents/plan.md", "Documents/folder/plan.md")
        try $0.save("Documents/folder/plan.md", "public")
      }
      try settle(people)
      func changes(_ name: People.Name, _ path: String) throws -> [String] {
        try people.library.itemStatus(ItemPath(account: name.handle, path)).changes.map {
          "\($0.type.split(separator: ".").last ?? "") \($0.name)"
        }
      }
      let there = "Shared/alice@example.com/folder"
      #expect(try changes(.bob, "\(there)/plan.md") == ["edit plan.md", "created plan.md"])
      #expect(
        try changes(.alice, "Documents/folder/plan.md") == [
          "edit plan.md", "moved plan.md", "edit plan.md", "renamed plan.md", "created fire-bob.md",
        ])
      let folder = try ItemPath(account: People.Name.alice.handle, "Documents/folder")
      _ = try people.library.comment(folder, text: "@carol@example.com")
      #expect(try changes(.bob, there).prefix(2) == ["comment folder", "edit plan.md"])
      #expect(try changes(.carol, there).prefix(3) == ["mention folder", "comment folder", "edit plan.md"])
      #expect(try changes(.alice, "Documents/folder").prefix(2) == ["comment folder", "edit plan.md"])
    }
  }

  /// How someone goes.
  enum Going: CaseIterable { case leaving, takingTheEntryAway, removed, withThePublic }

  @Test(arguments: Going.allCases)
  func whoGoesKeepsWhatTheySawAndHearsNothingMore(_ going: Going) throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/plan.md", "x") }
      let url = try people.as(.alice) {
        try $0.share("Documents/plan.md", with: going == .withThePublic ? [] : [.bob]) {
          $0.anyone = going == .withThePublic ? .readWrite : PublicPermission.none
        }
      }.url
      try people.as(.bob) {
        _ = try $0.accept(url)
        try $0.save("Shared/alice@example.com/plan.md", "his")
      }
      try people.as(.alice) { try $0.save("Documents/plan.md", "hers") }
      try settle(people)
      switch going {
      case .leaving: try people.as(.bob) { try $0.library.leave($0.path("Shared/alice@example.com/plan.md")) }
      case .takingTheEntryAway: try people.as(.bob, process: getpid()) { try $0.removeEntry(.alice, "plan.md") }
      case .removed: try people.as(.alice) { try $0.remove("Documents/plan.md", .bob) }
      case .withThePublic:
        try people.as(.alice) { try $0.share("Documents/plan.md") { $0.anyone = PublicPermission.none } }
      }
      try settle(people)
      try people.as(.alice) { try $0.save("Documents/plan.md", "secret") }
      let invited = [.leaving, .takingTheEntryAway, .removed].contains(going) ? ["updated plan.md"] : []
      let bobs = try seen(people, .bob)
      let closed = going == .withThePublic ? ["updated plan.md"] : []
      #expect(bobs == invited + ["added plan.md", "edit plan.md", "edit plan.md"] + closed + ["removed plan.md"])
      // A new link is not for those who know the old one.
      let new = try people.as(.alice) {
        try $0.share("Documents/plan.md") {
          $0.newLink = true
          $0.anyone = .readOnly
        }
      }.url
      let events = try people.library.events(after: 0, limit: 100, for: People.Name.bob.handle).events
      #expect(events.allSatisfy { $0.data.share == nil })
      let own = try people.library.events(after: 0, limit: 100, for: People.Name.alice.handle).events
      #expect(own.last?.data.share?.url == new)
      try people.as(.bob) { (bob) throws in
        if going == .removed {
          expect(.notFound) { _ = try bob.accept(new) }
        } else {
          #expect(try bob.accept(new).permission == .readOnly)
          #expect(try bob.attribute("share.role", "Shared/alice@example.com/plan.md") == "publicUser")
        }
      }
    }
  }

  @Test(arguments: ["Documents/deep/plans", "Documents/deep"])
  func aPurgeIsToldToThoseWhoSawWhatWent(_ path: String) throws {
    try People.story { people in
      try people.as(.alice) {
        try $0.mkdir("Documents/deep")
        try $0.mkdir("Documents/deep/plans")
      }
      try people.share("Documents/deep/plans", with: [(.bob, .readWrite)])
      try settle(people)
      let before = people.library.lastEvent
      try people.as(.alice) { try $0.library.purge($0.path(path), version: nil) }
      #expect(try seen(people, .bob, after: before) == ["deleted plans"])
      #expect(try seen(people, .carol, after: before) == [])
      // One who comes later under the same handle was nobody's.
      let bob = People.Name.bob.handle
      try people.library.removeAccount(bob)
      _ = try people.library.addAccount(bob, name: "Bob again")
      #expect(try seen(people, .bob) == [])
    }
  }
}
