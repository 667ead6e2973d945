import Foundation
import HubKit
import MountKit
import SheafModel
import SheafWire
import Testing

@testable import SheafHub
@testable import SheafHubClient
@testable import SheafSidecar

/// A sidecar that follows a hub and posts to a real receiver.
@Suite(.serialized) struct HubSidecarTests {
  private let bob = "bob@hub.example"

  private func names(_ requests: some Sequence<Receiver.Request>) throws -> [String] {
    try requests.filter(\.taken).map { try $0.event().data.item.name }
  }

  private func person(_ hub: SecureHub, _ handle: String) async throws -> Person {
    Person(zone: try await hub.hub.accounts.zone(of: try AccountHandle(handle)), handle: handle, name: nil)
  }

  /// Has Alice share an item with Bob, who joins.
  private func share(_ hub: SecureHub, _ item: WireID) async throws -> HubShare {
    let (alice, bob) = (try await person(hub, "alice@hub.example"), try await person(hub, bob))
    let sharing = hub.hub.sharing
    let share = try await sharing.share(item, ShareSettings(), by: alice)
    let now = hub.hub.clock.now
    _ = try await sharing.change(share.id, by: alice) {
      try $0.invite(bob, ParticipantSettings(permission: .readWrite), by: alice.zone, at: now)
    }
    _ = try await sharing.accept(share.token, by: bob)
    return share
  }

  @Test func whatHappensInTheAccountIsPosted() async throws {
    try await SecureHub.with { hub in
      let device = try await hub.device()
      let receiver = try Receiver(in: hub.folder)
      let sidecar = HubSidecar(in: hub.folder)
      for number in 1...3 { try await hub.send(.document("\(number)", "x", serial: Int64(number))) }
      try await sidecar.delivering(device, to: receiver.url) {
        for number in 4...150 { try await hub.send(.document("\(number)", "x", serial: Int64(number))) }
        let requests = try receiver.requests(150)
        #expect(try names(requests) == (1...150).map { "\($0)" })
        let page = try await hub.hub.events.page(after: .number(0), limit: 1_000, of: device.zone)
        for (request, event) in zip(requests, page.events) {
          #expect(try request.event() == event)
          #expect(request.id == event.id && request.type == "application/cloudevents+json")
        }
      }
      // It goes on where it stopped, with what happened meanwhile.
      for number in 151...153 { try await hub.send(.document("\(number)", "x", serial: Int64(number))) }
      try await sidecar.delivering(device, to: receiver.url) {
        let requests = try receiver.requests(153)
        #expect(try names(requests) == (1...153).map { "\($0)" })
      }
      receiver.kill()
    }
  }

  @Test func aNewSinkCanBeginWithNow() async throws {
    try await SecureHub.with { hub in
      let device = try await hub.device()
      let receiver = try Receiver(in: hub.folder)
      let sidecar = HubSidecar(in: hub.folder)
      try await hub.send(.document("before", "x", serial: 1))
      try await sidecar.delivering(device, to: receiver.url, fromNow: true) {
        try eventually("the beginning", within: .seconds(60)) { try sidecar.record(device).places["own"]?.number == 1 }
        try await hub.send(.document("after", "x", serial: 2))
        #expect(try names(receiver.requests(1)) == ["after"])
      }
      receiver.kill()
    }
  }

  /// What others share is posted from joining to leaving, each log in its order, and nothing else of theirs.
  @Test func sharesOfOthersAreFollowed() async throws {
    try await SecureHub.with { hub in
      _ = try await hub.device()
      let device = try await hub.device(bob)
      let receiver = try Receiver(in: hub.folder)
      let sidecar = HubSidecar(in: hub.folder)
      let (shared, late) = (WireID(), WireID())
      let document = Send.document("shared", "x", serial: 1, item: shared)
      let first = try #require(document.version?.id)
      try await hub.send(document)
      try await hub.send(.document("private", "x", serial: 2))
      try await hub.send(.document("late", "x", serial: 3, item: late))
      let share = try await share(hub, shared)
      try await hub.send(.document("own", "x", serial: 1), by: bob)
      func told() throws -> [String] {
        try receiver.requests().filter(\.taken).map { request in
          let event = try request.event()
          return "\(event.type.rawValue) \(event.data.item.path)"
        }
      }
      try await sidecar.delivering(device, to: receiver.url) {
        try eventually("both logs", within: .seconds(60)) { try told().count >= 2 }
        try await hub.send(
          Send(
            serial: 4, item: shared, kind: .document, base: 1 << 40,
            version: SentVersion(id: WireID(), base: first, cause: .save, time: 1, contents: Data("y".utf8))))
        // It is told without a restart of a share that began meanwhile.
        _ = try await self.share(hub, late)
        try eventually("the second share", within: .seconds(60)) {
          try told().contains("sheaf.membership.added late")
        }
      }
      try await hub.hub.sharing.change(share.id, by: try await person(hub, bob)) { member in
        try member.leave(device.zone)
      }
      try await hub.send(.document("more", "x", serial: 2), by: bob)
      try await sidecar.delivering(device, to: receiver.url) {
        try eventually("the end", within: .seconds(60)) {
          let all = try told()
          return all.contains("sheaf.membership.removed shared") && all.contains("sheaf.persistence.created more")
        }
      }
      let all = try told()
      #expect(Set(all).count == all.count && !all.contains { $0.contains("private") }, "\(all)")
      #expect(try Set(receiver.requests().map(\.id)).count == all.count)
      let ofShare = all.filter { $0.hasSuffix(" shared") }
      #expect(
        ofShare.first == "sheaf.membership.added shared" && ofShare.last == "sheaf.membership.removed shared", "\(all)")
      receiver.kill()
    }
  }

  /// A copy of the hub takes its place. What it has besides is posted, and nothing twice.
  @Test func aHubThatWentBackIsFollowedOn() async throws {
    try await SecureHub.with { hub in
      let device = try await hub.device()
      let receiver = try Receiver(in: hub.folder)
      let sidecar = HubSidecar(in: hub.folder)
      for number in 1...2 { try await hub.send(.document("\(number)", "x", serial: Int64(number))) }
      try await sidecar.delivering(device, to: receiver.url) { _ = try receiver.requests(2) }
      // The copy was made here: it knows nothing of the third.
      try await hub.beginEpoch()
      try await hub.forgetEvents(after: 1)
      try await hub.send(.document("3", "x", serial: 3))
      try await sidecar.delivering(device, to: receiver.url) {
        #expect(try names(receiver.requests(3)) == ["1", "2", "3"])
        try await hub.send(.document("4", "x", serial: 4))
        #expect(try names(receiver.requests(4)) == ["1", "2", "3", "4"])
      }
      #expect(sidecar.said.of(.warning).count(where: { $0.contains("a copy of an earlier time") }) == 1)
      // Of a time that the hub never heard of it says so, and begins anew.
      try await hub.forgetEpochs()
      try await sidecar.delivering(device, to: receiver.url) {
        let requests = try receiver.requests(7)
        #expect(try names(requests.suffix(3)) == ["1", "3", "4"])
      }
      #expect(sidecar.said.of(.error).count(where: { $0.contains("events are lost, or come again") }) == 1)
      receiver.kill()
    }
  }

  /// However many sinks there are, and however often it is tried.
  @Test func aRemovedDeviceIsSaidOnce() async throws {
    try await SecureHub.with { hub in
      let device = try await hub.device()
      let receiver = try Receiver(in: hub.folder)
      let sidecar = HubSidecar(in: hub.folder)
      let sinks = (1...3).map { number in
        SinkConfiguration(name: "\(number)", target: .webhook(url: receiver.url, secrets: []))
      }
      try await hub.send(.document("1", "x", serial: 1))
      try await sidecar.delivering(device, sinks) {
        _ = try receiver.requests(3)
        try await hub.hub.accounts.removeDevice(device.id, of: device.zone)
        try eventually("it is said", within: .seconds(60)) { !sidecar.said.of(.error).isEmpty }
        try await hub.send(.document("2", "x", serial: 2))
      }
      let errors = sidecar.said.of(.error)
      #expect(errors.count == 1 && errors.first?.contains("was removed") == true, "\(errors)")
      #expect(errors.first?.contains("connect anew with a new link") == true)
      #expect(try receiver.requests().count == 3)
      receiver.kill()
    }
  }

  /// An endpoint that fails has its events later, in order; so have dead letters.
  @Test func failuresOfTheEndpointAreTriedAgain() async throws {
    try await SecureHub.with { hub in
      let device = try await hub.device()
      let receiver = try Receiver(in: hub.folder, ["200", "500", "close", "200"])
      let sidecar = HubSidecar(in: hub.folder)
      for number in 1...3 { try await hub.send(.document("\(number)", "x", serial: Int64(number))) }
      try await sidecar.delivering(device, to: receiver.url) {
        let requests = try receiver.requests(5)
        #expect(try requests.map { try $0.event().data.item.name } == ["1", "2", "2", "2", "3"])
      }
      #expect(try sidecar.record(device).places["own"]?.number == 3)
      receiver.kill()
    }
  }

  @Test func whatAHubCannotTellIsRefused() throws {
    var configuration = SidecarConfiguration()
    (configuration.isOfHub, configuration.sinks) = (true, [SinkConfiguration(name: "a", target: .output)])
    try configuration.check()
    var other = configuration
    other.library = "/library"
    #expect(throws: SheafError.self) { try other.check() }
    other = configuration
    other.servesAccounts = true
    #expect(throws: SheafError.self) { try other.check() }
    other = configuration
    other.sinks[0].account = try AccountHandle(bob)
    #expect(throws: SheafError.self) { try other.check() }
  }
}

extension SecureHub {
  /// Drops the newest events of Alice's log, as if the store were an older copy.
  func forgetEvents(after number: Int64) async throws {
    let zone = try await hub.accounts.zone(of: try AccountHandle("alice@hub.example"))
    try await hub.database.write { connection in
      try connection.execute("DELETE FROM events WHERE zone = $1 AND sequence > $2", [.text(zone), .integer(number)])
      try connection.execute(
        "UPDATE zones SET events = $1 WHERE zone = $2", [.integer(number), .text(zone)])
      try connection.execute(
        "UPDATE epochs SET events = $1 WHERE zone = $2", [.integer(number), .text(zone)])
    }
  }

  /// Begins an epoch as a store that never heard of those before.
  func forgetEpochs() async throws {
    try await beginEpoch()
    _ = try await hub.database.write { connection in try connection.execute("DELETE FROM epochs") }
  }
}
