import SheafModel
import SheafWire

/// An event before it has its number.
struct PendingEvent {
  let id: String
  let type: EventType
  let subject: WireID
  let time: Timestamp
  let data: EventDetails

  func numbered(_ sequence: Int64, of zone: String) -> Event {
    Event(
      id: id, source: "sheaf://\(zone)", type: type, subject: subject.description, time: time, sequence: sequence,
      data: data)
  }
}

/// Tells the events of a group of sends from what it changed.
struct EventWriter {
  /// Items that an event names at most.
  private static let contentLimit = 100
  /// Bytes of a path; of longer ones the middle is left out.
  private static let pathLimit = 4_096

  private let zone: String
  private let author: SendAuthor
  /// What went along with each folder that was deleted.
  private let takenAlong: [WireID: [WireID]]

  init(zone: String, author: SendAuthor, takenAlong: [WireID: [WireID]]) {
    self.zone = zone
    self.author = author
    self.takenAlong = takenAlong
  }

  mutating func events(of draft: inout ZoneDraft) throws -> [PendingEvent] {
    let silent = Set(takenAlong.values.joined())
    var events: [PendingEvent] = []
    for (id, before) in draft.changed where !silent.contains(id) {
      guard let row = try draft.item(id) else { continue }
      var data = EventDetails(
        item: try item(row, row.places.first, &draft),
        actor: Account(handle: try AccountHandle(author.handle), name: author.name))
      func append(_ type: EventType) {
        events.append(PendingEvent(id: WireID().description, type: type, subject: id, time: author.now, data: data))
      }
      let version = row.version == before?.version ? nil : try row.version.flatMap { try draft.version($0) }
      let base = try version?.base.flatMap { try draft.version($0) }
      data.version = version.map {
        EventDetails.Version(
          number: $0.number, base: base?.item == id ? base?.number : nil, size: $0.size, cause: $0.cause.rawValue)
      }
      guard let before else {
        append(.created)
        continue
      }
      switch (before.isDeleted, row.isDeleted) {
      case (false, true):
        data.version = nil
        if let contents = takenAlong[id] {
          data.contents = try contents.prefix(Self.contentLimit).compactMap { child in
            try draft.item(child).map { try item($0, $0.places.first, &draft) }
          }
          data.contentCount = Int64(contents.count)
        }
        append(.deleted)
      case (true, false):
        data.contents = []
        data.contentCount = 0
        append(.created)
      case (true, true): break
      case (false, false):
        if let old = before.places.first, let new = row.places.first, old != new {
          var moved = data
          let previous = try item(before, old, &draft)
          swap(&moved, &data)
          data.version = nil
          data.previousPath = previous.path
          data.previousName = previous.name
          append(old.parent == new.parent ? .renamed : .moved)
          swap(&moved, &data)
        }
        if version != nil { append(.edit) }
      }
    }
    return events
  }

  private func item(_ row: ItemRow, _ place: Place?, _ draft: inout ZoneDraft) throws -> EventDetails.Item {
    let name = place.map { String(decoding: $0.name, as: UTF8.self) } ?? ""
    return EventDetails.Item(
      id: row.item.description, kind: row.kind.rawValue, name: name, path: try path(place, &draft))
  }

  /// The path of a place relative to `Documents`.
  private func path(_ place: Place?, _ draft: inout ZoneDraft) throws -> String {
    var names: [String] = []
    var next = place
    while let place = next, names.count <= Decision.depthLimit {
      names.append(String(decoding: place.name, as: UTF8.self))
      next = place.parent == .root ? nil : try draft.item(place.parent)?.places.first
    }
    let path = names.reversed().joined(separator: "/")
    if path.utf8.count <= Self.pathLimit { return path }
    let half = Self.pathLimit / 2 - 4
    return String(decoding: path.utf8.prefix(half), as: UTF8.self) + "…"
      + String(decoding: path.utf8.suffix(half), as: UTF8.self)
  }
}
