import ConformanceKit
import Foundation
import HubKit
import MountKit
import SheafHub
import SheafModel
import SheafWire
import Synchronization
import Testing

/// The program is killed while machines send. What it answered is there once, and what it did not answer is done once
/// when it is sent again.
@Suite struct KillTests {
  /// A machine that sends one new document after the other.
  private struct Machine: Sendable {
    let machine: TestDevice
    let device: EnrolledDevice
    let name: String
    /// The send that was not answered yet.
    var pending: Send
    /// What was answered, by serial.
    var answered: [Int64: Verdict] = [:]
    var items: [Int64: WireID] = [:]

    init(machine: TestDevice, device: EnrolledDevice, name: String) {
      (self.machine, self.device, self.name) = (machine, device, name)
      pending = .document("\(name)-1", "\(name) 1", serial: 1)
      items[1] = pending.item
    }

    mutating func take(_ verdict: Verdict) {
      answered[verdict.serial] = verdict
      let serial = pending.serial + 1
      pending = .document("\(name)-\(serial)", "\(name) \(serial)", serial: serial)
      items[serial] = pending.item
    }
  }

  /// Counts answers; those who wait for a count hear of it.
  private final class Answers: Sendable {
    private struct State {
      var count = 0
      var goal = 0
      var isEnded = false
      var continuation: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    func add() {
      let reached = state.withLock { state -> CheckedContinuation<Void, Never>? in
        state.count += 1
        return state.count >= state.goal ? state.continuation.take() : nil
      }
      reached?.resume()
    }

    func wait(for goal: Int) async {
      await withCheckedContinuation { continuation in
        let isReached = state.withLock { state in
          state.goal = goal
          if state.count >= goal || state.isEnded { return true }
          state.continuation = continuation
          return false
        }
        if isReached { continuation.resume() }
      }
    }

    /// Lets go of whoever waits, since a machine gets no answers.
    func end() {
      let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
        state.isEnded = true
        return state.continuation.take()
      }
      waiting?.resume()
    }
  }

  private static var rounds: Int { Int(ProcessInfo.processInfo.environment["SHEAF_KILLS"] ?? "") ?? 6 }

  @Test(arguments: StoreEngine.available)
  func whatWasAnsweredIsThereOnce(_ engine: StoreEngine) async throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    let store = engine == .sqlite ? "sqlite" : try PostgresCluster.shared.get().newPlace()
    try program.succeed("init", "--address", "127.0.0.1:0", "--store", store)
    var seed = ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap(UInt64.init) ?? 20_261_125
    let first = seed
    func random(_ limit: UInt64) -> Int {
      // The constants of Knuth's MMIX generator.
      seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int((seed >> 33) % limit)
    }
    var machines: [Machine] = []
    for number in 0..<4 {
      // Two machines of each of two people.
      let handle = number < 2 ? "alice@hub.example" : "bob@hub.example"
      let code =
        number % 2 == 0
        ? try program.account(handle)
        : try #require(EnrollmentLink(try program.succeed("account", "link", handle))).code
      let base = try program.serve()
      let client = try HubClient(base: base, roots: try program.certificate)
      let machine = TestDevice()
      machines.append(
        Machine(machine: machine, device: try await client.enroll(machine, code: code), name: "m\(number)"))
      await client.close()
      try program.stop()
    }
    for _ in 0..<Self.rounds {
      let client = try HubClient(base: try program.serve(), roots: try program.certificate)
      let answers = Answers()
      let goal = 1 + random(40)
      machines = await withTaskGroup(of: (Int, Machine).self) { group in
        for (index, machine) in machines.enumerated() {
          group.addTask {
            let after = await Self.send(machine, to: client, answers)
            answers.end()
            return (index, after)
          }
        }
        // At an answer, of which the others know nothing: they are anywhere between two bytes.
        await answers.wait(for: goal)
        program.kill()
        var after = machines
        for await (index, machine) in group { after[index] = machine }
        return after
      }
      await client.close()
    }
    let answered = machines.reduce(0) { $0 + $1.answered.count }
    #expect(answered >= Self.rounds, "seed \(first)")
    // A last time, in peace: what was not answered is sent again.
    let client = try HubClient(base: try program.serve(), roots: try program.certificate)
    for index in machines.indices {
      let token = try await client.begin(machines[index].machine, machines[index].device)
      let request = SendRequest(groups: [[machines[index].pending]])
      let answer: SendAnswer = try await client.send("POST", "/v1/sends", json: request, token: token).decode()
      machines[index].take(try #require(answer.verdicts.first))
    }
    for pair in [machines[..<2], machines[2...]] {
      let token = try await client.begin(pair[pair.startIndex].machine, pair[pair.startIndex].device)
      var items: [ItemState] = []
      var path = "/v1/feed"
      while true {
        let page: FeedPage = try await client.send("GET", path, token: token).decode()
        items += page.items
        guard page.hasMore else { break }
        path = "/v1/feed?token=\(page.token)"
      }
      let verdicts = pair.flatMap { machine in machine.answered.map { (machine.items[$0.key], $0.value) } }
      #expect(verdicts.allSatisfy { $0.1.outcome == .done && $0.1.item == $0.0 })
      #expect(items.count == verdicts.count)
      let byID = Dictionary(uniqueKeysWithValues: items.map { ($0.item, $0) })
      for (item, verdict) in verdicts {
        let state = try #require(item.flatMap { byID[$0] })
        #expect(state.number == verdict.number && state.version?.id == verdict.version && state.version?.number == 1)
      }
      // Each change has a number, and no number is missing.
      #expect(items.map(\.number).sorted() == Array(1...Int64(items.count)))
    }
    await client.close()
    try program.stop()
    #expect(try program.succeed("check") == "Nothing is wrong.")
  }

  /// Sends until nobody answers any more.
  private static func send(_ machine: Machine, to client: HubClient, _ answers: Answers) async -> Machine {
    var machine = machine
    do {
      let token = try await client.begin(machine.machine, machine.device)
      while true {
        let request = SendRequest(groups: [[machine.pending]])
        let answer: SendAnswer = try await client.send("POST", "/v1/sends", json: request, token: token).decode()
        guard let verdict = answer.verdicts.first else { return machine }
        machine.take(verdict)
        answers.add()
      }
    } catch {
      return machine
    }
  }
}
