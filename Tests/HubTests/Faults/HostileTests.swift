import Foundation
import Glibc
import MountKit
import SheafHub
import SheafModel
import SheafWire
import Testing

/// Clients that mean no good, at the program itself: its memory stays bounded, and others are served.
@Suite(.serialized) struct HostileTests {
  /// More than the hub takes, with what the tests have open besides.
  private static let connections = 4_096 + 400
  private static let hasDescriptors: Bool = {
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0, limit.rlim_max > rlim_t(connections + 500) else { return false }
    limit.rlim_cur = limit.rlim_max
    return setrlimit(resource, &limit) == 0
  }()

  /// Runs `body` with a hub of plain HTTP and a session.
  private static func with(
    _ body: (_ program: HubProgram, _ client: HubClient, _ token: String) async throws -> Void
  ) async throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    try program.succeed("init", "--plain", "--address", "127.0.0.1:0")
    let code = try program.account("alice@hub.example")
    let client = try HubClient(base: try program.serve())
    let laptop = TestDevice()
    let device = try await client.enroll(laptop, code: code)
    let result = await Result { try await body(program, client, try await client.begin(laptop, device)) }
    await client.close()
    try result.get()
    try program.stop()
  }

  /// The most memory that the server had, in bytes.
  private static func peak(_ program: HubProgram) throws -> Int {
    let text = try String(contentsOfFile: "/proc/\(try #require(program.process))/status", encoding: .utf8)
    return try #require(text.firstMatch(of: /VmHWM:\s+(\d+) kB/).flatMap { Int($0.1) }) * 1_024
  }

  @Test(.enabled(if: hasDescriptors, "the machine allows too few open files"))
  func thousandsOfConnectionsThatSayNothing() async throws {
    try await Self.with { program, client, token in
      let port = try #require(client.address.split(separator: ":").last.flatMap { Int($0) })
      let stream = try RawConnection(port: port)
      stream.send("GET /v1/stream HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(token)\r\n\r\n")
      #expect(try stream.read(upTo: "\"number\":0,"))
      let texts = [
        "", "GET /v1 HT",
        "POST /v1/sessions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n{",
      ]
      var connections: [RawConnection] = []
      for number in 0..<Self.connections {
        let connection = try RawConnection(port: port)
        connection.send(texts[number % texts.count])
        connections.append(connection)
      }
      // A machine that comes now is served at once, and one that listens goes on.
      let late = try HubClient(base: client.base)
      let sent = SendRequest(groups: [[.document("a", "a", serial: 1)]])
      #expect(try await late.send("POST", "/v1/sends", json: sent, token: token).status == 200)
      #expect(try stream.read(upTo: "\"number\":1,"))
      await late.close()
      // The oldest went for them, and not all did.
      #expect(connections[0].isClosed && !connections[Self.connections - 1].isClosed)
      let peak = try Self.peak(program)
      #expect(peak < 400 << 20, "\(peak >> 20) MiB")
      withExtendedLifetime(connections) {}
    }
  }

  /// Bodies that take much more than they are: numbers, nesting, many small things, and what was compressed.
  @Test func bodiesThatGrow() async throws {
    try await Self.with { program, client, token in
      func repeated(_ text: String, upTo bytes: Int = 2_000_000) -> String {
        String(repeating: text, count: bytes / text.utf8.count)
      }
      let texts = [
        "{\"groups\":" + repeated("["), "{\"groups\":[" + repeated("[],") + "[]]}",
        "{\"groups\":" + repeated("{\"groups\":"), "{\"confirmed\":" + repeated("9") + ",\"groups\":[]}",
        "{\"confirmed\":1e999999999,\"groups\":[]}", "{\"confirmed\":1e-999999999,\"groups\":[]}",
        "{\"confirmed\":-9223372036854775809,\"groups\":[]}", "{\"confirmed\":0.5,\"groups\":[]}",
        "{\"groups\":[" + repeated("[{}],") + "[{}]]}",
        "{\"groups\":[[{\"serial\":1,\"item\":\"" + repeated("x") + "\"}]]}",
        "{" + repeated("\"a\":0,") + "\"groups\":[]}", "\"" + repeated("\\ud800") + "\"", repeated("\u{0}"),
      ]
      for text in texts {
        let answer = try await client.send("POST", "/v1/sends", body: Data(text.utf8), token: token)
        #expect(answer.problem == .invalid, "\(text.prefix(40)): \(answer.status)")
      }
      // Zeros, of which a kilobyte is 32 MiB, in frames that tell their size and in one that does not.
      let folder = program.folder
      for (name, script) in [
        ("told", "head -c 33554432 /dev/zero >\(folder)/zeros && zstd -qf \(folder)/zeros -o \(folder)/told"),
        ("untold", "head -c 33554432 /dev/zero | zstd -qf -o \(folder)/untold"),
      ] {
        try Command.shell(script).succeed()
        let bomb = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)"))
        #expect(bomb.count < 8_192)
        let answers = try await withThrowingTaskGroup(of: Int.self) { group in
          for _ in 0..<32 {
            group.addTask {
              try await client.send(
                "PUT", "/v1/chunks/" + String(repeating: "0", count: 64), body: bomb, token: token,
                headers: [("Content-Encoding", "zstd")]
              ).status
            }
          }
          return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
        }
        #expect(answers.isSubset(of: [400, 413, 503]) && answers != [503], "\(name): \(answers)")
      }
      #expect(try await client.send("GET", "/v1/account", token: token).status == 200)
      let peak = try Self.peak(program)
      #expect(peak < 600 << 20, "\(peak >> 20) MiB")
    }
  }
}
