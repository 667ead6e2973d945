import Foundation
import MountKit
import SheafModel

/// The script `receiver` beside the tests: a webhook's endpoint, and what came to it.
final class Receiver {
  /// A request as the script recorded it.
  struct Request: Decodable {
    let action: String
    /// Whether the answer said that it arrived.
    let taken: Bool
    let id: String
    let timestamp: String
    let signature: String?
    let type: String
    let time: Double
    let body: String

    func event() throws -> Event { try JSONDecoder().decode(Event.self, from: Data(body.utf8)) }
    func events() throws -> [Event] { try JSONDecoder().decode([Event].self, from: Data(body.utf8)) }
  }

  let record: String
  let port: Int
  private var process: BackgroundCommand
  private let arguments: [String]

  var url: String { "http://127.0.0.1:\(port)/hook" }

  /// - Parameter actions: What the script's own text explains.
  init(in folder: TemporaryFolder, name: String = "received", _ actions: [String] = []) throws {
    record = "\(folder.path)/\(name)"
    arguments = actions
    process = try Self.start(record, 0, actions)
    let file = record
    try eventually("the receiver", within: .seconds(30)) { FileManager.default.fileExists(atPath: file) }
    try eventually("the receiver", within: .seconds(30)) { try !Self.lines(file).isEmpty }
    port = try JSONDecoder().decode(Int.self, from: Data(Self.lines(record)[0].utf8))
  }

  private static func start(_ record: String, _ port: Int, _ actions: [String]) throws -> BackgroundCommand {
    try BackgroundCommand(
      Command(["python3", Repository.path("Tests/SidecarTests/receiver"), record, "\(port)"] + actions))
  }

  private static func lines(_ file: String) throws -> [String] {
    let text = try String(contentsOfFile: file, encoding: .utf8)
    // What follows the last newline is still being written, or was cut off.
    return text.components(separatedBy: "\n").dropLast().filter { !$0.isEmpty }
  }

  /// Kills it; what comes now is refused.
  func kill() { process.end() }

  /// Starts it again at the same port.
  func restart(_ actions: [String]? = nil) throws {
    let (file, mark) = (record, "\(port)")
    let before = try Self.lines(file).count(where: { $0 == mark })
    process = try Self.start(record, port, actions ?? arguments)
    try eventually("the receiver", within: .seconds(30)) {
      try Self.lines(file).count(where: { $0 == mark }) > before
    }
  }

  /// All requests so far, in the order of their arrival.
  func requests() throws -> [Request] {
    try Self.lines(record).compactMap { line in
      // What a kill cut off was not answered.
      line.hasPrefix("{") && line.hasSuffix("}") ? try JSONDecoder().decode(Request.self, from: Data(line.utf8)) : nil
    }
  }

  /// The requests once there are so many.
  func requests(_ count: Int, within limit: Duration = .seconds(30)) throws -> [Request] {
    try eventually("\(count) requests", within: limit) { try requests().count >= count }
    return try requests()
  }
}
