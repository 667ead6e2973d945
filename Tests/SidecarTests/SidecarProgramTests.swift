import HubKit
import ConformanceKit
import Foundation
import Glibc
import MountKit
import SheafModel
import Testing

@testable import SheafSidecar

/// The command as a person uses it: its flags, files and subcommands, and how it ends.
@Suite(.serialized) struct SidecarProgramTests {
  private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
  private static let other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"

  private func names(_ lines: [String]) throws -> [String] {
    try lines.map { try JSONDecoder().decode(Event.self, from: Data($0.utf8)).data.item.name }
  }

  private func position(_ served: ServedLibrary, _ program: SidecarProgram, _ sink: String) throws -> Int64? {
    guard access(program.state, F_OK) == 0 else { return nil }
    let store = try SidecarState(path: program.state)
    defer { try? store.close() }
    return try store.record(SinkKey(library: served.library.id, name: sink)).position
  }

  // MARK: - What it is told

  @Test func itSaysWhatItCanDo() async throws {
    try await withLibrary { _, program in
      let help = try program.run("--help")
      #expect(help.status == 0)
      for word in [
        "--webhook", "--secret", "--stdout", "--desktop", "--exec", "--types", "--as", "--from-now", "--config",
        "--state", "--library", "--account-webhooks", "dead-letters", "resume",
      ] { #expect(help.text.contains(word), "\(word)") }
      for command in ["dead-letters", "resume"] {
        let help = try program.run(command, "--help")
        #expect(help.status == 0 && help.text.contains("--state"), "\(help)")
      }
      #expect(try program.run("--version").text == "0.1.0")
    }
  }

  @Test func mistakesAreRefusedBeforeAnythingIsDone() async throws {
    try await withLibrary { _, program in
      #expect(try program.run("--nonsense").status == 64)
      #expect(try program.run("dead-letters", "--nonsense").status == 64)
      let file = try program.configuration("# sinks\n[[sink]]\nname = \"x\"\nstdout = true\nbatches = 2\n")
      let refusals: [([String], String)] = [
        ([], "has nowhere to deliver to; name a sink: --webhook URL"),
        (["--config", file], "\(file) line 5: sink x: batches: means nothing here; known are"),
        (["--config", "\(file).none"], "\(file).none: there is no such file"),
        (["--config", program.folder.path], "\(program.folder.path): cannot be read"),
        (["--stdout", "--types", "sheaf.chang.*"], "sheaf.chang.* matches no type of event; there are sheaf."),
        (["--webhook", "ftp://x/"], "ftp://x/ is no URL of a webhook"),
        (["--webhook", "http://x/", "--secret", "short"], "webhook secret: is not whsec_"),
        (["--stdout", "--as", "nobody"], "is not a handle"),
        (["--stdout", "--stdout", "--exec", " "], "is empty"),
      ]
      for (arguments, message) in refusals {
        let output = try Command([try SidecarProgram.path(), "--state", program.state] + arguments).run()
        #expect(output.status == 1 && output.errorText.contains(message), "\(arguments): \(output)")
        #expect(output.errorText.split(separator: "\n").count == 1 && output.text.isEmpty, "\(output)")
      }
      #expect(access(program.state, F_OK) != 0)
    }
  }

  @Test func flagsAndVariablesSayWhatToDeliver() async throws {
    try await withLibrary { served, program in
      let receiver = try Receiver(in: served.folder)
      let bob = try AccountHandle("bob@example.com")
      _ = try served.library.addAccount(bob, name: "Bob")
      try served.mkdir("before")
      let path = served.library.location.path
      let home = try served.folder.folder("home")
      // Where nothing is named: the library of SHEAF_LIBRARY, the state below XDG_STATE_HOME.
      let sidecar = try BackgroundCommand(
        .shell(
          """
          exec '\(try SidecarProgram.path())' --webhook \(receiver.url) --stdout --types 'sheaf.persistence.*' \
            --as alice@example.com --from-now > \(served.folder.path)/lines 2> \(served.folder.path)/sidecar.log
          """,
          environment: [
            "SHEAF_LIBRARY": path, "XDG_STATE_HOME": home, "SHEAF_WEBHOOK_SECRET": "\(Self.secret) \(Self.other)",
          ]))
      defer { sidecar.end() }
      try eventually("both sinks", within: .seconds(30)) {
        guard access("\(home)/sheaf/sidecar.sqlite", F_OK) == 0 else { return false }
        let store = try SidecarState(path: "\(home)/sheaf/sidecar.sqlite")
        defer { try? store.close() }
        return try ["stdout", SinkConfiguration(webhook: receiver.url, secrets: []).name].allSatisfy {
          try store.record(SinkKey(library: served.library.id, name: $0)).position != nil
        }
      }
      let root = try served.library.documents(of: bob)
      _ = try served.library.make(.folder, root, Array("of bob".utf8), mode: 0o755, .library)
      _ = try served.library.comment(ItemPath(account: served.account, "Documents/before"), text: "Hm.")
      try served.mkdir("after")
      let request = try receiver.requests(1)[0]
      #expect(try request.event().data.item.name == "after" && request.event().type == .created)
      let signatures = try [Self.secret, Self.other].map {
        try WebhookSecret($0).signature(
          id: request.id, timestamp: try #require(Int64(request.timestamp)), body: Data(request.body.utf8))
      }
      #expect(request.signature == signatures.joined(separator: " "))
      try eventually("the line") { program.lines("lines").count == 1 }
      #expect(try names(program.lines("lines")) == ["after"])
      // On a command line a secret is seen by everyone; it is not repeated in the log.
      #expect(!program.log.contains("whsec_"))
      try program.stop(sidecar)
      receiver.kill()
    }
  }

  @Test func commandsThatFailAreRunAgainAndGetOneEventEach() async throws {
    try await withLibrary { served, program in
      let place = served.folder.path
      for number in 1...5 { try served.mkdir("\(number)") }
      let file = try program.configuration(
        """
        [[sink]]
        exec = "cat >> \(place)/events; echo out; test -e \(place)/go || { touch \(place)/go; exit 3; }"
        retry-base = 0.01
        """)
      let sidecar = try program.start("--config \(file) > \(place)/out")
      defer { sidecar.end() }
      try eventually("all five", within: .seconds(30)) { try position(served, program, "exec") == 5 }
      #expect(try names(program.lines("events")) == ["1", "1", "2", "3", "4", "5"])
      #expect(program.log.contains("the command ended with") && program.log.contains("to be tried again"))
      // A command's output is not that of another sink.
      #expect(program.lines("out").isEmpty)
      try program.stop(sidecar)
    }
  }

  @Test func whoReadsTheOutputMayGo() async throws {
    try await withLibrary { served, program in
      // More than a pipe holds: who writes to it all at once is not told that its reader has gone.
      for number in 1...500 { try served.mkdir("\(number)") }
      // head(1) goes after two lines; the sidecar, whose only reader it was, ends.
      let output = try Command.shell(
        """
        '\(try SidecarProgram.path())' --library '\(program.library)' --state '\(program.state)' --stdout \
          2> '\(served.folder.path)/sidecar.log' | head -n 2
        """, limit: .seconds(30)
      ).run()
      #expect(output.status == 0, "\(output)")
      #expect(try names(output.text.split(separator: "\n").map(String.init)) == ["1", "2"])
    }
  }

  // MARK: - What was given up

  @Test func deadLettersAreShownAndSentAgain() async throws {
    try await withLibrary { served, program in
      // A typing error is no empty list, and makes no file.
      for command in ["dead-letters", "resume"] {
        let missing = try program.run(command, "--state", program.state)
        #expect(missing.status == 1 && missing.errorText.contains("there is no such file"), "\(missing)")
        #expect(access(program.state, F_OK) != 0)
      }
      let receiver = try Receiver(in: served.folder, ["500", "500", "500"])
      let file = try program.configuration("[[sink]]\nname = \"team\"\nwebhook = \"\(receiver.url)\"\nretry-for = 0\n")
      for name in ["one", "two"] { try served.mkdir(name) }
      let sidecar = try program.start("--config \(file)")
      defer { sidecar.end() }
      try eventually("both are given up", within: .seconds(30)) { try position(served, program, "team") == 2 }
      let list = try program.run("dead-letters", "--state", program.state)
      let lines = list.text.split(separator: "\n")
      #expect(lines.count == 2 && lines[0].contains("team  event 1  500"), "\(list)")
      // The configuration says where, too, on either side of the command.
      let configuration = "\(program.folder.path)/where.toml"
      try "state = '\(program.state)'\n".write(toFile: configuration, atomically: true, encoding: .utf8)
      #expect(try program.run("dead-letters", "--config", configuration).text == list.text)
      #expect(try program.run("--config", configuration, "dead-letters").text == list.text)
      let json = try program.run("dead-letters", "--state", program.state, "--json")
      let letters = try JSONDecoder().decode([DeadLetter].self, from: Data(json.output))
      #expect(letters.map(\.sequence) == [1, 2] && letters.allSatisfy { $0.sink == "team" })
      #expect(try names(letters.map(\.event)) == ["one", "two"])
      // The first stays dead, the second arrives.
      let retry = try program.run("dead-letters", "--retry", "--state", program.state)
      #expect(retry.status == 0 && retry.text == "2 to be sent once more now.", "\(retry)")
      try eventually("one of them is left", within: .seconds(30)) {
        try program.run("dead-letters", "--state", program.state).text.contains("event 1  500")
          && receiver.requests().count == 4
      }
      try program.stop(sidecar)
      let later = try program.run("dead-letters", "--retry", "--state", program.state)
      #expect(later.text == "1 to be sent once more when the sidecar starts.", "\(later)")
      let again = try program.start("--config \(file)")
      defer { again.end() }
      #expect(try receiver.requests(5).map { try $0.event().data.item.name } == ["one", "two", "one", "two", "one"])
      try eventually("none is left", within: .seconds(30)) {
        try program.run("dead-letters", "--state", program.state).text == "No dead letters."
      }
      try program.stop(again)
      receiver.kill()
    }
  }

  @Test func aSinkThatIsDisabledIsResumed() async throws {
    try await withLibrary { served, program in
      let receiver = try Receiver(in: served.folder, ["410"])
      try served.mkdir("one")
      let sidecar = try program.start("--webhook \(receiver.url)")
      defer { sidecar.end() }
      try eventually("it is disabled", within: .seconds(30)) { program.log.contains("disabled until") }
      #expect(
        try program.run("resume", "--state", program.state).text.hasPrefix(
          "Resumed: webhook http://127.0.0.1:\(receiver.port) ("))
      #expect(try receiver.requests(2).count == 2)
      #expect(try program.run("resume", "--state", program.state).text == "No sink is disabled.")
      try program.stop(sidecar)
      receiver.kill()
    }
  }

  // MARK: - Its end

  @Test func whatIsBeingDeliveredIsFinishedFirst() async throws {
    try await withLibrary { served, program in
      let place = served.folder.path
      let receiver = try Receiver(in: served.folder, ["late:1"])
      try served.mkdir("one")
      let file = try program.configuration(
        """
        [[sink]]
        webhook = "\(receiver.url)"
        [[sink]]
        exec = "cat > \(place)/begun; sleep 1; echo >> \(place)/done"
        """)
      for round in 1...2 {
        let sidecar = try program.start("--config \(file)")
        defer { sidecar.end() }
        try eventually("it runs", within: .seconds(30)) {
          program.log.components(separatedBy: "] delivering").count == round + 1
        }
        _ = try receiver.requests(1)
        try eventually("the command runs", within: .seconds(30)) { access("\(place)/begun", F_OK) == 0 }
        try program.stop(sidecar)
      }
      // It was told to stop while both were under way, and began neither anew.
      #expect(try receiver.requests().count == 1)
      #expect(try String(contentsOfFile: "\(place)/done", encoding: .utf8) == "\n")
      receiver.kill()
    }
  }

  @Test func aSecondOneIsKeptFromTheSameState() async throws {
    try await withLibrary { served, program in
      let first = try program.start("--stdout > /dev/null")
      defer { first.end() }
      try eventually("the first one runs", within: .seconds(30)) { program.log.contains("] delivering") }
      let second = try program.run("--library", program.library, "--state", program.state, "--stdout")
      #expect(second.status == 1 && second.errorText.contains("\(program.state): is used by process "), "\(second)")
      #expect(second.errorText.contains("end it, or name another file: --state"))
      first.end()
      // The lock goes with the process, however that ends.
      let third = try program.start("--stdout > /dev/null")
      defer { third.end() }
      try eventually("the third one runs", within: .seconds(30)) {
        program.log.components(separatedBy: "] delivering").count == 3
      }
      try program.stop(third)
    }
  }

  @Test func itSaysWhatItWaitsFor() throws {
    try withTemporaryFolder { folder in
      let program = SidecarProgram(folder: folder, library: "\(folder.path)/library.sqlite")
      let added = try SheafProgram.run(["account", "add", "alice@example.com", "--library", program.library])
      #expect(added.status == 0, "\(added)")
      let sidecar = try program.start("--stdout")
      defer { sidecar.end() }
      try eventually("what it waits for", within: .seconds(30)) {
        program.log.contains("no process has it open") && program.log.contains("waiting for the library")
      }
      try program.stop(sidecar)
    }
  }

  @Test func statusTellsHowDeliveryGoes() async throws {
    try await withLibrary { served, program in
      let receiver = try Receiver(in: served.folder, Array(repeating: "503", count: 100))
      let working = try Receiver(in: served.folder, name: "working")
      let file = try program.configuration(
        """
        [[sink]]
        name = "team"
        webhook = "\(receiver.url)"
        retry-base = 3600
        [[sink]]
        name = "other"
        webhook = "\(working.url)"
        [[sink]]
        name = "few"
        exec = "true"
        types = ["sheaf.mention"]
        """)
      for number in 1...3 { try served.mkdir("\(number)") }
      func status(_ more: String...) throws -> Command.Output {
        try SheafProgram.run(["status", "--library", program.library] + more)
      }
      #expect(try !status().text.contains("Sinks"))
      let sidecar = try program.start("--config \(file)")
      defer { sidecar.end() }
      try eventually("both are told of", within: .seconds(30)) {
        let text = try status().text
        // What a sink does not want it is done with.
        return text.contains("team: 0 delivered, 3 behind; failing: 503") && text.contains("other: 3 delivered\n")
          && text.contains("next attempt") && text.contains("few: 0 delivered\n")
      }
      let text = try status().text
      #expect(text.contains("3, 3 undelivered"), "\(text)")
      struct Report: Decodable {
        let undelivered: Int
        let sinks: [SinkStatus]
      }
      let report = try JSONDecoder().decode(Report.self, from: Data(status("--json").output))
      #expect(report.undelivered == 3 && report.sinks.map(\.name) == ["few", "other", "team"])
      #expect(report.sinks[1].failure == nil && report.sinks[2].failed == 1 && report.sinks[0].position == 3)
      // Who ends is told of no more.
      try program.stop(sidecar)
      #expect(try !status().text.contains("Sinks"))
      receiver.kill()
      working.kill()
    }
  }

  // MARK: - Its state

  @Test func sinksComeAndGoAndKeepTheirPlaces() async throws {
    try await withLibrary { served, program in
      func deliver(_ sinks: String..., upTo last: Int64) throws {
        let text = sinks.map {
          "[[sink]]\nname = \"\($0)\"\nexec = \"cat >> \(served.folder.path)/to-\($0)\"\n"
        }.joined()
        let sidecar = try program.start("--config \(try program.configuration(text))")
        defer { sidecar.end() }
        for sink in sinks {
          try eventually("\(sink) is there", within: .seconds(30)) { try position(served, program, sink) == last }
        }
        try program.stop(sidecar)
      }
      try served.mkdir("1")
      try deliver("a", upTo: 1)
      try served.mkdir("2")
      try deliver("a", "b", upTo: 2)
      try served.mkdir("3")
      try deliver("b", upTo: 3)
      try served.mkdir("4")
      try deliver("a", "c", upTo: 4)
      // What was away goes on where it was; what is new, or has a new name, begins with the oldest event.
      #expect(try names(program.lines("to-a")) == ["1", "2", "3", "4"])
      #expect(try names(program.lines("to-b")) == ["1", "2", "3"])
      #expect(try names(program.lines("to-c")) == ["1", "2", "3", "4"])
    }
  }

  @Test func aStateThatCannotBeReadIsNamed() async throws {
    try await withLibrary { _, program in
      _ = try program.folder.folder("state")
      try String(repeating: "no database", count: 1000).write(
        toFile: program.state, atomically: false, encoding: .utf8)
      for words in [["--library", program.library, "--stdout"], ["dead-letters"], ["resume"]] {
        let output = try Command(
          [try SidecarProgram.path()] + words + ["--state", program.state], limit: .seconds(30)
        ).run()
        #expect(
          output.status == 1 && output.errorText.contains("\(program.state): cannot be used")
            && output.errorText.contains("--state"), "\(output)")
      }
      // It is left as it was.
      #expect(try String(contentsOfFile: program.state, encoding: .utf8).hasPrefix("no database"))
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "a disk of its own needs root"))
  func aFullDiskLosesNothing() async throws {
    try await withLibrary { served, program in
      let disk = try LoopFileSystem(below: served.folder, mebibytes: 4)
      defer { disk.detach() }
      let receiver = try Receiver(in: served.folder)
      try served.mkdir("0")
      let state = "\(disk.mountpoint)/sidecar.sqlite"
      let sidecar = try BackgroundCommand(
        .shell(
          """
          exec '\(try SidecarProgram.path())' --library '\(program.library)' --state '\(state)' \
            --webhook \(receiver.url) 2> '\(served.folder.path)/sidecar.log'
          """))
      defer { sidecar.end() }
      _ = try receiver.requests(1)
      _ = try Command(["dd", "if=/dev/zero", "of=\(disk.mountpoint)/filler", "bs=4096"]).run()
      for number in 1...200 { try served.mkdir("\(number)") }
      try eventually("the disk is full", within: .seconds(60)) { program.log.contains("delivery stopped") }
      try FileManager.default.removeItem(atPath: "\(disk.mountpoint)/filler")
      try eventually("the last event", within: .seconds(90)) {
        try receiver.requests().last?.event().data.item.name == "200"
      }
      var seen: [String] = []
      for request in try receiver.requests() {
        let name = try request.event().data.item.name
        if seen.last != name { seen.append(name) }
      }
      #expect(seen == (0...200).map { "\($0)" })
      // Said once, not once a second.
      #expect(program.log.components(separatedBy: "delivery stopped").count < 10)
      kill(sidecar.process, SIGTERM)
      try sidecar.wait(limit: .seconds(30))
      receiver.kill()
    }
  }

  @Test func aClockThatIsPutBackKeepsNobodyWaiting() async throws {
    let served = try await ServedLibrary()
    let receiver = try Receiver(in: served.folder, ["500"])
    try served.mkdir("one")
    var sink = try SinkConfiguration.webhook(receiver.url)
    // Half of it is what is waited for.
    (sink.schedule.base, sink.schedule.cap) = (7200, 7200)
    try await served.delivering([sink]) {
      try eventually("the failure", within: .seconds(30)) { try served.record("webhook").failures == 1 }
    }
    try await served.delivering([sink]) {}
    #expect(try receiver.requests().count == 1)
    try await served.delivering([sink], clock: ShiftedClock(seconds: -86_400)) {
      #expect(try receiver.requests(2).count == 2)
      try eventually("it arrived", within: .seconds(30)) { try served.record("webhook").position == 1 }
    }
    receiver.kill()
    try await served.end()
  }
}

/// A clock that is wrong by so many seconds.
private struct ShiftedClock: SidecarClock {
  let seconds: Double

  var now: Timestamp { RealClock().now.adding(seconds) }

  func sleep(until time: Timestamp) async throws { try await RealClock().sleep(until: time.adding(-seconds)) }
}
