import Crypto
package import Foundation
package import SheafModel

/// A key that both sides of a webhook know (Standard Webhooks, "Signature scheme").
package struct WebhookSecret: Sendable, Equatable {
  private static let prefix = "whsec_"
  /// Bytes of a key; the specification recommends 24 to 64.
  private static let length = 16...1024

  private let key: SymmetricKey

  /// - Parameter text: `whsec_` and base64.
  /// - Throws: `invalid`, without the text.
  package init(_ text: String) throws(SheafError) {
    let encoded = text.hasPrefix(Self.prefix) ? String(text.dropFirst(Self.prefix.count)) : text
    guard let bytes = Data(base64Encoded: encoded), Self.length.contains(bytes.count) else {
      throw SheafError(
        .invalid, subject: "webhook secret", reason: "is not whsec_ and the base64 of at least 16 bytes",
        advice: "make one with: echo whsec_$(head -c 32 /dev/urandom | base64)")
    }
    key = SymmetricKey(data: bytes)
  }

  /// `v1,` and the base64 of the HMAC-SHA256 of id, timestamp and body.
  package func signature(id: String, timestamp: Int64, body: some DataProtocol) -> String {
    var code = HMAC<SHA256>(key: key)
    code.update(data: Data("\(id).\(timestamp).".utf8))
    code.update(data: body)
    return "v1," + Data(code.finalize()).base64EncodedString()
  }
}
