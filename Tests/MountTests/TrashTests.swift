import Foundation
import Glibc
import MountKit
import Testing

/// `.deleted/` on real mounts, by the programs that people use.
@Suite(.serialized) struct TrashTests {
  private static let functions = """
    set -e
    same() { [ "$1" = "$2" ] || { echo "expected: $2; is: $1" >&2; return 1; }; }
    refused() {
      local reason=$1 said; shift
      if said=$("$@" 2>&1); then echo "not refused: $*" >&2; return 1; fi
      case $said in *"$reason"*) ;; *) echo "$* said: $said" >&2; return 1 ;; esac
    }

    """

  /// In a mount that its user has alone, and in one that lets others in, where the kernel checks permissions.
  @Test(arguments: Owner.possible, [[], ["--allow-other"]])
  func whatWasDeletedIsReadAndMovedBack(_ owner: Owner, _ options: [String]) throws {
    if !options.isEmpty, owner != .root { return }
    try withMount(as: try owner.user(), options: options) { library in
      try library.shell(
        Self.functions + """
          mkdir -p t/in/deep other; echo one >t/a; echo two >t/a; echo deep >t/in/deep/x; ln -s deep/x t/in/link
          setfattr -n user.color -v blue t/a
          id=$(getfattr --only-values -n user.sheaf.id t/a)
          same "$(ls -A t)" "a
          in"
          ls t/.deleted; same "$(ls -A t/.deleted)" ""
          rm t/a; rm -r t/in
          same "$(ls -A t)" ""; same "$(ls t/.deleted)" "a
          in"
          same "$(cat t/.deleted/a)" two; same "$(stat -c '%a %s %h' t/.deleted/a)" "444 4 1"
          same "$(getfattr --only-values -n user.sheaf.id t/.deleted/a)" "$id"
          same "$(getfattr --only-values -n user.color t/.deleted/a)" blue
          getfattr -d t/.deleted/a | grep -q user.sheaf.version
          same "$(cd t/.deleted; find . | sort | tr '\\n' ' ')" ". ./a ./in ./in/deep ./in/deep/x ./in/link "
          same "$(cat t/.deleted/in/deep/x)" deep; same "$(readlink t/.deleted/in/link)" deep/x
          same "$(cat t/.deleted/in/link)" deep
          same "$(cd t/.deleted/in/deep && cd .. && ls && cd .. && ls | head -1)" "deep
          link
          a"
          cp -a t/.deleted/in /var/tmp/sheaf-trash-copy-$$; same "$(cat /var/tmp/sheaf-trash-copy-$$/deep/x)" deep
          rm -r /var/tmp/sheaf-trash-copy-$$
          mkdir synced; rsync -a t/.deleted/ synced/; same "$(ls synced)" "a
          in"
          rm -r synced
          # Nothing changes it but what is moved out of it.
          refused "File exists" mkdir t/.deleted
          refused "Read-only" touch t/.deleted/new
          refused "Read-only" mkdir t/.deleted/new
          refused "Read-only" ln -s x t/.deleted/new
          refused "Read-only" setfattr -n user.x -v 1 t/.deleted/a
          refused "Read-only" touch t/.deleted/a
          refused "Operation not permitted" rm -f t/.deleted/a
          refused "Operation not permitted" rmdir t/.deleted/in
          refused "Operation not permitted" rmdir t/.deleted
          refused "" ln t/.deleted/a b
          refused "" mv t/.deleted t/trash
          refused "Read-only" mv t/.deleted/a t/.deleted/b
          echo keep >t/keep; refused "" mv t/keep t/.deleted/; refused "" sh -c 'echo x >>t/.deleted/a'
          refused "File exists" mv -T t/.deleted/a t/keep; same "$(cat t/keep)" keep
          same "$(ls t/.deleted)" "a
          in"
          # Out of it is back, with what it was.
          mv t/.deleted/a t; same "$(cat t/a)" two
          same "$(getfattr --only-values -n user.sheaf.id t/a)" "$id"
          same "$(getfattr --only-values -n user.color t/a)" blue
          same "$(ls t/.versions/a | wc -l)" 2
          same "$(ls t/.deleted)" in
          refused "No such file" cat t/.deleted/a
          echo three >>t/a; same "$(tail -1 t/a)" three
          mv t/.deleted/in/deep/x other/y; same "$(cat other/y)" deep
          mv t/.deleted/in other/back
          same "$(find other | sort | tr '\\n' ' ')" "other other/back other/back/deep other/back/link other/y "
          same "$(ls t/.deleted)" ""; touch other/back/deep/new; rm -r other/back; same "$(ls other/.deleted)" back
          mv other/.deleted/back t/; same "$(ls t/back/deep)" new
          """)
      #expect(try library.check() == [])
    }
  }

  @Test func namesThatAreUsedAgainAreTold() throws {
    try withMount { library in
      try library.shell(
        Self.functions + """
          mkdir t; cd t
          for text in one two three; do echo $text >a; rm a; sleep 1.1; done
          same "$(ls .deleted | wc -l)" 3; same "$(cat .deleted/a)" three
          same "$(cat .deleted/a~deleted~* | sort | tr '\\n' ' ')" "one two "
          long=$(printf 'x%.0s' $(seq 255)); odd=$(printf 'b\\377')
          for name in "$long" "$odd"; do echo 1 >"$name"; rm "$name"; echo 2 >"$name"; rm "$name"; done
          same "$(cat ".deleted/$long")" 2; same "$(cat ".deleted/$odd")" 2
          for name in .deleted/*; do cat "$name" >/dev/null; done
          same "$(ls .deleted | wc -l)" 7
          for name in .deleted/x*~deleted~*; do mv "$name" first; done; same "$(cat first)" 1
          mv ".deleted/$odd" back; same "$(cat back)" 2
          """)
      #expect(try library.check() == [])
    }
  }

  /// What others do shows at once, whatever a kernel remembers.
  @Test(arguments: Owner.possible)
  func twoPeopleSeeTheSame(_ owner: Owner) throws {
    try withSharedMounts(["alice", "bob", "carol"], as: owner.user()) { mounts in
      try mounts.shell(
        """
        set -e
        mkdir "$ALICE/Documents/t"; echo early >"$ALICE/Documents/t/early"; rm "$ALICE/Documents/t/early"; sleep 1.1
        echo one >"$ALICE/Documents/t/a"; mkdir "$ALICE/Documents/t/f"; echo in >"$ALICE/Documents/t/f/x"
        invite "$ALICE/Documents/t" bob edit; invite "$ALICE/Documents/t" carol view
        bob="$BOB/Shared/alice@example.com/t"; carol="$CAROL/Shared/alice@example.com/t"
        same "$(ls "$bob/.deleted")" ""; same "$(ls "$ALICE/Documents/t/.deleted")" early
        rm "$ALICE/Documents/t/a"
        same "$(ls "$bob/.deleted")" a; same "$(cat "$bob/.deleted/a")" one; same "$(cat "$carol/.deleted/a")" one
        refused "No such file" cat "$bob/.deleted/early"
        refused "Permission denied" mv "$carol/.deleted/a" "$carol/b"
        refused "" mv "$carol/.deleted/a" "$carol/"
        exec 7<"$carol/.deleted/a"
        mv "$bob/.deleted/a" "$bob/b"
        same "$(cat "$ALICE/Documents/t/b")" one; same "$(cat "$carol/b")" one; same "$(ls "$carol/.deleted")" ""
        refused "No such file" cat "$ALICE/Documents/t/.deleted/a"
        same "$(python3 -c 'import os; print(os.read(7, 10).decode().strip())')" one
        # A folder that is dead to this kernel comes back alive.
        (cd "$ALICE/Documents/t/f"; rm -r "$bob/f"; mv "$ALICE/Documents/t/.deleted/f" "$ALICE/Documents/t/g")
        same "$(cat "$bob/g/x")" in; same "$(cat "$ALICE/Documents/t/g/x")" in
        rm -r "$ALICE/Documents/t/g"; same "$(ls "$bob/.deleted")" g; mv "$bob/.deleted/g" "$bob/"
        rm -r "$bob/g"; mv "$ALICE/Documents/t/.deleted/g" "$ALICE/Documents/"; same "$(cat "$ALICE/Documents/g/x")" in
        same "$(ls "$bob/.deleted")" ""
        # Access ends in the trash too, in open files and in folders that one is in.
        rm "$ALICE/Documents/t/b"; exec 8<"$bob/.deleted/b"; cd "$bob/.deleted"
        "$SHEAF" participant remove "$ALICE/Documents/t" bob@example.com
        refused "Permission denied" cat <&8; refused "" ls .
        """)
    }
  }

  @Test func aReadOnlyMountShowsItAndChangesNothing() throws {
    try withMount { library in
      try library.shell("mkdir t; echo one >t/a; rm t/a")
      try library.unmount()
      try library.sheafSucceeds("mount", library.mountpoint, "--library", library.library, "--read-only")
      try library.shell(
        Self.functions + """
          same "$(cat t/.deleted/a)" one
          refused "Read-only" mv t/.deleted/a t/b
          refused "" rm -f t/.deleted/a
          same "$(ls t/.deleted)" a
          """)
    }
  }

  @Test func theTrashIsEmptiedByACommand() throws {
    try withMount { library in
      let output = try library.shell(
        Self.functions
          + """
          sheaf=$SHEAF
          mkdir -p t/in u; echo 12345 >t/in/a; head -c 3000 /dev/zero >t/large; echo x >u/b
          rm -r t/in t/large u/b
          refused "--yes" "$sheaf" purge --deleted t </dev/null
          refused "go with --deleted" "$sheaf" purge t --older-than 7d --yes
          refused "Name what to destroy" "$sheaf" purge --yes
          refused "" "$sheaf" purge --deleted --older-than soon --yes
          same "$(ls t/.deleted)" "in
          large"
          "$sheaf" purge --deleted --older-than 7d --yes
          "$sheaf" purge --deleted t --larger-than 2K --yes
          same "$(ls t/.deleted)" in
          "$sheaf" purge --deleted --yes --json t | tr -d '\\n'; echo
          same "$(ls -A t/.deleted)" ""; same "$(ls u/.deleted)" b
          cd t/.deleted; "$sheaf" purge --deleted --yes
          same "$(ls ../../u/.deleted)" ""
          """.replacingOccurrences(of: "$SHEAF", with: try SheafProgram.path()))
      let lines = output.text.split(separator: "\n")
      #expect(lines.count == 4, "\(output)")
      #expect(lines.first == "Nothing was destroyed: the trash has nothing of that.")
      #expect(lines.dropFirst().first == "Destroyed 1 deleted item of 3.0 kB.")
      #expect(lines.last == "Destroyed 1 deleted item of 2 bytes in \(library.library).")
      struct Report: Decodable, Equatable { let items: Int, bytes: Int }
      let report = try JSONDecoder().decode(Report.self, from: Data(lines[2].utf8))
      #expect(report == Report(items: 2, bytes: 6))
      #expect(try library.check() == [])
    }
  }

  @Test func usageAndRetentionAreTold() throws {
    try withMount { library in
      try library.shell("mkdir t u; head -c 3000 /dev/urandom >t/a; head -c 5000 /dev/urandom >u/b; rm u/b; echo x >c")
      let usage = try library.sheafSucceeds("usage", library.documents).text.split(separator: "\n").map {
        $0.split(separator: "  ").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
      }
      #expect(
        usage == [
          ["CONTENTS", "HISTORY", "TRASH", "TOTAL", "PATH"],
          ["0 bytes", "0 bytes", "5.0 kB", "5.0 kB", "Documents/u"],
          ["3.0 kB", "0 bytes", "0 bytes", "3.0 kB", "Documents/t"],
          ["3.0 kB", "0 bytes", "5.0 kB", "8.0 kB", "Documents"],
        ])
      let folder = "\(library.documents)/t"
      let around = "as the folders around it and the library say"
      let warning = "What is older goes for good in the next four hours, unless a longer span is set before."
      #expect(
        try library.sheafSucceeds("retain", folder, "--keep-deleted", "2d", "--yes").text
          == "Documents/t keeps deleted items for 2 days.\nDocuments/t keeps versions for 1 year, \(around).\n\(warning)"
      )
      #expect(
        try library.sheafSucceeds("library", "set", "--library", library.library, "--keep-versions", "3w", "--yes").text
          == "Versions are kept for 21 days.\n\(warning)")
      #expect(
        try library.sheafSucceeds("retain", folder, "--default").text
          == "Documents/t keeps deleted items for 30 days, \(around).\nDocuments/t keeps versions for 21 days, \(around)."
      )
      for shorter in [
        ["retain", folder, "--keep-versions", "20d"],
        ["library", "set", "--library", library.library, "--keep-deleted", "9d"],
      ] {
        let refused = try SheafProgram.run(shorter, as: library.user)
        #expect(refused.status == 1 && refused.errorText.contains("instead of"), "\(refused)")
        #expect(refused.errorText.hasSuffix("nobody can be asked; add --yes"), "\(refused)")
      }
      let settings = try library.sheafSucceeds("library", "--library", library.library).text
      #expect(settings.contains("kept for 30 days") && settings.contains("kept for 21 days"), "\(settings)")
      // What would be shorter where the folder says nothing itself.
      try library.sheafSucceeds("retain", folder, "--keep-deleted", "60d")
      #expect(try library.sheaf("retain", folder, "--default").status == 1)
      try library.sheafSucceeds("retain", folder, "--default", "--yes")
      let short = try library.sheaf("retain", folder, "--keep-deleted", "5m")
      let reason = "5 minutes: is too short to keep things for; give 1d or more"
      #expect(short.status == 1 && short.errorText.contains(reason), "\(short)")
      let wrong = try library.sheaf("retain", folder, "--default", "--keep-deleted", "2d")
      #expect(wrong.status == 64)
    }
  }

  @Test func commandsSayHowToNameWhatIsInIt() throws {
    try withMount { library in
      try library.shell("mkdir t; echo one >t/a; rm t/a")
      let output = try library.sheaf("recover", "\(library.documents)/t/.deleted/a")
      #expect(output.status == 1 && output.errorText.contains("sheaf recover"))
      #expect(try library.sheafSucceeds("help", "deleted").text.contains(".deleted"))
    }
  }

  /// Several at once: what cannot come back keeps no other from it.
  @Test func severalComeBackAtOnce() throws {
    try withMount { library in
      let paths = ["a", "b", "c"].map { "\(library.documents)/\($0)" }
      for path in paths { try "text of \(path)".write(toFile: path, atomically: false, encoding: .utf8) }
      for path in [paths[0], paths[2]] { unlink(path) }
      let missing = "\(library.documents)/never"
      let output = try library.sheaf("recover", paths[0], missing, paths[1], paths[2])
      #expect(output.status == 1)
      #expect(output.text == "Recovered Documents/a.\nRecovered Documents/c.")
      let errors = output.errorText.split(separator: "\n")
      #expect(errors.count == 2 && errors[0].contains("never") && errors[1].contains("Documents/b"))
      for path in paths { #expect(try String(contentsOfFile: path, encoding: .utf8) == "text of \(path)") }
      for path in paths { unlink(path) }
      let json = try library.sheafSucceeds("recover", "--json", paths[0], paths[1])
      #expect(try JSONDecoder().decode([String].self, from: Data(json.text.utf8)) == ["Documents/a", "Documents/b"])
      #expect(try library.sheaf("recover", "--id", "x", paths[0], paths[2]).status == 64)
      // What one brings back changes what the paths of others lead to.
      try library.shell("mkdir q; echo 1 >q/a; echo 2 >q/b; rm -r q; mkdir q")
      let both = try library.sheafSucceeds("recover", "\(library.documents)/q/a", "\(library.documents)/q/b").text
      #expect(both == "Recovered Documents/q (2)/a.\nRecovered Documents/q (2)/b.", "\(both)")
      // What came back with its folder is no failure.
      try library.shell("mkdir -p F/G; echo 1 >F/G/a; echo 2 >F/b; rm -r F")
      let whole = try library.sheafSucceeds("recover", "\(library.documents)/F", "\(library.documents)/F/G/a").text
      #expect(whole == "Recovered Documents/F with 3 items in it.", "\(whole)")
    }
  }
}
