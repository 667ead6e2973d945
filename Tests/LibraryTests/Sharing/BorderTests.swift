import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// What becomes of documents whose names or contents cross the border of a share, or come back to where one is by now.
struct BorderTests {
  private func settle(_ people: People) throws {
    try people.library.locked {
      try people.library.settleSessions()
      try people.library.settleEvents(all: true)
    }
  }

  /// A document and a file made just now change contents across the border: ids stay on their names, with all that they
  /// have.
  @Test(arguments: [true, false], [true, false])
  func contentsThatChangePlacesAcrossTheBorder(_ isDocumentShared: Bool, _ isDocumentFirst: Bool) throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/team") }
      try people.share("Documents/team", with: [(.bob, .readWrite)])
      let (shared, own) = ("Documents/team/plan.md", "Documents/plan.md")
      let (document, new) = isDocumentShared ? (shared, own) : (own, shared)
      try people.as(.alice) { try $0.save(document, "one") }
      let seen = "Shared/alice@example.com/team/plan.md"
      let handle = isDocumentShared ? try people.as(.bob) { try $0.open(seen, O_RDWR) } : 0
      people.clock.advance(60)
      try people.as(.alice) { (alice) throws in
        try alice.save(new, "two")
        try isDocumentFirst ? alice.exchange(document, new) : alice.exchange(new, document)
        #expect(try alice.attribute("version", document) == "2")
        people.clock.advance(60)
        try alice.save(document, "three")
        people.clock.advance(60)
        #expect(try alice.versions(document).map(\.number) == [1, 2, 3])
        #expect(try alice.versions(new).map(\.number) == [1, 2])
        #expect(try alice.read(document) == "three" && alice.read(new) == "one")
        try alice.save("Documents/other.md", "other")
      }
      try people.as(.bob) { (bob) throws in
        // Nothing entered: what was there was seen.
        #expect(try bob.versions(seen).map(\.number) == (isDocumentShared ? [1, 2, 3] : [1, 2]))
        if isDocumentShared { expect(.accessDenied) { _ = try bob.read(handle) } }
      }
      if isDocumentShared { try people.library.release(handle) }
    }
  }

  /// A backup that gets a name of its own is a document from then on, also where it enters a share by that.
  @Test func aBackupThatIsMovedInIsADocument() throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/team") }
      try people.share("Documents/team", with: [(.bob, .readWrite)])
      try people.as(.alice) {
        try $0.save("Documents/plan.md", "new")
        try $0.save("Documents/plan.md~", "old")
      }
      people.clock.advance(60)
      try settle(people)
      let place = "Documents/team/plan-2025.md"
      try people.as(.alice) {
        try $0.rename("Documents/plan.md~", place)
        _ = try $0.library.comment($0.path(place), text: "kept")
        people.clock.advance(60)
        try $0.save(place, "older")
      }
      try settle(people)
      let types = try people.library.events(after: 0, limit: 100, for: People.Name.bob.handle).events
        .filter { $0.data.item.path == "team/plan-2025.md" }.map(\.type)
      #expect(types == [.created, .comment, .edit])
    }
  }

  /// A symbolic link is read by any of its names: none of them may lead out.
  @Test func aLinkLeadsOutByNoneOfItsNames() throws {
    try People.story { people in
      let (plans, theirs) = ("Documents/plans", "Shared/alice@example.com/plans")
      try people.as(.alice) { (alice) throws in
        for folder in ["", "/1", "/1/2", "/1/3"] { try alice.mkdir(plans + folder) }
        try alice.symlink("../../a.md", "\(plans)/1/2/link")
      }
      try people.share(plans, with: [(.bob, .readWrite)])
      func expectReadable(_ isReadable: Bool, _ names: String..., location: SourceLocation = #_sourceLocation) throws {
        try people.as(.bob) { (bob) throws in
          for name in names {
            guard isReadable else {
              expect(.accessDenied, location) { _ = try bob.readLink("\(theirs)/\(name)") }
              continue
            }
            #expect(try bob.readLink("\(theirs)/\(name)") == "../../a.md", sourceLocation: location)
          }
        }
      }
      try people.as(.alice) { (alice) throws in
        try alice.link("\(plans)/1/2/link", "\(plans)/1/3/link")
        try expectReadable(true, "1/2/link", "1/3/link")
        try alice.link("\(plans)/1/2/link", "\(plans)/notes")
        try expectReadable(false, "1/2/link", "1/3/link", "notes")
        try alice.rename("\(plans)/notes", "\(plans)/1/notes")
        try expectReadable(false, "1/2/link", "1/3/link", "1/notes")
        try alice.rename("\(plans)/1/notes", "\(plans)/1/2/notes")
        try expectReadable(true, "1/2/link", "1/3/link", "1/2/notes")
        try alice.rename("\(plans)/1/2", "\(plans)/2")
        try expectReadable(false, "1/3/link", "2/link", "2/notes")
        for name in ["link", "notes"] { try alice.unlink("\(plans)/2/\(name)") }
        try expectReadable(true, "1/3/link")
      }
    }
  }

  /// How a program makes a document again whose name it took away.
  enum Return: CaseIterable { case opened, renamed, linked }

  private func make(_ path: String, _ text: String, _ way: Return, _ people: People) throws {
    try people.as(.alice, process: getpid()) { (alice) throws in
      if way == .opened { return try alice.save(path, text) }
      let new = path.split(separator: "/").dropLast().joined(separator: "/") + "/.new.tmp"
      try alice.save(new, text)
      if way == .renamed { return try alice.rename(new, path) }
      try alice.link(new, path)
      try alice.unlink(new)
    }
  }

  /// The folder of a document is shared while a program replaces that: the document is in the folder's share from then
  /// on.
  @Test(arguments: Return.allCases)
  func whatIsMadeAgainInAShareIsInThat(_ way: Return) throws {
    try People.story { people in
      let place = "Documents/plans/plan.md"
      try people.as(.alice) { (alice) throws in
        try alice.mkdir("Documents/plans")
        for text in ["one", "two"] {
          try alice.save(place, text)
          people.clock.advance(60)
        }
      }
      try people.share(place, with: [(.bob, .readWrite)])
      let id = try people.as(.alice) { try $0.attribute("id", place) }
      try people.as(.alice, process: getpid()) { try $0.unlink(place) }
      people.clock.advance(1)
      try people.share("Documents/plans", with: [(.carol, .readWrite)])
      people.clock.advance(1)
      people.clock.ticks(true)
      try make(place, "three", way, people)
      // Under open(2) it would have what it held before, for a moment.
      let isNew = way == .opened
      try people.as(.alice) { (alice) throws in
        #expect(try (alice.attribute("id", place) == id) != isNew)
        #expect(try alice.attribute("share.title", place) == "plans")
        #expect(try alice.versions(place).map(\.number) == (isNew ? [1] : [1, 2, 3]))
      }
      try people.as(.bob) { (bob) throws in #expect(try bob.entries(.alice) == []) }
      try people.as(.carol) { (carol) throws in
        let shared = "Shared/alice@example.com/plans/plan.md"
        #expect(try carol.read(shared) == "three")
        #expect(try carol.versions(shared).map(\.number) == [isNew ? 1 : 3])
      }
    }
  }

  /// A document that was moved out of a share and changed there does not come back into it by its name.
  @Test(arguments: Return.allCases, [true, false])
  func whatChangedOutsideStaysThere(_ way: Return, _ isChanged: Bool) throws {
    try People.story { people in
      let (place, outside) = ("Documents/team/plan.md", "Documents/plan.md")
      try people.as(.alice) {
        try $0.mkdir("Documents/team")
        try $0.save(place, "one")
      }
      try people.share("Documents/team", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      let id = try people.as(.alice) { try $0.attribute("id", place) }
      try people.as(.alice, process: getpid()) { try $0.rename(place, outside) }
      people.clock.advance(1)
      if isChanged { try people.as(.alice) { try $0.save(outside, "secret") } }
      people.clock.advance(1)
      try make(place, "new", way, people)
      try people.as(.alice) { (alice) throws in
        #expect(try alice.attribute("id", isChanged ? outside : place) == id)
        #expect(try alice.read(outside) == (isChanged ? "secret" : "one"))
        #expect(try alice.versions(place).map(\.number) == (isChanged ? [1] : [1, 2]))
      }
      try people.as(.bob) { (bob) throws in
        let shared = "Shared/alice@example.com/team/plan.md"
        #expect(try bob.read(shared) == "new")
        #expect(try bob.versions(shared).count == (isChanged ? 1 : 2))
      }
    }
  }
}
