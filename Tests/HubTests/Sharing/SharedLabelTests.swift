import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// The names that members of a share give to versions.
@Suite struct SharedLabelTests {
  /// Alice's `plan` of four versions, of which members see those from the second on.
  private struct Plan {
    let story: SharedStory
    let share: HubShare
    let plan: WireID
    let versions: [WireID]

    init(_ database: any Database) async throws {
      story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      plan = try await story.document("plan", "1", in: trip)
      try await story.save(plan, "2")
      share = try await story.share(trip, with: [story.bob])
      for text in ["3", "4"] { try await story.save(plan, text) }
      versions = try await story.hub.contents.versions(of: plan, after: 0, limit: 9, in: story.alice.zone).versions
        .map(\.id)
      try #require(versions.count == 4)
    }

    /// The labels of the versions, as the owner has them.
    func labels() async throws -> [String?] {
      try await story.hub.contents.versions(of: plan, after: 0, limit: 9, in: story.alice.zone).versions.map(\.label)
    }

    /// The same as somebody in the share has them.
    func labels(of person: Person) async throws -> [String?] {
      try await story.hub.sharedFeeds.versions(of: plan, after: 0, limit: 9, of: story.place(share, person)).versions
        .map(\.label)
    }

    /// Has the owner label a version.
    func label(_ version: WireID, _ label: String) async throws {
      try await story.hub.labels.label(version, of: plan, as: label, in: story.alice.zone, by: "a")
    }

    /// Has somebody label a version in the share; returns why not.
    func label(
      _ version: WireID, _ label: String, of item: WireID, by person: Person
    ) async throws -> Problem.Kind? {
      let place = story.place(share, person)
      return try await problem {
        try await story.hub.labels.label(version, of: item, as: label, in: place, by: "device of \(person.handle)")
      }
    }
  }

  @Test(arguments: StoreEngine.available)
  func whoMayEditLabelsWhatTheySee(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let plan = try await Plan(database)
      let (story, item, ids) = (plan.story, plan.plan, plan.versions)
      try await story.invite(story.carol, to: plan.share, .readOnly)
      var bob = SharedStory.Follower(story.place(plan.share, story.bob))
      var carol = SharedStory.Follower(story.place(plan.share, story.carol))
      try await bob.follow(story.hub)
      try await carol.follow(story.hub)
      let before = try #require(try await story.hub.feeds.item(item, in: story.alice.zone)).number
      #expect(try await plan.label(ids[2], "final", of: item, by: story.bob) == nil)
      #expect(try await plan.labels() == [nil, nil, "final", nil])
      #expect(try await plan.labels(of: story.carol) == [nil, "final", nil])
      let state = try await story.hub.feeds.item(item, in: story.alice.zone)
      #expect(state?.labels == 1 && state?.number == before + 1)
      try await bob.follow(story.hub)
      try await carol.follow(story.hub)
      #expect(bob.changes.map(\.item) == [item] && carol.changes.map(\.item) == [item])
      #expect(carol.items[item]?.labels == 1)
      // It moves, and once more is no change.
      for _ in 0..<2 { #expect(try await plan.label(ids[3], "final", of: item, by: story.bob) == nil) }
      #expect(try await plan.labels() == [nil, nil, nil, "final"])
      #expect(try await story.hub.feeds.item(item, in: story.alice.zone)?.number == before + 2)
      // Who only views labels nothing, and neither does a stranger.
      #expect(try await plan.label(ids[3], "x", of: item, by: story.carol) == .forbidden)
      try await story.remove(story.carol, from: plan.share)
      #expect(try await plan.label(ids[3], "x", of: item, by: story.carol) == .notFound)
      for bad in ["", "a\nb"] { #expect(try await plan.label(ids[3], bad, of: item, by: story.bob) == .invalid) }
      // What is not in the share is nothing, and so is what was deleted.
      let secret = try await story.document("secret", "s")
      let version = try #require(try await story.hub.feeds.item(secret, in: story.alice.zone)?.version?.id)
      #expect(try await plan.label(version, "x", of: secret, by: story.bob) == .notFound)
      #expect(try await plan.label(version, "x", of: item, by: story.bob) == .notFound)
      try await story.delete(item)
      #expect(try await plan.label(ids[3], "x", of: item, by: story.bob) == .notFound)
      #expect(try await plan.labels() == [nil, nil, nil, "final"])
      #expect(try await story.hub.check() == [])
    }
  }

  /// Neither is it labelled, nor does it lose a label; its owner's labels are told to nobody.
  @Test(arguments: StoreEngine.available)
  func whatMembersDoNotSeeKeepsItsLabel(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let plan = try await Plan(database)
      let (story, item, ids) = (plan.story, plan.plan, plan.versions)
      var bob = SharedStory.Follower(story.place(plan.share, story.bob))
      try await bob.follow(story.hub)
      #expect(try await plan.label(ids[0], "x", of: item, by: story.bob) == .notFound)
      try await plan.label(ids[0], "offer")
      #expect(try await plan.label(ids[1], "offer", of: item, by: story.bob) == .conflict)
      #expect(try await plan.labels() == ["offer", nil, nil, nil])
      try await bob.follow(story.hub)
      #expect(bob.changes == [])
      // Alice may move it, and members hear of what they see.
      try await plan.label(ids[1], "offer")
      try await bob.follow(story.hub)
      #expect(bob.changes.map(\.item) == [item])
      #expect(try await plan.labels(of: story.bob) == ["offer", nil, nil])
      try await plan.label(ids[0], "offer")
      try await bob.follow(story.hub)
      #expect(bob.changes.map(\.item) == [item])
      #expect(try await plan.labels(of: story.bob) == [nil, nil, nil])
      #expect(try await story.hub.check() == [])
    }
  }
}
