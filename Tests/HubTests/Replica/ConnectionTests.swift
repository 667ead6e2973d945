import ConformanceKit
import Foundation
import Glibc
import MountKit
import SheafWire
import Testing

/// The everyday of a connection: links that do not work, accounts that are here already, pauses, limits and progress.
@Suite(.serialized) struct ConnectionTests {
  /// A person's home on a machine, with a library that is mounted at need.
  private struct Machine {
    let mounted: MountedLibrary
    let home: String

    init(_ name: String, _ place: HubPlace) throws {
      mounted = try MountedLibrary(handle: HubPlace.handle)
      home = try place.folder.folder(name)
    }

    var environment: [String: String?] {
      ["HOME": home, "XDG_STATE_HOME": nil, "XDG_DATA_HOME": nil, "SHEAF_LIBRARY": mounted.library]
    }

    func sheaf(_ arguments: String...) throws -> Command.Output {
      try SheafProgram.run(arguments, environment: environment)
    }

    @discardableResult
    func succeed(_ arguments: String...) throws -> String {
      let output = try SheafProgram.run(arguments, environment: environment)
      guard output.status == 0 else { throw Command.Failure(description: "\(arguments): \(output)") }
      return output.text
    }

    func mount() throws { try mounted.mount(environment: environment) }

    func shell(_ script: String) throws -> String {
      try Command.shell("cd '\(mounted.documents)' && \(script)").succeed().text
    }

    /// Runs the program at a terminal of so many columns.
    ///
    /// - Parameter input: What the person types, by a script whose standard output is that.
    func atTerminal(columns: Int = 100, input: String = ":", _ arguments: String...) throws -> Command.Output {
      let words = ([try SheafProgram.path()] + arguments).map { "'\($0)'" }.joined(separator: " ")
      let terminal = "stty cols \(columns) -echo && exec \(words)"
      return try Command(
        ["/bin/bash", "-c", "{ \(input); } | script -qefc \"$0\" '\(home)/typescript'", terminal],
        environment: environment
      ).run()
    }

    func status() throws -> Status {
      let text = try succeed("status", "--json")
      struct Library: Decodable { let connections: [Status] }
      guard let first = try JSONDecoder().decode(Library.self, from: Data(text.utf8)).connections.first else {
        throw Command.Failure(description: text)
      }
      return first
    }

    struct Status: Decodable {
      let hub: String?
      let state: String
      let problem: String?
      let isPaused: Bool
      let limit: Int64?
    }
  }

  private func withMachines(_ count: Int, _ body: (HubPlace, [Machine]) throws -> Void) throws {
    let place = try HubPlace()
    _ = try place.serve()
    let machines = try (0..<count).map { try Machine("machine\($0)", place) }
    defer { for machine in machines { try? machine.mounted.tearDown() } }
    try body(place, machines)
  }

  private func link(_ place: HubPlace) throws -> String { try place.hub.succeed("account", "link", HubPlace.handle) }

  // MARK: - Connecting

  @Test func aLinkThatDoesNotWorkLeavesNothing() throws {
    try withMachines(2) { place, machines in
      let (other, machine) = (machines[0], machines[1])
      let folder = URL(fileURLWithPath: machine.mounted.library).deletingLastPathComponent().path
      func expectNothing(_ arguments: [String], _ words: String, library: String?) throws {
        var environment = machine.environment
        environment["SHEAF_LIBRARY"] = .some(library)
        let output = try SheafProgram.run(["connect"] + arguments, environment: environment)
        #expect(output.status == 1 && output.errorText.contains(words), "\(arguments): \(output)")
        for each in [folder, machine.home] {
          #expect(try FileManager.default.contentsOfDirectory(atPath: each) == [], "\(arguments)")
        }
      }
      _ = try other.succeed("connect", place.link)
      let (good, away) = (try link(place), try HubPlace())
      let wrong = good.replacing(/enrol\/.{10}/, with: "enrol/AAAAAAAAAA")
      for library in [machine.mounted.library, nil] {
        try expectNothing([place.link], "used, too old", library: library)
        try expectNothing([wrong], "used, too old", library: library)
        try expectNothing(["https://hub.example/s/TOKEN"], "no enrolment link", library: library)
        try expectNothing([away.link], "see whether the hub runs", library: library)
        try expectNothing(
          [good, "--as", "bob@hub.example"],
          "bob@hub.example: is not whom the link is for, which is \(HubPlace.handle)", library: library)
      }
      // Nor does it in a library that is there; and what was refused for its account is not spent.
      try machine.succeed("account", "add", "bob@hub.example")
      let before = try FileManager.default.subpathsOfDirectory(atPath: machine.home)
      #expect(try machine.sheaf("connect", place.link).status == 1)
      let refused = try machine.sheaf("connect", good, "--as", "bob@hub.example")
      #expect(refused.status == 1 && refused.errorText.contains(HubPlace.handle), "\(refused)")
      #expect(try FileManager.default.subpathsOfDirectory(atPath: machine.home) == before)
      #expect(try machine.succeed("account", "list").contains(HubPlace.handle) == false)
      let connected = try machine.succeed("connect", good, "--as", HubPlace.handle)
      #expect(connected.contains("has bob@hub.example already; \(HubPlace.handle) was added"), "\(connected)")
      let accounts = try machine.succeed("account", "list").split(separator: "\n")
      #expect(accounts.contains { $0.hasPrefix(HubPlace.handle) && $0.hasSuffix("  connected") }, "\(accounts)")
      #expect(accounts.contains { $0.hasPrefix("bob@hub.example") && $0.hasSuffix("  default") }, "\(accounts)")
      #expect(try machine.succeed("library").contains("those of \(HubPlace.handle) are their hub's"))
    }
  }

  @Test func aConnectedAccountStaysConnected() throws {
    try withMachines(2) { place, machines in
      let machine = machines[0]
      try machine.succeed("connect", place.link)
      let (again, elsewhere) = (try link(place), try HubPlace())
      let refused = try machine.sheaf("connect", again)
      #expect(refused.status == 1 && refused.errorText.contains("already"), "\(refused)")
      #expect(refused.errorText.contains("sheaf disconnect --as \(HubPlace.handle)"), "\(refused)")
      _ = try elsewhere.serve()
      let other = try machine.sheaf("connect", elsewhere.link)
      #expect(other.status == 1 && other.errorText.contains("another hub"), "\(other)")
      #expect(try machine.succeed("sync", "--wait", "60").contains("connected with"))
      // Neither link was spent.
      try machines[1].succeed("connect", again)
      try machine.succeed("disconnect")
      try machine.succeed("connect", elsewhere.link)
    }
  }

  /// A machine that disconnects is none of the account's any more, unless the hub does not hear of it.
  @Test func whoDisconnectsIsNoDeviceAnyMore() throws {
    try withMachines(3) { place, machines in
      let names = ["laptop", "desktop", "server"]
      for (machine, name) in zip(machines, names) {
        try machine.succeed("connect", name == "laptop" ? place.link : try link(place), "--name", name)
        try machine.succeed("sync", "--wait", "60")
      }
      let listed = {
        let rows = try machines[0].succeed("device", "list").split(separator: "\n")
        return names.filter { name in rows.contains { $0.hasPrefix("\(name) ") } }
      }
      #expect(try listed() == names)
      let told = try machines[1].succeed("disconnect")
      #expect(!told.contains("device remove"), "\(told)")
      #expect(try listed() == ["laptop", "server"])
      try place.hub.stop()
      let untold = try machines[2].succeed("disconnect")
      #expect(untold.contains("did not answer") && untold.contains("sheaf device remove"), "\(untold)")
      _ = try place.serve()
      #expect(try listed() == ["laptop", "server"])
      try machines[0].succeed("device", "remove", "server")
      #expect(try listed() == ["laptop"])
    }
  }

  /// The hub knows this machine no more, or the key is lost: connecting anew is the way on.
  @Test func whoLostTheKeyConnectsAnew() throws {
    try withMachines(1) { place, machines in
      let machine = machines[0]
      try machine.succeed("connect", place.link)
      try machine.mount()
      _ = try machine.shell("echo one > a")
      try machine.succeed("sync", "--wait", "60")
      try machine.mounted.unmount()
      try Command.shell("rm '\(machine.home)'/.local/state/sheaf/devices/*.json").succeed()
      let status = try machine.status()
      #expect(status.hub == nil && status.state == "failed" && status.problem?.contains("sheaf connect") == true)
      // The words that say what to do come last.
      let shown = try machine.succeed("status")
      #expect(shown.contains("Problem") && status.problem.map { shown.contains($0) } == true, "\(shown)")
      try machine.mount()
      #expect(try machine.status().state == "failed")
      try machine.succeed("connect", try link(place), "--as", HubPlace.handle)
      _ = try machine.shell("echo two > a")
      try machine.succeed("sync", "--wait", "60")
      #expect(try machine.mounted.check() == [])
    }
  }

  @Test func whoHasDocumentsIsNamedFirst() throws {
    try withMachines(2) { place, machines in
      let machine = machines[0]
      try machine.mount()
      _ = try machine.shell("echo one > a")
      let no = try machine.atTerminal(input: "echo n", "connect", place.link)
      #expect(no.status == 1 && no.text.contains("\(HubPlace.handle) has documents here"), "\(no)")
      #expect(try machine.sheaf("sync").errorText.contains("no account that is connected"))
      // Nobody is asked where there is nobody, and it is said.
      let script = try machine.sheaf("connect", place.link)
      #expect(script.status == 0 && script.errorText.contains("has documents here"), "\(script)")
      try machine.succeed("sync", "--wait", "60")
      _ = try machine.shell("echo two > b")
      #expect(try machine.sheaf("disconnect").errorText.contains("1 item that"))
      for arguments in [["--yes"], ["--as", HubPlace.handle]] {
        try machine.succeed("disconnect", "--discard-unsent")
        let output = try SheafProgram.run(
          ["connect", try link(place)] + arguments, environment: machine.environment)
        #expect(output.status == 0 && output.errorText == "", "\(output)")
      }
      try machine.succeed("disconnect", "--discard-unsent")
      let yes = try machine.atTerminal(input: "echo y", "connect", try link(place))
      #expect(yes.status == 0 && yes.text.contains("Connected"), "\(yes)")
    }
  }

  // MARK: - Pace

  @Test func whilePausedNothingIsSentOrFetched() throws {
    try withMachines(2) { place, machines in
      let (laptop, desktop) = (machines[0], machines[1])
      try laptop.succeed("connect", place.link)
      try laptop.mount()
      try desktop.succeed("connect", try link(place))
      try desktop.mount()
      _ = try laptop.shell("echo one > a")
      for machine in machines { try machine.succeed("sync", "--wait", "60") }
      #expect(try laptop.succeed("sync", "--pause").contains("paused"))
      _ = try laptop.shell("echo two > mine")
      _ = try desktop.shell("echo three > theirs")
      for _ in 0..<10 {
        try desktop.succeed("sync", "--wait", "60")
        try laptop.succeed("sync")
      }
      #expect(try laptop.shell("ls") == "a\nmine" && desktop.shell("ls") == "a\ntheirs")
      #expect(try laptop.succeed("status").contains("sheaf sync --resume"))
      let waiting = try laptop.sheaf("sync", "--wait", "60")
      #expect(waiting.status == 1 && waiting.errorText.contains("--resume"), "\(waiting)")
      // It is remembered.
      try laptop.mounted.unmount()
      #expect(try laptop.succeed("sync").contains("paused"))
      try laptop.mount()
      #expect(try laptop.status().isPaused)
      for _ in 0..<10 { try laptop.succeed("sync") }
      #expect(try laptop.shell("ls") == "a\nmine")
      try laptop.succeed("sync", "--resume", "--wait", "60")
      try desktop.succeed("sync", "--wait", "60")
      for machine in machines { #expect(try machine.shell("ls") == "a\nmine\ntheirs") }
      #expect(try !laptop.status().isPaused)
      // A new connection begins without it.
      try laptop.succeed("sync", "--pause")
      try laptop.succeed("disconnect")
      try laptop.succeed("connect", try link(place), "--yes")
      try laptop.succeed("sync", "--wait", "60")
    }
  }

  /// What goes on ends when it is paused, and is done from the beginning later.
  @Test func aLargeDocumentIsPausedInTheMiddle() throws {
    try withMachines(2) { place, machines in
      let (laptop, desktop) = (machines[0], machines[1])
      try laptop.succeed("connect", place.link)
      try laptop.mount()
      try desktop.succeed("connect", try link(place))
      try desktop.mount()
      try laptop.succeed("sync", "--limit", "16K")
      _ = try laptop.shell("head -c 3000000 /dev/urandom > large")
      // By this limit it takes three minutes.
      #expect(try laptop.sheaf("sync", "--wait", "3").status == 1)
      try laptop.succeed("sync", "--pause")
      try laptop.succeed("sync", "--resume", "--limit", "none")
      try laptop.succeed("sync", "--wait", "60")
      try desktop.succeed("sync", "--limit", "16K")
      try eventually("the document comes", within: .seconds(60)) { try desktop.status().state == "connected" }
      try desktop.succeed("sync", "--pause")
      try desktop.succeed("sync", "--resume", "--limit", "none", "--wait", "60")
      #expect(try laptop.shell("sha256sum large") == desktop.shell("sha256sum large"))
      for machine in machines { #expect(try machine.mounted.check() == []) }
    }
  }

  @Test func aLimitIsRememberedAndShown() throws {
    try withMachines(1) { place, machines in
      let machine = machines[0]
      try machine.succeed("connect", place.link)
      #expect(try machine.succeed("sync", "--limit", "2M").contains("2.1 MB of contents a second"))
      try machine.mount()
      #expect(try machine.status().limit == 2 << 20)
      #expect(try machine.succeed("status").contains("Limit"))
      try machine.succeed("sync", "--limit", "none")
      #expect(try machine.status().limit == nil)
      for wrong in [["--limit", "5"], ["--limit", "fast"], ["--pause", "--resume"], ["--pause", "--wait", "5"]] {
        #expect(try SheafProgram.run(["sync"] + wrong, environment: machine.environment).status == 64, "\(wrong)")
      }
    }
  }

  // MARK: - At a terminal

  @Test func aTerminalShowsTheLinksCode() throws {
    try withMachines(1) { place, machines in
      let machine = machines[0]
      try machine.succeed("connect", place.link)
      let wide = try machine.atTerminal("device", "add")
      #expect(wide.status == 0 && wide.text.contains("█") && wide.text.contains("/enrol/"), "\(wide)")
      let narrow = try machine.atTerminal(columns: 40, "device", "add")
      #expect(narrow.status == 0 && !narrow.text.contains("█") && narrow.text.contains("/enrol/"), "\(narrow)")
      let script = try machine.succeed("device", "add")
      #expect(EnrollmentLink(script) != nil, "\(script)")
      // All three links, and the administrator's view of them.
      let open = try place.hub.succeed("account", "links", HubPlace.handle)
      #expect(open.split(separator: "\n").count == 3, "\(open)")
      #expect(try machine.succeed("device", "add", "--revoke") == "Revoked 3 links that nobody had used.")
      #expect(try machine.succeed("device", "add", "--revoke").hasPrefix("Nothing changed"))
      let none = "\(HubPlace.handle) has no link that nobody has used."
      #expect(try place.hub.succeed("account", "links", HubPlace.handle) == none)
      #expect(try place.hub.succeed("account", "links", "--revoke", HubPlace.handle) == none)
    }
  }

  @Test func aTerminalShowsWhatIsLeftUntilControlC() throws {
    try withMachines(1) { place, machines in
      let machine = machines[0]
      try machine.succeed("connect", place.link)
      try machine.mount()
      try machine.succeed("sync", "--wait", "60")
      try place.hub.stop()
      _ = try machine.shell("echo one > a")
      let typescript = "\(machine.home)/typescript"
      let wait = "until grep -q 'to send' '\(typescript)' 2>/dev/null; do sleep 0.05; done; printf '\\003'"
      let output = try machine.atTerminal(input: wait, "sync", "--wait", "1000")
      #expect(output.status == 1 && output.text.contains("1 to send"), "\(output)")
      #expect(output.text.contains("\u{1B}[K") && output.text.contains("Waiting"), "\(output)")
      // A script sees nothing of it, and the mount goes on.
      #expect(try machine.sheaf("sync", "--wait", "1").errorText == "")
      #expect(try machine.shell("cat a") == "one")
      _ = try place.serve()
      try machine.succeed("sync", "--wait", "60")
    }
  }
}
