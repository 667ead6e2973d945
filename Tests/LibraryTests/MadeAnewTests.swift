import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// What a kill leaves of a file that a program makes in the place of a document, and has not closed: that it took the
/// name of the document returned, so the document is not back under it.
struct MadeAnewTests {
  private let doc = "Documents/plans/doc"

  /// Calls that end with an empty file under the document's name, which the program has open.
  enum Way: CaseIterable {
    case unlinked, renamedAway, renamedOver, unlinkedAndRenamed, twice

    func begin(_ me: Person, _ doc: String) throws -> UInt64 {
      let create = O_RDWR | O_CREAT | O_EXCL
      switch self {
      case .unlinked: try me.unlink(doc)
      case .renamedAway: try me.rename(doc, doc + "2")
      case .renamedOver:
        let handle = try me.open(doc + ".new", create)
        try me.rename(doc + ".new", doc)
        return handle
      case .unlinkedAndRenamed:
        try me.unlink(doc)
        let handle = try me.open(doc + ".new", create)
        try me.rename(doc + ".new", doc)
        return handle
      case .twice:
        try me.unlink(doc)
        try me.close(me.open(doc, create))
        try me.unlink(doc)
      }
      return try me.open(doc, create)
    }
  }

  /// What is left for the next process after kill -9.
  private func afterAKill(_ people: People, _ body: (Person) throws -> Void) throws {
    let folder = people.fixture.folder + "/killed"
    try people.library.copyAsKilled(to: folder)
    let clock = people.clock
    let library = try Library.open(LibraryLocation(path: folder + "/library.sqlite")) { clock.now }
    try body(Person(library: library, name: .alice, process: 0))
    #expect(try library.check { _ in }.problems == [])
    #expect(try library.store.read { try $0.workingCopies() }.isEmpty)
    try library.close()
    try FileManager.default.removeItem(atPath: folder)
  }

  private func story(_ body: (People) throws -> Void) throws {
    try People.story { people in
      try people.as(.alice) { (me) throws in
        try me.mkdir("Documents/plans")
        try me.save(doc, "OLD")
      }
      people.clock.advance(20)
      try body(people)
    }
  }

  @Test(arguments: Way.allCases, [false, true])
  func itIsEmptyAfterAKill(_ way: Way, _ writes: Bool) throws {
    try story { people in
      try people.as(.alice, process: getpid()) { (me) throws in
        let handle = try way.begin(me, doc)
        if writes { try me.write(handle, "NEW") }
        try afterAKill(people) { (next) throws in
          #expect(try next.read(doc) == "")
          // What it held is in its history, or where it was moved to.
          let texts = try next.versions(doc).map(\.number).count
          #expect(texts >= 1 || way == .renamedAway)
          if way == .renamedAway { #expect(try next.read(doc + "2") == "OLD") }
        }
        if !writes { try me.write(handle, "NEW") }
        try me.close(handle)
      }
      try afterAKill(people) { (next) throws in #expect(try next.read(doc) == "NEW") }
      #expect(try people.library.store.read { try $0.workingCopies() }.isEmpty)
    }
  }

  /// In a share, by somebody else than the owner; and for whom the right ends meanwhile.
  @Test(arguments: [false, true])
  func itIsEmptyForAllOfAShare(_ isRevoked: Bool) throws {
    try story { people in
      _ = try people.share("Documents/plans", with: [(.bob, .readWrite)])
      let there = "Shared/\(People.Name.alice.handle)/plans/doc"
      try people.as(.bob, process: getpid()) { (me) throws in
        let handle = try Way.unlinked.begin(me, there)
        if isRevoked {
          try me.write(handle, "his")
          try people.as(.alice) { try $0.set("Documents/plans", .bob, .readOnly) }
          try? me.close(handle)
          // It has its contents again, as before the kill.
          let now = try people.as(.alice) { try $0.read(doc) }
          try afterAKill(people) { (next) throws in #expect(try next.read(doc) == now) }
        } else {
          try afterAKill(people) { (next) throws in #expect(try next.read(doc) == "") }
          try me.close(handle)
        }
      }
    }
  }

  /// What somebody brings back and restores while the program has its file open is not emptied by the next start.
  @Test func whatIsRestoredMeanwhileStays() throws {
    try story { people in
      try people.as(.alice) { try $0.save(doc, "TWO") }
      people.clock.advance(20)
      try people.as(.alice, process: getpid()) { (me) throws in
        let handle = try Way.unlinked.begin(me, doc)
        try people.as(.alice, process: getppid()) { (other) throws in
          try other.unlink(doc)
          _ = try other.library.recover(other.path(doc), id: nil) { _ in }
          _ = try other.library.restore(other.path(doc), version: 1)
        }
        try afterAKill(people) { (next) throws in #expect(try next.read(doc) == "OLD") }
        try me.close(handle)
        try afterAKill(people) { (next) throws in #expect(try next.read(doc) == "OLD") }
      }
    }
  }

  /// A rename and a removal take along what is to be empty.
  @Test func whatIsToBeEmptyGoesWithItsFile() throws {
    try story { people in
      try people.as(.alice, process: getpid()) { (me) throws in
        let handle = try Way.unlinked.begin(me, doc)
        try me.rename(doc, "Documents/plans/other")
        try afterAKill(people) { (next) throws in #expect(try next.read("Documents/plans/other") == "") }
        try me.unlink("Documents/plans/other")
        try afterAKill(people) { (next) throws in #expect(try next.names("Documents/plans").isEmpty) }
        try me.close(handle)
      }
      #expect(try people.library.store.read { try $0.workingCopies() }.isEmpty)
    }
  }
}
