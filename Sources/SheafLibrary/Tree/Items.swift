import SheafModel
import SheafStore

/// The items that inodes are.
///
/// Rooms: `InodeTable`, `Numbers`.
extension Library {
  /// The item that `inode` is; nil for fifos, sockets and device nodes.
  func item(of inode: Inode) throws -> ItemRow? {
    guard let id = inode.row.item else { return nil }
    if let item = inode.item, item.id == id { return item }
    let item = try read { try $0.item(id) }
    inode.item = item
    inodes.noteItemRead(of: inode)
    return item
  }

  func newItem(_ kind: ItemKind, owner: Int64, creator: Int64, time: Timestamp) -> ItemRow {
    ItemRow(
      id: numbers.nextItem(), uuid: .timeOrdered(time), kind: kind, owner: owner, creator: creator, created: time)
  }

  /// A document of its own with the contents that `inode` holds as the document `item`, as yet without an inode.
  func insertDocument(
    holding inode: Inode, of item: ItemRow, isQuiet: Bool, creator: Int64, _ time: Timestamp,
    _ change: Change
  ) throws -> ItemRow {
    try requireContents(inode.row.content)
    var fresh = newItem(.document, owner: inode.row.owner, creator: creator, time: time)
    fresh.isQuiet = isQuiet
    // An item that nobody closed yet has no version.
    fresh.version = item.version == 0 ? 0 : 1
    fresh.lastVersion = fresh.version
    try change.rows.insert(fresh)
    if fresh.version > 0 {
      let author = try change.rows.version(item.id, item.version)?.author ?? inode.row.owner
      try change.rows.insert(
        VersionRow(
          item: fresh.id, number: 1, time: time, author: author, size: inode.row.size, cause: .save, base: nil,
          content: inode.row.content ?? .empty, isOpen: false))
    }
    return fresh
  }
}
