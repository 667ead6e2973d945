import Foundation
import SheafModel
import SheafStore

/// rename(2), with the flags of renameat2(2).
///
/// Rooms: `EventLog`, `Identity`, `LinkedPlaces`, `Numbers`, `ShareBook`.
extension Library {
  package enum RenameMode: Sendable {
    case replace, noReplace, exchange
  }

  /// Renames `name` in `parent` to `newName` in `newParent`; returns the inode of a folder that it takes the place of.
  ///
  /// - Throws: `notFound`, `exists` (with `noReplace`, and for names of Sheaf's own), `notDirectory`, `isDirectory`,
  ///   `notEmpty`, `invalid` (a folder into itself), `crossDevice` (another owner's tree), `accessDenied`, `notPermitted`.
  @discardableResult
  package func rename(
    _ parent: Int64, _ name: [UInt8], to newParent: Int64, _ newName: [UInt8], _ mode: RenameMode, _ caller: Caller
  ) throws -> Int64? {
    let isFolder = try lockedNear([parent, newParent], asksTime: parent != newParent) { () -> Bool in
      guard parent != newParent, let entry = try entry(parent, name) else { return false }
      return try mode == .exchange || inode(entry.ino).isFolder
    }
    let ways = Ways(
      up: isFolder ? try wayUp(from: newParent) : nil,
      back: isFolder && mode == .exchange ? try wayUp(from: parent) : nil)
    drainWorkingFile(of: parent, name)
    drainWorkingFile(of: newParent, newName)
    let settled = try (
      source: settleEventsInSteps { try waitingItems(below: parent, name, caller, in: &$0) },
      target: settleEventsInSteps {
        try waitingItems(below: newParent, newName, mode == .exchange ? caller : nil, in: &$0)
      }
    )
    // Reasons against the rename are found below.
    try endVersionsInSteps { (try? entering(parent, name, newParent, caller)) ?? nil }
    collectMapped(leavingWith: name, parent, newParent)
    if mode == .exchange {
      try endVersionsInSteps { (try? entering(newParent, newName, parent, caller)) ?? nil }
      collectMapped(leavingWith: newName, newParent, parent)
    }
    return try lockedNear([parent, newParent], asksTime: parent != newParent) {
      try rename(parent, name, to: newParent, newName, mode, settled: settled, ways, caller)
    }
  }

  /// What lies above the folder to which something goes, and above the one that it leaves.
  struct Ways {
    var up: WayUp?
    var back: WayUp?
  }

  /// As ``rename(_:_:to:_:_:_:)``, with the lock held.
  ///
  /// - Parameters:
  ///   - settled: The last events of what is below source and target that were looked at just before.
  ///   - ways: Looked up just before, where it is far.
  func rename(
    _ parent: Int64, _ name: [UInt8], to newParent: Int64, _ newName: [UInt8], _ mode: RenameMode,
    settled: (source: Int64, target: Int64), _ ways: Ways, _ caller: Caller
  ) throws -> Int64? {
    let folder = try self.folder(parent)
    let newFolder = try self.folder(newParent)
    try Self.checkLength(name)
    try Self.checkLength(newName)
    guard let source = try entry(parent, name) else { throw SheafError(.notFound) }
    guard !Self.isReserved(newName) else { throw SheafError(.exists) }
    let inode = try inode(source.ino)
    let target = try entry(newParent, newName)
    let replaced = try target.map { try self.inode($0.ino) }
    try permitRemoving(inode, from: folder, caller)
    if let replaced {
      if mode == .noReplace { throw SheafError(.exists) }
      try permitRemoving(replaced, from: newFolder, caller)
    } else {
      if mode == .exchange { throw SheafError(.notFound) }
      try permit(newFolder, caller, Permission.write | Permission.execute)
      guard newFolder.row.nlink > 0 else { throw SheafError(.notFound) }
    }
    guard folder.row.owner == newFolder.row.owner else { throw SheafError(.crossDevice) }
    try permitRules(newName, in: newFolder, caller)
    if mode == .exchange { try permitRules(name, in: folder, caller) }
    try permitIgnoring(inode, from: folder, name, to: newFolder, newName, caller)
    if mode == .exchange, let replaced {
      try permitIgnoring(replaced, from: newFolder, newName, to: folder, name, caller)
    }
    try checkNesting(inode, replaced, folder, newFolder, mode, ways, caller)
    if let replaced, replaced === inode { return nil }
    try permitKeeping(of: inode, from: folder, to: newFolder, caller)
    if mode == .exchange, let replaced { try permitKeeping(of: replaced, from: newFolder, to: folder, caller) }
    try checkMove(of: inode, from: folder, to: newFolder)
    if mode == .exchange, let replaced { try checkMove(of: replaced, from: newFolder, to: folder) }
    if mode == .exchange, let target, let replaced {
      try exchange(source, inode, folder, target, replaced, newFolder, settled, caller)
      return nil
    }
    try move(source, inode, folder, newName, target, replaced, newFolder, settled, caller)
    return replaced.flatMap { $0.isFolder ? $0.ino : nil }
  }

  /// The folder that enters a share by a rename; nil if none does, or may not.
  private func entering(_ parent: Int64, _ name: [UInt8], _ newParent: Int64, _ caller: Caller) throws -> Inode? {
    guard !shares.isEmpty, parent != newParent, let entry = try entry(parent, name) else { return nil }
    let (folder, newFolder, inode) = (try self.folder(parent), try self.folder(newParent), try inode(entry.ino))
    guard inode.isFolder, let share = try share(ofFolder: newParent),
      try share.row.item != self.share(ofFolder: parent)?.row.item, folder.row.owner == newFolder.row.owner
    else { return nil }
    try permitRemoving(inode, from: folder, caller)
    try permit(newFolder, caller, Permission.write | Permission.execute)
    return inode
  }

  /// Items of which events wait that are settled before the folder of a name gets another one, or goes.
  ///
  /// - Parameter caller: Whose own folders go with what is in them; nil where none do.
  private func waitingItems(
    below parent: Int64, _ name: [UInt8], _ caller: Caller?, in scan: inout SettlingScan
  ) throws -> Set<Int64> {
    guard let entry = try entry(parent, name), case let folder = try inode(entry.ino),
      caller.map({ !identity.isOwn(folder.ino, of: $0.process, at: clock()) }) ?? true
    else {
      scan.decline()
      return []
    }
    return try waitingItems(below: folder, in: &scan)
  }

  private func checkNesting(
    _ inode: Inode, _ replaced: Inode?, _ folder: Inode, _ newFolder: Inode, _ mode: RenameMode, _ ways: Ways,
    _ caller: Caller
  ) throws {
    // In its own folder nothing lies below itself.
    if inode.isFolder, folder !== newFolder {
      try checkOutside(inode, newFolder, ways.up)
      try permit(inode, caller, Permission.write)
    }
    guard let replaced else { return }
    if mode == .exchange {
      if replaced.isFolder, folder !== newFolder { try checkOutside(replaced, folder, ways.back) }
    } else if inode.isFolder {
      guard replaced.isFolder else { throw SheafError(.notDirectory) }
      guard try !read({ try $0.hasEntries(replaced.ino) }) else { throw SheafError(.notEmpty) }
    } else if replaced.isFolder {
      throw SheafError(.isDirectory)
    }
  }

  /// - Throws: `invalid` where `folder` is `inode` or lies below it.
  private func checkOutside(_ inode: Inode, _ folder: Inode, _ way: WayUp?) throws {
    if try isBelow(folder.ino, inode.ino, by: way) { throw SheafError(.invalid) }
  }

  /// - Parameter settled: The last events of what is below source and target that were looked at just before.
  private func move(
    _ source: EntryRow, _ inode: Inode, _ folder: Inode, _ newName: [UInt8], _ target: EntryRow?, _ replaced: Inode?,
    _ newFolder: Inode, _ settled: (source: Int64, target: Int64), _ caller: Caller
  ) throws {
    let time = clock()
    noteStanding(inode, source.name, time)
    if let replaced, let target { noteStanding(replaced, target.name, time) }
    let predecessor = try predecessor(of: target, replaced, inode, source, newFolder, newName, caller, time)
    if let replaced, linkedPlace(of: replaced, caller, time)?.inode === inode {
      // The document that could come back to the other name of `replaced` is the one that is renamed: it goes where it
      // is put.
      linkedPlaces.remove(replaced.ino)
    }
    var continues = false
    if let predecessor {
      continues = try settleBeforeTakeOver(inode, time)
      try endSessionBeforeReplacement(predecessor.inode)
    } else if let replaced, let target {
      try endSessionsBeforeTakingLinkedPlace(replaced, target, caller, time)
      try endSessionBeforeRemoval(replaced, target.name, caller, time)
    }
    // The event of a save that waits may have to show the new name.
    if inode.own.session?.kept != nil { try makeKeptVersion(inode) }
    try settleSession(of: inode)
    if let replaced { try settleSession(of: replaced) }
    try settleEvents(below: inode, after: settled.source, caller, time)
    // The event of its deletion comes at once, after those of its contents.
    if let replaced { try settleEvents(below: replaced, after: settled.target) }
    let firstEvent = numbers.pending + 1
    let isProved = isProved(inode, source.name)
    let isLasting = !FileRole.looksPassing(source.name) || !FileRole.looksPassing(newName)
    let becomesBackup = try becomesBackup(newFolder.ino, newName, from: source)
    try makeChange(.rename, by: caller, at: time) { change in
      var row = inode.row
      row.ctime = time
      if !source.isExtra {
        row.parent = newFolder.ino
        row.name = newName
      }
      try change.noteEnd(of: source, inode)
      var since = change.placed
      if let predecessor {
        // The document has the name as before, whatever program's dance it was.
        since = try target?.since ?? beginOfName(newFolder.ino, newName, predecessor.memory, change) ?? time
      } else if let target, let replaced {
        try change.noteEnd(of: target, replaced)
      }
      let entry = EntryRow(
        parent: newFolder.ino, hash: nameHash(newName), name: newName, ino: inode.ino, isExtra: source.isExtra,
        since: since)
      if target == nil {
        try change.rows.move(source, to: entry)
      } else {
        try change.rows.delete(source)
        try change.rows.update(entry)
      }
      // A folder that moves takes the link of its `..` along; one that is replaced takes its own away.
      let moves: Int64 = inode.isFolder && folder !== newFolder ? 1 : 0
      let falls: Int64 = inode.isFolder && replaced != nil ? 1 : 0
      if folder === newFolder {
        try touch(folder, time, links: -falls, change)
      } else {
        try touch(folder, time, links: -moves, change)
        try touch(newFolder, time, links: moves - falls, change)
      }
      if let predecessor, let item = try item(of: predecessor.inode) {
        try takeOver(
          inode, identityOf: predecessor.inode, item, predecessor.memory, &row, source: source, continues: continues,
          change)
      } else if let replaced, let target {
        if replaced.isFolder {
          // At once, since the event of the item that takes its place comes at once, too.
          try deleteFolder(replaced, target, opens: false, change)
        } else if try isKeptInHistory(replaced, newName, of: inode, source.name, change) {
          try erase(replaced, change)
        } else {
          try removeName(target, of: replaced, change)
        }
        try logRename(inode, source, to: entry, becomesBackup: becomesBackup, change)
      } else {
        try logRename(inode, source, to: entry, becomesBackup: becomesBackup, change)
      }
      try noteMove(of: inode, movesItem: predecessor == nil, from: folder, to: newFolder, time, change)
      try markMoved(inode, from: folder, to: newFolder, change)
      if predecessor == nil {
        try change.rows.setPlace(row.parent, row.name, time: time, ino: row.ino)
      } else {
        try change.rows.update(row)
      }
      let final = row
      change.whenRecorded { [self] in
        inode.row = final
        noteMoved([inode])
        identity.named(final.ino, by: caller.process, isProved: isProved, isLasting: isLasting)
        identity.settle(newFolder.ino, newName)
        linkedPlaces.remove(final.ino)
        tell(
          .renamed(
            NamedInode(inode, source.parent, source.name), to: .init(folder: .inode(newFolder.ino), name: newName),
            replaced: replaced.map { NamedInode($0, newFolder.ino, newName) }, exchanged: false), from: caller.door)
      }
    }
    if predecessor == nil {
      rememberMoved(
        inode, source, newName, becomesBackup: becomesBackup, caller, time, firstEvent: firstEvent)
    }
  }

  /// The document whose identity `inode` takes over with its new name, if any (rules 3, 5, 8 and 9 of ``Identity``).
  private func predecessor(
    of target: EntryRow?, _ replaced: Inode?, _ inode: Inode, _ source: EntryRow, _ newFolder: Inode,
    _ newName: [UInt8], _ caller: Caller, _ time: Timestamp
  ) throws -> (inode: Inode, memory: Identity.Remembered?)? {
    guard inode.isRegular, inode.row.nlink == 1 else { return nil }
    if let target, let replaced {
      guard replaced.isRegular, !target.isExtra, let item = try item(of: replaced), !item.isQuiet,
        FileRole(newName) != .scratch, !FileRole.isBackup(newName, of: source.name)
      else { return nil }
      if isOwnAlone(replaced, caller, time), !isMissed(replaced, newName, time) { return nil }
      return (replaced, nil)
    }
    guard let former = try formerDocument(newFolder.ino, newName, caller, time), former.inode !== inode
    else { return nil }
    let isQuiet = try item(of: inode)?.isQuiet ?? false
    let hasBackup = former.inode.row.nlink > 0 && FileRole.isBackup(former.inode.row.name, of: newName)
    guard isQuiet || hasBackup || identity.isYoung(inode.ino, at: time) else { return nil }
    return (former.inode, former.memory)
  }

  /// Whether `replaced`, the backup `copy` of the document `inode`, holds what the document's latest versions hold too.
  private func isKeptInHistory(
    _ replaced: Inode, _ copy: [UInt8], of inode: Inode, _ name: [UInt8], _ change: Change
  ) throws -> Bool {
    guard replaced.isRegular, replaced.row.nlink == 1, FileRole.isBackup(copy, of: name),
      let backup = try item(of: replaced), backup.isQuiet, backup.lastVersion <= Self.versionsLookedAt,
      let document = try item(of: inode), !document.isQuiet
    else { return false }
    let latest = max(0, document.lastVersion - Self.versionsLookedAt)
    let kept = try stride(from: document.lastVersion, to: latest, by: -1).compactMap {
      try change.rows.version(document.id, $0)
    }
    return try change.rows.versions(backup.id).allSatisfy { version in
      // The same bytes may be stored in another form by now.
      version.size == 0
        || kept.contains {
          $0.size == version.size && (try? Content.areSame($0.content, version.content, from: self)) ?? false
        }
    }
  }

  /// Versions of a document, and of its backup, that are looked at to tell whether one holds the other's.
  private static let versionsLookedAt: Int64 = 8

  /// Whether a name is that of a backup of a file beside it, which is not `source`.
  private func becomesBackup(_ parent: Int64, _ name: [UInt8], from source: EntryRow) throws -> Bool {
    guard case .backup = FileRole(name) else { return false }
    return try FileRole(name).isQuiet { original in
      try original != source.name && entry(parent, original) != nil
    }
  }

  /// Whether a file has no events under a name (rule 13 of ``Identity``).
  func isQuietName(_ name: [UInt8], in parent: Int64, _ change: Change) throws -> Bool {
    try FileRole(name).isQuiet { try change.rows.entry(parent, hash: nameHash($0), name: $0) != nil }
  }

  /// Logs that an item has another place.
  ///
  /// - Parameter becomesBackup: whether its new name is that of a backup of a file beside it.
  func logRename(
    _ inode: Inode, _ source: EntryRow, to entry: EntryRow, becomesBackup: Bool, _ change: Change
  ) throws {
    let (caller, time) = (change.caller, change.time)
    guard var item = try item(of: inode), !source.isExtra else { return }
    let becomesIgnored = try isIgnored(entry.parent, entry.name, isFolder: inode.isFolder)
    if item.isQuiet {
      if try becomesIgnored || isQuietName(entry.name, in: entry.parent, change) { return }
      // Renamed to a name of its own, it proves to be a document.
      try makeKnown(entry.parent, change)
      item.isQuiet = false
      try insertFirstVersion(of: &item, inode, change)
      try change.rows.update(item)
      let proven = item
      change.whenRecorded { inode.item = proven }
      try logEvent(
        .created, item, ino: inode.ino, try eventData(item, parent: entry.parent, name: entry.name),
        actor: caller.actor(in: inode.row), thread: caller.thread, opens: true, change)
      return
    }
    if becomesIgnored, events.has(item.id, type: .created), shares[item.id] == nil, item.lastVersion <= 1,
      inode.isFolder || identity.isMaker(caller.process, of: inode.ino)
    {
      return try becomePlain(inode, item, change)
    }
    try makeKnown(entry.parent, change)
    if let former = try formerDocument(entry.parent, entry.name, caller, time), former.inode === inode,
      let event = former.memory.event,
      try dropPending(item.id, types: [.renamed, .moved], since: event, change)
    {
      // Back where it was: nothing happened.
      return
    }
    var data = try eventData(item, parent: entry.parent, name: entry.name)
    if let waiting = making(
      of: item, inode, source.name, entry.name, becomesBackup: becomesBackup, caller, time)
    {
      // Nobody knew a file that is still being made by its first name (rule 12 of ``Identity``).
      for event in waiting {
        guard var told = event.data else { continue }
        (told.item, told.share) = (data.item, data.share)
        try rewrite(event, told, change)
      }
      return
    }
    try setPrevious(&data, item, parent: source.parent, name: source.name)
    try logEvent(
      source.parent == entry.parent ? .renamed : .moved, item, ino: inode.ino, data, actor: caller.actor(in: inode.row),
      thread: caller.thread, opens: inode.isRegular && caller.thread != 0, change)
  }

  /// The waiting events of an item of whose making a rename is part; nil where the rename is an action of its own.
  private func making(
    of item: ItemRow, _ inode: Inode, _ name: [UInt8], _ newName: [UInt8], becomesBackup: Bool, _ caller: Caller,
    _ time: Timestamp
  ) -> [EventLog.Pending]? {
    let waiting = events.of(item.id)
    guard waiting.first?.row.type == EventType.created.rawValue,
      !waiting.contains(where: { [EventType.renamed, .moved].map(\.rawValue).contains($0.row.type) })
    else { return nil }
    // Nobody would be told that it was made under such a name.
    if inode.isRegular, [.temporary, .scratch].contains(FileRole(name)) { return waiting }
    guard identity.isYoung(inode.ino, at: time) else { return nil }
    let isOwn = identity.isOwn(inode.ino, of: caller.process, at: time)
    guard inode.isRegular else { return isOwn ? waiting : nil }
    if !isProved(inode, name) { return waiting }
    // A program makes a backup under any name, and then gives it the one that says what it is.
    if isOwn, becomesBackup { return waiting }
    // Under the same name elsewhere, a program put in place what it had made; another one moved it.
    return FileRole.isNamedAfter(name, newName) && (isOwn || name != newName) ? waiting : nil
  }

  /// Remembers the name that a document lost (rules 5 and 6 of ``Identity``).
  ///
  /// - Parameter becomesBackup: whether its new name is that of a backup of a file beside it.
  private func rememberMoved(
    _ inode: Inode, _ source: EntryRow, _ newName: [UInt8], becomesBackup: Bool, _ caller: Caller, _ time: Timestamp,
    firstEvent: Int64
  ) {
    guard inode.isRegular, let item = inode.row.item, !source.isExtra else { return }
    let isTemporary = [.scratch, .temporary].contains(FileRole(source.name))
    let isNamedAfter = FileRole.isNamedAfter(newName, source.name)
    if identity.isOwn(inode.ino, of: caller.process, at: time) {
      let stepsAside = isNamedAfter || FileRole.looksPassing(newName) && !FileRole.looksPassing(source.name)
      guard !isTemporary, isSaved(inode), stepsAside, !becomesBackup else { return }
    } else if isTemporary, !isNamedAfter {
      // It has the name that it was made for now; the program makes the temporary one again for another save.
      return
    }
    identity.remember(
      item, ino: inode.ino, from: source.parent, source.name, process: caller.process, mode: inode.row.mode,
      event: firstEvent, since: source.since, at: time)
  }
}
