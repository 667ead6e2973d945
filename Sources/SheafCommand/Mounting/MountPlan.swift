import SheafClient
import SheafLibrary
import SheafModel
import SheafMount

/// The task of `sheaf mount`, with all defaults filled in.
struct MountPlan: Sendable {
  private(set) var location: LibraryLocation
  /// Whether the library is a copy of one on read-only media (``ReadOnlyCopy``).
  private(set) var isCopy = false
  let mountpoint: Mountpoint
  /// The named account; nil for the default one.
  let account: AccountHandle?
  /// The account to make in a library without any, and its display name.
  let newAccount: AccountHandle
  let name: String?
  let readOnly: Bool
  let allowOther: Bool
  let forUser: String?
  let options: [String]

  /// The same with a copy of the library, which goes with the mount.
  func with(copyAt location: LibraryLocation) -> MountPlan {
    var plan = self
    (plan.location, plan.isCopy) = (location, true)
    return plan
  }

  /// Mounts through a process that owns the library.
  ///
  /// - Throws: ``SheafError``; `unavailable` if that process is ending.
  func mount(with client: SheafClient) async throws -> MountInfo {
    try await client.mount(
      MountRequest(
        mountpoint: mountpoint.path, account: try await ensuredAccount(client), readOnly: readOnly,
        allowOther: allowOther, forUser: forUser, options: options))
  }

  /// Checks that a mount which another process made is seen by this one: that process may live in another mount
  /// namespace (mount_namespaces(7)), as a service with a view of its own does.
  ///
  /// - Throws: ``SheafError`` of kind `invalid`.
  func verifyIsSeen(madeBy pid: Int32) throws(SheafError) {
    guard try MountTable.current().entry(at: Array(mountpoint.path.utf8))?.isSheaf ?? false else {
      throw SheafError(
        .invalid, subject: mountpoint.path,
        reason: "would be mounted where this program does not see it: process \(pid), which has \(location.path) open, "
          + "lives in another mount namespace",
        advice: "mount it there: nsenter --target \(pid) --mount sheaf mount …, or unmount the library there first")
    }
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
    // A mount of another user refuses even root.
    guard code == 0 || forUser != nil && SheafError(systemError: code, subject: "").kind == .accessDenied else {
      throw SheafError(systemError: code, subject: mountpoint.path, advice: "see \(LogFile.path(of: location))")
    }
  }

  /// The account to mount: the named one, otherwise the library's default account, or the own one of a user to whom
  /// root gives the mount. A library without accounts gets a new one.
  ///
  /// - Throws: ``SheafError`` of kind `notFound` that names the accounts.
  private func ensuredAccount(_ client: SheafClient) async throws -> AccountHandle {
    let accounts = try await client.accounts().map(\.handle)
    if accounts.isEmpty {
      return try await client.addAccount(account ?? newAccount, name: account == nil ? name : nil).handle
    }
    guard let account else {
      guard forUser != nil else { return try await client.settings().defaultAccount ?? accounts[0] }
      guard let own = DefaultAccount.own(newAccount, among: accounts) else {
        throw missing(newAccount, among: accounts)
      }
      return own
    }
    guard accounts.contains(account) else { throw missing(account, among: accounts) }
    return account
  }

  private func missing(_ account: AccountHandle, among accounts: [AccountHandle]) -> SheafError {
    let shown = accounts.prefix(Self.told).map(\.description).joined(separator: ", ")
    let rest = accounts.count > Self.told ? " and \(accounts.count - Self.told) more" : ""
    return SheafError(
      .notFound, subject: account.description,
      reason: "there is no such account in \(location.path), which has \(shown)\(rest)",
      advice: "name one with --as, or make it with: sheaf account add \(account) --library \(location.path)")
  }

  /// The most accounts that an error names.
  private static let told = 5
}
