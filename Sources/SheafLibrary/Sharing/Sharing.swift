import Foundation
package import SheafModel
import SheafStore

/// Sharing an item, changing what is shared, and stopping it.
///
/// Rooms: `Identity`, `LatestTime`, `ShareBook`.
extension Library {
  /// Shares of one owner at most, and shares that one account joined.
  static let shareLimit = 1000

  /// Shares an item, or changes the share that is there.
  ///
  /// - Throws: `notPermitted` where it would lie in another share or around one, or has a name outside, naming that;
  ///   `accessDenied` where the account may not; `invalid` for titles with control characters and the like; `notFound`;
  ///   `tooLarge` past 1,000 shares of one owner.
  package func share(_ path: ItemPath, _ change: ShareChange) throws -> Share {
    drainWorkingFile()
    if change.anyone != nil || change.permission == .readOnly { collectMapped(inShareOf: path) }
    try endVersionsInSteps {
      let (inode, item) = try shareable(path)
      return try shares.active(item.id) == nil && item.owner == account(path.account).id ? inode : nil
    }
    return try locked {
      let account = try account(path.account)
      var (inode, item) = try shareable(path)
      let before = shares.active(item.id)
      if let before { try requireLocal(before) }
      if before == nil, item.owner == account.id {
        // The event of its making comes before that of sharing, and has its first version.
        if inode.isRegular, item.version == 0 { try makeVersions(inode) }
        try endVersions(below: inode)
        item = try self.item(of: inode) ?? item
      }
      var share = try before ?? newShare(of: inode, item, by: account.id, path)
      if before != nil, change.changesShare { try require(.changeShare, in: share, account.id, path) }
      let time = clock()
      if let title = change.title { share.row.title = try Self.checkedTitle(title) }
      if let permission = change.permission, change.with.isEmpty { share.row.permission = permission }
      if let allow = change.allowInvites { share.row.allowsInvites = allow }
      if let allow = change.allowRequests { share.row.allowsRequests = allow }
      if change.newLink { share.row.token = .random() }
      let formerEnd = try linkEnd(of: share)
      let end = try change.linkSeconds.map { try Self.linkEnd(in: $0, from: time) } ?? formerEnd
      var departed: [Int64] = []
      if let anyone = change.anyone { departed = setPublic(anyone, of: &share, at: time) }
      for handle in change.with {
        try invite(handle, permission: change.permission, role: nil, to: &share, by: account.id, path, at: time)
      }
      if before == nil || share.row != before?.row || share.participants != before?.participants || end != formerEnd {
        try makeChange(.share) { change in
          if before == nil {
            try logQuietCreation(inode, item.id, actor: account.id, change)
            try logShareEvent(.shareCreated, share, inode, actor: account.id, change)
          } else if share.row != before?.row || end != formerEnd {
            try logShareEvent(.shareUpdated, share, inode, actor: account.id, change)
          }
          try logChanges(of: &share, since: before, departed, inode, actor: account.id, change)
          if item.isQuiet || before == nil { try settleNew(inode, item.id, change) }
          if end != formerEnd { try setLinkEnd(end, of: item.id, change) }
          try update(share, change)
        }
      }
      return try facts(share, for: account.id)
    }
  }

  /// Stops sharing: all participation ends, the link is as if it never was, and the owner's documents stay as they are.
  ///
  /// - Throws: `notFound` where nothing is shared; `accessDenied` for everyone but the owner.
  package func unshare(_ path: ItemPath) throws {
    collectMapped(inShareOf: path)
    try locked {
      let account = try account(path.account)
      let (share, inode) = try sharedItem(path)
      try requireLocal(share)
      try require(.unshare, in: share, account.id, path)
      try requireSharedItem(inode, at: path)
      try makeChange(.share) { try stop(share, inode, actor: account.id, $0) }
    }
  }

  /// The share that an item is in, as the path's account sees it; nil where it is in none.
  package func share(of path: ItemPath) throws -> Share? {
    try locked {
      let account = try account(path.account)
      return try share(of: resolve(path)).map { try facts($0, for: account.id) }
    }
  }

  // MARK: - Rules

  /// An item that can be shared.
  private func shareable(_ path: ItemPath) throws -> (inode: Inode, item: ItemRow) {
    let inode = try resolve(path)
    guard inode.isRegular || inode.isFolder, let item = try item(of: inode) else {
      throw SheafError(
        .invalid, subject: "\(path)", reason: "is neither a document nor a folder", advice: "share the folder it is in")
    }
    return (inode, item)
  }

  private func newShare(of inode: Inode, _ item: ItemRow, by account: Int64, _ path: ItemPath) throws -> ShareBook.Entry
  {
    guard item.owner == account else {
      throw SheafError(
        .accessDenied, subject: "\(path)", reason: "is shared as part of \(try handle(item.owner))'s folder",
        advice: "only its owner shares it on its own")
    }
    guard try read({ try $0.replica(account) }) == nil else {
      throw SheafError(
        .unavailable, subject: "\(path)", reason: "is shared at the hub of \(try handle(account))",
        advice: "mount the library, and try again: its process asks the hub")
    }
    guard shares.countOwned(by: account) < Self.shareLimit else {
      throw SheafError(
        .tooLarge, subject: "\(path)", reason: "you share \(Self.shareLimit) items, which is the most",
        advice: "stop sharing one first with: sheaf unshare; or share the folder around several")
    }
    try checkBorders(of: inode, path)
    let time = latestTime.following(clock())
    var row: ShareRow
    if let stopped = shares[item.id]?.row {
      row = stopped
      row.isActive = true
      row.since = time
      // Whom it let in, and how, ended with it.
      row.anyone = .none
      row.permission = .readWrite
      row.allowsInvites = false
      row.allowsRequests = false
    } else {
      let name = inode.row.parent == 0 ? Array("Documents".utf8) : inode.row.name
      row = ShareRow(
        item: item.id, uuid: .timeOrdered(time), token: .random(),
        title: Self.defaultTitle(name, isFolder: inode.isFolder),
        time: time)
    }
    var share = ShareBook.Entry(row: row, participants: shares[item.id]?.participants ?? [:])
    share.participants[account] = ParticipantRow(
      share: item.id, account: account, role: .owner, permission: .readWrite, acceptance: .accepted, since: time)
    return share
  }

  /// Logs the making of a file that was quiet so far, before the event of its share.
  private func logQuietCreation(_ inode: Inode, _ id: Int64, actor: Int64, _ change: Change) throws {
    try settleEvents(before: id, change)
    guard var item = try change.rows.item(id), item.isQuiet else { return }
    try makeKnown(inode.row.parent, change)
    item.isQuiet = false
    try insertFirstVersion(of: &item, inode, change)
    try change.rows.update(item)
    var data = try eventData(item, parent: inode.row.parent, name: inode.row.name)
    data.version = try change.rows.version(id, item.version).map { .init($0) }
    try logEvent(.created, item, ino: inode.ino, data, actor: actor, thread: 0, opens: false, change)
  }

  /// Makes a document of a file that was just made: a person who shares it means it.
  private func settleNew(_ inode: Inode, _ id: Int64, _ change: Change) throws {
    guard var item = try change.rows.item(id) else { return }
    item.isQuiet = false
    item.entered = nil
    try change.rows.update(item)
    let final = item
    change.whenRecorded { [self] in
      inode.item = final
      identity.becomesKnown(inode.ino)
    }
  }

  /// The name of a folder, or that of a document without its extension, fit for a title.
  static func defaultTitle(_ name: [UInt8], isFolder: Bool) -> String {
    let text = String(decoding: name, as: UTF8.self)
    let dot = isFolder ? nil : text.lastIndex(of: ".")
    let stem = dot.flatMap { $0 > text.startIndex ? String(text[..<$0]) : nil } ?? text
    let shown = String(String.UnicodeScalarView(stem.unicodeScalars.filter { !isUnfit($0) }.prefix(255)))
    return shown.isEmpty ? "Untitled" : shown
  }

  private static func checkedTitle(_ title: String) throws -> String {
    guard !title.isEmpty, title.unicodeScalars.count <= 255, !title.unicodeScalars.contains(where: isUnfit) else {
      throw SheafError(
        .invalid, subject: "the title \(title.printable)", reason: "is empty, too long or has control characters",
        advice: "give 1 to 255 printable characters")
    }
    return title
  }

  /// Whether a character moves text about or shows nothing: controls, line ends, and those that turn its direction.
  private static func isUnfit(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: true
    case .format: scalar.value != 0x200D && scalar.value != 0x200C
    default: false
    }
  }

  /// Ends or changes what anyone may do; returns those who had joined by it and are out now.
  private func setPublic(_ anyone: PublicPermission, of share: inout ShareBook.Entry, at time: Timestamp) -> [Int64] {
    share.row.anyone = anyone
    var departed: [Int64] = []
    for (account, var participant) in share.participants
    where participant.role == .publicUser && participant.acceptance == .accepted {
      if let permission = anyone.permission {
        participant.permission = permission
      } else {
        participant.acceptance = .removed
        participant.since = time
        departed.append(account)
      }
      share.participants[account] = participant
    }
    return departed.sorted()
  }

  // MARK: - Storing

  /// Ends a share.
  func stop(_ share: ShareBook.Entry, _ inode: Inode, actor: Int64, _ change: Change) throws {
    var share = share
    let time = clock()
    share.row.isActive = false
    share.row.since = time
    let sequence = try logShareEvent(.shareStopped, share, inode, actor: actor, change)
    for (account, var participant) in share.participants where participant.role != .owner {
      guard participant.acceptance != .removed else { continue }
      if participant.acceptance == .accepted {
        participant.ended = sequence
      } else if participant.joined == nil {
        share.participants[account] = nil
        continue
      }
      participant.acceptance = .removed
      // A person who was in it to the end is a stranger to a later share, and not someone who was removed.
      participant.role = .publicUser
      participant.since = time
      share.participants[account] = participant
    }
    try turnDown(share, inode, actor: actor, change)
    try change.rows.endInvitations(of: share.row.item)
    try update(share, change)
  }

  /// The key of the setting that says from when on no stranger joins by the link of an item's share. It outlasts the
  /// share, as the link does: who shares the item anew does not let in those whose link had ended.
  private static func linkEndKey(_ item: Int64) -> String { "linkEnds.\(item)" }

  /// From when on no stranger joins by a share's link; nil if it does not end.
  func linkEnd(of share: ShareBook.Entry) throws -> Timestamp? {
    try read { try $0.numberSetting(Self.linkEndKey(share.row.item)) }.map(Timestamp.init(nanoseconds:))
  }

  func setLinkEnd(_ end: Timestamp?, of item: Int64, _ change: Change) throws {
    if let end {
      try change.rows.setSetting(Self.linkEndKey(item), end.nanoseconds)
    } else {
      try change.rows.setSetting(Self.linkEndKey(item), nil)
    }
  }

  /// The end of a link that somebody may join by for so many seconds; nil for 0, which is for ever.
  ///
  /// - Throws: `invalid`.
  private static func linkEnd(in seconds: Int64, from time: Timestamp) throws -> Timestamp? {
    guard (0...TrashSelection.longestSpan).contains(seconds) else {
      throw SheafError(
        .invalid, subject: "\(seconds) seconds", reason: "is no span for which a link can be good",
        advice: "give 1y or less, or never")
    }
    return seconds == 0 ? nil : Timestamp(seconds: time.seconds + seconds)
  }

  /// Writes what changed of a share; memory, and what others see, follow once it is recorded.
  func update(_ share: ShareBook.Entry, _ change: Change) throws {
    let before = shares[share.row.item]
    if share.row != before?.row { try change.rows.save(share.row) }
    for (account, participant) in share.participants where participant != before?.participants[account] {
      try change.rows.save(participant)
      // People who are in, or invited, ask no more and are no longer blocked.
      let wasOut = before?.participants[account].map { $0.acceptance == .removed } ?? true
      if wasOut, participant.acceptance != .removed { try change.rows.deleteAccessRequest(share.row.item, account) }
    }
    for account in before?.participants.keys ?? [:].keys where share.participants[account] == nil {
      try change.rows.deleteParticipant(share.row.item, account)
    }
    if let before { try revokeLinks(to: share, since: before, change) }
    change.whenRecorded { [self] in
      shares.set(share)
      for account in Set(share.participants.keys).union(before?.participants.keys ?? [:].keys) {
        let (old, new) = (before?.member(account), share.row.isActive ? share.member(account) : nil)
        if old?.permission != new?.permission || old?.role != new?.role { tellAccess(of: account) }
      }
    }
  }

  /// Removes an item's share with the item.
  func removeShare(of item: Int64, _ change: Change) throws {
    guard let share = shares[item] else { return }
    try change.rows.deleteShare(item)
    try setLinkEnd(nil, of: item, change)
    change.whenRecorded { [self] in
      shares.removeDestroyed(item)
      for account in share.participants.keys { tellAccess(of: account) }
    }
  }
}
