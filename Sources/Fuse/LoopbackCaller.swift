import CFuse
import Dispatch
import Foundation
import Glibc
import Synchronization

/// A thread that calls into a mount of its own process, as any program might.
///
/// Rules:
/// 1. It has a file table of its own, without the mount's device. With the process's table, a thread of a process that
///    is killed during a call would wait for an answer that only the process could give, and would hold open the device
///    whose closing ends the wait.
/// 2. It leaves the mount when a call is over, and finds it anew by its path and number: it keeps nobody from
///    unmounting, and touches nothing that lies elsewhere. It follows no symbolic link.
/// 3. Nothing but system calls happens on it.
package final class LoopbackCaller: Sendable {
  private struct State {
    var call: LoopbackCall?
    var hasStarted = false
    var hasEnded = false
  }

  private let mountpoint: String
  private let device: UInt64
  private let state = Mutex(State())
  private let wanted = DispatchSemaphore(value: 0)
  private let done = DispatchSemaphore(value: 0)
  private let number = Atomic<Int32>(0)

  init?(_ mount: MountTable.Entry) {
    let parts = mount.device.split(separator: ":").compactMap { UInt64($0) }
    guard parts.count == 2 else { return nil }
    mountpoint = mount.path
    // As makedev(3) puts them together.
    device = (parts[0] & 0xFFF) << 8 | (parts[0] & ~0xFFF) << 32 | parts[1] & 0xFF | (parts[1] & ~0xFF) << 12
  }

  /// The thread's id, which requests of its calls bear (``RequestContext/pid``); 0 while there is none.
  package var thread: Int32 { number.load(ordering: .acquiring) }

  /// Makes a call, and returns when it is made or failed. One at a time.
  package func make(_ call: LoopbackCall) {
    let begins = state.withLock { state -> Bool? in
      if state.hasEnded { return nil }
      defer { state.hasStarted = true }
      state.call = call
      return !state.hasStarted
    }
    guard let begins else { return }
    if begins {
      let thread = Thread { [self] in run() }
      thread.name = "sheaf-loopback"
      thread.start()
    }
    wanted.signal()
    done.wait()
  }

  /// Ends the thread, once its call has returned.
  package func end() {
    let hasStarted = state.withLock { state in
      defer { state.hasEnded = true }
      return state.hasStarted && !state.hasEnded
    }
    if hasStarted { wanted.signal() }
  }

  private func run() {
    let isApart = cfuse_part_with_files() == 0
    if isApart { number.store(cfuse_thread(), ordering: .releasing) }
    while true {
      wanted.wait()
      let (call, hasEnded) = state.withLock { state in
        defer { state.call = nil }
        return (state.call, state.hasEnded)
      }
      if let call {
        if isApart { make(call, from: mountpoint) }
        done.signal()
      } else if hasEnded {
        break
      }
    }
    number.store(0, ordering: .releasing)
  }

  // MARK: - On the thread

  private func make(_ call: LoopbackCall, from mountpoint: String) {
    guard let folder = open(call.place) else { return }
    defer { close(folder) }
    // The request shows whether the call came through.
    _ = call.place.name.withCString { perform(call.operation, folder, $0) }
  }

  private func perform(_ operation: LoopbackCall.Operation, _ folder: Int32, _ name: UnsafePointer<CChar>) -> Int32 {
    switch operation {
    case .makeNode(let type): return mknodat(folder, name, type | 0o600, 0)
    case .makeFolder: return mkdirat(folder, name, 0o700)
    case .makeLink: return symlinkat("/", folder, name)
    case .remove(let isFolder): return unlinkat(folder, name, isFolder ? AT_REMOVEDIR : 0)
    case .rename(let place, let exchanges):
      guard let other = open(place) else { return -1 }
      defer { close(other) }
      return place.name.withCString { newName in
        exchanges ? cfuse_exchange(folder, name, other, newName) : renameat(folder, name, other, newName)
      }
    // The modification time alone: to watchers that is a change of contents.
    case .modify: return cfuse_touch(folder, name)
    case .closeAfterWriting:
      return close(openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC))
    case .setMode: return fchmodat(folder, name, 0o600, 0)
    }
  }

  /// The folder of a place, as a descriptor for paths; nil if another folder is there.
  private func open(_ place: LoopbackCall.Place) -> Int32? {
    let flags = cfuse_path_only | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    var folder = Glibc.open(mountpoint, flags)
    for name in place.folders where folder >= 0 {
      let next = name.withCString { openat(folder, $0, flags) }
      close(folder)
      folder = next
    }
    guard folder >= 0 else { return nil }
    var status = stat()
    guard fstat(folder, &status) == 0, status.st_dev == device, status.st_ino == place.node.rawValue else {
      close(folder)
      return nil
    }
    return folder
  }
}

/// A call that a ``LoopbackCaller`` makes.
package struct LoopbackCall: Sendable {
  /// A name in a folder of the mount.
  package struct Place: Sendable {
    /// The folders on the way there, from the mount point on.
    package let folders: [FileName]
    /// The last of them.
    package let node: NodeID
    package let name: FileName

    package init(folders: [FileName], node: NodeID, name: FileName) {
      self.folders = folders
      self.node = node
      self.name = name
    }
  }

  package enum Operation: Sendable {
    /// mknod(2) of a regular file, a fifo or a socket.
    case makeNode(type: UInt32)
    case makeFolder
    /// symlink(2).
    case makeLink
    case remove(isFolder: Bool)
    case rename(to: Place, exchanges: Bool)
    /// utimensat(2) of the modification time.
    case modify
    /// open(2) for writing and close(2).
    case closeAfterWriting
    /// chmod(2).
    case setMode
  }

  package let place: Place
  package let operation: Operation

  package init(_ operation: Operation, at place: Place) {
    self.place = place
    self.operation = operation
  }
}
