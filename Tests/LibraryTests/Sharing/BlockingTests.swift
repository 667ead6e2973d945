import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// Who was blocked stays out, whatever way they try, until the owner or an administrator lets them in by name.
struct BlockingTests {
  private let item = "Documents/plans"
  private let there = "Shared/alice@example.com/plans"

  /// Runs a story in which dan has the link of a folder that anyone may view, and is blocked.
  private func blocked(_ body: (People, String) throws -> Void) throws {
    try People.story { people in
      let url = try people.as(.alice) { (alice) throws in
        try alice.mkdir(item)
        return try alice.share(item) {
          $0.allowRequests = true
          $0.allowInvites = true
          $0.anyone = .readOnly
        }.url
      }
      try block(people)
      try body(people, url)
    }
  }

  private func answer(_ people: People, _ answer: RequestAnswer.Answer) throws {
    try people.as(.alice) {
      try $0.library.answer($0.path(item), .init(handle: People.Name.dan.handle, answer: answer))
    }
  }

  private func block(_ people: People) throws { try answer(people, .block) }

  private func expectOut(_ people: People, _ url: String, _ location: SourceLocation = #_sourceLocation) throws {
    try people.as(.dan) { (dan) throws in
      expect(.notFound, location) { _ = try dan.inspect(url) }
      expect(.notFound, location) { _ = try dan.accept(url) }
      #expect(try dan.entries(.alice) == [], sourceLocation: location)
    }
  }

  @Test func noLinkLetsThemIn() throws {
    try blocked { people, url in
      try expectOut(people, url)
      let once = try people.as(.alice) { try $0.library.inviteOnce($0.path(item), permission: nil).url }
      try expectOut(people, once)
      // It is good for somebody else still.
      try people.as(.carol) { _ = try $0.accept(once) }
      // Nor may those whom they know invite them.
      try people.as(.carol) { (carol) throws in expect(.accessDenied) { try carol.add(there, .dan) } }
      // Neither being turned down once more nor sharing anew lifts it.
      expect(.notFound) { try answer(people, .deny) }
      try expectOut(people, url)
      try people.as(.alice) { (alice) throws in
        try alice.library.unshare(alice.path(item))
        try alice.share(item) {
          $0.anyone = .readOnly
          $0.allowRequests = true
        }
        #expect(try alice.library.accessRequests(alice.path(item)).map(\.blocked) == [true])
      }
      try expectOut(people, url)
    }
  }

  @Test func anInvitationLiftsIt() throws {
    try blocked { people, url in
      try people.as(.alice) { try $0.add(item, .dan, .readOnly) }
      try people.as(.dan) { (dan) throws in
        #expect(try dan.accept(url).path == there)
        #expect(try dan.library.accessRequests(people.as(.alice) { try $0.path(item) }).isEmpty)
      }
      try people.as(.alice) { try $0.remove(item, .dan) }
      // Who was removed asks again; who was blocked then does not.
      try people.as(.dan) { (dan) throws in #expect(try dan.accept(url).requested) }
      try block(people)
      try expectOut(people, url)
      try answer(people, .approve)
      #expect(try people.as(.dan) { try $0.entries(.alice) } == ["plans"])
    }
  }

  @Test func itTakesAnInvitationBack() throws {
    try blocked { people, url in
      try people.as(.alice) { try $0.add(item, .dan, .readOnly) }
      try block(people)
      try expectOut(people, url)
      #expect(try !people.as(.alice) { try $0.participants(item) }.contains { $0.handle == People.Name.dan.handle })
    }
  }

  /// Someone who is in leaves by taking the entry away; blocked meanwhile, their program does not make it again.
  @Test(arguments: [true, false]) func whoLeftDoesNotComeBack(_ isBlockedWhileThere: Bool) throws {
    try People.story { people in
      let document = "Documents/plan.md"
      try people.as(.alice) { try $0.save(document, "one") }
      let url = try people.share(document, with: [(.dan, .readWrite)])
      func block() throws {
        try people.as(.alice) {
          try $0.library.answer($0.path(document), .init(handle: People.Name.dan.handle, answer: .block))
        }
      }
      if isBlockedWhileThere { try block() }
      try people.as(.dan, process: getpid()) { try $0.removeEntry(.alice, "plan.md") }
      if !isBlockedWhileThere { try block() }
      try people.as(.dan, process: getpid()) { (dan) throws in
        expect(.accessDenied) { try dan.create(.alice, "plan.md", "two") }
        expect(.notFound) { _ = try dan.accept(url) }
      }
      #expect(try people.as(.alice) { try $0.read(document) } == "one")
    }
  }

  /// Administrators block neither the owner nor each other, and nobody themselves.
  @Test func whoCannotBeRemovedCannotBeBlocked() throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir(item) }
      try people.share(item, with: [(.bob, .readWrite), (.carol, .readWrite), (.dan, .readOnly)])
      try people.as(.alice) { (alice) throws in
        for name in [People.Name.bob, .carol] { try alice.set(item, name, role: .administrator) }
      }
      func block(_ target: People.Name, by who: People.Name) throws {
        try people.as(who) {
          try $0.library.answer(
            $0.path(who == .alice ? item : there), .init(handle: target.handle, answer: .block))
        }
      }
      for target in [People.Name.alice, .carol, .bob] {
        #expect(throws: SheafError.self) { try block(target, by: .bob) }
      }
      #expect(throws: SheafError.self) { try block(.alice, by: .alice) }
      #expect(try people.library.accessRequests(people.as(.alice) { try $0.path(item) }).isEmpty)
      try block(.dan, by: .bob)
      try block(.carol, by: .alice)
      #expect(try people.library.accessRequests(people.as(.alice) { try $0.path(item) }).count == 2)
    }
  }
}
