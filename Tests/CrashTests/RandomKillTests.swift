import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// The process is killed at random moments while programs work: what came back is there, what was under way is done
/// or not, and nothing is torn.
@Suite(.serialized) struct RandomKillTests {
  /// Every other round most documents are large: they wait in the working file until they are stored.
  private static func manner(_ round: Int) -> [String: String?] {
    round.isMultiple(of: 2) ? ["SHEAF_SPILL_LIMIT": "20000"] : [:]
  }

  @Test func whatReturnedSurvivesAKillAtAnyMoment() throws {
    print("SHEAF_SEED=\(crashSeed)")
    var random = SeededRandom(seed: crashSeed)
    try withMount(limit: .seconds(1800)) { library in
      let workers = try (0..<3).map { number in
        let folder = "\(library.documents)/worker-\(number)"
        try #require(mkdir(folder, 0o755) == 0)
        return Worker(folder: folder, record: "\(library.folder.path)/record-\(number)")
      }
      defer { workers.forEach { $0.stop() } }
      for round in 0..<rounds(25) {
        for worker in workers { try worker.start(seed: random.next(), count: 1_000_000) }
        // The moment: after some actions, and somewhere within the next one.
        let lines = Int.random(in: 1...400, using: &random)
        let rest = Double.random(in: 0...0.01, using: &random)
        try eventually("\(lines) lines of a record", within: .seconds(60)) { workers[0].lines >= lines }
        Thread.sleep(forTimeInterval: rest)
        try library.killServer()
        for worker in workers { try worker.end() }
        try library.mount(environment: Self.manner(round))
        let wrong = try workers.flatMap { try $0.judge() }
        for line in wrong { Issue.record("SHEAF_SEED=\(crashSeed), round \(round): \(line)") }
        let problems = try library.check()
        for problem in problems { Issue.record("SHEAF_SEED=\(crashSeed), round \(round): check: \(problem)") }
        guard wrong.isEmpty, problems.isEmpty else { return }
      }
    }
  }

  @Test func anOrderlyUnmountKeepsEverything() throws {
    print("SHEAF_SEED=\(crashSeed)")
    try withMount(limit: .seconds(600)) { library in
      let folder = "\(library.documents)/worker"
      try #require(mkdir(folder, 0o755) == 0)
      let worker = Worker(folder: folder, record: "\(library.folder.path)/record")
      defer { worker.stop() }
      for round in 0..<3 {
        try worker.start(seed: crashSeed &+ UInt64(round), count: 400)
        try worker.end()
        try library.unmount()
        #expect(try library.check() == [])
        try library.mount()
        for line in try worker.judge() { Issue.record("SHEAF_SEED=\(crashSeed), round \(round): \(line)") }
      }
    }
  }
}
