import Foundation
import MountKit
import SheafModel
import Testing

@testable import SheafSidecar

/// Signatures, schedules, filters and the configuration file.
struct SidecarValueTests {
  @Test func signaturesAreThoseOfTheSpecification() throws {
    // The test vector of Standard Webhooks.
    let secret = try WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    let signature = secret.signature(
      id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330, body: Data(#"{"test": 2432232314}"#.utf8))
    #expect(signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
  }

  @Test(arguments: ["", "whsec_", "whsec_short", "whsec_not base64!", "whsec_AAAA"])
  func secretsThatAreNoneAreRefusedWithoutRepeatingThem(_ text: String) {
    let error = #expect(throws: SheafError.self) { try WebhookSecret(text) }
    #expect(text.isEmpty || text == "whsec_" || error?.description.contains(text) == false)
  }

  /// A file as versions wrote it before it had a number.
  @Test func theStateOfAnEarlierVersionGoesOn() throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let path = "\(folder.path)/sidecar.sqlite"
    try Command([
      "sqlite3", path,
      """
      CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
      INSERT INTO grdb_migrations VALUES ('1');
      CREATE TABLE sinks (
        library TEXT NOT NULL, name TEXT NOT NULL, position INTEGER, failures INTEGER NOT NULL, failing_since INTEGER,
        next_attempt INTEGER, disabled TEXT, delivered INTEGER NOT NULL, failed INTEGER NOT NULL,
        PRIMARY KEY (library, name)
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE dead_letters (
        id INTEGER PRIMARY KEY AUTOINCREMENT, library TEXT NOT NULL, sink TEXT NOT NULL, sequence INTEGER NOT NULL,
        event TEXT NOT NULL, reason TEXT NOT NULL, time INTEGER NOT NULL, retry INTEGER NOT NULL DEFAULT 0
      ) STRICT;
      INSERT INTO sinks VALUES ('some library', 'team', 42, 0, NULL, NULL, NULL, 40, 2);
      """,
    ]).succeed()
    let key = SinkKey(library: "some library", name: "team")
    // Twice: what is of this version already stays as it is.
    for _ in 1...2 {
      let state = try SidecarState(path: path)
      var record = try state.record(key)
      #expect(record.position == 42 && record.delivered == 40)
      record.failure = "refused"
      try state.save(record, of: key)
      #expect(try state.record(key).failure == "refused")
      try state.close()
    }
  }

  /// The sidecar and who asks for its dead letters find a new file at the same moment.
  @Test func aNewStateIsOpenedByAllWhoComeAtOnce() async throws {
    let folder = try TemporaryFolder()
    for round in 0..<40 {
      let path = "\(folder.path)/state-\(round).sqlite"
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<6 { group.addTask { try SidecarState(path: path).close() } }
        try await group.waitForAll()
      }
    }
    try folder.remove()
  }

  @Test func waitsGrowToTheCap() {
    let schedule = RetrySchedule(base: 1, cap: 100, patience: 1000)
    let longest = (1...10).map { schedule.wait(afterFailures: $0, asked: nil, random: 1) }
    #expect(longest == [1, 2, 4, 8, 16, 32, 64, 100, 100, 100])
    #expect(schedule.wait(afterFailures: 1_000_000, asked: nil, random: 0.5) == 50)
    #expect(schedule.wait(afterFailures: 3, asked: nil, random: 0) == 0)
    #expect(schedule.wait(afterFailures: 3, asked: 30, random: 1) == 30)
  }

  @Test func anEventIsGivenUpWhenBothItAndTheFailuresAreOldEnough() {
    let schedule = RetrySchedule(patience: 100)
    func gives(up event: Int64, failing: Int64) -> Bool {
      schedule.gives(
        up: Timestamp(seconds: event), failingSince: Timestamp(seconds: failing), at: Timestamp(seconds: 1000))
    }
    #expect(gives(up: 800, failing: 900))
    #expect(!gives(up: 800, failing: 901))
    #expect(!gives(up: 901, failing: 800))
  }

  @Test func retryAfterIsSecondsOrADate() {
    let now = Timestamp(rfc3339: "2026-11-21T10:00:00Z")!
    #expect(RetryAfter.seconds("120", at: now) == 120)
    #expect(RetryAfter.seconds("Sat, 21 Nov 2026 10:01:30 GMT", at: now) == 90)
    #expect(RetryAfter.seconds("Sat, 21 Nov 2026 09:00:00 GMT", at: now) == 0)
    #expect(RetryAfter.seconds("99999999", at: now) == 86_400)
    #expect(RetryAfter.seconds("soon", at: now) == nil)
    #expect(RetryAfter.seconds("-5", at: now) == nil)
  }

  @Test(arguments: [
    ("*", "a", true), ("*", "a/b", false), ("**", "a/b", true), ("Plans/**", "Plans/a/b.md", true),
    ("Plans/*", "Plans/a/b.md", false), ("*.md", "b.md", true), ("*.md", "a/b.md", false), ("**/*.md", "a/b.md", true),
    ("a*c", "abc", true), ("a*c", "abd", false), ("", "", true), ("", "a", false),
  ])
  func pathsMatchPatterns(_ pattern: String, _ path: String, _ matches: Bool) {
    #expect(EventFilter.matches(pattern, path, separator: "/") == matches)
    // Others choose names: none takes longer than a moment.
    let name = String(repeating: "a", count: 255)
    #expect(!EventFilter.matches(String(repeating: "*a", count: 60) + "*b", name, separator: "/"))
  }

  @Test func whatAFolderTookAlongIsWanted() throws {
    let account = Account(handle: try AccountHandle("alice@example.com"), name: "Alice")
    var data = EventDetails(item: .init(id: "f", kind: "folder", name: "Plans", path: "Plans"), actor: account)
    func wants(_ documents: String...) -> Bool {
      EventFilter(documents: documents).includes(
        Event(
          id: "e", source: "sheaf://l", type: .deleted, subject: "f", time: Timestamp(nanoseconds: 0), sequence: 1,
          data: data))
    }
    #expect(wants("Plans") && wants("F") && !wants("d") && !wants("Plans/*.md"))
    data.contents = [.init(id: "d", kind: "document", name: "a.md", path: "Plans/a.md")]
    #expect(wants("D") && wants("Plans/*.md") && !wants("*.md"))
  }

  @Test func theExampleIsAConfiguration() throws {
    let configuration = try ConfigurationFile.read(Repository.path("examples/sidecar.toml"))
    try configuration.check()
    #expect(configuration.sinks.map(\.name) == ["team", "log", "desktop", "index"])
    #expect(configuration.sinks.map(\.target.kind) == ["webhook", "stdout", "desktop", "exec"])
    let team = configuration.sinks[0]
    #expect(team.filter.types == ["sheaf.change.*", "sheaf.persistence.*"] && team.filter.documents.count == 2)
    // It is for any library: none has to have an account of some name.
    #expect(configuration.sinks.allSatisfy { $0.account == nil })
    // What it shows is what holds without it.
    #expect(team.schedule == RetrySchedule() && team.timeout == 15 && team.batch == 1 && !team.beginsNow)
    #expect(configuration.sinks[2].beginsNow)
  }

  @Test(arguments: [
    ("sink = 1", "sink: is not a list of tables"), ("[[sink]]\nname = \"x\"", "sink x: says not where to"),
    ("[[sink]]\nwebhook = \"http://x\"\nstdout = true", "file line 3: sink 1: stdout: is a second target"),
    ("[[sink]]\nwebhook = 5", "file line 2: sink 1: webhook: is not a text"),
    (
      "\n# x = 1\n[[sink]]\nstdout = true\n\n[[ sink ]]\nname = \"b\"\n \"batch\" = 1.5\nstdout = true",
      "file line 8: sink b: batch: is not a whole number"
    ),
    ("[[sink]]\nstdout = true\nbatch = 1e300", "batch: is not a whole number"),
    ("[[sink]]\nstdout = true\nbatch = 1001", "line 3: sink 1: batch: is not 1 to 1000"),
    ("[[sink]]\nstdout = true\n[[sink]]\nstdout = true", "line 3: sink 2: name: is there twice"),
    ("[[sink]]\nwebhook = \"ftp://x\"", "line 2: sink 1: webhook: ftp://x is no URL"),
    ("[[sink]]\nstdout = true\nretry-base = 5\nretry-cap = 1", "line 4: sink 1: retry-cap: is less"),
    ("[[sink]]\nwebhook = \"http://x\"\nsecrets = [\"whsec_x\"]", "line 3: sink 1: secrets: is not whsec_"),
    ("[[sink]]\nwebhook = \"http://x\"\nsecret-file = \"/none\"", "secret-file: /none: there is no such file"),
    ("[[sink]]\nwebhok = \"http://x\"", "line 2: sink 1: webhok: means nothing"),
    ("[[sink]]\nstdout = false", "line 2: sink 1: stdout: is false"),
    ("account-webhooks = 1", "line 1: account-webhooks: is not true or false"),
    ("[[sink]]\nstdout = true\nbatches = 2", "batches: means nothing"),
    ("[[sink]]\nstdout = true\nsecrets = [\"x\"]", "secrets: means nothing"),
    ("colour = \"red\"", "colour: means nothing"),
    ("[[sink]]\nstdout = true\ntypes = [\"*\", \"sheaf.edit\"]", "line 3: sink 1: types: sheaf.edit matches no type"),
    ("[[sink]\n", "line 1: is no TOML"), ("[[sink]]\nstdout = true\nfrom = \"then\"", "from: is neither"),
    ("[[sink]]\nstdout = true\naccount = \"x\"", "is not a handle"),
  ])
  func mistakesAreNamed(_ text: String, _ message: String) throws {
    let error = #expect(throws: SheafError.self) {
      try ConfigurationFile.parse(text, named: "file", folder: URL(fileURLWithPath: "/"))
    }
    #expect(error?.description.contains(message) ?? false, "\(error?.description ?? "")")
  }

  @Test func whatMakesNoSenseTogetherIsRefused() throws {
    #expect(throws: SheafError.self) {
      try ConfigurationFile.parse("", named: "file", folder: URL(fileURLWithPath: "/")).check()
    }
    var configuration = SidecarConfiguration()
    configuration.sinks = [.init(name: "a", target: .output), .init(name: "a", target: .desktop)]
    #expect(throws: SheafError.self) { try configuration.check() }
    configuration.sinks = [.init(name: "a", target: .webhook(url: "http://", secrets: []))]
    #expect(throws: SheafError.self) { try configuration.check() }
  }

  @Test func textForTheDesktopCannotBreakOut() {
    #expect(DesktopSink.text("it's \\ <b>") == #"'it\'s \\ <b>'"#)
    #expect(!DesktopSink.text("a\nb").contains("\n"))
  }
}
