import MountKit

/// A network of its own, for as long as a process holds it that ends with this one.
final class NetworkNamespace: Sendable {
  /// What puts a program into it.
  let prefix: [String]
  let process: Int32
  // Only kept, and ended when this is let go.
  nonisolated(unsafe) private let holder: BackgroundCommand

  /// Whether this machine has such networks, and cables between them.
  static let isPossible =
    TestUser.isRoot
    && (try? Command(["unshare", "--net", "ip", "link", "add", "name", "v1", "type", "veth", "peer", "name", "v2"])
      .run())?
      .status == 0

  init() throws {
    // It ends when its standard input does, also if this process is killed.
    holder = try BackgroundCommand(Command(["unshare", "--net", "cat"]))
    process = holder.process
    prefix = ["nsenter", "--net=/proc/\(process)/ns/net"]
    let own = try Command(["readlink", "/proc/self/ns/net"]).succeed().text
    try eventually("a network of its own") { [process] in
      let theirs = try Command(["readlink", "/proc/\(process)/ns/net"]).run().text
      return !theirs.isEmpty && theirs != own
    }
    try run("ip link set lo up")
  }

  deinit { holder.end() }

  /// Runs a script in it.
  func run(_ script: String) throws {
    try Command(prefix + ["/bin/bash", "-euc", script]).succeed()
  }
}
