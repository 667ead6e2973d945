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

  package init(_ path: String) { self.path = path }

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
    try makeFolder()
    try write(
      Stored(
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
    rmdir(folder)
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
    try write(stored)
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
    guard let bytes = try contents() else { return nil }
    guard bytes.count <= Self.longest, let stored = try? JSONDecoder().decode(Stored.self, from: Data(bytes)),
      stored.format == Self.format
    else { throw damaged() }
    return stored
  }

  /// The file's bytes, or the first of them if it is longer than a device's; nil where there is none.
  private func contents() throws(SheafError) -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    guard file >= 0 else {
      switch errno {
      case ENOENT: return nil
      case ELOOP:
        throw SheafError(
          .invalid, subject: path.printable, reason: "is a symbolic link", advice: "name the file to which it leads")
      default: throw failure()
      }
    }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw failure() }
    guard status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1 else {
      throw SheafError(
        .invalid, subject: path.printable, reason: "is no file, or has another name", advice: "name another: --device")
    }
    guard status.st_uid == geteuid() else {
      throw SheafError(
        .accessDenied, subject: path.printable, reason: "belongs to another user", advice: "run this as that user")
    }
    guard status.st_mode & 0o077 == 0 else {
      let mode = String(status.st_mode & 0o777, radix: 8)
      throw SheafError(
        .accessDenied, subject: path.printable, reason: "can be read or written by others (mode \(mode))",
        advice: "whoever read it is this device: remove the device at the hub, and the file, and connect anew")
    }
    var bytes = [UInt8](repeating: 0, count: Self.longest + 1)
    var length = 0
    while length < bytes.count {
      let count = bytes.withUnsafeMutableBytes {
        Glibc.read(file, $0.baseAddress?.advanced(by: length), $0.count - length)
      }
      if count < 0 {
        guard errno == EINTR else { throw failure() }
      } else if count == 0 {
        break
      } else {
        length += count
      }
    }
    return Array(bytes[..<length])
  }

  private func damaged() -> SheafError {
    SheafError(
      .corrupt, subject: path.printable, reason: "is no file of a device, or of a newer program",
      advice: "remove it, and connect anew with another link")
  }

  private func failure() -> SheafError { SheafError(systemError: errno, subject: path.printable) }

  // MARK: - Writing

  private var folder: String {
    let folder = (path as NSString).deletingLastPathComponent
    return folder.isEmpty ? "." : folder
  }

  /// Makes the file's folder, with those above it, for the user alone where they are missing.
  private func makeFolder() throws(SheafError) {
    var missing: [String] = []
    var next = folder
    while !next.isEmpty, next != "/", access(next, F_OK) != 0, errno == ENOENT {
      missing.append(next)
      next = (next as NSString).deletingLastPathComponent
    }
    for each in missing.reversed() where mkdir(each, 0o700) != 0 && errno != EEXIST {
      throw SheafError(systemError: errno, subject: each.printable)
    }
  }

  /// Puts a new file in the place of the one that is there, whole or not at all. It is the user's alone, and on the disk
  /// when this returns.
  private func write(_ stored: Stored) throws(SheafError) {
    let draft = path + ".new"
    try removeDraft(draft)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    // Values of this type always encode.
    let bytes = [UInt8]((try? encoder.encode(stored)) ?? Data())
    let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw failure() }
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress?.advanced(by: written), $0.count - written) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      written += count
    }
    guard written == bytes.count, fsync(file) == 0 else {
      let error = failure()
      close(file)
      unlink(draft)
      throw error
    }
    close(file)
    guard rename(draft, path) == 0 else { throw failure() }
    try syncFolder()
  }

  /// Removes what a write that was cut short left. Anything else of that name is somebody's, and stays.
  private func removeDraft(_ draft: String) throws(SheafError) {
    let left: [UInt8]?
    do throws(SheafError) { left = try DeviceFile(draft).contents() } catch { left = [0] }
    guard let left else { return }
    guard zip(left, Self.beginning).allSatisfy({ $0 == $1 }) else {
      throw SheafError(
        .exists, subject: draft.printable, reason: "is no draft of a device's file, and in the way of one",
        advice: "move it elsewhere")
    }
    guard unlink(draft) == 0 else { throw failure() }
  }

  private func syncFolder() throws(SheafError) {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure() }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw failure() }
  }
}
