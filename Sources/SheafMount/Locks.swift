import Dispatch
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
      library.saveBeforeUnlocking(account, thread: caller.pid)
      let isDone = library.locks.unlock(lock.range, .record, of: node.rawValue, by: self.owner(owner))
      return isDone ? reply.succeed() : reply.fail(.noLocks)
    }
    set(wanted(lock, handle, owner), .record, node, waits: waits, caller, reply)
  }

  func flock(
    _ node: NodeID, _ kind: FileLock.Kind, handle: FileHandle, owner: LockOwner, waits: Bool, caller: RequestContext,
    reply: consuming EmptyReply
  ) {
    let whole: ClosedRange<Int64> = 0...Int64.max
    if kind == .unlock {
      library.saveBeforeUnlocking(account, thread: caller.pid)
      library.locks.unlock(whole, .flock, of: node.rawValue, by: self.owner(owner))
      return reply.succeed()
    }
    set(wanted(FileLock(kind, whole, process: caller.pid), handle, owner), .flock, node, waits: waits, caller, reply)
  }

  private func owner(_ owner: LockOwner) -> FileLocks.Owner { .init(door: door, id: owner.rawValue) }

  private func wanted(_ lock: FileLock, _ handle: FileHandle, _ owner: LockOwner) -> FileLocks.Lock {
    FileLocks.Lock(
      owner: self.owner(owner), handle: handle.rawValue, process: lock.process, isExclusive: lock.kind == .exclusive,
      range: lock.range)
  }

  private func set(
    _ lock: FileLocks.Lock, _ family: FileLocks.Family, _ node: NodeID, waits: Bool, _ caller: RequestContext,
    _ reply: consuming EmptyReply
  ) {
    let hasOthers: Bool
    do throws(Errno) {
      hasOthers = try translated { try library.permitLock(lock.handle) }
    } catch {
      return reply.fail(error)
    }
    // It may be a stronger one that becomes weaker.
    if hasOthers, !lock.isExclusive { library.saveBeforeUnlocking(account, thread: caller.pid) }
    let locks = library.locks
    let request = locks.newRequest()
    if waits { reply.whenInterrupted { locks.interrupt(request) } }
    let answer = LateReply(reply)
    locks.set(lock, family, of: node.rawValue, waits: waits, request: request) { [library, account] outcome in
      guard hasOthers, outcome == .granted else { return answer.give(outcome) }
      // Whoever frees a lock grants it to others, and may hold locks of its own then.
      DispatchQueue.global().async {
        library.showSavedAfterLocking(account)
        answer.give(outcome)
      }
    }
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
