import ConformanceKit
import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Synchronization
import Testing

@testable import SheafHub

/// The PostgreSQL server is killed while machines send, and its synchronous standby takes its place, again and again.
///
/// `SHEAF_FAILOVERS=20` makes it that many times.
@Suite(.enabled(if: PostgresCluster.isInstalled, "PostgreSQL is not installed"))
struct FailoverTests {
  private static let failovers = Int(ProcessInfo.processInfo.environment["SHEAF_FAILOVERS"] ?? "") ?? 2

  /// Twenty machines send over HTTP to two zones; beside them eight devices send at random to few items of a third one,
  /// whose history one order must explain.
  @Test func whatWasAnsweredOutlivesThePrimary() async throws {
    let pair = try PostgresPair()
    defer { pair.stop() }
    let count = Counter()
    let database = NotingDatabase(base: PostgresDatabase(target: try pair.newPlace()), count: count)
    try await database.prepare()
    try await RunningHub.with(database) { running in
      let hub = running.hub
      var codes: [String] = []
      for name in ["bob", "carol"] {
        codes.append(try await hub.accounts.makeCode(for: try await hub.account("\(name)@hub.example")).code)
      }
      let zone = try await hub.account()
      let machines = try await SendingMachine.enroll(20, of: codes, at: running.client)
      let devices = (0..<8).map { HistoryTests.RandomDevice("device\($0)", seed: HistoryTests.seed &+ UInt64($0)) }
      let (answers, stores) = (Count(), Count())
      let (after, exchanges) = try await withThrowingTaskGroup(of: Result.self) { group in
        for machine in machines {
          group.addTask { .machine(try await Self.send(machine, to: running.client, answers, stores)) }
        }
        for device in devices {
          group.addTask { .exchanges(try await Self.send(device, to: hub.hub, zone, answers, stores)) }
        }
        var random = SeededRandom(seed: HistoryTests.seed)
        for _ in 0..<Self.failovers {
          await answers.wait(for: answers.value + Int.random(in: 60...240, using: &random))
          try pair.failOver()
          try pair.bringBack()
          stores.add()
        }
        await answers.wait(for: answers.value + 60)
        answers.end()
        stores.end()
        var (machines, exchanges): ([SendingMachine], [HistoryTests.Exchange]) = ([], [])
        for try await result in group {
          switch result {
          case .machine(let machine): machines.append(machine)
          case .exchanges(let made): exchanges += made
          }
        }
        return (machines, exchanges)
      }
      var verified = after
      try await SendingMachine.verify(&verified, at: running.client, seed: HistoryTests.seed)
      // What a transaction noted is there if and only if all of it is.
      let done = try await database.turnsThatAreThere()
      for exchange in exchanges {
        // Of what was answered the last turn was; others may be those of transactions that ran again.
        guard exchange.answer != nil, let last = exchange.turns.last?.number, !done.contains(last) else { continue }
        Issue.record("seed \(HistoryTests.seed): turn \(last) was answered and is lost")
      }
      let history = exchanges.map { exchange in
        HistoryTests.Exchange(
          device: exchange.device, request: exchange.request, answer: exchange.answer,
          turns: exchange.turns.filter { done.contains($0.number) })
      }
      let memory = try HistoryTests.explain(history, hub.hub.clock.now)
      #expect(memory.number > 20, "seed \(HistoryTests.seed): hardly anything happened")
      try await HistoryTests.compare(memory, hub.hub, zone)
      #expect(try await hub.hub.check() == [], "seed \(HistoryTests.seed)")
    }
    await database.close()
  }

  private enum Result: Sendable {
    case machine(SendingMachine)
    case exchanges([HistoryTests.Exchange])
  }

  /// Sends until the test ends. Who is told that the store is away waits until it is back.
  private static func send(
    _ machine: SendingMachine, to client: HubClient, _ answers: Count, _ stores: Count
  ) async throws -> SendingMachine {
    var machine = machine
    var token: String?
    while !answers.isEnded {
      let known = stores.value
      let refusal: HubClient.Answer?
      if let token {
        refusal = try await machine.sendNext(to: client, token: token)
      } else {
        let challenge: Challenge = try await client.send("POST", "/v1/challenges").decode()
        let session = try machine.machine.session(machine.device, challenge, at: client.address)
        let answer = try await client.send("POST", "/v1/sessions", json: session)
        token = try? answer.decode(SessionToken.self).token
        refusal = token == nil ? answer : nil
      }
      guard let refusal else {
        answers.add()
        continue
      }
      #expect(refusal.problem == .unavailable && refusal.headers["retry-after"] != nil)
      await stores.wait(for: known + 1)
    }
    return machine
  }

  private static func send(
    _ device: HistoryTests.RandomDevice, to hub: Hub, _ zone: String, _ answers: Count, _ stores: Count
  ) async throws -> [HistoryTests.Exchange] {
    var device = device
    var exchanges: [HistoryTests.Exchange] = []
    var request = device.next()
    while !answers.isEnded {
      let known = stores.value
      do {
        let author = MemoryZone.author(device.name, at: hub.clock.now)
        let sent = request
        let turns = HistoryTests.Turns()
        do {
          let answer = try await NotingDatabase.$turns.withValue(turns) {
            try await hub.zones.send(sent, to: zone, by: author)
          }
          exchanges.append(.init(device: device.name, request: sent, answer: answer, turns: turns.all))
        } catch {
          // It may be done all the same.
          exchanges.append(.init(device: device.name, request: sent, answer: nil, turns: turns.all))
          throw error
        }
        device.confirm(sent)
        let page = try await hub.feeds.page(after: nil, limit: 50, of: zone)
        device.take(page, try FeedToken(page.token).number)
        request = device.next()
        answers.add()
      } catch HubStoreError.unavailable {
        await stores.wait(for: known + 1)
      }
    }
    return exchanges
  }
}

/// A store that writes down each transaction of a send in the transaction itself, with its place in the order in which
/// they had the zone.
struct NotingDatabase: Database {
  @TaskLocal static var turns: HistoryTests.Turns?

  let base: any Database
  let count: Counter

  func prepare() async throws {
    _ = try await base.write { connection in
      try connection.execute("CREATE TABLE turns (turn BIGINT NOT NULL PRIMARY KEY)")
    }
  }

  /// The turns whose transactions were committed and are not lost.
  func turnsThatAreThere() async throws -> Set<Int> {
    try await base.read { connection in
      Set(try connection.query("SELECT turn FROM turns").map { Int(try $0.integer(0)) })
    }
  }

  func write<T: Sendable>(
    _ body: @escaping @Sendable (inout any SQLConnection) throws -> T
  ) async throws -> T {
    let turns = Self.turns
    return try await base.write { connection in
      guard let turns else { return try body(&connection) }
      let (value, turn) = try HistoryTests.turn(of: &connection, count, body)
      turns.add(turn)
      try connection.execute("INSERT INTO turns (turn) VALUES ($1)", [.integer(Int64(turn.number))])
      return value
    }
  }

  func read<T: Sendable>(
    _ body: @escaping @Sendable (inout any SQLConnection) throws -> T
  ) async throws -> T { try await base.read(body) }

  func close() async { await base.close() }
}
