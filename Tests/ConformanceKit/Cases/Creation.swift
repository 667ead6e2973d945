import Glibc

extension Case {
  static let creation: [Case] = [
    Case("a created file is empty, regular, singly linked, with the mode asked for less the umask") { fs in
      try fs.acting(as: Credentials(umask: 0o027)) { fs in
        try fs.put("file", mode: 0o666)
        let file = try fs.lstat("file")
        try expect(file.kind, is: .file, "kind")
        try expect(file.mode, is: 0o640, "mode")
        try expect(file.size, is: 0, "size")
        try expect(file.links, is: 1, "links")
        try fs.mkdir("folder", mode: 0o777)
        try expect(fs.lstat("folder").mode, is: 0o750, "mode of the folder")
      }
    },
    Case("O_CREAT of an existing file opens it and leaves mode and contents alone") { fs in
      try fs.put("file", "old", mode: 0o600)
      let file = try fs.open("file", O_RDWR | O_CREAT, mode: 0o777)
      try expect(file.readAll(), is: Array("old".utf8), "contents")
      try file.close()
      try expect(fs.lstat("file").mode, is: 0o600, "mode")
    },
    Case("O_EXCL makes a file once, and then fails with EEXIST") { fs in
      try fs.open("file", O_RDWR | O_CREAT | O_EXCL).close()
      try expect(EEXIST) { try fs.open("file", O_RDWR | O_CREAT | O_EXCL) }
      try fs.mkdir("folder")
      try expect(EEXIST) { try fs.open("folder", O_RDWR | O_CREAT | O_EXCL) }
    },
    Case("O_EXCL does not follow a symbolic link, dangling or not") { fs in
      try fs.symlink("nothing", at: "dangling")
      try expect(EEXIST) { try fs.open("dangling", O_RDWR | O_CREAT | O_EXCL) }
      try expect(try fs.exists("nothing"), is: false, "existence of the target")
    },
    Case("O_CREAT through a dangling symbolic link makes the target", needs: .kernel) { fs in
      try fs.symlink("target", at: "link")
      try fs.put("link", "through")
      try expect(fs.lstat("target").kind, is: .file, "kind of the target")
      try expect(fs.text("target"), is: "through", "contents of the target")
      try expect(fs.lstat("link").kind, is: .symlink, "kind of the link")
    },
    Case("O_TRUNC empties a file and keeps it the same file") { fs in
      try fs.put("file", "something")
      let before = try fs.lstat("file").inode
      try fs.open("file", O_WRONLY | O_TRUNC).close()
      try expect(fs.lstat("file").size, is: 0, "size")
      try expect(fs.lstat("file").inode, is: before, "inode")
    },
    Case("a file made with a mode without write permission can be written by its first handle") { fs in
      let file = try fs.open("file", O_RDWR | O_CREAT | O_EXCL, mode: 0o444)
      try file.writeAll(Array("once".utf8))
      try file.close()
      try expect(fs.lstat("file").mode, is: 0o444, "mode")
      try expect(fs.text("file"), is: "once", "contents")
    },
    Case("a file made with mode 0 keeps its handle usable") { fs in
      let file = try fs.open("file", O_RDWR | O_CREAT | O_EXCL, mode: 0)
      try file.writeAll([1, 2, 3])
      try expect(file.pread(9, at: 0), is: [1, 2, 3], "contents")
      try file.close()
      try expect(fs.lstat("file").mode, is: 0, "mode")
    },
    Case("names of any bytes but slash and NUL can be created, listed and removed") { fs in
      let names: [Path] = [
        "new\nline", "tab\t", " ", "-rf", "*", "\\", "\"quoted\"", "..hidden", "...", "é", "e\u{301}", "日本語", "🗂",
        Path([0xFF]), Path([0xFE, 0xFF, 0x80]), Path([0x01, 0x7F, 0xC0, 0x20]), "CON", "a:b", "Case", "case",
      ]
      for (number, name) in names.enumerated() { try fs.put(name, "\(number)") }
      for (number, name) in names.enumerated() { try expect(fs.text(name), is: "\(number)", "contents of \(name)") }
      try expect(Set(fs.names()), is: Set(names), "the listing")
      for name in names { try fs.unlink(name) }
      try expect(fs.names(), is: [], "the listing afterwards")
    },
    Case("names of every single byte are distinct") { fs in
      let names = (UInt8(1)...255).filter { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ".") }
      for byte in names { try fs.put(Path([byte]), [byte]) }
      for byte in names { try expect(fs.contents(Path([byte])), is: [byte], "contents of the name \(byte)") }
    },
    Case("mknod makes a regular file") { fs in
      try fs.mknod("file", mode: S_IFREG | 0o640, device: 0)
      try expect(fs.lstat("file").kind, is: .file, "kind")
      try expect(fs.lstat("file").mode, is: 0o640, "mode")
      try expect(EEXIST) { try fs.mknod("file", mode: S_IFREG | 0o640, device: 0) }
    },
    Case("two handles on one new file see each other's bytes at once") { fs in
      let writer = try fs.open("file", O_WRONLY | O_CREAT)
      let reader = try fs.open("file", O_RDONLY)
      try expect(reader.read(10), is: [], "read before")
      try writer.writeAll(Array("first".utf8))
      try expect(reader.read(10), is: Array("first".utf8), "read after the first write")
      try expect(reader.status().size, is: 5, "size at the reader")
      try writer.writeAll(Array("second".utf8))
      try expect(reader.read(10), is: Array("second".utf8), "read after the second write")
      try writer.close()
      try reader.close()
    },
  ]

  static let openingErrors: [Case] = [
    Case("what does not exist fails with ENOENT") { fs in
      try expect(ENOENT) { try fs.open("nothing", O_RDONLY) }
      try expect(ENOENT) { try fs.lstat("nothing") }
      try expect(ENOENT) { try fs.unlink("nothing") }
      try expect(ENOENT) { try fs.rmdir("nothing") }
      try expect(ENOENT) { try fs.rename("nothing", "something") }
      try expect(ENOENT) { try fs.link("nothing", "something") }
      try expect(ENOENT) { try fs.readlink("nothing") }
      try expect(ENOENT) { try fs.truncate("nothing", 1) }
      try expect(ENOENT) { try fs.chmod("nothing", 0o600) }
      try expect(ENOENT) { try fs.chown("nothing", user: nil, group: nil) }
      try expect(ENOENT) { try fs.utimens("nothing", accessed: .now, modified: .now) }
      try expect(ENOENT) { try fs.getxattr("nothing", "user.a") }
      try expect(ENOENT) { try fs.openFolder("nothing") }
    },
    Case("a missing parent fails with ENOENT") { fs in
      try fs.put("file")
      try expect(ENOENT) { try fs.open("none/file", O_RDWR | O_CREAT) }
      try expect(ENOENT) { try fs.mkdir("none/folder") }
      try expect(ENOENT) { try fs.symlink("target", at: "none/link") }
      try expect(ENOENT) { try fs.mknod("none/fifo", mode: S_IFIFO | 0o600, device: 0) }
      try expect(ENOENT) { try fs.rename("file", "none/file") }
      try expect(ENOENT) { try fs.link("file", "none/file") }
    },
    Case("a file used as a folder fails with ENOTDIR") { fs in
      try fs.put("file")
      try fs.put("other")
      try expect(ENOTDIR) { try fs.open("file/x", O_RDONLY) }
      try expect(ENOTDIR) { try fs.open("file/x", O_RDWR | O_CREAT) }
      try expect(ENOTDIR) { try fs.lstat("file/x") }
      try expect(ENOTDIR) { try fs.mkdir("file/x") }
      try expect(ENOTDIR) { try fs.unlink("file/x") }
      try expect(ENOTDIR) { try fs.rmdir("file/x") }
      try expect(ENOTDIR) { try fs.symlink("target", at: "file/x") }
      try expect(ENOTDIR) { try fs.link("other", "file/x") }
      try expect(ENOTDIR) { try fs.rename("other", "file/x") }
      try expect(ENOTDIR) { try fs.rename("file/x", "other") }
      try expect(ENOTDIR) { try fs.openFolder("file") }
      try expect(ENOTDIR) { try fs.rmdir("file") }
    },
    Case("a folder used as a file fails with EISDIR") { fs in
      try fs.mkdir("folder")
      try expect(EISDIR) { try fs.open("folder", O_WRONLY) }
      try expect(EISDIR) { try fs.open("folder", O_RDWR) }
      try expect(EISDIR) { try fs.open("folder", O_RDWR | O_CREAT) }
      try expect(EISDIR) { try fs.truncate("folder", 0) }
      try expect(EISDIR) { try fs.unlink("folder") }
      let folder = try fs.open("folder", O_RDONLY)
      try expect(EISDIR) { try folder.read(1) }
      try folder.close()
    },
    Case("O_DIRECTORY of a file fails with ENOTDIR", needs: .kernel) { fs in
      try fs.put("file")
      try expect(ENOTDIR) { try fs.open("file", O_RDONLY | O_DIRECTORY) }
      try fs.symlink("file", at: "link")
      try expect(ENOTDIR) { try fs.open("link", O_RDONLY | O_DIRECTORY) }
    },
    Case("O_NOFOLLOW of a symbolic link fails with ELOOP", needs: .kernel) { fs in
      try fs.put("file")
      try fs.symlink("file", at: "link")
      try expect(ELOOP) { try fs.open("link", O_RDONLY | O_NOFOLLOW) }
      try fs.open("file", O_RDONLY | O_NOFOLLOW).close()
    },
    Case("O_PATH gives a handle for stat and nothing else", needs: .kernel) { fs in
      try fs.put("file", "text")
      let handle = try fs.open("file", pathOnly)
      try expect(handle.status().size, is: 4, "size")
      try expect(EBADF) { try handle.read(1) }
      try expect(EBADF) { try handle.write([1]) }
      try handle.close()
    },
    Case("a trailing slash after a file's name fails with ENOTDIR, and creates nothing", needs: .kernel) { fs in
      try fs.put("file")
      try expect(ENOTDIR) { try fs.lstat("file/") }
      try expect(ENOTDIR) { try fs.open("file/", O_RDONLY) }
      try expect(EISDIR) { try fs.open("new/", O_RDWR | O_CREAT) }
      try expect(ENOTDIR) { try fs.rename("file", "new/") }
      try fs.mkdir("folder/")
      try fs.rename("folder/", "moved/")
      try expect(fs.lstat("moved/").kind, is: .folder, "kind")
    },
    Case("handles refuse what they were not opened for with EBADF") { fs in
      try fs.put("file", "text")
      let reader = try fs.open("file", O_RDONLY)
      try expect(EBADF) { try reader.write([1]) }
      try expect(EINVAL, EBADF) { try reader.truncate(0) }
      try expect(EBADF) { try reader.allocate(0, 0, 10) }
      try reader.close()
      let writer = try fs.open("file", O_WRONLY)
      try expect(EBADF) { try writer.read(1) }
      try writer.close()
      try expect(fs.text("file"), is: "text", "contents")
    },
    Case("negative sizes and offsets fail with EINVAL", needs: .kernel) { fs in
      try fs.put("file", "text")
      try expect(EINVAL) { try fs.truncate("file", -1) }
      let file = try fs.open("file", O_RDWR)
      try expect(EINVAL) { try file.truncate(-1) }
      try expect(EINVAL) { try file.pread(1, at: -1) }
      try expect(EINVAL) { try file.pwrite([1], at: -1) }
      try expect(EINVAL) { try file.seek(-1, SEEK_SET) }
      try expect(EINVAL) { try file.seek(-5, SEEK_END) }
      try file.close()
    },
    Case("a size that no file can have fails with EFBIG") { fs in
      try fs.put("file", "text")
      try expect(EFBIG, EINVAL) { try fs.truncate("file", .max) }
      try expect(fs.text("file"), is: "text", "contents")
    },
  ]
}
