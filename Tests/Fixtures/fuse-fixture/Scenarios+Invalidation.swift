import Fuse
import Glibc

extension Scenarios {
  static func invalidation() throws {
    let fileSystem = MemoryFileSystem()
    let mount = try TestMount(fileSystem)
    let notifier = mount.session.notifier
    let file = "\(mount.path)/f"
    expectEqual(Posix.writeFile(file, "AAA"), 3)
    let node = try fileSystem.state.withLock { (state) throws(Errno) in try state.child("f", in: .root) }
    func store(_ text: String) {
      fileSystem.state.withLock { $0.store(Array(text.utf8), in: node, offset: 0) }
    }

    // Data and attributes: kept until told otherwise, in open files too.
    let open = Glibc.open(file, O_RDONLY)
    expectEqual(Posix.readFile(file), "AAA")
    // A read makes the kernel forget the access time, so that the next stat asks.
    expectEqual(Posix.stat(file)?.st_size, 3)
    store("BBBBBB")
    expectEqual(Posix.readFile(file), "AAA")
    expectEqual(Posix.stat(file)?.st_size, 3)
    expect(try notifier.invalidateInode(node), "a known node")
    expectEqual(Posix.stat(file)?.st_size, 6)
    expectEqual(Posix.readFile(file), "BBBBBB")
    var buffer = [UInt8](repeating: 0, count: 6)
    expectEqual(pread(open, &buffer, 6, 0), 6)
    expectEqual(String(decoding: buffer, as: UTF8.self), "BBBBBB")
    close(open)

    // Attributes alone: another mtime drops no pages.
    store("CCCCCC")
    let before = fileSystem.calls("getattr")
    expect(try notifier.invalidateInode(node, offset: -1), "a known node")
    _ = Posix.stat(file)
    expectEqual(fileSystem.calls("getattr"), before + 1)
    expectEqual(Posix.readFile(file), "BBBBBB")
    expect(try notifier.invalidateInode(node, offset: 0, length: 6), "a known node")
    expectEqual(Posix.readFile(file), "CCCCCC")

    // Names, those that do not exist too.
    expectError(.noSuchFileOrDirectory, access("\(mount.path)/new", F_OK))
    let new = try fileSystem.state.withLock { (state) throws(Errno) in
      try state.make("new", in: .root, mode: S_IFREG | 0o644, caller: RequestContext(uid: 0, gid: 0, pid: 0))
    }
    expectError(.noSuchFileOrDirectory, access("\(mount.path)/new", F_OK))
    expect(try notifier.invalidateEntry("new", in: .root), "a known name")
    expectDone(access("\(mount.path)/new", F_OK))
    fileSystem.state.withLock { $0.remove("new", from: .root) }
    expectDone(access("\(mount.path)/new", F_OK))
    expect(try notifier.delete(new, "new", in: .root), "a known name")
    expectError(.noSuchFileOrDirectory, access("\(mount.path)/new", F_OK))

    // What the kernel does not know is no error.
    expect(try !notifier.invalidateInode(NodeID(rawValue: 999)), "no such node")
    expect(try !notifier.invalidateEntry("unknown", in: .root), "no such name")
    expect(try !notifier.invalidateEntry("unknown", in: NodeID(rawValue: 999)), "no such parent")
    expect(try !notifier.delete(NodeID(rawValue: 999), "unknown", in: .root), "no such child")
    try mount.unmount()
    expect(try !notifier.invalidateInode(node), "nobody to tell")
  }
}
