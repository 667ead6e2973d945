import Crypto
import Foundation
import Glibc
package import SheafModel
import SheafWire
import SwiftASN1
import X509

/// A certificate that a hub makes for itself, for devices that know its public key by the fingerprint in a link.
package enum HubCertificate {
  /// How long it is valid.
  private static let lifetime: TimeInterval = 3650 * 86_400

  /// Makes a key and its certificate.
  ///
  /// - Returns: both as PEM.
  package static func make(for addresses: [HubAddress], now: Timestamp) throws -> (certificate: String, key: String) {
    let key = P256.Signing.PrivateKey()
    let name = try DistinguishedName { CommonName("Sheaf hub") }
    let names = addresses.map { address -> GeneralName in
      ip(address.host).map { .ipAddress(ASN1OctetString(contentBytes: $0[...])) } ?? .dnsName(address.host)
    }
    let start = Date(timeIntervalSince1970: TimeInterval(now.seconds) - 86_400)
    let certificate = try Certificate(
      version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: .init(key.publicKey), notValidBefore: start,
      notValidAfter: start + lifetime, issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
      // No KeyUsage: without the right to sign certificates it would be no issuer, not even its own.
      extensions: try Certificate.Extensions {
        Critical(BasicConstraints.notCertificateAuthority)
        try ExtendedKeyUsage([.serverAuth])
        SubjectAlternativeNames(names)
      }, issuerPrivateKey: .init(key))
    return (try certificate.serializeAsPEM().pemString + "\n", key.pemRepresentation + "\n")
  }

  /// The fingerprint of the public key in a certificate: SHA-256 of its SubjectPublicKeyInfo, as text for a URL. It
  /// stays the same where a certificate is renewed for the same key.
  ///
  /// - Throws: ``SheafError`` for a text that is no certificate.
  package static func fingerprint(pem: String) throws -> String {
    var serializer = DER.Serializer()
    try serializer.serialize(certificate(pem: pem).publicKey)
    return Base64URL.text(Array(SHA256.hash(data: serializer.serializedBytes)))
  }

  /// Until when the first certificate in a text is valid.
  ///
  /// - Throws: ``SheafError`` for a text that is no certificate.
  package static func end(pem: String) throws -> Timestamp {
    Timestamp(seconds: Int64(try certificate(pem: pem).notValidAfter.timeIntervalSince1970))
  }

  private static func certificate(pem: String) throws -> Certificate {
    guard let document = try? PEMDocument.first(in: pem), let certificate = try? Certificate(pemDocument: document)
    else { throw SheafError(.invalid, subject: "certificate", reason: "is no certificate in PEM form") }
    return certificate
  }

  /// Seconds before its end from which on a certificate is warned of.
  private static let warned: Int64 = 14 * 86_400

  /// What an administrator is to hear of a certificate that is valid until `end`; nil while that is far.
  package static func warning(end: Timestamp, now: Timestamp) -> String? {
    if end.seconds <= now.seconds {
      return "the certificate ended \(end.secondsText), and machines refuse it: renew it"
    }
    if end.seconds - now.seconds > warned { return nil }
    return "the certificate ends \(end.secondsText): renew it"
  }

  /// The bytes of an IP address; nil for a name.
  private static func ip(_ text: String) -> [UInt8]? {
    var four = in_addr()
    if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: four) { Array($0) } }
    var six = in6_addr()
    if inet_pton(AF_INET6, text, &six) == 1 { return withUnsafeBytes(of: six) { Array($0) } }
    return nil
  }
}

extension PEMDocument {
  /// The first of the documents in a text.
  fileprivate static func first(in text: String) throws -> PEMDocument? {
    try PEMDocument.parseMultiple(pemString: text).first
  }
}
