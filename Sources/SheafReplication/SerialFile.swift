import Foundation
import Glibc
import SheafLibrary
import SheafModel
import Synchronization

/// A number beside a device's key: every serial that the device has used is below it.
///
/// A hub does each send once, by the device's serial. A library that is put back to an earlier state would give serials a
/// second time, and take the hub's answers to other sends for its own. So the highest one is noted outside of the
/// library, before it is used. If two copies of a library use one key all the same (``KeyHolder``), the one that began
/// first finds that out.
final class SerialFile: Sendable {
  /// How many serials are noted at once.
  private static let block: Int64 = 1_000

  private let path: String
  /// What this process noted last.
  private let noted = Mutex<Int64?>(nil)

  init(_ path: String) { self.path = path }

  /// The number; nil if none was used.
  ///
  /// - Throws: ``SheafError``: `corrupt`, or what the file cannot be read for.
  func read() throws(SheafError) -> Int64? {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw SheafError(systemError: errno, subject: path.printable)
    }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 32)
    let count = bytes.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress, $0.count) }
    let text = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).trimmingCharacters(in: .newlines)
    guard let number = Int64(text), (0..<1 << 51).contains(number) else {
      throw SheafError(
        .corrupt, subject: path.printable, reason: "holds no number",
        advice: "disconnect the account and connect it anew: sheaf disconnect --discard-unsent")
    }
    return number
  }

  /// Has a library's serials go on above all that the device has used, of which it may know nothing.
  func raise(_ library: any ReplicaInterface, _ account: Int64) throws {
    if let used = try read() { try library.raiseSerial(to: used, of: account) }
  }

  /// Makes sure that no serial up to one is ever given to another send, also after power loss.
  ///
  /// - Throws: ``SheafError``: `busy` if somebody else uses the key.
  func reserve(_ serial: Int64, for library: any InodeInterface) throws {
    try library.sync()
    try reserve(serial)
  }

  private func reserve(_ serial: Int64) throws {
    try noted.withLock { noted in
      if let noted {
        guard try read() == noted else {
          throw SheafError(
            .busy, subject: "this machine's key", reason: "is used by a copy of this library, too",
            advice: "end one of them; if both are to stay, copy the library's documents, and not its file")
        }
        if serial < noted { return }
      }
      let next = serial + Self.block
      let draft = path + ".new"
      let file = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
      guard file >= 0 else { throw SheafError(systemError: errno, subject: draft.printable) }
      defer { close(file) }
      let text = Array("\(next)\n".utf8)
      guard write(file, text, text.count) == text.count, fsync(file) == 0, rename(draft, path) == 0 else {
        throw SheafError(systemError: errno, subject: path.printable)
      }
      noted = next
    }
  }
}
