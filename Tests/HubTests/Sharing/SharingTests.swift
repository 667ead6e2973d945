import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Shares in a store: what is kept of them, and what others are told. The rules have tests of their own.
@Suite struct SharingTests {
  /// A hub with people, the first of whom has a folder with a document in it.
  struct Story: Sendable {
    let hub: TestHub
    let people: [Person]
    let folder = WireID()
    let document = WireID()

    init(_ database: any Database) async throws {
      hub = try await TestHub(database)
      var people: [Person] = []
      for name in ["alice", "bob", "carol", "dora"] {
        let handle = "\(name)@hub.example"
        people.append(Person(zone: try await hub.account(handle), handle: handle, name: handle))
      }
      self.people = people
      let author = SendAuthor(
        device: "laptop", deviceName: "laptop", handle: people[0].handle, name: "Alice", now: hub.clock.clock.now)
      var inside = Send.document("plan.md", "Monday", serial: 2, item: document)
      inside.places = [Place(parent: folder, "plan.md")]
      let outside = Send(
        serial: 1, item: folder, kind: .folder, places: [Place(parent: .root, "Trip.2027")], mode: 0o755, mtime: 1)
      _ = try await hub.hub.zones.send(SendRequest(groups: [[outside], [inside]]), to: people[0].zone, by: author)
    }

    var sharing: Sharing { hub.hub.sharing }

    func inbox(_ person: Person) async throws -> [InboxNote] {
      try await sharing.inboxes.page(after: nil, limit: 100, of: person.zone).entries.map(\.note)
    }

    func invite(_ person: Person, to share: WireID, _ settings: ParticipantSettings = .init()) async throws {
      let owner = people[0]
      _ = try await sharing.change(share, by: owner) {
        try $0.invite(person, settings, by: owner.zone, at: Timestamp(seconds: 1_800_000_000))
      }
    }
  }

  @Test(arguments: StoreEngine.available)
  func peopleAreToldInTheirInboxes(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await Story(database)
      let (alice, bob, carol) = (story.people[0], story.people[1], story.people[2])
      let share = try await story.sharing.share(story.folder, ShareSettings(), by: alice)
      #expect(share.title == "Trip.2027" && share.kind == .folder)
      #expect(try await story.inbox(alice).map(\.offer?.role) == [.owner])
      #expect(try await story.inbox(bob).isEmpty)
      try await story.invite(bob, to: share.id, ParticipantSettings(role: .administrator))
      #expect(try await story.inbox(bob).map(\.acceptance) == [.pending])
      #expect(try await problem { _ = try await story.sharing.share(share.id, for: bob) } == .forbidden)
      #expect(try await story.sharing.accept(share.token, by: bob).member?.role == .administrator)
      #expect(try await story.inbox(bob).map(\.acceptance) == [.accepted])
      #expect(try await story.sharing.share(share.id, for: bob).members.count == 2)
      // Who asks is told to those who answer.
      let settings = ShareSettings(title: "Our trip", allowRequests: true)
      _ = try await story.sharing.share(story.folder, settings, by: alice)
      #expect(try await story.sharing.accept(share.token, by: carol).member == nil)
      for person in [alice, bob] { #expect(try await story.inbox(person).map(\.offer?.requests) == [1]) }
      #expect(try await story.inbox(bob).map(\.offer?.title) == ["Our trip"])
      #expect(try await story.inbox(carol).map(\.offer) == [nil])
      try await story.sharing.change(share.id, by: bob) {
        try $0.answer(carol.handle, carol, .approve, by: bob.zone, at: Timestamp(seconds: 1_800_000_000))
      }
      #expect(try await story.inbox(carol).map(\.acceptance) == [.accepted])
      #expect(try await story.inbox(bob).map(\.offer?.requests) == [0])
      // Who is out learns nothing more.
      try await story.sharing.change(share.id, by: alice) {
        try $0.remove(bob.handle, by: alice.zone, at: Timestamp(seconds: 1_800_000_000))
      }
      #expect(try await story.inbox(bob).map(\.acceptance) == [.removed])
      #expect(try await story.inbox(bob).map(\.offer) == [nil])
      #expect(try await problem { _ = try await story.sharing.share(share.id, for: bob) } == .notFound)
      try await story.sharing.change(share.id, by: alice) { try $0.stop(by: alice.zone) }
      for person in [alice, bob, carol] { #expect(try await story.inbox(person).map(\.acceptance) == [.removed]) }
      #expect(try await problem { _ = try await story.sharing.accept(share.token, by: carol) } == .notFound)
      // The URL is the same once the folder is shared again.
      let again = try await story.sharing.share(story.folder, ShareSettings(anyone: .readOnly), by: alice)
      #expect(again.token == share.token && again.id == share.id && again.members.count == 2)
      #expect(try await story.sharing.accept(share.token, by: carol).member?.role == .publicUser)
      #expect(try await story.hub.hub.check() == [])
    }
  }

  /// One account does not fill the inbox of another.
  @Test(arguments: StoreEngine.available)
  func anAccountInvitesSoOften(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await Story(database)
      let (alice, bob, carol) = (story.people[0], story.people[1], story.people[2])
      let most = Int(ShareRows.mostUnanswered)
      let author = SendAuthor(
        device: "laptop", deviceName: "laptop", handle: alice.handle, name: "Alice", now: story.hub.clock.clock.now)
      var shares: [HubShare] = []
      for number in 0...most {
        let folder = Send(
          serial: Int64(number + 3), item: WireID(), kind: .folder, places: [Place(parent: .root, "f\(number)")],
          mode: 0o755, mtime: 1)
        _ = try await story.hub.hub.zones.send(SendRequest(groups: [[folder]]), to: alice.zone, by: author)
        shares.append(try await story.sharing.share(folder.item, ShareSettings(), by: alice))
      }
      for share in shares.dropLast() { try await story.invite(bob, to: share.id) }
      let last = try #require(shares.last)
      #expect(try await problem { try await story.invite(bob, to: last.id) } == .conflict)
      #expect(try await story.inbox(bob).count == 100)
      // Who is invited already may be given another permission, and others are invited all the same.
      try await story.invite(bob, to: shares[0].id, ParticipantSettings(permission: .readOnly))
      try await story.invite(carol, to: last.id)
      // An answer makes room.
      _ = try await story.sharing.accept(shares[0].token, by: bob)
      try await story.invite(bob, to: last.id)
      #expect(try await story.hub.hub.check() == [])
    }
  }

  /// A process that was slow brings what another one has overtaken, or brings the same again.
  @Test(arguments: StoreEngine.available)
  func anInboxTakesNothingOlder(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await Story(database)
      let (alice, bob) = (story.people[0], story.people[1])
      let share = try await story.sharing.share(story.folder, ShareSettings(), by: alice)
      try await story.invite(bob, to: share.id)
      let invited = try #require(try await story.inbox(bob).first)
      try await story.sharing.change(share.id, by: bob) { try $0.leave(bob.zone) }
      let left = try await story.inbox(bob)
      #expect(left.map(\.acceptance) == [.removed])
      let entry = try StoredZone.encoded(invited)
      try await database.write { connection in
        _ = try connection.execute(
          "INSERT INTO outgoing (zone, account, share, revision, acceptance, entry) VALUES ($1, $2, $3, 2, $4, $5)",
          [.text(alice.zone), .text(bob.zone), .blob(share.id.bytes), .text("pending"), .text(entry)])
      }
      try await story.sharing.inboxes.deliverAll()
      #expect(try await story.inbox(bob) == left)
      let waiting = try await database.read { connection in
        try connection.query("SELECT COUNT(*) FROM outgoing").first?.integer(0)
      }
      #expect(waiting == 0)
    }
  }

  /// A hub that was put back has told of later revisions than it knows.
  @Test(arguments: StoreEngine.available)
  func whatAHubTellsAfterItWentBackIsNewer(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await Story(database)
      let (alice, bob) = (story.people[0], story.people[1])
      let share = try await story.sharing.share(story.folder, ShareSettings(), by: alice)
      let former = try await database.read { try $0.query("SELECT revision FROM shares").first?.integer(0) }
      func remove() async throws {
        let now = story.hub.clock.clock.now
        try await story.sharing.change(share.id, by: alice) { try $0.remove(bob.handle, by: alice.zone, at: now) }
      }
      for _ in 0..<3 {
        try await story.invite(bob, to: share.id)
        try await remove()
      }
      try await story.invite(bob, to: share.id)
      #expect(try await story.inbox(bob).map(\.acceptance) == [.pending])
      story.hub.clock.advance(seconds: 60)
      _ = try await database.write { try $0.execute("UPDATE shares SET revision = $1", [.integer(former ?? 0)]) }
      try await remove()
      #expect(try await story.inbox(bob).map(\.acceptance) == [.removed])
    }
  }

  @Test(arguments: StoreEngine.available)
  func anItemIsInOneShareAtMost(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await Story(database)
      let (alice, bob) = (story.people[0], story.people[1])
      func share(_ item: WireID, by person: Person) async throws -> Problem.Kind? {
        try await problem { _ = try await story.sharing.share(item, ShareSettings(), by: person) }
      }
      #expect(try await share(story.document, by: bob) == .notFound)
      #expect(try await share(WireID(), by: alice) == .notFound)
      #expect(try await share(story.document, by: alice) == nil)
      #expect(try await share(story.document, by: alice) == nil)
      #expect(try await share(story.folder, by: alice) == .conflict)
      #expect(try await share(.root, by: alice) == .conflict)
      let inner = try await story.sharing.share(story.document, ShareSettings(), by: alice)
      try await story.sharing.change(inner.id, by: alice) { try $0.stop(by: alice.zone) }
      #expect(try await share(story.folder, by: alice) == nil)
      #expect(try await share(story.document, by: alice) == .conflict)
      #expect(try await story.hub.hub.check() == [])
    }
  }

  /// What is deleted offers nothing, and its link is as one that never was.
  @Test(arguments: StoreEngine.available)
  func aDeletedItemOffersNothing(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await Story(database)
      let (alice, bob) = (story.people[0], story.people[1])
      let share = try await story.sharing.share(story.document, ShareSettings(anyone: .readOnly), by: alice)
      #expect(try await story.sharing.offerToStrangers(share.token) != nil)
      let author = SendAuthor(
        device: "laptop", deviceName: "laptop", handle: alice.handle, name: "Alice", now: story.hub.clock.clock.now)
      let deletion = Send(serial: 3, item: story.document, kind: .document, base: 2, read: 2, isDeletion: true)
      _ = try await story.hub.hub.zones.send(SendRequest(groups: [[deletion]]), to: alice.zone, by: author)
      #expect(try await story.sharing.offerToStrangers(share.token) == nil)
      #expect(try await problem { _ = try await story.sharing.offer(share.token, to: bob) } == .notFound)
    }
  }

  @Test(arguments: StoreEngine.available)
  func whoAsksTakesThatBackOrIsTurnedDownAtTheEnd(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await Story(database)
      let (alice, bob) = (story.people[0], story.people[1])
      let share = try await story.sharing.share(story.folder, ShareSettings(allowRequests: true), by: alice)
      func requests() async throws -> Int {
        try await story.sharing.share(share.id, for: alice).requests(for: alice.zone).count
      }
      #expect(try await problem { try await story.sharing.withdraw(share.token, by: bob) } == .notFound)
      for _ in 0..<2 {
        #expect(try await story.sharing.accept(share.token, by: bob).member == nil)
        #expect(try await requests() == 1)
        try await story.sharing.withdraw(share.token, by: bob)
        #expect(try await requests() == 0)
      }
      _ = try await story.sharing.accept(share.token, by: bob)
      try await story.sharing.change(share.id, by: alice) { try $0.stop(by: alice.zone) }
      let told = try await story.hub.hub.events.page(after: .number(0), limit: 100, of: bob.zone).events
      #expect(told.map(\.type) == [.accessDeclined])
      // Once it is shared anew, he may ask at once.
      _ = try await story.sharing.share(story.folder, ShareSettings(allowRequests: true), by: alice)
      _ = try await story.sharing.accept(share.token, by: bob)
      #expect(try await requests() == 1)
      #expect(try await story.hub.hub.check() == [])
    }
  }

  /// Whoever asks for access sees that in their own inbox until somebody answers, and sees nothing of what changes
  /// meanwhile.
  @Test(arguments: StoreEngine.available)
  func whoAsksSeesItUntilItIsAnswered(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await Story(database)
      let (alice, bob, carol, dora) = (story.people[0], story.people[1], story.people[2], story.people[3])
      let share = try await story.sharing.share(story.folder, ShareSettings(allowRequests: true), by: alice)
      func asks(_ person: Person) async throws -> InboxNote.Asked? {
        let notes = try await story.inbox(person)
        #expect(notes.allSatisfy { $0.asked == nil || $0.acceptance == .removed && $0.offer == nil })
        return notes.first?.asked
      }
      func answer(_ person: Person, _ answer: ShareAnswer.Answer) async throws {
        let now = story.hub.clock.clock.now
        try await story.sharing.change(share.id, by: alice) {
          try $0.answer(person.handle, person, answer, by: alice.zone, at: now)
        }
      }
      for person in [bob, carol, dora] {
        #expect(try await asks(person) == nil)
        _ = try await story.sharing.accept(share.token, by: person)
        let asked = try #require(try await asks(person))
        #expect(asked.title == "Trip.2027" && asked.kind == .folder)
        #expect(asked.time == story.hub.clock.clock.now.nanoseconds)
      }
      // The link by which they know of it is no more.
      _ = try await story.sharing.share(story.folder, ShareSettings(title: "Secret", newLink: true), by: alice)
      for person in [bob, carol, dora] { #expect(try await asks(person)?.title == "Trip.2027") }
      try await answer(bob, .deny)
      #expect(try await asks(bob) == nil)
      try await answer(carol, .approve)
      #expect(try await story.inbox(carol).map(\.offer?.title) == ["Secret"])
      #expect(try await asks(carol) == nil)
      // The same for somebody who was removed and asks again.
      let now = story.hub.clock.clock.now
      try await story.sharing.change(share.id, by: alice) { try $0.remove(carol.handle, by: alice.zone, at: now) }
      let link = try await story.sharing.share(share.id, for: alice).token
      _ = try await story.sharing.accept(link, by: carol)
      _ = try await story.sharing.share(story.folder, ShareSettings(title: "More secret"), by: alice)
      #expect(try await asks(carol)?.title == "Secret")
      // An invitation answers, too, and is told.
      try await story.invite(dora, to: share.id)
      #expect(try await asks(dora) == nil)
      let told = try await story.hub.hub.events.page(after: .number(0), limit: 100, of: dora.zone).events
      #expect(told.map(\.type) == [.shareUpdated])
      #expect(try await story.hub.hub.check() == [])
    }
  }

  @Test(arguments: StoreEngine.available)
  func anAccountThatGoesAsksForNothing(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await Story(database)
      let (alice, bob) = (story.people[0], story.people[1])
      let share = try await story.sharing.share(story.folder, ShareSettings(allowRequests: true), by: alice)
      _ = try await story.sharing.accept(share.token, by: bob)
      try await story.hub.hub.removeAccount(zone: bob.zone)
      #expect(try await story.sharing.share(share.id, for: alice).requests(for: alice.zone).isEmpty)
      #expect(try await story.hub.hub.check() == [])
    }
  }

  @Test(arguments: StoreEngine.available)
  func anAccountThatGoesEndsItsShares(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await Story(database)
      let (alice, bob, carol) = (story.people[0], story.people[1], story.people[2])
      let share = try await story.sharing.share(story.folder, ShareSettings(), by: alice)
      for person in [bob, carol] {
        try await story.invite(person, to: share.id)
        _ = try await story.sharing.accept(share.token, by: person)
      }
      try await story.hub.hub.removeAccount(zone: carol.zone)
      #expect(Set(try await story.sharing.share(share.id, for: alice).members.keys) == [alice.zone, bob.zone])
      try await story.hub.hub.removeAccount(zone: alice.zone)
      #expect(try await story.inbox(bob).map(\.acceptance) == [.removed])
      // The log of the share went with it, so his own tells.
      let told = try await story.hub.hub.events.page(after: .number(0), limit: 100, of: bob.zone).events
      #expect(told.last?.type == .shareStopped && told.last?.data.actor.handle.description == alice.handle)
      #expect(try await problem { _ = try await story.sharing.share(share.id, for: bob) } == .notFound)
      #expect(try await problem { _ = try await story.sharing.accept(share.token, by: bob) } == .notFound)
      let left = try await database.read { connection in
        try connection.query("SELECT COUNT(*) FROM links").first?.integer(0)
      }
      #expect(left == 0)
      #expect(try await story.hub.hub.check() == [])
    }
  }
}
