import Glibc
package import SheafModel

/// Finds the socket that leads to a library, and whether a process listens there. It asks only the kernel, and so costs
/// nothing.
package enum SocketProbe {
  /// The socket by which a user reaches a library: their own if root gave them a mount, otherwise the library's; nil
  /// if no process listens. Root, to whom all doors are open, takes the library's.
  ///
  /// - Parameter user: Whose socket to look for; this process's user's where nil.
  /// - Throws: ``SheafError``: `accessDenied` if the socket belongs to another user, or a stranger listens
  ///   (``ServerTrust``); `unavailable` if the process does not take connections.
  package static func served(of library: LibraryLocation, by user: UInt32? = nil) throws(SheafError) -> String? {
    let user = user ?? getuid()
    // A killed process leaves its sockets behind.
    let own = user == 0 ? [] : [UserSocket.path(library: library.path, uid: user)]
    for path in own + [library.socketPath] {
      if try isServed(path, ServerTrust(socket: path, library: library.path)) { return path }
    }
    return nil
  }

  private static func isServed(_ path: String, _ trust: ServerTrust) throws(SheafError) -> Bool {
    let socketPath: SocketPath
    do {
      socketPath = try SocketPath(path)
    } catch  where error.kind == .notFound {
      return false
    }
    let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else {
      throw SheafError(.inputOutput, subject: path.printable, reason: String(cString: strerror(errno)))
    }
    defer { close(descriptor) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: socketPath.address.utf8) }
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result != 0 else {
      try trust.verify(descriptor: descriptor)
      return true
    }
    switch errno {
    case ENOENT, ECONNREFUSED, ENOTDIR: return false
    case EACCES, EPERM:
      var status = stat()
      guard lstat(path, &status) == 0 else {
        // Nothing tells whether it is there.
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        throw SheafError(.accessDenied, subject: folder.printable, reason: "you may not look into it")
      }
      throw SheafError(
        .accessDenied, subject: path.printable, reason: "belongs to another user", advice: "act as that user")
    case EAGAIN: throw SheafError(.unavailable, subject: path.printable, reason: "does not take connections")
    default: throw SheafError(.inputOutput, subject: path.printable, reason: String(cString: strerror(errno)))
    }
  }
}
