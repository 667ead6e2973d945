import ConformanceKit
import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Items with several names and the borders of shares: nothing has names on both sides, and nothing outside is told.
@Suite struct LinkBorderTests {
  /// Gives an item of Alice's these places.
  private static func link(
    _ story: SharedStory, _ item: WireID, _ kind: ItemKind = .document, _ places: Place...
  ) async throws -> Verdict {
    try #require(try await story.send(Send(serial: 0, item: item, kind: kind, base: 1 << 40, places: places)).first)
  }

  @Test(arguments: StoreEngine.available)
  func whatHasANameOutsideIsNotShared(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (trip, home) = (try await story.folder("trip"), try await story.folder("home"))
      let inner = try await story.folder("inner", in: trip)
      let plan = try await story.document("plan", "the secret", in: inner)
      let linked = try await Self.link(
        story, plan, .document, Place(parent: inner, "plan"), Place(parent: home, "private"))
      #expect(linked.outcome == .done)
      for item in [trip, plan] {
        let words = await Result { try await story.share(item, with: [story.bob]) }
        let refused = #expect(throws: HubError.self) { try words.get() }
        #expect(refused?.kind == .conflict)
        #expect(
          refused?.problem.detail
            == "item: it has a hard link outside of it: home/private; remove that name first, or make a copy of it")
      }
      // All of Documents has nothing outside, and both names in one share are no matter.
      let all = try await story.share(.root, with: [story.bob])
      #expect(try await story.texts(plan, all, story.bob) == ["the secret"])
      let owner = story.alice.zone
      try await story.hub.sharing.change(all.id, by: story.alice) { try $0.stop(by: owner) }
      #expect(
        try await Self.link(story, plan, .document, Place(parent: inner, "plan"), Place(parent: trip, "too")).outcome
          == .done)
      let share = try await story.share(trip, with: [story.bob])
      #expect(try await story.texts(plan, share, story.bob) == ["the secret"])
      #expect(try await story.hub.check() == [])
    }
  }

  @Test(arguments: StoreEngine.available)
  func aFolderWithALinkOutsideCrossesNoBorder(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (trip, tour) = (try await story.folder("trip"), try await story.folder("tour"))
      let (home, box) = (try await story.folder("home"), try await story.folder("box"))
      let inner = try await story.folder("inner", in: box)
      let plan = try await story.document("plan", "1", in: inner)
      let pointer = WireID()
      try await story.send(
        Send(
          serial: 0, item: pointer, kind: .symlink,
          places: [Place(parent: inner, "pointer"), Place(parent: inner, "again")], target: Data("plan".utf8)))
      let share = try await story.share(trip, with: [story.bob])
      try await story.share(tour, with: [story.bob])
      _ = try await Self.link(story, plan, .document, Place(parent: inner, "plan"), Place(parent: home, "private"))
      // Into a share: neither the folder around it nor a name more.
      #expect(try await story.move(box, to: trip, "box").reason == .border)
      #expect(try await story.move(inner, to: trip, "inner").reason == .border)
      #expect(
        try await Self.link(
          story, plan, .document, Place(parent: inner, "plan"), Place(parent: trip, "private")
        ).reason == .border)
      // Both folders at once.
      let group = [
        Send.move(inner, .folder, to: Place(parent: trip, "inner"), base: 1 << 40),
        Send.move(home, .folder, to: Place(parent: trip, "home"), base: 1 << 40),
      ]
      #expect(try await story.send(group).map(\.outcome) == [.done, .done])
      #expect(try await story.texts(plan, share, story.bob) == ["1"])
      // Out of it, and from one share to another.
      #expect(try await story.move(inner, to: .root, "inner").reason == .border)
      #expect(try await story.move(inner, to: tour, "inner").reason == .border)
      _ = try await Self.link(story, plan, .document, Place(parent: inner, "plan"))
      #expect(try await story.move(inner, to: tour, "inner").outcome == .done)
      #expect(try await story.move(inner, to: .root, "inner").outcome == .done)
      #expect(try await story.hub.check() == [])
    }
  }

  /// It is found from either side: among few names below a folder, and among few items with several names.
  @Test(arguments: StoreEngine.available)
  func aLinkIsFoundFromEitherSide(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (trip, home) = (try await story.folder("trip"), try await story.folder("home"))
      let (small, large) = (try await story.folder("small"), try await story.folder("large"))
      try await story.share(trip)
      for number in 0..<300 {
        try await story.send(
          .document(
            WireID(), at: [Place(parent: home, "a\(number)"), Place(parent: home, "b\(number)")], version: WireID(), ""),
          .document(WireID(), at: [Place(parent: large, "\(number)")], version: WireID(), ""))
      }
      let plan = try await story.document("plan", "1", in: small)
      #expect(try await story.move(small, to: trip, "small").outcome == .done)
      #expect(try await story.move(small, to: .root, "small").outcome == .done)
      #expect(try await story.move(large, to: trip, "large").outcome == .done)
      #expect(try await story.move(large, to: .root, "large").outcome == .done)
      for folder in [small, large] {
        _ = try await Self.link(story, plan, .document, Place(parent: folder, "x"), Place(parent: home, "y"))
        #expect(try await story.move(folder, to: trip, "x").reason == .border)
      }
      #expect(try await story.hub.check() == [])
    }
  }

  /// A hub whose rows an older program wrote: the check tells of such an item, and members still learn nothing of it.
  @Test(arguments: StoreEngine.available)
  func whatAnOlderProgramLetIntoAShareIsNotTold(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (trip, home) = (try await story.folder("trip"), try await story.folder("home"))
      let plan = try await story.document("plan", "the secret", in: trip)
      let share = try await story.share(trip, with: [story.bob])
      let zone = story.alice.zone
      let places = try StoredZone.encoded([Place(parent: trip, "plan"), Place(parent: home, "private")])
      try await database.write { connection in
        try connection.execute(
          "UPDATE items SET places = $1 WHERE zone = $2 AND item = $3",
          [.text(places), .text(zone), .blob(plan.bytes)])
        try connection.execute(
          "INSERT INTO names (zone, parent, name, item) VALUES ($1, $2, $3, $4)",
          [.text(zone), .blob(home.bytes), .blob(Array("private".utf8)), .blob(plan.bytes)])
        try connection.execute("DELETE FROM settings")
        try connection.execute("UPDATE zones SET used = 10 WHERE zone = $1", [.text(zone)])
      }
      try await Hub.prepare(database)
      let findings = try await story.hub.check()
      #expect(findings == ["\(zone): \(plan): has names on both sides of a share's border"])
      for text in ["the secret", "another"] {
        let sent = Send.document(WireID(), at: [Place(parent: trip, "plan")], version: WireID(), text)
        let verdict = try #require(try await story.send(sent, to: share, by: story.bob).first)
        #expect(verdict.outcome == .renamed && verdict.item == sent.item)
        #expect(verdict.places?.map(\.parent) == [trip], "\(verdict)")
      }
    }
  }

  // MARK: - Whatever is done

  private static let environment = ProcessInfo.processInfo.environment
  private static let seed = environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? 20
  private static let steps = environment["SHEAF_STEPS"].flatMap { Int($0) } ?? 400

  /// What a member was ever told, and what they could know.
  private struct Knowledge {
    /// Ids that were in the share at some time since they joined, and what they sent themselves.
    var ids: Set<String> = []
    /// Names that were in the share.
    var names: Set<String> = []

    /// The ids and names in a text that the member could not know.
    func secrets(in text: String) -> [String] {
      let ids = text.matches(of: /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/).map { String($0.0) }
      let names = text.matches(of: /name-[0-9]+/).map { String($0.0) }
      return ids.filter { !self.ids.contains($0) } + names.filter { !self.names.contains($0) }
    }
  }

  /// Alice links, moves, shares and deletes; Bob sends to a share what may be there already. No verdict, page or event
  /// tells Bob an id or a name of anything that was not in the share.
  @Test(arguments: StoreEngine.available)
  func nothingOutsideIsEverTold(_ engine: StoreEngine) async throws {
    print("SHEAF_SEED=\(Self.seed)")
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      var random = SeededRandom(seed: Self.seed)
      var folders: [WireID] = [.root]
      var documents: [WireID] = []
      // Few names, so that they meet; each folder and document has been called many of them.
      func name() -> String { "name-\(Int.random(in: 0..<12, using: &random))" }
      func text() -> String { "text \(Int.random(in: 0..<3, using: &random))" }
      let top = try await story.folder("top")
      let other = try await story.folder("other")
      folders += [top, other]
      let share = try await story.share(top, with: [story.bob])
      let second = try await story.share(other)
      let place = story.place(share, story.bob)
      var bob = SharedStory.Follower(place)
      var known = Knowledge()
      known.ids = [share.id.description, story.alice.zone, WireID.root.description]
      var counts: [Verdict.Outcome: Int] = [:]
      var (refused, crossings, told) = (0, 0, 0)
      var isShared = true
      /// Of the documents that there are.
      var places: [Place] = []
      /// What is in the share: all places of it.
      var now: Set<WireID> = []
      func learn() async throws {
        let items = try await story.hub.feeds.page(after: nil, limit: 1_000, of: story.alice.zone).items
        let byID = Dictionary(items.map { ($0.item, $0) }) { $1 }
        places = items.flatMap { $0.isDeleted || $0.kind != .document ? [] : $0.places }
        func isInside(_ folder: WireID) -> Bool {
          var next: WireID? = folder
          while let id = next, id != top { next = id == .root ? nil : byID[id]?.places.first?.parent }
          return next == top
        }
        now = []
        for item in items where !item.isDeleted {
          guard item.item == top || item.places.allSatisfy({ isInside($0.parent) }) else { continue }
          now.insert(item.item)
          known.ids.insert(item.item.description)
          for id in [item.version?.id, item.version?.base, item.copyOf].compactMap({ $0 }) {
            known.ids.insert(id.description)
          }
          for place in item.places { known.names.insert(String(decoding: place.name, as: UTF8.self)) }
        }
      }
      func hear(_ value: some Encodable, _ what: String) throws {
        let text = String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
        let secrets = known.secrets(in: text)
        #expect(secrets == [], "\(what)")
        told += 1
      }
      for step in 0..<Self.steps {
        let place = "step \(step) of SHEAF_SEED=\(Self.seed)"
        let folder = folders.randomElement(using: &random) ?? .root
        let target = Place(parent: folder, name())
        var verdicts: [Verdict] = []
        switch Int.random(in: 0..<14, using: &random) {
        // Few of both, so that most documents have several names in several folders.
        case 0,
          1 where folders.count < 10:
          let id = WireID()
          verdicts = try await story.send(Send(serial: 0, item: id, kind: .folder, places: [target]))
          if verdicts[0].outcome != .joined, verdicts[0].outcome != .refused { folders.append(id) }
        case 2,
          3 where documents.count < 30:
          let id = WireID()
          verdicts = try await story.send(.document(id, at: [target], version: WireID(), text()))
          if verdicts[0].outcome != .joined, verdicts[0].outcome != .refused { documents.append(id) }
        case 4...6:
          guard let item = documents.randomElement(using: &random) else { continue }
          let from = try await story.hub.feeds.item(item, in: story.alice.zone)?.places ?? []
          verdicts = try await story.send(
            Send(
              serial: 0, item: item, kind: .document, base: 1 << 40, places: Array(Set(from.suffix(2) + [target]))))
        case 7:
          guard let item = documents.randomElement(using: &random) else { continue }
          verdicts = [try await story.move(item, .document, to: target.parent, name())]
        case 8, 9:
          guard let item = folders.dropFirst(3).randomElement(using: &random) else { continue }
          verdicts = [try await story.move(item, to: target.parent, name())]
          crossings += verdicts.count { $0.reason == .border }
        case 10 where Int.random(in: 0..<4, using: &random) == 0:
          guard let item = (documents + folders.dropFirst(3)).randomElement(using: &random) else { continue }
          verdicts = [try await story.delete(item, documents.contains(item) ? .document : .folder)]
        case 11 where Int.random(in: 0..<4, using: &random) == 0:
          // The other folder stops being shared, and begins to be again where its links allow it.
          let owner = story.alice.zone
          if isShared {
            try await story.hub.sharing.change(second.id, by: story.alice) { try $0.stop(by: owner) }
            isShared = false
          } else {
            isShared = try await problem { try await story.share(other) } == nil
          }
        default:
          // Bob knows the folders that he was told.
          let seen = bob.items.values.filter { $0.kind == .folder }.map(\.item).sorted { "\($0)" < "\($1)" }
          guard var parent = seen.randomElement(using: &random) else { break }
          let (id, version) = (WireID(), WireID())
          var called = name()
          // Often under a name that is taken, by what Bob sees or by what he does not.
          let taken = places.filter { seen.contains($0.parent) }
          if let place = taken.randomElement(using: &random), Int.random(in: 0..<3, using: &random) > 0 {
            (parent, called) = (place.parent, String(decoding: place.name, as: UTF8.self))
          }
          known.ids.formUnion([id.description, version.description])
          known.names.insert(called)
          let sent =
            Bool.random(using: &random)
            ? Send.document(id, at: [Place(parent: parent, called)], version: version, text())
            : Send(serial: 0, item: id, kind: .folder, places: [Place(parent: parent, called)])
          let answer = try await story.answer([sent], to: share, by: story.bob)
          try await learn()
          try hear(answer, place)
          for verdict in answer.verdicts {
            counts[verdict.outcome, default: 0] += 1
            #expect(now.contains(verdict.item) || verdict.outcome == .refused, "\(place)")
            #expect(verdict.places?.allSatisfy { now.contains($0.parent) } ?? true, "\(place)")
          }
        }
        refused += verdicts.count { $0.reason == .border }
        try await learn()
        if step % 3 == 0 {
          try await bob.follow(story.hub, limit: 7)
          try hear(bob.changes, place)
          try hear(Array(bob.items.values), place)
          #expect(now.isSuperset(of: bob.items.keys), "\(place)")
        }
      }
      let events = try await story.hub.sharedEvents.page(after: .number(0), limit: 1_000, of: place).events
      for event in events {
        known.ids.insert(event.id)
        try hear(event, "the log")
      }
      // Other programs may be shorter, or go elsewhere.
      if Self.environment["SHEAF_SEED"] == nil, Self.environment["SHEAF_STEPS"] == nil {
        #expect(refused > 5 && crossings > 5 && told > 50, "\(refused) \(crossings) \(told)")
        #expect(counts[.joined] ?? 0 > 0 && counts[.renamed] ?? 0 > 0, "\(counts)")
      }
      #expect(try await story.hub.check() == [])
    }
  }
}
