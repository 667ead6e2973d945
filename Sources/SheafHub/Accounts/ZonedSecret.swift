import Crypto
import Foundation
import SheafModel
import SheafWire

/// A secret that says of which zone it is: an enrolment code, or a session's token. The store has its hash only, in
/// that zone, so no table has to be searched for it.
struct ZonedSecret: Sendable {
  /// Random bytes of an enrolment code, which people copy.
  static let codeLength = 16
  /// Random bytes of a token.
  static let tokenLength = 32

  let zone: String
  private let bytes: [UInt8]

  /// Makes a new one.
  init(zone: UUID, length: Int) {
    self.zone = zone.uuidString.lowercased()
    var bytes = withUnsafeBytes(of: zone.uuid) { Array($0) }
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<length { bytes.append(UInt8.random(in: 0...255, using: &generator)) }
    self.bytes = bytes
  }

  /// Takes what a caller sent; nil for anything of another form.
  init?(_ text: String, length: Int) {
    guard text.utf8.count == Base64URL.length(of: 16 + length), let bytes = Base64URL.bytes(text),
      bytes.count == 16 + length
    else { return nil }
    self.bytes = bytes
    zone = bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)).uuidString.lowercased() }
  }

  var text: String { Base64URL.text(bytes) }

  var hash: [UInt8] { Array(SHA256.hash(data: bytes)) }
}
