import Crypto
package import SheafHubStore
package import SheafWire

/// For how long folders of accounts keep versions and deleted items, where their owners said so.
///
/// The zone's number rises with each change, so that the account's devices hear of it, and pages of the feed have a mark
/// of all that is said. No item is renumbered: what else somebody does with a folder meanwhile is not touched.
package struct FolderRetentions: Sendable {
  private static let day: Int64 = 86_400

  let database: any Database

  package init(database: any Database) { self.database = database }

  /// All that folders of a zone say, and the hub's own rules.
  package func list(of zone: String) async throws -> RetentionList {
    try await database.read { connection in
      let rules = try Retention.rules(&connection)
      return RetentionList(
        folders: try Self.folders(of: zone, &connection), keepDeleted: rules.deletedDays.map { $0 * Self.day },
        keepVersions: rules.versionDays.map { $0 * Self.day })
    }
  }

  /// Sets what a folder says; once more is no harm.
  ///
  /// - Throws: ``HubError`` of kind `notFound`, `invalid` for what is no folder and for spans that cannot be, or
  ///   `conflict` where too many folders say something.
  package func set(_ sent: SentRetention, of folder: WireID, in zone: String) async throws {
    for span in [sent.keepDeleted, sent.keepVersions].compactMap({ $0 }) {
      guard WireLimits.keptSeconds.contains(span) else {
        let (shortest, longest) = (WireLimits.keptSeconds.lowerBound, WireLimits.keptSeconds.upperBound)
        throw HubError(.invalid, "a folder keeps things for \(shortest) to \(longest) seconds")
      }
    }
    try await database.write { connection in
      var head = try ZoneHead.take(zone, in: &connection)
      let item = try Self.folder(folder, in: zone, &connection)
      let wanted = FolderRetention(item: item, keepDeleted: sent.keepDeleted, keepVersions: sent.keepVersions)
      let said = try Self.folders(of: zone, &connection)
      let isSilent = wanted.keepDeleted == nil && wanted.keepVersions == nil
      if let before = said.first(where: { $0.item == item }) {
        if before == wanted { return }
      } else {
        if isSilent { return }
        guard said.count < WireLimits.retainingFolders else {
          throw HubError(
            .conflict, "\(WireLimits.retainingFolders) folders say for how long they keep things; take one back first")
        }
      }
      if isSilent {
        try Self.forget(item, of: zone, &connection)
      } else {
        try connection.execute(
          """
          INSERT INTO retentions (zone, item, deleted, versions) VALUES ($1, $2, $3, $4)
          ON CONFLICT (zone, item) DO UPDATE SET deleted = excluded.deleted, versions = excluded.versions
          """,
          [.text(zone), .blob(item.bytes), .optional(wanted.keepDeleted), .optional(wanted.keepVersions)])
      }
      head.number += 1
      try head.write(zone, in: &connection)
    }
  }

  /// The folder that has an id: one that is there or was deleted, or the root.
  private static func folder(
    _ id: WireID, in zone: String, _ connection: inout any SQLConnection
  ) throws -> WireID {
    if id == .root { return id }
    var stored = StoredZone(zone: zone, connection: connection)
    guard let row = try stored.item(try stored.alias(id) ?? id), !row.isPurged else {
      throw HubError(.notFound, "nothing has this id")
    }
    guard row.kind == .folder else { throw HubError(.invalid, "the item is no folder; name the one that it is in") }
    return row.item
  }

  /// What folders of a zone say, by their ids.
  static func folders(of zone: String, _ connection: inout any SQLConnection) throws -> [FolderRetention] {
    try connection.query(
      "SELECT item, deleted, versions FROM retentions WHERE zone = $1 ORDER BY item", [.text(zone)]
    ).map {
      FolderRetention(
        item: try StoredZone.id($0.blob(0)), keepDeleted: try $0.optionalInteger(1),
        keepVersions: try $0.optionalInteger(2))
    }
  }

  /// Forgets what an item said that is no more.
  static func forget(_ item: WireID, of zone: String, _ connection: inout any SQLConnection) throws {
    try connection.execute(
      "DELETE FROM retentions WHERE zone = $1 AND item = $2", [.text(zone), .blob(item.bytes)])
  }

  /// What differs when anything differs that ``list(of:)`` tells.
  static func mark(of zone: String, _ connection: inout any SQLConnection) throws -> String {
    let rules = try Retention.rules(&connection)
    func text(_ number: Int64?) -> String { number.map { "\($0)" } ?? "-" }
    var lines = ["\(text(rules.deletedDays)) \(text(rules.versionDays))"]
    for folder in try folders(of: zone, &connection) {
      lines.append("\(folder.item) \(text(folder.keepDeleted)) \(text(folder.keepVersions))")
    }
    return Hexadecimal.text(of: SHA256.hash(data: Array(lines.joined(separator: "\n").utf8)))
  }
}
