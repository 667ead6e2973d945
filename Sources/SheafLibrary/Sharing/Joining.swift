import Foundation
package import SheafModel
import SheafStore

/// Share URLs: what they offer, joining by them, one-time links, and asking for access.
///
/// Rooms: `ShareBook`.
extension Library {
  /// Seconds for which somebody whose request for access was turned down does not ask again.
  private static let declinedSeconds: Int64 = 86_400

  /// How an account may join by a URL.
  private enum Way {
    /// It takes part already.
    case member
    /// By its invitation, the public permission or a one-time link.
    case join(ParticipantRow)
    /// By asking.
    case ask
  }

  /// The offer of a share URL to an account.
  ///
  /// - Throws: `notFound`, in the same words for a link that does not exist and for one that is of no use to the
  ///   account; `accessDenied` for an account that may ask again later.
  package func inspect(_ url: String, as handle: AccountHandle) throws -> ShareOffer {
    try locked {
      let account = try account(handle)
      let (share, way, link) = try offer(url, account.id)
      guard let inode = try sharedInode(share.row.item) else { throw Self.noLink }
      let there = share.participants[account.id]
      var permission = share.row.permission
      if case .join(let joining) = way { permission = joining.permission }
      if case .member = way, let there { permission = there.permission }
      var asks = false
      if case .ask = way { asks = true }
      return ShareOffer(
        title: share.row.title, owner: try self.handle(share.owner), ownerName: try name(share.owner),
        kind: inode.isFolder ? "folder" : "document", permission: permission,
        acceptance: there?.acceptance == .removed ? nil : there?.acceptance,
        path: try there?.acceptance == .accepted ? mountPath(inode, for: account.id) : nil, asksFirst: asks,
        expires: try link?.expires ?? linkEnd(of: share), warnings: try warnings(of: share))
    }
  }

  /// Joins a share by its URL, or asks for access where the share lets strangers ask.
  ///
  /// - Throws: as ``inspect(_:as:)``; `tooLarge` where the share has as many participants as it can have, or the
  ///   account takes part in as many shares as it can.
  package func accept(_ url: String, as handle: AccountHandle) throws -> AcceptResult {
    // Events from before are settled before anybody joins.
    try settleEventsInSteps { scan in
      let (share, way, _) = try offer(url, account(handle).id)
      guard case .join = way else {
        scan.decline()
        return []
      }
      return try waitingItems(in: share.row.item, &scan)
    }
    return try locked {
      let account = try account(handle)
      var (share, way, link) = try offer(url, account.id)
      guard let inode = try sharedInode(share.row.item) else { throw Self.noLink }
      switch way {
      case .member: break
      case .ask:
        let known = try read { try $0.accessRequests(share.row.item) }.filter { !$0.isBlocked }
        if !known.contains(where: { $0.account == account.id }) {
          guard known.count < Self.participantLimit else { throw Self.noLink }
          let time = clock()
          // Whoever took it back within a day asks as of then, and nobody is told again.
          let former = try read { try $0.withdrawn(share.row.item, account.id) }.flatMap { former in
            (0..<Self.declinedSeconds).contains(time.seconds - former.seconds) ? former : nil
          }
          let request = AccessRequestRow(
            share: share.row.item, account: account.id, time: former ?? time, isBlocked: false)
          try makeChange(.share) { change in
            try change.rows.save(request)
            if former != nil { return }
            try logShareEvent(
              .accessRequested, share, inode, participant: asking(account.id, share), actor: account.id, change)
          }
        }
        return AcceptResult(path: nil, title: nil, owner: nil, permission: nil, requested: true)
      case .join(let joining):
        try makeChange(.share) { change in
          if let link { try change.rows.deleteOneTimeLink(link.token) }
          try join(joining, &share, inode, actor: account.id, change)
        }
      }
      return AcceptResult(
        path: try mountPath(inode, for: account.id), title: share.row.title, owner: try self.handle(share.owner),
        permission: share.participants[account.id]?.permission, requested: false, warnings: try warnings(of: share))
    }
  }

  /// Declines an invitation, or takes a request for access back.
  ///
  /// - Throws: `notFound` for a link by which the account is not invited and does not ask; `invalid` for one of a share
  ///   in which it takes part.
  package func decline(_ url: String, as handle: AccountHandle) throws -> DeclinedLink {
    try locked {
      let account = try account(handle).id
      let url = try ShareURL(url)
      guard try isOwn(url.place) else { throw Self.otherLibrary }
      guard var share = shares.active(url.token), share.row.url == nil, let inode = try sharedInode(share.row.item)
      else { throw Self.noLink }
      switch share.participants[account]?.acceptance {
      case .accepted where share.participants[account]?.role == .owner:
        let path = try mountPath(inode, for: account)
        throw SheafError(
          .invalid, subject: path.printable, reason: "is shared by you",
          advice: "to stop sharing it: sheaf unshare \(path.shellWord)")
      case .accepted: throw DeclinedLink.takesPart(at: try mountPath(inode, for: account))
      case .pending:
        guard var invited = share.participants[account] else { throw Self.noLink }
        try makeChange(.share) { change in
          // A stranger from here on.
          invited.role = .publicUser
          invited.since = change.time
          // The event tells that they never took part.
          try logShareEvent(.memberRemoved, share, inode, participant: invited, actor: account, change)
          invited.acceptance = .removed
          share.participants[account] = invited
          try update(share, change)
        }
        return DeclinedLink(declined: .invitation, title: share.row.title)
      case .removed, nil:
        let request = try read { try $0.accessRequests(share.row.item) }
          .first { $0.account == account && !$0.isBlocked }
        guard let request else { throw Self.noLink }
        try makeChange(.share) {
          try $0.rows.withdrawAccessRequest(
            request, forgetting: Timestamp(seconds: clock().seconds - Self.declinedSeconds))
        }
        return DeclinedLink(declined: .request, title: nil)
      }
    }
  }

  /// Turns those down who still ask for access when a share ends.
  func turnDown(_ share: ShareBook.Entry, _ inode: Inode, actor: Int64, _ change: Change) throws {
    for request in try change.rows.accessRequests(share.row.item) where !request.isBlocked {
      try tellDeclined(request.account, share, inode, actor: actor, change)
    }
  }

  /// A person who asks for access, as the participant that they would be.
  private func asking(_ account: Int64, _ share: ShareBook.Entry) -> ParticipantRow {
    ParticipantRow(
      share: share.row.item, account: account, role: .privateUser, permission: share.row.permission,
      acceptance: .pending, since: clock())
  }

  /// Adds a participant.
  private func join(
    _ joining: ParticipantRow, _ share: inout ShareBook.Entry, _ inode: Inode, actor: Int64,
    _ change: Change
  ) throws {
    var joining = joining
    let others = share.participants.values.count { $0.acceptance != .removed && $0.account != joining.account }
    guard others < Self.participantLimit else {
      throw SheafError(
        .tooLarge, subject: share.row.title, reason: "has \(Self.participantLimit) participants, which is the most",
        advice: "ask its owner")
    }
    guard shares.countJoined(by: joining.account) < Self.shareLimit else {
      throw SheafError(
        .tooLarge, subject: "\(try handle(joining.account))",
        reason: "takes part in \(Self.shareLimit) shares, which is the most",
        advice: "leave one first with: sheaf leave")
    }
    joining.acceptance = .accepted
    joining.since = change.time
    joining.ended = nil
    joining.joined = try logShareEvent(
      .memberAdded, share, inode, participant: joining, actor: actor, change)
    share.participants[joining.account] = joining
    try update(share, change)
  }

  /// The share of a URL, and how an account may join it.
  private func offer(
    _ url: String, _ account: Int64
  ) throws -> (share: ShareBook.Entry, way: Way, link: OneTimeLinkRow?) {
    let url = try ShareURL(url)
    guard try isOwn(url.place) else { throw Self.otherLibrary }
    let token = url.token
    let time = clock()
    let link = try shares.active(token) == nil ? read { try $0.oneTimeLink(token) } : nil
    if let link, link.expires <= time { throw Self.noLink }
    guard let share = shares.active(token) ?? link.flatMap({ shares.active($0.share) }), share.row.url == nil,
      link.map({ Self.counts($0, in: share) }) ?? true, let inode = try sharedInode(share.row.item), inode.row.nlink > 0
    else { throw Self.noLink }
    let there = share.participants[account]
    switch there?.acceptance {
    case .accepted: return (share, .member, nil)
    case .pending:
      if let there { return (share, .join(there), nil) }
    case .removed, nil: break
    }
    if try isBlocked(account, in: share) { throw Self.noLink }
    if link == nil, let end = try linkEnd(of: share), end <= time { throw Self.hasEnded(at: end) }
    // A person who was removed needs a new invitation; a person does not who left, or whose share ended.
    let isStranger = there == nil || there?.role == .publicUser
    if isStranger, let permission = link?.permission ?? share.row.anyone.permission {
      var joining = ParticipantRow(
        share: share.row.item, account: account, role: link == nil ? .publicUser : .privateUser, permission: permission,
        acceptance: .accepted, since: time)
      joining.name = there?.name
      return (share, .join(joining), link)
    }
    guard share.row.allowsRequests, link == nil else { throw Self.noLink }
    if let declined = try read({ try $0.declined(share.row.item, account) }),
      (0..<Self.declinedSeconds).contains(time.seconds - declined.seconds)
    {
      throw Self.declined
    }
    return (share, .ask, nil)
  }

  /// Whether someone was blocked: no link lets them in, and they cannot ask, until the owner or an administrator
  /// invites or approves them.
  func isBlocked(_ account: Int64, in share: ShareBook.Entry) throws -> Bool {
    try read { try $0.isBlocked(share.row.item, account) }
  }

  /// Whether a URL names this library: by its id, or by a public address that it has or had.
  private func isOwn(_ place: ShareURL.Place) throws -> Bool {
    switch place {
    case .any: true
    case .library(let id): id == self.id.lowercased()
    case .address(let host): try publicAddresses().map(ShareURL.plain).contains(host)
    }
  }

  private static let otherLibrary = SheafError(
    .notFound, subject: "the link", reason: "names another library, or an address that this one never had",
    advice: "give the library that it names with --library; if it is this one, give what stands behind /s/ alone")

  private static let noLink = SheafError(
    .notFound, subject: "the link", reason: "there is no such share, or it is not for this account",
    advice: "ask whoever gave it to you for an invitation")

  /// Whoever has the link knows of the share already.
  private static func hasEnded(at end: Timestamp) -> SheafError {
    SheafError(
      .notFound, subject: "the link", reason: "was good until \(end.secondsText)",
      advice: "ask whoever gave it to you for an invitation", times: [end])
  }

  private static let declined = SheafError(
    .accessDenied, subject: "the link", reason: "your request for access was turned down less than a day ago",
    advice: "ask again when a day has passed, or have its owner invite you")

  // MARK: - One-time links

  /// A link for one person, for seven days.
  ///
  /// - Parameter permission: the permission of the person; if nil, that of people who are invited without one.
  /// - Throws: `accessDenied` for an account that may not invite; `tooLarge` past 100 links that nobody claimed.
  package func inviteOnce(_ path: ItemPath, permission: SharePermission?) throws -> OneTimeLink {
    try locked {
      let account = try account(path.account)
      let (share, inode) = try sharedItem(path)
      try requireLocal(share)
      guard let inviter = share.member(account.id) else { throw Self.denied.about("\(path)") }
      let wanted = permission ?? share.row.permission
      try checkOneTimeLink(permission, in: share, by: inviter, path)
      try requireSharedItem(inode, at: path)
      let time = clock()
      let count = try read { try $0.countOneTimeLinks(share.row.item, at: time) }
      guard count < Self.participantLimit else {
        throw SheafError(
          .tooLarge, subject: "\(path)", reason: "has \(count) one-time links that nobody claimed",
          advice: "revoke them with: sheaf invite \(path.shellWord) --revoke")
      }
      let link = OneTimeLinkRow(
        token: .random(), share: share.row.item, permission: wanted, inviter: account.id,
        expires: Timestamp(seconds: time.seconds + Self.oneTimeSeconds))
      try makeChange(.share) { change in
        try change.rows.deleteOneTimeLinks(before: time)
        try change.rows.insert(link)
      }
      return OneTimeLink(url: try url(link.token), permission: wanted, expires: link.expires)
    }
  }

  func checkOneTimeLink(
    _ permission: SharePermission?, in share: ShareBook.Entry, by inviter: ParticipantRow, _ path: ItemPath
  ) throws {
    guard Self.mayInvite(inviter, to: permission ?? share.row.permission, in: share) else {
      throw SheafError(
        .accessDenied, subject: "\(path)", reason: "you may not invite people to that",
        advice: "ask \(try handle(share.owner))")
    }
  }

  /// Whether someone may let people do something in a share.
  private static func mayInvite(
    _ inviter: ParticipantRow, to permission: SharePermission, in share: ShareBook.Entry
  ) -> Bool {
    if allows(.managePeople, inviter) { return true }
    return share.row.allowsInvites && (permission == .readOnly || inviter.permission == .readWrite)
  }

  /// Whether a link still is one that its inviter could give out.
  static func counts(_ link: OneTimeLinkRow, in share: ShareBook.Entry) -> Bool {
    share.member(link.inviter).map { mayInvite($0, to: link.permission, in: share) } ?? false
  }

  /// Revokes the links of those who are out of a share, or may do less there than before.
  func revokeLinks(to share: ShareBook.Entry, since before: ShareBook.Entry, _ change: Change) throws {
    for inviter in before.members {
      guard share.member(inviter.account) != inviter || share.row.allowsInvites != before.row.allowsInvites else {
        continue
      }
      for link in try change.rows.oneTimeLinks(of: share.row.item, by: inviter.account)
      where !Self.counts(link, in: share) {
        try change.rows.deleteOneTimeLink(link.token)
      }
    }
  }

  /// Revokes the one-time links that nobody claimed: all of them for owner and administrators, else one's own.
  ///
  /// - Returns: how many could still be claimed.
  /// - Throws: `accessDenied` for an account that takes no part.
  @discardableResult
  package func revokeOneTimeLinks(_ path: ItemPath) throws -> Int {
    try locked {
      let account = try account(path.account)
      let (share, inode) = try sharedItem(path)
      try requireLocal(share)
      guard let participant = share.member(account.id) else { throw Self.denied.about("\(path)") }
      try requireSharedItem(inode, at: path)
      let inviters = Self.allows(.managePeople, participant) ? Array(share.participants.keys) : [account.id]
      let time = clock()
      let count = try read { rows in
        try inviters.reduce(0) { count, inviter in
          try count + rows.oneTimeLinks(of: share.row.item, by: inviter).count(where: { $0.expires > time })
        }
      }
      try makeChange(.share) { change in
        for inviter in inviters { try change.rows.deleteOneTimeLinks(of: share.row.item, by: inviter) }
      }
      return count
    }
  }

  // MARK: - Those who ask

  /// The people who ask for access, first come first, with those who were blocked.
  package func accessRequests(_ path: ItemPath) throws -> [AccessRequest] {
    try locked {
      let account = try account(path.account)
      let (share, inode) = try sharedItem(path)
      try require(.answerRequests, in: share, account.id, path)
      return try accessRequests(of: share, inode, for: account.id)
    }
  }

  /// The people who ask an account for access to anything, and those whom it blocked, by the shared item and first come
  /// first.
  package func accessRequests(for handle: AccountHandle) throws -> [AccessRequest] {
    try shares(of: handle).requests
  }

  func accessRequests(of share: ShareBook.Entry, _ inode: Inode, for account: Int64) throws -> [AccessRequest] {
    let requests = try read { try $0.accessRequests(share.row.item) }
    if requests.isEmpty { return [] }
    let path = try mountPath(inode, for: account)
    return try requests.map {
      AccessRequest(
        handle: try handle($0.account), name: try name($0.account), time: $0.time, blocked: $0.isBlocked, path: path)
    }
  }

  /// Lets someone in who asked, turns them down, or has them never come in by a link or ask again; a block takes an
  /// invitation back that was not accepted yet.
  ///
  /// - Throws: `notFound` for someone who did not ask; for a block of who takes part, as for their removal.
  package func answer(_ path: ItemPath, _ answer: RequestAnswer) throws {
    if answer.answer == .approve { try settleEventsInSteps(beforeApproving: answer.handle, to: path) }
    try locked {
      let account = try account(path.account)
      var (share, inode) = try sharedItem(path)
      try requireLocal(share)
      try require(.answerRequests, in: share, account.id, path)
      try requireSharedItem(inode, at: path)
      let target = try ownAccount(answer.handle)
      let request = try read { try $0.accessRequests(share.row.item) }.first { $0.account == target.id }
      // Whoever is blocked does not ask; they can be let in all the same.
      let asks = request.map { !$0.isBlocked || answer.answer == .approve } ?? false
      guard asks || answer.answer == .block else {
        throw SheafError(
          .notFound, subject: "\(answer.handle)", reason: "does not ask for access to \(path), or was answered already",
          advice: "invite them with: sheaf participant add \(path.shellWord) \(answer.handle)")
      }
      if answer.answer == .block, let known = share.participants[target.id], known.acceptance != .removed {
        try checkTarget(known, in: share, by: account.id, path)
      }
      let time = clock()
      try makeChange(.share) { change in
        switch answer.answer {
        case .deny:
          try change.rows.declineAccessRequest(
            share.row.item, target.id, at: time,
            forgetting: Timestamp(seconds: time.seconds - Self.declinedSeconds))
          try tellDeclined(target.id, share, inode, actor: account.id, change)
        case .block:
          // A person who is blocked gets the same answer.
          if request?.isBlocked == false { try tellDeclined(target.id, share, inode, actor: account.id, change) }
          try change.rows.save(
            AccessRequestRow(share: share.row.item, account: target.id, time: request?.time ?? time, isBlocked: true))
          if var invited = share.participants[target.id], invited.acceptance == .pending {
            invited.acceptance = .removed
            invited.since = time
            share.participants[target.id] = invited
            try update(share, change)
          }
        case .approve:
          try change.rows.deleteAccessRequest(share.row.item, target.id)
          guard share.member(target.id) == nil else { return }
          var joining = ParticipantRow(
            share: share.row.item, account: target.id, role: .privateUser,
            permission: answer.permission ?? share.row.permission, acceptance: .accepted, since: time)
          joining.name = share.participants[target.id]?.name
          try join(joining, &share, inode, actor: account.id, change)
        }
      }
    }
  }

  /// Tells what was done in a share before somebody who asked is let in.
  private func settleEventsInSteps(beforeApproving handle: AccountHandle, to path: ItemPath) throws {
    try settleEventsInSteps { scan in
      let account = try account(path.account)
      let (share, _) = try sharedItem(path)
      try require(.answerRequests, in: share, account.id, path)
      let target = try self.account(handle)
      guard share.member(target.id) == nil,
        try read({ try $0.accessRequests(share.row.item) }).contains(where: { $0.account == target.id })
      else {
        scan.decline()
        return []
      }
      return try waitingItems(in: share.row.item, &scan)
    }
  }

  private func tellDeclined(
    _ target: Int64, _ share: ShareBook.Entry, _ inode: Inode, actor: Int64, _ change: Change
  ) throws {
    var declined = asking(target, share)
    declined.acceptance = .removed
    try logShareEvent(.accessDeclined, share, inode, participant: declined, actor: actor, change)
  }
}
