import Foundation
import SheafModel
import SheafStore
import Synchronization
import Testing

@testable import SheafLibrary

/// The event log as its readers see it.
struct EventReadingTests {
  private func withLibrary(_ body: (LibraryFixture) throws -> Void) throws {
    let fixture = try LibraryFixture()
    try body(fixture)
    try fixture.finish()
  }

  private func bob(_ fixture: LibraryFixture) throws -> AccountHandle {
    let bob = try AccountHandle("bob@example.com")
    _ = try fixture.library.addAccount(bob, name: "Bob")
    return bob
  }

  private func settle(_ fixture: LibraryFixture) throws {
    fixture.clock.advance(20)
    try fixture.library.locked { try fixture.library.settleEvents(all: true) }
  }

  @Test func eventsAreCloudEvents() throws {
    try withLibrary { fixture in
      try fixture.save("a \"b\".md", "text")
      try settle(fixture)
      let event = try #require(try fixture.library.events(after: nil, limit: 10, for: nil).events.first)
      let json = try JSONEncoder().encode(event)
      let object = try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
      #expect(object["specversion"] as? String == "1.0")
      #expect(object["type"] as? String == "sheaf.persistence.created")
      #expect(object["source"] as? String == "sheaf://\(fixture.library.id)")
      #expect(object["sequence"] as? String == "0000000000000000001")
      #expect(UUID(uuidString: object["id"] as? String ?? "") != nil)
      #expect((object["time"] as? String)?.hasSuffix("Z") ?? false)
      let data = try #require(object["data"] as? [String: Any])
      #expect(data["share"] is NSNull)
      #expect(data["actor"] as? [String: String] == ["handle": "alice@example.com", "name": "Alice"])
      let item = try #require(data["item"] as? [String: String])
      #expect(item["path"] == "a \"b\".md" && item["name"] == item["path"] && item["kind"] == "document")
      #expect(object["subject"] as? String == item["id"])
      #expect((data["version"] as? [String: Any])?["number"] as? Int == 1)
      #expect(try JSONDecoder().decode(Event.self, from: json) == event)
    }
  }

  @Test func pagesGoOnWhereTheLastOneEnded() throws {
    try withLibrary { fixture in
      for number in 1...25 { try fixture.mkdir("folder \(number)") }
      try settle(fixture)
      var position: Int64?
      var seen: [Int64] = []
      repeat {
        let page = try fixture.library.events(after: position, limit: 4, for: fixture.account)
        #expect(page.events.count <= 4 && page.last == 25)
        seen += page.events.map(\.sequence)
        position = page.next
      } while position != 25
      #expect(seen == Array(1...25))
      #expect(try fixture.library.events(after: 25, limit: 4, for: nil).events.isEmpty)
      #expect(try fixture.library.latestEvents(limit: 3, for: fixture.account).map(\.sequence) == [23, 24, 25])
    }
  }

  @Test func nobodySeesWhatIsNotTheirs() throws {
    try withLibrary { fixture in
      let bob = try bob(fixture)
      try fixture.mkdir("secret")
      try settle(fixture)
      let page = try fixture.library.events(after: 0, limit: 10, for: bob)
      #expect(page.events.isEmpty && page.next == 1)
      #expect(try fixture.library.events(after: 0, limit: 10, for: nil).events.count == 1)
      #expect(try fixture.library.notices(for: bob).notices.isEmpty)
    }
  }

  @Test func whatRetentionDroppedIsGone() throws {
    try withLibrary { fixture in
      for number in 1...3 { try fixture.mkdir("old \(number)") }
      fixture.clock.advance(91 * 86_400)
      try fixture.mkdir("new")
      try settle(fixture)
      _ = try fixture.compactAfterLong()
      for position: Int64 in [0, 2, 99] {
        let error = #expect(throws: SheafError.self) {
          try fixture.library.events(after: position, limit: 9, for: nil)
        }
        #expect(error?.kind == .gone && error?.advice != nil, "after \(position)")
      }
      #expect(try fixture.library.events(after: nil, limit: 9, for: nil).events.map(\.data.item.name) == ["new"])
      #expect(try fixture.library.events(after: 3, limit: 9, for: nil).events.count == 1)
    }
  }

  @Test func aClockThatWasWrongForAWhileDropsNothingElse() throws {
    try withLibrary { fixture in
      try fixture.mkdir("before")
      fixture.clock.advance(-200 * 86_400)
      try fixture.mkdir("wrong")
      fixture.clock.advance(200 * 86_400)
      _ = try fixture.library.compact { _ in }
      #expect(try fixture.library.events(after: nil, limit: 9, for: nil).events.count == 2)
    }
  }

  @Test func whoWaitsIsTold() throws {
    try withLibrary { fixture in
      let calls = Mutex(0)
      let number = fixture.library.observeEvents { _ in calls.withLock { $0 += 1 } }
      try fixture.mkdir("one")
      #expect(calls.withLock { $0 } == 1)
      _ = try fixture.names()
      #expect(calls.withLock { $0 } == 1)
      fixture.library.endObservingEvents(number)
      try fixture.mkdir("two")
      #expect(calls.withLock { $0 } == 1)
    }
  }

  @Test func activityOfAFolderIsWhatHappenedInIt() throws {
    try withLibrary { fixture in
      for name in ["a", "a/b", "ab", "c"] { try fixture.mkdir(name) }
      try fixture.rename("c", "a/c")
      try settle(fixture)
      let scope = try fixture.library.eventScope(fixture.path("a"))
      let events = try fixture.library.latestEvents(limit: 100, for: fixture.account, in: scope)
      #expect(events.map(\.data.item.path) == ["a", "a/b", "a/c"])
      #expect(throws: SheafError.self) { try fixture.library.eventScope(fixture.path("none")) }
    }
  }

  @Test func commentsAreTold() throws {
    try withLibrary { fixture in
      let bob = try bob(fixture)
      try fixture.save("plan.md", "text")
      let path = try fixture.path("plan.md")
      let comment = try fixture.library.comment(path, text: "  Look at this, @alice@example.com. \n")
      #expect(comment.comment == "Look at this, @alice@example.com.")
      #expect(comment.mentioned.map(\.name) == ["Alice"])
      for text in ["@bob@example.com", "@nobody@example.com"] {
        let error = #expect(throws: SheafError.self) { try fixture.library.comment(path, text: text) }
        #expect(error?.kind == .accessDenied)
      }
      #expect(throws: SheafError.self) { try fixture.library.comment(path, text: " \n") }
      #expect(throws: SheafError.self) { try fixture.library.comment(path, text: String(repeating: "x", count: 4001)) }
      try settle(fixture)
      let events = try fixture.library.events(after: 0, limit: 10, for: nil).events
      #expect(events.map(\.type) == [.created, .comment, .mention])
      #expect(events.last?.data.mentioned?.handle == fixture.account)
      #expect(try fixture.library.events(after: 0, limit: 10, for: bob).events.isEmpty)
      // Nobody is told of what they did themselves.
      #expect(try fixture.library.notices(for: fixture.account).notices.isEmpty)
    }
  }

  @Test(arguments: [
    ("@bob@example.com", ["bob@example.com"]), ("see @bob@example.com.", ["bob@example.com"]),
    ("bob@example.com", []), ("a@bob@example.com", []), ("@home @", []), ("(@a@b, @a@b; @c@d)", ["a@b", "c@d"]),
  ])
  func mentionsStandAlone(_ text: String, _ handles: [String]) {
    #expect(Mentions.handles(in: text).map(\.description) == handles)
  }
}
