import Hummingbird
import SheafLibrary
import SheafModel
import Synchronization

extension LibraryAPI {
  /// Bytes of contents that are read at a time.
  private static let pieceLength = 1 << 20
  /// Bytes of a line that are sent at a time.
  private static let linePiece = 64 << 10

  /// Streams a version's bytes as they are read, no faster than the client takes them: nothing runs for a client that
  /// takes none.
  ///
  /// It throws a failure before the first byte. A later failure breaks the connection off, so that no client takes a
  /// part for the whole.
  func content(of path: ItemPath, version: Int64?) async throws -> Response {
    let slot = try downloads.take()
    let reader = try await call { try $0.versionReader(path, number: version) }
    @Sendable func piece(at offset: Int64) async throws -> ByteBuffer {
      try await call { library in
        var buffer = ByteBuffer()
        try buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: Self.pieceLength) { bytes in
          let piece = UnsafeMutableRawBufferPointer(rebasing: bytes.prefix(Self.pieceLength))
          return try library.read(reader, at: offset, into: piece)
        }
        return buffer
      }
    }
    let first = try await piece(at: 0)
    let body = ResponseBody { writer in
      defer { withExtendedLifetime(slot) {} }
      var (buffer, offset) = (first, Int64(0))
      while buffer.readableBytes > 0 {
        offset += Int64(buffer.readableBytes)
        try await writer.write(buffer)
        buffer = try await piece(at: offset)
      }
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: [.contentType: "application/octet-stream"], body: body)
  }

  /// Runs a long job and streams its progress, then its result, as lines of JSON (``JobLine``).
  ///
  /// It throws a failure before the first line. The job runs to its end even if the client goes away.
  func job<Result: Codable & Sendable>(
    _ work: @escaping @Sendable ((Progress) -> Void) throws -> Result
  ) async throws -> Response {
    let handoff = Handoff<JobLine<Result>>.start(try jobs.take()) { handoff in
      let pace = ProgressPace()
      let result = try work { progress in
        if pace.admits(progress) { handoff.offer(.progress(progress)) }
      }
      try handoff.put(.result(result))
    }
    let first = try await handoff.next()
    let body = ResponseBody { writer in
      var line = first
      do {
        while let value = line {
          // A client that takes a long line slowly takes something all the time.
          var text = try ByteBuffer(jsonLine: value)
          while let piece = text.readSlice(length: min(text.readableBytes, Self.linePiece)), piece.readableBytes > 0 {
            try await writer.write(piece)
          }
          line = try await handoff.next()
        }
      } catch {
        let error = SheafError(any: error).naming(library: info.library)
        try await writer.write(ByteBuffer(jsonLine: JobLine<Result>.error(error)))
      }
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: [.contentType: "application/x-ndjson"], body: body)
  }
}

/// Lets through as much of a job's progress as a person can follow.
private final class ProgressPace: Sendable {
  private static let interval = Duration.milliseconds(100)
  private let last = Mutex<ContinuousClock.Instant?>(nil)

  func admits(_ progress: Progress) -> Bool {
    last.withLock { last in
      let now = ContinuousClock.now
      if let last, now - last < Self.interval, progress.done < progress.total { return false }
      last = now
      return true
    }
  }
}
