import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// The seed that is asked for, or five new ones.
let seeds: [UInt64] =
  if let text = ProcessInfo.processInfo.environment["SHEAF_SEED"], let seed = UInt64(text) { [seed] } else {
    (0..<5).map { _ in UInt64.random(in: 1...UInt64(Int64.max)) }
  }

/// Long random sequences on a mount and on a local disk, which must tell the same of everything.
///
/// `SHEAF_SEED` replays a sequence, `SHEAF_STEPS` says how long each is. `test-helper differential` shrinks one.
/// What may differ is in ``AllowedDeviation``, and nowhere else.
@Suite(.serialized) struct DifferentialTests {
  private let steps = ProcessInfo.processInfo.environment["SHEAF_STEPS"].flatMap(Int.init) ?? 4000

  @Test(arguments: seeds) func twoLocalFoldersAgree(_ seed: UInt64) throws {
    try withTemporaryFolder { folder in
      print("SHEAF_SEED=\(seed) SHEAF_STEPS=\(steps)")
      let subject = try plain(Differential.makeRoot(in: folder.folder("left")))
      let oracle = try plain(Differential.makeRoot(in: folder.folder("right")))
      let run = Differential(subject: subject, oracle: oracle, seed: seed)
      try run.run(steps: steps)
      try run.closeAll()
      #expect(run.seen.isEmpty, "a local disk showed deviations")
    }
  }

  @Test(arguments: seeds) func aMountAndALocalFolderAgree(_ seed: UInt64) throws {
    print("SHEAF_SEED=\(seed) SHEAF_STEPS=\(steps)")
    try withMount(limit: .seconds(Double(300 + steps / 10))) { library in
      let oracle = try plain(Differential.makeRoot(in: library.folder.folder("oracle")))
      let place = try Differential.makeRoot(in: library.documents)
      // What the run has open on the mount goes with it, before the mount does.
      try differ(library, place, oracle, seed)
      try library.unmount()
      #expect(try library.check() == [])
    }
  }

  private func differ(
    _ library: MountedLibrary, _ place: String, _ oracle: PlainDirectory, _ seed: UInt64
  ) throws {
    let run = Differential(subject: try plain(place), oracle: oracle, seed: seed)
    do {
      for part in 0..<4 {
        try run.run(steps: steps / 4)
        // Served anew by another process, after an orderly end and after a kill, the tree is the same.
        try run.reopen {
          if part % 2 == 0 { try library.unmount() } else { try library.killServer() }
          try library.mount()
          return try plain(place)
        }
      }
    } catch let difference as Difference {
      Issue.record("SHEAF_SEED=\(seed) SHEAF_STEPS=\(steps): \(difference)")
    }
    try run.closeAll()
    let seen = run.seen.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key) \($0.value)" }
    print("deviations asked for: \(seen.joined(separator: ", "))")
  }

  /// A folder, made to be like the other: owner and mode of a folder that the tests made.
  private func plain(_ path: String) throws -> PlainDirectory { try PlainDirectory(root: path, features: []) }
}
