import Dispatch
import Fuse
import Glibc

extension Scenarios {
  static func listing() throws {
    let expected = (0..<10_000).map { "file \($0)" }
    for (index, mode) in [ConnectionOptions.Readdirplus.never, .auto, .always].enumerated() {
      var options = ConnectionOptions()
      options.readdirplus = mode
      // Small replies: each listing takes 100 to 1500 requests and continues by cookie.
      let fileSystem = MemoryFileSystem(options: options, entriesPerReply: [7, 100, 31][index])
      try fill(fileSystem, expected)
      let mount = try TestMount(fileSystem)
      expect(Posix.list(mount.path) == expected, "all names in order, once each, with readdirplus \(mode)")
      expect((fileSystem.calls("readdir") > 90) == (mode != .always), "readdir with \(mode)")
      expect((fileSystem.calls("readdirplus") > 0) == (mode != .never), "readdirplus with \(mode)")
      let lookups = fileSystem.calls("lookup")
      expect(Posix.stat("\(mount.path)/file 0") != nil, "attributes")
      expectEqual(fileSystem.calls("lookup"), mode == .never ? lookups + 1 : lookups)

      guard let directory = opendir(mount.path) else { throw Errno.current }
      for _ in 0..<5_000 { _ = readdir(directory) }
      let place = telldir(directory)
      expect(place > 1 << 40, "a cookie of the file system")
      let next = name(readdir(directory))
      for _ in 0..<100 { _ = readdir(directory) }
      seekdir(directory, place)
      expectEqual(name(readdir(directory)), next)
      closedir(directory)
      // The kernel has one listing at a time: two were opened. It tells of their ends when it has time, and of none once
      // it is unmounted.
      let limit = ContinuousClock.now + .seconds(10)
      while fileSystem.calls("releasedir") < 2, ContinuousClock.now < limit { sched_yield() }
      try mount.unmount()
      expectEqual(fileSystem.calls("releasedir"), 2)
    }
    // As large as they come: replies are filled to the last byte.
    let fileSystem = MemoryFileSystem()
    try fill(fileSystem, expected)
    let mount = try TestMount(fileSystem)
    expect(Posix.list(mount.path) == expected, "all names from full buffers")
    try mount.unmount()
  }

  static func forget() throws {
    let fileSystem = MemoryFileSystem()
    let names = (0..<3000).map { "file \($0)" }
    try fill(fileSystem, names)
    let mount = try TestMount(fileSystem)
    for name in names { expectDone(access("\(mount.path)/\(name)", F_OK)) }
    func references() -> UInt64 {
      fileSystem.state.withLock { $0.nodes.values.reduce(0) { $0 + $1.lookups } }
    }
    expect(references() >= 3000, "references of the kernel")
    // A file without names is forgotten at once; nobody waits for it.
    for name in names { expectDone(unlink("\(mount.path)/\(name)")) }
    while references() > 0 {
      guard fileSystem.wasForgotten.wait(timeout: .now() + 10) == .success else {
        expect(false, "every reference back, not \(references()) left")
        break
      }
    }
    try mount.unmount()
  }

  private static func fill(_ fileSystem: MemoryFileSystem, _ names: [String]) throws(Errno) {
    let caller = RequestContext(uid: 0, gid: 0, pid: 0)
    try fileSystem.state.withLock { (state) throws(Errno) in
      for name in names { _ = try state.make(FileName(name), in: .root, mode: S_IFREG | 0o644, caller: caller) }
    }
  }

  private static func name(_ entry: UnsafeMutablePointer<dirent>?) -> String? {
    guard let entry else { return nil }
    return withUnsafePointer(to: &entry.pointee.d_name) {
      $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
  }
}
