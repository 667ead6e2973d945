import Foundation
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary
@testable import SheafStore

/// Folders in folders: however deep they lie, nobody waits for all of them at once, and all together cost no more than
/// as many side by side. What counts is how many inodes are looked up, which is the same on any machine.
struct DeepHoldTests {
  private static let depth = 4000
  /// Inodes that are looked up with the lock held at most.
  private static let mostLooks: UInt64 = 2500

  private static func nest(_ library: Library, in parent: Int64, depth: Int = depth) throws -> [Int64] {
    var inos = [parent]
    for _ in 0..<depth {
      inos.append(try library.make(.folder, inos.last!, Array("d".utf8), mode: 0o755, .library).ino)
    }
    return Array(inos.dropFirst())
  }

  private static func unnest(_ library: Library, in parent: Int64, _ inos: [Int64]) throws {
    for folder in ([parent] + inos.dropLast()).reversed() { try library.rmdir(folder, Array("d".utf8), .library) }
  }

  /// Runs something and checks how many inodes it looks up, at once and in all.
  private static func expectShortHolds(
    _ what: String, _ library: Library, _ location: SourceLocation = #_sourceLocation, _ body: () throws -> Void
  ) throws {
    let before = library.locked {
      library.holds = LockHolds()
      return library.inodes.useCount
    }
    try body()
    let (most, all) = library.locked { (library.holds.mostLooks, library.inodes.useCount - before) }
    #expect(
      most.values.allSatisfy { $0 <= mostLooks }, "\(what): \(most)", sourceLocation: location)
    #expect(all < UInt64(100 * depth), "\(what): \(all)", sourceLocation: location)
  }

  @Test(arguments: [false, true]) func nobodyWaitsForAllOfADeepTree(_ isShared: Bool) throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      if isShared { try people.share("Documents/plans", with: [(.bob, .readWrite)]) }
      let root = try people.as(.alice) { try $0.inode("Documents/plans") }
      let alice = People.Name.alice.handle
      let path = try ItemPath(account: alice, "Documents/plans/d")
      func expectShort(_ what: String, _ body: () throws -> Void) throws {
        try Self.expectShortHolds("\(what), shared: \(isShared)", library) { try body() }
      }
      var inos: [Int64] = []
      try expectShort("make") { inos = try Self.nest(library, in: root) }
      try expectShort("remove") { try Self.unnest(library, in: root, inos) }
      try expectShort("list") { _ = try library.deletedTrees(alice, below: nil, limit: 50) }
      try expectShort("recover") {
        let paths = try library.recover(path, id: nil) { _ in }
        #expect(paths.count == Self.depth)
      }
      try Self.unnest(library, in: root, inos)
      if isShared {
        let theirs = try ItemPath(account: People.Name.bob.handle, "Shared/alice@example.com/plans/d")
        try expectShort("list of a participant") { () throws in
          #expect(try library.deleted(People.Name.bob.handle, below: nil).count == Self.depth)
        }
        try expectShort("recover by a participant") { () throws in
          #expect(try library.recover(theirs, id: nil) { _ in }.count == Self.depth)
        }
        try Self.unnest(library, in: root, inos)
      }
      let item = try #require(try library.store.read { try $0.inode(inos.last!)?.item.flatMap($0.item) })
      library.locked { library.shares.forgetFolders() }
      try expectShort("recover the lowest") { () throws in
        #expect(try library.recover(path, id: item.uuid.text) { _ in }.count == 1)
      }
      #expect(try library.attributes(inos.last!, .library).nlink == 2)
      try expectShort("purge") { try library.purge(path, version: nil) }
      try Self.unnest(library, in: root, Self.nest(library, in: root))
      try expectShort("purge the deleted") { try library.purge(path, version: nil) }
      #expect(try library.counts().folders == 1 && library.counts().deleted == 0)
      try Self.unnest(library, in: root, Self.nest(library, in: root))
      people.clock.advance(31 * 86_400)
      _ = try library.compact { _ in }
      people.clock.advance(86_400)
      try expectShort("retention") { _ = try library.compact { _ in } }
      #expect(try library.counts().deleted == 0)
    }
  }

  /// A share that began after it was deleted: what comes back enters that, each folder at a time of its own.
  @Test func whatComesBackToAShareNeedNotFindOutAnewSinceWhen() throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      let root = try people.as(.alice) { try $0.inode("Documents/plans") }
      let inos = try Self.nest(library, in: root)
      try Self.unnest(library, in: root, inos)
      people.clock.advance(60)
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      let path = try ItemPath(account: People.Name.alice.handle, "Documents/plans/d")
      try Self.expectShortHolds("recover", library) {
        _ = try library.recover(path, id: nil) { _ in people.clock.advance(milliseconds: 1) }
      }
      try library.locked {
        let share = try #require(try library.share(ofFolder: inos.last!))
        // Nothing that is remembered says otherwise than the rows.
        let last = try library.entryTime(of: library.inode(inos.last!), in: share)
        library.shares.forgetFolders()
        let anew = try library.entryTime(of: library.inode(inos.last!), in: share)
        #expect(last == anew && last > share.row.since)
      }
    }
  }

  /// After a folder was moved nobody knows any more where what lies deep down is.
  @Test(arguments: [false, true]) func whoRecoversSomethingDeepDownHoldsNobodyUp(_ isShared: Bool) throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      if isShared { try people.share("Documents/plans", with: [(.bob, .readWrite)]) }
      let inos = try Self.nest(library, in: people.as(.alice) { try $0.inode("Documents/plans") })
      let name = Array("f".utf8)
      let ino = try library.make(.file, inos.last!, name, mode: 0o644, .library).ino
      let item = try #require(try library.store.read { try $0.inode(ino)?.item.flatMap($0.item) })
      let bob = People.Name.bob.handle
      let paths = [
        try ItemPath(account: People.Name.alice.handle, "Documents/plans"),
        try ItemPath(account: bob, "Shared/alice@example.com/plans"),
      ]
      for path in paths.prefix(isShared ? 2 : 1) {
        try library.unlink(inos.last!, name, .library)
        try library.settleEventsInSteps()
        library.locked { library.shares.forgetFolders() }
        try Self.expectShortHolds("recover, shared: \(isShared)", library) { () throws in
          #expect(try library.recover(path, id: item.uuid.text) { _ in }.count == 1)
        }
      }
    }
  }

  /// As after a move, which has it forgotten where folders are, and as after a change of rules.
  private static func forget(_ library: Library) {
    library.locked {
      library.shares.forgetFolders()
      library.ignored.forget()
    }
  }

  /// The first change deep down finds out where it is with the library free in between.
  @Test(arguments: [false, true]) func theFirstChangeDeepDownAfterAMoveHoldsNobodyUp(_ isShared: Bool) throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      if isShared { try people.share("Documents/plans", with: [(.bob, .readWrite)]) }
      let root = try people.as(.alice) { try $0.inode("Documents/plans") }
      let folder = try Self.nest(library, in: root).last!
      let caller = try isShared ? people.as(.bob) { try $0.caller } : .library
      func expectShort(_ what: String, _ body: () throws -> Void) throws {
        try library.settleEventsInSteps()
        Self.forget(library)
        try Self.expectShortHolds("\(what), shared: \(isShared)", library) { try body() }
      }
      func name(_ text: String) -> [UInt8] { Array(text.utf8) }
      try expectShort("make") { _ = try library.make(.folder, folder, name("a"), mode: 0o755, caller) }
      try expectShort("create") {
        let made = try library.create(folder, name("f"), mode: 0o644, flags: O_RDWR, caller)
        try library.release(made.handle)
      }
      try expectShort("rename") {
        try library.rename(folder, name("a"), to: folder, name("b"), .replace, caller)
      }
      try expectShort("move up") { try library.rename(folder, name("b"), to: root, name("b"), .replace, caller) }
      try expectShort("move down") { try library.rename(root, name("b"), to: folder, name("c"), .replace, caller) }
      try expectShort("exchange") {
        _ = try library.make(.folder, root, name("e"), mode: 0o755, caller)
        try library.rename(root, name("e"), to: folder, name("c"), .exchange, caller)
      }
      try expectShort("unlink") { try library.unlink(folder, name("f"), caller) }
      try expectShort("rmdir") { try library.rmdir(folder, name("c"), caller) }
      // It may not go into itself, as far down as that is.
      try expectShort("move into itself") {
        expect(.invalid) { try library.rename(root, name("d"), to: folder, name("d"), .replace, caller) }
      }
    }
  }

  /// What moved on the way up since that was looked up is looked up again.
  @Test func aFolderDoesNotGetIntoItselfByAnother() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    for name in ["a", "b"] { try fixture.mkdir(name) }
    let (a, b) = (try fixture.ino("a"), try fixture.ino("b"))
    let below = try Self.nest(library, in: b, depth: 400)
    let way = try #require(try library.wayUp(from: below.last!))
    func isBelow(_ top: Int64) throws -> Bool {
      try library.locked { try library.isBelow(below.last!, top, by: way) }
    }
    #expect(try isBelow(b) && !isBelow(a))
    try fixture.rename("b", "a/b")
    #expect(try isBelow(a))
    #expect(try library.wayUp(from: a) == nil)
    expect(.invalid) {
      try library.rename(fixture.root, Array("a".utf8), to: below.last!, Array("a".utf8), .replace, .library)
    }
    try fixture.finish()
  }

  /// Each step of a restoration finds out where it is with the library free in between, and so does what is asked before.
  @Test(arguments: [People.Name.alice, .bob]) func restoringADeepFolderHoldsNobodyUp(_ who: People.Name) throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      let root = try people.as(.alice) { try $0.inode("Documents/plans") }
      let inos = try Self.nest(library, in: root)
      func name(_ text: String) -> [UInt8] { Array(text.utf8) }
      func folder(_ parent: Int64, _ text: String) throws {
        _ = try library.make(.folder, parent, name(text), mode: 0o755, .library)
      }
      for text in ["up", "renamed", "gone"] { try folder(inos.last!, text) }
      try folder(root, "down")
      try library.settleEventsInSteps()
      people.clock.advance(60)
      let time = people.clock.now
      people.clock.advance(60)
      let caller = Caller.library
      try library.rename(inos.last!, name("up"), to: root, name("up"), .replace, caller)
      try library.rename(inos.last!, name("renamed"), to: inos.last!, name("other"), .replace, caller)
      try library.rename(root, name("down"), to: inos.last!, name("down"), .replace, caller)
      try library.rename(inos[1999], name("d"), to: inos[1999], name("e"), .replace, caller)
      try library.rmdir(inos.last!, name("gone"), caller)
      try folder(inos.last!, "new")
      people.clock.advance(60)
      let path = try people.as(who) {
        try $0.path(who == .alice ? "Documents/plans" : "Shared/alice@example.com/plans")
      }
      for by in [nil, People.Name.alice.handle] {
        Self.forget(library)
        try Self.expectShortHolds("dry run by \(who)", library) {
          let steps = try library.restoreFolder(path, .init(time: time, by: by, dryRun: true)) { _ in }.steps
          #expect(steps.count { $0.action != .leave } == 6, "\(steps)")
        }
      }
      Self.forget(library)
      try Self.expectShortHolds("restore by \(who)", library) {
        let steps = try library.restoreFolder(path, .init(time: time)) { _ in }.steps
        #expect(steps.count { $0.action != .leave } == 6, "\(steps)")
      }
      let names = try library.list(inos.last!, after: 0, limit: 10, .library).map(\.name)
      #expect(Set(names) == Set(["up", "renamed", "gone"].map(name)))
    }
  }

  /// The latest deletion in a folder that is there, below which very much is.
  @Test func whatWasDeletedLastDeepDownIsFoundAtOnce() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    func cost(_ name: String, _ depth: Int) throws -> Double {
      try fixture.mkdir(name)
      let inos = try Self.nest(library, in: fixture.ino(name), depth: depth)
      for ino in inos { _ = try library.make(.file, ino, Array("f".utf8), mode: 0o644, .library) }
      try library.settleEventsInSteps()
      for ino in inos { try library.unlink(ino, Array("f".utf8), .library) }
      return try DepthTests.cost { () throws in
        #expect(try library.recover(fixture.path(name), id: nil) { _ in }.count == depth)
      }
    }
    _ = try cost("first", 100)
    let (small, large) = (try cost("small", 200), try cost("large", 3200))
    #expect(large < 4 * 16 * small, "\(large) against \(small)")
    try fixture.finish()
  }

  // MARK: - Purging

  /// What somebody moves out of a folder that is being purged stays.
  @Test func whatIsMovedOutOnTheWayIsNotPurged() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    let inos = try Self.nest(library, in: fixture.root, depth: 300)
    _ = try library.make(.file, inos[299], Array("kept".utf8), mode: 0o644, .library)
    for ino in [inos[10], inos[299]] { _ = try library.make(.folder, ino, Array("x".utf8), mode: 0o755, .library) }
    try library.settleEventsInSteps()
    let path = try fixture.path("d")
    var purge: Purge? = try library.locked { try library.beginPurge(path) }
    var isMoved = false
    while let begun = purge {
      // It is on its way down, past what is moved.
      if begun.folders.contains(inos[100]), !isMoved {
        isMoved = true
        try library.rename(inos[19], Array("d".utf8), to: fixture.root, Array("moved".utf8), .replace, .library)
      }
      purge = try library.locked { try library.eraseSome(library.resumed(begun)) }
    }
    #expect(isMoved)
    #expect(try fixture.names() == ["moved"])
    #expect(try library.attributes(inos[299], .library).nlink == 3)
    let names = try library.list(inos[299], after: 0, limit: 10, .library).map {
      String(decoding: $0.name, as: UTF8.self)
    }
    #expect(Set(names) == ["kept", "x"])
    try fixture.finish()
  }

  @Test func veryManyMovesElsewhereAreTakenForOnesOnTheWay() {
    var book = ShareBook()
    let start = book.moveCount
    for ino in 1...100 { book.noteMove(ofFolder: Int64(ino)) }
    #expect(book.mayHaveMoved([7], since: start) && !book.mayHaveMoved([200], since: start))
    #expect(!book.mayHaveMoved([7], since: book.moveCount))
    for ino in 101...400 { book.noteMove(ofFolder: Int64(ino)) }
    #expect(book.mayHaveMoved([1000], since: start))
  }

  /// The old ones of very many versions go before their document, some at a time.
  @Test func veryManyVersionsArePurgedInSteps() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    let count = 2 * Library.erasedVersions + 40
    for number in 1...count { try fixture.save("a", "\(number)") }
    let ino = try fixture.ino("a")
    let item = try library.locked { try #require(library.inode(ino).row.item) }
    try library.settleEventsInSteps()
    var purge: Purge? = try library.locked { try library.beginPurge(fixture.path("a")) }
    var left: [Int] = []
    while let begun = purge {
      purge = try library.locked { try library.eraseSome(library.resumed(begun)) }
      try fixture.expectSound()
      left.append(try library.store.read { try $0.versions(item).count })
    }
    #expect(left == [count - Library.erasedVersions, count - 2 * Library.erasedVersions, 1, 0])
    // Retention does it alike.
    for number in 1...count { try fixture.save("b", "\(number)") }
    try fixture.unlink("b")
    fixture.clock.advance(31 * 86_400)
    _ = try fixture.compactAfterLong()
    #expect(try library.counts().deleted == 0 && library.counts().versions == 0)
    try fixture.finish()
  }

  // MARK: - Retention

  /// What goes is the same as by the rules themselves, applied to each.
  @Test func whatRetentionErasesIsWhatIsDueWithAllThatIsInIt() {
    var random = SeededRandom()
    for _ in 0..<300 {
      let count = Int64.random(in: 1...30, using: &random)
      // Of some deleted folders the one above is there, and has a number past these.
      var parents: [Int64: Int64] = [:]
      for ino in 1...count {
        parents[ino] = Bool.random(using: &random) && ino > 1 ? .random(in: 1..<ino, using: &random) : 1000
      }
      let old = Set(parents.keys.filter { _ in .random(in: 0..<5, using: &random) > 0 })
      let late = Set(old.filter { _ in .random(in: 0..<8, using: &random) == 0 })
      let due = old.subtracting(late)
      var forest = DeletedForest()
      for (ino, parent) in parents { forest.add(ino, in: parent) }
      let order = forest.erasable(due: due, late: late)
      func isBelow(_ ino: Int64, _ top: Int64) -> Bool {
        var next = ino
        while let parent = parents[next] {
          if parent == top { return true }
          next = parent
        }
        return false
      }
      let expected = parents.keys.filter { ino in
        due.contains(ino) && parents.keys.allSatisfy { !isBelow($0, ino) || due.contains($0) }
          && !late.contains { isBelow(ino, $0) }
      }
      #expect(Set(order) == Set(expected) && order.count == expected.count, random.note)
      for (place, ino) in order.enumerated() {
        #expect(!order[..<place].contains { isBelow(ino, $0) }, random.note)
      }
    }
    // Folders of a damaged library that lie in each other.
    var circle = DeletedForest()
    for (ino, parent) in [(1, 2), (2, 3), (3, 1), (4, 3), (5, 1000)] as [(Int64, Int64)] { circle.add(ino, in: parent) }
    #expect(circle.erasable(due: [1, 2, 3, 4, 5], late: []) == [4, 5])
  }

  @Test func whatWasNotedLastIsRemembered() {
    var table = RecentTable<Int, Int>(limit: 10)
    for number in 0..<100 {
      table.note(number, number)
      #expect((max(0, number - 4)...number).allSatisfy { table[$0] == $0 } && table[number - 10] == nil)
    }
    table.removeAll()
    #expect(table[99] == nil)
  }
}
