/// Rows that were looked up or changed last, by their keys: one request asks several times for the same ones, and the next one
/// for what the last one wrote.
///
/// Exact as long as one connection makes all changes by ``StoreTransaction``, and all is given up when something is rolled
/// back. Every change notes here what it makes of a row, or has it forgotten: so, while nothing is forgotten, what is not
/// here is in SQLite as it was before anything that still waits to be run (``ApplyQueue``).
final class KnownRows {
  /// What names lead to.
  let entries = RowCache<EntryKey, EntryRow>(limit: 8192)
  let items = RowCache<Int64, ItemRow>(limit: 4096)
  let versions = RowCache<VersionKey, VersionRow>(limit: 2048) { $0.content.isShort }
  /// Chunks by their hashes.
  let chunks = RowCache<ChunkHash, Int64>(limit: 4096)
  /// Hashes of the chunks that were stored last.
  let chunkHashes = RowCache<Int64, ChunkHash>(limit: 4096)
  /// Values of extended attributes.
  let xattrs = RowCache<XattrKey, [UInt8]>(limit: 4096) { $0.count <= 256 }

  /// - Parameter hasForgotten: whether something may wait to be run of which nothing is known.
  init(hasForgotten: Bool = false) {
    guard hasForgotten else { return }
    entries.forgetAll()
    items.forgetAll()
    versions.forgetAll()
    chunks.forgetAll()
    chunkHashes.forgetAll()
    xattrs.forgetAll()
  }
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

/// Rows by key, with the absence of rows, of some 300 bytes each; with one more than the limit, all are forgotten.
final class RowCache<Key: Hashable, Row> {
  private let limit: Int
  private let keeps: (Row) -> Bool
  private var known: [Key: Row?] = [:]
  /// Whether a change was forgotten that SQLite may not know yet.
  private(set) var hasForgotten = false

  /// - Parameter keeps: whether a row is short enough to be kept.
  init(limit: Int, keeps: @escaping (Row) -> Bool = { _ in true }) {
    self.limit = limit
    self.keeps = keeps
  }

  /// The row: nil within where it is known to be absent, nil where nothing is known.
  subscript(key: Key) -> Row?? { known[key] }

  /// Notes what a query found.
  func noteFound(_ key: Key, _ row: Row?) {
    guard row.map(keeps) ?? true else { return }
    if known.count >= limit { forgetAll() }
    known[key] = .some(row)
  }

  /// Notes what a change makes of a row.
  func note(_ key: Key, _ row: Row?) {
    guard row.map(keeps) ?? true else { return forget(key) }
    noteFound(key, row)
  }

  /// Notes what a change makes of a row that is there, if it is known to be.
  func noteChange(_ key: Key, _ change: (inout Row) -> Void) {
    guard case .some(.some(var row)) = known[key] else { return forget(key) }
    change(&row)
    note(key, row)
  }

  /// A change makes something of the row that is not kept.
  func forget(_ key: Key) {
    known[key] = nil
    hasForgotten = true
  }

  func forgetAll() {
    known.removeAll(keepingCapacity: true)
    hasForgotten = true
  }

  /// Nothing waits any more that is not known here.
  func catchUp() { hasForgotten = false }
}
