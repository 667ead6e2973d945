import Hummingbird
import SheafLibrary
import SheafModel
import Synchronization

extension Response {
  /// Streams a version's bytes as they are read, no faster than the client takes them.
  ///
  /// What fails before the first byte is thrown; what fails later breaks the connection off, so that no client takes a
  /// part for the whole.
  static func content(of path: ItemPath, version: Int64?, library: Library) async throws -> Response {
    let handoff = try Handoff<ByteBuffer>.start { handoff in
      try library.readVersion(path, number: version) { bytes in try handoff.put(ByteBuffer(bytes: bytes)) }
    }
    let first = try await handoff.next()
    let body = ResponseBody { writer in
      var buffer = first
      while let bytes = buffer {
        try await writer.write(bytes)
        buffer = try await handoff.next()
      }
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: [.contentType: "application/octet-stream"], body: body)
  }

  /// Runs a long job and streams its progress, then its result, as lines of JSON (``JobLine``).
  ///
  /// What fails before the first line is thrown. The job runs to its end even if the client goes away.
  static func job<Result: Codable & Sendable>(
    _ work: @escaping @Sendable ((Progress) -> Void) throws -> Result
  ) async throws -> Response {
    let handoff = try Handoff<JobLine<Result>>.start { handoff in
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
          try await writer.write(ByteBuffer(jsonLine: value))
          line = try await handoff.next()
        }
      } catch {
        try await writer.write(ByteBuffer(jsonLine: JobLine<Result>.error(SheafError(any: error))))
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
