import SheafHubStore
import SheafWire

/// For how long versions and deleted items of a zone are kept, by the folder that they are in.
///
/// What a folder says counts for everything below it, except below a folder that says something else, each of the two
/// spans on its own. A deleted item belongs to the folder from which it was deleted, and a document with several names
/// to that of its folders which keeps it longest. If no folder says anything, the hub's rules count.
struct FolderSpans {
  /// What is kept for ever.
  static let forever = Int64.max
  private static let second: Int64 = 1_000_000_000
  /// Folders whose spans are remembered.
  private static let limit = 16_384
  /// Folders that lie in each other; deleted ones may lie deeper than others.
  private static let depthLimit = 4 * Decision.depthLimit

  /// What folders say, in nanoseconds.
  private struct Said: Hashable {
    var deleted: Int64?
    var versions: Int64?

    /// What of it is missing, another folder around it says.
    func within(_ around: Said?) -> Said {
      Said(deleted: deleted ?? around?.deleted, versions: versions ?? around?.versions)
    }
  }

  private let rules: (deleted: Int64, versions: Int64)
  private let said: [WireID: Said]
  private var known: [WireID: Said] = [:]

  init(of zone: String, by rules: RetentionRules, _ connection: inout any SQLConnection) throws {
    self.rules = (Self.span(ofDays: rules.deletedDays), Self.span(ofDays: rules.versionDays))
    var said: [WireID: Said] = [:]
    for folder in try FolderRetentions.folders(of: zone, &connection) {
      said[folder.item] = Said(
        deleted: Self.span(ofSeconds: folder.keepDeleted), versions: Self.span(ofSeconds: folder.keepVersions))
    }
    self.said = said
  }

  private static func span(ofDays days: Int64?) -> Int64 { days.map { $0 * 86_400 * second } ?? forever }

  /// Nil for a span that nobody can have said.
  private static func span(ofSeconds seconds: Int64?) -> Int64? {
    guard let seconds, WireLimits.keptSeconds.contains(seconds) else { return nil }
    let (span, isTooLong) = seconds.multipliedReportingOverflow(by: second)
    return isTooLong ? forever : span
  }

  /// Whether no folder says anything.
  var isEmpty: Bool { said.isEmpty }

  /// The shortest and the longest span for which anything that was deleted is kept.
  var shortestDeleted: Int64 { said.values.reduce(rules.deleted) { min($0, $1.deleted ?? $0) } }
  var longestDeleted: Int64 { said.values.reduce(rules.deleted) { max($0, $1.deleted ?? $0) } }

  /// For how long versions of an item are kept.
  mutating func versions(_ row: ItemRow, _ stored: inout StoredZone) throws -> Int64 {
    if said.isEmpty { return rules.versions }
    return try spans(around: row, &stored).map { $0.versions ?? rules.versions }.max() ?? rules.versions
  }

  /// For how long an item is kept once it was deleted.
  mutating func deleted(_ row: ItemRow, _ stored: inout StoredZone) throws -> Int64 {
    if said.isEmpty { return rules.deleted }
    return try spans(around: row, &stored).map { $0.deleted ?? rules.deleted }.max() ?? rules.deleted
  }

  /// What counts in each of the folders that an item is in.
  private mutating func spans(around row: ItemRow, _ stored: inout StoredZone) throws -> [Said] {
    var found: [Said] = []
    for place in row.places { found.append(try spans(in: place.parent, &stored)) }
    return found
  }

  /// What counts in a folder, also in one that was deleted.
  private mutating func spans(in folder: WireID, _ stored: inout StoredZone) throws -> Said {
    var (passed, found, next): ([WireID], Said, WireID) = ([], Said(), folder)
    for _ in 0..<Self.depthLimit {
      if let known = known[next] {
        found = found.within(known)
        break
      }
      found = found.within(said[next])
      if found == Said() { passed.append(next) }
      if next == .root || (found.deleted != nil && found.versions != nil) { break }
      guard let row = try stored.item(try stored.alias(next) ?? next), let place = row.places.first else { break }
      if row.item != next { found = found.within(said[row.item]) }
      next = place.parent
    }
    if known.count + passed.count >= Self.limit { known = [:] }
    for folder in passed.prefix(Self.limit) { known[folder] = found }
    return found
  }
}
