import Crypto
import Foundation
import SheafModel
import SheafWire

/// Gives out nonces, and knows its own again, without a row for those that nobody uses.
///
/// A nonce is a time, 16 random bytes and a code of both by the hub's secret (HMAC with SHA-256), so every process of a
/// hub knows those of the others. That each is used only once is for the zone to see: it keeps the used ones until they
/// expire.
struct Nonces: Sendable {
  /// Seconds for which a nonce is good.
  static let lifetime: Int64 = 120

  private let key: SymmetricKey

  /// - Parameter secret: The hub's secret.
  init(secret: [UInt8]) {
    key = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: SymmetricKey(data: secret), info: Data("sheaf-hub nonces".utf8), outputByteCount: 32)
  }

  func make(now: Timestamp) -> Challenge {
    let expires = now.seconds + Self.lifetime
    var bytes = withUnsafeBytes(of: expires.bigEndian) { Array($0) }
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<16 { bytes.append(UInt8.random(in: 0...255, using: &generator)) }
    let code = HMAC<SHA256>.authenticationCode(for: bytes, using: key)
    return Challenge(
      nonce: Base64URL.text(bytes + Array(code)), expires: Timestamp(seconds: expires).secondsText)
  }

  /// The bytes and the end of a nonce that is good at `now`; nil for any other text.
  func check(_ text: String, now: Timestamp) -> (bytes: [UInt8], expires: Timestamp)? {
    guard text.utf8.count == Base64URL.length(of: 56), let bytes = Base64URL.bytes(text), bytes.count == 56,
      HMAC<SHA256>.isValidAuthenticationCode(bytes[24...], authenticating: bytes[..<24], using: key)
    else { return nil }
    let expires = bytes[..<8].reduce(Int64(0)) { $0 << 8 | Int64($1) }
    guard expires > now.seconds else { return nil }
    return (bytes, Timestamp(seconds: expires))
  }
}
