import SheafModel

/// Whether folders are ignored, and the rules for their contents, as far as known.
///
/// It follows from the tree. All of it is forgotten when a folder moves or rules change, but for the marks: they are
/// stored, as `Ignoring.swift` says.
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
    /// When somebody else than the owner last moved the folder, or one that it is in.
    var moved: Timestamp?
    /// Those of the folder itself come last, and decide first.
    var sources = [Source(folder: 0, rules: .byDefault)]
  }

  private static let limit = 16_384

  private var places = RecentTable<Int64, Place>(limit: limit)
  /// The inodes of which the rules are.
  private var files: Set<Int64> = []

  /// When others than the owner last moved folders, and brought back files of rules, by inode.
  private var marks: [Int64: Timestamp] = [:]
  /// Prefix of the settings that hold the marks.
  static let markKey = "movedByOthers"

  subscript(folder: Int64) -> Place? { places[folder] }

  func mark(of ino: Int64) -> Timestamp? { marks[ino] }

  /// Whether another inode can have a mark.
  var hasRoom: Bool { marks.count < Self.limit }

  mutating func mark(_ ino: Int64, _ time: Timestamp?) { marks[ino] = time }

  /// Takes up the marks that are stored, by inode.
  mutating func restore(marks stored: [(key: String, value: Int64)]) {
    for (key, value) in stored { if let ino = Int64(key) { marks[ino] = Timestamp(nanoseconds: value) } }
  }

  mutating func note(_ place: Place, of folder: Int64) { places.note(folder, place) }

  mutating func noteFile(_ ino: Int64) { files.insert(ino) }

  /// Whether an inode holds rules that are in use.
  func holdsRules(_ ino: Int64) -> Bool { files.contains(ino) }

  mutating func forget() {
    places.removeAll()
    files = []
  }
}
