import SheafClient
import SheafLibrary
import SheafModel

/// What `sheaf mount` was asked to do, with all defaults filled in.
struct MountPlan: Sendable {
  let location: LibraryLocation
  let mountpoint: Mountpoint
  /// The account that was named; nil for the default one.
  let account: AccountHandle?
  let defaultAccount: AccountHandle
  /// Display name of the default account.
  let name: String?
  let readOnly: Bool
  let allowOther: Bool
  let forUser: String?
  let options: [String]

  /// Mounts through a process that owns the library.
  ///
  /// - Throws: ``SheafError``; `unavailable` where that process is ending.
  func mount(with client: SheafClient) async throws -> MountInfo {
    try await client.mount(
      MountRequest(
        mountpoint: mountpoint.path, account: try await ensuredAccount(client), readOnly: readOnly,
        allowOther: allowOther, forUser: forUser, options: options))
  }

  /// Checks that the mount answers.
  ///
  /// - Throws: ``SheafError`` of kind `unavailable`.
  func verify() throws(SheafError) {
    guard let code = MountProbe.status(of: mountpoint.path + "/Documents") else {
      throw SheafError(
        .unavailable, subject: mountpoint.path,
        reason: "is mounted, but does not answer within \(Int(MountProbe.patience)) s",
        advice: "see \(LogFile.path(of: location))")
    }
    // A mount that belongs to another user refuses even root.
    guard code == 0 || forUser != nil && SheafError(code: code, subject: "").kind == .accessDenied else {
      throw SheafError(code: code, subject: mountpoint.path, advice: "see \(LogFile.path(of: location))")
    }
  }

  /// The account to mount, made at need where it is the default one or the first of a new library.
  private func ensuredAccount(_ client: SheafClient) async throws -> AccountHandle {
    let accounts = try await client.accounts()
    guard let account else {
      if let existing = DefaultAccount.existing(defaultAccount, among: accounts) { return existing }
      return try await client.addAccount(defaultAccount, name: name).handle
    }
    if accounts.isEmpty { return try await client.addAccount(account, name: nil).handle }
    guard accounts.contains(where: { $0.handle == account }) else {
      throw SheafError(
        .notFound, subject: account.description, reason: "there is no such account in \(location.path)",
        advice: "make it with: sheaf account add \(account)")
    }
    return account
  }
}
