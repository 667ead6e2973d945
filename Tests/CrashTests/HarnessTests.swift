import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// The harness itself, on a local disk: what it accepts there is right, and it notices what is wrong.
@Suite(.serialized) struct HarnessTests {
  @Test func theModelAgreesWithALocalDisk() throws {
    try withTemporaryFolder { folder in
      let place = try folder.folder("place")
      let worker = Worker(folder: place, record: "\(folder.path)/record")
      for round in 0..<5 {
        try worker.start(seed: crashSeed &+ UInt64(round), count: 300)
        try worker.end()
        #expect(try worker.judge() == [], "SHEAF_SEED=\(crashSeed)")
      }
      // Interrupted: one action may be half done.
      for round in 0..<20 {
        try worker.start(seed: crashSeed &+ UInt64(100 + round), count: 1_000_000)
        try eventually("lines of a record") { worker.lines > round * 7 }
        worker.stop()
        #expect(try worker.judge() == [], "SHEAF_SEED=\(crashSeed)")
      }
    }
  }

  @Test func theModelNoticesWhatIsMissingTornOrTooMuch() throws {
    try withTemporaryFolder { folder in
      let place = try folder.folder("place")
      let record = "\(folder.path)/record"
      let contents = Contents(seed: 1, count: 200_000)
      let damages: [() throws -> Int32] = [
        { unlink("\(place)/f1") }, { truncate("\(place)/f1", 100_000) }, { mkdir("\(place)/more", 0o755) },
        { chmod("\(place)/f1", 0o600) }, { rename("\(place)/f1", "\(place)/f2") },
        {
          let file = open("\(place)/f1", O_WRONLY)
          defer { close(file) }
          return pwrite(file, "torn", 4, 150_000) == 4 ? 0 : -1
        },
      ]
      for damage in damages {
        try performActions([.save("f1", contents)], in: place, record: record)
        try #require(try damage() == 0)
        let worker = Worker(folder: place, record: record)
        #expect(try worker.judge() != [])
        for name in try FileManager.default.contentsOfDirectory(atPath: place) {
          try FileManager.default.removeItem(atPath: "\(place)/\(name)")
        }
      }
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "a disk that loses its power needs root"))
  func aDiskThatLosesItsPowerKeepsWhatWasSyncedAlone() throws {
    try withTemporaryFolder { folder in
      let disk = try LoopFileSystem(below: folder, mebibytes: 64, options: "commit=900")
      defer { disk.detach() }
      try Action.append("synced", Contents(seed: 1, count: 100_000)).perform(in: disk.mountpoint)
      try Action.save("not synced", Contents(seed: 2, count: 100_000)).perform(in: disk.mountpoint)
      try disk.cutPower()
      #expect(open("\(disk.mountpoint)/new", O_WRONLY | O_CREAT, 0o644) == -1)
      try disk.unmount()
      try disk.mount()
      #expect(try Data(contentsOf: URL(fileURLWithPath: "\(disk.mountpoint)/synced")).count == 100_000)
      #expect(access("\(disk.mountpoint)/not synced", F_OK) == -1)
      try disk.unmount()
    }
  }
}
