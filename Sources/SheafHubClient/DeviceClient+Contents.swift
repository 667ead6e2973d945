import AsyncHTTPClient
package import NIOCore
package import SheafWire

extension DeviceClient {
  /// Bytes of a problem in the place of a part.
  private static let longestProblem = 64 * 1024

  /// The contents of versions, or parts of them, one after the other in this order.
  ///
  /// Nothing is kept: bytes are given out as they come, and no more are read until they were taken. Whoever takes none
  /// for ``DeviceClientLimits/silence`` loses the rest. The hub checks each chunk by its hash; the caller knows how long
  /// the contents are, and says so in `parts` to be sure to get no more.
  ///
  /// - Parameters:
  ///   - piece: Gets the index of a part in `parts`, and its next bytes.
  ///   - end: Gets the index of a part that is over, and why the hub did not give it; nil for a part that is whole.
  /// - Throws: ``HubFailure`` if the hub gives out something else, or breaks off; what was whole by then stays so. And
  ///   what `piece` and `end` throw.
  package func contents(
    _ parts: [ContentsRequest.Part], of scope: HubScope = .own, piece: (Int, ByteBuffer) async throws -> Void,
    end: (Int, HubFailure?) async throws -> Void
  ) async throws {
    for start in stride(from: 0, to: parts.count, by: WireLimits.contentsPerRequest) {
      let some = start..<min(parts.count, start + WireLimits.contentsPerRequest)
      try await contents(parts, some, scope, piece: piece, end: end)
    }
  }

  /// Asks for some of the parts.
  private func contents(
    _ parts: [ContentsRequest.Part], _ asked: Range<Int>, _ scope: HubScope,
    piece: (Int, ByteBuffer) async throws -> Void,
    end: (Int, HubFailure?) async throws -> Void
  ) async throws {
    let response = try await openPatiently(
      try HubRequest(posting: ContentsRequest(contents: Array(parts[asked])), to: "\(scope.path)/contents"))
    guard let boundary = MultipartReader.boundary(of: response.headers.first(name: "content-type") ?? "") else {
      throw nonsense("gives out contents that are not in parts")
    }
    var (reader, bytes) = (MultipartReader(boundary: boundary), response.body.makeAsyncIterator())
    var next = asked.lowerBound
    /// What came so far in the place of the part.
    var problem: ByteBuffer?
    while let more = try await self.next(&bytes) {
      reader.append(more)
      while let element = try nextElement(of: &reader) {
        switch element {
        case .head(let head):
          guard next < asked.upperBound else { throw nonsense("gives out contents that nobody asked for") }
          problem = try isProblem(head, parts[next], scope) ? ByteBuffer() : nil
        case .bytes(let some):
          if problem == nil {
            try await pace.take(some.readableBytes)
            try await piece(next, some)
          } else {
            problem?.writeImmutableBuffer(some)
          }
        case .endOfPart:
          if let problem {
            try await end(next, refusal(try await decode(problem)))
          } else {
            try await end(next, nil)
          }
          next += 1
        }
      }
    }
    guard reader.isAtEnd else { throw brokeOff("the contents") }
    guard next == asked.upperBound else { throw nonsense("gives out fewer contents than it was asked for") }
  }

  private func nextElement(of reader: inout MultipartReader) throws -> MultipartReader.Element? {
    do {
      return try reader.next()
    } catch {
      throw nonsense("gives out contents that are not in parts")
    }
  }

  /// Whether a problem stands in the place of a part.
  ///
  /// - Throws: ``HubFailure`` if it is the head of anything but this part.
  private func isProblem(
    _ head: MultipartReader.Head, _ part: ContentsRequest.Part, _ scope: HubScope
  ) throws -> Bool {
    let address = "\(scope.path)/items/\(part.item)/versions/\(part.version)/content"
    guard head.fields["content-location"] == address else { throw nonsense("gives out contents of something else") }
    switch head.fields["content-type"] {
    case "application/octet-stream":
      guard head.isSound(for: part) else { throw nonsense("gives out another part than it was asked for") }
      return false
    case "application/problem+json":
      guard head.length <= Self.longestProblem else { throw nonsense("tells a problem without an end") }
      return true
    default: throw nonsense("gives out contents of a type that they do not have")
    }
  }
}

extension MultipartReader.Head {
  /// Whether it may be that of the part: of its bytes, as many as were asked for or as many as there are.
  fileprivate func isSound(for part: ContentsRequest.Part) -> Bool {
    let start = part.offset ?? 0
    guard length <= part.length ?? WireLimits.documentBytes, length <= WireLimits.documentBytes else { return false }
    // Whole contents, and parts without bytes, have no range.
    guard let range = fields["content-range"] else { return start == 0 || length == 0 }
    guard let match = range.wholeMatch(of: #/bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})/#),
      let first = Int64(match.1), let last = Int64(match.2), let size = Int64(match.3)
    else { return false }
    return first == start && last >= first && last < size && last - first == length - 1
      && (length == part.length || last == size - 1)
  }
}
