import Fuse
import Glibc

/// What the tests try on real mounts.
enum Scenarios {
  static func names() throws {
    let fileSystem = MemoryFileSystem()
    let mount = try TestMount(fileSystem)
    let path = mount.path
    expectEqual(Posix.writeFile("\(path)/a", "one"), 3)
    expectEqual(Posix.readFile("\(path)/a"), "one")
    expectError(.fileExists, open("\(path)/a", O_CREAT | O_EXCL | O_WRONLY, 0o600))
    expectError(.noSuchFileOrDirectory, access("\(path)/none", F_OK))
    expectError(.noSuchFileOrDirectory, access("\(path)/none", F_OK))
    expectEqual(fileSystem.calls("create"), 1)

    expectDone(mkdir("\(path)/d", 0o750))
    expectEqual(Posix.stat("\(path)/d")?.st_mode, S_IFDIR | 0o750)
    expectDone(link("\(path)/a", "\(path)/d/b"))
    expectEqual(Posix.stat("\(path)/a")?.st_nlink, 2)
    expectEqual(Posix.readFile("\(path)/d/b"), "one")
    expectError(.directoryNotEmpty, rmdir("\(path)/d"))

    expectDone(symlink("d/b", "\(path)/s"))
    var target = [CChar](repeating: 0, count: 100)
    expectEqual(readlink("\(path)/s", &target, target.count), 3)
    expectEqual(String(decoding: target.prefix(3).map { UInt8($0) }, as: UTF8.self), "d/b")
    expectEqual(Posix.readFile("\(path)/s"), "one")

    expectDone(mkfifo("\(path)/fifo", 0o600))
    expectEqual(Posix.stat("\(path)/fifo")?.st_mode, S_IFIFO | 0o600)

    expectEqual(Posix.writeFile("\(path)/c", "two"), 3)
    expectError(.fileExists, Posix.rename("\(path)/c", "\(path)/a", flags: 1))
    expectDone(Posix.rename("\(path)/c", "\(path)/a", flags: 2))
    expectEqual(Posix.readFile("\(path)/a"), "two")
    expectEqual(Posix.readFile("\(path)/c"), "one")
    expectDone(rename("\(path)/c", "\(path)/d/moved"))
    expectEqual(Posix.readFile("\(path)/d/moved"), "one")
    expectError(.noSuchFileOrDirectory, access("\(path)/c", F_OK))

    expectDone(unlink("\(path)/d/moved"))
    expectDone(unlink("\(path)/d/b"))
    expectDone(rmdir("\(path)/d"))
    let odd = "\(path)/\u{1}blank and \\ and ü"
    expectEqual(Posix.writeFile(odd, "odd"), 3)
    expectEqual(Posix.list(path)?.sorted(), ["\u{1}blank and \\ and ü", "a", "fifo", "s"])
    for operation in ["lookup", "mkdir", "link", "symlink", "readlink", "mknod", "rename", "unlink", "rmdir"] {
      expect(fileSystem.calls(operation) > 0, operation)
    }
    try mount.unmount()
    expect(fileSystem.state.withLock { $0.wasDestroyed }, "destroy")
  }

  static func contents() throws {
    let fileSystem = MemoryFileSystem()
    let mount = try TestMount(fileSystem)
    let path = mount.path
    let file = open("\(path)/f", O_RDWR | O_CREAT, 0o644)
    expectDone(file)
    let far = 6 << 30
    expectEqual(pwrite(file, "far", 3, off_t(far)), 3)
    expectEqual(Posix.stat("\(path)/f")?.st_size, off_t(far + 3))
    var buffer = [UInt8](repeating: 1, count: 8)
    expectEqual(pread(file, &buffer, 8, off_t(far - 2)), 5)
    expectEqual(buffer, [0, 0] + Array("far".utf8) + [1, 1, 1])
    expectEqual(lseek(file, 0, 3), off_t(far))
    expectEqual(lseek(file, off_t(far), 4), off_t(far + 3))
    expectError(.noSuchAddressOrDevice, lseek(file, off_t(far + 3), 3))

    expectDone(Posix.fallocate(file, mode: 0, offset: far, length: 8192))
    expectEqual(Posix.stat("\(path)/f")?.st_size, off_t(far + 8192))
    expectDone(Posix.fallocate(file, mode: 3, offset: far, length: 2))
    expectEqual(pread(file, &buffer, 3, off_t(far)), 3)
    expectEqual(Array(buffer.prefix(3)), [0, 0, UInt8(ascii: "r")])
    expectError(.notSupported, Posix.fallocate(file, mode: 8, offset: 0, length: 4096))

    let copy = open("\(path)/g", O_RDWR | O_CREAT, 0o644)
    expectEqual(Posix.copyFileRange(file, at: far, copy, at: far + 7, length: 3), 3)
    expectEqual(pread(copy, &buffer, 3, off_t(far + 7)), 3)
    expectEqual(Array(buffer.prefix(3)), [0, 0, UInt8(ascii: "r")])
    expectEqual(fileSystem.calls("copy_file_range"), 1)

    expectDone(fsync(file))
    expectDone(fdatasync(file))
    expectEqual(fileSystem.calls("fsync"), 1)
    expectEqual(fileSystem.calls("fdatasync"), 1)
    expectDone(ftruncate(file, 5))
    expectEqual(fileSystem.calls("setattr with a handle"), 1)
    expectEqual(Posix.stat("\(path)/f")?.st_size, 5)
    let flushes = fileSystem.calls("flush")
    expectDone(close(dup(file)))
    expectEqual(fileSystem.calls("flush"), flushes + 1)
    close(file)
    close(copy)

    expectEqual(Posix.writeFile("\(path)/f", "12"), 2)
    let appending = open("\(path)/f", O_WRONLY | O_APPEND)
    expectEqual(write(appending, "34", 2), 2)
    close(appending)
    expectEqual(Posix.readFile("\(path)/f"), "1234")

    let directory = open(path, O_RDONLY | O_DIRECTORY)
    expectDone(fsync(directory))
    expectEqual(fileSystem.calls("fsyncdir"), 1)
    close(directory)
    try mount.unmount()
  }

  static func attributes() throws {
    let fileSystem = MemoryFileSystem()
    let mount = try TestMount(fileSystem)
    let path = mount.path
    let file = "\(path)/f"
    expectEqual(Posix.writeFile(file, "one"), 3)
    expectDone(chmod(file, 0o4751))
    expectEqual(Posix.stat(file)?.st_mode, S_IFREG | 0o4751)
    expectDone(chown(file, 12, 34))
    expectEqual(Posix.stat(file)?.st_uid, 12)
    expectEqual(Posix.stat(file)?.st_gid, 34)
    let times = [timespec(tv_sec: -5, tv_nsec: 999_999_999), timespec(tv_sec: 1 << 33, tv_nsec: 1)]
    expectDone(utimensat(AT_FDCWD, file, times, 0))
    expectEqual(Posix.stat(file)?.st_atim.tv_sec, -5)
    expectEqual(Posix.stat(file)?.st_atim.tv_nsec, 999_999_999)
    expectEqual(Posix.stat(file)?.st_mtim.tv_sec, 1 << 33)
    expectEqual(Posix.stat(file)?.st_mtim.tv_nsec, 1)
    expectDone(utimensat(AT_FDCWD, file, nil, 0))
    expect(Posix.stat(file).map { $0.st_mtim.tv_sec < 1 << 33 } ?? false, "the time of now")
    expectEqual(fileSystem.calls("setattr to now"), 1)

    var status = statvfs()
    expectDone(statvfs(path, &status))
    expectEqual(status.f_blocks, 1 << 34)
    expectEqual(status.f_bavail, 12_345)
    expectEqual(status.f_namemax, 255)
    let descriptor = open(file, O_RDONLY)
    var flags: Int = 0
    expectError(.inappropriateIOCTLForDevice, ioctl(descriptor, 0x8008_6601, &flags))
    expectError(.inappropriateIOCTLForDevice, ioctl(descriptor, 0x8008_6601, &flags))
    expectEqual(fileSystem.calls("ioctl"), 2)
    close(descriptor)
    try mount.unmount()
  }

  static func xattrs() throws {
    let mount = try TestMount(MemoryFileSystem())
    let file = "\(mount.path)/f"
    expectEqual(Posix.writeFile(file, "one"), 3)
    expectError(.attributeNotFound, Posix.getxattr(file, "user.a", capacity: 10).count)
    expectDone(Posix.setxattr(file, "user.a", "value", flags: 1))
    expectError(.fileExists, Posix.setxattr(file, "user.a", "value", flags: 1))
    expectError(.attributeNotFound, Posix.setxattr(file, "user.b", "value", flags: 2))
    expectDone(Posix.setxattr(file, "user.b", ""))
    expectEqual(Posix.getxattr(file, "user.a", capacity: 0).count, 5)
    expectEqual(Posix.getxattr(file, "user.a", capacity: 100).value, "value")
    expectError(.resultTooLarge, Posix.getxattr(file, "user.a", capacity: 4).count)
    expectEqual(Posix.getxattr(file, "user.b", capacity: 10).count, 0)
    expectEqual(Posix.listxattr(file, capacity: 0).count, 14)
    expectEqual(Posix.listxattr(file, capacity: 100).names, "user.a\0user.b\0")
    expectError(.resultTooLarge, Posix.listxattr(file, capacity: 13).count)
    let large = String(repeating: "x", count: 65_536)
    expectDone(Posix.setxattr(file, "user.a", large))
    expect(Posix.getxattr(file, "user.a", capacity: 65_536).value == large, "a value of 64 KiB")
    expectDone(Posix.removexattr(file, "user.a"))
    expectError(.attributeNotFound, Posix.removexattr(file, "user.a"))
    try mount.unmount()
  }
}
