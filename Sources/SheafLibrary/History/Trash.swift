import Glibc
import SheafModel
import SheafStore

/// The contents of `.deleted/`: the items that were deleted from a folder. A deleted folder in it shows the items that
/// were deleted from that folder.
///
/// Rules:
/// 1. Each look-up checks whether the item is still in the trash, and whether the caller sees it (``isVisible``). So
///    nobody finds an item there that was recovered, purged, or closed to them meanwhile.
/// 2. Nobody can change an item there. Renaming it out recovers it, as ``recover(_:id:progress:)`` does, to the place
///    that the rename names (``recover(_:deletedFrom:to:_:_:)``).
/// 3. If a folder has an item `.deleted`, which people could make before the name was reserved for the trash, the name
///    leads to that item until somebody renames it.
extension Library {
  /// Something that `.deleted/` shows.
  package struct TrashEntry: Hashable, Sendable {
    package let name: [UInt8]
    package let attributes: Attributes
  }

  /// Where a deleted item is shown.
  package enum TrashPlace: Hashable, Sendable {
    /// In `.deleted` of a folder that is there.
    case trash(of: Int64)
    case deletedFolder(Int64)
  }

  // MARK: - Looking

  /// Whether a folder has a `.deleted` of its own (rule 3).
  package func hasOwnTrashName(_ folder: Int64) throws -> Bool {
    try locked { try entry(folder, Self.trashName) != nil }
  }

  /// The items that were deleted from a folder, which may be deleted itself, latest first.
  ///
  /// They are gathered in steps, between which the lock is free. As with readdir(3), items that come or go meanwhile
  /// may be among them.
  package func trash(of folder: Int64, _ caller: Caller) throws -> [TrashEntry] {
    try locked { try checkTrash(of: folder, caller) }
    let deleted = try deletedNames(.items, from: folder, [], caller)
    var entries: [TrashEntry] = []
    for start in stride(from: 0, to: deleted.count, by: Self.listingStep) {
      entries += try locked {
        try allow(.readHistory, inode(folder), caller)
        return try deleted[start..<min(start + Self.listingStep, deleted.count)].compactMap { row, name in
          guard try read({ try $0.deleted(row.ino) }) == row else { return nil }
          return TrashEntry(name: name, attributes: try attributes(deleted: row, caller))
        }
      }
    }
    return entries
  }

  /// The item that was deleted from a folder and is shown under a name.
  ///
  /// - Throws: `notFound`, `accessDenied`.
  package func trashEntry(of folder: Int64, _ name: [UInt8], _ caller: Caller) throws -> Attributes {
    try locked { try attributes(deleted: deletedRow(name, in: folder, caller), caller) }
  }

  /// The answer of stat(2) for a deleted item.
  ///
  /// - Throws: `notFound` once it is not among the deleted any more; `accessDenied`.
  package func attributes(deleted ino: Int64, _ caller: Caller) throws -> Attributes {
    try locked { try attributes(deleted: visibleDeletion(ino, caller), caller) }
  }

  /// The answer of stat(2) for a deleted document to a program that has it open, also once it is no longer in the
  /// trash: then it has no name there, like an open file that was removed.
  ///
  /// - Throws: `accessDenied` if the caller does not see it, or no longer.
  package func attributes(deleted ino: Int64, openAs reader: VersionReader, _ caller: Caller) throws -> Attributes {
    try locked {
      if try read({ try $0.deleted(ino) }) != nil {
        return try attributes(deleted: visibleDeletion(ino, caller), caller)
      }
      try check(reader)
      let (user, time) = (caller.user ?? Caller.User(uid: caller.uid, gid: caller.gid), clock())
      return Attributes(
        ino: ino, mode: S_IFREG | 0o444, nlink: 0, uid: user.uid, gid: user.gid, rdev: 0, size: reader.copy.size,
        blocks: (reader.copy.dataLength + 4095) / 4096 * 8, atime: time, mtime: time, ctime: time,
        isForeign: reader.access != nil)
    }
  }

  /// Where a deleted item is shown.
  ///
  /// - Throws: as ``attributes(deleted:_:)``.
  package func trashPlace(of ino: Int64, _ caller: Caller) throws -> TrashPlace {
    try locked {
      let folder = try inode(visibleDeletion(ino, caller).parent)
      return folder.row.nlink > 0 ? .trash(of: folder.ino) : .deletedFolder(folder.ino)
    }
  }

  /// Whether an account sees a deleted item, its own or one of what is shared with it.
  package func sees(deleted ino: Int64, _ account: Int64) -> Bool {
    locked { (try? visibleDeletion(ino, .api(account))) != nil }
  }

  /// The target of a deleted symbolic link.
  ///
  /// - Throws: as ``attributes(deleted:_:)`` and ``readLink(_:notesAccess:_:)``.
  package func readLink(deleted ino: Int64, _ caller: Caller) throws -> [UInt8] {
    try locked {
      _ = try visibleDeletion(ino, caller)
      return try target(of: inode(ino), caller)
    }
  }

  /// The value of an extended attribute of a deleted item.
  ///
  /// - Throws: as ``attributes(deleted:_:)`` and ``xattr(_:_:_:)``.
  package func xattr(deleted ino: Int64, _ name: [UInt8], _ caller: Caller) throws -> [UInt8] {
    try locked {
      _ = try visibleDeletion(ino, caller)
      return try xattr(of: inode(ino), name, caller)
    }
  }

  /// Names of the extended attributes of a deleted item.
  ///
  /// - Throws: as ``attributes(deleted:_:)``.
  package func xattrNames(deleted ino: Int64, listsComputed: Bool, _ caller: Caller) throws -> [[UInt8]] {
    try locked {
      _ = try visibleDeletion(ino, caller)
      return try xattrNames(of: inode(ino), listsComputed: listsComputed, caller)
    }
  }

  /// Opens a deleted document for reading. Its chunks stay for as long as somebody reads it, whatever becomes of it.
  ///
  /// - Throws: as ``attributes(deleted:_:)``; `isDirectory`, and `invalid` for a symbolic link.
  package func openDeleted(_ ino: Int64, _ caller: Caller) throws -> VersionReader {
    completeSaves(of: ino)
    return try locked {
      try settleSessions()
      _ = try visibleDeletion(ino, caller)
      let inode = try inode(ino)
      if inode.isFolder { throw SheafError(.isDirectory) }
      guard inode.isRegular, let item = try item(of: inode) else { throw SheafError(.invalid) }
      try permit(inode, caller, Permission.read)
      if inode.hasSession { shareChunks(of: inode) }
      return reader(of: inode.row.content ?? .empty, item.id, item.version, inode, caller)
    }
  }

  /// The row of a deleted item that the caller sees.
  ///
  /// - Throws: `notFound`, `accessDenied`.
  private func visibleDeletion(_ ino: Int64, _ caller: Caller) throws -> DeletedRow {
    guard let row = try read({ try $0.deleted(ino) }) else { throw SheafError(.notFound) }
    try allow(.readHistory, inode(row.parent), caller)
    guard try isVisible(row, caller) else { throw Self.denied }
    return row
  }

  /// Checks that a folder is there, or deleted and seen by the caller.
  private func checkTrash(of folder: Int64, _ caller: Caller) throws {
    let folder = try self.folder(folder)
    if folder.row.nlink == 0 { _ = try visibleDeletion(folder.ino, caller) }
  }

  /// The row of what was deleted from a folder and is shown under a name.
  ///
  /// - Throws: `notFound`, `accessDenied`.
  private func deletedRow(_ name: [UInt8], in folder: Int64, _ caller: Caller) throws -> DeletedRow {
    try checkTrash(of: folder, caller)
    try allow(.readHistory, inode(folder), caller)
    try Self.checkLength(name)
    guard let row = try deleted(.items, shownAs: name, in: folder, caller, { _ in false }) else {
      throw SheafError(.notFound)
    }
    return row
  }

  /// A deleted item as it is shown: with its stored contents, and with a link, since it is there for those who look.
  private func attributes(deleted row: DeletedRow, _ caller: Caller) throws -> Attributes {
    let inode = try inode(row.ino)
    let shown = try attributes(inode, caller)
    let (size, blocks) =
      inode.isRegular
      ? (inode.row.size, ((inode.row.content?.dataLength ?? 0) + 4095) / 4096 * 8) : (shown.size, shown.blocks)
    // A folder can be renamed out of the trash, which a kernel that checks permissions allows to whom it is writable.
    let mode = inode.isFolder ? shown.mode & ~0o7000 : shown.mode & ~0o7222
    return Attributes(
      ino: shown.ino, mode: mode, nlink: inode.isFolder ? 2 : 1, uid: shown.uid, gid: shown.gid, rdev: 0, size: size,
      blocks: blocks, atime: shown.atime, mtime: shown.mtime, ctime: shown.ctime, isForeign: shown.isForeign)
  }

  // MARK: - Recovering by rename(2)

  /// Recovers what is shown under a name in a folder's trash, to a place that the caller names.
  ///
  /// - Throws: `notFound`; `exists` where the new name is taken, or Sheaf's own; `crossDevice` (another owner's tree),
  ///   `accessDenied`, `notPermitted`, `nameTooLong`, `noSpace`.
  package func recover(
    _ name: [UInt8], deletedFrom folder: Int64, to newFolder: Int64, _ newName: [UInt8], _ caller: Caller
  ) throws {
    try settleEventsInSteps()
    let row = try locked { try deletedRow(name, in: folder, caller) }
    let recovery = caller.account.map(Caller.api) ?? caller
    _ = try recover(
      row, called: String(decoding: name, as: UTF8.self),
      to: Recovery.Destination(folder: newFolder, name: newName, mover: caller), recovery
    ) { _ in }
  }

  /// Checks that who renames a deleted item out of the trash may give it its new place.
  ///
  /// - Throws: as ``recover(_:deletedFrom:to:_:_:)``.
  func permitReturn(of row: DeletedRow, to destination: Recovery.Destination) throws {
    let caller = destination.mover
    let (inode, source, folder) = try (inode(row.ino), inode(row.parent), self.folder(destination.folder))
    try permitRemoving(inode, from: source, caller)
    if inode.isFolder, source !== folder { try permit(inode, caller, Permission.write) }
    try permitMaking(destination.name, in: folder, caller)
    try permitIgnoring(inode, from: source, inode.row.name, to: folder, destination.name, caller)
    try permitKeeping(of: inode, from: source, to: folder, caller)
  }
}
