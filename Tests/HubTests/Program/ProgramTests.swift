import Foundation
import Glibc
import HubKit
import MountKit
import SheafHub
import SheafHubStore
import SheafModel
import SheafWire
import Testing

/// The program as an administrator uses it.
@Suite struct ProgramTests {
  /// A hub that was made before there were feeds of shares gets their tables when it is opened.
  @Test func anOlderHubGetsTheTablesThatItLacks() async throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    try program.succeed("init", "--address", "127.0.0.1:0")
    try program.account("alice@hub.example")
    let database = try SQLiteDatabase(path: "\(program.hubFolder)/hub.sqlite")
    try await database.write { connection in
      for statement: StaticString in [
        "DROP TABLE shared_feeds", "DROP TABLE shared_rows", "DROP TABLE entries", "DROP TABLE version_changes",
        "DROP TABLE memberships", "DROP TABLE shared_events", "DROP TABLE uploads", "DROP TABLE shared_verdicts",
        "DROP TABLE shared_watermarks", "DROP TABLE linked_items", "DROP TABLE feed_marks",
        "DELETE FROM settings WHERE name IS NOT NULL",
      ] {
        try connection.execute(statement)
      }
    }
    await database.close()
    #expect(try program.succeed("check") == "Nothing is wrong.")
    try program.succeed("account", "remove", "--force", "alice@hub.example")
  }

  /// Rows of an older hub are moved while nobody else uses it.
  @Test func anOlderHubIsUpgradedWhileNobodyServesIt() async throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    try program.succeed("init", "--address", "127.0.0.1:0")
    try program.account("alice@hub.example")
    _ = try program.serve()
    let database = try SQLiteDatabase(path: "\(program.hubFolder)/hub.sqlite")
    try await OlderHub.make(database)
    await database.close()
    let refused = try program.run("check")
    #expect(refused.status == 1 && refused.errorText.contains("in use by another process"), "\(refused)")
    try program.stop()
    #expect(try program.succeed("check") == "Nothing is wrong.")
    _ = try program.serve()
    #expect(try program.succeed("check") == "Nothing is wrong.")
  }

  /// The log of a hub's database that was moved away holds what that hub stored last.
  @Test func whatAHubLeftStays() throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    #expect(mkdir(program.hubFolder, 0o700) == 0 || errno == EEXIST)
    let left = program.hubFolder + "/hub.sqlite-wal"
    #expect(FileManager.default.createFile(atPath: left, contents: Data("left".utf8)))
    #expect(try program.run("init", "--address", "127.0.0.1:0").errorText.contains("hub.sqlite-wal: is there already"))
    #expect(try String(contentsOfFile: left, encoding: .utf8) == "left")
    #expect(try FileManager.default.contentsOfDirectory(atPath: program.hubFolder) == ["hub.sqlite-wal"])
  }

  @Test func anAdministratorsDay() async throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    try program.succeed("init", "--address", "127.0.0.1:0", "--address", "hub.example")
    // Its user's alone, and made once.
    for name in ["", "/hub.json", "/hub.sqlite", "/key.pem"] {
      var status = stat()
      #expect(stat(program.hubFolder + name, &status) == 0)
      #expect(status.st_mode & 0o077 == 0, "\(name)")
    }
    #expect(try program.run("init", "--address", "127.0.0.1:0").status == 1)

    let link = try #require(
      EnrollmentLink(try program.succeed("account", "add", "alice@hub.example", "--name", "Alice")))
    #expect(link.fingerprint == (try HubCertificate.fingerprint(pem: try program.certificate)))
    #expect(try program.run("account", "add", "alice@hub.example").status == 1)
    #expect(try program.run("account", "add", "Alice").status == 64)
    #expect(try program.run("account", "quota", "alice@hub.example", "-1").status == 64)
    try program.succeed("account", "quota", "alice@hub.example", "1000000")
    #expect(try program.succeed("account", "list") == "alice@hub.example\tAlice\t0 of 1000000 bytes")

    let base = try program.serve()
    #expect(base.hasPrefix("https://127.0.0.1:"))
    #expect(
      try program.run("serve", "--listen", "127.0.0.1:0").errorText.contains("is being served by another process"))
    let client = try HubClient(base: base, roots: try program.certificate)
    let laptop = TestDevice()
    let device = try await client.enroll(laptop, code: link.code)
    let token = try await client.begin(laptop, device)
    #expect(try await client.send("GET", "/v1/account", token: token).decode(AccountFacts.self).quota == 1_000_000)
    #expect(try program.succeed("device", "list", "alice@hub.example").hasPrefix("\(device.device)\tlaptop\t"))
    let facts = try #require(
      try JSONSerialization.jsonObject(with: Data(program.succeed("status", "--json").utf8)) as? [String: Any])
    #expect(facts["accounts"] as? Int == 1 && facts["devices"] as? Int == 1 && facts["store"] as? String == "sqlite")

    // A copy that is made meanwhile is a hub of its own.
    let copy = "\(folder.path)/copy"
    try program.succeed("backup", copy)
    #expect(try program.succeed("check", "--hub", copy) == "Nothing is wrong.")
    for name in try FileManager.default.contentsOfDirectory(atPath: copy) {
      var status = stat()
      #expect(lstat("\(copy)/\(name)", &status) == 0 && status.st_mode & 0o077 == 0, "others may read \(name)")
    }
    #expect(try program.run("backup", copy).status == 1)
    #expect(try program.succeed("device", "list", "alice@hub.example", "--hub", copy).hasPrefix(device.device))

    try program.succeed("device", "remove", "alice@hub.example", device.device)
    #expect(try program.run("device", "remove", "alice@hub.example", device.device).status == 1)
    var answer = try await client.send("GET", "/v1/account", token: token)
    let deadline = ContinuousClock.now + .seconds(60)
    while answer.status == 200, ContinuousClock.now < deadline {
      answer = try await client.send("GET", "/v1/account", token: token)
    }
    #expect(answer.problem == .unauthorized)
    #expect(try program.run("account", "remove", "alice@hub.example").status == 64)
    try program.succeed("account", "remove", "--force", "alice@hub.example")
    #expect(try program.succeed("account", "list") == "")
    #expect(try program.succeed("check") == "Nothing is wrong.")
    await client.close()
    try program.stop()
  }

  /// A copy that does not fit leaves nothing behind, so the next try can have the same name.
  @Test(.enabled(if: TestUser.isRoot, "a disk of its own needs root")) func aCopyThatDoesNotFitLeavesNothing() throws {
    let folder = try TemporaryFolder()
    let disk = try LoopFileSystem(below: folder, mebibytes: 10)
    defer {
      disk.detach()
      try? folder.remove()
    }
    let program = try HubProgram(in: folder)
    try program.succeed("init", "--address", "127.0.0.1:0")
    let ballast = "\(disk.mountpoint)/ballast"
    // With not a byte left, and with room for all but the store.
    for left in ["0", "40K"] {
      _ = try Command(["dd", "if=/dev/zero", "of=\(ballast)", "bs=4K"]).run()
      if left != "0" { try Command(["truncate", "-s", "-\(left)", ballast]).succeed() }
      #expect(try program.run("backup", "\(disk.mountpoint)/copy").status == 1)
      #expect(!FileManager.default.fileExists(atPath: "\(disk.mountpoint)/copy"), "\(left)")
      unlink(ballast)
    }
    try program.succeed("backup", "\(disk.mountpoint)/copy")
  }

  /// A copy is made, more is acknowledged, and then the copy takes the hub's place: machines notice that, and send
  /// again.
  @Test func aCopyThatTakesTheHubsPlaceIsNoticed() async throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    try program.succeed("init", "--address", "127.0.0.1:0")
    let code = try program.account("alice@hub.example")
    let laptop = TestDevice()
    let (early, late) = (Send.document("early.md", "early", serial: 1), Send.document("late.md", "late", serial: 2))
    func serve() async throws -> HubClient { try HubClient(base: try program.serve(), roots: try program.certificate) }
    func feed(_ client: HubClient, _ token: String) async throws -> FeedPage {
      try await client.send("GET", "/v1/feed", token: token).decode()
    }
    func send(_ send: Send, _ client: HubClient, _ token: String) async throws {
      let answer: SendAnswer = try await client.send(
        "POST", "/v1/sends", json: SendRequest(groups: [[send]]), token: token
      ).decode()
      #expect(answer.verdicts.map(\.outcome) == [.done])
    }

    let first = try await serve()
    let device = try await first.enroll(laptop, code: code)
    let session = try await first.begin(laptop, device)
    try await send(early, first, session)
    let before = try await feed(first, session)
    let copy = "\(folder.path)/copy"
    try program.succeed("backup", copy)
    try await send(late, first, session)
    let after = try await feed(first, session)
    await first.close()
    try program.stop()

    try FileManager.default.removeItem(atPath: program.hubFolder)
    try FileManager.default.moveItem(atPath: copy, toPath: program.hubFolder)
    let second = try await serve()
    #expect(try await second.send("GET", "/v1/account", token: session).problem == .unauthorized)
    let newSession = try await second.begin(laptop, device)
    for page in [before, after] {
      let answer = try await second.send("GET", "/v1/feed?token=\(page.token)", token: newSession)
      #expect(answer.problem == .gone)
    }
    #expect(try await feed(second, newSession).items.map(\.item) == [early.item])
    try await send(late, second, newSession)
    #expect(try await feed(second, newSession).items.map(\.item) == [early.item, late.item])
    await second.close()
    try program.stop()
    #expect(try program.succeed("check") == "Nothing is wrong.")
  }

  /// For how long a hub keeps things: told, set one by one, kept, and refused where it makes no sense.
  @Test func retentionIsToldAndSet() async throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    #expect(try program.run("retain").status == 1)
    try program.succeed("init", "--address", "127.0.0.1:0")
    func facts(_ text: String) throws -> [String: Int?] {
      try JSONDecoder().decode([String: Int?].self, from: Data(text.utf8))
    }
    #expect(try program.succeed("retain") == "Versions:      365 days\nDeleted items: 30 days")
    #expect(try facts(program.succeed("retain", "--json")) == ["versionDays": 365, "deletedDays": 30])
    #expect(try program.succeed("retain", "--versions", "1") == "Versions:      1 day\nDeleted items: 30 days")
    // The server goes by what is set while it runs.
    let base = try program.serve()
    #expect(base.hasPrefix("https://"))
    #expect(try program.succeed("retain", "--deleted", "forever") == "Versions:      1 day\nDeleted items: forever")
    try program.stop()
    let both = try program.succeed("retain", "--versions", "forever", "--deleted", "36500", "--json")
    #expect(try facts(both) == ["versionDays": nil, "deletedDays": 36_500])
    for wrong in ["0", "36501", "9223372036854775807", "-9223372036854775808"] {
      for option in ["--versions", "--deleted"] {
        let refused = try program.run("retain", "\(option)=\(wrong)")
        #expect(refused.status == 1 && refused.errorText.contains("1 to 36500"), "\(wrong): \(refused)")
      }
    }
    for wrong in ["", "x", "1.5", "9223372036854775808", "Forever"] {
      #expect(try program.run("retain", "--versions=\(wrong)").status == 64, "\(wrong)")
    }
    #expect(try program.run("retain", "10").status == 64)
    #expect(try facts(program.succeed("retain", "--json")) == ["versionDays": nil, "deletedDays": 36_500])
  }

  /// A hub moves to PostgreSQL, with its machines and their sessions; an account goes into a file and back.
  @Test(.enabled(if: PostgresCluster.isInstalled, "PostgreSQL is not installed"))
  func aHubMovesAndAnAccountGoesIntoAFile() async throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    try program.succeed("init", "--address", "127.0.0.1:0")
    let code = try program.account("alice@hub.example")
    let laptop = TestDevice()
    let roots = try program.certificate
    let store = try PostgresCluster.shared.get().newPlace()
    let before = try HubClient(base: try program.serve(), roots: roots)
    let device = try await before.enroll(laptop, code: code)
    let token = try await before.begin(laptop, device)
    let sent = SendRequest(groups: [[.document("a", "contents", serial: 1)]])
    #expect(try await before.send("POST", "/v1/sends", json: sent, token: token).status == 200)
    let page: FeedPage = try await before.send("GET", "/v1/feed", token: token).decode()
    // Nobody may serve it meanwhile.
    let refused = try program.run("migrate", "--to", store)
    #expect(refused.status == 1 && refused.errorText.contains("in use by another process"), "\(refused)")
    await before.close()
    try program.stop()

    #expect(try program.run("migrate", "--to", "sqlite").status == 64)
    // Somebody may serve a hub that has no account yet.
    let elsewhere = try TemporaryFolder()
    defer { try? elsewhere.remove() }
    let taken = try PostgresCluster.shared.get().newPlace()
    try HubProgram(in: elsewhere).succeed("init", "--address", "127.0.0.1:0", "--store", taken)
    let another = try program.run("migrate", "--to", taken)
    #expect(another.status == 1 && another.errorText.contains("another hub in it"), "\(another)")
    let moved = try #require(
      try JSONSerialization.jsonObject(with: Data(program.succeed("migrate", "--to", store, "--json").utf8))
        as? [String: Any])
    #expect(moved["accounts"] as? Int == 1 && moved["store"] as? String == "postgresql")
    // What describes the contents counts, too.
    let bytes = try #require(moved["bytes"] as? Int)
    #expect((500..<1_000).contains(bytes))
    #expect(try program.run("migrate", "--to", store).errorText.contains("on PostgreSQL already"))
    let status = try program.succeed("status")
    #expect(status.contains("Store:       postgresql") && status.contains("Warning:     fsync is off"), "\(status)")
    #expect(try program.succeed("check") == "Nothing is wrong.")

    let after = try HubClient(base: try program.serve(), roots: roots)
    #expect(try await after.send("GET", "/v1/feed?token=\(page.token)", token: token).decode(FeedPage.self).items == [])
    let again: SendAnswer = try await after.send("POST", "/v1/sends", json: sent, token: token).decode()
    #expect(again.verdicts.map(\.outcome) == [.done] && again.number == 1)
    let file = "\(folder.path)/alice"
    let written = try #require(
      try JSONSerialization.jsonObject(
        with: Data(program.succeed("account", "export", "alice@hub.example", file, "--json").utf8)) as? [String: Any])
    #expect(written["handle"] as? String == "alice@hub.example" && written["bytes"] as? Int == bytes)
    var facts = stat()
    #expect(stat(file, &facts) == 0 && facts.st_mode & 0o077 == 0)
    #expect(try program.run("account", "export", "alice@hub.example", file).status == 1)
    #expect(try program.run("account", "import", file).errorText.contains("on this hub already"))
    try program.succeed("account", "remove", "--force", "alice@hub.example")
    let link = try #require(EnrollmentLink(try program.succeed("account", "import", file, "--as", "al@hub.example")))
    let next = TestDevice()
    let back = try await after.enroll(next, code: link.code)
    #expect(back.handle == "al@hub.example" && back.zone == device.zone)
    let session = try await after.begin(next, back)
    #expect(try await after.send("GET", "/v1/feed", token: session).decode(FeedPage.self).items == page.items)
    await after.close()
    try program.stop()
    #expect(try program.succeed("check") == "Nothing is wrong.")
  }

  @Test func wrongUsageAndMissingHubsAreTold() throws {
    try withTemporaryFolder { folder in
      let program = try HubProgram(in: folder)
      let missing = try program.run("status")
      #expect(missing.status == 1 && missing.errorText.contains("has no hub"))
      for arguments in [
        ["init"], ["init", "--address", "a", "--plain", "--certificate", "c", "--key", "k"],
        ["init", "--address", "a", "--plain", "--self-signed"],
        ["init", "--address", "a", "--certificate", "c"], ["init", "--address", "a", "--store", "mysql"], ["nonsense"],
        ["serve", "--log-level", "loud"],
      ] {
        let output = try Command([try HubProgram.path()] + arguments, environment: ["SHEAF_HUB": program.hubFolder])
          .run()
        #expect(output.status == 64, "\(arguments)")
      }
      #expect(try program.run("init", "--address", "a b").status == 1)
      #expect(!FileManager.default.fileExists(atPath: program.hubFolder))
      // A store that is not there leaves nothing in the way of another try.
      let away = "postgresql:///hub?host=\(folder.path)/nowhere"
      let failed = try program.run("init", "--address", "hub.example", "--store", away)
      #expect(failed.status == 1 && failed.errorText.contains("the store is away"), "\(failed)")
      #expect(!FileManager.default.fileExists(atPath: program.hubFolder))
      // Plain HTTP would tell everyone everything.
      try program.succeed("init", "--plain", "--address", "hub.example")
      let open = try program.run("serve", "--listen", "0.0.0.0:0")
      #expect(open.status == 1 && open.errorText.contains("this machine alone"))
    }
  }

  /// Behind a proxy it listens on a socket.
  @Test func aSocketIsServed() throws {
    try withTemporaryFolder { folder in
      let program = try HubProgram(in: folder)
      try program.succeed("init", "--plain", "--address", "hub.example")
      let socket = "\(folder.path)/socket"
      #expect(try program.serve("--listen", "unix:\(socket)") == "http://hub.example")
      let answer = try Command(["curl", "-sS", "--unix-socket", socket, "http://hub.example/v1"]).succeed()
      #expect(answer.text.contains("\"sheaf-hub\""))
      // The proxy is another user's.
      var status = stat()
      #expect(stat(socket, &status) == 0 && status.st_mode & 0o777 == 0o666)
      // Machines dial the proxy.
      let link = try program.succeed("account", "add", "alice@hub.example")
      #expect(link.hasPrefix("https://hub.example/enrol/") && !link.contains("#"), "\(link)")
      try program.stop()
      let text = "\(folder.path)/text"
      #expect(FileManager.default.createFile(atPath: text, contents: Data("text".utf8)))
      let refused = try program.run("serve", "--listen", "unix:\(text)")
      #expect(
        refused.status == 1 && refused.errorText.contains("\(text): is there already, and is no socket"), "\(refused)")
      // An empty hub would know nobody.
      for (command, left) in [("mv", "missing"), ("truncate -s 0", "empty")] {
        let file = "\(program.hubFolder)/hub.sqlite"
        try Command.shell("\(command) '\(file)' \(command == "mv" ? "'\(file).away'" : "")").succeed()
        for command in ["check", "serve", "status"] {
          let refused = try program.run(command)
          #expect(refused.status == 1 && refused.errorText.contains("is missing or empty"), "\(left): \(refused)")
        }
        if command == "mv" { try Command.shell("mv '\(file).away' '\(file)'").succeed() }
      }
    }
  }

  /// Whatever the log's level, it has nothing that opens anything, and nothing that says what people have.
  @Test func theLogHasNoSecrets() async throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    try program.succeed("init", "--address", "127.0.0.1:0")
    let code = try program.account("alice@hub.example")
    let base = try program.serve("--log-level", "debug")
    let client = try HubClient(base: base, roots: try program.certificate)
    let laptop = TestDevice()
    let device = try await client.enroll(laptop, code: code)
    let token = try await client.begin(laptop, device)
    let name = "unmistakable-name"
    for path in [
      "/v1/account", "/v1/devices", "/v1/\(name)", "/v1/devices/\(device.device)?\(name)", "/enrol/\(code)",
    ] {
      _ = try await client.send("GET", path, token: token)
      _ = try await client.send("GET", path, token: name)
    }
    let document = Send.document(name, "unmistakable contents", serial: 1)
    let sent = SendRequest(groups: [[document]])
    let answer: SendAnswer = try await client.send("POST", "/v1/sends", json: sent, token: token).decode()
    let version = try #require(answer.verdicts.first?.version)
    // What succeeds and what fails, with secrets wherever a request can have them.
    for path in ["/v1/account?\(name)", "/v1/items/\(document.item)/versions/\(version)/content"] {
      #expect(try await client.send("GET", path, token: token).status == 200)
    }
    _ = try await client.send("PUT", "/v1/chunks/\(name)", body: Data("unmistakable contents".utf8), token: token)
    _ = try await client.send("POST", "/v1/sessions", body: Data("{\"zone\":\"\(name)\"}".utf8))
    _ = try await client.send("POST", "/v1/enrollments", json: try laptop.enrollment(code, at: name, name: name))
    await client.close()
    try program.stop()
    let log = program.log
    #expect(log.contains("request") && log.contains("ending"))
    let secrets = [
      code, token, name, device.device, device.zone, "alice", "laptop", "unmistakable", document.item.description,
      version.description, laptop.key.base64EncodedString(),
      try String(contentsOfFile: "\(program.hubFolder)/key.pem", encoding: .utf8),
    ]
    for secret in secrets { #expect(!log.contains(secret), "\(secret)") }
  }

  /// The quickstart makes a hub and an account, prints a link that works, and serves; a second time it serves again.
  @Test func theQuickstartServes() async throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    var handles: [String] = []
    for _ in 0..<2 {
      let environment = [
        "SHEAF_HUB": "\(folder.path)/data/hub", "SHEAF_HUB_BIN": try HubProgram.path(), "SHEAF_HUB_NAME": "127.0.0.1",
        "SHEAF_HUB_PORT": "0",
      ]
      let script = Self.repository.appendingPathComponent("mount-scripts/hub-quickstart").path
      let command = Command(
        ["/bin/sh", "-c", "exec \"$0\" alice@hub.example >\"$1\" 2>&1", script, "\(folder.path)/out"],
        environment: environment)
      let running = try BackgroundCommand(command)
      var text = ""
      try eventually("the quickstart serves", within: .seconds(120)) {
        text = (try? String(contentsOfFile: "\(folder.path)/out", encoding: .utf8)) ?? ""
        return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().last?.hasPrefix("Serving ")
          == true
      }
      let lines = text.split(separator: "\n")
      let link = try #require(lines.lazy.compactMap { EnrollmentLink(String($0)) }.first, "\(text)")
      let base = try #require(lines.last).dropFirst("Serving ".count)
      let roots = try String(contentsOfFile: "\(folder.path)/data/hub/certificate.pem", encoding: .utf8)
      let client = try HubClient(base: String(base), roots: roots)
      handles.append(try await client.enroll(TestDevice(), code: link.code).handle)
      await client.close()
      Glibc.kill(running.process, SIGTERM)
      try running.wait(limit: .seconds(120))
    }
    #expect(handles == ["alice@hub.example", "alice@hub.example"])
  }

  private static let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// As systemd judges it: 0 is the safest, 10 is what a unit without any limits has.
  @Test func theUnitHasFewRights() throws {
    let unit = Self.repository.appendingPathComponent("mount-scripts/sheaf-hub.service")
    let text = try String(contentsOf: unit, encoding: .utf8)
    for line in ["User=sheaf-hub", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="] {
      #expect(text.contains("\n\(line)\n"), "\(line)")
    }
    let output = try Command(["systemd-analyze", "security", "--offline=true", "--no-pager", unit.path]).run()
    let level = output.text.firstMatch(of: /level for sheaf-hub\.service: ([0-9.]+)/).flatMap { Double($0.1) }
    #expect(try #require(level, "\(output)") <= 2.0)
  }
}
