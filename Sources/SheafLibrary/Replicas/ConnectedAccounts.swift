/// The accounts whose documents other machines change, too.
struct ConnectedAccounts {
  /// By account, whether its hub is reached.
  private var accounts: [Int64: Bool] = [:]

  func contains(_ account: Int64) -> Bool { accounts[account] != nil }

  func isReached(_ account: Int64) -> Bool { accounts[account] ?? false }

  mutating func insert(_ account: Int64) { accounts[account] = false }

  mutating func remove(_ account: Int64) { accounts[account] = nil }

  /// Notes whether the hub of an account is reached.
  mutating func note(_ account: Int64, isReached: Bool) {
    if accounts[account] != nil { accounts[account] = isReached }
  }
}
