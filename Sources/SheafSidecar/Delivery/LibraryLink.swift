import Glibc
import Logging
import SheafClient
import SheafModel

/// The connection to a library's process, which comes and goes.
actor LibraryLink: EventSource {
  /// Seconds between attempts to reach a process that is not there, at first and at most.
  private static let waits = (first: 0.05, longest: 1.0)

  private let location: LibraryLocation
  private let log: Logger
  private var known: (client: SheafClient, socket: String)?
  /// Whether the process answered the last time.
  private var isThere = false
  /// Whether the log says already that it does not answer.
  private var isMissing = false
  private let whenThere: @Sendable () -> Void

  /// - Parameter whenThere: Called when a process answers that may not have a report of the delivery yet.
  init(_ location: LibraryLocation, log: Logger, whenThere: @escaping @Sendable () -> Void) {
    self.location = location
    self.log = log
    self.whenThere = whenThere
  }

  /// The client, and the process that answers, once one does.
  ///
  /// - Throws: `CancellationError`.
  func connect() async throws -> (client: SheafClient, info: ServiceInfo) {
    var wait = Self.waits.first
    while true {
      try Task.checkCancellation()
      do {
        guard let socket = try SocketProbe.served(of: location) else {
          let isMissing = access(location.path, F_OK) != 0 && errno == ENOENT
          throw SheafError(
            .unavailable, subject: location.path,
            reason: isMissing ? "there is no such library" : "no process has it open",
            advice: isMissing
              ? "name another one with --library, or mount its disk"
              : "mount it: sheaf mount --library \(location.path)")
        }
        let client = try await client(at: socket)
        let info = try await client.info(within: .seconds(5))
        if isMissing { log.notice("the library is there", metadata: ["library": "\(location.path)"]) }
        (isMissing, isThere) = (false, true)
        whenThere()
        return (client, info)
      } catch let error as SheafError {
        if !isMissing {
          log.notice("waiting for the library", metadata: ["library": "\(location.path)", "reason": "\(error)"])
        }
        (isMissing, isThere) = (true, false)
      }
      try await Task.sleep(for: .seconds(wait))
      wait = min(wait * 2, Self.waits.longest)
    }
  }

  func answering() async throws -> any EventLogs {
    let (client, info) = try await connect()
    return LibraryLog(client: client, info: info)
  }

  /// Sends a report of the delivery to the library, if it is there.
  func report(_ report: SidecarReport) async {
    guard isThere, let known else { return }
    try? await known.client.report(report)
  }

  func close() async {
    await known?.client.shutdown()
    known = nil
  }

  private func client(at socket: String) async throws -> SheafClient {
    if let known, known.socket == socket { return known.client }
    let former = known
    // An ending process would wait for idle connections of its clients.
    let client = try SheafClient(socket: socket, library: location.path, keepsConnections: false)
    known = (client, socket)
    await former?.client.shutdown()
    return client
  }
}

/// The log of a library whose process answers.
private struct LibraryLog: EventLogs {
  let client: SheafClient
  let info: ServiceInfo

  var id: String { info.id }

  func newest(for sink: any Sink) async throws -> [LogPlace] {
    [LogPlace(number: try await client.events(try await sink.reader(client, info), after: nil, limit: 1).last)]
  }

  func follow(for sink: any Sink, from record: SidecarState.Record) async throws -> any EventFlow {
    LibraryFlow(stream: try await client.follow(try await sink.reader(client, info), after: record.position))
  }
}

private struct LibraryFlow: EventFlow {
  var stream: EventStream

  mutating func next() async throws -> EventElement? { try await stream.next().map(Self.element) }

  mutating func nextReceived() throws -> EventElement? { try stream.nextReceived().map(Self.element) }

  private static func element(_ element: EventStream.Element) -> EventElement {
    switch element {
    case .event(let event, let json):
      .event(Delivery(event: event, json: json), LogPlace(number: event.position))
    case .position(let number): .position(LogPlace(number: number))
    case .silence: .silence
    }
  }
}
