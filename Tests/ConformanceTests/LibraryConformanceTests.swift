import ConformanceKit
import MountKit
import SheafLibrary
import SheafModel
import Testing

/// The suite on the library itself: what a mount adds to it is left out.
@Suite struct LibraryConformanceTests {
  @Test func everyCasePassesOnTheLibrary() throws {
    try withTemporaryFolder { folder in
      let library = try Library.open(LibraryLocation(path: "\(folder.path)/library.sqlite"))
      let account = try AccountHandle("alice@example.com")
      _ = try library.addAccount(account, name: nil)
      let documents = try library.documents(of: account)
      let cases = Case.applicable(to: LibraryDirectory(library: library, root: documents).features)
      #expect(cases.count >= 80)
      for (number, one) in cases.enumerated() {
        let place = try library.make(.folder, documents, Array("case-\(number)".utf8), mode: 0o755, .library)
        do {
          try one.run(on: LibraryDirectory(library: library, root: place.ino))
        } catch {
          Issue.record("\(one.name): \(error)")
        }
      }
      #expect(try library.check { _ in }.problems == [])
      try library.close()
    }
  }
}
