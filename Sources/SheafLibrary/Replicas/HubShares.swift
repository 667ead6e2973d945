import Foundation
package import SheafModel
import SheafStore
package import SheafWire

/// Shares at hubs, as a library shows them.
///
/// Rules:
/// 1. The hub decides who takes part. A share and its people change here when the hub says so, and by nothing else. A
///    person who leaves by taking an entry of `Shared` away is out here at once, and the hub is told.
/// 2. What the hub said last is kept (`replica_shares`), and shown as soon as the shared item is here.
/// 3. A share whose owner is a connected account of this library is that account's own.
/// 4. A share of another hub than the account's own is that hub's: its people are known by that hub. An account of this
///    library is among them if its own hub says that it takes part, and not if the other one does.
///
/// Rooms: `AccountTable`, `ConnectedAccounts`, `Numbers`, `ShareBook`.
extension Library: SharedReplicaInterface {
  /// Notes at which hub an account is: it may have another address by now.
  package func noteHub(_ hub: String, of account: Int64) throws {
    try locked {
      var replica = try connected(account)
      guard replica.hub != hub else { return }
      replica.hub = hub
      let noted = replica
      try makeChange(.replica) { try $0.rows.update(noted) }
    }
  }

  /// Notes all that is in the account's inbox at its hub.
  ///
  /// - Parameter states: Of the shares that it takes part in, as far as they could be read.
  package func noteInbox(_ entries: [InboxEntry], _ states: [ShareState], of account: Int64) throws {
    try locked {
      _ = try connected(account)
      let former = try read { try $0.replicaShares(of: account) }
      let states = Dictionary(states.map { ($0.share, $0) }) { $1 }
      try makeChange(.replica) { change in
        for row in former where !entries.contains(where: { $0.share.bytes == row.share }) {
          try change.rows.removeReplicaShare(of: account, row.share)
        }
        for entry in entries {
          try note(entry, states[entry.share], former.first { $0.share == entry.share.bytes }, account, change)
        }
      }
    }
  }

  /// The tags of the shares of which the library knows what the hub says.
  package func noted(of account: Int64) throws -> [WireID: String] {
    try locked {
      var tags: [WireID: String] = [:]
      for row in try read({ try $0.replicaShares(of: account) }) where row.state != nil {
        let entry: InboxEntry = try ReplicaJSON.decode(row.entry)
        if let tag = entry.offer?.tag { tags[entry.share] = tag }
      }
      return tags
    }
  }

  private func note(
    _ entry: InboxEntry, _ state: ShareState?, _ former: ReplicaShareRow?, _ account: Int64, _ change: Change
  ) throws {
    let takesPart = entry.acceptance == .accepted
    try change.rows.set(
      ReplicaShareRow(
        share: entry.share.bytes, entry: try ReplicaJSON.encode(entry),
        state: takesPart ? try state.map { try ReplicaJSON.encode($0) } ?? former?.state : nil,
        isLeaving: takesPart && former?.isLeaving ?? false, time: former?.time ?? change.time), of: account)
  }

  /// A share in the inbox of a connected account.
  private struct Invited {
    let account: Int64
    let entry: InboxEntry
    let row: ReplicaShareRow
    /// The hub that has the share.
    let hub: String
  }

  /// The shares in the inboxes of this library's connected accounts.
  ///
  /// - Parameter share: The one that alone is looked for; nil for all.
  private func inboxes(of share: WireID? = nil) throws -> [Invited] {
    try read { rows in
      try rows.replicas().filter { $0.reader == nil }.flatMap { replica -> [Invited] in
        guard let hub = replica.hub else { return [] }
        let found =
          if let share { try rows.replicaShare(of: replica.account, share.bytes).map { [$0] } ?? [] } else {
            try rows.replicaShares(of: replica.account)
          }
        return try found.map { row in
          let entry: InboxEntry = try ReplicaJSON.decode(row.entry)
          return Invited(account: replica.account, entry: entry, row: row, hub: entry.hub ?? hub)
        }
      }
    }
  }

  /// The hub that has a share; nil for the account's own.
  package func hub(of share: WireID, for account: Int64) throws -> String? {
    try locked {
      try read { try $0.replicaShare(of: account, share.bytes) }
        .flatMap { (try ReplicaJSON.decode($0.entry) as InboxEntry).hub }
    }
  }

  /// Whether a URL is of a share at another hub to which the account was invited, or in which it takes part.
  package func isElsewhere(_ url: String, for account: Int64) throws -> Bool {
    try locked {
      try read { try $0.replicaShares(of: account) }.contains {
        let entry: InboxEntry = try ReplicaJSON.decode($0.entry)
        return entry.hub != nil && entry.offer?.url == url
      }
    }
  }

  /// Whether the account left a share here, of which its hub does not know yet.
  package func isLeaving(_ account: Int64) throws -> Bool {
    try locked { try read { try $0.leavesReplicaShare(account) } }
  }

  /// Whether the account left the share here, of which its hub does not know yet.
  package func isLeaving(_ share: WireID, _ account: Int64) throws -> Bool {
    try locked { try isLeaving(account, share) }
  }

  /// What is to be done about the account's shares. The accounts that stand for shares of others are made.
  package func shareDuties(of account: Int64) throws -> ShareDuties {
    try locked {
      let replica = try connected(account)
      guard let hub = replica.hub else { return ShareDuties() }
      let inboxes = try inboxes()
      let joined = inboxes.filter { $0.entry.acceptance == .accepted }
      var duties = ShareDuties()
      for row in try read({ try $0.replicas() }) where row.reader == account {
        // What is of a hub that the account was at before stays as it is.
        guard let share = WireID(bytes: row.zone), let place = row.hub,
          place == hub || inboxes.contains(where: { $0.entry.share == share && $0.hub == place }),
          !joined.contains(where: { $0.entry.share == share && $0.account == account && $0.hub == place })
        else { continue }
        if try !handOver(row, to: joined.first { $0.entry.share == share && $0.hub == place }) {
          duties.ended.append(FollowedShare(share: share, account: row.account))
        }
      }
      for invited in joined where invited.account == account {
        let (entry, hub) = (invited.entry, invited.hub)
        let owner = try AccountHandle(entry.owner)
        let followed = try read { try $0.replicas() }.first {
          $0.reader == account && $0.zone == entry.share.bytes && $0.hub == hub
        }.map { FollowedShare(share: entry.share, account: $0.account) }
        if try connectedAccount(owner, at: hub) != nil {
          if let followed { duties.ownedHere.append(followed) }
          continue
        }
        // Its documents are here with the same ids, from when its owner was connected here.
        if try isKept(owner, of: hub) {
          if let followed { duties.followed.append(followed) }
          continue
        }
        let person = try self.account(of: entry.owner, called: entry.offer?.ownerName, at: hub)
        let number = try self.account(ofShare: entry.share, by: person, at: hub)
        if let known = try read({ try $0.replica(number) }) {
          if known.reader == account { duties.followed.append(FollowedShare(share: entry.share, account: number)) }
          continue
        }
        try makeChange(.replica) { change in
          try change.rows.insert(
            ReplicaRow(
              account: number, zone: entry.share.bytes, seed: UUID.timeOrdered(change.time).bytes, reader: account,
              hub: hub))
          try change.rows.noteAllReplicaChanges(of: number)
          change.whenRecorded { [self] in connectedAccounts.insert(number) }
        }
        duties.followed.append(FollowedShare(share: entry.share, account: number))
      }
      for invited in inboxes where invited.account == account && invited.row.isLeaving {
        let entry = invited.entry
        guard entry.acceptance == .accepted else { continue }
        let share = shareItem(entry.share).flatMap { shares[$0] }
        if let share, left(account, share) != nil { duties.isLeaving = true } else { duties.left.append(entry.share) }
      }
      return duties
    }
  }

  /// Hands the shares of others that an account reads to other accounts of this library that take part in them.
  ///
  /// - Returns: those in which nobody else here takes part.
  func handOverShares(of account: Int64) throws -> [FollowedShare] {
    let joined = try inboxes().filter { $0.entry.acceptance == .accepted && $0.account != account }
    return try read { try $0.replicas() }.filter { $0.reader == account }.compactMap { row in
      guard let share = WireID(bytes: row.zone) else { return nil }
      let isHanded = try handOver(row, to: joined.first { $0.entry.share == share && $0.hub == row.hub })
      return isHanded ? nil : FollowedShare(share: share, account: row.account)
    }
  }

  /// Has another account of this library go on with a share; returns whether there is one.
  private func handOver(_ row: ReplicaRow, to other: Invited?) throws -> Bool {
    guard let other else { return false }
    var handed = row
    handed.reader = other.account
    let final = handed
    try makeChange(.replica) { try $0.rows.update(final) }
    return true
  }

  /// Whether the documents of a person are here that were kept when the person was disconnected from a hub.
  private func isKept(_ owner: AccountHandle, of hub: String) throws -> Bool {
    guard let account = accountTable.present(owner), account.elsewhere == nil else { return false }
    return try read { try $0.wasConnected(account.id, to: hub) }
  }

  /// The account that has what is shared; nil where nothing of it is here yet.
  private func holder(of entry: InboxEntry, _ account: Int64, _ hub: String) throws -> Int64? {
    let owner = try AccountHandle(entry.owner)
    if let own = try connectedAccount(owner, at: hub) { return own.id }
    return try read { try $0.replicas() }.first { $0.reader != nil && $0.zone == entry.share.bytes && $0.hub == hub }?
      .account
  }

  private func shareItem(_ share: WireID) -> Int64? {
    shares.all.first { $0.row.uuid == UUID(bytes: share.bytes) }?.row.item
  }

  // MARK: - Showing

  /// Shows what the hub said last of the account's shares, as far as the shared items are here.
  ///
  /// - Parameter suspended: Shares whose items are deleted at the hub.
  /// - Returns: how many of the others wait for their items.
  package func showShares(of account: Int64, except suspended: Set<WireID>) throws -> Int {
    guard let hub = try locked({ try connected(account).hub }) else { return 0 }
    let rows = try locked { try read { try $0.replicaShares(of: account) } }
    var waiting = 0
    var owned: Set<UUID> = []
    for row in rows where !row.isLeaving {
      let entry: InboxEntry = try ReplicaJSON.decode(row.entry)
      guard entry.acceptance == .accepted, let text = row.state else { continue }
      let state: ShareState = try ReplicaJSON.decode(text)
      if entry.offer?.role == .owner { owned.insert(UUID(bytes: entry.share.bytes)) }
      if try !locked({ try show(state, entry, account, entry.hub ?? hub) }), !suspended.contains(entry.share) {
        waiting += 1
      }
    }
    try locked {
      for share in shares.owned(by: account) where share.row.url != nil && !owned.contains(share.row.uuid) {
        guard let inode = try sharedInode(share.row.item) else { continue }
        try makeChange(.share) { try stop(share, inode, actor: account, $0) }
      }
    }
    return waiting
  }

  /// Whether shares are still to be shown. Own ones whose items the hub has no more, since they were purged, never are.
  ///
  /// - Parameter suspended: Shares whose items are deleted at the hub.
  package func showsAllShares(of account: Int64, except suspended: Set<WireID>) throws -> Bool {
    try locked {
      let replica = try connected(account)
      for row in try read({ try $0.replicaShares(of: account) }) where !row.isLeaving {
        let entry: InboxEntry = try ReplicaJSON.decode(row.entry)
        guard entry.acceptance == .accepted, let text = row.state, !suspended.contains(entry.share) else { continue }
        let state: ShareState = try ReplicaJSON.decode(text)
        let hub = entry.hub ?? replica.hub ?? ""
        guard let number = try holder(of: entry, account, hub) else {
          if try isKept(AccountHandle(entry.owner), of: hub) { continue }
          return false
        }
        if number != account, accountTable[number]?.elsewhere == nil { continue }
        if let (_, item) = try sharedItem(state.item, of: number) {
          guard shares[item.id]?.row.isActive ?? false else { return false }
        } else {
          guard number == account, !replica.rereads,
            try read({ try $0.replicaItem(of: account, state.item.bytes) }).isEmpty
              || replicaInode(state.item, of: account)?.row.nlink == 0
          else { return false }
        }
      }
      return true
    }
  }

  /// - Returns: false if the shared item is not here yet.
  private func show(_ state: ShareState, _ entry: InboxEntry, _ account: Int64, _ hub: String) throws -> Bool {
    guard let number = try holder(of: entry, account, hub) else {
      return try isKept(AccountHandle(entry.owner), of: hub)
    }
    // Its owner's replica shows it.
    if number != account, accountTable[number]?.elsewhere == nil { return true }
    guard let found = try sharedItem(state.item, of: number) else {
      // What its owner deleted comes back with its share.
      return try number == account && replicaInode(state.item, of: account)?.row.nlink == 0
    }
    let (inode, item) = found
    let uuid = UUID(bytes: state.share.bytes)
    let former = shares[item.id]
    if let former, former.row.isActive, former.row.url == nil {
      log.warning("an item is shared in this library and at its hub", metadata: ["item": "\(item.uuid.text)"])
      return true
    }
    let before = former.flatMap { $0.row.uuid == uuid ? $0 : nil }
    let (time, token) = (clock(), try ShareURL(state.url).token)
    var row =
      before?.row
      ?? ShareRow(item: item.id, uuid: uuid, token: token, title: state.title, time: time)
    if !row.isActive { (row.isActive, row.since) = (true, time) }
    row.token = token
    (row.url, row.title) = (state.url, state.title)
    (row.anyone, row.permission) = (state.anyone.local, state.permission.local)
    (row.allowsInvites, row.allowsRequests) = (state.allowInvites, state.allowRequests)
    var share = ShareBook.Entry(row: row, participants: [:])
    for participant in state.participants {
      let person =
        try own(participant.handle, in: entry, hub)
        ?? self.account(of: participant.handle, called: participant.name, at: hub)
      let old = before?.participants[person]
      let acceptance = participant.acceptance.local
      var new = ParticipantRow(
        share: item.id, account: person, role: participant.role.local, permission: participant.permission.local,
        acceptance: acceptance, since: old?.acceptance == acceptance ? old?.since ?? time : time)
      (new.name, new.joined, new.ended) = (old?.name, old?.joined, acceptance == .accepted ? nil : old?.ended)
      // They are on their way out.
      if let old, old.acceptance == .removed, try isLeaving(person, state.share) { new = old }
      share.participants[person] = new
    }
    try keepOthers(&share, before, entry, hub, at: time)
    let (end, formerEnd) = (state.expires.flatMap { Timestamp(rfc3339: $0) }, try linkEnd(of: share))
    if let before, before.row == share.row, before.participants == share.participants, end == formerEnd { return true }
    try makeChange(.share) { change in
      if end != formerEnd { try setLinkEnd(end, of: item.id, change) }
      try logNews(
        of: &share, since: before, inode, by: account, isOwn: number == account, hasOtherEnd: end != formerEnd, change)
      try update(share, change)
    }
    return true
  }

  /// The account of this library that a participant of a share at another hub is: one that has the share in its inbox.
  private func own(_ handle: String, in entry: InboxEntry, _ hub: String) throws -> Int64? {
    guard entry.hub != nil else { return nil }
    return try inboxes(of: entry.share).first {
      $0.hub == hub && accountTable[$0.account]?.handle.description == handle
    }?.account
  }

  private func isLeaving(_ account: Int64, _ share: WireID) throws -> Bool {
    try read { try $0.replicaShare(of: account, share.bytes) }?.isLeaving ?? false
  }

  /// The shared item, if it is here and has a name.
  private func sharedItem(_ id: WireID, of account: Int64) throws -> (inode: Inode, item: ItemRow)? {
    let inode: Inode?
    if id == .root {
      inode = try accountTable[account].map { try self.inode($0.documents) }
    } else {
      inode = try replicaInode(id, of: account)
    }
    guard let inode, inode.row.nlink > 0, let item = try item(of: inode) else { return nil }
    return (inode, item)
  }

  /// Those of whom the account that reads the share is not told: other accounts of this library take part by their own
  /// inboxes; all others are out.
  private func keepOthers(
    _ share: inout ShareBook.Entry, _ before: ShareBook.Entry?, _ entry: InboxEntry, _ hub: String, at time: Timestamp
  ) throws {
    for other in try inboxes(of: entry.share) where other.hub == hub {
      let account = other.account
      guard share.participants[account] == nil, other.entry.acceptance == .accepted, !other.row.isLeaving,
        let offer = other.entry.offer, offer.role != .owner
      else { continue }
      var participant = ParticipantRow(
        share: share.row.item, account: account, role: offer.role.local, permission: offer.permission.local,
        acceptance: .accepted, since: time)
      if let old = before?.participants[account] {
        (participant.name, participant.joined) = (old.name, old.joined)
        if old.acceptance == .accepted { participant.since = old.since }
      }
      share.participants[account] = participant
    }
    for (account, old) in before?.participants ?? [:] where share.participants[account] == nil && old.role != .owner {
      var gone = old
      if gone.acceptance != .removed { (gone.acceptance, gone.role, gone.since) = (.removed, .publicUser, time) }
      share.participants[account] = gone
    }
  }

  /// Logs what changed of a share, and notes the numbers with those who came and went.
  private func logNews(
    of share: inout ShareBook.Entry, since before: ShareBook.Entry?, _ inode: Inode, by account: Int64, isOwn: Bool,
    hasOtherEnd: Bool, _ change: Change
  ) throws {
    if before.map({ !$0.row.isActive }) ?? true {
      if isOwn { try logShareEvent(.shareCreated, share, inode, actor: account, change) }
    } else if before?.row != share.row || hasOtherEnd {
      try logShareEvent(.shareUpdated, share, inode, actor: share.owner, change)
    }
    for (person, var participant) in share.participants.sorted(by: { $0.key < $1.key }) where participant.role != .owner
    {
      let old = before?.participants[person]
      let (was, isIn) = (old?.acceptance == .accepted, participant.acceptance == .accepted)
      if isIn, !was || participant.joined == nil {
        // Of those who were there before this library knew the share, nobody is told.
        let isNews = before != nil || accountTable[person]?.elsewhere == nil
        participant.joined =
          isNews
          ? try logShareEvent(.memberAdded, share, inode, participant: participant, actor: person, change)
          : numbers.event
      } else if was, !isIn {
        participant.ended = try logShareEvent(
          .memberRemoved, share, inode, participant: participant, actor: share.owner, change)
      } else if before != nil, participant.acceptance != .removed,
        old?.acceptance != participant.acceptance || old?.permission != participant.permission
          || old?.role != participant.role
      {
        try logShareEvent(.shareUpdated, share, inode, participant: participant, actor: share.owner, change)
      }
      share.participants[person] = participant
    }
  }

  /// The invitations of an account that its hub tells of.
  package func invitations(of account: Int64) throws -> [ShareInvitation] {
    try locked {
      try read { try $0.replicaShares(of: account) }.compactMap { row in
        let entry: InboxEntry = try ReplicaJSON.decode(row.entry)
        guard entry.acceptance == .pending, let offer = entry.offer, let owner = try? AccountHandle(entry.owner) else {
          return nil
        }
        let warnings = [
          Lookalikes.warning(of: offer.title, called: "the title \"\(offer.title)\""),
          Lookalikes.warning(of: offer.ownerName, called: "the owner's name \"\(offer.ownerName)\""),
        ].compactMap { $0 }
        return ShareInvitation(
          title: offer.title, kind: offer.kind == .folder ? "folder" : "document", owner: owner,
          ownerName: offer.ownerName, permission: offer.permission.local, url: offer.url, since: row.time,
          warnings: warnings)
      }
    }
  }

  /// The requests of an account for access that its hub tells of.
  package func requestsAtHub(by account: Int64) throws -> [OwnRequest] {
    try locked {
      try read { try $0.replicaShares(of: account) }.compactMap { row in
        let entry: InboxEntry = try ReplicaJSON.decode(row.entry)
        guard entry.acceptance == .removed, let asked = entry.asked, let owner = try? AccountHandle(entry.owner),
          let time = Timestamp(rfc3339: asked.time)
        else { return nil }
        return OwnRequest(
          title: asked.title, kind: asked.kind == .folder ? "folder" : "document", owner: owner,
          ownerName: asked.ownerName, time: time)
      }
    }
  }

  // MARK: - What commands ask

  /// What a path is to a hub.
  ///
  /// - Throws: `notFound`.
  package func hubShare(of path: ItemPath) throws -> HubShareFacts {
    try locked {
      let account = try account(path.account)
      let inode = try resolve(path)
      if let share = try share(of: inode), share.row.url != nil, let top = try sharedInode(share.row.item),
        let item = try item(of: top)
      {
        guard let reader = try reader(of: item.owner, for: account.id) else { return .local }
        let id = accountTable[item.owner]?.documents == top.ino ? WireID.root : WireID(item.uuid)
        return .share(
          WireID(share.row.uuid), account: try handle(reader), item: id, path: try mountPath(top, for: account.id),
          isItem: top === inode)
      }
      guard inode.row.owner == account.id, try read({ try $0.replica(account.id) }) != nil,
        let item = try item(of: inode), try share(of: inode) == nil
      else { return .local }
      if inode.ino == account.documents { return .item(.root, account: account.handle, isSent: true) }
      let id = WireID(item.uuid)
      let row = try read { try $0.replicaItem(of: account.id, id.bytes) }
      let isNoted = try read { try $0.hasReplicaChange(of: account.id, id.bytes) }
      return .item(id, account: account.handle, isSent: row.base != nil && !isNoted)
    }
  }

  /// The connected account by which a hub is asked about what an account has.
  private func reader(of owner: Int64, for account: Int64) throws -> Int64? {
    guard let replica = try read({ try $0.replica(owner) }) else { return nil }
    // Everybody asks for themselves.
    if let own = try read({ try $0.replica(account) }) {
      if own.hub == replica.hub { return account }
      let invited = try read { try $0.replicaShare(of: account, replica.zone) }
      if let invited, (try ReplicaJSON.decode(invited.entry) as InboxEntry).hub == replica.hub { return account }
    }
    return replica.reader ?? owner
  }

  /// Where an account finds what a share is of; nil while it is not here.
  package func sharePath(_ share: WireID, for account: Int64) throws -> String? {
    try locked {
      guard let item = shareItem(share), let entry = shares.active(item), entry.member(account) != nil,
        let inode = try sharedInode(item), inode.row.nlink > 0
      else { return nil }
      return try mountPath(inode, for: account)
    }
  }

  /// Notes that an account leaves a share of a hub, which is to be told, or did not leave it after all.
  func noteLeaving(_ share: ShareBook.Entry, _ account: Int64, _ leaves: Bool, _ change: Change) throws {
    guard share.row.url != nil, var row = try change.rows.replicaShare(of: account, share.row.uuid.bytes) else {
      return
    }
    row.isLeaving = leaves
    try change.rows.set(row, of: account)
  }

  /// - Throws: `unavailable` for a share of a hub, which alone decides about it.
  func requireLocal(_ share: ShareBook.Entry) throws {
    guard share.row.url != nil else { return }
    if let inode = try sharedInode(share.row.item), try read({ try $0.replica(inode.row.owner) }) == nil {
      throw SheafError(
        .unavailable, subject: share.row.title,
        reason: "is shared at a hub with which this library is not connected any more",
        advice: "change it on a machine that is, or connect this one again: sheaf connect LINK")
    }
    throw SheafError(
      .unavailable, subject: share.row.title, reason: "is shared at a hub, which decides who takes part",
      advice: "mount the library, and try again: its process asks the hub")
  }
}

extension WireRole {
  package var local: Role { Role(rawValue: rawValue) ?? .publicUser }
}

extension WirePermission {
  package var local: SharePermission { self == .readWrite ? .readWrite : .readOnly }
}

extension WirePublicPermission {
  package var local: PublicPermission { PublicPermission(rawValue: rawValue) ?? .none }
}

extension WireAcceptance {
  package var local: Acceptance { Acceptance(rawValue: rawValue) ?? .removed }
}
