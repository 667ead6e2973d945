import SheafModel
import SheafStore

/// Files that programs link to a document's name before they remove the first one (rule 5 of ``Identity``).
///
/// Rooms: `Identity`, `LinkedPlaces`.
extension Library {
  /// The remembered document to whose name an own file was linked.
  func linkedPlace(of inode: Inode, _ caller: Caller, _ time: Timestamp) -> FormerDocument? {
    guard let place = linkedPlaces[inode.ino], identity.isOwn(inode.ino, of: caller.process, at: time),
      let former = try? formerDocument(place.parent, place.name, caller, time), former.inode !== inode
    else { return nil }
    return former
  }

  /// Has what was written to a file become a version before its first name goes, and what was written to the document
  /// whose place it takes then.
  func endSessionsBeforeTakingLinkedPlace(
    _ inode: Inode, _ entry: EntryRow, _ caller: Caller, _ time: Timestamp
  ) throws {
    guard !entry.isExtra, inode.row.nlink == 2, let former = linkedPlace(of: inode, caller, time) else { return }
    if inode.hasSession { try endSession(inode) }
    try endSessionBeforeReplacement(former.inode)
  }

  /// Gives `inode`, whose first name goes now, the identity of the remembered document to whose name it was linked;
  /// false where there is none.
  func takeLinkedPlace(
    _ inode: Inode, _ row: inout InodeRow, from source: EntryRow, _ change: Change
  ) throws -> Bool {
    let (caller, time) = (change.caller, change.time)
    guard let place = linkedPlaces[inode.ino], place.parent == row.parent, place.name == row.name,
      let former = linkedPlace(of: inode, caller, time)
    else { return false }
    try takeOver(
      inode, identityOf: former.inode, former.item, former.memory, &row, source: source, continues: false, change)
    change.whenRecorded { [self] in
      linkedPlaces.remove(inode.ino)
      identity.settle(place.parent, place.name)
    }
    return true
  }
}
