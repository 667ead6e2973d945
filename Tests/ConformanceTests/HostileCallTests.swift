import Foundation
import MountKit
import Testing

/// Calls with the largest and the smallest arguments that there are, of which none may end the process that serves all
/// mounts.
@Suite(.serialized) struct HostileCallTests {
  @Test(arguments: seeds) func theProcessOutlivesThem(_ seed: UInt64) throws {
    print("SHEAF_SEED=\(seed)")
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    let program = folder.appendingPathComponent("hostile-calls").path
    try withMount { library in
      try library.shell("python3 '\(program)' . \(seed) 8000", limit: .seconds(120))
      // What is stored can be read, by this process and the next.
      let look = "ls -lR . >/dev/null; find . -printf '%T+ %s\\n' >/dev/null"
      try library.shell("chmod -R u+rwx .; \(look)")
      try library.unmount()
      #expect(try library.check() == [])
      try library.mount()
      try library.shell(look)
    }
  }
}
