import Foundation
import SheafReplica
import SheafWire

/// The tree of one machine, in memory, with the rules of a file system.
struct SimulatedTree {
  struct Broken: Error, CustomStringConvertible { let description: String }

  private(set) var items: [WireID: LocalItem] = [:]
  private(set) var names: [Place: WireID] = [:]
  /// Versions of each document, the oldest first.
  private(set) var chains: [WireID: [LocalVersion]] = [:]
  /// The contents of versions.
  private(set) var texts: [WireID: String] = [:]
  /// What was deleted here, with what the hub had not acknowledged.
  private(set) var trash: [LocalItem] = []

  func children(of folder: WireID) -> [WireID] { names.filter { $0.key.parent == folder }.values.sorted() }

  func isInside(_ id: WireID, of folder: WireID) -> Bool {
    var next: WireID? = id
    var depth = 0
    while let each = next, each != .root, depth < 1_000 {
      if each == folder { return true }
      next = items[each]?.places.first?.parent
      depth += 1
    }
    return false
  }

  // MARK: - What programs do

  mutating func put(_ item: LocalItem) {
    for place in items[item.item]?.places ?? [] where names[place] == item.item { names[place] = nil }
    for place in item.places { names[place] = item.item }
    items[item.item] = item
  }

  mutating func remove(_ id: WireID) {
    guard let item = items.removeValue(forKey: id) else { return }
    for place in item.places where names[place] == id { names[place] = nil }
    trash.append(item)
  }

  mutating func save(_ version: LocalVersion, _ text: String, of id: WireID) {
    texts[version.id] = text
    chains[id, default: []].append(version)
    items[id]?.unsent.append(version)
    items[id]?.version = version.id
  }

  // MARK: - What the hub's word asks for

  mutating func apply(_ changes: [LocalChange], fetch: (WireID) -> String?) throws {
    for change in changes { try apply(change, fetch) }
    names = [:]
    for (id, item) in items {
      for place in item.places where names.updateValue(id, forKey: place) != nil {
        throw Broken(description: "two items have one name: \(String(decoding: place.name, as: UTF8.self))")
      }
    }
    try check()
  }

  private mutating func apply(_ change: LocalChange, _ fetch: (WireID) -> String?) throws {
    switch change {
    case .put(let item, let facts):
      if let version = item.version, texts[version] == nil {
        guard let text = fetch(version) else { throw Broken(description: "a version has no contents: \(version)") }
        texts[version] = text
      }
      if let version = item.version, !(chains[item.item] ?? []).contains(where: { $0.id == version }) {
        guard let facts else { throw Broken(description: "nothing is told of a version: \(version)") }
        chains[item.item, default: []].append(
          LocalVersion(id: version, base: facts.base, cause: facts.cause, time: facts.time))
      }
      items[item.item] = item
    case .delete(let id, _):
      guard let item = items.removeValue(forKey: id) else { throw Broken(description: "nothing to delete") }
      trash.append(item)
    case .destroy(let id): items[id] = nil
    case .destroySent(let id):
      guard let item = items[id] else { throw Broken(description: "nothing of which to destroy versions") }
      chains[id]?.removeAll { version in version.id != item.version && !item.unsent.contains { $0.id == version.id } }
    case .identify(let id, let new, let versions):
      guard let item = items.removeValue(forKey: id), items[new] == nil else {
        throw Broken(description: "nothing to identify, or the id is taken")
      }
      let renamed = { (version: LocalVersion) in
        LocalVersion(
          id: versions[version.id] ?? version.id, base: version.base.map { versions[$0] ?? $0 }, cause: version.cause,
          time: version.time)
      }
      items[new] = LocalItem(
        item: new, kind: item.kind, places: item.places, mode: item.mode, mtime: item.mtime, target: item.target,
        attributes: item.attributes, version: item.version.map { versions[$0] ?? $0 },
        unsent: item.unsent.map(renamed), readiness: item.readiness)
      for (mine, theirs) in versions { texts[theirs] = texts[mine] }
      chains[new, default: []] += (chains.removeValue(forKey: id) ?? []).map(renamed)
      moveIn(id, new)
    case .renew(let id):
      guard let item = items[id], let version = item.version, item.unsent.isEmpty,
        let current = chains[id]?.last(where: { $0.id == version })
      else { throw Broken(description: "nothing to renew") }
      items[id]?.unsent = [current]
    case .absorb(let id, let other):
      guard let item = items.removeValue(forKey: id), var whole = items[other] else {
        throw Broken(description: "nothing to absorb")
      }
      whole.unsent += item.unsent
      chains[other, default: []] += item.unsent
      if let last = item.unsent.last { whole.version = last.id }
      items[other] = whole
    case .moveVersion(let version, let id, let other):
      guard var item = items[id], let index = item.unsent.firstIndex(where: { $0.id == version }) else {
        throw Broken(description: "no such version to move")
      }
      let moved = item.unsent.remove(at: index)
      chains[id]?.removeAll { $0.id == version }
      if item.version == version { item.version = chains[id]?.last { !item.unsent.contains($0) }?.id }
      items[id] = item
      if !(chains[other.item] ?? []).contains(where: { $0.id == version }) {
        chains[other.item, default: []].append(moved)
      }
      items[other.item] = other
    }
  }

  private mutating func moveIn(_ folder: WireID, _ other: WireID) {
    for (id, item) in items where item.places.contains(where: { $0.parent == folder }) {
      items[id]?.places = Set(
        item.places.map { $0.parent == folder ? Place(parent: other, name: $0.name) : $0 })
    }
  }

  /// Every item has a name in a folder that is there, and none is inside of itself.
  func check() throws {
    for (id, item) in items {
      guard !item.places.isEmpty, item.kind != .folder || item.places.count == 1 else {
        throw Broken(description: "an item has no name, or a folder has two")
      }
      for place in item.places {
        var (next, depth) = (place.parent, 0)
        while next != .root {
          guard let folder = items[next], folder.kind == .folder, next != id, depth < items.count,
            let above = folder.places.first
          else { throw Broken(description: "no way leads to the root") }
          next = above.parent
          depth += 1
        }
      }
    }
  }

  func path(_ place: Place) -> String {
    var words = [String(decoding: place.name, as: UTF8.self)]
    var next = place.parent
    while next != .root, let above = items[next]?.places.first {
      words.append(String(decoding: above.name, as: UTF8.self))
      next = above.parent
    }
    return words.reversed().joined(separator: "/")
  }

  /// What people see, by path.
  func shown() -> [String: String] {
    var shown: [String: String] = [:]
    for (place, id) in names {
      guard let item = items[id], item.readiness != .never else { continue }
      let text = item.version.map { "\($0) \(texts[$0] ?? "?")" } ?? ""
      shown[path(place)] =
        "\(id) \(item.kind) \(String(item.mode, radix: 8)) \(item.kind == .folder ? 0 : item.mtime) "
        + "\(item.target.map { String(decoding: $0, as: UTF8.self) } ?? "") "
        + "\(item.attributes.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.count)" }) \(text)"
    }
    return shown
  }
}
