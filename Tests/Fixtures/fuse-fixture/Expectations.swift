import Fuse
import Glibc
import Synchronization

/// What did not hold; printed at the end.
enum Expectations {
  private static let failures = Mutex<[String]>([])

  static var failed: [String] { failures.withLock { $0 } }

  static func fail(_ what: String, _ line: Int) {
    failures.withLock { $0.append("line \(line): \(what)") }
  }
}

func expect(_ condition: Bool, _ what: String = "", line: Int = #line) {
  if !condition { Expectations.fail("expected \(what)", line) }
}

func expectEqual<Value: Equatable>(_ value: Value?, _ expected: Value, line: Int = #line) {
  if value != expected { Expectations.fail("expected \(expected), got \(value.map { "\($0)" } ?? "nothing")", line) }
}

/// Expects a system call to succeed.
func expectDone(_ result: some BinaryInteger, line: Int = #line) {
  if result < 0 { Expectations.fail("unexpected error: \(Errno.current)", line) }
}

/// Expects a system call to fail with an error.
func expectError(_ expected: Errno, _ result: some BinaryInteger, line: Int = #line) {
  let error = Errno.current
  if result >= 0 {
    Expectations.fail("expected \(expected), but it succeeded", line)
  } else if error != expected {
    Expectations.fail("expected \(expected), got \(error)", line)
  }
}
