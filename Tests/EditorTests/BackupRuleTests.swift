import Foundation
import SheafLibrary
import Testing

/// Rules 5 to 8 of ``Identity`` where a program keeps a backup, or empties the document first.
@Suite(.serialized) struct BackupRuleTests: ProgramTests {
  let desk: Desk

  init() throws { desk = try Desk() }

  @Test func backupAndCreate() throws {
    let id = try establish()
    for (before, text) in [("old", "one"), ("one", "two")] {
      try editor.rename("doc", "doc~")
      #expect(try editor.names == ["doc~"])
      try editor.make("doc", text)
      #expect(try editor.id("doc") == id)
      #expect(try editor.text("doc~") == before)
      #expect(try editor.id("doc~") != id)
    }
    desk.wait(30)
    // A session a day later finds a backup that is old.
    try other.rename("doc", "doc~")
    try other.make("doc", "three")
    #expect(try editor.id("doc") == id)
    #expect(try editor.text("doc~") == "two")
    #expect(try editor.versions("doc") == ["old", "one", "two", "three"])
    #expect(try editor.mode("doc") == 0o640)
    desk.wait(20)
    #expect(
      try desk.events() == ["sheaf.persistence.created doc"] + Array(repeating: "sheaf.change.edit doc", count: 3))
    #expect(try editor.deleted == [])
    #expect(try desk.check() == [])
  }

  /// Backups whose name says nothing of the document: the second one takes the place of the first.
  @Test(arguments: ["previous", "doc.prev"])
  func backupOfAnyName(_ backup: String) throws {
    let id = try establish()
    for (number, text) in ["one", "two", "three"].enumerated() {
      try editor.make("fresh", text)
      try editor.rename("doc", backup)
      try editor.rename("fresh", "doc")
      #expect(try editor.id("doc") == id)
      #expect(try editor.text(backup) == ["old", "one", "two"][number])
      #expect(try editor.id(backup) != id)
      #expect(try editor.names == ["doc", backup].sorted())
      desk.wait(20)
      _ = try desk.events()
    }
    #expect(try editor.versions("doc") == ["old", "one", "two", "three"])
    #expect(try !desk.events().contains("sheaf.persistence.deleted doc"))
    #expect(try desk.check() == [])
  }

  @Test func backupLinkedThenUnlinked() throws {
    let id = try establish()
    for (before, text) in [("old", "one"), ("one", "two")] {
      if try editor.names.contains("doc~") { try editor.unlink("doc~") }
      try editor.link("doc", "doc~")
      try editor.unlink("doc")
      try editor.make("doc", text)
      #expect(try editor.id("doc") == id)
      #expect(try editor.text("doc~") == before)
      desk.wait(20)
      _ = try desk.events()
    }
    #expect(try editor.versions("doc") == ["old", "one", "two"])
    #expect(try desk.events().filter { $0.contains("edit") } == ["sheaf.change.edit doc", "sheaf.change.edit doc"])
    #expect(try desk.check() == [])
  }

  @Test func writtenByAnotherThanWhoRenames() throws {
    let id = try establish()
    try maker.make("B4C1D200", "new")
    try editor.rename("doc", "7D2A1100.tmp")
    try editor.rename("B4C1D200", "doc")
    try editor.unlink("7D2A1100.tmp")
    #expect(try editor.id("doc") == id)
    #expect(try editor.versions("doc") == ["old", "new"])
    #expect(try desk.check() == [])
  }

  @Test func backupWithAnotherExtension() throws {
    try maker.make("doc.txt", "old")
    try maker.ask("doc.txt")
    let id = try maker.id("doc.txt")
    desk.wait(20)
    _ = try desk.events()
    for (before, text) in [("old", "one"), ("one", "two")] {
      try editor.make("fresh", text)
      try editor.rename("doc.txt", "doc.bak")
      try editor.rename("fresh", "doc.txt")
      #expect(try editor.id("doc.txt") == id)
      #expect(try editor.text("doc.bak") == before)
      desk.wait(20)
    }
    #expect(
      try desk.events() == [
        "sheaf.persistence.created doc.txt", "sheaf.change.edit doc.txt", "sheaf.change.edit doc.txt",
      ])
    #expect(try desk.check() == [])
  }

  @Test func emptiedAndWrittenAtOnce() throws {
    _ = try establish()
    let handle = try editor.open("doc", O_WRONLY | O_TRUNC)
    try editor.close(handle)
    try other.overwrite("doc", "new")
    #expect(try editor.versions("doc") == ["old", "new"])
    try editor.close(try editor.open("doc", O_WRONLY | O_TRUNC))
    desk.wait(3)
    _ = try desk.events()
    try other.overwrite("doc", "later")
    #expect(try editor.versions("doc") == ["old", "new", "", "later"])
    #expect(try desk.check() == [])
  }
}
