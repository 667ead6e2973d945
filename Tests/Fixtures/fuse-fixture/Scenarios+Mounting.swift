import Fuse
import Glibc

extension Scenarios {
  static func options() throws {
    let mount = try TestMount(MemoryFileSystem()) { options in
      options.source = #"a,b\c"#
      options.readOnly = true
      options.allowOther = true
      options.extra = ["noatime"]
    }
    let line = mountTable().split(separator: "\n").last { $0.contains(mount.path) }.map { String($0) } ?? ""
    expect(line.contains(#"fuse.fixture a,b\134c"#), "the source in \(line)")
    for option in ["ro,nosuid,nodev,noatime", "allow_other", "default_permissions"] {
      expect(line.contains(option), "\(option) in \(line)")
    }
    expectError(.readOnlyFileSystem, mkdir("\(mount.path)/d", 0o755))
    try mount.unmount()
  }

  static func refused() throws {
    let session = try Session(MemoryFileSystem(), options: SessionOptions(source: "refused"))
    do {
      try session.run()
      expect(false, "run to be refused before a mount")
    } catch {
      expectEqual(error, .notConnected)
    }
    do {
      try session.mount(at: "\(scenarioDirectory)/none")
      expect(false, "no mount where there is no directory")
    } catch {
      expectEqual(error.description, "\(scenarioDirectory)/none: No such file or directory")
    }
    expect(!session.isMounted, "no mount")
    var options = SessionOptions(source: "refused")
    options.extra = ["nonsense"]
    do {
      _ = try Session(MemoryFileSystem(), options: options)
      expect(false, "an unknown option to be refused")
    } catch {
      expect(error.reason.contains("unknown option") && error.reason.contains("nonsense"), error.reason)
    }
  }

  /// As an ordinary user, through fusermount3(1).
  static func unprivileged() throws {
    try Posix.openDeviceToAll(in: scenarioDirectory)
    let refused = "\(scenarioDirectory)/refused"
    mkdir(refused, 0o755)
    let path = "\(scenarioDirectory)/mount"
    mkdir(path, 0o755)
    expectDone(chown(path, 65_534, 65_534))
    expectDone(setgroups(0, nil))
    expectDone(setgid(65_534))
    expectDone(setuid(65_534))
    let session = try Session(MemoryFileSystem(), options: SessionOptions(source: "unprivileged"))
    do {
      try session.mount(at: refused)
      expect(false, "no mount where one may not write")
    } catch {
      expect(error.reason.hasPrefix("fusermount3: "), error.reason)
    }
    let fileSystem = MemoryFileSystem()
    fileSystem.state.withLock { $0.nodes[.root]?.attributes.uid = 65_534 }
    let mount = try TestMount(fileSystem)
    expectEqual(Posix.writeFile("\(mount.path)/f", "one"), 3)
    let file = open("\(mount.path)/f", O_RDONLY)
    do {
      try mount.session.unmount()
      expect(false, "a busy mount to stay")
    } catch {
      expect(error.reason.hasPrefix("fusermount3: "), error.reason)
    }
    close(file)
    try mount.unmount()
    let again = try TestMount(MemoryFileSystem())
    again.session.exit()
    expect(again.waitUntilEnded() == nil, "run to end without error")
    expect(!mountTable().contains(path), "the mount to be gone")
  }
}
