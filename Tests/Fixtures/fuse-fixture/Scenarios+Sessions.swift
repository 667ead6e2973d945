import Fuse
import Glibc

extension Scenarios {
  static func twoSessions() throws {
    let one = try TestMount(MemoryFileSystem(), "one")
    let two = try TestMount(MemoryFileSystem(), "two")
    concurrently(
      { for index in 0..<200 { expectEqual(Posix.writeFile("\(one.path)/\(index)", "one"), 3) } },
      { for index in 0..<200 { expectEqual(Posix.writeFile("\(two.path)/\(index)", "two"), 3) } })
    expectEqual(Posix.readFile("\(one.path)/7"), "one")
    expectEqual(Posix.readFile("\(two.path)/7"), "two")
    try one.unmount()
    expect(two.session.isMounted, "the other mount to stay")
    expectEqual(Posix.writeFile("\(two.path)/after", "two"), 3)
    try two.unmount()
  }

  static func unmountedOutside() throws {
    let mount = try TestMount(MemoryFileSystem())
    expect(mount.session.isMounted, "the mount")
    expectEqual(mount.session.mountpoint, mount.path)
    expectDone(umount2(mount.path, 0))
    expect(mount.waitUntilEnded() == nil, "run to end without error")
    expect(!mount.session.isMounted, "the mount to be gone")
    expect(!mount.session.waitUntilReady(), "the mount not to answer any more")
    // What took its place is not ours to unmount.
    let next = try TestMount(MemoryFileSystem())
    try mount.session.unmount()
    expect(next.session.isMounted, "the next mount at this place")
    do {
      try mount.session.run()
      expect(false, "a session to run once")
    } catch {
      expectEqual(error, .notConnected)
    }
    // Nor what is on top of it.
    let top = try TestMount(MemoryFileSystem())
    do {
      try next.session.unmount()
      expect(false, "a mount below another to be refused")
    } catch {
      expectEqual(error.reason, "something else is mounted over it")
    }
    try top.unmount()
    try next.unmount()
  }

  static func lazyUnmount() throws {
    let mount = try TestMount(MemoryFileSystem())
    let file = open("\(mount.path)/f", O_RDWR | O_CREAT, 0o644)
    do {
      try mount.session.unmount()
      expect(false, "a busy mount to stay")
    } catch {
      expectEqual(error.reason, Errno.resourceBusy.description)
    }
    try mount.session.unmount(lazily: true)
    expect(mount.session.isMounted, "the connection, while a file is open")
    expectError(.noSuchFileOrDirectory, access("\(mount.path)/f", F_OK))
    expectEqual(write(file, "still", 5), 5)
    close(file)
    expect(mount.waitUntilEnded() == nil, "run to end without error")
    expect(!mount.session.isMounted, "the mount to be gone")
  }

  static func exit() throws {
    let fileSystem = MemoryFileSystem()
    let mount = try TestMount(fileSystem)
    let file = open("\(mount.path)/f", O_RDWR | O_CREAT, 0o644)
    expectEqual(write(file, "one", 3), 3)
    mount.session.exit()
    expect(mount.waitUntilEnded() == nil, "run to end without error")
    expectError(.notConnected, write(file, "two", 3))
    close(file)
    expect(!mount.session.isMounted, "the mount to be gone")
    expectError(.noSuchFileOrDirectory, access("\(mount.path)/f", F_OK))
    expect(fileSystem.state.withLock { $0.wasDestroyed }, "destroy")
    // Before the loop has begun, too.
    let session = try Session(MemoryFileSystem(), options: SessionOptions(source: "early"))
    try session.mount(at: mount.path)
    session.exit()
    try session.run()
    expect(!session.isMounted, "the mount to be gone")
  }

  /// A connection that no path leads to.
  static func exitDetached() throws {
    let mount = try TestMount(MemoryFileSystem())
    let file = open("\(mount.path)/f", O_RDWR | O_CREAT, 0o644)
    try mount.session.unmount(lazily: true)
    mount.session.exit()
    // Where there is no fusectl, the next request ends it.
    if access("/sys/fs/fuse/connections", W_OK) != 0 || (Posix.list("/sys/fs/fuse/connections") ?? []).isEmpty {
      expect(write(file, "one", 3) < 0, "nothing to be written")
    }
    expect(mount.waitUntilEnded() == nil, "run to end without error")
    close(file)
  }

  static func lateReply() throws {
    let held = HeldReply()
    let path: String
    do {
      let mount = try TestMount(LookupFileSystem { _, _, reply in held.hold(reply) })
      path = mount.path
      onThread { [path] in _ = access("\(path)/later", F_OK) }
      held.isHeld.wait()
      mount.session.exit()
      expect(mount.waitUntilEnded() == nil, "run to end without error")
    }
    // Session and file system may be gone; the reply still has its device.
    expect(held.take()?.succeed(LookupFileSystem.entry) != nil, "a late reply")
    expect(Posix.stat(path)?.st_ino != 1, "the mount to be gone")
  }

  static func lifetime() throws {
    let directory = "\(scenarioDirectory)/mount"
    mkdir(directory, 0o755)
    func cycle() throws {
      weak var remembered: MemoryFileSystem?
      do {
        let fileSystem = MemoryFileSystem()
        remembered = fileSystem
        _ = try Session(fileSystem, options: SessionOptions(source: "never mounted"))
        do {
          let session = try Session(fileSystem, options: SessionOptions(source: "never run"))
          try session.mount(at: directory)
          expect(session.isMounted, "the mount")
        }
        expect(!mountTable().contains(directory), "the mount that was never run to be gone")
        let session = try Session(fileSystem, options: SessionOptions(source: "run"))
        try session.mount(at: directory)
        try session.unmount()
        try session.run()
        expect(!fileSystem.state.withLock { $0.wasDestroyed }, "no destroy without initialize")
      }
      expect(remembered == nil, "the file system to be freed")
    }
    try cycle()
    let descriptors = Posix.list("/proc/self/fd")?.count
    for _ in 0..<5 { try cycle() }
    expect(Posix.list("/proc/self/fd")?.count == descriptors, "no descriptor to be left open")
  }
}

/// The text of `/proc/self/mountinfo`.
func mountTable() -> String {
  let descriptor = open("/proc/self/mountinfo", O_RDONLY)
  defer { close(descriptor) }
  var buffer = [UInt8](repeating: 0, count: 1 << 20)
  var count = 0
  while true {
    let part = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress?.advanced(by: count), 4096) }
    guard part > 0 else { return String(decoding: buffer[..<count], as: UTF8.self) }
    count += part
  }
}
