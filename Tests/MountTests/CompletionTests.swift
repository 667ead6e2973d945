import Foundation
import MountKit
import Testing

/// What shells offer, by the scripts that `sheaf --generate-completion-script` prints.
@Suite(.serialized) struct CompletionTests {
  /// What bash inserts or lists for a line, typed at an interactive shell, with TAB pressed twice.
  ///
  /// - Parameter path: the item whose id stands in the line as `$ID`.
  private func offered(_ library: MountedLibrary, _ line: String, _ path: String? = nil) throws -> Set<String> {
    let id = try path.map { try library.attribute("user.sheaf.id", of: "\(library.mountpoint)/\($0)") } ?? ""
    let script = """
      import os, pty, re, select, sys, time
      line, folder = sys.argv[1], sys.argv[2]
      child, terminal = pty.fork()
      if child == 0:
          os.chdir(folder)
          os.environ.update(PS1="", PS2="", TERM="dumb", COLUMNS="400")
          os.execlp("bash", "bash", "--norc", "--noprofile", "-i")
      def read(mark):
          text = b""
          while mark not in text:
              if not select.select([terminal], [], [], 60)[0]: raise SystemExit(f"no answer: {text!r}")
              text += os.read(terminal, 65536)
          return text
      def say(text): os.write(terminal, text.encode())
      say('bind "set completion-query-items 0"; bind "set page-completions off"; bind "set bell-style none"\\n')
      say('bind "set show-all-if-ambiguous on"; bind "set enable-bracketed-paste off"; stty -echo\\n')
      say('PATH="$(dirname "$SHEAF"):$PATH"; source <("$SHEAF" --generate-completion-script bash); echo rea""dy\\n')
      read(b"ready")
      say(line + "\\t")
      # What is on the line then is echoed by a command of its own: C-a, and the rest as an argument.
      say("\\x01printf '<%s>' \\x05; echo en\\"\\"d\\n")
      text = read(b"end").decode()
      print(text)
      say("exit\\n")
      """
    let output = try Command(
      ["python3", "-c", script, line.replacing("$ID", with: id), library.documents],
      environment: ["SHEAF": SheafProgram.path(), "SHEAF_LIBRARY": library.library]
    ).run()
    guard output.status == 0 else { throw Command.Failure(description: "\(output)") }
    let text = output.text.replacing("\r", with: "")
    return Set(text.split(whereSeparator: { $0.isWhitespace || "<>".contains($0) }).map(String.init))
  }

  @Test func bashOffersWhatTheLibraryKnows() throws {
    try withMount { library in
      for name in ["bob", "carol"] {
        try library.sheafSucceeds("account", "add", "\(name)@example.com", "--library", library.library)
      }
      try library.shell(
        """
        mkdir plans 'with space'; echo one >plans/a; echo two >plans/a; echo three >plans/a
        "$SHEAF" label plans/a 'final draft'; "$SHEAF" label plans/a first --version 1
        echo x >plans/gone; echo y >'with space/gone too'; rm plans/gone 'with space/gone too'
        """)
      let versions = try offered(library, "sheaf show plans/a --version ")
      #expect(versions.isSuperset(of: ["1", "2", "3"]), "\(versions)")
      #expect(try offered(library, "sheaf diff --from 1 plans/a --to ").isSuperset(of: ["1", "2", "3"]))
      #expect(try offered(library, "sheaf label plans/a f").isSuperset(of: ["first"]))
      #expect(try offered(library, "sheaf show plans/a --version f").isSuperset(of: ["first"]))
      let people = try offered(library, "sheaf share plans --with ")
      #expect(people.isSuperset(of: ["bob@example.com", "carol@example.com"]), "\(people)")
      // One that is left is inserted, also behind the @, at which bash ends words by itself.
      #expect(try offered(library, "sheaf share plans --with bo").contains("bob@example.com"))
      #expect(try offered(library, "sheaf share plans --with bob@ex").contains("bob@example.com"))
      #expect(try offered(library, "sheaf recover plans/g").contains("plans/gone"))
      #expect(try offered(library, "sheaf recover pl").contains("plans/"))
      // Names are what they are to bash, too, whoever gave them.
      try library.shell(
        """
        mkdir "My \\"Fo'lder"; for name in '$(touch pwned)' $'new\\nline' $'no\\377text'; do echo >"$name"; rm "$name"; done
        """)
      #expect(try offered(library, "sheaf recover My").isSuperset(of: ["My", "\"Fo'lder/"]))
      let everything = try offered(library, "sheaf recover ")
      #expect(everything.isDisjoint(with: ["line", "no\u{FFFD}text"]) && !everything.contains { $0.contains("//") })
      #expect(!FileManager.default.fileExists(atPath: "\(library.documents)/pwned"), "a name was run as a command")
      // bash would run what it inserts of a word that names no file.
      try library.shell(
        """
        "$SHEAF" label plans/a 'ok`touch pwned`' --version 2; "$SHEAF" label plans/a 'ok$(touch pwned)' --version 1
        for name in 'zb`touch pwned`' 'zc$HOME' zd; do echo >"$name"; rm "$name"; done
        """)
      for line in ["sheaf show plans/a --version o", "sheaf recover zb", "sheaf recover zc", "sheaf recover z"] {
        let words = try offered(library, line)
        #expect(!words.contains { $0.hasPrefix("zc/") || $0.contains("`") }, "\(line): \(words)")
        #expect(!FileManager.default.fileExists(atPath: "\(library.documents)/pwned"), "\(line) ran a command")
      }
      #expect(try offered(library, "sheaf recover zd").contains("zd"))
      let ids = try offered(library, "sheaf recover id:")
      #expect(ids.contains { $0.hasPrefix("id:") && $0.utf8.count == 39 }, "\(ids)")
      #expect(try offered(library, "sheaf status --as ca").contains("carol@example.com"))
      // What somebody does not see is offered to nobody.
      try library.sheafSucceeds("share", "\(library.documents)/plans", "--with", "bob@example.com")
      let participants = try offered(library, "sheaf participant remove plans ")
      #expect(
        participants.contains("bob@example.com") && !participants.contains("carol@example.com"), "\(participants)")
      let strangers = try offered(library, "sheaf show --as carol@example.com id:$ID --version ", "Documents/plans/a")
      #expect(strangers.isDisjoint(with: ["1", "2", "3"]), "\(strangers)")
    }
  }

  @Test func scriptsOfAllShellsAreMade() throws {
    for shell in ["bash", "zsh", "fish"] {
      let script = try SheafProgram.run(["--generate-completion-script", shell])
      #expect(script.status == 0 && script.text.contains("---completion"), "\(shell)")
    }
  }
}
