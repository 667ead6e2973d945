import Glibc

private let alice: UInt32 = 65_533
private let bob: UInt32 = 65_532

extension Case {
  static let permissions: [Case] = [
    Case("reading and writing ask the bits of owner, group and others in that order", needs: .root) { fs in
      try fs.put("file", "text")
      try fs.chown("file", user: alice, group: 1000)
      for (mode, reads, writes) in [(0o400, true, false), (0o200, false, true), (0o077, false, false)] {
        try fs.chmod("file", UInt32(mode))
        try attempt(fs, Credentials(user: alice, otherGroups: [1000]), "file", reads: reads, writes: writes)
      }
      for (mode, reads, writes) in [(0o040, true, false), (0o020, false, true), (0o707, false, false)] {
        try fs.chmod("file", UInt32(mode))
        try attempt(fs, Credentials(user: bob, otherGroups: [1000]), "file", reads: reads, writes: writes)
      }
      for (mode, reads, writes) in [(0o004, true, false), (0o002, false, true), (0o770, false, false)] {
        try fs.chmod("file", UInt32(mode))
        try attempt(fs, Credentials(user: bob), "file", reads: reads, writes: writes)
      }
    },
    Case("who may not write truncates nothing, by opening for reading either", needs: .root) { fs in
      try fs.put("file", "text")
      try fs.chown("file", user: alice, group: alice)
      for (mode, user) in [(0o444, alice), (0o644, bob)] as [(UInt32, UInt32)] {
        try fs.chmod("file", mode)
        try fs.acting(as: Credentials(user: user)) { fs in
          for flags in [O_RDONLY | O_TRUNC, O_WRONLY | O_TRUNC, O_RDONLY | O_CREAT | O_TRUNC] {
            try expect(EACCES) { try fs.open("file", flags) }
          }
        }
        try expect(fs.text("file"), is: "text", "contents")
      }
      try fs.chmod("file", 0o600)
      try fs.acting(as: Credentials(user: alice)) { fs in try fs.open("file", O_RDONLY | O_TRUNC).close() }
      try expect(fs.text("file"), is: "", "contents")
    },
    Case("folders need search to pass, write to change, read to list", needs: .root) { fs in
      try fs.mkdir("folder")
      try fs.put("folder/file", "text")
      try fs.chmod("folder", 0o700)
      try fs.acting(as: Credentials(user: bob)) { fs in
        try expect(EACCES) { try fs.open("folder/file", O_RDONLY) }
        try expect(EACCES) { try fs.lstat("folder/file") }
        try expect(EACCES) { try fs.openFolder("folder") }
      }
      try fs.chmod("folder", 0o701)
      try fs.acting(as: Credentials(user: bob)) { fs in
        try expect(fs.text("folder/file"), is: "text", "contents")
        try expect(EACCES) { try fs.openFolder("folder") }
        try expect(EACCES) { try fs.unlink("folder/file") }
        try expect(EACCES) { try fs.put("folder/new") }
        try expect(EACCES) { try fs.mkdir("folder/new") }
        try expect(EACCES) { try fs.rename("folder/file", "folder/other") }
        try expect(EACCES) { try fs.symlink("t", at: "folder/link") }
      }
      try fs.chmod("folder", 0o704)
      try fs.acting(as: Credentials(user: bob)) { fs in
        try expect(fs.names("folder"), is: ["file"], "the listing")
        try expect(EACCES) { try fs.lstat("folder/file") }
      }
    },
    Case("only the owner may change mode, ownership and times at will", needs: .root) { fs in
      try fs.put("file")
      try fs.chmod("file", 0o666)
      try fs.acting(as: Credentials(user: bob)) { fs in
        try expect(EPERM) { try fs.chmod("file", 0o600) }
        try expect(EPERM) { try fs.chown("file", user: bob, group: nil) }
        try expect(EPERM) { try fs.chown("file", user: nil, group: bob) }
        try expect(EPERM) { try fs.utimens("file", accessed: .set(Time(1)), modified: .set(Time(1))) }
        try fs.utimens("file", accessed: .now, modified: .now)
      }
      try fs.chmod("file", 0o644)
      try fs.acting(as: Credentials(user: bob)) { fs in
        try expect(EACCES) { try fs.utimens("file", accessed: .now, modified: .now) }
        try expect(EACCES) { try fs.truncate("file", 0) }
      }
    },
    Case("an owner changes the group to one of their own, and gives nothing away", needs: .root) { fs in
      try fs.put("file")
      try fs.chown("file", user: alice, group: alice)
      try fs.acting(as: Credentials(user: alice, otherGroups: [2000])) { fs in
        try fs.chown("file", user: nil, group: 2000)
        try expect(EPERM) { try fs.chown("file", user: nil, group: 2001) }
        try expect(EPERM) { try fs.chown("file", user: bob, group: nil) }
        try fs.chown("file", user: alice, group: 2000)
        try fs.chmod("file", 0o600)
      }
      try expect(fs.lstat("file").group, is: 2000, "group")
    },
    Case("what another user makes is theirs", needs: .root) { fs in
      try fs.mkdir("folder")
      try fs.chmod("folder", 0o777)
      try fs.acting(as: Credentials(user: bob, group: 3000)) { fs in
        try fs.put("folder/file")
        try fs.mkdir("folder/child")
        try fs.symlink("t", at: "folder/link")
        try fs.mknod("folder/fifo", mode: S_IFIFO | 0o600, device: 0)
      }
      for name: Path in ["file", "child", "link", "fifo"] {
        try expect(fs.lstat("folder" / name).owner, is: bob, "owner of \(name)")
        try expect(fs.lstat("folder" / name).group, is: 3000, "group of \(name)")
      }
    },
    Case("in a sticky folder only owners remove and rename", needs: .root) { fs in
      try fs.mkdir("sticky")
      try fs.chmod("sticky", 0o1777)
      try fs.acting(as: Credentials(user: alice)) { fs in
        try fs.put("sticky/file", mode: 0o666)
        try fs.mkdir("sticky/folder", mode: 0o777)
      }
      try fs.acting(as: Credentials(user: bob)) { fs in
        try fs.put("sticky/mine")
        try expect(EPERM) { try fs.unlink("sticky/file") }
        try expect(EPERM) { try fs.rename("sticky/file", "sticky/other") }
        try expect(EPERM) { try fs.rename("sticky/mine", "sticky/file") }
        try expect(EPERM) { try fs.rename("sticky/mine", "sticky/file", flags: exchange) }
        try expect(EPERM) { try fs.rmdir("sticky/folder") }
        try fs.rename("sticky/mine", "sticky/still mine")
        try fs.unlink("sticky/still mine")
      }
      try fs.acting(as: Credentials(user: alice)) { fs in
        try fs.rename("sticky/file", "sticky/other")
        try fs.unlink("sticky/other")
        try fs.rmdir("sticky/folder")
      }
    },
    Case("the owner of a sticky folder removes what others made there", needs: .root) { fs in
      try fs.mkdir("sticky")
      try fs.chown("sticky", user: alice, group: alice)
      try fs.chmod("sticky", 0o1777)
      try fs.acting(as: Credentials(user: bob)) { fs in try fs.put("sticky/file") }
      try fs.acting(as: Credentials(user: alice)) { fs in try fs.unlink("sticky/file") }
    },
    Case("moving a folder to another parent needs write permission on the folder itself", needs: .root) { fs in
      try fs.mkdir("one")
      try fs.mkdir("two")
      try fs.chmod("one", 0o777)
      try fs.chmod("two", 0o777)
      try fs.mkdir("one/child")
      try fs.acting(as: Credentials(user: bob)) { fs in
        try expect(EACCES) { try fs.rename("one/child", "two/child") }
        try fs.rename("one/child", "one/renamed")
      }
    },
    Case("a handle keeps what it was opened for when the mode is taken away", needs: .root) { fs in
      try fs.put("file", "text")
      try fs.chmod("file", 0o666)
      try fs.acting(as: Credentials(user: bob)) { fs in
        let file = try fs.open("file", O_RDWR)
        try file.pwriteAll(Array("T".utf8), at: 0)
        try file.close()
      }
      let handle = try fs.open("file", O_RDWR)
      try fs.chmod("file", 0)
      try expect(handle.pread(4, at: 0), is: Array("Text".utf8), "contents")
      try fs.acting(as: Credentials(user: bob)) { _ in
        try handle.pwriteAll(Array("t".utf8), at: 0)
      }
      try expect(handle.pread(4, at: 0), is: Array("text".utf8), "contents written by the handle")
      try handle.close()
    },
    Case("an owner goes by the owner's bits, whatever the others allow") { fs in
      try fs.put("file", "text")
      try asOwner(of: "file", fs) { fs in
        for (mode, reads, writes) in [(0o477, true, false), (0o277, false, true), (0o077, false, false)] {
          try fs.chmod("file", UInt32(mode))
          for (flags, allowed) in [(O_RDONLY, reads), (O_WRONLY, writes), (O_RDWR, reads && writes)] {
            if allowed { try fs.open("file", flags).close() } else { try expect(EACCES) { try fs.open("file", flags) } }
          }
          for (mode, allowed) in [(R_OK, reads), (W_OK, writes), (R_OK | W_OK, reads && writes), (X_OK, false)] {
            if allowed { try fs.access("file", mode) } else { try expect(EACCES) { try fs.access("file", mode) } }
          }
          try fs.access("file", F_OK)
        }
        try fs.chmod("file", 0o277)
        try expect(EACCES) { try fs.getxattr("file", "user.colour", following: true) }
        try fs.setxattr("file", "user.colour", Array("red".utf8), flags: 0, following: true)
        try fs.chmod("file", 0o477)
        try expect(EACCES) { try fs.setxattr("file", "user.colour", [], flags: 0, following: true) }
        try expect(EACCES) { try fs.truncate("file", 0) }
      }
    },
    Case("a folder that its owner may not search hides what was seen in it, at once") { fs in
      try fs.mkdir("folder")
      try fs.mkdir("folder/child")
      try fs.put("folder/file", "text")
      try fs.put("folder/child/file", "text")
      try fs.chmod("folder/child", 0o777)
      try asOwner(of: "folder", fs) { fs in
        for round in 0..<20 {
          let open = try fs.open("folder/file", O_RDONLY)
          _ = try fs.stat("folder/child/file")
          try expect(ENOENT) { try fs.lstat("folder/nothing") }
          try fs.chmod("folder", round % 2 == 0 ? 0o677 : 0o600)
          try expect(EACCES) { try fs.lstat("folder/file") }
          try expect(EACCES) { try fs.open("folder/file", O_RDONLY) }
          try expect(EACCES) { try fs.lstat("folder/nothing") }
          try expect(EACCES) { try fs.stat("folder/child/file") }
          try expect(EACCES) { try fs.put("folder/new") }
          try expect(EACCES) { try fs.unlink("folder/file") }
          try expect(EACCES) { try fs.rename("folder/file", "folder/other") }
          try expect(EACCES) { try fs.access("folder", X_OK) }
          // Its entries cannot be looked at, either.
          try expect(Set(fs.names("folder")), is: ["child", "file"], "the listing")
          try expect(EACCES) { try fs.lstat("folder/file") }
          try expect(open.pread(4, at: 0), is: Array("text".utf8), "contents by a handle")
          try open.close()
          try fs.chmod("folder", 0o300)
          try expect(EACCES) { try fs.openFolder("folder") }
          try expect(fs.text("folder/file"), is: "text", "contents")
          try fs.chmod("folder", 0o500)
          try expect(EACCES) { try fs.put("folder/new") }
          try expect(EACCES) { try fs.unlink("folder/file") }
          try fs.chmod("folder", 0o700)
        }
      }
    },
    Case("a program that may only be executed runs, and one that its owner may not execute does not", needs: .kernel) {
      fs in
      try fs.put("program", try PlainDirectory(root: "/usr/bin", features: []).contents("true"), mode: 0o755)
      let path = fs.absolutePath("program")!
      try asOwner(of: "program", fs) { fs in
        try fs.chmod("program", 0o111)
        try expect(runProgram(path), is: 0, "exit status")
        try expect(EACCES) { try fs.open("program", O_RDONLY) }
        try fs.chmod("program", 0o611)
        try expect(runProgram(path), is: -EACCES, "running without the owner's bit")
      }
    },
    Case("executing needs an execute bit, for root too", needs: [.kernel, .descriptors]) { fs in
      try fs.put("program", "#!/bin/sh\nexit 7\n")
      let path = fs.absolutePath("program")!
      try expect(runProgram(path), is: -EACCES, "running without the bit")
      try fs.chmod("program", 0o755)
      try expect(runProgram(path), is: 7, "exit status")
    },
  ]

  static let setIdBits: [Case] = [
    Case("a write by another user clears set-id bits", needs: .root) { fs in
      for (mode, left): (UInt32, UInt32) in [(0o6777, 0o777), (0o4666, 0o666), (0o2776, 0o776)] {
        try fs.put("file", "text")
        try fs.chmod("file", mode)
        try fs.acting(as: Credentials(user: bob)) { fs in
          let file = try fs.open("file", O_WRONLY)
          try file.pwriteAll(Array("T".utf8), at: 0)
          try file.close()
        }
        try expect(fs.lstat("file").mode, is: left, "mode after writing to one of \(String(mode, radix: 8))")
      }
    },
    Case("a truncation by another user clears set-id bits", needs: .root) { fs in
      try fs.put("file", "text")
      try fs.chmod("file", 0o6777)
      try fs.acting(as: Credentials(user: bob)) { fs in try fs.truncate("file", 1) }
      try expect(fs.lstat("file").mode, is: 0o777, "mode")
    },
    Case("a change by who is not in the group clears a set-group bit without execute", needs: .root) { fs in
      for change in ["write", "append", "truncate", "ftruncate", "allocate", "punch", "copy"] {
        try fs.put("file", "text")
        try fs.chown("file", user: nil, group: 2000)
        for (groups, left): ([gid_t], UInt32) in [([2000], 0o2666), ([], 0o666)] {
          try fs.chmod("file", 0o2666)
          try fs.acting(as: Credentials(user: bob, otherGroups: groups)) { fs in
            if change == "truncate" { return try fs.truncate("file", 1) }
            let file = try fs.open("file", O_RDWR | (change == "append" ? O_APPEND : 0))
            switch change {
            case "ftruncate": try file.truncate(2)
            case "allocate": try file.allocate(0, 0, 10_000)
            case "punch": try file.allocate(punchHole, 0, 1)
            case "copy": try expect(file.copyRange(0, to: file, 3, 1), is: 1, "bytes copied")
            default: try file.pwriteAll(Array("T".utf8), at: 0)
            }
            try file.close()
          }
          try expect(fs.lstat("file").mode, is: left, "mode after \(change), with the groups \(groups)")
        }
      }
    },
    Case("changing the ownership of a program clears set-id bits", needs: .root) { fs in
      try fs.put("program")
      try fs.chown("program", user: alice, group: alice)
      try fs.chmod("program", 0o6755)
      try fs.acting(as: Credentials(user: alice, otherGroups: [2000])) { fs in
        try fs.chown("program", user: nil, group: 2000)
      }
      try expect(fs.lstat("program").mode, is: 0o755, "mode")
      try fs.mkdir("folder")
      try fs.chmod("folder", 0o2755)
      try fs.chown("folder", user: alice, group: nil)
      try expect(fs.lstat("folder").mode, is: 0o2755, "mode of a folder")
    },
    Case("chmod by an owner outside the group drops the set-group bit", needs: .root) { fs in
      try fs.put("file")
      try fs.chown("file", user: alice, group: 2000)
      try fs.acting(as: Credentials(user: alice)) { fs in try fs.chmod("file", 0o2755) }
      try expect(fs.lstat("file").mode, is: 0o755, "mode")
      try fs.acting(as: Credentials(user: alice, otherGroups: [2000])) { fs in try fs.chmod("file", 0o2755) }
      try expect(fs.lstat("file").mode, is: 0o2755, "mode by a member")
    },
    Case("a set-group folder gives its group to what is made in it, and the bit to folders", needs: .root) { fs in
      try fs.mkdir("folder")
      try fs.chown("folder", user: nil, group: 2000)
      try fs.chmod("folder", 0o2777)
      try fs.acting(as: Credentials(user: bob)) { fs in
        try fs.put("folder/file")
        try fs.mkdir("folder/child")
        try fs.symlink("t", at: "folder/link")
      }
      try expect(fs.lstat("folder/file").group, is: 2000, "group of the file")
      try expect(fs.lstat("folder/child").group, is: 2000, "group of the folder")
      try expect(fs.lstat("folder/child").mode, is: 0o2755, "mode of the folder")
      try expect(fs.lstat("folder/link").group, is: 2000, "group of the link")
      try expect(fs.lstat("folder/file").owner, is: bob, "owner")
    },
    Case("the owner's own write clears the set-user bit unless it is root's", needs: .root) { fs in
      try fs.put("file", "text")
      try fs.chmod("file", 0o4755)
      let file = try fs.open("file", O_WRONLY)
      try file.pwriteAll([1], at: 0)
      try file.close()
      try expect(fs.lstat("file").mode, is: 0o4755, "mode after root's write")
      try fs.chown("file", user: alice, group: alice)
      try fs.chmod("file", 0o4755)
      try fs.acting(as: Credentials(user: alice)) { fs in
        let file = try fs.open("file", O_WRONLY)
        try file.pwriteAll([2], at: 0)
        try file.close()
      }
      try expect(fs.lstat("file").mode, is: 0o755, "mode after the owner's write")
    },
  ]
}

private func attempt(
  _ fs: any FileSystem, _ caller: Credentials, _ path: Path, reads: Bool, writes: Bool, line: UInt = #line
) throws {
  try fs.acting(as: caller) { fs in
    for (flags, allowed) in [(O_RDONLY, reads), (O_WRONLY, writes), (O_RDWR, reads && writes)] {
      if allowed {
        try fs.open(path, flags).close()
      } else {
        try expect(EACCES, line: line) { try fs.open(path, flags) }
      }
    }
  }
}

/// Runs `body` as the owner of a file, a user other than root, who may do everything.
private func asOwner(
  of path: Path, _ fs: any FileSystem, _ body: @escaping @Sendable (any FileSystem) throws -> Void
) throws {
  guard fs.features.contains(.root) else { return try body(fs) }
  try fs.chown(path, user: alice, group: alice)
  try fs.acting(as: Credentials(user: alice), body)
}
