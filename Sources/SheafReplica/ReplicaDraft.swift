import SheafWire

/// The three trees with the changes of a plan, before they are carried out.
struct ReplicaDraft {
  private var reader: any ReplicaReader
  private var locals: [WireID: LocalItem?] = [:]
  private var bases: [WireID: ItemState?] = [:]
  private var newsRows: [WireID: ItemState?] = [:]
  private var marks: [WireID: ReplicaMark?] = [:]
  private var aliases: [WireID: WireID?] = [:]
  /// Names that were given or freed in this draft.
  private var localNames: [Place: WireID?] = [:]
  private var baseNames: [Place: WireID?] = [:]
  private(set) var changes: [LocalChange] = []
  private(set) var records: [RecordChange] = []
  private(set) var notices: [ReplicaNotice] = []

  init(_ reader: any ReplicaReader) { self.reader = reader }

  // MARK: - Reading

  mutating func local(_ id: WireID) throws -> LocalItem? {
    if let known = locals[id] { return known }
    let item = try reader.local(id)
    locals[id] = .some(item)
    return item
  }

  mutating func base(_ id: WireID) throws -> ItemState? {
    if let known = bases[id] { return known }
    let state = try reader.base(id)
    bases[id] = .some(state)
    return state
  }

  mutating func news(_ id: WireID) throws -> ItemState? {
    if let known = newsRows[id] { return known }
    let state = try reader.news(id)
    newsRows[id] = .some(state)
    return state
  }

  mutating func mark(_ id: WireID) throws -> ReplicaMark? {
    if let known = marks[id] { return known }
    let mark = try reader.mark(id)
    marks[id] = .some(mark)
    return mark
  }

  mutating func localOccupant(of place: Place) throws -> WireID? {
    if let known = localNames[place] { return known }
    return try reader.localOccupant(of: place)
  }

  mutating func baseOccupant(of place: Place) throws -> WireID? {
    if let known = baseNames[place] { return known }
    return try reader.baseOccupant(of: place)
  }

  /// The items in a folder of this machine, in the order of their ids.
  mutating func localChildren(of folder: WireID) throws -> [WireID] {
    var children = Set(try reader.localChildren(of: folder))
    for (place, occupant) in localNames where place.parent == folder {
      if let occupant { children.insert(occupant) }
    }
    return try children.filter { try local($0)?.places.contains { $0.parent == folder } ?? false }.sorted()
  }

  /// The items in a folder of the base, in the order of their ids.
  mutating func baseChildren(of folder: WireID) throws -> [WireID] {
    var children = Set(try reader.baseChildren(of: folder))
    for (place, occupant) in baseNames where place.parent == folder {
      if let occupant { children.insert(occupant) }
    }
    return try children.filter { try base($0)?.places.contains { $0.parent == folder } ?? false }.sorted()
  }

  mutating func isGone(_ id: WireID) throws -> Bool { try reader.isGone(id) }

  mutating func entry(_ id: WireID) throws -> ShareEntry? { try reader.entry(id) }

  mutating func isShared(_ id: WireID) throws -> Bool { try reader.isShared(id) }

  mutating func newID() -> WireID { reader.newID() }

  /// The id that an item has now.
  mutating func resolve(_ id: WireID) throws -> WireID {
    var (current, seen) = (id, Set([id]))
    while let next = try alias(current), seen.insert(next).inserted { current = next }
    return current
  }

  private mutating func alias(_ id: WireID) throws -> WireID? {
    if let known = aliases[id] { return known }
    return try reader.alias(id)
  }

  // MARK: - Changing

  /// Notes how an item is on this machine, without a change that makes it so.
  private mutating func note(_ item: LocalItem?, _ id: WireID) throws {
    for place in try local(id)?.places ?? [] where try localOccupant(of: place) == id {
      localNames[place] = .some(nil)
    }
    for place in item?.places ?? [] { localNames[place] = .some(id) }
    locals[id] = .some(item)
  }

  /// - Parameter version: What the hub tells of the item's version, where this machine may not have it.
  mutating func put(_ item: LocalItem, _ version: ItemVersion? = nil) throws {
    guard try local(item.item) != item else { return }
    try note(item, item.item)
    changes.append(.put(item, version?.id == item.version ? version : nil))
  }

  mutating func delete(_ id: WireID, told: Deletion? = nil) throws {
    guard try local(id) != nil else { return }
    try note(nil, id)
    changes.append(.delete(id, told: told))
  }

  mutating func destroy(_ id: WireID) throws {
    guard try local(id) != nil else { return }
    try note(nil, id)
    changes.append(.destroy(id))
  }

  /// Makes a new item of what the hub never had of an item of this machine: what it had was destroyed there. A document
  /// that was brought back here, and not saved since, keeps its current version, which is a new one to the hub.
  ///
  /// - Returns: the id of the new one; that of the item where it is not on this machine.
  @discardableResult
  mutating func keepUnsent(_ id: WireID) throws -> WireID {
    guard let item = try local(id) else { return id }
    if item.kind == .document { changes.append(.destroySent(id)) }
    let new = newID()
    guard item.kind == .document, item.unsent.isEmpty, let former = item.version else {
      try identify(id, as: new)
      return new
    }
    let version = newID()
    try identify(id, as: new, versions: [former: version])
    if var renewed = try local(new) {
      renewed.unsent = [LocalVersion(id: version, base: nil, cause: .recover, time: item.mtime)]
      try note(renewed, new)
      changes.append(.renew(new))
    }
    return new
  }

  /// Gives an item of this machine another id.
  ///
  /// - Parameter versions: New ids of its versions by the former ones.
  mutating func identify(_ id: WireID, as new: WireID, versions: [WireID: WireID] = [:]) throws {
    guard let item = try local(id) else { return }
    let children = item.kind == .folder ? try localChildren(of: id) : []
    try note(nil, id)
    let renamed = { (version: LocalVersion) in
      LocalVersion(
        id: versions[version.id] ?? version.id, base: version.base.map { versions[$0] ?? $0 }, cause: version.cause,
        time: version.time)
    }
    try note(
      LocalItem(
        item: new, kind: item.kind, places: item.places, mode: item.mode, mtime: item.mtime, target: item.target,
        attributes: item.attributes, version: item.version.map { versions[$0] ?? $0 },
        unsent: item.unsent.map(renamed), readiness: item.readiness), new)
    changes.append(.identify(id, as: new, versions: versions))
    for child in children {
      guard var moved = try local(child) else { continue }
      moved.places = Set(moved.places.map { $0.parent == id ? Place(parent: new, name: $0.name) : $0 })
      try note(moved, child)
    }
  }

  /// Makes one item of two of this machine: the first one goes.
  mutating func absorb(_ id: WireID, into other: WireID) throws {
    guard let item = try local(id), var whole = try local(other) else { return }
    if try isInside(other, of: id) {
      // It was moved into what goes: it comes to where that was.
      whole.places = item.places
      try put(whole)
    }
    for child in item.kind == .folder ? try localChildren(of: id) : [] {
      guard var moved = try local(child) else { continue }
      for place in moved.places where place.parent == id {
        moved.places.remove(place)
        moved.places.insert(try freePlace(Place(parent: other, name: place.name), kind: moved.kind))
      }
      try put(moved)
    }
    try note(nil, id)
    whole.unsent += item.unsent
    if let last = item.unsent.last { whole.version = last.id }
    try note(whole, other)
    changes.append(.absorb(id, into: other))
  }

  private mutating func isInside(_ id: WireID, of folder: WireID) throws -> Bool {
    var seen: Set<WireID> = []
    var next = try local(id)?.places.first?.parent
    while let above = next, above != .root, seen.insert(above).inserted {
      if above == folder { return true }
      next = try local(above)?.places.first?.parent
    }
    return false
  }

  /// A place, or where something of this machine has it, one like it that is free.
  mutating func freePlace(
    _ place: Place, kind: ItemKind, besides taken: (Place) -> Bool = { _ in false }
  ) throws -> Place {
    var (candidate, number) = (place, 2)
    while try localOccupant(of: candidate) != nil || taken(candidate) {
      candidate.name = MarkedName.numbered(place.name, number, isFolder: kind == .folder)
      number += 1
    }
    return candidate
  }

  /// Makes a version that is a document's another one's.
  ///
  /// - Parameters:
  ///   - back: The version that is current then in the first document, if the moved one was.
  ///   - other: The second document as it is to be where it is missing.
  mutating func moveVersion(_ version: WireID, from id: WireID, to other: LocalItem, back: WireID?) throws {
    guard var item = try local(id) else { return }
    item.unsent.removeAll { $0.id == version }
    if item.version == version { item.version = back }
    try note(item, id)
    var copy = try local(other.item) ?? other
    copy.version = version
    try note(copy, other.item)
    changes.append(.moveVersion(version, from: id, to: copy))
  }

  mutating func setBase(_ id: WireID, _ state: ItemState?) throws {
    for place in try base(id)?.places ?? [] where try baseOccupant(of: place) == id { baseNames[place] = .some(nil) }
    for place in state?.places ?? [] { baseNames[place] = .some(id) }
    bases[id] = .some(state)
    records.append(.base(id, state))
  }

  mutating func setNews(_ id: WireID, _ state: ItemState?) {
    newsRows[id] = .some(state)
    records.append(.news(id, state))
  }

  mutating func setMark(_ id: WireID, _ mark: ReplicaMark?) throws {
    guard try self.mark(id) != mark else { return }
    marks[id] = .some(mark)
    records.append(.mark(id, mark))
  }

  /// Notes that an item became another one, which is itself whatever it was before: a hub that went back may decide the
  /// other way round.
  mutating func addAlias(_ id: WireID, of other: WireID) throws {
    if try alias(other) != nil { setAlias(other, nil) }
    setAlias(id, other)
  }

  private mutating func setAlias(_ id: WireID, _ other: WireID?) {
    aliases[id] = .some(other)
    records.append(.alias(id, other))
  }

  mutating func notify(_ item: WireID, _ kind: ReplicaNotice.Kind) {
    notices.append(ReplicaNotice(item: item, kind: kind))
  }
}
