import Glibc
import Hummingbird
import NIOCore
package import SheafModel

/// The door of one user of the machine, to whom root gave a mount: it acts for that mount's account and no other, and has
/// nothing of what concerns the whole library.
package struct UserDoor: Sendable {
  package let mount: MountInfo
  package let uid: UInt32
  package let gid: UInt32

  package init(mount: MountInfo, uid: UInt32, gid: UInt32) {
    self.mount = mount
    self.uid = uid
    self.gid = gid
  }

  /// Makes the folder of such sockets, for everyone to enter.
  ///
  /// - Throws: ``SheafError``.
  func prepareFolder() throws {
    guard mkdir(UserSocket.folder, 0o755) == 0 || errno == EEXIST, chmod(UserSocket.folder, 0o755) == 0 else {
      throw SheafError(.inputOutput, subject: UserSocket.folder, reason: String(cString: strerror(errno)))
    }
  }

  /// Gives the socket, which nobody else can use, to the user.
  func own(_ socket: String) throws {
    guard chown(socket, uid, gid) == 0 else {
      throw SheafError(.inputOutput, subject: socket, reason: String(cString: strerror(errno)))
    }
  }

  /// A channel handler that closes connections of others than the user and root.
  func makeHandler() -> any RemovableChannelHandler { PeerCheck(uid: uid) }
}

/// Who is at the other end of a Unix socket: `struct ucred` of unix(7).
private struct PeerCredentials: Sendable {
  var pid: Int32 = 0
  var uid: UInt32 = 0
  var gid: UInt32 = 0
}

private final class PeerCheck: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = NIOAny

  private let uid: UInt32

  init(uid: UInt32) { self.uid = uid }

  func channelActive(context: ChannelHandlerContext) {
    guard let provider = context.channel as? any SocketOptionProvider else { return context.close(promise: nil) }
    let (uid, channel) = (uid, context.channel)
    let peer: EventLoopFuture<PeerCredentials> = provider.unsafeGetSocketOption(
      level: .socket, name: .init(rawValue: SO_PEERCRED))
    peer.whenComplete { result in
      guard let peer = try? result.get(), peer.uid == uid || peer.uid == 0 else {
        return channel.close(promise: nil)
      }
    }
    context.fireChannelActive()
  }
}

extension LibraryAPI {
  /// What a user's door has: who answers, the one mount, and items; no accounts, no maintenance, no other mounts.
  func addRoutes(to router: Router<BasicRequestContext>, for door: UserDoor) {
    router.add(middleware: ErrorMiddleware())
    let routes = router.group("v1")
    routes.get { _, _ in
      try clients.greet()
      return try Response.json(info)
    }
    routes.get("mounts") { _, _ in try Response.json([door.mount]) }
    addItemRoutes(to: routes.group("items"))
    addShareRoutes(to: routes.group("items"))
    addLinkRoutes(to: routes.group("links"))
    addDeletionRoutes(to: routes)
  }
}
