package import Crypto
import Foundation
import Glibc
package import SheafModel
import SheafWire

/// A device of an account: the hub that knows it, and the key by which it is known.
package struct Device: Sendable {
  package let hub: HubIdentity
  package let handle: AccountHandle
  /// The id of the account's zone, a UUID in lower case.
  package let zone: String
  /// A UUID in lower case.
  package let id: String
  package let key: P256.Signing.PrivateKey
}

/// The file in which a device keeps its key, with the hub that knows it. Who has it is that device.
///
/// Rules that never break:
/// - The key is on the disk before the hub hears of it. So a code is never spent for a key that is lost: whoever is
///   interrupted asks again by the same link, with the same key.
/// - The file is the user's own alone (0600, one name, no link), or it is not used.
package struct DeviceFile: Sendable {
  /// Bytes of a file that is read.
  private static let longest = 16 * 1024
  private static let format = 1
  /// With which every file begins that this writes.
  private static let beginning = Array("{\n  \"address\" : \"".utf8)

  package let path: String

  private let file: PrivateFile

  package init(_ path: String) {
    self.path = path
    file = PrivateFile(path: path, longest: Self.longest, beginning: Self.beginning)
  }

  /// What stands in the file, as JSON.
  private struct Stored: Codable {
    var format: Int
    var scheme: String
    var address: String
    var fingerprint: String?
    /// The private key's 32 bytes.
    var key: Data
    /// The code that is being spent; none once the device is known.
    var code: String?
    var handle: String?
    var zone: String?
    var device: String?
  }

  // MARK: - Reading

  /// - Throws: ``SheafError``: `notFound` where there is none, or none that was enrolled; `accessDenied` for one that
  ///   others can read; `invalid` for a link and for anything else that is no such file.
  package func read() throws(SheafError) -> Device {
    guard let stored = try stored() else {
      throw SheafError(
        .notFound, subject: path.printable, reason: "is not there: this machine is no device of a hub",
        advice: "connect it by an enrolment link: sheaf connect, or sheaf-sidecar connect for its sidecar alone")
    }
    guard let handle = stored.handle, let zone = stored.zone, let id = stored.device else {
      throw SheafError(
        .notFound, subject: path.printable, reason: "is of an enrolment that was not finished",
        advice: "connect it by the same link again")
    }
    return try device(stored, handle: handle, zone: zone, id: id)
  }

  /// The key with which to enroll by a link: the one of an attempt before by the same link, or a new one that is on the
  /// disk when this returns.
  ///
  /// - Throws: ``SheafError``, of kind `exists` for a file of a device.
  func key(for enrolment: Enrolment) throws(SheafError) -> P256.Signing.PrivateKey {
    let hub = enrolment.hub
    if let stored = try stored() {
      if let handle = stored.handle {
        throw SheafError(
          .exists, subject: path.printable,
          reason: "makes this machine a device of \(handle.printable) at \(stored.scheme)://\(stored.address)"
            .printable,
          advice: "name another file: --device; or remove it to begin anew")
      }
      let known = try identity(stored)
      if stored.code == enrolment.code, known == hub { return try key(stored) }
    }
    let key = P256.Signing.PrivateKey()
    try file.makeFolder()
    try file.replace(
      with: Stored(
        format: Self.format, scheme: hub.scheme, address: hub.address.description,
        fingerprint: hub.fingerprint.map { Base64URL.text($0) }, key: key.rawRepresentation, code: enrolment.code))
    return key
  }

  /// The key of an enrolment by this link that was not finished; nil where none was begun.
  func begunKey(for enrolment: Enrolment) throws(SheafError) -> P256.Signing.PrivateKey? {
    guard let stored = try stored(), stored.code == enrolment.code, try identity(stored) == enrolment.hub else {
      return nil
    }
    return try key(stored)
  }

  /// Removes the key of an enrolment that the hub refused, and its folder where nothing else is in it.
  func discard(_ enrolment: Enrolment) {
    guard let stored = try? stored(), stored.code == enrolment.code else { return }
    unlink(path)
    rmdir(file.folder)
  }

  /// Notes which device the key is of, and returns it.
  func finish(
    _ enrolment: Enrolment, _ key: P256.Signing.PrivateKey, _ enrolled: EnrolledDevice, handle: AccountHandle
  ) throws(SheafError) -> Device {
    let hub = enrolment.hub
    let stored = Stored(
      format: Self.format, scheme: hub.scheme, address: hub.address.description,
      fingerprint: hub.fingerprint.map { Base64URL.text($0) }, key: key.rawRepresentation,
      handle: handle.description, zone: enrolled.zone, device: enrolled.device)
    try file.replace(with: stored)
    return Device(hub: hub, handle: handle, zone: enrolled.zone, id: enrolled.device, key: key)
  }

  private func device(_ stored: Stored, handle: String, zone: String, id: String) throws(SheafError) -> Device {
    guard let account = try? AccountHandle(handle), WireID(zone)?.description == zone, WireID(id)?.description == id
    else { throw damaged() }
    return Device(hub: try identity(stored), handle: account, zone: zone, id: id, key: try key(stored))
  }

  private func identity(_ stored: Stored) throws(SheafError) -> HubIdentity {
    do {
      return try HubIdentity(scheme: stored.scheme, address: stored.address, fingerprint: stored.fingerprint)
    } catch {
      throw damaged()
    }
  }

  private func key(_ stored: Stored) throws(SheafError) -> P256.Signing.PrivateKey {
    guard let key = try? P256.Signing.PrivateKey(rawRepresentation: stored.key) else { throw damaged() }
    return key
  }

  /// What stands in the file; nil where there is none.
  private func stored() throws(SheafError) -> Stored? {
    guard let bytes = try file.contents() else { return nil }
    guard bytes.count <= Self.longest, let stored = try? JSONDecoder().decode(Stored.self, from: Data(bytes)),
      stored.format == Self.format
    else { throw damaged() }
    return stored
  }

  private func damaged() -> SheafError {
    SheafError(
      .corrupt, subject: path.printable, reason: "is no file of a device, or of a newer program",
      advice: "remove it, and connect anew with another link")
  }
}
