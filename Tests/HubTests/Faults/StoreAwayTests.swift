import Foundation
import HubKit
import MountKit
import SheafHub
import SheafHubStore
import SheafModel
import SheafWire
import Testing

/// The store is away while machines send, read and listen.
@Suite(.enabled(if: PostgresCluster.isInstalled, "PostgreSQL is not installed"))
struct StoreAwayTests {
  /// Everybody is told when to come again, streams stay open, and then all goes on as if nothing had been.
  @Test func allGoesOnWhenTheStoreIsBack() async throws {
    let cluster = try PostgresCluster(syncs: true)
    defer { cluster.stop() }
    let database = PostgresDatabase(target: try cluster.newPlace())
    try await RunningHub.with(database) { running in
      let client = running.client
      let (_, token) = try await running.member()
      let first = SendRequest(groups: [[.document("a", "1", serial: 1)]])
      let second = SendRequest(groups: [[.document("b", "2", serial: 2)]])
      #expect(try await client.send("POST", "/v1/sends", json: first, token: token).status == 200)
      let stream = try RawConnection(port: running.port)
      stream.send("GET /v1/stream HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(token)\r\n\r\n")
      #expect(try stream.read(upTo: "\"number\":1,"))

      try cluster.kill()
      for _ in 0..<3 {
        for (method, path, body) in [
          ("POST", "/v1/sends", try JSONEncoder().encode(second)), ("GET", "/v1/feed", nil), ("GET", "/v1/events", nil),
          ("POST", "/v1/chunks/missing", Data("{\"hashes\":[]}".utf8)), ("GET", "/v1/account", nil),
          ("GET", "/v1/health", nil), ("GET", "/v1/stream", nil), ("GET", "/v1/inbox", nil),
        ] {
          let answer = try await client.send(method, path, body: body, token: token)
          #expect(answer.status == 503 && answer.problem == .unavailable, "\(path): \(answer)")
          #expect(answer.headers["retry-after"] == "2", "\(path)")
        }
      }
      // What needs no store is answered.
      #expect(try await client.send("GET", "/v1").status == 200)
      #expect(try await client.send("POST", "/v1/challenges").status == 201)

      try cluster.start()
      #expect(try await client.send("GET", "/v1/feed", token: token).decode(FeedPage.self).items.count == 1)
      let answer: SendAnswer = try await client.send("POST", "/v1/sends", json: second, token: token).decode()
      #expect(answer.verdicts.map(\.outcome) == [.done] && answer.number == 2)
      #expect(try stream.read(upTo: "\"number\":2,"))
    }
    await database.close()
  }

  /// While the store does not even refuse, nobody waits for longer than one attempt takes, however many wait.
  @Test func thoseWhoWaitAreToldTogether() async throws {
    let hole = try BlackHole()
    let database = PostgresDatabase(
      target: "postgresql://127.0.0.1:\(hole.port)/hub?connect_timeout=2&sslmode=disable", connections: 1)
    let refused = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<200 {
        group.addTask {
          do {
            return try await database.read { _ in false }
          } catch HubStoreError.unavailable {
            return true
          } catch {
            return false
          }
        }
      }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(refused == 200)
    // One after the other they would have made two hundred attempts.
    #expect(hole.connections < 20)
    await database.close()
  }
}
