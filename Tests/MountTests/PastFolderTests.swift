import Foundation
import MountKit
import Testing

/// Folders as they were, and restoring them, at real mounts and by the command.
@Suite(.serialized) struct PastFolderTests {
  /// `moment` prints the time of a name of `.versions/`, and lets no change come in that second any more.
  private static let functions = """
    moment() {
      local now; now=$(date -u +%Y-%m-%dT%H-%M-%SZ)
      while [ "$(date -u +%Y-%m-%dT%H-%M-%SZ)" = "$now" ]; do read -rt 0.05 <> <(:) || :; done
      echo "$now"
    }
    copies=$(mktemp -d)

    """

  @Test func aFolderIsShownAsItWas() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        Self.functions + """
          cd "$ALICE/Documents"
          before=$(moment)
          mkdir -p w/sub/deep other; cd w
          for n in one two three; do echo "$n" >"$n.txt"; done
          echo deep >sub/deep/d; ln -s one.txt link; : >empty; mkfifo fifo; chmod 600 two.txt
          first=$(moment); cp -a . "$copies/first"; rm "$copies/first/fifo"
          echo more >>one.txt; mv two.txt sub/2.txt; rm three.txt; mv sub/deep ../other/; echo new >new; rm link
          sed -i s/deep/changed/ ../other/deep/d
          second=$(moment); cp -a . "$copies/second"; rm "$copies/second/fifo"
          mv sub gone; rm -r gone; ln -s two link; mv one.txt uno.txt; mkdir one.txt
          third=$(moment)

          for time in first second; do
            diff -r --no-dereference "$copies/$time" ".versions/@${!time}"
            cp -a ".versions/@${!time}" "$copies/copy"; diff -r --no-dereference "$copies/$time" "$copies/copy"
            chmod -R u+w "$copies/copy"; rm -r "$copies/copy"
          done
          diff -r --no-dereference . ".versions/@$third" | grep -v fifo && exit 1
          same "$(readlink ".versions/@$first/link")" one.txt
          same "$(cat ".versions/@$first/link")" one
          same "$(cat ".versions/@$first/sub/../one.txt")" one
          same "$(ls -A ".versions/@$first/sub/deep")" d
          same "$(stat -c '%a %F' ".versions/@$first/one.txt")" "444 regular file"
          same "$(stat -c '%a' ".versions/@$first/sub")" 555
          # A folder elsewhere shows its own past.
          same "$(cat "../other/deep/.versions/@$first/d")" deep
          same "$(cat "../other/deep/.versions/@$second/d")" changed

          # Times are not listed; what is not there is not there.
          ls -a .versions | grep @ && exit 1
          refused "No such file" ls ".versions/@$before"
          refused "No such file" ls .versions/@2999-01-01T00-00-00Z
          refused "No such file" ls .versions/@2026-11-17
          refused "No such file" cat ".versions/@$first/new"
          refused "No such file" cat ".versions/@$first/.versions"

          # Nobody makes the name, or changes anything in it.
          refused "" mkdir ".versions/@$first"
          refused "Read-only" mkdir .versions/@2999-01-01T00-00-00Z
          refused "Read-only" touch ".versions/@$first/x"
          refused "Read-only" tee -a ".versions/@$first/one.txt" </dev/null
          refused "Read-only" rm -f ".versions/@$first/one.txt"
          refused "Read-only" mv ".versions/@$first/one.txt" back
          refused "Read-only" mkdir ".versions/@$first/sub/x"

          cd "$(pwd)/.versions/@$first/sub/deep"; same "$(cat d)" deep; cd ../..; same "$(cat two.txt)" two
          rm -r "$copies"
          """)
    }
  }

  @Test func participantsSeeWhatTheyMay() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        Self.functions + """
          cd "$ALICE/Documents"; mkdir -p w/sub own; echo old >w/a; echo own >own/o; echo s >w/sub/s
          early=$(moment)
          invite "$ALICE/Documents/w" bob edit
          bob="$BOB/Shared/alice@example.com/w"
          moment >/dev/null
          echo new >w/a; echo leaves >w/l
          inside=$(moment)
          mv w/l own/; mv own/o w/; rm -r w/sub
          moment >/dev/null
          refused "No such file" ls "$bob/.versions/@$early"
          same "$(ls "$bob/.versions/@$inside" | tr '\\n' ' ')" "a sub "
          same "$(cat "$bob/.versions/@$inside/a")" new
          same "$(cat "$bob/.versions/@$inside/sub/s")" s
          refused "No such file" cat "$bob/.versions/@$inside/l"
          same "$(ls "w/.versions/@$inside" | tr '\\n' ' ')" "a l sub "
          cat "w/.versions/@$early/a" | grep -q old

          # What may no longer be seen is gone at once, for who has it open, too.
          exec 7<"$bob/.versions/@$inside/a"
          cd "$bob/.versions/@$inside/sub"
          "$SHEAF" participant remove "$ALICE/Documents/w" bob@example.com
          refused "" cat <&7
          refused "" ls .
          refused "" cat s
          """)
    }
  }

  /// Nothing tells what was in a plain file before it was a document.
  @Test func aRestorationLeavesAloneWhatWasNoDocumentThen() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        Self.functions + """
          cd "$ALICE/Documents"; mkdir -p w/node_modules w/out w/lib; cd w; echo 'out/' >.sheafignore
          for n in moved saved overwritten; do echo precious >node_modules/$n; done
          mkdir node_modules/pack; echo precious >node_modules/pack/inside; echo precious >out/file
          echo precious >draft.tmp; : >empty; echo one >document
          before=$(moment); cp -a . "$copies/before"
          mv node_modules/moved .; mv node_modules/pack lib/; mv lib/pack/inside lib/pack/other; mv draft.tmp draft
          : >.sheafignore; echo more >>out/file; echo filled >empty; echo two >document; echo new >new
          mkdir fresh fresh/node_modules .cache; echo gone >fresh/document
          for file in node_modules/late fresh/node_modules/late .cache/late; do echo late >$file; done
          after=$(moment); cp -a . "$copies/after"
          "$SHEAF" restore . --time "@$before" | tee "$copies/said"
          same "$(cat moved node_modules/saved lib/pack/other draft.tmp)" $'precious\\nprecious\\nprecious\\nprecious'
          same "$(cat out/file)" $'precious\\nmore'
          # What was a document is as it was.
          same "$(cat .sheafignore empty document)" $'out/\\none'
          if ls new fresh/document; then exit 1; fi
          # Nothing could bring a plain file back.
          same "$(cat node_modules/late fresh/node_modules/late .cache/late)" $'late\\nlate\\nlate'
          grep -F "fresh: holds what is left as it is" "$copies/said"
          grep -F "moved: nothing tells where it was then" "$copies/said"
          # It shows no plain file, either.
          if ls ".versions/@$before/node_modules/moved" ".versions/@$before/out/file"; then exit 1; fi
          same "$(cat ".versions/@$after/moved")" precious
          "$SHEAF" restore . --time "@$after"
          diff -r --no-dereference "$copies/after" .

          # What had several names is told of.
          mkdir two; cd two; echo one >a; ln a b; moment >/dev/null; twice=$(moment); rm a b
          "$SHEAF" restore . --time "@$twice" | grep -F "had several names, and is deleted"; cd ..

          # Nor does undoing what one person did empty it.
          echo '!node_modules/' >.sheafignore; start=$(moment)
          echo changed >node_modules/saved; echo changed >document; echo later >.cache/later
          "$SHEAF" restore . --time "@$start" --by alice@example.com
          same "$(cat node_modules/saved)" changed; same "$(cat document)" two
          same "$(cat .cache/later)" later
          """)
    }
  }

  @Test func aFolderIsRestoredByTheCommand() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        Self.functions + """
          cd "$ALICE/Documents"; mkdir -p w/sub other; cd w
          for n in one two three; do echo "$n" >"$n.txt"; done; echo deep >sub/d; ln -s one.txt link
          invite "$ALICE/Documents/w" bob edit
          first=$(moment); cp -a . "$copies/first"
          echo more >>one.txt; mv two.txt sub/2.txt; rm three.txt; mv sub ../other/; echo new >new; rm link
          second=$(moment); cp -a . "$copies/second"

          "$SHEAF" restore . --time "@$first" --dry-run | tee "$copies/plan"
          grep -q '^restore  Documents/w/one.txt to version 1$' "$copies/plan"
          grep -q '^move     Documents/other/sub → Documents/w/sub$' "$copies/plan"
          grep -q '^recover  Documents/w/three.txt$' "$copies/plan"
          grep -q '^delete   Documents/w/new$' "$copies/plan"
          grep -q 'Would restore .*: 1 deleted, 2 moved, 2 recovered, 1 with earlier contents\\.$' "$copies/plan"
          diff -r --no-dereference "$copies/second" .
          said=$("$SHEAF" restore . --time "@$first")
          diff -r --no-dereference "$copies/first" .
          undo=$(head -1 <<<"$said"); undo=${undo#To undo it: sheaf }
          moment >/dev/null
          # It can be pasted anywhere.
          (cd / && eval '"$SHEAF"' "$undo" >/dev/null)
          diff -r --no-dereference "$copies/second" .
          same "$(cat ../other/sub/d)" deep
          "$SHEAF" restore . --time "@$second" | grep -q '^Nothing to do in Documents/w as of '

          # Times as people write them.
          for time in "$(date -d "${first:0:10} ${first:11:2}:${first:14:2}:${first:17:2}Z" '+%Y-%m-%d %H:%M:%S')" \\
            "$(date -d "${first:0:10} ${first:11:2}:${first:14:2}:${first:17:2}Z" --iso-8601=seconds)"; do
            "$SHEAF" restore . --time "$time" --dry-run | grep -q '1 deleted, 2 moved, 2 recovered'
          done
          refused "is a day without a time of day" "$SHEAF" restore . --time yesterday
          refused "is no time" "$SHEAF" restore . --time soon
          refused "is a day without a time of day" "$SHEAF" restore . --time 2026-11-17
          TZ=JST-9 refused "2099-01-01 09:00:00: is yet to come" "$SHEAF" restore . --time 2099-01-01T00:00:00Z
          same "$("$SHEAF" show one.txt --time "@$first")" one
          "$SHEAF" restore one.txt --time "@$first" --dry-run | grep -q '^Would restore version 1 of Documents/w/one.txt, of '
          "$SHEAF" restore one.txt --time "@$first" | grep -q '^Restored version 1 of '; same "$(cat one.txt)" one
          "$SHEAF" restore one.txt --time "@$second"; same "$(cat one.txt)" $'one\\nmore'
          refused "was not there at" "$SHEAF" show new --time "@$first"
          refused "is yet to come" "$SHEAF" show one.txt --time 2099-01-01T00:00:00Z
          refused "--by is for folders" "$SHEAF" restore one.txt --time "@$first" --by alice@example.com
          refused "either" "$SHEAF" restore .
          refused "go with --time" "$SHEAF" restore one.txt --version 1 --dry-run

          # Only what one person did.
          bob="$BOB/Shared/alice@example.com/w"
          third=$(moment)
          echo bob >"$bob/new"; rm "$bob/one.txt"; echo alice >hers
          "$SHEAF" restore . --time "@$third" --by bob@example.com >/dev/null
          same "$(cat new)" new; same "$(cat hers)" alice; same "$(head -1 one.txt)" one
          cd "$bob"; "$SHEAF" restore . --time "@$first" --dry-run | grep -q 'Shared/alice@example.com/w'
          cd "$ALICE/Documents/w"

          # A name that is no text.
          odd=$(printf 'b\\351d'); mkdir "$odd"; echo 1 >"$odd/f"; fourth=$(moment); echo 2 >"$odd/f"
          undo=$("$SHEAF" restore "$odd" --time "@$fourth" | sed -n 's/^To undo it: sheaf //p')
          same "$(cat "$odd/f")" 1; (cd / && eval '"$SHEAF"' "$undo" >/dev/null); same "$(cat "$odd/f")" 2

          # A script has to confirm a lot.
          for n in $(seq 30); do echo "$n" >"many$n"; done
          refused "confirm them with --yes" "$SHEAF" restore . --time "@$third"
          ls many30 >/dev/null
          "$SHEAF" restore . --time "@$third" --yes >/dev/null
          refused "No such file" ls many1
          "$SHEAF" deleted . --limit 100 | grep -c many | grep -qx 30
          rm -r "$copies"
          """)
    }
  }
}
