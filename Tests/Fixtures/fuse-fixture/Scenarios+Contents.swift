import Fuse
import Glibc

extension Scenarios {
  static func sizes() throws {
    let fileSystem = MemoryFileSystem()
    let megabyte = 1 << 20
    let contents = (0..<8 * megabyte).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8) }
    let node = try fileSystem.state.withLock { (state) throws(Errno) in
      let node = try state.make(
        "stored", in: .root, mode: S_IFREG | 0o644, caller: RequestContext(uid: 0, gid: 0, pid: 0))
      state.store(contents, in: node, offset: 0)
      return node
    }
    let mount = try TestMount(fileSystem)
    guard let status = Posix.stat(mount.path) else { throw Errno.current }
    let number = "\(status.st_dev >> 8):\(status.st_dev & 255)"
    expectEqual(Posix.readFile("/sys/class/bdi/\(number)/read_ahead_kb"), "1024\n")

    let stored = open("\(mount.path)/stored", O_RDONLY)
    var buffer = [UInt8](repeating: 0, count: 4 * megabyte)
    for half in 0..<2 {
      expectEqual(read(stored, &buffer, buffer.count), buffer.count)
      expect(buffer[...] == contents[half * buffer.count..<(half + 1) * buffer.count], "half \(half)")
    }
    expectEqual(fileSystem.state.withLock { $0.largestRead }, megabyte)
    close(stored)

    let written = open("\(mount.path)/written", O_WRONLY | O_CREAT, 0o644)
    expectEqual(write(written, contents, contents.count), contents.count)
    close(written)
    expectEqual(fileSystem.state.withLock { $0.largestWrite }, megabyte)
    let bytes = try fileSystem.state.withLock { (state) throws(Errno) in
      try state.bytes(of: NodeID(rawValue: node.rawValue + 1), offset: 0, count: contents.count)
    }
    expect(bytes == contents, "what was written")
    try mount.unmount()
  }

  static func mapping() throws {
    for isDirect in [false, true] { try mapping(isDirect: isDirect) }
  }

  /// Past the page cache as well, where the kernel knows how (Linux 6.6).
  private static func mapping(isDirect: Bool) throws {
    var options = ConnectionOptions()
    options.directIOMappings = isDirect
    let fileSystem = MemoryFileSystem(options: options, isDirect: isDirect)
    let mount = try TestMount(fileSystem)
    expectEqual(Posix.writeFile("\(mount.path)/f", "one two"), 7)
    let file = open("\(mount.path)/f", O_RDWR)
    let memory = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
    guard let memory, memory != MAP_FAILED else {
      let error = Errno.current
      let isOffered = fileSystem.state.withLock { $0.capabilities.contains(.directIOMappings) }
      guard isDirect, !isOffered else { throw error }
      close(file)
      return try mount.unmount()
    }
    memory.storeBytes(of: UInt8(ascii: "O"), as: UInt8.self)
    expectDone(msync(memory, 4096, MS_SYNC))
    munmap(memory, 4096)
    close(file)
    expect(fileSystem.calls("write-back") > 0, "a write that came from the mapping")
    expectEqual(Posix.readFile("\(mount.path)/f"), "One two")
    try mount.unmount()
  }

  /// The kernel asks for `security.capability` before each write, or once for a file; past the page cache it does not.
  static func killpriv() throws {
    for (isOn, isDirect, asked) in [(false, false, 5), (true, false, 1), (true, true, 0)] {
      var options = ConnectionOptions()
      options.handleKillprivV2 = isOn
      let fileSystem = MemoryFileSystem(options: options, isDirect: isDirect)
      let mount = try TestMount(fileSystem)
      let file = open("\(mount.path)/f", O_WRONLY | O_CREAT, 0o644)
      for _ in 0..<5 { expectEqual(write(file, "one", 3), 3) }
      close(file)
      expectEqual(fileSystem.calls("getxattr"), asked)
      try mount.unmount()
    }
  }
}
