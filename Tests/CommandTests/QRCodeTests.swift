import ConformanceKit
import Foundation
import MountKit
import Testing

@testable import SheafCommand

/// A code that a terminal shows is one that readers read.
struct QRCodeTests {
  /// The modules that half blocks show, row by row, without the colours.
  private static func rows(_ text: String) -> [[Bool]] {
    var rows: [[Bool]] = []
    for line in text.split(separator: "\n") {
      let blocks = line.replacing(/\u{1B}\[[0-9;]*m/, with: "")
      rows.append(blocks.map { "█▀".contains($0) })
      rows.append(blocks.map { "█▄".contains($0) })
    }
    return rows
  }

  /// What `zbarimg` reads in a picture of the code.
  private static func read(_ code: QRCode) throws -> String {
    let rows = rows(code.text)
    let scale = 4
    var picture = "P1\n\(code.width * scale) \(rows.count * scale)\n"
    for row in rows {
      let line = row.map { String(repeating: $0 ? "1 " : "0 ", count: scale) }.joined() + "\n"
      picture += String(repeating: line, count: scale)
    }
    return try withTemporaryFolder { folder in
      try picture.write(toFile: "\(folder.path)/code.pbm", atomically: true, encoding: .utf8)
      return try Command(["zbarimg", "--quiet", "--raw", "\(folder.path)/code.pbm"]).succeed().text
    }
  }

  @Test func readersReadIt() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    for length in [1, 43, 86, 200] {
      let secret = String((0..<length).map { _ in letters[Int.random(in: 0..<64, using: &random)] })
      let link = "https://hub.example:8443/enrol/\(secret)#\(secret.reversed().prefix(43).map(String.init).joined())"
      let code = try QRCode(link)
      #expect(try Self.read(code) == link, "seed \(seed)")
      let rows = Self.rows(code.text)
      #expect(rows.allSatisfy { $0.count == code.width } && code.width < 100)
      // The margin is part of the code.
      #expect(rows.prefix(4).allSatisfy { !$0.contains(true) } && rows.allSatisfy { !$0.prefix(4).contains(true) })
    }
  }

  @Test func whatIsTooLongIsRefused() throws {
    #expect(throws: (any Error).self) { _ = try QRCode(String(repeating: "x", count: 4_000)) }
  }
}
