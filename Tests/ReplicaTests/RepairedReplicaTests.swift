import Foundation
import SheafModel
import SheafWire
import Testing

@testable import SheafLibrary

/// What `sheaf repair` saves of a library that is connected to a hub.
@Suite struct RepairedReplicaTests {
  /// The hub's events keep their places, and those that the hub does not have yet follow. Connected anew, the library reads
  /// on from where it was, and has its comments sent.
  @Test func eventsAndCommentsComeAlong() throws {
    try LibraryStory.tell { story in
      let (machine, handle) = (story.laptop, try AccountHandle("alice@hub.example"))
      for name in ["a.md", "b.md"] { try machine.save(name, at: name) }
      try story.sync()
      try machine.save("c", at: "c.md")
      machine.rest()
      try machine.library.locked { try machine.library.settleEvents(all: true) }
      _ = try machine.library.comment(ItemPath(account: handle, "Documents/a.md"), text: "Well done.")
      let (told, waiting) = try machine.log()
      try #require(told.count > 1 && !waiting.isEmpty)
      let positions = try machine.library.logPositions(of: machine.account)
      let replica = try #require(try machine.library.replica(machine.account))
      let zone = try #require(WireID(bytes: replica.zone))
      try machine.copy(.backup)

      let saved = LibraryLocation(path: machine.folder + "/saved.sqlite")
      let report = try Library.repair(LibraryLocation(path: machine.folder + "/backup/library.sqlite"), to: saved)
      #expect(report.problems == [] && report.lost.count == 1, "\(report.lost)")
      let line = report.lost.first ?? ""
      #expect(line.hasPrefix("the connection of alice@hub.example with hub.example; "), "\(line)")
      #expect(line.hasSuffix("sheaf connect LINK"), "\(line)")

      let library = try Library.open(saved, keepsItselfUp: false) { Timestamp(seconds: 1_900_000_000) }
      #expect(try library.replicas().isEmpty)
      let events = try library.latestEvents(limit: 1_000, for: handle)
      #expect(events.filter { $0.data.device != nil } == told)
      #expect(events.suffix(waiting.count).map(\.id) == waiting.map(\.id) && !events.contains(where: \.isWaiting))
      try library.connect(machine.account, zone: zone, hub: "hub.example")
      #expect(try library.logPositions(of: machine.account) == positions)
      let comments = try library.locked { try library.read { try $0.countReplicaComments(of: machine.account) } }
      #expect(comments == 1)
      #expect(try library.check { _ in }.problems == [])
      try library.close()
    }
  }
}
