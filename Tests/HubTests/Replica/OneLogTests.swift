import ConformanceKit
import Foundation
import Glibc
import HubKit
import MountKit
import SheafModel
import Testing

/// Two machines of a person, each with a mounted library and a sidecar that posts to a receiver, and a hub between them:
/// one log for both.
@Suite(.serialized) struct OneLogTests {
  /// A machine with a sidecar.
  private final class Post {
    let machine: ReplicaMachine
    let receiver: Receiver
    private let folder: TemporaryFolder
    private var sidecar: BackgroundCommand?

    init(_ machine: ReplicaMachine, _ place: HubPlace) throws {
      self.machine = machine
      folder = try TemporaryFolder()
      receiver = try Receiver(in: folder)
      try start()
    }

    func start() throws {
      let state = "\(folder.path)/state.sqlite"
      sidecar = try BackgroundCommand(
        .shell(
          "exec '\(try HubPlace.program)' --library '\(machine.library.library)' --state '\(state)' "
            + "--webhook '\(receiver.url)' 2>> '\(folder.path)/log'"))
    }

    /// What arrived, as `type name` of each event, and its id.
    func arrived() throws -> [Event] { try receiver.requests().filter(\.taken).map { try $0.event() } }

    func expect(_ count: Int) throws -> [Event] {
      try eventually("\(count) events arrive", within: .seconds(60)) { [self] in try arrived().count >= count }
      return try arrived()
    }

    func stop() {
      sidecar?.end()
      sidecar = nil
    }

    func end() throws {
      stop()
      receiver.kill()
      try folder.remove()
    }
  }

  private func words(_ events: [Event]) -> [String] {
    events.map { event in
      let type = event.type.rawValue.split(separator: ".").suffix(1).joined()
      return "\(type) \(event.data.item.name) by \(event.data.device?.name ?? "-")"
    }
  }

  private func log(_ machine: ReplicaMachine) throws -> [Event] {
    let text = try machine.succeed("activity", "--json").text
    return try JSONDecoder().decode([Event].self, from: Data(text.utf8))
  }

  /// What the hub tells of it: without what a library told before it was connected.
  private func hubLog(_ machine: ReplicaMachine) throws -> [Event] {
    try log(machine).filter { $0.data.device != nil }.sorted { $0.sequence < $1.sequence }
  }

  @Test func everyDeedIsToldOnceByEachMachine() throws {
    let place = try HubPlace()
    _ = try place.serve()
    let (laptop, desktop) = (try ReplicaMachine("laptop", place), try ReplicaMachine("desktop", place))
    defer {
      try? laptop.library.tearDown()
      try? desktop.library.tearDown()
    }
    // What was before connecting is told by the library, and never again.
    try laptop.mount()
    let first = try Post(laptop, place)
    defer { try? first.end() }
    try laptop.shell("echo old > old.md")
    #expect(words(try first.expect(1)) == ["created old.md by -"])
    _ = try laptop.succeed("connect", place.link, "--name", "laptop")
    try laptop.wait()
    let link = try laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
    _ = try desktop.succeed("connect", link, "--name", "desktop")
    try desktop.mount()
    try desktop.wait()
    let second = try Post(desktop, place)
    defer { try? second.end() }
    func settle() throws { for machine in [laptop, desktop, laptop, desktop] { try machine.wait() } }

    try laptop.shell("echo one > a.md")
    try settle()
    try desktop.shell("echo two >> a.md")
    try settle()
    try desktop.shell("mv a.md b.md")
    try settle()
    _ = try desktop.succeed("comment", "Documents/b.md", "well done")
    try settle()
    try laptop.shell("rm old.md")
    try settle()
    var told = [
      "created a.md by laptop", "edit a.md by desktop", "renamed b.md by desktop", "comment b.md by desktop",
      "deleted old.md by laptop",
    ]
    #expect(words(try second.expect(told.count)) == told)
    #expect(words(try first.expect(told.count + 1)) == ["created old.md by -"] + told)
    let status = try desktop.succeed("status").text
    #expect(status.firstMatch(of: /Events +([0-9]+)/).flatMap { Int($0.1) } ?? 0 >= told.count, "\(status)")
    let logs = try [laptop, desktop].map { try hubLog($0) }
    #expect(logs[0] == logs[1])
    #expect(words(logs[0]) == ["created old.md by laptop"] + told)
    #expect(try second.arrived().map(\.id) == first.arrived().dropFirst().map(\.id))
    #expect(logs[0].allSatisfy { $0.data.actor.handle.description == HubPlace.handle })

    // Offline: it waits, with its own time, and is told once there is a number for it.
    place.hub.kill()
    try laptop.shell("echo three > c.md")
    try eventually("it waits", within: .seconds(60)) {
      try self.log(laptop).contains { $0.isWaiting && $0.data.item.name == "c.md" && $0.sequence == 0 }
    }
    let waiting = try #require(try log(laptop).first { $0.isWaiting })
    #expect(try !first.arrived().contains { $0.data.item.name == "c.md" })
    _ = try place.serve()
    try settle()
    told.append("created c.md by laptop")
    #expect(words(try second.expect(told.count)) == told)
    let arrived = try #require(try hubLog(desktop).last)
    #expect(abs(arrived.time.nanoseconds - waiting.time.nanoseconds) < 1_000_000_000, "the author's time")
    #expect(try log(laptop).contains { $0.isWaiting } == false)

    // A restart repeats nothing.
    try laptop.library.unmount()
    first.stop()
    try desktop.shell("echo four >> c.md")
    try desktop.wait()
    try laptop.mount()
    try first.start()
    try settle()
    told.append("edit c.md by desktop")
    #expect(words(try first.expect(told.count + 1)) == ["created old.md by -"] + told)
    #expect(words(try second.expect(told.count)) == told)

    // Nor does connecting anew; what was done meanwhile is told.
    _ = try laptop.succeed("disconnect")
    try laptop.shell("echo alone > d.md")
    try eventually("the library tells of it itself", within: .seconds(60)) {
      try self.words(first.arrived()).last == "created d.md by -"
    }
    try desktop.shell("echo five >> b.md")
    try desktop.wait()
    let again = try desktop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
    _ = try laptop.succeed("connect", again, "--name", "laptop")
    try settle()
    try desktop.shell("echo six > e.md")
    try settle()
    #expect(
      words(try second.expect(told.count + 3)) == told + [
        "edit b.md by desktop", "created d.md by laptop", "created e.md by desktop",
      ])
    #expect(
      words(try first.expect(told.count + 4)) == ["created old.md by -"] + told + [
        "created d.md by -", "edit b.md by desktop", "created e.md by desktop",
      ])
    let (here, there) = (try hubLog(laptop), try hubLog(desktop))
    #expect(here == there)
    #expect(Set(try first.arrived().map(\.id)).count == told.count + 4)
    for machine in [laptop, desktop] { #expect(try machine.library.check() == []) }
  }

  /// What a person has read on one machine is read on the other one.
  @Test func noticesAreReadOnce() throws {
    let place = try HubPlace()
    _ = try place.serve()
    let bobsLink = try place.hub.succeed("account", "add", "bob@hub.example")
    let (laptop, desktop) = (try ReplicaMachine("laptop", place), try ReplicaMachine("desktop", place))
    let bob = try ReplicaMachine("bob", place, handle: "bob@hub.example")
    defer { for machine in [laptop, desktop, bob] { try? machine.library.tearDown() } }
    _ = try laptop.succeed("connect", place.link, "--name", "laptop")
    try laptop.mount()
    let link = try laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
    _ = try desktop.succeed("connect", link, "--name", "desktop")
    try desktop.mount()
    _ = try bob.succeed("connect", bobsLink, "--name", "phone")
    try bob.mount()
    func settle() throws { for machine in [laptop, bob, desktop, laptop, bob, desktop] { try machine.wait() } }
    try laptop.shell("mkdir team && echo one > team/a.md")
    try settle()
    let url = try laptop.succeed("share", "Documents/team", "--with", "bob@hub.example", "--can", "edit").text
      .split(separator: "\n").first.map(String.init)
    _ = try bob.succeed("accept", try #require(url))
    try settle()
    let shared = "\(bob.library.mountpoint)/Shared/\(HubPlace.handle)/team"
    try Command.shell("cd '\(shared)' && mv a.md b.md").succeed()
    try settle()
    _ = try bob.succeed("comment", "Shared/\(HubPlace.handle)/team/b.md", "for @\(HubPlace.handle) to see")
    try settle()
    try Command.shell("rm '\(shared)/b.md'").succeed()
    try settle()
    // Actors, and who sees what.
    for machine in [laptop, desktop] {
      let events = try hubLog(machine).filter { $0.data.device?.name == "phone" }
      #expect(events.map(\.type).contains(.renamed) && events.map(\.type).contains(.deleted), "\(events)")
      #expect(events.allSatisfy { $0.data.actor.handle.description == "bob@hub.example" })
      #expect(events.contains { $0.type == .mention && $0.data.mentioned?.handle.description == HubPlace.handle })
      #expect(events.first { $0.type == .renamed }?.data.item.path == "team/b.md")
    }
    let bobs = try hubLog(bob)
    #expect(!bobs.contains { $0.type == .mention })
    #expect(bobs.contains { $0.type == .comment && $0.data.comment == "for @\(HubPlace.handle) to see" })
    let notices = try [laptop, desktop].map { try $0.succeed("notices").text }
    #expect(notices[0] == notices[1] && notices[0].contains("mentioned you"), "\(notices)")
    _ = try desktop.succeed("notices", "--clear")
    try settle()
    try eventually("the laptop knows", within: .seconds(60)) {
      try !laptop.succeed("notices").text.contains("mentioned you")
    }
    for machine in [laptop, desktop, bob] { #expect(try machine.library.check() == []) }
  }

  /// What people said of items, also of those that the hub lost, and in a share, is said once more at a hub that was put
  /// back to its backup.
  @Test func commentsOutliveAHubThatGoesBack() throws {
    let place = try HubPlace()
    _ = try place.serve()
    let bobsLink = try place.hub.succeed("account", "add", "bob@hub.example")
    let (laptop, desktop) = (try ReplicaMachine("laptop", place), try ReplicaMachine("desktop", place))
    let bob = try ReplicaMachine("bob", place, handle: "bob@hub.example")
    let machines = [laptop, desktop, bob]
    defer { for machine in machines { try? machine.library.tearDown() } }
    _ = try laptop.succeed("connect", place.link, "--name", "laptop")
    let link = try laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
    _ = try desktop.succeed("connect", link, "--name", "desktop")
    _ = try bob.succeed("connect", bobsLink, "--name", "phone")
    for machine in machines { try machine.mount() }
    func settle() throws { for machine in machines + machines { try machine.wait() } }
    try laptop.shell("mkdir team && echo one > team/a.md && echo two > b.md")
    let url = try laptop.succeed("share", "Documents/team", "--with", "bob@hub.example", "--can", "edit").text
      .split(separator: "\n").first.map(String.init)
    _ = try bob.succeed("accept", try #require(url))
    try settle()
    let backup = "\(place.folder.path)/backup"
    _ = try place.hub.succeed("backup", backup)
    let shared = "Shared/\(HubPlace.handle)/team"
    try laptop.shell("echo three > team/new.md")
    try settle()
    _ = try laptop.succeed("comment", "Documents/b.md", "mine")
    _ = try desktop.succeed("comment", "Documents/team/new.md", "of what is lost")
    _ = try bob.succeed("comment", "\(shared)/a.md", "for @\(HubPlace.handle) to see")
    try settle()
    let comments = ["for @\(HubPlace.handle) to see", "mine", "of what is lost"]
    func said(_ machine: ReplicaMachine) throws -> [String] {
      try hubLog(machine).filter { $0.type == .comment }.compactMap(\.data.comment).sorted()
    }
    #expect(try said(laptop) == comments)
    try place.hub.stop()
    try Command.shell("rm -r '\(place.hub.hubFolder)' && mv '\(backup)' '\(place.hub.hubFolder)'").succeed()
    _ = try place.serve()
    try settle()
    try eventually("everybody reads them", within: .seconds(60)) {
      try said(laptop) == comments && said(desktop) == comments && said(bob) == [comments[0], comments[2]]
    }
    #expect(try laptop.succeed("notices").text.contains("mentioned you"))
    for machine in machines { #expect(try machine.library.check() == []) }
  }
}
