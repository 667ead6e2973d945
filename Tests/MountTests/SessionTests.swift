import Foundation
import Glibc
import MountKit
import Testing

/// When versions begin, are renewed, and end.
@Suite(.serialized) struct SessionTests {
  @Test func aTouchedNewFileIsVersionOneAndEqualContentsMakeNone() throws {
    try withMount { library in
      try library.shell("touch empty")
      #expect(try library.versions("empty").map(\.size) == [0])
      #expect(try library.attribute("user.sheaf.version", of: "empty") == "1")
      try library.shell("touch empty; chmod 600 empty; mv empty renamed")
      #expect(try library.versions("renamed").count == 1)
      try library.shell("echo same > doc; echo same > doc; cp doc other; cp other doc; echo same > doc")
      #expect(try library.versions("doc").count == 1)
      try library.shell("echo other > doc; echo same > doc")
      #expect(try library.versions("doc").map(\.number) == [1, 2, 3])
    }
  }

  /// Of saves that follow each other at once the first ten stay and the last; a moment that the machine stands still
  /// begins another series.
  @Test func whatAProgramSavesAllTheTimeIsThinned() throws {
    try withMount { library in
      try library.shell(
        """
        python3 - <<'END'
        import os
        for number in range(1, 201):
            with open("doc", "w") as file: file.write(str(number))
            with open("new", "w") as file: file.write(str(number))
            os.rename("new", "replaced")
        END
        """)
      for name in ["doc", "replaced"] {
        try eventually("the surplus of \(name) is gone", within: .seconds(30)) {
          try library.versions(name).count < 60
        }
        let numbers = try library.versions(name).map(\.number)
        #expect(Array(numbers.prefix(10)) == Array(1...10) && numbers.last == 200, "\(numbers)")
        #expect(try String(contentsOfFile: "\(library.documents)/\(name)", encoding: .utf8) == "200")
      }
      #expect(try library.check() == [])
    }
  }

  @Test func anOpenDocumentIsSavedWithinTwoSecondsAndSurvivesAKill() throws {
    try withMount { library in
      let path = "\(library.documents)/document"
      let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
      try #require(file >= 0)
      #expect(write(file, "first", 5) == 5)
      // Asked by this process: one that it starts inherits the handle, and closing its duplicate is a close.
      #expect(state(file) == "edited")
      try eventually("the autosave", within: .seconds(3)) { state(file) == "saved" }
      let first = try library.versions("document")[0]
      #expect(first.open && first.size == 5 && first.number == 1)
      #expect(state(file) == "saved")

      // The session goes on: the same version, renewed.
      #expect(write(file, " second", 7) == 7)
      #expect(state(file) == "edited")
      try eventually("the renewing autosave", within: .seconds(3)) { state(file) == "saved" }
      #expect(try library.versions("document")[0].size == 12)
      #expect(try library.versions("document").count == 1)
      #expect(fsync(file) == 0)
      try library.killServer()
      close(file)
      try library.mount()
      #expect(try library.shell("cat document").text == "first second")
      let after = try library.versions("document")
      #expect(after.count == 1 && !after[0].open)
    }
  }

  @Test func whatWasWrittenTwoSecondsAgoSurvivesAKillWithoutFsync() throws {
    try withMount { library in
      let file = open("\(library.documents)/document", O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
      let bytes = [UInt8](repeating: 65, count: 5_000_000)
      #expect(write(file, bytes, bytes.count) == bytes.count)
      try eventually("the autosave", within: .seconds(4)) { state(file) == "saved" }
      try library.killServer()
      close(file)
      try library.mount()
      #expect(try library.shell("stat -c %s document").text == "5000000")
    }
  }

  @Test func fsyncMakesDurableAndMakesNoVersionOfItsOwn() throws {
    try withMount { library in
      let file = open("\(library.documents)/database", O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
      for number in 0..<50 {
        #expect(pwrite(file, "commit \(number)\n", 10, number * 10) == 10)
        #expect(fsync(file) == 0)
      }
      try library.killServer()
      close(file)
      try library.mount()
      #expect(try library.shell("tail -1 database").text == "commit 49")
      #expect(try library.versions("database").count <= 1)
    }
  }

  @Test func aVersionIsNeverTheEmptyMomentOfATruncation() throws {
    try withMount { library in
      try library.shell("echo before > doc; echo after > doc")
      #expect(try library.versions("doc").map(\.size) == [7, 6])
      let file = open("\(library.documents)/doc", O_WRONLY | O_TRUNC | O_CLOEXEC)
      #expect(write(file, "third", 5) == 5)
      close(file)
      #expect(try library.versions("doc").map(\.size) == [7, 6, 5])
      #expect(try library.show("doc", version: 2) == Array("after\n".utf8))
    }
  }

  @Test func oneSessionIsOneVersionHoweverManyWritesItTakes() throws {
    try withMount { library in
      let path = "\(library.documents)/document"
      let one = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
      let two = open(path, O_RDWR | O_CLOEXEC)
      for number in 0..<100 { #expect(pwrite(number % 2 == 0 ? one : two, "x", 1, number) == 1) }
      close(one)
      #expect(pwrite(two, "y", 1, 100) == 1)
      close(two)
      try eventually("the closed version") { try library.versions("document").allSatisfy { !$0.open } }
      #expect(try library.versions("document").map(\.size) == [101])
    }
  }

  @Test func aProgramThatSavesByRenamingAgainAndAgainMakesAVersionEachTime() throws {
    try withMount { library in
      try library.shell(
        """
        python3 - <<'END'
        import os
        with open('doc', 'w') as file: file.write('first')
        for number in range(3):
            with open('doc.new', 'w') as file: file.write('save %d' % number)
            os.rename('doc.new', 'doc')
        END
        """)
      #expect(try library.versions("doc").map(\.size) == [5, 6, 6, 6])
      #expect(try library.show("doc", version: 1) == Array("first".utf8))
    }
  }

  /// `user.sheaf.state` of an open document.
  private func state(_ file: Int32) -> String { Attributes.state(file) ?? "none" }

  @Test func aBackupIsConsistentWhileDocumentsAreWritten() throws {
    try withMount { library in
      let writer = try BackgroundCommand(
        .shell(
          "i=0; while :; do i=$((i+1)); seq $i > doc-$((i % 20)); mv doc-$((i % 20)) moved-$((i % 7)); done",
          in: library.documents))
      defer { writer.end() }
      for round in 0..<3 {
        let copy = "\(library.folder.path)/copy-\(round).sqlite"
        try library.sheafSucceeds("backup", copy, "--library", library.library)
        let check = try library.sheaf("check", "--library", copy)
        #expect(check.status == 0, "\(check)")
        let refused = try library.sheaf("backup", copy, "--library", library.library)
        #expect(refused.status == 1, "a backup overwrote a file")
      }
    }
  }
}
