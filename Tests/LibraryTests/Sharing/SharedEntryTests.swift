import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// What stands in `Shared/OWNER/`, and how many shares one account may have.
struct SharedEntryTests {
  /// As many entries of one name as there are: each number is tried once.
  @Test func numbersAreTriedOnce() {
    var names = SharedNames()
    // Names of their own come first, and may be what others would get.
    let own = ["plan (3).md", "plan (700).md", "plan (2) (2).md"].map { names.take(Array($0.utf8), isFolder: false) }
    let count = 1000
    let plans = (0..<count).map { _ in names.take(Array("plan.md".utf8), isFolder: false) }
    let others = (0..<count).map { _ in names.take(Array("plan (2).md".utf8), isFolder: false) }
    #expect(names.tried < 5 * count, "\(names.tried) tries")
    // One after the other, with all numbers tried anew.
    var taken = Set(own)
    for (name, given) in plans.map({ ("plan.md", $0) }) + others.map({ ("plan (2).md", $0) }) {
      var expected = Array(name.utf8)
      var number = 2
      while !taken.insert(expected).inserted {
        expected = Array("\(name.dropLast(".md".count)) (\(number)).md".utf8)
        number += 1
      }
      guard given == expected else {
        Issue.record("\(String(decoding: given, as: UTF8.self)) is \(String(decoding: expected, as: UTF8.self))")
        return
      }
    }
  }

  /// A folder has no extension.
  @Test func aFoldersNumberStandsBehindItsDots() {
    var names = SharedNames()
    _ = names.take(Array("plan.v1".utf8), isFolder: false)
    #expect(names.take(Array("plan.v1".utf8), isFolder: true) == Array("plan.v1 (2)".utf8))
  }

  /// Looks at bob's entries of alice's twice: what was remembered, and what is so.
  private func expectCurrent(
    _ people: People, _ expected: [String], _ location: SourceLocation = #_sourceLocation
  ) throws {
    let (alice, bob) = (
      try people.library.number(of: People.Name.alice.handle), try people.library.number(of: People.Name.bob.handle)
    )
    let (seen, isKept, current) = try people.library.locked {
      let seen = try people.library.listing(of: bob, owner: alice).entries
      let isKept = people.library.shares.listing(.init(account: bob, owner: alice)) != nil
      people.library.shares.forgetListings()
      return (seen, isKept, try people.library.listing(of: bob, owner: alice).entries)
    }
    #expect(seen == current && isKept, sourceLocation: location)
    #expect(seen.map { String(decoding: $0.name, as: UTF8.self) } == expected, sourceLocation: location)
  }

  /// Whatever changes an entry, nobody sees what was remembered of it.
  @Test func whatIsRememberedIsSo() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for folder in ["a", "b", "a/plans"] { try alice.mkdir("Documents/\(folder)") }
        try alice.save("Documents/a/plan.md", "one")
        try alice.save("Documents/b/plan.md", "two")
      }
      try expectCurrent(people, [])
      try people.share("Documents/a/plan.md", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try expectCurrent(people, ["plan.md"])
      try people.share("Documents/b/plan.md", with: [(.bob, .readWrite)])
      try expectCurrent(people, ["plan.md", "plan (2).md"])
      people.clock.advance(60)
      // Names: of the item, and the account's own.
      try people.as(.alice) { try $0.rename("Documents/a/plan.md", "Documents/a/other.md") }
      try expectCurrent(people, ["other.md", "plan.md"])
      try people.as(.bob) { try $0.renameEntry(.alice, "plan.md", "mine.md") }
      try expectCurrent(people, ["mine.md", "other.md"])
      try people.as(.alice) { try $0.rename("Documents/a/other.md", "Documents/b/other.md") }
      try expectCurrent(people, ["mine.md", "other.md"])
      people.clock.advance(60)
      // The inode: saved by a rename, made anew, and changed for another one.
      try people.as(.alice, process: getpid()) { (alice) throws in
        try alice.save("Documents/b/other.tmp", "three")
        try alice.rename("Documents/b/other.tmp", "Documents/b/other.md")
      }
      try expectCurrent(people, ["mine.md", "other.md"])
      people.clock.advance(60)
      try people.as(.alice, process: getpid()) { (alice) throws in
        try alice.unlink("Documents/b/other.md")
        try expectCurrent(people, ["mine.md"])
        try alice.save("Documents/b/other.md", "four")
      }
      try expectCurrent(people, ["mine.md", "other.md"])
      people.clock.advance(60)
      try people.as(.alice, process: getpid()) { (alice) throws in
        try alice.save("Documents/b/new.md", "five")
        try alice.exchange("Documents/b/new.md", "Documents/b/other.md")
      }
      try expectCurrent(people, ["mine.md", "other.md"])
      people.clock.advance(60)
      // Renamed to a backup, and made anew.
      try people.as(.alice, process: getpid()) { (alice) throws in
        try alice.rename("Documents/b/other.md", "Documents/b/other.md~")
        try expectCurrent(people, ["mine.md", "other.md~"])
        try alice.save("Documents/b/other.md", "six")
      }
      try expectCurrent(people, ["mine.md", "other.md"])
      people.clock.advance(60)
      // Gone, and back under another name; gone for good.
      try people.as(.alice) { (alice) throws in
        try alice.unlink("Documents/b/other.md")
        try expectCurrent(people, ["mine.md"])
        people.clock.advance(60)
        try alice.save("Documents/b/other.md", "another")
        people.clock.advance(60)
        try expectCurrent(people, ["mine.md"])
        _ = try alice.library.recover(alice.path("Documents/b/other.md"), id: nil) { _ in }
      }
      try expectCurrent(people, ["mine.md", "other (2).md"])
      try people.as(.alice) { (alice) throws in
        try alice.unlink("Documents/b/other (2).md")
        people.clock.advance(60)
        try alice.library.purge(alice.path("Documents/b/other (2).md"), version: nil)
      }
      try expectCurrent(people, ["mine.md"])
      // The folder around it is of no importance, but deleted with it.
      try people.as(.alice) { try $0.rename("Documents/b", "Documents/c") }
      try expectCurrent(people, ["mine.md"])
      // Who takes part.
      try people.as(.alice) { try $0.remove("Documents/c/plan.md", .bob) }
      try expectCurrent(people, [])
      let url = try people.share("Documents/c/plan.md", with: [(.bob, .readOnly)])
      try expectCurrent(people, ["mine.md"])
      try people.as(.bob) { try $0.removeEntry(.alice, "mine.md") }
      try expectCurrent(people, [])
      try people.as(.alice) { try $0.share("Documents/c/plan.md", with: [.bob]) }
      try people.as(.bob) { _ = try $0.accept(url) }
      try expectCurrent(people, ["plan.md"])
      try people.as(.alice) { try $0.library.unshare($0.path("Documents/c/plan.md")) }
      try expectCurrent(people, [])
      // All documents.
      try people.share("Documents", with: [(.bob, .readWrite)])
      try expectCurrent(people, ["Documents"])
    }
  }

  /// Shares of others change nothing of what is remembered.
  @Test func whatOthersShareIsNotLookedAt() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/a.md", "a") }
      try people.share("Documents/a.md", with: [(.bob, .readWrite)])
      let folder = SharedFolder(
        account: try people.library.number(of: People.Name.bob.handle),
        owner: try people.library.number(of: People.Name.alice.handle))
      func isKept() -> Bool { people.library.locked { people.library.shares.listing(folder) != nil } }
      _ = try people.as(.bob) { try $0.entries(.alice) }
      #expect(isKept())
      try people.as(.alice) {
        try $0.save("Documents/b.md", "b")
        try $0.rename("Documents/b.md", "Documents/c.md")
        try $0.unlink("Documents/c.md")
        try $0.save("Documents/d.md", "d")
      }
      try people.share("Documents/d.md", with: [(.carol, .readWrite)])
      try people.as(.dan) { try $0.save("Documents/e.md", "e") }
      let url = try people.as(.dan) { try $0.share("Documents/e.md", with: [.bob]) }.url
      try people.as(.bob) { _ = try $0.accept(url) }
      #expect(isKept())
      try people.as(.alice) { try $0.rename("Documents/a.md", "Documents/f.md") }
      #expect(!isKept())
    }
  }

  /// What was read in a change that failed is not remembered.
  @Test func aFailedChangeLeavesNoEntry() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/a.md", "a") }
      try people.share("Documents/a.md", with: [(.bob, .readWrite)])
      let library = people.library
      let (alice, bob) = (
        try library.number(of: People.Name.alice.handle), try library.number(of: People.Name.bob.handle)
      )
      let ino = try people.as(.alice) { try $0.inode("Documents/a.md") }
      library.locked {
        // As if nobody had looked at it for long.
        library.inodes.remove(ino)
        library.shares.forgetListings()
        try? library.makeChange(.rename) { change in
          var row = try #require(try change.rows.inode(ino))
          row.name = Array("b.md".utf8)
          try change.rows.update(row)
          #expect(try library.listing(of: bob, owner: alice).entries.map(\.name) == [row.name])
          throw SheafError(.inputOutput)
        }
      }
      try expectCurrent(people, ["a.md"])
    }
  }

  @Test func oneAccountHasAThousandSharesAtMost() throws {
    try People.story { people in
      let library = people.library
      for name in [People.Name.alice, .carol] {
        try people.as(name) {
          for document in ["a", "b"] { try $0.save("Documents/\(document).md", "") }
        }
      }
      let url = try people.as(.carol) { try $0.share("Documents/a.md", with: [.bob]) }.url
      let (alice, bob) = (
        try library.number(of: People.Name.alice.handle), try library.number(of: People.Name.bob.handle)
      )
      try people.as(.alice) { try $0.share("Documents/a.md") }
      // Of items that nobody looks at.
      func share(_ number: Int, isActive: Bool) {
        let (item, time) = (Int64(1_000_000 + number), people.clock.now)
        var row = ShareRow(item: item, uuid: UUID(), token: .random(), title: "\(number)", time: time)
        row.isActive = isActive
        func participant(_ account: Int64, _ role: Role) -> (Int64, ParticipantRow) {
          let row = ParticipantRow(
            share: item, account: account, role: role, permission: .readWrite, acceptance: .accepted, since: time)
          return (account, row)
        }
        let all = [participant(alice, .owner), participant(bob, .privateUser)]
        library.locked { library.shares.set(.init(row: row, participants: Dictionary(uniqueKeysWithValues: all))) }
      }
      for number in 1..<Library.shareLimit { share(number, isActive: true) }
      try people.as(.alice) { (alice) throws in
        expect(.tooLarge) { try alice.share("Documents/b.md") }
        // Those that there are can be changed.
        try alice.share("Documents/a.md", with: [.carol])
        #expect(try alice.library.share(of: alice.path("Documents/b.md")) == nil)
      }
      share(Library.shareLimit, isActive: true)
      try people.as(.bob) { (bob) throws in expect(.tooLarge) { _ = try bob.accept(url) } }
      for number in 1...2 { share(number, isActive: false) }
      try people.as(.alice) { try $0.share("Documents/b.md") }
      try people.as(.bob) { (bob) throws in #expect(try bob.accept(url).path != nil) }
    }
  }
}
