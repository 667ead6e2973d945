import Foundation
import Glibc
import HubKit
import MountKit
import SheafWire

/// A hub's program at a port of its own, which it keeps when it is served again, with an account; and the sidecar's
/// program.
final class HubPlace {
  static let handle = "alice@hub.example"

  let folder: TemporaryFolder
  let hub: HubProgram
  let port: Int
  let link: String

  /// - Parameter address: Where machines reach it.
  init(address: String = "127.0.0.1") throws {
    folder = try TemporaryFolder()
    hub = try HubProgram(in: folder)
    port = try Self.freePort()
    try hub.succeed("init", "--address", "\(address):\(port)")
    link = try hub.succeed("account", "add", Self.handle)
  }

  deinit { try? folder.remove() }

  var device: String { "\(folder.path)/state/device.json" }
  var log: String { (try? String(contentsOfFile: "\(folder.path)/sidecar.log", encoding: .utf8)) ?? "" }

  static var program: String {
    get throws { String(try HubProgram.path().dropLast("-hub".count)) + "-sidecar" }
  }

  func serve() throws -> String { try hub.serve("--listen", "127.0.0.1:\(port)") }

  func run(_ arguments: String..., input: String = "") throws -> Command.Output {
    var command = Command(
      [try Self.program] + arguments, environment: ["HOME": folder.path, "XDG_STATE_HOME": nil])
    command.input = Array(input.utf8)
    return try command.run()
  }

  /// Starts one that posts to a receiver.
  func start(_ receiver: Receiver) throws -> BackgroundCommand {
    let file = "\(folder.path)/sidecar.toml"
    try """
    hub = true
    device = "state/device.json"
    state = "state/sidecar.sqlite"
    [[sink]]
    webhook = "\(receiver.url)"
    retry-base = 0.01
    retry-cap = 0.1
    """.write(toFile: file, atomically: true, encoding: .utf8)
    return try BackgroundCommand(
      .shell("exec '\(try Self.program)' --config '\(file)' 2>> '\(folder.path)/sidecar.log'"))
  }

  static func freePort() throws -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
      }
    }
    guard isBound else { throw Command.Failure(description: "no port") }
    return Int(UInt16(bigEndian: address.sin_port))
  }
}
