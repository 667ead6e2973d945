import Foundation
import Glibc
import SheafLibrary
import SheafModel

/// The path of the library that uses a device's key, in a file beside the key.
///
/// A copy of a library names the same key. Two that run are one device to the hub, which takes what one did for what the
/// other one knows. So one of them is the device: whichever was, as long as one of them is where it was.
struct KeyHolder {
  private let path: String
  /// The library's id, which its copies have.
  private let id: String

  init(_ path: String, ofLibrary id: String) {
    self.path = path
    self.id = id
  }

  /// Takes the key for a library.
  ///
  /// - Parameters:
  ///   - library: The path of the library's file.
  ///   - isOriginal: Whether that very file became the device. While nobody noted a library, a copy uses the key and
  ///     leaves it so, for the original may be elsewhere.
  /// - Throws: ``SheafError`` of kind `busy` while another library has the key, and what the file cannot be read or
  ///   written for.
  func take(for library: String, isOriginal: Bool) throws(SheafError) {
    let own = try Self.resolved(library)
    let holder = try read()
    if let holder { try refuse(own, beside: holder) }
    if holder == own || holder == nil && !isOriginal { return }
    let draft = path + ".new"
    let file = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw SheafError(systemError: errno, subject: draft.printable) }
    defer { close(file) }
    guard write(file, own, own.count) == own.count, fsync(file) == 0, rename(draft, path) == 0 else {
      throw SheafError(systemError: errno, subject: path.printable)
    }
  }

  /// Checks that a library could take the key, or has it.
  ///
  /// - Throws: As ``take(for:isOriginal:)``.
  func check(_ library: String) throws(SheafError) {
    if let holder = try read() { try refuse(Self.resolved(library), beside: holder) }
  }

  /// - Throws: `busy` if another copy than `own` is where the key's is.
  private func refuse(_ own: [UInt8], beside holder: [UInt8]) throws(SheafError) {
    if holder == own { return }
    var (there, here) = (stat(), stat())
    if stat(holder.map(CChar.init(bitPattern:)) + [0], &there) != 0 {
      if errno == ENOENT || errno == ENOTDIR { return }
    } else if stat(own.map(CChar.init(bitPattern:)) + [0], &here) == 0, there.st_dev == here.st_dev,
      there.st_ino == here.st_ino
    {
      return
    }
    let path = String(decoding: holder, as: UTF8.self)
    // The library may have moved, and another one have its place.
    if let other = Library.id(ofFileAt: path), other != id { return }
    throw SheafError(
      .busy, subject: "this machine's key",
      reason: "is used by the library \(path.printable), of which this one is a copy",
      advice: "to look into a copy, mount it with --read-only; to go on with it instead, move the other file away and "
        + "mount this one anew; to keep both: sheaf disconnect --discard-unsent, and sheaf connect LINK")
  }

  /// The path of the library; nil if nobody noted one.
  private func read() throws(SheafError) -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw SheafError(systemError: errno, subject: path.printable)
    }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = bytes.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress, $0.count) }
    guard count >= 0 else { throw SheafError(systemError: errno, subject: path.printable) }
    let holder = Array(bytes.prefix(count))
    // One that was not written to its end names nobody.
    return holder.first == UInt8(ascii: "/") && !holder.contains(0) ? holder : nil
  }

  /// The path without symbolic links.
  private static func resolved(_ library: String) throws(SheafError) -> [UInt8] {
    guard let found = realpath(library, nil) else { throw SheafError(systemError: errno, subject: library.printable) }
    defer { free(found) }
    return Array(UnsafeBufferPointer(start: found, count: strlen(found))).map(UInt8.init(bitPattern:))
  }

  func remove() throws(SheafError) {
    guard unlink(path) == 0 || errno == ENOENT else { throw SheafError(systemError: errno, subject: path.printable) }
  }
}
