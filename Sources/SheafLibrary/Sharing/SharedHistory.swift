import SheafModel
import SheafStore

/// How far back participants see: the version that was current when an item entered its share, and later ones.
///
/// Rules:
/// 1. The entry is a time, and a version's time is that of its last renewal. So before a document enters a share, its
///    contents become a version, and its open versions end: no version that was current then is renewed later, and none
///    has overwritten contents. If the clock was put back, the entry still comes after everything before
///    (``LatestTime``).
/// 2. Thinning leaves the version that was current then, and the next one, for as long as the share goes on.
/// 3. The latest version by that time counts as the one that was current only if the one after it exists, or it is the
///    last one. Otherwise versions in between were purged, or thinned by a program without rule 2, and it may be older.
/// 4. The entry time of an item never falls while it stays in a share. `items.entered` is set on the item that was
///    moved in, and counts for everything below it, so that entering costs the same however much that is. An item that
///    gets another folder in the share, by whatever way, takes along the time that counted for it until then
///    (``carryEntry(of:to:_:)``).
///
/// Rooms: `AccountTable`, `EditingSessions`, `ShareBook`.
extension Library {
  /// Since when `inode` has been in `share`: no participant sees what was before.
  func entryTime(of inode: Inode, in share: ShareBook.Entry) throws -> Timestamp {
    if inode.isFolder { return try max(share.row.since, entryTime(ofFolder: inode.ino, in: share.row.item)) }
    let own = try max(share.row.since, item(of: inode)?.entered ?? share.row.since)
    if inode.row.item == share.row.item { return own }
    return try max(own, entryTime(ofFolder: inode.row.parent, in: share.row.item))
  }

  /// When the latest of a folder and those above it, up to the shared item, entered the share.
  private func entryTime(ofFolder folder: Int64, in share: Int64) throws -> Timestamp {
    var latest = Timestamp(nanoseconds: .min)
    var passed: [(ino: Int64, entered: Timestamp)] = []
    try ascend(from: folder) { folder in
      if let known = shares.entryTime(ofFolder: folder.ino) {
        latest = known
        return false
      }
      passed.append((folder.ino, try item(of: folder)?.entered ?? latest))
      return folder.row.item != share
    }
    let step = Self.remembered(of: passed.count)
    for (height, part) in passed.enumerated().reversed() {
      latest = max(latest, part.entered)
      if height % step == 0 { shares.note(latest, ofFolder: part.ino) }
    }
    return latest
  }

  /// Stamps `inode`, before its row changes, with its entry time, where less would count for
  /// it in `folder` (rule 4).
  func carryEntry(of inode: Inode, to folder: Int64, _ change: Change) throws {
    guard let share = try share(ofFolder: folder), try self.share(of: inode)?.row.item == share.row.item else { return }
    let time = try entryTime(of: inode, in: share)
    if try time > entryTime(of: self.inode(folder), in: share) { try stampEntry(of: inode, time, change) }
  }

  /// Notes that an item is seen from `time` on, if not from a later time on already.
  func stampEntry(of inode: Inode, _ time: Timestamp, _ change: Change) throws {
    // This change may have changed the item before.
    guard let id = inode.row.item, var item = try change.rows.item(id), item.entered.map({ $0 < time }) ?? true else {
      return
    }
    item.entered = time
    try change.rows.update(item)
    let final = item
    change.whenRecorded { [self] in
      inode.item = final
      if inode.isFolder { shares.forgetEntryTimes() }
    }
  }

  /// Whether a folder of a connected account is in a share of which its hub knows nothing, since it began before the
  /// account was connected. The hub cannot tell what was in it when, so all that comes from there enters as it comes.
  func isSharedHereAlone(_ folder: Int64) throws -> Bool {
    guard !shares.isEmpty, let share = try share(ofFolder: folder) else { return false }
    return share.row.isActive && share.row.url == nil && share.participants.count > 1
  }

  /// Whether `caller` sees that something was deleted: participants what was deleted since its folder entered the
  /// share.
  func isVisible(_ deleted: DeletedRow, _ caller: Caller) throws -> Bool {
    try visibleDeletions(from: deleted.parent, caller).map { deleted.time >= $0 } ?? true
  }

  /// Since when `caller` sees what is deleted from a folder; nil for ever.
  func visibleDeletions(from folder: Int64, _ caller: Caller) throws -> Timestamp? {
    let inode = try inode(folder)
    guard isForeign(inode, caller) else { return nil }
    guard let share = try share(ofFolder: folder), let account = caller.account, share.member(account) != nil
    else { return Timestamp(nanoseconds: .max) }
    // Of a share at somebody else's hub only what its members may see is here.
    if accountTable[inode.row.owner]?.elsewhere != nil { return nil }
    return try entryTime(of: inode, in: share)
  }

  /// The number of the first version that `caller` sees of a document.
  func firstVisibleVersion(of item: Int64, _ inode: Inode, _ caller: Caller) throws -> Int64 {
    guard isForeign(inode, caller), let share = try share(of: inode) else { return 0 }
    // Of a share at somebody else's hub only what its members may see is here, from before this library heard of it, too.
    if accountTable[inode.row.owner]?.elsewhere != nil { return 0 }
    let time = try entryTime(of: inode, in: share)
    guard let number = try read({ try $0.lastVersion(item, notAfter: time) }) else { return 0 }
    if let row = try self.item(of: inode), number == row.version || number == row.lastVersion { return number }
    return try read { try $0.version(item, number + 1) } == nil ? number + 1 : number
  }

  /// The version that a document's current one was not based on, if `caller` sees it.
  func conflict(of item: ItemRow, _ inode: Inode, _ caller: Caller) throws -> Int64? {
    guard let conflict = item.conflict, try conflict >= firstVisibleVersion(of: item.id, inode, caller) else {
      return nil
    }
    return conflict
  }

  /// The numbers of the versions of a document that thinning leaves, since they tell how far back participants see
  /// (rule 2).
  func entryVersions(of item: Int64) throws -> Set<Int64> {
    guard !shares.isEmpty, let row = try read({ try $0.inode(item: item) }) else { return [] }
    let inode = try inode(row.ino)
    guard let share = try shares.active(item) ?? share(of: inode) else { return [] }
    let time = try entryTime(of: inode, in: share)
    return try read { transaction in
      guard let number = try transaction.lastVersion(item, notAfter: time) else { return [] }
      return [number, number + 1]
    }
  }

  /// Documents whose versions are ended with the lock held, besides those that were written to just now.
  static let endingStep = 8

  /// As ``endVersions(below:)``, some documents at a time with the lock free in between, before what they are in enters
  /// a share: few are left to be ended then.
  ///
  /// - Parameter top: Looks for it with the lock held; nil where nothing enters.
  func endVersionsInSteps(below top: () throws -> Inode?) throws {
    guard !locked({ sessions.isEmpty }) else { return }
    var left = try locked { try top().map { try entering(with: $0).map(\.ino) } ?? [] }[...]
    while left.count > Self.endingStep {
      try locked {
        guard let top = try top() else { return }
        let some = Set(left.prefix(Self.endingStep))
        try endVersions(of: entering(with: top, among: sessions.inodes.filter { some.contains($0.ino) }))
      }
      left = left.dropFirst(Self.endingStep)
    }
  }

  /// Ends the open versions of what is about to enter a share: `top` and what is below it (rule 1).
  func endVersions(below top: Inode) throws { try endVersions(of: entering(with: top)) }

  /// The documents with a session that enter a share with `top`.
  private func entering(with top: Inode) throws -> [Inode] { try entering(with: top, among: sessions.inodes) }

  private func entering(with top: Inode, among inodes: some Sequence<Inode>) throws -> [Inode] {
    // Whether the folders on the way are in it, as far as known.
    var known: [Int64: Bool] = [top.ino: true]
    return try inodes.filter { inode in
      guard inode.hasSession else { return false }
      if inode === top { return true }
      guard top.isFolder else { return false }
      var passed: [Int64] = []
      var isBelow = false
      try ascend(from: inode.row.parent) { folder in
        if let found = known[folder.ino] {
          isBelow = found
          return false
        }
        passed.append(folder.ino)
        return true
      }
      for ino in passed { known[ino] = isBelow }
      return isBelow
    }
  }

  private func endVersions(of entering: [Inode]) throws {
    for inode in entering { try makeVersionsBeforeEntry(inode) }
    let open = entering.filter { $0.drafts.contains { $0.session?.number != nil } }
    guard !open.isEmpty else { return }
    try makeChange(.endSession, freesSpace: true) { change in
      for inode in open { for draft in inode.drafts { try endVersion(of: draft, inode, change) } }
    }
    // A session that only waited for somebody to go on has nothing more to wait for.
    for inode in open {
      for draft in inode.drafts where draft.writerCount == 0 && draft.session?.dirtySince == nil {
        try endSession(inode, draft)
      }
    }
  }

  /// Makes versions of unsaved contents of a document that is about to enter a share: saves that wait in the working
  /// file, the owner's writes, and the writes of others whose version is the current one (rule 1). Other writes of
  /// others are no part of it yet, and a document without a version has none that anybody could see.
  private func makeVersionsBeforeEntry(_ inode: Inode) throws {
    try makeKeptVersion(inode)
    let isMade = try item(of: inode).map { $0.version > 0 } ?? false
    for draft in inode.drafts where draft.session?.number != nil || isMade && draft === inode.own {
      try makeVersion(inode, draft, cause: .autosave)
    }
  }

  /// Makes versions of what is written to documents that lost their names, and may come back to a folder that is shared
  /// by now.
  func makeVersionsBeforeReturn() throws {
    if shares.isEmpty { return }
    for inode in Array(sessions.inodes) where inode.row.nlink == 0 { try makeVersionsBeforeEntry(inode) }
  }
}
