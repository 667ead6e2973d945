import Glibc

extension Case {
  static let folders: [Case] = [
    Case("a new folder is empty and has two links, one more for each folder in it") { fs in
      try fs.mkdir("folder", mode: 0o700)
      let made = try fs.lstat("folder")
      try expect(made.kind, is: .folder, "kind")
      try expect(made.mode, is: 0o700, "mode")
      try expect(made.links, is: 2, "links")
      try fs.mkdir("folder/one")
      try fs.mkdir("folder/two")
      try fs.put("folder/file")
      try expect(fs.lstat("folder").links, is: 4, "links with two folders inside")
      try fs.rmdir("folder/one")
      try expect(fs.lstat("folder").links, is: 3, "links with one folder inside")
    },
    Case("renaming a folder between parents moves a link") { fs in
      try fs.mkdir("left")
      try fs.mkdir("right")
      try fs.mkdir("left/child")
      try fs.rename("left/child", "right/child")
      try expect(fs.lstat("left").links, is: 2, "links of left")
      try expect(fs.lstat("right").links, is: 3, "links of right")
      try fs.mkdir("left/child")
      try fs.rename("left/child", "right/child")
      try expect(fs.lstat("left").links, is: 2, "links of left after replacing")
      try expect(fs.lstat("right").links, is: 3, "links of right after replacing")
    },
    Case("mkdir of a taken name fails with EEXIST") { fs in
      try fs.put("file")
      try fs.mkdir("folder")
      try fs.symlink("nothing", at: "dangling")
      try expect(EEXIST) { try fs.mkdir("file") }
      try expect(EEXIST) { try fs.mkdir("folder") }
      try expect(EEXIST) { try fs.mkdir("dangling") }
    },
    Case("mkdir and rmdir of dot names fail", needs: .kernel) { fs in
      try fs.mkdir("folder")
      try expect(EEXIST) { try fs.mkdir("folder/.") }
      try expect(EEXIST) { try fs.mkdir("folder/..") }
      try expect(EINVAL) { try fs.rmdir("folder/.") }
      try expect(ENOTEMPTY) { try fs.rmdir("folder/..") }
      try expect(EISDIR, EPERM, EINVAL, EBUSY) { try fs.unlink("folder/.") }
    },
    Case("rmdir removes an empty folder only") { fs in
      try fs.mkdir("folder")
      try fs.put("folder/file")
      try expect(ENOTEMPTY) { try fs.rmdir("folder") }
      try fs.unlink("folder/file")
      try fs.mkdir("folder/child")
      try expect(ENOTEMPTY) { try fs.rmdir("folder") }
      try fs.rmdir("folder/child")
      try fs.rmdir("folder")
      try expect(ENOENT) { try fs.lstat("folder") }
    },
    Case("a removed folder that is still open has no links and lists nothing") { fs in
      try fs.mkdir("folder")
      let folder = try fs.openFolder("folder")
      try fs.rmdir("folder")
      try expect(folder.status().links, is: 0, "links")
      var names: [Path] = []
      while let entry = try folder.next() { names.append(entry.name) }
      try expect(names.filter { $0 != "." && $0 != ".." }, is: [], "the listing")
      try folder.close()
    },
    Case("nothing can be made in a removed folder", needs: [.kernel, .descriptors]) { fs in
      try fs.mkdir("folder")
      let folder = try fs.open("folder", O_RDONLY | O_DIRECTORY)
      try fs.rmdir("folder")
      let number = folder.descriptor!
      try expect(ENOENT) { try check(mkdirat(number, "child", 0o755), "mkdirat") }
      let file = Glibc.openat(number, "file", O_CREAT | O_RDWR, 0o644)
      try expect(file == -1 && errno == ENOENT, "creating a file there succeeded or failed otherwise")
      try folder.close()
    },
    Case("folders nest two hundred levels deep") { fs in
      var path: Path = "d"
      try fs.mkdir(path)
      for _ in 1..<200 {
        path = path / "d"
        try fs.mkdir(path)
      }
      try fs.put(path / "file", "deep")
      try expect(fs.text(path / "file"), is: "deep", "contents")
      try expect(fs.lstat(path).links, is: 2, "links")
    },
    Case("dot dot leads to the parent, also after a move", needs: .kernel) { fs in
      try fs.mkdir("one")
      try fs.mkdir("two")
      try fs.mkdir("one/child")
      try expect(fs.lstat("one/child/..").inode, is: fs.lstat("one").inode, "inode of the parent")
      try fs.rename("one/child", "two/child")
      try expect(fs.lstat("two/child/..").inode, is: fs.lstat("two").inode, "inode of the new parent")
    },
  ]

  static let listing: [Case] = [
    Case("a listing has dot, dot dot, and every entry once with its inode and kind") { fs in
      try fs.put("file")
      try fs.mkdir("folder")
      try fs.symlink("file", at: "link")
      try fs.mknod("fifo", mode: S_IFIFO | 0o600, device: 0)
      let folder = try fs.openFolder("")
      var entries: [Path: FolderEntry] = [:]
      while let entry = try folder.next() {
        try expect(entries[entry.name] == nil, "\(entry.name) is listed twice")
        entries[entry.name] = entry
      }
      try folder.close()
      try expect(Set(entries.keys), is: [".", "..", "file", "folder", "link", "fifo"], "the names")
      for name: Path in ["file", "folder", "link", "fifo"] {
        let status = try fs.lstat(name)
        try expect(entries[name]?.inode, is: status.inode, "inode of \(name)")
        if let kind = entries[name]?.kind { try expect(kind, is: status.kind, "kind of \(name)") }
      }
    },
    Case("rewinding shows what was made and removed since") { fs in
      try fs.put("old")
      let folder = try fs.openFolder("")
      while try folder.next() != nil {}
      try fs.put("new")
      try fs.unlink("old")
      folder.rewind()
      var names: Set<Path> = []
      while let entry = try folder.next() { names.insert(entry.name) }
      try expect(names, is: [".", "..", "new"], "the listing")
      try folder.close()
    },
    Case("seeking to an entry's position goes on after it") { fs in
      for number in 0..<300 { try fs.put("entry-\(number)") }
      let folder = try fs.openFolder("")
      var all: [FolderEntry] = []
      while let entry = try folder.next() { all.append(entry) }
      for index in [0, 1, 7, 100, 250, 300] {
        folder.seek(all[index].position)
        var rest: [Path] = []
        while let entry = try folder.next() { rest.append(entry.name) }
        try expect(rest == all[(index + 1)...].map(\.name), "the listing after position \(index) differs")
      }
      try folder.close()
    },
    Case("entries made and removed at once show in the next listing") { fs in
      for round in 0..<50 {
        try fs.put("file-\(round)")
        try expect(fs.names().count, is: 1, "number of entries")
        try fs.rename("file-\(round)", "renamed-\(round)")
        try expect(fs.names(), is: ["renamed-\(round)"], "the listing")
        try fs.unlink("renamed-\(round)")
        try expect(fs.names(), is: [], "the listing afterwards")
      }
    },
    Case("ten thousand entries are listed once each, in several handles at once") { fs in
      let expected = Set((0..<10_000).map { Path("entry number \($0)") })
      for name in expected { try fs.put(name) }
      let first = try fs.openFolder("")
      let second = try fs.openFolder("")
      var seen: (Set<Path>, Set<Path>) = ([], [])
      while let entry = try first.next() {
        try expect(seen.0.insert(entry.name).inserted, "\(entry.name) is listed twice")
        if let other = try second.next() {
          try expect(seen.1.insert(other.name).inserted, "\(other.name) is listed twice at the other handle")
        }
      }
      try expect(seen.0.subtracting([".", ".."]) == expected, "the listing differs: \(seen.0.count) entries")
      try expect(seen.1 == seen.0, "the other handle saw others")
      try first.close()
      try second.close()
    },
    Case("while entries come and go, every one of 10,000 that stayed is listed exactly once") { fs in
      let stayed = Set((0..<10_000).map { Path("stays-\($0)") })
      for name in stayed { try fs.put(name) }
      for number in 0..<500 { try fs.put("goes-\(number)") }
      for round in 0..<3 {
        let folder = try fs.openFolder("")
        var seen: [Path: Int] = [:]
        var count = 0
        while let entry = try folder.next() {
          seen[entry.name, default: 0] += 1
          count += 1
          if count % 25 == 0 {
            let number = count / 25
            try fs.put("comes-\(round)-\(number)")
            if number < 160, try fs.exists("goes-\(round * 160 + number)") {
              try fs.unlink("goes-\(round * 160 + number)")
            }
            if number % 3 == 0 { try fs.rename("comes-\(round)-\(number)", "renamed-\(round)-\(number)") }
          }
        }
        try folder.close()
        for name in stayed where seen[name] != 1 {
          throw Deviation("\(name) stayed and is listed \(seen[name] ?? 0) times", #fileID, #line)
        }
        for (name, times) in seen where times > 1 && !name.bytes.starts(with: "renamed".utf8) {
          throw Deviation("\(name) is listed \(times) times", #fileID, #line)
        }
      }
    },
    Case("a folder emptied while it is being read ends empty") { fs in
      for number in 0..<2000 { try fs.put("entry-\(number)") }
      let folder = try fs.openFolder("")
      var removed = 0
      while removed < 2000, let entry = try folder.next() {
        guard entry.name != ".", entry.name != ".." else { continue }
        try fs.unlink(entry.name)
        removed += 1
      }
      try folder.close()
      try expect(removed, is: 2000, "entries removed in one pass")
      try expect(fs.names(), is: [], "the listing")
    },
  ]
}
