import Glibc

/// The socket of a mount that root gave to a user of the machine. Everyone may enter its folder; the socket belongs to
/// the user.
package enum UserSocket {
  package static let folder = "/run/sheaf"

  /// Opens the folder, made for everyone to enter; for the caller to close.
  package static func openFolder() throws(SheafError) -> CInt {
    let descriptor =
      mkdir(folder, 0o755) == 0 || errno == EEXIST
      ? open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1
    guard descriptor >= 0 else { throw SheafError(systemError: errno, subject: folder) }
    // The process's umask may have taken some of the rights.
    guard fchmod(descriptor, 0o755) == 0 else {
      let code = errno
      close(descriptor)
      throw SheafError(systemError: code, subject: folder)
    }
    return descriptor
  }

  /// Its path, which follows from the library's path and the user, and differs for each library and user.
  package static func path(library: String, uid: UInt32) -> String {
    // FNV-1a, 64 bits: names only need to differ, and a socket's address is short.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in library.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return "\(folder)/\(String(hash, radix: 16))-\(uid)"
  }
}
