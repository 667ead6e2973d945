import Foundation
import MountKit
import Testing

/// What README promises first, with the real command on a real mount.
@Suite(.serialized) struct MainJobTests {
  @Test(arguments: Owner.possible)
  func everySaveIsAVersionThatComesBack(_ owner: Owner) throws {
    try withMount(as: try owner.user()) { library in
      try library.shell("echo first > letter.txt; echo second >> letter.txt; sed -i s/first/1st/ letter.txt")
      let versions = try library.versions("letter.txt")
      #expect(versions.map(\.number) == [1, 2, 3])
      #expect(versions.map(\.size) == [6, 13, 11])
      #expect(versions.map(\.base) == [nil, 1, 2])
      #expect(versions.allSatisfy { $0.author == "alice@example.com" && !$0.open && $0.label == nil })
      #expect(versions.map(\.cause).prefix(2) == ["save", "save"])
      #expect(try library.show("letter.txt", version: 1) == Array("first\n".utf8))
      #expect(try library.show("letter.txt", version: 2) == Array("first\nsecond\n".utf8))

      try library.sheafSucceeds("restore", "\(library.documents)/letter.txt", "--version", "1")
      #expect(try library.shell("cat letter.txt").text == "first")
      let restored = try library.versions("letter.txt")
      #expect(restored.count == 4)
      #expect(restored.last?.cause == "restore")
      #expect(Array(restored.prefix(3)) == versions, "restoring rewrote history")

      try library.sheafSucceeds("restore", "\(library.documents)/letter.txt", "--version", "1")
      #expect(try library.versions("letter.txt").count == 4, "equal contents made a version")
      try library.unmount()
      #expect(try library.check() == [])
    }
  }

  @Test(arguments: Owner.possible)
  func attributesTellWhatADocumentIs(_ owner: Owner) throws {
    try withMount(as: try owner.user()) { library in
      try library.shell("echo text > letter.txt; mkdir folder; setfattr -n user.color -v blue letter.txt")
      let listed = try library.shell("getfattr -d letter.txt").text
      for line in [
        "user.color=\"blue\"", "user.sheaf.version=\"1\"", "user.sheaf.editor=\"alice@example.com\"",
        "user.sheaf.state=\"saved\"", "user.sheaf.share.status=\"notShared\"",
      ] {
        #expect(listed.contains(line), "getfattr -d shows no \(line):\n\(listed)")
      }
      #expect(!listed.contains("user.sheaf.conflict") && !listed.contains("user.sheaf.share.url"))
      #expect(UUID(uuidString: try library.attribute("user.sheaf.id", of: "letter.txt")) != nil)
      let folder = try library.shell("getfattr -d folder").text
      #expect(folder.contains("user.sheaf.id=") && !folder.contains("user.sheaf.version"))

      // Writing one succeeds and changes nothing; removing one too.
      let id = try library.attribute("user.sheaf.id", of: "letter.txt")
      try library.shell("setfattr -n user.sheaf.id -v other letter.txt; setfattr -x user.sheaf.version letter.txt")
      #expect(try library.attribute("user.sheaf.id", of: "letter.txt") == id)
      #expect(try library.attribute("user.sheaf.version", of: "letter.txt") == "1")
    }
  }

  @Test(arguments: Owner.possible)
  func oldVersionsAreFilesInAFolder(_ owner: Owner) throws {
    try withMount(as: try owner.user()) { library in
      try library.shell("mkdir folder; echo one > folder/notes.md; echo two > folder/notes.md; echo gone > folder/old")
      #expect(try library.shell("ls -A folder").text == "notes.md\nold")
      let names = try library.shell("ls -1 folder/.versions/notes.md").text.split(separator: "\n").map(String.init)
      try #require(names.count == 2)
      let form = /000[12]~\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ~alice@example\.com\.md/
      for name in names { #expect(name.wholeMatch(of: form) != nil, "the name \(name)") }
      #expect(try library.shell("cat folder/.versions/notes.md/0001~*").text == "one")
      #expect(try library.shell("stat -c %a folder/.versions/notes.md/0002~*").text == "444")
      let times = try library.shell("TZ=UTC stat -c %y folder/.versions/notes.md/0001~*").text
      #expect(times.prefix(19).replacing(" ", with: "T").replacing(":", with: "-") == names[0].dropFirst(5).prefix(19))

      try library.shell("cp folder/.versions/notes.md/0001~* folder/copy.md; diff folder/copy.md <(echo one)")
      try library.shell("! cmp -s folder/.versions/notes.md/0001~* folder/notes.md")
      try library.shell("rm folder/old; cat folder/.versions/old/0001~*")
      let refused = try library.shell(
        "for c in 'mkdir folder/.versions' 'touch folder/.versions/x' 'rm folder/.versions/notes.md/0001~*' "
          + "'rmdir folder/.versions' 'mv folder/copy.md folder/.versions' 'ln -s x folder/.versions'; do "
          + "if eval \"$c\" 2>/dev/null; then echo \"$c succeeded\"; fi; done")
      #expect(refused.text == "")
    }
  }

  @Test(arguments: Owner.possible)
  func whatWasClosedSurvivesAKilledProcess(_ owner: Owner) throws {
    try withMount(as: try owner.user()) { library in
      try library.shell(
        "mkdir -p a/b; echo closed > a/b/document; ln a/b/document link; ln -s a symlink; mkfifo fifo; "
          + "setfattr -n user.color -v blue a/b/document; chmod 640 a/b/document; echo x > moved; mv moved renamed; "
          + "head -c 3000000 /dev/urandom > large; sha256sum large > sum; echo gone > deleted; rm deleted")
      let before = try library.shell("find . -mindepth 1 -printf '%p %y %m %s %n %l %T@\\n' | sort").text
      try library.killServer()
      try library.mount()
      let after = try library.shell("find . -mindepth 1 -printf '%p %y %m %s %n %l %T@\\n' | sort").text
      #expect(after == before)
      try library.shell("sha256sum -c sum; cat a/b/document | grep -qx closed; test ! -e deleted")
      #expect(try library.attribute("user.color", of: "a/b/document") == "blue")
      #expect(try library.versions("a/b/document").map(\.number) == [1])
      try library.unmount()
      #expect(try library.check() == [])
    }
  }

  @Test func labelsDiffsAndDeletedDocuments() throws {
    try withMount { library in
      try library.shell("printf 'one\\ntwo\\n' > doc; printf 'one\\nthree\\n' > doc")
      try library.sheafSucceeds("label", "\(library.documents)/doc", "draft", "--version", "1")
      #expect(try library.versions("doc").map(\.label) == ["draft", nil])
      try library.sheafSucceeds("label", "\(library.documents)/doc", "draft")
      #expect(try library.versions("doc").map(\.label) == [nil, "draft"])
      let diff = try library.sheaf("diff", "\(library.documents)/doc", "--from", "1", "--to", "2")
      #expect(diff.text.contains("-two") && diff.text.contains("+three"))

      let id = try library.attribute("user.sheaf.id", of: "doc")
      try library.shell("mkdir folder; mv doc folder/doc; rm -r folder")
      struct Deleted: Decodable { let id, path, time, actor: String }
      let output = try library.sheafSucceeds("deleted", library.documents, "--json").output
      let deleted = try JSONDecoder().decode([Deleted].self, from: Data(output))
      #expect(deleted.contains { $0.id.lowercased() == id.lowercased() && $0.path == "Documents/folder/doc" })
      try library.sheafSucceeds("recover", "\(library.documents)/folder")
      #expect(try library.shell("cat folder/doc").text == "one\nthree")
      #expect(try library.attribute("user.sheaf.id", of: "folder/doc") == id)
      #expect(try library.versions("folder/doc").last?.label == "draft" || library.versions("folder/doc").count > 2)
    }
  }

  @Test func aDiffLeavesNothingBehindHoweverItEnds() throws {
    try withMount { library in
      try library.shell("echo one > doc; echo two > doc")
      let folder = try library.folder.folder("temporary")
      let programs = try library.folder.folder("programs")
      // In the middle of it: nothing has a name that somebody would have to take away.
      try Command.shell(
        """
        printf '#!/bin/sh\\nls -A "$TMPDIR"; exec /usr/bin/diff "$@"\\n' > diff; chmod 755 diff
        """, in: programs
      ).succeed()
      let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
      let output = try library.sheaf(
        "diff", "\(library.documents)/doc", environment: ["TMPDIR": folder, "PATH": "\(programs):\(path)"])
      #expect(output.text.hasPrefix("--- Documents/doc") && output.text.hasSuffix("-one\n+two"), "\(output)")
    }
  }

  @Test func aPipeThatDoesNotWaitGetsAll() throws {
    try withMount { library in
      try library.shell("head -c 3000000 /dev/urandom > doc")
      try library.shell(
        """
        python3 - '\(try SheafProgram.path())' <<'END'
        import os, subprocess, sys
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        shown = subprocess.Popen([sys.argv[1], "show", "doc", "--version", "1"], stdout=writer)
        os.close(writer)
        with open(reader, "rb") as pipe, open("doc", "rb") as file:
            assert pipe.read() == file.read(), "it differs"
        assert shown.wait() == 0
        END
        """)
    }
  }

  @Test func whatACommandPrintsDoesNotWaitForThoseWhoJoinedIt() throws {
    try withMount { library in
      try library.unmount()
      try Command.shell(
        """
        python3 - '\(try SheafProgram.path())' '\(library.library)' <<'END'
        import socket, subprocess, sys
        program, library = sys.argv[1:]
        while True:
            command = subprocess.Popen([program, "account", "list", "--library", library], stdout=subprocess.PIPE)
            peer = socket.socket(socket.AF_UNIX)
            while command.poll() is None:
                try:
                    peer.connect(library + "-socket")
                except OSError:
                    continue
                peer.sendall(b"GET /v1 HTTP/1.1\\r\\nHost: sheaf\\r\\n\\r\\n")
                if not peer.recv(65536).startswith(b"HTTP/1.1 200"): break
                # Joined, and not to be left in the lurch.
                command.stdout.readline()
                assert command.stdout.readline().startswith(b"alice@example.com")
                assert command.poll() is None, "it left"
                peer.close()
                sys.exit(command.wait())
            peer.close()
            command.communicate()
        END
        """, limit: .seconds(60)
      ).succeed()
      try library.mount()
    }
  }

  @Test func theStatusOfAMountPointIsThatOfItsLibrary() throws {
    try withMount { library in
      let text = try library.sheafSucceeds("status", library.mountpoint).text
      #expect(text.contains(library.library) && text.contains(library.mountpoint), "\(text)")
      #expect(try library.sheaf("status", "\(library.mountpoint)/Documents/nothing").status == 1)
    }
  }

  @Test func purgeDestroysForGood() throws {
    try withMount { library in
      try library.shell("echo a-purged-text > doc; echo harmless > doc; echo gone > other; rm other")
      let refused = try library.sheaf("purge", "\(library.documents)/doc", "--version", "1")
      #expect(refused.status != 0, "purge without --yes went through")
      try library.sheafSucceeds("purge", "\(library.documents)/doc", "--version", "1", "--yes")
      #expect(try library.versions("doc").map(\.number) == [2])
      try library.sheafSucceeds("purge", "\(library.documents)/other", "--yes")
      try library.sheafSucceeds("compact", "--library", library.library)
      try library.unmount()
      let bytes = try Data(contentsOf: URL(fileURLWithPath: library.library))
      #expect(bytes.range(of: Data("a-purged-text".utf8)) == nil, "the purged version's bytes are still in the file")
      #expect(try library.check() == [])
    }
  }
}
