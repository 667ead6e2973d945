package import SheafModel
import SheafStore

/// Notices: what others did, for an account, until the account clears them.
extension Library {
  /// Events that notices are made of at most; of older ones `activity` tells.
  private static let noticeEvents = 1000

  /// The notices since the account cleared them last.
  package func notices(for account: AccountHandle) throws -> NoticeList {
    let (cleared, last, logs) = try locked {
      let id = try self.account(account).id
      return try read { rows in
        let logs = try rows.replicaLogs(of: id).map { ($0.log, $0.cleared) }
        return (try rows.noticed(id), numbers.event, Dictionary(uniqueKeysWithValues: logs))
      }
    }
    let events = try latestEvents(
      before: last + 1, after: cleared, limit: Self.noticeEvents, for: account, in: .all, read: logs)
    return NoticeList(notices: Notice.notices(of: events, for: account), through: last)
  }

  /// Clears the account's notices of events up to a sequence number.
  package func clearNotices(for account: AccountHandle, through sequence: Int64) throws {
    try locked {
      let id = try self.account(account).id
      let border = min(sequence, numbers.event)
      try makeChange(.accounts) { change in
        try change.rows.setNoticed(id, border)
        try clearLogs(of: id, through: border, change)
      }
    }
  }
}
