package import SheafModel

/// Which requests about shares are a hub's affair.
extension LibraryConnections {
  /// Where the hub of a path's share, or of its account, is asked; nil where it is no hub's affair.
  private func sharing(_ path: ItemPath) throws -> HubSharing? {
    switch try library.hubShare(of: path) {
    case .local: nil
    case .item(_, let account, _), .share(_, let account, _, _, _): HubSharing(try shares(of: account))
    }
  }

  package func share(_ path: ItemPath, _ change: ShareChange) async throws -> Share? {
    try await sharing(path)?.share(path, change)
  }

  /// As ``sharing(_:)``, for requests about a share that is there.
  private func sharingOfShare(_ path: ItemPath) throws -> HubSharing? {
    guard case .share(_, let account, _, _, _) = try library.hubShare(of: path) else { return nil }
    return HubSharing(try shares(of: account))
  }

  package func unshare(_ path: ItemPath) async throws -> Bool {
    try await sharingOfShare(path)?.unshare(path) != nil
  }

  package func leave(_ path: ItemPath) async throws -> Bool {
    try await sharingOfShare(path)?.leave(path) != nil
  }

  package func addParticipant(_ path: ItemPath, _ change: ParticipantChange) async throws -> Participant? {
    try await sharingOfShare(path)?.setParticipant(path, change, isNew: true)
  }

  package func setParticipant(_ path: ItemPath, _ change: ParticipantChange) async throws -> Participant? {
    try await sharingOfShare(path)?.setParticipant(path, change, isNew: false)
  }

  package func removeParticipant(_ path: ItemPath, _ handle: AccountHandle) async throws -> Bool {
    try await sharingOfShare(path)?.removeParticipant(path, handle) != nil
  }

  package func inviteOnce(_ path: ItemPath, permission: SharePermission?) async throws -> OneTimeLink? {
    try await sharingOfShare(path)?.inviteOnce(path, permission: permission)
  }

  package func revokeOneTimeLinks(_ path: ItemPath) async throws -> RevokedLinks? {
    try await sharingOfShare(path)?.revokeOneTimeLinks(path)
  }

  package func accessRequests(_ path: ItemPath) async throws -> [AccessRequest]? {
    guard case .share(_, let account, _, _, _) = try library.hubShare(of: path) else { return nil }
    return try await asked(account) { try await HubSharing($0).accessRequests(path) }
  }

  package func accessRequests(for account: AccountHandle, within limit: Duration) async throws -> [AccessRequest] {
    try await asked(account, within: limit) { try await HubSharing($0).accessRequests() } ?? []
  }

  package func answer(_ path: ItemPath, _ answer: RequestAnswer) async throws -> Bool {
    try await sharingOfShare(path)?.answer(path, answer) != nil
  }

  package func inspect(_ url: String, as account: AccountHandle) async throws -> ShareOffer? {
    try await sharing(link: url, account)?.inspect(url)
  }

  package func accept(_ url: String, as account: AccountHandle) async throws -> AcceptResult? {
    try await sharing(link: url, account)?.accept(url)
  }

  package func decline(_ url: String, as account: AccountHandle) async throws -> DeclinedLink? {
    try await sharing(link: url, account)?.decline(url)
  }

  /// The hub of an account, if a link is one of that hub, or of another one whose share the account was invited to.
  private func sharing(link url: String, _ account: AccountHandle) async throws -> HubSharing? {
    guard case .address(let address) = try ShareURL(url).place, let shares = try connected(account) else { return nil }
    if shares.own.client.device.hub.address.description == address { return HubSharing(shares) }
    func isInvited() async throws -> Bool {
      try await shares.call { library, number in try library.isElsewhere(url, for: number) }
    }
    if try await isInvited() { return HubSharing(shares) }
    // The invitation may not be here yet. A hub that is away tells of none.
    try? await shares.refresh()
    return try await isInvited() ? HubSharing(shares) : nil
  }
}
