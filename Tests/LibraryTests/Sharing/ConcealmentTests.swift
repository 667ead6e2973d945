import Foundation
import SheafModel
import Testing

@testable import SheafLibrary

/// What those with the least rights can find out, by what they see and by what they are refused.
struct ConcealmentTests {
  private let document = "Documents/plan.md"
  private let seen = "Shared/alice@example.com/plan.md"

  /// Runs a story of a document with three versions, the second one current when bob joined.
  private func plan(_ body: (People, String) throws -> Void) throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for text in ["secret", "clean"] {
          try alice.save(document, text)
          people.clock.advance(60)
        }
        _ = try alice.library.label(alice.path(document), name: "offer", version: 1)
      }
      let url = try people.share(document, with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.as(.bob) { try $0.save(seen, "three") }
      try body(people, url)
    }
  }

  /// A version that someone does not see keeps its label, and no number of theirs names it.
  @Test func versionsFromBeforeKeepTheirLabels() throws {
    try plan { people, _ in
      try people.as(.bob) { (bob) throws in
        expect(.exists) { _ = try bob.library.label(bob.path(seen), name: "offer", version: nil) }
        expect(.notFound) { _ = try bob.library.label(bob.path(seen), name: "mine", version: 1) }
        #expect(try bob.library.label(bob.path(seen), name: "mine", version: 2).base == nil)
        #expect(try bob.library.label(bob.path(seen), name: "mine", version: 3).base == 2)
        #expect(try bob.versions(seen).map(\.label) == [nil, "mine"])
        #expect(try bob.versions(seen).map(\.base) == [nil, 2])
      }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.versions(document).map(\.label) == ["offer", nil, "mine"])
        #expect(try alice.versions(document).map(\.base) == [nil, 1, 2])
        // Its owner moves it, as ever.
        #expect(try alice.library.label(alice.path(document), name: "offer", version: 3).number == 3)
      }
    }
  }

  /// A conflict with a version from before is the owner's alone to see.
  @Test func conflictsFromBeforeAreNotNamed() throws {
    try plan { people, _ in
      let ino = try people.as(.alice) { try $0.inode(document) }
      try people.library.locked {
        let inode = try people.library.inode(ino)
        guard var item = try people.library.item(of: inode) else { return }
        item.conflict = 1
        let final = item
        try people.library.makeChange(.setAttributes) { try $0.rows.update(final) }
        inode.item = final
      }
      #expect(try people.as(.alice) { try $0.attribute("conflict", document) } == "1")
      try people.as(.bob) { (bob) throws in
        expect(.noAttribute) { _ = try bob.attribute("conflict", seen) }
        #expect(try bob.library.itemStatus(bob.path(seen)).conflict == nil)
      }
    }
  }

  /// Whoever may not manage people is told the same of members, of other accounts and of nobody.
  @Test func peopleAreNotFoundOutByTrying() throws {
    try plan { people, _ in
      try people.as(.alice) { try $0.set(document, .bob, .readOnly) }
      try people.share(document, with: [(.carol, .readOnly)])
      try people.as(.bob) { (bob) throws in
        let path = try bob.path(seen)
        let handles = [People.Name.carol.handle, People.Name.dan.handle, try AccountHandle("nobody@example.com")]
        let actions: [(AccountHandle) throws -> Void] = [
          { _ = try bob.library.addParticipant(path, .init(handle: $0)) },
          { _ = try bob.library.addParticipant(path, .init(handle: $0, permission: .readOnly)) },
          { _ = try bob.library.setParticipant(path, .init(handle: $0, permission: .readOnly)) },
          { try bob.library.removeParticipant(path, $0) },
          { try bob.library.answer(path, .init(handle: $0, answer: .block)) },
        ]
        for (index, action) in actions.enumerated() {
          var errors: Set<String> = []
          for handle in handles {
            do {
              try action(handle)
              errors.insert("done")
            } catch {
              errors.insert("\(error)")
            }
          }
          #expect(errors.count == 1 && !errors.contains("done"), "\(index): \(errors)")
        }
        // Who goes by themselves may.
        try bob.library.removeParticipant(path, bob.name.handle)
      }
    }
  }

  /// A link leads to the library that it names, and to no other that happens to have its token.
  @Test func linksNameTheirLibrary() throws {
    try plan { people, url in
      let token = String(url.suffix(24))
      func expectFits(_ fits: Bool, _ urls: [String], _ location: SourceLocation = #_sourceLocation) throws {
        try people.as(.bob) { (bob) throws in
          for url in urls {
            if fits {
              #expect(try bob.inspect(url).title == "plan", sourceLocation: location)
              #expect(try bob.accept(url).path == seen, sourceLocation: location)
            } else {
              expect(.notFound, location) { _ = try bob.inspect(url) }
              expect(.notFound, location) { _ = try bob.accept(url) }
            }
          }
        }
      }
      let library = people.library.id
      let other = UUID().uuidString.lowercased()
      try expectFits(true, [url, token, "/s/\(token)", "sheaf://\(library.uppercased())/s/\(token)/?a=b#c\n"])
      try expectFits(false, ["sheaf://\(other)/s/\(token)", "https://docs.example.com/s/\(token)"])
      for address in ["docs.example.com", "docs.example.org:8443", nil, "docs.example.net"] {
        _ = try people.library.change(SettingsChange(publicAddress: address))
      }
      let hosts = ["docs.example.com", "Docs.Example.COM:443", "docs.example.org:8443", "docs.example.net"]
      try expectFits(true, hosts.map { "https://\($0)/s/\(token)" } + [url])
      let strangers = [
        "docs.example.org", "docs.example.com:8443", "docs.example.com@evil.example", "evil.example", "",
      ]
      try expectFits(false, strangers.map { "https://\($0)/s/\(token)" } + ["sheaf://\(other)/s/\(token)"])
    }
  }
}
