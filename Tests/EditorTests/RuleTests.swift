import Foundation
import SheafLibrary
import Testing

/// The rules of ``Identity``, without a mount and with a clock that stands still.
@Suite(.serialized) struct RuleTests: ProgramTests {
  let desk: Desk

  init() throws { desk = try Desk() }

  // MARK: - Renaming over (rules 3, 4 and 11 of ``Identity``)

  @Test func renamingOverKeepsIdAndMode() throws {
    let id = try establish()
    try editor.make("doc.tmp", "new", mode: 0o600)
    try editor.rename("doc.tmp", "doc")
    #expect(try editor.id("doc") == id)
    #expect(try editor.mode("doc") == 0o640)
    #expect(try editor.versions("doc") == ["old", "new"])
    desk.wait(20)
    #expect(try desk.events() == ["sheaf.persistence.created doc", "sheaf.change.edit doc"])
    #expect(try desk.check() == [])
  }

  @Test(arguments: [0o444, 0o400, 0o200, 0o000] as [UInt32])
  func aProgramCanOpenWhatItMadeInThePlaceOfAReadOnlyDocument(former: UInt32) throws {
    for name in ["made", "renamed", "exchanged"] {
      _ = try establish(name)
      try editor.chmod(name, former)
    }
    desk.wait(20)
    try editor.unlink("made")
    try editor.make("made", "new", mode: 0o666)
    try editor.make("renamed.tmp", "new", mode: 0o600)
    try editor.rename("renamed.tmp", "renamed")
    try editor.make("exchanged.tmp", "new", mode: 0o600)
    try editor.rename("exchanged.tmp", "exchanged", .exchange)
    for name in ["made", "renamed", "exchanged"] {
      #expect(try editor.mode(name) == former | 0o600, "\(name)")
      #expect(try editor.text(name) == "new")
    }
  }

  @Test func aChosenModeIsKept() throws {
    _ = try establish()
    try editor.make("doc.tmp", "new", mode: 0o600)
    try editor.chmod("doc.tmp", 0o755)
    try editor.rename("doc.tmp", "doc")
    #expect(try editor.mode("doc") == 0o755)
  }

  @Test func oneProgramSeesRename() throws {
    try maker.make("a", "first", mode: 0o600)
    try maker.make("b", "second", mode: 0o644)
    try maker.rename("a", "b")
    #expect(try maker.mode("b") == 0o600)
    #expect(try maker.text("b") == "first")
    #expect(try maker.versions("b") == ["second", "first"])
  }

  @Test func anEmptyOwnFileIsReplaced() throws {
    try maker.make("b", "")
    try maker.make("a", "text")
    let id = try maker.id("a")
    try maker.rename("a", "b")
    #expect(try maker.id("b") == id)
    #expect(try maker.deleted == [])
    desk.wait(20)
    #expect(try desk.events() == ["sheaf.persistence.created a", "sheaf.persistence.renamed a b"])
  }

  @Test func anOwnFileKeepsItsIdOnceSaved() throws {
    try maker.make("doc", "old")
    let id = try maker.id("doc")
    for text in ["one", "two"] {
      try maker.make("doc.tmp", text)
      try maker.rename("doc.tmp", "doc")
    }
    #expect(try maker.id("doc") == id)
    #expect(try maker.versions("doc") == ["old", "one", "two"])
    desk.wait(20)
    #expect(
      try desk.events() == ["sheaf.persistence.created doc", "sheaf.change.edit doc", "sheaf.change.edit doc"])
  }

  @Test func oneNameForTwoFirstSaves() throws {
    // The first save makes the document, the second one replaces it, by the same temporary name.
    try editor.make("scratch", "one")
    try editor.rename("scratch", "doc")
    let id = try editor.ask("doc")
    try editor.make("scratch", "two")
    try editor.rename("scratch", "doc")
    #expect(try editor.ask("doc") == id)
    #expect(try editor.versions("doc") == ["one", "two"])
    #expect(try editor.names == ["doc"])
    desk.wait(20)
    #expect(
      try desk.events() == [
        "sheaf.persistence.created scratch", "sheaf.persistence.renamed scratch doc", "sheaf.change.edit doc",
      ])
  }

  @Test func replacedBeforeAnythingIsWritten() throws {
    let id = try establish()
    let handle = try desk.library.create(
      editor.documents, Array("doc.tmp".utf8), mode: 0o600, flags: O_WRONLY | O_CREAT, editor.caller
    ).handle
    try editor.rename("doc.tmp", "doc")
    try editor.write(handle, "new")
    try editor.close(handle)
    #expect(try editor.id("doc") == id)
    #expect(try editor.versions("doc") == ["old", "new"])
    #expect(try desk.check() == [])
  }

  @Test func movedOntoAnotherDocument() throws {
    let id = try establish()
    _ = try establish("b", "from b")
    try editor.rename("b", "doc")
    #expect(try editor.id("doc") == id)
    #expect(try editor.versions("doc") == ["old", "from b"])
    #expect(try editor.deleted == ["Documents/b"])
    #expect(try desk.events().last == "sheaf.change.edit b doc")
    #expect(try desk.check() == [])
  }

  @Test func openHandlesGoOnReading() throws {
    _ = try establish()
    let reader = try other.open("doc", O_RDONLY)
    try editor.make("doc.tmp", "new")
    try editor.rename("doc.tmp", "doc")
    #expect(try other.read(reader) == "old")
    #expect(try other.text("doc") == "new")
    try desk.library.release(reader)
  }

  // MARK: - Files of two programs (rules 1, 2 and 6 of ``Identity``)

  @Test func aFileThatAnotherProgramMovedIsNobodysOwn() throws {
    try maker.make("doc", "kept")
    try editor.rename("doc", "doc~")
    try maker.make("doc", "new")
    try maker.rename("doc", "doc~")
    #expect(try editor.deleted == ["Documents/doc~"])
    #expect(try desk.check() == [])
  }

  @Test func aFileThatAnotherProgramLinkedIsNobodysOwn() throws {
    try maker.make("doc.tmp", "kept")
    try editor.link("doc.tmp", "doc.bak")
    try maker.unlink("doc.tmp")
    try maker.unlink("doc.bak")
    #expect(try editor.deleted == ["Documents/doc.bak"])
  }

  @Test func aProvedFileStaysProvedUnderABackupsName() throws {
    try maker.make("doc", "kept")
    try maker.rename("doc", "doc~")
    try other.make("doc", "others'")
    try maker.rename("doc", "doc~")
    #expect(try editor.deleted == ["Documents/doc~"])
    #expect(try desk.check() == [])
  }

  @Test func aFileThatLostItsFirstNameToAnotherProgramIsNobodysOwn() throws {
    try maker.make("doc", "kept")
    try maker.link("doc", "doc.bak")
    try editor.unlink("doc")
    try maker.unlink("doc.bak")
    #expect(try editor.deleted == ["Documents/doc.bak"])
  }

  @Test func aFileThatWasLinkedToADocumentsNameLeavesATrace() throws {
    _ = try establish()
    try other.link("doc", "doc.bak")
    try maker.make("doc.tmp", "kept")
    try maker.unlink("doc")
    try maker.link("doc.tmp", "doc")
    try other.make("other.tmp", "others'")
    try other.rename("other.tmp", "doc")
    try maker.unlink("doc.tmp")
    #expect(try editor.deleted == ["Documents/doc.tmp"])
    // What is made again under that name goes on with that document, and does not take it along into another.
    desk.wait(3)
    _ = try desk.events()
    try maker.make("doc.tmp", "next")
    try maker.unlink("doc")
    try maker.rename("doc.tmp", "doc")
    #expect(try maker.text("doc") == "next")
    #expect(try desk.query("SELECT count(*) FROM versions WHERE size = 4") == ["3"])
    #expect(try desk.check() == [])
  }

  @Test func aFileThatAnotherProgramWritesLeavesATrace() throws {
    try maker.make("doc.tmp", "")
    let handle = try editor.open("doc.tmp", O_WRONLY)
    try maker.unlink("doc.tmp")
    try editor.write(handle, "kept")
    try editor.close(handle)
    #expect(try editor.deleted == ["Documents/doc.tmp"])
  }

  @Test func theHistoryOfAFileOfTwoProgramsDoesNotDissolve() throws {
    let id = try establish()
    try maker.make("fresh", "one")
    try maker.overwrite("fresh", "two")
    try editor.rename("fresh", "doc")
    #expect(try editor.id("doc") == id)
    #expect(try editor.versions("doc") == ["old", "two"])
    #expect(try editor.deleted == ["Documents/fresh"])
    #expect(try desk.check() == [])
  }

  // MARK: - Remembered names (rules 5 to 8 of ``Identity``)

  @Test func deleteAndCreate() throws {
    let id = try establish()
    try editor.unlink("doc")
    #expect(try editor.names == [])
    try editor.make("doc", "new")
    #expect(try editor.id("doc") == id)
    #expect(try editor.versions("doc") == ["old", "new"])
    desk.wait(20)
    #expect(try desk.events() == ["sheaf.persistence.created doc", "sheaf.change.edit doc"])
  }

  @Test func deletedThenMadeAMinuteLater() throws {
    let id = try establish()
    try editor.unlink("doc")
    desk.wait(60)
    try editor.make("doc", "new")
    #expect(try editor.id("doc") != id)
    #expect(try editor.versions("doc") == ["new"])
    #expect(try editor.deleted == ["Documents/doc"])
    desk.wait(20)
    #expect(
      try desk.events() == [
        "sheaf.persistence.created doc", "sheaf.persistence.deleted doc", "sheaf.persistence.created doc",
      ])
  }

  @Test func deletedThenMadeByAnother() throws {
    let id = try establish()
    try editor.unlink("doc")
    try other.make("doc", "new")
    #expect(try editor.id("doc") != id)
    #expect(try editor.deleted == ["Documents/doc"])
  }

  @Test func movedThenMadeByAnother() throws {
    let id = try establish()
    try editor.rename("doc", "elsewhere")
    try other.make("doc", "new")
    #expect(try editor.id("elsewhere") == id)
    #expect(try editor.id("doc") != id)
    desk.wait(20)
    #expect(
      try desk.events() == [
        "sheaf.persistence.created doc", "sheaf.persistence.renamed doc elsewhere", "sheaf.persistence.created doc",
      ])
  }

  @Test func backAgain() throws {
    let id = try establish()
    try editor.rename("doc", "doc~")
    try editor.rename("doc~", "doc")
    #expect(try editor.id("doc") == id)
    desk.wait(20)
    #expect(try desk.events() == ["sheaf.persistence.created doc"])
  }

  @Test func swappedThroughAThirdName() throws {
    let (first, second) = (try establish("a", "of a"), try establish("b", "of b"))
    try editor.rename("a", "c")
    try editor.rename("b", "a")
    try editor.rename("c", "b")
    #expect(try editor.id("b") == first)
    #expect(try editor.id("a") == second)
    #expect(try editor.text("a") == "of b")
    desk.wait(20)
    #expect(
      try desk.events().suffix(3).sorted() == [
        "sheaf.persistence.renamed a c", "sheaf.persistence.renamed b a", "sheaf.persistence.renamed c b",
      ])
  }

  @Test func ownFileWithoutContentsLeavesNoTrace() throws {
    try maker.make("4913", "")
    try maker.unlink("4913")
    try maker.make("tmpAbC123", "text")
    try maker.unlink("tmpAbC123")
    try maker.make("empty", "")
    try maker.unlink("empty")
    desk.wait(20)
    #expect(try desk.events() == [])
    #expect(try maker.deleted == [])
  }

  @Test func ownDocumentThatIsDeletedCanComeBack() throws {
    try maker.make("report.md", "text")
    try maker.unlink("report.md")
    #expect(try maker.deleted == ["Documents/report.md"])
    desk.wait(20)
    #expect(try desk.events() == ["sheaf.persistence.created report.md", "sheaf.persistence.deleted report.md"])
  }

  @Test func aBuildToolMakesVersions() throws {
    for number in 0..<100 { try maker.make("object-\(number)", "first \(number)") }
    desk.wait(20)
    _ = try desk.events()
    let ids = try (0..<100).map { try maker.id("object-\($0)") }
    for number in 0..<100 { try editor.unlink("object-\(number)") }
    #expect(try editor.names == [])
    for number in 0..<100 { try editor.make("object-\(number)", "second \(number)") }
    let after = try (0..<100).map { try maker.id("object-\($0)") }
    #expect(after == ids)
    desk.wait(20)
    let events = try desk.events()
    #expect(events.filter { $0.contains("deleted") } == [])
    #expect(events.filter { $0.contains("edit") }.count == 100)
  }

  // MARK: - Names (rules 9, 10, 12 and 13 of ``Identity``)

  @Test func hardLinks() throws {
    let id = try establish()
    try editor.link("doc", "doc.bak")
    try editor.make("tmp1", "new")
    try editor.rename("tmp1", "doc")
    #expect(try editor.id("doc") == id)
    #expect(try editor.id("doc.bak") != id)
    #expect(try editor.text("doc.bak") == "old")
    // Over a younger name: only that one is new.
    try editor.link("doc", "second")
    try editor.make("tmp2", "other")
    try editor.rename("tmp2", "second")
    #expect(try editor.id("doc") == id)
    #expect(try editor.id("second") != id)
    #expect(try editor.text("doc") == "new")
    #expect(try desk.check() == [])
  }

  @Test func exchange() throws {
    let id = try establish()
    try editor.make("doc.new", "new", mode: 0o600)
    try editor.rename("doc.new", "doc", .exchange)
    #expect(try editor.id("doc") == id)
    #expect(try editor.text("doc") == "new")
    #expect(try editor.mode("doc") == 0o640)
    #expect(try editor.text("doc.new") == "old")
    try editor.unlink("doc.new")
    desk.wait(20)
    #expect(try desk.events() == ["sheaf.persistence.created doc", "sheaf.change.edit doc"])
    #expect(try desk.check() == [])
  }

  @Test func exchangeOfDocuments() throws {
    let (first, second) = (try establish("a", "of a"), try establish("b", "of b"))
    try editor.rename("a", "b", .exchange)
    #expect(try editor.id("b") == first)
    #expect(try editor.id("a") == second)
  }

  // MARK: - Bounds and restarts (rule 14 of ``Identity``)

  @Test func aRestartSettlesInFavourOfHistory() throws {
    let id = try establish()
    try editor.unlink("doc")
    try desk.close()
    try desk.open()
    try editor.make("doc", "new")
    #expect(try editor.id("doc") != id)
    #expect(try editor.deleted == ["Documents/doc"])
    desk.wait(20)
    #expect(try desk.events().prefix(2) == ["sheaf.persistence.created doc", "sheaf.persistence.deleted doc"])
    #expect(try desk.check() == [])
  }

}
