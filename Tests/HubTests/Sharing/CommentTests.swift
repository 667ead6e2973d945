import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Comments, who is told of mentions, what events say of time and machine, and how far notices were read.
@Suite struct CommentTests {
  private static func log(_ story: SharedStory) async throws -> [Event] {
    try await story.hub.events.page(after: .number(0), limit: 1_000, of: story.alice.zone).events
  }

  private static func log(_ story: SharedStory, _ share: HubShare, _ person: Person) async throws -> [Event] {
    try await story.hub.sharedEvents.page(after: .number(0), limit: 1_000, of: story.place(share, person)).events
  }

  private static func author(_ person: Person, _ story: SharedStory) -> SendAuthor {
    SendAuthor(
      device: "11111111-2222-4333-8444-555555555555", deviceName: "phone", handle: person.handle, name: person.handle,
      now: story.hub.clock.now)
  }

  @Test(arguments: StoreEngine.available)
  func aCommentIsToldOnceAndAMentionToOneAlone(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip", in: try await story.folder("home"))
      let plan = try await story.document("plan.md", "one", in: trip)
      let secret = try await story.document("secret.md", "one")
      let share = try await story.share(trip, with: [story.bob])
      let said = story.hub.clock.now.nanoseconds - 5_000_000_000
      let text = "@\(story.alice.handle) and @\(story.bob.handle), but not @\(story.carol.handle)"
      let comment = SentComment(id: WireID(), text: text, time: said)
      let (place, author) = (story.place(share, story.bob), Self.author(story.bob, story))
      for _ in 0..<2 {
        try await story.hub.comments.add(comment, to: plan, of: place.zone, in: place, by: author)
      }
      let own = try await Self.log(story).filter { $0.data.comment != nil }
      #expect(own.map(\.type) == [.comment, .mention])
      #expect(own.map { $0.data.mentioned?.handle.description } == [nil, story.alice.handle])
      #expect(own[0].id == comment.id.description && own[0].time.nanoseconds == said)
      #expect(own[0].data.item.path == "home/trip/plan.md" && own[0].data.device?.name == "phone")
      let bobs = try await Self.log(story, share, story.bob).filter { $0.data.comment != nil }
      #expect(bobs.map(\.type) == [.comment, .mention])
      #expect(bobs.map { $0.data.mentioned?.handle.description } == [nil, story.bob.handle])
      #expect(bobs.allSatisfy { $0.data.item.path == "trip/plan.md" })
      // What is not in the share is nothing for a member, and a member of nothing comments on nothing.
      for (item, person) in [(secret, story.bob), (plan, story.carol)] {
        let place = story.place(share, person)
        await #expect(throws: HubError.self) {
          try await story.hub.comments.add(
            SentComment(id: WireID(), text: "x", time: said), to: item, of: place.zone, in: place,
            by: Self.author(person, story))
        }
      }
    }
  }

  @Test(arguments: StoreEngine.available)
  func eventsHaveTheAuthorsTimeAndMachine(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let now = story.hub.clock.now.nanoseconds
      let (early, late) = (now - 86_400_000_000_000, now + 2 * 86_400_000_000_000)
      let id = WireID()
      var made = Send.document(id, at: [Place(parent: .root, "a.md")], version: WireID(), "one")
      made.time = early
      _ = try await story.send(made)
      let base = try await story.hub.feeds.item(id, in: story.alice.zone)?.number
      var moved = Send(serial: 0, item: id, kind: .document, base: base, places: [Place(parent: .root, "b.md")])
      moved.time = late
      _ = try await story.send(moved)
      let events = try await Self.log(story)
      #expect(events.map(\.type) == [.created, .renamed])
      #expect(events[0].time.nanoseconds == early)
      // A clock that is ahead by days says nothing.
      #expect(abs(events[1].time.nanoseconds - now) < 86_400_000_000_000)
      #expect(events.allSatisfy { $0.data.device != nil })
    }
  }

  @Test(arguments: StoreEngine.available)
  func whatWasReadIsToldAndNeverFalls(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let share = try await story.share(trip, with: [story.bob])
      _ = try await story.folder("home")
      for number in [2, 1, 1_000] as [Int64] {
        try await story.hub.readMarks.set([.init(share: nil, number: number)], of: story.alice.zone)
      }
      let own = try await story.hub.logs.own(of: story.alice.zone)
      #expect(own.read == own.last)
      try await story.hub.readMarks.set(
        [.init(share: share.id, number: 1), .init(share: WireID(), number: 1)], of: story.bob.zone)
      let logs = try await story.hub.logs.all(of: story.bob.zone)
      #expect(logs.map(\.read) == [0, 1])
    }
  }
}
