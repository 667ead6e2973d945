import ConformanceKit
import Foundation
import Glibc
import MountKit
import SheafModel
import Testing

/// The stream of events as any program reads it, by curl(1) and Python's sockets.
@Suite(.serialized) struct StreamTests {
  private func withLibrary(_ body: (ServedLibrary) async throws -> Void) async throws {
    let served = try await ServedLibrary()
    do {
      try await body(served)
    } catch {
      try? await served.end()
      throw error
    }
    try await served.end()
  }

  private func curl(_ served: ServedLibrary, _ words: [String]) -> Command {
    Command(
      ["curl", "--silent", "--no-buffer", "--unix-socket", served.library.location.socketPath] + words,
      limit: .seconds(60))
  }

  /// Numbers of the events in a stream's text, each with its data; what broke off does not count.
  private func numbers(_ text: String) throws -> [Int64] {
    try text.components(separatedBy: "\n\n").dropLast().compactMap { message in
      let lines = message.split(separator: "\n")
      guard let id = lines.first(where: { $0.hasPrefix("id: ") }),
        let data = lines.first(where: { $0.hasPrefix("data: ") })
      else { return nil }
      let event = try JSONDecoder().decode(Event.self, from: Data(data.dropFirst(6).utf8))
      #expect("id: \(event.sequence)" == id)
      return event.sequence
    }
  }

  @Test func whoComesBackWithLastEventIDMissesNothing() async throws {
    try await withLibrary { served in
      // As many as take longer than the first connections.
      let count: Int64 = 12_000
      let writing = Task.detached { for number in 1...count { try served.mkdir("\(number)") } }
      var seen: [Int64] = []
      var connections = 0
      while seen.last ?? 0 < count, connections < 1000 {
        // Broken off at some moment, as a train in a tunnel does it.
        let words =
          (seen.last.map { ["--header", "Last-Event-ID: \($0)"] } ?? []) + [
            "--max-time", "0.\(1 + connections % 4)", "http://sheaf/v1/library/events/stream",
          ]
        seen += try numbers(String(decoding: curl(served, words).run().output, as: UTF8.self))
        connections += 1
      }
      try await writing.value
      #expect(seen == Array(1...count) && connections > 1, "\(connections) connections")
    }
  }

  @Test func aSlowReaderHoldsUpNobodyAndMissesNothing() async throws {
    try await withLibrary { served in
      let go = "\(served.folder.path)/go"
      // Reads nothing before it may, then all there is.
      let reader = try BackgroundCommand(
        Command(
          [
            "python3", "-c",
            """
            import os, socket, sys, time
            stream = socket.socket(socket.AF_UNIX)
            stream.connect(sys.argv[1])
            stream.sendall(b"GET /v1/library/events/stream HTTP/1.1\\r\\nHost: sheaf\\r\\n\\r\\n")
            open(sys.argv[2] + ".begun", "w").close()
            while not os.path.exists(sys.argv[2]): time.sleep(0.05)
            data = b""
            while b"\\nid: 5000\\n" not in data: data += stream.recv(65536)
            numbers = [int(line[4:]) for line in data.split(b"\\n") if line.startswith(b"id: ")]
            sys.exit(numbers != list(range(1, 5001)))
            """, served.library.location.socketPath, go,
          ]))
      defer { reader.end() }
      try eventually("the slow reader") { access(go + ".begun", F_OK) == 0 }
      for number in 1...5000 { try served.mkdir("\(number)") }
      // Someone else has long had all of it.
      let other = try curl(served, ["--max-time", "5", "http://sheaf/v1/library/events/stream?after=4990"]).run()
      #expect(try numbers(String(decoding: other.output, as: UTF8.self)) == Array(4991...5000))
      _ = FileManager.default.createFile(atPath: go, contents: nil)
      try reader.wait(limit: .seconds(60))
    }
  }

  @Test func whatIsNotThereAnswers410() async throws {
    try await withLibrary { served in
      for words in [
        ["--header", "Last-Event-ID: 7", "http://sheaf/v1/events/stream"], ["http://sheaf/v1/events?after=7"],
      ] {
        let answer = try curl(served, ["--write-out", "%{http_code}"] + words).run().text
        #expect(answer.hasSuffix("410") && answer.contains("begin anew: leave the position out"), "\(answer)")
      }
      for words in [
        ["--header", "Last-Event-ID: x", "http://sheaf/v1/events/stream"], ["http://sheaf/v1/events?after=-1"],
      ] {
        #expect(try curl(served, ["--write-out", "%{http_code}"] + words).run().text.hasSuffix("400"))
      }
    }
  }
}
