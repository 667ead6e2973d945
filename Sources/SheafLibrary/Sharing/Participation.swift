import Foundation
package import SheafModel
import SheafStore

/// The participants of a share: inviting, joining, changing, leaving.
///
/// Rooms: `Departures`, `EventLog`, `LeftEntries`, `Numbers`.
extension Library {
  /// Participants of a share at most, the owner and those who have yet to accept among them.
  static let participantLimit = 100
  /// Seconds for which a one-time link can be claimed.
  static let oneTimeSeconds: Int64 = 7 * 86_400

  /// The participants of the share that an item is in, the owner first; public users see the owner and themselves.
  package func participants(_ path: ItemPath) throws -> [Participant] {
    try locked {
      let account = try account(path.account)
      return try facts(sharedItem(path).share, for: account.id).participants
    }
  }

  /// Adds someone, or changes someone who is there.
  package func addParticipant(_ path: ItemPath, _ change: ParticipantChange) throws -> Participant {
    try changeParticipants(path) { share, account, time in
      try invite(
        change.handle, permission: change.permission, role: change.role, to: &share, by: account, path, at: time)
    }
  }

  /// Changes what someone who takes part may do.
  package func setParticipant(_ path: ItemPath, _ change: ParticipantChange) throws -> Participant {
    if change.permission == .readOnly { collectMapped(inShareOf: path, by: change.handle) }
    return try changeParticipants(path) { share, account, time in
      try require(.managePeople, in: share, account, path)
      let target = try ownAccount(change.handle)
      guard let there = share.participants[target.id], there.acceptance != .removed else {
        // The caller relies on the answer that this person takes no part.
        forgetLeft(target.id, share)
        throw Self.notThere(change.handle, path)
      }
      return try alter(
        there, permission: change.permission, role: change.role, in: &share, by: account, path)
    }
  }

  /// Takes someone out; they need a new invitation to come back.
  package func removeParticipant(_ path: ItemPath, _ handle: AccountHandle) throws {
    collectMapped(inShareOf: path, by: handle)
    try locked {
      let actor = try account(path.account)
      var (share, inode) = try sharedItem(path)
      try requireLocal(share)
      // Nobody learns here which accounts there are, or who takes part.
      if handle != path.account { try require(.managePeople, in: share, actor.id, path) }
      try requireSharedItem(inode, at: path)
      let target = try ownAccount(handle)
      // A person who has just left, and may be about to undo that, is removed like one who is there.
      let left = left(target.id, share)
      guard var participant = left?.participant ?? share.participants[target.id], participant.acceptance != .removed
      else { throw Self.notThere(handle, path) }
      if target.id == actor.id, participant.role != .owner {
        try leave(share, target.id, .api(target.id))
        return
      }
      try require(.managePeople, in: share, actor.id, path)
      try checkTarget(participant, in: share, by: actor.id, path)
      let wasThere = left == nil && participant.acceptance == .accepted
      participant.acceptance = .removed
      participant.since = clock()
      try makeChange(.share) { change in
        try change.rows.deleteOneTimeLinks(of: share.row.item, by: target.id)
        if wasThere {
          participant.ended = try logShareEvent(
            .memberRemoved, share, inode, participant: participant, actor: actor.id, change)
        } else if left != nil {
          // The event of their leaving is logged already.
          try settleEvents(before: share.row.item, change)
          participant.ended = numbers.event
        }
        participant.role = .privateUser
        share.participants[target.id] = participant
        try update(share, change)
        change.whenRecorded { [self] in forgetLeft(target.id, share) }
      }
    }
  }

  /// Leaves the share whose item is at a path.
  ///
  /// - Throws: `notPermitted` for the owner, and for something in a shared folder, naming the entry that can be left.
  package func leave(_ path: ItemPath) throws {
    collectMapped(inShareOf: path, by: path.account)
    try locked {
      let account = try account(path.account)
      guard try self.share(of: resolve(path)) != nil else {
        throw SheafError(
          .notFound, subject: "\(path)", reason: "is not shared, so there is nothing to leave",
          advice: "`sheaf shares` lists what others share with you")
      }
      let (share, inode) = try sharedItem(path)
      try requireLocal(share)
      if share.owner != account.id, try resolve(path) !== inode {
        let entry = try mountPath(inode, for: account.id)
        throw SheafError(
          .notPermitted, subject: "\(path)", reason: "is shared as a part of \(entry)",
          advice: "to leave all of that: sheaf leave \(entry.shellWord)")
      }
      try leave(share, account.id, .api(account.id))
    }
  }

  /// Leaves a share.
  ///
  /// - Parameter entry: the name in `Shared/OWNER` that was taken away, where its program may make it again.
  /// - Returns: The items that the same program deleted in the share, as `rm -r` of the entry does before it removes
  ///   the entry, for the caller to undo (``undoDeletions(_:)``): somebody who leaves deletes nothing.
  @discardableResult
  func leave(_ share: ShareBook.Entry, _ account: Int64, _ caller: Caller, entry: [UInt8]? = nil) throws -> Return? {
    var participant = try checkLeaving(share.member(account), share)
    let former = participant
    participant.acceptance = .removed
    let inode = try sharedInode(share.row.item)
    let program = Departures.Program(share: share.row.item, account: account, process: caller.process)
    var back: Return?
    if caller.process != 0, let inode, let departure = departures.departure(of: program, at: clock()) {
      back = Return(
        share: share.row.item, account: account, folder: inode.ino, left: max(clock(), departure.latest), departure,
        caller)
    }
    try makeChange(.share, freesSpace: true, by: caller) { [back] change in
      if let back { try change.rows.setSetting(back.setting, back.departure.since.nanoseconds) }
      try noteLeaving(share, account, true, change)
      let links = entry == nil ? [] : try change.rows.oneTimeLinks(of: share.row.item, by: account)
      try change.rows.deleteOneTimeLinks(of: share.row.item, by: account)
      if let inode, let entry {
        let event = try logDeparture(share, inode, participant, thread: caller.thread, change)
        let left = LeftEntry(
          share: share.row, participant: former, links: links, itemName: inode.row.name, process: caller.process,
          time: clock(), event: event)
        change.whenRecorded { [self] in
          leftEntries.insert(left, .init(account: account, owner: share.owner, name: entry), at: clock())
        }
      } else if let inode {
        try logShareEvent(.memberRemoved, share, inode, participant: participant, actor: account, change)
      }
      // A stranger from here on, who goes on seeing what was told until now.
      var gone = participant
      gone.role = .publicUser
      gone.name = nil
      gone.since = clock()
      gone.ended = numbers.event
      var changed = share
      changed.participants[account] = gone
      try update(changed, change)
      change.whenRecorded { [self] in
        departures.remove(program)
        if let back { events.beginHolding(back.caller.process) }
      }
    }
    return back
  }

  /// - Returns: the participant.
  @discardableResult
  func checkLeaving(_ participant: ParticipantRow?, _ share: ShareBook.Entry) throws -> ParticipantRow {
    guard let participant, Self.allows(.leave, participant) else {
      let owned = participant?.role == .owner ? try sharedInode(share.row.item) : nil
      let path = try owned.map { try mountPath($0, for: share.owner) } ?? share.row.title
      throw SheafError(
        .notPermitted, subject: path, reason: "is shared by you",
        advice: "stop it with: sheaf unshare \(path.shellWord)")
    }
    return participant
  }

  // MARK: - Changing

  /// Runs a change of participants, stores what came of it and tells what it says of the one whom it is about.
  private func changeParticipants(
    _ path: ItemPath, _ body: (inout ShareBook.Entry, Int64, Timestamp) throws -> ParticipantRow
  ) throws -> Participant {
    try locked {
      let account = try account(path.account)
      let (before, inode) = try sharedItem(path)
      try requireLocal(before)
      var share = before
      let participant = try body(&share, account.id, clock())
      // Who may not do it is told that.
      try requireSharedItem(inode, at: path)
      if share.participants != before.participants {
        try makeChange(.share) { change in
          try logChanges(of: &share, since: before, [], inode, actor: account.id, change)
          try update(share, change)
        }
      }
      return try fact(participant)
    }
  }

  /// Invites someone, or changes a participant as requested, and nothing else.
  ///
  /// A person who does not see the other participants does not learn whether someone takes part: the answer is always
  /// that of an invitation, though nobody who takes part or was blocked is invited.
  ///
  /// - Returns: The participant, as the inviting person is to see them.
  @discardableResult
  func invite(
    _ handle: AccountHandle, permission: SharePermission?, role: Role?, to share: inout ShareBook.Entry,
    by actor: Int64,
    _ path: ItemPath, at time: Timestamp
  ) throws -> ParticipantRow {
    guard let inviter = share.member(actor) else { throw Self.denied.about("\(path)") }
    // An account that may not invite learns nothing of who has an account, or takes part.
    try checkInviting(in: share, by: inviter, path)
    let target: AccountRow
    do {
      target = try ownAccount(handle)
    } catch let error as SheafError where error.kind == .notFound {
      throw SheafError(
        .notFound, subject: "\(handle)", reason: "has no account in this library",
        advice: "make one with: sheaf account add \(handle); or give them a link with: sheaf invite PATH --one-time")
    }
    let seesOthers = Self.allows(.listEveryone, inviter)
    let there = share.participants[target.id].flatMap { $0.acceptance == .removed ? nil : $0 }
    if let there, seesOthers {
      guard there.role == .publicUser || permission != nil || role != nil else { return there }
      return try alter(
        there, permission: permission, role: role ?? (there.role == .publicUser ? .privateUser : nil),
        in: &share, by: actor, path)
    }
    let wanted = permission ?? share.row.permission
    let isBlocked = try !Self.allows(.managePeople, inviter) && isBlocked(target.id, in: share)
    try checkInvitation(permission, role, isBlocked: isBlocked && seesOthers, in: share, by: inviter, path)
    guard share.participants.values.count(where: { $0.acceptance != .removed }) < Self.participantLimit else {
      throw SheafError(
        .tooLarge, subject: "\(path)", reason: "has \(Self.participantLimit) participants, which is the most",
        advice: "remove one first with: sheaf participant remove")
    }
    var participant = ParticipantRow(
      share: share.row.item, account: target.id, role: role ?? .privateUser,
      permission: role == .administrator ? .readWrite : wanted, acceptance: .pending, since: time)
    if there != nil || isBlocked { return participant }
    if let former = share.participants[target.id] {
      // They still see the events that they saw, whether they come back or not.
      (participant.name, participant.joined, participant.ended) = (former.name, former.joined, former.ended)
    }
    share.participants[target.id] = participant
    return participant
  }

  func checkInviting(in share: ShareBook.Entry, by inviter: ParticipantRow, _ path: ItemPath) throws {
    guard Self.allows(.managePeople, inviter) || share.row.allowsInvites else {
      throw SheafError(
        .accessDenied, subject: "\(path)", reason: "only its owner and administrators invite people",
        advice: "ask \(try handle(share.owner))")
    }
  }

  /// Checks that somebody may be invited to that.
  ///
  /// - Parameter isBlocked: Whether the inviting person is to hear that they cannot be invited.
  func checkInvitation(
    _ permission: SharePermission?, _ role: Role?, isBlocked: Bool, in share: ShareBook.Entry,
    by inviter: ParticipantRow, _ path: ItemPath
  ) throws {
    if !Self.allows(.managePeople, inviter) {
      guard role == nil || role == .privateUser, !isBlocked else {
        throw SheafError(
          .accessDenied, subject: "\(path)", reason: "only its owner and administrators may do that",
          advice: "ask \(try handle(share.owner))")
      }
      guard permission ?? share.row.permission == .readOnly || inviter.permission == .readWrite else {
        throw SheafError(
          .accessDenied, subject: "\(path)", reason: "you can only view it, and invite no one to more than that",
          advice: "invite with --can view")
      }
    }
    try checkRole(role, in: share, by: inviter.account, path)
  }

  /// Changes role and permission of someone who is there.
  private func alter(
    _ participant: ParticipantRow, permission: SharePermission?, role: Role?, in share: inout ShareBook.Entry,
    by actor: Int64, _ path: ItemPath
  ) throws -> ParticipantRow {
    try checkAltering(participant, permission: permission, role: role, in: share, by: actor, path)
    var participant = participant
    if let role { participant.role = role }
    if let permission { participant.permission = permission }
    if participant.role == .administrator { participant.permission = .readWrite }
    share.participants[participant.account] = participant
    return participant
  }

  func checkAltering(
    _ participant: ParticipantRow, permission: SharePermission?, role: Role?, in share: ShareBook.Entry,
    by actor: Int64, _ path: ItemPath
  ) throws {
    try require(.managePeople, in: share, actor, path)
    try checkTarget(participant, in: share, by: actor, path)
    try checkRole(role, in: share, by: actor, path)
    guard permission != .readOnly || role ?? participant.role != .administrator else {
      throw SheafError(
        .invalid, subject: "\(try handle(participant.account))", reason: "administrators can always edit",
        advice: "make them an ordinary participant: --role participant --can view")
    }
  }

  /// Checks that `actor` may change or remove `participant`: nobody themselves or the owner, administrators no other
  /// one.
  func checkTarget(
    _ participant: ParticipantRow, in share: ShareBook.Entry, by actor: Int64, _ path: ItemPath
  ) throws {
    let handle = try handle(participant.account)
    guard participant.role != .owner else {
      throw SheafError(.notPermitted, subject: "\(handle)", reason: "owns \(path), and always takes part")
    }
    guard participant.account != actor else {
      throw SheafError(
        .notPermitted, subject: "\(handle)", reason: "is yourself", advice: "to go, use: sheaf leave \(path.shellWord)")
    }
    if participant.role == .administrator { try require(.manageAdministrators, in: share, actor, path) }
  }

  private func checkRole(_ role: Role?, in share: ShareBook.Entry, by actor: Int64, _ path: ItemPath) throws {
    switch role {
    case nil, .privateUser: return
    case .administrator: try require(.manageAdministrators, in: share, actor, path)
    case .owner, .publicUser:
      throw SheafError(
        .invalid, subject: "--role", reason: "is what nobody is made", advice: "give administrator or privateUser")
    }
  }

  /// Checks that an account may do something with the share itself.
  func require(_ operation: ShareOperation, in share: ShareBook.Entry, _ account: Int64, _ path: ItemPath) throws {
    guard let participant = share.member(account), Self.allows(operation, participant) else {
      let who: String =
        switch operation {
        case .managePeople, .answerRequests: "its owner and administrators"
        default: "its owner"
        }
      throw SheafError(
        .accessDenied, subject: "\(path)", reason: "only \(who) may do that", advice: "ask \(try handle(share.owner))")
    }
  }

  private static func notThere(_ handle: AccountHandle, _ path: ItemPath) -> SheafError {
    SheafError(
      .notFound, subject: "\(handle)", reason: "takes no part in \(path)",
      advice: "`sheaf participants` shows who does")
  }

  // MARK: - Finding the share

  /// The share whose item is at `path`, or in which that lies.
  ///
  /// - Throws: `notFound` where nothing is shared there.
  func sharedItem(_ path: ItemPath) throws -> (share: ShareBook.Entry, inode: Inode) {
    guard let share = try share(of: resolve(path)), let inode = try sharedInode(share.row.item) else {
      throw SheafError(
        .notFound, subject: "\(path)", reason: "is not shared", advice: "share it with: sheaf share \(path.shellWord)")
    }
    return (share, inode)
  }

  /// Checks that a shared item is what is at `path`.
  ///
  /// - Throws: `notPermitted` for what lies in a shared folder: who changes something for it would change that for the
  ///   whole folder.
  func requireSharedItem(_ inode: Inode, at path: ItemPath) throws {
    guard try resolve(path) !== inode else { return }
    let place = try mountPath(inode, for: account(path.account).id)
    throw SheafError(
      .notPermitted, subject: "\(path)", reason: "is shared as a part of \(place)", advice: "name that, or move it out")
  }
}
