import Foundation
import Glibc
import HubKit
import Logging
import MountKit
import SheafHubStore
import SheafModel
import SheafWire

@testable import SheafHub
@testable import SheafHubClient

/// A hub with a certificate of its own that is served by TLS in this process.
final class SecureHub {
  let folder: TemporaryFolder
  let test: TestHub
  private var server: HubServer?

  private init(_ database: any Database, in folder: TemporaryFolder) async throws {
    self.folder = folder
    test = try await TestHub(database, address: "127.0.0.1:0")
    try renew()
    try await start()
  }

  /// Runs `body` with a served hub on an empty store.
  static func with(_ body: (SecureHub) async throws -> Void) async throws {
    try await StoreEngine.sqlite.withDatabase { database in
      let folder = try TemporaryFolder()
      defer { try? folder.remove() }
      let hub = try await SecureHub(database, in: folder)
      let result = await Result { try await body(hub) }
      await hub.stop()
      try result.get()
    }
  }

  var hub: Hub { test.hub }
  private var certificate: String { "\(folder.path)/certificate.pem" }
  private var key: String { "\(folder.path)/key.pem" }

  private func start() async throws {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let server = try HubServer(
      hub: hub, listen: try ListenAddress("127.0.0.1:0"),
      certificate: try CertificateFiles(certificate: certificate, key: key, logger: logger), logger: logger)
    try await server.start()
    self.server = server
  }

  /// Ends it, for good.
  func stop() async {
    await server?.stop()
    server = nil
  }

  /// Gives it a new certificate with a new key.
  func renew() throws {
    let made = try HubCertificate.make(for: [try HubAddress("127.0.0.1:1")], now: HubClock.system.now)
    try made.certificate.write(toFile: certificate, atomically: true, encoding: .utf8)
    try made.key.write(toFile: key, atomically: true, encoding: .utf8)
  }

  /// Gives it a new certificate for its key, with another name, issuer and time.
  func renewKeepingTheKey() throws {
    _ = try Command([
      "openssl", "req", "-x509", "-new", "-key", key, "-subj", "/CN=renewed", "-days", "1", "-out",
      certificate + ".new",
    ]).succeed()
    guard rename(certificate + ".new", certificate) == 0 else { throw Command.Failure(description: "rename") }
  }

  var fingerprint: String {
    get throws { try HubCertificate.fingerprint(pem: try String(contentsOfFile: certificate, encoding: .utf8)) }
  }

  /// An enrolment link of an account, which is made at need.
  func link(_ handle: String = "alice@hub.example", withFingerprint: Bool = true) async throws -> String {
    let known = try? await hub.accounts.zone(of: try AccountHandle(handle))
    let zone = if let known { known } else { try await test.account(handle) }
    let code = try await hub.accounts.makeCode(for: zone).code
    return EnrollmentLink(
      scheme: "https", address: hub.addresses.first?.description ?? "", code: code,
      fingerprint: withFingerprint ? try fingerprint : nil
    ).description
  }

  /// A new device of an account.
  func device(_ handle: String = "alice@hub.example") async throws -> Device {
    try await DeviceClient.enroll(
      by: try Enrolment(try await link(handle)), name: "laptop", file: DeviceFile("\(folder.path)/\(UUID())"),
      limits: .brief)
  }

  /// Runs `body` with a client of a new device.
  func withClient(
    _ handle: String = "alice@hub.example", _ body: (DeviceClient) async throws -> Void
  ) async throws {
    try await withClient(of: try await device(handle), body)
  }

  func withClient(of device: Device, _ body: (DeviceClient) async throws -> Void) async throws {
    let client = DeviceClient(device, limits: .brief)
    let result = await Result { try await body(client) }
    await client.shutdown()
    try result.get()
  }

  /// Has an account send, without a device's requests.
  func send(_ group: Send..., by handle: String = "alice@hub.example") async throws {
    let zone = try await hub.accounts.zone(of: try AccountHandle(handle))
    let author = SendAuthor(device: "test", deviceName: "test", handle: handle, name: handle, now: hub.clock.now)
    let answer = try await hub.zones.send(SendRequest(groups: [group]), to: zone, by: author)
    guard answer.verdicts.allSatisfy({ $0.outcome == .done }) else {
      throw Command.Failure(description: "\(answer.verdicts)")
    }
  }
}

extension DeviceClientLimits {
  /// Limits that lose no time in tests.
  static var brief: DeviceClientLimits {
    var limits = DeviceClientLimits()
    limits.pauses = (first: 0.02, longest: 0.2)
    return limits
  }
}
