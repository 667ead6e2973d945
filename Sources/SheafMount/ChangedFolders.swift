import Fuse
import Synchronization

/// Makes a mount's kernel look names up anew that others changed, with as little harm as can be to those who use the
/// folders around them.
///
/// Where nobody but its own user gets into the mount, the kernel forgets the one name. Elsewhere it expires all names
/// at once, which takes no lock (``Invalidator``). But to the kernel an expired name is gone from when somebody uses
/// it until it is found again (fs/fuse/dir.c, `fuse_dentry_revalidate`; fs/dcache.c, `d_invalidate`): getcwd(2) fails
/// in that folder for this moment, a file that is open is shown as deleted in /proc from then on, and what is mounted
/// on a folder is unmounted. So names expire when others begin to make changes in a folder, not at each change:
/// 1. From then on names in the folder are given for no time (``timeout(in:)``). The kernel asks for such a name
///    whenever it is used, and while it leads to the same node, nothing happens to it.
/// 2. Every so many look-ups without a change the kernel may remember the names again, and the next change expires
///    them.
/// 3. The kernel takes a name from a listing for as new as the moment at which it read the listing, which may be later
///    than that of the change. So it keeps those for a second at most.
/// 4. A name that is moved into the folder takes its time along, so it expires (``noteMove(_:_:)``).
///
/// An answer that was given before the names expired and arrives after that has expired as well: the kernel notes the
/// moment before it asks.
final class ChangedFolders: Sendable {
  /// The notifications about names that a kernel remembers (``Notifier``).
  protocol KernelNames: Sendable {
    @discardableResult
    func invalidateEntry(_ name: FileName, in parent: NodeID) throws(Errno) -> Bool
    func expireNames() throws(Errno)
  }

  /// Look-ups in a folder after which the kernel may remember its names again.
  private static let lookups = 1_000
  /// Folders that are remembered; with one more, all of them are forgotten, which their next change mends.
  private static let limit = 1_024
  /// Seconds for which the kernel may remember a name from a listing.
  private static let listedNames = 1.0

  private let expiresNames: Bool
  /// Folders that others changed, with the look-ups that are left.
  private let folders = Mutex<[Int64: Int]>([:])
  private let isEmpty = Atomic(true)
  private let kernel = Mutex<(any KernelNames)?>(nil)

  /// - Parameter expiresNames: Whether the kernel forgets no single names.
  init(expiresNames: Bool) { self.expiresNames = expiresNames }

  func connect(_ notifier: any KernelNames) { kernel.withLock { $0 = notifier } }

  func disconnect() { kernel.withLock { $0 = nil } }

  /// Makes the kernel look a name up anew that somebody else changed.
  func forget(_ name: FileName, in folder: NodeID) {
    guard let notifier = kernel.withLock({ $0 }) else { return }
    guard expiresNames else {
      _ = try? notifier.invalidateEntry(name, in: folder)
      return
    }
    guard let ino = Node(folder).ino else {
      try? notifier.expireNames()
      return
    }
    folders.withLock { folders in
      let isKnown = folders[ino] != nil
      if !isKnown, folders.count == Self.limit { folders = [:] }
      folders[ino] = Self.lookups
      isEmpty.store(false, ordering: .releasing)
      // With the lock held, for others to rely on it. It waits for nothing.
      if !isKnown { try? notifier.expireNames() }
    }
  }

  /// Notes that this mount moved names from one folder to another.
  func noteMove(_ folder: Int64, _ target: Int64) {
    guard folder != target, !isEmpty.load(ordering: .acquiring) else { return }
    if folders.withLock({ $0[folder] != nil || $0[target] != nil }) { try? kernel.withLock { $0 }?.expireNames() }
  }

  /// Seconds for which the kernel may remember a name in a folder.
  func timeout(in folder: Int64) -> Double {
    if isEmpty.load(ordering: .acquiring) { return Entry.forever }
    return folders.withLock { folders in
      guard let left = folders[folder] else { return Entry.forever }
      folders[folder] = left > 1 ? left - 1 : nil
      isEmpty.store(folders.isEmpty, ordering: .releasing)
      return 0
    }
  }

  /// Seconds for which it may remember the names of a listing of the folder.
  func listedTimeout(in folder: Int64) -> Double {
    min(timeout(in: folder), expiresNames ? Self.listedNames : Entry.forever)
  }
}

extension Notifier: ChangedFolders.KernelNames {}
