package import SheafModel

/// Shares and their participants.
extension SheafClient {
  /// The share that an item is in; nil if it is in none.
  package func share(of item: ItemAddress) async throws -> Share? {
    try await transport.fetch(.get, "/v1/items/share", query: item.query)
  }

  package func share(_ item: ItemAddress, _ change: ShareChange) async throws -> Share {
    try await transport.fetch(.post, "/v1/items/share", query: item.query, body: change)
  }

  package func unshare(_ item: ItemAddress) async throws {
    try await transport.perform(.delete, "/v1/items/share", query: item.query)
  }

  package func leave(_ item: ItemAddress) async throws {
    try await transport.perform(.post, "/v1/items/leave", query: item.query)
  }

  package func resolve(_ item: ItemAddress) async throws {
    try await transport.perform(.post, "/v1/items/resolve", query: item.query)
  }

  package func children(of item: ItemAddress) async throws -> [FolderItem] {
    try await transport.fetch(.get, "/v1/items/children", query: item.query)
  }

  // MARK: Participants

  package func participants(_ item: ItemAddress) async throws -> [Participant] {
    try await transport.fetch(.get, "/v1/items/participants", query: item.query)
  }

  package func addParticipant(_ item: ItemAddress, _ change: ParticipantChange) async throws -> Participant {
    try await transport.fetch(.post, "/v1/items/participants", query: item.query, body: change)
  }

  package func setParticipant(_ item: ItemAddress, _ change: ParticipantChange) async throws -> Participant {
    try await transport.fetch(.patch, "/v1/items/participants", query: item.query, body: change)
  }

  package func removeParticipant(_ item: ItemAddress, _ handle: AccountHandle) async throws {
    let query = item.query + "&handle=" + PercentCoding.encode(handle.description.utf8)
    try await transport.perform(.delete, "/v1/items/participants", query: query)
  }

  // MARK: Transfers

  /// The offers of an account, and those made to it.
  ///
  /// - Parameter account: nil for the library's default account.
  package func transfers(of account: AccountHandle?) async throws -> TransferList {
    try await transport.fetch(.get, "/v1/transfers", query: ItemAddress(account: account, path: nil).query)
  }

  package func offerTransfer(_ item: ItemAddress, to handle: AccountHandle) async throws -> TransferOffer {
    try await transport.fetch(
      .post, "/v1/items/transfer", query: item.query, body: TransferRequest(handle: handle))
  }

  package func withdrawTransfer(_ item: ItemAddress) async throws {
    try await transport.perform(.delete, "/v1/items/transfer", query: item.query)
  }

  /// - Parameter account: The account to which the item is offered; nil for the library's default account.
  package func acceptTransfer(_ id: String, as account: AccountHandle?) async throws -> AcceptResult {
    let query = ItemAddress(account: account, path: nil).query
    return try await transport.fetch(.post, "/v1/transfers/accept", query: query, body: TransferAnswer(id: id))
  }

  /// - Parameter account: As of ``acceptTransfer(_:as:)``.
  package func declineTransfer(_ id: String, as account: AccountHandle?) async throws {
    let query = ItemAddress(account: account, path: nil).query
    try await transport.perform(.post, "/v1/transfers/decline", query: query, body: TransferAnswer(id: id))
  }

  // MARK: Links

  package func inviteOnce(_ item: ItemAddress, permission: SharePermission?) async throws -> OneTimeLink {
    let body = InviteRequest(permission: permission)
    return try await transport.fetch(.post, "/v1/items/one-time-links", query: item.query, body: body)
  }

  package func revokeOneTimeLinks(_ item: ItemAddress) async throws -> RevokedLinks {
    try await transport.fetchIfAny(.delete, "/v1/items/one-time-links", query: item.query) ?? RevokedLinks(count: nil)
  }

  /// The requests for access to an item; without a path, all that the account may answer.
  package func accessRequests(_ item: ItemAddress) async throws -> [AccessRequest] {
    try await transport.fetch(.get, item.path == nil ? "/v1/requests" : "/v1/items/requests", query: item.query)
  }

  /// All that an account shares and joined, its invitations, and who asks it for access.
  ///
  /// - Parameter account: nil for the library's default account.
  package func shares(of account: AccountHandle?) async throws -> AccountShares {
    try await transport.fetch(.get, "/v1/shares", query: ItemAddress(account: account, path: nil).query)
  }

  package func answer(_ item: ItemAddress, _ answer: RequestAnswer) async throws {
    try await transport.perform(.post, "/v1/items/requests", query: item.query, body: answer)
  }

  /// - Parameter account: The account that asks; nil for the library's default account.
  package func inspect(_ url: String, as account: AccountHandle?) async throws -> ShareOffer {
    let query = ItemAddress(account: account, path: nil).query
    return try await transport.fetch(.post, "/v1/links/inspect", query: query, body: LinkRequest(url: url))
  }

  /// - Parameter account: The account that joins; nil for the library's default account.
  package func accept(_ url: String, as account: AccountHandle?) async throws -> AcceptResult {
    let query = ItemAddress(account: account, path: nil).query
    return try await transport.fetch(.post, "/v1/links/accept", query: query, body: LinkRequest(url: url))
  }

  /// Declines an invitation by its link, or takes a request for access back.
  ///
  /// - Parameter account: As of ``accept(_:as:)``.
  package func decline(_ url: String, as account: AccountHandle?) async throws -> DeclinedLink {
    let query = ItemAddress(account: account, path: nil).query
    return try await transport.fetch(.post, "/v1/links/decline", query: query, body: LinkRequest(url: url))
  }
}
