import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Feeds of shares: what members are told of what enters, changes and leaves.
@Suite struct SharedFeedTests {
  @Test(arguments: StoreEngine.available)
  func aMemberFollowsWhatIsShared(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let plan = try await story.document("plan", "1", in: trip)
      let secret = try await story.document("secret", "s")
      let share = try await story.share(trip, with: [story.bob], .readOnly)
      var bob = SharedStory.Follower(story.place(share, story.bob))
      try await bob.follow(story.hub)
      #expect(bob.paths == ["trip", "trip/plan"])
      let before = try #require(bob.token)
      // What is outside is told neither as a change nor as a number.
      try await story.save(secret, "t")
      try await bob.follow(story.hub)
      #expect(bob.changes == [] && bob.token == before)
      try await story.save(plan, "2")
      let note = try await story.document("note", "n", in: trip)
      try await bob.follow(story.hub, limit: 1)
      #expect(bob.changes.map(\.item) == [plan, note] && bob.changes.map(\.change) == [.changed, .changed])
      #expect(bob.changes.map(\.number) == [before.number + 1, before.number + 2])
      try await story.delete(note)
      try await story.move(plan, .document, to: .root, "plan")
      try await bob.follow(story.hub)
      #expect(bob.paths == ["trip"] && bob.changes.map(\.change) == [.left, .left])
      // The owner renames and moves what is shared; where it lies is not told.
      let home = try await story.folder("home")
      try await story.move(trip, to: home, "journey")
      try await bob.follow(story.hub)
      #expect(bob.paths == ["journey"])
      #expect(bob.changes.first?.state?.places == [Place(parent: .root, "journey")])
      #expect(try await story.hub.check() == [])
    }
  }

  /// One change tells of a folder, whatever is in it, as it enters and as it leaves.
  @Test(arguments: StoreEngine.available)
  func aFolderEntersAndLeavesByOneChange(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (trip, photos) = (try await story.folder("trip"), try await story.folder("photos"))
      let inner = try await story.folder("inner", in: photos)
      for start in stride(from: 0, to: 1_000, by: 250) {
        let group = (start..<(start + 250)).map { number in
          Send.document(WireID(), at: [Place(parent: inner, "\(number)")], version: WireID(), "x")
        }
        try await story.send(group).forEach { try #require($0.outcome == .done) }
      }
      let share = try await story.share(trip, with: [story.bob])
      var bob = SharedStory.Follower(story.place(share, story.bob))
      try await bob.follow(story.hub)
      func rows() async throws -> [Int64] {
        try await database.read { connection in
          let tables = try [
            connection.query("SELECT COUNT(*) FROM shared_rows"), connection.query("SELECT COUNT(*) FROM entries"),
          ]
          return try tables.map { try $0.first?.integer(0) ?? 0 }
        }
      }
      #expect(try await rows() == [0, 0])
      try await story.move(photos, to: trip, "photos")
      #expect(try await rows() == [1, 1])
      try await bob.follow(story.hub)
      #expect(bob.changes.map(\.change) == [.entered] && bob.items.count == 1_003)
      try await story.move(photos, to: .root, "photos")
      #expect(try await rows() == [1, 1])
      try await bob.follow(story.hub)
      #expect(bob.changes.map(\.change) == [.left] && bob.paths == ["trip"])
    }
  }

  /// A reader that is behind is told all of a folder, though that changed since it entered, or something left it.
  @Test(arguments: StoreEngine.available)
  func whoIsBehindIsToldAllOfWhatEntered(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (trip, photos) = (try await story.folder("trip"), try await story.folder("photos"))
      let inner = try await story.folder("inner", in: photos)
      _ = try await story.document("a", "1", in: inner)
      let kept = try await story.document("kept", "1", in: trip)
      let share = try await story.share(trip, with: [story.bob])
      var followers = (1...3).map { _ in SharedStory.Follower(story.place(share, story.bob)) }
      for index in followers.indices { try await followers[index].follow(story.hub) }
      try await story.move(photos, to: trip, "photos")
      try await story.save(kept, "2")
      // Its subfolder goes elsewhere in the share, and it gets another name.
      try await story.move(inner, to: trip, "inner")
      try await story.move(photos, to: trip, "pictures")
      for (index, limit) in [1, 2, 100].enumerated() {
        try await followers[index].follow(story.hub, limit: limit)
        #expect(
          followers[index].paths == ["trip", "trip/inner", "trip/inner/a", "trip/kept", "trip/pictures"], "\(limit)")
      }
      // Something goes to a folder that then leaves: it is gone, too.
      let before = followers[0]
      try await story.move(kept, .document, to: photos, "kept")
      try await story.move(photos, to: .root, "photos")
      var late = before
      try await late.follow(story.hub, limit: 1)
      #expect(late.paths == ["trip", "trip/inner", "trip/inner/a"])
    }
  }

  @Test(arguments: StoreEngine.available)
  func aTokenOfAnotherTimeIsGone(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (trip, other) = (try await story.folder("trip"), try await story.folder("other"))
      let plan = try await story.document("plan", "1", in: trip)
      let share = try await story.share(trip, with: [story.bob])
      let another = try await story.share(other, with: [story.bob])
      func isGone(_ token: SharedToken, _ share: HubShare, _ person: Person) async throws -> Bool {
        try await problem {
          _ = try await story.hub.sharedFeeds.page(after: token, limit: 9, of: story.place(share, person))
        } == .gone
      }
      var bob = SharedStory.Follower(story.place(share, story.bob))
      try await bob.follow(story.hub)
      let token = try #require(bob.token)
      #expect(try await !isGone(token, share, story.bob))
      #expect(try await isGone(token, another, story.bob))
      let ahead = SharedToken(
        number: token.number + 1, since: token.since, mark: token.mark, change: token.change)
      #expect(try await isGone(ahead, share, story.bob))
      // What was before somebody joined is not told by anybody's token, nor by one that was made up.
      try await story.save(plan, "2")
      try await story.invite(story.carol, to: share)
      #expect(try await isGone(token, share, story.carol))
      #expect(try await !isGone(token, share, story.bob))
      try await story.remove(story.bob, from: share)
      try await story.save(plan, "3")
      try await story.invite(story.bob, to: share)
      #expect(try await isGone(token, share, story.bob))
      // Deletions that are forgotten.
      var carol = SharedStory.Follower(story.place(share, story.carol))
      try await carol.follow(story.hub)
      let kept = try #require(carol.token)
      try await story.delete(plan)
      story.test.clock.advance(seconds: 181 * 86_400)
      try await story.hub.retention.expire(story.alice.zone, by: RetentionRules())
      try await story.hub.feeds.forgetDeletions(in: story.alice.zone)
      #expect(try await isGone(kept, share, story.carol))
      // The share begins again.
      carol.token = nil
      try await carol.follow(story.hub)
      let owner = story.alice.zone
      try await story.hub.sharing.change(share.id, by: story.alice) { try $0.stop(by: owner) }
      try await story.share(trip, with: [story.carol])
      #expect(try await isGone(try #require(carol.token), share, story.carol))
      carol.token = nil
      try await carol.follow(story.hub)
      let last = try #require(carol.token)
      try await database.write { try Zone.beginEpochs(in: &$0) }
      #expect(try await isGone(last, share, story.carol))
      for text in ["", "x", String(repeating: "f", count: 64), last.text + "00", String(last.text.dropLast())] {
        #expect(throws: HubError.self) { try SharedToken(text) }
      }
      #expect(try await story.hub.check() == [])
    }
  }

  /// Borders: no share comes to lie in another one, and no document has a name on both sides of one.
  @Test(arguments: StoreEngine.available)
  func bordersHold(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (one, two) = (try await story.folder("one"), try await story.folder("two"))
      let box = try await story.folder("box")
      let inner = try await story.folder("inner", in: box)
      let plan = try await story.document("plan", "1", in: one)
      for folder in [one, two, inner] { try await story.share(folder) }
      // A share, and a folder around one, into another.
      #expect(try await story.move(two, to: one, "two").reason == .border)
      #expect(try await story.move(box, to: one, "box").reason == .border)
      #expect(try await story.move(inner, to: two, "inner").reason == .border)
      // Hard links across a border.
      func places(_ folders: WireID...) -> Send {
        Send(serial: 0, item: plan, kind: .document, places: folders.map { Place(parent: $0, "plan") })
      }
      #expect(try await story.send(places(one, .root)).map(\.reason) == [.border])
      #expect(try await story.send(places(one, two)).map(\.reason) == [.border])
      let deeper = try await story.folder("deeper", in: one)
      #expect(try await story.send(places(one, deeper)).map(\.outcome) == [.done])
      #expect(try await story.send(places(one)).map(\.outcome) == [.done])
      // Between shares, and out.
      #expect(try await story.move(plan, .document, to: two, "plan").outcome == .done)
      #expect(try await story.move(plan, .document, to: .root, "plan").outcome == .done)
      #expect(try await story.move(box, to: .root, "case").outcome == .done)
      // Nothing was done of what was refused.
      #expect(try await story.hub.check() == [])
    }
  }

  /// Whoever is in both shares is told that something goes from one to the other.
  @Test(arguments: StoreEngine.available)
  func betweenSharesItLeavesAndEnters(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (one, two) = (try await story.folder("one"), try await story.folder("two"))
      let box = try await story.folder("box", in: one)
      let plan = try await story.document("plan", "old", in: box)
      try await story.save(plan, "current")
      let (first, second) = (
        try await story.share(one, with: [story.bob]), try await story.share(two, with: [story.carol])
      )
      var bob = SharedStory.Follower(story.place(first, story.bob))
      var carol = SharedStory.Follower(story.place(second, story.carol))
      try await bob.follow(story.hub)
      try await carol.follow(story.hub)
      #expect(bob.paths == ["one", "one/box", "one/box/plan"] && carol.paths == ["two"])
      try await story.move(box, to: two, "box")
      try await bob.follow(story.hub)
      try await carol.follow(story.hub)
      #expect(bob.paths == ["one"] && carol.paths == ["two", "two/box", "two/box/plan"])
      #expect(try await story.texts(plan, first, story.bob) == nil)
      #expect(try await story.texts(plan, second, story.carol) == ["current"])
      // A member takes nothing out of a share, whatever else it takes part in.
      try await story.invite(story.carol, to: first)
      let out = Send.move(box, .folder, to: Place(parent: one, "box"), base: 1 << 40)
      #expect(try await story.send(out, to: second, by: story.carol).map(\.reason) == [.noParent])
      #expect(try await story.send(out, to: first, by: story.carol).map(\.reason) == [.unknown])
    }
  }
}
