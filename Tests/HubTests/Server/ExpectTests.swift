import Crypto
import Foundation
import HubKit
import MountKit
import SheafWire
import Testing

/// Clients that ask before they send a body (RFC 9110, section 10.1.1).
@Suite(.serialized) struct ExpectTests {
  private static let goOn = "HTTP/1.1 100 Continue\r\n\r\n"

  @Test func aClientIsToldToGoOn() async throws {
    try await RunningHub.with { running in
      let connection = try RawConnection(port: running.port)
      for _ in 0..<2 {
        connection.send(
          "POST /v1/enrollments HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
            + "Expect: 100-Continue\r\n\r\n")
        // It sends nothing before.
        #expect(try connection.read(upTo: Self.goOn))
        connection.send("{}")
        #expect(try connection.read(upTo: "urn:sheaf:problem:invalid"))
      }
    }
  }

  @Test func whatIsRefusedIsRefusedWithoutTheBody() async throws {
    try await RunningHub.with { running in
      let hash = String(repeating: "0", count: 64)
      for head in [
        "PUT /v1/chunks/\(hash) HTTP/1.1\r\nContent-Length: 4000000",
        "POST /v1/enrollments HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 4000000",
        "POST /v1/nothing HTTP/1.1\r\nContent-Length: 10",
      ] {
        let connection = try RawConnection(port: running.port)
        connection.send(head + "\r\nHost: hub\r\nExpect: 100-continue\r\n\r\n")
        let answer = try connection.readToEnd()
        #expect(answer.hasPrefix("HTTP/1.1 4") && !answer.contains("100 Continue"), "\(answer)")
        #expect(answer.lowercased().contains("connection: close"), "\(answer)")
      }
    }
  }

  /// curl asks before it sends more than 1 MiB, and waits for as long as it is told.
  @Test func curlDoesNotWait() async throws {
    try await RunningHub.with { running in
      let token = try await running.member().token
      try withTemporaryFolder { folder in
        let bytes = Data((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) })
        try bytes.write(to: URL(fileURLWithPath: "\(folder.path)/chunk"))
        let hash = SHA256.hash(data: bytes).map { String(format: "%02x", $0) }.joined()
        let status = try Command([
          "curl", "--silent", "--expect100-timeout", "1000", "--header", "Expect: 100-continue", "--header",
          "Authorization: Bearer \(token)", "--header", "Content-Type: application/octet-stream", "--upload-file",
          "\(folder.path)/chunk", "--write-out", "%{http_code}",
          "http://127.0.0.1:\(running.port)/v1/chunks/\(hash)",
        ]).succeed().text
        #expect(status == "204")
      }
    }
  }
}
