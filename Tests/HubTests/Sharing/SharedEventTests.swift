import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Events of shares and people in the log of the zone, and what members see of them.
@Suite struct SharedEventTests {
  private static func words(_ events: [Event]) -> [String] {
    events.map { event in
      let type = event.type.rawValue.replacing("sheaf.", with: "")
      let person = event.data.participant.map { " \($0.handle.prefix { $0 != "@" }) \($0.acceptance)" } ?? ""
      let from = event.data.previousPath.map { " from \($0)" } ?? ""
      return "\(type) \(event.data.item.path)\(from)\(person)"
    }
  }

  private static func log(_ story: SharedStory) async throws -> [Event] {
    try await story.hub.events.page(after: .number(0), limit: 1_000, of: story.alice.zone).events
  }

  /// The log of a person's own zone.
  private static func log(_ story: SharedStory, of person: Person) async throws -> [Event] {
    try await story.hub.events.page(after: .number(0), limit: 1_000, of: person.zone).events
  }

  private static func log(_ story: SharedStory, _ share: HubShare, _ person: Person) async throws -> [Event] {
    try await story.hub.sharedEvents.page(after: .number(0), limit: 1_000, of: story.place(share, person)).events
  }

  @Test(arguments: StoreEngine.available)
  func theLogTellsOfSharesAndPeople(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip", in: try await story.folder("home"))
      let share = try await story.share(trip, with: [story.bob])
      let owner = story.alice.zone
      _ = try await story.hub.sharing.share(
        trip, ShareSettings(title: "Our trip", allowRequests: true), by: story.alice)
      _ = try await story.hub.sharing.accept(share.token, by: story.carol)
      let now = story.hub.clock.now
      try await story.hub.sharing.change(share.id, by: story.alice) {
        try $0.answer(story.carol.handle, story.carol, .deny, by: owner, at: now)
      }
      let bob = story.bob.zone
      _ = try await story.hub.sharing.change(share.id, by: story.alice) {
        try $0.invite(story.bob, ParticipantSettings(permission: .readOnly), by: owner, at: now)
      }
      try await story.hub.sharing.change(share.id, by: story.bob) { try $0.leave(bob) }
      try await story.hub.sharing.change(share.id, by: story.alice) { try $0.stop(by: owner) }
      let log = try await Self.log(story).dropFirst(2)
      #expect(
        Self.words(Array(log)) == [
          "share.created home/trip", "share.updated home/trip bob pending", "membership.added home/trip bob accepted",
          "share.updated home/trip", "membership.requested home/trip carol pending",
          "membership.declined home/trip carol pending", "share.updated home/trip bob accepted",
          "membership.removed home/trip bob removed", "share.stopped home/trip",
        ])
      #expect(log.map(\.data.actor.handle.description).map { $0.prefix(1) }.joined() == "aabacaaba")
      #expect(log.map(\.sequence) == Array(3...11))
      // From joining to leaving, both included; who asks is told to those who answer.
      let seen = try await Self.log(story, share, story.bob)
      #expect(
        Self.words(seen) == [
          "membership.added trip bob accepted", "share.updated trip", "share.updated trip bob accepted",
          "membership.removed trip bob removed",
        ])
      #expect(try await problem { _ = try await Self.log(story, share, story.carol) } == .notFound)
      // Outsiders hear of themselves, in logs of their own: the title, and no more.
      let invited = try await Self.log(story, of: story.bob)
      #expect(Self.words(invited) == ["share.updated trip bob pending"])
      #expect(invited.first?.data.item.id == share.id.description && invited.first?.data.share == nil)
      let declined = try await Self.log(story, of: story.carol)
      #expect(Self.words(declined) == ["membership.declined Our trip carol pending"])
      #expect(declined.first?.data.actor.handle.description == story.alice.handle)
      #expect(declined.first?.data.share == nil)
      #expect(try await story.hub.check() == [])
    }
  }

  /// An invitation has the link for as long as it is one. Who is invited and removed again and again hears of it once a
  /// day, and others' invitations are nobody else's news.
  @Test(arguments: StoreEngine.available)
  func anInvitationIsHeardOnce(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let share = try await story.share(try await story.folder("trip"), with: [])
      let owner = story.alice.zone
      func invite(_ permission: WirePermission = .readWrite) async throws {
        _ = try await story.hub.sharing.change(share.id, by: story.alice) {
          try $0.invite(story.bob, ParticipantSettings(permission: permission), by: owner, at: story.hub.clock.now)
        }
      }
      func remove() async throws { try await story.remove(story.bob, from: share) }
      try await invite()
      try await invite(.readOnly)
      var log = try await Self.log(story, of: story.bob)
      #expect(Self.words(log) == ["share.updated trip bob pending"])
      #expect(log.first?.data.share?.url == share.token.text)
      for _ in 0..<3 {
        try await remove()
        try await invite()
      }
      try await remove()
      #expect(try await Self.log(story, of: story.bob).count == 1)
      story.test.clock.advance(seconds: 90_000)
      try await invite()
      log = try await Self.log(story, of: story.bob)
      #expect(Self.words(log) == Array(repeating: "share.updated trip bob pending", count: 2))
      #expect(log.map(\.sequence) == [1, 2])
      #expect(try await Self.log(story, of: story.carol).isEmpty)
      // Brought again, it is no other event.
      try await story.hub.sharing.inboxes.deliverAll()
      #expect(try await Self.log(story, of: story.bob).count == 2)
      #expect(try await story.hub.check() == [])
    }
  }

  /// Members see the share's paths, and nothing of what is outside.
  @Test(arguments: StoreEngine.available)
  func membersSeeTheShareAlone(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let home = try await story.folder("home")
      let (trip, box) = (try await story.folder("trip", in: home), try await story.folder("box", in: home))
      let plan = try await story.document("plan", "0", in: box)
      let share = try await story.share(trip, with: [story.bob])
      try await story.invite(story.carol, to: share)
      let start = try await Self.log(story, share, story.bob).count
      func news(_ person: Person) async throws -> [Event] {
        Array(try await Self.log(story, share, person).dropFirst(person == story.bob ? start : 1))
      }
      try await story.save(plan, "1")
      try await story.move(box, to: trip, "box")
      try await story.save(plan, "2")
      try await story.move(plan, .document, to: box, "draft")
      try await story.move(plan, .document, to: trip, "draft")
      try await story.move(trip, to: .root, "trip")
      try await story.move(trip, to: .root, "tour")
      try await story.send(.save(plan, WireID(), base: nil, "beside"), to: share, by: story.bob)
      try await story.move(plan, .document, to: home, "draft")
      try await story.save(plan, "3")
      try await story.delete(box, .folder)
      let told = try await news(story.bob)
      #expect(
        Self.words(told).filter { !$0.contains("(") } == [
          "persistence.created trip/box", "change.edit trip/box/plan",
          "persistence.renamed trip/box/draft from trip/box/plan", "persistence.moved trip/draft from trip/box/draft",
          "persistence.renamed tour from trip", "persistence.deleted tour/draft", "persistence.deleted tour/box",
        ])
      #expect(try await news(story.carol).map(\.id) == told.map(\.id))
      // Its numbers have no gaps that would tell what happens elsewhere.
      let all = try await Self.log(story, share, story.bob)
      #expect(all.map(\.sequence) == Array(all[0].sequence...(all[0].sequence + Int64(all.count) - 1)))
      #expect(!"\(told)".contains("home"))
      #expect(told.contains { $0.data.actor.handle.description == story.bob.handle })
      // Who is removed hears of that last, and no more of the link.
      try await story.remove(story.bob, from: share)
      try await story.document("later", "x", in: trip)
      let last = try await Self.log(story, share, story.bob)
      #expect(last.last?.type == .memberRemoved && last.allSatisfy { $0.data.share == nil })
      #expect(try await news(story.carol).last?.data.item.path == "tour/later")
    }
  }

  /// A move from one share to another is a deletion in one and a creation in the other, and a move for the owner: three
  /// events, each with an id of its own, which all members of a share know it by.
  @Test(arguments: StoreEngine.available)
  func aMoveBetweenSharesIsAnEventInEach(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (one, two) = (try await story.folder("one"), try await story.folder("two"))
      let plan = try await story.document("plan", "1", in: one)
      let from = try await story.share(one, with: [story.bob, story.carol])
      let to = try await story.share(two, with: [story.bob, story.carol])
      try await story.move(plan, .document, to: two, "draft")
      try await story.save(plan, "2")
      var last: [(words: [String], ids: [String])] = []
      for share in [from, to] {
        let logs = [try await Self.log(story, share, story.bob), try await Self.log(story, share, story.carol)]
          .map { $0.filter { $0.subject == plan.description } }
        #expect(logs[0].map(\.id) == logs[1].map(\.id))
        last.append((Self.words(logs[0]), logs[0].map(\.id)))
      }
      #expect(last[0].words == ["persistence.deleted one/plan"])
      #expect(last[1].words == ["persistence.created two/draft", "change.edit two/draft"])
      let own = try await Self.log(story).filter { $0.subject == plan.description }.suffix(2)
      #expect(Self.words(Array(own)) == ["persistence.moved two/draft from one/plan", "change.edit two/draft"])
      #expect(Set(last[0].ids + last[1].ids.prefix(1) + own.map(\.id)).count == 4)
      // What is the same for the owner and for members has one id.
      #expect(last[1].ids.last == own.last?.id)
      #expect(last.flatMap(\.ids).allSatisfy { WireID($0)?.description == $0 })
    }
  }

  /// Who joined by the public permission is told of no other people.
  @Test func publicUsersAreToldOfNobodyElse() async throws {
    try await StoreEngine.sqlite.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let share = try await story.hub.sharing.share(trip, ShareSettings(anyone: .readOnly), by: story.alice)
      _ = try await story.hub.sharing.accept(share.token, by: story.carol)
      try await story.invite(story.bob, to: share)
      try await story.remove(story.bob, from: share)
      #expect(try await Self.words(Self.log(story, share, story.carol)) == ["membership.added trip carol accepted"])
    }
  }
}
