import Foundation
import MountKit
import Testing

/// `.sheafignore` on mounts.
@Suite(.serialized) struct IgnoreTests {
  @Test func ignoredFilesAreFilesAndNothingMore() throws {
    try withMount { library in
      try library.shell(
        """
        printf '*.o\\nbuild/\\n' >.sheafignore
        mkdir -p src build/deep; echo a >src/a.c; echo b >src/a.o; echo c >build/deep/c; echo d >src/a.o
        cp -a src/a.o src/b.o; mv src/b.o build/; sed -i s/c/C/ build/deep/c; sed -i s/d/D/ src/a.o
        """)
      #expect(try library.shell("cat src/a.o build/b.o build/deep/c").text == "D\nd\nC")
      #expect(
        try library.shell("find . -type f | sort").text
          == "./.sheafignore\n./build/b.o\n./build/deep/c\n./src/a.c\n./src/a.o")
      for path in ["src/a.o", "build/b.o", "build/deep/c"] { #expect(try library.versions(path).isEmpty, "\(path)") }
      #expect(try library.versions("src/a.c").count == 1)
      // No event, also once the programs have ended.
      var told = ""
      try eventually("the document is told of") {
        told = try library.shell(#""$SHEAF" activity"#).text
        return told.contains("a.c")
      }
      #expect(!told.contains("a.o") && !told.contains("build"), "\(told)")
      // They outlive a kill, and a mount made anew.
      try library.killServer()
      try library.mount()
      #expect(try library.shell("cat src/a.o build/deep/c").text == "D\nC")
      try library.shell("rm -r build src/a.o")
      #expect(try library.sheafSucceeds("deleted", "--library", library.library).text.hasPrefix("Nothing"))
      #expect(try library.shell("ls -A . src").text == ".:\n.sheafignore\nsrc\n\nsrc:\na.c")
      #expect(try library.check() == [])
    }
  }
}
