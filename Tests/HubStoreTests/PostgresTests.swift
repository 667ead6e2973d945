import Foundation
import HubKit
import MountKit
import SheafHubStore
import Testing

/// Lost connections, killed servers, and transactions that meet.
@Suite(.enabled(if: PostgresCluster.isInstalled, "PostgreSQL is not installed"))
struct PostgresTests {
  private func withDatabase(
    _ body: (PostgresCluster, any Database, _ place: String) async throws -> Void
  ) async throws {
    let cluster = try PostgresCluster.shared.get()
    let place = try cluster.newPlace()
    let database = PostgresDatabase(target: place)
    try await DatabaseTests.makeTable(database)
    try await body(cluster, database, place)
    await database.close()
  }

  @Test func aLostConnectionIsReplaced() async throws {
    try await withDatabase { cluster, database, place in
      #expect(try await DatabaseTests.add(1, to: database) == 1)
      try cluster.disconnect(place)
      #expect(try await DatabaseTests.add(1, to: database) == 2)
      try cluster.disconnect(place)
      #expect(try await DatabaseTests.number(in: database) == 2)
    }
  }

  @Test func aTransactionLostBeforeItsCommitRunsAgain() async throws {
    try await withDatabase { cluster, database, place in
      _ = try await DatabaseTests.add(1, to: database)
      let runs = Counter()
      try await database.write { connection in
        try connection.execute("UPDATE things SET number = number + 1")
        if runs.next() == 1 { try cluster.disconnect(place) }
        try connection.execute("UPDATE things SET number = number + 10")
      }
      #expect(runs.value == 2)
      #expect(try await DatabaseTests.number(in: database) == 12)
    }
  }

  /// Whether it is done nobody knows, so it must not be done again.
  @Test func aTransactionLostAtItsCommitDoesNotRunAgain() async throws {
    try await withDatabase { cluster, database, place in
      let schema = PostgresCluster.schema(of: place)
      try cluster.psql(
        """
        CREATE FUNCTION \(schema).die() RETURNS trigger LANGUAGE plpgsql AS
          'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END';
        CREATE CONSTRAINT TRIGGER die AFTER INSERT ON \(schema).things DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION \(schema).die()
        """)
      let runs = Counter()
      await #expect(throws: HubStoreError.self) {
        try await database.write { connection in
          runs.next()
          try connection.execute("INSERT INTO things (zone, number) VALUES (1, 1)")
        }
      }
      #expect(runs.value == 1)
      #expect(try await DatabaseTests.number(in: database) == nil)
    }
  }

  @Test func aKilledServerIsAwayAndThenGoesOn() async throws {
    let cluster = try PostgresCluster(syncs: true)
    let database = PostgresDatabase(target: try cluster.newPlace())
    try await DatabaseTests.makeTable(database)
    for round in 1...3 {
      for step in 1...10 {
        #expect(try await DatabaseTests.add(1, to: database) == Int64((round - 1) * 10 + step))
      }
      try cluster.kill()
      await #expect {
        try await DatabaseTests.number(in: database)
      } throws: {
        if case HubStoreError.unavailable = $0 { true } else { false }
      }
      try cluster.start()
      #expect(try await DatabaseTests.number(in: database) == Int64(round * 10))
    }
    await database.close()
    cluster.stop()
  }

  /// The engine then says that the commit succeeded, with a warning. A standby that takes over would not have it.
  @Test func aCommitThatDoesNotWaitForTheStandbyIsNotAcknowledged() async throws {
    let cluster = try PostgresCluster(syncs: true)
    defer { cluster.stop() }
    let place = try cluster.newPlace()
    let database = PostgresDatabase(target: place)
    try await DatabaseTests.makeTable(database)
    #expect(try await database.durabilityWarning()?.contains("one machine") == true)
    try cluster.psql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    try cluster.psql("SELECT pg_reload_conf()")
    try eventually("the setting is heeded", within: .seconds(60)) {
      try cluster.psql("SHOW synchronous_standby_names") == "nobody"
    }
    #expect(try await database.durabilityWarning() == nil)
    async let added = DatabaseTests.add(1, to: database)
    let waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    try eventually("the commit waits", within: .seconds(60)) {
      try cluster.psql("SELECT COUNT(*) \(waiting)") == "1"
    }
    try cluster.psql("SELECT pg_cancel_backend(pid) \(waiting)")
    do {
      _ = try await added
      Issue.record("it was acknowledged")
    } catch HubStoreError.unavailable(let reason) {
      #expect(reason.contains("synchronous replication"), "\(reason)")
    }
    // It is there for as long as this server is.
    #expect(try await DatabaseTests.number(in: database) == 1)
    await database.close()
  }

  @Test func ofTwoThatLockEachOtherBothAreDone() async throws {
    try await withDatabase { _, database, _ in
      _ = try await database.write { connection in
        try connection.execute("INSERT INTO things (zone, number) VALUES (1, 0), (2, 0)")
      }
      let runs = Counter(), first = Gate(), second = Gate()
      // The first runs of both hold one row each when they ask for the other.
      async let one: Void = database.write { connection in
        let run = runs.next()
        try connection.execute("UPDATE things SET number = number + 1 WHERE zone = 1")
        if run <= 2 {
          first.open()
          second.pass()
        }
        try connection.execute("UPDATE things SET number = number + 1 WHERE zone = 2")
      }
      async let other: Void = database.write { connection in
        let run = runs.next()
        try connection.execute("UPDATE things SET number = number + 10 WHERE zone = 2")
        if run <= 2 {
          second.open()
          first.pass()
        }
        try connection.execute("UPDATE things SET number = number + 10 WHERE zone = 1")
      }
      _ = try await (one, other)
      #expect(runs.value >= 3, "they did not meet")
      let numbers = try await database.read { connection in
        try connection.query("SELECT number FROM things ORDER BY zone")
      }
      #expect(numbers == [SQLRow([.integer(11)]), SQLRow([.integer(11)])])
    }
  }

  @Test func aSerializationFailureRunsAgain() async throws {
    try await withDatabase { _, database, _ in
      _ = try await DatabaseTests.add(1, to: database)
      let runs = Counter()
      try await database.write { connection in
        try connection.execute("UPDATE things SET number = number + 1")
        if runs.next() > 2 { return }
        // A body that goes on after it is not taken for done.
        _ = try? connection.execute("DO 'BEGIN RAISE EXCEPTION ''again'' USING ERRCODE = ''40001''; END'")
      }
      #expect(runs.value == 3)
      #expect(try await DatabaseTests.number(in: database) == 2)
    }
  }

  @Test func twoHandlesAreOneStore() async throws {
    try await withDatabase { _, database, place in
      let other = PostgresDatabase(target: place, connections: 2)
      _ = try await DatabaseTests.add(0, to: other)
      let numbers = try await withThrowingTaskGroup(of: Int64?.self) { group in
        for index in 0..<100 {
          group.addTask { try await DatabaseTests.add(1, to: index % 2 == 0 ? database : other) }
        }
        return try await group.reduce(into: Set<Int64>()) { if let number = $1 { $0.insert(number) } }
      }
      #expect(numbers == Set(1...100))
      await other.close()
    }
  }

  @Test func aServerThatIsNotThereIsUnavailable() async throws {
    let database = PostgresDatabase(target: "postgresql:///postgres?host=%2Fvar%2Ftmp%2Fno-such-folder")
    await #expect {
      try await database.write { _ in }
    } throws: {
      if case HubStoreError.unavailable = $0 { true } else { false }
    }
    await database.close()
  }
}
