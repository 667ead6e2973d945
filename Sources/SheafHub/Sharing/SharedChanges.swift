import SheafHubStore
import SheafModel
import SheafWire

/// The effects of a group of sends on the shares of a zone: whether the shares allow it, and how their feeds report it.
struct SharedChanges {
  /// An item that changed, with where it was and where it is.
  struct Change {
    let former: ItemRow?
    let row: ItemRow
    /// Nil for what was deleted or new, too.
    let before: Standing?
    /// Nil for what is deleted, too.
    let after: Standing?
    /// Whether it was deleted from the share that it comes back to, since what it lies in entered that.
    let isReturn: Bool
    let isNew: Bool
  }

  private let zone: String
  private var connection: any SQLConnection
  private var stored: StoredZone
  private var finder: ShareFinder
  private var later: ShareFinder
  private(set) var changes: [Change] = []

  /// - Returns: nil for a zone in which nothing was ever shared.
  init?(zone: String, connection: any SQLConnection) throws {
    self.zone = zone
    self.connection = connection
    let known = try self.connection.query("SELECT share FROM shares WHERE zone = $1 LIMIT 1", [.text(zone)])
    if known.isEmpty { return nil }
    stored = StoredZone(zone: zone, connection: connection)
    finder = try ShareFinder(zone: zone, connection: connection)
    later = finder
  }

  // MARK: - What participants may name

  /// The reason to refuse a member's group because it concerns items outside of their share; nil if it does not. The
  /// answer for items that they may not see is that for items that do not exist.
  mutating func refusal(of group: [Send], for access: ShareAccess) throws -> (index: Int, reason: Verdict.Reason)? {
    var made: Set<WireID> = []
    for (index, send) in group.enumerated() {
      let id = try stored.alias(send.item) ?? send.item
      if let row = try stored.item(id) {
        guard try isSeen(row, by: access) else { return (index, .unknown) }
      } else {
        made.insert(id)
      }
    }
    for (index, send) in group.enumerated() {
      for place in send.places ?? [] {
        let id = try stored.alias(place.parent) ?? place.parent
        if made.contains(id) { continue }
        if id == .root, access.item == .root { continue }
        guard let row = try stored.item(id), try isSeen(row, by: access) else { return (index, .noParent) }
      }
    }
    return nil
  }

  /// Whether a member sees an item, or that it was deleted.
  private mutating func isSeen(_ row: ItemRow, by access: ShareAccess) throws -> Bool {
    if row.isDeleted { return try finder.deleted(row, in: &stored)?.share == access.place.share }
    return try finder.standing(of: row, in: &stored)?.share == access.place.share
  }

  // MARK: - Borders and rights

  /// Finds out what a draft changes.
  mutating func look(at draft: inout ZoneDraft) throws {
    // A draft lets folders move, so what was found of them does not hold.
    later = try ShareFinder(zone: zone, connection: connection)
    changes = []
    for (id, former) in draft.changed {
      guard let row = try draft.item(id) else { continue }
      let isLive = former.map { !$0.isDeleted } ?? false
      let before = isLive ? try former.flatMap { try finder.standing(of: $0, in: &stored) } : nil
      let after = row.isDeleted ? nil : try later.standing(of: row, in: &draft)
      var isReturn = false
      if let former, let after, former.isDeleted {
        let above = try later.above(row, in: &draft)
        isReturn =
          try later.isShared(id)
          || later.entry(of: id)?.share == after.share && former.number > above?.entered ?? .max
      }
      changes.append(
        Change(former: former, row: row, before: before, after: after, isReturn: isReturn, isNew: former == nil))
    }
  }

  /// Why a draft is refused; nil where it is not.
  ///
  /// - Parameter access: Nil for the owner of the zone, who may do all that borders allow.
  mutating func refusal(of draft: inout ZoneDraft, for access: ShareAccess?) throws -> Verdict.Reason? {
    for change in changes {
      if let access, let reason = try refusal(of: change, for: access) { return reason }
      if !change.row.isDeleted, try later.isAcross(change.row, in: &draft) { return .border }
    }
    if try crossesWithLinks(&draft) { return .border }
    let isMoved = changes.contains { change in
      guard !change.row.isDeleted, change.row.kind == .folder || later.isShared(change.row.item) else { return false }
      return change.former.map { $0.isDeleted || $0.places != change.row.places } ?? false
    }
    if isMoved {
      for item in later.items where item != .root {
        guard let row = try draft.item(item), !row.isDeleted else { continue }
        if try later.above(row, in: &draft) != nil { return .border }
      }
    }
    return nil
  }

  /// Whether something in a folder that enters a share, or leaves one, would have names on both sides then.
  private mutating func crossesWithLinks(_ draft: inout ZoneDraft) throws -> Bool {
    let crossing = changes.filter { change in
      change.row.kind == .folder && !change.row.isDeleted && change.former.map { !$0.isDeleted } ?? false
        && change.before?.share != change.after?.share
    }
    if crossing.isEmpty { return false }
    var search = LinkSearch(zone: zone, connection: connection)
    return try search.item(below: crossing.map(\.row.item)) { id in
      guard let row = try draft.item(id), !row.isDeleted else { return false }
      return try later.isAcross(row, in: &draft)
    } != nil
  }

  private mutating func refusal(of change: Change, for access: ShareAccess) throws -> Verdict.Reason? {
    let (share, row) = (access.place.share, change.row)
    var operation = ShareOperation.create
    if let former = change.former {
      // Only its owner decides about its name outside, and whether it exists.
      if row.item == access.item, row.isDeleted || former.places != row.places { return .denied }
      let before = former.isDeleted ? try finder.deleted(former, in: &stored) : change.before
      guard before?.share == share else { return .denied }
      operation =
        row.isDeleted ? .delete : former.isDeleted ? .recover : former.places == row.places ? .write : .rename
    }
    if !row.isDeleted, change.after?.share != share { return .border }
    // Such a file says what is lost when it is deleted, which the owner of its folder decides.
    let former = change.former?.places ?? []
    if !access.isOwner, !row.isDeleted, row.places.contains(where: { $0.name == Names.rules && !former.contains($0) }) {
      return .denied
    }
    return access.allows(operation) ? nil : .denied
  }

  // MARK: - Telling

  /// Tells the feeds, once the changes have their numbers.
  ///
  /// - Parameter former: The items with versions that the owner's device saved before it was a device of the account: it
  ///   did not know then that they would be shared.
  /// - Returns: the numbers that items have in the feed of each share.
  mutating func tell(
    _ numbers: [WireID: Int64], former: Set<WireID>, by device: String
  ) throws -> [WireID: [WireID: Int64]] {
    var told: [WireID: [WireID: Int64]] = [:]
    for change in changes {
      let id = change.row.item
      guard let number = numbers[id] else { continue }
      if let before = change.before, before.share != change.after?.share {
        let news = try SharedRows.tell(id, in: before.share, of: zone, by: device, &connection)
        told[before.share, default: [:]][id] = news
        // It is seen from then on, if it comes back.
        if change.row.isDeleted { try SharedRows.enter(id, before, of: zone, &connection) }
      } else if change.row.isDeleted, change.before == nil, change.former.map({ !$0.isDeleted }) ?? false {
        try SharedRows.forgetEntry(of: id, of: zone, &connection)
      }
      if let former = change.former, former.isDeleted, !change.row.isDeleted, let entry = try finder.entry(of: id),
        entry.share != change.after?.share
      {
        // Those who know it as deleted hear that it is elsewhere.
        _ = try SharedRows.tell(id, in: entry.share, of: zone, by: device, &connection)
      }
      guard let after = change.after else { continue }
      let news = try SharedRows.tell(id, in: after.share, of: zone, by: device, &connection)
      told[after.share, default: [:]][id] = news
      if former.contains(id), change.former.map({ $0.device == device && $0.others == 0 }) ?? true {
        // It enters with the last of these. What another device has changed, people in the share know already.
        let entry = Standing(share: after.share, entered: number, told: news)
        try SharedRows.enter(id, entry.later(change.before), of: zone, &connection)
        continue
      }
      if change.isNew || change.isReturn { continue }
      guard let before = change.before, before.share == after.share else {
        let entry = Standing(share: after.share, entered: number, told: news)
        try SharedRows.enter(id, entry, of: zone, &connection)
        continue
      }
      // An entry never falls: an item that goes to another folder takes along the entry that counted for it until then.
      if before.later(after) != after { try SharedRows.enter(id, before.later(after), of: zone, &connection) }
    }
    return told
  }
}
