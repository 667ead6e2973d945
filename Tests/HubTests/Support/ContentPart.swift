import Foundation
import SheafWire
import Testing

/// Parts of a `multipart/mixed` answer, read by their lengths, with every byte between them accounted for.
struct ContentPart: Sendable {
  let headers: [String: String]
  let body: Data

  var text: String { String(decoding: body, as: UTF8.self) }

  /// What went wrong; nil for contents.
  var problem: Problem.Kind? {
    guard headers["content-type"] == "application/problem+json" else { return nil }
    return (try? JSONDecoder().decode(Problem.self, from: body))?.kind
  }

  /// - Throws: where the answer is not whole, or not as RFC 2046 has it.
  static func all(_ answer: HubClient.Answer) throws -> [ContentPart] {
    let type = try #require(answer.headers["content-type"])
    let boundary = try #require(type.wholeMatch(of: /multipart\/mixed; boundary=([A-Za-z0-9-]{1,70})/)?.1)
    var rest = answer.body[...]
    func take(_ text: String) throws {
      try #require(rest.starts(with: Data(text.utf8)), "no \(text.debugDescription)")
      rest = rest.dropFirst(text.utf8.count)
    }
    var parts: [ContentPart] = []
    while true {
      try take("--\(boundary)")
      if rest.starts(with: Data("--".utf8)) {
        try take("--\r\n")
        try #require(rest.isEmpty)
        return parts
      }
      try take("\r\n")
      var headers: [String: String] = [:]
      while !rest.starts(with: Data("\r\n".utf8)) {
        let end = try #require(rest.range(of: Data("\r\n".utf8)))
        let line = String(decoding: rest[..<end.lowerBound], as: UTF8.self)
        let field = try #require(line.wholeMatch(of: /([A-Za-z-]+): (.*)/), "\(line)")
        headers[field.1.lowercased()] = String(field.2)
        rest = rest[end.upperBound...]
      }
      try take("\r\n")
      let length = try #require(headers["content-length"].flatMap { Int($0) })
      try #require(rest.count >= length)
      parts.append(ContentPart(headers: headers, body: Data(rest.prefix(length))))
      rest = rest.dropFirst(length)
      try take("\r\n")
    }
  }
}
