package import Crypto
package import Foundation
package import SheafModel

/// The file in which a device keeps the keys that stand for it in shares of other hubs, one for each share.
///
/// Rule: a key is on the disk before the device's hub hears of it. So no key that was deposited is lost.
package struct KeyFile: Sendable {
  /// Keys that are kept: past that, the oldest go.
  static let most = 4_096
  private static let format = 1

  private let file: PrivateFile

  package init(_ path: String) {
    file = PrivateFile(path: path, longest: Self.most * 80, beginning: Array("{\n  \"format\" : ".utf8))
  }

  private struct Stored: Codable {
    var format: Int
    /// Private keys of 32 bytes, the oldest first.
    var keys: [Data]
  }

  /// Makes keys, which are on the disk when this returns.
  ///
  /// - Throws: ``SheafError``.
  package func make(_ count: Int) throws(SheafError) -> [P256.Signing.PrivateKey] {
    let made = (0..<count).map { _ in P256.Signing.PrivateKey() }
    let keys = try stored() + made.map(\.rawRepresentation)
    try file.replace(with: Stored(format: Self.format, keys: keys.suffix(Self.most)))
    return made
  }

  /// The private key of a public one, an uncompressed point; nil for one that was not made here.
  ///
  /// - Throws: ``SheafError``.
  package func key(of point: Data) throws(SheafError) -> P256.Signing.PrivateKey? {
    // The newest are asked for most.
    for bytes in try stored().reversed() {
      guard let key = try? P256.Signing.PrivateKey(rawRepresentation: bytes) else { throw damaged() }
      if key.publicKey.x963Representation == point { return key }
    }
    return nil
  }

  private func stored() throws(SheafError) -> [Data] {
    guard let bytes = try file.contents() else { return [] }
    guard bytes.count <= file.longest, let stored = try? JSONDecoder().decode(Stored.self, from: Data(bytes)),
      stored.format == Self.format
    else { throw damaged() }
    return stored.keys
  }

  private func damaged() -> SheafError {
    SheafError(
      .corrupt, subject: file.path.printable, reason: "is no file of keys, or of a newer program",
      advice: "move it away: new keys are made, and shares of other hubs come back")
  }
}
