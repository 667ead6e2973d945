import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Feeds tell who made and placed an item, and when, to those alone who may know of it.
@Suite struct PlacementTests {
  private func facts(_ state: ItemState?) -> [String?] {
    [state?.madeBy, state?.placedBy, state?.placed.map { "\($0)" }]
  }

  /// Of what the owner made where it is, nothing is noted: its id says when. That of what was made long before the hub
  /// heard of it, and that of what the hub itself made, do not say since when it has its name.
  @Test(arguments: StoreEngine.available)
  func whatHasItsNameSinceItWasMadeIsNotNoted(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let now = story.hub.clock.now.nanoseconds
      func id(madeAt time: Int64) throws -> WireID {
        var bytes = WireID().bytes
        for index in 0..<6 { bytes[index] = UInt8(truncatingIfNeeded: (time / 1_000_000) >> Int64(40 - 8 * index)) }
        bytes[6] = 0x70 | bytes[6] & 0x0F
        return try #require(WireID(bytes: bytes))
      }
      let (minute, early) = (Int64(60_000_000_000), now - 120_000_000_000)
      let cases: [(id: WireID, named: Int64?, told: Int64?)] = [
        (try id(madeAt: now), nil, nil), (try id(madeAt: early), nil, nil),
        (try id(madeAt: early), early + 1_000_000, nil), (try id(madeAt: early), early + minute, early + minute),
        (WireID(), nil, now), (WireID(), early, early),
      ]
      for (number, item) in cases.enumerated() {
        var send = Send.document(item.id, at: [Place(parent: .root, "\(number)")], version: WireID(), "x")
        send.time = item.named
        #expect(try await story.send(send).map(\.outcome) == [.done])
        let state = try await story.hub.feeds.item(item.id, in: story.alice.zone)
        #expect(facts(state) == [nil, nil, item.told.map { "\($0)" }], "\(number)")
      }
    }
  }

  @Test(arguments: StoreEngine.available)
  func whoPlacedWhatIsTold(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (feeds, zone, bob) = (story.hub.feeds, story.alice.zone, story.bob.handle)
      let trip = try await story.folder("trip")
      let plan = try await story.document("plan", "1", in: trip)
      let share = try await story.share(trip, with: [story.bob])
      func told(_ item: WireID) async throws -> [String?] { facts(try await feeds.item(item, in: zone)) }
      // Saving it places nothing.
      _ = try await story.send(
        .save(plan, WireID(), base: feeds.item(plan, in: zone)?.version?.id, "2"), to: share, by: story.bob)
      #expect(try await told(plan).prefix(2) == [nil, nil])
      let note = WireID()
      let made = Send.document(note, at: [Place(parent: trip, "note")], version: WireID(), "n")
      #expect(try await story.send(made, to: share, by: story.bob).map(\.outcome) == [.done])
      let making = "\(story.hub.clock.now.nanoseconds)"
      #expect(try await told(note) == [bob, bob, making])
      // A move by the owner has the time at which it was done, and not that at which the hub heard of it. Participants
      // are not believed: who moves something and says that it was long ago would keep it from being moved back.
      let early = story.hub.clock.now.nanoseconds - 3_600 * 1_000_000_000
      var moved = Send.move(plan, .document, to: Place(parent: trip, "draft"), base: 1 << 40)
      moved.time = early
      #expect(try await story.send(moved).map(\.outcome) == [.done])
      #expect(try await told(plan) == [nil, nil, "\(early)"])
      let time = story.hub.clock.now.nanoseconds
      moved.places = [Place(parent: trip, "agenda")]
      #expect(try await story.send(moved, to: share, by: story.bob).map(\.outcome) == [.done])
      #expect(try await told(plan) == [nil, bob, "\(time)"])
      // The feed, the share's own feed and the item say the same.
      let page = try await feeds.page(after: nil, limit: 100, of: zone)
      #expect(facts(page.items.first { $0.item == plan }) == [nil, bob, "\(time)"])
      var follower = SharedStory.Follower(story.place(share, story.bob))
      try await follower.follow(story.hub)
      #expect(facts(follower.items[plan]) == [nil, bob, "\(time)"])
      #expect(facts(follower.items[note]) == [bob, bob, making])
      // A deletion keeps the time of the names, and a recovery has its own.
      _ = try await story.send(.deletion(note, .document, base: 1 << 40), to: share, by: story.bob)
      #expect(try await told(note) == [bob, bob, making])
      _ = try await story.send(Send(serial: 0, item: note, kind: .document, mode: 0o600))
      let now = "\(story.hub.clock.now.nanoseconds)"
      #expect(try await told(note) == [bob, nil, now])
      _ = try await story.delete(plan)
      #expect(try await told(plan) == [nil, nil, "\(time)"])
      // What goes for good leaves no trace of people.
      _ = try await story.hub.purging.purge(plan, in: zone, by: "device")
      #expect(try await told(plan) == [nil, nil, nil])
      #expect(try await story.hub.check() == [])
    }
  }

  /// What went on in one share is not told in another one into which the item came.
  @Test(arguments: StoreEngine.available)
  func whatWasBeforeEntryIsNotTold(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (trip, club) = (try await story.folder("trip"), try await story.folder("club"))
      let share = try await story.share(trip, with: [story.bob])
      let other = try await story.share(club, with: [story.carol])
      let (box, note) = (WireID(), WireID())
      _ = try await story.send(
        Send(serial: 0, item: box, kind: .folder, places: [Place(parent: trip, "box")]),
        .document(note, at: [Place(parent: trip, "note")], version: WireID(), "n"), to: share, by: story.bob)
      _ = try await story.send(
        .move(note, .document, to: Place(parent: box, "note"), base: 1 << 40), to: share, by: story.bob)
      _ = try await story.move(box, to: club, "box")
      var carol = SharedStory.Follower(story.place(other, story.carol))
      try await carol.follow(story.hub)
      #expect(carol.paths == ["club", "club/box", "club/box/note"])
      // The owner's move is what brought the folder in; of what is in it nothing before that is told.
      #expect(facts(carol.items[box]) == [nil, nil, "\(story.hub.clock.now.nanoseconds)"])
      #expect(facts(carol.items[note]) == [nil, nil, nil])
      #expect(try await story.hub.feeds.item(note, in: story.alice.zone)?.placedBy == story.bob.handle)
      // Her own deeds are told.
      _ = try await story.send(
        .move(note, .document, to: Place(parent: club, "note"), base: 1 << 40), to: other, by: story.carol)
      try await carol.follow(story.hub)
      #expect(carol.items[note]?.placedBy == story.carol.handle && carol.items[note]?.madeBy == nil)
    }
  }

  /// A share that begins has no change of its own: the one before is not told, whoever made it.
  @Test(arguments: StoreEngine.available)
  func whatWasJustBeforeASharingIsNotTold(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let (plan, note) = (try await story.document("plan", "1", in: trip), WireID())
      _ = try await story.send(.move(plan, .document, to: Place(parent: trip, "agenda"), base: 1 << 40))
      func told(_ item: WireID, _ share: HubShare, _ person: Person) async throws -> [String?] {
        var follower = SharedStory.Follower(story.place(share, person))
        try await follower.follow(story.hub)
        return facts(follower.items[item])
      }
      let first = try await story.share(trip, with: [story.bob])
      #expect(try await told(plan, first, story.bob) == [nil, nil, nil])
      // What bob makes and moves is told to those who are in it, and to nobody who comes into the share that begins anew.
      _ = try await story.send(
        .document(note, at: [Place(parent: trip, "note")], version: WireID(), "n"), to: first, by: story.bob)
      #expect(try await told(note, first, story.bob).first == story.bob.handle)
      _ = try await story.send(
        .move(plan, .document, to: Place(parent: trip, "plan"), base: 1 << 40), to: first, by: story.bob)
      #expect(try await told(plan, first, story.bob)[1] == story.bob.handle)
      let owner = story.alice.zone
      try await story.hub.sharing.change(first.id, by: story.alice) { try $0.stop(by: owner) }
      let second = try await story.share(trip, with: [story.carol])
      for item in [plan, note] { #expect(try await told(item, second, story.carol) == [nil, nil, nil]) }
    }
  }
}
