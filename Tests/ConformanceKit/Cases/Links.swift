import Glibc

extension Case {
  static let linking: [Case] = [
    Case("a hard link is the same file: contents, mode, times, attributes, inode") { fs in
      try fs.put("file", "text")
      try fs.setxattr("file", "user.color", Array("blue".utf8))
      try fs.link("file", "link")
      try expect(fs.lstat("link"), is: fs.lstat("file"), "the status")
      try expect(fs.lstat("link").links, is: 2, "links")
      try fs.put("link", "written through the link")
      try fs.chmod("link", 0o600)
      try expect(fs.text("file"), is: "written through the link", "contents")
      try expect(fs.lstat("file").mode, is: 0o600, "mode")
      try expect(fs.getxattr("link", "user.color"), is: Array("blue".utf8), "attribute")
    },
    Case("removing one of three links leaves the others") { fs in
      try fs.mkdir("folder")
      try fs.put("file", "text")
      try fs.link("file", "link")
      try fs.link("link", "folder/third")
      try expect(fs.lstat("file").links, is: 3, "links")
      try fs.unlink("file")
      try expect(fs.lstat("link").links, is: 2, "links after removing the first name")
      try expect(fs.text("folder/third"), is: "text", "contents")
      try fs.unlink("link")
      try expect(fs.lstat("folder/third").links, is: 1, "links after removing the second name")
    },
    Case("a written handle shows in every link at once, closed or not") { fs in
      try fs.put("file", "old")
      try fs.link("file", "link")
      let writer = try fs.open("file", O_RDWR)
      try writer.pwriteAll(Array("new".utf8), at: 0)
      try expect(fs.text("link"), is: "new", "contents before closing")
      try writer.close()
      try expect(fs.text("link"), is: "new", "contents after closing")
    },
    Case("link onto a taken name fails with EEXIST, of a folder with EPERM") { fs in
      try fs.put("file")
      try fs.put("taken")
      try fs.mkdir("folder")
      try expect(EEXIST) { try fs.link("file", "taken") }
      try expect(EEXIST) { try fs.link("file", "folder") }
      try expect(EEXIST) { try fs.link("file", "file") }
      try expect(EPERM) { try fs.link("folder", "link") }
    },
    Case("a symbolic link, a fifo and a file without permissions can be linked") { fs in
      try fs.symlink("target", at: "symlink")
      try fs.link("symlink", "second")
      try expect(fs.lstat("second").kind, is: .symlink, "kind")
      try expect(fs.lstat("symlink").links, is: 2, "links of the symbolic link")
      try fs.unlink("symlink")
      try expect(fs.readlink("second"), is: "target", "target")
      try fs.mknod("fifo", mode: S_IFIFO | 0o600, device: 0)
      try fs.link("fifo", "pipe")
      try expect(fs.lstat("pipe").links, is: 2, "links of the fifo")
      try fs.put("closed", "text", mode: 0)
      try fs.link("closed", "also")
      try expect(fs.lstat("also").links, is: 2, "links of the file")
    },
    Case("linkat follows a symbolic link when asked to", needs: .kernel) { fs in
      try fs.put("file", "text")
      try fs.symlink("file", at: "symlink")
      try fs.link("symlink", "hard", following: true)
      try expect(fs.lstat("hard").kind, is: .file, "kind")
      try expect(fs.lstat("file").links, is: 2, "links")
    },
    Case("a hundred links of one file count") { fs in
      try fs.put("file", "text")
      for number in 0..<100 { try fs.link("file", "link-\(number)") }
      try expect(fs.lstat("file").links, is: 101, "links")
      for number in 0..<100 { try fs.unlink("link-\(number)") }
      try expect(fs.lstat("file").links, is: 1, "links afterwards")
    },
    Case("an unlinked open file cannot be linked again by its old name") { fs in
      try fs.put("file")
      let file = try fs.open("file", O_RDWR)
      try fs.unlink("file")
      try expect(ENOENT) { try fs.link("file", "again") }
      try file.close()
    },
  ]

  static let symlinks: [Case] = [
    Case("a symbolic link holds its target, and its size is the target's length") { fs in
      for target: Path in ["file", "../up/there", "/absolute/path", "with space\n", Path([0xFF, 0xFE])] {
        try fs.symlink(target, at: "link")
        try expect(fs.readlink("link"), is: target, "target")
        let status = try fs.lstat("link")
        try expect(status.kind, is: .symlink, "kind")
        try expect(status.size, is: Int64(target.bytes.count), "size")
        try expect(status.links, is: 1, "links")
        try fs.unlink("link")
      }
    },
    Case("targets of 1 to 4095 bytes hold, 4096 fail with ENAMETOOLONG, none with ENOENT") { fs in
      for length in [1, 59, 60, 255, 256, 1024, 4094, 4095] {
        try fs.symlink(.long(length), at: "link")
        try expect(fs.readlink("link").bytes.count, is: length, "length of the target")
        try fs.unlink("link")
      }
      try expect(ENAMETOOLONG) { try fs.symlink(.long(4096), at: "link") }
      try expect(ENOENT) { try fs.symlink("", at: "link") }
      try expect(fs.names(), is: [], "the listing")
    },
    Case("symlink onto a taken name fails with EEXIST, readlink of another kind with EINVAL") { fs in
      try fs.put("file")
      try fs.mkdir("folder")
      try expect(EEXIST) { try fs.symlink("target", at: "file") }
      try expect(EEXIST) { try fs.symlink("target", at: "folder") }
      try expect(EINVAL) { try fs.readlink("file") }
      try expect(EINVAL) { try fs.readlink("folder") }
    },
    Case("paths go through symbolic links to files and folders", needs: .kernel) { fs in
      try fs.mkdir("folder")
      try fs.mkdir("folder/sub")
      try fs.put("folder/file", "text")
      try fs.symlink("folder", at: "link")
      try fs.symlink("../file", at: "folder/sub/up")
      try expect(fs.text("link/file"), is: "text", "contents through a link")
      try expect(fs.text("link/sub/up"), is: "text", "contents through two links")
      try expect(fs.stat("link").kind, is: .folder, "kind of what the link points at")
      try expect(fs.stat("link/").inode, is: fs.lstat("folder").inode, "inode")
      try fs.put("link/new", "made")
      try expect(fs.text("folder/new"), is: "made", "contents made through a link")
      try expect(ENOTDIR) { try fs.rmdir("link") }
    },
    Case("dangling and looping links fail with ENOENT and ELOOP", needs: .kernel) { fs in
      try fs.symlink("nothing", at: "dangling")
      try expect(ENOENT) { try fs.stat("dangling") }
      try expect(ENOENT) { try fs.open("dangling", O_RDONLY) }
      try fs.symlink("loop", at: "loop")
      try expect(ELOOP) { try fs.stat("loop") }
      try fs.symlink("b", at: "a")
      try fs.symlink("a", at: "b")
      try expect(ELOOP) { try fs.open("a", O_RDONLY) }
      try expect(ELOOP) { try fs.open("a/x", O_RDWR | O_CREAT) }
      try expect(fs.lstat("a").kind, is: .symlink, "kind")
    },
    Case("forty links in a chain are followed, forty-one fail with ELOOP", needs: .kernel) { fs in
      try fs.put("link-0", "text")
      for number in 1...41 { try fs.symlink("link-\(number - 1)", at: "link-\(number)") }
      try expect(fs.text("link-40"), is: "text", "contents")
      try expect(ELOOP) { try fs.stat("link-41") }
    },
    Case("unlink removes the link and leaves the target") { fs in
      try fs.put("target", "text")
      try fs.symlink("target", at: "link")
      try fs.unlink("link")
      try expect(fs.text("target"), is: "text", "contents")
      try expect(fs.names(), is: ["target"], "the listing")
    },
    Case("a link's own times can be set, and the target's stay") { fs in
      try fs.put("target")
      try fs.symlink("target", at: "link")
      let before = try fs.lstat("target")
      try fs.utimens("link", accessed: .set(Time(5, 6)), modified: .set(Time(7, 8)), following: false)
      try expect(fs.lstat("link").modified, is: Time(7, 8), "modification time")
      try expect(fs.lstat("link").accessed, is: Time(5, 6), "access time")
      try expect(fs.lstat("target"), is: before, "the target's status")
    },
    Case("a link's own ownership can be changed", needs: .root) { fs in
      try fs.put("target")
      try fs.symlink("target", at: "link")
      try fs.chown("link", user: 12, group: 34, following: false)
      try expect(fs.lstat("link").owner, is: 12, "owner")
      try expect(fs.lstat("link").group, is: 34, "group")
      try expect(fs.lstat("target").owner, is: 0, "owner of the target")
    },
    Case("chmod through a link changes the target", needs: .kernel) { fs in
      try fs.put("target")
      try fs.symlink("target", at: "link")
      try fs.chmod("link", 0o600)
      try expect(fs.lstat("target").mode, is: 0o600, "mode of the target")
      try expect(fs.lstat("link").mode, is: 0o777, "mode of the link")
    },
  ]
}
