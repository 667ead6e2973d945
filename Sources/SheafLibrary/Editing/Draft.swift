import SheafStore

/// A document's contents as one account has them open: the stored contents with its unsaved writes.
///
/// Two accounts that write the same document have a draft each. If one saves, the other reads the new contents, unless
/// the other is editing, too. Then both are saved, one after the other, the later one is current, and the conflict is
/// recorded (`items.conflict`). At most one draft of an inode has a numbered session: the one whose version is current.
///
/// Belongs to an ``Inode`` and is touched only under the library's lock.
final class Draft {
  /// The account whose it is.
  let account: Int64
  /// Contents of a regular file, once the account opened it.
  var working: WorkingCopy?
  /// The editing session that is going on.
  var session: EditingSession?
  /// Open file descriptions, and those of them that can write.
  var openCount = 0
  var writerCount = 0
  /// Whether it was written after another program than the one that wrote had replaced the file (``Inode/replacer``).
  var hasReplacedWork = false

  init(account: Int64) { self.account = account }

  var isChanged: Bool { working?.isChanged ?? false }

  /// Whether it has changes that no autosave has kept yet.
  var isEdited: Bool { isChanged && !(session?.isKept ?? false) }

  /// Bytes in memory that are not stored.
  var unsavedBytes: Int { working?.dirty.memoryCount ?? 0 }

  /// Whether nobody has it open and nothing in it waits to be saved.
  var isIdle: Bool { openCount == 0 && session == nil && !isChanged }
}

extension Inode {
  /// The drafts that there are, the owner's first.
  var drafts: [Draft] { others.isEmpty ? [own] : [own] + others.values.sorted { $0.account < $1.account } }

  /// The draft of an account, the owner's where nil; made at need.
  func draft(of account: Int64?) -> Draft {
    guard let account, account != row.owner else { return own }
    if let draft = others[account] { return draft }
    let draft = Draft(account: account)
    others[account] = draft
    return draft
  }

  /// An account's own state of the contents; the stored contents if it has none of its own.
  func contents(for account: Int64?) -> (size: Int64, dataLength: Int64) {
    let draft = account == nil || account == row.owner ? own : others[account ?? 0]
    if let working = draft?.working { return (working.size, working.dataLength) }
    return (isFolder ? 4096 : row.size, row.content?.dataLength ?? (isFolder ? 4096 : 0))
  }

  /// Whether an account has changes that no autosave has kept yet.
  func isEdited(by account: Int64?) -> Bool {
    (account == nil || account == row.owner ? own : others[account ?? 0])?.isEdited ?? false
  }

  var hasSession: Bool { drafts.contains { $0.session != nil } }

  /// Lets go of drafts that nobody uses; the owner's stays.
  func dropIdleDrafts() {
    if !others.isEmpty { others = others.filter { !$0.value.isIdle } }
  }
}
