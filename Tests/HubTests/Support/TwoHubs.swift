import AsyncHTTPClient
import Crypto
import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Synchronization

@testable import SheafHub

/// Leads requests of hubs to hubs of this test, by the names by which they know each other.
final class RoutedDialer: HubDialing {
  typealias Route = @Sendable (HubExchange) async throws -> HubAnswer

  private let routes = Mutex<[String: Route]>([:])
  private let asked = Mutex<[(host: String, exchange: HubExchange)]>([])

  /// What was asked so far.
  var exchanges: [(host: String, exchange: HubExchange)] { asked.withLock { $0 } }

  /// - Parameter route: Nil for a host where nobody answers.
  func lead(_ host: String, _ route: Route?) { routes.withLock { $0[host] = route } }

  func lead(_ host: String, toHubAt base: String) {
    lead(host) { try await HubDialer.answer(to: $0, at: base, HTTPClient.Configuration()) }
  }

  func exchange(_ exchange: HubExchange, with address: HubAddress) async throws -> HubAnswer {
    asked.withLock { $0.append((address.description, exchange)) }
    guard let route = routes.withLock({ $0[address.description] }) else {
      throw HubDialFailure("nobody answers at \(address)")
    }
    return try await route(exchange)
  }
}

/// Two hubs that know nothing of each other but the names: `one.example`, and `two.example`.
struct TwoHubs {
  let one: RunningHub
  let two: RunningHub
  let dialer: RoutedDialer

  static func with(_ engine: StoreEngine = .sqlite, _ body: (TwoHubs) async throws -> Void) async throws {
    let dialer = RoutedDialer()
    try await served("one.example", engine, dialer) { one in
      try await served("two.example", engine, dialer) { two in
        try await body(TwoHubs(one: one, two: two, dialer: dialer))
      }
    }
  }

  /// Serves a hub that speaks for the domain of its name.
  static func served(
    _ name: String, _ engine: StoreEngine, _ dialer: RoutedDialer, _ body: (RunningHub) async throws -> Void
  ) async throws {
    try await engine.withDatabase { database in
      let hub = try await TestHub(database, address: name, and: ["127.0.0.1:0"], domains: [name], dialer: dialer)
      let server = try RunningHub.server(of: hub)
      try await server.start()
      let base = "http://\(hub.hub.addresses.all.last ?? "")"
      dialer.lead(name, toHubAt: base)
      let client = try HubClient(base: base)
      let result = await Result { try await body(RunningHub(hub: hub, client: client)) }
      await client.close()
      await server.stop()
      try result.get()
    }
  }

  /// A document of alice's at the first hub that is shared, and the path of the share.
  func share(_ alice: String, _ name: String = "plan.md") async throws -> (state: ShareState, path: String) {
    let document = Send.document(name, "Monday", serial: Int64.random(in: 1..<1 << 40))
    _ = try await one.client.send("POST", "/v1/sends", json: SendRequest(groups: [[document]]), token: alice)
    let answer = try await one.client.send(
      "PUT", "/v1/items/\(document.item)/share", json: ShareSettings(), token: alice)
    let state: ShareState = try answer.decode()
    return (state, "/v1/shares/\(state.share)")
  }

  func invite(
    _ handle: String, to path: String, _ settings: ParticipantSettings = .init(), by token: String
  ) async throws -> HubClient.Answer {
    try await one.client.send("PUT", Self.participant(handle, of: path), json: settings, token: token)
  }

  static func participant(_ handle: String, of path: String) -> String {
    "\(path)/participants/\(handle.replacing("@", with: "%40"))"
  }
}

/// A device of somebody at one hub, with the keys that it deposits there, by which it is known at others.
struct GuestDevice: Sendable {
  let hub: RunningHub
  let machine: TestDevice
  let enrolled: EnrolledDevice
  let token: String
  let secrets: [Data: P256.Signing.PrivateKey]

  init(_ handle: String, at hub: RunningHub, keys: Int = 4) async throws {
    let known = try? await hub.hub.accounts.zone(of: try AccountHandle(handle))
    let zone = if let known { known } else { try await hub.hub.account(handle) }
    (self.hub, machine) = (hub, TestDevice())
    enrolled = try await hub.client.enroll(machine, code: try await hub.hub.accounts.makeCode(for: zone).code)
    token = try await hub.client.begin(machine, enrolled)
    let made = (0..<keys).map { _ in P256.Signing.PrivateKey() }
    secrets = Dictionary(uniqueKeysWithValues: made.map { ($0.publicKey.x963Representation, $0) })
    if keys > 0 {
      let answer = try await hub.client.send("POST", "/v1/keys", json: try deposit(Array(secrets.keys)), token: token)
      guard answer.status == 200 else { throw HubDialFailure("\(answer)") }
    }
  }

  func deposit(_ keys: [Data]) throws -> KeyDeposit {
    let address = hub.client.address
    return KeyDeposit(
      address: address,
      keys: try keys.map {
        KeyDeposit.Key(key: $0, signature: try machine.sign(.deposit, address: address, Base64URL.text($0)))
      })
  }

  /// Tells its own hub that the account takes part in a share of another one.
  func acceptAbroad(_ share: WireID) async throws -> HubClient.Answer {
    try await hub.client.send("PUT", "/v1/collaborations/\(share)/acceptance", token: token)
  }

  func inbox() async throws -> [InboxEntry] {
    try await hub.client.send("GET", "/v1/inbox", token: token).decode(InboxPage.self).entries
  }

  func collaboration(_ share: WireID) async throws -> Collaboration {
    try await hub.client.send("GET", "/v1/collaborations/\(share)", token: token).decode()
  }

  /// What proves to the hub of a share that this device is one of somebody's whom it lets in.
  func proof(
    _ known: Collaboration, nonce: String, address: String = "one.example", share: WireID? = nil
  ) throws -> GuestRequest {
    guard let key = known.key, let secret = secrets[key],
      let tree = IdentityTree(leaves: known.leaves.map { [UInt8]($0) }),
      let index = tree.leaves.firstIndex(of: IdentityTree.leaf(key)), let hashes = tree.inclusionHashes(of: index)
    else { throw HubDialFailure("no key stands for the device") }
    let share = share ?? known.share
    let message = GuestRequest.message(share: share, nonce: nonce, address: address, key: key)
    return GuestRequest(
      zone: known.zone, share: share, nonce: nonce, address: address,
      proof: IdentityProof(
        publicKey: key, publicKeyIndex: index, inclusionHashes: hashes,
        signature: try secret.signature(for: message).derRepresentation))
  }

  /// Asks the hub of a share for a session.
  func enter(_ known: Collaboration, at other: RunningHub) async throws -> HubClient.Answer {
    let challenge: Challenge = try await other.client.send("POST", "/v1/challenges").decode()
    return try await other.client.send("POST", "/v1/guests", json: try proof(known, nonce: challenge.nonce))
  }

  /// The token of a session for a share at another hub.
  func session(_ share: WireID, at other: RunningHub) async throws -> String {
    let answer = try await enter(try await collaboration(share), at: other)
    return try answer.decode(SessionToken.self).token
  }
}
