internal import Foundation
internal import SheafModel

/// A row of `replica_histories`: an item whose versions at the hub are to be compared with those here.
package struct ReplicaHistoryRow: Hashable, Sendable {
  /// 16 bytes.
  package let item: [UInt8]
  /// The number of the hub's state that told of it; -1 for a folder that is destroyed once nothing is in it.
  package var told: Int64
  /// Of the versions up to this number, those that are missing here were here once, or were compared.
  package var after: Int64
  /// Whether also the versions up to that number are looked at: for their labels and numbers, and which were purged.
  package var isWhole: Bool
  /// The hub's state of an item that was deleted there and never was here; JSON.
  package var state: String?

  package init(item: [UInt8], told: Int64, after: Int64, isWhole: Bool, state: String? = nil) {
    self.item = item
    self.told = told
    self.after = after
    self.isWhole = isWhole
    self.state = state
  }

  fileprivate init(_ row: Row) throws {
    item = try row.uuid(0).bytes
    told = try row[1]
    after = try row[2]
    isWhole = try row[3] as Int64 != 0
    state = try row[4]
  }
}

/// A row of `replica_requests`: what the hub is to do besides sends.
package struct ReplicaRequestRow: Hashable, Sendable {
  /// 16 bytes.
  package let item: [UInt8]
  /// 16 bytes; none for the item with all that it had.
  package let version: [UInt8]
  /// The label that the version is to have; nil if it is to be destroyed for good.
  package let label: String?

  package init(item: [UInt8], version: [UInt8], label: String?) {
    self.item = item
    self.version = version
    self.label = label
  }
}

/// The histories of connected accounts' items (docs/FORMAT.md, Replicas).
extension StoreTransaction {
  private static let columns = "item, told, after, whole, state"

  package func replicaHistory(of account: Int64, _ item: [UInt8]) throws -> ReplicaHistoryRow? {
    try first(
      "SELECT \(Self.columns) FROM replica_histories WHERE account = ? AND item = ?", account, item,
      decode: ReplicaHistoryRow.init)
  }

  /// The one of which the hub told last before a number; none of those that wait.
  package func replicaHistory(of account: Int64, toldBefore number: Int64) throws -> ReplicaHistoryRow? {
    try first(
      "SELECT \(Self.columns) FROM replica_histories WHERE account = ? AND told < ? AND told >= 0 ORDER BY told DESC LIMIT 1",
      account, number, decode: ReplicaHistoryRow.init)
  }

  package func set(_ history: ReplicaHistoryRow, of account: Int64) throws {
    try run(
      "INSERT OR REPLACE INTO replica_histories (account, \(Self.columns)) VALUES (?,?,?,?,?,?)", account,
      history.item, history.told, history.after, history.isWhole ? 1 : 0, history.state)
  }

  package func removeReplicaHistory(of account: Int64, _ item: [UInt8]) throws {
    try run("DELETE FROM replica_histories WHERE account = ? AND item = ?", account, item)
  }

  package func removeReplicaHistories(of account: Int64) throws {
    try run("DELETE FROM replica_histories WHERE account = ?", account)
  }

  package func countReplicaHistories(of account: Int64) throws -> Int64 {
    try first("SELECT count(*) FROM replica_histories WHERE account = ? AND told >= 0", account) {
      try $0[0] as Int64
    } ?? 0
  }

  // MARK: - Requests

  package func replicaRequests(of account: Int64, limit: Int) throws -> [ReplicaRequestRow] {
    try all(
      "SELECT item, version, label FROM replica_requests WHERE account = ? ORDER BY item, version LIMIT ?", account,
      limit, decode: Self.request)
  }

  package func replicaRequests(of account: Int64, item: [UInt8]) throws -> [ReplicaRequestRow] {
    try all(
      "SELECT item, version, label FROM replica_requests WHERE account = ? AND item = ?", account, item,
      decode: Self.request)
  }

  private static func request(_ row: Row) throws -> ReplicaRequestRow {
    ReplicaRequestRow(
      item: try row.uuid(0).bytes, version: try row.bytes(1).isEmpty ? [] : row.uuid(1).bytes, label: try row[2])
  }

  package func set(_ request: ReplicaRequestRow, of account: Int64) throws {
    try run(
      "INSERT OR REPLACE INTO replica_requests (account, item, version, label) VALUES (?,?,?,?)", account,
      request.item, request.version, request.label)
  }

  /// Removes a request, unless it is another one by now.
  package func remove(_ request: ReplicaRequestRow, of account: Int64) throws {
    try run(
      "DELETE FROM replica_requests WHERE account = ? AND item = ? AND version = ? AND label IS ?", account,
      request.item, request.version, request.label)
  }

  package func countReplicaRequests(of account: Int64) throws -> Int64 {
    try first("SELECT count(*) FROM replica_requests WHERE account = ?", account) { try $0[0] as Int64 } ?? 0
  }

  // MARK: - Versions

  /// Versions of an item that have labels.
  package func labels(_ item: Int64) throws -> [(number: Int64, label: String)] {
    try all("SELECT number, label FROM versions WHERE item = ? AND label IS NOT NULL ORDER BY number", item) {
      (try $0[0], try $0[1])
    }
  }

  /// An account's documents that have labelled versions.
  package func labelledItems(of account: Int64) throws -> [Int64] {
    try all(
      """
      SELECT DISTINCT i.id FROM items i JOIN versions v ON v.item = i.id
        WHERE i.owner = ? AND v.label IS NOT NULL ORDER BY i.id
      """, account
    ) { try $0[0] }
  }

  package func removeLabel(_ item: Int64, _ number: Int64) throws {
    try change("UPDATE versions SET label = NULL WHERE item = ? AND number = ?", item, number) {
      $0.versions.forget(VersionKey(item: item, number: number))
    }
  }

  /// Gives versions of an item other numbers, by the former ones, also those that left only their ids: what refers to
  /// them in other rows of this item's versions follows.
  package func renumberVersions(_ item: Int64, _ numbers: [Int64: Int64]) throws {
    // Two may swap their numbers.
    let aside: Int64 = 1 << 60
    let former = numbers.keys.sorted()
    for (from, to) in former.map({ ($0, $0 + aside) }) + former.map({ ($0 + aside, numbers[$0] ?? $0) }) {
      try change("UPDATE versions SET number = ? WHERE item = ? AND number = ?", to, item, from) {
        $0.versions.forgetAll()
      }
      try run("UPDATE replica_versions SET number = ? WHERE item = ? AND number = ?", to, item, from)
    }
    for fact in try versionFacts(item) {
      guard let base = fact.base else { continue }
      let new = numbers[base] ?? base
      if new != base || new >= fact.number { try setBase(item, fact.number, new < fact.number ? new : nil) }
    }
  }

  package func setBase(_ item: Int64, _ number: Int64, _ base: Int64?) throws {
    try change("UPDATE versions SET base = ? WHERE item = ? AND number = ?", base, item, number) {
      $0.versions.forget(VersionKey(item: item, number: number))
    }
  }
}
