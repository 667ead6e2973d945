import Foundation
package import MountKit
package import SheafModel

/// The script `receiver` beside the tests: a webhook's endpoint, and what came to it.
package final class Receiver {
  /// A request as the script recorded it.
  package struct Request: Decodable, Sendable {
    package let action: String
    /// Whether the answer said that it arrived.
    package let taken: Bool
    package let id: String
    package let timestamp: String
    package let signature: String?
    package let type: String
    package let time: Double
    package let body: String

    package func event() throws -> Event { try JSONDecoder().decode(Event.self, from: Data(body.utf8)) }
    package func events() throws -> [Event] { try JSONDecoder().decode([Event].self, from: Data(body.utf8)) }
  }

  package let record: String
  package let port: Int
  private var process: BackgroundCommand
  private let arguments: [String]

  package var url: String { "http://127.0.0.1:\(port)/hook" }

  /// - Parameter actions: What the script's own text explains.
  package init(in folder: TemporaryFolder, name: String = "received", _ actions: [String] = []) throws {
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
  package func kill() { process.end() }

  /// Starts it again at the same port.
  package func restart(_ actions: [String]? = nil) throws {
    let (file, mark) = (record, "\(port)")
    let before = try Self.lines(file).count(where: { $0 == mark })
    process = try Self.start(record, port, actions ?? arguments)
    try eventually("the receiver", within: .seconds(30)) {
      try Self.lines(file).count(where: { $0 == mark }) > before
    }
  }

  /// All requests so far, in the order of their arrival.
  package func requests() throws -> [Request] {
    try Self.lines(record).compactMap { line in
      // What a kill cut off was not answered.
      line.hasPrefix("{") && line.hasSuffix("}") ? try JSONDecoder().decode(Request.self, from: Data(line.utf8)) : nil
    }
  }

  /// The requests once there are so many.
  package func requests(_ count: Int, within limit: Duration = .seconds(30)) throws -> [Request] {
    try eventually("\(count) requests", within: limit) { try requests().count >= count }
    return try requests()
  }
}
