public import FoundationEssentials

/// The bytes that a device signs with its P-256 key, to prove to a hub that it has the key.
///
/// The bytes are `sheaf`, the purpose, the hub's address as the device dialled it, and the one-time text that the hub
/// gave out, each followed by a zero byte, and then the public key. If a hub passes a proof on to another one, the
/// address is wrong there. A proof for one purpose is none for another.
public struct DeviceProof: Hashable, Sendable {
  /// The reason why a device proves itself.
  public enum Purpose: String, Sendable, Codable, CaseIterable {
    /// To become a device of the account that gave out a code.
    case enroll
    /// To begin a session.
    case session
    /// To tell that what the device had of the account is destroyed.
    case wipe
    /// To deposit a key that stands for the device in a share of another hub.
    case deposit
    /// To begin a session for one share at another hub than the device's own.
    case guest
  }

  /// Bytes of a public key: an uncompressed point (SEC 1, section 2.3.3).
  public static let keyLength = 65
  /// The longest signature in bytes: two integers of 33 bytes as DER.
  public static let longestSignature = 72

  public let purpose: Purpose
  /// The host and, unless it is 443, the port: `hub.example`, `hub.example:8443`.
  public let address: String
  /// The enrolment code, the nonce, the key that is deposited, or the share with the nonce.
  public let secret: String
  public let key: Data

  public init(purpose: Purpose, address: String, secret: String, key: Data) {
    self.purpose = purpose
    self.address = address
    self.secret = secret
    self.key = key
  }

  /// The bytes to sign (ECDSA with SHA-256; the signature is DER).
  public var message: Data {
    var bytes = Data()
    for part in ["sheaf", purpose.rawValue, address, secret] {
      bytes.append(contentsOf: part.utf8)
      bytes.append(0)
    }
    bytes.append(key)
    return bytes
  }
}
