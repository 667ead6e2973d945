import Foundation
import Synchronization
import Testing

@testable import SheafStore

/// The file beside the library in which large saves wait.
struct WorkingFileTests {
  /// Who asks for durability while another one's sync goes on waits for it, and for one more if that began too early: a row
  /// must not be durable before its bytes are.
  @Test func aSyncThatGoesOnIsWaitedFor() throws {
    try withFolder { folder in
      let file = WorkingFile(path: folder + "/working")
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
}
