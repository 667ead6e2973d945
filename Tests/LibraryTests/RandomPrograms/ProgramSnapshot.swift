import Glibc
import SheafModel
import SheafStore

@testable import SheafLibrary

/// What a library holds between two steps: each item with its place, its versions and the share that it is in.
struct ProgramSnapshot {
  struct Document {
    let row: ItemRow
    let inode: InodeRow
    let versions: [VersionRow]
    /// The contents of each version.
    let texts: [Int64: String]
    let path: String
    /// The sharing that it is in: a share that was stopped and began again is another one.
    let sharing: Sharing?

    var isLive: Bool { inode.nlink > 0 }
    /// What the current version holds.
    var text: String { texts[row.version] ?? "" }
  }

  struct Sharing: Hashable {
    let item: Int64
    let since: Timestamp
  }

  private(set) var items: [Int64: Document] = [:]
  /// The accounts that take part, by sharing.
  private(set) var members: [Sharing: Set<Int64>] = [:]

  /// Texts of contents that do not change, so that each is read once.
  struct Texts {
    private var known: [StoredContent: String] = [:]

    mutating func text(of content: StoredContent, in library: Library) throws -> String {
      if let text = known[content] { return text }
      var working = WorkingCopy(content)
      var bytes = [UInt8](repeating: 0, count: Int(working.size))
      _ = try bytes.withUnsafeMutableBytes { try working.read(at: 0, into: $0, from: library) }
      let text = String(decoding: bytes, as: UTF8.self)
      known[content] = text
      return text
    }
  }

  init(_ library: Library, _ texts: inout Texts) throws {
    var cache = texts
    defer { texts = cache }
    try library.locked {
      for share in library.shares.all where share.row.isActive {
        members[Sharing(item: share.row.item, since: share.row.since)] = Set(share.members.map(\.account))
      }
      for id in stride(from: 1, through: library.numbers.item, by: 1) {
        let rows = try library.store.read { transaction -> (ItemRow, InodeRow, [VersionRow])? in
          guard let row = try transaction.item(id), let inode = try transaction.inode(item: id) else { return nil }
          return (row, inode, try transaction.versions(id))
        }
        guard let (row, inode, versions) = rows else { continue }
        var contents: [Int64: String] = [:]
        for version in versions { contents[version.number] = try cache.text(of: version.content, in: library) }
        let place = try library.store.read { try Self.place(of: inode, library, $0) }
        items[id] = Document(
          row: row, inode: inode, versions: versions, texts: contents, path: place.path, sharing: place.sharing)
      }
    }
  }

  private static func place(
    of inode: InodeRow, _ library: Library, _ transaction: StoreTransaction
  ) throws -> (path: String, sharing: Sharing?) {
    var names: [String] = []
    var sharing: Sharing?
    var row = inode
    while true {
      if sharing == nil, row.nlink > 0, let item = row.item, let share = library.shares.active(item) {
        sharing = Sharing(item: item, since: share.row.since)
      }
      guard row.parent != 0, let above = try transaction.inode(row.parent) else { break }
      names.append(String(decoding: row.name, as: UTF8.self))
      row = above
    }
    return (names.reversed().joined(separator: "/"), sharing)
  }

  /// All contents of all versions.
  var contents: Set<String> { Set(items.values.flatMap { $0.texts.values }) }

  func item(of inode: Int64) -> Document? { items.values.first { $0.inode.ino == inode } }
}
