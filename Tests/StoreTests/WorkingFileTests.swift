import Foundation
import SheafModel
import Synchronization
import Testing

@testable import SheafStore

/// The file beside the library in which large saves wait.
struct WorkingFileTests {
  /// Who asks for durability while another one's sync goes on waits for it, and for one more if that began too early: a
  /// row must not be durable before its bytes are.
  @Test func aSyncThatGoesOnIsWaitedFor() throws {
    try withFolder { folder in
      let file = WorkingFile(path: folder + "/working", of: folder + "/library")
      let area = file.area()
      let stop = Atomic(false)
      let ended = DispatchSemaphore(value: 0)
      let thread = Thread {
        while !stop.load(ordering: .relaxed) { try? file.sync() }
        ended.signal()
      }
      thread.start()
      defer {
        stop.store(true, ordering: .relaxed)
        ended.wait()
      }
      let bytes = [UInt8](repeating: 1, count: 256 << 10)
      for round in 0..<200 {
        _ = try bytes.withUnsafeBytes { try area.append($0) }
        file.promise()
        try file.sync()
        try #require(!file.needsSync, "round \(round)")
      }
    }
  }

  /// The kernel takes for written what it could not write: what was there then is not durable, however often one asks.
  @Test func aFailedSyncIsRemembered() throws {
    try withFolder { folder in
      let file = WorkingFile(path: folder + "/working", of: folder + "/library")
      let bytes = [UInt8](repeating: 1, count: 4096)
      func write(to area: WorkingFile.Area) throws {
        _ = try bytes.withUnsafeBytes { try area.append($0) }
        file.promise()
      }
      var areas = [file.area(), file.area()]
      try write(to: areas[0])
      try file.sync()
      file.promise()
      file.markUnreliable()
      #expect(throws: SheafError.self) { try file.sync() }
      // What is written from then on has to wait for the rest.
      try write(to: areas[1])
      #expect(throws: SheafError.self) { try file.sync() }
      areas.remove(at: 0)
      try file.sync()
      #expect(!file.needsSync)
      // Nor has anybody to wait for a file that is gone, and open yet.
      try write(to: areas[0])
      file.markUnreliable()
      #expect(throws: SheafError.self) { try file.sync() }
      areas[0].abandon()
      try file.sync()
      file.promise()
      try write(to: areas[0])
      try file.sync()
    }
  }
}
