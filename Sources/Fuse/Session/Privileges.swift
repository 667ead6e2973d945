import CFuse
import Glibc

/// What a process of root's that serves mounts may do.
package enum Privileges {
  /// Numbers of <linux/capability.h>.
  private enum Capability: UInt64, CaseIterable {
    /// Files beside a library are its owner's, and sockets of users theirs.
    case changeOwner = 0
    /// Libraries and mount points lie in folders of users.
    case overrideAccess = 1
    case readAndSearch = 2
    /// A library's file is made private; a mount's watchers are told of changes of mode.
    case owner = 3
    /// Folders for users are made with their rights (setfsuid(2)).
    case setGroup = 6
    case setUser = 7
    /// Who keeps a mount busy shows in `/proc` alone.
    case seeProcesses = 19
    /// mount(2).
    case administer = 21
    /// A library on a full disk may use what ext4 reserves for root.
    case useReserves = 24
  }

  /// Leaves to programs that the calling thread starts what those need that serve mounts.
  ///
  /// - Throws: what the kernel says, where this process may not decide it.
  package static func limit() throws(Errno) {
    let kept = Capability.allCases.reduce(UInt64(0)) { $0 | 1 << $1.rawValue }
    guard cfuse_limit_privileges(kept) == 0 else { throw .current }
  }
}
