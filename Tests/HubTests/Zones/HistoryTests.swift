import ConformanceKit
import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Synchronization
import Testing

@testable import SheafHub

/// Random sends of four devices at once. What the hub answered must be what one order of the sends explains, told by
/// the same rules in memory.
@Suite struct HistoryTests {
  static let environment = ProcessInfo.processInfo.environment
  /// The same in every run, unless `SHEAF_SEED` says otherwise.
  static let seed = environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? 20
  /// Requests of each device in each of three rounds; `SHEAF_STEPS` makes it more.
  static let steps = environment["SHEAF_STEPS"].flatMap { Int($0) } ?? 40

  /// A request with the hub's answer; nil for one that was done and whose answer was lost.
  struct Exchange: Sendable {
    let device: String
    let request: SendRequest
    let answer: SendAnswer?
    let turns: [Turn]
  }

  /// A transaction: its place among all that had the zone, and the serials that it gave verdicts to.
  struct Turn: Sendable {
    let number: Int
    let serials: Set<Int64>
  }

  /// The transactions of one request.
  final class Turns: Sendable {
    private let turns = Mutex<[Turn]>([])

    var all: [Turn] { turns.withLock { $0 } }

    func add(_ turn: Turn) { turns.withLock { $0.append(turn) } }
  }

  /// A store that counts the transactions of a zone in their order: each takes its turn at its end, while it still has
  /// the zone.
  struct OrderedDatabase: Database {
    @TaskLocal static var turns: Turns?

    let base: any Database
    let count: Counter

    func write<T: Sendable>(
      _ body: @escaping @Sendable (inout any SQLConnection) throws -> T
    ) async throws -> T {
      let turns = Self.turns
      let (value, turn) = try await base.write { connection in try HistoryTests.turn(of: &connection, count, body) }
      turns?.add(turn)
      return value
    }

    func read<T: Sendable>(
      _ body: @escaping @Sendable (inout any SQLConnection) throws -> T
    ) async throws -> T { try await base.read(body) }

    func close() async { await base.close() }
  }

  /// Runs the body of a transaction, and finds out its turn.
  static func turn<T>(
    of connection: inout any SQLConnection, _ count: Counter, _ body: (inout any SQLConnection) throws -> T
  ) throws -> (value: T, turn: Turn) {
    let serials = Mutex<Set<Int64>>([])
    var watched: any SQLConnection = WatchedConnection(base: connection) { serial in
      serials.withLock { _ = $0.insert(serial) }
    }
    let value = try body(&watched)
    return (value, Turn(number: count.next(), serials: serials.withLock { $0 }))
  }

  /// A connection that says which serials get a verdict.
  struct WatchedConnection: SQLConnection {
    var base: any SQLConnection
    let told: (Int64) -> Void

    mutating func query(_ sql: StaticString, _ values: [SQLValue]) throws -> [SQLRow] { try base.query(sql, values) }

    mutating func query(_ statement: TableStatement, _ values: [SQLValue]) throws -> [SQLRow] {
      try base.query(statement, values)
    }

    mutating func columns(of table: String) throws -> Set<String> { try base.columns(of: table) }

    mutating func execute(_ sql: StaticString, _ values: [SQLValue]) throws -> Int {
      if "\(sql)".hasPrefix("INSERT INTO verdicts"), case .integer(let serial) = values[2] { told(serial) }
      return try base.execute(sql, values)
    }
  }

  /// Sends a request, and finds out its turns.
  static func exchange(_ device: String, _ request: SendRequest, _ hub: Hub, _ zone: String) async throws -> Exchange {
    let turns = Turns()
    let answer = try await OrderedDatabase.$turns.withValue(turns) {
      try await hub.zones.send(request, to: zone, by: MemoryZone.author(device, at: hub.clock.now))
    }
    return Exchange(device: device, request: request, answer: answer, turns: turns.all)
  }

  /// A device that sends at random, with what it knows of the zone.
  struct RandomDevice: Sendable {
    let name: String
    var random: SeededRandom
    var items: [WireID: ItemState] = [:]
    var read: Int64 = 0
    private var serial: Int64 = 0
    private var confirmed: Int64 = 0
    /// Versions that it saw or made, by item.
    private var bases: [WireID: [WireID]] = [:]
    private var sent: [SendRequest] = []
    private var made: [WireID] = []

    init(_ name: String, seed: UInt64) {
      self.name = name
      random = SeededRandom(seed: seed)
    }

    mutating func take(_ page: FeedPage, _ number: Int64) {
      for state in page.items {
        items[state.item] = state
        if let version = state.version { bases[state.item, default: []].append(version.id) }
      }
      read = number
    }

    private mutating func id() -> WireID {
      let bytes = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
      return WireID(bytes: bytes) ?? .root
    }

    /// In an order that is the same in every run.
    private static func sorted(_ ids: [WireID]) -> [WireID] {
      ids.map { ($0, $0.bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }) }.sorted { $0.1 < $1.1 }.map(\.0)
    }

    private mutating func parent() -> WireID {
      let folders = Self.sorted(items.values.filter { $0.kind == .folder }.map(\.item))
      return Bool.random(using: &random) ? .root : folders.randomElement(using: &random) ?? .root
    }

    private mutating func place() -> Place {
      Place(parent: parent(), ["a", "b", "c.md", "d.md"].randomElement(using: &random) ?? "a")
    }

    private mutating func version(of item: WireID) -> SentVersion {
      let known = bases[item] ?? []
      let base = Int.random(in: 0..<3, using: &random) == 0 ? known.randomElement(using: &random) : known.last
      let version = SentVersion(
        id: id(), base: base, cause: .save, time: 0,
        contents: Data(["", "one", "two", "three"].randomElement(using: &random)!.utf8))
      bases[item, default: []].append(version.id)
      return version
    }

    private mutating func send() -> Send {
      serial += 1
      let known = Self.sorted(Array(items.keys) + made)
      guard Int.random(in: 0..<8, using: &random) > 0, let item = known.randomElement(using: &random) else {
        let kind = ItemKind.allCases.randomElement(using: &random) ?? .folder
        let item = id()
        made.append(item)
        var places = [place()]
        if kind == .document, Int.random(in: 0..<6, using: &random) == 0 { places.append(place()) }
        return Send(
          serial: serial, item: item, kind: kind, read: read, places: places,
          target: kind == .symlink ? Data(["x", "y"].randomElement(using: &random)!.utf8) : nil,
          version: kind == .document ? version(of: item) : nil)
      }
      let state = items[item]
      let base = state?.number
      let kind = state?.kind ?? .document
      switch Int.random(in: 0..<10, using: &random) {
      case 0, 1,
        2 where kind == .document:
        return Send(serial: serial, item: item, kind: kind, base: base, read: read, version: version(of: item))
      case 3, 4:
        return Send(serial: serial, item: item, kind: kind, base: base, read: read, isDeletion: true)
      case 5:
        return Send(
          serial: serial, item: item, kind: kind, base: base, read: read,
          mode: Int.random(in: 0...0o777, using: &random), attributes: ["user.a": Data([1])])
      default:
        return Send(serial: serial, item: item, kind: kind, base: base, read: read, places: [place()])
      }
    }

    /// The next request: new sends, or one that was sent before, as after an answer that was lost.
    mutating func next() -> SendRequest {
      if let last = sent.last, Int.random(in: 0..<4, using: &random) == 0 { return last }
      var groups: [[Send]] = []
      for _ in 0...Int.random(in: 0..<3, using: &random) {
        let count = Int.random(in: 0..<4, using: &random) == 0 ? 3 : 1
        groups.append((0..<count).map { _ in send() })
      }
      let request = SendRequest(groups: groups, confirmed: confirmed)
      sent.append(request)
      return request
    }

    /// What it sent last, whose answer it may not have got.
    var last: SendRequest? { sent.last }

    mutating func confirm(_ request: SendRequest) {
      if Bool.random(using: &random) { confirmed = max(confirmed, request.groups.last?.last?.serial ?? 0) }
    }
  }

  /// Each device sends its requests, reading the feed now and then.
  static func run(
    _ device: RandomDevice, _ hub: Hub, _ zone: String
  ) async throws -> (RandomDevice, [Exchange]) {
    var device = device
    var exchanges: [Exchange] = []
    for _ in 0..<steps {
      if Int.random(in: 0..<3, using: &device.random) == 0 {
        var token: FeedToken?
        while true {
          let page = try await hub.feeds.page(after: token, limit: 50, of: zone)
          token = try FeedToken(page.token)
          device.take(page, token?.number ?? 0)
          if !page.hasMore { break }
        }
      }
      let request = device.next()
      exchanges.append(try await Self.exchange(device.name, request, hub, zone))
      device.confirm(request)
    }
    return (device, exchanges)
  }

  /// Does what was recorded once more, in memory, in the order in which the requests had the zone.
  static func explain(_ exchanges: [Exchange], _ clock: Timestamp) throws -> MemoryZone {
    var zone = MemoryZone()
    var verdicts: [String: [Int64: Verdict]] = [:]
    let turns = exchanges.flatMap { exchange in exchange.turns.map { (turn: $0, exchange: exchange) } }
    /// Of each device, what was told to go beside: three others may have come first while it was merged.
    var beside: [String: Set<Int64>] = [:]
    for exchange in exchanges {
      let serials = (exchange.answer?.verdicts ?? []).filter { $0.outcome == .beside }.map(\.serial)
      beside[exchange.device, default: []].formUnion(serials)
    }
    for (turn, exchange) in turns.sorted(by: { $0.turn.number < $1.turn.number }) {
      for group in exchange.request.groups where group.contains(where: { turn.serials.contains($0.serial) }) {
        // That takes four transactions.
        let besides = group.filter { send in
          exchange.turns.count > 3 && beside[exchange.device]?.contains(send.serial) ?? false
        }
        let made = try zone.send(
          group, by: MemoryZone.author(exchange.device, at: clock), besides: Set(besides.compactMap(\.version?.id)))
        for verdict in made { verdicts[exchange.device, default: [:]][verdict.serial] = verdict }
      }
      guard turn.number == exchange.turns.last?.number, let answer = exchange.answer else { continue }
      let told = answer.verdicts
      let answers = exchange.request.groups.joined().compactMap { verdicts[exchange.device]?[$0.serial] }
      guard answers.count == told.count, answer.later.isEmpty else {
        throw MemoryZone.Broken(description: "\(exchange.device) was not answered")
      }
      for (answer, told) in zip(answers, told) where told.reason != .confirmed && answer != told {
        throw MemoryZone.Broken(description: "\(exchange.device) was told \(told), and the order says \(answer)")
      }
      guard zone.number == answer.number else {
        throw MemoryZone.Broken(description: "number \(answer.number) should be \(zone.number)")
      }
    }
    try zone.check()
    return zone
  }

  @Test(arguments: StoreEngine.available)
  func whatIsToldIsExplainedByOneOrder(_ engine: StoreEngine) async throws {
    try await engine.withPlace { place in
      let count = Counter()
      func open() throws -> any Database { OrderedDatabase(base: try place.open(), count: count) }
      var database = try open()
      var test = try await TestHub(database)
      let zone = try await test.account()
      let clock = test.hub.clock.now
      var devices = (0..<4).map { RandomDevice("device\($0)", seed: Self.seed &+ UInt64($0)) }
      var exchanges: [Exchange] = []
      for _ in 0..<3 {
        // On PostgreSQL half of them go by connections of their own, as of another process.
        let other = engine == .postgres ? try open() : nil
        let otherHub = if let other { try await TestHub(other).hub } else { test.hub }
        let results = try await withThrowingTaskGroup(of: (Int, (RandomDevice, [Exchange])).self) { group in
          for (index, device) in devices.enumerated() {
            let hub = index % 2 == 0 ? test.hub : otherHub
            group.addTask { (index, try await Self.run(device, hub, zone)) }
          }
          return try await group.reduce(into: [(Int, (RandomDevice, [Exchange]))]()) { $0.append($1) }
        }
        for (index, (device, made)) in results {
          devices[index] = device
          exchanges += made
        }
        await other?.close()
        await database.close()
        database = try open()
        test = try await TestHub(database)
        // After a restart each repeats its last request, as after an answer that was lost.
        for device in devices {
          guard let request = device.last else { continue }
          exchanges.append(try await Self.exchange(device.name, request, test.hub, zone))
        }
      }
      let memory = try Self.explain(exchanges, clock)
      #expect(memory.number > 100, "seed \(Self.seed): hardly anything happened")
      try await Self.compare(memory, test.hub, zone)
      #expect(try await test.hub.check() == [], "seed \(Self.seed)")
      await database.close()
    }
  }

  /// The store has what memory has, the feed tells it, and the events have no gaps.
  static func compare(_ memory: MemoryZone, _ hub: Hub, _ zone: String) async throws {
    var states: [WireID: ItemState] = [:]
    var token: FeedToken?
    var last: Int64 = 0
    while true {
      let page = try await hub.feeds.page(after: token, limit: 7, of: zone)
      for state in page.items {
        #expect(state.number > last, "seed \(seed)")
        last = state.number
        states[state.item] = state
      }
      token = try FeedToken(page.token)
      if !page.hasMore { break }
    }
    #expect(token?.number == memory.number, "seed \(seed)")
    #expect(states.count == memory.items.count, "seed \(seed)")
    for (id, row) in memory.items {
      let state = states[id]
      let version = row.version.flatMap { memory.version($0)?.facts }
      #expect(
        state?.number == row.number && state?.places == row.places && state?.isDeleted == row.isDeleted
          && state?.mode == row.mode && state?.version == version && state?.copyOf == row.copyOf, "seed \(seed)")
    }
    var events = 0
    while true {
      let page = try await hub.events.page(after: .number(Int64(events)), limit: 100, of: zone)
      for event in page.events {
        events += 1
        #expect(event.sequence == Int64(events), "seed \(seed)")
      }
      if page.next == page.last { break }
    }
    #expect(events > 50, "seed \(seed)")
  }

  /// Many more, in memory alone.
  @Test func rulesHoldAfterEverySend() throws {
    var zone = MemoryZone()
    var devices = (0..<4).map { RandomDevice("device\($0)", seed: Self.seed &+ 100 &+ UInt64($0)) }
    var outcomes: [Verdict.Outcome: Int] = [:]
    for step in 0..<(Self.steps * 50) {
      let index = step % 4
      if Int.random(in: 0..<3, using: &devices[index].random) == 0 {
        let states = zone.items.keys.compactMap { zone.state($0) }
        devices[index].take(FeedPage(items: states, token: "", hasMore: false), zone.number)
      }
      for group in devices[index].next().groups {
        for verdict in try zone.send(group, by: MemoryZone.author(devices[index].name)) {
          outcomes[verdict.outcome, default: 0] += 1
        }
      }
      if step % 20 == 0 { try zone.check() }
    }
    try zone.check()
    for outcome in Verdict.Outcome.allCases {
      #expect(outcomes[outcome] ?? 0 > 0, "seed \(Self.seed): nothing was \(outcome)")
    }
  }
}
