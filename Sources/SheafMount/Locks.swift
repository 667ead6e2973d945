import Fuse
import SheafLibrary
import Synchronization

/// Locks, which hold in all mounts of the library alike (``FileLocks``).
extension AccountFileSystem {
  func getlk(
    _ node: NodeID, _ lock: FileLock, handle: FileHandle, owner: LockOwner, caller: RequestContext,
    reply: consuming LockReply
  ) {
    let holder = library.locks.holder(against: wanted(lock, handle, owner), of: node.rawValue)
    reply.succeed(
      holder.map { FileLock($0.isExclusive ? .exclusive : .shared, $0.range, process: $0.process) }
        ?? FileLock(.unlock, lock.range, process: 0))
  }

  func setlk(
    _ node: NodeID, _ lock: FileLock, handle: FileHandle, owner: LockOwner, waits: Bool, caller: RequestContext,
    reply: consuming EmptyReply
  ) {
    if lock.kind == .unlock {
      let isDone = library.locks.unlock(lock.range, .record, of: node.rawValue, by: self.owner(owner))
      return isDone ? reply.succeed() : reply.fail(.noLocks)
    }
    set(wanted(lock, handle, owner), .record, node, waits: waits, reply)
  }

  func flock(
    _ node: NodeID, _ kind: FileLock.Kind, handle: FileHandle, owner: LockOwner, waits: Bool, caller: RequestContext,
    reply: consuming EmptyReply
  ) {
    let whole: ClosedRange<Int64> = 0...Int64.max
    if kind == .unlock {
      library.locks.unlock(whole, .flock, of: node.rawValue, by: self.owner(owner))
      return reply.succeed()
    }
    set(wanted(FileLock(kind, whole, process: caller.pid), handle, owner), .flock, node, waits: waits, reply)
  }

  private func owner(_ owner: LockOwner) -> FileLocks.Owner { .init(door: door, id: owner.rawValue) }

  private func wanted(_ lock: FileLock, _ handle: FileHandle, _ owner: LockOwner) -> FileLocks.Lock {
    FileLocks.Lock(
      owner: self.owner(owner), handle: handle.rawValue, process: lock.process, isExclusive: lock.kind == .exclusive,
      range: lock.range)
  }

  private func set(
    _ lock: FileLocks.Lock, _ family: FileLocks.Family, _ node: NodeID, waits: Bool, _ reply: consuming EmptyReply
  ) {
    do throws(Errno) {
      try translated { try library.permitLock(lock.handle) }
    } catch {
      return reply.fail(error)
    }
    let locks = library.locks
    let request = locks.newRequest()
    if waits { reply.whenInterrupted { locks.interrupt(request) } }
    let answer = LateReply(reply)
    locks.set(lock, family, of: node.rawValue, waits: waits, request: request) { answer.give($0) }
  }
}

/// A reply that another thread gives, at some time.
private final class LateReply: Sendable {
  private let reply: Mutex<EmptyReply?>

  init(_ reply: consuming EmptyReply) { self.reply = Mutex(reply) }

  func give(_ outcome: FileLocks.Outcome) {
    guard let reply = reply.withLock({ $0.take() }) else { return }
    switch outcome {
    case .granted: reply.succeed()
    case .refused: reply.fail(.resourceTemporarilyUnavailable)
    case .interrupted: reply.fail(.interrupted)
    case .deadlock: reply.fail(.deadlockWouldOccur)
    case .tooMany: reply.fail(.noLocks)
    case .denied: reply.fail(.permissionDenied)
    }
  }
}
