// test-helper: what tests need a process of its own for.
//
//   test-helper conformance FOLDER [FILTER]   runs the conformance suite in FOLDER, as whoever runs it
//   test-helper differential FOLDER ORACLE SEED STEPS
//                                             compares two folders over a random sequence, and shrinks a difference
//   test-helper work FOLDER RECORD [SEED COUNT]
//                                             changes documents and records it, by a seed or a list on standard input
//   test-helper locks PATH                    takes locks on PATH as asked on standard input

import ConformanceKit
import Foundation
import Glibc
import MountKit

let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "conformance" where arguments.count >= 3:
  exit(runConformance(folder: arguments[2], filter: arguments.count > 3 ? arguments[3] : ""))
case "differential" where arguments.count == 6:
  exit(
    runDifferential(
      subject: arguments[2], oracle: arguments[3], seed: UInt64(arguments[4]) ?? 0, steps: Int(arguments[5]) ?? 0))
case "work" where arguments.count == 4 || arguments.count == 6:
  exit(work(Array(arguments[2...])))
case "locks" where arguments.count == 3:
  exit(serveLocks(arguments[2]))
default:
  print("usage: test-helper conformance|differential|work|locks …, see its source")
  exit(64)
}

/// Does actions that a seed draws, or those of a list.
func work(_ words: [String]) -> Int32 {
  do {
    let actions: any Sequence<Action>
    if words.count == 4 {
      var random = SeededRandom(seed: UInt64(words[2]) ?? 0)
      actions = (0..<(Int(words[3]) ?? 0)).lazy.map { _ in Action.random(using: &random) }
    } else {
      actions = try JSONDecoder().decode([Action].self, from: FileHandle.standardInput.readDataToEndOfFile())
    }
    try performActions(actions, in: words[0], record: words[1])
    return 0
  } catch {
    print("\(error)")
    return 1
  }
}

/// Prints a line per case; 0 where all passed.
func runConformance(folder: String, filter: String) -> Int32 {
  do {
    let features = try PlainDirectory.probe(folder, helper: true)
    let cases = Case.applicable(to: features).filter { filter.isEmpty || $0.name.contains(filter) }
    print("\(cases.count) of \(Case.all.count) cases, features: \(features)")
    let outcomes = PlainDirectory.run(cases, below: folder, features: features) { outcome in
      print(outcome.failure.map { "FAILED  \(outcome.name): \($0)" } ?? "passed  \(outcome.name)")
      fflush(nil)
    }
    let failed = outcomes.filter { $0.failure != nil }.count
    print("\(outcomes.count - failed) passed, \(failed) failed")
    return failed == 0 ? 0 : 1
  } catch {
    print("cannot run in \(folder): \(error)")
    return 1
  }
}

/// Answers `flock sh|ex|un`, `set rd|wr|un START LENGTH` and `get rd|wr START LENGTH`, a line each.
func serveLocks(_ path: String) -> Int32 {
  let file = open(path, O_RDWR | O_CLOEXEC)
  func reply(_ text: String) {
    print(text)
    fflush(nil)
  }
  guard file >= 0 else {
    reply(Errno.name(errno))
    return 1
  }
  reply("ready")
  while let line = readLine() {
    let words = line.split(separator: " ").map(String.init)
    switch words.first {
    case "flock" where words.count == 2:
      let kinds = ["sh": LOCK_SH | LOCK_NB, "ex": LOCK_EX | LOCK_NB, "un": LOCK_UN]
      reply(flock(file, kinds[words[1]] ?? -1) == 0 ? "ok" : Errno.name(errno))
    case "set" where words.count == 4, "get" where words.count == 4:
      var lock = flock()
      lock.l_type = Int16(["rd": F_RDLCK, "wr": F_WRLCK, "un": F_UNLCK][words[1]] ?? -1)
      lock.l_whence = Int16(SEEK_SET)
      lock.l_start = Int(words[2]) ?? -1
      lock.l_len = Int(words[3]) ?? -1
      guard fcntl(file, words[0] == "set" ? F_SETLK : F_GETLK, &lock) == 0 else {
        reply(Errno.name(errno))
        continue
      }
      let free = words[0] == "set" || Int32(lock.l_type) == F_UNLCK
      reply(free ? "ok" : "held \(lock.l_pid) \(lock.l_start) \(lock.l_len)")
    default:
      reply("what?")
    }
  }
  return 0
}
