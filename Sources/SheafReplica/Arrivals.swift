import SheafWire

/// What the hub told is shown on this machine, as far as nothing that was changed here stands in the way.
///
/// A row that cannot be shown yet is held, with all that depends on it: its name is that of something the hub has not
/// heard of, its folder is missing, or it would put a folder into itself. What was changed here is sent, and the hub's
/// verdict clears the way.
struct Arrivals {
  /// An item as it is to be; nil where it is to go.
  private struct Wanted {
    let item: WireID
    let state: ItemState
    let local: LocalItem?
  }

  private var draft: ReplicaDraft
  private var wanted: [WireID: Wanted] = [:]

  init(_ draft: ReplicaDraft) { self.draft = draft }

  /// - Parameter news: The items of which there are news.
  /// - Returns: the draft, in which what can be shown is.
  mutating func arrive(_ news: [WireID]) throws -> ReplicaDraft {
    for id in news.sorted() {
      guard let state = try draft.news(id) else { continue }
      try take(state)
    }
    while try hold() {}
    try clearNames()
    let shown = wanted.values.sorted { $0.item < $1.item }
    // What goes comes first, and of that what is deepest: a folder is empty by then.
    for each in try ordered(shown.filter { $0.local == nil }) { try remove(each) }
    for each in shown {
      if let local = each.local { try draft.put(local, each.state.version) }
      try agree(each.item, each.state)
    }
    return draft
  }

  /// Notes that this machine and the hub agree on an item.
  private mutating func agree(_ id: WireID, _ state: ItemState) throws {
    try draft.setBase(id, state.isDeleted ? nil : state)
    draft.setNews(id, nil)
    if try draft.mark(id) == .undone { try draft.setMark(id, nil) }
  }

  // MARK: - One row

  private mutating func take(_ state: ItemState) throws {
    let id = state.item
    let isUndone = try draft.mark(id) == .undone
    let (local, base) = (try draft.local(id), try draft.base(id))
    if state.isDeleted {
      try takeDeletion(state, local, base, isUndone: isUndone)
    } else if let local {
      let merged = Self.merge(local, base, state, isUndone: isUndone)
      if merged.places == local.places {
        try draft.put(merged, state.version)
        try agree(id, state)
      } else {
        wanted[id] = Wanted(item: id, state: state, local: merged)
      }
    } else if let base, !isUndone, Self.isSame(base, state) {
      // It was deleted here, and nobody changed it meanwhile.
      try agree(id, state)
    } else {
      wanted[id] = Wanted(item: id, state: state, local: LocalItem(state))
    }
  }

  private mutating func takeDeletion(
    _ state: ItemState, _ local: LocalItem?, _ base: ItemState?, isUndone: Bool
  ) throws {
    guard let local else { return try agree(state.item, state) }
    if state.isPurged, try isNews(local, base, isUndone: isUndone) {
      // The hub takes an id that was purged no more, so this is a new item.
      let new = try draft.keepUnsent(state.item)
      if local.kind == .document { draft.notify(new, .purgedElsewhere) }
      try agree(state.item, state)
    } else if !isUndone, !state.isPurged, !Departures.isClean(local, base) {
      // What was changed here comes back at the hub. It knows the id, but all of the item is sent.
      try agree(state.item, state)
      if try draft.mark(state.item) == nil { try draft.setMark(state.item, .returning) }
    } else {
      wanted[state.item] = Wanted(item: state.item, state: state, local: nil)
    }
  }

  /// Whether an item of this machine holds what the hub never had.
  ///
  /// A document does not where only its names or attributes were changed: all that it holds was to be destroyed. One
  /// that was deleted at the hub, and brought back here, is to stay: that was meant after the deletion.
  private mutating func isNews(_ local: LocalItem, _ base: ItemState?, isUndone: Bool) throws -> Bool {
    switch local.kind {
    case .document:
      try !local.unsent.isEmpty
        || !isUndone && base == nil && draft.mark(local.item) != .returning && local.isBroughtBack
    case .symlink: !isUndone && local.target != base?.target
    case .folder: !isUndone && !Departures.isClean(local, base)
    }
  }

  /// The item of this machine, with what the hub changed and nobody changed here.
  private static func merge(_ local: LocalItem, _ base: ItemState?, _ state: ItemState, isUndone: Bool) -> LocalItem {
    var merged = local
    let takes = { (isUnchanged: Bool) in isUndone || isUnchanged }
    if takes(base.map { local.places == Set($0.places) } ?? false) { merged.places = Set(state.places) }
    if takes(base.map { local.mode == $0.mode } ?? false) { merged.mode = state.mode }
    if local.kind == .folder || takes(base.map { local.mtime == $0.mtime } ?? false) { merged.mtime = state.mtime }
    if takes(base.map { local.target == $0.target } ?? false) { merged.target = state.target }
    if takes(base.map { local.attributes == $0.attributes } ?? false) { merged.attributes = state.attributes }
    if local.unsent.isEmpty, let version = state.version { merged.version = version.id }
    return merged
  }

  private static func isSame(_ base: ItemState, _ state: ItemState) -> Bool {
    Set(base.places) == Set(state.places) && base.mode == state.mode && base.target == state.target
      && base.attributes == state.attributes && base.version?.id == state.version?.id
      && (base.kind == .folder || base.mtime == state.mtime)
  }

  // MARK: - Names and folders

  /// Where an item is when all is done.
  private mutating func places(_ id: WireID) throws -> Set<Place> {
    if let each = wanted[id] { return each.local?.places ?? [] }
    return try draft.local(id)?.places ?? []
  }

  private mutating func isThere(_ folder: WireID) throws -> Bool {
    if folder == .root { return true }
    if let each = wanted[folder] { return each.local?.kind == .folder }
    return try draft.local(folder)?.kind == .folder
  }

  /// Holds back the rows that cannot be shown beside those that are.
  ///
  /// - Returns: whether there were any, so that others may have to be held, too.
  private mutating func hold() throws -> Bool {
    var takers: [Place: WireID] = [:]
    // Of two rows that want one name the newer one is right.
    for each in wanted.values.sorted(by: { ($0.state.number, $0.item) < ($1.state.number, $1.item) }) {
      for place in each.local?.places ?? [] { takers[place] = each.item }
    }
    var held: [WireID] = []
    for id in wanted.keys.sorted() {
      guard let each = wanted[id] else { continue }
      if let local = each.local {
        if try !local.places.allSatisfy({ try takers[$0] == id && isFree($0, for: id) && isThere($0.parent) })
          || isLoop(local)
        {
          held.append(id)
        }
      } else if try !isEmpty(id) {
        try keepPurgedFolder(each)
        held.append(id)
      }
    }
    for id in held { wanted[id] = nil }
    return !held.isEmpty
  }

  /// Whether a name is free for an item when all is done, or can be cleared for it.
  private mutating func isFree(_ place: Place, for id: WireID) throws -> Bool {
    guard let occupant = try draft.localOccupant(of: place), occupant != id else { return true }
    return try !places(occupant).contains(place) || mustYield(occupant)
  }

  /// Whether the hub will never hear of an item, so that it cannot decide about its name.
  private mutating func mustYield(_ id: WireID) throws -> Bool {
    guard let local = try draft.local(id), try draft.base(id) == nil, wanted[id] == nil else { return false }
    if local.readiness == .never { return true }
    if case .refused = try draft.mark(id) { return true }
    return false
  }

  private mutating func isLoop(_ item: LocalItem) throws -> Bool {
    guard item.kind == .folder else { return false }
    var seen: Set<WireID> = [item.item]
    var next = item.places.first?.parent
    while let folder = next, folder != .root {
      guard seen.insert(folder).inserted else { return true }
      next = try places(folder).first?.parent
    }
    return false
  }

  /// Gives another id to a purged folder that is to go, if something is in it that the hub does not have there: the hub
  /// takes its id no more, and what is in it could never be sent.
  private mutating func keepPurgedFolder(_ each: Wanted) throws {
    guard each.state.isPurged else { return }
    var isKept = false
    for child in try draft.localChildren(of: each.item) where wanted[child].map({ $0.local != nil }) ?? true {
      guard let base = try draft.base(child) else {
        isKept = try isKept || draft.local(child)?.readiness != .never
        continue
      }
      isKept = isKept || !base.places.contains { $0.parent == each.item }
    }
    guard isKept else { return }
    try draft.keepUnsent(each.item)
    try agree(each.item, each.state)
  }

  /// Whether nothing is in an item when all is done, but what the hub never hears of.
  private mutating func isEmpty(_ id: WireID) throws -> Bool {
    guard try draft.local(id)?.kind == .folder else { return true }
    for child in try draft.localChildren(of: id) where try places(child).contains(where: { $0.parent == id }) {
      guard try draft.base(child) == nil, try draft.local(child)?.readiness == .never else { return false }
    }
    return !wanted.values.contains { $0.local?.places.contains { $0.parent == id } ?? false }
  }

  /// Gives other names to what has a name that is needed, and of which the hub never hears.
  private mutating func clearNames() throws {
    for id in wanted.keys.sorted() {
      for place in (wanted[id]?.local?.places ?? []).sorted() {
        guard let occupant = try draft.localOccupant(of: place), occupant != id, try mustYield(occupant),
          var local = try draft.local(occupant), local.places.contains(place)
        else { continue }
        local.places.remove(place)
        let wanted = wanted
        local.places.insert(
          try draft.freePlace(place, kind: local.kind) { candidate in
            wanted.values.contains { $0.local?.places.contains(candidate) ?? false }
          })
        try draft.put(local)
      }
    }
  }

  // MARK: - Going

  /// Removals with what is in a folder before the folder.
  private mutating func ordered(_ removals: [Wanted]) throws -> [Wanted] {
    var depths: [(depth: Int, wanted: Wanted)] = []
    for each in removals {
      var (depth, seen) = (0, Set<WireID>())
      var next = try draft.local(each.item)?.places.first?.parent
      while let folder = next, folder != .root, seen.insert(folder).inserted {
        depth += 1
        next = try draft.local(folder)?.places.first?.parent
      }
      depths.append((depth, each))
    }
    return depths.sorted { ($1.depth, $0.wanted.item) < ($0.depth, $1.wanted.item) }.map(\.wanted)
  }

  private mutating func remove(_ each: Wanted) throws {
    if try draft.local(each.item)?.kind == .folder {
      // Temporary files go with their folder, and can be recovered like it.
      for child in try draft.localChildren(of: each.item) where try draft.local(child)?.readiness == .never {
        try draft.delete(child)
      }
    }
    if each.state.isPurged {
      try draft.destroy(each.item)
    } else {
      try draft.delete(each.item, told: Deletion(each.state))
    }
  }
}
