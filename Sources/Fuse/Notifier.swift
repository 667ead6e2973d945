import CFuse
import Glibc

/// Tells the kernel that something it remembers of a mount is no longer true.
///
/// May be used on any thread, also after the session's end (then it does nothing). Rules against deadlock, since the
/// kernel waits in its turn:
/// 1. Hold no lock that a handler may want: a notification waits for the mount's pending READ on the pages, or for its
///    pending LOOKUP, CREATE, … in the directory, that it concerns.
/// 2. A handler never notifies its own mount about the node, parent or name of its request: the notification would wait
///    for the reply, and the reply for the notification. Other nodes and other mounts are safe.
/// 3. Keep threads in reserve: where handlers wait for each other's mounts, further threads answer those.
///
/// A session's notifier keeps libfuse's session alive but not the ``Session`` nor its file system.
///
/// Source: <fuse3/fuse_lowlevel.h>, `fuse_lowlevel_notify_…`; Linux fs/fuse/dev.c.
package struct Notifier: Sendable {
  let device: Device

  /// Drops a node's cached attributes and, in a range, its pages or directory listing.
  ///
  /// - Parameters:
  ///   - offset: where the range begins; negative to drop the attributes alone.
  ///   - length: how long it is; 0 or less to the end.
  /// - Returns: whether the kernel knew the node.
  /// - Throws: the kernel's answer, other than ENOENT.
  @discardableResult
  package func invalidateInode(_ node: NodeID, offset: Int64 = 0, length: Int64 = 0) throws(Errno) -> Bool {
    try device.notify { fuse_lowlevel_notify_inval_inode($0, node.rawValue, off_t(offset), off_t(length)) }
  }

  /// Whether the kernel knows a node. What it remembers of the node stays, and answers under way count.
  ///
  /// - Throws: the kernel's answer, other than ENOENT.
  package func knows(_ node: NodeID) throws(Errno) -> Bool {
    try device.notify { cfuse_notify_nothing_stored($0, node.rawValue) }
  }

  /// Drops a cached name, a negative one too, and what is below it; a file that is in use stays usable.
  ///
  /// The directory's cached listing stays: invalidate the inode of the parent too.
  ///
  /// - Returns: whether the kernel knew parent and name.
  /// - Throws: the kernel's answer, other than ENOENT.
  @discardableResult
  package func invalidateEntry(_ name: FileName, in parent: NodeID) throws(Errno) -> Bool {
    try device.notify { session in
      name.withCString { fuse_lowlevel_notify_inval_entry(session, parent.rawValue, $0, name.bytes.count) }
    }
  }

  /// Makes the kernel look up every cached name anew before it uses the name again, those of files in use too.
  ///
  /// Waits for nothing, so any handler may call it (rule 2 does not apply).
  ///
  /// - Throws: the kernel's answer: EINVAL before Linux 6.16 (``KernelRelease/expiresNames``).
  package func expireNames() throws(Errno) {
    _ = try device.notify { cfuse_notify_inc_epoch($0) }
  }

  /// Drops a cached name as one that was deleted, which inotify(7) shows to watchers of the file.
  ///
  /// - Returns: whether the kernel knew parent, name and child.
  /// - Throws: the kernel's answer, other than ENOENT: ENOTEMPTY for a directory that has cached children, EBUSY for a
  ///   mount point.
  @discardableResult
  package func delete(_ child: NodeID, _ name: FileName, in parent: NodeID) throws(Errno) -> Bool {
    try device.notify { session in
      name.withCString {
        fuse_lowlevel_notify_delete(session, parent.rawValue, child.rawValue, $0, name.bytes.count)
      }
    }
  }
}
