import Foundation
import MountKit
import Testing

/// Libraries that somebody changed with another program, at real mounts.
@Suite(.serialized) struct CraftedTreeTests {
  private func withCrafted(_ statement: String, _ script: String) throws {
    try withMount { library in
      try library.shell("for n in one two three; do echo $n >$n; done; echo more >one")
      try library.unmount()
      try Command(["sqlite3", library.library, statement]).succeed()
      try library.mount()
      try library.shell(script)
      try library.shell("echo still >there && cat there")
    }
  }

  /// A listing that came to the same names again and again would never end.
  @Test(arguments: ["1", "0x7FFFFFFF", "-5"]) func namesWithoutAnOrderAreRefused(_ hash: String) throws {
    try withCrafted(
      "UPDATE entries SET hash = \(hash)",
      """
      status=0; timeout 20 ls -U . >list 2>said || status=$?
      if [ "$status" = 0 ]; then [ "$(wc -l <list)" -le 8 ]; else [ "$status" != 124 ]; fi
      """)
  }

  @Test(arguments: ["9223372036854775807", "-1"]) func versionsOfAnySizeAreRefused(_ size: String) throws {
    try withCrafted(
      "UPDATE OR IGNORE versions SET size = \(size)",
      "timeout 20 ls -l .versions/one >list 2>said || [ $? != 124 ]; timeout 20 \"$SHEAF\" versions one >list 2>said || [ $? = 1 ]"
    )
  }

  @Test(arguments: ["-9223372036854775808", "-1", "2147483648"])
  func eventsWithAnyNumberAreDropped(_ number: String) throws {
    try withCrafted(
      "UPDATE OR IGNORE events SET sequence = \(number) WHERE sequence = (SELECT min(sequence) FROM events)",
      "timeout 60 \"$SHEAF\" compact >said 2>&1 || [ $? = 1 ]; timeout 20 ls >list")
  }
}
