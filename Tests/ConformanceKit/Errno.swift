import CTestSystem
import Glibc

/// A system call's failure: the number that it left in `errno`, and the call with its subject.
public struct Errno: Error, Hashable, Sendable, CustomStringConvertible {
  public let code: Int32
  /// The call and its subject, such as `open a/b`.
  public let operation: String

  public init(_ code: Int32, _ operation: String) {
    self.code = code
    self.operation = operation
  }

  /// The failure of the call that this thread made last.
  static func last(_ operation: @autoclosure () -> String) -> Errno {
    let code = errno
    return Errno(code, operation())
  }

  /// The symbolic name, such as `ENOENT`.
  public static func name(_ code: Int32) -> String {
    guard code != 0 else { return "success" }
    guard let name = sheaf_test_errno_name(code) else { return "errno \(code)" }
    return String(cString: name)
  }

  public var description: String { "\(Errno.name(code)) from \(operation)" }
}
