import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// The names that people give to versions at a hub.
@Suite struct LabelTests {
  @Test(arguments: StoreEngine.available)
  func aLabelIsUniqueAndTheLastToArriveHasIt(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      let (item, hub, zone) = (WireID(), place.hub, place.zone)
      let ids = (0..<3).map { _ in WireID() }
      _ = try await place.send(
        Send.document(item, at: [.init(parent: .root, "plan")], version: ids[0], "one"), serial: 1)
      for index in 1...2 {
        _ = try await place.send(
          Send.save(item, ids[index], base: ids[index - 1], "text \(index)"), serial: Int64(index + 1))
      }
      func labels() async throws -> [String?] {
        try await hub.contents.versions(of: item, after: 0, limit: 9, in: zone).versions.map(\.label)
      }
      func state() async throws -> ItemState? { try await hub.feeds.item(item, in: zone) }
      #expect(try await state()?.labels == nil)
      let before = try #require(try await state()).number
      try await hub.labels.label(ids[0], of: item, as: "draft", in: zone, by: "a")
      try await hub.labels.label(ids[2], of: item, as: "final", in: zone, by: "a")
      #expect(try await labels() == ["draft", nil, "final"])
      #expect(try await state()?.labels == 2)
      #expect(try await state()?.number == before + 2)
      // Once more changes nothing.
      try await hub.labels.label(ids[2], of: item, as: "final", in: zone, by: "b")
      #expect(try await state()?.number == before + 2)
      // It moves, and a version has one.
      try await hub.labels.label(ids[1], of: item, as: "draft", in: zone, by: "b")
      try await hub.labels.label(ids[1], of: item, as: "second", in: zone, by: "b")
      #expect(try await labels() == [nil, "second", "final"])
      // The feed tells it like any change.
      let told = try await hub.feeds.page(after: nil, limit: 9, of: zone).items.first { $0.item == item }
      #expect(told?.labels ?? 0 > 2)
      #expect(try await state()?.labels == told?.labels)
      for bad in ["", String(repeating: "x", count: 201), "a\nb"] {
        #expect(
          try await problem { try await hub.labels.label(ids[1], of: item, as: bad, in: zone, by: "a") } == .invalid)
      }
      #expect(
        try await problem { try await hub.labels.label(WireID(), of: item, as: "x", in: zone, by: "a") } == .notFound)
      #expect(
        try await problem { try await hub.labels.label(ids[1], of: WireID(), as: "x", in: zone, by: "a") } == .notFound)
      // What is purged has none, and gets none.
      try await hub.purging.purge(ids[1], of: item, in: zone, by: "a")
      #expect(try await labels() == [nil, "final"])
      #expect(
        try await problem { try await hub.labels.label(ids[1], of: item, as: "x", in: zone, by: "a") } == .notFound)
      #expect(try await hub.check() == [])
    }
  }

  @Test(arguments: StoreEngine.available)
  func labelledVersionsAreKept(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      let (item, hub, zone) = (WireID(), place.hub, place.zone)
      let ids = (0..<3).map { _ in WireID() }
      _ = try await place.send(
        Send.document(item, at: [.init(parent: .root, "plan")], version: ids[0], "one"), serial: 1)
      for index in 1...2 {
        _ = try await place.send(
          Send.save(item, ids[index], base: ids[index - 1], "text \(index)"), serial: Int64(index + 1))
      }
      try await hub.labels.label(ids[0], of: item, as: "draft", in: zone, by: "a")
      place.test.clock.advance(seconds: 800 * 86_400)
      try await hub.retention.thin(zone, by: RetentionRules())
      let left = try await hub.contents.versions(of: item, after: 0, limit: 9, in: zone).versions
      #expect(left.map(\.id) == [ids[0], ids[2]] && left.map(\.label) == ["draft", nil])
      // With the item it goes all the same.
      _ = try await place.send(Send(serial: 4, item: item, kind: .document, read: 99, isDeletion: true), serial: 4)
      #expect(try await hub.feeds.item(item, in: zone)?.deleted == hub.clock.now.nanoseconds)
      place.test.clock.advance(seconds: 60 * 86_400)
      try await hub.upkeep()
      #expect(try await hub.contents.versions(of: item, after: 0, limit: 9, in: zone).versions == [])
      #expect(try await hub.check() == [])
    }
  }
}
