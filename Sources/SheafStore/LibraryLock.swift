internal import Foundation
internal import Glibc
package import SheafModel

/// The exclusive lock by which one process owns a library: flock(2) on a file beside it that names the process.
package final class LibraryLock: Sendable {
  private let descriptor: Int32
  private let name: String

  /// Takes the lock without waiting.
  ///
  /// - Throws: ``SheafError`` of kind `busy` that names the owner's process id; `inputOutput`, `accessDenied`,
  ///   `noSpace`.
  package init(path: String, library: String) throws(SheafError) {
    let descriptor = try LibraryFolder.openFile(at: path, beside: library)
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      close(descriptor)
      guard code == EWOULDBLOCK else { throw SheafError(systemError: code, subject: path) }
      throw SheafError(
        .busy, subject: library, reason: "is in use by process \(Self.owner(path: path).map(String.init) ?? "unknown")",
        advice: "use the mounts of that process, or end it first")
    }
    self.descriptor = descriptor
    name = (path as NSString).lastPathComponent
    let text = "\(getpid())\n"
    // Written before it is cut: on a full disk another process could take the block that is given back.
    let written = text.withCString { pwrite(descriptor, $0, strlen($0), 0) }
    ftruncate(descriptor, max(0, written))
  }

  deinit { close(descriptor) }

  /// Lets another process have the library.
  package func release() { flock(descriptor, LOCK_UN) }

  /// Whether the lock's file lies in a folder, given by a descriptor.
  func lies(in folder: Int32) -> Bool {
    var (own, found) = (stat(), stat())
    return fstat(descriptor, &own) == 0 && fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) == 0
      && own.st_dev == found.st_dev && own.st_ino == found.st_ino
  }

  /// Whether a process has the lock, or is about to get it.
  static func isHeld(path: String) -> Bool {
    let descriptor = LibraryFolder.open(path, O_RDONLY)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
  }

  /// The process that wrote its id into the lock's file last.
  package static func owner(path: String) -> Int32? {
    guard let descriptor = try? LibraryFolder.openExisting(at: path) else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 32)
    let count = read(descriptor, &bytes, bytes.count)
    guard count > 0 else { return nil }
    return Int32(String(decoding: bytes[..<count], as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
  }
}
