import CFuse
import Glibc
import Logging
import Synchronization

/// libfuse's session and the file descriptor of `/dev/fuse` that it owns, for as long as anything can use them.
///
/// Rules:
/// 1. The session is freed after the last reply, notifier and ``Session`` is gone: each holds a reference.
/// 2. The number of the descriptor stays taken until then. At the end of the connection `/dev/null` takes its place, so
///    that a late reply or notification never reaches a file that got the number anew; closing the last descriptor of
///    the device ends the connection for callers that still wait.
/// 3. The device knows no file system: a reference to it keeps nothing but memory alive.
final class Device: @unchecked Sendable {
  // Sendable: libfuse's replies, notifications, exit and loop may be used from several threads (fuse_lowlevel.h); the
  // context's handler is written by Session.init and Session.deinit, when no loop runs; everything else is constant or
  // in a Mutex.
  let session: OpaquePointer
  let context: UnsafeMutablePointer<cfuse_context>
  let logger: Logger
  private let state = Mutex(State())

  private struct State {
    var mount: MountTable.Entry?
    var hasEnded = false
  }

  /// Makes a session that is not mounted.
  init(arguments: [String], operations: fuse_lowlevel_ops, logger: Logger) throws(MountError) {
    let context = UnsafeMutablePointer<cfuse_context>.allocate(capacity: 1)
    context.initialize(to: cfuse_context())
    context.pointee.initialized = { handler in
      guard let handler else { return }
      Unmanaged<Session>.fromOpaque(handler).takeUnretainedValue().answersNow()
    }
    var operations = operations
    let (session, messages) = LibfuseLog.collect {
      var list = fuse_args()
      for argument in arguments { fuse_opt_add_arg(&list, argument) }
      defer { fuse_opt_free_args(&list) }
      return cfuse_session_new(&list, &operations, context)
    }
    guard let session else {
      context.deallocate()
      throw MountError(mountpoint: arguments.first ?? "", reason: messages.isEmpty ? "no session" : messages)
    }
    self.session = session
    self.context = context
    self.logger = logger
  }

  deinit {
    fuse_session_destroy(session)
    context.deallocate()
  }

  /// Where it is mounted, empty before.
  var mountpoint: String { mount?.path ?? "" }

  /// The mount, once it is made.
  var mount: MountTable.Entry? { state.withLock { $0.mount } }

  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  /// Whether the kernel still has the connection: poll(2) shows POLLERR on a device whose mount is gone.
  var isConnected: Bool {
    state.withLock { state in
      guard state.mount != nil, !state.hasEnded else { return false }
      var descriptor = pollfd(fd: fuse_session_fd(session), events: 0, revents: 0)
      return poll(&descriptor, 1, 0) >= 0 && descriptor.revents & Int16(POLLERR) == 0
    }
  }

  /// Mounts on a folder.
  func mount(on folder: MountFolder) throws(MountError) {
    let path = folder.path
    let (result, messages) = LibfuseLog.collectWithStandardError {
      // Users other than root mount by fusermount3(1), which has their rights and descriptors of its own.
      fuse_session_mount(session, geteuid() == 0 ? folder.ownPath : path)
    }
    guard result == 0 else {
      throw MountError(mountpoint: path, reason: messages.isEmpty ? "the mount failed" : messages)
    }
    let adopted = cfuse_session_adopt_device(session)
    guard adopted == 0 else {
      throw MountError(mountpoint: path, reason: Errno(rawValue: -adopted).description)
    }
    guard let mount = Self.mount(on: folder) else {
      throw MountError(mountpoint: path, reason: "mounted, but not in /proc/self/mountinfo")
    }
    state.withLock { $0.mount = mount }
    guard mount.path == path else {
      throw MountError(mountpoint: path, reason: "was moved to \(mount.path) meanwhile")
    }
  }

  /// The mount on a folder, wherever the folder is by now.
  private static func mount(on folder: MountFolder) -> MountTable.Entry? {
    // Somebody may rename a folder above it between the looks at it.
    for _ in 1...100 {
      guard let path = folder.currentPath else { return nil }
      if let mount = MountTable.topmost(at: path), folder.currentPath == path { return mount }
    }
    return nil
  }

  /// Ends the connection on this side (rule 2).
  func end() {
    state.withLock { state in
      guard !state.hasEnded else { return }
      state.hasEnded = true
      let descriptor = fuse_session_fd(session)
      guard descriptor >= 0 else { return }
      let null = open("/dev/null", O_RDWR | O_CLOEXEC)
      guard null >= 0, dup2(null, descriptor) >= 0 else {
        logger.error("the device could not be closed", metadata: ["error": "\(Errno.current)"])
        return
      }
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
      close(null)
    }
  }

  /// Sends a notification; false if the kernel did not know its subject.
  func notify(_ send: (OpaquePointer) -> Int32) throws(Errno) -> Bool {
    if hasEnded { return false }
    switch -send(session) {
    case 0: return true
    case ENOENT, ENOTCONN, ENODEV: return false
    case let error: throw Errno(rawValue: error)
    }
  }
}
