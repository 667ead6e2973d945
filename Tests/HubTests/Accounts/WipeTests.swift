import Foundation
import HubKit
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Devices that are removed to destroy what they have, on every engine.
@Suite struct WipeTests {
  @Test(arguments: StoreEngine.available)
  func aDeviceIsToldOnceItProvesItself(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let hub = try await TestHub(database)
      let accounts = hub.accounts
      let zone = try await hub.account()
      let (laptop, desktop, stranger) = (TestDevice(), TestDevice(), TestDevice())
      let (kept, lost) = (try await hub.enroll(laptop, in: zone), try await hub.enroll(desktop, in: zone))
      let session = try await accounts.beginSession(try desktop.session(lost, accounts.challenge()))
      let foreign = try await hub.account("bob@hub.example")
      #expect(try await problem { try await accounts.removeDevice(lost.device, of: foreign, wipes: true) } == .notFound)
      try await accounts.removeDevice(lost.device, of: zone, wipes: true)
      #expect(try await accounts.caller(token: session.token) == nil)
      let asked = try #require(try await accounts.devices(of: zone).last?.wipe)
      #expect(try await accounts.devices(of: zone).map(\.id) == [kept.device, lost.device] && asked.done == nil)
      #expect(try await accounts.devices(of: foreign).isEmpty)

      func begin(_ device: TestDevice, purpose: DeviceProof.Purpose = .session) async throws -> Problem.Kind? {
        try await problem {
          _ = try await accounts.beginSession(try device.session(lost, accounts.challenge(), purpose: purpose))
        }
      }
      func tell(_ device: TestDevice, purpose: DeviceProof.Purpose = .wipe) async throws -> Problem.Kind? {
        try await problem {
          try await accounts.noteWiped(try device.session(lost, accounts.challenge(), purpose: purpose))
        }
      }
      // Nobody else learns that it was removed, or why; a proof for something else tells nothing.
      #expect(try await begin(stranger) == .unauthorized)
      #expect(try await begin(laptop) == .unauthorized)
      #expect(try await begin(desktop, purpose: .enroll) == .unauthorized)
      #expect(try await tell(stranger) == .unauthorized)
      #expect(try await tell(desktop, purpose: .session) == .unauthorized)
      #expect(try await accounts.devices(of: zone).last?.wipe == asked)
      // It is told however often it asks, until it tells that it is done.
      for _ in 0..<2 { #expect(try await begin(desktop) == .wiped) }
      hub.clock.advance(seconds: 60)
      #expect(try await tell(desktop) == nil)
      let done = try await accounts.devices(of: zone).last?.wipe?.done
      #expect(done != nil)
      hub.clock.advance(seconds: 60)
      #expect(try await tell(desktop) == nil)
      #expect(try await accounts.devices(of: zone).last?.wipe?.done == done)
      // The other machine goes on.
      _ = try await accounts.beginSession(try laptop.session(kept, accounts.challenge()))
      #expect(try await hub.hub.check() == [])
      // Asked for again, nothing changes; without, the hub forgets it.
      try await accounts.removeDevice(lost.device, of: zone, wipes: true)
      #expect(try await accounts.devices(of: zone).last?.wipe?.done == done)
      try await accounts.removeDevice(lost.device, of: zone)
      #expect(try await accounts.devices(of: zone).map(\.id) == [kept.device])
      #expect(try await begin(desktop) == .unauthorized)
      #expect(try await tell(desktop) == .unauthorized)
      try await accounts.removeDevice(kept.device, of: zone, wipes: true)
      try await accounts.remove(zone: zone)
      #expect(try await database.read { try $0.query("SELECT zone FROM wipes") }.isEmpty)
    }
  }

  /// Those that are done make room for others; those that are not are never forgotten.
  @Test(arguments: StoreEngine.available)
  func thereIsALimit(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let hub = try await TestHub(database)
      let accounts = hub.accounts
      let zone = try await hub.account()
      var first: (device: TestDevice, enrolled: EnrolledDevice)?
      for _ in 0..<Wipes.most {
        let device = TestDevice()
        let enrolled = try await hub.enroll(device, in: zone)
        try await accounts.removeDevice(enrolled.device, of: zone, wipes: true)
        if first == nil { first = (device, enrolled) }
        hub.clock.advance(seconds: 1)
      }
      let last = try await hub.enroll(TestDevice(), in: zone)
      #expect(try await problem { try await accounts.removeDevice(last.device, of: zone, wipes: true) } == .conflict)
      #expect(try await accounts.devices(of: zone).first { $0.wipe == nil }?.id == last.device)
      let (device, enrolled) = try #require(first)
      try await accounts.noteWiped(try device.session(enrolled, accounts.challenge(), purpose: .wipe))
      try await accounts.removeDevice(last.device, of: zone, wipes: true)
      let ids = try await accounts.devices(of: zone).map(\.id)
      #expect(ids.count == Wipes.most && !ids.contains(enrolled.device) && ids.contains(last.device))
      #expect(try await hub.hub.check() == [])
    }
  }
}
