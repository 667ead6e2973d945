import HubKit
import Foundation
import Glibc
import MountKit
import SheafModel
import Testing

/// Events at the socket of a mount that root gave to a user of the machine: that of one account, for one user.
@Suite(.serialized, .enabled(if: TestUser.isRoot, "mounting for another user needs root"))
struct UserDoorTests {
  /// A library of root's with two accounts, of which Bob's is mounted for an ordinary user.
  private struct Given {
    let mounted: MountedLibrary
    let user: TestUser
    /// Bob's mount point.
    let place: String
    /// A folder of the user's own.
    let home: String

    var socket: String { UserSocket.path(library: mounted.library, uid: user.user) }

    init() throws {
      mounted = try MountedLibrary()
      user = try TestUser.ordinary()
      place = try mounted.folder.folder("bob", for: user)
      home = try mounted.folder.folder("home", for: user)
      // A user of the machine has no way to the library's file.
      chmod("\(mounted.folder.path)/library", 0o700)
      try mounted.mount()
      for name in ["Bob", "Carol"] {
        try mounted.sheafSucceeds(
          "account", "add", "\(name.lowercased())@example.com", "--name", name, "--library", mounted.library)
      }
      try mounted.sheafSucceeds(
        "mount", place, "--library", mounted.library, "--as", "bob@example.com", "--for", user.name)
      try mounted.shell(
        """
        mkdir private team
        "$SHEAF" share team --with bob@example.com --can edit >/dev/null
        url=$(getfattr --absolute-names --only-values -n user.sheaf.share.url team)
        "$SHEAF" accept "$url" --library "$LIBRARY" --as bob@example.com >/dev/null
        mkdir team/plans
        """)
    }

    /// Runs `sheaf` as the user.
    func sheaf(_ arguments: String...) throws -> Command.Output {
      try SheafProgram.run(arguments + ["--library", mounted.library], as: user)
    }

    /// Asks the user's socket; the answer's status and body. A uid in the place of the user is that of someone else.
    func ask(_ resource: String, uid: UInt32? = nil) throws -> (status: String, output: Command.Output) {
      let someone = (uid ?? user.user).description
      let output = try Command([
        "setpriv", "--reuid=\(someone)", "--clear-groups", "curl", "--silent", "--max-time", "20", "--unix-socket",
        socket, "--write-out", "%{http_code}", "http://sheaf/v1\(resource)",
      ]).run()
      return (String(output.text.suffix(3)), output)
    }

    /// Starts the user's sidecar with their own state.
    func sidecar(_ arguments: String, environment: [String: String?] = [:]) throws -> BackgroundCommand {
      let program = try SheafProgram.path() + "-sidecar"
      return try BackgroundCommand(
        .shell(
          "exec \(program) --library \(mounted.library) --state \(home)/state \(arguments) 2> \(home)/log", as: user,
          environment: environment))
    }

    func tearDown() throws {
      _ = try mounted.sheaf("unmount", place)
      try mounted.tearDown()
    }
  }

  private func given(_ body: (Given) throws -> Void) throws {
    let given = try Given()
    do {
      try body(given)
    } catch {
      try? given.tearDown()
      throw error
    }
    try given.tearDown()
  }

  private func events(_ output: Command.Output) throws -> [Event] {
    try #require(output.status == 0, "\(output)")
    return try JSONDecoder().decode([Event].self, from: Data(output.output))
  }

  @Test func commandsTellOfTheAccountAlone() throws {
    try given { given in
      let seen = try events(given.sheaf("activity", "--json"))
      #expect(seen.contains { $0.type == .memberAdded && $0.data.participant?.handle == "bob@example.com" })
      #expect(seen.contains { $0.data.item.path == "team/plans" })
      #expect(!seen.contains { $0.data.item.name == "private" })
      let refused = try given.sheaf("activity", "--as", "alice@example.com")
      #expect(refused.status == 1 && refused.errorText.contains("this mount is bob@example.com's"), "\(refused)")
      // A comment and an action by the user are Bob's; what Alice does becomes a notice of his.
      let plans = "\(given.place)/Shared/alice@example.com/team/plans"
      let comment = try SheafProgram.run(["comment", plans, "Fine, @alice@example.com."], as: given.user)
      #expect(comment.status == 0, "\(comment)")
      let stranger = try SheafProgram.run(["comment", plans, "And you, @carol@example.com?"], as: given.user)
      #expect(stranger.status == 1 && stranger.errorText.contains("carol@example.com"), "\(stranger)")
      try given.mounted.sheafSucceeds("comment", "\(given.mounted.documents)/team", "Look, @bob@example.com.")
      let notices = try given.sheaf("notices", "--clear")
      #expect(notices.text.contains("mentioned you in a comment on team: Look, @bob@example.com."), "\(notices)")
      #expect(try given.sheaf("notices").text == "Nothing new.")
      let alices = try given.mounted.sheafSucceeds("notices", "--library", given.mounted.library)
      #expect(alices.text.contains("Bob mentioned you in a comment on plans"), "\(alices)")
    }
  }

  @Test func theSocketHasNothingOfOthers() throws {
    try given { given in
      #expect(try given.ask("/events").status == "200")
      #expect(try given.ask("/webhooks").status == "200")
      for query in ["/events", "/events/stream", "/events/latest", "/notices", "/webhooks"] {
        let answer = try given.ask(query + "?as=alice@example.com")
        #expect(answer.status == "403", "\(query): \(answer.output)")
      }
      let status = try given.ask("/status")
      #expect(status.status == "200" && status.output.text.contains(given.place), "\(status)")
      for secret in ["documents", "accounts", "fileBytes", given.mounted.mountpoint] {
        #expect(!status.output.text.contains(secret), "\(status)")
      }
      for resource in [
        "/library/events", "/library/events/stream", "/library/webhooks/stream", "/metrics",
        "/accounts",
      ] {
        let answer = try given.ask(resource)
        #expect(answer.status == "403", "\(resource): \(answer.output)")
      }
      for command in ["check", "compact"] {
        let refused = try given.sheaf(command)
        #expect(refused.status == 1 && refused.errorText.contains("gives no access to the whole library"), "\(refused)")
        #expect(refused.errorText.contains("ask who owns"), "\(refused)")
      }
    }
  }

  @Test func onlyTheUserIsServed() throws {
    try given { given in
      /// What becomes of a request by someone who is neither the user nor root.
      func strangerIsTold() throws -> String {
        try Command([
          "setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c",
          """
          import socket, sys
          peer = socket.socket(socket.AF_UNIX)
          peer.settimeout(20)
          try:
              peer.connect(sys.argv[1])
          except PermissionError:
              sys.exit(print("not connected"))
          try:
              peer.sendall(b"GET /v1/events HTTP/1.1\\r\\nHost: sheaf\\r\\n\\r\\n")
              print("answered" if peer.recv(1) else "closed")
          except (BrokenPipeError, ConnectionResetError):
              print("closed")
          """, given.socket,
        ]).run().text
      }
      let former = try strangerIsTold()
      #expect(former == "not connected")
      // Where the socket's mode says nothing, its peers' credentials do.
      #expect(chmod(given.socket, 0o666) == 0)
      #expect(try strangerIsTold() == "closed")
      #expect(try given.ask("/events").status == "200")
      #expect(try given.ask("/events", uid: 0).status == "200")
    }
  }

  @Test func theUsersSidecarDelivers() throws {
    try given { given in
      let receiver = try Receiver(in: given.mounted.folder)
      let desktop = try Desktop(given.home, as: given.user)
      defer { desktop.end() }
      let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
      let sidecar = try given.sidecar(
        "--webhook \(receiver.url) --secret \(secret) --stdout --desktop --exec 'cat >> \(given.home)/run' > \(given.home)/lines",
        environment: ["DBUS_SESSION_BUS_ADDRESS": desktop.address])
      defer { sidecar.end() }
      try eventually("what Bob sees", within: .seconds(30)) {
        try receiver.requests().contains { try $0.event().data.item.path == "team/plans" }
      }
      // The desktop begins with what happens next, which is when the state says so.
      try eventually("all sinks", within: .seconds(30)) {
        // As the user and only to read: SQLite makes files beside the one it opens.
        try Command(
          [
            "/usr/bin/python3", "-c",
            """
            import sqlite3, sys
            state = sqlite3.connect("file:" + sys.argv[1] + "?mode=ro", uri=True)
            print(*state.execute("SELECT count(position) FROM sinks").fetchone())
            """, "\(given.home)/state",
          ], as: given.user
        ).run().text == "4"
      }
      try given.mounted.shell("mkdir team/later; mkdir elsewhere")
      try Command.shell("mkdir mine", as: given.user, in: "\(given.place)/Documents").succeed()
      try eventually("the action of Bob himself", within: .seconds(30)) {
        try receiver.requests().contains { try $0.event().data.item.path == "mine" }
      }
      let paths = try receiver.requests().map { try $0.event().data.item.path }
      #expect(paths.contains("team/later") && !paths.contains("private") && !paths.contains("elsewhere"), "\(paths)")
      for file in ["lines", "run"] {
        try eventually("all in \(file)", within: .seconds(30)) {
          let lines = try String(contentsOfFile: "\(given.home)/\(file)", encoding: .utf8).split(separator: "\n")
          return try lines.map { try JSONDecoder().decode(Event.self, from: Data($0.utf8)).data.item.path } == paths
        }
      }
      try eventually("the notification", within: .seconds(30)) { try desktop.shown() == 1 }
      let titles = try desktop.titles()
      #expect(titles.count == 1 && titles[0].hasSuffix(" created later"), "\(titles)")
      // How it fares is told to the user, and to nobody else.
      for arguments in [["status"], ["status", given.place]] {
        try eventually("the state of delivery", within: .seconds(30)) {
          let text = try SheafProgram.run(arguments + ["--library", given.mounted.library], as: given.user).text
          return text.contains(given.place) && text.contains("all delivered") && text.contains("stdout: ")
        }
      }
      #expect(try !given.mounted.sheafSucceeds("status", "--library", given.mounted.library).text.contains("stdout: "))
      // The mount goes and comes back; so does what happened meanwhile.
      try given.mounted.sheafSucceeds("unmount", given.place)
      try given.mounted.shell("mkdir team/meanwhile")
      try given.mounted.sheafSucceeds(
        "mount", given.place, "--library", given.mounted.library, "--as", "bob@example.com", "--for", given.user.name)
      try eventually("what happened meanwhile", within: .seconds(30)) {
        try receiver.requests().last?.event().data.item.path == "team/meanwhile"
      }
      // It comes back, and nothing happened.
      try given.mounted.sheafSucceeds("unmount", given.place)
      try given.mounted.sheafSucceeds(
        "mount", given.place, "--library", given.mounted.library, "--as", "bob@example.com", "--for", given.user.name)
      try eventually("the state of delivery, told to the new door", within: .seconds(30)) {
        try given.sheaf("status").text.contains("stdout: ")
      }
      receiver.kill()
    }
  }

  @Test func whoseWebhookItIsMustBeTheMountsAccount() throws {
    try given { given in
      let sidecar = try given.sidecar("--stdout --as alice@example.com")
      defer { sidecar.end() }
      try eventually("the refusal", within: .seconds(30)) {
        let log = (try? String(contentsOfFile: "\(given.home)/log", encoding: .utf8)) ?? ""
        return log.contains("this mount is bob@example.com's")
      }
    }
  }
}
