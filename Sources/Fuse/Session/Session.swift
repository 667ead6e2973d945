import CFuse
import Dispatch
import Glibc
package import Logging
import Synchronization

/// A mount that this process serves.
///
/// ```swift
/// let session = try Session(fileSystem, options: SessionOptions(source: "library"))
/// try session.mount(on: MountFolder(at: "/mnt"))
/// try session.run()          // returns when the mount is gone
/// ```
/// A process may have any number of sessions, each run by a thread of its own. No signal handlers are installed.
/// A session is for one mount: made, mounted, run once.
package final class Session: Sendable {
  private let fileSystem: any FileSystem
  private let options: SessionOptions
  private let device: Device
  private let state = Mutex(State())
  /// Signalled once the mount answers, and when it ends.
  private let settled = DispatchSemaphore(value: 0)

  private struct State {
    var isInitialized = false
    var answers = false
  }

  /// Makes a session that is not mounted yet.
  ///
  /// - Parameter logger: hears of dropped replies and of failures in the background.
  /// - Throws: the words of libfuse for an option that it does not know.
  package init(
    _ fileSystem: any FileSystem, options: SessionOptions, logger: Logger = Logger(label: "fuse")
  ) throws(MountError) {
    self.fileSystem = fileSystem
    self.options = options
    device = try Device(arguments: options.arguments, operations: Operations.table(), logger: logger)
    device.context.pointee.handler = Unmanaged.passUnretained(self).toOpaque()
  }

  deinit {
    // Programs that look at a mount that never ran would wait for ever.
    if !device.hasEnded { finish() }
    device.context.pointee.handler = nil
  }

  /// Where the session is mounted, as an absolute path without symbolic links; empty before ``mount(on:)``.
  package var mountpoint: String { device.mountpoint }

  /// A thread that calls into the mount; nil before ``mount(on:)``.
  package func loopbackCaller() -> LoopbackCaller? { device.mount.flatMap(LoopbackCaller.init) }

  /// Whether the kernel has the mount: from ``mount(on:)`` until somebody unmounts it or ``run(threads:)`` ends.
  package var isMounted: Bool { device.isConnected }

  /// Tells the kernel of changes. Usable from the start; before the mount answers, there is nothing to tell.
  package var notifier: Notifier { Notifier(device: device) }

  /// Mounts; the mount answers once ``run(threads:)`` is called.
  ///
  /// Uses mount(2) as root and fusermount3(1) else.
  ///
  /// - Throws: the words of the system, libfuse or fusermount3.
  package func mount(on folder: MountFolder) throws(MountError) { try device.mount(on: folder) }

  /// Answers the kernel's requests until the mount is gone or ``exit()`` is called.
  ///
  /// Workers are started as they are needed, and kept.
  ///
  /// - Parameter threads: how many requests are handled at a time. One handler that waits for another mount of the same
  ///   process keeps a thread busy: leave some in reserve.
  /// - Throws: ENOTCONN where nothing is mounted; else the error that ended the loop.
  package func run(threads: Int = 10) throws(Errno) {
    guard device.mount != nil, !device.hasEnded else { throw .notConnected }
    let result = RequestLoop(device: device, threads: threads).run()
    finish()
    guard result == 0 else { throw Errno(rawValue: abs(result)) }
  }

  /// Waits until the mount answers, which needs ``run(threads:)`` on another thread.
  ///
  /// - Returns: whether it did; false where it ended before.
  package func waitUntilReady() -> Bool {
    settled.wait()
    settled.signal()
    return state.withLock { $0.answers }
  }

  /// Ends ``run(threads:)`` from any thread, whether or not files are open; programs that use them get ENOTCONN.
  ///
  /// Requests being handled are finished first. The mount is detached. To let users finish, ``unmount(lazily:)``.
  package func exit() {
    fuse_session_exit(device.session)
    guard let mount = device.mount, device.isConnected else { return }
    // Workers look at the flag when a request wakes them, so this makes a request, which fails when the device closes.
    // A covered or detached mount cannot be asked anything: its connection is cut.
    if MountTable.topmost(at: mount.path) == mount {
      DispatchQueue.global().async {
        var status = statvfs()
        _ = statvfs(mount.path, &status)
      }
    } else if let number = mount.device.split(separator: ":").last {
      do {
        try writeFile("/sys/fs/fuse/connections/\(number)/abort", "1")
      } catch {
        device.logger.warning(
          "the mount is out of reach: it ends with its next request", metadata: ["error": "\(error)"])
      }
    }
  }

  /// Unmounts, which ends ``run(threads:)``. Does nothing where the mount is gone already.
  ///
  /// May be called on any thread; in a handler only lazily, as the kernel may have pages to write first.
  ///
  /// - Parameter lazily: takes the mount out of the tree at once, and ends it when the last file is closed
  ///   (`MNT_DETACH`); else fails while something is open there.
  /// - Throws: the error of umount2(2) or fusermount3(1).
  package func unmount(lazily: Bool = false) throws(MountError) {
    // While it is connected, no other mount can have its number.
    guard let mount = device.mount, device.isConnected else { return }
    try Unmounter.unmount(mount, lazily: lazily)
  }

  /// Sets how far the kernel reads ahead in this mount (`read_ahead_kb` of its bdi). Needs root.
  ///
  /// No READ request is larger than this. The kernel lowers it to its own 128 KiB when the connection begins, so it is
  /// set after ``waitUntilReady()``; ``SessionOptions/readAheadKilobytes`` does so.
  ///
  /// Source: Linux Documentation/ABI/testing/sysfs-class-bdi.
  package func setReadAhead(kilobytes: Int) throws(Errno) {
    guard let mount = device.mount else { throw .notConnected }
    try writeFile("/sys/class/bdi/\(mount.device)/read_ahead_kb", String(kilobytes))
  }

  /// Leaves nothing behind: no mount, no device, no file system that believes to be in use.
  private func finish() {
    if device.isConnected {
      do {
        try unmount(lazily: true)
      } catch {
        device.logger.warning("the mount could not be detached", metadata: ["error": "\(error)"])
      }
    }
    device.end()
    let wasInitialized = state.withLock { state in
      defer { state.isInitialized = false }
      state.answers = false
      return state.isInitialized
    }
    settled.signal()
    if wasInitialized { fileSystem.destroy() }
  }
}

extension Session {
  /// The file system that the operations call.
  var handler: any FileSystem { fileSystem }

  /// The device that the operations' replies answer to.
  var channel: Device { device }

  /// The kernel's INIT request: asks the file system for its choice.
  func begin(_ connection: inout fuse_conn_info) {
    let info = ConnectionInfo(connection, offered: device.context.pointee.offered_init_flags)
    let chosen = fileSystem.initialize(info)
    device.context.pointee.extra_init_flags = chosen.apply(to: &connection)
    state.withLock { $0.isInitialized = true }
  }

  /// The kernel has the answer to INIT.
  func answersNow() {
    if let kilobytes = options.readAheadKilobytes {
      do {
        try setReadAhead(kilobytes: kilobytes)
      } catch {
        device.logger.debug("the read-ahead stays as it is", metadata: ["error": "\(error)"])
      }
    }
    state.withLock { $0.answers = true }
    settled.signal()
  }
}
