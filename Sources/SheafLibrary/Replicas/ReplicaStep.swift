package import SheafReplica
package import SheafWire

/// A part of a plan that is carried out at once. The store keeps the steps of a plan until each was carried out, so a
/// process that ends in the middle goes on with the next.
package enum ReplicaStep: Hashable, Sendable, Codable {
  /// The item is made, or comes back from the trash, if it is not here. If its name is taken, it gets one like it until
  /// it is placed.
  case make(LocalItem, ItemVersion?)
  /// Everything but its names is to be so. What has changed here since the plan was made stays as it is.
  case set(LocalItem, since: LocalItem, ItemVersion?)
  /// The item is to have these names. What has one of them and is placed later makes way.
  case place(WireID, Set<Place>)
  case delete(WireID, told: Deletion? = nil)
  case destroy(WireID)
  case destroySent(WireID)
  case identify(WireID, as: WireID, versions: [WireID: WireID])
  /// The current version of the document is one that the hub does not have.
  case renew(WireID)
  case absorb(WireID, into: WireID, versions: [WireID])
  case moveVersion(WireID, from: WireID, to: LocalItem)

  /// The item whose contents of a version are needed, where this machine does not have them.
  package var contents: (item: WireID, version: ItemVersion)? {
    switch self {
    case .make(let item, let version?), .set(let item, _, let version?): (item.item, version)
    default: nil
    }
  }

  /// The versions that are here and that it needs.
  var versions: [WireID] {
    switch self {
    case .make(let item, _): item.unsent.map(\.id)
    case .set(_, let before, _): before.unsent.map(\.id)
    case .identify(_, _, let versions): Array(versions.keys)
    case .absorb(_, _, let versions): versions
    case .moveVersion(let version, _, _): [version]
    case .place, .delete, .destroy, .destroySent, .renew: []
    }
  }
}

/// Puts the changes of a plan into an order in which a file system can make them one by one.
///
/// A plan's names are right once all of it is done. So files go first, then what is new is made, each folder before what
/// is in it; then the rest of each item is set, folders go, which are empty once others were placed, and everything gets
/// its name, from the top down.
struct ReplicaSteps {
  private var steps: [ReplicaStep] = []
  /// Items as the changes so far leave them.
  private var items: [WireID: LocalItem?] = [:]
  private let read: (WireID) throws -> LocalItem?
  private let isTaken: (Place) throws -> Bool

  // Of the changes that are gathered.
  private var removals: [ReplicaStep] = []
  private var folderRemovals: [ReplicaStep] = []
  private var made: [(item: LocalItem, version: ItemVersion?)] = []
  private var sets: [ReplicaStep] = []
  private var placed: [LocalItem] = []

  private init(
    _ read: @escaping (WireID) throws -> LocalItem?, isTaken: @escaping (Place) throws -> Bool
  ) {
    self.read = read
    self.isTaken = isTaken
  }

  /// - Parameters:
  ///   - isTaken: Whether something has a name before the first change.
  ///   - read: An item as it is then.
  static func order(
    _ changes: [LocalChange], isTaken: @escaping (Place) throws -> Bool,
    _ read: @escaping (WireID) throws -> LocalItem?
  ) throws -> [ReplicaStep] {
    var order = ReplicaSteps(read, isTaken: isTaken)
    for change in changes { try order.add(change) }
    try order.flush()
    return order.steps
  }

  private func item(_ id: WireID) throws -> LocalItem? {
    if let known = items[id] { return known }
    return try read(id)
  }

  private mutating func add(_ change: LocalChange) throws {
    switch change {
    case .put(let item, let version): try put(item, version)
    case .delete(let id, _), .destroy(let id):
      guard let gone = try item(id) else { return }
      let step: ReplicaStep = if case .delete(_, let told) = change { .delete(id, told: told) } else { .destroy(id) }
      if gone.kind == .folder { folderRemovals.append(step) } else { removals.append(step) }
      items[id] = .some(nil)
    case .destroySent(let id):
      try flush()
      steps.append(.destroySent(id))
    case .identify(let id, let new, let versions):
      try flush()
      steps.append(.identify(id, as: new, versions: versions))
      if let item = try item(id) { items[new] = item.identified(as: new, versions) }
      if id != new { items[id] = .some(nil) }
    case .renew(let id):
      try flush()
      steps.append(.renew(id))
    case .absorb(let id, let other):
      try flush()
      let (gone, whole) = (try item(id), try item(other))
      steps.append(.absorb(id, into: other, versions: (gone?.unsent ?? []).map(\.id)))
      if var whole, let gone {
        whole.unsent += gone.unsent
        if let last = gone.unsent.last { whole.version = last.id }
        items[other] = whole
      }
      items[id] = .some(nil)
    case .moveVersion(let version, let id, let other):
      try flush()
      steps.append(.moveVersion(version, from: id, to: other))
      if var item = try item(id) {
        item.unsent.removeAll { $0.id == version }
        items[id] = item
      }
      items[other.item] = other
    }
  }

  private mutating func put(_ item: LocalItem, _ version: ItemVersion?) throws {
    if let before = try self.item(item.item) {
      sets.append(.set(item, since: before, version))
      if before.places != item.places { placed.append(item) }
    } else {
      made.append((item, version))
      placed.append(item)
    }
    items[item.item] = item
  }

  /// Whether nothing but new items get names, which nothing has: each is made under its own.
  private func areNamesFree() throws -> Bool {
    guard steps.isEmpty, placed.count == made.count else { return false }
    return try made.allSatisfy { made in
      try made.item.places.count == 1 && made.item.places.allSatisfy { try !isTaken($0) }
    }
  }

  private mutating func flush() throws {
    if try areNamesFree() { placed = [] }
    steps += removals
    let versions = Dictionary(made.map { ($0.item.item, $0.version) }) { $1 }
    steps += sorted(made.map(\.item)).map { .make($0, versions[$0.item] ?? nil) }
    // What is to be in another folder leaves the one that goes.
    let order = sorted(placed)
    steps += sets
    if !folderRemovals.isEmpty {
      steps += order.map { .place($0.item, $0.places) }
      steps += folderRemovals
    }
    steps += order.map { .place($0.item, $0.places) }
    (removals, folderRemovals, made, sets, placed) = ([], [], [], [], [])
  }

  /// Items with those that lie higher first.
  private func sorted(_ items: [LocalItem]) -> [LocalItem] {
    var parents: [WireID: WireID] = [:]
    for item in items { parents[item.item] = item.places.min()?.parent }
    var depths: [WireID: Int] = [:]
    for item in items {
      // Those above that are among them, up to one whose depth is known.
      var (way, next): ([WireID], WireID?) = ([], item.item)
      var passed: Set<WireID> = []
      while let id = next, parents[id] != nil, depths[id] == nil, passed.insert(id).inserted {
        way.append(id)
        next = parents[id]
      }
      var depth = next.flatMap { depths[$0] } ?? 0
      for id in way.reversed() {
        depth += 1
        depths[id] = depth
      }
    }
    return items.enumerated().sorted { left, right in
      (depths[left.element.item] ?? 0, left.offset) < (depths[right.element.item] ?? 0, right.offset)
    }.map(\.element)
  }
}

extension LocalItem {
  fileprivate func identified(as new: WireID, _ versions: [WireID: WireID]) -> LocalItem {
    LocalItem(
      item: new, kind: kind, places: places, mode: mode, mtime: mtime, target: target, attributes: attributes,
      version: version.map { versions[$0] ?? $0 },
      unsent: unsent.map { each in
        LocalVersion(
          id: versions[each.id] ?? each.id, base: each.base.map { versions[$0] ?? $0 }, cause: each.cause,
          time: each.time)
      }, readiness: readiness)
  }
}
