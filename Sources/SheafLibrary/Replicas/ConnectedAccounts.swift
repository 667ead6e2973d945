/// The accounts whose documents other machines change, too.
struct ConnectedAccounts {
  /// By account, whether its hub takes what was done here.
  private var accounts: [Int64: Bool] = [:]

  func contains(_ account: Int64) -> Bool { accounts[account] != nil }

  func isSending(_ account: Int64) -> Bool { accounts[account] ?? false }

  mutating func insert(_ account: Int64) { accounts[account] = false }

  mutating func remove(_ account: Int64) { accounts[account] = nil }

  /// Notes whether the hub of an account takes what was done here: it is reached, and has room.
  mutating func note(_ account: Int64, isSending: Bool) {
    if accounts[account] != nil { accounts[account] = isSending }
  }
}
