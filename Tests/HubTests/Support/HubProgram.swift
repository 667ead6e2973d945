import Foundation
import Glibc
import MountKit
import SheafWire

/// The program `sheaf-hub` on a folder of its own.
final class HubProgram {
  let folder: String
  /// The step at which the next server is killed (`FaultPoint`).
  var fault: String?
  private let path: String
  private var server: BackgroundCommand?

  /// Where the program is: `SHEAF_HUB_BIN`, otherwise beside the running test program.
  static func path() throws -> String {
    if let named = ProcessInfo.processInfo.environment["SHEAF_HUB_BIN"] { return named }
    let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let path = URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent("sheaf-hub").path
    guard access(path, X_OK) == 0 else {
      throw Command.Failure(description: "\(path) is not there; build it, or name it by SHEAF_HUB_BIN")
    }
    return path
  }

  /// - Parameter folder: A folder for the hub's folder, the server's output and its log.
  init(in folder: TemporaryFolder) throws {
    path = try Self.path()
    self.folder = folder.path
  }

  deinit { kill() }

  var hubFolder: String { "\(folder)/hub" }
  /// What the server wrote to standard error since the first start.
  var log: String { (try? String(contentsOfFile: "\(folder)/log", encoding: .utf8)) ?? "" }
  /// The certificate that the hub made itself.
  var certificate: String { get throws { try String(contentsOfFile: "\(hubFolder)/certificate.pem", encoding: .utf8) } }

  /// Runs a command to its end.
  func run(_ arguments: String...) throws -> Command.Output {
    try Command([path] + arguments, environment: ["SHEAF_HUB": hubFolder]).run()
  }

  /// Runs a command that must succeed, and returns what it prints.
  @discardableResult
  func succeed(_ arguments: String...) throws -> String {
    try Command([path] + arguments, environment: ["SHEAF_HUB": hubFolder]).succeed().text
  }

  /// Serves in the background, and returns where.
  func serve(_ arguments: String...) throws -> String {
    let out = "\(folder)/out"
    try? FileManager.default.removeItem(atPath: out)
    let command = Command(
      ["/bin/sh", "-c", "exec \"$@\" >\"$0/out\" 2>>\"$0/log\"", folder, path, "serve", "--listen", "127.0.0.1:0"]
        + arguments, environment: ["SHEAF_HUB": hubFolder, "SHEAF_HUB_FAULT": fault])
    server = try BackgroundCommand(command)
    var base = ""
    try eventually("the hub serves\n\(log)", within: .seconds(120)) {
      let text = (try? String(contentsOfFile: out, encoding: .utf8)) ?? ""
      guard text.hasPrefix("Serving "), text.hasSuffix("\n") else { return false }
      base = String(text.dropFirst("Serving ".count).dropLast())
      return true
    }
    return base
  }

  /// The process that serves.
  var process: Int32? { server?.process }

  /// Ends the server with SIGTERM; it must end with status 0.
  func stop() throws {
    guard let server else { return }
    Glibc.kill(server.process, SIGTERM)
    try server.wait(limit: .seconds(120))
    self.server = nil
  }

  /// Kills the server.
  func kill() {
    server?.end()
    server = nil
  }

  /// Adds an account; returns the code of its link.
  @discardableResult
  func account(_ handle: String) throws -> String {
    guard let link = EnrollmentLink(try succeed("account", "add", handle)) else {
      throw Command.Failure(description: "account add prints no link")
    }
    return link.code
  }
}
