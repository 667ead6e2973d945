import SheafHubStore
import SheafModel
import SheafWire

/// Who made an item and who placed it last, which is who gave it its names, recovered or deleted it. Only what is not
/// as for most items has a row in `placements`: those that the owner made where they are, and that nobody placed since,
/// have none.
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

extension Placement {
  /// Nanoseconds that a program may take from making a file until it has its name.
  private static let makingTime: Int64 = 1_000_000_000

  /// What is noted of an item that changed; nil where nothing is to be noted anew.
  ///
  /// - Parameters:
  ///   - number: The zone's number of the change.
  ///   - time: When it was changed, as the send says.
  ///   - handle: Who changed it; nil for the owner of the zone.
  init?(
    of row: ItemRow, _ before: ItemRow?, number: Int64, time: Int64?, by handle: String?, at now: Timestamp
  ) {
    guard let before else {
      guard let handle else {
        let named = EventWriter.time(time, at: now).nanoseconds
        // Where its id says when it was made, that is when it got its names, unless no hub heard of it before: an
        // editor's backup may become a document. The id of what the hub put beside a document says nothing.
        if let made = row.item.time, time == nil || named - made < Self.makingTime { return nil }
        self.init(time: named, placed: number)
        return
      }
      self.init(madeBy: handle, made: number, placedBy: handle, time: now.nanoseconds, placed: number)
      return
    }
    guard row.isDeleted != before.isDeleted || row.places != before.places else { return nil }
    if row.isDeleted, before.placement == nil, handle == nil { return nil }
    self = before.placement ?? Placement()
    (placedBy, placed) = (handle, number)
    if !row.isDeleted { self.time = EventWriter.time(handle == nil ? time : nil, at: now).nanoseconds }
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
      let placement = Placement(
        of: row, before, number: number, time: times[item] ?? nil, by: handle, at: now)
      if let placement { try write(placement, of: item) }
    }
  }

  /// Notes who made and placed an item.
  mutating func write(_ placement: Placement, of item: WireID) throws {
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
