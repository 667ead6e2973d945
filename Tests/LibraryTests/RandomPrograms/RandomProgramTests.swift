import Foundation
import SheafModel
import Testing

@testable import SheafLibrary

/// Random programs of several people and processes, against the rules of docs/ARCHITECTURE.md.
///
/// `SHEAF_SEED` runs the program of one seed, `SHEAF_PROGRAM` the steps of a file. `SHEAF_SECONDS` makes new programs
/// for that long; without it the programs are the same each time. A program that breaks a rule is shrunk, and printed.
///
/// Random programs leave out whether who follows the log has the tree that is there, unless `SHEAF_LOG` is set: where a
/// young file with saves of its own takes another document's place and comes back, an `edit` with `previousPath` stands
/// for its deletion, and the log alone does not tell that it was there.
@Suite(.serialized) struct RandomProgramTests {
  private static let environment = ProcessInfo.processInfo.environment
  private let seconds = environment["SHEAF_SECONDS"].flatMap(Double.init)
  /// Programs where no time is given.
  private static let count = 100
  private let followsLog = environment["SHEAF_LOG"] != nil
  private let length = environment["SHEAF_STEPS"].flatMap(Int.init) ?? 60

  @Test(arguments: KnownPrograms.all.map(\.name)) func noKnownProgramBreaksARule(_ name: String) throws {
    let steps = KnownPrograms.all.filter { $0.name == name }.flatMap { ProgramStep.program($0.text) }
    if let violation = try ProgramRun.run(steps).violation { Issue.record("\(violation)") }
  }

  @Test func noRandomProgramBreaksARule() throws {
    if let file = Self.environment["SHEAF_PROGRAM"] {
      return try replay(ProgramStep.program(String(contentsOfFile: file, encoding: .utf8)), "SHEAF_PROGRAM=\(file)")
    }
    if let seed = Self.environment["SHEAF_SEED"].flatMap({ UInt64($0) }) { return try replay(seed) }
    let end = seconds.map { ContinuousClock.now + .seconds($0) }
    var (programs, done, refused): (Int, [ProgramStep.Verb: Int], [ProgramStep.Verb: Int]) = (0, [:], [:])
    let first = end == nil ? 1 : UInt64.random(in: 1...UInt64(Int64.max))
    while end.map({ ContinuousClock.now < $0 }) ?? (programs < Self.count) {
      let seed = first &+ UInt64(programs)
      let outcome = try ProgramRun.random(seed, count: length, followsLog: followsLog)
      programs += 1
      done.merge(outcome.done) { $0 + $1 }
      refused.merge(outcome.refused) { $0 + $1 }
      if outcome.violation != nil { return try report(outcome.steps, "SHEAF_SEED=\(seed)") }
    }
    let counts = ProgramStep.Verb.allCases.map { "\($0) \(done[$0, default: 0])/\(refused[$0, default: 0])" }
    print("\(programs) random programs from seed \(first), steps done/refused: \(counts.joined(separator: ", "))")
  }

  private func replay(_ seed: UInt64) throws {
    let outcome = try ProgramRun.random(seed, count: length, followsLog: followsLog)
    if outcome.violation != nil { try report(outcome.steps, "SHEAF_SEED=\(seed)") }
  }

  private func replay(_ steps: [ProgramStep], _ note: String) throws {
    let outcome = try ProgramRun.run(steps, followsLog: followsLog)
    if outcome.violation != nil { try report(outcome.steps, note) }
  }

  /// Records the rule that a program breaks, with as few steps as still break it.
  private func report(_ steps: [ProgramStep], _ note: String) throws {
    guard let violation = try ProgramRun.run(steps, followsLog: followsLog).violation else {
      Issue.record("\(note) SHEAF_STEPS=\(length): broke a rule, and its steps do not when they are done again")
      return
    }
    let shrunk = try shrink(steps, breaking: violation)
    let text = shrunk.steps.map(\.description).joined(separator: "\n")
    Issue.record("\(note) SHEAF_STEPS=\(length): \(shrunk.violation)\n\(text)\n")
  }

  /// Drops steps for as long as the rest breaks the same rule.
  private func shrink(
    _ steps: [ProgramStep], breaking violation: Violation
  ) throws -> (steps: [ProgramStep], violation: Violation) {
    var (steps, violation) = (steps, violation)
    var size = max(1, steps.count / 2)
    while true {
      var start = 0
      var dropped = false
      while start < steps.count {
        var fewer = steps
        fewer.removeSubrange(start..<min(start + size, steps.count))
        let outcome = try ProgramRun.run(fewer, followsLog: followsLog)
        if let found = outcome.violation, found.rule == violation.rule {
          (steps, violation, dropped) = (outcome.steps, found, true)
        } else {
          start += size
        }
      }
      if size > 1 { size /= 2 } else if !dropped { return (steps, violation) }
    }
  }
}
