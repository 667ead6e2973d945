import SheafReplica
import Testing

@testable import SheafLibrary

/// Names that programs give to files which are not to stay, when somebody gives them to something that does.
@Suite struct PassingNameTests {
  /// What the hub knows travels under any name that it keeps.
  @Test(arguments: ["draft.part", "draft.tmp", ".draft.swp", ".~lock.draft#", "draft.txt~"])
  func aKnownItemIsSentUnderAnyName(_ name: String) throws {
    try LibraryStory.tell { story in
      try story.laptop.save("one", at: "draft.txt")
      try story.laptop.makeFolder("folder")
      try story.laptop.save("within", at: "folder/doc")
      try story.sync()
      try story.laptop.move("draft.txt", to: name)
      try story.laptop.move("folder", to: "folder.\(name)")
      try story.sync()
      #expect(story.paths == [name, "folder.\(name)", "folder.\(name)/doc"].sorted())
      try story.desktop.save("two", at: name)
      try story.sync()
      #expect(try story.text(name) == "two")
      try story.laptop.move(name, to: "draft.txt")
      try story.sync()
      #expect(try story.text("draft.txt") == "two")
    }
  }

  /// Two known documents get into one folder, in which one has the name of the other's backup.
  @Test func aKnownDocumentIsSentAsTheBackupOfAnother() throws {
    try LibraryStory.tell { story in
      try story.laptop.makeFolder("q")
      for (path, text) in [("f~", "a"), ("q/f", "b"), ("h.bak", "c")] { try story.laptop.save(text, at: path) }
      try story.sync()
      try story.laptop.move("f~", to: "q/f~")
      try story.laptop.save("new", at: "h")
      try story.laptop.save("more", at: "h.bak")
      try story.sync()
      #expect(story.paths == ["h", "h.bak", "q", "q/f", "q/f~"])
      #expect(try story.text("q/f~") == "a")
      #expect(try story.text("h.bak") == "more")
    }
  }

  /// A program puts what it had aside, under a name that stays, and makes the document anew.
  @Test(arguments: ["archive/report.txt", "report.txt.1", "archive/report-2026.txt", "report.txt 2026"])
  func whatAProgramPutAsideIsSent(_ aside: String) throws {
    try LibraryStory.tell { story in
      try story.laptop.makeFolder("archive")
      try story.laptop.save("january", at: "report.txt")
      try story.sync()
      try story.laptop.move("report.txt", to: aside, by: story.laptop.program)
      try story.laptop.save("february", at: "report.txt", by: story.laptop.program)
      try story.sync()
      #expect(try story.text(aside) == "january")
      #expect(try story.text("report.txt") == "february")
      #expect(story.paths == ["archive", aside, "report.txt"].sorted())
    }
  }

  /// That is not so for backups, which nobody misses elsewhere.
  @Test(arguments: ["bak/report.txt", "report.txt~", ".backups/report.txt"])
  func aBackupOfAProgramStays(_ backup: String) throws {
    try LibraryStory.tell { story in
      for folder in ["bak", ".backups"] { try story.laptop.makeFolder(folder) }
      try story.laptop.save("january", at: "report.txt")
      try story.sync()
      try story.laptop.move("report.txt", to: backup, by: story.laptop.program)
      try story.laptop.save("february", at: "report.txt", by: story.laptop.program)
      try story.sync()
      #expect(story.paths == [".backups", "bak", "report.txt"])
      #expect(try story.desktop.inode(backup) == nil)
    }
  }
}
