import Foundation
import MountKit
import Testing

/// For how long folders of an account keep things, said on one machine and held on all.
@Suite(.serialized) struct RetentionProgramTests {
  private struct Facts: Decodable, Equatable {
    struct Hub: Decodable, Equatable {
      let state: String
      let keepDeleted: Int?
      let keepVersions: Int?
    }

    let keepDeleted: Int
    let keepVersions: Int
    let ownKeepDeleted: Int?
    let ownKeepVersions: Int?
    let hub: Hub?
  }

  private static let day = 86_400

  private func facts(_ path: String, _ machine: ReplicaMachine) throws -> Facts {
    try JSONDecoder().decode(Facts.self, from: Data(machine.succeed("retain", path, "--json").output))
  }

  private func withMachines(
    _ body: (_ place: HubPlace, _ laptop: ReplicaMachine, _ desktop: ReplicaMachine) throws -> Void
  ) throws {
    let place = try HubPlace()
    _ = try place.serve()
    let (laptop, desktop) = (try ReplicaMachine("laptop", place), try ReplicaMachine("desktop", place))
    defer {
      try? laptop.library.tearDown()
      try? desktop.library.tearDown()
    }
    // Said before the account is connected.
    try laptop.mount()
    try laptop.shell("mkdir -p Contracts/old Scratch")
    try laptop.succeed("retain", "Documents/Contracts", "--keep-deleted", "1y", "--keep-versions", "10y")
    #expect(try facts("Documents/Contracts", laptop).hub == nil)
    _ = try laptop.succeed("connect", place.link, "--name", "laptop")
    try laptop.wait()
    let link = try laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
    _ = try desktop.succeed("connect", link, "--name", "desktop")
    try desktop.mount()
    try settle([laptop, desktop])
    try body(place, laptop, desktop)
    for machine in [laptop, desktop] { #expect(try machine.library.check() == []) }
  }

  private func settle(_ machines: [ReplicaMachine]) throws { for machine in machines + machines { try machine.wait() } }

  @Test func whatIsSaidOnOneMachineHoldsOnTheOther() throws {
    try withMachines { place, laptop, desktop in
      let there = try facts("Documents/Contracts", desktop)
      #expect(there.ownKeepDeleted == 365 * Self.day && there.ownKeepVersions == 3650 * Self.day)
      #expect(there.hub == Facts.Hub(state: "told", keepDeleted: 365 * Self.day, keepVersions: 3650 * Self.day))
      #expect(try facts("Documents/Contracts/old", desktop).keepVersions == 3650 * Self.day)

      try desktop.succeed("retain", "Documents/Scratch", "--keep-deleted", "2d", "--yes")
      try settle([desktop, laptop])
      #expect(try desktop.succeed("retain", "Documents/Scratch").text.contains("The hub keeps the same."))
      let here = try facts("Documents/Scratch", laptop)
      #expect(here.ownKeepDeleted == 2 * Self.day && here.ownKeepVersions == nil)

      try laptop.succeed("retain", "Documents/Contracts", "--default", "--yes")
      try settle([laptop, desktop])
      #expect(try facts("Documents/Contracts", desktop).ownKeepDeleted == nil)

      // Where no folder says anything, the hub's rules hold there.
      try place.hub.succeed("retain", "--deleted", "60", "--versions", "forever")
      try settle([laptop])
      let plain = try facts("Documents", laptop)
      #expect(plain.keepDeleted == 30 * Self.day)
      #expect(plain.hub == Facts.Hub(state: "told", keepDeleted: 60 * Self.day, keepVersions: nil))
      // What is longer here and shorter there needs a yes, too.
      #expect(try laptop.sheaf("retain", "Documents", "--keep-versions", "2y").status != 0)
      #expect(try facts("Documents", laptop) == plain)
      let text = try laptop.succeed("retain", "Documents").text
      #expect(text.contains("the hub keeps deleted items for 60 days and versions for ever"), "\(text)")
    }
  }

  @Test func whatIsSaidWhileTheHubIsAwayTravelsLater() throws {
    try withMachines { place, laptop, desktop in
      place.hub.kill()
      try laptop.succeed("retain", "Documents/Contracts", "--keep-versions", "20y")
      try laptop.shell("mkdir New")
      try laptop.succeed("retain", "Documents/New", "--keep-deleted", "90d")
      try desktop.succeed("retain", "Documents/Scratch", "--keep-deleted", "40d")
      let waiting = try facts("Documents/Contracts", laptop)
      #expect(waiting.keepVersions == 7300 * Self.day && waiting.hub?.state == "waiting")
      _ = try place.serve()
      try settle([laptop, desktop])
      for machine in [laptop, desktop] {
        #expect(try facts("Documents/Contracts", machine).ownKeepVersions == 7300 * Self.day)
        #expect(try facts("Documents/Contracts", machine).ownKeepDeleted == 365 * Self.day)
        #expect(try facts("Documents/New", machine).ownKeepDeleted == 90 * Self.day)
        #expect(try facts("Documents/Scratch", machine).ownKeepDeleted == 40 * Self.day)
        #expect(try facts("Documents/Scratch", machine).hub?.state == "told")
      }
    }
  }

  @Test func whatIsSaidWhileDisconnectedTravelsLater() throws {
    try withMachines { _, laptop, desktop in
      _ = try laptop.succeed("disconnect")
      let alone = try facts("Documents/Contracts", laptop)
      #expect(alone.ownKeepDeleted == 365 * Self.day && alone.hub == nil)
      try laptop.succeed("retain", "Documents/Contracts", "--keep-deleted", "2y")
      try desktop.succeed("retain", "Documents/Scratch", "--keep-deleted", "50d")
      try desktop.wait()
      _ = try laptop.succeed("connect", desktop.succeed("device", "add").text, "--name", "laptop again")
      try settle([laptop, desktop])
      for machine in [laptop, desktop] {
        #expect(try facts("Documents/Contracts", machine).ownKeepDeleted == 730 * Self.day)
        #expect(try facts("Documents/Scratch", machine).ownKeepDeleted == 50 * Self.day)
      }
    }
  }
}
