import CFuse
import Glibc

/// The capabilities of a root process that serves mounts.
package enum Privileges {
  /// Numbers of <linux/capability.h>.
  private enum Capability: UInt64, CaseIterable {
    /// Files beside a library belong to its owner, and users' sockets to the users.
    case changeOwner = 0
    /// Libraries and mount points lie in folders of users.
    case overrideAccess = 1
    case readAndSearch = 2
    /// A library's file is made private; a mount's watchers are told of changes of mode.
    case owner = 3
    /// Folders for users are made with their rights (setfsuid(2)).
    case setGroup = 6
    case setUser = 7
    /// Only `/proc` shows which processes keep a mount busy.
    case seeProcesses = 19
    /// mount(2).
    case administer = 21
    /// A library on a full disk may use the blocks that ext4 reserves for root.
    case useReserves = 24
  }

  /// Takes every other capability from the programs that the calling thread starts from now on.
  ///
  /// - Throws: the kernel's error, if this process may not do that.
  package static func limit() throws(Errno) {
    let kept = Capability.allCases.reduce(UInt64(0)) { $0 | 1 << $1.rawValue }
    guard cfuse_limit_privileges(kept) == 0 else { throw .current }
  }
}
