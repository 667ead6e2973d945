import CTestSystem
import Glibc

extension Case {
  static let specialFiles: [Case] = [
    Case("a fifo passes bytes from writer to reader", needs: [.kernel, .descriptors]) { fs in
      try fs.mknod("fifo", mode: S_IFIFO | 0o640, device: 0)
      let status = try fs.lstat("fifo")
      try expect(status.kind, is: .fifo, "kind")
      try expect(status.mode, is: 0o640, "mode")
      try expect(ENXIO) { try fs.open("fifo", O_WRONLY | O_NONBLOCK) }
      let writer = DetachedThread {
        let end = try fs.open("fifo", O_WRONLY)
        try end.writeAll(pattern(100_000))
        try end.close()
      }
      let reader = try fs.open("fifo", O_RDONLY)
      try expect(reader.readAll() == pattern(100_000), "what came through differs")
      try reader.close()
      try writer.wait()
      try expect(fs.lstat("fifo").size, is: 0, "size")
    },
    Case("fifos can be renamed, linked, changed and removed") { fs in
      try fs.mknod("fifo", mode: S_IFIFO | 0o600, device: 0)
      try fs.rename("fifo", "pipe")
      try fs.link("pipe", "second")
      try fs.chmod("pipe", 0o644)
      try expect(fs.lstat("second").mode, is: 0o644, "mode")
      try fs.unlink("pipe")
      try fs.unlink("second")
      try expect(EEXIST) {
        try fs.mknod("again", mode: S_IFIFO | 0o600, device: 0)
        try fs.mknod("again", mode: S_IFIFO | 0o600, device: 0)
      }
    },
    Case("a socket can be bound, connected to and removed", needs: [.kernel, .descriptors]) { fs in
      let folder = try fs.open("", O_RDONLY | O_DIRECTORY)
      let address = "/proc/self/fd/\(folder.descriptor!)/socket"
      let server = sheaf_test_listen(address)
      try expect(server >= 0, "listening failed with \(Errno.name(errno))")
      try expect(fs.lstat("socket").kind, is: .socket, "kind")
      let client = sheaf_test_connect(address)
      try expect(client >= 0, "connecting failed with \(Errno.name(errno))")
      let accepted = accept(server, nil, nil)
      try expect(Glibc.write(client, [1, 2, 3] as [UInt8], 3), is: 3, "bytes sent")
      var buffer = zeros(3)
      try expect(Glibc.read(accepted, &buffer, 3), is: 3, "bytes received")
      try expect(buffer, is: [1, 2, 3], "the bytes")
      try expect(sheaf_test_listen(address) == -1 && errno == EADDRINUSE, "the address was bound twice")
      for number in [accepted, client, server] { Glibc.close(number) }
      try expect(ENXIO) { try fs.open("socket", O_RDWR) }
      try fs.unlink("socket")
      try folder.close()
    },
    Case("device nodes keep their numbers", needs: .root) { fs in
      try fs.mknod("null", mode: S_IFCHR | 0o666, device: 0x103)
      try fs.mknod("disk", mode: S_IFBLK | 0o600, device: 0x7_00_42)
      try expect(fs.lstat("null").kind, is: .characterDevice, "kind")
      try expect(fs.lstat("null").device, is: 0x103, "device")
      try expect(fs.lstat("disk").kind, is: .blockDevice, "kind of the block device")
      try expect(fs.lstat("disk").device, is: 0x7_00_42, "device of the block device")
      try fs.rename("null", "void")
      try expect(fs.lstat("void").device, is: 0x103, "device after a rename")
      try fs.acting(as: Credentials(user: 65_534)) { fs in
        try expect(EPERM, EACCES) { try fs.mknod("mine", mode: S_IFCHR | 0o666, device: 0x103) }
      }
    },
  ]

  static let unnamedFiles: [Case] = [
    Case("O_TMPFILE makes a file without a name, and linking gives it one", needs: .temporaryFiles) { fs in
      try fs.mkdir("folder")
      let file = try fs.open("folder", unnamedFile | O_RDWR, mode: 0o640)
      try expect(file.status().links, is: 0, "links")
      try expect(fs.names("folder"), is: [], "the listing")
      try file.writeAll(Array("text".utf8))
      try file.link(to: "folder/named")
      try expect(file.status().links, is: 1, "links when named")
      try expect(fs.text("folder/named"), is: "text", "contents")
      try expect(fs.lstat("folder/named").mode, is: 0o640, "mode")
      try expect(EEXIST) { try file.link(to: "folder/named") }
      try file.close()
    },
    Case("O_TMPFILE with O_EXCL never gets a name", needs: .temporaryFiles) { fs in
      let file = try fs.open("", unnamedFile | O_RDWR | O_EXCL)
      try file.writeAll([1])
      try expect(ENOENT) { try file.link(to: "named") }
      try file.close()
      try expect(fs.names(), is: [], "the listing")
    },
  ]

  static let paths: [Case] = [
    Case("names have up to 255 bytes; 256 fail with ENAMETOOLONG everywhere") { fs in
      try fs.put(.long(255), "text")
      try fs.mkdir(.long(255, of: "d"))
      try fs.put("file")
      try expect(fs.text(.long(255)), is: "text", "contents")
      try expect(Set(fs.names()), is: [.long(255), .long(255, of: "d"), "file"], "the listing")
      try expect(ENAMETOOLONG) { try fs.open(.long(256), O_RDWR | O_CREAT) }
      try expect(ENAMETOOLONG) { try fs.open(.long(256), O_RDONLY) }
      try expect(ENAMETOOLONG) { try fs.lstat(.long(256)) }
      try expect(ENAMETOOLONG) { try fs.mkdir(.long(256)) }
      try expect(ENAMETOOLONG) { try fs.rmdir(.long(256)) }
      try expect(ENAMETOOLONG) { try fs.unlink(.long(256)) }
      try expect(ENAMETOOLONG) { try fs.rename("file", .long(256)) }
      try expect(ENAMETOOLONG) { try fs.rename(.long(256), "other") }
      try expect(ENAMETOOLONG) { try fs.link("file", .long(256)) }
      try expect(ENAMETOOLONG) { try fs.symlink("target", at: .long(256)) }
      try expect(ENAMETOOLONG) { try fs.mknod(.long(256), mode: S_IFIFO | 0o600, device: 0) }
      try expect(ENAMETOOLONG) { try fs.lstat(.long(256) / "below") }
    },
    Case("255 bytes are 255 bytes, not characters") { fs in
      let fits = Path(String(repeating: "é", count: 127) + "x")
      try fs.put(fits, "text")
      try expect(fs.names(), is: [fits], "the listing")
      try expect(ENAMETOOLONG) { try fs.put(Path(String(repeating: "é", count: 128))) }
    },
    Case("paths have up to 4095 bytes; 4096 fail with ENAMETOOLONG", needs: .kernel) { fs in
      // Sixteen folders with names of 254 bytes and a slash each, and a rest.
      var folder: Path = .long(254)
      try fs.mkdir(folder)
      for _ in 1..<16 {
        folder = folder / .long(254)
        try fs.mkdir(folder)
      }
      let rest = 4095 - folder.bytes.count - 1
      try fs.put(folder / .long(rest), "deep")
      try expect(fs.text(folder / .long(rest)), is: "deep", "contents")
      try expect(ENAMETOOLONG) { try fs.lstat(folder / .long(rest + 1)) }
      try expect(ENAMETOOLONG) { try fs.open(folder / .long(rest + 1), O_RDWR | O_CREAT) }
      try fs.rename(folder / .long(rest), "up")
      try expect(fs.text("up"), is: "deep", "contents after moving up")
    },
    Case("repeated slashes and dots in a path mean nothing", needs: .kernel) { fs in
      try fs.mkdir("folder")
      try fs.put("folder//./file", "text")
      try expect(fs.text(".//folder///file"), is: "text", "contents")
      try expect(fs.text("folder/../folder/file"), is: "text", "contents by dot dot")
    },
    Case("names that differ only in case or in composition are different") { fs in
      try fs.put("Name", "upper")
      try fs.put("name", "lower")
      try fs.put("\u{e9}", "composed")
      try fs.put("e\u{301}", "decomposed")
      try expect(fs.text("Name"), is: "upper", "contents")
      try expect(fs.text("name"), is: "lower", "contents")
      try expect(fs.text("\u{e9}"), is: "composed", "contents")
      try expect(fs.text("e\u{301}"), is: "decomposed", "contents")
      try expect(fs.names().count, is: 4, "entries")
    },
  ]
}
