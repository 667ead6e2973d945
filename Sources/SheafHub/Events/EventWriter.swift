import SheafModel
import SheafWire

/// An event before it has its number.
struct PendingEvent {
  let id: String
  let type: EventType
  let subject: WireID
  let time: Timestamp
  var data: EventDetails
  /// The forms for the members of shares.
  var shared: [SharedEvent] = []

  func numbered(_ sequence: Int64, of zone: String) -> Event {
    Event(
      id: id, source: "sheaf://\(zone)", type: type, subject: subject.description, time: time, sequence: sequence,
      data: data)
  }
}

/// An event in the form for the members of a share, before it has the share's number.
struct SharedEvent {
  let share: WireID
  let type: EventType
  let data: EventDetails
  /// The account that it is about; nil for what is about no person.
  var about: String?
}

/// Tells the events of a group of sends from what it changed.
struct EventWriter {
  /// Items that an event names at most.
  static let contentLimit = 100
  /// Bytes of a path; of longer ones the middle is left out.
  private static let pathLimit = 4_096

  private let zone: String
  private let author: SendAuthor
  /// The items that went along with each deleted folder.
  private let takenAlong: [WireID: [WireID]]
  private let sends: [WireID: Send]

  init(zone: String, author: SendAuthor, takenAlong: [WireID: [WireID]], sends: [Send]) {
    self.zone = zone
    self.author = author
    self.takenAlong = takenAlong
    self.sends = Dictionary(sends.map { ($0.item, $0) }) { first, _ in first }
  }

  private func time(_ authors: Int64?) -> Timestamp { Self.time(authors, at: author.now) }

  /// Nanoseconds by which an author's clock may be ahead of the hub's and still be believed.
  private static let advance: Int64 = 86_400 * 1_000_000_000

  /// When a deed was done by its author's clock, in nanoseconds since 1970; the hub's time where that clock says nothing.
  static func time(_ authors: Int64?, at now: Timestamp) -> Timestamp {
    guard let authors, authors >= 0, authors - advance <= now.nanoseconds else { return now }
    return Timestamp(nanoseconds: authors)
  }

  mutating func events(
    of draft: inout ZoneDraft, _ changes: [SharedChanges.Change]
  ) throws -> [PendingEvent] {
    let silent = Set(takenAlong.values.joined())
    let changes = Dictionary(changes.map { ($0.row.item, $0) }) { $1 }
    var events: [PendingEvent] = []
    for (id, before) in draft.changed where !silent.contains(id) {
      guard let row = try draft.item(id) else { continue }
      var data = EventDetails(
        item: try item(row, row.places.first, &draft),
        actor: Account(handle: try AccountHandle(author.handle), name: author.name))
      data.device = .init(id: author.device, name: author.deviceName)
      let change = changes[id]
      data.share = (change?.after ?? change?.before).map(Self.share)
      let send = sends[id]
      func append(_ type: EventType, at time: Timestamp) throws {
        let shared = try change.map { try self.shared(type, data, $0, &draft) } ?? []
        events.append(
          PendingEvent(
            id: WireID().description, type: type, subject: id, time: time, data: data, shared: shared))
      }
      let saves = row.version == before?.version ? [] : saves(of: id, draft)
      func details(of version: VersionRow) throws -> EventDetails.Version {
        let base = try version.base.flatMap { try draft.version($0) }
        return EventDetails.Version(
          number: version.number, base: base?.item == id ? base?.number : nil, size: version.size,
          cause: version.cause.rawValue)
      }
      func appendSaves(_ versions: some Sequence<VersionRow>) throws {
        for version in versions {
          data.version = try details(of: version)
          try append(.edit, at: time(version.time))
        }
      }
      let version = before == nil ? saves.first : saves.last
      data.version = try version.map(details)
      let done = time(send?.time ?? version?.time)
      guard let before else {
        data.previousName = send?.previousName
        try append(.created, at: done)
        data.previousName = nil
        try appendSaves(saves.dropFirst())
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
        try append(.deleted, at: done)
      case (true, false):
        data.contents = []
        data.contentCount = 0
        try append(.created, at: done)
      case (true, true): break
      case (false, false):
        if let old = before.places.first, let new = row.places.first, old != new {
          var moved = data
          let previous = try item(before, old, &draft)
          swap(&moved, &data)
          data.version = nil
          data.previousPath = previous.path
          data.previousName = previous.name
          try append(old.parent == new.parent ? .renamed : .moved, at: done)
          swap(&moved, &data)
        }
        try appendSaves(saves)
      }
    }
    return events
  }

  /// The versions of a document that were saved, the oldest first: of one that was merged at once, what became of it.
  private func saves(of item: WireID, _ draft: ZoneDraft) -> [VersionRow] {
    let versions = draft.newVersions.filter { $0.item == item }
    return versions.indices.filter { $0 + 1 == versions.endIndex || versions[$0 + 1].cause != .merge }
      .map { versions[$0] }
  }

  /// The share of an event; its URL and title are those of when it is read.
  static func share(_ standing: Standing) -> EventDetails.Share { share(standing.share) }

  static func share(_ share: WireID) -> EventDetails.Share {
    EventDetails.Share(id: share.description, url: "", title: "")
  }

  /// The events for the members of the shares in which an item was, or is. They contain nothing from outside of the
  /// share.
  private func shared(
    _ type: EventType, _ data: EventDetails, _ change: SharedChanges.Change, _ draft: inout ZoneDraft
  ) throws -> [SharedEvent] {
    var events: [SharedEvent] = []
    if let after = change.after {
      var (type, data) = (type, data)
      data.item.path = try sharedPath(change.row.places.first, of: change.row.item, after, &draft)
      data.share = Self.share(after)
      // What could not be saved elsewhere is for its author to know.
      if type == .created { data.previousName = nil }
      if type == .moved || type == .renamed {
        (data.previousPath, data.previousName) = (nil, nil)
        if let before = change.before, before.share == after.share, let former = change.former {
          let path = try sharedPath(former.places.first, of: former.item, before, &draft)
          data.previousPath = path
          data.previousName = former.places.first.map { String(decoding: $0.name, as: UTF8.self) }
          type = Self.folder(of: path) == Self.folder(of: data.item.path) ? .renamed : .moved
        } else {
          type = .created
        }
      }
      // Members do not learn where the owner keeps the shared item; they learn its name.
      if data.previousPath != data.item.path {
        events.append(SharedEvent(share: after.share, type: type, data: data))
      }
    }
    if let before = change.before, before.share != change.after?.share, let former = change.former, type != .edit {
      var data = data
      let place = former.places.first
      data.item.path = try sharedPath(place, of: former.item, before, &draft)
      data.item.name = place.map { String(decoding: $0.name, as: UTF8.self) } ?? ""
      data.share = Self.share(before)
      (data.previousPath, data.previousName, data.version) = (nil, nil, nil)
      if change.row.isDeleted {
        data.contents = try data.contents?.map { content in
          var content = content
          if let id = WireID(content.id), let row = try draft.item(id) {
            content.path = try sharedPath(row.places.first, of: id, before, &draft)
          }
          return content
        }
      } else {
        (data.contents, data.contentCount) = (nil, nil)
      }
      events.append(SharedEvent(share: before.share, type: .deleted, data: data))
    }
    return events
  }

  private static func folder(of path: String) -> Substring { path[..<(path.lastIndex(of: "/") ?? path.startIndex)] }

  /// The path of a place that begins with the name of what is shared. Of what has no way to that, the name alone.
  private func sharedPath(
    _ place: Place?, of item: WireID, _ standing: Standing, _ draft: inout ZoneDraft
  ) throws -> String {
    guard let top = standing.item, let place else { return "" }
    let name = String(decoding: place.name, as: UTF8.self)
    if item == top { return name }
    var names = [name]
    var next = place.parent
    while names.count <= Decision.depthLimit {
      if next == .root {
        guard top == .root else { return name }
        names.append("Documents")
        return Self.joined(names)
      }
      guard let above = try draft.item(next)?.places.first else { return name }
      names.append(String(decoding: above.name, as: UTF8.self))
      if next == top { return Self.joined(names) }
      next = above.parent
    }
    return name
  }

  private func item(_ row: ItemRow, _ place: Place?, _ draft: inout ZoneDraft) throws -> EventDetails.Item {
    let name = place.map { String(decoding: $0.name, as: UTF8.self) } ?? ""
    return EventDetails.Item(
      id: row.item.description, kind: row.kind.rawValue, name: name, path: try Self.path(place, &draft))
  }

  /// The path of a place relative to `Documents`.
  static func path(_ place: Place?, _ source: inout some ItemSource) throws -> String {
    var names: [String] = []
    var next = place
    while let place = next, names.count <= Decision.depthLimit {
      names.append(String(decoding: place.name, as: UTF8.self))
      next = place.parent == .root ? nil : try source.item(place.parent)?.places.first
    }
    return Self.joined(names)
  }

  /// The path of names, the last one first.
  private static func joined(_ names: [String]) -> String {
    let path = names.reversed().joined(separator: "/")
    if path.utf8.count <= pathLimit { return path }
    let half = pathLimit / 2 - 4
    return String(decoding: path.utf8.prefix(half), as: UTF8.self) + "…"
      + String(decoding: path.utf8.suffix(half), as: UTF8.self)
  }
}
