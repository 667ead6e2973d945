import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// Symbolic links with many names: which of them leads where is looked at in few steps.
struct LinkNameTests {
  /// Gives bob's link in alice's share names in `count` more folders, `depth` folders below the shared one; returns the
  /// link, and how many inodes alice's reading it looks at.
  private func read(_ target: String, names count: Int, depth: Int, _ kind: SheafError.Kind? = nil) throws -> UInt64 {
    let people = try People()
    let library = people.library
    try people.as(.alice) { (alice) throws in try alice.mkdir("Documents/team") }
    try people.share("Documents/team", with: [(.bob, .readWrite)])
    var path = "Shared/alice@example.com/team"
    try people.as(.bob) { (bob) throws in
      for level in 0..<depth {
        path += "/d\(level)"
        try bob.mkdir(path)
      }
      try bob.symlink(target, path + "/link")
    }
    let (parent, ino) = try people.as(.bob) { (try $0.inode(path), try $0.inode(path + "/link")) }
    let name = Array("link".utf8)
    try library.store.write(.create) { transaction in
      var folder = try #require(try transaction.inode(parent))
      var link = try #require(try transaction.inode(ino))
      for number in 0..<Int64(count) {
        let id = 1_000_000 + number
        let time = people.clock.now
        try transaction.insert(
          ItemRow(
            id: id, uuid: .timeOrdered(time), kind: .folder, owner: folder.owner, creator: folder.owner, created: time))
        let own = Array("\(number)".utf8)
        try transaction.insert(
          InodeRow(
            ino: id, item: id, owner: folder.owner, parent: parent, name: own, mode: S_IFDIR | 0o755, nlink: 2, uid: 0,
            gid: 0, time: time))
        try transaction.insert(
          EntryRow(parent: parent, hash: library.nameHash(own), name: own, ino: id, since: Timestamp(nanoseconds: 0)))
        try transaction.insert(
          EntryRow(
            parent: id, hash: library.nameHash(name), name: name, ino: ino, isExtra: true,
            since: Timestamp(nanoseconds: 0)))
      }
      folder.nlink += Int64(count)
      link.nlink += Int64(count)
      try transaction.update(folder)
      try transaction.update(link)
    }
    library.locked {
      library.inodes.remove(ino)
      library.inodes.remove(parent)
    }
    // An inode notes as how many-th it was used.
    func uses() throws -> UInt64 { try library.locked { try library.inode(parent).used } }
    let before = try uses()
    try people.as(.alice) { (alice) throws in
      if let kind {
        expect(kind) { _ = try library.readLink(ino, alice.caller) }
      } else {
        #expect(String(decoding: try library.readLink(ino, alice.caller), as: UTF8.self) == target)
      }
    }
    let count = try uses() - before
    try people.finish()
    return count
  }

  private static let up = Array(repeating: "..", count: 20).joined(separator: "/")

  @Test func whatLiesAboveSeveralNamesIsLookedAtOnce() throws {
    let count = try read(Self.up + "/x", names: 1000, depth: 20)
    #expect(count < 1200, "\(count)")
  }

  @Test func aLinkWithVeryManyNamesIsRefused() throws {
    let count = try read(Self.up + "/x", names: 5000, depth: 20, .accessDenied)
    #expect(count < 4200, "\(count)")
  }

  /// One that rises nowhere leads nowhere else, whatever it is called.
  @Test func aLinkThatDoesNotRiseIsNotLookedAt() throws {
    let count = try read("x", names: 5000, depth: 1)
    #expect(count < 20, "\(count)")
  }

  @Test func aLargeFolderIsToldAsAWhole() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("t")
    for number in 0..<200 {
      _ = try fixture.library.make(.file, fixture.ino("t"), Array("\(number)".utf8), mode: 0o644, .library)
    }
    let told = try fixture.library.children(fixture.path("t")).map(\.name)
    #expect(told.count == 200 && Set(told).count == 200)
    try fixture.finish()
  }
}
