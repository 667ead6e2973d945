import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// Finding the hard links that cross the border of a folder, whatever else is in the library.
struct HardLinkTests {
  /// A library with a tree of folders that is made by rows: what is tried here is looking for names.
  private struct Tree {
    let fixture: LibraryFixture
    private var next: Int64 = 1_000_000

    init() throws { fixture = try LibraryFixture() }

    /// Makes folders, each in the one of the given index; returns their inodes. The first one is in `Documents`.
    mutating func makeFolders(_ parents: [Int?]) throws -> [Int64] {
      var inos: [Int64] = []
      for parent in parents {
        let folder = try parent.map { inos[$0] } ?? fixture.root
        next += 1
        inos.append(
          try fixture.library.make(.folder, folder, Array("\(next)".utf8), mode: 0o755, .library).ino)
      }
      return inos
    }

    /// Makes fifos, each with a name in each of some folders; the first name is the oldest.
    mutating func makeFiles(_ names: [[Int64]]) throws {
      let (library, time) = (fixture.library, fixture.clock.now)
      var next = next
      try library.store.write(.create) { transaction in
        let owner = try transaction.inode(fixture.root)?.owner ?? 0
        for folders in names {
          next += 1
          let first = Array("\(next)".utf8)
          var row = InodeRow(
            ino: next, item: nil, owner: owner, parent: folders[0], name: first, mode: S_IFIFO | 0o644, nlink: 1,
            uid: 0, gid: 0, time: time)
          row.nlink = Int64(folders.count)
          try transaction.insert(row)
          for (index, folder) in folders.enumerated() {
            let name = index == 0 ? first : Array("\(next)-\(index)".utf8)
            try transaction.insert(
              EntryRow(
                parent: folder, hash: library.nameHash(name), name: name, ino: next, isExtra: index > 0,
                since: Timestamp(nanoseconds: 0)))
          }
        }
      }
      self.next = next
    }

    /// What a search below a folder finds, and how much it looks at.
    func search(_ folder: Int64) throws -> (found: LinkSearch.Name?, looked: Int) {
      var search = LinkSearch(below: folder)
      let found = try fixture.library.locked { try fixture.library.nameAcross(&search) }
      return (found, search.looked)
    }
  }

  /// Many links elsewhere, and many documents without one.
  @Test func theShorterWayIsTaken() throws {
    var tree = try Tree()
    let folders = try tree.makeFolders([nil, nil, 0, 0, 1])
    let (links, small) = (folders[0], folders[4])
    try tree.makeFiles(Array(repeating: [folders[2], folders[3]], count: 20_000))
    try tree.makeFiles([[small], [small, small], [small, folders[1]]])
    // What is below `small`, after a page of links was looked at.
    let inSmall = try tree.search(small)
    #expect(inSmall.found?.folder == folders[1] && inSmall.looked < 1200, "\(inSmall.looked)")
    let around = try tree.search(folders[1])
    #expect(around.found == nil && around.looked < 1200, "\(around.looked)")
    // Both are long: some pages more than the shorter one.
    let inLinks = try tree.search(links)
    #expect(inLinks.found == nil && inLinks.looked < 120_000, "\(inLinks.looked)")
    try tree.fixture.finish()

    var other = try Tree()
    let large = try other.makeFolders([nil, nil])
    try other.makeFiles(Array(repeating: [large[0]], count: 20_000) + [[large[0], large[1]]])
    let inLarge = try other.search(large[0])
    #expect(inLarge.found?.folder == large[1] && inLarge.looked < 10, "\(inLarge.looked)")
    try other.fixture.finish()
  }

  /// One link far down keeps nobody at climbing who moves something small.
  @Test func aLongWayUpIsNotGone() throws {
    var tree = try Tree()
    let depth = 5000
    let folders = try tree.makeFolders([nil, nil] + (0..<depth).map { $0 == 0 ? 0 : $0 + 1 })
    try tree.makeFiles([[folders[depth], folders[depth + 1]], [folders[1]]])
    let small = try tree.search(folders[1])
    #expect(small.found == nil && small.looked < 1200, "\(small.looked)")
    #expect(try tree.search(folders[2]).found == nil)
    #expect(try tree.search(folders[depth + 1]).found?.folder == folders[depth])
    try tree.fixture.finish()
  }

  /// Either way of searching, against all names of all files.
  @Test(arguments: [true, false]) func eitherWayFindsWhatCrosses(_ hasManyLinks: Bool) throws {
    var random = SeededRandom()
    for _ in 0..<10 {
      var tree = try Tree()
      let parents = (0..<8).map { $0 < 2 ? nil : Int.random(in: 0..<$0, using: &random) }
      let folders = try tree.makeFolders(parents)
      if hasManyLinks {
        let aside = try tree.makeFolders([nil])[0]
        try tree.makeFiles(Array(repeating: [aside, aside], count: 1100))
      }
      let files = (0..<Int.random(in: 1...4, using: &random)).map { _ in
        (0..<Int.random(in: 1...3, using: &random)).map { _ in folders.randomElement(using: &random) ?? folders[0] }
      }
      try tree.makeFiles(files)
      for (index, folder) in folders.enumerated() {
        // Folders come after those that they are in.
        var inside: Set<Int64> = [folder]
        for (other, parent) in parents.enumerated() where parent.map({ inside.contains(folders[$0]) }) ?? false {
          inside.insert(folders[other])
        }
        let crossing = files.filter { $0.contains(where: inside.contains) && !inside.isSuperset(of: $0) }
        let found = try tree.search(folder).found
        #expect((found == nil) == crossing.isEmpty, "\(index) of \(parents), \(files), \(random.note)")
        if let found { #expect(!inside.contains(found.folder), random.note) }
      }
      try tree.fixture.finish()
    }
  }

  /// What crosses is named where something is to be shared, and refused where it is to be moved.
  @Test func whatCrossesIsNamed() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for folder in ["team", "plans", "plans/deep"] { try alice.mkdir("Documents/\(folder)") }
        try alice.save("Documents/plans/deep/a.md", "a")
        try alice.link("Documents/plans/deep/a.md", "Documents/b.md")
        do {
          try alice.share("Documents/plans")
          Issue.record("it was shared")
        } catch let error as SheafError {
          #expect(error.kind == .notPermitted && error.description.contains("Documents/b.md"), "\(error)")
        }
        try alice.share("Documents/team")
        expect(.notPermitted) { try alice.rename("Documents/plans", "Documents/team/plans") }
        try alice.rename("Documents/b.md", "Documents/plans/b.md")
        try alice.rename("Documents/plans", "Documents/team/plans")
        expect(.notPermitted) { try alice.rename("Documents/team/plans/deep", "Documents/deep") }
        try alice.unlink("Documents/team/plans/b.md")
        try alice.rename("Documents/team/plans/deep", "Documents/deep")
      }
    }
  }

  /// A folder that has a share in it goes into no other one, however many shares there are.
  @Test func noShareComesToLieInAnother() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for folder in ["team", "team/new", "plans", "plans/deep", "others"] { try alice.mkdir("Documents/\(folder)") }
        for number in 0..<20 {
          try alice.mkdir("Documents/others/\(number)")
          try alice.share("Documents/others/\(number)")
        }
        try alice.share("Documents/plans/deep")
        try alice.share("Documents/team")
        expect(.notPermitted) { try alice.rename("Documents/plans", "Documents/team/plans") }
        expect(.notPermitted) { try alice.share("Documents/plans") }
        expect(.notPermitted) { try alice.rename("Documents/others/1", "Documents/team/1") }
        expect(.notPermitted) { try alice.exchange("Documents/plans", "Documents/team/new") }
        try alice.library.unshare(alice.path("Documents/plans/deep"))
        try alice.rename("Documents/plans", "Documents/team/plans")
        expect(.notPermitted) { try alice.share("Documents/team/plans/deep") }
      }
    }
  }
}
