package import NIOCore
package import SheafModel

/// A library's API, as its clients see it.
///
/// Every call throws ``SheafError``: the library's own error, or `unavailable` if the process that owns the library
/// broke off.
///
/// ```swift
/// let client = try SheafClient(socket: location.socketPath, library: location.path)
/// let versions = try await client.versions(of: ItemAddress(account: nil, path: Array("Documents/a".utf8)))
/// await client.shutdown()
/// ```
package final class SheafClient: Sendable {
  let transport: Transport

  /// - Parameters:
  ///   - socket: Path of the socket.
  ///   - library: Path of the library.
  ///   - keepsConnections: Whether a connection serves several requests. An ending process waits for such clients.
  /// - Throws: ``SheafError`` if the path cannot have a socket.
  package init(socket: String, library: String, keepsConnections: Bool = true) throws(SheafError) {
    transport = try Transport(socket: socket, library: library, keepsConnections: keepsConnections)
  }

  /// Closes the connections; the client must not be used any more.
  package func shutdown() async { await transport.shutdown() }

  // MARK: The library

  /// The server that answers.
  ///
  /// - Throws: ``SheafError`` of kind `unavailable` if none answers within `limit`.
  package func info(within limit: TimeAmount) async throws -> ServiceInfo {
    try await transport.fetch(.get, "/v1", within: limit)
  }

  package func status() async throws -> LibraryStatus { try await transport.fetch(.get, "/v1/status") }

  package func settings() async throws -> LibrarySettings { try await transport.fetch(.get, "/v1/library") }

  /// Changes settings; returns all of them.
  package func change(_ change: SettingsChange) async throws -> LibrarySettings {
    try await transport.fetch(.patch, "/v1/library", body: change)
  }

  package func accounts() async throws -> [Account] { try await transport.fetch(.get, "/v1/accounts") }

  package func addAccount(_ handle: AccountHandle, name: String?) async throws -> Account {
    try await transport.fetch(.post, "/v1/accounts", body: AccountRequest(handle: handle, name: name))
  }

  package func removeAccount(_ handle: AccountHandle) async throws {
    try await transport.perform(.delete, "/v1/accounts/" + PercentCoding.encode(handle.description.utf8))
  }

  // MARK: Mounts

  package func mounts() async throws -> [MountInfo] { try await transport.fetch(.get, "/v1/mounts") }

  package func mount(_ request: MountRequest) async throws -> MountInfo {
    try await transport.fetch(.post, "/v1/mounts", body: request)
  }

  package func unmount(_ mountpoint: String, lazy: Bool) async throws -> UnmountResult {
    let query = "mountpoint=" + PercentCoding.encode(mountpoint.utf8) + (lazy ? "&lazy=true" : "")
    return try await transport.fetch(.delete, "/v1/mounts", query: query)
  }

  // MARK: Items

  package func status(of item: ItemAddress) async throws -> ItemStatus {
    try await transport.fetch(.get, "/v1/items", query: item.query)
  }

  /// The paths of items for an account, by their ids; of deleted items the paths that they had. Items that the account
  /// does not see are left out.
  package func paths(of ids: [String], for account: AccountHandle?) async throws -> [String: String] {
    let query = ItemAddress(account: account, path: nil).query
    let answer: ItemPaths = try await transport.fetch(.post, "/v1/paths", query: query, body: PathsRequest(ids: ids))
    return answer.paths
  }

  package func versions(of item: ItemAddress) async throws -> [Version] {
    try await transport.fetch(.get, "/v1/items/versions", query: item.query)
  }

  /// Passes the bytes of a version to `sink`; those of the current one if `version` is nil.
  package func content(
    of item: ItemAddress, version: Int64?, into sink: (ByteBuffer) async throws -> Void
  ) async throws {
    let query = item.query + (version.map { "&version=\($0)" } ?? "")
    try await transport.stream(.get, "/v1/items/content", query: query, into: sink)
  }

  /// Makes an old version current again; returns the new version, nil if the contents are equal already.
  package func restore(_ item: ItemAddress, version: Int64) async throws -> Version? {
    try await transport.fetch(.post, "/v1/items/restore", query: item.query, body: RestoreRequest(version: version))
  }

  package func label(_ item: ItemAddress, name: String, version: Int64?) async throws -> Version {
    let label = LabelRequest(name: name, version: version)
    return try await transport.fetch(.put, "/v1/items/label", query: item.query, body: label)
  }

  package func deleted(_ item: ItemAddress) async throws -> [DeletedItem] {
    try await transport.fetch(.get, "/v1/deleted", query: item.query)
  }

  /// As ``deleted(_:)``, with a folder and its contents as one.
  package func deletedTrees(_ item: ItemAddress, limit: Int) async throws -> DeletedTrees {
    let query = item.query.isEmpty ? "" : item.query + "&"
    return try await transport.fetch(.get, "/v1/deleted/trees", query: query + "limit=\(limit)")
  }

  /// The extent of a purge of the whole item.
  package func purgeExtent(of item: ItemAddress) async throws -> PurgeExtent {
    try await transport.fetch(.get, "/v1/items/purge", query: item.query)
  }

  package func purge(_ item: ItemAddress, version: Int64?) async throws {
    let purge = PurgeRequest(version: version)
    try await transport.perform(.post, "/v1/items/purge", query: item.query, body: purge)
  }

  /// For how long a folder keeps things.
  package func retention(of item: ItemAddress) async throws -> Retention {
    try await transport.fetch(.get, "/v1/items/retention", query: item.query)
  }

  package func retain(_ item: ItemAddress, _ change: RetentionChange) async throws -> Retention {
    try await transport.fetch(.patch, "/v1/items/retention", query: item.query, body: change)
  }

  // MARK: Long jobs

  /// How much of the trash at or below an item, or of all of the account's, is meant.
  package func trashExtent(
    _ item: ItemAddress, _ selection: TrashSelection, progress: (Progress) -> Void
  ) async throws -> TrashExtent {
    try await job("/v1/deleted/extent", query: item.query, body: selection, progress: progress)
  }

  package func usage(of item: ItemAddress, progress: (Progress) -> Void) async throws -> UsageReport {
    try await job("/v1/usage", query: item.query, progress: progress)
  }

  /// How much of an item is on this machine.
  package func localContents(of item: ItemAddress, progress: (Progress) -> Void) async throws -> LocalContents {
    try await job("/v1/items/contents", query: item.query, progress: progress)
  }

  /// Says whether an item's contents are to be on this machine; nil for what holds elsewhere.
  package func keep(
    _ item: ItemAddress, _ isKept: Bool?, progress: (Progress) -> Void
  ) async throws -> LocalContents {
    try await job("/v1/items/keep", query: item.query, body: KeptRequest(isKept: isKept), progress: progress)
  }

  /// Gives back what an item's contents take on this machine.
  package func freeContents(of item: ItemAddress, progress: (Progress) -> Void) async throws -> FreedContents {
    try await job("/v1/items/free", query: item.query, progress: progress)
  }

  /// Finds items that meet the request, in a folder or in everything that the account sees.
  package func find(
    in item: ItemAddress, _ request: FindRequest, progress: (Progress) -> Void
  ) async throws -> FoundItems {
    try await job("/v1/find", query: item.query, body: request, progress: progress)
  }

  package func emptyTrash(
    _ item: ItemAddress, _ selection: TrashSelection, progress: (Progress) -> Void
  ) async throws -> TrashExtent {
    try await job("/v1/deleted/purge", query: item.query, body: selection, progress: progress)
  }

  /// The id of what is brought back by a path; nil for a folder that is there.
  package func recoverable(_ item: ItemAddress) async throws -> String? {
    let found: RecoverableItem = try await transport.fetch(.get, "/v1/items/recoverable", query: item.query)
    return found.id
  }

  package func recover(
    _ item: ItemAddress, id: String?, progress: (Progress) -> Void
  ) async throws -> [String] {
    try await job("/v1/items/recover", query: item.query, body: RecoverRequest(id: id), progress: progress)
  }

  /// Makes a folder what it was, or says what that would be.
  package func restoreFolder(
    _ item: ItemAddress, _ request: FolderRestoreRequest, progress: (Progress) -> Void
  ) async throws -> FolderRestoration {
    try await job("/v1/items/restore-folder", query: item.query, body: request, progress: progress)
  }

  package func check(progress: (Progress) -> Void) async throws -> CheckReport {
    try await job("/v1/check", progress: progress)
  }

  package func compact(progress: (Progress) -> Void) async throws -> CompactReport {
    try await job("/v1/compact", progress: progress)
  }

  /// - Parameter file: Absolute path of a file that does not exist.
  @discardableResult
  package func backup(to file: String, progress: (Progress) -> Void) async throws -> BackupReport {
    try await job("/v1/backup", body: BackupRequest(file: file), progress: progress)
  }

  /// Starts a job and reads its lines up to the result.
  private func job<Result: Codable & Sendable>(
    _ resource: String, query: String = "", body: (any Encodable & Sendable)? = nil, progress: (Progress) -> Void
  ) async throws -> Result {
    var lines = LineBuffer()
    var result: Result?
    try await transport.stream(.post, resource, query: query, body: body) { buffer in
      lines.append(buffer)
      while let line = lines.next() {
        switch try Transport.decode(line) as JobLine<Result> {
        case .progress(let state): progress(state)
        case .result(let value): result = value
        case .error(let error): throw error
        }
      }
    }
    guard let result else {
      throw SheafError(
        .unavailable, reason: "the process that owns the library ended before the job", advice: "try again")
    }
    return result
  }
}
