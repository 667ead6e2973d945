import Foundation
import Glibc
import MountKit
import SheafLibrary
import SheafModel
import Testing

/// What was closed or synced is found in some version of a document, or of a deleted one, whatever became of its name.
@Suite(.serialized) struct ClosedContentsTests: ProgramTests {
  let desk: Desk

  init() throws { desk = try Desk() }

  /// What the versions of the deleted documents of a name hold, which are recovered for it, oldest document first.
  private func recovered(_ name: String) throws -> [[String]] {
    var found: [[String]] = []
    while try editor.deleted.contains("Documents/\(name)") {
      let paths = try desk.library.recover(
        ItemPath(account: AccountHandle("alice@example.com"), "Documents/\(name)"), id: nil
      ) { _ in }
      let path = try #require(paths.first).dropFirst("Documents/".count)
      found.insert(try editor.versions(String(path)), at: 0)
    }
    return found
  }

  // MARK: - One program

  @Test func aDocumentIsReplacedWhileItsMakerWritesIt() throws {
    try maker.make("doc", "one")
    let id = try maker.id("doc")
    let handle = try maker.open("doc", O_RDWR)
    try maker.write(handle, "two")
    try maker.make("t", "three")
    try maker.rename("t", "doc")
    try maker.close(handle)
    #expect(try maker.id("doc") == id)
    #expect(try maker.versions("doc") == ["one", "two", "three"])
    #expect(try maker.deleted == [])
    #expect(try desk.check() == [])
  }

  @Test(arguments: [1, 2]) func aDocumentIsRemovedWhileItsMakerWritesIt(_ saves: Int) throws {
    try maker.make("doc", "one")
    if saves == 2 { try maker.overwrite("doc", "more") }
    let handle = try maker.open("doc", O_RDWR)
    try maker.write(handle, "last")
    try maker.unlink("doc")
    try maker.close(handle)
    #expect(try recovered("doc") == [saves == 1 ? ["one", "last"] : ["one", "more", "last"]])
    #expect(try desk.check() == [])
  }

  @Test func whatWasSyncedIsKept() throws {
    let handle = try desk.library.create(
      maker.documents, Array("doc".utf8), mode: 0o600, flags: O_RDWR | O_CREAT, maker.caller
    ).handle
    try maker.write(handle, "synced")
    try desk.library.fsync(maker.ino("doc"))
    try maker.unlink("doc")
    try maker.close(handle)
    #expect(try recovered("doc") == [["synced"]])
  }

  /// Somebody writes what a file holds already, and renames it over a document before they close it. What it holds was
  /// closed, so the next save is another version.
  @Test(
    arguments: ["the same", "emptied first", "allocated", "synced", "waited for", "the same as both"],
    ["itself", "maker", "other"])
  func whatWasClosedOutlivesARenameWhileItIsWrittenAgain(_ way: String, _ saver: String) throws {
    let programs = ["itself": editor, "maker": maker, "other": other]
    let next = try #require(programs[saver])
    try other.make("doc", way == "the same as both" ? "precious" : "old")
    desk.wait(20)
    let id = try other.id("doc")
    try maker.make("new", "precious")
    let handle = try editor.open("new", way == "emptied first" ? O_RDWR | O_TRUNC : O_RDWR)
    if way == "allocated" {
      try desk.library.allocate(handle, 0..<8, .preallocate(keepsSize: true))
    } else {
      try editor.write(handle, "precious")
    }
    if way == "synced" { try desk.library.fsync(editor.ino("new")) }
    if way == "waited for" { desk.wait(3) }
    try editor.rename("new", "doc")
    if saver == "itself" { try editor.write(handle, "new text") } else { try next.overwrite("doc", "new text") }
    try editor.close(handle)
    #expect(try other.id("doc") == id)
    #expect(try other.versions("doc") == (way == "the same as both" ? [] : ["old"]) + ["precious", "new text"])
    #expect(try editor.deleted == [])
    #expect(try desk.check() == [])
  }

  @Test func whatNobodyClosedLeavesNoTrace() throws {
    let handle = try desk.library.create(
      maker.documents, Array("doc".utf8), mode: 0o600, flags: O_RDWR | O_CREAT, maker.caller
    ).handle
    try maker.write(handle, "probe")
    try maker.unlink("doc")
    try maker.close(handle)
    #expect(try maker.deleted == [])
    #expect(try desk.check() == [])
  }

  @Test(arguments: ["unlink", "rename over"]) func anEmptiedDocumentKeepsWhatItHeld(_ way: String) throws {
    try maker.make("doc", "one")
    try maker.overwrite("doc", "")
    if way == "unlink" {
      try maker.unlink("doc")
      #expect(try recovered("doc") == [["one", ""]])
    } else {
      let id = try maker.id("doc")
      try maker.make("t", "two")
      try maker.rename("t", "doc")
      #expect(try maker.id("doc") == id)
      #expect(try maker.versions("doc").filter { $0 != "" } == ["one", "two"])
      #expect(try maker.deleted == [])
    }
  }

  /// A file of a lasting name takes a document's place: what it held before is not the document's.
  @Test(arguments: ["two", ""]) func aFileThatWasSavedTwiceBecomesADocument(_ last: String) throws {
    _ = try establish()
    try editor.make("draft", "one")
    try editor.overwrite("draft", last)
    try editor.rename("draft", "doc")
    #expect(try editor.versions("doc") == ["old", last])
    #expect(try recovered("draft").first?.first == "one")
    #expect(try desk.check() == [])
  }

  @Test func aTemporaryFileThatWasSavedTwiceDissolves() throws {
    _ = try establish()
    try editor.make("doc.tmp", "one")
    try editor.overwrite("doc.tmp", "two")
    try editor.rename("doc.tmp", "doc")
    #expect(try editor.versions("doc") == ["old", "two"])
    #expect(try editor.deleted == [])
  }

  @Test func aLastingNameCountsBeforeTheFirstClose() throws {
    let handle = try desk.library.create(
      maker.documents, Array("doc".utf8), mode: 0o600, flags: O_RDWR | O_CREAT, maker.caller
    ).handle
    try maker.rename("doc", "doc.tmp")
    try maker.write(handle, "text")
    try maker.close(handle)
    try maker.unlink("doc.tmp")
    #expect(try recovered("doc.tmp") == [["text"]])
  }

  // MARK: - Names

  @Test func aDocumentUnderTheNameOfAProbeIsKept() throws {
    _ = try establish()
    try editor.rename("doc", "#doc#")
    desk.wait(20)
    _ = try desk.events()
    try other.unlink("#doc#")
    #expect(try recovered("#doc#") == [["old"]])
  }

  @Test func whatOnlyABackupHeldIsKept() throws {
    _ = try establish()
    try editor.make("doc~", "only here")
    desk.wait(20)
    _ = try desk.events()
    try other.overwrite("doc~", "old")
    desk.wait(20)
    try editor.rename("doc", "doc~")
    #expect(try recovered("doc~").first?.contains("only here") ?? false)
    #expect(try desk.check() == [])
  }

  // MARK: - Two programs

  /// Another program writes to a document that its maker saves by a rename while it is young.
  @Test(arguments: [true, false]) func anotherProgramWritesAYoungDocument(_ closes: Bool) throws {
    try maker.make("doc", "one")
    let id = try maker.id("doc")
    let handle = try other.open("doc", O_RDWR)
    try other.write(handle, "two")
    if closes { try other.close(handle) }
    try maker.make("t", "three")
    try maker.rename("t", "doc")
    if !closes { try other.close(handle) }
    #expect(try maker.id("doc") == id)
    #expect(try maker.versions("doc") == ["one", "two", "three"])
    #expect(try maker.deleted == [])
    #expect(try desk.check() == [])
  }

  @Test(arguments: [true, false]) func anotherProgramWritesWhatItsMakerOnlyMade(_ closes: Bool) throws {
    try maker.make("doc", "")
    let id = try maker.id("doc")
    let handle = try other.open("doc", O_RDWR)
    try other.write(handle, "two")
    if closes { try other.close(handle) }
    try maker.make("t", "three")
    try maker.rename("t", "doc")
    if !closes { try other.close(handle) }
    #expect(try maker.id("doc") == id)
    #expect(try maker.versions("doc").filter { $0 != "" } == ["two", "three"])
    #expect(try maker.deleted == [])
  }

  @Test func whatAnotherProgramWroteToATemporaryFileIsKept() throws {
    try maker.make("doc.tmp", "")
    try other.overwrite("doc.tmp", "others'")
    try maker.unlink("doc.tmp")
    #expect(try recovered("doc.tmp").first?.last == "others'")
  }

  // MARK: - Transactions that run twice

  /// The first attempt to purge finds no room and the second one has the reserve: the conflict goes with its version.
  @Test func aConflictGoesWithItsVersionOnAFullDisk() throws {
    try maker.make("doc", "one")
    try maker.overwrite("doc", "two")
    try desk.close()
    _ = try Command(["sqlite3", desk.path, "UPDATE items SET conflict = 1 WHERE version = 2"]).succeed()
    let purge = try SheafProgram.run(
      ["purge", "Documents/doc", "--version", "1", "--yes", "--library", desk.path, "--as", "alice@example.com"],
      environment: ["SHEAF_FAULT": "purge.commit:full:1"])
    #expect(purge.status == 0, "\(purge)")
    try desk.open()
    let path = try ItemPath(account: AccountHandle("alice@example.com"), "Documents/doc")
    #expect(try desk.library.itemStatus(path).conflict == nil)
    #expect(try desk.query("SELECT count(*) FROM items WHERE conflict IS NOT NULL") == ["0"])
    #expect(try desk.check() == [])
  }
}
