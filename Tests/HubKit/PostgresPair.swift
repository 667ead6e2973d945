import Foundation
import MountKit
import Synchronization

/// Two PostgreSQL servers for tests: one takes writes, and the other one has every commit before it is acknowledged.
package final class PostgresPair: Sendable {
  private let roles: Mutex<(primary: PostgresCluster, standby: PostgresCluster)>

  package init() throws {
    let primary = try PostgresCluster(syncs: true)
    // The copy has the settings, too. The primary heeds them once there is a standby that answers.
    try primary.psql("ALTER SYSTEM SET wal_keep_size = '64MB'")
    try primary.psql("ALTER SYSTEM SET synchronous_standby_names = '*'")
    let standby = try PostgresCluster(syncs: true, standbyOf: primary)
    try primary.psql("SELECT pg_reload_conf()")
    roles = Mutex((primary, standby))
    try waitForStandby()
  }

  package var primary: PostgresCluster { roles.withLock(\.primary) }
  private var standby: PostgresCluster { roles.withLock(\.standby) }

  /// A place for the tables of one hub, as a URI of libpq that names both servers.
  package func newPlace() throws -> String {
    let (primary, standby) = roles.withLock { $0 }
    return try primary.newPlace(standby: standby)
  }

  /// Kills the primary and has the standby take its place.
  package func failOver() throws {
    let (primary, standby) = roles.withLock { $0 }
    try primary.kill()
    try standby.promote()
    roles.withLock { $0 = (standby, primary) }
  }

  /// Makes the server that was killed the standby of the other one.
  package func bringBack() throws {
    let (primary, standby) = roles.withLock { $0 }
    try standby.follow(primary)
    try waitForStandby()
  }

  private func waitForStandby() throws {
    let primary = primary
    try eventually("the standby has what is committed", within: .seconds(120)) {
      try primary.psql("SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
    }
  }

  package func stop() {
    standby.stop()
    primary.stop()
  }
}
