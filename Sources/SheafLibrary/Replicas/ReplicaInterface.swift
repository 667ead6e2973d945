package import SheafModel
package import SheafReplica
package import SheafStore
package import SheafWire

/// How far a connected account is with its hub.
package struct ReplicaCounts: Hashable, Sendable {
  /// Items that changed here and that the next plan compares with what the hub has.
  package let changes: Int64
  /// Those of these that are as the hub has them, as what was just received is; 0 where there are too many to compare.
  package var settled: Int64 = 0
  /// Large documents that were closed and of which the version is not made yet.
  package let saves: Int64
  /// Sends without an answer, and what else the hub is to do.
  package let sends: Int64
  /// Items of which the hub told something that is not shown yet.
  package let news: Int64
  /// Items whose earlier versions are to be compared with the hub.
  package let histories: Int64

  /// Items and requests that the hub does not have yet, as far as that is known.
  package var unsent: Int64 { changes - settled + sends }
}

/// Contents of a version that came from the hub.
package enum ReceivedContents: Hashable, Sendable {
  /// All of them.
  case bytes([UInt8])
  /// An open file without a name that has them (``ReplicaInterface/beginContents(of:)``).
  case file(UInt64)
}

/// What planning came to.
package enum ReplicaProgress: Hashable, Sendable {
  /// There are steps or sends now, or there may be more to plan.
  case planned([ReplicaNotice])
  /// Everything is as the hub has it, but what `waiting` says: items that may change still, such as new files.
  case settled(waiting: Int)
}

/// What of that which changed here is to be sent.
package enum PlannedSends: Hashable, Sendable {
  case all
  /// Everything but that of which these items are a part.
  case allBut(Set<WireID>)
  /// What the hub takes even if it has no room for the account any more.
  case deletions
}

/// A send that waits for its answer.
package struct ReplicaSend: Hashable, Sendable {
  package let send: Send
  /// The serial of the first one of its group.
  package let first: Int64
}

/// The interface of a library for replicas: what this machine and a hub agree on, by the ids that both use.
///
/// A replica does one thing after the other, each in a transaction: it carries out the steps of a plan
/// (``step(of:)``, ``carryOut(_:_:of:contents:)``), sends and takes verdicts (``sends(of:limit:)``, ``settle(_:of:)``),
/// reads the feed (``note(_:of:)``), and plans (``plan(_:sending:)``) when no step and no send is left. When there is nothing to
/// plan, it tells the hub for how long folders keep things (``waitingRetentions(of:)``), has it do what else was asked for
/// (``replicaRequests(of:limit:)``), and compares histories (``nextHistory(of:toldBefore:)``).
package protocol ReplicaInterface: AnyObject, Sendable {
  func connect(_ account: Int64, zone: WireID, hub: String) throws
  func disconnect(_ account: Int64) throws
  func replicas() throws -> [ReplicaRow]
  func replica(_ account: Int64) throws -> ReplicaRow?
  func raiseSerial(to serial: Int64, of account: Int64) throws
  func replicaCounts(_ account: Int64) throws -> ReplicaCounts
  func replicaPath(_ item: WireID, of account: Int64) throws -> String?
  func isDecided(_ copy: WireID, of account: Int64) throws -> Bool?
  func replicaPace(_ account: Int64) throws -> ReplicaPace
  func noteSending(_ isSending: Bool, _ account: Int64)
  func setReplicaPace(_ pace: ReplicaPace, of account: Int64) throws

  func note(_ page: FeedPage, of account: Int64) throws
  func noteListed(_ states: [ItemState], begins: Bool, of account: Int64) throws
  func endListing(token: String, read: Int64, of account: Int64) throws
  func noteAll(_ states: [ItemState], token: String, of account: Int64) throws
  func reread(_ account: Int64, isGone: Bool) throws
  func plan(_ account: Int64, sending sends: PlannedSends) throws -> ReplicaProgress

  func step(of account: Int64) throws -> (number: Int64, step: ReplicaStep)?
  func needsContents(_ step: ReplicaStep, of account: Int64) throws -> (item: WireID, version: ItemVersion)?
  func beginContents(of account: Int64) throws -> UInt64
  func versionsHere(ofItem id: WireID, like size: Int64, of account: Int64) throws -> [(version: WireID, size: Int64)]
  func copy(
    _ parts: [ContentCopies.Copy], of version: WireID, ofItem id: WireID, size: Int64, to handle: UInt64,
    of account: Int64
  ) throws -> Bool
  func carryOut(_ number: Int64, _ step: ReplicaStep, of account: Int64, contents: ReceivedContents?) throws -> Bool
  func makeTogether(of account: Int64, contents: (ItemVersion) -> [UInt8]?) throws -> Int

  func neededContents(of account: Int64, limit: Int) throws -> [(item: WireID, version: ItemVersion)]
  func take(_ absent: AbsentContents, contents handle: UInt64, of account: Int64) throws
  func wantedContents(of account: Int64, after id: Int64) throws -> (wanted: AbsentContents?, next: Int64?)
  func requireRoom(forContents bytes: Int64) throws
  func freeBeyondLimit() throws
  func fetchesHistory(_ due: DueHistory, of account: Int64) throws -> Bool

  func replicaRequests(of account: Int64, limit: Int) throws -> [ReplicaRequest]
  func remove(_ request: ReplicaRequest, isDone: Bool, of account: Int64) throws
  func nextHistory(of account: Int64, toldBefore number: Int64) throws -> DueHistory?
  func compareHistory(_ due: DueHistory, with list: VersionList, of account: Int64) throws -> HistoryComparison
  func addVersion(_ version: ItemVersion, to due: DueHistory, of account: Int64, contents: ReceivedContents?) throws
  func finishHistory(_ due: DueHistory, _ list: VersionList, of account: Int64) throws

  func noteRetentions(_ list: RetentionList, of account: Int64) throws -> Bool
  func noteOlderHub(of account: Int64) throws
  func waitingRetentions(of account: Int64) throws -> [FolderRetention]
  func noteSent(_ folder: FolderRetention, of account: Int64) throws

  func noteLogs(_ heads: [HubLogHead], of account: Int64) throws
  func logPositions(of account: Int64) throws -> [HubLogPosition]
  func note(
    _ page: LogPage<Event>, ofShare share: WireID?, of account: Int64, device: String, isAnew: Bool) throws
  func readMarks(of account: Int64) throws -> [SentReadMarks.Mark]
  func noteRead(_ marks: [SentReadMarks.Mark], of account: Int64) throws

  func sends(of account: Int64, limit: Int) throws -> [ReplicaSend]
  func versionReader(_ version: WireID, ofItem item: WireID, of account: Int64) throws -> VersionReader?
  func sameRanges(_ version: WireID, _ other: WireID, ofItem item: WireID, of account: Int64) throws -> [Range<Int64>]
  func withdrawSends(from first: Int64, of account: Int64) throws
  func settle(_ verdicts: [Verdict], of account: Int64) throws -> [ReplicaNotice]
}
