/// The socket of a mount that root gave to a user of the machine: in a folder that everyone may enter, the socket theirs.
package enum UserSocket {
  package static let folder = "/run/sheaf"

  /// Its path: the same for whoever knows the library's path, and different for each library and user.
  package static func path(library: String, uid: UInt32) -> String {
    // FNV-1a, 64 bits: names need only differ, and a socket's address is short.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in library.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return "\(folder)/\(String(hash, radix: 16))-\(uid)"
  }
}
