import NIOCore
import Testing

@testable import SheafHubClient

/// Answers of several parts, in pieces of any size.
@Suite struct MultipartReaderTests {
  private struct Part: Equatable {
    var fields: [String: String]
    var text = ""
    var isWhole = false
  }

  /// The parts of an answer that comes in pieces of this size.
  private func parts(_ text: String, by size: Int = .max) throws -> (parts: [Part], isAtEnd: Bool) {
    var reader = MultipartReader(boundary: "b")
    var parts: [Part] = []
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      reader.append(ByteBuffer(bytes: rest.prefix(size)))
      rest = rest.dropFirst(size)
      while let element = try reader.next() {
        switch element {
        case .head(let head): parts.append(Part(fields: head.fields))
        case .bytes(let bytes): parts[parts.count - 1].text += String(buffer: bytes)
        case .endOfPart: parts[parts.count - 1].isWhole = true
        }
      }
    }
    return (parts, reader.isAtEnd)
  }

  private static let answer = """
    --b\r\nContent-Length: 14\r\nContent-Type:a/b \r\n\r\n\r\n--b--\r\n--b\r\n\r\n--b\r\ncontent-length: 0\r\n\r\n\r\n\
    --b\r\nX-Y: a: b\r\nContent-Length: 1\r\n\r\nx\r\n--b--\r\n
    """

  @Test(arguments: [1, 2, 3, 7, 1_000])
  func partsAreTakenApart(_ size: Int) throws {
    let (parts, isAtEnd) = try parts(Self.answer, by: size)
    // What looks like a boundary in contents is none.
    let expected = [
      Part(fields: ["content-length": "14", "content-type": "a/b"], text: "\r\n--b--\r\n--b\r\n", isWhole: true),
      Part(fields: ["content-length": "0"], text: "", isWhole: true),
      Part(fields: ["x-y": "a: b", "content-length": "1"], text: "x", isWhole: true),
    ]
    #expect(isAtEnd && parts.count == expected.count)
    for (part, other) in zip(parts, expected) { #expect(part == other) }
  }

  /// An answer that breaks off anywhere is not at its end.
  @Test func theEndIsWhatClosesIt() throws {
    for count in 0..<(Self.answer.utf8.count - 2) {
      let cut = String(decoding: Self.answer.utf8.prefix(count), as: UTF8.self)
      #expect(try !parts(cut).isAtEnd, "\(count)")
    }
    #expect(try parts("--b--").isAtEnd)
  }

  @Test(arguments: [1, 5, 1_000])
  func nothingElseIsTaken(_ size: Int) throws {
    let (head, long) = ("--b\r\nContent-Length: 3\r\n\r\n", String(repeating: "x", count: 9_000))
    for text in [
      "x--b\r\n", "\r\n--b\r\n", "--c\r\n", "--b \r\n", "--b\n", "--b-x", "--b--\r\nx", "--b--x", "--b--\r\n\r\n",
      head + "abcd\r\n--b--", head + "ab\r\n--b--", head + "abc\n--b--", head + "abc\r\n--c", head + "abc--b--",
      "--b\r\n\r\nabc", "--b\r\nContent-Length: \r\n\r\n", "--b\r\nContent-Length: -1\r\n\r\n",
      "--b\r\nContent-Length: +1\r\n\r\n", "--b\r\nContent-Length: 0x1\r\n\r\n", "--b\r\nContent-Length: 1 1\r\n\r\n",
      "--b\r\nContent-Length: 9223372036854775808\r\n\r\n", "--b\r\nContent-Length: 00000000000000000001\r\n\r\n",
      "--b\r\nContent-Length: 1\r\nCONTENT-LENGTH: 1\r\n\r\n", "--b\r\nContent-Length: 1\n\n",
      "--b\r\nContent-Length: 1\r\n folded\r\n\r\n", "--b\r\n: 1\r\n\r\n", "--b\r\nX\r\n\r\n", "--b\r\nX Y: 1\r\n\r\n",
      "--b\r\nX: \u{1}\r\n\r\n", "--b\r\nX: ä\r\n\r\n", "--b\r\nX: \r\r\n\r\n", "--b\r\n\u{301}: 1\r\n\r\n",
      "--b\r\n" + long, "--b\r\nX: " + long + "\r\n\r\n",
      "--b\r\n" + (0..<2_000).map { "X\($0): 1\r\n" }.joined() + "\r\n",
    ] {
      #expect(throws: MultipartReader.Malformed.self, "\(text.prefix(60).debugDescription)") {
        try parts(text, by: size)
      }
    }
  }

  @Test func boundariesAreNamedByTheType() {
    let longest = String(repeating: "a", count: 70)
    for (type, boundary) in [
      ("multipart/mixed; boundary=a-1", "a-1"), ("Multipart/Mixed;BOUNDARY=\"a b\"", "a b"),
      ("multipart/mixed; charset=x; boundary=a", "a"), ("multipart/mixed; boundary=" + longest, longest),
    ] {
      #expect(MultipartReader.boundary(of: type) == boundary)
    }
    for type in [
      "", ";", "multipart/mixed", "multipart/form-data; boundary=a", "multipart/mixed; boundary=",
      "multipart/mixed; boundary=\"\"", "multipart/mixed; boundary=\"a", "multipart/mixed; boundary=a; boundary=b",
      "multipart/mixed; boundary=a\u{0}", "multipart/mixed; boundary=\"a \"", "multipart/mixed; boundary=ä",
      "multipart/mixed; boundary=a" + longest, "application/json; boundary=a",
    ] {
      #expect(MultipartReader.boundary(of: type) == nil, "\(type)")
    }
  }
}
