import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// What members send to a share, and what they may read of it.
@Suite struct SharedSendTests {
  @Test(arguments: StoreEngine.available)
  func whoMayEditEdits(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let plan = try await story.document("plan", "1", in: trip)
      let share = try await story.share(trip, with: [story.bob])
      try await story.invite(story.carol, to: share, .readOnly)
      let base = try await story.hub.feeds.item(plan, in: story.alice.zone)?.version?.id
      let (note, box) = (WireID(), WireID())
      let group: [Send] = [
        .save(plan, WireID(), base: base, "2"),
        Send(serial: 0, item: box, kind: .folder, places: [Place(parent: trip, "box")]),
        .document(note, at: [Place(parent: box, "note")], version: WireID(), "n"),
      ]
      let answer = try await story.answer(group, to: share, by: story.bob)
      #expect(answer.verdicts.map(\.outcome) == [.done, .done, .done])
      // The numbers are the share's.
      var bob = SharedStory.Follower(story.place(share, story.bob))
      try await bob.follow(story.hub)
      #expect(
        answer.number == bob.token?.number
          && Set(answer.verdicts.map(\.number)) == Set(answer.number - 2...answer.number))
      #expect(bob.paths == ["trip", "trip/box", "trip/box/note", "trip/plan"])
      #expect(try await story.texts(plan, share, story.carol) == ["1", "2"])
      #expect(try await story.hub.feeds.item(plan, in: story.alice.zone)?.version?.number == 2)
      // Every action of a reader is refused, and nothing is done.
      let last = try await story.hub.feeds.numbers(of: [story.alice.zone])
      let attempts: [Send] = [
        .save(plan, WireID(), base: nil, "3"),
        .document(WireID(), at: [Place(parent: trip, "x")], version: WireID(), "x"),
        .move(plan, .document, to: Place(parent: box, "plan"), base: 1 << 40),
        .deletion(plan, .document, base: 1 << 40),
        .deletion(box, .folder, base: 1 << 40, read: 1 << 40),
        Send(serial: 0, item: plan, kind: .document, mode: 0o600),
      ]
      for attempt in attempts {
        #expect(try await story.send(attempt, to: share, by: story.carol).map(\.reason) == [.denied])
      }
      #expect(try await story.hub.feeds.numbers(of: [story.alice.zone]) == last)
      // So is every action of an editor to what is shared itself.
      for attempt: Send in [
        .move(trip, .folder, to: Place(parent: box, "trip"), base: 1 << 40),
        .move(trip, .folder, to: Place(parent: trip, "trip"), base: 1 << 40),
        .deletion(trip, .folder, base: 1 << 40, read: 1 << 40),
      ] {
        let reason = try await story.send(attempt, to: share, by: story.bob).first?.reason
        #expect(reason == .denied || reason == .loop)
      }
      #expect(
        try await story.send(.deletion(note, .document, base: 1 << 40), to: share, by: story.bob).map(\.outcome) == [
          .done
        ])
      // What was deleted comes back by who may edit, with its history.
      let again = Send(serial: 0, item: note, kind: .document, mode: 0o600)
      #expect(try await story.send(again, to: share, by: story.bob).map(\.outcome) == [.done])
      #expect(try await story.texts(note, share, story.carol) == ["n"])
      #expect(try await story.hub.check() == [])
    }
  }

  /// What is outside of the share is as what never was, whatever is tried with its id.
  @Test(arguments: StoreEngine.available)
  func whatIsOutsideIsNotThere(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (trip, home) = (try await story.folder("trip"), try await story.folder("home"))
      let plan = try await story.document("plan", "1", in: trip)
      let note = try await story.document("private notes", "secret", in: home)
      let gone = try await story.document("gone", "secret", in: trip)
      try await story.delete(gone)
      let share = try await story.share(trip, with: [story.bob])
      let place = story.place(share, story.bob)
      let (zone, feeds) = (story.alice.zone, story.hub.sharedFeeds)
      let version = try #require(try await story.hub.feeds.item(note, in: zone)?.version?.id)
      let before = try await story.hub.feeds.item(note, in: zone)
      for id in [note, home, gone, .root, WireID()] {
        let attempts: [() async throws -> Void] = [
          { _ = try await feeds.children(of: id, after: [], limit: 9, of: place) },
          { _ = try await feeds.versions(of: id, after: 0, limit: 9, of: place) },
          { _ = try await feeds.version(version, of: id, of: place) },
        ]
        for attempt in attempts { #expect(try await problem(attempt) == .notFound) }
        if id == .root { continue }
        let kind: ItemKind = id == home ? .folder : .document
        let tries: [Send] = [
          .deletion(id, kind, base: 1 << 40, read: 1 << 40),
          .move(id, kind, to: Place(parent: trip, "mine"), base: 1 << 40),
          Send(serial: 0, item: id, kind: kind, base: 1 << 40, mode: 0o777),
        ]
        for attempt in tries {
          #expect(try await story.send(attempt, to: share, by: story.bob).map(\.reason) == [.unknown])
        }
        let inside = Send.document(WireID(), at: [Place(parent: id, "x")], version: WireID(), "x")
        #expect(try await story.send(inside, to: share, by: story.bob).map(\.reason) == [.noParent])
      }
      // An id that is in use elsewhere makes nothing of that.
      let stolen = Send.document(note, at: [Place(parent: trip, "note")], version: WireID(), "mine")
      #expect(try await story.send(stolen, to: share, by: story.bob).map(\.reason) == [.unknown])
      // A version of another document is none of this one.
      #expect(try await problem { _ = try await feeds.version(version, of: plan, of: place) } == .notFound)
      let out = Send.move(plan, .document, to: Place(parent: .root, "plan"), base: 1 << 40)
      #expect(try await story.send(out, to: share, by: story.bob).map(\.reason) == [.noParent])
      #expect(try await story.hub.feeds.item(note, in: zone) == before)
      // A stranger, and somebody who has yet to accept.
      let now = story.hub.clock.now
      for (person, expected) in [(story.carol, Problem.Kind.notFound), (story.carol, .forbidden)] {
        let place = story.place(share, person)
        let kinds = [
          try await problem { _ = try await feeds.page(after: nil, limit: 9, of: place) },
          try await problem { _ = try await feeds.versions(of: plan, after: 0, limit: 9, of: place) },
          try await problem { _ = try await feeds.missing([], of: place) },
          try await problem { _ = try await story.send(.deletion(plan, .document), to: share, by: person) },
        ]
        #expect(kinds == [expected, expected, expected, expected])
        _ = try await story.hub.sharing.change(share.id, by: story.alice) {
          try $0.invite(story.carol, ParticipantSettings(), by: zone, at: now)
        }
      }
    }
  }

  /// Knowing a hash gives nobody what has it, and asking tells nobody what is there.
  @Test(arguments: StoreEngine.available)
  func aHashGivesNothing(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let secret = try await story.document("secret", "the secret")
      let plan = try await story.document("plan", "1", in: trip)
      let share = try await story.share(trip, with: [story.bob, story.carol])
      let place = story.place(share, story.bob)
      let chunk = Chunk(Array("the secret".utf8))
      #expect(try await story.hub.sharedFeeds.missing([chunk.hash], of: place) == [chunk.hash])
      func version() -> Send {
        Send(
          serial: 0, item: WireID(), kind: .document, places: [Place(parent: trip, "mine")],
          version: SentVersion(
            id: WireID(), base: nil, cause: .save, time: 0,
            extents: [Extent(hash: chunk.hash, length: Int64(chunk.bytes.count))]))
      }
      let refused = try await story.answer([version()], to: share, by: story.bob)
      #expect(refused.verdicts == [] && refused.later.map(\.missing) == [[chunk.hash]])
      // Who uploads the bytes has them; that is nobody else's.
      try await story.hub.sharedFeeds.upload(chunk.bytes, hash: chunk.hash, of: place)
      #expect(try await story.hub.sharedFeeds.missing([chunk.hash], of: place) == [])
      #expect(
        try await story.hub.sharedFeeds.missing([chunk.hash], of: story.place(share, story.carol)) == [chunk.hash])
      #expect(try await story.answer([version()], to: share, by: story.carol).later.map(\.missing) == [[chunk.hash]])
      #expect(try await story.answer([version()], to: share, by: story.bob).verdicts.map(\.outcome) == [.done])
      // What a document has now may stay in it.
      let current = Chunk(Array("1".utf8))
      var next = Send.save(
        plan, WireID(), base: try await story.hub.feeds.item(plan, in: story.alice.zone)?.version?.id, "")
      next.version?.contents = nil
      next.version?.extents = [Extent(hash: current.hash, length: 1), Extent(hash: nil, length: 2)]
      #expect(try await story.send(next, to: share, by: story.bob).map(\.outcome) == [.done])
      // The quota is the owner's, and full is full whether the zone has the chunk or not.
      let used = try await story.hub.accounts.facts(of: story.alice.zone).used
      try await story.hub.accounts.setQuota(used, of: story.alice.zone)
      for bytes in [chunk.bytes, Array("others' 10".utf8)] {
        let kind = try await problem {
          try await story.hub.sharedFeeds.upload(bytes, hash: Chunk(bytes).hash, of: place)
        }
        #expect(kind == .quota)
      }
      #expect(try await story.hub.sharedFeeds.missing([chunk.hash], of: place) == [])
      let kind = try await problem { _ = try await story.hub.sharedFeeds.missing([], bytes: 1, of: place) }
      #expect(kind == .quota)
      _ = secret
      #expect(try await story.hub.check() == [])
    }
  }

  /// What members send gives nobody the owner's rights by a program, and makes no rules for the owner's files.
  @Test(arguments: StoreEngine.available)
  func membersGiveNoRightsAndMakeNoRules(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let share = try await story.share(trip, with: [story.bob])
      let zone = story.alice.zone
      func mode(_ item: WireID) async throws -> Int? { try await story.hub.feeds.item(item, in: zone)?.mode }
      // The owner's own, which members see without those bits.
      let (tool, box) = (try await story.document("tool", "1", in: trip), try await story.folder("box", in: trip))
      try await story.send(
        Send(serial: 0, item: tool, kind: .document, base: 1 << 40, mode: 0o6755),
        Send(serial: 0, item: box, kind: .folder, base: 1 << 40, mode: 0o3775))
      #expect(try await [mode(tool), mode(box)] == [0o6755, 0o3775])
      var bob = SharedStory.Follower(story.place(share, story.bob))
      try await bob.follow(story.hub)
      #expect(bob.items[tool]?.mode == 0o755 && bob.items[box]?.mode == 0o1775)
      // Of what a member changes, files lose them and folders keep theirs.
      try await story.send(
        Send(serial: 0, item: box, kind: .folder, base: 1 << 40, mode: 0o4770), to: share, by: story.bob)
      #expect(try await mode(box) == 0o2770)
      let base = try await story.hub.feeds.item(tool, in: zone)?.version?.id
      try await story.send(.save(tool, WireID(), base: base, "2"), to: share, by: story.bob)
      #expect(try await mode(tool) == 0o755)
      try await story.send(
        Send(serial: 0, item: tool, kind: .document, base: 1 << 40, mode: 0o6755), to: share, by: story.bob)
      #expect(try await mode(tool) == 0o755)
      // What a member makes has none, nor what goes beside.
      let (made, folder) = (WireID(), WireID())
      var document = Send.document(made, at: [Place(parent: trip, "made")], version: WireID(), "x")
      document.mode = 0o6755
      try await story.send(
        document, Send(serial: 0, item: folder, kind: .folder, places: [Place(parent: trip, "made too")], mode: 0o6770),
        to: share, by: story.bob)
      #expect(try await [mode(made), mode(folder)] == [0o755, 0o770])
      try await story.send(Send(serial: 0, item: tool, kind: .document, base: 1 << 40, mode: 0o6755))
      let beside = try await story.send(.save(tool, WireID(), base: nil, "3"), to: share, by: story.bob)
      #expect(beside.map(\.outcome) == [.beside])
      #expect(try await [mode(beside[0].item), mode(tool)] == [0o755, 0o6755])
      // Rules are the owner's.
      let rules = try await story.document(".sheafignore", "*.o", in: trip)
      for attempt: Send in [
        .document(WireID(), at: [Place(parent: box, ".sheafignore")], version: WireID(), "*"),
        .move(made, .document, to: Place(parent: box, ".sheafignore"), base: 1 << 40),
        .move(rules, .document, to: Place(parent: box, ".sheafignore"), base: 1 << 40),
        Send(
          serial: 0, item: rules, kind: .document, base: 1 << 40,
          places: [Place(parent: trip, ".sheafignore"), Place(parent: box, ".sheafignore")]),
      ] {
        #expect(try await story.send(attempt, to: share, by: story.bob).map(\.reason) == [.denied], "\(attempt)")
      }
      for attempt: Send in [
        .save(rules, WireID(), base: try await story.hub.feeds.item(rules, in: zone)?.version?.id, "*.a"),
        .move(rules, .document, to: Place(parent: box, "rules"), base: 1 << 40),
      ] {
        #expect(try await story.send(attempt, to: share, by: story.bob).map(\.outcome) == [.done], "\(attempt)")
      }
      #expect(try await story.hub.check() == [])
    }
  }

  /// A send is done once, and its verdict is the device's own.
  @Test(arguments: StoreEngine.available)
  func aSendIsDoneOnce(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let share = try await story.share(trip, with: [story.bob, story.carol])
      var send = Send.document(WireID(), at: [Place(parent: trip, "a")], version: WireID(), "a")
      send.serial = 1
      var request = SendRequest(groups: [[send]])
      func author(_ person: Person) -> SendAuthor {
        SendAuthor(device: "d", deviceName: "d", handle: person.handle, name: "", now: story.hub.clock.now)
      }
      let place = story.place(share, story.bob)
      let first = try await story.hub.zones.send(request, to: place, by: author(story.bob))
      #expect(try await story.hub.zones.send(request, to: place, by: author(story.bob)) == first)
      // Another account's device of the same name and the owner's have serials of their own.
      request.groups[0][0].item = WireID()
      request.groups[0][0].version?.id = WireID()
      request.groups[0][0].places = [Place(parent: trip, "b")]
      let other = try await story.hub.zones.send(request, to: story.place(share, story.carol), by: author(story.carol))
      #expect(other.verdicts.map(\.outcome) == [.done] && other.verdicts != first.verdicts)
      request.confirmed = 1
      let confirmed = try await story.hub.zones.send(request, to: place, by: author(story.bob))
      #expect(confirmed.verdicts.map(\.reason) == [.confirmed])
      // The zone's numbers are ahead of the share's.
      for name in ["x", "y", "z"] { try await story.document(name, name) }
      // Two that change at once: what another device changed after the share's number that the sender knew stays.
      let plan = try await story.document("plan", "1", in: trip)
      var bob = SharedStory.Follower(place)
      try await bob.follow(story.hub)
      let known = try #require(bob.items[plan]?.number)
      try await story.save(plan, "2")
      #expect(
        try await story.send(.deletion(plan, .document, base: known), to: share, by: story.bob).map(\.outcome) == [
          .kept
        ])
      try await bob.follow(story.hub)
      let newer = try #require(bob.items[plan]?.number)
      #expect(
        try await story.send(.deletion(plan, .document, base: newer), to: share, by: story.bob).map(\.outcome) == [
          .done
        ])
    }
  }

  /// A reader who is taken out, or whose document leaves, gets no further piece.
  @Test(arguments: StoreEngine.available)
  func aDownloadEndsWithTheRight(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let zone = story.alice.zone
      let chunks = [UInt8(1), 2, 3].map { Chunk([UInt8](repeating: $0, count: 1_000)) }
      for chunk in chunks { try await story.hub.contents.upload(chunk.bytes, hash: chunk.hash, to: zone) }
      let (film, version) = (WireID(), WireID())
      var send = Send.document(film, at: [Place(parent: trip, "film")], version: version, "")
      send.version?.contents = nil
      send.version?.extents = chunks.map { Extent(hash: $0.hash, length: 1_000) } + [Extent(hash: nil, length: 10)]
      try await story.send(send)
      let share = try await story.share(trip, with: [story.bob, story.carol])
      func reader(_ person: Person) async throws -> ContentReader {
        let place = story.place(share, person)
        let (facts, manifest) = try await story.hub.sharedFeeds.version(version, of: film, of: place)
        return ContentReader(story.hub.contents, manifest, 0..<facts.size, of: version, film, in: place)
      }
      var (bob, carol) = (try await reader(story.bob), try await reader(story.carol))
      #expect(try await bob.next()?.first == 1)
      #expect(try await carol.next()?.first == 1)
      try await story.remove(story.bob, from: share)
      #expect(try await problem { _ = try await bob.next() } == .notFound)
      #expect(try await carol.next()?.first == 2)
      try await story.move(film, .document, to: .root, "film")
      #expect(try await problem { _ = try await carol.next() } == .notFound)
      // A hole is no way around it.
      var hole = try await {
        try await story.move(film, .document, to: trip, "film")
        let place = story.place(share, story.carol)
        let (facts, manifest) = try await story.hub.sharedFeeds.version(version, of: film, of: place)
        return ContentReader(story.hub.contents, manifest, 3_000..<facts.size, of: version, film, in: place)
      }()
      try await story.remove(story.carol, from: share)
      #expect(try await problem { _ = try await hole.next() } == .notFound)
    }
  }
}
