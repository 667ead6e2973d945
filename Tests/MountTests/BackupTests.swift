import Foundation
import MountKit
import Testing

/// `sheaf backup`, and what is said of a library that is damaged.
@Suite(.serialized) struct BackupTests {
  @Test(.enabled(if: TestUser.isRoot, "a disk of its own needs root"))
  func aFullDiskOfTheCopyIsNamed() throws {
    try withMount { library in
      let disk = try LoopFileSystem(below: library.folder, mebibytes: 8)
      defer { disk.detach() }
      try library.shell("head -c 20000000 /dev/urandom > large")
      let copy = "\(disk.mountpoint)/copy.sqlite"
      let before = try FileManager.default.contentsOfDirectory(atPath: disk.mountpoint)
      let output = try library.sheaf("backup", copy, "--library", library.library)
      #expect(output.status == 1)
      #expect(output.errorText.contains("\(copy): no space left on the disk of the copy"), "\(output)")
      #expect(!output.errorText.contains(library.library))
      #expect(try FileManager.default.contentsOfDirectory(atPath: disk.mountpoint) == before)
      try library.sheafSucceeds("backup", "\(library.folder.path)/copy.sqlite", "--library", library.library)
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "a disk of its own needs root"))
  func aBackupOnADiskThatCannotBeWrittenSaysWhatToDo() throws {
    try withMount { library in
      let disk = try LoopFileSystem(below: library.folder, mebibytes: 64)
      defer { disk.detach() }
      try library.shell("echo text > document")
      let copy = "\(disk.mountpoint)/copy.sqlite"
      try library.sheafSucceeds("backup", copy, "--library", library.library)
      try Command(["mount", "-o", "remount,ro", disk.mountpoint]).succeed()
      let place = try library.folder.folder("place")
      for command in [["mount", place, "--read-only"], ["check"], ["status"]] {
        let output = try SheafProgram.run(command + ["--library", copy])
        #expect(output.status == 1, "\(output)")
        #expect(
          output.errorText.contains("\(copy): is on a disk that is mounted read-only; copy the file"), "\(output)")
      }
      let other = "\(library.folder.path)/other.sqlite"
      try Command(["cp", copy, other]).succeed()
      try library.sheafSucceeds("check", "--library", other)
    }
  }

  /// What is in the way beside a library, or beside a copy that is being made, is what the error names.
  @Test func aLinkInTheWayIsNamed() throws {
    try withMount { library in
      try library.shell("echo text > document")
      let place = try library.folder.folder("place", for: library.user)
      let mountpoint = try library.folder.folder("second", for: library.user)
      let (copy, target) = ("\(place)/copy.sqlite", "\(place)/target")
      let part = copy + ".sheaf-part"
      #expect(symlink(target, part) == 0)
      let refused = try library.sheaf("backup", copy, "--library", library.library)
      #expect(
        refused.status == 1 && refused.errorText.contains("\(part): is a symbolic link; take it away"), "\(refused)")
      #expect(unlink(part) == 0 && access(copy, F_OK) != 0 && access(target, F_OK) != 0)
      let whole = "\(place)/whole.sqlite"
      try library.sheafSucceeds("backup", whole, "--library", library.library)
      for suffix in ["-socket", "-lock", "-wal", "-journal", "-shm", "-log"] {
        try library.shell("rm -f '\(copy)'*; cp '\(whole)' '\(copy)'; ln -s '\(target)' '\(copy)\(suffix)'")
        let refused = try library.sheaf("mount", mountpoint, "--library", copy, "--as", library.handle)
        #expect(
          refused.status == 1 && refused.errorText.contains("\(copy)\(suffix): is a symbolic link; take it away"),
          "\(refused)")
        #expect(unlink(copy + suffix) == 0 && access(target, F_OK) != 0)
      }
      try library.sheafSucceeds("mount", mountpoint, "--library", copy, "--as", library.handle)
      try library.sheafSucceeds("unmount", mountpoint)
    }
  }

  @Test func aDamagedLibrarySaysWhatToDo() throws {
    let library = try MountedLibrary()
    defer { try? library.tearDown() }
    try library.mount()
    try library.shell("for i in $(seq 200); do mkdir folder$i; done")
    try library.unmount()
    // All pages but the first: the file is a library by its header.
    try Command.shell(
      "size=$(stat -c %s '\(library.library)'); head -c $((size - 4096)) /dev/urandom | "
        + "dd of='\(library.library)' bs=4096 seek=1 conv=notrunc 2>&1"
    ).succeed()
    for command in ["status", "check"] {
      let output = try library.sheaf(command, "--library", library.library)
      #expect(output.status == 1, "\(output)")
      #expect(output.errorText.contains("is damaged") && output.errorText.contains("last backup"), "\(output)")
    }
    #expect(try library.tryMount().errorText.contains("last backup"))
  }
}
