/// The accounts whose documents other machines change, too.
struct ConnectedAccounts {
  private var accounts: Set<Int64> = []

  func contains(_ account: Int64) -> Bool { accounts.contains(account) }

  mutating func insert(_ account: Int64) { accounts.insert(account) }

  mutating func remove(_ account: Int64) { accounts.remove(account) }
}
