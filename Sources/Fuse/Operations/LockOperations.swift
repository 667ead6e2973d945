import CFuse
import Glibc

extension Operations {
  /// Locks of open files.
  static func addLocks(to table: inout fuse_lowlevel_ops) {
    table.getlk = { request, node, info, lock in
      let call = IncomingRequest(request!)
      call.fileSystem.getlk(
        NodeID(node), FileLock(lock!.pointee), handle: FileHandle(info!), owner: LockOwner(info!), caller: call.caller,
        reply: LockReply(request: call.pending("getlk")))
    }
    table.setlk = { request, node, info, lock, sleep in
      let call = IncomingRequest(request!)
      call.fileSystem.setlk(
        NodeID(node), FileLock(lock!.pointee), handle: FileHandle(info!), owner: LockOwner(info!), waits: sleep != 0,
        caller: call.caller, reply: EmptyReply(request: call.pending("setlk")))
    }
    table.flock = { request, node, info, operation in
      let call = IncomingRequest(request!)
      let kind: FileLock.Kind =
        switch operation & ~LOCK_NB {
        case LOCK_SH: .shared
        case LOCK_EX: .exclusive
        default: .unlock
        }
      call.fileSystem.flock(
        NodeID(node), kind, handle: FileHandle(info!), owner: LockOwner(info!), waits: operation & LOCK_NB == 0,
        caller: call.caller, reply: EmptyReply(request: call.pending("flock")))
    }
  }
}

extension LockOwner {
  init(_ info: UnsafeMutablePointer<fuse_file_info>) {
    self.init(rawValue: info.pointee.lock_owner)
  }
}
