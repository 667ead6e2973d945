import ConformanceKit
import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// No member is told what was before something entered: by numbers, whatever the clock says.
@Suite struct EntryHistoryTests {
  static let environment = ProcessInfo.processInfo.environment
  static let seed = environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? 20
  static let steps = environment["SHEAF_STEPS"].flatMap { Int($0) } ?? 300

  /// A secret is overwritten in place, with the hub's clock and the author's off by a day, both ways; then the document
  /// is shared. A member collects everything, and names the owner's ids and hashes.
  @Test(arguments: StoreEngine.available)
  func aSecretThatWasOverwrittenStaysHidden(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      for (index, skew) in [-86_400, 0, 86_400].enumerated() {
        let trip = try await story.folder("trip \(index)")
        let (plan, secret) = (WireID(), WireID())
        func time(_ seconds: Int64) -> Int64 { story.hub.clock.now.nanoseconds + seconds * 1_000_000_000 }
        var made = Send.document(plan, at: [Place(parent: trip, "plan")], version: secret, "the secret \(index)")
        made.version?.time = time(Int64(-skew))
        #expect(try await story.send(made).map(\.outcome) == [.done])
        story.test.clock.advance(seconds: Int64(skew))
        var next = Send.save(plan, WireID(), base: secret, "public")
        next.version?.time = time(Int64(skew))
        let current: WireID? = next.version?.id
        #expect(try await story.send(next).map(\.outcome) == [.done])
        story.test.clock.advance(seconds: Int64(-2 * skew))
        let share = try await story.share(trip, with: [story.bob])
        let place = story.place(share, story.bob)

        var follower = SharedStory.Follower(place)
        try await follower.follow(story.hub)
        #expect(follower.items[plan]?.version?.id == current)
        #expect(try await story.texts(plan, share, story.bob) == ["public"])
        let list = try await story.hub.sharedFeeds.versions(of: plan, after: 0, limit: 100, of: place).versions
        #expect(list.map(\.id) == [current] && list.map(\.base) == [nil])
        #expect(try await problem { _ = try await story.text(secret, plan, place) } == .notFound)
        let chunk = Chunk(Array("the secret \(index)".utf8))
        #expect(try await story.hub.sharedFeeds.missing([chunk.hash], of: place) == [chunk.hash])
        let length = Int64(chunk.bytes.count)
        for base: WireID? in [current, secret] {
          var named = Send.save(plan, WireID(), base: base, "")
          named.version?.contents = nil
          named.version?.extents = [Extent(hash: chunk.hash, length: length)]
          #expect(try await story.answer([named], to: share, by: story.bob).later.map(\.missing) == [[chunk.hash]])
        }
        // A save that says it goes on from the secret is merged with nothing of it.
        let based = Send.save(plan, WireID(), base: secret, "bob's")
        _ = try await story.send(based, to: share, by: story.bob)
        try await follower.follow(story.hub)
        for item in follower.items.values where item.kind == .document {
          let texts = try await story.texts(item.item, share, story.bob) ?? []
          #expect(!texts.contains { $0.contains("secret") })
        }
        let told = try await story.hub.sharedEvents.page(after: .number(0), limit: 1_000, of: place).events
        #expect(!told.isEmpty && !told.contains { "\($0)".contains("\(secret)") })
        story.test.clock.advance(seconds: Int64(skew))
      }
      #expect(try await story.hub.check() == [])
    }
  }

  /// A machine with documents of its own is connected, and has a folder of the name of one that is shared by now: what
  /// was saved on it before it heard of that is for its owner alone.
  @Test(arguments: StoreEngine.available)
  func whatAMachineHadBeforeItWasConnectedIsItsOwners(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let known = try await story.document("same", "same", in: trip)
      let share = try await story.share(trip, with: [story.bob])
      let before = story.hub.clock.now.nanoseconds
      story.test.clock.advance(seconds: 60)
      let desktop = try await story.test.enroll(TestDevice(), in: story.alice.zone)
      story.test.clock.advance(seconds: 60)
      let later = story.hub.clock.now.nanoseconds
      var serial: Int64 = 0
      func send(_ group: [(Send, time: Int64)]) async throws -> [Verdict] {
        let sends = group.map { send, time in
          var send = send
          serial += 1
          send.serial = serial
          send.version?.time = time
          return send
        }
        let author = SendAuthor(
          device: desktop.device, deviceName: "desktop", handle: story.alice.handle, name: story.alice.name ?? "",
          now: story.hub.clock.now)
        return try await story.hub.zones.send(
          SendRequest(groups: [sends], confirmed: 0), to: story.alice.zone, by: author
        ).verdicts
      }
      // All of a document at once, also one of whose name there is another with the same contents.
      for (name, texts) in [("plan", ["secret", "another", "current"]), ("same", ["secret", "same"])] {
        let item = WireID()
        let versions = texts.map { _ in WireID() }
        var group: [(Send, time: Int64)] = [
          (.document(item, at: [Place(parent: trip, name)], version: versions[0], texts[0]), before)
        ]
        for index in 1..<texts.count {
          group.append((.save(item, versions[index], base: versions[index - 1], texts[index]), before))
        }
        let verdicts = try await send(group)
        #expect(verdicts.map(\.item) == Array(repeating: item, count: texts.count), "\(verdicts)")
        #expect(try await story.texts(item, share, story.bob) == texts.suffix(1))
        // What is saved from now on is seen.
        #expect(
          try await send([(.save(item, WireID(), base: versions.last, "newer"), later)]).map(\.outcome) == [.done])
        #expect(try await story.texts(item, share, story.bob) == texts.suffix(1) + ["newer"])
      }
      #expect(try await story.texts(known, share, story.bob) == ["same"])
      // Of what was in the share before, everybody goes on seeing all, whatever a machine saved while it had no
      // connection.
      let moved = try await story.document("moved", "one")
      #expect(try await story.move(moved, .document, to: trip, "moved").outcome == .done)
      let current = try await story.save(moved, "two").version
      #expect(try await send([(.save(moved, WireID(), base: current, "three"), before)]).map(\.outcome) == [.done])
      #expect(try await story.texts(moved, share, story.bob) == ["one", "two", "three"])
      // One version after the other.
      let (item, first) = (WireID(), WireID())
      _ = try await send([(.document(item, at: [Place(parent: trip, "long")], version: first, "secret"), before)])
      _ = try await send([(.save(item, WireID(), base: first, "current"), before)])
      #expect(try await story.texts(item, share, story.bob) == ["current"])
      #expect(try await story.hub.check() == [])
    }
  }

  @Test(arguments: StoreEngine.available)
  func whatWasBeforeEntryIsNotTold(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let plan = try await story.document("plan", "before", in: trip)
      // A clock that goes back a day changes nothing.
      story.test.clock.advance(seconds: -86_400)
      try await story.save(plan, "current")
      let share = try await story.share(trip, with: [story.bob])
      #expect(try await story.texts(plan, share, story.bob) == ["current"])
      let seen = try await story.hub.sharedFeeds.versions(
        of: plan, after: 0, limit: 9, of: story.place(share, story.bob)
      ).versions
      #expect(seen.map(\.number) == [2] && seen.map(\.base) == [nil])
      story.test.clock.advance(seconds: -86_400)
      try await story.save(plan, "after")
      #expect(try await story.texts(plan, share, story.bob) == ["current", "after"])
      // Out, overwritten, and in again: what was written outside and overwritten is not told, nor what was told before.
      try await story.move(plan, .document, to: .root, "plan")
      try await story.save(plan, "outside")
      try await story.save(plan, "again")
      try await story.move(plan, .document, to: trip, "plan")
      #expect(try await story.texts(plan, share, story.bob) == ["again"])
      // A folder that is moved out of what entered takes its entry along.
      let (box, inner) = (try await story.folder("box"), WireID())
      try await story.send(Send(serial: 0, item: inner, kind: .folder, places: [Place(parent: box, "inner")]))
      let note = try await story.document("note", "old", in: inner)
      try await story.save(note, "new")
      try await story.move(box, to: trip, "box")
      try await story.move(inner, to: trip, "inner")
      #expect(try await story.texts(note, share, story.bob) == ["new"])
      try await story.move(note, .document, to: trip, "note")
      #expect(try await story.texts(note, share, story.bob) == ["new"])
      // Deleted and recovered within the share; deleted before what it lay in entered.
      try await story.delete(note)
      try await story.send(Send(serial: 0, item: note, kind: .document, mode: 0o600))
      #expect(try await story.texts(note, share, story.bob) == ["new"])
      try await story.delete(note)
      try await story.move(inner, to: .root, "inner")
      try await story.send(
        Send(serial: 0, item: note, kind: .document, places: [Place(parent: inner, "note")]))
      try await story.save(note, "newest")
      try await story.delete(note)
      try await story.move(inner, to: trip, "inner")
      let recovered = Send(serial: 0, item: note, kind: .document, mode: 0o644)
      #expect(try await story.send(recovered, to: share, by: story.bob).map(\.reason) == [.unknown])
      try await story.send(recovered)
      #expect(try await story.texts(note, share, story.bob) == ["newest"])
      // What was deleted from the share before its folder left that and came in again is not there for members.
      let lost = try await story.document("lost", "x", in: inner)
      try await story.delete(lost)
      let back = Send(serial: 0, item: lost, kind: .document, mode: 0o600)
      try await story.move(inner, to: .root, "inner")
      try await story.move(inner, to: trip, "inner")
      #expect(try await story.send(back, to: share, by: story.bob).map(\.reason) == [.unknown])
      // A share that ended and began again begins its history again.
      let owner = story.alice.zone
      try await story.save(plan, "last")
      try await story.hub.sharing.change(share.id, by: story.alice) { try $0.stop(by: owner) }
      try await story.share(trip, with: [story.bob])
      #expect(try await story.texts(plan, share, story.bob) == ["last"])
      #expect(try await story.hub.check() == [])
    }
  }

  /// An item of the model: what was ever in it, and how much of that members may see.
  private struct Item {
    let id: WireID
    let kind: ItemKind
    var made = 0
    var parent: WireID?
    /// Where it was when it was deleted.
    var former: WireID = .root
    /// Texts of its versions, each with the turn in which it was made.
    var versions: [(turn: Int, text: String)] = []
    /// The share that it was in last, and since which turn.
    var entry: (share: WireID, turn: Int)?
    var deleted = 0
  }

  /// The model of the rule, item by item: it walks over everything, and knows no numbers of the hub.
  private struct Model {
    var items: [WireID: Item] = [:]
    /// By what is shared.
    var shares: [WireID: HubShare] = [:]
    var turn = 0

    func share(of id: WireID) -> HubShare? {
      var next: WireID? = id
      while let id = next, id != .root {
        if let share = shares[id] { return share }
        next = items[id]?.parent ?? nil
      }
      return nil
    }

    func isLive(_ id: WireID) -> Bool { id == .root || items[id]?.parent != nil }

    func isInside(_ id: WireID, _ top: WireID) -> Bool {
      var next: WireID? = id
      while let id = next, id != .root {
        if id == top { return true }
        next = items[id]?.parent ?? nil
      }
      return false
    }

    /// Everything that is not where it was has entered, or left. What is in a folder is seen no longer than that.
    mutating func settle() {
      var folders: [WireID] = [.root]
      while let folder = folders.popLast() {
        for (id, item) in items where item.parent == folder {
          if item.kind == .folder { folders.append(id) }
          guard let share = share(of: id) else {
            items[id]?.entry = nil
            continue
          }
          let known = item.entry.flatMap { $0.share == share.id ? $0.turn : nil }
          let above = items[folder]?.entry.flatMap { $0.share == share.id ? $0.turn : nil } ?? 0
          // What is made in a share has no past that it could hide.
          let own = known ?? (item.made == turn && shares[id] == nil ? above : turn)
          items[id]?.entry = (share.id, max(own, above))
        }
      }
    }

    /// The texts that members see of a document.
    func texts(_ id: WireID) -> [String] {
      guard let item = items[id], let entry = item.entry else { return [] }
      let first = item.versions.lastIndex { $0.turn <= entry.turn } ?? 0
      return item.versions[first...].map(\.text)
    }
  }

  /// Whatever moves, is deleted, comes back, is shared and stops being so: a member sees of each document in the share
  /// what the model says, its entry never falls, and of everything else nothing.
  @Test(arguments: StoreEngine.available)
  func anEntryNeverFalls(_ engine: StoreEngine) async throws {
    print("SHEAF_SEED=\(Self.seed)")
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      var random = SeededRandom(seed: Self.seed)
      var model = Model()
      var entered: [WireID: Int64] = [:]
      var followers: [WireID: SharedStory.Follower] = [:]
      let tops = [try await story.folder("one"), try await story.folder("two")]
      for top in tops { model.items[top] = Item(id: top, kind: .folder, parent: .root) }
      var names = 0
      var seen = 0
      // Shares, and folders with documents that were saved before.
      for top in tops {
        let share = try await story.share(top, with: [story.bob])
        model.shares[top] = share
        followers[share.id] = SharedStory.Follower(story.place(share, story.bob))
      }
      for number in 1...5 {
        let folder = try await story.folder("a\(number)")
        model.items[folder] = Item(id: folder, kind: .folder, parent: .root)
        let document = try await story.document("a", "a\(number)", in: folder)
        try await story.save(document, "b\(number)")
        model.items[document] = Item(
          id: document, kind: .document, parent: folder, versions: [(0, "a\(number)"), (0, "b\(number)")])
      }
      model.settle()
      for step in 0..<Self.steps {
        model.turn += 1
        let place = "step \(step) of SHEAF_SEED=\(Self.seed)"
        let all = model.items.values.filter { !tops.contains($0.id) }.sorted { $0.id.description < $1.id.description }
        let live = all.filter { $0.parent != nil }
        let folders = [.root] + tops + live.filter { $0.kind == .folder }.map(\.id)
        // Often into a share, or from one folder of it to another.
        let parent = (Bool.random(using: &random) ? tops : folders).randomElement(using: &random) ?? .root
        names += 1
        switch Int.random(in: 0..<20, using: &random) {
        case 0:
          let id = try await story.folder("f\(names)", in: parent)
          model.items[id] = Item(id: id, kind: .folder, made: model.turn, parent: parent)
        case 1:
          let id = try await story.document("d\(names)", "\(names)", in: parent)
          model.items[id] = Item(
            id: id, kind: .document, made: model.turn, parent: parent, versions: [(model.turn, "\(names)")])
        case 2...5:
          guard let item = live.filter({ $0.kind == .document }).randomElement(using: &random) else { continue }
          try await story.save(item.id, "\(names)")
          model.items[item.id]?.versions.append((model.turn, "\(names)"))
        case 6...15:
          guard let item = live.randomElement(using: &random), !model.isInside(parent, item.id) else { continue }
          let verdict = try await story.move(item.id, item.kind, to: parent, "m\(names)")
          #expect(verdict.outcome == .done, "\(place)")
          model.items[item.id]?.parent = parent
        case 16:
          guard let item = live.randomElement(using: &random) else { continue }
          let verdict = try await story.delete(item.id, item.kind)
          #expect(verdict.outcome == .done, "\(place)")
          let gone = live.filter { model.isInside($0.id, item.id) }
          for item in gone {
            model.items[item.id]?.former = item.parent ?? .root
            model.items[item.id]?.parent = nil
            model.items[item.id]?.deleted = model.turn
          }
        case 17, 18:
          guard let item = all.filter({ $0.parent == nil && model.isLive($0.former) }).randomElement(using: &random)
          else { continue }
          let back = Send(serial: 0, item: item.id, kind: item.kind, mode: 0o600)
          #expect(try await story.send(back).map(\.outcome) == [.done], "\(place)")
          model.items[item.id]?.parent = item.former
          // What its folder was in since then is what it comes back to, or it enters anew.
          let folder = model.items[item.former]?.entry
          if let entry = item.entry, let folder, entry.share == folder.share, folder.turn < item.deleted {
            model.items[item.id]?.entry = entry
          } else {
            model.items[item.id]?.entry = nil
          }
        default:
          guard let top = tops.randomElement(using: &random) else { continue }
          if let share = model.shares[top], Int.random(in: 0..<3, using: &random) == 0 {
            let owner = story.alice.zone
            try await story.hub.sharing.change(share.id, by: story.alice) { try $0.stop(by: owner) }
            model.shares[top] = nil
            followers[share.id] = nil
          } else if model.shares[top] == nil {
            let share = try await story.share(top, with: [story.bob])
            model.shares[top] = share
            followers[share.id] = SharedStory.Follower(story.place(share, story.bob))
          }
        }
        model.settle()
        seen += try await check(story, model, &entered, readsAll: step % 8 == 7, place)
        for id in followers.keys where Int.random(in: 0..<3, using: &random) == 0 {
          guard let share = model.shares.first(where: { $0.value.id == id }) else { continue }
          try await followers[id]?.follow(story.hub, limit: Int.random(in: 1...3, using: &random))
          let told = Set(followers[id]?.items.keys.map(\.self) ?? [])
          let expected = Set(model.items.values.filter { model.share(of: $0.id)?.id == id }.map(\.id))
          #expect(told == expected, "\(place): the feed of \(share.key)")
        }
      }
      #expect(seen > Self.steps, "hardly anything was in a share")
      #expect(try await story.hub.check() == [])
    }
  }

  /// - Parameter readsAll: Whether members read the versions of every document.
  /// - Returns: how many documents members see.
  private func check(
    _ story: SharedStory, _ model: Model, _ entered: inout [WireID: Int64], readsAll: Bool, _ place: String
  ) async throws -> Int {
    let documents = model.items.values.filter { $0.kind == .document }
    if readsAll {
      for item in documents {
        let own = item.parent == nil ? nil : model.share(of: item.id)
        for (_, share) in model.shares {
          let texts = try await story.texts(item.id, share, story.bob)
          #expect(texts == (share.id == own?.id ? model.texts(item.id) : nil), "\(place): \(item.id)")
        }
      }
    }
    let (zone, ids) = (story.alice.zone, documents.filter { $0.parent != nil }.map(\.id))
    let standings = try await story.hub.database.read { connection in
      var stored = StoredZone(zone: zone, connection: connection)
      var finder = try ShareFinder(zone: zone, connection: connection)
      return try ids.map { id in try stored.item(id).flatMap { try finder.standing(of: $0, in: &stored) } }
    }
    for (id, standing) in zip(ids, standings) {
      #expect(standing?.share == model.share(of: id)?.id, "\(place): \(id)")
      guard let standing else { continue }
      #expect(standing.entered >= entered[id] ?? 0, "\(place): the entry of \(id) fell")
      entered[id] = standing.entered
    }
    return standings.count { $0 != nil }
  }
}
