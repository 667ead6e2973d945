import Foundation
import Glibc
import MountKit
import SheafClient
import SheafModel
import Testing

@testable import SheafLibrary
@testable import SheafSidecar

/// Notifications at a real notification daemon, on a bus and a display of their own.
@Suite(.serialized) struct DesktopTests {
  /// What the daemon of this test has to say, as dunstctl(1) asks it.
  private struct Desktop {
    let bus: BackgroundCommand
    let display: BackgroundCommand
    let daemon: BackgroundCommand
    let address: String

    init(_ folder: TemporaryFolder) throws {
      let path = folder.path
      address = "unix:path=\(path)/bus"
      bus = try BackgroundCommand(
        .shell("exec dbus-daemon --session --nofork --nopidfile --address=\(address) > \(path)/bus.log 2>&1"))
      display = try BackgroundCommand(
        .shell("exec Xvfb -displayfd 3 -screen 0 800x600x24 -nolisten tcp 3> \(path)/display 2> \(path)/xvfb.log"))
      try eventually("the bus") { FileManager.default.fileExists(atPath: "\(path)/bus") }
      try eventually("the display", within: .seconds(30)) {
        (try? String(contentsOfFile: "\(path)/display", encoding: .utf8))?.hasSuffix("\n") ?? false
      }
      let number = try String(contentsOfFile: "\(path)/display", encoding: .utf8)
        .trimmingCharacters(in: .whitespacesAndNewlines)
      daemon = try BackgroundCommand(
        .shell(
          "exec dunst > \(path)/dunst.log 2>&1",
          environment: ["DISPLAY": ":\(number)", "DBUS_SESSION_BUS_ADDRESS": address, "HOME": path]))
      let address = address
      try eventually("the notification daemon", within: .seconds(30)) {
        try Command(
          ["dunstctl", "count"], environment: ["DBUS_SESSION_BUS_ADDRESS": address], limit: .seconds(10)
        ).run().status == 0
      }
    }

    private func ask(_ words: String...) throws -> String {
      try Command(["dunstctl"] + words, environment: ["DBUS_SESSION_BUS_ADDRESS": address]).succeed().text
    }

    func shown() throws -> Int { try Int(ask("count", "displayed")) ?? -1 }

    /// Closes what is shown; gives the titles, latest first, of all that has been.
    func titles() throws -> [String] {
      _ = try ask("close-all")
      struct History: Decodable {
        struct Text: Decodable { let data: String }
        struct Entry: Decodable { let summary: Text }
        let data: [[Entry]]
      }
      return try JSONDecoder().decode(History.self, from: Data(ask("history").utf8)).data.flatMap { $0 }
        .map(\.summary.data)
    }

    func end() {
      daemon.end()
      display.end()
      bus.end()
    }
  }

  @Test func noticesReplaceEachOtherAndTellOfOthersOnly() async throws {
    let served = try await ServedLibrary()
    let desktop = try Desktop(served.folder)
    defer { desktop.end() }
    setenv("DBUS_SESSION_BUS_ADDRESS", desktop.address, 1)
    let library = served.library
    let bob = try AccountHandle("bob@example.com")
    _ = try library.addAccount(bob, name: "Bob <b>")
    for name in ["plan", "other"] { try served.mkdir(name) }

    /// Logs what Bob does to a folder of Alice's.
    func log(_ type: EventType, _ name: String, by actor: AccountHandle, previous: String? = nil) throws {
      try library.locked {
        let inode = try library.resolve(ItemPath(account: served.account, "Documents/\(name)"))
        let item = try #require(try library.item(of: inode))
        var data = try library.eventData(item, parent: inode.row.parent, name: inode.row.name)
        data.previousName = previous
        let account = try library.account(actor).id
        try library.transaction(.settle) { transaction in
          try library.logEvent(
            type, item, ino: inode.ino, data, actor: account, thread: 0, opens: false, transaction)
        }
      }
    }

    var sink = SinkConfiguration(name: "desktop", target: .desktop)
    sink.schedule.base = 0.05
    try await served.delivering([sink]) {
      try eventually("the beginning") { try served.record("desktop").position != nil }
      for _ in 1...3 { try log(.edit, "plan", by: bob) }
      try log(.edit, "other", by: served.account)
      try log(.renamed, "other", by: bob, previous: "it's \"old\"")
      let last = library.lastEvent
      try eventually("all are dealt with", within: .seconds(30)) { try served.record("desktop").position == last }
      #expect(try desktop.shown() == 2)
    }
    #expect(Set(try desktop.titles()) == ["Bob <b> edited plan 3 times", "Bob <b> renamed it's \"old\" to other"])
    try await served.end()
  }

  @Test func aDesktopThatIsNotThereIsTriedAgain() async throws {
    let served = try await ServedLibrary()
    setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=\(served.folder.path)/none", 1)
    let sink = DesktopSink(account: nil)
    let client = try SheafClient(socket: served.library.location.socketPath, library: "library")
    _ = try await sink.reader(client)
    await client.shutdown()
    var data = EventDetails(
      item: .init(id: "1", kind: "document", name: "a", path: "a"),
      actor: Account(handle: try AccountHandle("bob@example.com"), name: "Bob"))
    data.previousName = "b"
    let event = Event(
      id: "1", source: "", type: .renamed, subject: "1", time: .init(seconds: 0), sequence: 1, data: data)
    let failure = await #expect(throws: DeliveryFailure.self) {
      try await sink.deliver([Delivery(event: event, json: .init())])
    }
    #expect(failure?.consequence == .retry(after: nil))
    try await served.end()
  }
}
