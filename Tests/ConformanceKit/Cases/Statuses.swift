import Glibc

extension Case {
  static let times: [Case] = [
    Case("files from the year 1601 and the like are kept, with as much of the time as can be") { fs in
      for name: Path in ["file", "folder"] {
        if name == "file" { try fs.put(name, "text") } else { try fs.mkdir(name) }
        // The beginning of NTFS's count; the first and the last moments of 64 bits of nanoseconds; nonsense.
        for seconds: Int in [-11_644_473_600, -9_223_372_037, -9_223_372_036, 9_223_372_037, .min / 4, .max / 4] {
          try fs.utimens(name, accessed: .set(Time(seconds, 5)), modified: .set(Time(seconds, 999_999_999)))
          try expect(fs.lstat(name).modified.seconds < 0, is: seconds < 0, "the side of 1970 of \(seconds)")
        }
      }
      try expect(fs.text("file"), is: "text", "contents")
      try expect(Set(fs.names("")), is: ["file", "folder"], "the listing")
    },
    Case("creating updates the parent's times and sets the new file's to now") { fs in
      try fs.mkdir("folder")
      try aged(fs, "folder") {
        try fs.put("folder/file")
      } shows: {
        try expect($0, .modified, .changed)
      }
      let folder = try fs.lstat("folder")
      let file = try fs.lstat("folder/file")
      try expect(file.modified >= folder.changed || folder.changed >= file.modified, "times compare")
      try expect(abs(file.modified.seconds - time(nil)) < 30, "the new file's time is \(file.modified), not now")
      try expect(file.accessed, is: file.modified, "access time")
    },
    Case("every way of making an entry updates the parent's times") { fs in
      try fs.mkdir("folder")
      try fs.put("file")
      try fs.put("other")
      let ways: [(String, () throws -> Void)] = [
        ("mkdir", { try fs.mkdir("folder/child") }), ("symlink", { try fs.symlink("t", at: "folder/symlink") }),
        ("mknod", { try fs.mknod("folder/fifo", mode: S_IFIFO | 0o600, device: 0) }),
        ("link", { try fs.link("file", "folder/link") }), ("rename", { try fs.rename("other", "folder/moved") }),
      ]
      for (name, way) in ways { try aged(fs, "folder", way) { try expect($0, .modified, .changed, what: name) } }
    },
    Case("every way of removing an entry updates the parent's times") { fs in
      try fs.mkdir("folder")
      try fs.put("folder/file")
      try fs.put("folder/moved")
      try fs.put("folder/target")
      try fs.put("source")
      try fs.mkdir("folder/child")
      let ways: [(String, () throws -> Void)] = [
        ("unlink", { try fs.unlink("folder/file") }), ("rmdir", { try fs.rmdir("folder/child") }),
        ("rename away", { try fs.rename("folder/moved", "elsewhere") }),
        ("rename over", { try fs.rename("source", "folder/target") }),
        ("rename within", { try fs.rename("folder/target", "folder/renamed") }),
      ]
      for (name, way) in ways { try aged(fs, "folder", way) { try expect($0, .modified, .changed, what: name) } }
    },
    Case("writing updates the file's modification and change times") { fs in
      try fs.put("file", "text")
      try aged(fs, "file") {
        try fs.put("file", "more text")
      } shows: {
        try expect($0, .modified, .changed)
      }
      let file = try fs.open("file", O_RDWR)
      try aged(fs, "file") {
        try file.pwriteAll([1], at: 2)
      } shows: {
        try expect($0, .modified, .changed)
      }
      try aged(fs, "file") {
        try file.truncate(3)
      } shows: {
        try expect($0, .modified, .changed)
      }
      try aged(fs, "file") {
        try file.allocate(0, 0, 9000)
      } shows: {
        try expect($0, .modified, .changed, what: "fallocate")
      }
      try file.close()
      try aged(fs, "file") {
        try fs.truncate("file", 1)
      } shows: {
        try expect($0, .modified, .changed)
      }
      try aged(fs, "file") {
        try fs.truncate("file", 100)
      } shows: {
        try expect($0, .modified, .changed)
      }
      try aged(fs, "file") {
        try fs.open("file", O_WRONLY | O_TRUNC).close()
      } shows: {
        try expect($0, .modified, .changed, what: "O_TRUNC")
      }
    },
    Case("closing, syncing and opening change no times") { fs in
      try fs.put("file", "text")
      let file = try fs.open("file", O_RDWR)
      try file.pwriteAll([1], at: 0)
      try file.utimens(accessed: .keep, modified: .set(Time(1_000_000_000)))
      try fs.passTime(since: "file")
      let before = try fs.lstat("file")
      try file.synchronize(dataOnly: false)
      try file.close()
      try fs.open("file", O_RDWR | O_CREAT).close()
      try expect(fs.lstat("file"), is: before, "the status")
    },
    Case("reading changes neither modification nor change time, and the access time never backwards") { fs in
      try fs.put("file", "text")
      try fs.passTime(since: "file")
      let before = try fs.lstat("file")
      _ = try fs.contents("file")
      let after = try fs.lstat("file")
      try expect(after.modified, is: before.modified, "modification time")
      try expect(after.changed, is: before.changed, "change time")
      try expect(after.accessed >= before.accessed, "the access time went back")
    },
    Case("chmod, chown, link, rename and setxattr update the change time alone") { fs in
      try fs.put("file", "text")
      let ways: [(String, () throws -> Void)] = [
        ("chmod", { try fs.chmod("file", 0o600) }),
        ("chown", { try fs.chown("file", user: geteuid(), group: getegid()) }),
        ("setxattr", { try fs.setxattr("file", "user.a", [1]) }),
        ("removexattr", { try fs.removexattr("file", "user.a") }),
        ("link", { try fs.link("file", "link") }), ("unlink of a link", { try fs.unlink("link") }),
      ]
      for (name, way) in ways { try aged(fs, "file", way) { try expect($0, .changed, what: name) } }
      try aged(fs, "file", at: "renamed") {
        try fs.rename("file", "renamed")
      } shows: {
        try expect($0, .changed)
      }
    },
    Case("chmod of a folder updates its change time alone") { fs in
      try fs.mkdir("folder")
      try aged(fs, "folder") {
        try fs.chmod("folder", 0o700)
      } shows: {
        try expect($0, .changed)
      }
    },
    Case("writing to a file leaves its folder's times alone") { fs in
      try fs.mkdir("folder")
      try fs.put("folder/file")
      try aged(fs, "folder") {
        try fs.put("folder/file", "text")
      } shows: {
        try expect($0)
      }
    },
    Case("what fails changes no times") { fs in
      try fs.mkdir("folder")
      try fs.put("folder/file")
      try aged(fs, "folder") {
        try expect(EEXIST) { try fs.mkdir("folder/file") }
        try expect(EEXIST) { try fs.link("folder/file", "folder/file") }
        try expect(ENOENT) { try fs.unlink("folder/nothing") }
        try expect(ENOENT) { try fs.rename("folder/nothing", "folder/x") }
        try expect(ENOTEMPTY) { try fs.rmdir("folder") }
      } shows: {
        try expect($0)
      }
    },
    Case("utimensat sets both times to the nanosecond, on files and folders") { fs in
      try fs.put("file")
      try fs.mkdir("folder")
      for path: Path in ["file", "folder"] {
        for (accessed, modified) in [
          (Time(1, 1), Time(2, 999_999_999)), (Time(1_234_567_890, 123_456_789), Time(0, 0)),
          (Time(4_000_000_000, 5), Time(-1_000, 7)),
        ] {
          try fs.utimens(path, accessed: .set(accessed), modified: .set(modified))
          try expect(fs.lstat(path).accessed, is: accessed, "access time")
          try expect(fs.lstat(path).modified, is: modified, "modification time")
        }
      }
    },
    Case("UTIME_OMIT keeps a time, UTIME_NOW sets it to now") { fs in
      try fs.put("file")
      try fs.utimens("file", accessed: .set(Time(10, 1)), modified: .set(Time(20, 2)))
      try fs.utimens("file", accessed: .keep, modified: .set(Time(30, 3)))
      try expect(fs.lstat("file").accessed, is: Time(10, 1), "access time")
      try expect(fs.lstat("file").modified, is: Time(30, 3), "modification time")
      try fs.utimens("file", accessed: .now, modified: .keep)
      try expect(fs.lstat("file").modified, is: Time(30, 3), "modification time kept")
      try expect(abs(fs.lstat("file").accessed.seconds - time(nil)) < 30, "the access time is not now")
      let file = try fs.open("file", O_RDWR)
      try file.utimens(accessed: .set(Time(11)), modified: .set(Time(12)))
      try expect(file.status().modified, is: Time(12), "modification time by the handle")
      try file.close()
      try expect(fs.lstat("file").modified, is: Time(12), "modification time after closing")
    },
    Case("a time set through an open written handle survives its closing") { fs in
      let file = try fs.open("file", O_RDWR | O_CREAT)
      try file.writeAll(pattern(50_000))
      try fs.utimens("file", accessed: .set(Time(100)), modified: .set(Time(200, 9)))
      try file.close()
      try expect(fs.lstat("file").modified, is: Time(200, 9), "modification time")
      try fs.rename("file", "moved")
      try expect(fs.lstat("moved").modified, is: Time(200, 9), "modification time after a rename")
    },
    Case("nanoseconds out of range fail with EINVAL", needs: .kernel) { fs in
      try fs.put("file")
      try expect(EINVAL) { try fs.utimens("file", accessed: .keep, modified: .set(Time(1, 1_000_000_000))) }
      try expect(EINVAL) { try fs.utimens("file", accessed: .set(Time(1, -1)), modified: .keep) }
    },
  ]

  static let statuses: [Case] = [
    Case("stat by path, by handle and through a link agree") { fs in
      try fs.put("file", pattern(5000))
      try fs.symlink("file", at: "link")
      let file = try fs.open("file", O_RDONLY)
      try expect(file.status(), is: fs.lstat("file"), "the handle's status")
      try expect(fs.stat("link"), is: fs.lstat("file"), "the status through the link")
      try file.close()
    },
    Case("chmod sets all twelve bits, on files and folders, by path and by handle") { fs in
      try fs.put("file")
      try fs.mkdir("folder")
      for mode: UInt32 in [0, 0o777, 0o640, 0o4755, 0o1777, 0o6711, 0o7777, 0o644] {
        try fs.chmod("file", mode)
        try expect(fs.lstat("file").mode, is: mode, "mode of the file")
        try fs.chmod("folder", mode)
        try expect(fs.lstat("folder").mode, is: mode, "mode of the folder")
      }
      let file = try fs.open("file", O_RDWR)
      try file.chmod(0o604)
      try expect(fs.lstat("file").mode, is: 0o604, "mode by the handle")
      try file.close()
    },
    Case("chown sets owner and group, one or both", needs: .root) { fs in
      try fs.put("file")
      try fs.mkdir("folder")
      for path: Path in ["file", "folder"] {
        try fs.chown(path, user: 1234, group: 5678)
        try expect(fs.lstat(path).owner, is: 1234, "owner")
        try expect(fs.lstat(path).group, is: 5678, "group")
        try fs.chown(path, user: nil, group: 99)
        try fs.chown(path, user: 4_000_000_000, group: nil)
        try expect(fs.lstat(path).owner, is: 4_000_000_000, "owner set alone")
        try expect(fs.lstat(path).group, is: 99, "group set alone")
      }
      let file = try fs.open("file", O_RDWR)
      try file.chown(user: 7, group: nil)
      try expect(fs.lstat("file").owner, is: 7, "owner by the handle")
      try file.close()
    },
    Case("blocks tell that data is there") { fs in
      try fs.put("file", pattern(1 << 20))
      let file = try fs.open("file", O_RDONLY)
      try file.synchronize(dataOnly: false)
      try file.close()
      let blocks = try fs.lstat("file").blocks
      try expect(blocks >= 1024 && blocks < 4096, "a file of 1 MiB has \(blocks) blocks of 512")
    },
    Case("inodes are one per file and last through renames") { fs in
      var inodes: Set<UInt64> = []
      for number in 0..<100 {
        try fs.put("file-\(number)")
        try expect(inodes.insert(fs.lstat("file-\(number)").inode).inserted, "two files share an inode")
      }
      let before = try fs.lstat("file-0").inode
      try fs.mkdir("folder")
      try fs.rename("file-0", "folder/file")
      try expect(fs.lstat("folder/file").inode, is: before, "inode after a rename")
    },
    Case("statfs tells a length of names, and no more free than there is") { fs in
      let space = try fs.statfs()
      try expect(space.longestName, is: 255, "longest name")
      try expect(space.blockSize >= 512 && space.blocks > 0, "no blocks")
      try expect(space.free <= space.blocks && space.available <= space.free, "more free than there is: \(space)")
      try expect(space.available > 0, "nothing available")
    },
    Case("access answers by the mode", needs: .kernel) { fs in
      try fs.put("file", mode: 0o600)
      try fs.access("file", F_OK)
      try fs.access("file", R_OK | W_OK)
      try expect(EACCES) { try fs.access("file", X_OK) }
      try expect(ENOENT) { try fs.access("nothing", F_OK) }
    },
  ]
}

private enum Stamp: Equatable { case modified, changed }

/// The status before and after a step, with the clock moved on between; the modification time began long ago.
private struct Aged {
  let before: FileStatus
  let after: FileStatus
}

private func aged(
  _ fs: any FileSystem, _ path: Path, at later: Path? = nil, _ step: () throws -> Void, shows: (Aged) throws -> Void
) throws {
  try fs.utimens(path, accessed: .keep, modified: .set(Time(1_000_000_000)))
  try fs.passTime(since: path)
  let before = try fs.lstat(path)
  try step()
  try shows(Aged(before: before, after: try fs.lstat(later ?? path)))
}

/// Expects exactly `stamps` to be later than before.
private func expect(_ aged: Aged, _ stamps: Stamp..., what: String = "the step", line: UInt = #line) throws {
  let (before, after) = (aged.before, aged.after)
  if stamps.contains(.modified) {
    try expect(
      after.modified > before.modified && abs(after.modified.seconds - time(nil)) < 60,
      "after \(what) the modification time is \(after.modified)", line: line)
  } else {
    try expect(after.modified, is: before.modified, "the modification time after \(what)", line: line)
  }
  if stamps.contains(.changed) {
    try expect(after.changed > before.changed, "after \(what) the change time is still \(after.changed)", line: line)
  } else {
    try expect(after.changed, is: before.changed, "the change time after \(what)", line: line)
  }
}
