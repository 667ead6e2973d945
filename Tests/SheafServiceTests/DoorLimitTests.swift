import Foundation
import Glibc
import Logging
import SheafClient
import SheafLibrary
import SheafModel
import SheafService
import Testing

/// What a user's door bears, and that nobody at another door hears of it.
@Suite(.serialized, .enabled(if: getuid() == 0, "the folder of users' sockets is root's"))
struct DoorLimitTests {
  /// A library at its own door, and at that of a user.
  private struct Given {
    let library: Library
    let own: SheafService
    let users: SheafService
    /// A client at the library's own door.
    let client: SheafClient
    let account: AccountHandle
    let folder: URL

    var socket: String { UserSocket.path(library: library.location.path, uid: getuid()) }

    init(_ limits: ServiceLimits) async throws {
      folder = FileManager.default.temporaryDirectory.appendingPathComponent("sheaf-\(UUID().uuidString)")
      let location = LibraryLocation(path: folder.path + "/library.sqlite")
      library = try Library.open(location)
      account = try AccountHandle("alice@example.com")
      _ = try library.addAccount(account, name: "Alice")
      own = try SheafService(library: library, mounts: nil, logger: Logger(label: "test"))
      try await own.start()
      let mount = MountInfo(mountpoint: "/nowhere", account: account, readOnly: false)
      users = try SheafService(
        library: library, mounts: nil, door: UserDoor(mount: mount, uid: getuid(), gid: getgid()), limits: limits,
        logger: Logger(label: "test"))
      try await users.start()
      client = try SheafClient(socket: location.socketPath, library: location.path)
    }

    func connect() async throws -> RawConnection { try await RawConnection.open(socket) }

    /// Makes a document that no socket's buffer holds.
    func saveLargeDocument() throws {
      let data = [UInt8](repeating: 7, count: 16 << 20)
      let made = try library.create(
        library.documents(of: account), Array("large".utf8), mode: 0o644, flags: O_RDWR | O_CREAT, .library)
      try data.withUnsafeBytes { try library.write(made.handle, at: 0, $0) }
      try library.flush(made.handle)
      try library.release(made.handle)
    }

    func end() async throws {
      await client.shutdown()
      try await users.stop(patience: .zero)
      try await own.stop(patience: .seconds(5))
      try library.close()
      try FileManager.default.removeItem(at: folder)
    }
  }

  private func given(
    connections: Int = 64, requests: Int = 8, streams: Int = 16, downloads: Int = 16,
    _ change: (inout ServiceLimits) -> Void = { _ in },
    _ body: (Given) async throws -> Void
  ) async throws {
    var limits = ServiceLimits(
      connections: connections, requests: requests, streams: streams, downloads: downloads, jobs: 2)
    change(&limits)
    let given = try await Given(limits)
    do {
      try await body(given)
    } catch {
      Issue.record(error)
    }
    try await given.end()
  }

  /// A sink as a sidecar tells of it; `numbers` are in the place of its zeros.
  private static func sink(_ numbers: [String: String] = [:], name: String = "a") -> String {
    let members = ["position", "delivered", "failed", "deadLetters"].map { #""\#($0)":\#(numbers[$0] ?? "0")"# }
    return #"{"name":"\#(name)","kind":"exec",\#(members.joined(separator: ","))}"#
  }

  private static func report(_ sink: String, pid: String = "1") -> String { #"{"pid":\#(pid),"sinks":[\#(sink)]}"# }

  static let reportsOfNoSidecar = [
    report(sink(["position": "-9223372036854775808"])), report(sink(["position": "-1"])),
    report(sink(["failed": "-9223372036854775808"])), report(sink(["deadLetters": "9223372036854775808"])),
    report(sink(["delivered": "1e99"])), report(sink(name: String(repeating: "a", count: 9000))),
    report("", pid: "0"), report("", pid: "-1"), report("", pid: "1e99"), #"{"pid":1,"sinks":7}"#,
    String(repeating: "[", count: 60_000), String(repeating: #"{"sinks":"#, count: 6000),
    report(String(repeating: "[", count: 30_000)),
  ]

  @Test(arguments: reportsOfNoSidecar)
  func aReportThatNoSidecarSendsIsRefused(_ report: String) async throws {
    try await given { given in
      let connection = try await given.connect()
      let answer = try await connection.ask("PUT", "/sidecar", body: report)
      #expect(answer.status == 400, "\(answer)")
      #expect(try await connection.ask("GET", "/status").status == 200)
      #expect(try await given.client.status().sinks.isEmpty)
    }
  }

  /// A client may send all before it reads the answer.
  @Test(arguments: ["keep-alive", "close"]) func aRequestThatIsTooLargeIsAnsweredInTheEnd(_ connection: String)
    async throws
  {
    try await given { given in
      let client = try await given.connect()
      let length = 8 << 20
      try await client.send(
        "PUT /v1/sidecar HTTP/1.1\r\nHost: sheaf\r\nConnection: \(connection)\r\nContent-Length: \(length)\r\n\r\n"
          + String(repeating: "[", count: length))
      let answer = try await client.answer()
      #expect(answer.status == 400 && answer.body.contains("too large"), "\(answer)")
      if connection == "keep-alive" { #expect(try await client.ask("GET", "/status").status == 200) }
    }
  }

  @Test func numbersAtTheirLargestAreCalculatedWith() async throws {
    try await given { given in
      let connection = try await given.connect()
      let largest = ["position", "delivered", "failed", "deadLetters"].map { ($0, "\(Int64.max)") }
      let sink = Self.sink(Dictionary(uniqueKeysWithValues: largest))
      let answer = try await connection.ask("PUT", "/sidecar", body: Self.report(sink, pid: "\(getpid())"))
      #expect(answer.status == 204, "\(answer)")
      #expect(try await connection.ask("GET", "/status").body.contains(#""undelivered":0"#))
      for query in ["after=-1", "after=9223372036854775808", "limit=0", "limit=-5", "after=9223372036854775807"] {
        #expect([400, 410].contains(try await connection.ask("GET", "/events?\(query)").status), "\(query)")
      }
      #expect(try await connection.ask("GET", "/events?limit=9223372036854775807").status == 200)
      #expect(try await connection.ask("DELETE", "/notices?through=9223372036854775807").status == 204)
    }
  }

  @Test func twoSparseDocumentsLeaveTheStatusItsSums() async throws {
    try await given { given in
      for name in ["one", "two"] {
        let made = try given.library.create(
          given.library.documents(of: given.account), Array(name.utf8), mode: 0o644, flags: O_RDWR | O_CREAT, .library)
        let size = Int64.max - (1 << 20)
        _ = try given.library.setAttributes(
          made.attributes.ino, Library.AttributeChange(size: size), handle: made.handle, .library)
        try given.library.flush(made.handle)
        try given.library.release(made.handle)
      }
      #expect(try await given.client.status().counts?.contentBytes == .max)
      #expect(try await given.client.metrics().contains("sheaf_documents 2"))
    }
  }

  @Test func connectionsPastTheLimitAreTold() async throws {
    try await given(connections: 4) { given in
      var idle: [RawConnection] = []
      for _ in 0..<4 {
        let connection = try await given.connect()
        #expect(try await connection.ask("GET", "").status == 200)
        idle.append(connection)
      }
      let fifth = try await given.connect()
      let answer = try await fifth.ask("GET", "/status")
      #expect(answer.status == 503 && answer.head.lowercased().contains("retry-after: 1"), "\(answer)")
      #expect(answer.body.contains("4 clients are connected here"))
      #expect(try await fifth.firstBytes().isEmpty, "the connection is still there")
      // More than are told so wait to be accepted, and cost nothing.
      for _ in 0..<100 { idle.append(try await given.connect()) }
      #expect(try await given.client.status().counts?.accounts == 1)
      #expect(try await idle[0].ask("GET", "/status").status == 200)
    }
  }

  @Test func anIdleConnectionIsClosed() async throws {
    try await given({ $0.idleTime = .milliseconds(200) }) { given in
      let silent = try await given.connect()
      #expect(try await silent.firstBytes().isEmpty)
      // One that was served is closed as well; on a busy machine it may be closed before it asks.
      var answers = 0
      for _ in 0..<100 where answers == 0 {
        let served = try await given.connect()
        guard let answer = try? await served.ask("GET", "/status") else { continue }
        answers += answer.status == 200 ? 1 : 0
        #expect(try await served.firstBytes().isEmpty)
      }
      #expect(answers == 1)
    }
  }

  @Test func aDownloadThatNobodyReadsHoldsNoThread() async throws {
    try await given(connections: 128, downloads: 100) { given in
      try given.saveLargeDocument()
      #expect(try await given.client.status().counts?.documents == 1)
      func threads() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count }
      let before = try threads()
      var unread: [RawConnection] = []
      for _ in 0..<64 {
        let connection = try await given.connect()
        try await connection.request("GET", "/items/content?path=Documents/large")
        #expect(try await !connection.firstBytes().isEmpty)
        unread.append(connection)
      }
      #expect(try threads() < before + 32)
      #expect(try await given.client.check { _ in }.problems.isEmpty)
      let large = ItemAddress(account: given.account, path: Array("Documents/large".utf8))
      var count = 0
      try await given.client.content(of: large, version: nil) { count += $0.readableBytes }
      #expect(count == 16 << 20)
      withExtendedLifetime(unread) {}
    }
  }

  @Test func aClientThatTakesNothingIsCutOff() async throws {
    try await given(downloads: 1, { $0.writeTime = .milliseconds(200) }) { given in
      try given.saveLargeDocument()
      let unread = try await given.connect()
      try await unread.request("GET", "/items/content?path=Documents/large")
      #expect(try await !unread.firstBytes().isEmpty)
      // Its place is free again, some time.
      let deadline = ContinuousClock.now + .seconds(60)
      var status = 503
      while status == 503, ContinuousClock.now < deadline {
        let next = try await given.connect()
        try await next.request("GET", "/items/content?path=Documents/large")
        status = String(decoding: try await next.firstBytes(), as: UTF8.self).contains(" 200 OK") ? 200 : 503
      }
      #expect(status == 200)
      withExtendedLifetime(unread) {}
    }
  }

  @Test func streamsPastTheLimitAreTold() async throws {
    try await given(streams: 2) { given in
      var streams: [RawConnection] = []
      for _ in 0..<2 {
        let connection = try await given.connect()
        try await connection.request("GET", "/events/stream")
        #expect(String(decoding: try await connection.firstBytes(), as: UTF8.self).contains(" 200 OK"))
        streams.append(connection)
      }
      let third = try await given.connect()
      let answer = try await third.ask("GET", "/events/stream")
      #expect(answer.status == 503 && answer.body.contains("2 streams are under way here"), "\(answer)")
      #expect(try await third.ask("GET", "/events").status == 200)
      _ = try await given.client.follow(.library, after: nil)
      withExtendedLifetime(streams) {}
    }
  }
}
