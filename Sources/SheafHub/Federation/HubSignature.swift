import Crypto
import Foundation
import SheafModel
import SheafWire

/// The signature of a request from one hub to another: HTTP Message Signatures (RFC 9421) with `ecdsa-p256-sha256`, in
/// the one form that hubs write. It covers method, authority, path and body (`Content-Digest`, RFC 9530), so no request
/// can be made another one, and none be passed on to another hub.
///
/// A request that is repeated while it is good has no effect that it did not have before.
struct HubSignature: Hashable, Sendable {
  /// Seconds by which the clocks of two hubs may differ, with the way of a request.
  static let tolerance: Int64 = 300
  private static let label = "sheaf"
  /// Two numbers of 32 bytes.
  private static let length = 64

  /// The domain for which the sender speaks, by which its key is found.
  let domain: String
  /// Seconds since 1970.
  let created: Int64
  private let signature: Data

  /// What is signed.
  struct Message: Hashable, Sendable {
    let path: String
    let body: Data

    /// The value of `Content-Digest`.
    var digest: String { "sha-256=:\(Data(SHA256.hash(data: body)).base64EncodedString()):" }

    fileprivate func base(authority: String, _ parameters: String) -> Data {
      Data(
        """
        "@method": POST
        "@authority": \(authority)
        "@path": \(path)
        "content-digest": \(digest)
        "@signature-params": \(parameters)
        """.utf8)
    }
  }

  private var parameters: String {
    """
    ("@method" "@authority" "@path" "content-digest");created=\(created);keyid="\(domain)";alg="ecdsa-p256-sha256"
    """
  }

  /// Signs a request.
  init(
    of message: Message, to authority: String, by key: P256.Signing.PrivateKey, for domain: String, at now: Timestamp
  ) throws {
    let unsigned = HubSignature(domain: domain, created: now.seconds, signature: Data())
    self.init(
      domain: domain, created: now.seconds,
      signature: try key.signature(for: message.base(authority: authority, unsigned.parameters)).rawRepresentation)
  }

  private init(domain: String, created: Int64, signature: Data) {
    (self.domain, self.created, self.signature) = (domain, created, signature)
  }

  /// Takes the fields `Signature-Input` and `Signature` of a request; nil for any that a hub does not write.
  init?(input: String, signature: String) {
    guard input.utf8.count <= 512, signature.utf8.count <= 256 else { return nil }
    let words = input.split(separator: ";", omittingEmptySubsequences: false)
    guard words.count == 4, let created = Int64(words[1].dropFirst("created=".count)), created > 0 else { return nil }
    let domain = String(words[2].dropFirst("keyid=\"".count).dropLast())
    guard let address = HubAddress(parsing: domain), address.description == domain,
      let bytes = Data(base64Encoded: String(signature.dropFirst("\(Self.label)=:".count).dropLast())),
      bytes.count == Self.length
    else { return nil }
    self.init(domain: domain, created: created, signature: bytes)
    // What is written anew is what came, to the byte: so nothing else was in it.
    guard inputField == input, signatureField == signature else { return nil }
  }

  var inputField: String { "\(Self.label)=\(parameters)" }
  var signatureField: String { "\(Self.label)=:\(signature.base64EncodedString()):" }

  /// Whether it is of this request, by this key, and of now.
  ///
  /// - Parameter authorities: The addresses of the receiver, one of which the sender dialled.
  func isGood(
    of message: Message, to authorities: [String], by key: P256.Signing.PublicKey, at now: Timestamp
  ) -> Bool {
    guard abs(now.seconds - created) <= Self.tolerance,
      let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
    else { return false }
    return authorities.contains { key.isValidSignature(signature, for: message.base(authority: $0, parameters)) }
  }
}
