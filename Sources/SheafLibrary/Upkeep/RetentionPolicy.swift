import SheafModel
import SheafStore

/// The spans for which versions and deleted items are kept, by the folder that they are in.
///
/// A folder's spans count for everything below it, except below a folder with spans of its own. A deleted item belongs
/// to the folder from which it was deleted. If no folder has spans, the library's count.
struct RetentionPolicy {
  /// Prefixes of the settings of folders, by the item; without the point they are the library's own keys.
  static let deletedKey = "keepDeleted"
  static let versionsKey = "keepVersions"
  /// Prefix of what notes that a hub is to be told what a folder says.
  static let unsentKey = "keepUnsent"
  /// Folders whose spans are remembered.
  private static let limit = 16_384

  /// Seconds.
  struct Spans: Hashable {
    var deleted: Int64
    var versions: Int64
  }

  /// What a folder says; nil where those around it, or the library, decide.
  struct Said: Hashable {
    var deleted: Int64?
    var versions: Int64?
  }

  /// - Throws: `invalid` for a span that is too short or too long.
  static func check(_ span: Int64?) throws {
    let shortest = RetentionChange.shortestSpan
    guard let span, !(shortest...TrashSelection.longestSpan).contains(span) else { return }
    let units: [(Int64, String)] = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")]
    let (seconds, unit) = units.first { span % $0.0 == 0 } ?? (1, "second")
    let count = span / seconds
    throw SheafError(
      .invalid, subject: "\(count) \(unit)\(count == 1 ? "" : "s")",
      reason: span < shortest ? "is too short to keep things for" : "is too long to keep things for",
      advice: "give 1d or more: a clock that is a little wrong must not take what was just deleted")
  }

  let library: Spans
  private let said: [Int64: Said]
  private var known: [Int64: Said] = [:]

  init(_ transaction: StoreTransaction) throws {
    library = Spans(
      deleted: try transaction.numberSetting(Self.deletedKey).flatMap(Self.sound) ?? Library.deletedSeconds,
      versions: try transaction.numberSetting(Self.versionsKey).flatMap(Self.sound) ?? Library.versionSeconds)
    var said: [Int64: Said] = [:]
    for (item, span) in try transaction.numberSettings(after: Self.deletedKey + ".") {
      if let item = Int64(item) { said[item, default: Said()].deleted = Self.sound(span) }
    }
    for (item, span) in try transaction.numberSettings(after: Self.versionsKey + ".") {
      if let item = Int64(item) { said[item, default: Said()].versions = Self.sound(span) }
    }
    self.said = said
  }

  /// One of what folders say by their items, and of the spans of all others.
  init(said: [Int64: Said], otherwise library: Spans) { (self.said, self.library) = (said, library) }

  /// A span of a row; nil for one that nobody can have set.
  private static func sound(_ span: Int64) -> Int64? {
    (0...TrashSelection.longestSpan).contains(span) ? span : nil
  }

  /// The items of the folders that say anything.
  var items: [Int64] { Array(said.keys) }

  /// The different spans for which deleted items are kept.
  var deletedSpans: Set<Int64> { Set([library.deleted] + said.values.compactMap(\.deleted)) }

  /// The shortest span of all.
  var shortest: Int64 {
    said.values.reduce(min(library.deleted, library.versions)) { min($0, $1.deleted ?? $0, $1.versions ?? $0) }
  }

  /// What the folder of an item says.
  func ownSpans(of item: Int64) -> Said { said[item] ?? Said() }

  /// The spans for what is in a folder, or was deleted from it.
  mutating func spans(in folder: Int64, _ transaction: StoreTransaction) throws -> Spans {
    let found = try saidSpans(in: folder, transaction)
    return Spans(deleted: found.deleted ?? library.deleted, versions: found.versions ?? library.versions)
  }

  /// What a folder and those around it say of what is in it, or was deleted from it.
  mutating func saidSpans(in folder: Int64, _ transaction: StoreTransaction) throws -> Said {
    if said.isEmpty { return Said() }
    var passed: [Int64] = []
    var (seen, ino): (Set<Int64>, Int64) = ([], folder)
    var (deleted, versions): (Int64?, Int64?)
    while let row = try transaction.inode(ino), seen.insert(ino).inserted {
      if let spans = known[ino] {
        (deleted, versions) = (deleted ?? spans.deleted, versions ?? spans.versions)
        break
      }
      let said = row.item.flatMap { self.said[$0] }
      (deleted, versions) = (deleted ?? said?.deleted, versions ?? said?.versions)
      if deleted == nil, versions == nil { passed.append(ino) }
      ino = row.parent
    }
    let spans = Said(deleted: deleted, versions: versions)
    if known.count + passed.count >= Self.limit { known = [:] }
    for folder in passed.prefix(Self.limit) { known[folder] = spans }
    return spans
  }

  /// The spans for the versions of a document.
  mutating func spans(ofItem item: Int64, _ transaction: StoreTransaction) throws -> Spans {
    if said.isEmpty { return library }
    guard let inode = try transaction.inode(item: item) else { return library }
    return try spans(in: inode.parent, transaction)
  }
}
