import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafCommand

@Suite struct OutputTests {
  @Test func tellsAFailureInOneLine() {
    let error = SheafError(.notFound, subject: "Documents/a\nb", reason: "no such item", advice: "see: sheaf deleted")
    #expect(ErrorLine.text(error.description) == "sheaf: Documents/a\\u{a}b: no such item; see: sheaf deleted\n")
    #expect(ErrorLine.text("x: \u{1B}[2J").filter { $0 == "\u{1B}" }.isEmpty)
  }

  @Test func tellsTimesOfFailuresAsLocalTime() throws {
    let time = try #require(Timestamp(rfc3339: "2026-11-30T09:00:00Z"))
    let error = SheafError(.invalid, subject: time.secondsText, reason: "is yet to come", times: [time])
    #expect(ErrorLine.text(error) == "sheaf: \(Format.time(time)): is yet to come\n")
    #expect(ErrorLine.text(error.about("x")) == "sheaf: x: is yet to come\n")
  }

  /// A name with these shows as `report.exe.txt` what ends in `.exe`, or moves the cursor.
  @Test func whatActsOnATerminalIsShown() throws {
    let name = "a\u{202E}txt.exe\u{2066}\u{9B}2J\u{7F}\u{2028}é\u{200D}\u{200B}b\u{E0061}"
    let shown = "a\\u{202e}txt.exe\\u{2066}\\u{9b}2J\\u{7f}\\u{2028}é\u{200D}\\u{200b}b\\u{e0061}"
    #expect(name.escapingControls == shown && name.printable == shown)
    var table = Table([("", .left)])
    table.append([name])
    #expect(table.text == shown + "\n")
    let text = try JSON.text([name: name], .prettyPrinted)
    #expect(!text.unicodeScalars.contains { $0.isControl && $0 != "\n" })
    #expect(try JSONDecoder().decode([String: String].self, from: Data(text.utf8)) == [name: name])
    #expect(String(repeating: "x", count: 201).printable == String(repeating: "x", count: 200) + "…")
  }

  @Test(arguments: [
    (0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.0 kB"), (1234, "1.2 kB"), (12_345, "12 kB"),
    (999_499, "999 kB"), (999_600, "1.0 MB"), (5_000_000_000, "5.0 GB"),
  ])
  func tellsSizes(bytes: Int64, text: String) { #expect(Format.size(bytes) == text) }

  /// A server that lies ends nothing.
  @Test(arguments: [Int64.min, -1, 0, 1, .max], [Int64.min, -1, 0, 1, .max]) func showsProgress(
    _ done: Int64, _ total: Int64
  ) {
    let text = ProgressLine.text(Progress(done: done, total: total))
    #expect(!text.contains("-"), "\(text)")
    if total == 1 { #expect(text == (done > 0 ? "100 %" : "0 %")) }
    if total == 0 { #expect(text.hasSuffix(done == 1 ? "1 item" : " items")) }
  }

  @Test func alignsColumns() {
    var table = Table([("N", .right), ("NAME", .left), ("X", .left)])
    table.append(["1", "a\tb", ""])
    table.append(["100", "c", "y"])
    #expect(table.text == "  N  NAME     X\n  1  a\\u{9}b\n100  c        y\n")
  }

  @Test func namesHoldersOfAMount() {
    let holders = zip(pid_t(1)..., ["vim", "bash", "less", "cat"]).map { MountHolders.Holder(pid: $0, command: $1) }
    let error = MountHolders(mountpoint: "/m", holders: holders).error
    #expect(error.kind == .busy)
    #expect(error.description.hasPrefix("/m: is in use by vim (1), bash (2), less (3) and 1 more; "))
  }

  @Test func keepsArgumentsByteForByte() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<500 {
      let bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
        [UInt8.random(in: 1...255, using: &generator), 0xF4, 0x8F, 0xBF, 0x41].randomElement(using: &generator)!
      }
      #expect(RawArguments.bytes(RawArguments.text(bytes)) == bytes)
    }
    #expect(RawArguments.text(Array("Übung €".utf8)) == "Übung €")
  }
}

@Suite struct LibraryChoiceTests {
  @Test func choosesByOptionThenEnvironmentThenHome() throws {
    let all = ["SHEAF_LIBRARY": "/usr/l.sqlite", "XDG_DATA_HOME": "/x", "HOME": "/h"]
    #expect(try LibraryChoice.location(named: "/etc/l.sqlite") { all[$0] }.path == "/etc/l.sqlite")
    #expect(try LibraryChoice.location(named: nil) { all[$0] }.path == "/usr/l.sqlite")
    let data = ["XDG_DATA_HOME": "/x", "HOME": "/h"]
    #expect(try LibraryChoice.location(named: nil) { data[$0] }.path == "/x/sheaf/library.sqlite")
    let home = ["XDG_DATA_HOME": "relative", "HOME": "/h"]
    #expect(try LibraryChoice.location(named: nil) { home[$0] }.path == "/h/.local/share/sheaf/library.sqlite")
  }

  @Test func aFolderIsNoLibrary() {
    #expect {
      try LibraryChoice.location(named: "/tmp") { _ in nil }
    } throws: {
      ($0 as? SheafError)?.kind == .isDirectory
    }
  }

  @Test func theFolderOfANamedLibraryIsThere() {
    for (file, variables) in [("/no/such/l.sqlite", [:]), (nil, ["SHEAF_LIBRARY": "/no/such/l.sqlite"])] {
      #expect {
        try LibraryChoice.location(named: file) { variables[$0] }
      } throws: {
        ($0 as? SheafError)?.kind == .notFound && ($0 as? SheafError)?.subject == "/no/such"
      }
    }
  }

  @Test func whatIsRecoveredIsNamedByItsFolder() {
    #expect(Recover.folder(of: ["Documents/f/a", "Documents/f/g/b"]) == "Documents/f")
    #expect(Recover.folder(of: ["Documents/f/a", "Documents/fg/a"]) == "Documents")
    #expect(Recover.folder(of: ["Documents/f/a"]) == "Documents/f")
  }
}
