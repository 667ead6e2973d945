import CTestSystem
import Glibc
import Synchronization

/// Runs a program without arguments; returns its exit status, or the negated errno if it could not start.
func runProgram(_ path: String) -> Int32 {
  var child: pid_t = 0
  var arguments: [UnsafeMutablePointer<CChar>?] = [strdup(path), nil]
  defer { free(arguments[0]) }
  let result = posix_spawn(&child, path, nil, nil, &arguments, environ)
  guard result == 0 else { return -result }
  var status: Int32 = 0
  waitpid(child, &status, 0)
  return (status >> 8) & 0xFF
}

/// A second process with one open file, which takes and tries locks on request: `test-helper locks PATH`.
final class LockHelper {
  private let child: pid_t
  private let requests: Int32
  private let replies: Int32

  /// Makes the file and starts the process with it open.
  init(on fs: any FileSystem, _ path: Path) throws {
    try fs.put(path)
    guard let helper = TestHelper.path, let absolute = fs.absolutePath(path) else {
      throw Deviation("there is no test-helper beside this program", #fileID, #line)
    }
    var (input, output): ([Int32], [Int32]) = ([0, 0], [0, 0])
    try check(sheaf_test_pipe(&input), "pipe")
    try check(sheaf_test_pipe(&output), "pipe")
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, input[0], 0)
    posix_spawn_file_actions_adddup2(&actions, output[1], 1)
    defer { posix_spawn_file_actions_destroy(&actions) }
    var arguments: [UnsafeMutablePointer<CChar>?] = [strdup(helper), strdup("locks"), strdup(absolute), nil]
    defer { arguments.forEach { free($0) } }
    var child: pid_t = 0
    let result = posix_spawn(&child, helper, &actions, nil, &arguments, environ)
    guard result == 0 else { throw Errno(result, "posix_spawn \(helper)") }
    self.child = child
    close(input[0])
    close(output[1])
    requests = input[1]
    replies = output[0]
    let greeting = try receive()
    try expect(greeting, is: "ready", "the helper's greeting")
  }

  /// Sends a request and waits for the line that answers it.
  func ask(_ request: String) throws -> String {
    let line = Array((request + "\n").utf8)
    guard Glibc.write(requests, line, line.count) == line.count else { throw Errno.last("write to the helper") }
    return try receive()
  }

  private func receive() throws -> String {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while true {
      guard Glibc.read(replies, &byte, 1) == 1 else {
        throw Deviation("the helper ended after \(String(decoding: line, as: UTF8.self))", #fileID, #line)
      }
      guard byte != UInt8(ascii: "\n") else { return String(decoding: line, as: UTF8.self) }
      line.append(byte)
    }
  }

  /// Closes its input, at which it exits, and waits for that.
  func end() throws {
    close(requests)
    close(replies)
    var status: Int32 = 0
    waitpid(child, &status, 0)
    try expect(status, is: 0, "the helper's exit status")
  }
}

/// The program `test-helper`, which is built beside the tests.
public enum TestHelper {
  /// Its path: `SHEAF_TEST_HELPER`, otherwise beside the running program; nil if it is not there.
  public static let path: String? = {
    if let named = getenv("SHEAF_TEST_HELPER") { return String(cString: named) }
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = Glibc.readlink("/proc/self/exe", &buffer, buffer.count - 1)
    guard count > 0 else { return nil }
    let own = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard let slash = own.lastIndex(of: "/") else { return nil }
    let path = own[..<slash] + "/test-helper"
    return access(String(path), X_OK) == 0 ? String(path) : nil
  }()
}
