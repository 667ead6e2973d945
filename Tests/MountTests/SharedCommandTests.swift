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

  @Test func sharesAreListed() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        refuse() { if "$@"; then exit 1; fi; }
        same "$(cd "$BOB"; "$SHEAF" shares)" "Nothing is shared by you or with you."
        mkdir -p "$ALICE/Documents/plans" "$ALICE/Documents/drafts"
        "$SHEAF" share "$ALICE/Documents/plans" --with bob@example.com --can edit --allow-requests >/dev/null
        link=$(url "$ALICE/Documents/plans")
        (cd "$BOB"; "$SHEAF" shares) | grep -F "sheaf accept $link"
        "$SHEAF" status "$BOB/Shared" | grep -F "sheaf accept $link"
        (cd "$ALICE"; "$SHEAF" shares) | grep "Documents/plans .*nobody joined, 1 invited"
        (cd "$BOB"; "$SHEAF" accept "$link")
        (cd "$BOB"; "$SHEAF" shares) | grep "Shared/alice@example.com/plans .*by alice@example.com .*edit"
        (cd "$BOB"; "$SHEAF" shares) | refuse grep -F "$link"
        # Paths are told with what makes them those of bob, where they would be another account's.
        for list in "shares --as bob@example.com --library $LIBRARY" "activity $BOB/Shared/alice@example.com/plans"; do
          (cd "$ALICE"; "$SHEAF" $list) | grep -F "commands take them below $BOB, or with --as bob@example.com"
          (cd "$BOB"; "$SHEAF" $list) | refuse grep "commands take them"
        done
        "$SHEAF" status "$BOB/Shared/alice@example.com" | grep Shared/alice@example.com/plans
        refused "is no item, but a list of what others share" "$SHEAF" status "$BOB/Shared/nobody@example.com"
        "$SHEAF" account add carol@example.com --library "$LIBRARY"
        "$SHEAF" accept "$link" --as carol@example.com --library "$LIBRARY"
        (cd "$ALICE"; "$SHEAF" shares) | grep -A1 "Requests for access" | grep carol@example.com
        (cd "$BOB"; "$SHEAF" shares) | refuse grep carol
        "$SHEAF" participant remove "$ALICE/Documents/plans" bob@example.com
        same "$(cd "$BOB"; "$SHEAF" shares)" "Nothing is shared by you or with you."
        """)
    }
  }

  @Test func whatLiesInAnEntryIsNotLeft() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        plans="$ALICE/Documents/plans"; entry="$BOB/Shared/alice@example.com/plans"
        mkdir -p "$plans/deep"; echo one >"$plans/deep/a.md"
        invite "$plans" bob edit
        for below in "$entry/deep" "$entry/deep/a.md"; do
          refused "is shared as a part of Shared/alice@example.com/plans" "$SHEAF" leave "$below"
        done
        refused "Documents/plans: is shared by you; stop it with: sheaf unshare Documents/plans" "$SHEAF" leave "$plans/deep"
        refused "is not shared, so there is nothing to leave" "$SHEAF" leave "$ALICE/Documents"
        # Nor is anything changed for it that would hold for the whole folder.
        for below in "$plans/deep" "$plans/deep/a.md"; do
          for words in "participant add $below bob@example.com --can view" "participant set $below bob@example.com --can view" \
            "participant remove $below bob@example.com" "invite $below --one-time" "invite $below --revoke" \
            "requests approve $below bob@example.com" "requests block $below bob@example.com" "unshare $below" \
            "unshare $below --yes"
          do refused "is shared as a part of Documents/plans; name that, or move it out" "$SHEAF" $words; done
        done
        same "$("$SHEAF" participants "$plans" | grep -c "bob@example.com.*edit")" 1
        # What is advised means this library, wherever one stands.
        advised=$(cd /; { "$SHEAF" leave "$plans" 2>&1 || true; } | sed 's/.*stop it with: //')
        case $advised in "sheaf unshare Documents/plans --as alice@example.com --library "*) ;; *) echo "$advised"; exit 1 ;; esac
        (cd /; refused "is shared with bob@example.com" "$SHEAF" ${advised#sheaf })
        same "$(cat "$entry/deep/a.md")" one
        "$SHEAF" leave "$entry"
        if ls "$entry"; then exit 1; fi
        """)
    }
  }

  @Test func aFolderIsNotCopiedIntoItself() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        plans="$ALICE/Documents/plans"
        mkdir -p "$plans/deep"; echo one >"$plans/a.md"
        invite "$plans" bob edit
        theirs="$BOB/Shared/alice@example.com/plans"
        for place in "$plans" "$plans/new" "$plans/deep" "$plans/deep/new" "$theirs" "$theirs/deep/new"; do
          refused "cannot be copied into itself" "$SHEAF" send-copy "$plans" "$place"
          refused "cannot be copied into itself" "$SHEAF" send-copy "$theirs" "$place"
        done
        cd "$plans"; refused "cannot be copied into itself" "$SHEAF" send-copy . new
        same "$(find "$plans" | wc -l)" 3
        # One that is named alike is another one.
        "$SHEAF" send-copy "$plans" "$ALICE/Documents/plans2"
        same "$(cat "$ALICE/Documents/plans2/a.md")" one
        """)
    }
  }

  @Test func aLinkThatLeadsOutIsLeftOutOfACopy() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        plans="$ALICE/Documents/plans"; copy="${LIBRARY%/*}/copy"
        mkdir -p "$plans/deep"; echo one >"$plans/a.md"; echo two >"$plans/deep/z.md"
        invite "$plans" bob edit
        ln -s /etc/passwd "$BOB/Shared/alice@example.com/plans/deep/out"
        ln -s a.md "$BOB/Shared/alice@example.com/plans/in"
        refused "Documents/plans/deep/out" "$SHEAF" send-copy "$plans" "$copy"
        same "$(cd "$copy"; find . | sort | tr '\\n' ' ')" ". ./a.md ./deep ./deep/z.md ./in "
        same "$(cat "$copy/in" "$copy/deep/z.md")" "one
        two"
        # Their own links bob copies, wherever they lead.
        "$SHEAF" send-copy "$BOB/Shared/alice@example.com/plans" "$copy.bob"
        same "$(readlink "$copy.bob/deep/out")" /etc/passwd
        """)
    }
  }

  @Test func aCopyHasPermissionsAndTimes() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        cd "$ALICE/Documents"; copy="${LIBRARY%/*}/copy"; umask 022
        mkdir team; echo secret >team/secret; echo run >team/script; ln -s script team/link
        chmod 600 team/secret; chmod 755 team/script; chmod 700 team
        touch -h -d 2001-02-03T04:05:06.789 team/link
        touch -d 2001-02-03T04:05:06.789 team/script team/secret team
        facts() { (cd "$1"; stat -c '%n %a %y' .  secret script link); }
        "$SHEAF" send-copy team "$copy"
        same "$(facts "$copy")" "$(facts team)"
        for name in secret script; do
          "$SHEAF" send-copy team/$name "$copy-$name"
          same "$(stat -c '%a %y' "$copy-$name")" "$(stat -c '%a %y' team/$name)"
        done
        # What cannot be copied is named, and all else is copied.
        mkfifo team/fifo
        refused "Documents/team/fifo: was left out of the copy: a fifo" "$SHEAF" send-copy team "$copy-rest"
        same "$(ls "$copy-rest" | tr '\\n' ' ')" "link script secret "
        """)
    }
  }

  @Test func foldersAreCopiedThatLieDeeperThanAPathLeads() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        mkdir "$ALICE/Documents/deep"; cd "$ALICE/Documents/deep"; copy="${LIBRARY%/*}/copy"
        /usr/bin/python3 -c 'import os
        for level in range(24):
            os.mkdir("n" * 250)
            os.chdir("n" * 250)
        open("end", "w").write("deepest")'
        "$SHEAF" send-copy "$ALICE/Documents/deep" "$copy"
        same "$(find "$copy" | wc -l)" 26
        same "$(find "$copy" -name end -size 7c | wc -l)" 1
        rm -rf "$copy"
        """)
    }
  }

  @Test func whoseMountGoesCanBeSaid() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        refused "is the mount of bob@example.com" "$SHEAF" unmount "$BOB" --as alice@example.com
        refused "is a mount of $LIBRARY" "$SHEAF" unmount "$BOB" --library "$LIBRARY.other"
        ls "$BOB/Documents"
        "$SHEAF" unmount "$BOB" --as bob@example.com --library "$LIBRARY"
        if ls "$BOB/Documents"; then exit 1; fi
        """)
    }
  }
}
