/// A file system: one method for each operation of libfuse's low-level interface.
///
/// Methods are called on several threads at once. Each gets a reply that must be consumed exactly once, there or later
/// on any thread; a dropped reply answers EIO. Names, attributes and flags are copies; only the bytes of a write and of
/// an attribute's value are borrowed, for the duration of the call.
///
/// Every method has a default. It answers ENOSYS unless its comment says otherwise. The kernel takes ENOSYS as "never":
/// after one such answer it does not ask again for as long as the mount lives, and
/// - open, opendir: opens everything by itself, with handle 0;
/// - flush, fsync, fsyncdir, access: succeed; flush and fsync of a file system that keeps data must not be left out;
/// - getxattr, setxattr, listxattr, removexattr, fallocate: fail with EOPNOTSUPP;
/// - create: becomes mknod and open; lseek: there are no holes; copy_file_range: the kernel copies by read and write;
/// - readdirplus: becomes readdir (better is ``ConnectionOptions/Readdirplus/never``);
/// - statfs: fails, with it df(1). All others fail with ENOSYS each time. So an operation that is refused for this one
///   file must answer EOPNOTSUPP, EACCES or ENOTTY, never ENOSYS. Bmap and poll are not passed on. Locks come where
///   ``ConnectionOptions/locks`` asks for them.
///
/// Source: <fuse3/fuse_lowlevel.h>, `struct fuse_lowlevel_ops`.
package protocol FileSystem: Sendable {
  /// Begins the connection, before any other operation. The default takes ``ConnectionOptions/init()``.
  func initialize(_ connection: ConnectionInfo) -> ConnectionOptions
  /// Ends the connection: no operation comes any more, though replies may still be pending elsewhere. Drop the
  /// ``Notifier`` here, if you hold one. Called once, by ``Session/run(threads:)`` before it returns.
  func destroy()

  /// Finds a name. ENOENT and ``Entry/negative(timeout:)`` say that there is none, the latter so that it is remembered.
  func lookup(_ name: FileName, in parent: NodeID, caller: RequestContext, reply: consuming EntryReply)
  /// The kernel forgets nodes. There is no reply. The default does nothing. At the end of the connection the kernel
  /// forgets the rest without this call.
  func forget(_ nodes: [Forgotten])

  func getattr(_ node: NodeID, handle: FileHandle?, caller: RequestContext, reply: consuming AttributesReply)
  func setattr(_ node: NodeID, _ changes: SetAttributes, caller: RequestContext, reply: consuming AttributesReply)
  /// access(2), and chdir(2); with ``SessionOptions/defaultPermissions`` the kernel answers them itself.
  func access(_ node: NodeID, _ wanted: AccessMode, caller: RequestContext, reply: consuming EmptyReply)
  func statfs(_ node: NodeID, caller: RequestContext, reply: consuming StatFSReply)

  func readlink(_ node: NodeID, caller: RequestContext, reply: consuming LinkReply)
  /// Makes a file of any type but directory and symbolic link; for regular ones where create is not implemented, and
  /// for mknod(2).
  func mknod(
    _ name: FileName, in parent: NodeID, mode: UInt32, device: UInt64, caller: RequestContext,
    reply: consuming EntryReply)
  func mkdir(_ name: FileName, in parent: NodeID, mode: UInt32, caller: RequestContext, reply: consuming EntryReply)
  func unlink(_ name: FileName, in parent: NodeID, caller: RequestContext, reply: consuming EmptyReply)
  func rmdir(_ name: FileName, in parent: NodeID, caller: RequestContext, reply: consuming EmptyReply)
  func symlink(
    _ name: FileName, in parent: NodeID, target: [UInt8], caller: RequestContext, reply: consuming EntryReply)
  func rename(
    _ name: FileName, in parent: NodeID, to newName: FileName, in newParent: NodeID, flags: RenameFlags,
    caller: RequestContext, reply: consuming EmptyReply)
  /// Gives a node another name.
  func link(
    _ node: NodeID, as newName: FileName, in newParent: NodeID, caller: RequestContext, reply: consuming EntryReply)

  func open(_ node: NodeID, flags: OpenFlags, caller: RequestContext, reply: consuming OpenReply)
  /// Makes a regular file, if there is none of the name, and opens it.
  func create(
    _ name: FileName, in parent: NodeID, mode: UInt32, flags: OpenFlags, caller: RequestContext,
    reply: consuming CreateReply)
  /// Makes a regular file without a name, as open(2) with O_TMPFILE does, and opens it; link may give it one.
  func tmpfile(
    in parent: NodeID, mode: UInt32, flags: OpenFlags, caller: RequestContext, reply: consuming CreateReply)
  func read(
    _ node: NodeID, handle: FileHandle, offset: Int64, size: Int, caller: RequestContext, reply: consuming DataReply)
  /// Writes. `data` is valid until the method returns.
  func write(
    _ node: NodeID, handle: FileHandle, offset: Int64, data: UnsafeRawBufferPointer, origin: WriteOrigin,
    caller: RequestContext, reply: consuming WriteReply)
  /// A descriptor of an open file is closed. Every close(2) sends this, also that of a duplicate, and returns the
  /// answer.
  func flush(
    _ node: NodeID, handle: FileHandle, lockOwner: UInt64, caller: RequestContext, reply: consuming EmptyReply)
  /// The last descriptor is closed. No program waits for the answer or sees an error. The default answers success.
  func release(
    _ node: NodeID, handle: FileHandle, flags: OpenFlags, caller: RequestContext, reply: consuming EmptyReply)
  func fsync(
    _ node: NodeID, handle: FileHandle, dataOnly: Bool, caller: RequestContext, reply: consuming EmptyReply)
  func fallocate(
    _ node: NodeID, handle: FileHandle, mode: FallocateMode, offset: Int64, length: Int64, caller: RequestContext,
    reply: consuming EmptyReply)
  func lseek(
    _ node: NodeID, handle: FileHandle, offset: Int64, whence: Whence, caller: RequestContext,
    reply: consuming LseekReply)
  /// Copies within the mount; it may copy less than asked for.
  func copyFileRange(
    from source: FileRange, to target: FileRange, length: Int, caller: RequestContext, reply: consuming WriteReply)
  /// The default answers ENOTTY.
  func ioctl(
    _ node: NodeID, handle: FileHandle, command: UInt32, flags: IoctlFlags, caller: RequestContext,
    reply: consuming IoctlReply)

  /// Finds the lock that keeps this one from being set.
  func getlk(
    _ node: NodeID, _ lock: FileLock, handle: FileHandle, owner: LockOwner, caller: RequestContext,
    reply: consuming LockReply)
  /// Sets a lock of fcntl(2), or takes it away. Those of `owner` go with flush, those of `handle` with release.
  ///
  /// - Parameter waits: whether the caller waits for the lock. Then the answer may come late, and is EINTR if the
  ///   caller is interrupted; otherwise a lock in the way answers EAGAIN.
  func setlk(
    _ node: NodeID, _ lock: FileLock, handle: FileHandle, owner: LockOwner, waits: Bool, caller: RequestContext,
    reply: consuming EmptyReply)
  /// Sets a lock of flock(2), or takes it away; as setlk. Those of `handle` go with release.
  func flock(
    _ node: NodeID, _ kind: FileLock.Kind, handle: FileHandle, owner: LockOwner, waits: Bool, caller: RequestContext,
    reply: consuming EmptyReply)

  func opendir(_ node: NodeID, flags: OpenFlags, caller: RequestContext, reply: consuming OpenReply)
  /// Lists a directory from a cookie on: 0 at the start, otherwise the cookie of an entry.
  func readdir(
    _ node: NodeID, handle: FileHandle, cookie: UInt64, caller: RequestContext, reply: consuming DirectoryReply)
  func readdirplus(
    _ node: NodeID, handle: FileHandle, cookie: UInt64, caller: RequestContext, reply: consuming DirectoryPlusReply)
  /// The default answers success.
  func releasedir(_ node: NodeID, handle: FileHandle, caller: RequestContext, reply: consuming EmptyReply)
  func fsyncdir(
    _ node: NodeID, handle: FileHandle, dataOnly: Bool, caller: RequestContext, reply: consuming EmptyReply)

  /// Sets an attribute. `value` is valid until the method returns.
  func setxattr(
    _ node: NodeID, name: FileName, value: UnsafeRawBufferPointer, flags: XattrFlags, caller: RequestContext,
    reply: consuming EmptyReply)
  /// Gets an attribute. Answers ENODATA, not ENOSYS, where no attribute has the name.
  func getxattr(_ node: NodeID, name: FileName, caller: RequestContext, reply: consuming XattrReply)
  func listxattr(_ node: NodeID, caller: RequestContext, reply: consuming XattrListReply)
  func removexattr(_ node: NodeID, name: FileName, caller: RequestContext, reply: consuming EmptyReply)
}

/// A place in an open file.
package struct FileRange: Hashable, Sendable {
  package let node: NodeID
  package let handle: FileHandle
  package let offset: Int64

  package init(node: NodeID, handle: FileHandle, offset: Int64) {
    self.node = node
    self.handle = handle
    self.offset = offset
  }
}

/// How an ioctl(2) was made (`FUSE_IOCTL_*`).
package struct IoctlFlags: OptionSet, Hashable, Sendable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  /// By a 32-bit process.
  package static let compat = IoctlFlags(rawValue: 1 << 0)
  /// On a directory.
  package static let directory = IoctlFlags(rawValue: 1 << 4)
}
