import Foundation
import Glibc
import MountKit
import Testing

/// Stories of people who give what they have to others, each at a mount of their own.
@Suite(.serialized) struct TransferTests {

  @Test(arguments: Owner.possible)
  func aFolderIsGivenAway(_ owner: Owner) throws {
    try withSharedMounts(as: owner.user()) { mounts in
      try mounts.shell(
        """
        team="$ALICE/Documents/team"
        mkdir -p "$team/deep"; echo one >"$team/a.md"; echo two >"$team/a.md"; echo x >"$team/deep/x"
        ln -s a.md "$team/link"; ln "$team/a.md" "$team/deep/hard"; chmod 640 "$team/deep/x"
        setfattr -n user.colour -v red "$team/a.md"
        was="$(attribute id "$team/a.md")"
        "$SHEAF" account add carol@example.com --library "$LIBRARY"
        "$SHEAF" transfer "$team" carol@example.com
        same "$("$SHEAF" transfer "$team" bob@example.com | tail -n 1)" "It is no longer offered to carol@example.com."
        "$SHEAF" transfer "$team" bob@example.com | grep "^Nothing changed: Documents/team is offered to bob@example.com"
        "$SHEAF" status "$team" | grep -q '^Offered  *to bob@example.com since '
        "$SHEAF" status "$BOB/Shared" | grep -q "sheaf accept id:$(attribute id "$team")"
        folder="id:$(attribute id "$team")"
        same "$(ls "$BOB/Documents")" ""
        cat "$team/a.md" "$team/deep/x" >/dev/null
        exec 7<"$team/a.md" 8>>"$team/deep/x"
        ( cd "$team/deep"; same "$("$SHEAF" accept "$folder" --as bob@example.com --library "$LIBRARY")" Documents/team
          refused "Permission denied" ls . )
        refused "Permission denied" cat <&7
        refused "Permission denied" sh -c 'echo more | cat >&8'
        exec 7<&- 8>&-
        same "$(ls "$ALICE/Documents")" ""
        refused "No such file" cat "$team/a.md"
        team="$BOB/Documents/team"
        same "$(cat "$team/a.md")" two
        same "$(cat "$team/link")" two
        same "$(stat -c %i "$team/a.md")" "$(stat -c %i "$team/deep/hard")"
        same "$(stat -c %a "$team/deep/x")" 640
        same "$(cat "$team/deep/x")" x
        same "$(attribute id "$team/a.md")" "$was"
        same "$(getfattr --only-values -n user.colour "$team/a.md")" red
        echo three >"$team/a.md"; same "$(cat "$team/a.md")" three
        same "$(ls "$team/.versions/a.md" | wc -l)" 3
        """)
    }
  }

  /// What is mapped, and what the kernel knows below a folder that somebody is in, goes too.
  @Test(arguments: Owner.possible)
  func mappingsAndPagesOfTheFormerOwnerGo(_ owner: Owner) throws {
    try withSharedMounts(as: owner.user()) { mounts in
      try mounts.shell(
        """
        team="$ALICE/Documents/team"; mkdir -p "$team/deep"; seq 3000 >"$team/deep/x"
        "$SHEAF" transfer "$team" bob@example.com
        id="id:$(attribute id "$team")"
        fifos="$(mktemp -d)"; mkfifo "$fifos/mapped" "$fifos/given"
        python3 -c '
        import mmap, os, sys
        file = os.open(sys.argv[1], os.O_RDONLY)
        os.chdir(os.path.dirname(sys.argv[1]))
        bytes = mmap.mmap(file, 0, prot=mmap.PROT_READ)
        assert bytes[:1] == b"1" and bytes[8192:8193]
        open(sys.argv[2], "w").close(); open(sys.argv[3]).close()
        for look in (lambda: os.stat("x"), lambda: os.open("x", os.O_RDONLY), lambda: os.pread(file, 10, 0)):
            try:
                look()
                sys.exit(3)
            except PermissionError:
                pass
        bytes[0]
        ' "$team/deep/x" "$fifos/mapped" "$fifos/given" & program=$!
        cat "$fifos/mapped"
        same "$("$SHEAF" accept "$id" --as bob@example.com --library "$LIBRARY")" Documents/team
        : >"$fifos/given"; rm -r "$fifos"
        # SIGBUS, since nothing is there any more.
        wait $program && status=0 || status=$?; same "$status" 135
        same "$(head -n 1 "$BOB/Documents/team/deep/x")" 1
        """)
    }
  }

  @Test(arguments: Owner.possible)
  func aSharedFolderIsGivenAway(_ owner: Owner) throws {
    try withSharedMounts(as: owner.user()) { mounts in
      try mounts.shell(
        """
        team="$ALICE/Documents/team"
        mkdir "$team"; echo one >"$team/a.md"
        invite "$team" bob edit
        link="$(url "$team")"
        exec 7<>"$team/a.md"
        "$SHEAF" transfer "$team" bob@example.com
        "$SHEAF" accept "id:$(attribute id "$team")" --as bob@example.com --library "$LIBRARY"
        same "$(ls "$ALICE/Documents")" ""
        same "$(ls "$BOB/Shared")" ""
        same "$(ls "$ALICE/Shared/bob@example.com/team")" a.md
        same "$(attribute share.status "$BOB/Documents/team")" sharedByMe
        same "$(attribute share.url "$BOB/Documents/team")" "$link"
        same "$(attribute share.owner "$ALICE/Shared/bob@example.com/team/a.md")" bob@example.com
        # What was open goes on, since she may edit.
        same "$(cat <&7)" one
        echo two >&7; exec 7>&-
        same "$(cat "$BOB/Documents/team/a.md")" "one
        two"
        echo new >"$ALICE/Shared/bob@example.com/team/new"; same "$(cat "$BOB/Documents/team/new")" new
        """)
    }
  }
}
