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
    let disk = try LoopFileSystem(below: folder, mebibytes: engine == .sqlite ? 32 : 20)
    defer {
      disk.detach()
      try? folder.remove()
    }
    switch engine {
    case .sqlite:
      let database = try SQLiteDatabase(path: "\(disk.mountpoint)/hub.sqlite")
      try await Self.fill(database, disk, ballast: 14, refusal: .full)
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
      try await Self.fill(database, disk, ballast: 4, refusal: .unavailable)
      await database.close()
    }
  }

  /// - Parameters:
  ///   - ballast: Mebibytes of something else, which make room when they are gone.
  ///   - refusal: How what does not fit is refused.
  private static func fill(
    _ database: any Database, _ disk: LoopFileSystem, ballast mebibytes: Int, refusal kind: Problem.Kind
  ) async throws {
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
      try Command(["fallocate", "-l", "\(mebibytes)M", ballast]).succeed()
      var done: Int64 = 0
      var refusal: HubClient.Answer?
      while refusal == nil, done < 1_000 {
        let answer = try await send(done + 1)
        if answer.status == 200 { done += 1 } else { refusal = answer }
      }
      let full = try #require(refusal)
      try #require(done > 0, "\(full)")
      #expect(full.problem == kind && full.status == kind.status, "\(full)")
      #expect((full.headers["retry-after"] != nil) == (kind == .unavailable), "\(full)")
      #expect(try full.decode(Problem.self).detail.contains("no room"), "\(full)")
      // What is there can be read, and nothing of what was refused is.
      #expect(try await states() == Array(1...done))
      #expect(try await running.hub.hub.check() == [])
      #expect(try await send(done + 1).status == kind.status)
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

  /// A hub on SQLite with a disk of 32 MiB.
  private static func onSmallDisk(_ body: (RunningHub) async throws -> Void) async throws {
    let folder = try TemporaryFolder()
    let disk = try LoopFileSystem(below: folder, mebibytes: 32)
    defer {
      disk.detach()
      try? folder.remove()
    }
    let database = try SQLiteDatabase(path: "\(disk.mountpoint)/hub.sqlite")
    try await RunningHub.with(database, body)
    await database.close()
  }

  /// Contents have filled the disk: the hub still deletes, purges and removes devices, and it takes contents again once
  /// that has made room.
  @Test func whatNeedsNoRoomIsDone() async throws {
    try await Self.onSmallDisk { running in
      let (hub, client) = (running.hub.hub, running.client)
      let (device, token) = try await running.member()
      var random = SystemRandomNumberGenerator()
      var serial: Int64 = 0
      func send(_ send: Send) async throws -> HubClient.Answer {
        serial += 1
        var send = send
        send.serial = serial
        let request = SendRequest(groups: [[send]], confirmed: serial - 1)
        return try await client.send("POST", "/v1/sends", json: request, token: token)
      }
      func fill() async throws -> [WireID] {
        var made: [WireID] = []
        while made.count < 1_000 {
          var document = Send.document("d\(serial)", "", serial: 0)
          document.version?.contents = Data((0..<60_000).map { _ in UInt8.random(in: 0...255, using: &random) })
          let answer = try await send(document)
          guard answer.status == 200 else {
            #expect(answer.problem == .full && answer.status == 507, "\(answer)")
            break
          }
          made.append(document.item)
        }
        return made
      }
      let made = try await fill()
      #expect(made.count > 200)
      let chunk = Chunk([1, 2, 3])
      let upload = try await client.send("PUT", "/v1/chunks/\(chunk.hash)", body: Data(chunk.bytes), token: token)
      #expect(upload.problem == .full)
      let new = ZoneTests.document("new", "")
      #expect(try await send(new).problem == .full)
      for item in made {
        let answer = try await send(.deletion(item, .document, base: 1 << 40))
        #expect(try answer.decode(SendAnswer.self).verdicts.map(\.outcome) == [.done])
      }
      // The disk is as full as before.
      #expect(try await send(new).problem == .full)
      for item in made.prefix(made.count / 2) {
        try await hub.purging.purge(item, in: device.zone, by: device.device)
      }
      #expect(try await send(new).status == 200)
      #expect(try await fill().count > made.count / 3)
      let other = try await running.member("bob@hub.example").0
      try await hub.accounts.removeDevice(other.device, of: other.zone)
      #expect(try await hub.check() == [])
    }
  }

  /// Chunks leave room for the version that they are for, and what has no room is refused before a part of it comes.
  @Test func whatWasUploadedWholeBecomesAVersion() async throws {
    try await Self.onSmallDisk { running in
      let (client, (_, token)) = (running.client, try await running.member())
      var random = SystemRandomNumberGenerator()
      var uploaded: [Chunk] = []
      while uploaded.count < 100 {
        let chunk = Chunk((0..<1_000_000).map { _ in UInt8.random(in: 0...255, using: &random) })
        let answer = try await client.send("PUT", "/v1/chunks/\(chunk.hash)", body: Data(chunk.bytes), token: token)
        guard answer.status < 300 else {
          #expect(answer.problem == .full && answer.status == 507, "\(answer)")
          break
        }
        uploaded.append(chunk)
      }
      try #require(uploaded.count > 5 && uploaded.count < 30)
      let asked = ChunkHashes(hashes: [], bytes: 1 << 30)
      let refused = try await client.send("POST", "/v1/chunks/missing", json: asked, token: token)
      #expect(refused.problem == .full, "\(refused)")
      for (serial, chunk) in uploaded.enumerated() {
        var document = Send.document("d\(serial)", "", serial: Int64(serial) + 1)
        document.version?.contents = nil
        document.version?.extents = [Extent(hash: chunk.hash, length: Int64(chunk.bytes.count))]
        let request = SendRequest(groups: [[document]], confirmed: Int64(serial))
        let answer: SendAnswer = try await client.send("POST", "/v1/sends", json: request, token: token).decode()
        #expect(answer.verdicts.map(\.outcome) == [.done], "\(serial) of \(uploaded.count): \(answer)")
      }
      #expect(try await running.hub.hub.check() == [])
    }
  }
}
