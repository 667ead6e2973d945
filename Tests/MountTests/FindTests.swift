import Foundation
import MountKit
import Testing

/// `sheaf find` on mounts.
@Suite(.serialized) struct FindTests {
  @Test func findPrintsPathsThatProgramsOpen() throws {
    try withMount { library in
      try library.shell("mkdir -p plans/deep; echo one >plans/deep/Budget.md; echo two >plans/notes.md; echo x >c")
      let budget = "\(library.documents)/plans/deep/Budget.md"
      #expect(try library.sheafSucceeds("find", "budget", "--library", library.library).text == budget)
      #expect(try library.shell("cat \"$(\"$SHEAF\" find --name '*.md' budget)\"").text == "one")
      #expect(try library.shell("\"$SHEAF\" find --in plans | wc -l").text == "3")
      #expect(try library.shell("\"$SHEAF\" find --since 1h | wc -l").text == "5")
      #expect(try library.shell("\"$SHEAF\" find --since 2099-01-01T00:00:00Z").text == "")
      try library.shell("echo three >plans/notes.md; rm c")
      let versions = try library.shell("\"$SHEAF\" find notes --versions").text.split(separator: "\n")
      #expect(
        versions.count == 3 && versions.allSatisfy { $0.hasSuffix("PATH") || $0.hasSuffix("Documents/plans/notes.md") })
      #expect(try library.shell("\"$SHEAF\" find --deleted").text.contains("Documents/c"))
      // What has controls in its name is one line.
      try library.shell(#"touch $'two\nlines'"#)
      #expect(try library.shell("\"$SHEAF\" find lines").text.contains(#"two\u{a}lines  id:"#))
      let some = try library.sheaf("find", "--limit", "1", "--library", library.library)
      #expect(some.status == 0 && some.text.split(separator: "\n").count == 1 && some.errorText.contains("--limit 10"))
      for way in [["--deleted", "--name", "nothing"], ["--versions", "--name", "nothing"], ["--name", "nothing"]] {
        let none = try SheafProgram.run(["find", "--library", library.library] + way, as: library.user)
        #expect(none.status == 0 && none.text == "" && none.errorText == "sheaf: nothing found", "\(way): \(none)")
      }
      for wrong in [["find", " "], ["find", "--deleted", "--versions"], ["find", "--limit", "0"]] {
        #expect(try SheafProgram.run(wrong + ["--library", library.library]).status == 64, "\(wrong)")
      }
      let pattern = try library.sheaf("find", "--name", "[a", "--library", library.library)
      #expect(pattern.status == 1 && pattern.errorText.contains("without its ]"), "\(pattern)")
      let time = try library.sheaf("find", "--since", "tomorrow", "--library", library.library)
      #expect(time.status == 1 && time.errorText.contains("--since tomorrow"), "\(time)")
    }
  }

  /// The index is kept by the background, and a search after a crash is as exact.
  @Test func contentsAreFoundAfterACrash() throws {
    try withMount { library in
      try library.sheafSucceeds("library", "set", "--search-contents", "on", "--library", library.library)
      try library.shell("printf 'a zeppelin rose' >one; printf 'nothing' >two")
      try eventually("the background takes it in") {
        let file = URL(fileURLWithPath: library.library + "-search")
        return (try? Data(contentsOf: file))?.range(of: Data("zeppelin".utf8)) != nil
      }
      #expect(try library.shell("stat -c %a \"$LIBRARY-search\"").text == "600")
      try library.shell("printf 'a submarine dived' >one")
      try library.killServer()
      try library.mount()
      #expect(try library.sheafSucceeds("find", "zeppelin", "--library", library.library).text == "")
      #expect(
        try library.sheafSucceeds("find", "submarine", "--library", library.library).text == "\(library.documents)/one")
      try library.sheafSucceeds("library", "set", "--search-contents", "off", "--library", library.library)
      #expect(try library.sheafSucceeds("find", "submarine", "--library", library.library).text == "")
      #expect(try library.shell("ls \"$LIBRARY\"-search* 2>/dev/null || echo none").text == "none")
    }
  }
}
