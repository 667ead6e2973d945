import Crypto
import Foundation
import HubKit
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// What lets a guest in at a hub, and what must not.
@Suite struct GuestProofTests {
  private static let bob = "bob@two.example"

  /// A share of alice's with bob invited, and a device of his.
  private struct Invited {
    let hubs: TwoHubs
    let alice: String
    let bob: GuestDevice
    let share: ShareState
    let path: String

    init(_ hubs: TwoHubs) async throws {
      self.hubs = hubs
      alice = try await hubs.one.member("alice@one.example").token
      bob = try await GuestDevice(GuestProofTests.bob, at: hubs.two)
      (share, path) = try await hubs.share(alice)
      _ = try await hubs.invite(GuestProofTests.bob, to: path, by: alice)
    }

    func nonce() async throws -> String {
      try await hubs.one.client.send("POST", "/v1/challenges").decode(Challenge.self).nonce
    }

    /// What comes of a request; nil for a session.
    func enter(_ request: GuestRequest) async throws -> Problem.Kind? {
      let answer = try await hubs.one.client.send("POST", "/v1/guests", json: request)
      return answer.status == 201 ? nil : answer.problem
    }
  }

  @Test func whatProvesNothingLetsNobodyIn() async throws {
    try await TwoHubs.with { hubs in
      let invited = try await Invited(hubs)
      let (bob, share) = (invited.bob, invited.share.share)
      let known = try await bob.collaboration(share)
      func refused(
        _ what: Comment, as kind: Problem.Kind, _ change: (IdentityProof) throws -> IdentityProof
      ) async throws {
        let request = try bob.proof(known, nonce: try await invited.nonce())
        let forged = GuestRequest(
          zone: request.zone, share: share, nonce: request.nonce, address: request.address,
          proof: try change(request.proof))
        #expect(try await invited.enter(forged) == kind, what)
      }
      func changed(_ proof: IdentityProof, _ body: (inout IdentityProof) throws -> Void) rethrows -> IdentityProof {
        var proof = proof
        try body(&proof)
        return proof
      }
      try await refused("an index outside", as: .invalid) { changed($0) { $0.publicKeyIndex += 8 } }
      // Another place is under another root, which nobody has.
      try await refused("another index", as: .forbidden) { changed($0) { $0.publicKeyIndex ^= 1 } }
      try await refused("a hash less", as: .invalid) { changed($0) { $0.inclusionHashes.removeLast() } }
      try await refused("a hash more", as: .forbidden) {
        changed($0) { $0.inclusionHashes.append($0.inclusionHashes[0]) }
      }
      try await refused("five hashes", as: .invalid) {
        changed($0) { $0.inclusionHashes += [$0.inclusionHashes[0], $0.inclusionHashes[0]] }
      }
      try await refused("a short hash", as: .invalid) { changed($0) { $0.inclusionHashes[1].removeLast() } }
      try await refused("another hash", as: .forbidden) { changed($0) { $0.inclusionHashes[1][0] ^= 1 } }
      try await refused("a raw key", as: .invalid) { changed($0) { $0.publicKey = $0.publicKey.dropFirst() } }
      try await refused("a compressed key", as: .invalid) {
        try changed($0) {
          $0.publicKey = try P256.Signing.PublicKey(x963Representation: $0.publicKey).compressedRepresentation
        }
      }
      try await refused("no signature", as: .invalid) { changed($0) { $0.signature = Data() } }
      try await refused("another signature", as: .invalid) { changed($0) { $0.signature[20] ^= 1 } }
      // A key of one's own, signed well, among the hashes of another.
      let own = P256.Signing.PrivateKey()
      let nonce = try await invited.nonce()
      let made = try bob.proof(known, nonce: nonce)
      let key = own.publicKey.x963Representation
      let message = GuestRequest.message(share: share, nonce: nonce, address: "one.example", key: key)
      let forged = GuestRequest(
        zone: known.zone, share: share, nonce: nonce, address: "one.example",
        proof: IdentityProof(
          publicKey: key, publicKeyIndex: made.proof.publicKeyIndex, inclusionHashes: made.proof.inclusionHashes,
          signature: try own.signature(for: message).derRepresentation))
      #expect(try await invited.enter(forged) == .forbidden)
      // That failed for the proof alone.
      #expect(try await invited.enter(made) == nil)
    }
  }

  @Test func aNonceIsGoodOnceAndHereAndInTime() async throws {
    try await TwoHubs.with { hubs in
      let invited = try await Invited(hubs)
      let (bob, share) = (invited.bob, invited.share.share)
      let known = try await bob.collaboration(share)
      let request = try bob.proof(known, nonce: try await invited.nonce())
      #expect(try await invited.enter(request) == nil)
      #expect(try await invited.enter(request) == .unauthorized)
      let foreign: Challenge = try await hubs.two.client.send("POST", "/v1/challenges").decode()
      #expect(try await invited.enter(try bob.proof(known, nonce: foreign.nonce)) == .unauthorized)
      #expect(try await invited.enter(try bob.proof(known, nonce: "made up")) == .unauthorized)
      // Another hub passes on what was signed for it.
      let passed = try bob.proof(known, nonce: try await invited.nonce(), address: "two.example")
      #expect(try await invited.enter(passed) == .unauthorized)
      let nonce = try await invited.nonce()
      let relayed = try bob.proof(known, nonce: nonce, address: "two.example")
      #expect(
        try await invited.enter(
          GuestRequest(
            zone: relayed.zone, share: share, nonce: nonce, address: "one.example", proof: relayed.proof)) == .invalid)
      let late = try bob.proof(known, nonce: try await invited.nonce())
      hubs.one.hub.clock.advance(seconds: Nonces.lifetime)
      #expect(try await invited.enter(late) == .unauthorized)
    }
  }

  @Test func aProofForOneShareIsNoneForAnother() async throws {
    try await TwoHubs.with { hubs in
      let invited = try await Invited(hubs)
      let (other, path) = try await hubs.share(invited.alice, "other.md")
      let known = try await invited.bob.collaboration(invited.share.share)
      // Bob was not invited to the other one.
      #expect(
        try await invited.enter(
          try invited.bob.proof(known, nonce: try await invited.nonce(), share: other.share)) == .forbidden)
      // Then he was, and by other keys.
      _ = try await hubs.invite(Self.bob, to: path, by: invited.alice)
      let second = try await invited.bob.collaboration(other.share)
      #expect(second.key != known.key && Set(second.leaves).isDisjoint(with: known.leaves))
      #expect(
        try await invited.enter(
          try invited.bob.proof(known, nonce: try await invited.nonce(), share: other.share)) == .forbidden)
      let nonce = try await invited.nonce()
      let proof = try invited.bob.proof(known, nonce: nonce).proof
      let moved = GuestRequest(
        zone: known.zone, share: other.share, nonce: nonce, address: "one.example", proof: proof)
      #expect(try await invited.enter(moved) == .invalid)
      #expect(try await invited.bob.enter(second, at: hubs.one).status == 201)
      // A share that there is not, and a zone that there is not.
      for (zone, share) in [(known.zone, WireID()), (WireID(), known.share)] {
        let nonce = try await invited.nonce()
        let made = try invited.bob.proof(known, nonce: nonce, share: share)
        #expect(
          try await invited.enter(
            GuestRequest(zone: zone, share: share, nonce: nonce, address: "one.example", proof: made.proof))
            == .forbidden)
      }
    }
  }

  @Test func sessionsAndRootsEndInTime() async throws {
    try await TwoHubs.with { hubs in
      let invited = try await Invited(hubs)
      let (one, share) = (hubs.one.client, invited.share.share)
      let token = try await invited.bob.session(share, at: hubs.one)
      let link = ShareLink(url: invited.share.url)
      #expect(try await one.send("POST", "/v1/acceptances", json: link, token: token).status == 200)
      #expect(try await one.send("GET", invited.path, token: token).status == 200)
      func advance(_ seconds: Int64) { for hub in [hubs.one, hubs.two] { hub.hub.clock.advance(seconds: seconds) } }
      advance(Guests.sessionLifetime)
      #expect(try await one.send("GET", invited.path, token: token).problem == .unauthorized)
      let known = try await invited.bob.collaboration(share)
      #expect(try await invited.bob.enter(known, at: hubs.one).status == 201)
      // A root is good for a week; his hub tells it again each day.
      advance(Guests.rootLifetime - Guests.sessionLifetime - 60)
      #expect(try await invited.bob.enter(known, at: hubs.one).status == 201)
      try await hubs.two.hub.hub.upkeep()
      try await hubs.two.hub.hub.courier.deliverAll()
      advance(Guests.sessionLifetime)
      #expect(try await invited.bob.enter(known, at: hubs.one).status == 201)
      advance(Guests.rootLifetime)
      #expect(try await invited.bob.enter(known, at: hubs.one).problem == .forbidden)
      try await hubs.one.hub.hub.upkeep()
      #expect(try await hubs.one.hub.hub.check() == [])
    }
  }

  /// A device deposits what it signed, as many as the hub wants, and each once.
  @Test func depositsAreTheDevicesOwn() async throws {
    try await TwoHubs.with { hubs in
      let two = hubs.two.client
      let bob = try await GuestDevice(Self.bob, at: hubs.two, keys: 2)
      func deposit(_ deposit: KeyDeposit) async throws -> HubClient.Answer {
        try await two.send("POST", "/v1/keys", json: deposit, token: bob.token)
      }
      func stock() async throws -> KeyStock { try await two.send("GET", "/v1/keys", token: bob.token).decode() }
      #expect(try await stock() == KeyStock(unused: 2, wanted: Collaborations.mostUnused - 2))
      let again: KeyStock = try await deposit(try bob.deposit(Array(bob.secrets.keys))).decode()
      #expect(again.unused == 2)
      let other = P256.Signing.PrivateKey().publicKey.x963Representation
      var forged = try bob.deposit([other])
      forged = KeyDeposit(
        address: forged.address,
        keys: [KeyDeposit.Key(key: other, signature: try bob.deposit([bob.enrolledKey]).keys[0].signature)])
      #expect(try await deposit(forged).problem == .invalid)
      #expect(try await deposit(KeyDeposit(address: "x.example", keys: [])).problem == .invalid)
      #expect(try await deposit(try bob.deposit([Data(repeating: 4, count: 65)])).problem == .invalid)
      func made(_ count: Int) -> [Data] {
        (0..<count).map { _ in P256.Signing.PrivateKey().publicKey.x963Representation }
      }
      #expect(try await deposit(try bob.deposit(made(KeyDeposit.mostKeys + 1))).problem == .invalid)
      let full: KeyStock = try await deposit(try bob.deposit(made(KeyDeposit.mostKeys))).decode()
      #expect(full == KeyStock(unused: Collaborations.mostUnused, wanted: 0))
    }
  }
}

extension GuestDevice {
  /// A key of the device that it did deposit.
  fileprivate var enrolledKey: Data { secrets.keys.first ?? machine.key }
}
