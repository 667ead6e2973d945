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

  /// A document and a file made just now change contents across the border: ids stay on their names, with all that they have.
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
}
