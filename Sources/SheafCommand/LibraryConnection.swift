import Glibc
import Logging
import Synchronization
import SheafClient
import SheafLibrary
import SheafModel
import SheafReplication
import SheafService

/// A connection to a library: to the process that owns it, or to this process if none does.
///
/// Either way requests go through the same API: if nobody serves the library, this process opens it and serves it to
/// itself until ``close()``.
struct LibraryConnection: Sendable {
  let client: SheafClient
  let info: ServiceInfo
  private let own: OwnLibrary?

  /// Whether this process serves the library to itself, since no other process does.
  var isOwn: Bool { own != nil }
  /// Whether opening it made the library.
  private(set) var isNew = false

  /// Opens a connection, runs `body` and closes it.
  ///
  /// - Parameter creating: Whether to make a library that does not exist.
  /// - Throws: ``SheafError``: `notFound` if there is no library, `unavailable` if the process that owns it does not
  ///   answer; and the error of `body`.
  static func with<Value>(
    _ location: LibraryLocation, creating: Bool = false, body: (LibraryConnection) async throws -> Value
  ) async throws -> Value {
    let connection = try await open(location, creating: creating)
    do {
      let value = try await body(connection)
      await connection.close()
      return value
    } catch {
      await connection.close()
      throw AdvisedCommand.completed(error, location)
    }
  }

  /// Opens a connection, and waits for a process that is starting or ending.
  static func open(_ location: LibraryLocation, creating: Bool) async throws -> LibraryConnection {
    var patience = OwnerPatience(location)
    while true {
      if let served = try await join(location) { return served }
      let isNew = NewLibrary.wouldBeMade(at: location)
      if isNew {
        if !creating { try NewLibrary.refuse(at: location) }
        try NewLibrary.refuseWithoutDisk(at: location)
      }
      do {
        var connection = try await serve(location)
        connection.isNew = isNew
        return connection
      } catch let error as SheafError where error.kind == .busy {
        try await patience.wait(otherwise: silent(location))
      }
    }
  }

  /// The connection to the process that serves a library; nil if none does.
  static func join(_ location: LibraryLocation) async throws -> LibraryConnection? {
    var patience = OwnerPatience(location)
    while let socket = try SocketProbe.served(of: location) {
      let client = try SheafClient(socket: socket, library: location.path)
      do {
        let info = try await client.info(within: .seconds(OwnerPatience.limit.components.seconds))
        return LibraryConnection(client: client, info: info, own: nil)
      } catch let error as SheafError where error.kind == .unavailable {
        await client.shutdown()
        // Most likely that process ended just now, and the next one is about to answer.
        try await patience.wait(otherwise: silent(location))
      } catch {
        await client.shutdown()
        throw error
      }
    }
    return nil
  }

  /// Closes the connection. A library of this process stays open until ``closeOwn()``: other commands may have joined
  /// meanwhile, and this command's output must not wait for them.
  func close() async {
    await client.shutdown()
    if let own { Self.ownLibraries.withLock { $0.append(own) } }
  }

  private static let ownLibraries = Mutex<[OwnLibrary]>([])

  /// Closes the libraries that this process opened, once the commands that joined it have finished; the last thing that
  /// a command does.
  static func closeOwn() async throws {
    let libraries = ownLibraries.withLock { libraries in
      defer { libraries = [] }
      return libraries
    }
    for library in libraries { try await library.close() }
  }

  /// Opens the library in this process.
  private static func serve(_ location: LibraryLocation) async throws -> LibraryConnection {
    let own = try await OwnLibrary(location)
    do {
      let client = try SheafClient(socket: location.socketPath, library: location.path)
      let info = ServiceInfo(library: location.path, id: own.id, pid: getpid(), mounts: false)
      return LibraryConnection(client: client, info: info, own: own)
    } catch {
      try? await own.close()
      throw error
    }
  }

  /// The error for a lock that is held by a process that does not answer.
  static func silent(_ location: LibraryLocation) -> SheafError {
    let pid = OwnerPatience.owner(of: location)
    let owner = pid.map { "process \($0)" } ?? "another process"
    let end = pid.map { ", or end it with: kill \($0)" } ?? ""
    return SheafError(
      .unavailable, subject: location.path, reason: "the library is in use by \(owner), which does not answer",
      advice: "try again later" + end)
  }
}

/// A library that this process has opened to serve one command, and the service in front of it.
private struct OwnLibrary: Sendable {
  private let library: Library
  private let connections: LibraryConnections
  private let service: SheafService

  /// The library's id.
  var id: String { library.id }

  /// - Throws: ``SheafError``, `busy` if another process owns the library.
  init(_ location: LibraryLocation) async throws {
    library = try Library.open(location)
    do {
      let logger = Logger(label: "sheaf") { _ in SwiftLogNoOpLogHandler() }
      connections = LibraryConnections(library: library, folder: LibraryChoice.devicesFolder(), logger: logger)
      service = try SheafService(library: library, mounts: nil, connections: connections, logger: logger)
      try await service.start()
    } catch {
      try? library.close()
      throw error
    }
  }

  /// Seconds after which a person hears why the command has not ended.
  private static let silence = Duration.seconds(1)

  /// Waits for commands that have joined meanwhile, then closes the library.
  func close() async throws {
    let notice = Task { [path = library.location.path] in
      try await Task.sleep(for: Self.silence)
      guard StandardError.isTerminal else { return }
      StandardError.write("sheaf: done; waits for other commands that use \(path.printable) through this one\n")
    }
    defer { notice.cancel() }
    try await service.stop(patience: .seconds(3600))
    await connections.stop()
    try library.close()
  }
}
