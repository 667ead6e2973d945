/// The link by which a device becomes one of an account: `https://ADDRESS/enrol/CODE#FINGERPRINT`.
///
/// Opening it for a preview spends nothing: only a POST with a device's key spends a code.
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
    "\(scheme)://\(address)\(Self.path)\(code)" + (fingerprint.map { "#\($0)" } ?? "")
  }

  private static let path = "/enrol/"

  /// Takes a link apart; nil for a text that is none.
  public init?(_ text: String) {
    guard text.utf8.count <= 2048, let scheme = ["https", "http"].first(where: { text.hasPrefix("\($0)://") }) else {
      return nil
    }
    let halves = text.dropFirst(scheme.utf8.count + 3).split(
      separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
    guard let slash = halves[0].firstIndex(of: "/"), halves[0][slash...].hasPrefix(Self.path) else { return nil }
    let (address, code) = (halves[0][..<slash], halves[0][slash...].dropFirst(Self.path.utf8.count))
    guard !address.isEmpty, !code.isEmpty, !code.contains("/"), halves.count == 1 || !halves[1].isEmpty else {
      return nil
    }
    self.init(
      scheme: scheme, address: String(address), code: String(code),
      fingerprint: halves.count == 2 ? String(halves[1]) : nil)
  }
}
