package import SheafModel

/// The interface of a library for commands and the API: items by path, in the name of an account.
///
/// Every function takes the lock itself, and is documented where it is implemented.
package protocol PathInterface: AnyObject, Sendable {
  var location: LibraryLocation { get }
  var id: String { get }
  func openFolder() throws(SheafError) -> CInt

  // MARK: - Accounts

  func number(of handle: AccountHandle) throws -> Int64
  func accounts() throws -> [Account]
  func addAccount(_ handle: AccountHandle, name: String?) throws -> Account
  func addAccount(_ handle: AccountHandle, name: String?, uid: UInt32, gid: UInt32) throws -> Account
  func removeAccount(_ handle: AccountHandle) throws
  func settings() throws -> LibrarySettings
  func change(_ change: SettingsChange) throws -> LibrarySettings

  /// The mounts that nobody took away; empty where the library lies elsewhere than when they were made.
  func rememberedMounts() throws -> [MountRequest]
  /// Forgets the mount at a mount point; returns whether it was remembered.
  func forgetMount(at mountpoint: String) throws -> Bool

  // MARK: - Items

  func path(ofItem id: String, for handle: AccountHandle, isExact: Bool) throws -> ItemPath

  // MARK: - Versions and deleted items

  func deletedTrees(_ handle: AccountHandle, below path: ItemPath?, limit: Int) throws -> DeletedTrees
  func deleted(_ handle: AccountHandle, below path: ItemPath?) throws -> [DeletedItem]
  func purge(_ path: ItemPath, version number: Int64?) throws
  func versions(_ path: ItemPath) throws -> [Version]
  func versionReader(_ path: ItemPath, number: Int64?) throws -> VersionReader
  func read(
    _ reader: VersionReader, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
  ) throws -> Int
  func restore(_ path: ItemPath, version number: Int64) throws -> Version?
  func restoreFolder(
    _ path: ItemPath, _ request: FolderRestoreRequest, progress: (SheafModel.Progress) -> Void
  ) throws -> FolderRestoration
  func label(_ path: ItemPath, name: String, version number: Int64?) throws -> Version
  func purgeExtent(_ path: ItemPath) throws -> PurgeExtent
  func trashExtent(
    _ handle: AccountHandle, below path: ItemPath?, _ selection: TrashSelection,
    progress: (SheafModel.Progress) -> Void
  ) throws -> TrashExtent
  func emptyTrash(
    _ handle: AccountHandle, below path: ItemPath?, _ selection: TrashSelection,
    progress: (SheafModel.Progress) -> Void
  ) throws -> TrashExtent
  func retention(_ path: ItemPath) throws -> Retention
  func retain(_ path: ItemPath, _ change: RetentionChange) throws -> Retention
  func usage(
    _ handle: AccountHandle, of path: ItemPath?, progress: (SheafModel.Progress) -> Void
  ) throws -> UsageReport
  func find(
    _ handle: AccountHandle, in path: ItemPath?, _ request: FindRequest, progress: (SheafModel.Progress) -> Void
  ) throws -> FoundItems
  func recoverable(_ path: ItemPath) throws -> RecoverableItem
  func recover(_ path: ItemPath, id: String?, progress: (SheafModel.Progress) -> Void) throws -> [String]

  // MARK: - Contents on demand

  func setKept(_ path: ItemPath, _ isKept: Bool?) throws
  func localContents(_ path: ItemPath, progress: (SheafModel.Progress) -> Void) throws -> LocalContents
  func freeContents(_ path: ItemPath, progress: (SheafModel.Progress) -> Void) throws -> FreedContents

  // MARK: - Sharing

  func itemStatus(_ path: ItemPath) throws -> ItemStatus
  func resolveConflict(_ path: ItemPath) throws
  func children(_ path: ItemPath) throws -> [FolderItem]
  func inspect(_ url: String, as handle: AccountHandle) throws -> ShareOffer
  func accept(_ url: String, as handle: AccountHandle) throws -> AcceptResult
  func inviteOnce(_ path: ItemPath, permission: SharePermission?) throws -> OneTimeLink
  @discardableResult func revokeOneTimeLinks(_ path: ItemPath) throws -> Int
  func accessRequests(_ path: ItemPath) throws -> [AccessRequest]
  func accessRequests(for handle: AccountHandle) throws -> [AccessRequest]
  func shares(of handle: AccountHandle) throws -> AccountShares
  func answer(_ path: ItemPath, _ answer: RequestAnswer) throws
  func offerTransfer(_ path: ItemPath, to handle: AccountHandle) throws -> TransferOffer
  func withdrawTransfer(_ path: ItemPath) throws
  func declineTransfer(_ id: String, as handle: AccountHandle) throws
  func acceptTransfer(_ id: String, as handle: AccountHandle) throws -> AcceptResult
  func transfers(of handle: AccountHandle) throws -> TransferList
  func participants(_ path: ItemPath) throws -> [Participant]
  func addParticipant(_ path: ItemPath, _ change: ParticipantChange) throws -> Participant
  func setParticipant(_ path: ItemPath, _ change: ParticipantChange) throws -> Participant
  func removeParticipant(_ path: ItemPath, _ handle: AccountHandle) throws
  func leave(_ path: ItemPath) throws
  func decline(_ url: String, as handle: AccountHandle) throws -> DeclinedLink
  func share(_ path: ItemPath, _ change: ShareChange) throws -> Share
  func unshare(_ path: ItemPath) throws
  func share(of path: ItemPath) throws -> Share?

  // MARK: - Events

  func comment(_ path: ItemPath, text: String) throws -> ItemComment
  func events(
    after position: Int64?, limit: Int, for account: AccountHandle?, in scope: EventScope, isNews: Bool
  ) throws -> EventPage
  func eventStart(after position: Int64?) throws -> Int64
  func latestEvents(
    before position: Int64, after start: Int64, limit: Int, for account: AccountHandle?,
    in scope: EventScope
  ) throws -> [Event]
  func observeEvents(_ observer: @escaping @Sendable (EventNews) -> Void) -> Int
  func endObservingEvents(_ number: Int)
  var lastEvent: Int64 { get }
  func eventScope(_ path: ItemPath) throws -> EventScope
  func notices(for account: AccountHandle) throws -> NoticeList
  func clearNotices(for account: AccountHandle, through sequence: Int64) throws
  func webhooks() throws -> [Webhook]
  func webhooks(of handle: AccountHandle) throws -> [Webhook]
  func addWebhook(for handle: AccountHandle, _ request: WebhookRequest) throws -> Webhook
  func removeWebhook(_ id: String, of handle: AccountHandle) throws

  // MARK: - Upkeep

  func compact(progress: (SheafModel.Progress) -> Void) throws -> CompactReport
  func counts() throws -> LibraryCounts
  func check(progress: (SheafModel.Progress) -> Void) throws -> CheckReport
  @discardableResult func backup(to file: String, progress: (SheafModel.Progress) -> Void) throws -> BackupReport
  var lockHolds: LockHolds { get }
}
