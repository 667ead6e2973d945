import Glibc

let noReplace: UInt32 = 1  // RENAME_NOREPLACE
let exchange: UInt32 = 2  // RENAME_EXCHANGE
let whiteout: UInt32 = 4  // RENAME_WHITEOUT

extension Case {
  static let renaming: [Case] = [
    Case("rename moves a file within a folder and between folders, and it stays the same file") { fs in
      try fs.mkdir("one")
      try fs.mkdir("two")
      try fs.put("one/file", "text")
      let inode = try fs.lstat("one/file").inode
      try fs.rename("one/file", "one/renamed")
      try fs.rename("one/renamed", "two/moved")
      try expect(fs.lstat("two/moved").inode, is: inode, "inode")
      try expect(fs.text("two/moved"), is: "text", "contents")
      try expect(fs.names("one"), is: [], "what is left")
    },
    Case("rename of a file over another replaces it in one step") { fs in
      try fs.put("old", "old")
      try fs.put("new", "new")
      try fs.rename("new", "old")
      try expect(fs.text("old"), is: "new", "contents")
      try expect(fs.exists("new"), is: false, "existence of the source")
      try expect(fs.lstat("old").links, is: 1, "links")
    },
    Case("rename over an open file leaves its handle the old contents") { fs in
      try fs.put("doc", "old contents")
      let reader = try fs.open("doc", O_RDWR)
      try fs.put("new", "new")
      try fs.rename("new", "doc")
      try expect(reader.readAll(), is: Array("old contents".utf8), "contents at the old handle")
      try expect(reader.status().links, is: 0, "links at the old handle")
      try reader.pwriteAll(Array("OLD".utf8), at: 0)
      try expect(fs.text("doc"), is: "new", "contents by the name")
      try expect(reader.pread(3, at: 0), is: Array("OLD".utf8), "contents at the old handle after writing")
      try reader.close()
      try expect(fs.text("doc"), is: "new", "contents after closing")
    },
    Case("the handle of a file renamed over another goes on writing to it") { fs in
      try fs.put("doc", "old")
      let writer = try fs.open("temporary", O_RDWR | O_CREAT)
      try writer.writeAll(Array("ne".utf8))
      try fs.rename("temporary", "doc")
      try writer.writeAll(Array("w".utf8))
      try expect(fs.text("doc"), is: "new", "contents")
      try expect(writer.status().inode, is: fs.lstat("doc").inode, "inode")
      try writer.close()
      try expect(fs.text("doc"), is: "new", "contents after closing")
    },
    Case("rename onto itself, or onto another name of the same file, changes nothing") { fs in
      try fs.put("file", "text")
      try fs.link("file", "other")
      try fs.rename("file", "file")
      try fs.rename("file", "other")
      try expect(fs.text("file"), is: "text", "contents")
      try expect(fs.text("other"), is: "text", "contents of the other name")
      try expect(fs.lstat("file").links, is: 2, "links")
    },
    Case("rename of a folder takes along all below it") { fs in
      try fs.mkdir("one")
      try fs.mkdir("one/deep")
      try fs.put("one/deep/file", "text")
      try fs.rename("one", "two")
      try expect(fs.text("two/deep/file"), is: "text", "contents")
      try expect(ENOENT) { try fs.lstat("one/deep/file") }
    },
    Case("rename over an empty folder replaces it, over a full one fails with ENOTEMPTY") { fs in
      try fs.mkdir("source")
      try fs.put("source/file")
      try fs.mkdir("empty")
      try fs.mkdir("full")
      try fs.put("full/file")
      try expect(ENOTEMPTY, EEXIST) { try fs.rename("source", "full") }
      try fs.rename("source", "empty")
      try expect(fs.names("empty"), is: ["file"], "the listing")
      try expect(fs.exists("source"), is: false, "existence of the source")
    },
    Case("rename between a file and a folder fails with EISDIR or ENOTDIR") { fs in
      try fs.put("file")
      try fs.mkdir("folder")
      try fs.symlink("file", at: "link")
      try expect(EISDIR) { try fs.rename("file", "folder") }
      try expect(EISDIR) { try fs.rename("link", "folder") }
      try expect(ENOTDIR) { try fs.rename("folder", "file") }
      try expect(ENOTDIR) { try fs.rename("folder", "link") }
    },
    Case("rename of a folder into itself or below fails with EINVAL") { fs in
      try fs.mkdir("folder")
      try fs.mkdir("folder/child")
      try expect(EINVAL) { try fs.rename("folder", "folder/inside") }
      try expect(EINVAL) { try fs.rename("folder", "folder/child/inside") }
      try expect(EINVAL) { try fs.rename("folder", "folder/child/inside", flags: noReplace) }
    },
    Case("rename onto an ancestor fails with ENOTEMPTY", needs: .kernel) { fs in
      try fs.mkdir("folder")
      try fs.mkdir("folder/child")
      try fs.put("folder/child/file")
      try expect(ENOTEMPTY) { try fs.rename("folder/child", "folder") }
      try expect(ENOTEMPTY) { try fs.rename("folder/child/file", "folder") }
    },
    Case("rename of dot names fails with EBUSY", needs: .kernel) { fs in
      try fs.mkdir("folder")
      try expect(EBUSY) { try fs.rename("folder/.", "other") }
      try expect(EBUSY) { try fs.rename("folder/..", "other") }
      try fs.mkdir("other")
      try expect(EBUSY) { try fs.rename("folder", "other/.") }
    },
    Case("rename over one of two links leaves the other") { fs in
      try fs.put("file", "old")
      try fs.link("file", "keeper")
      try fs.put("new", "new")
      try fs.rename("new", "file")
      try expect(fs.text("keeper"), is: "old", "contents of the other link")
      try expect(fs.lstat("keeper").links, is: 1, "links of the other link")
      try expect(fs.text("file"), is: "new", "contents")
    },
    Case("rename replaces a symbolic link, not what it points at") { fs in
      try fs.put("target", "target")
      try fs.symlink("target", at: "link")
      try fs.put("file", "file")
      try fs.rename("file", "link")
      try expect(fs.lstat("link").kind, is: .file, "kind")
      try expect(fs.text("target"), is: "target", "contents of the target")
      try fs.symlink("target", at: "second")
      try fs.rename("second", "third")
      try expect(fs.readlink("third"), is: "target", "the moved link's target")
    },
    Case("names of 255 bytes can be renamed to each other") { fs in
      try fs.put(.long(255), "text")
      try fs.rename(.long(255), .long(255, of: "m"))
      try expect(fs.text(.long(255, of: "m")), is: "text", "contents")
    },
    Case("open folders stay open through a rename of theirs") { fs in
      try fs.mkdir("folder")
      try fs.put("folder/file")
      let folder = try fs.openFolder("folder")
      try fs.rename("folder", "moved")
      var names: Set<Path> = []
      while let entry = try folder.next() { names.insert(entry.name) }
      try folder.close()
      try expect(names, is: [".", "..", "file"], "the listing")
    },
  ]

  static let renamingFlags: [Case] = [
    Case("RENAME_NOREPLACE moves to a free name and fails with EEXIST on a taken one") { fs in
      try fs.put("file", "file")
      try fs.put("taken", "taken")
      try fs.mkdir("folder")
      try expect(EEXIST) { try fs.rename("file", "taken", flags: noReplace) }
      try expect(EEXIST) { try fs.rename("file", "folder", flags: noReplace) }
      try expect(EEXIST) { try fs.rename("file", "file", flags: noReplace) }
      try fs.rename("file", "free", flags: noReplace)
      try expect(fs.text("free"), is: "file", "contents")
      try expect(fs.text("taken"), is: "taken", "contents of the taken name")
      try expect(ENOENT) { try fs.rename("nothing", "other", flags: noReplace) }
    },
    Case("RENAME_EXCHANGE swaps two files") { fs in
      try fs.put("one", "one", mode: 0o600)
      try fs.put("two", "two")
      try fs.rename("one", "two", flags: exchange)
      try expect(fs.text("one"), is: "two", "contents of one")
      try expect(fs.text("two"), is: "one", "contents of two")
    },
    Case("RENAME_EXCHANGE swaps a file and a folder across parents, and link counts follow") { fs in
      try fs.mkdir("left")
      try fs.mkdir("right")
      try fs.put("left/file", "text")
      try fs.mkdir("right/folder")
      try fs.put("right/folder/inside")
      try fs.rename("left/file", "right/folder", flags: exchange)
      try expect(fs.lstat("left/file").kind, is: .folder, "kind at the left")
      try expect(fs.text("right/folder"), is: "text", "contents at the right")
      try expect(fs.names("left/file"), is: ["inside"], "the listing")
      try expect(fs.lstat("left").links, is: 3, "links of left")
      try expect(fs.lstat("right").links, is: 2, "links of right")
    },
    Case("RENAME_EXCHANGE needs both names, and no folder below the other") { fs in
      try fs.put("file")
      try expect(ENOENT) { try fs.rename("file", "nothing", flags: exchange) }
      try expect(ENOENT) { try fs.rename("nothing", "file", flags: exchange) }
      try fs.mkdir("folder")
      try fs.mkdir("folder/child")
      try expect(EINVAL) { try fs.rename("folder", "folder/child", flags: exchange) }
      try expect(EINVAL) { try fs.rename("folder/child", "folder", flags: exchange) }
    },
    Case("RENAME_EXCHANGE of a name with itself or another of the same file changes nothing") { fs in
      try fs.put("file", "text")
      try fs.link("file", "link")
      try fs.rename("file", "file", flags: exchange)
      try fs.rename("file", "link", flags: exchange)
      try expect(fs.text("file"), is: "text", "contents")
      try expect(fs.lstat("link").links, is: 2, "links")
    },
    Case("contradicting or unknown rename flags fail with EINVAL", needs: .kernel) { fs in
      try fs.put("one")
      try fs.put("two")
      try expect(EINVAL) { try fs.rename("one", "two", flags: noReplace | exchange) }
      try expect(EINVAL) { try fs.rename("one", "two", flags: exchange | whiteout) }
      try expect(EINVAL) { try fs.rename("one", "two", flags: 1 << 20) }
    },
  ]
}
