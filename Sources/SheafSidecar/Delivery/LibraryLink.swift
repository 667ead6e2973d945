import Logging
import SheafClient
import SheafModel

/// The way to a library's process, which comes and goes.
actor LibraryLink {
  /// Seconds between attempts to reach a process that is not there, at first and at most.
  private static let waits = (first: 0.05, longest: 1.0)

  private let location: LibraryLocation
  private let log: Logger
  private var known: SheafClient?
  private var isMissing = false

  init(_ location: LibraryLocation, log: Logger) {
    self.location = location
    self.log = log
  }

  /// The client and the library's id, once a process answers.
  ///
  /// - Throws: `CancellationError`.
  func connect() async throws -> (client: SheafClient, library: String) {
    var wait = Self.waits.first
    while true {
      try Task.checkCancellation()
      do {
        let client = try client()
        let info = try await client.info(within: .seconds(5))
        if isMissing { log.notice("the library is there", metadata: ["library": "\(location.path)"]) }
        isMissing = false
        return (client, info.id)
      } catch let error as SheafError {
        if !isMissing {
          log.notice("waiting for the library", metadata: ["library": "\(location.path)", "reason": "\(error)"])
        }
        isMissing = true
      }
      try await Task.sleep(for: .seconds(wait))
      wait = min(wait * 2, Self.waits.longest)
    }
  }

  /// Tells the library how delivery goes, if it is there.
  func report(_ report: SidecarReport) async {
    guard !isMissing, let client = try? client() else { return }
    try? await client.report(report)
  }

  func close() async {
    await known?.shutdown()
    known = nil
  }

  private func client() throws(SheafError) -> SheafClient {
    if let known { return known }
    // No process waits for its clients' idle connections.
    let client = try SheafClient(socket: location.socketPath, library: location.path, keepsConnections: false)
    known = client
    return client
  }
}
