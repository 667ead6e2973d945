import ConformanceKit
import Foundation
import HubKit
import MountKit
import SheafHub
import SheafHubStore
import SheafModel
import SheafWire
import Testing

/// The program is killed while machines send: at random, and at each named step of a transaction. What it answered is
/// there once, and what it did not answer is done once when it is sent again.
@Suite struct KillTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let rounds = Int(environment["SHEAF_KILLS"] ?? "") ?? 8
  private static let seed = environment["SHEAF_SEED"].flatMap(UInt64.init) ?? 20_261_125

  @Test(arguments: StoreEngine.available)
  func whatWasAnsweredIsThereOnce(_ engine: StoreEngine) async throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let program = try HubProgram(in: folder)
    let store = engine == .sqlite ? "sqlite" : try PostgresCluster.shared.get().newPlace()
    try program.succeed("init", "--address", "127.0.0.1:0", "--store", store)
    var random = SeededRandom(seed: Self.seed)
    let codes = try ["alice@hub.example", "bob@hub.example"].map { try program.account($0) }
    var machines = try await Self.with(program) { client in
      try await SendingMachine.enroll(20, of: codes, at: client)
    }
    for round in 0..<Self.rounds {
      // At every other one a named step, late enough for the program to have begun.
      let point = round % 2 == 0 ? nil : FaultPoint.allCases[round / 2 % FaultPoint.allCases.count]
      let range = point == .statement ? 100...600 : 6...60
      program.fault = point.map { "\($0.rawValue):\(Int.random(in: range, using: &random))" }
      let goal = 1 + Int.random(in: 0..<60, using: &random)
      let client = try HubClient(base: try program.serve(), roots: try program.certificate)
      let answers = Count()
      machines = await withTaskGroup(of: (Int, SendingMachine).self) { group in
        for (index, machine) in machines.enumerated() {
          group.addTask {
            let after = await machine.sendUntilTheEnd(to: client, answers)
            answers.end()
            return (index, after)
          }
        }
        if point == nil {
          // At an answer, of which the others know nothing: they are anywhere between two bytes.
          await answers.wait(for: goal)
          program.kill()
        }
        var after = machines
        for await (index, machine) in group { after[index] = machine }
        return after
      }
      await client.close()
      // One that was killed at a step is gone by itself.
      program.kill()
    }
    program.fault = nil
    let answered = machines.reduce(0) { $0 + $1.answered.count }
    #expect(answered >= Self.rounds / 2, "seed \(Self.seed)")
    machines = try await Self.with(program) { client in
      var machines = machines
      try await SendingMachine.verify(&machines, at: client, seed: Self.seed)
      return machines
    }
    #expect(try program.succeed("check") == "Nothing is wrong.", "seed \(Self.seed)")
  }

  /// Serves for the time of `body`.
  private static func with<Value>(
    _ program: HubProgram, _ body: (HubClient) async throws -> Value
  ) async throws -> Value {
    let client = try HubClient(base: try program.serve(), roots: try program.certificate)
    let result = await Result { try await body(client) }
    await client.close()
    try program.stop()
    return try result.get()
  }
}
