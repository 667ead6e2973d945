import Crypto
import Foundation
import SheafWire

/// The public key of a device, which verifies what the device signed.
struct DeviceKey: Sendable {
  private let key: P256.Signing.PublicKey

  /// Takes an uncompressed point.
  ///
  /// - Throws: ``HubError`` of kind `invalid` for bytes that are no point of the curve.
  init(_ bytes: some ContiguousBytes & Collection<UInt8>) throws {
    guard bytes.count == DeviceProof.keyLength, let key = try? P256.Signing.PublicKey(x963Representation: bytes) else {
      throw HubError(.invalid, "key: not an uncompressed point of P-256")
    }
    self.key = key
  }

  var bytes: [UInt8] { [UInt8](key.x963Representation) }

  /// Whether `signature` is this key's, for a proof of this purpose.
  func verifies(_ signature: Data, of purpose: DeviceProof.Purpose, address: String, secret: String) -> Bool {
    // A text with a zero byte could shift the borders between the parts of the message.
    if address.utf8.contains(0) || secret.utf8.contains(0) { return false }
    let proof = DeviceProof(purpose: purpose, address: address, secret: secret, key: key.x963Representation)
    return verifies(signature, of: proof.message)
  }

  /// Whether `signature` is this key's, of these bytes.
  func verifies(_ signature: Data, of message: Data) -> Bool {
    guard signature.count <= DeviceProof.longestSignature,
      let signature = try? P256.Signing.ECDSASignature(derRepresentation: signature)
    else { return false }
    return key.isValidSignature(signature, for: message)
  }
}
