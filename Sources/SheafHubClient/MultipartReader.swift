package import NIOCore

/// Takes `multipart/mixed` apart (RFC 2046, section 5.1), as hubs write it: each part has `Content-Length`.
///
/// Rules that never break:
/// 1. The bytes of a part are counted and never looked at: whatever they are, they end no part and begin none. They are
///    given out as they come, and none is kept.
/// 2. Each byte is accounted for: nothing stands before the first part, between two parts or after the last one.
package struct MultipartReader {
  package enum Element: Hashable, Sendable {
    case head(Head)
    /// Some of the part's bytes; never none.
    case bytes(ByteBuffer)
    /// The part had as many bytes as it said: a delimiter follows them.
    case endOfPart
  }

  /// What stands before the bytes of a part.
  package struct Head: Hashable, Sendable {
    /// By their names in lower case.
    package let fields: [String: String]
    /// Bytes of the part.
    package let length: Int64
  }

  /// The error for what is no such answer.
  package struct Malformed: Error {}

  private enum State: Hashable {
    /// What stands before the part that follows: nothing before the first, an end of line before others.
    case delimiter(isFirst: Bool)
    case afterDelimiter
    case head
    /// So many bytes of the part are still to come.
    case contents(Int64)
    /// All parts were read; an end of line may follow.
    case closed
    case end
  }

  /// Bytes of a part's head.
  private static let longestHead = 8 * 1024
  private static let newline = "\r\n"

  private let delimiter: String
  private var state = State.delimiter(isFirst: true)
  private var input = ByteBuffer()
  private var fields: [String: String] = [:]
  /// Bytes of the head so far.
  private var headLength = 0

  package init(boundary: String) { delimiter = "--" + boundary }

  /// The boundary that a `Content-Type` names; nil if it is that of something else.
  package static func boundary(of type: String) -> String? {
    let words = type.split(separator: ";", omittingEmptySubsequences: false).map { $0.trimming(" \t") }
    guard words[0].lowercased() == "multipart/mixed" else { return nil }
    let values = words.dropFirst().compactMap { word -> Substring? in
      let halves = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return halves.count == 2 && halves[0].lowercased() == "boundary" ? halves[1] : nil
    }
    guard values.count == 1, var value = values.first else { return nil }
    if value.utf8.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") { value = value.dropFirst().dropLast() }
    let isBoundary =
      (1...70).contains(value.utf8.count) && value.utf8.last != UInt8(ascii: " ")
      && value.utf8.allSatisfy { isDigitOrLetter($0) || "'()+_,-./:=? ".utf8.contains($0) }
    return isBoundary ? String(value) : nil
  }

  /// Whether the last part and what closes it were read.
  package var isAtEnd: Bool { state == .closed || state == .end }

  package mutating func append(_ bytes: ByteBuffer) {
    if input.readableBytes == 0 {
      input = bytes
    } else {
      input.discardReadBytes()
      input.writeImmutableBuffer(bytes)
    }
  }

  /// The next element; nil until more bytes come.
  ///
  /// - Throws: ``Malformed``. The reader must not be used any more then.
  package mutating func next() throws -> Element? {
    while true {
      switch state {
      case .delimiter(let isFirst):
        guard try take((isFirst ? "" : Self.newline) + delimiter) else { return nil }
        state = .afterDelimiter
        if !isFirst { return .endOfPart }
      case .afterDelimiter:
        guard let first = input.readableBytesView.first else { return nil }
        let isLast = first == UInt8(ascii: "-")
        guard try take(isLast ? "--" : Self.newline) else { return nil }
        (fields, headLength) = ([:], 0)
        state = isLast ? .closed : .head
      case .head:
        guard let head = try head() else { return nil }
        state = .contents(head.length)
        return .head(head)
      case .contents(0): state = .delimiter(isFirst: false)
      case .contents(let rest):
        let count = Int(min(rest, Int64(input.readableBytes)))
        guard count > 0, let bytes = input.readSlice(length: count) else { return nil }
        state = .contents(rest - Int64(count))
        return .bytes(bytes)
      case .closed:
        guard input.readableBytes > 0, try take(Self.newline) else { return nil }
        state = .end
      case .end:
        guard input.readableBytes == 0 else { throw Malformed() }
        return nil
      }
    }
  }

  /// Takes this text, which must come now. False until all of it is there.
  private mutating func take(_ text: String) throws -> Bool {
    guard text.utf8.starts(with: input.readableBytesView.prefix(text.utf8.count)) else { throw Malformed() }
    guard input.readableBytes >= text.utf8.count else { return false }
    input.moveReaderIndex(forwardBy: text.utf8.count)
    return true
  }

  /// The head of a part; nil until all of it is there.
  private mutating func head() throws -> Head? {
    while true {
      guard let end = input.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) else {
        guard headLength + input.readableBytes <= Self.longestHead else { throw Malformed() }
        return nil
      }
      let length = end + 1 - input.readerIndex
      headLength += length
      guard headLength <= Self.longestHead, length >= 2, let line = input.readString(length: length),
        line.utf8.dropLast().last == UInt8(ascii: "\r")
      else { throw Malformed() }
      if length == 2 { break }
      try takeField(line.utf8.dropLast(2))
    }
    guard let text = fields["content-length"], (1...19).contains(text.utf8.count),
      text.utf8.allSatisfy({ (48...57).contains($0) }), let length = Int64(text)
    else { throw Malformed() }
    return Head(fields: fields, length: length)
  }

  /// Takes a line of a head: a name, a colon, and text that can be printed.
  private mutating func takeField(_ line: Substring.UTF8View) throws {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw Malformed() }
    let (name, value) = (line[..<colon], Substring(line[line.index(after: colon)...]).trimming(" \t"))
    guard !name.isEmpty, name.allSatisfy({ Self.isDigitOrLetter($0) || $0 == UInt8(ascii: "-") }),
      value.utf8.allSatisfy({ (0x20...0x7E).contains($0) }),
      fields.updateValue(String(value), forKey: Substring(name).lowercased()) == nil
    else { throw Malformed() }
  }

  private static func isDigitOrLetter(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"):
      true
    default: false
    }
  }
}

extension Substring {
  /// Without these characters at its beginning and end.
  fileprivate func trimming(_ characters: String) -> Substring {
    var text = drop { characters.contains($0) }
    while let last = text.last, characters.contains(last) { text.removeLast() }
    return text
  }
}
