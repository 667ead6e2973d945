import Foundation
import Testing

/// Scenarios on real mounts, each in a process of its own that is killed if it hangs.
@Suite(.serialized)
struct MountTests {
  static let scenarios = [
    "names", "contents", "attributes", "xattrs", "listing", "forget", "sizes", "mapping", "killpriv", "defaults",
    "dropped",
    "later", "parallel", "caller", "invalidation", "two", "unmounted-outside", "lazy", "exit", "exit-detached", "late",
    "options",
    "refused", "unprivileged", "lifetime",
  ]

  @Test(.enabled(if: canMount, "needs root and /dev/fuse"), arguments: scenarios)
  func scenario(_ name: String) throws {
    let directory = FileManager.default.temporaryDirectory.path + "/fuse-\(UUID().uuidString)"
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    defer {
      for mount in mounts(below: directory) { umount2(mount, Int32(MNT_DETACH)) }
      // Not recursive: what is left in a mount that could not be detached is not ours to delete.
      for entry in (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? [] {
        rmdir("\(directory)/\(entry)")
      }
      rmdir(directory)
    }
    let (status, output) = try run(fixture, [name, directory], seconds: 60)
    #expect(status == 0, "\(output)")
    #expect(mounts(below: directory) == [])
  }

  static let canMount = geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0

  /// The fixture, which the package manager puts beside the tests.
  private var fixture: URL {
    URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
      .appendingPathComponent("fuse-fixture")
  }

  private func mounts(below directory: String) -> [String] {
    let table = (try? String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8)) ?? ""
    return table.split(separator: "\n").compactMap { line in
      let mountpoint = String(line.split(separator: " ")[4])
      return mountpoint.hasPrefix(directory + "/") ? mountpoint : nil
    }
  }

  /// Runs a program for so long at most.
  private func run(_ program: URL, _ arguments: [String], seconds: Double) throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    let ended = DispatchSemaphore(value: 0)
    process.terminationHandler = { _ in ended.signal() }
    try process.run()
    var note = ""
    if ended.wait(timeout: .now() + seconds) == .timedOut {
      kill(process.processIdentifier, SIGKILL)
      ended.wait()
      note = "killed after \(seconds) s; "
    }
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    return (process.terminationStatus, "\(note)\(text)")
  }
}
