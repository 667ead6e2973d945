package import SheafModel
package import SheafWire

/// Which hub it is: where it is dialled, and by what it is known again.
package struct HubIdentity: Hashable, Sendable, CustomStringConvertible {
  /// Bytes of a fingerprint: SHA-256 of the public key's SubjectPublicKeyInfo.
  private static let fingerprintLength = 32

  /// Whether it is dialled by TLS. A hub without is on this machine.
  package let isSecure: Bool
  package let address: HubAddress
  /// The fingerprint of the hub's public key; nil for a certificate that the system's roots vouch for.
  package let fingerprint: [UInt8]?

  /// - Throws: ``SheafError`` of kind `invalid` for anything but a hub that can be dialled.
  package init(scheme: String, address text: String, fingerprint: String?) throws(SheafError) {
    guard let address = HubAddress(parsing: text), address.description == text, address.port > 0 else {
      throw SheafError(.invalid, subject: "link", reason: "has no address of a hub in it", advice: Self.advice)
    }
    guard scheme == "https" || scheme == "http" && address.isLoopback else {
      throw SheafError(
        .invalid, subject: "link", reason: "is for plain HTTP at another machine, where everybody could read along",
        advice: "ask for a link that begins with https")
    }
    isSecure = scheme == "https"
    self.address = address
    guard let fingerprint else {
      self.fingerprint = nil
      return
    }
    guard let bytes = Base64URL.bytes(fingerprint), bytes.count == Self.fingerprintLength, isSecure else {
      throw SheafError(.invalid, subject: "link", reason: "has a fingerprint that is none", advice: Self.advice)
    }
    self.fingerprint = bytes
  }

  static let advice = "copy the whole link that sheaf-hub account add, or another device, printed"

  var scheme: String { isSecure ? "https" : "http" }
  package var description: String { "\(scheme)://\(address)" }
}

/// An enrolment link that can be used: `https://ADDRESS/enrol/CODE#FINGERPRINT`.
package struct Enrolment: Hashable, Sendable {
  /// Bytes of a code: the zone's id and 16 random ones.
  private static let codeLength = 32

  package let hub: HubIdentity
  /// It makes one device, so it stands in no error.
  let code: String

  /// - Throws: ``SheafError`` of kind `invalid`, without the code.
  package init(_ text: String) throws(SheafError) {
    guard let link = EnrollmentLink(text), Base64URL.bytes(link.code)?.count == Self.codeLength else {
      throw SheafError(.invalid, subject: "link", reason: "is no enrolment link", advice: HubIdentity.advice)
    }
    self.init(
      hub: try HubIdentity(scheme: link.scheme, address: link.address, fingerprint: link.fingerprint), code: link.code)
  }

  init(hub: HubIdentity, code: String) {
    self.hub = hub
    self.code = code
  }
}
