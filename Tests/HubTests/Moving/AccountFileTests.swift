import Foundation
import HubKit
import MountKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// An account goes into a file, and becomes an account of another hub.
@Suite struct AccountFileTests {
  private static func with(
    _ engine: StoreEngine, _ body: (_ story: SharedStory, _ file: String) async throws -> Void
  ) async throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let plan = try await story.document("plan", "1", in: trip)
      try await story.save(plan, "2")
      for number in 0..<20 { try await story.document("d\(number)", "\(number)") }
      let first = try #require(
        try await story.hub.contents.versions(of: plan, after: 0, limit: 1, in: story.alice.zone).versions.first)
      try await story.hub.labels.label(first.id, of: plan, as: "first", in: story.alice.zone, by: "device")
      let doomed = try await story.document("doomed", "")
      try await story.delete(doomed)
      let share = try await story.share(trip, with: [story.bob])
      let base = try await story.hub.feeds.item(plan, in: story.alice.zone)?.version?.id
      try await story.send(.save(plan, WireID(), base: base, "3"), to: share, by: story.bob)
      try await story.hub.folderRetentions.set(
        SentRetention(keepDeleted: 9 * 86_400, keepVersions: nil), of: trip, in: story.alice.zone)
      try await body(story, "\(folder.path)/alice")
    }
  }

  @discardableResult
  private static func write(_ story: SharedStory, to path: String) async throws -> AccountFileFacts {
    _ = FileManager.default.createFile(atPath: path, contents: nil)
    let file = try #require(FileHandle(forUpdatingAtPath: path))
    return try await story.hub.exportAccount(zone: story.alice.zone, to: file)
  }

  @discardableResult
  private static func read(_ path: String, into hub: Hub, as handle: String? = nil) async throws -> AccountFileFacts {
    let file = try #require(FileHandle(forReadingAtPath: path))
    return try await hub.importAccount(from: file, as: try handle.map { try AccountHandle($0) })
  }

  @Test(arguments: StoreEngine.available)
  func anAccountGoesToAnotherHub(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { story, path in
      let written = try await Self.write(story, to: path)
      let zone = story.alice.zone
      let feed = try await story.hub.feeds.page(after: nil, limit: 1_000, of: zone)
      let events = try await story.hub.events.page(after: .number(0), limit: 1_000, of: zone)
      let early = try await story.hub.events.page(after: .number(0), limit: 5, of: zone)
      for other in StoreEngine.available {
        try await other.withDatabase { database in
          let hub = try await TestHub(database)
          _ = try await hub.account("bob@hub.example")
          let read = try await Self.read(path, into: hub.hub, as: "alice@new.example")
          #expect(read.rows == written.rows && read.bytes == written.bytes && read.handle == "alice@new.example")
          #expect(try await hub.hub.check() == [])
          let there = try await hub.hub.feeds.page(after: nil, limit: 1_000, of: zone)
          #expect(there.items == feed.items)
          let retentions = try await hub.hub.folderRetentions.list(of: zone)
          #expect(try await retentions == story.hub.folderRetentions.list(of: zone) && retentions.folders.count == 1)
          let told = try await hub.hub.events.page(after: .number(0), limit: 1_000, of: zone)
          #expect(told.events.map(\.id) == events.events.map(\.id))
          // Positions on the hub that it comes from are of another time.
          #expect(
            try await problem {
              _ = try await hub.hub.feeds.page(after: try FeedToken(feed.token), limit: 9, of: zone)
            } == .gone)
          // In the log a reader finds where it goes on, as after a copy took the hub's place.
          let place = try LogToken(early.token)
          #expect(
            try await problem {
              _ = try await hub.hub.events.page(after: .token(place, after: nil), limit: 1_000, of: zone)
            } == .gone)
          let rest = try await hub.hub.events.page(after: .former(place, after: nil), limit: 1_000, of: zone)
          #expect(rest.events.map(\.id) == events.events.dropFirst(5).map(\.id))
          let facts = try await hub.accounts.facts(of: zone)
          #expect(facts.used == written.bytes && facts.name == nil)
          // Machines join, and go on.
          let device = try await hub.enroll(TestDevice(), in: zone)
          #expect(device.handle == "alice@new.example")
          let author = SendAuthor(
            device: device.device, deviceName: "laptop", handle: device.handle, name: "alice", now: hub.hub.clock.now)
          let sent = SendRequest(groups: [[.document("new", "new", serial: 1)]])
          let answer = try await hub.hub.zones.send(sent, to: zone, by: author)
          #expect(answer.verdicts.map(\.outcome) == [.done])
          // It is there once.
          #expect(try await problem { try await Self.read(path, into: hub.hub, as: "other@new.example") } == .conflict)
          #expect(try await hub.hub.check() == [])
        }
      }
      // The epochs before that one go along, but for those of the logs of shares.
      try await story.hub.database.write { connection in try Zone.beginEpochs(in: &connection) }
      let later = try await story.document("later", "x")
      let grown = try await story.hub.feeds.page(after: nil, limit: 1_000, of: zone)
      #expect(grown.items.last?.item == later)
      try await Self.write(story, to: path)
      try await StoreEngine.sqlite.withDatabase { database in
        let hub = try await TestHub(database)
        try await Self.read(path, into: hub.hub)
        let place = try LogToken(early.token)
        let rest = try await hub.hub.events.page(after: .former(place, after: nil), limit: 1_000, of: zone)
        #expect(rest.events.count == events.events.count - 5 + 1)
        let shared = try await database.read { connection in
          try connection.query("SELECT share FROM epochs").filter { try !$0.blob(0).isEmpty }
        }
        #expect(shared.isEmpty)
      }
      // On its own hub it is there already, until it is removed.
      #expect(try await problem { try await Self.read(path, into: story.hub) } == .conflict)
      try await story.hub.removeAccount(zone: zone)
      try await Self.read(path, into: story.hub)
      #expect(try await story.hub.feeds.page(after: nil, limit: 1_000, of: zone).items == grown.items)
      #expect(try await story.hub.check() == [])
    }
  }

  /// Whatever is changed in it, nothing of the account is there afterwards.
  @Test(arguments: StoreEngine.available)
  func aDamagedFileMakesNothing(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { story, path in
      try await Self.write(story, to: path)
      let text = try String(contentsOfFile: path, encoding: .utf8)
      let lines = text.split(separator: "\n").map(String.init)
      try await engine.withDatabase { database in
        let hub = try await TestHub(database)
        func refuses(_ lines: [String], ends: Bool = true, _ what: Comment) async throws {
          let changed = lines.joined(separator: "\n") + (ends ? "\n" : "")
          try changed.write(toFile: path, atomically: true, encoding: .utf8)
          #expect(try await problem { try await Self.read(path, into: hub.hub) } == .invalid, what)
          #expect(try await hub.accounts.list() == [], what)
          let left = try await database.read { connection in
            try connection.query("SELECT COUNT(*) FROM items").first?.integer(0)
          }
          #expect(left == 0, what)
        }
        try await refuses([], ends: false, "empty")
        try await refuses(["{}"], "no head")
        try await refuses(["x"], "no JSON")
        try await refuses(lines.dropLast(), "no end")
        try await refuses(Array(lines.prefix(5)), ends: false, "cut off")
        try await refuses(lines, ends: false, "the last line is not whole")
        try await refuses(lines + [lines[1]], "something after the end")
        try await refuses([lines[0]] + lines.dropFirst(2), "a row is missing")
        try await refuses([lines[0], lines[2], lines[1]] + lines.dropFirst(3), "two rows changed places")
        for (from, to, what) in [
          ("sheaf-account", "another", "another format" as Comment),
          ("\"version\":6,\"zone\"", "\"version\":5,\"zone\"", "a version"),
          ("\"epoch\":\"", "\"epoch\":\"AAAA", "an epoch"),
          ("\"copy_of\"", "\"copy\"", "other columns"), ("\"horizon\":0", "\"horizon\":-1", "a number"),
        ] {
          let head = lines[0].replacing(from, with: to)
          #expect(head != lines[0], what)
          try await refuses([head] + lines.dropFirst(), what)
        }
        let row = try #require(lines.firstIndex { $0.contains("\"table\":\"items\"") })
        for (from, to) in [
          ("\"items\"", "\"accounts\""), ("\"items\"", "\"names\""), (story.alice.zone, story.bob.zone),
          ("[\"", "[1,\""),
        ] {
          var changed = lines
          changed[row] = changed[row].replacing(from, with: to, maxReplacements: 1)
          try await refuses(changed, "\(from) \(to)")
        }
        // One that is well-formed, and not sound: the hash is that of what is in it.
        var rows = lines.dropFirst().dropLast()
        rows.removeAll { $0.contains("\"table\":\"names\"") }
        let body = ([lines[0]] + rows).map { $0 + "\n" }.joined()
        let hash = Chunk(Array(body.utf8)).hash
        try await refuses(
          [lines[0]] + rows + ["{\"rows\":\(rows.count),\"sha256\":\"\(hash)\"}"], "no item has its name")
        // So are these, which no device could have sent, or from which the hub could not count on.
        func altered(_ line: String, _ column: Int, _ value: Any) throws -> String {
          var row = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
          var values = try #require(row["values"] as? [Any])
          values[column] = value
          row["values"] = values
          let data = try JSONSerialization.data(withJSONObject: row, options: [.sortedKeys, .withoutEscapingSlashes])
          return String(decoding: data, as: UTF8.self)
        }
        func refusesSound(_ head: String, _ rows: some Collection<String>, _ what: Comment) async throws {
          let hash = Chunk(Array(([head] + rows).map { $0 + "\n" }.joined().utf8)).hash
          try await refuses([head] + rows + ["{\"rows\":\(rows.count),\"sha256\":\"\(hash)\"}"], what)
        }
        let sound = Array(lines.dropFirst().dropLast())
        for number in [Int64.max, .max - 1] {
          let head = try #require(
            try JSONSerialization.jsonObject(with: Data(lines[0].utf8)) as? [String: Any]
          ).merging(["number": number]) { $1 }
          let data = try JSONSerialization.data(withJSONObject: head, options: [.sortedKeys, .withoutEscapingSlashes])
          try await refusesSound(String(decoding: data, as: UTF8.self), sound, "a head with number \(number)")
        }
        let place = "[{\"name\":\"LnZlcnNpb25z\",\"parent\":\"00000000-0000-0000-0000-000000000000\"}]"
        let alterations: [(table: String, column: String, value: Any)] = [
          ("items", "places", place), ("items", "places", "x"), ("items", "mode", -1), ("items", "mode", Int64.max),
          ("items", "attributes", "{\"user.sheaf.id\":\"AA==\"}"),
          ("items", "attributes", "{\"security.capability\":\"AA==\"}"), ("items", "number", Int64.max),
          ("versions", "number", Int64.max), ("versions", "number", -1), ("versions", "number", 0),
          ("version_changes", "number", Int64.max), ("labelled", "changes", Int64.max),
          ("labels", "label", "\u{1B}[1m"),
          ("labels", "label", ""), ("authors", "handle", ""),
          ("authors", "handle", "\u{1B}"),
          ("placements", "placed_by", "nobody"), ("events", "event", "nope"),
          ("events", "event", String(repeating: "[", count: 10_000)), ("chunks", "lease", Int64.max),
        ]
        for (table, column, value) in alterations {
          let columns = try #require(HubTables.all.first { $0.name == table }).columns
          let index = try #require(sound.firstIndex { $0.contains("\"table\":\"\(table)\"") }, "\(table)")
          var rows = sound
          rows[index] = try altered(rows[index], #require(columns.firstIndex(of: column)), value)
          try await refusesSound(lines[0], rows, "\(table).\(column) is \(value)")
        }
        // The sound one is taken after all of these.
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        try await Self.read(path, into: hub.hub)
        #expect(try await hub.hub.check() == [])
      }
    }
  }
}
