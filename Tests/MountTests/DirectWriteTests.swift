import CTestSystem
import Foundation
import Glibc
import MountKit
import Synchronization
import Testing

/// New files, which their makers write past the page cache (DirectWrites): nobody sees anything else than through
/// pages.
///
/// All in this process: a program that it starts would get duplicates of its handles, and closing those is a close.
@Suite(.serialized) struct DirectWriteTests {
  /// As `tail -f` follows a log: a page that was read while its end was written would stay as it was.
  @Test func whoFollowsANewFileReadsAllOfIt() throws {
    try withMount { library in
      for round in 0..<4 {
        let path = library.path("log\(round)")
        let writer = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | (round % 2 == 0 ? 0 : O_APPEND), 0o644)
        let reader = open(path, O_RDONLY | O_CLOEXEC)
        try #require(writer >= 0 && reader >= 0)
        let lines = (0..<8000).map { "line \(round) \($0)\n" }
        let whole = Array(lines.joined().utf8)
        let failures = Atomic(0)
        DispatchQueue.global().async {
          for line in lines where write(writer, line, line.utf8.count) != line.utf8.count {
            failures.add(1, ordering: .relaxed)
          }
          close(writer)
        }
        var found: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        try eventually("all lines", within: .seconds(60)) {
          while true {
            let count = read(reader, &buffer, buffer.count)
            guard count > 0 else { break }
            found += buffer[..<count]
            guard found.count < whole.count, whole.starts(with: found) else { return true }
          }
          return found.count >= whole.count
        }
        #expect(failures.load(ordering: .relaxed) == 0)
        #expect(found == whole)
        close(reader)
        // Its pages are what later ones read.
        #expect(FileManager.default.contents(atPath: path).map(Array.init) == whole)
      }
    }
  }

  /// A kernel that forgets pages after a direct write by itself passes without Sheaf's doing.
  @Test func aMappingOfANewFileHoldsWhatIsWritten() throws {
    try withMount { library in
      let path = library.path("mapped")
      let writer = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
      let length = 1 << 18
      var contents = [UInt8](repeating: UInt8(ascii: "-"), count: length)
      try #require(write(writer, contents, length) == length)
      let file = open(path, O_RDWR | O_CLOEXEC)
      let memory = try #require(mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0))
      try #require(memory != MAP_FAILED, "\(String(cString: strerror(errno)))")
      defer { munmap(memory, length) }
      // Brings pages back while they are written.
      let isDone = Atomic(false)
      let ended = DispatchSemaphore(value: 0)
      nonisolated(unsafe) let touched = memory
      DispatchQueue.global().async {
        while !isDone.load(ordering: .relaxed) {
          for page in stride(from: 0, to: length, by: 4096) { _ = touched.load(fromByteOffset: page, as: UInt8.self) }
        }
        ended.signal()
      }
      for number in 0..<500 {
        contents = .init(repeating: UInt8(number % 256), count: length)
        #expect(pwrite(writer, contents, length, 0) == length)
        let deadline = ContinuousClock.now + .seconds(10)
        while memcmp(memory, contents, length) != 0, ContinuousClock.now < deadline { sched_yield() }
        try #require(memcmp(memory, contents, length) == 0, "write \(number)")
      }
      isDone.store(true, ordering: .relaxed)
      ended.wait()
      close(writer)
      contents[9] = UInt8(ascii: "M")
      memory.storeBytes(of: contents[9], toByteOffset: 9, as: UInt8.self)
      #expect(msync(memory, length, MS_SYNC) == 0)
      close(file)
      #expect(FileManager.default.contents(atPath: path).map(Array.init) == contents)
    }
  }

  /// Who watches hears of bob's closing by a handle that is none of the file's.
  @Test func anotherMountsWriterDoesNotEndIt() throws {
    try withSharedMounts { mounts in
      try mounts.shell(#"mkdir "$ALICE/Documents/plans"; invite "$ALICE/Documents/plans" bob edit"#)
      let mine = mounts.path(of: "alice", "Documents/plans/log")
      let theirs = mounts.path(of: "bob", "Shared/alice@example.com/plans/log")
      let writer = open(mine, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
      try #require(write(writer, "alice", 5) == 5)
      let watching = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
      #expect(inotify_add_watch(watching, mine, UInt32(IN_CLOSE_WRITE)) >= 0)
      for _ in 0..<5 {
        let other = open(theirs, O_WRONLY | O_CLOEXEC)
        #expect(write(other, "bob", 3) == 3 && close(other) == 0)
        var events = [UInt8](repeating: 0, count: 4096)
        try eventually("bob's closing") { read(watching, &events, events.count) > 0 }
        #expect(write(writer, "alice", 5) == 5)
        #expect(try pagesAfterReading(mine) == 0)
      }
      close(writer)
      try eventually("pages of a file that nobody writes directly") { try pagesAfterReading(mine) == 1 }
      close(watching)
    }
  }

  /// How many pages the kernel has of a small file once it was read.
  private func pagesAfterReading(_ path: String) throws -> Int {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    var buffer = [UInt8](repeating: 0, count: 4096)
    try #require(read(file, &buffer, buffer.count) > 0)
    let memory = try #require(mmap(nil, 4096, PROT_READ, MAP_PRIVATE, file, 0))
    try #require(memory != MAP_FAILED)
    defer { munmap(memory, 4096) }
    var resident: UInt8 = 0
    try #require(mincore(memory, 4096, &resident) == 0)
    return Int(resident & 1)
  }

  @Test(.enabled(if: TestUser.isRoot, "root alone gives capabilities")) func capabilitiesGoWithTheNextWrite() throws {
    try withMount { library in
      let path = library.path("program")
      let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o755)
      try #require(write(file, "one", 3) == 3)
      // cap_chown, by struct vfs_cap_data of capabilities(7).
      let capability: [UInt32] = [0x0200_0001, 1, 0, 0, 0].map { UInt32($0).littleEndian }
      #expect(setxattr(path, "security.capability", capability, 20, 0) == 0)
      #expect(getxattr(path, "security.capability", nil, 0) == 20)
      #expect(write(file, "two", 3) == 3)
      #expect(getxattr(path, "security.capability", nil, 0) == -1 && errno == ENODATA)
      close(file)
    }
  }

  /// As databases and virtual machines write, while somebody copies the file or has it mapped.
  @Test(arguments: [O_RDWR, O_WRONLY | O_CREAT | O_EXCL]) func whatIsWrittenAsynchronouslyIsRead(flags: Int32) throws {
    try withMount { library in
      let path = library.path("image")
      let length = 1 << 20
      let bytes = try #require(aligned_alloc(4096, length))
      defer { free(bytes) }
      for round in 0..<25 {
        memset(bytes, Int32(round), length)
        if flags & O_CREAT == 0 {
          let first = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
          try #require(write(first, bytes, length) == length)
          close(first)
        } else {
          unlink(path)
        }
        let writer = open(path, flags | sheaf_test_direct | O_CLOEXEC, 0o644)
        try #require(writer >= 0 && (flags & O_CREAT == 0 || write(writer, bytes, length) == length))
        let isDone = Atomic(false)
        let hasBegun = DispatchSemaphore(value: 0)
        let readers = DispatchGroup()
        for isMapping in [false, false, true] {
          DispatchQueue.global().async(group: readers) {
            self.keepPages(path, length, isMapping: isMapping, begun: hasBegun, until: isDone)
          }
        }
        for _ in 0..<3 { hasBegun.wait() }
        memset(bytes, Int32(128 + round), length)
        #expect(sheaf_test_write_asynchronously(writer, bytes, length, 0) == length)
        isDone.store(true, ordering: .relaxed)
        readers.wait()
        close(writer)
        let found = try #require(FileManager.default.contents(atPath: path))
        try #require(found.count == length && found.allSatisfy { $0 == UInt8(128 + round) }, "round \(round)")
      }
    }
  }

  /// Keeps pages of a file coming.
  private func keepPages(
    _ path: String, _ length: Int, isMapping: Bool, begun: DispatchSemaphore, until isDone: borrowing Atomic<Bool>
  ) {
    var buffer = [UInt8](repeating: 0, count: length)
    var rounds = 0
    repeat {
      let file = open(path, O_RDONLY | O_CLOEXEC)
      if isMapping, let memory = mmap(nil, length, PROT_READ, MAP_SHARED, file, 0), memory != MAP_FAILED {
        for page in stride(from: 0, to: length, by: 4096) { _ = memory.load(fromByteOffset: page, as: UInt8.self) }
        munmap(memory, length)
      } else {
        _ = pread(file, &buffer, length, 0)
      }
      close(file)
      rounds += 1
      if rounds == 1 { begun.signal() }
    } while !isDone.load(ordering: .relaxed)
  }
}
