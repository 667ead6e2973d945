import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// Participants see nothing of what a document was before it entered the share, whatever becomes of its versions.
struct SharedHistoryTests {
  private static let hour: Int64 = 3600

  /// Where a document lies, and how it comes to be shared.
  enum Entry: CaseIterable {
    case alone, withFolder, movedIn, movedInWithFolder, exchanged

    var before: String {
      switch self {
      case .alone: "Documents/plan.md"
      case .withFolder: "Documents/shared/plan.md"
      case .movedIn, .exchanged: "Documents/draft.md"
      case .movedInWithFolder: "Documents/work/plan.md"
      }
    }

    var after: String {
      switch self {
      case .alone, .withFolder: before
      case .movedIn, .exchanged: "Documents/shared/plan.md"
      case .movedInWithFolder: "Documents/shared/work/plan.md"
      }
    }

    var shared: String {
      "Shared/alice@example.com/" + after.dropFirst("Documents/".count)
    }
  }

  /// Has the document be shared with bob in the way of `entry`.
  private func enter(_ people: People, _ entry: Entry) throws {
    switch entry {
    case .alone: try people.share(entry.after, with: [(.bob, .readWrite)])
    case .withFolder: try people.share("Documents/shared", with: [(.bob, .readWrite)])
    case .movedIn: try people.as(.alice) { try $0.rename(entry.before, entry.after) }
    case .movedInWithFolder: try people.as(.alice) { try $0.rename("Documents/work", "Documents/shared/work") }
    case .exchanged: try people.as(.alice) { try $0.exchange(entry.before, entry.after) }
    }
  }

  private func prepare(_ people: People, _ entry: Entry) throws {
    try people.as(.alice) {
      try $0.mkdir("Documents/shared")
      try $0.mkdir("Documents/work")
    }
    if [.movedIn, .movedInWithFolder, .exchanged].contains(entry) {
      if entry == .exchanged { try people.as(.alice) { try $0.save(entry.after, "other") } }
      try people.share("Documents/shared", with: [(.bob, .readWrite)])
    }
  }

  private func expectNoSecret(_ people: People, _ entry: Entry, versions: [Int64]) throws {
    try people.as(.bob) { (bob) throws in
      #expect(try bob.versions(entry.shared).map(\.number) == versions)
      let ino = try bob.inode(entry.shared)
      let item = try #require(try people.library.locked { try people.library.inode(ino).row.item })
      #expect(try people.library.versionFiles(of: item, bob.caller).map(\.number) == versions)
      expect(.notFound) { _ = try people.library.openVersion(of: item, number: 1, bob.caller) }
      expect(.notFound) { try people.library.readVersion(bob.path(entry.shared), number: 1) { _ in } }
      expect(.notFound) { _ = try people.library.restore(bob.path(entry.shared), version: 1) }
    }
  }

  @Test(arguments: Entry.allCases)
  func thinningUncoversNothing(_ entry: Entry) throws {
    try People.story { people in
      // Half past an hour, so that the version that is current at the entry is not the last of its hour.
      people.clock.advance(Self.hour / 2 + Self.hour - people.clock.now.seconds % Self.hour)
      try prepare(people, entry)
      try people.as(.alice) { try $0.save(entry.before, "secret") }
      people.clock.advance(35 * 60)
      try people.as(.alice) { try $0.save(entry.before, "clean") }
      people.clock.advance(60)
      try enter(people, entry)
      for (minutes, text) in [(34, "three"), (30, "four"), (120, "five")] as [(Int64, String)] {
        people.clock.advance(minutes * 60)
        try people.as(.alice) { try $0.save(entry.after, text) }
      }
      people.clock.advance(36 * Self.hour)
      _ = try people.library.compact { _ in }
      try expectNoSecret(people, entry, versions: [2, 3, 4, 5])
      // A clock that is far ahead is believed after a day.
      for days: Int64 in [600, 1] {
        people.clock.advance(days * 24 * Self.hour)
        _ = try people.library.compact { _ in }
      }
      try expectNoSecret(people, entry, versions: [2, 3, 5])
      // What is not shared is thinned as ever.
      try people.as(.alice) { (alice) throws in
        try alice.library.unshare(alice.path(entry == .alone ? entry.after : "Documents/shared"))
        _ = try alice.library.compact { _ in }
        #expect(try alice.versions(entry.after).map(\.number) == [5])
      }
    }
  }

  @Test(arguments: Entry.allCases)
  func whatIsBeingWrittenMeanwhileUncoversNothing(_ entry: Entry) throws {
    try People.story { people in
      try prepare(people, entry)
      try people.as(.alice) { try $0.save(entry.before, "secret") }
      people.clock.advance(60)
      let handle = try people.as(.alice) { try $0.open(entry.before, O_RDWR) }
      try people.as(.alice) { try $0.write(handle, "clean one") }
      people.clock.advance(2)
      people.fixture.autosave()
      people.clock.advance(1)
      try enter(people, entry)
      people.clock.advance(1)
      try people.as(.alice) { try $0.write(handle, "clean two") }
      people.clock.advance(2)
      people.fixture.autosave()
      try people.as(.bob) { (bob) throws in #expect(try bob.versions(entry.shared).map(\.number) == [2, 3]) }
      try people.as(.alice) { try $0.write(handle, "clean six") }
      people.clock.advance(2)
      try people.as(.alice) { (alice) throws in
        try alice.close(handle)
        #expect(try alice.versions(entry.after).map(\.number) == [1, 2, 3])
        #expect(try alice.read(entry.after) == "clean six")
      }
      try expectNoSecret(people, entry, versions: [2, 3])
    }
  }

  /// As above, where so much is written that it waits in the working file.
  @Test(arguments: Entry.allCases)
  func whatWaitsInTheWorkingFileUncoversNothing(_ entry: Entry) throws {
    try People.story { people in
      people.library.stopMaintenance()
      try prepare(people, entry)
      try people.as(.alice) { try $0.save(entry.before, "secret") }
      people.clock.advance(60)
      let handle = try people.as(.alice) { try $0.open(entry.before, O_RDWR) }
      let large = String(repeating: "clean one ", count: 1_000_000)
      for round in 0..<2 { try people.as(.alice) { try $0.write(handle, large, at: Int64(round * large.utf8.count)) } }
      people.clock.advance(2)
      people.fixture.autosave()
      #expect(people.library.locked { people.library.sessions.keptInodes.count } == 1)
      people.clock.advance(1)
      try enter(people, entry)
      people.clock.advance(1)
      try people.as(.alice) { try $0.write(handle, "clean two") }
      people.clock.advance(2)
      people.fixture.autosave()
      try people.as(.bob) { (bob) throws in #expect(try bob.versions(entry.shared).map(\.number) == [2, 3]) }
      try people.as(.alice) { try $0.close(handle) }
      try expectNoSecret(people, entry, versions: [2, 3])
    }
  }

  /// What is recovered into a folder that was shared meanwhile was being written until then.
  @Test func recoveringUncoversNothing() throws {
    try People.story { people in
      let entry = Entry.withFolder
      try prepare(people, entry)
      try people.as(.alice) { try $0.save(entry.before, "secret") }
      let handle = try people.as(.alice) { try $0.open(entry.before, O_RDWR) }
      let ino = try people.as(.alice) { try $0.inode(entry.before) }
      try people.as(.alice) { try $0.unlink(entry.before) }
      people.clock.advance(1)
      try enter(people, entry)
      for text in ["two", "clean"] {
        people.clock.advance(60)
        try people.as(.alice) {
          let again = try $0.library.open(ino, flags: O_RDWR, $0.caller)
          try $0.write(again, text)
          try $0.close(again)
        }
      }
      people.clock.advance(60)
      try people.as(.alice) { _ = try $0.library.recover($0.path(entry.after), id: nil) { _ in } }
      try people.library.release(handle)
      try expectNoSecret(people, entry, versions: [3])
    }
  }

  /// The version that was current at the entry can be purged by itself, and so can the next one.
  @Test(arguments: [2, 3] as [Int64])
  func purgingUncoversNothing(_ number: Int64) throws {
    try People.story { people in
      let entry = Entry.alone
      for text in ["secret", "clean"] {
        try people.as(.alice) { try $0.save(entry.before, text) }
        people.clock.advance(60)
      }
      try enter(people, entry)
      for text in ["three", "four"] {
        people.clock.advance(60)
        try people.as(.alice) { try $0.save(entry.after, text) }
      }
      try people.as(.alice) { try $0.library.purge($0.path(entry.after), version: number) }
      // Whether the second one was current then nobody can know without the third.
      try expectNoSecret(people, entry, versions: number == 2 ? [3, 4] : [4])
    }
  }
}
