/// The rows that were looked up or changed last, by their keys: one request asks for the same rows several times, and
/// the next one for the rows that the last one wrote.
///
/// They are exact as long as one connection makes all changes by ``StoreTransaction``, and all are given up when
/// something is rolled back. Every change notes here the row that it makes, or forgets the row, in the call that runs
/// its statement (``StoreTransaction/change(_:_:noting:)``). So, while nothing is forgotten, no statement that still
/// waits (``ApplyQueue``) concerns a row that is not here.
final class KnownRows {
  /// The tables of which rows are remembered.
  private static let tables = ["entries", "items", "versions", "chunks", "xattrs"]

  /// Whether a statement changes rows of these tables, by its first words.
  static func areChanged(by sql: String) -> Bool {
    let words = sql.split(maxSplits: 7) { $0.isWhitespace || $0 == "(" }
    guard let verb = words.first, ["INSERT", "REPLACE", "UPDATE", "DELETE"].contains(verb.uppercased())
    else { return false }
    let modifiers = ["INTO", "FROM", "OR", "ROLLBACK", "ABORT", "FAIL", "IGNORE", "REPLACE"]
    return words.dropFirst().first { !modifiers.contains($0.uppercased()) }.map { tables.contains(String($0)) } ?? false
  }

  /// Entries by folder and name.
  let entries = RowCache<EntryKey, EntryRow>(limit: 12288)
  let items = RowCache<Int64, ItemRow>(limit: 4096)
  let versions = RowCache<VersionKey, VersionRow>(limit: 2048) { $0.content.isShort }
  /// Chunks by their hashes.
  let chunks = RowCache<ChunkHash, Int64>(limit: 4096)
  /// Hashes of the chunks that were stored last.
  let chunkHashes = RowCache<Int64, ChunkHash>(limit: 4096)
  /// Values of extended attributes.
  let xattrs = RowCache<XattrKey, [UInt8]>(limit: 4096) { $0.count <= 256 }
  /// Folders of which every entry is in `entries`.
  private var whole: Set<Int64> = []

  /// - Parameter hasForgotten: whether statements may wait whose rows are not known.
  init(hasForgotten: Bool = false) {
    entries.whenForgotten = { [unowned self] in whole.remove($0.parent) }
    guard hasForgotten else { return }
    entries.forgetAll()
    items.forgetAll()
    versions.forgetAll()
    chunks.forgetAll()
    chunkHashes.forgetAll()
    xattrs.forgetAll()
  }

  /// Notes a new chunk, by its hash and by its id.
  func noteChunk(_ id: Int64, _ hash: ChunkHash) {
    chunks.note(hash, id)
    chunkHashes.note(id, hash)
  }

  /// Notes a new folder: as long as none of its entries is forgotten, a name that is not known there is absent.
  func noteEmpty(_ folder: Int64) {
    if whole.count >= 4096 { whole = [] }
    whole.insert(folder)
  }

  /// Whether every entry of a folder is known.
  func isWhole(_ folder: Int64) -> Bool { whole.contains(folder) }
}

struct EntryKey: Hashable {
  let parent: Int64
  let hash: Int64
  let name: [UInt8]

  /// The name's own hash is a keyed one.
  func hash(into hasher: inout Hasher) { hasher.combine(parent ^ hash) }
}

struct VersionKey: Hashable {
  let item: Int64
  let number: Int64
}

struct XattrKey: Hashable {
  let ino: Int64
  let name: [UInt8]
}

/// Rows, and absences of rows, by key, of some 300 bytes each. Past the limit, rows that nobody asked for lately are
/// forgotten, those of one part at a time, since the next look-up waits for that.
final class RowCache<Key: Hashable, Row> {
  private struct Part {
    /// Rows asked for since half of the part's limit was reached last, and before.
    var known: [Key: Row?] = [:]
    var older: [Key: Row?] = [:]
  }

  private static var partCount: Int { 16 }

  private let limit: Int
  private let keeps: (Row) -> Bool
  private var parts = [Part](repeating: Part(), count: RowCache.partCount)
  /// Whether a changed row was forgotten that SQLite may not have yet.
  private(set) var hasForgotten = false
  /// Hears the keys of forgotten rows, which may exist by now.
  var whenForgotten: ((Key) -> Void)?

  /// - Parameter keeps: whether a row is short enough to be kept.
  init(limit: Int, keeps: @escaping (Row) -> Bool = { _ in true }) {
    self.limit = limit
    self.keeps = keeps
  }

  /// The row: an inner nil if it is known to be absent, nil if nothing is known.
  subscript(key: Key) -> Row?? {
    let part = Self.part(of: key)
    if let row = parts[part].known[key] { return row }
    guard let row = parts[part].older.removeValue(forKey: key) else { return nil }
    keep(key, row)
    return row
  }

  private static func part(of key: Key) -> Int { key.hashValue & (partCount - 1) }

  /// Notes the result of a query.
  func noteFound(_ key: Key, _ row: Row?) {
    if row.map(keeps) ?? true { keep(key, row) }
  }

  /// Notes the row that a change makes.
  func note(_ key: Key, _ row: Row?) {
    guard row.map(keeps) ?? true else { return forget(key) }
    keep(key, row)
  }

  /// Applies a change to a row if it is known, and forgets it otherwise.
  func noteChange(_ key: Key, _ change: (inout Row) -> Void) {
    guard case .some(.some(var row)) = self[key] else { return forget(key) }
    change(&row)
    note(key, row)
  }

  /// Forgets a row that a change makes and that is not kept here.
  func forget(_ key: Key) {
    let part = Self.part(of: key)
    parts[part].known[key] = nil
    parts[part].older[key] = nil
    hasForgotten = true
    whenForgotten?(key)
  }

  func forgetAll() {
    for index in parts.indices {
      let part = parts[index]
      parts[index] = Part()
      lose(part.known)
      lose(part.older)
    }
    hasForgotten = true
  }

  /// No statement waits any more whose row is not known here.
  func catchUp() { hasForgotten = false }

  private func keep(_ key: Key, _ row: Row?) {
    let part = Self.part(of: key)
    if parts[part].known.count >= limit / 2 / Self.partCount {
      let lost = parts[part].older
      if !lost.isEmpty { hasForgotten = true }
      (parts[part].older, parts[part].known) = (parts[part].known, [:])
      lose(lost)
    }
    parts[part].known[key] = .some(row)
  }

  private func lose(_ rows: [Key: Row?]) {
    guard let whenForgotten else { return }
    for (key, row) in rows where row != nil { whenForgotten(key) }
  }
}
