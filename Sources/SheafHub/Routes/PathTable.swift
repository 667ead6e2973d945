import HTTPTypes
import Synchronization

/// The paths of a hub with their methods, for answers to requests that no route takes.
final class PathTable: Sendable {
  private struct Path {
    /// The segments; nil for one that may be anything.
    let segments: [Substring?]
    let methods: [String]
  }

  private let paths = Mutex<[Path]>([])

  /// - Parameter path: With `:NAME` for a segment that may be anything.
  func add(_ path: String, methods: [HTTPRequest.Method]) {
    let segments = path.split(separator: "/").map { $0.hasPrefix(":") ? nil : $0 }
    paths.withLock { $0.append(Path(segments: segments, methods: methods.map(\.rawValue).sorted())) }
  }

  /// The methods that a path takes; nil for a path that does not exist.
  func methods(of path: String) -> [String]? {
    let segments = path.split(separator: "/")
    return paths.withLock { paths in
      paths.first { path in
        path.segments.count == segments.count && zip(path.segments, segments).allSatisfy { $0 == nil || $0 == $1 }
      }?.methods
    }
  }
}
