import Crypto
import Foundation
import SheafHub
import SheafModel
import SheafWire
import Synchronization

/// A machine with a key, as a hub knows it.
struct TestDevice: Sendable {
  let secret = P256.Signing.PrivateKey()
  var key: Data { secret.publicKey.x963Representation }

  func sign(_ purpose: DeviceProof.Purpose, address: String, _ text: String) throws -> Data {
    let proof = DeviceProof(purpose: purpose, address: address, secret: text, key: key)
    return try secret.signature(for: proof.message).derRepresentation
  }

  func enrollment(_ code: String, at address: String = TestHub.address, name: String = "laptop") throws -> DeviceRequest
  {
    DeviceRequest(
      code: code, name: name, address: address, key: key, signature: try sign(.enroll, address: address, code))
  }

  func session(
    _ device: EnrolledDevice, _ challenge: Challenge, at address: String = TestHub.address,
    purpose: DeviceProof.Purpose = .session
  ) throws -> SessionRequest {
    SessionRequest(
      zone: device.zone, device: device.device, nonce: challenge.nonce, address: address,
      signature: try sign(purpose, address: address, challenge.nonce))
  }
}

/// A clock that stands still until a test moves it.
final class TestClock: Sendable {
  private let time = Mutex(Timestamp(seconds: 1_800_000_000))

  var clock: HubClock { HubClock { [self] in time.withLock { $0 } } }

  func advance(seconds: Int64) { time.withLock { $0 = Timestamp(seconds: $0.seconds + seconds) } }
}

extension Result where Failure == any Error {
  /// The result of an asynchronous body.
  init(catching body: () async throws -> Success) async {
    do { self = .success(try await body()) } catch { self = .failure(error) }
  }
}

/// The kind of problem that a body ends with; nil if it succeeds.
func problem(_ body: () async throws -> Void) async throws -> Problem.Kind? {
  do {
    try await body()
    return nil
  } catch let error as HubError {
    return error.kind
  }
}
