package import SheafHubStore
import SheafModel
package import SheafWire

/// Comments of people on items. They are in the log of events, and nowhere else.
///
/// Rules:
/// 1. A comment has an id of its device's making. What comes again with it has no effect.
/// 2. A mention is told to the person mentioned, if that person sees the item, and to nobody else.
/// 3. What the owner said before the item entered its share, and the hub hears of later, people there do not hear.
package struct Comments: Sendable {
  /// Characters that a comment has at most, and bytes: one character can have any number of combining marks.
  private static let limit = 4_000
  private static let byteLimit = 4 * limit

  let database: any Database

  package init(database: any Database) { self.database = database }

  /// Comments on an item of a zone, or of a share of it.
  ///
  /// - Parameter place: The share by which the author sees the item; nil for the zone's own devices.
  /// - Throws: ``HubError`` of kind `invalid` for no comment, `notFound`, and for a member who may not `forbidden`.
  package func add(
    _ comment: SentComment, to item: WireID, of zone: String, in place: SharedPlace?, by author: SendAuthor
  ) async throws {
    let text = comment.text.trimming { $0.isWhitespace }
    guard !text.isEmpty, text.count <= Self.limit, text.utf8.count <= Self.byteLimit, comment.id != .root else {
      throw HubError(.invalid, "comment: an id, and a text of up to \(Self.limit) characters")
    }
    try await database.write { connection in
      var head = try ZoneHead.take(zone, in: &connection)
      var found = try Self.find(item, in: zone, place, &connection)
      if comment.outside ?? false, place == nil { found.share = nil }
      let key: [SQLValue] = [.text(zone), .blob(comment.id.bytes)]
      let isNew = try connection.execute(
        "INSERT INTO comments (zone, comment) VALUES ($1, $2) ON CONFLICT DO NOTHING", key)
      guard isNew == 1 else { return }
      let time = EventWriter.time(comment.time, at: author.now)
      var data = EventDetails(
        item: found.item, actor: Account(handle: try AccountHandle(author.handle), name: author.name))
      data.device = .init(id: author.device, name: author.deviceName)
      data.share = found.share.map { EventWriter.share($0.id) }
      data.comment = text
      var told = data
      told.item.path = found.pathInShare
      try head.append(
        PendingEvent(
          id: comment.id.description, type: .comment, subject: found.id, time: time, data: data,
          shared: found.share.map { [SharedEvent(share: $0.id, type: .comment, data: told)] } ?? []),
        to: zone, in: &connection)
      var rows = ShareRows(zone: zone, connection: connection)
      let owner = try rows.owner()
      for handle in Mentions.handles(in: text) {
        let member = found.share?.members.values.first {
          $0.person.handle == handle.description && $0.acceptance == .accepted
        }
        let isOwner = owner?.handle == handle.description
        guard isOwner || member != nil else { continue }
        let name = isOwner ? owner?.name : member?.person.name
        let mentioned = Account(handle: handle, name: name ?? handle.description)
        let id = WireID(hashOf: Array("mention".utf8) + comment.id.bytes + Array(handle.description.utf8)).description
        if isOwner {
          var mention = data
          mention.mentioned = mentioned
          try head.append(
            PendingEvent(id: id, type: .mention, subject: found.id, time: time, data: mention), to: zone,
            in: &connection)
        } else if let member, let share = found.share {
          var mention = told
          mention.mentioned = mentioned
          let event = PendingEvent(id: id, type: .mention, subject: found.id, time: time, data: mention)
          try SharedEvents.append(
            SharedEvent(share: share.id, type: .mention, data: mention, about: member.person.zone), event, of: zone,
            &connection)
        }
      }
      try head.write(zone, in: &connection)
    }
  }

  private struct Found {
    let id: WireID
    let item: EventDetails.Item
    var share: HubShare?
    /// The item's path as members of the share see it.
    let pathInShare: String
  }

  private static func find(
    _ id: WireID, in zone: String, _ place: SharedPlace?, _ connection: inout any SQLConnection
  ) throws -> Found {
    let row: ItemRow
    if let place {
      var reader = try SharedReader(.comment, place, &connection)
      row = try reader.require(id).row
    } else {
      var stored = StoredZone(zone: zone, connection: connection)
      let known = try id == .root ? SharedReader.documents : stored.item(stored.alias(id) ?? id)
      guard let known, !known.isDeleted else { throw HubError(.notFound, "the account has no such item") }
      row = known
    }
    var stored = StoredZone(zone: zone, connection: connection)
    var finder = try ShareFinder(zone: zone, connection: connection)
    var rows = ShareRows(zone: zone, connection: connection)
    let share = try finder.standing(of: row, in: &stored).flatMap { try rows.share($0.share) }
    let name = row.places.first.map { String(decoding: $0.name, as: UTF8.self) } ?? ""
    let isRoot = row.item == .root
    let path = isRoot ? name : try EventWriter.path(row.places.first, &stored)
    var pathInShare = name
    if let share, !isRoot {
      if share.item == .root {
        pathInShare = "Documents/" + path
      } else if let top = try stored.item(share.item)?.places.first, row.item != share.item {
        let topPath = try EventWriter.path(top, &stored)
        // A path without its middle may not show what is shared; then the name alone is told.
        if path.hasPrefix(topPath + "/") {
          pathInShare = String(decoding: top.name, as: UTF8.self) + path.dropFirst(topPath.count)
        }
      }
    }
    return Found(
      id: row.item,
      item: .init(id: row.item.description, kind: row.kind.rawValue, name: name, path: path), share: share,
      pathInShare: pathInShare)
  }
}
