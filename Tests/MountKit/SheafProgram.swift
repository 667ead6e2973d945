import ConformanceKit
import Foundation
import Glibc

/// The command `sheaf` under test.
public enum SheafProgram {
  /// Its path: `SHEAF_BIN`, otherwise beside the running test program.
  ///
  /// - Throws: `Command.Failure` if it has not been built.
  public static func path() throws -> String {
    if let named = ProcessInfo.processInfo.environment["SHEAF_BIN"] { return named }
    let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let path = URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent("sheaf").path
    guard access(path, X_OK) == 0 else {
      throw Command.Failure(description: "\(path) is not there; build it, or name it by SHEAF_BIN")
    }
    return path
  }

  /// Runs it with arguments.
  public static func run(
    _ arguments: [String], as user: TestUser? = nil, environment: [String: String?] = [:],
    limit: Duration = .seconds(120)
  ) throws -> Command.Output {
    try Command([try path()] + arguments, as: user, environment: environment, limit: limit).run()
  }
}
