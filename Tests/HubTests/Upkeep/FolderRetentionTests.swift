import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// For how long a hub keeps what is in folders whose owner said so.
@Suite struct FolderRetentionTests {
  private static let day: Int64 = 86_400

  private static func with(_ engine: StoreEngine, _ body: (SharedStory) async throws -> Void) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      try await body(story)
      #expect(try await story.hub.check() == [])
    }
  }

  private static func say(
    _ story: SharedStory, _ folder: WireID, deleted: Int64? = nil, versions: Int64? = nil
  ) async throws {
    try await story.hub.folderRetentions.set(
      SentRetention(keepDeleted: deleted.map { $0 * day }, keepVersions: versions.map { $0 * day }), of: folder,
      in: story.alice.zone)
  }

  /// Saves a document now.
  private static func save(_ story: SharedStory, _ item: WireID, at place: Place? = nil, _ text: String) async throws {
    let base = try await story.hub.feeds.item(item, in: story.alice.zone)?.version?.id
    var send = Send.save(item, WireID(), base: base, text)
    if let place { send = .document(item, at: [place], version: WireID(), text) }
    send.version?.time = story.hub.clock.now.nanoseconds
    try #require(try await story.send(send).map(\.outcome) == [.done])
  }

  /// The numbers of the versions that the hub has.
  private static func versions(_ story: SharedStory, _ item: WireID) async throws -> [Int64] {
    try await story.hub.contents.versions(of: item, after: 0, limit: 9, in: story.alice.zone).versions.map(\.number)
  }

  /// Whether something that was deleted can come back.
  private static func isKept(_ story: SharedStory, _ item: WireID) async throws -> Bool {
    try await story.hub.feeds.item(item, in: story.alice.zone)?.version != nil
  }

  @Test(arguments: StoreEngine.available)
  func versionsAreKeptAsTheNearestFolderSays(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { story in
      let long = try await story.folder("long")
      let short = try await story.folder("short")
      let inner = try await story.folder("inner", in: long)
      let half = try await story.folder("half", in: long)
      let folders: [WireID] = [.root, long, short, inner, half, long]
      let items = folders.map { _ in WireID() }
      for round in 1...3 {
        for (index, item) in items.enumerated() {
          let place = round == 1 ? Place(parent: folders[index], "document \(index)") : nil
          try await Self.save(story, item, at: place, "\(round)")
        }
        story.test.clock.advance(seconds: 40 * Self.day)
      }
      try await Self.say(story, long, versions: 1000)
      try await Self.say(story, short, versions: 100)
      try await Self.say(story, inner, versions: 100)
      // Each of the two spans counts by itself.
      try await Self.say(story, half, deleted: 3)
      // What was moved is in the folder where it is.
      try await story.move(items[5], .document, to: .root, "moved")
      func numbers() async throws -> [[Int64]] {
        var numbers: [[Int64]] = []
        for item in items { numbers.append(try await Self.versions(story, item)) }
        return numbers
      }
      try await story.hub.upkeep()
      #expect(try await numbers() == [[1, 2, 3], [1, 2, 3], [2, 3], [2, 3], [1, 2, 3], [1, 2, 3]])
      story.test.clock.advance(seconds: 300 * Self.day)
      try await story.hub.upkeep()
      #expect(try await numbers() == [[3], [1, 2, 3], [3], [3], [1, 2, 3], [3]])
      // Whatever the hub's own rules are.
      try await story.hub.retention.set(RetentionRules(versionDays: nil))
      story.test.clock.advance(seconds: 700 * Self.day)
      try await story.hub.upkeep()
      #expect(try await numbers() == [[3], [3], [3], [3], [3], [3]])
    }
  }

  @Test(arguments: StoreEngine.available)
  func allOfDocumentsCanSayIt(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { story in
      let folder = try await story.folder("folder")
      let item = WireID()
      try await Self.save(story, item, at: Place(parent: folder, "document"), "1")
      story.test.clock.advance(seconds: 8 * Self.day)
      try await Self.save(story, item, "2")
      try await Self.say(story, .root, versions: 500)
      story.test.clock.advance(seconds: 400 * Self.day)
      try await story.hub.upkeep()
      #expect(try await Self.versions(story, item) == [1, 2])
      try await Self.say(story, .root)
      try await story.hub.upkeep()
      #expect(try await Self.versions(story, item) == [2])
    }
  }

  @Test(arguments: StoreEngine.available)
  func whatWasDeletedIsKeptAsItsFolderSays(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { story in
      let long = try await story.folder("long")
      let short = try await story.folder("short")
      let years = try await story.folder("years")
      let deep = try await story.folder("deep", in: years)
      try await Self.say(story, long, deleted: 100)
      try await Self.say(story, short, deleted: 2)
      try await Self.say(story, years, deleted: 400)
      let plain = try await story.document("plain", "a")
      let kept = try await story.document("kept", "b", in: long)
      let soon = try await story.document("soon", "c", in: short)
      let below = try await story.document("below", "d", in: deep)
      for item in [plain, kept, soon, below] { try await story.delete(item) }
      // The folders go, too; what they said counts for what was in them.
      for folder in [deep, years, long] { try await story.delete(folder, .folder) }
      func left() async throws -> [Bool] {
        var left: [Bool] = []
        for item in [plain, kept, soon, below] { left.append(try await Self.isKept(story, item)) }
        return left
      }
      story.test.clock.advance(seconds: 3 * Self.day)
      try await story.hub.upkeep()
      #expect(try await left() == [true, true, false, true])
      story.test.clock.advance(seconds: 40 * Self.day)
      try await story.hub.upkeep()
      #expect(try await left() == [false, true, false, true])
      story.test.clock.advance(seconds: 60 * Self.day)
      try await story.hub.upkeep()
      #expect(try await left() == [false, false, false, true])
      // The folders by which it is found are not forgotten before.
      story.test.clock.advance(seconds: 290 * Self.day)
      try await story.hub.upkeep()
      #expect(try await left() == [false, false, false, true])
      story.test.clock.advance(seconds: 20 * Self.day)
      try await story.hub.upkeep()
      #expect(try await left() == [false, false, false, false])
      // What is forgotten says nothing.
      #expect(try await story.hub.folderRetentions.list(of: story.alice.zone).folders.map(\.item) == [short])
    }
  }

  @Test(arguments: StoreEngine.available)
  func whatCannotBeIsRefused(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { story in
      let (hub, zone) = (story.hub, story.alice.zone)
      let folder = try await story.folder("folder")
      let document = try await story.document("document", "text")
      try await story.share(folder, with: [story.bob])
      let spans = SentRetention(keepDeleted: Self.day, keepVersions: nil)
      for span in [0, -1, Self.day - 1, 1_000_000_000_001, Int64.max, Int64.min] {
        for sent in [
          SentRetention(keepDeleted: span, keepVersions: nil), SentRetention(keepDeleted: nil, keepVersions: span),
        ] {
          #expect(try await problem { try await hub.folderRetentions.set(sent, of: folder, in: zone) } == .invalid)
        }
      }
      #expect(try await problem { try await hub.folderRetentions.set(spans, of: document, in: zone) } == .invalid)
      #expect(try await problem { try await hub.folderRetentions.set(spans, of: WireID(), in: zone) } == .notFound)
      // Of members, too: it is the owner's.
      #expect(
        try await problem { try await hub.folderRetentions.set(spans, of: folder, in: story.bob.zone) } == .notFound)
      #expect(try await hub.folderRetentions.list(of: story.bob.zone).folders == [])
      #expect(try await hub.folderRetentions.list(of: zone).folders == [])
    }
  }

  @Test(arguments: StoreEngine.available)
  func devicesHearOfIt(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { story in
      let (hub, zone) = (story.hub, story.alice.zone)
      let folder = try await story.folder("folder")
      func page(_ token: String? = nil) async throws -> FeedPage {
        try await hub.feeds.page(after: try token.map { try FeedToken($0) }, limit: 9, of: zone)
      }
      let before = try await page()
      try await Self.say(story, folder, deleted: 1, versions: 2)
      let after = try await page(before.token)
      // The zone went on, and no item did.
      #expect(after.items == [] && after.token != before.token && after.retentions != before.retentions)
      try await Self.say(story, folder, deleted: 1, versions: 2)
      #expect(try await page(before.token) == after)
      let list = try await hub.folderRetentions.list(of: zone)
      #expect(
        list.folders == [FolderRetention(item: folder, keepDeleted: Self.day, keepVersions: 2 * Self.day)]
          && list.keepDeleted == 30 * Self.day && list.keepVersions == 365 * Self.day && list.isSound)
      // So they do of the hub's rules, with their next look.
      try await hub.retention.set(RetentionRules(versionDays: nil, deletedDays: 7))
      #expect(try await page(after.token).retentions != after.retentions)
      #expect(try await hub.folderRetentions.list(of: zone).keepVersions == nil)
      // What is purged says nothing, and gets nothing to say.
      try await story.delete(folder, .folder)
      try await hub.purging.purge(folder, in: zone, by: "a")
      #expect(try await hub.folderRetentions.list(of: zone).folders == [])
      #expect(try await problem { try await Self.say(story, folder, deleted: 1) } == .notFound)
    }
  }

  @Test(arguments: StoreEngine.available)
  func soManyFoldersSayIt(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let zone = story.alice.zone
      let (first, last) = (try await story.folder("first"), try await story.folder("last"))
      try await Self.say(story, first, deleted: 5)
      _ = try await database.write { connection in
        for _ in 1..<WireLimits.retainingFolders {
          try connection.execute(
            "INSERT INTO retentions (zone, item, deleted, versions) VALUES ($1, $2, $3, NULL)",
            [.text(zone), .blob(WireID().bytes), .integer(86_400)])
        }
      }
      #expect(try await problem { try await Self.say(story, last, deleted: 5) } == .conflict)
      // One that says something can say something else, or nothing.
      try await Self.say(story, first, deleted: 6)
      try await Self.say(story, first)
      try await Self.say(story, last, deleted: 5)
      #expect(try await story.hub.folderRetentions.list(of: zone).folders.count == WireLimits.retainingFolders)
      // A check finds what is no folder.
      #expect(try await story.hub.check().count == WireLimits.retainingFolders - 1)
    }
  }
}
