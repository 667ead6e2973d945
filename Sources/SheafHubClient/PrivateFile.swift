import Foundation
import Glibc
import SheafModel

/// A file with secrets: the user's own alone (0600, one name, no link), or it is not used. It is replaced whole or not
/// at all.
struct PrivateFile: Sendable {
  let path: String
  /// Bytes of a file that is read.
  let longest: Int
  /// With which every file begins that this writes, so that a draft is known again.
  let beginning: [UInt8]

  /// The file's bytes, or the first of them if it is longer than it may be; nil where there is none.
  ///
  /// - Throws: ``SheafError``: `accessDenied` for one that others can read; `invalid` for a link.
  func contents() throws(SheafError) -> [UInt8]? {
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
    var bytes = [UInt8](repeating: 0, count: longest + 1)
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

  private func failure() -> SheafError { SheafError(systemError: errno, subject: path.printable) }

  var folder: String {
    let folder = (path as NSString).deletingLastPathComponent
    return folder.isEmpty ? "." : folder
  }

  /// Makes the file's folder, with those above it, for the user alone where they are missing.
  func makeFolder() throws(SheafError) {
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

  /// Puts a value as JSON in the place of what is there. It is on the disk when this returns.
  func replace(with value: some Encodable) throws(SheafError) {
    let draft = path + ".new"
    try removeDraft(draft)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    // Values of these types always encode.
    let bytes = [UInt8]((try? encoder.encode(value)) ?? Data())
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
    do throws(SheafError) {
      left = try PrivateFile(path: draft, longest: longest, beginning: beginning).contents()
    } catch { left = [0] }
    guard let left else { return }
    guard zip(left, beginning).allSatisfy({ $0 == $1 }) else {
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
