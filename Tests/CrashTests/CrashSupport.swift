import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// The seed of this run: `SHEAF_SEED` replays one.
let crashSeed = ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap(UInt64.init) ?? .random(in: 0...999_999_999)

/// Rounds of the randomized tests: `SHEAF_ROUNDS`.
func rounds(_ usual: Int) -> Int { ProcessInfo.processInfo.environment["SHEAF_ROUNDS"].flatMap(Int.init) ?? usual }

/// A program that does actions in a folder and records them, as a process of its own.
final class Worker {
  let folder: String
  let record: String
  private var process: BackgroundCommand?
  private var wasKilled = false
  /// What the folder holds, as the record and the last look tell it.
  private(set) var judgement = Judgement(TreeModel())

  init(folder: String, record: String) {
    self.folder = folder
    self.record = record
  }

  /// Starts drawing actions from `seed`, with a new record.
  func start(seed: UInt64, count: Int) throws {
    unlink(record)
    let helper = try #require(TestHelper.path, "test-helper is not beside the tests")
    process = try BackgroundCommand(Command([helper, "work", folder, record, "\(seed)", "\(count)"]))
    wasKilled = false
  }

  /// Does the actions of a list with a new record, and waits until they are done or the mount is dead.
  func perform(_ actions: [Action]) throws {
    unlink(record)
    wasKilled = false
    let helper = try #require(TestHelper.path, "test-helper is not beside the tests")
    var command = Command([helper, "work", folder, record], limit: .seconds(300))
    command.environment = ["SHEAF_BIN": try SheafProgram.path()]
    command.input = Array(try JSONEncoder().encode(actions))
    try command.succeed()
  }

  /// How many lines its record has by now.
  var lines: Int { (try? Data(contentsOf: URL(fileURLWithPath: record)))?.count { $0 == UInt8(ascii: "\n") } ?? 0 }

  /// Waits for the program's end, which a dead mount brings about.
  func end() throws {
    try process?.wait(limit: .seconds(60))
    process = nil
  }

  /// Kills the program.
  func stop() {
    process?.end()
    process = nil
    wasKilled = true
  }

  /// Judges the folder by the record since the last look.
  func judge() throws -> [String] {
    let entries = try readRecord(record)
    let found = try FoundTree(folder)
    var lines = judgement.follow(entries, killed: wasKilled, found: found)
    lines += judgement.settle(found)
    unlink(record)
    return lines.map { line in
      let name = line.prefix { $0 != ":" }
      let actions = entries.filter { "\($0.action)".contains("\"\(name)\"") }.suffix(4).map(\.description)
      return "\(folder): \(line); the last of \(entries.count) actions there: \(actions.joined(separator: ", "))"
    }
  }
}
