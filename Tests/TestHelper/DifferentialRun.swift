import ConformanceKit
import Glibc

/// Compares two folders over a random sequence; on a difference, shrinks it and prints the steps that are left.
func runDifferential(subject: String, oracle: String, seed: UInt64, steps: Int) -> Int32 {
  print("seed \(seed), \(steps) steps")
  var round = 0
  var seen: [AllowedDeviation: Int] = [:]

  // Runs the steps in new folders; the difference, or nil.
  func attempt(_ operations: [Operation]) throws -> Difference? {
    round += 1
    let places = [subject, oracle].map { "\($0)/round-\(round)" }
    for place in places where mkdir(place, 0o755) != 0 { throw Errno(errno, "mkdir \(place)") }
    defer { for place in places { try? removeTree(place) } }
    let roots = try places.map(Differential.makeRoot)
    let run = try Differential(
      subject: PlainDirectory(root: roots[0], features: []),
      oracle: PlainDirectory(root: roots[1], features: []),
      seed: seed)
    do {
      try operations.count > 2000 ? run.run(steps: operations.count) : run.replay(operations)
      try run.closeAll()
      seen = run.seen
      return nil
    } catch let difference as Difference {
      try? run.closeAll()
      return difference
    }
  }

  do {
    let operations = Differential.operations(seed: seed, steps: steps)
    guard let difference = try attempt(operations) else {
      let deviations = seen.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key) \($0.value)" }
      print("no difference; deviations asked for: \(deviations.joined(separator: ", "))")
      return 0
    }
    print(difference)
    fflush(nil)
    let text = difference.description
    let last = Int(text.dropFirst(5).prefix { $0.isNumber }) ?? steps
    let shrunk = Differential.shrink(Array(operations.prefix(last))) { (try? attempt($0)).flatMap(\.self) != nil }
    print("\nshrunk to \(shrunk.count) steps:")
    for operation in shrunk { print("  \(operation)") }
    if let difference = try attempt(shrunk) { print(difference) }
  } catch {
    print("\(error)")
  }
  return 1
}
