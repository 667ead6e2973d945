import Foundation
package import SheafModel
import SheafStore

/// Folders as they were at a time, computed from the present and past names of items.
///
/// Rules:
/// 1. An item was where an entry or a past name says. If nobody noted when an entry began, the time when the item was
///    made counts.
/// 2. A document has the contents of its latest version by then. A document that had no version yet was empty. A
///    document whose versions of then are not kept is not shown.
/// 3. Fifos, sockets and devices are no items, and have no past.
/// 4. A participant sees no item at a time before it entered the share, and no item that is in another share, or in
///    none, by now.
/// 5. The cost depends only on what is looked at: a name costs a few rows, and a listing goes through the names of one
///    folder in steps, between which the lock is free.
/// 6. A folder was in one place at a time. Where a damaged library has it in several, the one of its entry, or of the
///    first name that it lost later, counts. So an endless way from name to name comes back to the folder in which it
///    began, which is not shown in itself.
extension Library {
  /// Something that was in a folder.
  package struct PastEntry: Hashable, Sendable {
    package let name: [UInt8]
    package let item: Int64
    package let kind: Kind
    /// Whether another account than that which asks owns it.
    package let isForeign: Bool

    package enum Kind: Hashable, Sendable {
      case folder(ino: Int64)
      case symbolicLink(ino: Int64)
      /// A document; the number of its version, 0 before the first.
      case document(item: Int64, version: Int64)
    }
  }

  /// Names that are looked at with everybody waiting.
  static let pastStep = 64

  /// The moment of the folder in `.versions/` called `name`, `@2026-11-17T18-00-00Z`: the end of that second. Nil for
  /// any other name.
  package static func pastTime(_ name: [UInt8]) -> Timestamp? {
    guard name.first == UInt8(ascii: "@"),
      let time = Timestamp(nameText: String(decoding: name.dropFirst(), as: UTF8.self))
    else { return nil }
    return Timestamp(seconds: time.seconds, nanoseconds: 999_999_999)
  }

  /// The answer of stat(2) for a folder as it was: nobody can write to it.
  ///
  /// - Throws: `notFound` for a time at which it did not exist, in the future, or which the caller does not see;
  ///   `accessDenied`.
  package func pastFolder(_ ino: Int64, at time: Timestamp, _ caller: Caller) throws -> Attributes {
    try lockedNear([ino], asksTime: true) {
      let folder = try pastFolderInode(ino, at: time, caller)
      return try attributes(folder, caller).readOnly(links: 2, at: time)
    }
  }

  /// The item that had `name` in a folder.
  ///
  /// - Parameter top: The folder that is there, in whose past the caller goes from name to name.
  /// - Throws: `notFound`, `accessDenied`.
  package func pastEntry(
    _ parent: Int64, _ name: [UInt8], below top: Int64, at time: Timestamp, _ caller: Caller
  ) throws -> PastEntry {
    completeSaves()
    let places = try locked { () -> [Int64] in
      guard try isForeign(inode(parent), caller), let item = try pastItem(parent, name, at: time) else { return [] }
      return [parent, try read { try $0.inode(item: item)?.parent } ?? parent]
    }
    return try lockedNear(places, asksTime: true) {
      try settleSessions()
      let folder = try pastFolderInode(parent, at: time, caller)
      guard let found = try pastItem(parent, name, at: time),
        let entry = try pastEntry(name, found, in: folder, below: top, at: time, caller)
      else { throw SheafError(.notFound) }
      return entry
    }
  }

  /// The items that were in a folder, in no order.
  ///
  /// An item that loses or gets its name meanwhile is among them once, since lost names are read last.
  ///
  /// - Parameter top: As of ``pastEntry(_:_:below:at:_:)``.
  package func pastEntries(
    of ino: Int64, below top: Int64, at time: Timestamp, _ caller: Caller
  ) throws -> [PastEntry] {
    completeSaves()
    var entries: [PastEntry] = []
    var names: Set<[UInt8]> = []
    var cookie: Int64? = 0
    while let start = cookie {
      cookie = try locked {
        if start == 0 { try settleSessions() }
        return try addPresent(of: ino, below: top, after: start, at: time, caller, to: &entries, &names)
      }
    }
    var last: PastNameRow?
    repeat {
      let start = last
      let places = try locked { try lostPlaces(of: ino, after: start, caller) }
      last = try lockedNear(places, asksTime: true) {
        try addPast(of: ino, below: top, after: start, at: time, caller, to: &entries, &names)
      }
    } while last != nil
    return entries
  }

  /// A symbolic link that was in a folder, with its target: both are what they were for as long as it exists.
  ///
  /// - Throws: `notFound`, `accessDenied` as ``readLink(_:notesAccess:_:)``.
  package func pastLink(_ ino: Int64, _ caller: Caller) throws -> (attributes: Attributes, target: [UInt8]) {
    try locked {
      let inode = try inode(ino)
      try allow(.readHistory, inode, caller)
      try checkTarget(of: inode, caller)
      guard let target = inode.row.target else { throw SheafError(.invalid) }
      let attributes = try attributes(inode, caller)
      return (attributes.readOnly(links: 1, at: attributes.ctime), target)
    }
  }

  // MARK: - Steps

  func addPresent(
    of ino: Int64, below top: Int64, after cookie: Int64, at time: Timestamp, _ caller: Caller,
    to entries: inout [PastEntry], _ names: inout Set<[UInt8]>
  ) throws -> Int64? {
    let folder = try pastFolderInode(ino, at: time, caller)
    let page = try read { try $0.entries(ino, after: cookie, limit: Self.pastStep) }
    for entry in page where entry.since <= time {
      guard let item = try inode(entry.ino).row.item else { continue }
      let found = try pastEntry(entry.name, item, in: folder, below: top, at: time, caller)
      if let found, names.insert(entry.name).inserted { entries.append(found) }
    }
    return page.last?.hash
  }

  /// The folders in which the items lie by now that lost some names in a folder, for a participant of its share: it
  /// depends on where an item is what they see of it.
  private func lostPlaces(of ino: Int64, after last: PastNameRow?, _ caller: Caller) throws -> [Int64] {
    guard try isForeign(inode(ino), caller) else { return [] }
    return try read { transaction in
      let rows = try transaction.pastNames(in: ino, after: last, limit: Self.pastStep)
      return Array(Set(try rows.compactMap { try transaction.inode(item: $0.item)?.parent }))
    }
  }

  func addPast(
    of ino: Int64, below top: Int64, after last: PastNameRow?, at time: Timestamp, _ caller: Caller,
    to entries: inout [PastEntry], _ names: inout Set<[UInt8]>
  ) throws -> PastNameRow? {
    let folder = try pastFolderInode(ino, at: time, caller)
    let page = try read { try $0.pastNames(in: ino, after: last, limit: Self.pastStep) }
    for row in page where row.holds(at: time) && !names.contains(row.name) {
      guard let found = try pastEntry(row.name, row.item, in: folder, below: top, at: time, caller) else { continue }
      names.insert(row.name)
      entries.append(found)
    }
    return page.last
  }

  /// The item that had a name in a folder.
  func pastItem(_ parent: Int64, _ name: [UInt8], at time: Timestamp) throws -> Int64? {
    if let entry = try entry(parent, name), entry.since <= time, let item = try inode(entry.ino).row.item {
      // One that was made later had the name by no record.
      if let row = try read({ try $0.item(item) }), row.created <= time { return item }
    }
    return try read { try $0.pastNames(in: parent, name: name, after: time, limit: Self.pastStep) }
      .first { $0.holds(at: time) }?.item
  }

  // MARK: - What was

  /// The inode of a folder that existed at a time.
  private func pastFolderInode(_ ino: Int64, at time: Timestamp, _ caller: Caller) throws -> Inode {
    let folder = try folder(ino)
    guard time.seconds <= clock().seconds, try sees(folder, at: time, caller) else { throw SheafError(.notFound) }
    return folder
  }

  /// Whether something existed at a time, and `caller` sees it as it was (rule 4).
  private func sees(_ inode: Inode, at time: Timestamp, _ caller: Caller) throws -> Bool {
    guard let item = try item(of: inode), item.created <= time || isConnectedRoot(inode) else { return false }
    guard isForeign(inode, caller) else { return true }
    try allow(.readHistory, inode, caller)
    guard let share = try share(of: inode), try entryTime(of: inode, in: share) <= time else { return false }
    guard inode.row.nlink == 0, let deleted = try read({ try $0.deleted(inode.ino) }) else { return true }
    return try isVisible(deleted, caller)
  }

  /// The past state of an item that had a name in `folder`, which the caller sees; nil for an item that they do not
  /// see.
  private func pastEntry(
    _ name: [UInt8], _ id: Int64, in folder: Inode, below top: Int64, at time: Timestamp, _ caller: Caller
  ) throws -> PastEntry? {
    guard let row = try read({ try $0.inode(item: id) }) else { return nil }
    let inode = try inode(row.ino)
    do {
      guard try sees(inode, at: time, caller) else { return nil }
    } catch let error as SheafError where error.kind == .accessDenied {
      return nil
    }
    guard let item = try item(of: inode) else { return nil }
    let kind: PastEntry.Kind
    switch item.kind {
    case .folder:
      guard try wasPlaced(inode, id, folder.ino, name, at: time), inode.ino != top else { return nil }
      kind = .folder(ino: inode.ino)
    case .symbolicLink: kind = .symbolicLink(ino: inode.ino)
    case .document:
      // Plain files and editors' temporary ones have no past.
      guard !item.isQuiet || item.lastVersion > 0 else { return nil }
      guard let number = try versionNumber(of: item, at: time),
        try !isForeign(inode, caller) || number >= firstVisibleVersion(of: id, inode, caller)
      else { return nil }
      kind = .document(item: id, version: number)
    }
    return PastEntry(name: name, item: id, kind: kind, isForeign: isForeign(inode, caller))
  }

  /// Whether the one place where a folder was at a time is `name` in `parent` (rule 6).
  private func wasPlaced(
    _ inode: Inode, _ item: Int64, _ parent: Int64, _ name: [UInt8], at time: Timestamp
  ) throws -> Bool {
    if let entry = try entry(inode.row.parent, inode.row.name), entry.ino == inode.ino, entry.since <= time {
      return inode.row.parent == parent && inode.row.name == name
    }
    let lost = try read { try $0.pastNames(of: item, firstAfter: time, limit: Self.pastStep) }
    return lost.first { $0.holds(at: time) }.map { $0.parent == parent && $0.name == name } ?? false
  }

  /// The number of a document's version that was current at a time, 0 before the first; nil where it is not kept
  /// (rule 2).
  ///
  /// Later versions have later times, so it is searched for by halves: there may be very many.
  func versionNumber(of item: ItemRow, at time: Timestamp) throws -> Int64? {
    try read { transaction in
      var (low, high) = (Int64(0), item.lastVersion)
      var found: Int64 = 0
      while low < high {
        let middle = high - (high - low) / 2
        guard let version = try transaction.versionTime(item.id, upTo: middle), version.number > low else {
          low = middle
          continue
        }
        if version.time <= time {
          (low, found) = (middle, version.number)
        } else {
          high = version.number - 1
        }
      }
      if found > 0 { return found }
      return try transaction.firstVersion(item.id).map { $0 == 1 } ?? (item.lastVersion == 0) ? 0 : nil
    }
  }
}

extension Attributes {
  /// As nobody can write to it any more, with the times that it can have had at `time`.
  fileprivate func readOnly(links: Int64, at time: Timestamp) -> Attributes {
    Attributes(
      ino: ino, mode: mode & ~0o222, nlink: links, uid: uid, gid: gid, rdev: rdev, size: size, blocks: blocks,
      atime: min(atime, time), mtime: min(mtime, time), ctime: min(ctime, time), isForeign: isForeign)
  }
}
