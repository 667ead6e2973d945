import Foundation
import Glibc
import HubKit
import MountKit
import SheafHub
import SheafHubStore
import SheafModel
import SheafWire
import Testing

/// The disk of the store is full: what needs room is refused clearly, nothing is half done, and all goes on when there
/// is room.
@Suite(.serialized, .enabled(if: TestUser.isRoot, "a disk of its own needs root"))
struct FullDiskTests {
  @Test(arguments: StoreEngine.available)
  func whatDoesNotFitIsRefused(_ engine: StoreEngine) async throws {
    let folder = try TemporaryFolder()
    let disk = try LoopFileSystem(below: folder, mebibytes: engine == .sqlite ? 10 : 20)
    defer {
      disk.detach()
      try? folder.remove()
    }
    switch engine {
    case .sqlite:
      let database = try SQLiteDatabase(path: "\(disk.mountpoint)/hub.sqlite")
      try await Self.fill(database, disk)
      await database.close()
    case .postgres:
      let cluster = try PostgresCluster(syncs: false)
      defer { cluster.stop() }
      let space = "\(disk.mountpoint)/space"
      try FileManager.default.createDirectory(atPath: space, withIntermediateDirectories: false)
      var status = stat()
      guard stat(cluster.folder, &status) == 0, chown(space, status.st_uid, status.st_gid) == 0 else {
        throw Command.Failure(description: "the server gets no folder")
      }
      try cluster.psql("CREATE TABLESPACE small LOCATION '\(space)'")
      let database = PostgresDatabase(target: try cluster.newPlace(tablespace: "small"))
      try await Self.fill(database, disk)
      await database.close()
    }
  }

  private static func fill(_ database: any Database, _ disk: LoopFileSystem) async throws {
    try await RunningHub.with(database) { running in
      let client = running.client
      let (_, token) = try await running.member()
      var random = SystemRandomNumberGenerator()
      let noise = Data((0..<60_000).map { _ in UInt8.random(in: 0...255, using: &random) })
      func send(_ serial: Int64) async throws -> HubClient.Answer {
        let bytes = withUnsafeBytes(of: serial) { Data($0) } + noise
        var document = Send.document("d\(serial)", "", serial: serial)
        document.version?.contents = bytes
        let request = SendRequest(groups: [[document]], confirmed: serial - 1)
        return try await client.send("POST", "/v1/sends", json: request, token: token)
      }
      func states() async throws -> [Int64] {
        var (numbers, path): ([Int64], String) = ([], "/v1/feed?limit=1000")
        while true {
          let page: FeedPage = try await client.send("GET", path, token: token).decode()
          numbers += page.items.map(\.number)
          guard page.hasMore else { return numbers }
          path = "/v1/feed?limit=1000&token=\(page.token)"
        }
      }
      // What is deleted later leaves room for some more.
      let ballast = "\(disk.mountpoint)/ballast"
      try Command(["fallocate", "-l", "4M", ballast]).succeed()
      var done: Int64 = 0
      var refusal: HubClient.Answer?
      while refusal == nil, done < 1_000 {
        let answer = try await send(done + 1)
        if answer.status == 200 { done += 1 } else { refusal = answer }
      }
      let full = try #require(refusal)
      #expect(full.status == 503 && full.problem == .unavailable && full.headers["retry-after"] != nil, "\(full)")
      #expect(try full.decode(Problem.self).detail.contains("no room"), "\(full)")
      // What is there can be read, and nothing of what was refused is.
      #expect(try await states() == Array(1...done))
      #expect(try await running.hub.hub.check() == [])
      #expect(try await send(done + 1).status == 503)
      unlink(ballast)
      for _ in 0..<20 {
        let answer: SendAnswer = try await send(done + 1).decode()
        done += 1
        #expect(answer.verdicts.map(\.outcome) == [.done] && answer.number == done)
      }
      #expect(try await states() == Array(1...done))
      #expect(try await running.hub.hub.check() == [])
    }
  }
}
