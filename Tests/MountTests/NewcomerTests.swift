import Foundation
import MountKit
import Testing

/// What commands say to a person who does not know them yet.
@Suite(.serialized) struct NewcomerTests {
  @Test func versionsHaveNamesAndFilesTellThatTheyAreIgnored() throws {
    try withMount { library in
      try library.shell(
        """
        same() { [ "$1" = "$2" ] || { echo "$1 is not $2" >&2; exit 1; }; }
        echo one > doc; echo two > doc; "$SHEAF" label doc 'sent to Bob' --version 1 > /dev/null
        same "$("$SHEAF" show doc --version 'sent to Bob')" one
        "$SHEAF" diff doc --from 'sent to Bob' | grep -q '^+two'
        "$SHEAF" restore doc --version 'sent to Bob' > /dev/null; same "$(cat doc)" one
        "$SHEAF" label doc latest --version 'sent to Bob' > /dev/null
        ! "$SHEAF" show doc --version nothing 2> error || exit 1
        grep -q 'has no version with the label "nothing"' error
        printf '*.log\\n' > .sheafignore; echo x > x.log; mkdir node_modules
        "$SHEAF" status x.log | grep -q '^Ignored'
        "$SHEAF" status node_modules | grep -q '^Ignored'
        ! "$SHEAF" status doc | grep -q '^Ignored' || exit 1
        same "$("$SHEAF" versions x.log)" 'No versions: it is ignored, by a .sheafignore or by default.'
        ! "$SHEAF" retain . --keep-deleted 1h 2> error || exit 1
        grep -q '1 hour: is too short to keep things for' error
        "$SHEAF" library | grep -q '^Deleted items *kept for 30 days'
        "$SHEAF" participant add --help | tr -s ' \\n' ' ' | grep -q 'values: administrator, participant'
        touch a1 a2 a3; "$SHEAF" find a --limit 2 2> error > /dev/null; grep -q -- '--limit 20 shows more' error
        """)
    }
  }

  @Test func whoApprovesSaysWhatTheyMayDo() throws {
    try withSharedMounts { people in
      try people.shell(
        """
        mkdir $ALICE/Documents/plans
        "$SHEAF" share $ALICE/Documents/plans --allow-requests --can view --expires 2d > said
        grep -q '^The link lets nobody new in after ' said
        url=$(head -1 said); rm said
        accept bob "$url" > /dev/null
        same "$("$SHEAF" requests approve $ALICE/Documents/plans bob@example.com)" \
          "bob@example.com takes part in Documents/plans now, and can view."
        "$SHEAF" account add zoe@example.com --library "$LIBRARY" > /dev/null
        accept zoe "$url" > /dev/null
        same "$("$SHEAF" requests approve $ALICE/Documents/plans zoe@example.com --can edit)" \
          "zoe@example.com takes part in Documents/plans now, and can edit."
        """)
    }
  }
}
