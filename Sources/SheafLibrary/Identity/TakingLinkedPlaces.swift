import SheafModel
import SheafStore

/// Files that programs link to a document's name before they remove the first one (rule 5 of ``Identity``).
extension Library {
  /// The remembered document to whose name an own file was linked.
  func linkedPlace(of inode: Inode, _ caller: Caller, _ time: Timestamp) -> Lost? {
    guard let place = linkedPlaces[inode.ino], identity.isOwn(inode.ino, of: caller.process, at: time),
      let lost = try? lostDocument(place.parent, place.name, caller, time), lost.inode !== inode
    else { return nil }
    return lost
  }

  /// Has `inode`, whose first name goes now, be the remembered document whose name it was linked to; false where there
  /// is none.
  func takeLinkedPlace(
    _ inode: Inode, _ row: inout InodeRow, from source: EntryRow, _ change: Change
  ) throws -> Bool {
    let (caller, time) = (change.caller, change.time)
    guard let place = linkedPlaces[inode.ino], place.parent == row.parent, place.name == row.name,
      let lost = linkedPlace(of: inode, caller, time)
    else { return false }
    try takeOver(
      inode, identityOf: lost.inode, lost.item, lost.memory, &row, source: source, continues: false, change)
    change.whenRecorded { [self] in
      linkedPlaces.remove(inode.ino)
      identity.settle(place.parent, place.name)
    }
    return true
  }
}
