import Foundation
import Glibc
import SheafModel
import SheafStore
import Synchronization
import Testing

@testable import SheafLibrary

/// Opening, closing, being killed, copies, accounts.
struct LifetimeTests {
  @Test func aSecondOpenerIsToldWhoHasIt() throws {
    let fixture = try LibraryFixture()
    #expect { try Library.open(fixture.library.location) } throws: { error in
      (error as? SheafError)?.kind == .busy && "\(error)".contains("process \(getpid())")
    }
    try fixture.finish()
  }

  @Test func aClosedLibraryOpensAgain() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "kept")
    let id = fixture.library.id
    try fixture.library.close()
    #expect(access(fixture.path + "-wal", F_OK) != 0)
    let again = try LibraryFixture(at: fixture.path)
    #expect(again.library.id == id)
    #expect(try again.text("a") == "kept")
    try again.finish()
  }

  /// Runs the fixture program, which kills itself.
  private func runUntilKilled(_ library: String, _ count: Int) throws {
    let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: own).deletingLastPathComponent()
      .appendingPathComponent("library-fixture")
    process.arguments = [library, "\(count)"]
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationReason == .uncaughtSignal && process.terminationStatus == SIGKILL)
  }

  @Test func whatWasClosedOutlivesAKill() throws {
    try withLibraryFolder { folder in
      let path = folder + "/library.sqlite"
      try runUntilKilled(path, 25)
      let fixture = try LibraryFixture(at: path, clock: TestClock(Library.systemClock()))
      try fixture.expectSound()
      for number in 0..<25 {
        #expect(try fixture.text("closed \(number)") == "contents \(number)")
        #expect(try fixture.versions("closed \(number)").map(\.open) == [false])
      }
      // What fsync stored is a version that ended; what was only spilled is gone.
      #expect(try fixture.text("open") == "first")
      let versions = try fixture.versions("open")
      #expect(versions.map(\.open) == [false] && versions.map(\.cause) == [.autosave])
      let events = try fixture.library.store.read { try $0.events(after: 0, limit: 1000) }
      #expect(events.map(\.number) == Array(1...Int64(events.count)))
      #expect(events.count { $0.type == "sheaf.persistence.created" } == 26)
      #expect(try fixture.chunkCount == 26)
      try fixture.finish()
    }
  }

  /// As `tar x` and `git checkout` replace files: the kernel says that it lets go of the one before when its name goes.
  @Test func whatIsRemovedAndMadeAgainLeavesNothingInMemory() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "the first")
    let caller = Caller(uid: 0, gid: 0, thread: getpid(), door: 0) { [] }
    for round in 1...20 {
      let ino = try fixture.ino("a")
      let (parent, name) = try fixture.place("a")
      try fixture.library.unlink(parent, name, caller)
      fixture.library.forget([ino])
      let made = try fixture.library.create(parent, name, mode: 0o644, flags: O_WRONLY, caller)
      try fixture.write(made.handle, Array("contents \(round)".utf8))
      try fixture.close(made.handle)
    }
    let orphans = fixture.library.locked { fixture.library.inodes.all.count(where: \.isOrphan) }
    #expect(orphans == 0)
    #expect(try fixture.versions("a").count == 21)
    try fixture.finish()
  }

  /// A path never opens a file whose name was removed or given to another file, whether or not somebody has it open.
  @Test(arguments: [true, false], [true, false])
  func aPathOpensNothingThatHasNoName(isReplaced: Bool, isOpen: Bool) throws {
    let fixture = try LibraryFixture()
    let caller = Caller(uid: 0, gid: 0, thread: getpid(), door: 0) { [] }
    let library = fixture.library
    try fixture.save("a", "the first")
    try fixture.save("b", "the second")
    let ino = try fixture.ino("a")
    func open() throws { try library.release(library.open(ino, flags: O_RDONLY, allowsUnlinked: false, caller)) }
    try open()
    let held = isOpen ? try library.open(ino, flags: O_RDWR, caller) : nil
    if isReplaced {
      let (source, target) = (try fixture.place("b"), try fixture.place("a"))
      try library.rename(source.0, source.1, to: target.0, target.1, .replace, caller)
    } else {
      try fixture.unlink("a")
    }
    #expect { try open() } throws: { ($0 as? SheafError)?.kind == .notFound }
    if let held { try library.release(held) }
    // One that never had a name is what somebody means.
    let nameless = try library.createNameless(fixture.place("b2").0, mode: 0o600, flags: O_RDWR, caller)
    let again = try library.open(nameless.attributes.ino, flags: O_RDONLY, allowsUnlinked: false, caller)
    for handle in [again, nameless.handle] { try library.release(handle) }
    try fixture.finish()
  }

  /// open(2) found a file that another program replaces before the mount is asked: it is told to look again.
  @Test func nobodyOpensWhatIsLeftOfAReplacedFile() throws {
    let fixture = try LibraryFixture()
    let caller = Caller(uid: 0, gid: 0, thread: getpid(), door: 0) { [] }
    try fixture.save("a", "the first")
    let ino = try fixture.ino("a")
    let (parent, name) = try fixture.place("a")
    func replace(_ text: String) throws {
      let made = try fixture.library.create(parent, Array("n".utf8), mode: 0o644, flags: O_WRONLY, caller)
      try fixture.write(made.handle, Array(text.utf8))
      try fixture.close(made.handle)
      try fixture.library.rename(parent, Array("n".utf8), to: parent, name, .replace, caller)
    }
    let open = try fixture.library.open(ino, flags: O_RDONLY, caller)
    try replace("the second")
    // Who has it open has the former contents, also by /proc/self/fd.
    let again = try fixture.library.open(ino, flags: O_RDONLY, caller)
    var buffer = [UInt8](repeating: 0, count: 100)
    for handle in [open, again] {
      let count = try buffer.withUnsafeMutableBytes { try fixture.library.read(handle, at: 0, into: $0) }
      #expect(String(decoding: buffer.prefix(count), as: UTF8.self) == "the first")
      try fixture.library.release(handle)
    }
    #expect { try fixture.library.open(ino, flags: O_RDONLY, caller) } throws: {
      ($0 as? SheafError)?.kind == .notFound
    }
    let second = try fixture.ino("a")
    try replace("the third")
    #expect { try fixture.library.open(second, flags: O_RDONLY, caller) } throws: {
      ($0 as? SheafError)?.kind == .notFound
    }
    #expect(try fixture.text("a") == "the third")
    try fixture.finish()
  }

  @Test func whoOnlyReadsAndTruncatesSavesThat() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "contents")
    try fixture.close(try fixture.open("a", O_RDONLY | O_TRUNC))
    #expect(try fixture.versions("a").map(\.size) == [8, 0])
    let row = try fixture.library.store.read { [ino = try fixture.ino("a")] in try $0.inode(ino) }
    #expect(row?.size == 0)
    try fixture.finish()
  }

  /// A mount whose kernel does not know yet of the file that another mount has just made creates it.
  @Test func whoComesSecondOpensWhatIsThere() throws {
    let fixture = try LibraryFixture()
    try fixture.save("a", "longer than the other")
    let (parent, name) = try fixture.place("a")
    let made = try fixture.library.create(parent, name, mode: 0o600, flags: O_WRONLY | O_TRUNC, .library)
    #expect(!made.isNew)
    try fixture.write(made.handle, Array("other".utf8))
    try fixture.close(made.handle)
    #expect(try fixture.text("a") == "other")
    #expect(throws: SheafError(.exists)) {
      try fixture.library.create(parent, name, mode: 0o600, flags: O_WRONLY | O_EXCL, .library)
    }
    _ = try fixture.library.make(.special(type: S_IFIFO, rdev: 0), parent, Array("b".utf8), mode: 0o600, .library)
    #expect(throws: SheafError(.exists)) {
      try fixture.library.create(parent, Array("b".utf8), mode: 0o600, flags: O_WRONLY, .library)
    }
    #expect(fixture.library.locked { fixture.library.files.all.isEmpty })
    try fixture.finish()
  }

  @Test func oneDocumentThatCannotBeSavedKeepsNoOtherFromIt() throws {
    let fixture = try LibraryFixture()
    let bad = try fixture.open("bad", O_RDWR | O_CREAT)
    try fixture.write(bad, [1])
    for number in 0..<5 {
      try fixture.write(try fixture.open("good \(number)", O_RDWR | O_CREAT), Array("good".utf8))
    }
    // A write next to a chunk that is missing cannot be stored.
    let ino = try fixture.ino("bad")
    fixture.library.locked { fixture.library.inodes[ino]?.own.working = unreadable() }
    #expect(throws: SheafError.self) { try fixture.library.locked { try fixture.library.endAllSessions() } }
    for number in 0..<5 { #expect(try fixture.versions("good \(number)").map(\.open) == [false]) }
    fixture.library.locked {
      fixture.library.inodes[ino]?.own.session = nil
      fixture.library.inodes[ino]?.own.working = WorkingCopy(.empty)
      fixture.library.sessions.remove(ino)
    }
    try fixture.finish()
  }

  /// A working copy with a write next to a chunk that is missing.
  private func unreadable() -> WorkingCopy {
    var copy = WorkingCopy(.extents([Extent(chunk: 999, length: 10)]))
    try? [UInt8(1)].withUnsafeBytes { try copy.write($0, at: 5, from: WorkingCopyTests.FakeStorage()) }
    return copy
  }

  @Test func aFailedRecoveryLeavesMemoryAsItWas() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("t")
    try fixture.save("t/a", "x")
    let root = try fixture.library.attributes(fixture.root, .library)
    try fixture.unlink("t/a")
    try fixture.rmdir("t")
    let before = try fixture.library.attributes(fixture.root, .library)
    struct Stop: Error {}
    #expect(throws: SheafError.self) {
      try fixture.library.locked {
        try fixture.library.makeChange(.recover) { change in
          let rows = try change.rows.deleted(before: nil, limit: 10).map(\.row)
          let folder = try #require(rows.first { $0.name == Array("t".utf8) })
          _ = try fixture.library.giveBack(folder, change)
          throw Stop()
        }
      }
    }
    #expect(try fixture.library.attributes(fixture.root, .library) == before)
    #expect(try fixture.library.recover(fixture.path("t"), id: nil) { _ in }.count == 2)
    #expect(try fixture.library.attributes(fixture.root, .library).nlink == root.nlink)
    try fixture.finish()
  }

  @Test func aBackupOpensWhileWritingGoesOn() throws {
    let fixture = try LibraryFixture()
    let stop = Atomic(false)
    let saved = DispatchSemaphore(value: 0)
    let ended = DispatchSemaphore(value: 0)
    let writer = Thread {
      var number = 0
      while !stop.load(ordering: .relaxed) {
        number += 1
        try? fixture.save("a\(number % 50)", "contents \(number)")
        saved.signal()
      }
      ended.signal()
    }
    writer.start()
    let open = try fixture.open("open", O_RDWR | O_CREAT)
    try fixture.write(open, Array("saved".utf8))
    try fixture.library.fsync(fixture.ino("open"))
    try fixture.write(open, Array("UNSAVED".utf8))
    for number in 0..<3 {
      saved.wait()
      let file = fixture.folder + "/backup \(number)"
      let seen = Mutex<[Int64]>([])
      try fixture.library.backup(to: file) { progress in seen.withLock { $0.append(progress.done) } }
      #expect(seen.withLock { !$0.isEmpty })
      let copy = try LibraryFixture(at: file, clock: fixture.clock)
      #expect(try copy.text("open") == "saved")
      #expect(try copy.versions("open").map(\.open) == [false])
      try copy.finish()
    }
    stop.store(true, ordering: .relaxed)
    ended.wait()
    try fixture.close(open)
    try fixture.finish()
  }

  // MARK: - Accounts

  /// History that names an account keeps its row, and how far it was with a hub's log goes with it.
  @Test(arguments: [true, false]) func noRowNamesAnAccountThatIsGone(_ isNamed: Bool) throws {
    let fixture = try LibraryFixture()
    let bob = try AccountHandle("bob@example.com")
    _ = try fixture.library.addAccount(bob, name: nil)
    let number = try fixture.library.number(of: bob)
    try fixture.save("a", "x")
    let (root, inode) = (try fixture.root, try fixture.ino("a"))
    try fixture.library.locked {
      let item = try #require(try fixture.library.inode(inode).row.item)
      try fixture.library.makeChange(.accounts) { change in
        try change.rows.set(
          ReplicaLogRow(log: [UInt8](repeating: 1, count: 16), isShare: false, past: nil, since: change.time),
          of: number)
        guard isNamed else { return }
        try change.rows.insert(
          PastNameRow(
            parent: root, name: [65], until: change.time, item: item, since: Timestamp(nanoseconds: 0), actor: number))
      }
    }
    try fixture.library.removeAccount(bob)
    #expect(try fixture.library.accounts().map(\.handle) == [fixture.account])
    #expect(try fixture.library.store.read { try $0.accounts() }.count == (isNamed ? 2 : 1))
    try fixture.finish()
  }

  /// What an earlier program left of an account that it removed is forgotten when the library is opened. Of an account
  /// whose row alone was lost nothing is.
  @Test(arguments: [true, false]) func whatIsLeftOfAnAccountThatIsGoneIsForgotten(_ isRemoved: Bool) throws {
    let fixture = try LibraryFixture()
    let bob = try AccountHandle("bob@example.com")
    _ = try fixture.library.addAccount(bob, name: nil)
    let number = isRemoved ? 77 : try fixture.library.number(of: bob)
    let id = [UInt8](repeating: 1, count: 16)
    try fixture.library.locked {
      try fixture.library.makeChange(.accounts) { change in
        if !isRemoved { try change.rows.deleteAccount(number) }
        try change.rows.set(ReplicaLogRow(log: id, isShare: false, past: nil, since: change.time), of: number)
        try change.rows.insert(ReplicaCommentRow(item: id, id: id, time: change.time, text: "x"), of: number)
        try change.rows.insert(
          ReplicaEventRow(
            sequence: 9999, account: number, log: id, number: 1, uuid: id, type: "sheaf.change.edit", time: change.time,
            subject: id, share: nil, isPast: false, isRepeated: false, event: "{}"))
      }
    }
    try fixture.library.close()
    let library = try Library.open(fixture.library.location) { fixture.clock.now }
    let (logs, comments, events) = try library.store.read {
      (
        try $0.replicaLogs(of: number).count, try $0.countReplicaComments(of: number),
        try $0.replicaEvents(after: 0, limit: 10).count
      )
    }
    #expect(logs == (isRemoved ? 0 : 1) && comments == Int64(logs) && events == logs)
    // Readers of the log meet no number twice.
    #expect(library.lastEvent >= 9999)
    #expect(try library.check { _ in }.problems.isEmpty == isRemoved)
    try library.close()
    try FileManager.default.removeItem(atPath: fixture.folder)
  }

  @Test func accounts() throws {
    let fixture = try LibraryFixture()
    let bob = try AccountHandle("bob@example.com")
    #expect(try fixture.library.addAccount(bob, name: nil).name == "bob@example.com")
    #expect { try fixture.library.addAccount(bob, name: "Again") } throws: { ($0 as? SheafError)?.kind == .exists }
    for name in ["a\nb", String(repeating: "x", count: 201)] {
      #expect { try fixture.library.addAccount(AccountHandle("c@d"), name: name) } throws: {
        ($0 as? SheafError)?.kind == .invalid
      }
    }
    #expect(try fixture.library.accounts().map(\.handle) == [fixture.account, bob])
    #expect(try fixture.library.documents(of: bob) != fixture.library.documents(of: fixture.account))
    try fixture.library.removeAccount(bob)
    #expect(try fixture.library.accounts().count == 1)
    #expect { try fixture.library.removeAccount(bob) } throws: { ($0 as? SheafError)?.kind == .notFound }
    try fixture.save("a", "x")
    try fixture.unlink("a")
    #expect { try fixture.library.removeAccount(fixture.account) } throws: { ($0 as? SheafError)?.kind == .notEmpty }
    try fixture.expectSound()
    try fixture.library.close()
    let again = try LibraryFixture(at: fixture.path)
    #expect(try again.library.accounts().count == 1)
    try again.finish()
  }

  @Test func treesOfTwoOwnersStayApart() throws {
    let fixture = try LibraryFixture()
    let bob = try AccountHandle("bob@example.com")
    _ = try fixture.library.addAccount(bob, name: nil)
    try fixture.save("a", "x")
    let other = try fixture.library.documents(of: bob)
    #expect {
      try fixture.library.rename(fixture.root, Array("a".utf8), to: other, Array("a".utf8), .replace, .library)
    } throws: {
      ($0 as? SheafError)?.kind == .crossDevice
    }
    #expect { try fixture.library.link(fixture.ino("a"), other, Array("a".utf8), .library) } throws: {
      ($0 as? SheafError)?.kind == .crossDevice
    }
    try fixture.finish()
  }
}

/// Runs `body` with a new folder, removed afterwards.
func withLibraryFolder(_ body: (String) throws -> Void) throws {
  var template = Array("/var/tmp/sheaf-library-XXXXXX".utf8CString)
  try #require(mkdtemp(&template) != nil)
  let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  defer { try? FileManager.default.removeItem(atPath: folder) }
  try body(folder)
}
