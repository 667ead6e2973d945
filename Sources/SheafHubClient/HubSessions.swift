import Crypto
import Foundation
import NIOHTTP1
import SheafModel
import SheafWire

/// The session of a device, which is begun when it is needed and renewed before its hour is over.
///
/// However many callers need one, one is begun. No clock but the hub's own counts: how long a session is good is the
/// difference of two of its times.
actor HubSessions {
  /// The longest that a session may say it is good, in seconds.
  private static let longest = 86_400.0
  /// The part of its time after which a session is renewed.
  private static let renewal = 0.8

  private let transport: HubTransport
  /// Begins a session by a nonce.
  private let prove: @Sendable (Challenge) async throws -> SessionToken
  private var current: (token: String, until: ContinuousClock.Instant)?
  private var beginning: Task<String, any Error>?

  init(_ transport: HubTransport, _ prove: @escaping @Sendable (Challenge) async throws -> SessionToken) {
    self.transport = transport
    self.prove = prove
  }

  /// Those of a device at its own hub.
  init(_ transport: HubTransport, _ device: Device) {
    self.init(transport) { challenge in
      let request = try device.request(.session, challenge, at: transport.hub)
      do {
        return try await transport.fetch(try HubRequest(posting: request, to: "/v1/sessions"))
      } catch let failure as HubFailure where failure.kind == .refused(.wiped) {
        throw HubFailure(
          .deviceWiped, transport.hub,
          "removed this device of \(device.handle), which is to destroy what it has of the account",
          advice: "connect anew with a new link")
      } catch let failure as HubFailure where failure.kind == .refused(.unauthorized) {
        throw HubFailure(
          .deviceRemoved, transport.hub,
          "does not know this device of \(device.handle) any more: it was removed, or the hub has another address",
          advice: "connect anew with a new link")
      }
    }
  }

  /// The token of a session that is good for a while.
  func token() async throws -> String {
    if let current, ContinuousClock.now < current.until { return current.token }
    let task = beginning ?? Task { try await begin() }
    beginning = task
    return try await Self.value(of: task)
  }

  /// What a task returns. Who is cancelled meanwhile waits for it no more; others may.
  private static func value(of task: Task<String, any Error>) async throws -> String {
    let (values, told) = AsyncThrowingStream<String, any Error>.makeStream()
    Task {
      do {
        told.yield(try await task.value)
        told.finish()
      } catch {
        told.finish(throwing: error)
      }
    }
    for try await value in values { return value }
    throw CancellationError()
  }

  /// Notes that the hub takes a token no more.
  func refused(_ token: String) { if current?.token == token { current = nil } }

  private func begin() async throws -> String {
    defer { beginning = nil }
    let (challenge, start) = try await transport.challenge()
    let session = try await prove(challenge)
    guard let end = Timestamp(rfc3339: session.expires), session.token.utf8.count <= 1_024,
      session.token.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else { throw transport.nonsense("begins a session that is none") }
    let seconds = Double(end.seconds) - Double(start.seconds)
    guard seconds > 0, seconds <= Self.longest else { throw transport.nonsense("begins a session of \(seconds) s") }
    current = (session.token, ContinuousClock.now + .seconds(seconds * Self.renewal))
    return session.token
  }
}

extension HubTransport {
  /// A nonce to sign, and when the hub made it, by its clock.
  func challenge() async throws -> (challenge: Challenge, time: Timestamp) {
    let challenge: Challenge = try await fetch(HubRequest("/v1/challenges", method: .POST))
    // A text with a zero byte could shift the borders between the parts of the message.
    guard !challenge.nonce.utf8.contains(0), challenge.nonce.utf8.count <= 1_024,
      let time = Timestamp(rfc3339: challenge.expires)
    else { throw nonsense("gives out a nonce that is none") }
    return (challenge, time)
  }
}

extension Device {
  /// A request that its key signs.
  func request(_ purpose: DeviceProof.Purpose, _ challenge: Challenge, at hub: HubIdentity) throws -> SessionRequest {
    let address = hub.address.description
    let proof = DeviceProof(
      purpose: purpose, address: address, secret: challenge.nonce, key: key.publicKey.x963Representation)
    return SessionRequest(
      zone: zone, device: id, nonce: challenge.nonce, address: address,
      signature: try key.signature(for: proof.message).derRepresentation)
  }
}
