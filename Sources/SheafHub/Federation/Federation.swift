import Crypto
import Foundation
import SheafHubStore
import SheafModel
import SheafWire
import Synchronization

/// A hub among others: the domains for which it speaks, the key by which others know it, and what it knows of others.
///
/// Rules:
/// 1. A hub speaks for a domain if that domain's `/.well-known/sheaf` names it, and it names the domain. Both are asked
///    by TLS, so whoever has the domain decides.
/// 2. A request from another hub counts for the handles of its domains, and for no other.
/// 3. What another hub answers is a stranger's: bounded, checked, and in no error that a third one gets.
package struct Federation: Sendable {
  static let wellKnown = "/.well-known/sheaf"
  static let keysPath = "/v1/federation/keys"
  static let rootsPath = "/v1/federation/roots"
  static let inboxPath = "/v1/federation/inbox"
  private static let secretName = "federation"

  /// The domains for which this hub speaks.
  package let domains: [String]
  private let addresses: HubAddresses
  private let key: P256.Signing.PrivateKey
  private let dialer: any HubDialing
  private let clock: HubClock
  private let known = KnownHubs()

  /// Another hub.
  struct Peer: Sendable {
    let address: HubAddress
    let key: P256.Signing.PublicKey
  }

  init(
    domains: [String], addresses: HubAddresses, dialer: any HubDialing, clock: HubClock, key: P256.Signing.PrivateKey
  ) {
    self.domains = domains
    self.addresses = addresses
    self.dialer = dialer
    self.clock = clock
    self.key = key
  }

  /// The hub's key, which is made the first time.
  static func key(in database: any Database) async throws -> P256.Signing.PrivateKey {
    let made = [UInt8](P256.Signing.PrivateKey().rawRepresentation)
    let bytes = try await database.write { connection in
      try connection.execute(
        "INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", [.text(secretName), .blob(made)])
      let rows = try connection.query("SELECT value FROM secrets WHERE name = $1", [.text(secretName)])
      guard let row = rows.first else { throw HubStoreError.corrupt("the hub has no key") }
      return try row.blob(0)
    }
    guard let key = try? P256.Signing.PrivateKey(rawRepresentation: bytes) else {
      throw HubStoreError.corrupt("the hub's key is none")
    }
    return key
  }

  /// What the hub says of itself.
  var description: HubDescription {
    HubDescription(
      hub: "https://\(addresses.first?.description ?? "")", domains: domains, key: key.publicKey.x963Representation)
  }

  /// What follows the `@` of a handle.
  static func domain(of handle: String) -> String {
    handle.firstIndex(of: "@").map { String(handle[handle.index(after: $0)...]) } ?? ""
  }

  /// Whether a handle is of one of this hub's domains.
  func speaks(for handle: String) -> Bool { domains.contains(Self.domain(of: handle)) }

  /// Whether a handle may be of another hub, and this one federates.
  func isElsewhere(_ handle: String) -> Bool {
    !domains.isEmpty && (try? AccountHandle(handle)) != nil && !speaks(for: handle)
      && Self.isDomain(Self.domain(of: handle))
  }

  /// Whether a text is a domain of the Internet, in lower case.
  package static func isDomain(_ text: String) -> Bool {
    let labels = text.split(separator: ".", omittingEmptySubsequences: false)
    return labels.count > 1 && !labels.contains("") && labels.last?.contains(where: \.isLetter) ?? false
      && HubAddress(parsing: text)?.description == text
  }

  // MARK: - Other hubs

  /// The hub that speaks for a domain.
  ///
  /// - Throws: ``HubDialFailure``, or the cancellation of the task.
  func peer(for domain: String) async throws -> Peer {
    if let peer = known.peer(for: domain) { return peer }
    let peer = try await find(domain)
    known.note(peer, for: domain)
    return peer
  }

  private func find(_ domain: String) async throws -> Peer {
    guard Self.isDomain(domain), let home = HubAddress(parsing: domain) else {
      throw HubDialFailure("\(domain.printable) is no domain")
    }
    var said = try await description(at: home)
    guard said.hub.hasPrefix("https://"), case let text = String(said.hub.dropFirst("https://".count)),
      let address = HubAddress(parsing: text), address.description == text
    else { throw HubDialFailure("\(domain) names no hub") }
    if address != home { said = try await description(at: address) }
    guard said.hub == "https://\(address)", said.domains?.contains(domain) ?? false,
      let bytes = said.key, bytes.count == DeviceProof.keyLength,
      let key = try? P256.Signing.PublicKey(x963Representation: bytes)
    else { throw HubDialFailure("the hub at \(address) does not speak for \(domain)") }
    return Peer(address: address, key: key)
  }

  private func description(at address: HubAddress) async throws -> HubDescription {
    let answer = try await dialer.exchange(HubExchange(path: Self.wellKnown, body: nil, headers: []), with: address)
    guard answer.status == 200, let said: HubDescription = try? JSONText.decode(HubDescription.self, answer.body) else {
      throw HubDialFailure("\(address) does not say which hub it is")
    }
    return said
  }

  /// Posts a value to the hub that speaks for a domain, for one of this hub's.
  ///
  /// - Parameter handle: Of this hub: the one for whom it speaks.
  /// - Throws: ``HubDialFailure``, or the cancellation of the task.
  func post(_ value: some Encodable, to path: String, of domain: String, for handle: String) async throws -> HubAnswer {
    guard speaks(for: handle) else { throw HubDialFailure("this hub does not speak for the domain of the owner") }
    let peer = try await peer(for: domain)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let message = HubSignature.Message(path: path, body: try encoder.encode(value))
    let signature = try HubSignature(
      of: message, to: peer.address.description, by: key, for: Self.domain(of: handle), at: clock.now)
    let answer = try await dialer.exchange(
      HubExchange(
        path: path, body: [UInt8](message.body),
        headers: [
          ("content-digest", message.digest), ("signature-input", signature.inputField),
          ("signature", signature.signatureField),
        ]), with: peer.address)
    // Who speaks for the domain now may be another hub.
    if answer.status == 401 { known.forget(domain) }
    return answer
  }

  /// The domain of the hub that signed a request to this one, with its address.
  ///
  /// - Throws: ``HubError`` of kind `unauthorized`.
  func sender(
    of message: HubSignature.Message, input: String?, signature: String?
  ) async throws -> (domain: String, peer: Peer) {
    guard let input, let signature, let signature = HubSignature(input: input, signature: signature),
      !domains.contains(signature.domain)
    else { throw HubError(.unauthorized, "the request is signed by no hub") }
    let (authorities, now) = (addresses.all, clock.now)
    func isGood(_ peer: Peer) -> Bool { signature.isGood(of: message, to: authorities, by: peer.key, at: now) }
    do {
      var peer = try await peer(for: signature.domain)
      // A hub that has another key since is asked again, though not at each request.
      if !isGood(peer), known.isOld(signature.domain) {
        known.forget(signature.domain)
        peer = try await self.peer(for: signature.domain)
      }
      if isGood(peer) { return (signature.domain, peer) }
    } catch is HubDialFailure {
      throw HubError(.unauthorized, "the hub of \(signature.domain) cannot be asked")
    }
    throw HubError(.unauthorized, "the request is not signed by the hub of \(signature.domain)")
  }
}

/// Other hubs that were asked lately, so that not every request asks them again.
private final class KnownHubs: Sendable {
  private static let lifetime = Duration.seconds(600)
  /// After which one that seems to have another key is asked again.
  private static let age = Duration.seconds(10)
  private static let most = 1_024

  private let hubs = Mutex<[String: (peer: Federation.Peer, asked: ContinuousClock.Instant)]>([:])

  func peer(for domain: String) -> Federation.Peer? {
    hubs.withLock { hubs in hubs[domain].flatMap { .now - $0.asked < Self.lifetime ? $0.peer : nil } }
  }

  func note(_ peer: Federation.Peer, for domain: String) {
    hubs.withLock { hubs in
      if hubs.count >= Self.most { hubs = [:] }
      hubs[domain] = (peer, .now)
    }
  }

  func isOld(_ domain: String) -> Bool {
    hubs.withLock { hubs in hubs[domain].map { .now - $0.asked > Self.age } ?? true }
  }

  func forget(_ domain: String) { hubs.withLock { _ = $0.removeValue(forKey: domain) } }
}
