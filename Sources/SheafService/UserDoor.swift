import Glibc
import Hummingbird
import NIOCore
package import SheafModel

/// The door of one user of the machine, to whom root gave a mount: it acts for that mount's account and no other, and
/// has no routes that concern the whole library.
package struct UserDoor: Sendable {
  package let mount: MountInfo
  package let uid: UInt32
  package let gid: UInt32

  package init(mount: MountInfo, uid: UInt32, gid: UInt32) {
    self.mount = mount
    self.uid = uid
    self.gid = gid
  }

  /// A channel handler that closes connections of anybody but the user and root.
  func makeHandler() -> any RemovableChannelHandler { PeerCheck(uid: uid) }
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
  /// The routes of a user's door: all that one account sees and does, the one mount, and the reports of the user's
  /// sidecar. It has no accounts, no maintenance, no other mounts and no other views.
  func addRoutes(to router: Router<BasicRequestContext>, for door: UserDoor) {
    router.add(
      middleware: ErrorMiddleware(
        library: info.library,
        missing: SheafError(
          .accessDenied, subject: door.mount.mountpoint,
          reason: "this mount is for one user, and gives no access to the whole library",
          advice: "ask who owns \(info.library)")))
    let routes = router.group("v1")
    if door.mount.readOnly { routes.add(middleware: ReadOnlyDoor(mountpoint: door.mount.mountpoint)) }
    addActingRoutes(to: routes)
    routes.get("mounts") { _, _ in try Response.json([door.mount]) }
    routes.get("status") { _, _ in
      let last = try await call { $0.lastEvent }
      return try Response.json(
        LibraryStatus(
          library: info.library, pid: info.pid, mounts: [door.mount], notMounted: [], counts: nil,
          sinks: sinks(at: last)))
    }
  }
}

/// Refuses all changes at the door of a user whose mount is read-only.
private struct ReadOnlyDoor<Context: RequestContext>: RouterMiddleware {
  /// Routes that have a body and change nothing, and the reports of the user's own sidecar.
  private static var harmless: Set<String> {
    ["/v1/links/inspect", "/v1/paths", "/v1/sidecar", "/v1/deleted/extent", "/v1/usage", "/v1/find"]
  }

  let mountpoint: String

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    guard request.method == .get || Self.harmless.contains(request.uri.path) else {
      throw SheafError(
        .readOnly, subject: mountpoint, reason: "is mounted read-only, and commands change nothing either",
        advice: "ask root for a mount that can be written")
    }
    return try await next(request, context)
  }
}
