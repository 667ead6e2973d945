import SheafStore

/// How much a connected account may send and fetch.
package struct ReplicaPace: Hashable, Sendable {
  /// Whether nothing is sent or fetched.
  package var isPaused = false
  /// Bytes of contents in a second; nil without a limit.
  package var limit: Int64?

  package init() {}
}

/// The pace of a connected account, which lasts until it is set anew or the account is disconnected.
extension Library {
  package func replicaPace(_ account: Int64) throws -> ReplicaPace {
    try locked {
      _ = try connected(account)
      return try read { try $0.pace(of: account) }
    }
  }

  package func setReplicaPace(_ pace: ReplicaPace, of account: Int64) throws {
    try locked {
      _ = try connected(account)
      try makeChange(.replica) { try $0.rows.setPace(pace, of: account) }
    }
  }
}

extension StoreTransaction {
  private static func pausedKey(_ account: Int64) -> String { "syncPaused.\(account)" }
  private static func limitKey(_ account: Int64) -> String { "syncLimit.\(account)" }

  fileprivate func pace(of account: Int64) throws -> ReplicaPace {
    var pace = ReplicaPace()
    pace.isPaused = try setting(Self.pausedKey(account)) != nil
    pace.limit = try numberSetting(Self.limitKey(account)).flatMap { $0 > 0 ? $0 : nil }
    return pace
  }

  func setPace(_ pace: ReplicaPace, of account: Int64) throws {
    try setSetting(Self.pausedKey(account), pace.isPaused ? "yes" : nil)
    if let limit = pace.limit {
      try setSetting(Self.limitKey(account), limit)
    } else {
      try setSetting(Self.limitKey(account), nil as String?)
    }
  }
}
