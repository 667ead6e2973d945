import Dispatch
import Hummingbird
import NIOPosix
import SheafLibrary
import SheafModel
import Synchronization

/// The routes' common ground: the library, and a way to call it without holding up the event loops.
struct LibraryAPI: Sendable {
  typealias Routes = RouterGroup<BasicRequestContext>

  let library: any PathInterface
  let mounts: (any MountController)?
  let connections: (any ConnectionController)?
  /// The threads that run the library's synchronous calls.
  let threads: NIOThreadPool
  let clients: ClientCount
  let signals: EventSignals
  let streams: Slots
  let downloads: Slots
  let jobs: Slots
  let sidecars: SidecarBoard
  let info: ServiceInfo

  /// Adds every route below `/v1`.
  func addRoutes(to router: Router<BasicRequestContext>) {
    router.add(middleware: ErrorMiddleware(library: info.library))
    let routes = router.group("v1")
    addActingRoutes(to: routes)
    addLibraryRoutes(to: routes)
    addAccountRoutes(to: routes.group("accounts"))
    addMountRoutes(to: routes.group("mounts"))
    addConnectionRoutes(to: routes.group("connections"))
    addMaintenanceRoutes(to: routes)
    addLibraryEventRoutes(to: routes)
    addMetricsRoutes(to: routes)
    addLibraryWebhookRoutes(to: routes)
  }

  /// The routes of every door: `GET /v1`, which says who answers, and all that one account sees and does.
  func addActingRoutes(to routes: Routes) {
    routes.get { _, _ in
      try clients.greet()
      return try Response.json(info)
    }
    addItemRoutes(to: routes.group("items"))
    addShareRoutes(to: routes.group("items"))
    addLinkRoutes(to: routes.group("links"))
    addShareListRoutes(to: routes)
    addTransferRoutes(to: routes.group("transfers"))
    addPathRoutes(to: routes)
    addDeletionRoutes(to: routes)
    addEventRoutes(to: routes)
    addNoticeRoutes(to: routes)
    addWebhookRoutes(to: routes)
    addReportRoutes(to: routes)
  }

  /// Runs a call of the library on a thread of its own. Contents that it needs and that are not on this machine are
  /// fetched, and it is run again.
  func call<Value: Sendable>(_ body: @escaping @Sendable (any PathInterface) throws -> Value) async throws -> Value {
    while true {
      do {
        return try await threads.runIfActive { try body(library) }
      } catch let absent as AbsentContents {
        try await fetch(absent)
      }
    }
  }

  private func fetch(_ absent: AbsentContents) async throws {
    guard let connections else {
      throw SheafError(.unreachable, subject: "contents", reason: "are at a hub, and this process knows none")
    }
    try await connections.fetch(absent)
  }

  /// As ``call(_:)``, for a job that runs on a thread of its own and may wait there.
  func whenHere<Value>(_ body: () throws -> Value) throws -> Value {
    while true {
      do {
        return try body()
      } catch let absent as AbsentContents {
        let fetched = DispatchSemaphore(value: 0)
        let problem = Mutex<(any Error)?>(nil)
        Task {
          do {
            try await fetch(absent)
          } catch {
            problem.withLock { $0 = error }
          }
          fetched.signal()
        }
        fetched.wait()
        if let error = problem.withLock({ $0 }) { throw error }
      }
    }
  }

  /// The acting account: the named one, otherwise the library's default account.
  func account(_ named: AccountHandle?) async throws -> AccountHandle {
    if let only = info.account {
      guard named == nil || named == only else {
        throw SheafError(
          .accessDenied, subject: "--as \(named ?? only)", reason: "this mount is \(only)'s", advice: "leave out --as")
      }
      return only
    }
    if let named {
      // Some stand for people elsewhere, and for what they share.
      _ = try await call { try $0.number(of: named) }
      return named
    }
    guard let account = try await call({ try $0.settings() }).defaultAccount else {
      throw SheafError(
        .notFound, subject: library.location.path, reason: "has no account yet",
        advice: "make one with: sheaf account add HANDLE")
    }
    return account
  }

  /// The item that a request names, by its path, its id, or the id of a folder that it is in.
  ///
  /// - Parameter isExact: As of ``Library/path(ofItem:for:isExact:)``.
  func item(_ request: Request, isExact: Bool = true) async throws -> ItemPath {
    let address = try request.address()
    guard let bytes = address.path else {
      throw SheafError(.invalid, subject: "path", reason: "is missing", advice: "name an item: path=Documents/…")
    }
    let account = try await account(address.account)
    guard let (id, below) = address.itemPlace else { return try ItemPath(account: account, bytes: bytes) }
    let item = try await call { try $0.path(ofItem: id, for: account, isExact: isExact) }
    return below.isEmpty ? item : try ItemPath(account: account, bytes: item.bytes + below)
  }

  /// The account that acts, and the item that a request names; nil where it is about everything of the account.
  ///
  /// - Parameter isExact: As of ``Library/path(ofItem:for:isExact:)``.
  func whole(_ request: Request, isExact: Bool = false) async throws -> (AccountHandle, ItemPath?) {
    let address = try request.address()
    let account = try await account(address.account)
    return (account, address.path == nil ? nil : try await item(request, isExact: isExact))
  }
}
