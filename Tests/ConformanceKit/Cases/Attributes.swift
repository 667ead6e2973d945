import CTestSystem
import Glibc

let onlyCreate: Int32 = 1  // XATTR_CREATE
let onlyReplace: Int32 = 2  // XATTR_REPLACE

extension Case {
  static let attributes: [Case] = [
    Case("extended attributes are set, read, listed, replaced and removed") { fs in
      try fs.put("file")
      try fs.setxattr("file", "user.one", Array("first".utf8))
      try fs.setxattr("file", "user.two", [0, 255, 10])
      try expect(fs.getxattr("file", "user.one"), is: Array("first".utf8), "value")
      try expect(fs.getxattr("file", "user.two"), is: [0, 255, 10], "binary value")
      try expect(fs.ownAttributes("file"), is: ["user.one", "user.two"], "the list")
      try fs.setxattr("file", "user.one", Array("a longer second".utf8))
      try expect(fs.getxattr("file", "user.one"), is: Array("a longer second".utf8), "replaced value")
      try fs.removexattr("file", "user.one")
      try expect(fs.ownAttributes("file"), is: ["user.two"], "the list afterwards")
      try expect(ENODATA) { try fs.getxattr("file", "user.one") }
    },
    Case("folders bear extended attributes too") { fs in
      try fs.mkdir("folder")
      try fs.setxattr("folder", "user.note", Array("text".utf8))
      try expect(fs.getxattr("folder", "user.note"), is: Array("text".utf8), "value")
      try fs.rename("folder", "moved")
      try expect(fs.ownAttributes("moved"), is: ["user.note"], "the list after a rename")
    },
    Case("XATTR_CREATE refuses what exists, XATTR_REPLACE what does not") { fs in
      try fs.put("file")
      try expect(ENODATA) { try fs.setxattr("file", "user.a", [1], flags: onlyReplace) }
      try fs.setxattr("file", "user.a", [1], flags: onlyCreate)
      try expect(EEXIST) { try fs.setxattr("file", "user.a", [2], flags: onlyCreate) }
      try expect(fs.getxattr("file", "user.a"), is: [1], "value")
      try fs.setxattr("file", "user.a", [3], flags: onlyReplace)
      try expect(fs.getxattr("file", "user.a"), is: [3], "replaced value")
    },
    Case("reading or removing what is not there fails with ENODATA") { fs in
      try fs.put("file")
      try expect(ENODATA) { try fs.getxattr("file", "user.none") }
      try expect(ENODATA) { try fs.removexattr("file", "user.none") }
    },
    Case("an empty value is a value") { fs in
      try fs.put("file")
      try fs.setxattr("file", "user.empty", [])
      try expect(fs.getxattr("file", "user.empty"), is: [], "value")
      try expect(fs.ownAttributes("file"), is: ["user.empty"], "the list")
    },
    Case("names of 255 bytes and of odd bytes work, longer ones fail with ERANGE", needs: .kernel) { fs in
      try fs.put("file")
      let long = Path("user." + String(repeating: "n", count: 250))
      let odd = Path(Array("user.".utf8) + [0xFF, 0x20, 0x0A, 0xC3])
      try fs.setxattr("file", long, [1])
      try fs.setxattr("file", odd, [2])
      try expect(fs.getxattr("file", long), is: [1], "value of the long name")
      try expect(fs.getxattr("file", odd), is: [2], "value of the odd name")
      try expect(Set(fs.ownAttributes("file")), is: [long, odd], "the list")
      try expect(ERANGE) { try fs.setxattr("file", Path(long.bytes + [65]), [1]) }
    },
    Case("a buffer too small fails with ERANGE, none asks for the size", needs: [.kernel, .descriptors]) { fs in
      try fs.put("file")
      try fs.setxattr("file", "user.a", [1, 2, 3, 4, 5])
      let file = try fs.open("file", O_RDONLY)
      var buffer = [UInt8](repeating: 0, count: 4)
      try expect(fgetxattr(file.descriptor!, "user.a", nil, 0), is: 5, "size")
      try expect(fgetxattr(file.descriptor!, "user.a", &buffer, 4) == -1 && errno == ERANGE, "no ERANGE from get")
      let listSize = flistxattr(file.descriptor!, nil, 0)
      try expect(listSize >= 7, "the list's size is \(listSize)")
      var characters = [CChar](repeating: 0, count: 3)
      try expect(flistxattr(file.descriptor!, &characters, 3) == -1 && errno == ERANGE, "no ERANGE from list")
      try file.close()
    },
    Case("attributes by the handle and by the path are the same") { fs in
      let file = try fs.open("file", O_RDWR | O_CREAT)
      try file.setxattr("user.a", [9], flags: 0)
      try expect(fs.getxattr("file", "user.a"), is: [9], "value by path")
      try fs.setxattr("file", "user.a", [8])
      try expect(file.getxattr("user.a"), is: [8], "value by handle")
      try fs.unlink("file")
      try expect(file.getxattr("user.a"), is: [8], "value after the name is gone")
      try file.close()
    },
    Case("a value of 64 KiB holds, one byte more fails with E2BIG", needs: [.kernel, .largeAttributes]) { fs in
      try fs.put("file")
      let value = pattern(65_536)
      try fs.setxattr("file", "user.large", value)
      try expect(fs.getxattr("file", "user.large") == value, "the value differs")
      try expect(E2BIG) { try fs.setxattr("file", "user.large", value + [0]) }
      try expect(fs.getxattr("file", "user.large") == value, "the value differs afterwards")
    },
    Case("many attributes fit one file") { fs in
      try fs.put("file")
      let names = (0..<40).map { Path("user.number.\($0)") }
      for name in names { try fs.setxattr("file", name, name.bytes) }
      try expect(Set(fs.ownAttributes("file")), is: Set(names), "the list")
      for name in names { try expect(fs.getxattr("file", name), is: name.bytes, "value of \(name)") }
    },
    Case("writing and truncating leave attributes alone") { fs in
      try fs.put("file", "text")
      try fs.setxattr("file", "user.a", [1])
      try fs.put("file", "new text")
      try fs.truncate("file", 0)
      try expect(fs.ownAttributes("file"), is: ["user.a"], "the list")
    },
    Case("user attributes of symbolic links and fifos are refused with EPERM", needs: .kernel) { fs in
      try fs.symlink("target", at: "link")
      try fs.mknod("fifo", mode: S_IFIFO | 0o600, device: 0)
      try expect(EPERM) { try fs.setxattr("link", "user.a", [1], flags: 0, following: false) }
      try expect(ENODATA, EPERM) { try fs.getxattr("link", "user.a", following: false) }
      try expect(EPERM) { try fs.setxattr("fifo", "user.a", [1]) }
    },
    Case("unknown namespaces fail with EOPNOTSUPP", needs: .kernel) { fs in
      try fs.put("file")
      try expect(EOPNOTSUPP) { try fs.setxattr("file", "nonsense.a", [1]) }
      try expect(EOPNOTSUPP) { try fs.getxattr("file", "nonsense.a") }
      try expect(EOPNOTSUPP, EINVAL) { try fs.setxattr("file", "user.", [1]) }
    },
    Case("trusted attributes are root's", needs: .root) { fs in
      try fs.put("file")
      try fs.chmod("file", 0o666)
      try fs.setxattr("file", "trusted.a", [1])
      try expect(fs.getxattr("file", "trusted.a"), is: [1], "value")
      try fs.acting(as: Credentials(user: 65_534)) { fs in
        try expect(EPERM) { try fs.setxattr("file", "trusted.a", [2]) }
        try expect(ENODATA) { try fs.getxattr("file", "trusted.a") }
      }
      try fs.removexattr("file", "trusted.a")
    },
    Case("asking for access control lists answers cleanly", needs: .kernel) { fs in
      try fs.put("file")
      try expect(ENODATA, EOPNOTSUPP) { try fs.getxattr("file", "system.posix_acl_access") }
      try fs.mkdir("folder")
      try expect(ENODATA, EOPNOTSUPP) { try fs.getxattr("folder", "system.posix_acl_default") }
    },
    Case("attributes need permission to read and write", needs: .root) { fs in
      try fs.put("file", mode: 0o604)
      try fs.setxattr("file", "user.a", [1])
      try fs.acting(as: Credentials(user: 65_534)) { fs in
        try expect(fs.getxattr("file", "user.a"), is: [1], "value")
        try expect(EACCES) { try fs.setxattr("file", "user.a", [2]) }
        try expect(EACCES) { try fs.removexattr("file", "user.a") }
      }
      try fs.chmod("file", 0o602)
      try fs.acting(as: Credentials(user: 65_534)) { fs in
        try expect(EACCES) { try fs.getxattr("file", "user.a") }
        try fs.setxattr("file", "user.a", [3])
      }
    },
  ]
}
