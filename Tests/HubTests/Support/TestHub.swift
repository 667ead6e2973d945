import HubKit
import SheafHub
import SheafHubStore
import SheafModel
import SheafWire

/// A hub on an empty store, without a server.
struct TestHub: Sendable {
  static let address = "hub.example"

  let hub: Hub
  let clock: TestClock

  /// - Parameters:
  ///   - others: Further addresses.
  ///   - dialer: The way to other hubs.
  init(
    _ database: any Database, address: String = address, and others: [String] = [], domains: [String] = [],
    dialer: any HubDialing = HubDialer(), clock: TestClock = TestClock()
  ) async throws {
    self.clock = clock
    try await Hub.prepare(database)
    hub = try await Hub(
      database: database, addresses: HubAddresses(try ([address] + others).map { try HubAddress($0) }),
      domains: domains, dialer: dialer, clock: clock.clock)
  }

  var accounts: Accounts { hub.accounts }

  /// Makes an account.
  ///
  /// - Returns: its zone.
  func account(_ handle: String = "alice@hub.example") async throws -> String {
    try await accounts.add(try AccountHandle(handle), name: nil)
    return try await accounts.zone(of: try AccountHandle(handle))
  }

  /// Enrolls a device in a zone.
  func enroll(_ device: TestDevice, in zone: String) async throws -> EnrolledDevice {
    try await accounts.enroll(try device.enrollment(try await accounts.makeCode(for: zone).code))
  }
}
