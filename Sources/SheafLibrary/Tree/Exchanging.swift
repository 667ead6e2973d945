import Foundation
import SheafModel
import SheafStore

/// renameat2(2) with RENAME_EXCHANGE (rule 10 of ``Identity``).
///
/// Rooms: `EventLog`, `Identity`.
extension Library {
  /// The inode of the document, where one of two exchanged files saves the other one (rule 10 of ``Identity``).
  private func saved(_ inode: Inode, _ source: EntryRow, _ other: Inode, _ target: EntryRow, _ caller: Caller)
    -> Inode?
  {
    guard inode.isRegular, other.isRegular, !source.isExtra, !target.isExtra, inode.row.nlink == 1,
      other.row.nlink == 1
    else { return nil }
    let time = clock()
    let process = caller.process
    for isPassing in [
      { (file: Inode, _: [UInt8]) in self.identity.isYoung(file.ino, at: time) },
      { (file, _) in self.identity.isOwn(file.ino, of: process, at: time) },
      { (_, name) in FileRole.looksPassing(name) },
    ] {
      let (left, right) = (isPassing(inode, source.name), isPassing(other, target.name))
      if left != right { return left ? other : inode }
      // Neither is young: ids go with the entries.
      if !identity.isYoung(inode.ino, at: time) { return nil }
    }
    let (left, right) = (
      FileRole.isNamedAfter(source.name, target.name), FileRole.isNamedAfter(target.name, source.name)
    )
    return left == right ? nil : left ? other : inode
  }

  /// - Parameter settled: The last events of what is below source and target that were looked at just before.
  func exchange(
    _ source: EntryRow, _ inode: Inode, _ folder: Inode, _ target: EntryRow, _ other: Inode, _ newFolder: Inode,
    _ settled: (source: Int64, target: Int64), _ caller: Caller
  ) throws {
    let time = clock()
    noteStanding(inode, source.name, time)
    noteStanding(other, target.name, time)
    let document = saved(inode, source, other, target, caller)
    let swapsContents = document != nil
    if swapsContents {
      for file in [inode, other] { try requireContents(file.row.content) }
      try endSessionBeforeReplacement(inode)
      try endSessionBeforeReplacement(other)
    }
    try settleEvents(below: inode, after: settled.source, caller, time)
    try settleEvents(below: other, after: settled.target, caller, time)
    try makeChange(.rename, by: caller, at: time) { change in
      var row = inode.row
      var otherRow = other.row
      row.ctime = time
      otherRow.ctime = time
      if !source.isExtra { (row.parent, row.name) = (target.parent, target.name) }
      if !target.isExtra { (otherRow.parent, otherRow.name) = (source.parent, source.name) }
      var newSource = source
      newSource.ino = other.ino
      newSource.isExtra = target.isExtra
      var newTarget = target
      newTarget.ino = inode.ino
      newTarget.isExtra = source.isExtra
      if !swapsContents {
        try change.noteEnd(of: source, inode)
        try change.noteEnd(of: target, other)
        (newSource.since, newTarget.since) = (time, time)
      }
      try change.rows.update(newSource)
      try change.rows.update(newTarget)
      let links: Int64 = (inode.isFolder ? 1 : 0) - (other.isFolder ? 1 : 0)
      if folder === newFolder {
        try touch(folder, time, change)
      } else {
        try touch(folder, time, links: -links, change)
        try touch(newFolder, time, links: links, change)
      }
      if document === inode {
        try swapItems(&otherRow, savedBy: &row, old: inode, change)
      } else if document === other {
        try swapItems(&row, savedBy: &otherRow, old: other, change)
      } else {
        try logRename(inode, source, to: newTarget, becomesBackup: false, change)
        try logRename(other, target, to: newSource, becomesBackup: false, change)
      }
      try noteMove(of: inode, movesItem: !swapsContents, from: folder, to: newFolder, time, change)
      try noteMove(of: other, movesItem: !swapsContents, from: newFolder, to: folder, time, change)
      try markMoved(inode, from: folder, to: newFolder, change)
      try markMoved(other, from: newFolder, to: folder, change)
      try change.rows.update(row)
      try change.rows.update(otherRow)
      let (final, otherFinal) = (row, otherRow)
      change.whenRecorded { [self] in
        inode.row = final
        other.row = otherFinal
        noteMoved([inode, other])
        if swapsContents {
          (inode.item, other.item) = (nil, nil)
          (inode.xattrSpace, other.xattrSpace) = (nil, nil)
          identity.swap(inode.ino, other.ino)
          tell(.appearance(inode.ino), from: 0)
          tell(.appearance(other.ino), from: 0)
        }
        for ino in [inode.ino, other.ino] { identity.named(ino, by: caller.process) }
        tell(
          .renamed(
            NamedInode(inode, source.parent, source.name),
            to: .init(folder: .inode(target.parent), name: target.name),
            replaced: NamedInode(other, target.parent, target.name), exchanged: true),
          from: caller.door)
      }
    }
  }

  /// Leaves the items on their names while the inodes change places (rule 10 of ``Identity``).
  ///
  /// - Parameters:
  ///   - row: The young inode, which holds what is saved.
  ///   - other: The inode that was the document.
  private func swapItems(
    _ row: inout InodeRow, savedBy other: inout InodeRow, old: Inode, _ change: Change
  ) throws {
    let (caller, time) = (change.caller, change.time)
    let (passing, document) = (row.item, other.item)
    row.item = nil
    try change.rows.update(row)
    (row.item, other.item) = (document, passing)
    try change.rows.update(other)
    if !identity.isModeChosen(row.ino),
      !identity.isOwn(old.ino, of: caller.process, at: time) || identity.isModeChosen(old.ino)
    {
      row.mode = Self.inheritedMode(row.mode, from: other.mode)
    }
    // The version of each item that was current before, and the one that is now.
    var current: [Int64: (former: Int64, latter: Int64)] = [:]
    for changed in [row, other] {
      guard let id = changed.item, var item = try change.rows.item(id) else { continue }
      let former = item.version
      if id == passing, FileRole.looksPassing(changed.name) || FileRole.isNamedAfter(changed.name, row.name) {
        // The item that held the new contents is a backup now.
        try dropPending(id, change)
        item.isQuiet = true
      }
      let base =
        id == document
        ? try base(of: item, old, savedBy: caller, orReadBy: .account) : item.version == 0 ? nil : item.version
      let version = VersionRow(
        item: id, number: item.lastVersion + 1, time: time, author: caller.actor(in: changed), size: changed.size,
        cause: .replace, base: base, content: changed.content ?? .empty,
        isOpen: false)
      if item.version > 0 || version.size > 0,
        try change.rows.version(id, item.version)?.content != version.content
      {
        try change.rows.insert(version)
        item.conflict = item.version == 0 || base == item.version ? nil : item.version
        item.version = version.number
        item.lastVersion = version.number
        // The first that people hear of one that is new is what it holds then.
        let isNew = events.has(id, type: .created)
        if !item.isQuiet, id == document || !isNew {
          try logSave(version, of: item, inode: changed, by: SavingProcess(caller.process), change)
        }
      }
      try change.rows.update(item)
      current[id] = (former, item.version)
    }
    for (changed, former) in [(row, passing), (other, document)] {
      guard let former, let latter = changed.item, let seen = current[former]?.former,
        let version = current[latter]?.latter
      else { continue }
      let ino = changed.ino
      change.whenRecorded { [self] in
        carrySeen(ino, from: SeenVersion(item: former, number: seen), to: SeenVersion(item: latter, number: version))
      }
    }
    if let document, let saved = current[document]?.latter {
      change.whenRecorded { [self] in noteKnown(SeenVersion(item: document, number: saved), of: old, by: caller) }
    }
    // The document keeps its own but for those that the new file set.
    try carryXattrs(from: old, to: row.ino, change)
  }
}
