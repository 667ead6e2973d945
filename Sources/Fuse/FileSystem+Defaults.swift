/// The answers to operations that a file system does not implement.
extension FileSystem {
  package func initialize(_ connection: ConnectionInfo) -> ConnectionOptions {
    ConnectionOptions()
  }

  package func destroy() {}

  package func lookup(_ name: FileName, in parent: NodeID, caller: RequestContext, reply: consuming EntryReply) {
    reply.fail(.noSuchFunction)
  }

  package func forget(_ nodes: [Forgotten]) {}

  package func getattr(_ node: NodeID, handle: FileHandle?, caller: RequestContext, reply: consuming AttributesReply) {
    reply.fail(.noSuchFunction)
  }

  package func setattr(
    _ node: NodeID, _ changes: SetAttributes, caller: RequestContext, reply: consuming AttributesReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func access(_ node: NodeID, _ wanted: AccessMode, caller: RequestContext, reply: consuming EmptyReply) {
    reply.fail(.noSuchFunction)
  }

  package func statfs(_ node: NodeID, caller: RequestContext, reply: consuming StatFSReply) {
    reply.fail(.noSuchFunction)
  }

  package func readlink(_ node: NodeID, caller: RequestContext, reply: consuming LinkReply) {
    reply.fail(.noSuchFunction)
  }

  package func mknod(
    _ name: FileName, in parent: NodeID, mode: UInt32, device: UInt64, caller: RequestContext,
    reply: consuming EntryReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func mkdir(
    _ name: FileName, in parent: NodeID, mode: UInt32, caller: RequestContext, reply: consuming EntryReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func unlink(_ name: FileName, in parent: NodeID, caller: RequestContext, reply: consuming EmptyReply) {
    reply.fail(.noSuchFunction)
  }

  package func rmdir(_ name: FileName, in parent: NodeID, caller: RequestContext, reply: consuming EmptyReply) {
    reply.fail(.noSuchFunction)
  }

  package func symlink(
    _ name: FileName, in parent: NodeID, target: [UInt8], caller: RequestContext, reply: consuming EntryReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func rename(
    _ name: FileName, in parent: NodeID, to newName: FileName, in newParent: NodeID, flags: RenameFlags,
    caller: RequestContext, reply: consuming EmptyReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func link(
    _ node: NodeID, as newName: FileName, in newParent: NodeID, caller: RequestContext, reply: consuming EntryReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func open(_ node: NodeID, flags: OpenFlags, caller: RequestContext, reply: consuming OpenReply) {
    reply.fail(.noSuchFunction)
  }

  package func create(
    _ name: FileName, in parent: NodeID, mode: UInt32, flags: OpenFlags, caller: RequestContext,
    reply: consuming CreateReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func tmpfile(
    in parent: NodeID, mode: UInt32, flags: OpenFlags, caller: RequestContext, reply: consuming CreateReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func read(
    _ node: NodeID, handle: FileHandle, offset: Int64, size: Int, caller: RequestContext, reply: consuming DataReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func write(
    _ node: NodeID, handle: FileHandle, offset: Int64, data: UnsafeRawBufferPointer, origin: WriteOrigin,
    caller: RequestContext, reply: consuming WriteReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func flush(
    _ node: NodeID, handle: FileHandle, lockOwner: UInt64, caller: RequestContext, reply: consuming EmptyReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func release(
    _ node: NodeID, handle: FileHandle, flags: OpenFlags, caller: RequestContext, reply: consuming EmptyReply
  ) {
    reply.succeed()
  }

  package func fsync(
    _ node: NodeID, handle: FileHandle, dataOnly: Bool, caller: RequestContext, reply: consuming EmptyReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func fallocate(
    _ node: NodeID, handle: FileHandle, mode: FallocateMode, offset: Int64, length: Int64, caller: RequestContext,
    reply: consuming EmptyReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func lseek(
    _ node: NodeID, handle: FileHandle, offset: Int64, whence: Whence, caller: RequestContext,
    reply: consuming LseekReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func copyFileRange(
    from source: FileRange, to target: FileRange, length: Int, caller: RequestContext, reply: consuming WriteReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func ioctl(
    _ node: NodeID, handle: FileHandle, command: UInt32, flags: IoctlFlags, caller: RequestContext,
    reply: consuming IoctlReply
  ) {
    reply.fail(.inappropriateIOCTLForDevice)
  }

  package func getlk(
    _ node: NodeID, _ lock: FileLock, handle: FileHandle, owner: LockOwner, caller: RequestContext,
    reply: consuming LockReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func setlk(
    _ node: NodeID, _ lock: FileLock, handle: FileHandle, owner: LockOwner, waits: Bool, caller: RequestContext,
    reply: consuming EmptyReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func flock(
    _ node: NodeID, _ kind: FileLock.Kind, handle: FileHandle, owner: LockOwner, waits: Bool, caller: RequestContext,
    reply: consuming EmptyReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func opendir(_ node: NodeID, flags: OpenFlags, caller: RequestContext, reply: consuming OpenReply) {
    reply.fail(.noSuchFunction)
  }

  package func readdir(
    _ node: NodeID, handle: FileHandle, cookie: UInt64, caller: RequestContext, reply: consuming DirectoryReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func readdirplus(
    _ node: NodeID, handle: FileHandle, cookie: UInt64, caller: RequestContext, reply: consuming DirectoryPlusReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func releasedir(_ node: NodeID, handle: FileHandle, caller: RequestContext, reply: consuming EmptyReply) {
    reply.succeed()
  }

  package func fsyncdir(
    _ node: NodeID, handle: FileHandle, dataOnly: Bool, caller: RequestContext, reply: consuming EmptyReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func setxattr(
    _ node: NodeID, name: FileName, value: UnsafeRawBufferPointer, flags: XattrFlags, caller: RequestContext,
    reply: consuming EmptyReply
  ) {
    reply.fail(.noSuchFunction)
  }

  package func getxattr(_ node: NodeID, name: FileName, caller: RequestContext, reply: consuming XattrReply) {
    reply.fail(.noSuchFunction)
  }

  package func listxattr(_ node: NodeID, caller: RequestContext, reply: consuming XattrListReply) {
    reply.fail(.noSuchFunction)
  }

  package func removexattr(_ node: NodeID, name: FileName, caller: RequestContext, reply: consuming EmptyReply) {
    reply.fail(.noSuchFunction)
  }
}
