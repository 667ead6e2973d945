import Foundation
import Glibc
import HubKit
import MountKit
import SheafHub
import Testing

/// What the program says of what it cannot use.
@Suite struct ProgramErrorTests {
  @Test func aCertificateThatCannotBeUsedMakesNoHub() throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    let text = "\(folder.path)/text.pem"
    try Data("no certificate\n".utf8).write(to: URL(fileURLWithPath: text))
    for (certificate, said) in [
      ("\(folder.path)/nope", "\(folder.path)/nope: No such file or directory"),
      (text, "\(text): holds no certificate in the form PEM"),
    ] {
      let output = try program.run("init", "--address", "hub.example", "--certificate", certificate, "--key", text)
      #expect(output.status == 1 && output.errorText.contains(said), "\(output)")
      #expect(!output.errorText.contains("NIO") && output.text == "")
      #expect(access("\(program.hubFolder)/hub.json", F_OK) != 0)
    }
  }

  /// Others dial a hub that speaks for a domain at 443, and trust no certificate that it made itself.
  @Test func aHubThatOthersCannotDialSpeaksForNoDomain() throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    for (arguments, said) in [
      (["--address", "hub.example", "--domain", "hub.example"], "a certificate that other hubs trust"),
      (["--address", "hub.example:8443", "--domain", "hub.example", "--plain"], "has no port"),
      (["--address", "hub.example", "--domain", "Hub.example", "--plain"], "is no domain"),
      (["--address", "hub.example", "--domain", "localhost", "--plain"], "is no domain"),
      (["--address", "hub.example", "--domain", "10.0.0.1", "--plain"], "is no domain"),
    ] {
      let output = try Command(
        [try HubProgram.path(), "init"] + arguments, environment: ["SHEAF_HUB": program.hubFolder]
      ).run()
      #expect(output.status == 64 && output.errorText.contains(said), "\(output)")
    }
    try program.succeed(
      "init", "--address", "hub.example", "--domain", "one.example", "--domain", "two.example", "--plain")
    #expect(try program.succeed("status").contains("Domains:     one.example, two.example"))
  }

  /// A shell's pattern leads to names that other people chose, and those control no terminal.
  @Test func whatActsOnATerminalIsShownWhereArgumentsAreWrong() throws {
    let name = "x\u{1B}]0;pwned\u{7}\u{9B}31m\u{202E}y\nz"
    for program in [try SheafProgram.path(), try HubProgram.path(), try SheafProgram.path() + "-sidecar"] {
      for arguments in [["status", "a", "b", name], ["--\(name)"], ["status", "--\(name)"], ["--since", name]] {
        let output = try Command([program] + arguments).run()
        let said = output.errorText
        #expect(output.status == 64 && !said.isEmpty, "\(program) \(arguments): \(output)")
        #expect(!said.unicodeScalars.contains { $0.isControl && $0 != "\n" }, "\(program) \(arguments): \(said)")
        #expect(!said.contains("\nz"), "\(program) \(arguments): \(said)")
      }
    }
  }

  @Test func anAddressThatIsInUseIsNamed() throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    try program.succeed("init", "--address", "127.0.0.1:0")
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { Glibc.close(socket) }
    var address = sockaddr_in()
    (address.sin_family, address.sin_addr.s_addr) = (sa_family_t(AF_INET), UInt32(0x7F00_0001).bigEndian)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let port = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        #expect(bind(socket, address, length) == 0 && listen(socket, 1) == 0)
        #expect(getsockname(socket, address, &length) == 0)
      }
      return UInt16(bigEndian: pointer.pointee.sin_port)
    }
    let output = try program.run("serve", "--listen", "127.0.0.1:\(port)")
    #expect(output.status == 1 && output.errorText.contains("127.0.0.1:\(port): Address already in use"), "\(output)")
    #expect(!output.errorText.contains("bind("))
  }

  @Test func anAddressThatCannotBeIsSaidToBeNone() throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    try program.succeed("init", "--address", "127.0.0.1:0")
    for (address, words) in [
      ("no-such-host.invalid:9", "no-such-host.invalid:9: is no address"),
      ("192.0.2.1:9", "name an address of this machine with --listen"),
      ("9", "9: is a port without an address; write 127.0.0.1:9"),
      ("192.0.2.1", "192.0.2.1:443: "),
    ] {
      let output = try program.run("serve", "--listen", address)
      #expect(output.status == 1 && output.errorText.contains(words), "\(output)")
      #expect(!output.errorText.contains("another program"), "\(output)")
    }
  }

  /// Root runs a command now and then, and the hub's user serves.
  @Test(.enabled(if: TestUser.isRoot, "two users need root"))
  func whatRootMakesIsTheHubsUsers() throws {
    let user = try TestUser.ordinary()
    let folder = try TemporaryFolder(for: user)
    defer { try? folder.remove() }
    let place = try folder.folder("place", for: user)
    func run(_ arguments: String..., as user: TestUser?) throws -> Command.Output {
      try Command([try HubProgram.path()] + arguments, as: user, environment: ["SHEAF_HUB": place]).run()
    }
    // The folder is there, as a unit makes it, and belongs to its user.
    for command in [["init", "--address", "127.0.0.1:0"], ["account", "add", "alice@hub.example"], ["status"]] {
      let output = try Command([try HubProgram.path()] + command, environment: ["SHEAF_HUB": place]).run()
      #expect(output.status == 0, "\(command): \(output)")
    }
    for name in try FileManager.default.contentsOfDirectory(atPath: place) {
      var status = stat()
      #expect(lstat("\(place)/\(name)", &status) == 0 && status.st_uid == user.user, "\(name)")
    }
    #expect(try run("status", as: user).status == 0)
    // A file that was there is nobody's to give away.
    let users = "\(place)/users"
    unlink(users)
    #expect(
      FileManager.default.createFile(atPath: users, contents: nil, attributes: [.posixPermissions: 0o600]))
    #expect(try run("status", as: nil).status == 0)
    var status = stat()
    #expect(stat(users, &status) == 0 && status.st_uid == 0)
    let refused = try run("status", as: user)
    #expect(refused.status == 1 && refused.errorText.contains("(chown)"), "\(refused)")
  }

  /// Whoever looks after a hub hears of a certificate before machines refuse it, and of a key that others can read.
  @Test func aCertificateThatEndsIsWarnedOf() throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    let (certificate, key) = ("\(folder.path)/cert.pem", "\(folder.path)/key.pem")
    func make(days: Int) throws {
      try Command([
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "\(days)",
        "-keyout", key, "-out", certificate, "-subj", "/CN=127.0.0.1",
      ]).succeed()
    }
    try make(days: 90)
    let files = [certificate, key]
    let good = try files.map { try Data(contentsOf: URL(fileURLWithPath: $0)) }
    try program.succeed(
      "init", "--address", "127.0.0.1:0", "--certificate", certificate, "--key", key)
    let quiet = try program.succeed("status")
    #expect(quiet.contains("Certificate: \(certificate), until ") && !quiet.contains("Warning"), "\(quiet)")
    // A key that is no key, or not that of the certificate, or away: the hub cannot begin anew.
    try Data("junk\n".utf8).write(to: URL(fileURLWithPath: key))
    #expect(try program.succeed("status").contains("Warning:     \(key)"))
    try make(days: 90)
    try good[0].write(to: URL(fileURLWithPath: certificate))
    #expect(try program.succeed("status").contains("Warning:     "))
    unlink(key)
    #expect(try program.succeed("status").contains("Warning:     \(key)"))
    try make(days: 9)
    chmod(key, 0o644)
    let warned = try program.succeed("status")
    #expect(warned.contains("the certificate ends ") && warned.contains("renew it"), "\(warned)")
    #expect(warned.contains("can read the key of the certificate"), "\(warned)")
    _ = try program.serve("--listen", "127.0.0.1:0")
    try eventually("the log warns") { program.log.contains("the certificate ends ") }
    try program.stop()
  }
}
