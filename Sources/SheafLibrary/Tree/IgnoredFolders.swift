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

  /// What others than the owner did, since which the owner has to save rules anew.
  struct Mark {
    /// When they last moved the folder, or brought back the file of rules: rules in it, of before, have no effect.
    var moved: Timestamp?
    /// When they last took the folder's rules away, or took the folder to where other rules apply.
    var rules: Timestamp?
  }

  struct Place {
    var isIgnored = false
    /// When somebody else than the owner last moved the folder, or one that it is in, or changed the rules there.
    var moved: Timestamp?
    /// Those of the folder itself come last, and decide first. None of further outside are among them, nor those that
    /// hold by default, where others changed the rules between.
    var sources = [Source(folder: 0, rules: .byDefault)]

    /// Takes the effect from all rules of before the time at which others changed some: there may be others because of
    /// them, or room for them.
    mutating func lose(_ changed: Timestamp) {
      sources = []
      moved = max(moved ?? changed, changed)
    }
  }

  private static let limit = 16_384

  private var places = RecentTable<Int64, Place>(limit: limit)
  /// The inodes of which the rules are.
  private var files: Set<Int64> = []

  /// By inode.
  private var marks: [Int64: Mark] = [:]
  /// Prefixes of the settings that hold the marks.
  static let movedKey = "movedByOthers"
  static let rulesKey = "rulesByOthers"

  subscript(folder: Int64) -> Place? { places[folder] }

  func mark(of ino: Int64) -> Mark? { marks[ino] }

  /// Whether another inode can have a mark.
  var hasRoom: Bool { marks.count < Self.limit }

  /// Adds to the mark of an inode.
  mutating func mark(_ ino: Int64, _ time: Timestamp, isMoved: Bool, changesRules: Bool) {
    if isMoved { marks[ino, default: Mark()].moved = time }
    if changesRules { marks[ino, default: Mark()].rules = time }
  }

  mutating func removeMark(_ ino: Int64) { marks[ino] = nil }

  /// Takes up the marks that are stored, by inode.
  mutating func restore(moved: [(key: String, value: Int64)], rules: [(key: String, value: Int64)]) {
    func mark(_ stored: (key: String, value: Int64), isMoved: Bool) {
      guard let ino = Int64(stored.key) else { return }
      self.mark(ino, Timestamp(nanoseconds: stored.value), isMoved: isMoved, changesRules: !isMoved)
    }
    for stored in moved { mark(stored, isMoved: true) }
    for stored in rules { mark(stored, isMoved: false) }
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
