import Crypto
import Foundation
import SheafModel
import SheafWire

extension DeviceClient {
  // MARK: - Keys for other hubs

  /// Deposits as many keys as the hub wants, which will stand for this device in shares of other hubs.
  ///
  /// - Parameter file: Where they are kept.
  /// - Throws: ``HubFailure``, or ``SheafError`` of the file.
  package func depositKeys(from file: KeyFile) async throws {
    let stock: KeyStock
    do {
      stock = try await fetch("/v1/keys")
    } catch let failure as HubFailure where failure.kind == .refused(.notFound) {
      // An older hub knows none.
      return
    }
    let wanted = min(stock.wanted, KeyDeposit.mostKeys)
    // Not one request for each share.
    guard wanted > KeyDeposit.mostKeys / 2 else { return }
    let address = device.hub.address.description
    let own = device.key.publicKey.x963Representation
    let keys = try file.make(wanted).map { key in
      let point = key.publicKey.x963Representation
      let proof = DeviceProof(purpose: .deposit, address: address, secret: Base64URL.text(point), key: own)
      return KeyDeposit.Key(key: point, signature: try device.key.signature(for: proof.message).derRepresentation)
    }
    let _: KeyStock = try await fetch(HubRequest(posting: KeyDeposit(address: address, keys: keys), to: "/v1/keys"))
  }

  /// What this device needs to prove itself to the hub of a share.
  func collaboration(_ share: WireID) async throws -> Collaboration {
    let known: Collaboration = try await fetch("/v1/collaborations/\(share)")
    guard known.share == share, [8, 16].contains(known.leaves.count),
      known.leaves.allSatisfy({ $0.count == SHA256.byteCount })
    else { throw nonsense("tells of a share at another hub that is none") }
    return known
  }
}

/// Begins sessions of a device at the hub of a share, which is another one than the device's own: it proves that one of
/// the keys under the root that the other hub knows is its own.
struct GuestSessions: Sendable {
  let own: DeviceClient
  let share: WireID
  let hub: HubIdentity
  let keys: KeyFile

  /// Begins a session.
  ///
  /// A refusal may be that of a moment, since roots change with every device of the person. Whether the person takes
  /// part is what the inbox at their own hub says.
  func begin(_ challenge: Challenge, _ transport: HubTransport) async throws -> SessionToken {
    let known = try await collaboration()
    guard let point = known.key, let key = try keys.key(of: point) else {
      throw away("does not know this device yet: its own hub has no key for it in this share")
    }
    let leaf = Data(SHA256.hash(data: point))
    guard let index = known.leaves.firstIndex(of: leaf) else {
      throw own.nonsense("tells of a share at another hub without this device")
    }
    let address = hub.address.description
    let message = GuestRequest.message(share: share, nonce: challenge.nonce, address: address, key: point)
    let request = GuestRequest(
      zone: known.zone, share: share, nonce: challenge.nonce, address: address,
      proof: IdentityProof(
        publicKey: point, publicKeyIndex: index, inclusionHashes: Self.inclusionHashes(of: index, in: known.leaves),
        signature: try key.signature(for: message).derRepresentation))
    do {
      return try await transport.fetch(try HubRequest(posting: request, to: "/v1/guests"))
    } catch let failure as HubFailure where failure.kind == .refused(.forbidden) {
      throw away("does not let this device in")
    }
  }

  private func collaboration() async throws -> Collaboration {
    do {
      let known = try await own.collaboration(share)
      guard known.hub == hub.description else { throw away("is not where the share is any more") }
      return known
    } catch let failure as HubFailure where failure.kind == .refused(.notFound) {
      throw away("lets nobody in by this account's hub any more")
    }
  }

  private func away(_ reason: String) -> HubFailure {
    HubFailure(.unreachable, hub, reason, advice: "if it goes on, ask the owner of the share")
  }

  /// The hashes that lead from a leaf up to the root; the leaves are 8 or 16.
  static func inclusionHashes(of index: Int, in leaves: [Data]) -> [Data] {
    var (level, index, hashes) = (leaves, index, [Data]())
    while level.count > 1 {
      hashes.append(level[index ^ 1])
      level = stride(from: 0, to: level.count, by: 2).map { Data(SHA256.hash(data: level[$0] + level[$0 + 1])) }
      index /= 2
    }
    return hashes
  }
}

extension HubIdentity {
  /// A hub that this device's own hub names.
  ///
  /// - Returns: nil for anything but a hub with a certificate that the system's roots vouch for, at the usual port.
  package init?(elsewhere text: String) {
    guard text.hasPrefix("https://"), let address = HubAddress(parsing: String(text.dropFirst("https://".count))),
      let identity = try? HubIdentity(scheme: "https", address: address.description, fingerprint: nil),
      identity.description == text, address.description == address.host
    else { return nil }
    self = identity
  }
}
