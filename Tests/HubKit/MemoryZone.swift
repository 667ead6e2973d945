import Foundation
package import SheafModel
package import SheafWire

@testable package import SheafHub

/// A zone in memory, by the hub's rules: what the store must say, too.
package struct MemoryZone: ZoneReader {
  private(set) package var items: [WireID: ItemRow] = [:]
  private(set) package var aliases: [WireID: WireID] = [:]
  private(set) package var names: [Place: WireID] = [:]
  private(set) package var versions: [WireID: VersionRow] = [:]
  private(set) package var number: Int64 = 0
  /// Its log, numbered from 1.
  private(set) package var events: [Event] = []
  /// Whose log it is.
  private let id = WireID().description
  /// The contents of versions that came with their sends, or were merged.
  private var texts: [WireID: [UInt8]] = [:]

  package init() {}

  package func item(_ id: WireID) -> ItemRow? { items[id] }
  package func alias(_ id: WireID) -> WireID? { aliases[id] }
  package func occupant(of place: Place) -> WireID? { names[place] }
  package func version(_ id: WireID) -> VersionRow? { versions[id] }
  package func isSeen(_ row: ItemRow) -> Bool { true }

  package func isShared(_ row: ItemRow) -> Bool { false }

  package func version(of item: WireID, time: Int64, digest: [UInt8]) -> WireID? {
    versions.values.filter { $0.item == item && $0.time == time && $0.digest == digest }
      .min { $0.number < $1.number }?.id
  }

  package func children(of folder: WireID, limit: Int) -> [WireID] {
    Array(names.filter { $0.key.parent == folder }.values.prefix(limit))
  }

  package static func author(_ device: String, at time: Timestamp = Timestamp(seconds: 1_800_000_000)) -> SendAuthor {
    SendAuthor(device: device, deviceName: device, handle: "alice@hub.example", name: "Alice", now: time)
  }

  /// Does what a device sends, and gives numbers as a zone does.
  ///
  /// - Parameter besides: Versions that are not merged, though they could be.
  package mutating func send(_ group: [Send], by author: SendAuthor, besides: Set<WireID> = []) throws -> [Verdict] {
    func proposals(_ merges: [WireID: (merge: PreparedMerge, text: [UInt8])]) -> [Proposal] {
      group.map { send in
        guard let version = send.version else { return Proposal(send: send) }
        let manifest = version.stored.manifest
        return Proposal(
          send: send, digest: manifest?.digest ?? [], size: manifest?.size ?? 0, merge: merges[version.id]?.merge)
      }
    }
    var decision = Decision(author, on: self)
    var verdicts = try decision.decide(proposals([:]))
    if verdicts.contains(where: { $0.outcome == .refused }) { return verdicts }
    for version in group.compactMap(\.version) { texts[version.id] = version.contents.map { [UInt8]($0) } }
    var merges: [WireID: (merge: PreparedMerge, text: [UInt8])] = [:]
    for conflict in decision.conflicts where !besides.contains(conflict.sent) {
      guard comes(conflict.current, from: conflict.base), let text = merged(conflict) else { continue }
      let extents = text.isEmpty ? [] : [Extent(hash: Chunk(text).hash, length: Int64(text.count))]
      guard let manifest = Manifest(extents) else { continue }
      merges[conflict.sent] = (PreparedMerge(of: conflict, manifest), text)
    }
    if !merges.isEmpty {
      decision = Decision(author, on: self)
      verdicts = try decision.decide(proposals(merges))
    }
    for (merge, text) in merges.values { texts[merge.version] = text }
    var draft = decision.draft
    for (_, before) in draft.changed {
      guard let before, !before.isDeleted else { continue }
      for place in before.places { names[place] = nil }
    }
    let times = Dictionary(group.map { ($0.item, $0.time) }) { first, _ in first }
    for (id, before) in draft.changed {
      guard var row = try draft.item(id) else { continue }
      number += 1
      row.number = number
      row.others = before.map { $0.device == author.device ? $0.others : $0.number } ?? 0
      row.device = author.device
      let placed = Placement(of: row, before, number: number, time: times[id] ?? nil, by: nil, at: author.now)
      if let placed { row.placement = placed }
      items[id] = row
      if row.isDeleted { continue }
      for place in row.places {
        if names.updateValue(id, forKey: place) != nil { throw Broken(description: "two items have one name") }
      }
    }
    for (alias, item) in draft.newAliases { aliases[alias] = item }
    for version in draft.newVersions { versions[version.id] = version }
    var writer = EventWriter(zone: id, author: author, takenAlong: decision.takenAlong, sends: group)
    for event in try writer.events(of: &draft, []) {
      events.append(event.numbered(Int64(events.count) + 1, of: id))
    }
    for index in verdicts.indices { verdicts[index].number = items[verdicts[index].item]?.number }
    return verdicts
  }

  /// The contents of a version; nil where they are not known.
  package func text(of version: WireID) -> [UInt8]? { texts[aliases[version] ?? version] }

  /// An item as the feed tells of it; nil where there never was one.
  package func state(_ id: WireID) -> ItemState? {
    items[id].map { row in Feeds.state(row, row.version.flatMap { version($0) }) }
  }

  private func merged(_ conflict: SaveConflict) -> [UInt8]? {
    guard let places = items[conflict.item]?.places,
      let base = texts[conflict.base], let current = texts[conflict.current], let sent = texts[conflict.sent]
    else { return nil }
    let ways = places.map { place in
      var (way, next) = ([place.name], place.parent)
      while next != .root, let above = items[next]?.places.first {
        way.append(above.name)
        next = above.parent
      }
      return way
    }
    return MergeableText.allows(ways) ? MergeableText.merged(base: base, current, sent) : nil
  }

  /// Whether a version is among those that another one was made from.
  private func comes(_ version: WireID, from ancestor: WireID) -> Bool {
    var next = [version]
    var seen: Set<WireID> = []
    while let id = next.popLast() {
      if id == ancestor { return true }
      guard seen.insert(id).inserted, let row = versions[id], let base = row.base else { continue }
      next.append(aliases[base] ?? base)
      // Of what the hub merged, the version before is the other parent.
      if let other = versions.values.first(where: { $0.item == row.item && $0.number == row.number - 1 }),
        id == PreparedMerge.version(of: other.id, and: base)
      {
        next.append(other.id)
      }
    }
    return false
  }

  package struct Broken: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
  }

  /// What must hold after every send.
  package func check() throws {
    var places = 0
    for (id, row) in items {
      if row.kind == .folder, row.places.count != 1 { throw Broken(description: "a folder has two names") }
      if row.isDeleted { continue }
      places += row.places.count
      for place in row.places {
        if names[place] != id { throw Broken(description: "a name leads elsewhere") }
        var next = place.parent
        var depth = 0
        while next != .root {
          guard let folder = items[next], folder.kind == .folder, !folder.isDeleted, depth <= items.count else {
            throw Broken(description: "no way leads to the root")
          }
          next = folder.places[0].parent
          depth += 1
        }
      }
      if let version = row.version, versions[version]?.item != id || versions[version]?.number != row.versions {
        throw Broken(description: "a version is another one's")
      }
    }
    if places != names.count { throw Broken(description: "a name leads nowhere") }
    if Set(items.values.map(\.number)).count != items.count { throw Broken(description: "two items have one number") }
  }

  /// The live items by path, for a look at the whole.
  package var paths: [String: WireID] {
    var paths: [String: WireID] = [:]
    for (place, id) in names {
      var words = [String(decoding: place.name, as: UTF8.self)]
      var next = place.parent
      while next != .root, let above = items[next]?.places.first {
        words.append(String(decoding: above.name, as: UTF8.self))
        next = above.parent
      }
      paths[words.reversed().joined(separator: "/")] = id
    }
    return paths
  }
}
