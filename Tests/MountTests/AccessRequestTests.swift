import MountKit
import Testing

/// Who asks for access reaches those who decide, and hears what they say.
@Suite(.serialized) struct AccessRequestTests {
  @Test func whoIsAskedHearsOfItAndWhoAsksTheAnswer() throws {
    try withSharedMounts(["alice", "bob", "carol", "dan"]) { mounts in
      try mounts.shell(
        """
        sheaf() { "$SHEAF" "$@" --library "$LIBRARY"; }
        as() { local name=$1; shift; sheaf "$@" --as "$name@example.com"; }
        plans="$ALICE/Documents/plans"; letter="$ALICE/Documents/letter.md"
        mkdir "$plans"; echo dear >"$letter"
        invite "$plans" bob edit
        sheaf participant set "$plans" bob@example.com --role administrator >/dev/null
        sheaf share "$plans" --title "Our plans" --allow-requests >/dev/null
        sheaf share "$letter" --allow-requests >/dev/null
        for name in alice bob carol dan; do as $name notices --clear >/dev/null; done
        same "$(as alice requests)" "Nobody asks for access."
        as carol accept "$(url "$plans")" >/dev/null
        as dan accept "$(url "$plans")" >/dev/null
        as carol accept "$(url "$letter")" | grep "^Asked for access"
        # Asking once more is no news.
        as carol accept "$(url "$letter")" | grep "^Nothing changed: you asked for access already"

        as alice notices | grep -F "carol@example.com asks for access to plans, just now"
        as alice notices | grep -F "dan@example.com asks for access to plans, just now"
        same "$(as alice notices | grep -c "asks for access to letter.md")" 1
        as bob notices | grep -F "carol@example.com asks for access to plans"
        if as bob notices | grep letter; then exit 1; fi
        for name in carol dan; do same "$(as $name notices)" "Nothing new."; done

        # Without a path all of them, for each what they may answer.
        same "$(as alice requests | tail -n +2 | wc -l)" 3
        as alice requests | grep "carol@example.com .* Documents/letter.md"
        as alice requests | grep "dan@example.com .* Documents/plans"
        same "$(as bob requests | tail -n +2 | wc -l)" 2
        as bob requests | grep "dan@example.com .* Shared/alice@example.com/plans"
        same "$(as carol requests)" "Nobody asks for access."
        same "$(sheaf requests "$letter" --json | grep -c '"path" : "Documents/letter.md"')" 1

        sheaf requests deny "$plans" carol@example.com
        (cd "$BOB"; "$SHEAF" requests block "$BOB/Shared/alice@example.com/plans" dan@example.com)
        sheaf requests approve "$letter" carol@example.com
        # Whoever is not let in is told the title, which the link told, and nothing else.
        as carol notices | grep -F "alice@example.com declined your request for access to Our plans"
        as carol notices | grep -F "alice@example.com added you to letter.md"
        as dan notices | grep -F "bob@example.com declined your request for access to Our plans"
        as dan activity --json >"${LIBRARY%/*}/dan.json"
        grep -F sheaf.membership.declined "${LIBRARY%/*}/dan.json"
        if grep -e '"plans"' -e "$(url "$plans")" "${LIBRARY%/*}/dan.json"; then exit 1; fi
        if grep -F sheaf.membership.requested "${LIBRARY%/*}/dan.json"; then exit 1; fi
        # Who blocked somebody told nobody else so.
        as alice notices | grep -F "bob@example.com declined dan@example.com's request for access to plans"
        ls "$CAROL/Shared/alice@example.com/letter.md"
        same "$(as alice requests | grep -c blocked)" 1
        # Blocking keeps people from joining; taking them out is another command.
        sheaf requests block "$letter" carol@example.com | grep "still take part.*participant remove"
        sheaf requests block "$letter" carol@example.com | grep "^Nothing changed: carol@example.com joins "
        """)
    }
  }
}
