/// The latest notices for people, each once.
struct NoticeList: Sendable {
  private static let limit = 20

  /// The latest last.
  private(set) var words: [String] = []

  /// Adds a notice, or moves an equal one to the end.
  ///
  /// - Returns: whether there was none like it.
  mutating func add(_ word: String) -> Bool {
    let isNew = !words.contains(word)
    words = Array((words.filter { $0 != word } + [word]).suffix(Self.limit))
    return isNew
  }
}
