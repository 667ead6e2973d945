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

  /// The process would wait for itself, and everybody for it.
  @Test func aCopyInTheLibrarysOwnMountIsRefused() throws {
    try withMount { library in
      try library.shell("mkdir folder && echo text > document")
      let bound = try library.folder.folder("bound")
      let isBound = TestUser.isRoot
      if isBound { try Command(["mount", "--bind", "\(library.documents)/folder", bound]).succeed() }
      defer { if isBound { _ = try? Command(["umount", bound]).run() } }
      let places = [library.mountpoint, library.documents, "\(library.documents)/folder"] + (isBound ? [bound] : [])
      for place in places {
        let refused = try library.sheaf(
          "backup", "\(place)/copy.sqlite", "--library", library.library, limit: .seconds(20))
        #expect(refused.status == 1 && refused.errorText.contains("is in a mount of the library itself"), "\(refused)")
      }
      #expect(try library.shell("ls -A . folder; cat document").text == ".:\ndocument\nfolder\n\nfolder:\ntext")
      try library.sheafSucceeds("backup", "\(library.folder.path)/copy.sqlite", "--library", library.library)
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "a disk of its own needs root"))
  func aBackupOnADiskThatCannotBeWrittenIsMountedAndChecked() throws {
    try withMount { library in
      let disk = try LoopFileSystem(below: library.folder, mebibytes: 64)
      defer { disk.detach() }
      try library.shell("echo text > document")
      let copy = "\(disk.mountpoint)/copy.sqlite"
      try library.sheafSucceeds("backup", copy, "--library", library.library)
      let notes = "\(disk.mountpoint)/notes"
      try "notes of mine".write(toFile: notes, atomically: false, encoding: .utf8)
      try Command(["mount", "-o", "remount,ro", disk.mountpoint]).succeed()
      let place = try library.folder.folder("place")
      for command in [["mount", place], ["status"], ["versions", "Documents/document"]] {
        let output = try SheafProgram.run(command + ["--library", copy])
        #expect(output.status == 1, "\(output)")
        #expect(
          output.errorText.contains("\(copy): is on a disk that is mounted read-only; mount it with"), "\(output)")
      }
      let before = try FileManager.default.contentsOfDirectory(atPath: disk.mountpoint)
      let temporary = try library.folder.folder("temporary")
      try readsCopy(copy, place, temporary)
      // Nobody knows the copy, so errors name what was given.
      for command in [["check"], ["mount", place, "--read-only"]] {
        let output = try SheafProgram.run(command + ["--library", notes], environment: ["TMPDIR": temporary])
        #expect(output.status == 1 && output.errorText.contains("\(notes): is not a library of Sheaf"), "\(output)")
        #expect(!output.errorText.contains(temporary), "\(output)")
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: disk.mountpoint) == before)
      // A file of a disk that can be written, which cannot be changed itself.
      let fixed = "\(library.folder.path)/fixed.sqlite"
      try Command(["cp", copy, fixed]).succeed()
      guard try Command(["chattr", "+i", fixed]).run().status == 0 else { return }
      defer { _ = try? Command(["chattr", "-i", fixed]).run() }
      try readsCopy(fixed, place, temporary)
    }
  }

  /// One that its owner has protected, and one in a folder of somebody else.
  @Test(.enabled(if: TestUser.isRoot, "another user needs root"))
  func aBackupThatMayOnlyBeReadIsMountedAndChecked() throws {
    let user = try TestUser.ordinary()
    try withMount(as: user) { library in
      try library.shell("echo text > document")
      let own = try library.folder.folder("own", for: user)
      let foreign = try library.folder.folder("foreign")
      let place = try library.folder.folder("place", for: user)
      let temporary = try library.folder.folder("temporary", for: user)
      let copy = "\(own)/copy.sqlite"
      try library.sheafSucceeds("backup", copy, "--library", library.library)
      chmod(copy, 0o444)
      try Command(["cp", copy, "\(foreign)/copy.sqlite"]).succeed()
      for (folder, copy) in [(own, copy), (foreign, "\(foreign)/copy.sqlite")] {
        let before = try Data(contentsOf: URL(fileURLWithPath: copy))
        try readsCopy(copy, place, temporary, as: user)
        #expect(try Data(contentsOf: URL(fileURLWithPath: copy)) == before)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["copy.sqlite"])
      }
    }
  }

  /// Checks a library that cannot be changed, and mounts it: as a copy that is gone afterwards.
  private func readsCopy(
    _ library: String, _ place: String, _ temporary: String, as user: TestUser? = nil
  ) throws {
    func sheaf(_ arguments: String...) throws -> Command.Output {
      try SheafProgram.run(arguments, as: user, environment: ["TMPDIR": temporary])
    }
    let check = try sheaf("check", "--library", library)
    #expect(check.status == 0 && check.text.hasPrefix("Sound: "), "\(check)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: temporary) == [])
    let mounted = try sheaf("mount", place, "--read-only", "--library", library)
    #expect(mounted.status == 0 && mounted.text.contains("Mounted \(library) at \(place)"), "\(mounted)")
    #expect(try Command(["cat", "\(place)/Documents/document"], as: user).run().text == "text")
    #expect(try sheaf("versions", "\(place)/Documents/document").status == 0)
    #expect(try Command(["touch", "\(place)/Documents/other"], as: user).run().status != 0)
    #expect(try sheaf("unmount", place).text == "Unmounted \(place).")
    try eventually("that the copy is gone", within: .seconds(20)) {
      try FileManager.default.contentsOfDirectory(atPath: temporary) == []
    }
    // What cannot be mounted leaves nothing behind either.
    #expect(try sheaf("mount", place, "--read-only", "--library", library, "--as", "nobody@example.com").status == 1)
    #expect(try FileManager.default.contentsOfDirectory(atPath: temporary) == [])
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

  /// What can be read of a library of which a page in the middle is lost comes to a new one.
  @Test func aDamagedLibraryIsRepaired() throws {
    let library = try MountedLibrary()
    defer { try? library.tearDown() }
    try library.mount()
    try library.shell(
      """
      for i in $(seq 200); do mkdir -p folder$((i % 7)); head -c 3000 /dev/urandom > folder$((i % 7))/doc$i; done
      echo one > letter; echo two > letter; "$SHEAF" label letter first --version 1
      """)
    let busy = try library.sheaf("repair", library.library)
    #expect(busy.status == 1 && busy.errorText.contains("is in use by process"), "\(busy)")
    let id = try library.attribute("user.sheaf.id", of: "letter")
    try library.unmount()
    let saved = "\(library.folder.path)/saved.sqlite"
    let whole = try library.sheaf("repair", library.library, "--to", saved)
    #expect(whole.status == 0 && whole.text.hasSuffix("Nothing is lost."), "\(whole)")
    let status = try library.sheaf("status", "Documents/letter", "--library", saved).text
    #expect(status.contains(id), "\(status)")
    #expect(try library.sheaf("show", "Documents/letter", "--version", "first", "--library", saved).text == "one")
    let twice = try library.sheaf("repair", library.library, "--to", saved)
    #expect(twice.status == 1 && twice.errorText.contains("is there already"), "\(twice)")
    let size = try Int(Command(["stat", "-c", "%s", library.library]).succeed().text) ?? 0
    #expect(size > 40 * 4096)
    try Command.shell(
      "head -c 8192 /dev/urandom | dd of='\(library.library)' bs=4096 seek=\(size / 8192) conv=notrunc 2>&1"
    ).succeed()
    let before = try Command(["sha256sum", library.library]).succeed().text
    let repaired = try library.sheaf("repair", library.library)
    #expect(repaired.status == 0 && repaired.text.contains("Lost: "), "\(repaired)")
    #expect(try Command(["sha256sum", library.library]).succeed().text == before)
    let place = library.library.replacingOccurrences(of: ".sqlite", with: "-repaired.sqlite")
    #expect(try library.sheaf("check", "--library", place).text.hasPrefix("Sound: "))
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
      #expect(output.errorText.contains("sheaf repair \(library.library)"), "\(output)")
    }
    #expect(try library.tryMount().errorText.contains("last backup"))
  }
}
