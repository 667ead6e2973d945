import SheafLibrary
import SheafModel

/// Limits the wait for the process that holds a library's lock: each process that has held it since gets the same time.
struct OwnerPatience {
  /// How long one process may take until it answers, or ends.
  static let limit = Duration.seconds(10)

  private let location: LibraryLocation
  private var owner: Int32?
  private var deadline = ContinuousClock.now + limit

  init(_ location: LibraryLocation) {
    self.location = location
    owner = Self.owner(of: location)
  }

  /// Waits a moment.
  ///
  /// - Throws: `failure` once the patience with one process is exhausted.
  mutating func wait(otherwise failure: SheafError) async throws {
    let now = Self.owner(of: location)
    if now != owner {
      owner = now
      deadline = ContinuousClock.now + Self.limit
    }
    OwnerProcess.releaseKilled(location)
    guard ContinuousClock.now < deadline else { throw failure }
    try await Task.sleep(for: .milliseconds(20))
  }

  /// The process that took a library's lock last.
  static func owner(of location: LibraryLocation) -> Int32? {
    let bytes = try? SmallFile.read(location.lockPath, limit: 64, followingLinks: false)
    let text = bytes?.prefix { $0 != UInt8(ascii: "\n") }.readable
    return text.flatMap { Int32($0) }
  }
}
