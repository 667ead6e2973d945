import ConformanceKit
import Foundation
import SheafReplica
import SheafWire

/// A machine with a replica, all of whose state is durable: each step is one transaction.
struct SimulatedReplica {
  /// What the planner reads.
  struct Reader: ReplicaReader {
    let replica: SimulatedReplica
    var random: SeededRandom

    func local(_ id: WireID) -> LocalItem? { replica.tree.items[id] }
    func base(_ id: WireID) -> ItemState? { replica.base[id] }
    func news(_ id: WireID) -> ItemState? { replica.news[id] }
    func mark(_ id: WireID) -> ReplicaMark? { replica.marks[id] }
    func localOccupant(of place: Place) -> WireID? { replica.tree.names[place] }
    func baseOccupant(of place: Place) -> WireID? { replica.baseNames[place] }
    func localChildren(of folder: WireID) -> [WireID] { replica.tree.children(of: folder) }
    func baseChildren(of folder: WireID) -> [WireID] {
      replica.baseNames.filter { $0.key.parent == folder }.values.sorted()
    }
    func isGone(_ id: WireID) -> Bool { !replica.unsettled.contains(id) }
    func alias(_ id: WireID) -> WireID? { replica.aliases[id] }

    /// As if some of the folders were shared.
    func isShared(_ id: WireID) -> Bool {
      (replica.tree.items[id]?.kind ?? replica.base[id]?.kind) == .folder && id.bytes[0] < 96
    }

    /// All but the newest save is older than the share, as the newest is where it has no other.
    func entry(_ id: WireID) -> ShareEntry? {
      var (next, seen) = (Optional(id), Set<WireID>())
      while let item = next, item != .root, seen.insert(item).inserted {
        if isShared(item) {
          return ShareEntry(item: item, time: replica.tree.items[id]?.unsent.dropLast().last?.time ?? .max)
        }
        next = replica.tree.items[item]?.places.min()?.parent
      }
      return nil
    }

    mutating func newID() -> WireID { Self.id(&random) }

    static func id(_ random: inout SeededRandom) -> WireID {
      WireID(bytes: (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }) ?? .root
    }
  }

  let name: String
  var tree = SimulatedTree()
  /// Missing items whose absence has not lasted yet.
  var unsettled: Set<WireID> = []
  private(set) var base: [WireID: ItemState] = [:]
  private(set) var baseNames: [Place: WireID] = [:]
  private(set) var news: [WireID: ItemState] = [:]
  private(set) var marks: [WireID: ReplicaMark] = [:]
  private(set) var aliases: [WireID: WireID] = [:]
  private(set) var outbox: [[Send]] = []
  var serial: Int64 = 0
  private var read: Int64 = 0
  private var epoch = 0
  private(set) var notices: [ReplicaNotice] = []
  private(set) var outcomes: [Verdict] = []
  private var random: SeededRandom

  init(_ name: String, seed: UInt64) {
    self.name = name
    random = SeededRandom(seed: seed)
  }

  mutating func newID() -> WireID { Reader.id(&random) }

  /// An item was changed here, so that what the hub refused may be sent again.
  mutating func note(_ id: WireID) { if case .refused = marks[id] { marks[id] = nil } }

  /// Does one step with the hub.
  ///
  /// - Parameters:
  ///   - losesAnswer: Whether the hub does what it is asked, and the answer does not arrive.
  ///   - doubles: Whether the network delivers a request twice.
  ///   - limit: Groups of a request, and rows of a page.
  /// - Returns: whether there was anything to do.
  mutating func step(_ hub: inout SimulatedHub, losesAnswer: Bool, doubles: Bool = false, limit: Int = 1_000) throws
    -> Bool
  {
    if !outbox.isEmpty {
      let groups = Array(outbox.prefix(limit))
      let request = groups.map { $0.map(filled) }
      if doubles { _ = try hub.send(request, from: name) }
      let verdicts = try hub.send(request, from: name)
      if !losesAnswer { try settle(verdicts, hub) }
      return true
    }
    if epoch != hub.epoch {
      if losesAnswer { return true }
      let all = hub.page(after: 0, limit: .max).items
      let plan = try Planner.reread(
        known: changed, news: news.keys.sorted(), states: all, chain: { tree.chains[$0] ?? [] },
        Reader(replica: self, random: split()))
      try carryOut(plan, hub)
      read = all.last?.number ?? 0
      epoch = hub.epoch
      return true
    }
    let page = hub.page(after: read, limit: limit)
    if !page.items.isEmpty {
      if losesAnswer { return true }
      for state in page.items where state.number >= base[state.item]?.number ?? 0 { news[state.item] = state }
      read = page.items.last?.number ?? read
      if page.hasMore { return true }
    }
    let plan = try Planner.plan(
      changed: changed, news: news.keys.sorted(), read: read, Reader(replica: self, random: split()))
    try carryOut(plan, hub)
    for group in plan.groups {
      outbox.append(
        group.map { send in
          serial += 1
          var send = send
          send.serial = serial
          return send
        })
    }
    return !page.items.isEmpty || !plan.changes.isEmpty || !plan.records.isEmpty || !plan.groups.isEmpty
  }

  /// Takes the verdicts of the first sends that wait.
  mutating func settle(_ verdicts: [Verdict], _ hub: SimulatedHub) throws {
    var sends: [Send] = []
    while sends.count < verdicts.count { sends += outbox.removeFirst() }
    outcomes += verdicts
    let plan = try Planner.settle(Array(zip(sends, verdicts)), Reader(replica: self, random: split()))
    try carryOut(plan, hub)
  }

  /// The hub tells of an item.
  mutating func tell(_ state: ItemState) { news[state.item] = state }

  private mutating func split() -> SeededRandom { SeededRandom(seed: random.next()) }

  /// What people see of what the hub knows: what became an editor's backup after it was sent, too.
  func shown() -> [String: String] {
    var tree = tree
    for var item in tree.items.values where item.readiness == .never && base[item.item] != nil {
      item.readiness = .ready
      tree.put(item)
    }
    return tree.shown()
  }

  /// Everything that might differ.
  private var changed: [WireID] { Set(tree.items.keys).union(base.keys).sorted() }

  private func filled(_ send: Send) -> Send {
    guard var version = send.version else { return send }
    var send = send
    version.contents = Data((tree.texts[version.id] ?? "").utf8)
    send.version = version
    return send
  }

  private mutating func carryOut(_ plan: Plan, _ hub: SimulatedHub) throws {
    try tree.apply(plan.changes) { hub.text($0) }
    for record in plan.records {
      switch record {
      case .base(let id, let state):
        for place in base[id]?.places ?? [] where baseNames[place] == id { baseNames[place] = nil }
        for place in state?.places ?? [] { baseNames[place] = id }
        base[id] = state
      case .news(let id, let state): news[id] = state
      case .mark(let id, let mark): marks[id] = mark
      case .alias(let id, let other): aliases[id] = other
      }
    }
    notices += plan.notices
  }
}
