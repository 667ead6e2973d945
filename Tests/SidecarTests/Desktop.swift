import Foundation
import MountKit

/// A notification daemon on a bus and a display of its own; what it shows is asked by dunstctl(1).
struct Desktop {
  private let bus: BackgroundCommand
  private let display: BackgroundCommand
  private let daemon: BackgroundCommand
  private let user: TestUser?
  /// Address of the bus.
  let address: String

  /// - Parameters:
  ///   - path: A folder of the user's for bus and logs.
  ///   - user: Whose desktop it is; nil for whoever runs the tests.
  init(_ path: String, as user: TestUser? = nil) throws {
    self.user = user
    address = "unix:path=\(path)/bus"
    bus = try BackgroundCommand(
      .shell(
        "exec dbus-daemon --session --nofork --nopidfile --address=\(address) > \(path)/bus.log 2>&1", as: user))
    display = try BackgroundCommand(
      .shell(
        "exec Xvfb -displayfd 3 -screen 0 800x600x24 -nolisten tcp 3> \(path)/display 2> \(path)/xvfb.log", as: user))
    try eventually("the bus") { FileManager.default.fileExists(atPath: "\(path)/bus") }
    try eventually("the display", within: .seconds(30)) {
      (try? String(contentsOfFile: "\(path)/display", encoding: .utf8))?.hasSuffix("\n") ?? false
    }
    let number = try String(contentsOfFile: "\(path)/display", encoding: .utf8)
      .trimmingCharacters(in: .whitespacesAndNewlines)
    daemon = try BackgroundCommand(
      .shell(
        "exec dunst > \(path)/dunst.log 2>&1", as: user,
        environment: ["DISPLAY": ":\(number)", "DBUS_SESSION_BUS_ADDRESS": address, "HOME": path]))
    let ready = command(["count"])
    try eventually("the notification daemon", within: .seconds(30)) { try ready.run().status == 0 }
  }

  private func command(_ words: [String]) -> Command {
    Command(
      ["dunstctl"] + words, as: user, environment: ["DBUS_SESSION_BUS_ADDRESS": address], limit: .seconds(10))
  }

  func shown() throws -> Int { try Int(command(["count", "displayed"]).succeed().text) ?? -1 }

  /// Closes what is shown; gives the titles, latest first, of all that has been.
  func titles() throws -> [String] {
    _ = try command(["close-all"]).succeed()
    struct History: Decodable {
      struct Text: Decodable { let data: String }
      struct Entry: Decodable { let summary: Text }
      let data: [[Entry]]
    }
    let history = try command(["history"]).succeed().text
    return try JSONDecoder().decode(History.self, from: Data(history.utf8)).data.flatMap { $0 }.map(\.summary.data)
  }

  func end() {
    daemon.end()
    display.end()
    bus.end()
  }
}
