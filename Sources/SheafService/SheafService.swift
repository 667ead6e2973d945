import Glibc
import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore
import NIOPosix
package import SheafLibrary
import SheafModel
import ServiceLifecycle
import Synchronization

/// A library as an HTTP API on the Unix socket beside it.
///
/// The caller has the library open, and so holds its lock: an existing socket belongs to nobody.
///
/// ```swift
/// let service = try SheafService(library: library, mounts: nil, logger: logger)
/// try await service.start()
/// // … clients come and go …
/// try await service.stop(patience: .seconds(1))
/// try library.close()
/// ```
package final class SheafService: Sendable {
  /// How long ``stop(patience:)`` still waits after its patience for requests that are being answered.
  private static let grace = Duration.seconds(10)
  /// How many calls of the library run at once.
  private static let threadCount = 8

  private let socketFile: String
  private let door: UserDoor?
  private let socket: ServiceSocket
  private let group: ServiceGroup
  private let threads: NIOThreadPool
  /// The thread that reads and writes a user's connections, so that the library's own do not wait behind them; nil for
  /// the library's own service.
  private let usersLoop: MultiThreadedEventLoopGroup?
  private let clients: ClientCount
  private let signals: EventSignals
  private let listening = Latch()
  private let running = Mutex<Task<Void, any Error>?>(nil)

  /// - Parameters:
  ///   - library: The library, open; it stays open until after ``stop(patience:)``.
  ///   - mounts: The controller that mounts; nil for a process that serves one command and ends.
  ///   - connections: The controller that connects accounts with hubs; nil for a process that knows none.
  ///   - door: The one user whom the service is for, on a socket of theirs; nil for the library's own service.
  ///   - limits: How much it serves at once; nil for the usual limits of such a door.
  /// - Throws: ``SheafError`` if the library's path cannot have a socket.
  package init(
    library: any PathInterface, mounts: (any MountController)?, connections: (any ConnectionController)? = nil,
    door: UserDoor? = nil, limits: ServiceLimits? = nil, logger: Logger
  ) throws {
    let limits = limits ?? (door == nil ? .library : .user)
    self.door = door
    socketFile =
      door.map { UserSocket.path(library: library.location.path, uid: $0.uid) } ?? library.location.socketPath
    socket = try ServiceSocket(
      String(socketFile.split(separator: "/").last ?? ""),
      in: door == nil ? library.openFolder() : UserSocket.openFolder())
    let usersLoop = door.map { _ in MultiThreadedEventLoopGroup(numberOfThreads: 1) }
    self.usersLoop = usersLoop
    let clients = ClientCount(limit: limits.connections)
    self.clients = clients
    let signals = EventSignals(library: library)
    self.signals = signals
    threads = NIOThreadPool(numberOfThreads: Self.threadCount)
    let info = ServiceInfo(
      library: library.location.path, id: library.id, pid: getpid(), mounts: mounts != nil,
      account: door?.mount.account)
    let router = Router()
    let api = LibraryAPI(
      library: library, mounts: mounts, connections: connections, threads: threads, clients: clients, signals: signals,
      streams: Slots(limits.streams, "streams"), downloads: Slots(limits.downloads, "downloads"),
      jobs: Slots(limits.jobs, "long jobs"), sidecars: SidecarBoard(), info: info)
    if let door { api.addRoutes(to: router, for: door) } else { api.addRoutes(to: router) }
    var quiet = logger
    quiet.logLevel = max(logger.logLevel, .warning)
    let server = LibraryServer(
      responder: router.buildResponder(),
      builder: .http1(
        configuration: .init(
          additionalChannelHandlers: [
            clients.makeHandler(), SmallReads(), IdleStateHandler(writeTimeout: TimeAmount(limits.writeTime)),
            WriteTimeout(),
          ] + (door.map { [$0.makeHandler()] } ?? []), idleTimeout: TimeAmount(limits.idleTime))),
      configuration: ServerConfiguration(
        address: .unixDomainSocket(path: socket.address), reuseAddress: false,
        availableConnectionsDelegate: .maximum(limits.connections + ServiceLimits.spareConnections, logger: quiet)),
      clients: clients,
      turns: Turns(limits.requests, waiting: limits.connections),
      eventLoops: usersLoop ?? .singleton,
      onServerRunning: { [listening] in listening.reach() },
      logger: quiet)
    var configuration = ServiceGroupConfiguration(services: [server], logger: quiet)
    configuration.maximumGracefulShutdownDuration = Self.grace
    group = ServiceGroup(configuration: configuration)
  }

  /// Binds the socket, mode 0600 from the first moment, and returns once it answers.
  ///
  /// It narrows the process's umask meanwhile.
  ///
  /// - Throws: ``SheafError`` if the socket cannot be bound.
  package func start() async throws {
    threads.start()
    PrivateFiles.begin()
    defer { PrivateFiles.end() }
    let task = Task { [group, listening] in
      do {
        try await group.run()
      } catch {
        listening.fail(error)
        throw error
      }
    }
    running.withLock { $0 = task }
    do {
      try await listening.wait()
      if let door { try socket.give(to: door.uid, group: door.gid) }
    } catch {
      var status = stat()
      if lstat(socketFile, &status) == 0, status.st_mode & S_IFMT != S_IFSOCK {
        let what = status.st_mode & S_IFMT == S_IFLNK ? "a symbolic link" : "no socket"
        throw SheafError(.inputOutput, subject: socketFile.printable, reason: "is \(what)", advice: "take it away")
      }
      throw SheafError(
        .inputOutput, subject: socketFile.printable, reason: "cannot be bound: \(error)".printable,
        advice: "see that the library's folder can be written")
    }
  }

  /// Removes the socket, serves connected clients until they have gone, and ends.
  ///
  /// - Parameter patience: How long clients may stay connected before they are cut off between two requests.
  package func stop(patience: Duration) async throws {
    socket.remove()
    signals.finish()
    await clients.close(patience: patience)
    await group.triggerGracefulShutdown()
    let task = running.withLock { $0 }
    _ = await task?.result
    try await threads.shutdownGracefully()
    try await usersLoop?.shutdownGracefully()
  }
}

/// Narrows the process's umask for a time, so that new files are for its user alone.
private enum PrivateFiles {
  private struct State {
    var users = 0
    var mask: mode_t = 0
  }

  private static let state = Mutex(State())

  static func begin() {
    state.withLock { state in
      if state.users == 0 { state.mask = umask(0o177) }
      state.users += 1
    }
  }

  static func end() {
    state.withLock { state in
      state.users -= 1
      if state.users == 0 { umask(state.mask) }
    }
  }
}

/// An event that happens once, or fails, and that others wait for.
private final class Latch: Sendable {
  private enum State {
    case pending([CheckedContinuation<Void, any Error>])
    case done(Result<Void, any Error>)
  }

  private let state = Mutex<State>(.pending([]))

  func reach() { settle(.success(())) }
  func fail(_ error: any Error) { settle(.failure(error)) }

  func wait() async throws {
    try await withCheckedThrowingContinuation { continuation in
      let result: Result<Void, any Error>? = state.withLock { state in
        switch state {
        case .pending(let waiting):
          state = .pending(waiting + [continuation])
          return nil
        case .done(let result): return result
        }
      }
      if let result { continuation.resume(with: result) }
    }
  }

  private func settle(_ result: Result<Void, any Error>) {
    let waiting: [CheckedContinuation<Void, any Error>] = state.withLock { state in
      guard case .pending(let waiting) = state else { return [] }
      state = .done(result)
      return waiting
    }
    for continuation in waiting { continuation.resume(with: result) }
  }
}
