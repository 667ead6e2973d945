import HTTPTypes
import Hummingbird
import Logging
import SheafHubStore
import SheafWire

/// The routes of a hub. `docs/hub-api.yaml` describes them.
struct HubRoutes: Sendable {
  typealias Handler = @Sendable (Request, HubContext) async throws -> Response

  /// Bytes of a body that is no contents and no sends.
  static let smallBody = 16 * 1024

  let hub: Hub
  let watch: SessionWatch
  let news: ZoneNews
  let limits: ServerLimits
  /// `https`, or `http` where the hub is for this machine alone.
  let scheme: String
  /// The fingerprint of a certificate that the hub made itself.
  let fingerprint: String?

  private let paths = PathTable()
  private let room: BodyRoom
  /// The memory for contents that are being read by clients.
  private let answers: BodyRoom

  init(
    hub: Hub, watch: SessionWatch, news: ZoneNews, limits: ServerLimits, scheme: String, fingerprint: String?
  ) {
    (self.hub, self.watch, self.news, self.limits) = (hub, watch, news, limits)
    (self.scheme, self.fingerprint) = (scheme, fingerprint)
    room = BodyRoom(limit: limits.bodies)
    answers = BodyRoom(limit: limits.answers)
  }

  func router(logger: Logger) -> Router<HubContext> {
    let router = Router(context: HubContext.self)
    router.add(middleware: Problems(paths: paths, logger: logger))
    addPublicRoutes(to: router)
    addSharePage(to: router)
    addFederationRoutes(to: router)
    let session = router.group().add(middleware: Sessions(watch: watch))
    addAccountRoutes(to: session)
    addZoneRoutes(to: session)
    addShareRoutes(to: session)
    addTransferRoutes(to: session)
    addSharedRoutes(to: session)
    addCollaborationRoutes(to: session)
    addEventRoutes(to: session)
    return router
  }

  /// Takes room for a body before it is read. Whoever holds the place has the room.
  ///
  /// - Parameter limit: Bytes that the body may have, which it is taken to have where it does not say.
  /// - Throws: ``HubError`` of kind `unavailable` where there is none.
  func takeRoom(for request: Request, upTo limit: Int, of caller: Caller) throws -> BodyRoom.Place {
    let said = request.headers[.contentLength].flatMap { Int($0) } ?? limit
    // What is compressed takes as much as may come out.
    let unpacked = request.headers[.contentEncoding] == nil ? 0 : limit
    return try room.take(min(max(0, said), limit) + unpacked, for: caller)
  }

  /// Takes room for contents before they are read. Whoever holds the place has the room.
  ///
  /// - Parameter length: Bytes of the contents, of which a chunk is in memory at most.
  /// - Throws: ``HubError`` of kind `unavailable` where there is none.
  func takeRoom(forContents length: Int, of caller: Caller) throws -> BodyRoom.Place {
    try answers.take(min(length, WireLimits.chunkBytes), for: caller)
  }

  /// Adds what a path answers to some methods; to others it answers 405.
  func add(_ path: String, to routes: some RouterMethods<HubContext>, _ handlers: [HTTPRequest.Method: Handler]) {
    paths.add(path, methods: Array(handlers.keys))
    for (method, handler) in handlers {
      routes.on(RouterPath(path), method: method) { request, context in try await handler(request, context) }
    }
  }
}

/// Finds out whose request it is.
private struct Sessions: RouterMiddleware {
  let watch: SessionWatch

  func handle(
    _ request: Request, context: HubContext, next: (Request, HubContext) async throws -> Response
  ) async throws -> Response {
    guard let header = request.headers[.authorization], header.prefix(7).lowercased() == "bearer " else {
      throw HubError(.unauthorized, "the request has no session")
    }
    var (request, context) = (request, context)
    let caller = try await watch.caller(token: String(header.dropFirst(7)))
    context.caller = caller
    request.body = RequestBody(asyncSequence: RecheckedBody(body: request.body, caller: caller, watch: watch))
    do {
      return try await next(request, context)
    } catch let error as HubError where error.kind == .notFound {
      // What is missing may be the caller's account, which was removed a moment ago.
      try await watch.confirm(caller)
      throw error
    }
  }
}

/// The body of a request, at whose end its session is looked at again: however slowly it comes, nothing is done for a
/// device that was removed meanwhile.
private struct RecheckedBody: AsyncSequence, Sendable {
  let body: RequestBody
  let caller: Caller
  let watch: SessionWatch

  struct AsyncIterator: AsyncIteratorProtocol {
    var base: RequestBody.AsyncIterator
    let caller: Caller
    let watch: SessionWatch

    mutating func next() async throws -> ByteBuffer? {
      if let part = try await base.next() { return part }
      try await watch.recheck(caller)
      return nil
    }
  }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(base: body.makeAsyncIterator(), caller: caller, watch: watch)
  }
}

/// Turns a failure into problem details, and tells the log of those that are the hub's own. No log has a path, since
/// paths have ids and hashes in them.
private struct Problems: RouterMiddleware {
  let paths: PathTable
  let logger: Logger

  func handle(
    _ request: Request, context: HubContext, next: (Request, HubContext) async throws -> Response
  ) async throws -> Response {
    let problem: Problem
    do {
      let response = try await next(request, context)
      logger.debug("request", metadata: ["method": "\(request.method)", "status": "\(response.status.code)"])
      return response
    } catch let error as HubError {
      problem = error.problem
    } catch let error as HubStoreError {
      switch error {
      case .nulInText: problem = Problem(.invalid, detail: "a text has a NUL in it")
      case .unavailable(let reason):
        logger.warning("the store is away", metadata: ["reason": "\(reason)"])
        problem = Problem(.unavailable, detail: "the hub's store is away")
      case .full(let reason):
        logger.error("the store has no room", metadata: ["reason": "\(reason)"])
        problem = Problem(.unavailable, detail: "the hub's store has no room; its administrator has to make some")
      case .corrupt(let reason), .refused(let reason):
        logger.error("the store failed", metadata: ["reason": "\(reason)"])
        problem = Problem(.failure, detail: "the hub's store failed")
      }
    } catch let error as any HTTPResponseError where error.status == .notFound {
      if let methods = paths.methods(of: request.uri.path) {
        let allowed = methods.joined(separator: ", ")
        var response = Response(Problem(.method, detail: "this path takes \(allowed)"))
        response.headers[.allow] = allowed
        return response
      }
      problem = Problem(.notFound, detail: "the hub has no such path")
    } catch let error as any HTTPResponseError {
      problem = Problem(
        Problem.Kind.allCases.first { $0.status == error.status.code } ?? .invalid,
        detail: error.status.reasonPhrase)
    } catch is CancellationError {
      problem = Problem(.unavailable, detail: "the hub is ending")
    } catch {
      logger.error("a request failed", metadata: ["reason": "\(type(of: error))"])
      problem = Problem(.failure, detail: "the hub failed")
    }
    logger.debug(
      "request", metadata: ["method": "\(request.method)", "status": "\(problem.status)", "problem": "\(problem.type)"])
    return Response(problem)
  }
}
