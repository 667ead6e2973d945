import Foundation
import MountKit
import Testing

/// Files that programs make without a name (O_TMPFILE) and link into place.
@Suite(.serialized) struct NamelessFileTests {
  private func python(_ library: MountedLibrary, _ script: String) throws -> Command.Output {
    let head = """
      import os, sys
      def make(folder=".", mode=0o640, flags=0): return os.open(folder, os.O_TMPFILE | os.O_RDWR | flags, mode)
      # Only with a folder's descriptor Python asks the kernel to follow the link (linkat(2)).
      root = os.open("/", os.O_RDONLY)
      def link(f, name): os.link(f"/proc/self/fd/{f}", name, src_dir_fd=root, follow_symlinks=True)
      os.chdir(sys.argv[1])

      """
    let output = try Command(["python3", "-c", head + script, library.documents]).run()
    guard output.status == 0 else { throw Command.Failure(description: "\(output)") }
    return output
  }

  @Test func whatIsLinkedIsADocumentWithItsVersion() throws {
    try withMount { library in
      let output = try python(
        library,
        """
        f = make()
        os.write(f, b"first")
        os.setxattr(f, "user.color", b"blue")
        assert os.fstat(f).st_nlink == 0 and os.listdir(".") == []
        link(f, "named")
        # It is whole at once, with the file still open.
        print(os.getxattr("named", "user.sheaf.version").decode(), os.getxattr("named", "user.color").decode())
        print(os.fstat(f).st_nlink, oct(os.stat("named").st_mode & 0o777), os.stat("named").st_ino == os.fstat(f).st_ino)
        os.write(f, b" and more")
        os.close(f)
        print(open("named").read())
        f = make(flags=os.O_EXCL)
        try: link(f, "never")
        except FileNotFoundError: print("not linked")
        os.close(f)
        f = make(); os.write(f, b"x")
        try: link(f, "named")
        except FileExistsError: print("exists")
        os.close(f)
        """)
      #expect(
        output.text == "1 blue\n1 0o640 True\nfirst and more\nnot linked\nexists", "\(output)")
      #expect(try library.versions("named").count == 1)
      #expect(try library.shell("ls").text == "named")
      try eventually("its event is told, and no other one") {
        try library.shell(#""$SHEAF" activity --json | grep -c '"type"' || true"#).text == "1"
      }
      #expect(try library.check() == [])
    }
  }

  /// The same document goes on where its program took the name away, or renames the new file over it.
  @Test func aDocumentThatIsSavedByLinkingStaysItself() throws {
    try withMount { library in
      for way in ["os.unlink('doc'); link(f, 'doc')", "link(f, 'doc.tmp'); os.rename('doc.tmp', 'doc')"] {
        try library.shell("rm -rf doc; echo one >doc")
        let id = try library.attribute("user.sheaf.id", of: "doc")
        let before = try library.versions("doc").count
        _ = try python(library, "f = make(); os.write(f, b'two'); \(way); os.close(f)")
        #expect(try library.shell("cat doc").text == "two", "\(way)")
        #expect(try library.attribute("user.sheaf.id", of: "doc") == id, "\(way)")
        #expect(try library.versions("doc").count == before + 1, "\(way)")
        #expect(try library.shell("ls").text == "doc", "\(way)")
      }
      #expect(try library.check() == [])
    }
  }

  /// What returned is safe, and what has no name leaves nothing.
  @Test func aKillLeavesWhatWasLinkedAndNothingElse() throws {
    try withMount { library in
      let program = """
        import os, sys
        os.chdir(sys.argv[1])
        f = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o644)
        os.write(f, b"linked")
        os.link(f"/proc/self/fd/{f}", "linked", src_dir_fd=os.open("/", os.O_RDONLY), follow_symlinks=True)
        g = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o644)
        os.write(g, os.urandom(12 << 20))
        os.fsync(g)
        open(sys.argv[2], "w").close()
        sys.stdin.read()
        """
      let mark = "\(library.folder.path)/written"
      let running = try BackgroundCommand(Command(["python3", "-c", program, library.documents, mark]))
      defer { running.end() }
      try eventually("it has written", within: .seconds(60)) { FileManager.default.fileExists(atPath: mark) }
      try library.killServer()
      try library.mount()
      #expect(try library.shell("ls; cat linked").text == "linked\nlinked")
      #expect(try library.versions("linked").count == 1)
      #expect(try library.check() == [])
      try library.sheafSucceeds("compact", "--library", library.library)
      #expect(try library.sheafSucceeds("deleted", "--library", library.library).text.hasPrefix("Nothing"))
      // Nothing of it is stored.
      let size = try FileManager.default.attributesOfItem(atPath: library.library)[.size] as? Int
      #expect(try #require(size) < 2 << 20)
    }
  }
}
