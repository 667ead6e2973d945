import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// Folders in folders, thousands deep: nothing may use up a thread's stack, or cost more than as many side by side.
struct DepthTests {
  private static let depth = 8000

  /// Runs `body` on a thread with a small stack, which a call for each folder would overflow.
  private func onSmallStack(_ body: @escaping @Sendable () throws -> Void) throws {
    nonisolated(unsafe) var result: Result<Void, any Error> = .success(())
    let done = DispatchSemaphore(value: 0)
    let thread = Thread {
      result = Result { try body() }
      done.signal()
    }
    thread.stackSize = 512 << 10
    thread.start()
    done.wait()
    try result.get()
  }

  /// Makes folders in each other; returns the inodes, the top one first.
  private static func nest(
    _ library: Library, in parent: Int64, depth: Int, name: String = "d", _ caller: Caller
  ) throws -> [Int64] {
    var inos = [parent]
    for _ in 0..<depth {
      inos.append(try library.make(.folder, inos.last!, Array(name.utf8), mode: 0o755, caller).ino)
    }
    return Array(inos.dropFirst())
  }

  /// Removes them as `rm -r` does; the top one stays where `keepsTop` says so.
  private static func unnest(
    _ library: Library, in parent: Int64, _ inos: [Int64], name: String = "d", keepsTop: Bool = false, _ caller: Caller
  ) throws {
    for folder in ([parent] + inos.dropLast()).dropFirst(keepsTop ? 1 : 0).reversed() {
      try library.rmdir(folder, Array(name.utf8), caller)
    }
  }

  /// CPU time of this thread in nanoseconds: another program's work does not count.
  static func cost(_ body: () throws -> Void) rethrows -> Double {
    func now() -> Double {
      var time = timespec()
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
      return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
    }
    let start = now()
    try body()
    return now() - start
  }

  private static let program = Caller(uid: 0, gid: 0, thread: getpid(), door: 0) { [] }

  @Test func aDeepTreeComesBackAndGoes() throws {
    try onSmallStack {
      let fixture = try LibraryFixture()
      let (library, root) = (fixture.library, try fixture.root)
      let inos = try Self.nest(library, in: root, depth: Self.depth, .library)
      try Self.unnest(library, in: root, inos, .library)
      let paths = try library.recover(fixture.path("d"), id: nil) { _ in }
      #expect(paths.count == Self.depth && paths.allSatisfy { $0.utf8.count <= 4096 + 10 })
      #expect(try library.attributes(inos.last!, .library).nlink == 2)
      // The lowest one alone has all above it come along.
      try Self.unnest(library, in: root, inos, .library)
      let item = try #require(try library.store.read { try $0.inode(inos.last!)?.item.flatMap($0.item) })
      #expect(try library.recover(fixture.path("d"), id: item.uuid.text) { _ in }.count == 1)
      #expect(try library.attributes(inos.last!, .library).nlink == 2)
      try library.purge(fixture.path("d"), version: nil)
      #expect(try library.counts().folders == 0 && library.counts().deleted == 0)
      try fixture.finish()
    }
  }

  @Test func whatWasDeletedDeepDownIsPurgedAndRetained() throws {
    try onSmallStack {
      let fixture = try LibraryFixture()
      let (library, root) = (fixture.library, try fixture.root)
      var inos = try Self.nest(library, in: root, depth: Self.depth, .library)
      try Self.unnest(library, in: root, inos, .library)
      try library.purge(fixture.path("d"), version: nil)
      #expect(try library.counts().deleted == 0)
      inos = try Self.nest(library, in: root, depth: Self.depth, .library)
      try Self.unnest(library, in: root, inos, .library)
      fixture.clock.advance(31 * 86_400)
      _ = try fixture.compactAfterLong()
      #expect(try library.counts().deleted == 0)
      try fixture.finish()
    }
  }

  @Test func leavingADeepFolderBringsItBack() throws {
    try onSmallStack {
      let people = try People()
      var inos: [Int64] = []
      try people.as(.alice) { alice in
        try alice.mkdir("Documents/plans")
        inos = try Self.nest(people.library, in: alice.inode("Documents/plans"), depth: Self.depth, alice.caller)
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.as(.bob, process: getpid()) { (bob) throws in
        let top = try bob.inode("Shared/alice@example.com/plans")
        try Self.unnest(people.library, in: top, inos, bob.caller)
        try bob.removeEntry(.alice, "plans")
      }
      #expect(try people.library.counts().deleted == 0 && people.library.attributes(inos.last!, .library).nlink == 2)
      try people.finish()
    }
  }

  /// `rm -r` of folders in folders is one event, which tells of all; that says no more than of a flat folder.
  @Test func aDeepDeletionIsOneShortEvent() throws {
    try onSmallStack {
      let fixture = try LibraryFixture()
      let (library, root) = (fixture.library, try fixture.root)
      let inos = try Self.nest(library, in: root, depth: Self.depth, .library)
      try library.locked { try library.settleEvents(all: true) }
      let before = library.lastEvent
      try Self.unnest(library, in: root, inos, Self.program)
      #expect(library.locked { library.events.count } == 1)
      let ids = try library.store.read { transaction in try inos.map { try transaction.inode($0)?.item } }
      #expect(library.locked { ids.dropFirst().allSatisfy { $0.map { library.events.isAbsorbed($0) } ?? false } })
      try library.locked { try library.settleEvents(all: true) }
      #expect(library.locked { !ids.contains { $0.map { library.events.isAbsorbed($0) } ?? true } })
      let events = try library.events(after: before, limit: 10, for: fixture.account).events
      #expect(events.map(\.type) == [.deleted] && events.first?.data.contentCount == Int64(Self.depth - 1))
      #expect(events.first?.data.contents.map { 4...100 ~= $0.count } ?? false)
      let bytes = try library.store.read { try $0.events(after: before, limit: 10).map(\.data.utf8.count).max() }
      #expect(bytes.map { $0 < 64 << 10 } ?? false)
      try fixture.finish()
    }
  }

  /// What is told of something deep down: how the path begins and how it ends.
  @Test func aLongPathIsToldWithoutItsMiddle() throws {
    try People.story { people in
      var inos: [Int64] = []
      try people.as(.alice) { (alice) throws in
        for folder in ["top", "top/team"] { try alice.mkdir("Documents/\(folder)") }
        let library = people.library
        inos = try Self.nest(
          library, in: alice.inode("Documents/top/team"), depth: 500, name: "folder-of-20-letters", alice.caller)
      }
      try people.share("Documents/top/team", with: [(.bob, .readWrite)])
      let before = people.library.lastEvent
      try people.as(.alice) { (alice) throws in
        _ = try people.library.make(.folder, inos.last!, Array("leaf".utf8), mode: 0o755, alice.caller)
      }
      func path(_ name: People.Name) throws -> String {
        let page = try people.library.events(after: before, limit: 10, for: name.handle)
        return try #require(page.events.first?.data.item.path)
      }
      let (own, theirs) = (try path(.alice), try path(.bob))
      #expect(own.hasPrefix("top/team/folder-of-20-letters/") && own.hasSuffix("/folder-of-20-letters/leaf"))
      #expect(own.contains("/…/") && (3840...4096).contains(own.utf8.count) && "top/" + theirs == own)
      let listed = try people.library.locked {
        let bob = try people.library.account(People.Name.bob.handle).id
        return try people.library.mountPath(inos.last!, Array("leaf".utf8), for: bob)
      }
      #expect(listed == "Shared/alice@example.com/\(theirs)")
    }
  }

  /// A share whose own name is among those that are left out: nothing above it is told to its participants.
  @Test func whatLiesAboveAShareDeepDownStaysUntold() throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { (alice) throws in
        let name = "secret-of-the-owner"
        let secret = try Self.nest(library, in: alice.inode("Documents"), depth: 150, name: name, alice.caller)
        let team = try library.make(.folder, secret.last!, Array("team".utf8), mode: 0o755, alice.caller).ino
        let path = "Documents/" + Array(repeating: name, count: 150).joined(separator: "/") + "/team"
        try people.share(path, with: [(.bob, .readWrite)])
        let below = try Self.nest(library, in: team, depth: 300, name: "folder-of-20-letters", alice.caller)
        let before = library.lastEvent
        _ = try library.make(.folder, below.last!, Array("leaf".utf8), mode: 0o755, alice.caller)
        let page = try library.events(after: before, limit: 10, for: People.Name.bob.handle)
        let told = try #require(page.events.first?.data.item.path)
        #expect(told.hasPrefix("…/folder-of-20-letters/") && told.hasSuffix("/leaf") && !told.contains("secret"))
        let listed = try library.locked {
          try library.mountPath(below.last!, Array("leaf".utf8), for: library.account(People.Name.bob.handle).id)
        }
        #expect(listed == "Shared/alice@example.com/team/\(told)")
      }
    }
  }

  @Test func aDeepFolderCostsWhatAnyCosts() throws {
    let fixture = try LibraryFixture()
    let (library, root) = (fixture.library, try fixture.root)
    func fill(_ folder: Int64) throws {
      for number in 0..<500 {
        _ = try library.make(.folder, folder, Array("\(number)".utf8), mode: 0o755, Self.program)
      }
    }
    try fill(root)
    let inos = try Self.nest(library, in: root, depth: 12_000, .library)
    let flat = try Self.cost { try fill(inos[100]) }
    let deep = try Self.cost { try fill(inos.last!) }
    #expect(deep < 10 * flat, "\(deep) against \(flat)")
    try fixture.finish()
  }

  /// Whatever a damaged library has, nobody goes in circles.
  @Test func foldersThatLieInEachOtherAreFound() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    for folder in ["a", "a/b", "a/b/c"] { try fixture.mkdir(folder) }
    try fixture.save("a/b/c/d", "d")
    let (a, c) = (try fixture.ino("a"), try fixture.ino("a/b/c"))
    try library.store.write(.rename) { transaction in
      var row = try #require(try transaction.inode(a))
      row.parent = c
      try transaction.update(row)
    }
    library.locked {
      library.inodes[a]?.row.parent = c
      library.shares.forgetFolders()
    }
    expect(.corrupt) { _ = try library.make(.folder, c, Array("e".utf8), mode: 0o755, .library) }
    #expect(try !library.check { _ in }.problems.isEmpty)
    try? library.close()
    try? FileManager.default.removeItem(atPath: fixture.folder)
  }

  /// Whoever copies a folder goes from name to name: a folder that is found in itself would never end.
  @Test func aFolderThatIsFoundInItselfIsRefused() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    for folder in ["a", "a/b", "a/b/c", "d"] { try fixture.mkdir(folder) }
    let (root, a, c, d) = (try fixture.root, try fixture.ino("a"), try fixture.ino("a/b/c"), try fixture.ino("d"))
    let again = Array("again".utf8)
    try library.store.write(.rename) { transaction in
      for (parent, ino) in [(c, a), (root, root), (a, d)] {
        try transaction.insert(
          EntryRow(parent: parent, hash: library.nameHash(again), name: again, ino: ino, since: Timestamp(seconds: 0)))
      }
    }
    let handle = fixture.account
    for path in ["", "a", "a/b/c"] { expect(.corrupt) { _ = try library.children(fixture.path(path)) } }
    for path in ["again", "a/b/c/again", "a/b/c/again/b", "a/again"] {
      expect(.corrupt) { _ = try library.children(fixture.path(path)) }
      expect(.corrupt) { _ = try library.itemStatus(fixture.path(path)) }
    }
    expect(.corrupt) { try library.purge(fixture.path("a"), version: nil) }
    #expect(try library.children(fixture.path("a/b")).map(\.name) == ["c"])
    // Nor do those that were deleted from each other keep anybody.
    for path in ["e", "e/f"] { try fixture.mkdir(path) }
    let (e, f) = (try fixture.ino("e"), try fixture.ino("e/f"))
    try library.settleEventsInSteps()
    try fixture.rmdir("e/f")
    try fixture.rmdir("e")
    try library.store.write(.rename) { transaction in
      try transaction.removeDeleted(e)
      try transaction.insert(
        DeletedRow(ino: e, parent: f, name: Array("e".utf8), time: fixture.clock.now, actor: 1))
      for (ino, parent) in [(e, f), (f, e)] {
        var row = try #require(try transaction.inode(ino))
        row.parent = parent
        try transaction.update(row)
      }
    }
    library.locked {
      for ino in [e, f] { library.inodes.remove(ino) }
      library.shares.forgetFolders()
    }
    let item = try #require(try library.store.read { try $0.inode(f)?.item.flatMap($0.item) })
    expect(.corrupt) { _ = try library.recover(fixture.path("e"), id: item.uuid.text) { _ in } }
    expect(.corrupt) { _ = try library.deleted(handle, below: nil) }
    #expect(try !library.check { _ in }.problems.isEmpty)
    let copy = fixture.folder + "/copy"
    try library.backup(to: copy) { _ in }
    fixture.clock.advance(31 * 86_400)
    _ = try fixture.library.compact { _ in }
    fixture.clock.advance(86_400)
    _ = try fixture.library.compact { _ in }
    try? library.close()
    try? FileManager.default.removeItem(atPath: fixture.folder)
  }

  @Test func circlesOfAnyLengthAreFound() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    let inos = try Self.nest(library, in: fixture.root, depth: 40, .library)
    for length in 1...40 {
      try library.locked {
        let top = try library.inode(inos[40 - length])
        let before = top.row.parent
        top.row.parent = inos[39]
        defer { top.row.parent = before }
        #expect { try library.ascend(from: inos[39]) { _ in true } } throws: { ($0 as? SheafError)?.kind == .corrupt }
      }
    }
    try fixture.finish()
  }
}
