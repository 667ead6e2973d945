package import SheafModel
import SheafStore

/// Comments on items, which live in the event log, and whom they mention.
///
/// Rooms: `AccountTable`, `ConnectedAccounts`, `Identity`, `ShareBook`.
extension Library {
  /// Characters that a comment has at most, and bytes: one character can have any number of combining marks.
  private static let commentLimit = 4000
  private static let commentByteLimit = 4 * commentLimit

  /// Comments on an item. People that the text mentions by `@handle` get a notice.
  ///
  /// Whoever may not know of all who take part mentions them all the same, and is not told who of those mentioned does.
  ///
  /// - Throws: `invalid` for no text or too much of it; `accessDenied` for a mention of someone who cannot see the
  ///   item; `notFound`.
  package func comment(_ path: ItemPath, text: String) throws -> ItemComment {
    try locked {
      let trimmed = text.trimming { $0.isWhitespace }
      guard !trimmed.isEmpty, trimmed.count <= Self.commentLimit, trimmed.utf8.count <= Self.commentByteLimit
      else {
        throw SheafError(
          .invalid, subject: "comment on \(path)", reason: "has no text, or more than \(Self.commentLimit) characters")
      }
      let actor = try account(path.account)
      let inode = try resolve(path)
      try allow(.comment, inode, on: path)
      // A command that named it makes it known (rule 1 of identity).
      identity.becomesKnown(inode.ino)
      guard let item = try item(of: inode), !item.isQuiet else {
        throw SheafError(
          .invalid, subject: "\(path)", reason: "is temporary, special or ignored (.sheafignore), and has no events",
          advice: "comment on a document or a folder")
      }
      var data = try eventData(
        item, parent: inode.row.parent, name: inode.row.parent == 0 ? Array("Documents".utf8) : inode.row.name)
      let knowsAll =
        item.owner == actor.id
        || (data.share.flatMap { shares.active($0.share) }.map { seesAll(of: $0, actor.id) } ?? false)
      let mentioned = try Mentions.handles(in: trimmed).compactMap { handle in
        guard let account = person(handle, data.share), sees(account, item, data.share) else {
          if !knowsAll { return nil as AccountRow? }
          // The same for a handle of no account and for an account that cannot see it.
          throw SheafError(
            .accessDenied, subject: "@\(handle)", reason: "cannot see \(path)",
            advice: "share it with them first, or write the handle without @")
        }
        return account
      }
      data.comment = trimmed
      // The hub knows nothing of a share within this library.
      let isShared = data.share.flatMap { shares.active($0.share) }.map { $0.row.url == nil } ?? false
      let isAtHub = connectedAccounts.contains(item.owner) && !isShared
      try makeChange(.comment) { change in
        if isAtHub { return try requestComment(trimmed, data, on: item, by: actor.id, change) }
        try log(.comment, data)
        for account in mentioned {
          var mention = data
          mention.mentioned = account.handle.description
          try log(.mention, mention)
        }
        func log(_ type: EventType, _ data: EventData) throws {
          try logEvent(type, item, ino: inode.ino, data, actor: actor.id, thread: 0, opens: false, change)
        }
      }
      let told = mentioned.filter { knowsAll || [item.owner, actor.id].contains($0.id) }
      return ItemComment(
        item: item.uuid.text, comment: trimmed, mentioned: told.map { Account(handle: $0.handle, name: $0.name) })
    }
  }

  /// Whom a handle names: of those who take part in a share at a hub, the one whom the hub knows by it.
  private func person(_ handle: AccountHandle, _ share: ShareMark?) -> AccountRow? {
    guard let entry = share.flatMap({ shares.active($0.share) }), entry.row.url != nil else {
      return accountTable.named(handle)
    }
    return entry.participants.keys.compactMap { accountTable[$0] }.first { $0.handle == handle }
  }

  /// Whether an account sees an item that is in a share, or in none.
  private func sees(_ account: AccountRow, _ item: ItemRow, _ share: ShareMark?) -> Bool {
    item.owner == account.id || share.flatMap { shares.active($0.share) }?.member(account.id) != nil
  }
}
