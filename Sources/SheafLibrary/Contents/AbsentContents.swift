import Foundation
import SheafModel
import SheafStore
package import SheafWire

/// An operation needs bytes that are not on this machine. It has changed nothing: whoever called it has them fetched,
/// and calls it again.
package struct AbsentContents: Error, Hashable, Sendable {
  /// Their row in `absent_contents`.
  package let id: Int64
  /// The account whose hub has them.
  package let account: Int64
  package let item: WireID
  package let version: WireID
  /// Bytes of the version.
  package let size: Int64
  /// The bytes of the version that are wanted.
  package let range: Range<Int64>

  package init(id: Int64, account: Int64, item: WireID, version: WireID, size: Int64, range: Range<Int64>) {
    self.id = id
    self.account = account
    self.item = item
    self.version = version
    self.size = size
    self.range = range
  }
}

/// Contents that a hub has and this machine has not (docs/ARCHITECTURE.md, "A replica's plan").
///
/// Rules:
/// 1. An extent names absent bytes by a row of `absent_contents` and their place in the version, so that it means the
///    same bytes wherever it stands.
/// 2. Only versions that the hub has refer to absent bytes, and the documents of which they are current. Whatever would
///    make another version of them throws ``AbsentContents`` first.
extension Library {
  /// What must be fetched for some bytes.
  ///
  /// - Parameter extents: Absent ones, of one version or of several.
  /// - Returns: The error to throw, about the version of the first.
  func absence(of extents: [SheafStore.Extent]) throws -> any Error {
    guard let first = extents.first else { return SheafError(.corrupt, subject: "absent contents") }
    let same = extents.filter { $0.chunk == first.chunk }
    let range = (same.map(\.offset).min() ?? 0)..<(same.map { $0.offset + $0.length }.max() ?? 0)
    guard let row = try read({ try $0.absentContents(first.chunk) }), let item = try read({ try $0.item(row.item) }),
      let version = WireID(bytes: row.version), range.upperBound <= row.size
    else {
      return SheafError(
        .unreachable, subject: "contents", reason: "are not on this machine, and no hub is known to have them",
        advice: "run sheaf check")
    }
    return AbsentContents(
      id: first.chunk, account: item.owner, item: WireID(item.uuid), version: version, size: row.size, range: range)
  }

  /// Makes sure that contents are on this machine, before something is made of them.
  ///
  /// - Throws: ``AbsentContents`` for all of the version that has the first bytes which are not.
  func requireContents(_ content: StoredContent?) throws {
    guard let content, content.absentLength > 0 else { return }
    try require(Content(content))
  }

  /// As ``requireContents(_:)-(StoredContent?)``, of a file as its readers and writers see it.
  func requireContents(_ working: WorkingCopy?) throws {
    guard let working, working.content.absentLength > 0 else { return }
    try require(working.content)
  }

  private func require(_ content: Content) throws {
    var content = content
    guard let extent = try content.firstAbsent(from: self), let row = try read({ try $0.absentContents(extent.chunk) })
    else { throw try absence(of: []) }
    throw try absence(of: [SheafStore.Extent(chunk: extent.chunk, length: row.size)])
  }
}

/// Fetches contents that are not on this machine.
package protocol ContentsSource: AnyObject, Sendable {
  /// Fetches what an operation needed; then it can be called again.
  ///
  /// - Throws: ``SheafError``: `unreachable` at once where the hub cannot be reached, and after five seconds without a
  ///   byte; `gone` for contents that the hub has no more; `accessDenied`. `CancellationError`.
  func fetch(_ absent: AbsentContents) async throws
}
