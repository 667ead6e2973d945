import Logging
import ServiceLifecycle
import SheafHubStore

extension Hub {
  /// Frees what nobody needs any more: versions and deleted items that are kept no longer, chunks without a use or a
  /// lease, and deletions of long ago. It takes one zone after the other, a little at a time.
  package func upkeep() async throws {
    let zones = try await database.read { connection in
      try connection.query("SELECT zone FROM zones").map { try $0.text(0) }
    }
    let rules = try await retention.rules()
    for zone in zones {
      try Task.checkCancellation()
      do {
        try await transfers.upkeep(of: zone)
        try await purging.finish(in: zone)
        try await retention.thin(zone, by: rules)
        try await retention.expire(zone, by: rules)
        try await contents.collect(in: zone)
        try await feeds.forgetDeletions(in: zone)
        try await feeds.trim(zone)
        try await sharing.inboxes.forgetEnded(in: zone)
        try await collaborations.upkeep(of: zone)
        try await guests.upkeep(of: zone)
      } catch let error as HubError where error.kind == .notFound {
        // The account was removed meanwhile.
        continue
      }
    }
    await database.emptyLog()
  }
}

/// Runs the upkeep each hour while a server runs.
struct HourlyUpkeep: Service {
  private static let interval = Duration.seconds(3_600)
  /// After a failure.
  private static let pause = Duration.seconds(60)

  let hub: Hub
  let certificate: CertificateFiles?
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        if let end = certificate?.end, let warning = HubCertificate.warning(end: end, now: hub.clock.now) {
          logger.warning("\(warning)")
        }
        do {
          // Rows that another process had not brought when it ended.
          try await hub.sharing.inboxes.deliverAll()
          try await hub.transfers.finishAll()
          try? await Task.sleep(for: Self.interval)
          try Task.checkCancellation()
          try await hub.upkeep()
        } catch is CancellationError {
          return
        } catch {
          logger.warning("the upkeep stopped", metadata: ["reason": "\(type(of: error))"])
          try? await Task.sleep(for: Self.pause)
        }
      }
    }
  }
}
