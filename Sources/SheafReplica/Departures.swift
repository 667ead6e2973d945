import Foundation
import SheafWire

/// What was changed on this machine and the hub does not have, as sends in an order in which the hub can do them.
struct Departures {
  /// What one item's send comes to, before the sends have their order.
  private struct Departure {
    /// What was saved before the item entered the share that it is in, and no person there sees: sent while it is outside.
    var former: [Send] = []
    let send: Send
    /// Versions that follow, each in a send of its own.
    let versions: [LocalVersion]
    /// Whether these are of the same group as `send`.
    var isWhole = false
  }

  /// Bytes of the versions of a new document that are sent as one group, at most: the hub keeps chunks for a day until
  /// all are there.
  private static let wholeBytes: Int64 = 256 << 20

  private var draft: ReplicaDraft
  /// The newest number of the feed below which everything is shown.
  private let read: Int64
  private var departures: [WireID: Departure] = [:]
  /// Whether all that was changed here is looked at.
  private let isWhole: Bool

  init(_ draft: ReplicaDraft, read: Int64, isWhole: Bool) {
    self.draft = draft
    self.read = read
    self.isWhole = isWhole
  }

  /// - Parameter changed: The items that were changed here.
  /// - Returns: groups of sends without serials, and the draft.
  mutating func depart(_ changed: [WireID]) throws -> (groups: [[Send]], draft: ReplicaDraft) {
    let joined = try join(changed)
    for id in changed.sorted() where id != .root && !joined.contains(id) { departures[id] = try departure(id) }
    try holdEntries(changed)
    while try hold() {}
    return (try ordered(), draft)
  }

  /// Makes items that became others at the hub those others here, where that was not possible before: the hub takes
  /// whatever is sent of the one for the other.
  ///
  /// - Returns: both of each, to be compared once that is done.
  private mutating func join(_ changed: [WireID]) throws -> Set<WireID> {
    var joined: Set<WireID> = []
    for id in changed.sorted() where id != .root {
      let other = try draft.resolve(id)
      guard other != id, try draft.local(id) != nil else { continue }
      if try draft.local(other) == nil { try draft.identify(id, as: other) } else { try draft.absorb(id, into: other) }
      joined.formUnion([id, other])
    }
    return joined
  }

  static func isClean(_ local: LocalItem, _ base: ItemState?) -> Bool {
    guard let base else { return false }
    return local.unsent.isEmpty && local.places == Set(base.places) && local.mode == base.mode
      && (local.kind == .folder || local.mtime == base.mtime) && local.target == base.target
      && local.attributes == base.attributes
  }

  // MARK: - One item

  private mutating func departure(_ id: WireID) throws -> Departure? {
    let (local, base) = (try draft.local(id), try draft.base(id))
    switch try draft.mark(id) {
    case .undone, .refused: return nil
    case .deletedInParts, .alone, .renewed, .returning, nil: break
    }
    guard let local else {
      guard let base, try isDue(deletionOf: base) else { return nil }
      return Departure(
        send: Send(serial: 0, item: id, kind: base.kind, base: base.number, read: read, isDeletion: true), versions: [])
    }
    guard local.readiness == .ready || (local.readiness == .never && base != nil) else { return nil }
    if let entering = try entering(local, base) { return entering }
    guard let base else { return try creation(of: local) }
    var former: [Send] = []
    if local.kind == .folder, let entry = try draft.entry(id), let left = try share(of: base), left != entry.item,
      entry.item != id
    {
      // What was done in it between the one share and the other, nobody sees in either.
      former = [
        Send(serial: 0, item: id, kind: .folder, base: base.number, read: read, places: [Self.outside(local)])
      ]
    }
    if local.unsent.isEmpty, let version = base.version?.id, local.version != version {
      // Everything that was saved here the hub has; another version is current there.
      var shown = local
      shown.version = version
      try draft.put(shown, base.version)
    }
    if Self.isClean(local, base) { return nil }
    return Departure(
      former: former,
      send: Send(
        serial: 0, item: id, kind: local.kind, base: base.number, read: read,
        places: local.places == Set(base.places) ? nil : local.places.sorted(),
        mode: local.mode == base.mode ? nil : local.mode,
        mtime: local.kind == .folder || local.mtime == base.mtime ? nil : local.mtime,
        target: local.target == base.target ? nil : local.target,
        attributes: local.attributes == base.attributes ? nil : local.attributes,
        version: local.unsent.first.map(Self.sent)), versions: Array(local.unsent.dropFirst()))
  }

  /// The sends of a document that is in a share, if some of its versions are from before it entered that. They are sent
  /// while it is outside, at the hub, too: its numbers decide what people in the share see.
  ///
  /// - Returns: nil where nothing is to be hidden that the hub would not hide.
  private mutating func entering(_ local: LocalItem, _ base: ItemState?) throws -> Departure? {
    guard !local.unsent.isEmpty, let entry = try entry(of: local), entry.item != local.item,
      let last = local.unsent.lastIndex(where: { $0.time <= entry.time })
    else { return nil }
    let isInside = try base.map { try share(of: $0) != nil } ?? true
    // The version that was current then is seen. A save that comes with the move is current with it.
    let moves = base.map { Set($0.places) != local.places } ?? true
    if last == 0, isInside || moves { return nil }
    func version(_ index: Int, places: [Place]? = nil) -> Send {
      var send = Send(
        serial: 0, item: local.item, kind: local.kind, base: base?.number, read: read, places: places,
        version: Self.sent(local.unsent[index]))
      if base == nil, index == 0 {
        (send.mode, send.mtime, send.attributes) = (local.mode, local.mtime, local.attributes)
      }
      return send
    }
    let former = (0...last).map { version($0, places: $0 == 0 && isInside ? [Self.outside(local)] : nil) }
    let rest = Array(local.unsent.dropFirst(last + 1))
    let send = Send(
      serial: 0, item: local.item, kind: local.kind, base: base?.number, read: read,
      places: isInside || moves ? local.places.sorted() : nil,
      mode: local.mode == base?.mode ? nil : local.mode, mtime: local.mtime == base?.mtime ? nil : local.mtime,
      attributes: local.attributes == base?.attributes ? nil : local.attributes)
    if send.places == nil, send.mode == nil, send.mtime == nil, send.attributes == nil {
      return Departure(former: former.dropLast(), send: former[last], versions: rest)
    }
    return Departure(former: former, send: send, versions: rest)
  }

  /// Where an item is in a share. What another machine moves into one now, it enters now: all that was saved here is from
  /// before.
  private mutating func entry(of local: LocalItem) throws -> ShareEntry? {
    let entry = try draft.entry(local.item)
    var (next, seen) = (local.places.first?.parent, Set<WireID>())
    while let above = next, seen.insert(above).inserted {
      if above == entry?.item { return entry }
      if try draft.isShared(above) { return ShareEntry(item: above, time: .max) }
      next = above == .root ? nil : try draft.local(above)?.places.first?.parent
    }
    return entry
  }

  /// A place outside of all shares that no other item has.
  private static func outside(_ local: LocalItem) -> Place {
    let suffix = Array(".\(local.item)".utf8)
    let name = local.places.min()?.name ?? []
    return Place(parent: .root, name: name.prefix(WireLimits.nameBytes - suffix.count) + suffix)
  }

  /// The shared item in whose share an item is at the hub, or which it is; nil where it is in none.
  private mutating func share(of base: ItemState) throws -> WireID? {
    if try draft.isShared(base.item) { return base.item }
    var (next, seen) = (base.places.first?.parent, Set<WireID>())
    while let above = next, seen.insert(above).inserted {
      if try draft.isShared(above) { return above }
      next = above == .root ? nil : try draft.base(above)?.places.first?.parent
    }
    return nil
  }

  /// Whether an item is in a folder at the hub, at whatever depth.
  private mutating func isBelow(_ base: ItemState, _ folder: WireID) throws -> Bool {
    var (next, seen) = (base.places.first?.parent, Set<WireID>())
    while let above = next, above != .root, seen.insert(above).inserted {
      if above == folder { return true }
      next = try draft.base(above)?.places.first?.parent
    }
    return folder == .root
  }

  private mutating func creation(of local: LocalItem) throws -> Departure? {
    // The hub has the id of a document that was deleted there, with its versions.
    if local.kind == .document, local.unsent.isEmpty, local.version == nil { return nil }
    // The hub compares what is current with what has the name there, so it is to hear of all versions at once.
    var isWhole =
      local.unsentBytes <= Self.wholeBytes && local.unsent.count <= WireLimits.sendsPerRequest
      && zip(local.unsent, local.unsent.dropFirst()).allSatisfy { $1.base == $0.id }
    if try isSentAlone(local.item) { isWhole = false }
    return Departure(
      send: Send(
        serial: 0, item: local.item, kind: local.kind, read: read, places: local.places.sorted(), mode: local.mode,
        mtime: local.mtime, target: local.target, attributes: local.attributes,
        version: local.unsent.first.map(Self.sent)), versions: Array(local.unsent.dropFirst()), isWhole: isWhole)
  }

  private static func sent(_ version: LocalVersion) -> SentVersion {
    SentVersion(id: version.id, base: version.base, cause: version.cause, time: version.time)
  }

  /// Whether a deletion is to be sent now: it has lasted, and no folder around it is deleted that takes it along.
  private mutating func isDue(deletionOf base: ItemState) throws -> Bool {
    guard try draft.isGone(base.item) else { return false }
    let isTakenAlong = try base.places.allSatisfy { place in
      try place.parent != .root && draft.local(place.parent) == nil && draft.base(place.parent) != nil
        && draft.mark(place.parent) != .deletedInParts
    }
    if isTakenAlong { return false }
    if try draft.mark(base.item) == .deletedInParts { return try draft.baseChildren(of: base.item).isEmpty }
    return true
  }

  // MARK: - What has to wait

  /// Takes out folders that enter a share, if something was deleted or moved out of them that the hub does not hear of
  /// now: people in the share are not to see it.
  private mutating func holdEntries(_ changed: [WireID]) throws {
    for folder in try departures.keys.filter({ try enters($0) }) {
      let isLeft = try changed.contains { id in
        guard departures[id] == nil, let base = try draft.base(id), try isBelow(base, folder) else { return false }
        guard let local = try draft.local(id) else { return try !draft.isGone(id) }
        return try draft.mark(id) == nil && local.readiness != .never && local.places != Set(base.places)
      }
      if isLeft || !isWhole { departures[folder] = nil }
    }
  }

  /// Whether an item left a share with a folder above it, of which the hub may not have heard: what was saved since,
  /// people in the share are not to see.
  private mutating func leftAlong(_ id: WireID) throws -> Bool {
    guard let departure = departures[id], departure.former.isEmpty, departure.send.places == nil,
      let base = try draft.base(id), let share = try share(of: base), share != id
    else { return false }
    return try draft.entry(id)?.item != share
  }

  /// The nearest folder above an item at the hub that has another place here.
  private mutating func movedAbove(_ id: WireID) throws -> WireID? {
    var (next, seen) = (try draft.base(id)?.places.first?.parent, Set<WireID>())
    while let above = next, above != .root, seen.insert(above).inserted, let base = try draft.base(above) {
      if let local = try draft.local(above), local.places != Set(base.places) { return above }
      next = base.places.first?.parent
    }
    return nil
  }

  /// Whether the send of a folder that the hub has takes it into a share.
  private mutating func enters(_ id: WireID) throws -> Bool {
    guard let send = departures[id]?.send, send.kind == .folder, send.places != nil, let base = try draft.base(id),
      let entry = try draft.entry(id)
    else { return false }
    return try entry.item != id && !isBelow(base, entry.item)
  }

  /// Takes out what cannot be sent before something that is not sent now.
  private mutating func hold() throws -> Bool {
    var held: [WireID] = []
    for (id, departure) in departures where try mustWait(id, departure.send) { held.append(id) }
    for id in held { departures[id] = nil }
    return !held.isEmpty
  }

  private mutating func mustWait(_ id: WireID, _ send: Send) throws -> Bool {
    if try leftAlong(id), let folder = try movedAbove(id), departures[folder]?.send.places == nil { return true }
    for place in send.places ?? [] {
      if place.parent != .root, try draft.base(place.parent) == nil, departures[place.parent] == nil { return true }
      // The folder to which it goes is in it at the hub, and the hub is not to hear yet that it left.
      if send.kind == .folder, try willBe(place.parent, in: id) { return true }
      // The item that has the name at the hub leaves it here, but the hub is not to hear of that yet.
      if let occupant = try draft.baseOccupant(of: place), occupant != id, departures[occupant] == nil,
        try draft.news(occupant) == nil, try draft.mark(occupant) == nil
      {
        return true
      }
    }
    return false
  }

  /// Whether a folder is in another one, or is that, once the hub has done what is sent now.
  private mutating func willBe(_ folder: WireID, in other: WireID) throws -> Bool {
    var (next, seen) = (folder, Set<WireID>())
    while next != .root, seen.insert(next).inserted {
      if next == other { return true }
      let sent = departures[next]?.send.places?.first
      guard let above = try sent ?? draft.base(next)?.places.first else { return false }
      next = above.parent
    }
    return false
  }

  // MARK: - The order

  /// Groups of sends, each after those that it needs.
  ///
  /// Items that take each other's names are one group. A folder comes before what is made in it or moved to it; what is
  /// moved out of a folder comes before the folder's deletion.
  private mutating func ordered() throws -> [[Send]] {
    let ids = departures.keys.sorted()
    var groups = Partition(ids)
    /// For each item those whose names it takes.
    var formers: [WireID: Set<WireID>] = [:]
    for id in ids {
      for place in departures[id]?.send.places ?? [] {
        guard let occupant = try draft.baseOccupant(of: place), occupant != id, departures[occupant] != nil else {
          continue
        }
        formers[id, default: []].insert(occupant)
        if try !isSentAlone(id), try !isSentAlone(occupant) { groups.join(id, occupant) }
      }
    }
    var needs: [WireID: Set<WireID>] = [:]
    for id in ids { needs[id] = try prerequisites(of: id) }
    for (deletion, moved) in try movedOut(of: ids) { needs[deletion, default: []].formUnion(moved) }
    for folder in try ids.filter({ try enters($0) }) {
      for id in ids {
        guard id != folder, needs[id]?.contains(folder) != true, let base = try draft.base(id) else { continue }
        // What was changed in it, or left it, did so before it entered.
        if try isBelow(base, folder) { needs[folder, default: []].insert(id) }
      }
    }
    for id in ids where try leftAlong(id) {
      if let folder = try movedAbove(id), departures[folder]?.former.isEmpty ?? false,
        needs[folder]?.contains(id) != true
      {
        needs[id, default: []].insert(folder)
      }
    }
    // Folders are outside before what was saved in them goes.
    let former = ids.flatMap { departures[$0]?.former ?? [] }
    var sends = (former.filter { $0.kind == .folder } + former.filter { $0.kind != .folder }).map { [$0] }
    for var group in Self.order(ids, &groups, needs) {
      if group.count > WireLimits.sendsPerRequest {
        // It goes in parts: each name is free before it is taken. Where that is not to be had, as in a circle of that
        // length, the hub gives some item another name.
        let (order, circle) = Self.sorted(group, needs.merging(formers) { $0.union($1) })
        group = order + circle
      }
      var parts = group.compactMap { departures[$0]?.send }[...]
      while !parts.isEmpty {
        sends.append(Array(parts.prefix(WireLimits.sendsPerRequest)))
        parts = parts.dropFirst(WireLimits.sendsPerRequest)
      }
      for id in group {
        guard let departure = departures[id] else { continue }
        let versions = departure.versions.map { version in
          Send(serial: 0, item: id, kind: .document, base: departure.send.base, read: read, version: Self.sent(version))
        }
        if departure.isWhole, group.count == 1 {
          sends[sends.count - 1] += versions
        } else {
          sends += versions.map { [$0] }
        }
      }
    }
    return sends
  }

  private mutating func isSentAlone(_ id: WireID) throws -> Bool {
    let mark = try draft.mark(id)
    return mark == .alone || mark == .renewed
  }

  /// The nearest folders above an item that are sent, too.
  private mutating func prerequisites(of id: WireID) throws -> Set<WireID> {
    var found: Set<WireID> = []
    for place in departures[id]?.send.places ?? [] {
      var (next, seen) = (place.parent, Set<WireID>())
      while next != .root, seen.insert(next).inserted {
        if departures[next]?.send.places != nil {
          found.insert(next)
          break
        }
        guard let above = try draft.local(next)?.places.first?.parent else { break }
        next = above
      }
    }
    return found
  }

  /// For each deleted folder, what is sent and was somewhere in it.
  private mutating func movedOut(of ids: [WireID]) throws -> [WireID: Set<WireID>] {
    guard departures.values.contains(where: { $0.send.isDeletion && $0.send.kind == .folder }) else { return [:] }
    var found: [WireID: Set<WireID>] = [:]
    for id in ids {
      for place in try draft.base(id)?.places ?? [] {
        var (next, seen) = (place.parent, Set<WireID>())
        while next != .root, seen.insert(next).inserted {
          if departures[next]?.send.isDeletion == true { found[next, default: []].insert(id) }
          guard let above = try draft.base(next)?.places.first?.parent else { break }
          next = above
        }
      }
    }
    return found
  }

  /// The groups so that each comes after what it needs, and in each group likewise. Groups that need each other become
  /// one.
  private static func order(
    _ ids: [WireID], _ groups: inout Partition, _ needs: [WireID: Set<WireID>]
  ) -> [[WireID]] {
    while true {
      let members = groups.members
      var wants: [WireID: Set<WireID>] = [:]
      for id in ids {
        let own = groups.root(id)
        for need in needs[id] ?? [] where groups.root(need) != own { wants[own, default: []].insert(groups.root(need)) }
      }
      let (order, cycle) = Self.sorted(members.keys.sorted(), wants)
      if cycle.isEmpty {
        return order.map { root in
          let group = members[root] ?? []
          let (inner, left) = Self.sorted(group, needs.filter { group.contains($0.key) })
          // The hub checks a group's names at its end; of an order that cannot be had, any is as good.
          return inner + left
        }
      }
      for each in cycle.dropFirst() { groups.join(cycle[0], each) }
    }
  }

  /// Elements so that each comes after those it needs among them, and those that need each other in a circle, or stand
  /// behind one.
  private static func sorted(
    _ elements: [WireID], _ needs: [WireID: Set<WireID>]
  ) -> (order: [WireID], cycle: [WireID]) {
    let all = Set(elements)
    var open: [WireID: Int] = [:]
    var followers: [WireID: [WireID]] = [:]
    for element in elements {
      let needed = (needs[element] ?? []).intersection(all).subtracting([element])
      open[element] = needed.count
      for each in needed.sorted() { followers[each, default: []].append(element) }
    }
    var order = elements.filter { open[$0] == 0 }
    var next = 0
    while next < order.count {
      for follower in followers[order[next]] ?? [] {
        open[follower, default: 0] -= 1
        if open[follower] == 0 { order.append(follower) }
      }
      next += 1
    }
    let done = Set(order)
    return (order, elements.filter { !done.contains($0) })
  }
}

/// Items in disjoint sets.
private struct Partition {
  private var parents: [WireID: WireID]

  init(_ ids: [WireID]) { parents = Dictionary(uniqueKeysWithValues: ids.map { ($0, $0) }) }

  /// The item by which its set is known.
  mutating func root(_ id: WireID) -> WireID {
    var root = id
    while let next = parents[root], next != root { root = next }
    var each = id
    while each != root, let next = parents[each] {
      parents[each] = root
      each = next
    }
    return root
  }

  mutating func join(_ left: WireID, _ right: WireID) {
    let (left, right) = (root(left), root(right))
    if left != right { parents[max(left, right)] = min(left, right) }
  }

  var members: [WireID: [WireID]] {
    mutating get {
      var members: [WireID: [WireID]] = [:]
      for id in parents.keys.sorted() { members[root(id), default: []].append(id) }
      return members
    }
  }
}
