/// Rows that were looked up or changed last: one request asks several times for the same ones.
///
/// Exact as long as one connection makes all changes by ``StoreTransaction``, and all is forgotten when something is rolled
/// back.
struct KnownRows {
  var entries = EntryCache()
  var items = ItemCache()
}

/// What names lead to, absent ones too: renaming and removing them asks for it again.
struct EntryCache {
  private struct Name: Hashable {
    let parent: Int64
    let hash: Int64
    let name: [UInt8]

    /// The name's own hash is a keyed one.
    func hash(into hasher: inout Hasher) { hasher.combine(parent ^ hash) }
  }

  /// Names kept at most, some 200 bytes each; with one more, all are forgotten.
  private static let limit = 8192

  private var known: [Name: EntryRow?] = [:]

  /// What the name leads to: nil within where it is known to be absent, nil where nothing is known.
  subscript(parent: Int64, hash: Int64, name: [UInt8]) -> EntryRow?? {
    get { known[Name(parent: parent, hash: hash, name: name)] }
    set {
      if known.count >= Self.limit { known.removeAll(keepingCapacity: true) }
      known[Name(parent: parent, hash: hash, name: name)] = newValue
    }
  }
}

/// Items by their numbers.
struct ItemCache {
  /// Items kept at most, some 150 bytes each; with one more, all are forgotten.
  private static let limit = 4096

  private var known: [Int64: ItemRow] = [:]

  subscript(id: Int64) -> ItemRow? {
    get { known[id] }
    set {
      if known.count >= Self.limit { known.removeAll(keepingCapacity: true) }
      known[id] = newValue
    }
  }
}
