import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// An older copy takes the store's place, with nobody telling the hub: a backup of PostgreSQL's own, or a standby that
/// lagged behind. It goes on otherwise, past the numbers that were given before.
@Suite struct OlderStoreTests {
  @Test(arguments: StoreEngine.available)
  func aNumberThatCameAgainIsAnotherChange(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      try await engine.withDatabase { older in
        let story = try await SharedStory(database)
        let trip = try await story.folder("trip")
        try await story.document("kept", "1", in: trip)
        let share = try await story.share(trip, with: [story.bob])
        func token(_ story: SharedStory) async throws -> FeedToken {
          try FeedToken(try await story.hub.feeds.page(after: nil, limit: 1_000, of: story.alice.zone).token)
        }
        func sharedToken(_ story: SharedStory) async throws -> SharedToken {
          var follower = SharedStory.Follower(story.place(share, story.bob))
          try await follower.follow(story.hub)
          return try #require(follower.token)
        }
        let (before, sharedBefore) = (try await token(story), try await sharedToken(story))
        let restored = try await story.copy(to: older)
        // Both go on.
        for (hub, name) in [(story, "lost"), (restored, "new")] {
          for number in 1...3 { try await hub.document("\(name)-\(number)", name, in: trip) }
        }
        let (lost, sharedLost) = (try await token(story), try await sharedToken(story))
        try await restored.document("past", "the numbers of before", in: trip)

        let zone = story.alice.zone
        let known = try await restored.hub.feeds.page(after: before, limit: 9, of: zone)
        #expect(known.items.count == 4)
        #expect(try await problem { _ = try await restored.hub.feeds.page(after: lost, limit: 9, of: zone) } == .gone)
        let place = restored.place(share, restored.bob)
        let shared = try await restored.hub.sharedFeeds.page(after: sharedBefore, limit: 9, of: place)
        #expect(shared.changes.count == 4)
        #expect(
          try await problem {
            _ = try await restored.hub.sharedFeeds.page(after: sharedLost, limit: 9, of: place)
          } == .gone)
        // On the hub that went on they are good.
        #expect(try await story.hub.feeds.page(after: lost, limit: 9, of: zone).items == [])
        // A page that ends in the middle has a token of the same kind.
        let middle = try await restored.hub.feeds.page(after: before, limit: 2, of: zone)
        #expect(middle.hasMore)
        let rest = try await restored.hub.feeds.page(after: try FeedToken(middle.token), limit: 9, of: zone)
        #expect(rest.items.count == 2)
      }
    }
  }
}
