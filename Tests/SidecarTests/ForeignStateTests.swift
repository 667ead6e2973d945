import Foundation
import GRDB
import Glibc
import MountKit
import SheafModel
import Testing

@testable import SheafSidecar

/// Files that are not the sidecar's stay as they are.
@Suite struct ForeignStateTests {
  @Test func aDatabaseOrALockOfSomebodyElsesIsRefused() throws {
    let folder = try TemporaryFolder()
    defer { try? folder.remove() }
    let path = folder.path + "/notes.sqlite"
    let queue = try DatabaseQueue(path: path)
    try queue.write { try $0.execute(sql: "CREATE TABLE notes (text)") }
    try queue.close()
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    #expect {
      try SidecarState(path: path)
    } throws: {
      "\($0)".contains("\(path): cannot be used: it is a database of another program")
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bytes)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["notes.sqlite"])
    for (text, isLock) in [("notes", false), ("4711\n", true), ("", true)] {
      let lock = folder.path + "/state-lock"
      try Data(text.utf8).write(to: URL(fileURLWithPath: lock))
      let descriptor = try StateFiles.open(lock, O_RDWR)
      defer { close(descriptor) }
      #expect((try? StateFiles.refuseForeignLock(descriptor, lock)) == nil ? !isLock : isLock, "\(text)")
    }
  }
}
