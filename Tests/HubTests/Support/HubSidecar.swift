import Foundation
import Logging
import MountKit
import ServiceLifecycle
import SheafModel
import Synchronization

@testable import SheafHubClient
@testable import SheafSidecar

/// A sidecar in this process that follows a hub, with its state in a file that stays when it ends.
struct HubSidecar {
  let state: String
  /// What it said, by level.
  let said = SaidLines()

  init(in folder: TemporaryFolder, name: String = "sidecar") { state = "\(folder.path)/\(name).sqlite" }

  /// Delivers while `body` runs.
  func delivering(_ device: Device, to url: String, fromNow: Bool = false, _ body: () async throws -> Void) async throws
  {
    var sink = SinkConfiguration(name: "webhook", target: .webhook(url: url, secrets: []))
    (sink.schedule.base, sink.schedule.cap, sink.beginsNow) = (0.01, 0.05, fromNow)
    try await delivering(device, [sink], body)
  }

  func delivering(_ device: Device, _ sinks: [SinkConfiguration], _ body: () async throws -> Void) async throws {
    var configuration = SidecarConfiguration()
    (configuration.sinks, configuration.isOfHub) = (sinks, true)
    try configuration.check()
    let store = try SidecarState(path: state)
    defer { try? store.close() }
    let service = SidecarService(
      configuration, device: device, limits: .brief, state: store, random: { 0.5 },
      log: Logger(label: "sidecar") { _ in said })
    let group = ServiceGroup(
      configuration: .init(
        services: [.init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)],
        logger: Logger(label: "group") { _ in SwiftLogNoOpLogHandler() }))
    let running = Task { try await group.run() }
    let result = await Result { try await body() }
    await group.triggerGracefulShutdown()
    try await running.value
    try result.get()
  }

  func record(_ device: Device, _ sink: String = "webhook") throws -> SidecarState.Record {
    let store = try SidecarState(path: state)
    defer { try? store.close() }
    return try store.record(SinkKey(library: device.zone, name: sink))
  }
}

/// A log that keeps what it is told.
struct SaidLines: LogHandler {
  private final class Lines: Sendable {
    let lines = Mutex<[(level: Logger.Level, text: String)]>([])
  }

  private let lines = Lines()
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.info

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    lines.lines.withLock { $0.append((event.level, "\(event.message) \(event.metadata ?? [:])")) }
  }

  func of(_ level: Logger.Level) -> [String] { lines.lines.withLock { $0 }.filter { $0.level == level }.map(\.text) }
}
