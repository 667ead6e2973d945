import Foundation
import Glibc

/// A Linux user that tests act as.
public struct TestUser: Hashable, Sendable {
  public let name: String
  public let user: UInt32
  public let group: UInt32
  public let home: String

  /// Whether this process may act as others.
  public static let isRoot = geteuid() == 0

  /// An ordinary user: made if need be if root runs the tests, otherwise the user who runs them.
  public static func ordinary() throws -> TestUser {
    guard isRoot else { return try find(named: ProcessInfo.processInfo.userName) }
    if let user = try? find(named: "sheaftest") { return user }
    try Command(["useradd", "--create-home", "--shell", "/bin/bash", "sheaftest"]).succeed()
    return try find(named: "sheaftest")
  }

  private static func find(named name: String) throws -> TestUser {
    guard let entry = getpwnam(name)?.pointee else { throw Command.Failure(description: "there is no user \(name)") }
    return TestUser(name: name, user: entry.pw_uid, group: entry.pw_gid, home: String(cString: entry.pw_dir))
  }

  /// The words before a command that make this user run it.
  var prefix: [String] {
    geteuid() == user ? [] : ["setpriv", "--reuid=\(user)", "--regid=\(group)", "--init-groups"]
  }

  var environment: [String: String] { ["HOME": home, "USER": name, "LOGNAME": name, "SHELL": "/bin/bash"] }
}
