import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// The disk with the library fills up: what does not fit fails with ENOSPC, everything else goes on.
@Suite(.serialized, .enabled(if: TestUser.isRoot, "a small disk needs root"))
struct FullDiskTests {
  @Test func aFullDiskLosesNothingAndCanBeFreed() throws {
    try withSmallDisk { library, disk in
      try library.shell("echo precious > old; mkdir folder; seq 10000 > folder/numbers")
      let filled = try fill(library.documents)
      #expect(filled.count > 5, "the disk was full after \(filled.count) files")
      #expect(try library.shell("cat old; seq 10000 | cmp - folder/numbers").text == "precious")
      for (number, contents) in filled.enumerated() {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(library.documents)/fill-\(number)"))
        let isWhole = Array(bytes) == contents.bytes
        #expect(isWhole, "fill-\(number) was closed without an error and differs")
      }
      // Truthful: nothing is left.
      #expect(try available(library.documents) < 4 << 20)

      // Nothing half done: the failed document is whole, as it was, or not there.
      let refused = try Command.shell("head -c 5000000 /dev/urandom > old", in: library.documents).run()
      #expect(refused.errorText.contains("No space left on device"), "\(refused)")
      let shown = try library.sheaf("show", "\(library.documents)/old", "--version", "1")
      #expect(shown.text == "precious", "\(shown)")

      let before = try available(library.documents)
      try library.shell("rm fill-0 fill-1 fill-2")
      for number in 0..<3 { try library.sheafSucceeds("purge", "\(library.documents)/fill-\(number)", "--yes") }
      try library.sheafSucceeds("compact", "--library", library.library)
      // Half of it, since what is written takes room in the log before it takes room in the file.
      let gained = try available(library.documents) - before
      #expect(gained > 5 << 19, "purging three files of 2 MiB gave \(gained) bytes back")
      try library.shell("head -c 3000000 /dev/urandom > new; sync new; echo again > old; cat old")
      try library.unmount()
      #expect(try library.check() == [])
      try library.mount()
      #expect(try library.shell("cat old; stat -c %s new").text == "again\n3000000")
    }
  }

  /// Saves documents f0, f1 and so on of so many random bytes until the disk is full; returns how many.
  private func fill(_ library: MountedLibrary, bytes: Int) throws -> Int {
    let script = """
      import os
      number = 0
      try:
          while True:
              with open(f"f{number}", "wb", buffering=0) as file: file.write(os.urandom(\(bytes)))
              number += 1
      except OSError:
          print(number)
      """
    let output = try Command(["/usr/bin/python3", "-c", script], in: library.documents, limit: .seconds(300)).succeed()
    return try #require(Int(output.text))
  }

  /// However many documents filled the disk, each can be removed, one after the other; the log of that does not take up
  /// the room that is needed to copy it. Then the trash can be emptied, also by the next process.
  @Test(arguments: [(48, false), (48, true), (260, false)])
  func allOfAFullDiskCanBeRemoved(mebibytes: Int, kills: Bool) throws {
    try withSmallDisk(mebibytes: mebibytes) { library, disk in
      // As fast as it goes: the log does not grow to half of the disk meanwhile.
      let count = try fill(library, bytes: 100_000)
      #expect(count > mebibytes * 11 / 2, "\(count) documents of 100 kB fill a disk of \(mebibytes) MiB")
      try library.shell("seq 0 \(count - 1) | sed s/^/f/ | xargs -n 10 rm")
      if kills { try library.killServer() } else { try library.unmount() }
      try library.mount()
      let purged = try library.sheafSucceeds("purge", "--deleted", "--yes", "--library", library.library).text
      #expect(
        purged.contains("Destroyed \(count) deleted items") || purged.contains("Destroyed \(count + 1)"), "\(purged)")
      let left = try available(library.documents)
      #expect(left > mebibytes * (1 << 20) / 3, "\(left) bytes are free after \(count) documents of 100 kB were purged")
      try library.shell("head -c 3000000 /dev/urandom > new; sync new")
      #expect(try library.check() == [])
    }
  }

  /// Another program took the rest of the disk. Documents can be removed as long as the trash can then be emptied, and
  /// that makes room for all others; nothing gets stuck in between.
  @Test func removingLeavesRoomToEmptyTheTrash() throws {
    try withSmallDisk(mebibytes: 24) { library, disk in
      func remove(from first: Int) throws -> Int {
        let script = """
          import os, sys
          number = int(sys.argv[1])
          try:
              while True:
                  os.unlink(f"f{number}")
                  number += 1
          except FileNotFoundError: pass
          except OSError as error: assert error.errno == 28, error
          print(number)
          """
        let output = try Command(["/usr/bin/python3", "-c", script, "\(first)"], in: library.documents).succeed()
        return try #require(Int(output.text))
      }
      let count = try fill(library, bytes: 3_000)
      try takeTheRest(of: disk)
      var removed = try remove(from: 0)
      #expect(removed > 500, "of \(count)")
      for _ in 0..<20 where removed < count {
        try library.sheafSucceeds("purge", "--deleted", "--yes", "--library", library.library)
        let next = try remove(from: removed)
        #expect(next > removed, "stuck at \(removed) of \(count)")
        removed = next
      }
      #expect(removed >= count)
      try library.sheafSucceeds("purge", "--deleted", "--yes", "--library", library.library)
      try library.sheafSucceeds("compact", "--library", library.library)
      try library.shell("head -c 3000000 /dev/urandom > new; sync new")
      try library.unmount()
      #expect(try library.check() == [])
    }
  }

  @Test func aFullDiskSurvivesAKillAndMountsAgain() throws {
    try withSmallDisk { library, disk in
      try library.shell("echo precious > old")
      let filled = try fill(library.documents)
      try library.killServer()
      try library.mount()
      #expect(try library.shell("cat old").text == "precious")
      for (number, contents) in filled.enumerated() {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(library.documents)/fill-\(number)"))
        let isWhole = Array(bytes) == contents.bytes
        #expect(isWhole, "fill-\(number) differs")
      }
      #expect(try library.check() == [])
      // What was deleted can come back, so that it still takes its room: purging gives it back.
      try library.shell("rm fill-0")
      try library.sheafSucceeds("purge", "\(library.documents)/fill-0", "--yes")
      try library.sheafSucceeds("compact", "--library", library.library)
      try library.shell("echo small > old; cat old")
    }
  }

  /// What a program wrote to a file that another program replaced is kept once it is closed. Where there is no room,
  /// close(2) says so, and it waits for room.
  @Test func whatIsWrittenToAReplacedFileWaitsForRoom() throws {
    try withSmallDisk { library, disk in
      try library.shell("echo old > doc; echo new > other")
      let (written, full) = ("\(library.folder.path)/written", "\(library.folder.path)/full")
      try Command(["mkfifo", written, full]).succeed()
      let program = try BackgroundCommand(
        Command(
          [
            "/usr/bin/python3", "-c",
            """
            import os, subprocess, sys
            file = os.open("doc", os.O_RDWR)
            subprocess.run(["mv", "-f", "other", "doc"], check=True)
            os.write(file, b"x" * 3000000)
            open(sys.argv[1], "w").close(); open(sys.argv[2]).close()
            try:
                os.close(file)
            except OSError as error:
                sys.exit(0 if error.errno == 28 else 3)
            sys.exit(2)
            """, written, full,
          ], in: library.documents))
      defer { program.end() }
      try Command(["cat", written]).succeed()
      try takeTheRest(of: disk)
      try Command.shell(": > '\(full)'").succeed()
      try program.wait(limit: .seconds(60))
      let status = try library.sheafSucceeds("status", "--library", library.library)
      #expect(status.text.contains("changes of 1 document, which are kept once there is room"), "\(status)")
      #expect(access("\(library.documents)/doc (not saved)", F_OK) != 0)
      unlink("\(disk.mountpoint)/other")
      try eventually("what waited is kept", within: .seconds(60)) {
        access("\(library.documents)/doc (not saved)", F_OK) == 0
      }
      let kept = try library.shell("tr -d x < 'doc (not saved)' | wc -c; stat -c %s 'doc (not saved)'; cat doc")
      #expect(kept.text == "0\n3000000\nnew")
      #expect(try !library.sheafSucceeds("status", "--library", library.library).text.contains("Not saved"))
      try library.unmount()
      #expect(try library.check() == [])
      try library.mount()
    }
  }

  /// Nobody has to know of `sheaf compact` for that.
  @Test func whatWentWithoutATraceMakesRoomOnAFullDisk() throws {
    try withSmallDisk { library, disk in
      try library.shell(
        """
        python3 -c '
        import os
        for number in range(3):
            file = open("d.db-journal", "wb")
            file.write(os.urandom(2 << 20))
            file.close()
            os.unlink("d.db-journal")
        '
        """)
      // The last one, which is refused, is what asks for it.
      _ = try fill(library.documents)
      try eventually("what was discarded is freed", within: .seconds(60)) {
        try available(library.documents) > 3_500_000
      }
      try library.shell("head -c 3000000 /dev/urandom > new; sync new")
      try library.unmount()
      #expect(try library.check() == [])
    }
  }

  @Test(arguments: ["kill", "fail"])
  func theReserveIsReleasedSafely(_ action: String) throws {
    try withSmallDisk(environment: ["SHEAF_FAULT": "reserve.release:\(action):1"]) { library, disk in
      try library.shell("echo precious > old; echo other > other")
      _ = try fill(library.documents)
      try takeTheRest(of: disk)
      // What was changed before may have needed the reserve already, and its process be gone.
      _ = try? Command.shell("rm other", in: library.documents).run()
      // Where the log had room for it, this needs more.
      if library.server != nil { _ = try? library.sheaf("compact", "--library", library.library) }
      if action == "kill" {
        #expect(library.server == nil, "the reserve was never released")
        library.breakMount()
        try library.mount()
      }
      #expect(try library.shell("cat old").text == "precious")
      unlink("\(disk.mountpoint)/other")
      try library.shell("rm -f other fill-0 fill-1")
      for number in 0..<2 { try library.sheafSucceeds("purge", "\(library.documents)/fill-\(number)", "--yes") }
      try library.sheafSucceeds("compact", "--library", library.library)
      try library.shell("echo again > old; cat old")
      try library.unmount()
      #expect(try library.check() == [])
    }
  }

  /// - Parameter lost: what the names of files beside the library end with whose blocks someone else has taken, too.
  @Test(arguments: [true, false], [[], ["-shm"], ["-shm", "-changes"], ["-lock", "-log", "-shm"]])
  func aLibraryOpensOnADiskWithoutABlockLeft(_ isKilled: Bool, _ lost: [String]) throws {
    try withSmallDisk { library, disk in
      try library.shell("echo precious > old; seq 100000 > numbers; echo more >> old")
      if isKilled { try library.killServer() } else { try library.unmount() }
      library.breakMount()
      for suffix in lost { unlink(library.library + suffix) }
      try takeTheRest(of: disk)
      #expect(try available(disk.mountpoint) == 0)
      try library.mount()
      #expect(try library.shell("cat old").text == "precious\nmore")
      try library.shell("rm numbers")
      try library.sheafSucceeds("purge", "\(library.documents)/numbers", "--yes")
      try library.sheafSucceeds("compact", "--library", library.library)
      unlink("\(disk.mountpoint)/other")
      try library.shell("echo again > old; cat old")
      try library.unmount()
      #expect(try library.check() == [])
    }
  }

  @Test func aDiskThatSomeoneElseFillsIsNoDanger() throws {
    try withSmallDisk { library, disk in
      try library.shell("echo precious > old; seq 1000 > numbers")
      try takeTheRest(of: disk)
      let refused = try Command.shell("head -c 9000000 /dev/urandom > new", in: library.documents).run()
      #expect(refused.errorText.contains("No space left on device"), "\(refused)")
      #expect(try library.shell("cat old; rm numbers; ls").text.hasPrefix("precious"))
      unlink("\(disk.mountpoint)/other")
      try library.shell("echo again > old; cat old")
      try library.unmount()
      #expect(try library.check() == [])
    }
  }

  /// Another program takes the disk before the log, longer than the reserve, is copied into the file.
  @Test func spaceComesBackWhereTheDiskFillsUpBeforeTheLogIsCopied() throws {
    try withSmallDisk(mebibytes: 64) { library, disk in
      try library.shell("head -c 12000000 /dev/urandom > big; sync big")
      try eventually("the log is copied, and begins anew", within: .seconds(60)) {
        // `mxFrame` and `nBackfill` of the index (SQLite, WAL-mode File Format, 2.1).
        let index = [UInt8](try Data(contentsOf: URL(fileURLWithPath: library.library + "-shm")))
        guard index.count > 100 else { return false }
        let (frames, copied) = index.withUnsafeBytes {
          ($0.load(fromByteOffset: 16, as: UInt32.self), $0.load(fromByteOffset: 96, as: UInt32.self))
        }
        return copied > 12_000_000 / 4096 && copied == frames
      }
      // As a backup does, it keeps what comes next from being copied.
      let (reads, done) = ("\(library.folder.path)/reads", "\(library.folder.path)/done")
      try Command(["mkfifo", reads, done]).succeed()
      let reader = try BackgroundCommand(
        Command([
          "/usr/bin/python3", "-c",
          """
          import sqlite3, sys
          library = sqlite3.connect(sys.argv[1], isolation_level=None)
          library.execute("BEGIN")
          library.execute("SELECT count(*) FROM settings").fetchone()
          open(sys.argv[2], "w").close(); open(sys.argv[3]).close()
          """, library.library, reads, done,
        ]))
      defer { reader.end() }
      try Command(["cat", reads]).succeed()
      try library.shell("for n in $(seq 30); do head -c 200000 /dev/urandom > s$n; done")
      try takeTheRest(of: disk)
      try Command.shell(": > '\(done)'").succeed()
      try reader.wait(limit: .seconds(60))

      try library.shell("rm s1 s2")
      try library.sheafSucceeds("purge", "--deleted", "--yes", library.documents)
      try library.sheafSucceeds("purge", "--yes", "\(library.documents)/big")
      try library.sheafSucceeds("compact", "--library", library.library)
      #expect(try available(disk.mountpoint) > 12 << 20, "too little came back")
      try library.shell("rm s4")
      try library.sheafSucceeds("purge", "--deleted", "--yes", library.documents)
      try library.shell("head -c 3000000 /dev/urandom > new; sync new")
      try library.unmount()
      #expect(try library.check() == [])
    }
  }

  @Test func aLibraryThatDoesNotFitIsRefusedInOneLine() throws {
    try withTemporaryFolder { folder in
      let disk = try LoopFileSystem(below: folder, mebibytes: 48)
      defer { disk.detach() }
      try takeTheRest(of: disk)
      let library = try MountedLibrary(place: disk.mountpoint)
      let output = try library.tryMount()
      #expect(output.status == 1 && output.errorText.contains(library.library), "\(output)")
      #expect(!output.errorText.contains("\n") && !output.errorText.isEmpty, "\(output)")
      #expect(!library.isMounted)
      try library.tearDown()
      try disk.unmount()
    }
  }

  /// Writes files of 2 MiB that nothing compresses until one does not fit; what those that fit hold.
  private func fill(_ folder: String) throws -> [Contents] {
    var filled: [Contents] = []
    while filled.count < 100 {
      let contents = Contents(seed: UInt64(filled.count + 1), count: 2 << 20)
      do {
        try Action.save("fill-\(filled.count)", contents).perform(in: folder)
      } catch {
        #expect(error.code == ENOSPC || deadMount.contains(error.code), "\(error)")
        return filled
      }
      filled.append(contents)
    }
    Issue.record("the disk was never full")
    return filled
  }

  /// Has someone else take every block, those too that the file system gives back when it has written what it promised.
  private func takeTheRest(of disk: LoopFileSystem) throws {
    let path = "\(disk.mountpoint)/other"
    let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw Errno(errno, "open \(path)") }
    defer { close(file) }
    let block = pattern(1 << 20)
    var isFull = false
    while !isFull {
      isFull = true
      for count in [block.count, 512] {
        while write(file, block, count) > 0 { isFull = false }
      }
      guard fsync(file) == 0 else { throw Errno(errno, "fsync \(path)") }
    }
  }

  private func available(_ folder: String) throws -> Int64 {
    var facts = statvfs()
    guard statvfs(folder, &facts) == 0 else { throw Errno(errno, "statvfs \(folder)") }
    return Int64(facts.f_bavail) * Int64(facts.f_frsize)
  }

  private func withSmallDisk(
    mebibytes: Int = 48, environment: [String: String?] = [:], _ body: (MountedLibrary, LoopFileSystem) throws -> Void
  ) throws {
    try withTemporaryFolder { folder in
      let disk = try LoopFileSystem(below: folder, mebibytes: mebibytes)
      defer { disk.detach() }
      try withMount(place: disk.mountpoint, environment: environment) { try body($0, disk) }
      try disk.unmount()
    }
  }
}
