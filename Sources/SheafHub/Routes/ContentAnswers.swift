import Foundation
import HTTPTypes
import Hummingbird
import Logging
import SheafHubStore
import SheafModel
import SheafWire

/// Answers that have contents of versions as their body.
extension HubRoutes {
  func content(
    size: Int64, _ request: Request, _ caller: Caller, _ reader: (Range<Int64>) -> ContentReader
  ) throws -> Response {
    let range = try ByteRange.of(request.headers[.range], size: size)
    let part = range ?? 0..<size
    let (watch, start) = (watch, reader(part))
    let room = try takeRoom(forContents: part.count, of: caller)
    let body = ResponseBody(contentLength: Int(part.count)) { writer in
      defer { withExtendedLifetime(room) {} }
      var reader = start
      while let piece = try await reader.next() {
        // A device that is removed meanwhile gets no further piece.
        try await watch.recheck(caller)
        try await Self.write(piece, to: &writer)
      }
      try await writer.finish(nil)
    }
    var response = Response(
      status: range == nil ? .ok : .partialContent, headers: [.contentType: "application/octet-stream"], body: body)
    response.headers[HTTPField.Name.acceptRanges] = "bytes"
    if range != nil { response.headers[.contentRange] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(size)" }
    return response
  }

  /// The contents of several versions in one answer: `multipart/mixed` (RFC 2046, section 5.1), a part for each that
  /// was asked for, in that order.
  ///
  /// Each part has its length, so that its reader need not look for the boundary in contents, and in `Content-Location`
  /// the address of the contents. A part that cannot be given has problem details in its place. So it is with damaged
  /// contents, where that shows in their first bytes, or was found lately.
  ///
  /// - Parameters:
  ///   - base: The path before `/items/`.
  ///   - logger: Hears of damage.
  ///   - open: Finds a version's size and reader. It is asked when the turn of the part comes.
  /// - Throws: ``HubError`` for a request that makes no sense.
  func severalContents(
    _ request: Request, _ caller: Caller, at base: String, logger: Logger,
    _ open:
      @escaping @Sendable (ContentsRequest.Part) async throws -> (
        size: Int64, reader: @Sendable (Range<Int64>) -> ContentReader
      )
  ) async throws -> Response {
    let room = (
      request: try takeRoom(for: request, upTo: Self.contentsBody, of: caller),
      answer: try takeRoom(forContents: .max, of: caller)
    )
    let asked = try await request.json(ContentsRequest.self, upTo: Self.contentsBody).contents
    guard (1...WireLimits.contentsPerRequest).contains(asked.count) else {
      throw HubError(.invalid, "contents: 1 to \(WireLimits.contentsPerRequest)")
    }
    guard asked.allSatisfy({ $0.offset ?? 0 >= 0 && $0.length ?? 0 >= 0 }) else {
      throw HubError(.invalid, "contents: an offset and a length are not negative")
    }
    let watch = watch
    // Nobody can have written it into contents before.
    let boundary = UUID().uuidString
    let body = ResponseBody { writer in
      defer { withExtendedLifetime(room) {} }
      var pending = ByteBuffer()
      var former: ContentReader?
      for part in asked {
        let address = "\(base)/items/\(part.item)/versions/\(part.version)/content"
        var opened: Opened
        do {
          let (size, reader) = try await open(part)
          opened = try Opened(part, size: size, reader)
          if let former { opened.reader.follow(former) }
          try await opened.read(upTo: Self.piece)
        } catch {
          guard let failure = Self.problem(ofPart: error, logger) else { throw error }
          let problem = try ByteBuffer(jsonLine: failure)
          pending.writeString(
            """
            --\(boundary)\r\nContent-Type: application/problem+json\r\nContent-Location: \(address)\r\n\
            Content-Length: \(problem.readableBytes)\r\n\r\n
            """)
          pending.writeImmutableBuffer(problem)
          pending.writeString("\r\n")
          continue
        }
        pending.writeString(
          """
          --\(boundary)\r\nContent-Type: application/octet-stream\r\nContent-Location: \(address)\r\n\
          Content-Length: \(opened.range.count)\r\n\(opened.rangeField)\r\n
          """)
        while let piece = try await opened.next() {
          if pending.readableBytes + piece.count < Self.piece {
            pending.writeBytes(piece)
            continue
          }
          // A device that is removed meanwhile gets no further piece.
          try await watch.recheck(caller)
          try await writer.write(pending)
          pending = ByteBuffer()
          try await Self.write(piece, to: &writer)
        }
        pending.writeString("\r\n")
        former = opened.reader
      }
      pending.writeString("--\(boundary)--\r\n")
      try await watch.recheck(caller)
      try await writer.write(pending)
      try await writer.finish(nil)
    }
    return Response(
      status: .ok, headers: [.contentType: "multipart/mixed; boundary=\(boundary)"], body: body)
  }

  /// Bytes that are written together at most.
  private static let piece = 256 * 1024

  /// Writes bytes in pieces: each is a copy, which lives until the client has taken it.
  private static func write(_ bytes: [UInt8], to writer: inout any ResponseBodyWriter) async throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      try await writer.write(ByteBuffer(bytes: rest.prefix(piece)))
      rest = rest.dropFirst(piece)
    }
  }

  /// Failures that are about one part and not about the request.
  private static let reasonsOfParts: Set<Problem.Kind> = [.notFound, .forbidden, .range]

  /// What stands in the place of a part; nil for a failure that is not about it.
  private static func problem(ofPart error: any Error, _ logger: Logger) -> Problem? {
    switch error {
    case let error as HubError where reasonsOfParts.contains(error.kind): return error.problem
    case HubStoreError.corrupt(let reason):
      logger.error("contents cannot be given", metadata: ["reason": "\(reason)"])
      return Problem(.failure, detail: "the hub's store has these contents no more, or damaged")
    default: return nil
    }
  }

  /// A part that was found.
  private struct Opened {
    let range: Range<Int64>
    var reader: ContentReader
    /// Pieces that were read and not written yet.
    private var beginning: ArraySlice<[UInt8]> = []
    /// `Content-Range` (RFC 9110, section 14.4) with its end of line; empty for whole contents.
    let rangeField: String

    /// - Throws: ``HubError`` of kind `range`.
    init(
      _ part: ContentsRequest.Part, size: Int64, _ reader: @Sendable (Range<Int64>) -> ContentReader
    ) throws {
      let start = part.offset ?? 0
      guard start <= size else { throw HubError(.range, "the contents have \(size) bytes") }
      range = start..<(start + min(part.length ?? size, size - start))
      self.reader = reader(range)
      rangeField =
        range.isEmpty || range.count == size
        ? "" : "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)\r\n"
    }

    /// Reads the first pieces, of so many bytes and one piece more at most.
    mutating func read(upTo limit: Int) async throws {
      var length = 0
      while length < limit, let piece = try await reader.next() {
        beginning.append(piece)
        length += piece.count
      }
    }

    /// The next piece; nil at the end.
    mutating func next() async throws -> [UInt8]? {
      if let piece = beginning.popFirst() { return piece }
      return try await reader.next()
    }
  }
}

/// One range of a `Range` header (RFC 9110, section 14).
enum ByteRange {
  /// The bytes that a header asks for; nil for all of them, which also answers a header that is not understood.
  ///
  /// - Throws: ``HubError`` of kind `range` for a range outside of the contents.
  static func of(_ header: String?, size: Int64) throws -> Range<Int64>? {
    guard let header, let match = header.wholeMatch(of: /bytes=([0-9]*)-([0-9]*)/) else { return nil }
    let (first, last) = (Int64(match.1), Int64(match.2))
    let outside = HubError(.range, "the contents have \(size) bytes")
    guard let first else {
      guard match.1.isEmpty, let last else { return nil }
      guard last > 0, size > 0 else { throw outside }
      return max(0, size - last)..<size
    }
    guard match.2.isEmpty || last != nil, last ?? .max >= first else { return nil }
    guard first < size else { throw outside }
    return first..<(min(size - 1, last ?? .max) + 1)
  }
}
