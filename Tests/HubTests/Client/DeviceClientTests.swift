import Foundation
import Glibc
import HubKit
import MountKit
import SheafModel
import SheafWire
import Testing

@testable import SheafHub
@testable import SheafHubClient

/// The client at a real hub, over TLS with the hub's own certificate.
@Suite(.serialized) struct DeviceClientTests {
  @Test func aMachineBecomesADevice() async throws {
    try await SecureHub.with { hub in
      let (text, file) = (try await hub.link(), DeviceFile("\(hub.folder.path)/device.json"))
      let device = try await DeviceClient.enroll(by: try Enrolment(text), name: "laptop", file: file)
      #expect(try file.read().id == device.id)
      try await hub.withClient(of: try file.read()) { client in
        let account = try await client.account()
        #expect(account.handle == "alice@hub.example" && account.zone == device.zone)
      }
      // A code is good once, and the error says what to do.
      let other = DeviceFile("\(hub.folder.path)/other.json")
      let refused = try await hubFailure {
        _ = try await DeviceClient.enroll(by: try Enrolment(text), name: "x", file: other)
      }
      #expect(refused.kind == .refused(.forbidden) && refused.advice?.contains("account link") == true)
      #expect(!refused.description.contains(try Enrolment(text).code))
      // Nothing stays of it: no key, and no folder for one.
      #expect(access(other.path, F_OK) != 0)
      let inside = DeviceFile("\(hub.folder.path)/state/sheaf/other.json")
      _ = try await hubFailure {
        _ = try await DeviceClient.enroll(by: try Enrolment(text), name: "x", file: inside)
      }
      #expect(access("\(hub.folder.path)/state/sheaf", F_OK) != 0)
    }
  }

  /// The process ended after the hub had answered and before that was noted.
  @Test func anEnrolmentThatWasInterruptedIsFinishedByTheSameLink() async throws {
    try await SecureHub.with { hub in
      let text = try await hub.link()
      let (file, enrolment) = (DeviceFile("\(hub.folder.path)/device.json"), try Enrolment(text))
      let copy = DeviceFile("\(hub.folder.path)/copy.json")
      _ = try file.key(for: enrolment)
      try FileManager.default.copyItem(atPath: file.path, toPath: copy.path)
      let first = try await DeviceClient.enroll(by: enrolment, name: "laptop", file: file)
      let second = try await DeviceClient.enroll(by: enrolment, name: "laptop", file: copy)
      #expect(first.id == second.id)
      #expect(try await hub.hub.accounts.devices(of: first.zone).count == 1)
    }
  }

  @Test func aLinkTellsWhomItIsForAndIsNotSpent() async throws {
    try await SecureHub.with { hub in
      let (text, file) = (try await hub.link(), DeviceFile("\(hub.folder.path)/device.json"))
      let enrolment = try Enrolment(text)
      let preview = try await DeviceClient.preview(by: enrolment, name: "laptop", file: file)
      #expect(preview.handle.description == "alice@hub.example" && access(file.path, F_OK) != 0)
      #expect(try await hub.hub.accounts.devices(of: preview.zone.description).isEmpty)
      // Whoever was interrupted after the code was spent is the one who spent it.
      let key = try file.key(for: enrolment)
      let copy = DeviceFile("\(hub.folder.path)/copy.json")
      try FileManager.default.copyItem(atPath: file.path, toPath: copy.path)
      _ = try await DeviceClient.enroll(by: enrolment, name: "laptop", file: file)
      #expect(try copy.begunKey(for: enrolment)?.rawRepresentation == key.rawRepresentation)
      #expect(try await DeviceClient.preview(by: enrolment, name: "laptop", file: copy).zone == preview.zone)
      let refused = try await hubFailure {
        _ = try await DeviceClient.preview(by: enrolment, name: "laptop", file: nil)
      }
      #expect(refused.kind == .refused(.forbidden) && !refused.description.contains(enrolment.code))
    }
  }

  @Test func aFullAccountIsNamed() async throws {
    try await SecureHub.with { hub in
      let device = try await hub.device()
      try await hub.hub.accounts.setQuota(1, of: device.zone)
      try await hub.withClient(of: device) { client in
        let refused = try await hubFailure {
          _ = try await client.send([[.document("a", "text", serial: 1)]], confirmed: 0)
        }
        let error = refused.sheafError
        #expect(error.kind == .noSpace && error.description.contains("alice@hub.example"), "\(error)")
        #expect(error.advice?.contains("account quota") == true)
      }
    }
  }

  // MARK: - Sessions

  private func sessions(_ hub: SecureHub, _ zone: String) async throws -> Int64 {
    try await hub.hub.database.read { connection in
      try connection.query("SELECT COUNT(*) FROM sessions WHERE zone = $1", [.text(zone)]).first?.integer(0) ?? 0
    }
  }

  @Test func manyCallersBeginOneSession() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        func all() async throws {
          try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<40 { group.addTask { _ = try await client.account() } }
            try await group.waitForAll()
          }
        }
        try await all()
        #expect(try await sessions(hub, client.device.zone) == 1)
        // A session that ended meanwhile is renewed, and that once, too.
        hub.test.clock.advance(seconds: 3_601)
        try await all()
        #expect(try await sessions(hub, client.device.zone) == 1)
      }
    }
  }

  /// A session is renewed before it ends: nobody is refused. How long it is good is told by the hub's clock alone.
  @Test func aSessionIsRenewedBeforeItEnds() async throws {
    let server = try ScriptedServer { path in
      switch path {
      case "/v1/sessions": .json(#"{"token":"t","expires":"1999-01-01T00:00:02Z"}"#, status: "201 Created")
      case "/v1/challenges": .json(#"{"nonce":"n","expires":"1999-01-01T00:00:01Z"}"#, status: "201 Created")
      default: .json(#"{"handle":"a@b","name":null,"zone":"z","quota":null,"used":0}"#)
      }
    }
    defer { server.close() }
    let client = DeviceClient(try server.device)
    let begun = ContinuousClock.now
    var asked = 0
    while server.asked.count(where: { $0 == "/v1/sessions" }) < 2 {
      _ = try await client.account()
      asked += 1
      guard ContinuousClock.now < begun + .seconds(60) else { throw Command.Failure(description: "no renewal") }
    }
    #expect(asked > 1 && ContinuousClock.now >= begun + .milliseconds(800))
    await client.shutdown()
  }

  // MARK: - Keys and certificates

  @Test func aRenewedCertificateOfTheSameKeyIsTheHubs() async throws {
    try await SecureHub.with { hub in
      let device = try await hub.device()
      try hub.renewKeepingTheKey()
      try await hub.withClient(of: device) { client in _ = try await client.account() }
    }
  }

  @Test func anotherKeyIsAnotherHub() async throws {
    try await SecureHub.with { hub in
      let (device, text) = (try await hub.device(), try await hub.link())
      try hub.renew()
      try await hub.withClient(of: device) { client in
        let refused = try await hubFailure { _ = try await client.account() }
        #expect(refused.kind == .certificateChanged && refused.advice?.contains("new link") == true)
        #expect(refused.description.contains(device.hub.description))
      }
      // It learns no code.
      let refused = try await hubFailure {
        _ = try await DeviceClient.enroll(
          by: try Enrolment(text), name: "x", file: DeviceFile("\(hub.folder.path)/other.json"))
      }
      #expect(refused.kind == .certificateChanged)
      #expect(try await hub.hub.accounts.devices(of: device.zone).count == 1)
    }
  }

  /// Without a fingerprint the system's roots decide, and they know nothing of the hub's own certificate.
  @Test func withoutAFingerprintTheSystemDecides() async throws {
    try await SecureHub.with { hub in
      let enrolment = try Enrolment(try await hub.link(withFingerprint: false))
      let refused = try await hubFailure {
        _ = try await DeviceClient.enroll(
          by: enrolment, name: "x", file: DeviceFile("\(hub.folder.path)/other.json"))
      }
      #expect(refused.kind == .notTrusted && refused.advice?.contains("clock") == true, "\(refused)")
    }
  }

  // MARK: - Removed, away, back

  @Test func aRemovedDeviceIsToldSo() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        var news = client.news().makeAsyncIterator()
        guard case .logs(let logs, isBeginning: true) = await news.next() else {
          throw Command.Failure(description: "no beginning")
        }
        #expect(logs.map(\.share) == [nil] && logs.map(\.last) == [0])
        try await hub.hub.accounts.removeDevice(client.device.id, of: client.device.zone)
        var last: HubFailure?
        while last?.kind != .deviceRemoved {
          guard case .failure(let failure) = await news.next() else { continue }
          last = failure
        }
        #expect(last?.description.contains("alice@hub.example") == true && last?.advice?.contains("new link") == true)
        let refused = try await hubFailure { _ = try await client.account() }
        #expect(refused.kind == .deviceRemoved)
      }
    }
  }

  @Test func newsGoOnWhenTheHubIsBack() async throws {
    let place = try HubPlace()
    _ = try place.serve()
    let device = try await DeviceClient.enroll(
      by: try Enrolment(place.link), name: "laptop", file: DeviceFile(place.device), limits: .brief)
    let client = DeviceClient(device, limits: .brief)
    var news = client.news().makeAsyncIterator()
    for round in 0..<3 {
      var failures: Set<HubFailure.Kind> = []
      while let element = await news.next() {
        guard case .failure(let failure) = element else { break }
        failures.insert(failure.kind)
      }
      #expect(failures.isSubset(of: round == 0 ? [] : [.unreachable]))
      place.hub.kill()
      // The stream ends, and then nobody answers.
      for _ in 0..<3 {
        guard case .failure = await news.next() else {
          throw Command.Failure(description: "news of a hub that is away")
        }
      }
      _ = try place.serve()
    }
    await client.shutdown()
    place.hub.kill()
  }

  @Test func aHubThatIsAwayIsNamed() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        await hub.stop()
        let refused = try await hubFailure { _ = try await client.account() }
        #expect(refused.kind == .unreachable && refused.hub == client.device.hub.description && refused.advice != nil)
      }
    }
  }

  // MARK: - Feeds and logs

  @Test func aFeedIsReadInPages() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        for number in 1...5 { try await hub.send(.document("\(number)", "x", serial: Int64(number))) }
        var (names, token, hasMore): ([String], String?, Bool) = ([], nil, true)
        while hasMore {
          let page = try await client.feed(after: token, limit: 2)
          names += page.items.flatMap(\.places).map { String(decoding: $0.name, as: UTF8.self) }
          (token, hasMore) = (page.token, page.hasMore)
        }
        #expect(names == ["1", "2", "3", "4", "5"])
        // A long poll is answered by news.
        async let waiting = client.feed(after: token, wait: 30)
        try await hub.send(.document("6", "x", serial: 6))
        #expect(try await waiting.items.count == 1)
        let refused = try await hubFailure { _ = try await client.feed(after: String(repeating: "1", count: 64)) }
        #expect(refused.kind == .refused(.gone))
      }
    }
  }

  /// A place is good in its log and its epoch; of an epoch before, it leads to where both part.
  @Test func aPlaceIsOfItsTime() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        func names(_ page: LogPage<Event>) -> [String] { page.events.map(\.data.item.name) }
        for number in 1...3 { try await hub.send(.document("\(number)", "x", serial: Int64(number))) }
        let page = try await client.events(.own, after: nil)
        #expect(names(page) == ["1", "2", "3"] && page.next == 3 && page.last == 3)
        #expect(names(try await client.events(.own, after: HubLogPlace(number: 1, token: page.token))) == ["2", "3"])
        let ahead = HubLogPlace(number: 9, token: page.token)
        #expect(try await hubFailure { _ = try await client.events(.own, after: ahead) }.kind == .refused(.gone))
        try await hub.beginEpoch()
        try await hub.send(.document("4", "x", serial: 4))
        for number in [0, 2, 3, 9] as [Int64] {
          let place = HubLogPlace(number: number, token: page.token)
          #expect(try await hubFailure { _ = try await client.events(.own, after: place) }.kind == .refused(.gone))
          let after = try await client.events(.own, former: place)
          #expect(names(after) == (min(number, 3) + 1...4).map { "\($0)" }, "\(number)")
          #expect(names(try await client.events(.own, after: HubLogPlace(number: 3, token: after.token))) == ["4"])
        }
        let stranger = HubLogPlace(number: 1, token: String(repeating: "1", count: 48))
        #expect(try await hubFailure { _ = try await client.events(.own, former: stranger) }.kind == .refused(.gone))
      }
    }
  }
}

extension SecureHub {
  /// Has the store begin an epoch, as a copy of it does. Devices and sessions stay.
  func beginEpoch() async throws {
    let database = hub.database
    try await database.write { connection in try Zone.beginEpochs(in: &connection) }
  }
}
