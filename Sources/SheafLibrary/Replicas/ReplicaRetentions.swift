import Foundation
import SheafModel
import SheafStore
package import SheafWire

/// For how long folders of a connected account keep things, here, at its hub and on its other machines.
///
/// Rules:
/// 1. What is said here is noted in its own transaction (`keepUnsent.S`) until the hub has it. Until then nothing that
///    the hub tells replaces it.
/// 2. What the hub tells replaces what else is said here of folders that the hub has. What it does not have yet is noted
///    for it.
/// 3. When both are compared for the first time, or after the hub went back, the longer span of both counts, and the hub
///    is told where it is the one from here. Of a folder of which the hub says nothing, that is what the folders around it
///    or its rules say: connecting a machine, or what was taken back since, shortens nothing there.
///
/// Rooms: `ConnectedAccounts`.
extension Library {
  /// What ``hubKey(_:)`` has beside spans.
  private static let olderHub = "older"
  private static let formerHub = "former"
  private static let forever = "forever"

  /// What a connected account's hub keeps where no folder says anything; without it nothing was compared.
  private static func hubKey(_ account: Int64) -> String { "hubKeeps.\(account)" }
  private static func unsentKey(_ item: Int64) -> String { "\(RetentionPolicy.unsentKey).\(item)" }

  // MARK: - For people

  /// Notes that the hub of an item's owner is to be told what the item says; also where the account is disconnected, for
  /// when it is connected again.
  func requestRetention(of item: Int64, _ change: Change) throws {
    guard let row = try change.rows.item(item),
      let replica = try change.rows.replica(row.owner) ?? change.rows.formerReplica(row.owner), replica.share == nil
    else { return }
    try change.rows.setSetting(Self.unsentKey(item), row.owner)
    wakeReplica(of: row.owner, change)
  }

  /// What holds for a folder at the hub of its owner; nil where the owner is not connected.
  func hubRetention(of folder: Inode) throws -> HubRetention? {
    guard let row = try item(of: folder), let replica = try read({ try $0.replica(row.owner) }), replica.share == nil
    else { return nil }
    let isReached = connectedAccounts.isSending(row.owner)
    guard let text = try read({ try $0.setting(Self.hubKey(row.owner)) }) else {
      return HubRetention(state: .unknown, isReached: isReached)
    }
    if text == Self.olderHub { return HubRetention(state: .older, isReached: isReached) }
    if try hubID(of: row) == nil, let id = WireID(bytes: row.uuid.bytes) {
      var tree = try ReplicaTree(self, replica)
      if try tree.local(id)?.readiness == .never { return HubRetention(state: .absent, isReached: isReached) }
    }
    if try isUnsent(around: folder) { return HubRetention(state: .waiting, isReached: isReached) }
    let (said, around) = try read { transaction in
      var policy = try RetentionPolicy(transaction)
      let said = try policy.saidSpans(in: folder.ino, transaction)
      return (said, try policy.saidSpans(in: folder.row.parent, transaction))
    }
    let rules = text.split(separator: " ").map { Int64($0) }
    guard rules.count == 2 else { return HubRetention(state: .unknown, isReached: isReached) }
    return HubRetention(
      state: .told, isReached: isReached, keepDeleted: said.deleted ?? rules[0],
      keepVersions: said.versions ?? rules[1], aroundKeepDeleted: around.deleted ?? rules[0],
      aroundKeepVersions: around.versions ?? rules[1])
  }

  /// Whether the hub does not know yet what a folder or one around it says.
  private func isUnsent(around folder: Inode) throws -> Bool {
    let unsent = try read { Set(try $0.numberSettings(after: RetentionPolicy.unsentKey + ".").map { $0.key }) }
    guard !unsent.isEmpty else { return false }
    var isUnsent = false
    try ascend(from: folder.ino) { folder in
      isUnsent = folder.row.item.map { unsent.contains("\($0)") } ?? false
      return !isUnsent
    }
    return isUnsent
  }

  // MARK: - For the replica

  /// The id by which a hub has an item; nil for one that it does not have yet.
  private func hubID(of item: ItemRow) throws -> WireID? {
    if try inode(documents(ofConnected: item.owner)).row.item == item.id { return .root }
    guard let id = WireID(bytes: item.uuid.bytes),
      try read({ try $0.replicaItem(of: item.owner, id.bytes) }).base != nil
    else { return nil }
    return id
  }

  /// What folders say and the hub is to be told, but for folders that it does not have yet.
  package func waitingRetentions(of account: Int64) throws -> [FolderRetention] {
    try locked {
      let noted = try read { try $0.numberSettings(after: RetentionPolicy.unsentKey + ".") }
        .filter { $0.value == account }.compactMap { Int64($0.key) }
      if noted.isEmpty { return [] }
      let policy = try read { try RetentionPolicy($0) }
      var waiting: [FolderRetention] = []
      var gone: [Int64] = []
      for number in noted {
        guard let item = try read({ try $0.item(number) }), item.owner == account else {
          gone.append(number)
          continue
        }
        guard let id = try hubID(of: item) else { continue }
        let said = policy.ownSpans(of: number)
        waiting.append(FolderRetention(item: id, keepDeleted: said.deleted, keepVersions: said.versions))
      }
      if !gone.isEmpty {
        try makeChange(.replica) { [gone] change in
          for number in gone { try change.rows.setSetting(Self.unsentKey(number), nil as String?) }
        }
      }
      return waiting
    }
  }

  /// Notes that the hub knows what a folder says, unless it says something else by now.
  package func noteSent(_ folder: FolderRetention, of account: Int64) throws {
    try locked {
      guard let item = try retainingItem(folder.item, of: account) else { return }
      let said = try read { try RetentionPolicy($0) }.ownSpans(of: item)
      guard said.deleted == folder.keepDeleted, said.versions == folder.keepVersions else { return }
      try makeChange(.replica) { try $0.rows.setSetting(Self.unsentKey(item), nil as String?) }
    }
  }

  /// The item of a folder by the id that the hub has of it; nil where it is not here.
  private func retainingItem(_ id: WireID, of account: Int64) throws -> Int64? {
    let found: Inode? = try id == .root ? inode(documents(ofConnected: account)) : replicaInode(id, of: account)
    guard let found, found.isFolder else { return nil }
    return found.row.item
  }

  /// Notes that a hub knows of no spans of folders: it keeps things by its own rules alone.
  package func noteOlderHub(of account: Int64) throws {
    try locked {
      _ = try connected(account)
      guard try read({ try $0.setting(Self.hubKey(account)) }) != Self.olderHub else { return }
      try makeChange(.replica) { try $0.rows.setSetting(Self.hubKey(account), Self.olderHub) }
    }
  }

  /// Forgets what the hub of an account keeps: what is said here and there is compared for the first time.
  func forgetHubRetention(of account: Int64, _ change: Change) throws {
    try change.rows.setSetting(Self.hubKey(account), nil as String?)
  }

  /// Notes that the hub of an account went back: what is said here and there is compared anew.
  func noteFormerHub(of account: Int64, _ change: Change) throws {
    guard let known = try change.rows.setting(Self.hubKey(account)), known != Self.olderHub else { return }
    try change.rows.setSetting(Self.hubKey(account), Self.formerHub)
  }

  /// Takes over what the hub tells that folders of an account say.
  ///
  /// - Returns: whether all of these folders are here.
  package func noteRetentions(_ list: RetentionList, of account: Int64) throws -> Bool {
    try locked {
      _ = try connected(account)
      var told: [Int64: RetentionPolicy.Said] = [:]
      var isWhole = true
      for folder in list.folders {
        if let item = try retainingItem(folder.item, of: account) {
          told[item] = RetentionPolicy.Said(deleted: folder.keepDeleted, versions: folder.keepVersions)
        } else {
          isWhole = false
        }
      }
      let known = try read { try $0.setting(Self.hubKey(account)) }
      var hub = RetentionPolicy(
        said: told, otherwise: .init(deleted: list.keepDeleted ?? .max, versions: list.keepVersions ?? .max))
      let compares = known == nil || known == Self.olderHub || known == Self.formerHub
      let (policy, noted) = try read { transaction in
        (
          try RetentionPolicy(transaction),
          Set(try transaction.numberSettings(after: RetentionPolicy.unsentKey + ".").map { $0.key })
        )
      }
      var news: [(item: Int64, said: RetentionPolicy.Said, isUnsent: Bool)] = []
      for number in Set(told.keys).union(policy.items) where !noted.contains("\(number)") {
        guard let item = try read({ try $0.item(number) }), item.owner == account else { continue }
        let (here, there) = (policy.ownSpans(of: number), told[number] ?? RetentionPolicy.Said())
        if here == there { continue }
        let isNew = try hubID(of: item) == nil
        let wanted =
          if isNew {
            here.longer(there, RetentionPolicy.Spans(deleted: 0, versions: 0))
          } else if compares {
            try here.longer(there, read { try hub.spans(ofItem: number, $0) })
          } else {
            there
          }
        news.append((number, wanted, wanted != there))
      }
      let rules = [list.keepDeleted, list.keepVersions].map { $0.map { "\($0)" } ?? Self.forever }
        .joined(separator: " ")
      if news.isEmpty, known == rules { return isWhole }
      try makeChange(.replica) { [news] change in
        try change.rows.setSetting(Self.hubKey(account), rules)
        for (item, said, isUnsent) in news {
          try setSpan(said.deleted, RetentionPolicy.deletedKey, of: item, change)
          try setSpan(said.versions, RetentionPolicy.versionsKey, of: item, change)
          if isUnsent { try change.rows.setSetting(Self.unsentKey(item), account) }
        }
      }
      return isWhole
    }
  }

  private func setSpan(_ span: Int64?, _ key: String, of item: Int64, _ change: Change) throws {
    if let span {
      try change.rows.setSetting("\(key).\(item)", span)
    } else {
      try change.rows.setSetting("\(key).\(item)", nil as String?)
    }
  }
}

extension RetentionPolicy.Said {
  /// The longer one of each span; one that only a hub says, or that is said only here and is not shorter than `shortest`.
  fileprivate func longer(_ hub: Self, _ shortest: RetentionPolicy.Spans) -> Self {
    func longer(_ span: Int64?, _ hub: Int64?, _ shortest: Int64) -> Int64? {
      if let hub { return max(span ?? hub, hub) }
      return span.flatMap { $0 >= shortest ? $0 : nil }
    }
    return Self(
      deleted: longer(deleted, hub.deleted, shortest.deleted),
      versions: longer(versions, hub.versions, shortest.versions))
  }
}
