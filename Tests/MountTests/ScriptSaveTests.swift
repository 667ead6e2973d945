import Foundation
import MountKit
import Testing

/// What stays of a document that a script rewrites all the time, with real processes on a mount.
struct ScriptSaveTests {
  /// A program that saves by a new file and goes on for a while, three times.
  private static let editor = """
    import os, sys, time
    for number in range(3):
        open(sys.argv[1]).read()
        file = os.open(sys.argv[1] + ".tmp", os.O_CREAT | os.O_WRONLY)
        os.write(file, b"EDITOR %d" % number)
        os.fsync(file)
        os.close(file)
        os.rename(sys.argv[1] + ".tmp", sys.argv[1])
        time.sleep(1.3)
    """

  @Test(arguments: [
    "date +%N >log", "date +%N >log.new; mv log.new log", "date +%N >log; date +%N >>log", "sed -i s/1/2/ log",
    "date +%N >new; sh -c \"cp new log; :\"",
  ])
  func aPersonsSavesStayBesideAScript(_ rewriting: String) throws {
    try withMount { library in
      try library.sheafSucceeds("library", "set", "--rapid-saves", "thin", "--library", library.library)
      // With a session of its own, as a terminal's shell has one, wherever the tests run.
      let terminal =
        """
        date +%N >log
        (for round in $(seq 80); do \(rewriting); sleep 0.07; done) & script=$!
        sleep 2
        python3 -c '\(Self.editor)' log & editor=$!
        for number in 0 1 2; do sleep 0.9; sh -c "echo COMMAND $number >log"; done
        wait $editor $script
        """
      try library.shell("setsid --wait bash -c '\(terminal.replacing("'", with: "'\\''"))'")
      let wanted = (0..<3).flatMap { ["EDITOR \($0)", "COMMAND \($0)"] }
      // One that is thinned meanwhile is the script's, or its text is missed below.
      func texts() throws -> [String] {
        try library.versions("log").compactMap { try? library.show("log", version: $0.number) }
          .map { String(decoding: $0, as: UTF8.self) }
      }
      // The script's are thinned all the same.
      try eventually("that the script's versions are thinned", within: .seconds(20)) {
        try library.versions("log").count <= 40
      }
      let found = try texts().map { $0.trimmingCharacters(in: .newlines) }
      for text in wanted { #expect(found.contains(text), "\(text) is not among \(found.count) versions") }
    }
  }

  /// Shells in which a person types: the first process of the terminal's session, and one that such a shell started, as
  /// su(1) does.
  @Test(arguments: [false, true]) func whatIsTypedInAShellStaysBesideAScript(_ isNested: Bool) throws {
    try withMount { library in
      try library.sheafSucceeds("library", "set", "--rapid-saves", "thin", "--library", library.library)
      try library.shell(
        """
        date +%N >log
        echo 'for round in $(seq 80); do date +%N >.new; cp .new log; sleep 0.07; done' >loop
        printf 'echo "COMMAND $1" >.mine\ncp .mine log\n:\n' >save
        { \(isNested ? "echo bash --norc -i; sleep 1;" : "")
          echo 'bash loop &'; sleep 2
          for number in 0 1 2; do echo "bash save $number"; sleep 1.7; done
          echo wait; echo exit; \(isNested ? "echo exit;" : "") sleep 1; } \\
          | script -qec 'bash --norc -i' /dev/null >/dev/null
        """)
      try eventually("that the script's versions are thinned", within: .seconds(20)) {
        try library.versions("log").count <= 40
      }
      let texts = try library.versions("log").compactMap { try? library.show("log", version: $0.number) }
        .map { String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .newlines) }
      for number in 0..<3 { #expect(texts.contains("COMMAND \(number)"), "\(number) of \(texts.count) versions") }
    }
  }
}
