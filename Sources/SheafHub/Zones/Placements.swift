import SheafHubStore
import SheafModel
import SheafWire

/// Who made an item and who placed it last, which is who gave it its names, recovered or deleted it. Only what is not
/// as for most items has a row in `placements`: those that the owner made, and that nobody placed since, have none.
struct Placement: Hashable, Sendable {
  /// The handle of who made it; nil for the owner of the zone.
  var madeBy: String?
  /// The zone's number of the change that made it; 0 where the owner did.
  var made: Int64 = 0
  /// The handle of who placed it last; nil for the owner of the zone.
  var placedBy: String?
  /// When it got its names, in nanoseconds; nil where the owner made it with them.
  var time: Int64?
  /// The zone's number of the change that placed it last; 0 for none.
  var placed: Int64 = 0

  /// - Parameter first: The column that its columns begin with.
  /// - Returns: nil where there is no row.
  static func read(_ row: SQLRow, from first: Int) throws -> Placement? {
    guard let made = try row.optionalInteger(first + 1) else { return nil }
    return Placement(
      madeBy: try row.optionalText(first), made: made, placedBy: try row.optionalText(first + 2),
      time: try row.optionalInteger(first + 3), placed: try row.integer(first + 4))
  }

  /// What somebody may know of it who sees the item since a change of the zone.
  ///
  /// - Parameter isEntry: Whether that change is the one that brought the item in. A share that begins has no change of
  ///   its own, but the number of the one before.
  func seen(since entered: Int64, isEntry: Bool) -> Placement {
    var seen = self
    func isHidden(_ number: Int64) -> Bool { isEntry ? number < entered : number <= entered }
    if isHidden(made) { seen.madeBy = nil }
    if isHidden(placed) { (seen.placedBy, seen.time) = (nil, nil) }
    return seen
  }
}

extension StoredZone {
  /// Notes who made or placed the items that a draft changed.
  ///
  /// - Parameters:
  ///   - numbers: The new number of each of them.
  ///   - sends: Those that changed them, with the time of the deed. Only the owner's machines are believed: what a
  ///     participant moves would otherwise seem to have been there when they say so.
  ///   - handle: Who sent them; nil for the owner of the zone.
  mutating func notePlacements(
    _ draft: inout ZoneDraft, _ numbers: [WireID: Int64], sends: [Send], by handle: String?, at now: Timestamp
  ) throws {
    let times = Dictionary(sends.map { ($0.item, $0.time) }) { first, _ in first }
    for (item, before) in draft.changed {
      guard let row = try draft.item(item), let number = numbers[item] else { continue }
      guard let before else {
        guard let handle else { continue }
        let made = Placement(madeBy: handle, made: number, placedBy: handle, time: now.nanoseconds, placed: number)
        try write(made, of: item)
        continue
      }
      guard row.isDeleted != before.isDeleted || row.places != before.places else { continue }
      var placement = before.placement ?? Placement()
      (placement.placedBy, placement.placed) = (handle, number)
      if !row.isDeleted {
        let time = handle == nil ? times[item] ?? nil : nil
        placement.time = EventWriter.time(time, at: now).nanoseconds
      } else if before.placement == nil, handle == nil {
        continue
      }
      try write(placement, of: item)
    }
  }

  private mutating func write(_ placement: Placement, of item: WireID) throws {
    try connection.execute(
      """
      INSERT INTO placements (zone, item, made_by, made, placed_by, time, placed) VALUES ($1, $2, $3, $4, $5, $6, $7)
      ON CONFLICT (zone, item) DO UPDATE SET made_by = excluded.made_by, made = excluded.made,
        placed_by = excluded.placed_by, time = excluded.time, placed = excluded.placed
      """,
      [
        .text(zone), .blob(item.bytes), .optional(placement.madeBy), .integer(placement.made),
        .optional(placement.placedBy), .optional(placement.time), .integer(placement.placed),
      ])
  }

  /// Forgets who made and placed an item.
  static func forgetPlacement(of item: WireID, of zone: String, _ connection: inout any SQLConnection) throws {
    try connection.execute(
      "DELETE FROM placements WHERE zone = $1 AND item = $2", [.text(zone), .blob(item.bytes)])
  }
}
