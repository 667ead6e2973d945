import SheafModel
import SheafStore

@testable import SheafLibrary

extension ProgramRun {
  /// The log tells each action once: whoever follows it has the tree that is there.
  func checkEvents() throws {
    let library = world.library
    library.completeSaves()
    try library.locked {
      try library.settleSessions()
      try library.settleEvents(all: true)
    }
    let events = try library.events(after: nil, limit: 100_000, for: nil).events
    guard events.map(\.sequence).elementsEqual((1...Int64(max(1, events.count))).prefix(events.count)) else {
      throw Violation(rule: "sequence numbers have no gaps", what: "\(events.map(\.sequence))")
    }
    var texts = ProgramSnapshot.Texts()
    let items = try ProgramSnapshot(library, &texts).items.values.map { ($0.row.uuid.text, $0) }
    // Who shares a file of any name means it.
    let shared = items.filter { library.shares[$0.1.row.id] != nil }.map(\.0)
    var log = FollowedLog()
    for event in events { try log.follow(event, meant: linked.union(shared)) }
    let told = Dictionary(uniqueKeysWithValues: items)
    let paths = log.paths
    for (id, document) in told where document.isLive && !document.row.isQuiet && document.inode.parent != 0 {
      guard let path = paths[id] else {
        if log.givers.contains(document.path) { continue }
        throw Violation(rule: "the log tells of what is there", what: "\(document.path) was not told of\n\(log.text)")
      }
      let owner = document.row.owner
      // No event tells that the oldest of several names went.
      guard path == document.path || owner != world.accounts[.alice] || linked.contains(id) else {
        throw Violation(
          rule: "the log tells where things are", what: "\(document.path) was told to be \(path)\n\(log.text)")
      }
    }
    for (id, path) in paths
    where !(told[id]?.isLive ?? false) && !log.givers.contains(path) && !vanished.contains(id) {
      throw Violation(rule: "the log tells of deletions", what: "\(path) is there no more\n\(log.text)")
    }
  }
}

/// The tree as someone has it who reads the log.
private struct FollowedLog {
  private struct Node {
    /// The id of the folder that it is in; nil for what lies in `Documents`.
    let folder: String?
    let name: String
  }

  private var nodes: [String: Node] = [:]
  /// Ids in the order in which they got their places, the latest last.
  private var order: [String] = []
  private var created: Set<String> = []
  /// Where documents were that gave their contents to others (rule 3 of ``Identity``). No event tells whether such a
  /// one is gone, or its program makes it anew.
  private(set) var givers: Set<String> = []
  private var lines: [String] = []

  var text: String { lines.joined(separator: "\n") }

  var paths: [String: String] { Dictionary(uniqueKeysWithValues: nodes.keys.map { ($0, path($0)) }) }

  func path(_ id: String) -> String {
    var names: [String] = []
    var next: String? = id
    while let id = next, let node = nodes[id], names.count < 64 {
      names.append(node.name)
      next = node.folder
    }
    return names.reversed().joined(separator: "/")
  }

  private mutating func place(_ id: String, _ path: String) {
    let folder = path.split(separator: "/").dropLast().joined(separator: "/")
    let name = String(path.split(separator: "/").last ?? "")
    // Where two folders change places, both have one path for a moment.
    nodes[id] = Node(folder: folder.isEmpty ? nil : order.last { $0 != id && self.path($0) == folder }, name: name)
    order.removeAll { $0 == id }
    order.append(id)
  }

  private mutating func remove(_ id: String) {
    nodes[id] = nil
    order.removeAll { $0 == id }
  }

  private func require(_ id: String, isThere: Bool, _ action: String) throws {
    guard (nodes[id] != nil) == isThere else {
      throw Violation(
        rule: "each action is told once", what: "\(action), and was \(isThere ? "not" : "already") there\n\(text)")
    }
  }

  mutating func follow(_ event: Event, meant: Set<String>) throws {
    let (item, data) = (event.data.item, event.data)
    lines.append(
      "\(event.sequence) \(event.type.rawValue) \(item.id.prefix(13)) \(data.previousPath ?? "") -> \(item.path)"
        + (data.version.map { " version \($0.number)" } ?? "")
        + (data.contents.map { " with \($0.map(\.path).joined(separator: ", "))" } ?? ""))
    switch event.type {
    case .created:
      if !givers.contains(path(item.id)) { try require(item.id, isThere: false, "\(item.path) is created") }
      let isPassing = [.temporary, .scratch].contains(FileRole(Array(item.name.utf8)))
      if isPassing, item.kind == "document", data.contentCount == nil, !meant.contains(item.id) {
        throw Violation(rule: "no event speaks of temporary files", what: "\(item.path)\n\(text)")
      }
      created.insert(item.id)
      place(item.id, item.path)
      for part in data.contents ?? [] { place(part.id, part.path) }
    case .deleted:
      try require(item.id, isThere: true, "\(item.path) is deleted")
      remove(item.id)
      for part in data.contents ?? [] { remove(part.id) }
    case .renamed, .moved:
      try require(item.id, isThere: true, "\(item.path) is renamed")
      place(item.id, item.path)
    case .edit:
      // What was deleted may still be written by who has it open.
      if !created.contains(item.id) { try require(item.id, isThere: true, "\(item.path) is edited") }
      if let former = data.previousPath { givers.insert(former) }
    default: break
    }
  }
}
