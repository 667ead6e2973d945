import Glibc
import NIOCore
import SheafModel

/// Clients verify the server's uid on every connection: in a folder that others can write to, anybody can make a socket
/// of the name, and would receive requests that are meant for the library.
struct ServerTrust: Sendable {
  /// The socket's path.
  let socket: String
  /// The library's path.
  let library: String

  /// Checks the user of the process that listens at the socket.
  ///
  /// - Throws: ``SheafError`` of kind `accessDenied` for a stranger.
  func verify(_ peer: PeerCredentials) throws(SheafError) {
    if peer.uid == 0 { return }
    // Only root gives mounts to users.
    if !socket.hasPrefix(UserSocket.folder + "/") {
      if peer.uid == getuid() { return }
      var status = stat()
      if stat(library, &status) == 0, status.st_uid == peer.uid { return }
    }
    throw SheafError(
      .accessDenied, subject: socket.printable,
      reason: "is served by process \(peer.pid) of user \(peer.uid), whose library it is not",
      advice: "keep the library in a folder of your own, and remove the socket")
  }

  /// As ``verify(_:)``, for a connected socket.
  func verify(descriptor: CInt) throws(SheafError) {
    var peer = PeerCredentials()
    var size = socklen_t(MemoryLayout<PeerCredentials>.size)
    guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 else {
      throw SheafError(.inputOutput, subject: socket.printable, reason: String(cString: strerror(errno)))
    }
    try verify(peer)
  }

  /// As ``verify(_:)``, for a new connection that has sent nothing yet. It closes a stranger's.
  func verify(_ channel: any Channel) -> EventLoopFuture<Void> {
    guard let provider = channel as? any SocketOptionProvider else {
      return channel.eventLoop.makeFailedFuture(SheafError(.notSupported, subject: socket.printable))
    }
    let peer: EventLoopFuture<PeerCredentials> = provider.unsafeGetSocketOption(
      level: .socket, name: .init(rawValue: SO_PEERCRED))
    return peer.flatMapThrowing { peer in
      do {
        try verify(peer)
      } catch {
        channel.close(promise: nil)
        throw error
      }
    }
  }
}
