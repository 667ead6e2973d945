import Foundation
import HubKit
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Accounts, devices and sessions, on every engine.
@Suite struct AccountTests {
  @Test(arguments: StoreEngine.available)
  func handlesAreTakenOnce(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let hub = try await TestHub(database)
      let zone = try await hub.account()
      #expect(try await problem { _ = try await hub.account() } == .conflict)
      _ = try await hub.account("bob@hub.example")
      let accounts = try await hub.accounts.list()
      #expect(accounts.map(\.handle) == ["alice@hub.example", "bob@hub.example"])
      #expect(accounts[0] == AccountFacts(handle: "alice@hub.example", name: nil, zone: zone, quota: nil, used: 0))
      try await hub.accounts.setQuota(5_000, of: zone)
      #expect(try await hub.accounts.facts(of: zone).quota == 5_000)
      try await hub.accounts.remove(zone: zone)
      #expect(try await problem { _ = try await hub.accounts.facts(of: zone) } == .notFound)
      #expect(try await hub.account() != zone)
      #expect(try await hub.hub.check() == [])
    }
  }

  @Test(arguments: StoreEngine.available)
  func aCodeIsForOneDevice(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let hub = try await TestHub(database)
      let zone = try await hub.account()
      let code = try await hub.accounts.makeCode(for: zone).code
      let (laptop, thief) = (TestDevice(), TestDevice())
      // A preview, or a request that proves nothing, spends no code.
      var forged = try laptop.enrollment(code)
      forged = DeviceRequest(
        code: code, name: "x", address: forged.address, key: thief.key, signature: forged.signature)
      #expect(try await problem { _ = try await hub.accounts.enroll(forged) } == .invalid)
      let elsewhere = try laptop.enrollment(code, at: "other.example")
      #expect(try await problem { _ = try await hub.accounts.enroll(elsewhere) } == .invalid)
      #expect(try await problem { _ = try await hub.accounts.preview(forged) } == .invalid)
      for machine in [thief, laptop] {
        let preview = try await hub.accounts.preview(try machine.enrollment(code))
        #expect(preview.zone == zone && preview.handle == "alice@hub.example")
      }
      let device = try await hub.accounts.enroll(try laptop.enrollment(code))
      #expect(device.zone == zone && device.handle == "alice@hub.example")
      // Its answer may have been lost.
      #expect(try await hub.accounts.enroll(try laptop.enrollment(code)) == device)
      #expect(try await problem { _ = try await hub.accounts.enroll(try thief.enrollment(code)) } == .forbidden)
      #expect(try await problem { _ = try await hub.accounts.preview(try thief.enrollment(code)) } == .forbidden)
      #expect(try await hub.accounts.preview(try laptop.enrollment(code)).zone == zone)
      #expect(try await hub.accounts.devices(of: zone).count == 1)
      let made = try await hub.accounts.makeCode(for: zone).code
      hub.clock.advance(seconds: 86_400)
      #expect(try await problem { _ = try await hub.accounts.enroll(try thief.enrollment(made)) } == .forbidden)
      #expect(try await problem { _ = try await hub.accounts.preview(try thief.enrollment(made)) } == .forbidden)
      #expect(try await problem { _ = try await hub.accounts.enroll(try thief.enrollment("guess")) } == .forbidden)
      #expect(try await hub.accounts.devices(of: zone).map(\.id) == [device.device])
    }
  }

  @Test(arguments: StoreEngine.available)
  func manyDevicesAtOnceSpendACodeOnce(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let hub = try await TestHub(database)
      let zone = try await hub.account()
      let code = try await hub.accounts.makeCode(for: zone).code
      let outcomes = await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<8 {
          group.addTask { (try? await hub.accounts.enroll(try TestDevice().enrollment(code))) != nil }
        }
        return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }
      #expect(outcomes == 1)
      #expect(try await hub.accounts.devices(of: zone).count == 1)
    }
  }

  @Test(arguments: StoreEngine.available)
  func aSessionNeedsTheDevicesSignatureOfAFreshNonce(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let hub = try await TestHub(database)
      let zone = try await hub.account()
      let laptop = TestDevice()
      let device = try await hub.enroll(laptop, in: zone)
      let accounts = hub.accounts

      let challenge = accounts.challenge()
      let request = try laptop.session(device, challenge)
      let session = try await accounts.beginSession(request)
      let caller = try #require(try await accounts.caller(token: session.token))
      #expect(caller.zone == zone && caller.device == device.device && caller.handle == "alice@hub.example")
      // Replayed.
      #expect(try await problem { _ = try await accounts.beginSession(request) } == .unauthorized)
      // Passed on by another hub; with another machine's key; with a nonce of one's own; a signature for enrolling.
      let relayed = try laptop.session(device, accounts.challenge(), at: "evil.example")
      #expect(try await problem { _ = try await accounts.beginSession(relayed) } == .unauthorized)
      let stranger = try TestDevice().session(device, accounts.challenge())
      #expect(try await problem { _ = try await accounts.beginSession(stranger) } == .unauthorized)
      let own = try laptop.session(device, Challenge(nonce: String(challenge.nonce.reversed()), expires: ""))
      #expect(try await problem { _ = try await accounts.beginSession(own) } == .unauthorized)
      let other = accounts.challenge()
      let purpose = SessionRequest(
        zone: zone, device: device.device, nonce: other.nonce, address: TestHub.address,
        signature: try laptop.sign(.enroll, address: TestHub.address, other.nonce))
      #expect(try await problem { _ = try await accounts.beginSession(purpose) } == .unauthorized)
      // Too late.
      let late = accounts.challenge()
      hub.clock.advance(seconds: Nonces.lifetime)
      #expect(
        try await problem { _ = try await accounts.beginSession(try laptop.session(device, late)) } == .unauthorized)
      #expect(try await accounts.caller(token: session.token) != nil)
      hub.clock.advance(seconds: 3_600)
      #expect(try await accounts.caller(token: session.token) == nil)
      #expect(try await accounts.caller(token: String(session.token.dropLast()) + "A") == nil)
    }
  }

  /// Whoever has a lost machine may have made links by it.
  @Test(arguments: StoreEngine.available)
  func aRemovedDeviceLeavesNoLink(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let hub = try await TestHub(database)
      let accounts = hub.accounts
      let zone = try await hub.account()
      let other = try await hub.account("bob@hub.example")
      let (laptop, desktop, thief) = (TestDevice(), TestDevice(), TestDevice())
      let lost = try await hub.enroll(laptop, in: zone)
      let spent = try await accounts.makeCode(for: zone).code
      let kept = try await accounts.enroll(try desktop.enrollment(spent))
      let codes = [try await accounts.makeCode(for: zone), try await accounts.makeCode(for: zone)]
      let foreign = try await accounts.makeCode(for: other).code
      #expect(try await accounts.openCodes(of: zone) == codes.map(\.expires))
      #expect(try await accounts.removeDevice(lost.device, of: zone, by: kept.device) == 2)
      for code in codes {
        #expect(try await problem { _ = try await accounts.enroll(try thief.enrollment(code.code)) } == .forbidden)
      }
      #expect(try await accounts.openCodes(of: zone).isEmpty)
      #expect(try await accounts.openCodes(of: other).count == 1)
      // The answer for the other machine may have been lost.
      #expect(try await accounts.enroll(try desktop.enrollment(spent)) == kept)
      // Who moves to another machine makes a link first.
      let next = try await accounts.makeCode(for: zone).code
      #expect(try await accounts.removeDevice(kept.device, of: zone, by: kept.device) == 0)
      _ = try await accounts.enroll(try laptop.enrollment(next))
      // One that is to be wiped leaves none either. Forgetting it later ends no link that was made since.
      let wiped = try await hub.enroll(TestDevice(), in: zone)
      let left = try await accounts.makeCode(for: zone).code
      #expect(try await accounts.removeDevice(wiped.device, of: zone, wipes: true) == 1)
      #expect(try await problem { _ = try await accounts.enroll(try thief.enrollment(left)) } == .forbidden)
      let since = try await accounts.makeCode(for: zone).code
      #expect(try await accounts.removeDevice(wiped.device, of: zone) == 0)
      _ = try await accounts.enroll(try thief.enrollment(since))
      // One that is too old is none that is revoked.
      _ = try await accounts.makeCode(for: zone)
      hub.clock.advance(seconds: 86_400)
      _ = try await accounts.makeCode(for: zone)
      #expect(try await accounts.revokeCodes(of: zone) == 1)
      #expect(try await accounts.revokeCodes(of: zone) == 0)
      #expect(try await problem { _ = try await accounts.enroll(try laptop.enrollment(foreign)) } == .forbidden)
      #expect(try await hub.hub.check() == [])
    }
  }

  @Test(arguments: StoreEngine.available)
  func aRemovedDeviceHasNoSession(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let hub = try await TestHub(database)
      let zone = try await hub.account()
      let (laptop, desktop) = (TestDevice(), TestDevice())
      let device = try await hub.enroll(laptop, in: zone)
      let kept = try await hub.enroll(desktop, in: zone)
      let accounts = hub.accounts
      let token = try await accounts.beginSession(try laptop.session(device, accounts.challenge())).token
      let other = try await accounts.beginSession(try desktop.session(kept, accounts.challenge())).token
      let both = [
        try #require(try await accounts.caller(token: token)), try #require(try await accounts.caller(token: other)),
      ]
      #expect(try await accounts.valid(both) == Set(both))
      // Nobody removes a machine of somebody else.
      let stranger = try await hub.account("bob@hub.example")
      #expect(
        try await problem { try await accounts.removeDevice(device.device, of: stranger) } == .notFound)
      try await accounts.removeDevice(device.device, of: zone)
      #expect(try await accounts.caller(token: token) == nil)
      #expect(try await accounts.valid(both) == [both[1]])
      let again = try laptop.session(device, accounts.challenge())
      #expect(try await problem { _ = try await accounts.beginSession(again) } == .unauthorized)
      #expect(try await hub.hub.check() == [])
      try await accounts.remove(zone: zone)
      #expect(try await accounts.caller(token: other) == nil)
      #expect(try await hub.hub.check() == [])
    }
  }

  @Test(arguments: StoreEngine.available)
  func codesSessionsAndDevicesHaveLimits(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let hub = try await TestHub(database)
      let zone = try await hub.account()
      let accounts = hub.accounts
      for _ in 0..<Accounts.mostCodes { _ = try await accounts.makeCode(for: zone) }
      #expect(try await problem { _ = try await accounts.makeCode(for: zone) } == .tooMany)
      hub.clock.advance(seconds: Accounts.codeLifetime)
      let laptop = TestDevice()
      let device = try await hub.enroll(laptop, in: zone)
      var tokens: [String] = []
      for _ in 0...Accounts.mostSessions {
        hub.clock.advance(seconds: 1)
        tokens.append(try await accounts.beginSession(try laptop.session(device, accounts.challenge())).token)
      }
      #expect(try await accounts.caller(token: tokens[0]) == nil)
      for token in tokens.dropFirst() { #expect(try await accounts.caller(token: token) != nil) }
      for _ in 1..<Accounts.mostDevices { _ = try await hub.enroll(TestDevice(), in: zone) }
      #expect(try await problem { _ = try await hub.enroll(TestDevice(), in: zone) } == .conflict)
    }
  }

  /// The store has hashes of codes and tokens; whoever reads it can use none.
  @Test func theFileHasNoSecret() async throws {
    try await StoreEngine.sqlite.withPlace { place in
      let database = try place.open()
      let hub = try await TestHub(database)
      let zone = try await hub.account()
      let laptop = TestDevice()
      let code = try await hub.accounts.makeCode(for: zone).code
      let device = try await hub.accounts.enroll(try laptop.enrollment(code))
      let token = try await hub.accounts.beginSession(try laptop.session(device, hub.accounts.challenge())).token
      await database.close()
      var bytes = try Data(contentsOf: URL(fileURLWithPath: place.location))
      bytes += (try? Data(contentsOf: URL(fileURLWithPath: place.location + "-wal"))) ?? Data()
      #expect(bytes.firstRange(of: Data("alice@hub.example".utf8)) != nil)
      for secret in [code, token] {
        #expect(bytes.firstRange(of: Data(secret.utf8)) == nil)
        // The first 16 bytes are the zone.
        let random = Data(try #require(Base64URL.bytes(secret)).dropFirst(16))
        #expect(bytes.firstRange(of: random) == nil)
      }
    }
  }
}
