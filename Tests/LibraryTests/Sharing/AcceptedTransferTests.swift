import Foundation
import Glibc
import SheafModel
import SheafStore
import Synchronization
import Testing

@testable import SheafLibrary

/// Accepting a tree: at which moment it changes sides, and what goes on meanwhile.
struct AcceptedTransferTests {
  /// Makes `Documents/team` with so many files, and offers it to Bob.
  private func offerTeam(_ people: People, _ count: Int) throws -> String {
    try people.as(.alice) { alice in
      try alice.mkdir("Documents/team")
      try alice.mkdir("Documents/team/deep")
      for number in 0..<count {
        _ = try alice.library.make(
          .file, alice.inode(number % 2 == 0 ? "Documents/team" : "Documents/team/deep"), Array("f\(number)".utf8),
          mode: 0o644, alice.caller)
      }
      return try alice.offer("Documents/team", to: .bob)
    }
  }

  /// Calls `body` once, when something changes, before whoever changed it goes on.
  private func atTheMoment(
    _ people: People, _ isMeant: @escaping @Sendable (LibraryChange) -> Bool, _ body: @escaping @Sendable () -> Void
  ) -> Int {
    let isDone = Atomic(false)
    return people.library.observe(account: nil) { news in
      if news.contains(where: { isMeant($0.change) }), !isDone.exchange(true, ordering: .relaxed) { body() }
    }
  }

  private static func isGiving(_ change: LibraryChange) -> Bool { if case .givenAway = change { true } else { false } }

  private func owners(_ people: People) throws -> OwnerChange {
    try #require(
      people.library.store.read { try $0.setting(OwnerChange.setting) }.flatMap(OwnerChange.init(_:)),
      "nothing is on its way")
  }

  @Test func acceptingALargeTreeHoldsNobodyUp() throws {
    try People.story { people in
      let count = 3000
      let id = try offerTeam(people, count)
      try people.as(.alice) { try $0.unlink("Documents/team/f0") }
      let library = people.library
      let left = Atomic(0)
      let seen = Mutex<[String]>([])
      let door = atTheMoment(people, Self.isGiving) {
        // The lock is free, and the rows are yet to follow. Everybody sees the tree on its new side all the same.
        do {
          left.store(try library.store.snapshot { try $0.left(of: owners(people)).inos.count }, ordering: .relaxed)
          let names = try people.as(.bob) { bob in
            try ["f2998", "deep/f2999"].map { try "\(bob.status("Documents/team/" + $0).uid)" }
          }
          let (ino, former) = try (
            people.as(.bob) { try $0.inode("Documents/team/f10") }, library.number(of: People.Name.alice.handle)
          )
          let trash = try library.deletedTrees(People.Name.bob.handle, below: nil, limit: 10).trees.map(\.item.path)
          seen.withLock { $0 = names + ["\(library.sees(ino, former))"] + trash }
        } catch {
          Issue.record("\(error)")
        }
      }
      try people.as(.bob) { try $0.take(id) }
      library.endObserving(door)
      #expect(left.load(ordering: .relaxed) == count + 1)
      #expect(seen.withLock { $0 } == ["1001", "1001", "false", "Documents/team/f0"])
      // Nothing of it is looked at one by one with the lock held.
      #expect(library.lockHolds.mostLooks["accept"] == nil && library.lockHolds.mostLooks["inSteps"] == nil)
      #expect(try library.store.read { try $0.setting(OwnerChange.setting) } == nil)
    }
  }

  private static let capability = Array("security.capability".utf8)

  /// Whatever is known of rows in memory, they name the new owner in the end.
  @Test func allRowsFollow() throws {
    try People.story { people in
      let id = try offerTeam(people, 300)
      let library = people.library
      let (alice, bob) = try (
        library.number(of: People.Name.alice.handle), library.number(of: People.Name.bob.handle)
      )
      try people.as(.alice) { (alice: Person) throws -> Void in
        try alice.save("Documents/team/tool", "x")
        _ = try alice.change("Documents/team/tool", .init(mode: 0o6755))
        try library.setXattr(alice.inode("Documents/team/tool"), Self.capability, [1], .set, alice.caller)
        // Of a third user, and of the new owner's own.
        for (name, uid) in [("f0", UInt32(1234)), ("f2", 1001)] {
          let ino = try alice.inode("Documents/team/\(name)")
          _ = try library.setAttributes(ino, .init(uid: uid, gid: uid), handle: nil, .library)
          _ = try library.setAttributes(ino, .init(mode: 0o6755), handle: nil, .library)
        }
      }
      let inos = try people.as(.alice) { alice in
        try ["", "/deep", "/f0", "/deep/f299", "/f2", "/tool"].map { try alice.inode("Documents/team" + $0) }
      }
      func items() throws -> [ItemRow] {
        try library.locked {
          try library.read { rows in try inos.compactMap { try rows.inode($0)?.item }.compactMap { try rows.item($0) } }
        }
      }
      #expect(try items().map(\.owner) == [Int64](repeating: alice, count: 6))
      try people.as(.bob) { try $0.take(id) }
      #expect(try items().map(\.owner) == [Int64](repeating: bob, count: 6))
      // As by chown(2).
      try people.as(.bob) { bob in
        expect(.noAttribute) { _ = try library.xattr(inos[5], Self.capability, bob.caller) }
        let names = try library.xattrNames(inos[5], listsComputed: false, bob.caller)
        #expect(!names.contains(Self.capability))
      }
      // As another process finds them.
      let copy = people.fixture.folder + "/copy"
      try library.copyAsKilled(to: copy)
      let clock = people.clock
      let next = try Library.open(LibraryLocation(path: copy + "/library.sqlite")) { clock.now }
      let rows = try next.store.read { rows in try inos.compactMap { try rows.inode($0) } }
      #expect(rows.map(\.owner) == [Int64](repeating: bob, count: 6))
      #expect(rows.map(\.uid) == [UInt32](repeating: 1001, count: 6))
      #expect(try next.store.read { try $0.xattrNames(inos[5]) } == [])
      #expect(rows.allSatisfy { $0.mode & 0o6000 == 0 } && rows.last.map { $0.mode & 0o7777 } == 0o755)
      #expect(try next.store.read { rows in try rows.item(#require(rows.inode(inos[2])?.item))?.owner } == bob)
      try next.close()
    }
  }

  /// The new owner may have moved some of it elsewhere before the process ended.
  @Test(arguments: [true, false])
  func whatFollowsAfterACrashFollowsWhereverItIs(_ isRepaired: Bool) throws {
    try People.story { people in
      let id = try offerTeam(people, 100)
      try people.as(.alice) { (alice: Person) throws -> Void in
        try alice.save("Documents/team/deep/gone", "gone")
        try alice.unlink("Documents/team/deep/gone")
        try alice.mkdir("Documents/own")
        try alice.save("Documents/own/doc", "own")
      }
      let killed = people.fixture.folder + "/killed"
      let door = atTheMoment(people, Self.isGiving) {
        do {
          try people.as(.bob) { try $0.rename("Documents/team/deep", "Documents/moved") }
          try people.as(.bob) { try $0.rename("Documents/team/f2", "Documents/moved/f2") }
          // Rows that are on their way break no rule.
          let problems = try people.library.check { _ in }.problems
          #expect(problems == [])
          try people.library.copyAsKilled(to: killed)
        } catch {
          Issue.record("\(error)")
        }
      }
      try people.as(.bob) { try $0.take(id) }
      people.library.endObserving(door)
      let clock = people.clock
      var location = LibraryLocation(path: killed + "/library.sqlite")
      if isRepaired {
        let repaired = LibraryLocation(path: people.fixture.folder + "/repaired/library.sqlite")
        try FileManager.default.createDirectory(
          atPath: people.fixture.folder + "/repaired", withIntermediateDirectories: true)
        #expect(try Library.repair(location, to: repaired).lost == [])
        location = repaired
      }
      let library = try Library.open(location) { clock.now }
      let (alice, bob) = (
        Person(library: library, name: .alice, process: 0), Person(library: library, name: .bob, process: 0)
      )
      #expect(try library.check { _ in }.problems == [])
      #expect(try bob.names("Documents") == ["moved", "team"] && bob.names("Documents/moved").count == 51)
      #expect(try bob.names("Documents/team").count == 49)
      for path in ["team", "team/f0", "moved", "moved/f2", "moved/f99"] {
        #expect(try bob.status("Documents/" + path).uid == People.Name.bob.uid)
      }
      #expect(try library.deleted(bob.name.handle, below: nil).map(\.path) == ["Documents/moved/gone"])
      #expect(try library.deleted(alice.name.handle, below: nil).isEmpty)
      #expect(try alice.names("Documents") == ["own"] && alice.read("Documents/own/doc") == "own")
      #expect(try library.store.read { try $0.setting(OwnerChange.setting) } == nil)
      try library.close()
    }
  }

  /// What each has open and did not save stays theirs until they save it.
  @Test func unsavedTextStaysWithWhoWroteIt() throws {
    try People.story { people in
      try people.as(.alice) { (alice: Person) throws -> Void in
        try alice.mkdir("Documents/team")
        try alice.save("Documents/team/doc", "one")
      }
      people.clock.advance(60)
      try people.share("Documents/team", with: [(.bob, .readWrite)])
      let (alice, bob) = (
        Person(library: people.library, name: .alice, process: 0),
        Person(library: people.library, name: .bob, process: 0)
      )
      let written = try alice.open("Documents/team/doc", O_RDWR)
      let read = try bob.open("Shared/alice@example.com/team/doc", O_RDWR)
      #expect(try alice.read(written) == "one" && bob.read(read) == "one")
      let id = try alice.offer("Documents/team", to: .bob)
      try alice.write(written, "two")
      // What she wrote is a version of the document that goes.
      try bob.take(id)
      #expect(try bob.read("Documents/team/doc") == "two")
      #expect(try bob.versions("Documents/team/doc").last?.author == alice.name.handle)
      // What she writes from then on is hers until it is saved, though the owner has the document open.
      try alice.write(written, "six")
      #expect(try bob.read(read) == "two" && bob.attribute("state", "Documents/team/doc") == "saved")
      try bob.write(read, "ten")
      #expect(try alice.read(written) == "six" && bob.read("Documents/team/doc") == "ten")
      try bob.close(read)
      try alice.close(written)
      #expect(try bob.read("Documents/team/doc") == "six")
      let versions = try bob.versions("Documents/team/doc")
      #expect(versions.suffix(2).map(\.author) == [bob.name.handle, alice.name.handle])
    }
  }

  @Test func whatNobodySavedYetStaysWhereItIs() throws {
    try People.story { people in
      let alice = Person(library: people.library, name: .alice, process: 0)
      try alice.mkdir("Documents/team")
      let handle = try alice.open("Documents/team/new", O_RDWR | O_CREAT)
      try alice.write(handle, "text")
      let id = try alice.offer("Documents/team", to: .bob)
      expect(.busy) { _ = try people.as(.bob) { try $0.take(id) } }
      #expect(try alice.read(handle) == "text")
      try alice.close(handle)
      try people.as(.bob) { (bob: Person) throws -> Void in
        try bob.take(id)
        #expect(try bob.read("Documents/team/new") == "text")
      }
    }
  }

  /// What somebody is still making is told of to whom it belongs by then.
  @Test func whatIsStillBeingMadeIsToldOfToTheNewOwner() throws {
    try People.story { people in
      let alice = Person(library: people.library, name: .alice, process: 0)
      try alice.mkdir("Documents/team")
      try people.library.settleEventsInSteps()
      let id = try alice.offer("Documents/team", to: .bob)
      let handle = try alice.open("Documents/team/new", O_RDWR | O_CREAT)
      let last = people.library.lastEvent
      try people.as(.bob) { try $0.take(id) }
      try people.library.release(handle)
      people.clock.advance(60)
      try people.library.settleEventsInSteps()
      func told(_ who: People.Name) throws -> [String] {
        try people.library.events(after: last, limit: 10, for: who.handle).events
          .map { "\($0.type.rawValue) \($0.data.item.path)" }
      }
      #expect(try told(.alice) == ["sheaf.persistence.deleted team"])
      #expect(try told(.bob) == ["sheaf.persistence.created team", "sheaf.persistence.created team/new"])
    }
  }

  @Test func offersOfWhatIsInsideEnd() throws {
    try People.story { people in
      try people.as(.alice) { (alice: Person) throws -> Void in
        try alice.mkdir("Documents/team")
        try alice.save("Documents/team/doc", "x")
      }
      let inner = try people.as(.alice) { try $0.offer("Documents/team/doc", to: .carol) }
      let outer = try people.as(.alice) { try $0.offer("Documents/team", to: .bob) }
      try people.as(.bob) { try $0.take(outer) }
      #expect(try people.library.transfers(of: People.Name.carol.handle).isEmpty)
      expect(.notFound) { _ = try people.as(.carol) { try $0.take(inner) } }
      // And back again.
      try people.as(.bob) { bob in try bob.save("Documents/team/doc", "y") }
      let back = try people.as(.bob) { try $0.offer("Documents/team", to: .alice) }
      expect(.notFound) { _ = try people.as(.alice) { try $0.take(inner) } }
      try people.as(.alice) { (alice: Person) throws -> Void in
        try alice.take(back)
        #expect(try alice.read("Documents/team/doc") == "y" && alice.versions("Documents/team/doc").count == 2)
        #expect(try alice.status("Documents/team/doc").uid == People.Name.alice.uid)
      }
    }
  }

  @Test func anInnerOfferThatIsAcceptedFirstLeavesTheRest() throws {
    try People.story { people in
      try people.as(.alice) { (alice: Person) throws -> Void in
        try alice.mkdir("Documents/team")
        for name in ["a", "b"] { try alice.save("Documents/team/" + name, name) }
      }
      let outer = try people.as(.alice) { try $0.offer("Documents/team", to: .bob) }
      let inner = try people.as(.alice) { try $0.offer("Documents/team/a", to: .carol) }
      try people.as(.carol) { try $0.take(inner) }
      try people.as(.bob) { (bob: Person) throws -> Void in
        try bob.take(outer)
        #expect(try bob.names("Documents/team") == ["b"])
      }
      let taken = try people.as(.carol) { try $0.read("Documents/a") }
      #expect(taken == "a")
    }
  }

  @Test func anAccountHasFewOffers() throws {
    try People.story { people in
      for number in 0...Library.offerLimit.account {
        try people.as(.alice) { try $0.save("Documents/f\(number)", "x") }
      }
      for number in 0..<Library.offerLimit.account {
        _ = try people.as(.alice) { try $0.offer("Documents/f\(number)", to: .bob) }
      }
      let last = "Documents/f\(Library.offerLimit.account)"
      expect(.tooLarge) { _ = try people.as(.alice) { try $0.offer(last, to: .bob) } }
      // To somebody else it is the same offer, and what is destroyed is offered no more.
      _ = try people.as(.alice) { try $0.offer("Documents/f0", to: .carol) }
      try people.library.purge(people.as(.alice) { try $0.path("Documents/f1") }, version: nil)
      _ = try people.as(.alice) { try $0.offer(last, to: .bob) }
      let kept = try people.library.locked {
        try people.library.read { try $0.numberSettings(after: "transferOffer.") }
      }
      #expect(kept.count == Library.offerLimit.account)
    }
  }

  @Test func anAccountThatIsRemovedIsOfferedNothing() throws {
    try People.story { people in
      try people.as(.alice) { (alice: Person) throws -> Void in
        for name in ["doc", "shared"] { try alice.save("Documents/" + name, "x") }
      }
      // History names him, so that the account that is added later is the same one.
      try people.share("Documents/shared", with: [(.bob, .readWrite)])
      try people.as(.bob) { try $0.save("Shared/alice@example.com/shared", "y") }
      let id = try people.as(.alice) { try $0.offer("Documents/doc", to: .bob) }
      let former = try people.library.number(of: People.Name.bob.handle)
      try people.library.removeAccount(People.Name.bob.handle)
      #expect(try people.library.transfers(of: People.Name.alice.handle).isEmpty)
      expect(.notFound) { _ = try people.as(.bob) { try $0.take(id) } }
      _ = try people.library.addAccount(People.Name.bob.handle, name: nil, uid: 1001, gid: 1001)
      #expect(try people.library.number(of: People.Name.bob.handle) == former)
      expect(.notFound) { _ = try people.as(.bob) { try $0.take(id) } }
    }
  }

  /// The former owner can be removed once it has nothing more, and not before all is the other one's.
  @Test func whoGaveEverythingAwayCanGo() throws {
    try People.story { people in
      let id = try people.as(.dan) { (dan: Person) throws -> String in
        try dan.mkdir("Documents/team")
        for number in 0..<200 { try dan.save("Documents/team/f\(number)", "x") }
        return try dan.offer("Documents/team", to: .bob)
      }
      expect(.notEmpty) { try people.library.removeAccount(People.Name.dan.handle) }
      try people.as(.bob) { try $0.take(id) }
      try people.library.removeAccount(People.Name.dan.handle)
      try people.as(.bob) { (bob: Person) throws -> Void in
        #expect(try bob.versions("Documents/team/f199").first?.author == People.Name.dan.handle)
      }
    }
  }

  // MARK: - What goes on meanwhile

  @Test func aPurgeEndsWhereTheTreeChangesSides() throws {
    try People.story { people in
      let id = try offerTeam(people, 200)
      let isRemoved: @Sendable (LibraryChange) -> Bool = { if case .removed = $0 { true } else { false } }
      let door = atTheMoment(people, isRemoved) {
        do { try people.as(.bob) { try $0.take(id) } } catch { Issue.record("\(error)") }
      }
      let folder = try people.as(.alice) { try $0.path("Documents/team/deep") }
      expect(.accessDenied) { try people.library.purge(folder, version: nil) }
      people.library.endObserving(door)
      #expect(try people.as(.bob) { try $0.names("Documents/team/deep").count } > 60)
    }
  }

  @Test func emptyingTheTrashLeavesWhatIsTheOthersByNow() throws {
    try People.story { people in
      let id = try offerTeam(people, 80)
      try people.as(.alice) { alice in
        for number in 0..<80 where number % 2 == 0 { try alice.unlink("Documents/team/f\(number)") }
        try alice.save("Documents/own", "x")
        try alice.unlink("Documents/own")
      }
      var isDone = false
      _ = try people.library.emptyTrash(People.Name.alice.handle, below: nil, TrashSelection()) { progress in
        // It is still choosing where it does not know how much there is.
        if isDone || progress.total == 0 { return }
        isDone = true
        do { try people.as(.bob) { try $0.take(id) } } catch { Issue.record("\(error)") }
      }
      let left = try people.library.deleted(People.Name.bob.handle, below: nil)
      #expect(left.count > 8 && left.allSatisfy { $0.path.hasPrefix("Documents/team/") })
      #expect(try people.library.deleted(People.Name.alice.handle, below: nil).isEmpty)
    }
  }

  @Test func aRecoveryEndsWhereTheTreeChangesSides() throws {
    try People.story { people in
      let id = try offerTeam(people, 200)
      try people.as(.alice) { alice in
        for number in 0..<200 where number % 2 == 1 { try alice.unlink("Documents/team/deep/f\(number)") }
        try alice.rmdir("Documents/team/deep")
      }
      people.clock.advance(1)
      var isDone = false
      expect(.accessDenied) {
        _ = try people.library.recover(people.as(.alice) { try $0.path("Documents/team/deep") }, id: nil) { _ in
          if isDone { return }
          isDone = true
          do { try people.as(.bob) { try $0.take(id) } } catch { Issue.record("\(error)") }
        }
      }
      let (names, deleted) = try (
        people.as(.bob) { try $0.names("Documents/team/deep").count },
        people.library.deleted(People.Name.bob.handle, below: nil).count
      )
      #expect(names + deleted == 100 && names < 100)
    }
  }

  /// Things move in and out while the tree is given away: each of them is on one side, as its folder is.
  @Test func randomMovesMeanwhileLeaveEachThingOnOneSide() throws {
    var random = SeededRandom()
    print("seed \(random.seed)")
    try People.story { people in
      for round in 0..<12 {
        let (team, other) = ("Documents/team\(round)", "Documents/other\(round)")
        try people.as(.alice) { alice in
          for folder in [team, other, team + "/in", other + "/out"] { try alice.mkdir(folder) }
          for number in 0..<60 {
            try alice.save("\(team)/\(["", "in/"].randomElement(using: &random)!)a\(number)", "x")
            try alice.save("\(other)/\(["", "out/"].randomElement(using: &random)!)b\(number)", "x")
          }
        }
        let id = try people.as(.alice) { try $0.offer(team, to: .bob) }
        let seed = UInt64.random(in: 0 ... .max, using: &random)
        let (begun, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let mover = Thread {
          var random = SeededRandom(seed: seed)
          let alice = Person(library: people.library, name: .alice, process: 0)
          begun.signal()
          let places = [team, team + "/in", other, other + "/out", team + "/new", other + "/new"]
          for step in 0..<200 {
            let (from, to) = (places.randomElement(using: &random)!, places.randomElement(using: &random)!)
            let name = "/\(["a", "b"].randomElement(using: &random)!)\(Int.random(in: 0..<60, using: &random))"
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5: try? alice.rename(from + name, to + name)
            case 5: try? alice.mkdir([team, other].randomElement(using: &random)! + "/new")
            case 6: try? alice.rename(team + "/in", other + "/in")
            case 7: try? alice.rename(other + "/out", team + "/out")
            case 8: try? alice.unlink(from + name)
            default: try? alice.save(from + "/c\(step)", "x")
            }
          }
          done.signal()
        }
        mover.start()
        begun.wait()
        var isTaken = false
        while !isTaken {
          do {
            try people.as(.bob) { _ = try $0.take(id) }
            isTaken = true
          } catch let error as SheafError where error.kind == .busy {
            sched_yield()
          }
        }
        done.wait()
        // `check` finds what is not its folder's owner's.
        #expect(try people.library.check { _ in }.problems == [], "seed \(random.seed), round \(round)")
        #expect(try people.as(.alice) { try !$0.names("Documents").contains("team\(round)") })
      }
    }
  }
}

/// The search for what is in a tree while it changes.
struct TransferredTreeTests {
  private func watch(_ note: (inout TransferWatch) -> Void) throws -> [TransferWatch.Move] {
    var watch = TransferWatch()
    watch.begin()
    note(&watch)
    let moves = watch.take()
    return try #require(moves)
  }

  private func place(_ folder: Int64) -> LibraryPlace { .init(folder: .inode(folder), name: [65]) }

  private func named(_ ino: Int64, in folder: Int64) -> NamedInode { .init(ino: ino, mode: 0, place: place(folder)) }

  @Test func whatCrossesTheBorderIsNoticed() throws {
    // The tree has 20 to 29, and new numbers begin with 100.
    let tree = TransferredTree(top: 20, (20..<30).map { TreeMember(ino: $0, item: nil, parent: 20) }, after: 99)
    func holds(_ ino: Int64, from: Int64, to: Int64) throws -> Bool {
      try watch { $0.note(.renamed(named(ino, in: from), to: place(to), replaced: nil, exchanged: false)) }
        .allSatisfy(tree.holds)
    }
    #expect(try holds(21, from: 20, to: 22) && holds(50, from: 51, to: 52) && holds(20, from: 50, to: 51))
    #expect(try !holds(21, from: 20, to: 50) && !holds(50, from: 51, to: 20))
    // A folder that is new may be in it or not; what is new is looked at when its turn comes.
    #expect(try !holds(21, from: 20, to: 100) && !holds(50, from: 51, to: 100) && holds(101, from: 50, to: 20))
    // A name that comes back, and two that are exchanged.
    #expect(try !watch { $0.note(.made(named(50, in: 20))) }.allSatisfy(tree.holds))
    #expect(
      try !watch {
        $0.note(.renamed(named(101, in: 20), to: place(50), replaced: named(51, in: 50), exchanged: true))
      }.allSatisfy(tree.holds))
  }

  @Test func whatIsNewIsAdded() {
    var tree = TransferredTree(top: 20, (20..<30).map { TreeMember(ino: $0, item: $0, parent: 20) }, after: 99)
    let isCertain = tree.add([
      .init(ino: 100, item: 100, parent: 20), .init(ino: 101, item: 101, parent: 100),
      .init(ino: 102, item: 21, parent: 50),
    ])
    #expect(isCertain && tree.inos.isSuperset(of: [20, 29, 100, 101]) && !tree.inos.contains(102))
    // The document went to another inode, which lies elsewhere.
    #expect(tree.items.contains(101) && !tree.items.contains(21) && tree.last == 102)
    let later = tree.add([.init(ino: 103, item: nil, parent: 104)])
    #expect(!later)
    var linked = TransferredTree(top: 20, [], after: 99)
    let isCertainOfLinks = linked.add([.init(ino: 100, item: nil, parent: 50, hasLinks: true)])
    #expect(!isCertainOfLinks)
  }

  /// By whatever way something gets a name.
  @Test func whoeverWatchesHearsOfEachName() throws {
    try People.story { people in
      let library = people.library
      let alice = Person(library: library, name: .alice, process: 0)
      for folder in ["a", "b"] { try alice.mkdir("Documents/" + folder) }
      for file in ["moved", "other", "gone"] { try alice.save("Documents/a/" + file, "x") }
      try alice.save("Documents/b/other", "y")
      let (a, b) = try (alice.inode("Documents/a"), alice.inode("Documents/b"))
      let inos = try ["a/moved", "a/other", "b/other", "a/gone"].map { try alice.inode("Documents/" + $0) }
      try alice.unlink("Documents/a/gone")
      library.locked { library.transferWatch.begin() }
      try alice.rename("Documents/a/moved", "Documents/b/moved")
      try alice.link("Documents/b/moved", "Documents/a/linked")
      try alice.exchange("Documents/a/other", "Documents/b/other")
      _ = try library.recover(alice.path("Documents/a/gone"), id: nil) { _ in }
      let moves = try #require(library.locked { library.transferWatch.take()?.map { [$0.ino, $0.folder] } })
      #expect(Set(moves) == [[inos[0], b], [inos[0], a], [inos[1], b], [inos[2], a], [inos[3], a]])
      library.locked { library.transferWatch.end() }
    }
  }

  @Test func tooManyMovesAreNotKept() {
    var watch = TransferWatch()
    watch.note(.made(named(50, in: 20)))
    let before = watch.take()
    watch.begin()
    for _ in 0..<513 { watch.note(.made(named(50, in: 20))) }
    let after = watch.take()
    #expect(before == nil && after == nil)
  }
}
