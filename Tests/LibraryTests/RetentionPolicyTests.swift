import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// For how long folders keep versions and deleted items.
struct RetentionPolicyTests {
  private static let day: Int64 = 86_400

  private func retain(
    _ fixture: LibraryFixture, _ path: String, deleted: Int64? = nil, versions: Int64? = nil, isDefault: Bool = false
  ) throws {
    _ = try fixture.library.retain(
      fixture.path(path),
      RetentionChange(
        keepDeleted: deleted.map { $0 * Self.day }, keepVersions: versions.map { $0 * Self.day }, isDefault: isDefault))
  }

  private func deleted(_ fixture: LibraryFixture) throws -> Set<String> {
    Set(try fixture.library.deleted(fixture.account, below: nil).map { String($0.path.dropFirst("Documents/".count)) })
  }

  /// Lets days pass, and something happen on each: the clock is believed.
  private func pass(_ fixture: LibraryFixture, days: Int) throws {
    for _ in 0..<days {
      fixture.clock.advance(Self.day)
      try fixture.save("clock", "\(fixture.clock.now)")
      _ = try fixture.library.compact { _ in }
    }
  }

  @Test func theNearestFolderThatSaysAnythingDecides() throws {
    let fixture = try LibraryFixture()
    for folder in ["short", "short/long", "short/long/in", "plain"] { try fixture.mkdir(folder) }
    try retain(fixture, "short", deleted: 2)
    try retain(fixture, "short/long", deleted: 50)
    let files = ["short/a", "short/long/a", "short/long/in/a", "plain/a", "a"]
    for name in files { try fixture.save(name, name) }
    for name in files { try fixture.unlink(name) }
    try pass(fixture, days: 1)
    #expect(try deleted(fixture) == Set(files))
    try pass(fixture, days: 2)
    #expect(try deleted(fixture) == Set(files).subtracting(["short/a"]))
    try pass(fixture, days: 28)
    #expect(try deleted(fixture) == ["short/long/a", "short/long/in/a"])
    // It is said no more: the folder around decides.
    try retain(fixture, "short/long", isDefault: true)
    try pass(fixture, days: 1)
    #expect(try deleted(fixture) == [])
    try fixture.finish()
  }

  @Test func theLibraryDecidesWhereNoFolderDoes() throws {
    let fixture = try LibraryFixture()
    #expect(try fixture.library.settings().keepDeleted == 30 * Self.day)
    #expect(try fixture.library.settings().keepVersions == 365 * Self.day)
    _ = try fixture.library.change(SettingsChange(keepDeleted: 3 * Self.day, keepVersions: 5 * Self.day))
    try fixture.mkdir("t")
    let told = try fixture.library.retention(fixture.path("t"))
    #expect(told.keepDeleted == 3 * Self.day && told.keepVersions == 5 * Self.day && told.ownKeepDeleted == nil)
    for number in 1...3 {
      try fixture.save("a", "\(number)")
      fixture.clock.advance(7200)
    }
    try fixture.save("b", "b")
    try fixture.unlink("b")
    try pass(fixture, days: 2)
    #expect(try deleted(fixture) == ["b"])
    try pass(fixture, days: 2)
    #expect(try deleted(fixture) == [])
    #expect(try fixture.versions("a").count > 1)
    try pass(fixture, days: 2)
    #expect(try fixture.versions("a").map(\.number) == [3])
    try fixture.finish()
  }

  @Test func versionsGoAsTheirFolderSays() throws {
    let fixture = try LibraryFixture()
    for folder in ["short", "long"] { try fixture.mkdir(folder) }
    try retain(fixture, "short", versions: 2)
    try retain(fixture, "long", versions: 4000)
    for text in ["1", "2", "3", "now"] {
      for name in ["short/a", "long/a", "a"] { try fixture.save(name, text) }
      fixture.clock.advance(7200)
    }
    for name in ["short/a", "long/a", "a"] {
      _ = try fixture.library.label(fixture.path(name), name: "first", version: 1)
    }
    try pass(fixture, days: 3)
    #expect(try fixture.versions("short/a").map(\.number) == [1, 4])
    #expect(try fixture.versions("a").count > 2 && fixture.versions("long/a").count > 2)
    fixture.clock.advance(500 * Self.day)
    _ = try fixture.compactAfterLong()
    #expect(try fixture.versions("a").map(\.number) == [1, 4])
    // The last of its week stays.
    fixture.clock.advance(Self.day)
    try fixture.save("long/a", "later")
    try pass(fixture, days: 3)
    #expect(try fixture.versions("long/a").map(\.number) == [1, 4, 5])
    try fixture.finish()
  }

  /// Who takes part in a share does not let others' history go by moving it to where less is kept.
  @Test func onlyTheOwnerShortensWhatIsKept() throws {
    try People.story { people in
      let (team, seen) = ("Documents/team", "Shared/alice@example.com/team")
      try people.as(.alice) { (alice) throws in
        for folder in [team, "\(team)/cache", "\(team)/long", "\(team)/sub"] { try alice.mkdir(folder) }
        for name in ["a", "b", "sub/c", "cache/x", "long/y"] { try alice.save("\(team)/\(name)", name) }
        let day = Self.day
        _ = try alice.library.retain(
          alice.path("\(team)/cache"), .init(keepDeleted: nil, keepVersions: day, isDefault: false))
        _ = try alice.library.retain(
          alice.path("\(team)/long"), .init(keepDeleted: 90 * day, keepVersions: 4000 * day, isDefault: false))
      }
      try people.share(team, with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.as(.bob, process: getpid()) { (bob) throws in
        expect(.notPermitted) { try bob.rename("\(seen)/a", "\(seen)/cache/a") }
        expect(.notPermitted) { try bob.rename("\(seen)/a", "\(seen)/cache/x") }
        expect(.notPermitted) { try bob.rename("\(seen)/sub", "\(seen)/cache/sub") }
        expect(.notPermitted) { try bob.rename("\(seen)/long/y", "\(seen)/y") }
        expect(.notPermitted) { try bob.exchange("\(seen)/cache/x", "\(seen)/a") }
        expect(.notPermitted) { try bob.exchange("\(seen)/a", "\(seen)/cache/x") }
        expect(.notPermitted) { try bob.link("\(seen)/a", "\(seen)/cache/a") }
        // What is saved under a name is kept as the owner says of it.
        expect(.notPermitted) { try bob.exchange("\(seen)/cache", "\(seen)/long") }
        expect(.notPermitted) { try bob.rename("\(seen)/cache", "\(seen)/other") }
        try bob.rename("\(seen)/long", "\(seen)/longer")
        try bob.rename("\(seen)/longer", "\(seen)/long")
        try bob.unlink("\(seen)/b")
        expect(.notPermitted) {
          try bob.library.recover(
            Array("b".utf8), deletedFrom: bob.inode(seen), to: bob.inode("\(seen)/cache"), Array("b".utf8), bob.caller)
        }
        // To where as much is kept, or more.
        try bob.rename("\(seen)/cache/x", "\(seen)/x")
        try bob.rename("\(seen)/x", "\(seen)/sub/x")
        try bob.rename("\(seen)/sub/x", "\(seen)/long/x")
        try bob.save("\(seen)/cache/new", "new")
      }
      try people.as(.alice) { try $0.rename("\(team)/a", "\(team)/cache/a") }
    }
  }

  /// A folder that keeps little makes a clock suspect that is ahead by more than that.
  @Test func aShortSpanDoubtsTheClockSooner() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("short")
    try retain(fixture, "short", deleted: 2)
    try fixture.save("short/a", "a")
    try fixture.unlink("short/a")
    fixture.clock.advance(5 * Self.day)
    #expect(try fixture.library.compact { _ in }.isClockDoubted && deleted(fixture) == ["short/a"])
    fixture.clock.advance(Self.day)
    #expect(try !fixture.library.compact { _ in }.isClockDoubted && deleted(fixture) == [])
    try fixture.finish()
  }

  @Test func whatIsRefusedAndForgotten() throws {
    try People.story { people in
      let (fixture, library) = (people.fixture, people.library)
      for folder in ["t", "gone"] { try fixture.mkdir(folder) }
      try fixture.save("t/a", "a")
      for span: Int64 in [0, -1, 86_399, .max] {
        for change in [
          RetentionChange(keepDeleted: span, keepVersions: nil, isDefault: false),
          RetentionChange(keepDeleted: nil, keepVersions: span, isDefault: false),
        ] { expect(.invalid) { _ = try library.retain(fixture.path("t"), change) } }
        expect(.invalid) { _ = try library.change(SettingsChange(keepDeleted: span)) }
      }
      expect(.notDirectory) { try retain(fixture, "t/a", deleted: 2) }
      expect(.notFound) { try retain(fixture, "nowhere", deleted: 2) }
      try people.share("Documents/t", with: [(.bob, .readWrite)])
      let path = try ItemPath(account: People.Name.bob.handle, "Shared/alice@example.com/t")
      expect(.accessDenied) {
        _ = try library.retain(path, RetentionChange(keepDeleted: 86_400, keepVersions: nil, isDefault: false))
      }
      expect(.accessDenied) { _ = try library.retention(path) }
      try retain(fixture, "gone", deleted: 2, versions: 2)
      #expect(try library.store.read { try RetentionPolicy($0).items.count } == 1)
      try library.purge(fixture.path("gone"), version: nil)
      try pass(fixture, days: 1)
      #expect(try library.store.read { try RetentionPolicy($0).items } == [])
    }
  }
}
