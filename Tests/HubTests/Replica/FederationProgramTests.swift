import Foundation
import Glibc
import MountKit
import Testing

/// Names and an authority of one's own.
private enum OwnNames {
  /// The system's roots.
  static let authorities = "/etc/ssl/certs/ca-certificates.crt"
  static let arePossible = NetworkNamespace.isPossible && access(authorities, R_OK) == 0
}

/// Two hubs that know nothing of each other, as programs, with names, TLS and addresses as on the Internet, and people
/// with machines at each. All of it is in a network of its own, in which `one.example` and `two.example` are names, and a
/// certificate authority of the test's own is one of the system's.
@Suite(.serialized, .enabled(if: OwnNames.arePossible, "names of one's own need root and mounts"))
struct FederationProgramTests {
  private static let (alice, bob) = ("alice@one.example", "bob@two.example")

  private final class World {
    let folder: TemporaryFolder
    private let holder: BackgroundCommand
    private let prefix: [String]
    private var hubs: [BackgroundCommand] = []
    private var mounted: [Machine] = []

    init() throws {
      folder = try TemporaryFolder()
      // It ends when its standard input does, also if this process is killed.
      holder = try BackgroundCommand(Command(["unshare", "--net", "--mount", "--propagation", "slave", "cat"]))
      let process = holder.process
      prefix = ["nsenter", "--net=/proc/\(process)/ns/net", "--mount=/proc/\(process)/ns/mnt"]
      let own = try Command(["readlink", "/proc/self/ns/net"]).succeed().text
      try eventually("a network of its own") {
        let theirs = try Command(["readlink", "/proc/\(process)/ns/net"]).run().text
        return !theirs.isEmpty && theirs != own
      }
      try shell(
        """
        cd '\(folder.path)'
        ip link set lo up
        ip address add 9.9.9.1/32 dev lo
        ip address add 9.9.9.2/32 dev lo
        printf '127.0.0.1 localhost\\n9.9.9.1 one.example\\n9.9.9.2 two.example\\n' > hosts
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 30 \
          -subj /CN=authority -addext basicConstraints=critical,CA:TRUE 2> openssl.log
        for name in one two; do
          openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $name.key -out $name.csr \
            -subj /CN=$name.example 2>> openssl.log
          printf 'subjectAltName=DNS:%s.example' $name > $name.ext
          openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile $name.ext \
            -out $name.pem 2>> openssl.log
        done
        mount --bind hosts /etc/hosts
        mount --bind ca.pem \(OwnNames.authorities)
        """)
    }

    /// Ends everything.
    func end() {
      for machine in mounted { _ = try? machine.sheaf("unmount", machine.mountpoint) }
      for hub in hubs { hub.end() }
      holder.end()
      try? folder.remove()
    }

    @discardableResult
    func shell(_ script: String, _ environment: [String: String?] = [:]) throws -> String {
      try Command(prefix + ["/bin/bash", "-euc", script], environment: environment, limit: .seconds(180)).succeed()
        .text
    }

    func command(_ arguments: [String], _ environment: [String: String?]) -> Command {
      Command(prefix + arguments, environment: environment, limit: .seconds(180))
    }

    func hub(_ name: String, _ arguments: String...) throws -> String {
      try command([try HubProgram.path()] + arguments, ["SHEAF_HUB": "\(folder.path)/\(name)-hub"]).succeed().text
    }

    /// Makes a hub that speaks for the domain of its name, and serves it.
    func serve(_ name: String, at address: String) throws {
      _ = try hub(
        name, "init", "--address", "\(name).example", "--domain", "\(name).example", "--certificate",
        "\(folder.path)/\(name).pem", "--key", "\(folder.path)/\(name).key")
      try start(name, at: address)
    }

    /// Serves a hub that is there.
    func start(_ name: String, at address: String) throws {
      let out = "\(folder.path)/\(name).out"
      hubs.append(
        try BackgroundCommand(
          command(
            [
              "/bin/sh", "-c", "exec \"$0\" serve --listen \(address):443 > '\(out)' 2> '\(out).log'",
              try HubProgram.path(),
            ], ["SHEAF_HUB": "\(folder.path)/\(name)-hub"])))
      try eventually("\(name).example serves", within: .seconds(60)) {
        (try? String(contentsOfFile: out, encoding: .utf8))?.hasPrefix("Serving https://\(name).example") ?? false
      }
    }

    /// Ends the hub that was started first.
    func endFirst() { hubs.removeFirst().end() }

    func log(of hub: String) -> String {
      (try? String(contentsOfFile: "\(folder.path)/\(hub).out.log", encoding: .utf8)) ?? ""
    }

    /// A machine that a link makes a device of somebody.
    func machine(_ name: String, of handle: String, link: String) throws -> Machine {
      let machine = try Machine(name, handle, self)
      _ = try machine.succeed("connect", link.trimmingCharacters(in: .whitespacesAndNewlines), "--name", name)
      mounted.append(machine)
      _ = try machine.succeed("mount", machine.mountpoint, "--as", handle)
      return machine
    }
  }

  private final class Machine {
    let handle: String
    let mountpoint: String
    private let library: String
    private unowned let world: World
    private let environment: [String: String?]

    init(_ name: String, _ handle: String, _ world: World) throws {
      (self.handle, self.world) = (handle, world)
      let home = try world.folder.folder(name)
      mountpoint = "\(home)/mount"
      library = "\(home)/library.sqlite"
      environment = ["HOME": home, "XDG_STATE_HOME": nil]
      mkdir(mountpoint, 0o700)
    }

    func sheaf(_ arguments: String...) throws -> Command.Output {
      try world.command([try SheafProgram.path()] + arguments + ["--library", library], environment).run()
    }

    @discardableResult
    func succeed(_ arguments: String...) throws -> String {
      try world.command([try SheafProgram.path()] + arguments + ["--library", library], environment).succeed().text
        .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    func wait() throws { _ = try succeed("sync", "--wait", "120") }

    /// Runs a script in the mount.
    @discardableResult
    func shell(_ script: String) throws -> String { try world.shell("cd '\(mountpoint)' && \(script)") }

    /// The text of a file in the mount; nil for none.
    func text(_ path: String) -> String? {
      // What a command prints is given without the end of its last line.
      (try? world.shell("cat '\(mountpoint)/\(path)' && printf .")).map { String($0.dropLast()) }
    }

    /// Waits until a file has a text, or is gone.
    func await(_ path: String, _ text: String?, within limit: Duration = .seconds(60)) throws {
      try eventually("\(path) of \(handle) says \(text ?? "nothing")", within: limit) { self.text(path) == text }
    }
  }

  @Test(.timeLimit(.minutes(5))) func aShareGoesFromOneHubToAnother() throws {
    let world = try World()
    defer { world.end() }
    try world.serve("one", at: "9.9.9.1")
    try world.serve("two", at: "9.9.9.2")
    let alice = try world.machine(
      "laptop", of: Self.alice, link: try world.hub("one", "account", "add", Self.alice, "--name", "Alice"))
    let bob = try world.machine("desktop", of: Self.bob, link: try world.hub("two", "account", "add", Self.bob))
    try alice.shell("mkdir Documents/team && echo one > Documents/team/a.md && echo secret > Documents/own.md")
    try alice.wait()
    try bob.wait()
    _ = try alice.succeed("share", "Documents/team", "--with", Self.bob, "--can", "edit")

    // The invitation reaches him at his own hub, and he accepts at hers.
    try bob.wait()
    let invited = try bob.succeed("shares")
    #expect(invited.contains("team") && invited.contains(Self.alice), "\(invited)")
    let url = try alice.shell("getfattr --only-values -n user.sheaf.share.url Documents/team")
    #expect(url.hasPrefix("https://one.example/s/"))
    let offer = try bob.succeed("inspect", url)
    #expect(offer.contains("team") && offer.contains("edit"), "\(offer)")
    let shared = "Shared/\(Self.alice)/team"
    #expect(try bob.succeed("accept", url) == shared)
    try bob.await("\(shared)/a.md", "one\n")

    // Both edit, and each sees who did.
    try bob.shell("echo two >> '\(shared)/a.md'")
    try alice.await("Documents/team/a.md", "one\ntwo\n")
    try alice.shell("echo three >> Documents/team/a.md && echo Rome > Documents/team/rome.md")
    try bob.await("\(shared)/a.md", "one\ntwo\nthree\n")
    try bob.await("\(shared)/rome.md", "Rome\n")
    let versions = try alice.succeed("versions", "Documents/team/a.md")
    #expect(versions.contains(Self.alice) && versions.contains(Self.bob), "\(versions)")
    let people = try bob.shell("getfattr --only-values -n user.sheaf.share.participants '\(shared)'")
    #expect(people.contains("\(Self.alice)\towner") && people.contains(Self.bob), "\(people)")
    #expect(try bob.shell("find .").contains("own.md") == false)

    // A new device of bob's gets in without alice; the other one stays in.
    let phone = try world.machine("phone", of: Self.bob, link: try bob.succeed("device", "add"))
    try phone.await("\(shared)/a.md", "one\ntwo\nthree\n")
    try phone.shell("echo four >> '\(shared)/a.md'")
    for (machine, path) in [(alice, "Documents/team/a.md"), (bob, "\(shared)/a.md")] {
      try machine.await(path, "one\ntwo\nthree\nfour\n")
    }
    // A removed one is out: it hears nothing any more.
    let devices = try bob.succeed("device", "list")
    let line = try #require(devices.split(separator: "\n").first { $0.contains("phone") }, "\(devices)")
    _ = try bob.succeed("device", "remove", try Self.id(in: String(line)))
    try alice.shell("echo five >> Documents/team/a.md")
    try bob.await("\(shared)/a.md", "one\ntwo\nthree\nfour\nfive\n")
    #expect(phone.text("\(shared)/a.md")?.contains("five") != true)
    #expect(try phone.sheaf("sync", "--wait", "3").status != 0)

    // While her hub is away, his machine says so, though his own is there.
    world.endFirst()
    try eventually("bob is told that alice's hub is away", within: .seconds(30)) {
      let status = try bob.succeed("status")
      return status.contains("connected with https://two.example") && status.contains("Problem  https://one.example")
    }
    try bob.shell("echo six >> '\(shared)/a.md'")
    try world.start("one", at: "9.9.9.1")
    try alice.await("Documents/team/a.md", "one\ntwo\nthree\nfour\nfive\nsix\n")
    try eventually("nothing is wrong any more", within: .seconds(30)) { try !bob.succeed("status").contains("Problem") }

    // Rights change, and end, at alice's word.
    _ = try alice.succeed("participant", "set", "Documents/team", Self.bob, "--can", "view")
    try eventually("bob may only read", within: .seconds(30)) {
      (try? bob.shell("echo seven >> '\(shared)/a.md'")) == nil
    }
    let began = ContinuousClock.now
    _ = try alice.succeed("participant", "remove", "Documents/team", Self.bob)
    try bob.await("\(shared)/a.md", nil)
    print("revoked within \(ContinuousClock.now - began)")
    #expect(ContinuousClock.now - began < .seconds(10))

    // He leaves what he was let into again.
    _ = try alice.succeed("share", "Documents/own.md", "--with", Self.bob)
    let second = try alice.shell("getfattr --only-values -n user.sheaf.share.url Documents/own.md")
    let path = try bob.succeed("accept", second)
    try bob.await(path, "secret\n")
    _ = try bob.succeed("leave", path)
    try bob.await(path, nil)
    try eventually("alice hears that bob left", within: .seconds(30)) {
      try !alice.succeed("participants", "Documents/own.md").contains(Self.bob)
    }
    #expect(
      world.log(of: "one").isEmpty && world.log(of: "two").isEmpty, "\(world.log(of: "one"))\(world.log(of: "two"))")
    for name in ["one", "two"] { #expect(try world.hub(name, "check") == "Nothing is wrong.") }
  }

  private static func id(in line: String) throws -> String {
    String(try #require(line.firstMatch(of: /[0-9a-f]{8}-[0-9a-f-]{27}/), "\(line)").0)
  }
}
