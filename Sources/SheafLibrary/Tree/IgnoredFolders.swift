import SheafModel

/// Whether folders are ignored, and the rules for their contents, as far as known.
///
/// It follows from the tree. All of it is forgotten when a folder moves or rules change.
struct IgnoredFolders {
  /// The rules of a folder's `.sheafignore`; those that hold by default are of no folder, 0.
  struct Source {
    let folder: Int64
    let rules: IgnoreRules
    /// Bytes of the rules.
    var bytes = 0
  }

  struct Place {
    var isIgnored = false
    /// Those of the folder itself come last, and decide first.
    var sources = [Source(folder: 0, rules: .byDefault)]
  }

  private static let limit = 16_384

  private var places = RecentTable<Int64, Place>(limit: limit)
  /// The inodes of which the rules are.
  private var files: Set<Int64> = []

  subscript(folder: Int64) -> Place? { places[folder] }

  mutating func note(_ place: Place, of folder: Int64) { places.note(folder, place) }

  mutating func noteFile(_ ino: Int64) { files.insert(ino) }

  /// Whether an inode holds rules that are in use.
  func holdsRules(_ ino: Int64) -> Bool { files.contains(ino) }

  mutating func forget() {
    places.removeAll()
    files = []
  }
}
