import Foundation
import SheafLibrary
import SheafModel
import Testing

/// Rules 2, 12 and 13 of ``Identity``: what names say of files that are not documents, or not yet.
@Suite(.serialized) struct QuietRuleTests: ProgramTests {
  let desk: Desk

  init() throws { desk = try Desk() }

  @Test func aBackupRenamedIsADocument() throws {
    let id = try establish()
    try editor.rename("doc", "doc~")
    try editor.make("doc", "new")
    desk.wait(20)
    try other.rename("doc~", "earlier")
    #expect(try editor.id("earlier") != id)
    desk.wait(20)
    #expect(
      try desk.events() == [
        "sheaf.persistence.created doc", "sheaf.change.edit doc", "sheaf.persistence.created earlier",
      ])
  }

  @Test func aBackupOfNothingIsADocument() throws {
    try maker.make("notes.bak", "text")
    try maker.make("Cargo.lock", "text")
    desk.wait(20)
    #expect(
      try desk.events().sorted() == ["sheaf.persistence.created Cargo.lock", "sheaf.persistence.created notes.bak"])
  }

  @Test(arguments: ["saveX4k2Pq", "f8e33a72c1d94b5f8a7766554c124681", "0B54C9DE-1f2a-4c3b-9d8e-7f6a5b124681"])
  func aFileOfRandomNameLeavesNoTrace(_ name: String) throws {
    try maker.make(name, "text")
    try maker.unlink(name)
    desk.wait(20)
    #expect(try desk.events() == [])
    #expect(try editor.deleted == [])
  }

  /// As mg copies a document before it is saved: to a name of its own, which is then the backup's.
  @Test(arguments: ["doc.XXXXAblxf2", "copy", "doc.old2"]) func whatItsMakerNamesABackupIsOne(_ name: String) throws {
    let id = try establish()
    for text in ["one", "two"] {
      try editor.make(name, "copy of the old")
      try editor.rename(name, "doc~")
      try editor.overwrite("doc", text)
    }
    desk.wait(20)
    #expect(try editor.id("doc") == id)
    let told = try desk.events()
    #expect(told == ["sheaf.persistence.created doc", "sheaf.change.edit doc", "sheaf.change.edit doc"])
  }

  /// Somebody else's file is no part of the making.
  @Test func whatAnotherOneNamesABackupWasADocument() throws {
    _ = try establish()
    try maker.make("copy", "text")
    try other.rename("copy", "doc~")
    desk.wait(20)
    let told = try desk.events()
    #expect(
      told == [
        "sheaf.persistence.created doc", "sheaf.persistence.created copy", "sheaf.persistence.renamed copy doc~",
      ])
  }

  /// `t=$(mktemp new.XXXXXX); make >$t; mv $t plan.md`, each by a program of its own.
  @Test func whatIsMadeEmptyAndWrittenByAnotherIsOneVersion() throws {
    try maker.make("new.X4k2Pq", "")
    try editor.overwrite("new.X4k2Pq", "text")
    try other.rename("new.X4k2Pq", "plan.md")
    desk.wait(20)
    #expect(try desk.events() == ["sheaf.persistence.created plan.md"])
    #expect(try editor.versions("plan.md") == ["text"])
    // One that stays empty is a document all the same.
    try maker.make("nothing.X4k2Pq", "")
    desk.wait(20)
    #expect(try desk.events().last == "sheaf.persistence.created nothing.X4k2Pq")
    #expect(try editor.versions("nothing.X4k2Pq") == [""])
    #expect(try desk.check() == [])
  }

  @Test func savesUnderAPassingNameAreToldUnderTheLasting() throws {
    try maker.make("plan.tmp", "one")
    try editor.overwrite("plan.tmp", "one two")
    try other.rename("plan.tmp", "plan.md")
    desk.wait(20)
    #expect(try desk.events() == ["sheaf.persistence.created plan.md", "sheaf.change.edit plan.md"])
    #expect(try editor.versions("plan.md") == ["one", "one two"])
  }

  @Test(arguments: ["doc.1~", "doc.2026-11-22.bak"]) func aNumberedCopyIsQuiet(_ copy: String) throws {
    _ = try establish()
    try editor.make(copy, "old")
    try editor.overwrite("doc", "new")
    desk.wait(20)
    #expect(try desk.events() == ["sheaf.persistence.created doc", "sheaf.change.edit doc"])
  }

  @Test func aBackupNamedBeforeTheExtensionIsQuiet() throws {
    let id = try establish("report.txt")
    for text in ["one", "two"] {
      try editor.rename("report.txt", "report~.txt")
      try editor.make("report.txt", text)
      desk.wait(20)
    }
    #expect(try editor.id("report.txt") == id)
    #expect(
      try desk.events() == [
        "sheaf.persistence.created report.txt", "sheaf.change.edit report.txt", "sheaf.change.edit report.txt",
      ])
  }

  @Test(arguments: ["2026-11-22", "deadbeef", "1234567890123456", "plan-2026-11-22-1430"])
  func aNumberIsAName(_ name: String) throws {
    try maker.make(name, "text")
    try maker.unlink(name)
    desk.wait(20)
    #expect(try editor.deleted == ["Documents/\(name)"])
  }

  @Test func aPassingFolderLeavesNoTrace() throws {
    let name = Array("tmp.JCxamf".utf8)
    _ = try desk.library.make(.folder, maker.documents, name, mode: 0o700, maker.caller)
    try desk.library.rmdir(editor.documents, name, editor.caller)
    desk.wait(20)
    #expect(try desk.events() == [])
    #expect(try editor.deleted == [])
    // One that was shared meanwhile can come back.
    _ = try desk.library.make(.folder, maker.documents, name, mode: 0o700, maker.caller)
    let path = try ItemPath(account: AccountHandle("alice@example.com"), "Documents/tmp.JCxamf")
    _ = try desk.library.share(path, ShareChange())
    try desk.library.rmdir(editor.documents, name, editor.caller)
    #expect(try editor.deleted == ["Documents/tmp.JCxamf"])
    #expect(try desk.check() == [])
  }
}
