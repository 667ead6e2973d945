package import SheafHubStore
import SheafModel
package import SheafWire

/// The names that people gave to versions.
///
/// A label is unique in its item, and a version has one at most; the last to arrive wins. How often that changed is told
/// by the feed, so that devices look what it is now.
package struct Labels: Sendable {
  let database: any Database

  package init(database: any Database) { self.database = database }

  /// Gives a version a label, taking it from the one that has it; once more is no harm.
  ///
  /// - Throws: ``HubError`` of kind `notFound`, also for a version that was purged, or `invalid` for no label.
  package func label(
    _ version: WireID, of item: WireID, as label: String, in zone: String, by device: String
  ) async throws {
    try await set(label, on: version, of: item, in: zone, nil, by: device)
  }

  /// The same for a member of a share, who takes a label from no version that they do not see.
  ///
  /// - Throws: As the above, as ``ShareAccess/require(_:_:_:)``, and `conflict` for the label of a version from before the
  ///   item came into the share.
  package func label(
    _ version: WireID, of item: WireID, as label: String, in place: SharedPlace, by device: String
  ) async throws {
    try await set(label, on: version, of: item, in: place.zone, place, by: device)
  }

  private func set(
    _ label: String, on version: WireID, of item: WireID, in zone: String, _ place: SharedPlace?, by device: String
  ) async throws {
    guard VersionLabel.isSound(label) else {
      throw HubError(.invalid, "label: 1 to \(VersionLabel.longest) printable characters")
    }
    try await database.write { connection in
      var head = try ZoneHead.take(zone, in: &connection)
      let (row, known, first) = try Self.find(version, of: item, in: zone, place, &connection)
      var stored = StoredZone(zone: zone, connection: connection)
      let labels = try stored.labels(of: row.item)
      guard labels[known.id] != label else { return }
      let holder = try labels.first { $0.value == label }.flatMap { try stored.version($0.key) }
      if let holder, holder.number < first {
        throw HubError(.conflict, "label: a version from before the item was shared has it; give another one")
      }
      var finder = try ShareFinder(zone: zone, connection: connection)
      try SharedRows.settleEntry(of: row, &finder, &stored)
      try stored.setLabel(label, of: known.id, known.item)
      try stored.renumber(row, by: device, &head)
      // Members are told of what they can see, also where a label goes from that to a version which they do not see.
      if let standing = try finder.standing(of: row, in: &stored),
        max(known.number, holder?.number ?? 0)
          >= (try SharedRows.firstVersion(of: row, standing, in: zone, &stored.connection))
      {
        _ = try SharedRows.tell(row.item, in: standing.share, of: zone, by: device, &stored.connection)
      }
      try head.write(zone, in: &stored.connection)
    }
  }

  /// A version and its item, and the number of the item's first version that the caller sees.
  private static func find(
    _ id: WireID, of item: WireID, in zone: String, _ place: SharedPlace?, _ connection: inout any SQLConnection
  ) throws -> (item: ItemRow, version: VersionRow, first: Int64) {
    let nothing = HubError(.notFound, "the item has no such version")
    var stored = StoredZone(zone: zone, connection: connection)
    let own = try stored.alias(id) ?? id
    if let place {
      var reader = try SharedReader(.label, place, &connection)
      let (version, first) = try reader.visible(own, of: item)
      guard let row = try stored.item(version.item) else { throw nothing }
      return (row, version, first)
    }
    guard let row = try stored.item(try stored.alias(item) ?? item), let version = try stored.version(own),
      version.item == row.item, !version.isPurged
    else { throw nothing }
    return (row, version, 1)
  }
}

extension StoredZone {
  /// The labels of an item's versions.
  mutating func labels(of item: WireID) throws -> [WireID: String] {
    let rows = try connection.query(
      "SELECT version, label FROM labels WHERE zone = $1 AND item = $2 AND label IS NOT NULL",
      [.text(zone), .blob(item.bytes)]
    ).map { (try Self.id($0.blob(0)), try $0.text(1)) }
    return Dictionary(rows) { $1 }
  }

  /// Gives a version of an item a label, taking it from the one that has it.
  mutating func setLabel(_ label: String, of version: WireID, _ item: WireID) throws {
    try connection.execute(
      "UPDATE labels SET label = NULL, changes = changes + 1 WHERE zone = $1 AND item = $2 AND label = $3",
      [.text(zone), .blob(item.bytes), .text(label)])
    try connection.execute(
      """
      INSERT INTO labels (zone, item, version, label, changes) VALUES ($1, $2, $3, $4, 1)
      ON CONFLICT (zone, item, version) DO UPDATE SET label = excluded.label, changes = labels.changes + 1
      """, [.text(zone), .blob(item.bytes), .blob(version.bytes), .text(label)])
    try connection.execute(
      """
      INSERT INTO labelled (zone, item, changes) VALUES ($1, $2, 1)
      ON CONFLICT (zone, item) DO UPDATE SET changes = labelled.changes + 1
      """, [.text(zone), .blob(item.bytes)])
  }

  /// Forgets the labels of an item, and that there were some.
  mutating func dropLabels(of item: WireID) throws {
    let values: [SQLValue] = [.text(zone), .blob(item.bytes)]
    try connection.execute("DELETE FROM labels WHERE zone = $1 AND item = $2", values)
    try connection.execute("DELETE FROM labelled WHERE zone = $1 AND item = $2", values)
  }

  /// How often labels of an item's versions changed, of those from a number on; nil where none of them ever had one.
  mutating func labelChanges(of item: WireID, from number: Int64) throws -> Int64? {
    let changes = try connection.query(
      """
      SELECT labels.changes FROM labels JOIN versions
        ON versions.zone = labels.zone AND versions.version = labels.version
      WHERE labels.zone = $1 AND labels.item = $2 AND versions.number >= $3
      """, [.text(zone), .blob(item.bytes), .integer(number)]
    ).map { try $0.integer(0) }
    return changes.isEmpty ? nil : changes.reduce(0, +)
  }

  /// Takes the label of a version that goes.
  mutating func removeLabel(of version: VersionRow) throws {
    try connection.execute(
      "UPDATE labels SET label = NULL, changes = changes + 1 WHERE zone = $1 AND item = $2 AND version = $3",
      [.text(zone), .blob(version.item.bytes), .blob(version.id.bytes)])
  }

  /// Has the feed tell an item.
  mutating func renumber(_ row: ItemRow, by device: String, _ head: inout ZoneHead) throws {
    head.number += 1
    try connection.execute(
      "UPDATE items SET number = $1, device = $2, others = $3 WHERE zone = $4 AND item = $5",
      [
        .integer(head.number), .text(device), .integer(row.device == device ? row.others : row.number), .text(zone),
        .blob(row.item.bytes),
      ])
  }
}
