import Foundation
import Glibc
import SheafModel
import SheafReplica
import SheafStore
package import SheafWire

/// What is in a share of somebody elsewhere, on this machine.
///
/// Rules:
/// 1. What left the share, or may not be seen any more, leaves this machine with its history.
/// 2. What an account of this library saved there, and the hub does not have, becomes its own first: a document in its
///    `Documents`, `NAME (not saved).EXT`.
/// 3. What leaves is noted before it is destroyed, and what comes back begins anew. So nothing that is missing here
///    looks as if somebody had deleted it, whatever comes in between.
/// 4. If the hub may have gone back to an earlier state, what an account of this library saved there since counts as
///    not sent: it is sent again, or kept by rule 2. What others saved, they send again themselves.
///
/// Rooms: `AccountTable`, `EditingSessions`, `InodeTable`, `Numbers`, `ShareBook`.
extension Library {
  /// Notes changes in a share.
  ///
  /// - Parameters:
  ///   - states: Items that changed, came in, or were deleted.
  ///   - left: Documents and symbolic links that left, or were purged.
  ///   - token: After which the share's feed goes on.
  package func noteShared(
    _ states: [ItemState], left: [WireID], token: String, of share: FollowedShare
  ) throws {
    try noteDeparted(left, from: share)
    try takeAway(Set(left), from: share)
    try note(FeedPage(items: states, token: token, hasMore: false), of: share.account)
  }

  /// Notes items that were deleted from a share.
  package func noteDeleted(_ states: [ItemState], in share: FollowedShare) throws {
    for start in stride(from: 0, to: states.count, by: Self.notedAtOnce) {
      try locked {
        try makeChange(.replica) { change in
          for state in states[start...].prefix(Self.notedAtOnce) { try note(state, of: share.account, change) }
        }
      }
    }
  }

  /// Notes everything that is in a share: all else left, but for what is noted as deleted.
  ///
  /// - Parameters:
  ///   - gone: What its feed told last that left, which may be in the trash here.
  ///   - token: After which the share's feed goes on.
  package func noteAllShared(
    _ states: [ItemState], left gone: Set<WireID>, token: String, of share: FollowedShare
  ) throws {
    let told = Dictionary(states.map { ($0.item, $0) }) { $1 }
    let stays = try sendAgain(told, to: share)
    // Of some the hub told, and they could not be shown yet.
    let known = try locked {
      try read { try $0.replicaBases(of: share.account) + $0.replicaNews(of: share.account, limit: .max).map(\.item) }
    }
    let left = try Set(known.compactMap { WireID(bytes: $0) }).union(gone)
      .filter { id in
        guard told[id] == nil, !stays.contains(id) else { return false }
        return try gone.contains(id) || !isNotedAsDeleted(id, of: share.account)
      }.sorted()
    try noteDeparted(left, from: share)
    try takeAway(Set(left), from: share)
    try noteAnew(states, of: share)
    try locked {
      var replica = try connected(share.account)
      (replica.token, replica.rereads) = (token, false)
      replica.read = max(replica.read, states.map(\.number).max() ?? 0)
      let read = replica
      try makeChange(.replica) { change in
        try change.rows.update(read)
        try change.rows.noteAllReplicaChanges(of: share.account)
      }
    }
  }

  private func isNotedAsDeleted(_ id: WireID, of account: Int64) throws -> Bool {
    let row = try locked { try read { try $0.replicaItem(of: account, id.bytes) } }
    guard let text = row.news else { return false }
    let news: ItemState = try replicaTexts.decode(text)
    return news.isDeleted && !news.isPurged
  }

  /// Items that one transaction notes.
  private static let notedAtOnce = 32

  /// Notes that items left, of which nothing may be here any more (rule 3).
  private func noteDeparted(_ left: [WireID], from share: FollowedShare) throws {
    try noteAnew(locked { try left.compactMap { try departed($0, of: share.account) } }, of: share)
  }

  /// Notes states, also under numbers that are not higher: what left a share and came back begins anew.
  private func noteAnew(_ states: [ItemState], of share: FollowedShare) throws {
    for start in stride(from: 0, to: states.count, by: Self.notedAtOnce) {
      try locked {
        try makeChange(.replica) { change in
          for state in states[start...].prefix(Self.notedAtOnce) { try noteAnew(state, of: share.account, change) }
        }
      }
    }
  }

  private func noteAnew(_ state: ItemState, of account: Int64, _ change: Change) throws {
    guard state.item != .root else { return }
    var row = try change.rows.replicaItem(of: account, state.item.bytes)
    try noteHistory(of: state, after: row, account, change)
    try forgetDestroyed(&row, state.item, of: account, change)
    let mark: ReplicaMark? = try row.mark.map { try replicaTexts.decode($0) }
    let base: ItemState? = try row.base.map { try replicaTexts.decode($0) }
    if base == state {
      // What is to be shown again stays news.
      if mark != .undone { (row.news, row.newsNumber) = (nil, nil) }
    } else {
      (row.news, row.newsNumber) = (try replicaTexts.encode(state), state.number)
    }
    try change.rows.setReplicaItem(of: account, state.item.bytes, row)
  }

  /// Forgets what the hub had of an item that left a share and is destroyed here, where it comes back before that was
  /// planned: nobody here deleted it.
  func forgetDestroyed(_ row: inout ReplicaItemRow, _ id: WireID, of account: Int64, _ change: Change) throws {
    guard let text = row.news, case let news = try replicaTexts.decode(text) as ItemState, news.isPurged,
      try replicaInode(id, of: account) == nil
    else { return }
    if let base: ItemState = try row.base.map({ try replicaTexts.decode($0) }) {
      for place in base.places {
        try change.rows.removeReplicaName(of: account, place.parent.bytes, place.name, id.bytes)
      }
    }
    (row.base, row.news, row.newsNumber) = (nil, nil, nil)
  }

  /// The state of an item that is in the share no more; nil where this library does not know it.
  private func departed(_ id: WireID, of account: Int64) throws -> ItemState? {
    let row = try read { try $0.replicaItem(of: account, id.bytes) }
    guard var state: ItemState = try (row.news ?? row.base).map({ try replicaTexts.decode($0) }) else { return nil }
    (state.isDeleted, state.isPurged, state.version) = (true, true, nil)
    state.number = max(state.number, row.newsNumber ?? 0)
    return state
  }

  // MARK: - A hub that went back

  /// Has what was saved here in a share, and is after what a hub tells that may have gone back, sent again (rule 4).
  ///
  /// - Parameter told: Everything that is in the share.
  /// - Returns: the documents of which nothing is told, and that are to be made anew in folders that are there.
  private func sendAgain(_ told: [WireID: ItemState], to share: FollowedShare) throws -> Set<WireID> {
    guard try locked({ try connected(share.account).token }) == nil else { return [] }
    var stays: Set<WireID> = []
    let known = try locked { try read { try $0.replicaBases(of: share.account) } }.compactMap { WireID(bytes: $0) }
    for start in stride(from: 0, to: known.count, by: Self.notedAtOnce) {
      try locked {
        try settleSessions()
        try makeChange(.replica) { change in
          for id in known[start...].prefix(Self.notedAtOnce) {
            if try sendAgain(id, told, share.account, change), told[id] == nil { stays.insert(id) }
          }
        }
      }
    }
    return stays
  }

  /// - Returns: whether something of the document is to be sent to where it is.
  private func sendAgain(
    _ id: WireID, _ told: [WireID: ItemState], _ account: Int64, _ change: Change
  ) throws -> Bool {
    let replica = try connected(account)
    guard let inode = try replicaInode(id, of: account), inode.isRegular, inode.row.nlink > 0,
      let item = try item(of: inode)
    else { return false }
    let versions = try replicaVersions(of: item, replica, withSent: true)
    var chain = versions.unsent[...]
    if let current = told[id]?.version?.id {
      // What the hub has and this library does not know is newer than all that is here.
      guard let place = chain.lastIndex(where: { $0.id == current }) else { return false }
      chain = chain[(place + 1)...]
    }
    var isAny = false
    for version in chain {
      guard let number = versions.numbers[version.id], let row = try change.rows.version(item.id, number),
        let author = accountTable[row.author], author.elsewhere == nil, row.content.absentLength == 0
      else { continue }
      try change.rows.set(ReplicaVersionRow(number: number, uuid: version.id.bytes, isSent: false), of: item.id)
      isAny = true
    }
    guard isAny else { return false }
    let base = told[id]
    // Without its folder it cannot be made anew: then it is kept as what could not be saved.
    var tree = try ReplicaTree(self, replica)
    let hasFolder = try tree.local(id)?.places.allSatisfy { told[$0.parent] != nil } ?? false
    guard base != nil || hasFolder else { return false }
    try record(.base(id, base), account, change)
    try record(.news(id, nil), account, change)
    return true
  }

  /// Whether the hub told that an item is a folder.
  package func isSharedFolder(_ item: WireID, in share: FollowedShare) throws -> Bool {
    try locked {
      let row = try read { try $0.replicaItem(of: share.account, item.bytes) }
      let state: ItemState? = try (row.news ?? row.base).map { try replicaTexts.decode($0) }
      return state?.kind == .folder
    }
  }

  /// Gives up what an account wanted of items and the hub does not let it do: they are as the hub has them again. Of what
  /// the hub does not have, a folder goes with all that is in it. Where the process ends before that, the hub is asked
  /// again (``settle(_:of:)``).
  package func giveUp(_ items: Set<WireID>, in share: FollowedShare) throws {
    for item in items.sorted() { try rescue(item, in: share, isGivenUp: true) }
    try takeAway(items.filter { try !tellAgain($0, in: share) }, from: share)
  }

  /// Has what the hub has of an item shown again; returns whether it has anything.
  private func tellAgain(_ item: WireID, in share: FollowedShare) throws -> Bool {
    try locked { () -> Bool in
      var row = try read { try $0.replicaItem(of: share.account, item.bytes) }
      guard let base: ItemState = try row.base.map({ try replicaTexts.decode($0) }) else { return false }
      row.mark = try replicaTexts.encode(ReplicaMark.undone)
      if row.news == nil { (row.news, row.newsNumber) = (row.base, base.number) }
      let undone = row
      try makeChange(.replica) { try $0.rows.setReplicaItem(of: share.account, item.bytes, undone) }
      return true
    }
  }

  // MARK: - What was saved here

  /// Takes items away from this machine with all that is in them: first they are out of sight, then what was saved in
  /// them and is not at the hub is kept, and then they go. What the hub has elsewhere is shown there again.
  private func takeAway(_ left: Set<WireID>, from share: FollowedShare) throws {
    guard !left.isEmpty else { return }
    let hidden = try hide(left, in: share)
    // Where something went wrong, all of it is seen until it is tried again.
    defer { locked { shares.endLeaving(hidden) } }
    try keepUnsent(of: left, in: share)
    try destroyHere(left, in: share)
  }

  /// Takes items out of the share at once: nobody sees them or what is in them from now on, by open files either. What
  /// programs are writing there is kept, as for everybody who loses a right.
  ///
  /// - Returns: their inodes, which are out of the share until ``ShareBook/endLeaving(_:)``.
  func hide(_ items: Set<WireID>, in share: FollowedShare) throws -> [Int64] {
    let account = share.account
    collectMapped(ofOwner: account) { try self.isIn(items, $0) }
    let ids = items.sorted()
    var hidden: [Int64] = []
    for start in stride(from: 0, to: ids.count, by: Self.notedAtOnce) {
      try locked {
        let inodes = try ids[start...].prefix(Self.notedAtOnce).compactMap { try replicaInode($0, of: account) }
        let members = try inodes.flatMap { try self.share(of: $0)?.members ?? [] }
        shares.beginLeaving(inodes.map(\.ino))
        hidden += inodes.map(\.ino)
        for member in Set(members.map(\.account)) { tellAccess(of: member) }
      }
    }
    return hidden
  }

  /// Makes documents of what was saved in items that are out of sight, and is not at the hub.
  func keepUnsent(of items: Set<WireID>, in share: FollowedShare) throws {
    try locked {
      // Of what could not be kept at once, since the disk was full, there may be no version yet.
      for inode in Array(sessions.inodes) where inode.row.owner == share.account {
        guard try isIn(items, inode) else { continue }
        for draft in inode.drafts where draft.isChanged && accountTable[draft.account]?.elsewhere == nil {
          try rescueDenied(inode, draft)
        }
      }
    }
    try forEachUnsent(of: share.account) { id in
      let isMeant = try locked { try replicaInode(id, of: share.account).map { try isIn(items, $0) } ?? false }
      if isMeant { try rescue(id, in: share) }
    }
  }

  /// Destroys items on this machine that are out of sight, with all that is in them.
  func destroyHere(_ items: Set<WireID>, in share: FollowedShare) throws {
    var moved: [WireID] = []
    for id in items {
      var folders = [id]
      var seen: Set<WireID> = []
      while let folder = folders.popLast() {
        guard seen.insert(folder).inserted else { continue }
        let children = try locked { () -> [WireID] in
          try ReplicaTree(self, connected(share.account)).localChildren(of: folder)
        }
        for child in children where !items.contains(child) {
          if try locked({ try read { try $0.replicaItem(of: share.account, child.bytes) }.base != nil }) {
            moved.append(child)
          }
          folders.append(child)
        }
      }
    }
    // Noted before it goes, so that it is not missing here (rule 3).
    for id in moved { _ = try tellAgain(id, in: share) }
    // With a folder goes what is in it.
    let tops = try items.filter { id in
      try locked {
        try replicaInode(id, of: share.account).map { try !isBelow(items, $0.row.parent) } ?? true
      }
    }
    try destroyHere(tops.sorted() + items.subtracting(tops).sorted(), share.account)
  }

  /// Whether an inode is that of one of some items, or in one of them.
  private func isIn(_ items: Set<WireID>, _ inode: Inode) throws -> Bool {
    try isOne(of: items, inode) || isBelow(items, inode.row.parent)
  }

  private func isBelow(_ items: Set<WireID>, _ folder: Int64) throws -> Bool {
    var isBelow = false
    try ascend(from: folder) { folder in
      isBelow = try isOne(of: items, folder)
      return !isBelow
    }
    return isBelow
  }

  private func isOne(of items: Set<WireID>, _ inode: Inode) throws -> Bool {
    try item(of: inode).map { items.contains(WireID($0.uuid)) } ?? false
  }

  /// Calls `body` with each document that has something that the hub does not have.
  private func forEachUnsent(of account: Int64, _ body: (WireID) throws -> Void) throws {
    completeSaves()
    try locked { try settleSessions() }
    var after: [UInt8] = []
    while let some = try locked({
      try read { [after] in try $0.unsentDocuments(of: account, after: after, limit: Self.notedAtOnce) }
    }).nonEmpty {
      for bytes in some { if let id = WireID(bytes: bytes) { try body(id) } }
      after = some[some.count - 1]
    }
  }

  /// Makes a document of what was saved here of one and the hub does not have, in the `Documents` of who saved it last.
  ///
  /// - Parameter isGivenUp: Whether all of the document is to be kept of which the hub has nothing: it was recovered here,
  ///   and the hub does not take it any more.
  private func rescue(_ id: WireID, in share: FollowedShare, isGivenUp: Bool = false) throws {
    completeSaves()
    try locked {
      let replica = try connected(share.account)
      guard let inode = try replicaInode(id, of: share.account), inode.isRegular, let item = try item(of: inode) else {
        return
      }
      for draft in inode.drafts where draft.session != nil || draft.isChanged {
        // What a program is writing is kept as it is now.
        if accountTable[draft.account]?.elsewhere == nil { try rescueDenied(inode, draft) }
      }
      try settleSessions()
      let versions = try replicaVersions(of: item, replica)
      var rows = try versions.unsent.compactMap { version in
        try versions.numbers[version.id].flatMap { number in try read { try $0.version(item.id, number) } }
      }
      let isKnown = try read { try $0.replicaItem(of: share.account, id.bytes) }.base != nil
      if rows.isEmpty, !isKnown, item.version == 0, let content = inode.row.content, content.length > 0 {
        // Neither has it a version, nor would the hub hear of it.
        rows = [
          VersionRow(
            item: item.id, number: 1, time: inode.row.mtime, author: item.creator, size: content.length, cause: .save,
            base: nil, content: content, isOpen: false)
        ]
      }
      if rows.isEmpty, !isKnown, isGivenUp, inode.row.nlink > 0, item.version > 0 {
        rows = try [read { try $0.version(item.id, item.version) }].compactMap { $0 }
          .filter { $0.content.absentLength == 0 }
      }
      guard let last = rows.last else { return }
      let author = accountTable[last.author].flatMap { $0.elsewhere == nil ? $0.id : nil } ?? replica.reader
      guard let account = author.flatMap({ accountTable[$0] }) else { return }
      let kept = rows
      shareChunks(of: inode)
      try makeChange(.save) { change in
        try insertKept(kept, of: inode, for: account, change)
        for version in versions.unsent {
          guard let number = versions.numbers[version.id] else { continue }
          try change.rows.set(ReplicaVersionRow(number: number, uuid: version.id.bytes, isSent: true), of: item.id)
        }
      }
    }
  }

  // MARK: - The end

  /// Ends a share of which nobody here is a part any more: it is out of sight at once, and then leaves this machine. What
  /// was saved here, and is not at the hub, becomes its author's own (rule 2).
  package func endShare(_ share: FollowedShare) throws { try endShare(share, isWiped: false) }

  /// - Parameter isWiped: Whether nothing of it is to be left: neither what the hub does not have, nor events.
  func endShare(_ share: FollowedShare, isWiped: Bool) throws {
    collectMapped(ofOwner: share.account) { _ in true }
    try locked {
      let active = shares.all.filter {
        $0.row.isActive && $0.row.uuid == UUID(bytes: share.share.bytes) && $0.row.url != nil
      }
      for each in active {
        guard let inode = try sharedInode(each.row.item), inode.row.owner == share.account else { continue }
        try makeChange(.share) { try stop(each, inode, actor: each.owner, $0) }
      }
    }
    if !isWiped { try forEachUnsent(of: share.account) { try rescue($0, in: share) } }
    try destroyAll(of: share.account)
    // Before its replica goes: another process that goes on finds it by that.
    if isWiped { try forgetEvents(of: share.account) }
    try locked { try makeChange(.replica, freesSpace: true) { try $0.rows.deleteReplica(share.account) } }
  }

  /// Destroys all that an account has on this machine, with its history, and all that was deleted. What it gets
  /// meanwhile may stay.
  func destroyAll(of account: Int64) throws {
    completeSaves()
    let found = locked { accountTable[account].map { (key: $0.key, documents: $0.documents, last: numbers.ino) } }
    guard let found else { return }
    var (isAny, hash) = (false, Int64(0))
    while true {
      let rows = try locked { try read { try $0.listing(found.documents, after: hash, limit: Self.notedAtOnce) } }
      for row in rows where row.inode.ino <= found.last {
        if try destroyHere(account, { try inodes[row.inode.ino] ?? inode(row.inode.ino) }) { isAny = true }
      }
      guard rows.count >= Self.notedAtOnce, let last = rows.last else { break }
      hash = last.hash
    }
    if isAny { try freePurged() }
    _ = try emptyTrash(found.key, below: nil, TrashSelection()) { _ in }
  }

  /// Destroys items on this machine alone, with all that is in them.
  private func destroyHere(_ ids: [WireID], _ account: Int64) throws {
    var isAny = false
    for id in ids where try destroyHere(id, account) { isAny = true }
    if isAny { try freePurged() }
  }

  /// - Returns: whether it was here.
  private func destroyHere(_ id: WireID, _ account: Int64) throws -> Bool {
    try destroyHere(account) { try replicaInode(id, of: account) }
  }

  /// - Parameter find: What is to be destroyed; nil where it is not here.
  /// - Returns: whether it was here.
  private func destroyHere(_ account: Int64, _ find: () throws -> Inode?) throws -> Bool {
    let names = try locked { () -> [(folder: Int64, name: [UInt8])] in
      guard let inode = try find(), inode.row.nlink > 0, !inode.isFolder else { return [] }
      return try read { try $0.names(of: inode.ino) }
    }
    for place in names.dropFirst() { try unlink(place.folder, place.name, .replica(account)) }
    var (purge, isHere): (Purge?, Bool) = (nil, false)
    repeat {
      try locked {
        try settleSessions()
        try settleEvents(all: true)
        if !isHere {
          guard let inode = try find(), let top = try purgeTarget(inode) else { return }
          purge = Purge(path: try ItemPath(account: key(account), "Documents"), top: top, caller: .replica(account))
          isHere = true
        }
        if let begun = purge { purge = try eraseSome(begun) }
      }
    } while purge != nil
    return isHere
  }

  private func purgeTarget(_ inode: Inode) throws -> Purge.Target? {
    if inode.row.nlink > 0 { return try entry(inode.row.parent, inode.row.name).map { .entry($0) } }
    return try read { try $0.deleted(inode.ino) }.map { .deleted($0) }
  }
}

extension Array {
  fileprivate var nonEmpty: Self? { isEmpty ? nil : self }
}

extension Verdict {
  /// Whether what somebody wanted in another's share is not possible there: the right is lost, or the item left.
  package var isGivenUp: Bool {
    switch reason {
    case .denied, .border, .unknown, .noParent: true
    default: false
    }
  }
}
