import Foundation
import SheafModel
import SheafStore

/// The search of contents, one at a time, with the index once it is open.
struct SearchedContents {
  private(set) var index: SearchIndex?

  /// The index of a library, opened if it is not yet.
  mutating func opened(_ library: (path: String, id: String)) throws(SheafError) -> SearchIndex {
    if let index { return index }
    let opened = try SearchIndex(of: library)
    index = opened
    return opened
  }

  /// Closes the index, if it is open.
  mutating func close() {
    try? index?.close()
    index = nil
  }
}

/// The index of contents. It is brought up to date without the lock, by comparing it with the library, so that saving
/// costs nothing.
///
/// Rules:
/// 1. It exists while the setting is on, and is removed with it.
/// 2. A search first brings it up to date. Upkeep does so earlier, in the background, so that there is little left.
/// 3. When a purge returns, the purged words are gone from its file.
/// 4. It decides nothing: a search checks items that it finds by the index like all others.
extension Library {
  private static let contentsKey = "searchContents"
  /// Documents that are compared, and whose words are taken in, at once.
  private static let comparedStep = 1024
  private static let indexedStep = 32

  /// Whether contents are searched, too.
  func searchesContents() throws -> Bool { try read { try $0.setting(Self.contentsKey) } == "on" }

  /// Notes in a change whether contents are to be searched.
  func setSearchesContents(_ isOn: Bool, _ change: Change) throws {
    try change.rows.setSetting(Self.contentsKey, isOn ? "on" : nil)
  }

  /// Takes up what was set: removes the index, or has upkeep begin with it.
  func applySearchesContents() throws {
    let isOn = try locked { try searchesContents() }
    maintenance.keepIndex(isOn)
    if isOn { return }
    searchedContents.withLock { contents in
      contents.close()
      SearchIndex.remove(of: location.path)
    }
  }

  /// Closes the index with the library.
  func closeSearchedContents() { searchedContents.withLock { $0.close() } }

  /// The versions whose contents have the words of a text, by document; none where contents are not searched.
  func contents(
    with text: String, progress: (SheafModel.Progress) -> Void
  ) throws -> [Int64: SearchIndex.Document] {
    guard try locked({ try searchesContents() }) else { return [:] }
    return try withIndex { index in
      try update(index, progress)
      return try index.documents(with: text)
    }
  }

  /// Brings the index up to date, if contents are searched.
  func updateSearchedContents() throws {
    guard try locked({ try searchesContents() }) else { return }
    try withIndex { try update($0) { _ in } }
  }

  /// Takes what was purged out of the index's file (rule 3).
  func forgetPurgedContents() throws {
    guard try locked({ try searchesContents() }) else { return }
    do {
      try withIndex { index in
        try update(index) { _ in }
        try index.tighten()
      }
    } catch let error as SheafError where error.kind == .exists {
      // What has the index's name is none, so it has no words of documents.
    }
  }

  /// Runs `body` with the index, and once more with a new one where the index turns out to be damaged.
  private func withIndex<Value: Sendable>(_ body: (SearchIndex) throws -> Value) throws -> Value {
    try searchedContents.withLock { contents in
      do {
        return try body(contents.opened((location.path, id)))
      } catch let error as SheafError where contents.index?.isDamaged(by: error) == true {
        contents.close()
        SearchIndex.remove(of: location.path)
        return try body(contents.opened((location.path, id)))
      }
    }
  }

  private func update(_ index: SearchIndex, _ progress: (SheafModel.Progress) -> Void) throws {
    var last: Int64? = 0
    var looked: Int64 = 0
    while let start = last {
      let current = try store.snapshot { try $0.currentVersions(after: start, limit: Self.comparedStep) }
      let end = current.count < Self.comparedStep ? Int64.max : current.last?.item ?? .max
      var known = try index.documents(after: start, through: end)
      var due: [Int64] = []
      for (item, number, isAbsent) in current {
        // An open version is renewed under its number. Of contents that are not here, nothing new is known.
        if let document = known.removeValue(forKey: item), document.number == number, !document.isOpen || isAbsent {
          continue
        }
        due.append(item)
      }
      try index.update([], removing: Array(known.keys))
      for begin in stride(from: 0, to: due.count, by: Self.indexedStep) {
        if maintenance.isStopping { return }
        try takeIn(due[begin..<min(begin + Self.indexedStep, due.count)], index)
        progress(SheafModel.Progress(done: looked + Int64(begin), total: 0))
      }
      looked += Int64(current.count)
      last = end == .max ? nil : end
    }
  }

  private func takeIn(_ items: ArraySlice<Int64>, _ index: SearchIndex) throws {
    let texts = try store.snapshot { transaction in
      try items.compactMap { item -> (document: SearchIndex.Document, text: String)? in
        guard let number = try transaction.item(item)?.version, let version = try transaction.version(item, number)
        else { return nil }
        // `check` reports damage.
        let bytes = (try? transaction.firstBytes(of: version.content, limit: SearchIndex.textLimit)) ?? nil
        // What is not here is taken in once it is.
        let document = SearchIndex.Document(
          item: item, number: number, time: version.time,
          isOpen: version.isOpen || bytes == nil && version.content.absentLength > 0)
        return (document, bytes.flatMap(Self.text) ?? "")
      }
    }
    try index.update(texts, removing: [])
  }

  /// The text that bytes are, the last character of which may be cut off; nil for what is none.
  static func text(_ bytes: [UInt8]) -> String? {
    guard !bytes.contains(0) else { return nil }
    for cut in 0...3 {
      if let text = String(validating: bytes.dropLast(cut), as: UTF8.self) { return text }
      if bytes.count < SearchIndex.textLimit { return nil }
    }
    return nil
  }
}
