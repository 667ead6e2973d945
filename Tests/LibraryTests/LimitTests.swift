import SheafModel
import Testing

@testable import SheafLibrary

/// What one person can put where others read it.
struct LimitTests {
  private func name(_ number: Int) -> [UInt8] { Array("user.\(String(repeating: "n", count: 200))\(number)".utf8) }

  /// Sets attributes until there is no room for further names; returns how many.
  private func fill(_ person: Person, _ path: String, from first: Int) throws -> Int {
    let ino = try person.inode(path)
    for number in first..<(first + 1000) {
      do {
        try person.library.setXattr(ino, name(number), [], .set, person.caller)
      } catch let error as SheafError where error.kind == .noSpace {
        return number - first
      }
    }
    Issue.record("there is no limit")
    return 1000
  }

  /// listxattr(2) gives 65,536 bytes at most: where names take more it fails, and lists none.
  @Test func namesOfAttributesCanBeListed() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        try alice.mkdir("Documents/team")
        try alice.save("Documents/team/plan", "text")
      }
      try people.share("Documents/team", with: [(.bob, .readWrite)])
      func listed(_ person: Person, _ path: String) throws -> Int {
        try person.library.xattrNames(person.inode(path), listsComputed: true, person.caller).reduce(0) {
          $0 + $1.count + 1
        }
      }
      let shared = "Shared/alice@example.com/team/plan"
      try people.as(.bob) { (bob) throws in
        #expect(try (1..<500).contains(fill(bob, shared, from: 0)))
        // A value can still be changed, and a name be replaced by another one.
        try bob.library.setXattr(bob.inode(shared), name(0), [1, 2], .set, bob.caller)
        try bob.library.removeXattr(bob.inode(shared), name(1), bob.caller)
        try bob.library.setXattr(bob.inode(shared), name(1000), [1], .set, bob.caller)
        #expect(try listed(bob, shared) <= 65_536 / 2 + 4096)
      }
      try people.as(.alice) { (alice) throws in
        #expect(try fill(alice, "Documents/team/plan", from: 2000) > 100)
        #expect(try listed(alice, "Documents/team/plan") <= 65_536)
      }
      try people.as(.bob) { (bob) throws in
        expect(.noSpace) { try bob.library.setXattr(bob.inode(shared), name(5000), [], .set, bob.caller) }
      }
    }
  }

  /// A character can have any number of combining marks.
  @Test func commentsHaveABoundInBytes() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("a")
    let path = try fixture.path("a")
    _ = try fixture.library.comment(path, text: String(repeating: "\u{1F600}", count: 4000))
    expect(.invalid) { _ = try fixture.library.comment(path, text: "a" + String(repeating: "\u{301}", count: 9000)) }
    try fixture.finish()
  }
}
