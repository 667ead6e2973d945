import Crypto
import Foundation
import SheafModel
import SheafWire

/// The people of other hubs whom a share lets in. The share knows a root of each, which that person's hub gave, and not
/// their devices. As a value: an operation changes it or throws.
struct IdentityGuests: Sendable {
  /// Seconds for which a root is good. A person's hub gives a new one before, and whenever their devices change.
  static let rootLifetime: Int64 = 7 * 86_400
  /// Seconds for which what was asked to be signed may come back.
  static let challengeLifetime: Int64 = 120
  /// Challenges that wait; the oldest goes for one more.
  static let mostChallenges = 1_000
  private static let challengeBytes = 32

  private var guests: [IdentityRoot: (handle: String, until: Timestamp)] = [:]
  private var challenges: [Data: Timestamp] = [:]

  /// Lets a person in by a root, and by none that they had before.
  mutating func admit(_ handle: String, by root: IdentityRoot, at now: Timestamp) {
    remove(handle)
    guests[root] = (handle, Timestamp(seconds: now.seconds + Self.rootLifetime))
  }

  /// Lets a person in no more.
  mutating func remove(_ handle: String) { guests = guests.filter { $0.value.handle != handle } }

  /// Something to sign, once.
  mutating func challenge(at now: Timestamp, using random: inout some RandomNumberGenerator) -> Data {
    challenges = challenges.filter { $0.value > now }
    if challenges.count >= Self.mostChallenges, let oldest = challenges.min(by: { $0.value < $1.value }) {
      challenges[oldest.key] = nil
    }
    let challenge = Data((0..<Self.challengeBytes).map { _ in UInt8.random(in: 0...255, using: &random) })
    challenges[challenge] = Timestamp(seconds: now.seconds + Self.challengeLifetime)
    return challenge
  }

  /// Lets in who signed a challenge with a key under a root that is known. The challenge is spent, whatever comes of it.
  ///
  /// - Returns: the person's handle.
  /// - Throws: ``HubError`` of kind `unauthorized` for a challenge that was not given, is spent or too old; `invalid` for
  ///   a proof of another form, or a signature that is none; `forbidden` for a root that is not known, or no more.
  mutating func enter(by proof: IdentityProof, signing challenge: Data, at now: Timestamp) throws -> String {
    guard let until = challenges.removeValue(forKey: challenge), until > now else {
      throw HubError(.unauthorized, "the challenge is spent, too old, or none")
    }
    guard let root = IdentityRoot(above: proof), try DeviceKey(proof.publicKey).verifies(proof.signature, of: challenge)
    else { throw HubError(.invalid, "the proof proves nothing") }
    guard let guest = guests[root], guest.until > now else {
      throw HubError(.forbidden, "nobody is let in by this root")
    }
    return guest.handle
  }
}
