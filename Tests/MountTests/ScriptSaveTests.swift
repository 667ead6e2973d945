import Foundation
import MountKit
import Testing

/// What stays of a document that a script rewrites all the time, with real processes on a mount.
struct ScriptSaveTests {
  /// A program that saves by a new file and goes on for a while, three times.
  private static let editor = """
    import fcntl, os, sys, time
    lock = open(sys.argv[2])
    for number in range(3):
        fcntl.flock(lock, fcntl.LOCK_EX)
        open(sys.argv[1]).read()
        file = os.open(sys.argv[1] + ".tmp", os.O_CREAT | os.O_WRONLY)
        os.write(file, b"EDITOR %d" % number)
        os.fsync(file)
        os.close(file)
        os.rename(sys.argv[1] + ".tmp", sys.argv[1])
        fcntl.flock(lock, fcntl.LOCK_UN)
        time.sleep(1.3)
    """

  @Test(arguments: [
    "date +%N >log", "date +%N >log.new; mv log.new log", "date +%N >log; date +%N >>log", "sed -i s/1/2/ log",
    "date +%N >new; sh -c \"cp new log; :\"",
  ])
  func aPersonsSavesStayBesideAScript(_ rewriting: String) throws {
    try withMount { library in
      try library.sheafSucceeds("library", "set", "--rapid-saves", "thin", "--library", library.library)
      // With a session of its own, as a terminal's shell has one, wherever the tests run. They take turns: what one writes
      // over before another closed it is in no version.
      let terminal =
        """
        date +%N >log
        exec 8>turn
        (exec 9>turn; for round in $(seq 80); do flock 9; \(rewriting); flock -u 9; sleep 0.07; done) & script=$!
        sleep 2
        python3 -c '\(Self.editor)' log turn & editor=$!
        for number in 0 1 2; do sleep 0.9; flock 8; sh -c "echo COMMAND $number >log"; flock -u 8; done
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

  /// Its programs' saves are a series, too, where a daemon has the document open and writes between them.
  @Test func aScriptsSavesAreThinnedBesideADaemon() throws {
    try withMount { library in
      try library.sheafSucceeds("library", "set", "--rapid-saves", "thin", "--library", library.library)
      let daemon =
        "import sys, time\nlog = open(sys.argv[1], \"a\", buffering=1)\nwhile True: log.write(\"daemon\\n\"); time.sleep(0.05)"
      try library.shell(
        """
        echo first >log
        python3 -c '\(daemon)' log & daemon=$!
        setsid --wait bash -c 'for round in $(seq 60); do sh -c "echo $round >>log"; sleep 0.1; done'
        kill $daemon
        """)
      try eventually("that the versions are thinned", within: .seconds(20)) {
        try library.versions("log").count <= 25
      }
      let lines = Set(try library.shell("cat log").text.split(separator: "\n"))
      #expect((1...60).allSatisfy { lines.contains("\($0)") })
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
        echo 'exec 9>turn; for round in $(seq 80); do date +%N >.new; flock 9; cp .new log; flock -u 9; sleep 0.07; done' >loop
        printf 'echo "COMMAND $1" >.mine\nexec 9>turn\nflock 9\ncp .mine log\n:\n' >save
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
