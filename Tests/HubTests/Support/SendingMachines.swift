import Foundation
import MountKit
import SheafHub
import SheafModel
import SheafWire
import Synchronization
import Testing

/// A machine that sends one new document after the other.
struct SendingMachine: Sendable {
  let machine: TestDevice
  let device: EnrolledDevice
  private let name: String
  /// The send that was not answered yet.
  private(set) var pending: Send
  /// What was answered, by serial.
  private(set) var answered: [Int64: Verdict] = [:]
  private var items: [Int64: WireID] = [:]

  init(machine: TestDevice, device: EnrolledDevice, name: String) {
    (self.machine, self.device, self.name) = (machine, device, name)
    pending = .document("\(name)-1", "\(name) 1", serial: 1)
    items[1] = pending.item
  }

  private mutating func take(_ verdict: Verdict) {
    answered[verdict.serial] = verdict
    let serial = pending.serial + 1
    pending = .document("\(name)-\(serial)", "\(name) \(serial)", serial: serial)
    items[serial] = pending.item
  }

  /// What was answered, with the item that each send was about.
  var outcomes: [(item: WireID?, verdict: Verdict)] { answered.map { (items[$0.key], $0.value) } }

  /// Enrolls machines of several accounts, as many of each.
  static func enroll(_ count: Int, of codes: [String], at client: HubClient) async throws -> [SendingMachine] {
    var machines: [SendingMachine] = []
    for code in codes {
      var next = code
      for number in 0..<(count / codes.count) {
        let machine = TestDevice()
        let device = try await client.enroll(machine, code: next)
        machines.append(SendingMachine(machine: machine, device: device, name: "m\(number)"))
        let token = try await client.begin(machine, device)
        let link: LinkFacts = try await client.send("POST", "/v1/links", token: token).decode()
        next = try #require(EnrollmentLink(link.link)).code
      }
    }
    return machines
  }

  /// Sends what is not answered yet, and takes the verdict.
  ///
  /// - Returns: The problem that was the answer; nil for a verdict.
  mutating func sendNext(to client: HubClient, token: String) async throws -> HubClient.Answer? {
    let request = SendRequest(groups: [[pending]])
    let answer = try await client.send("POST", "/v1/sends", json: request, token: token)
    guard answer.status == 200 else { return answer }
    let verdicts: SendAnswer = try answer.decode()
    take(try #require(verdicts.verdicts.first))
    return nil
  }

  /// Sends until nobody answers any more.
  func sendUntilTheEnd(to client: HubClient, _ answers: Count) async -> SendingMachine {
    var machine = self
    do {
      let token = try await client.begin(machine.machine, machine.device)
      while try await machine.sendNext(to: client, token: token) == nil { answers.add() }
    } catch {
      // The hub is gone.
    }
    return machine
  }

  /// A last time, in peace: what was not answered is sent again, and then the hub must have what it answered, once.
  static func verify(_ machines: inout [SendingMachine], at client: HubClient, seed: UInt64) async throws {
    for index in machines.indices {
      let token = try await client.begin(machines[index].machine, machines[index].device)
      let problem = try await machines[index].sendNext(to: client, token: token)
      #expect(problem == nil, "seed \(seed)")
    }
    for (_, group) in Dictionary(grouping: machines, by: \.device.zone) {
      let token = try await client.begin(group[0].machine, group[0].device)
      var items: [ItemState] = []
      var path = "/v1/feed?limit=1000"
      while true {
        let page: FeedPage = try await client.send("GET", path, token: token).decode()
        items += page.items
        guard page.hasMore else { break }
        path = "/v1/feed?limit=1000&token=\(page.token)"
      }
      let outcomes = group.flatMap(\.outcomes)
      #expect(outcomes.allSatisfy { $0.verdict.outcome == .done && $0.verdict.item == $0.item })
      #expect(items.count == outcomes.count, "seed \(seed)")
      let byID = Dictionary(uniqueKeysWithValues: items.map { ($0.item, $0) })
      for (item, verdict) in outcomes {
        let state = try #require(item.flatMap { byID[$0] }, "seed \(seed): an acknowledged document is not there")
        #expect(state.number == verdict.number && state.version?.id == verdict.version && state.version?.number == 1)
      }
      // Each change has a number, and no number is missing.
      #expect(items.map(\.number).sorted() == Array(1...Int64(items.count)), "seed \(seed)")
    }
  }
}

/// A count that others wait for.
final class Count: Sendable {
  private struct State {
    var count = 0
    var isEnded = false
    var waiting: [(goal: Int, continuation: CheckedContinuation<Void, Never>)] = []

    mutating func takeReady() -> [CheckedContinuation<Void, Never>] {
      let ready = waiting.filter { isEnded || count >= $0.goal }.map(\.continuation)
      waiting.removeAll { isEnded || count >= $0.goal }
      return ready
    }
  }

  private let state = Mutex(State())

  var value: Int { state.withLock(\.count) }
  var isEnded: Bool { state.withLock(\.isEnded) }

  func add() {
    let ready = state.withLock { state in
      state.count += 1
      return state.takeReady()
    }
    for continuation in ready { continuation.resume() }
  }

  /// Returns once the count has come to `goal`, or has ended.
  func wait(for goal: Int) async {
    await withCheckedContinuation { continuation in
      let ready = state.withLock { state in
        state.waiting.append((goal, continuation))
        return state.takeReady()
      }
      for continuation in ready { continuation.resume() }
    }
  }

  /// Lets go of whoever waits, now and later.
  func end() {
    let ready = state.withLock { state in
      state.isEnded = true
      return state.takeReady()
    }
    for continuation in ready { continuation.resume() }
  }
}
