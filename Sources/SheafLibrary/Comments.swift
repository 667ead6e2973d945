package import SheafModel
import SheafStore

/// Comments on items, which live in the event log, and whom they mention.
extension Library {
  /// Characters that a comment has at most.
  private static let commentLimit = 4000

  /// Comments on an item; whoever the text mentions by `@handle` gets a notice of it.
  ///
  /// - Throws: `invalid` for no text or too much of it; `accessDenied` for a mention of someone who cannot see the item;
  ///   `notFound`.
  package func comment(_ path: ItemPath, text: String) throws -> ItemComment {
    try locked {
      let trimmed = text.trimming { $0.isWhitespace }
      guard !trimmed.isEmpty, trimmed.count <= Self.commentLimit else {
        throw SheafError(
          .invalid, subject: "comment on \(path)", reason: "has no text, or more than \(Self.commentLimit) characters")
      }
      let actor = try account(path.account)
      let inode = try resolve(path)
      // Who named it in a command knows it (rule 1 of identity).
      identity.becomesKnown(inode.ino)
      guard let item = try item(of: inode), !item.isQuiet else {
        throw SheafError(
          .invalid, subject: "\(path)", reason: "is a temporary or special file, of which no event speaks",
          advice: "comment on a document or a folder")
      }
      let mentioned = try Mentions.handles(in: trimmed).map { try mentionable($0, item, path) }
      var data = try eventData(item, parent: inode.row.parent, name: inode.row.name)
      data.comment = trimmed
      try transaction(.comment) { transaction in
        try log(.comment, data)
        for account in mentioned {
          var mention = data
          mention.mentioned = account.handle.description
          try log(.mention, mention)
        }
        func log(_ type: EventType, _ data: EventData) throws {
          try logEvent(type, item, ino: inode.ino, data, owner: actor.id, thread: 0, opens: false, transaction)
        }
      }
      return ItemComment(
        item: item.uuid.text, comment: trimmed, mentioned: mentioned.map { Account(handle: $0.handle, name: $0.name) })
    }
  }

  /// The account of a handle that a comment mentions.
  ///
  /// - Throws: `accessDenied`, the same for who is no account and for who cannot see the item.
  private func mentionable(_ handle: AccountHandle, _ item: ItemRow, _ path: ItemPath) throws -> AccountRow {
    guard let account = accountRows.first(where: { $0.handle == handle }), canSee(item, account) else {
      throw SheafError(
        .accessDenied, subject: "@\(handle)", reason: "cannot see \(path)",
        advice: "share it with them first, or write the handle without @")
    }
    return account
  }

  private func canSee(_ item: ItemRow, _ account: AccountRow) -> Bool { item.owner == account.id }
}
