import Foundation
import SheafModel
import SheafStore
package import SheafWire

/// Something that the hub is to do besides sends.
package struct ReplicaRequest: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    /// A version is to have a label.
    case label(WireID, String)
    /// A version is to be destroyed for good.
    case purgeVersion(WireID)
    /// The item is to be destroyed for good, with all that it had.
    case purge
    case comment(SentComment)
  }

  package let item: WireID
  package let kind: Kind
  /// Nil for a comment.
  fileprivate let row: ReplicaRequestRow?
}

/// What people did with versions of a connected account and the hub is to do, too. It is noted in the transaction of the
/// deed itself, and stays until the hub has done it.
///
/// Rooms: `Numbers`.
extension Library {
  /// - Returns: The replica of the account that owns an item, if it is connected. What is in a share of somebody elsewhere
  ///   is for its owner to destroy.
  private func replica(of item: ItemRow, _ change: Change) throws -> ReplicaRow? {
    guard !item.isQuiet, let replica = try change.rows.replica(item.owner), replica.share == nil else { return nil }
    return replica
  }

  /// Notes that a version has a label, here or in a share of somebody elsewhere; also where the account is disconnected,
  /// for when it is connected again.
  func requestLabel(_ label: String, ofVersion number: Int64, _ item: ItemRow, _ change: Change) throws {
    guard !item.isQuiet,
      let replica = try change.rows.replica(item.owner) ?? change.rows.formerReplica(item.owner),
      let version = try replicaVersions(of: item, replica).ids[number]
    else { return }
    // It is one version's. Of two requests the later to arrive would win.
    for other in try change.rows.replicaRequests(of: item.owner, item: item.uuid.bytes)
    where other.label == label && other.version != version.bytes {
      try change.rows.remove(other, of: item.owner)
    }
    try change.rows.set(
      ReplicaRequestRow(item: item.uuid.bytes, version: version.bytes, label: label), of: item.owner)
    wakeReplica(of: item.owner, change)
  }

  /// Notes that somebody commented on an item, here or in a share of somebody elsewhere. The event waits with it.
  func requestComment(
    _ text: String, _ data: EventData, on item: ItemRow, by actor: Int64, _ change: Change
  ) throws {
    let (id, time) = (UUID.timeOrdered(change.time), change.time)
    try change.rows.insert(
      ReplicaCommentRow(item: item.uuid.bytes, id: id.bytes, time: time, text: text), of: item.owner)
    try change.rows.insertWaiting(
      EventRow(
        number: numbers.nextPending(), uuid: id, type: EventType.comment.rawValue, time: time, actor: actor,
        owner: item.owner, item: item.id, data: data.json, share: data.share, process: 0))
    wakeReplica(of: item.owner, change)
  }

  /// Notes that a version was destroyed for good, if the hub may have it.
  func requestPurge(ofVersion number: Int64, _ item: ItemRow, _ change: Change) throws {
    guard let replica = try replica(of: item, change),
      case let versions = try replicaVersions(of: item, replica), let version = versions.ids[number],
      !versions.unsent.contains(where: { $0.id == version })
    else { return }
    try change.rows.set(ReplicaRequestRow(item: item.uuid.bytes, version: version.bytes, label: nil), of: item.owner)
    wakeReplica(of: item.owner, change)
  }

  /// Notes that an item was destroyed for good. What the hub has of it is to go even if it keeps the item, since that was
  /// changed elsewhere before.
  func requestPurge(of inode: Inode, _ change: Change) throws {
    guard let item = try item(of: inode), try replica(of: item, change) != nil else { return }
    for version in try [[]] + notedVersions(of: item).values.map(\.bytes) {
      try change.rows.set(ReplicaRequestRow(item: item.uuid.bytes, version: version, label: nil), of: item.owner)
    }
    try change.rows.removeReplicaHistory(of: item.owner, item.uuid.bytes)
    wakeReplica(of: item.owner, change)
  }

  /// Notes the labels that versions of an account have, for a hub that may not have them.
  func requestLabels(of replica: ReplicaRow, _ change: Change) throws {
    for id in try change.rows.labelledItems(of: replica.account) {
      guard let item = try change.rows.item(id), !item.isQuiet else { continue }
      try requestLabels(of: item, replica, change)
    }
  }

  func requestLabels(of item: ItemRow, _ replica: ReplicaRow, _ change: Change) throws {
    let versions = try replicaVersions(of: item, replica).ids
    for (number, label) in try change.rows.labels(item.id) {
      guard let version = versions[number] else { continue }
      try change.rows.set(
        ReplicaRequestRow(item: item.uuid.bytes, version: version.bytes, label: label), of: item.owner)
    }
  }

  /// Asks the hub for the labels of an item that has another id now. What it was to destroy of the former one is gone.
  ///
  /// - Parameter item: As it was before.
  func renewRequests(of item: ItemRow, _ replica: ReplicaRow, _ change: Change) throws {
    let requests = try change.rows.replicaRequests(of: item.owner, item: item.uuid.bytes)
    guard !requests.isEmpty, let renewed = try change.rows.item(item.id) else { return }
    for request in requests { try change.rows.remove(request, of: item.owner) }
    try requestLabels(of: renewed, replica, change)
  }

  /// Has the replica of an account look what there is to do.
  func wakeReplica(of account: Int64, _ change: Change) {
    change.whenRecorded { [self] in
      if let documents = try? documents(ofConnected: account) { tell(.appearance(documents), from: 0) }
    }
  }

  // MARK: - For the replica

  /// Requests that are looked at with the lock held.
  private static let requestStep = 256

  /// What the hub is to do, some of it: without labels of versions that it does not have yet.
  package func replicaRequests(of account: Int64, limit: Int) throws -> [ReplicaRequest] {
    try locked {
      let replica = try connected(account)
      var requests: [ReplicaRequest] = []
      // An item that is to be destroyed comes before its versions.
      var waiting: [UInt8]?
      for row in try read({ try $0.replicaRequests(of: account, limit: Self.requestStep) }) {
        guard requests.count < limit, row.item != waiting, let item = WireID(bytes: row.item) else { continue }
        let kind: ReplicaRequest.Kind
        switch (WireID(bytes: row.version), row.label) {
        case (let version?, let label?):
          if let inode = try replicaInode(item, of: account), let known = try self.item(of: inode),
            try replicaVersions(of: known, replica).unsent.contains(where: { $0.id == version })
          {
            continue
          }
          kind = .label(version, label)
        case (let version?, nil): kind = .purgeVersion(version)
        case (nil, _):
          if try read({ try $0.hasReplicaChange(of: account, row.item) }) {
            waiting = row.item
            continue
          }
          kind = .purge
        }
        requests.append(ReplicaRequest(item: item, kind: kind, row: row))
      }
      // A hub that went back may have lost what they are about.
      for row in replica.rereads ? [] : try read({ try $0.replicaComments(of: account, limit: limit) }) {
        guard requests.count < limit, let item = WireID(bytes: row.item), let id = WireID(bytes: row.id),
          try !read({ try $0.hasReplicaChange(of: account, row.item) })
        else { continue }
        let isAll = try replicaInode(item, of: account)?.ino == documents(ofConnected: account)
        let entry = try ReplicaTree(self, replica).entry(item)
        let comment = SentComment(
          id: id, text: row.text, time: row.time.nanoseconds,
          outside: entry.map { row.time.nanoseconds <= $0.time } ?? false ? true : nil)
        requests.append(ReplicaRequest(item: isAll ? .root : item, kind: .comment(comment), row: nil))
      }
      return requests
    }
  }

  /// Notes that the hub has done something, or never will. Of an item that it has destroyed, nothing else is asked for.
  /// Where it refuses a label, the labels are as the hub has them again.
  package func remove(_ request: ReplicaRequest, isDone: Bool, of account: Int64) throws {
    try locked {
      try makeChange(.replica) { change in
        if let row = request.row {
          let endsItem = isDone && request.kind == .purge
          let rows = endsItem ? try change.rows.replicaRequests(of: account, item: row.item) : [row]
          for row in rows { try change.rows.remove(row, of: account) }
        }
        if case .label = request.kind, !isDone { try noteLabels(of: request.item, account, change) }
        if case .comment(let comment) = request.kind {
          try change.rows.removeReplicaComment(comment.id.bytes, of: account)
        }
      }
    }
  }
}
