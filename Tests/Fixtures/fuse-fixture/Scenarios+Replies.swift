import Dispatch
import Fuse
import Glibc
import Logging
import Synchronization

/// A root directory in which lookups are answered by a closure, and nothing else.
struct LookupFileSystem: FileSystem {
  let answer: @Sendable (FileName, RequestContext, consuming EntryReply) -> Void

  func getattr(_ node: NodeID, handle: FileHandle?, caller: RequestContext, reply: consuming AttributesReply) {
    reply.succeed(Self.attributes(node), timeout: 0)
  }

  func lookup(_ name: FileName, in parent: NodeID, caller: RequestContext, reply: consuming EntryReply) {
    answer(name, caller, reply)
  }

  static func attributes(_ node: NodeID) -> FileAttributes {
    FileAttributes(node: node, mode: node == .root ? S_IFDIR | 0o755 : S_IFREG | 0o644)
  }

  static let entry = Entry(node: NodeID(rawValue: 2), attributes: attributes(NodeID(rawValue: 2)))
}

/// A reply that waits to be given.
final class HeldReply: Sendable {
  private let reply = Mutex<EntryReply?>(nil)
  /// Signalled when there is one.
  let isHeld = DispatchSemaphore(value: 0)

  func hold(_ reply: consuming EntryReply) {
    var given: EntryReply? = reply
    self.reply.withLock { swap(&$0, &given) }
    isHeld.signal()
  }

  func take() -> EntryReply? {
    var taken: EntryReply?
    reply.withLock { swap(&$0, &taken) }
    return taken
  }
}

extension Scenarios {
  static func defaults() throws {
    let mount = try TestMount(LookupFileSystem { _, _, reply in reply.fail(.noSuchFileOrDirectory) })
    var status = statvfs()
    expectError(.noSuchFunction, statvfs(mount.path, &status))
    expectError(.noSuchFunction, mkdir("\(mount.path)/d", 0o755))
    expectError(.noSuchFunction, open("\(mount.path)/f", O_CREAT | O_WRONLY, 0o644))
    expectError(.notSupported, Posix.getxattr(mount.path, "user.a", capacity: 10).count)
    expectError(.notSupported, Posix.setxattr(mount.path, "user.a", "b"))
    try mount.unmount()
  }

  static func dropped() throws {
    let records = RecordingLogHandler.Records()
    let logger = Logger(label: "test") { _ in RecordingLogHandler(records) }
    let fileSystem = LookupFileSystem { name, _, reply in
      if name == "dropped" { return }
      reply.succeed(LookupFileSystem.entry)
    }
    let mount = try TestMount(fileSystem, logger: logger)
    expectError(.inputOutput, access("\(mount.path)/dropped", F_OK))
    expectDone(access("\(mount.path)/answered", F_OK))
    // The caller is answered first.
    expect(records.hasError.wait(timeout: .now() + 10) == .success, "an error to be logged")
    let errors = records.lines.withLock { $0.filter { $0.hasPrefix("error") } }
    expectEqual(
      errors,
      [
        "error: a request was dropped without an answer, its caller gets EIO mountpoint=\(mount.path) operation=lookup"
      ])
    try mount.unmount()
  }

  static func later() throws {
    let held = HeldReply()
    let fileSystem = LookupFileSystem { name, _, reply in
      if name == "later" { held.hold(reply) } else { reply.succeed(LookupFileSystem.entry) }
    }
    // With one thread: the request that waits keeps no thread.
    let mount = try TestMount(fileSystem, threads: 1)
    let path = mount.path
    concurrently(
      { expectDone(access("\(path)/later", F_OK)) },
      {
        held.isHeld.wait()
        expectDone(access("\(path)/other", F_OK))
        held.take()?.succeed(LookupFileSystem.entry)
      })
    try mount.unmount()
  }

  static func parallel() throws {
    let arrived = DispatchSemaphore(value: 0)
    let mayGo = DispatchSemaphore(value: 0)
    let fileSystem = LookupFileSystem { name, _, reply in
      arrived.signal()
      mayGo.wait()
      reply.succeed(LookupFileSystem.entry)
    }
    let mount = try TestMount(fileSystem)
    let path = mount.path
    concurrently(
      { expectDone(access("\(path)/one", F_OK)) },
      { expectDone(access("\(path)/two", F_OK)) },
      {
        // Both are in their handlers before either is answered: FUSE_PARALLEL_DIROPS reached the kernel.
        for number in 1...2 { expect(arrived.wait(timeout: .now() + 10) == .success, "lookup \(number)") }
        mayGo.signal()
        mayGo.signal()
      })
    try mount.unmount()
  }

  static func caller() throws {
    let callers = Mutex<[RequestContext]>([])
    let groups = Mutex<[UInt32]>([])
    let fileSystem = LookupFileSystem { name, caller, reply in
      callers.withLock { $0.append(caller) }
      reply.answer { () throws(Errno) in
        let read = try caller.groups()
        groups.withLock { $0 = read }
        return LookupFileSystem.entry
      }
    }
    let mount = try TestMount(fileSystem)
    var own: [gid_t] = [7, 4_000_000_000]
    expectDone(setgroups(own.count, own))
    expectDone(access("\(mount.path)/one", F_OK))
    own.sort()
    expectEqual(groups.withLock { $0 }, own)
    expectEqual(callers.withLock { $0.first?.pid }, getpid())
    expectEqual(callers.withLock { $0.first?.uid }, getuid())
    do {
      _ = try RequestContext(uid: 0, gid: 0, pid: 0).groups()
      expect(false, "no groups of nobody")
    } catch {
      expectEqual(error, .noSuchFileOrDirectory)
    }
    try mount.unmount()
  }
}
