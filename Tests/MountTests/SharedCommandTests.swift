import MountKit
import Testing

/// Commands about what is shared, in the mounts of several people.
@Suite(.serialized) struct SharedCommandTests {
  @Test func whereOneStandsSaysWhoActs() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        mkdir "$ALICE/Documents/plans"
        "$SHEAF" share "$ALICE/Documents/plans" --with bob@example.com --can edit >/dev/null
        link=$(url "$ALICE/Documents/plans")
        echo hers >"$ALICE/Documents/hers.md"; rm "$ALICE/Documents/hers.md"
        cd "$BOB/Documents"
        echo his >his.md; rm his.md
        "$SHEAF" inspect "$link" | grep "join with"
        same "$("$SHEAF" accept "$link")" Shared/alice@example.com/plans
        same "$(ls "$BOB/Shared/alice@example.com")" plans
        "$SHEAF" deleted | grep Documents/his.md
        if "$SHEAF" deleted | grep hers; then exit 1; fi
        "$SHEAF" deleted --as alice@example.com | grep hers
        cd "$ALICE"
        "$SHEAF" deleted | grep hers
        """)
    }
  }
}
