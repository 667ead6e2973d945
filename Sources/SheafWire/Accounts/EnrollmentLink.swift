/// The link by which a device becomes one of an account: `https://ADDRESS/enroll#CODE.FINGERPRINT`.
///
/// Everything after `#` stays in the program that opens the link: neither a preview of it nor a log of the hub or of a
/// proxy sees the code.
public struct EnrollmentLink: Hashable, Sendable, CustomStringConvertible {
  /// `https`, or `http` where the hub serves its own machine only.
  public let scheme: String
  public let address: String
  public let code: String
  /// The fingerprint of the hub's public key; nil where the certificate is one that machines trust anyway.
  public let fingerprint: String?

  public init(scheme: String, address: String, code: String, fingerprint: String?) {
    self.scheme = scheme
    self.address = address
    self.code = code
    self.fingerprint = fingerprint
  }

  public var description: String {
    "\(scheme)://\(address)/enroll#\(code)" + (fingerprint.map { ".\($0)" } ?? "")
  }

  /// Takes a link apart; nil for a text that is none.
  public init?(_ text: String) {
    let halves = text.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
    guard halves.count == 2, text.utf8.count <= 2048 else { return nil }
    let front = halves[0]
    guard let scheme = ["https", "http"].first(where: { front.hasPrefix("\($0)://") }), front.hasSuffix("/enroll")
    else {
      return nil
    }
    let address = front.dropFirst(scheme.utf8.count + 3).dropLast("/enroll".utf8.count)
    let parts = halves[1].split(separator: ".", omittingEmptySubsequences: false)
    guard !address.isEmpty, !address.contains("/"), (1...2).contains(parts.count), !parts.contains(where: \.isEmpty)
    else {
      return nil
    }
    self.init(
      scheme: scheme, address: String(address), code: String(parts[0]),
      fingerprint: parts.count == 2 ? String(parts[1]) : nil)
  }
}
