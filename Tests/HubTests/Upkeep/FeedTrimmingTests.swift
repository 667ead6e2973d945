import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// The ids of changes are kept as long as tokens are good.
@Suite struct FeedTrimmingTests {
  @Test(arguments: StoreEngine.available)
  func whatNoGoodTokenNamesIsForgotten(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let plan = try await story.document("plan", "0", in: trip)
      let share = try await story.share(trip, with: [story.bob])
      let (zone, place) = (story.alice.zone, story.place(share, story.bob))
      func counts() async throws -> [Int64] {
        try await database.read { connection in
          try [
            connection.query("SELECT COUNT(*) FROM changes WHERE zone = $1", [.text(zone)]),
            connection.query("SELECT COUNT(*) FROM shared_changes WHERE zone = $1", [.text(zone)]),
            connection.query("SELECT COUNT(*) FROM feed_marks WHERE zone = $1", [.text(zone)]),
          ].map { try $0.first?.integer(0) ?? 0 }
        }
      }
      func tokens() async throws -> (FeedToken, SharedToken) {
        var bob = SharedStory.Follower(place)
        try await bob.follow(story.hub)
        let page = try await story.hub.feeds.page(after: nil, limit: 1_000, of: zone)
        return (try FeedToken(page.token), try #require(bob.token))
      }
      func isGood(_ tokens: (FeedToken, SharedToken)) async throws -> [Bool] {
        [
          try await problem { _ = try await story.hub.feeds.page(after: tokens.0, limit: 9, of: zone) },
          try await problem { _ = try await story.hub.sharedFeeds.page(after: tokens.1, limit: 9, of: place) },
        ].map { $0 != .gone }
      }
      // Two changes a day, for a year, with an upkeep after each; the tokens of each tenth day.
      var known: [(day: Int, tokens: (FeedToken, SharedToken))] = []
      for day in 0..<365 {
        for _ in 0..<2 {
          try await story.save(plan, "\(day)")
          try await story.move(plan, .document, to: trip, "plan \(day)")
          story.test.clock.advance(seconds: 43_200)
          try await story.hub.feeds.trim(zone)
        }
        if day % 10 == 0 { known.append((day, try await tokens())) }
      }
      for (day, tokens) in known {
        let expected: Bool? = day > 365 - 180 ? true : day < 365 - 183 ? false : nil
        if let expected { #expect(try await isGood(tokens) == [expected, expected], "day \(day)") }
      }
      // A day has four changes at most, and there are 180 days and a few.
      let kept = try await counts()
      #expect(kept[0] <= 183 * 4 && kept[1] <= 183 * 4 && kept[2] <= 2 * 183, "\(kept)")
      #expect(kept.allSatisfy { $0 > 180 })
      // Nothing happens for a year: who knows all of it knows it still.
      let last = try await tokens()
      for _ in 0..<4 {
        story.test.clock.advance(seconds: 100 * 86_400)
        try await story.hub.upkeep()
      }
      #expect(try await isGood(last) == [true, true])
      #expect(try await counts() == [1, 1, 2])
      try await story.save(plan, "again")
      let page = try await story.hub.feeds.page(after: last.0, limit: 9, of: zone)
      #expect(page.items.map(\.item) == [plan])
      #expect(try await story.hub.check() == [])
      // A clock that goes back notes nothing and forgets nothing.
      story.test.clock.advance(seconds: -900 * 86_400)
      let before = try await counts()
      try await story.hub.feeds.trim(zone)
      #expect(try await counts() == before)
    }
  }
}
