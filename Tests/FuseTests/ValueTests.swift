import Glibc
import Testing

@testable import Fuse

struct ValueTests {
  @Test func namesThatAreNotTextStayApart() {
    #expect(FileName("ü.txt").description == "ü.txt")
    #expect(FileName([0x61, 0xff]).description == #"a\xff"#)
    #expect(FileName(#"a\xff"#).description == #"a\x5cxff"#)
    #expect(FileName("a\n").description == #"a\x0a"#)
    #expect(FileName([0x61, 0, 0x62]) == "a")
    #expect(FileName([0xff]).string == nil)
    #expect(FileName("..").isDotDot && !FileName("..").isDot && FileName(".").isDot)
  }

  @Test(arguments: [
    ("6.16.0", true), ("6.18.2-1-amd64", true), ("6.16-rc1", true), ("7.0", true), ("10.1.3", true), ("6.15.9", false),
    ("5.19.1", false), ("6.1.0-28-amd64", false), ("", false), ("6", false), ("x.y", false),
  ]) func releasesAreCompared(_ release: String, _ isLateEnough: Bool) {
    #expect(KernelRelease.isRelease(release, atLeast: 6, 16) == isLateEnough)
  }

  @Test func flagsOfOpen() {
    #expect(OpenFlags(rawValue: 0).isReadable && !OpenFlags(rawValue: 0).isWritable)
    #expect(!OpenFlags(rawValue: 1).isReadable && OpenFlags(rawValue: 1).isWritable)
    #expect(OpenFlags(rawValue: 2).isReadable && OpenFlags(rawValue: 2).isWritable)
    #expect(OpenFlags(rawValue: 0o1001).truncates && OpenFlags(rawValue: 0o2001).appends)
  }

  @Test func directoryBufferRefusesWhatDoesNotFit() {
    // An entry of a one-byte name is 24 bytes and the name, in steps of 8.
    var buffer = DirectoryBuffer(capacity: 64)
    let node = NodeID(rawValue: 7)
    let added = ["a", "b", "c"].map { buffer.add(FileName($0), node: node, mode: 0o100644, next: 1 << 62) }
    #expect(added == [true, true, false])
    #expect(buffer.storage.filled.count == 64)
    var empty = DirectoryPlusBuffer(capacity: 100)
    let entry = Entry(node: node, attributes: FileAttributes(node: node, mode: 0o100644))
    let fits = empty.add("a", entry, next: 1)
    #expect(!fits)
    #expect(empty.storage.filled.isEmpty)
  }

  @Test func mountOptionsAreEscaped() {
    var options = SessionOptions(source: #"a,b\c"#)
    options.readOnly = true
    options.extra = ["noatime"]
    #expect(
      options.arguments == [
        "sheaf", "-o", #"fsname=a\,b\\c"#, "-o", "subtype=sheaf", "-o", "default_permissions", "-o", "ro", "-o",
        "noatime",
      ])
  }

  @Test func locksOfAnyNumbersAreRanges() {
    func range(_ start: Int64, _ length: Int64) -> ClosedRange<Int64> {
      var lock = Glibc.flock()
      (lock.l_start, lock.l_len) = (off_t(start), off_t(length))
      return FileLock(lock).range
    }
    #expect(range(3, 4) == 3...6)
    #expect(range(3, 0) == 3...Int64.max)
    for (start, length) in [(0, Int64.min), (3, -1), (.max, .max), (.max, 0), (1, .max)] as [(Int64, Int64)] {
      #expect(range(start, length) == start...Int64.max)
    }
    #expect(range(.min, 5) == 0...4)
    #expect(range(.max, 1) == Int64.max...Int64.max)
    #expect(FileLock(FileLock(.shared, 0...Int64.max, process: 1).flock).range == 0...Int64.max)
    #expect(FileLock(FileLock(.shared, 7...(Int64.max - 1), process: 1).flock).range == 7...(Int64.max - 1))
  }

  @Test func errorsHaveWords() {
    #expect(Errno.noSpace.description == "No space left on device")
    #expect("\(MountError(mountpoint: "/mnt", reason: "why"))" == "/mnt: why")
  }
}
