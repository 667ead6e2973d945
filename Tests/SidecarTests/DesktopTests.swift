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
  @Test func noticesReplaceEachOtherAndTellOfOthersOnly() async throws {
    let served = try await ServedLibrary()
    let desktop = try Desktop(served.folder.path)
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
        try library.makeChange(.settle) { change in
          try library.logEvent(
            type, item, ino: inode.ino, data, actor: account, thread: 0, opens: false, change)
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

  /// Everyone on the machine can read a program's arguments.
  @Test func aLinkIsNoArgument() async throws {
    let served = try await ServedLibrary()
    let folder = served.folder.path
    try Command.shell(
      "printf '#!/bin/sh\\nprintf \"%%s\\\\n\" \"$@\" > arguments; echo \"(uint32 1,)\"' > gdbus; chmod +x gdbus",
      in: folder
    ).succeed()
    let path = try #require(ProcessInfo.processInfo.environment["PATH"])
    setenv("PATH", "\(folder):\(path)", 1)
    defer { setenv("PATH", path, 1) }
    let sink = DesktopSink(account: served.account)
    let client = try SheafClient(socket: served.library.location.socketPath, library: "library")
    _ = try await sink.reader(client, try await client.info(within: .seconds(10)))
    await client.shutdown()
    var data = EventDetails(
      item: .init(id: "1", kind: "folder", name: "plans", path: "plans"),
      actor: Account(handle: try AccountHandle("bob@example.com"), name: "Bob"))
    data.share = .init(id: "1", url: "sheaf://library/s/SECRET", title: "plans")
    data.participant = .init(
      handle: served.account.description, name: "Alice", role: "user", permission: "edit", acceptance: "pending")
    let event = Event(
      id: "1", source: "", type: .shareUpdated, subject: "1", time: .init(seconds: 0), sequence: 1, data: data)
    let directory = FileManager.default.currentDirectoryPath
    #expect(chdir(folder) == 0)
    defer { chdir(directory) }
    try await sink.deliver([Delivery(event: event, json: .init())])
    let arguments = try String(contentsOfFile: folder + "/arguments", encoding: .utf8)
    #expect(arguments.contains("Bob invites you to plans"), "\(arguments)")
    #expect(!arguments.contains("SECRET"), "\(arguments)")
    try await served.end()
  }

  @Test func aDesktopThatIsNotThereIsTriedAgain() async throws {
    let served = try await ServedLibrary()
    setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=\(served.folder.path)/none", 1)
    let sink = DesktopSink(account: nil)
    let client = try SheafClient(socket: served.library.location.socketPath, library: "library")
    _ = try await sink.reader(client, try await client.info(within: .seconds(10)))
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
