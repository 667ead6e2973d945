import MountKit
import Testing

/// A save that was not based on the version before it is told to everybody whom it concerns, without their asking.
@Suite(.serialized) struct ConflictTests {
  @Test(arguments: Owner.possible)
  func whatOneSavePassedOverIsTold(_ owner: Owner) throws {
    try withSharedMounts(["alice", "bob", "carol"], as: owner.user()) { mounts in
      try mounts.shell(
        """
        as() { local who=$1; shift; "$SHEAF" "$@" --library "$LIBRARY" --as "$who@example.com"; }
        value() { python3 -c 'import json, sys; print(eval(sys.argv[1], {"json": json.load(sys.stdin)}))' "$1"; }
        mkdir "$ALICE/Documents/plans"
        echo one >"$ALICE/Documents/plans/trip.md"; echo other >"$ALICE/Documents/plans/quiet.md"
        invite "$ALICE/Documents/plans" bob edit; invite "$ALICE/Documents/plans" carol view
        shared=Shared/alice@example.com/plans
        same "$(as alice find --conflicts)" ""
        as alice status | { ! grep Conflicts; }
        for name in alice bob carol; do as $name notices --clear >/dev/null; done

        # Bob has read what Alice then adds to, and writes all of it.
        exec 3<>"$BOB/$shared/trip.md"; cat <&3 >/dev/null
        echo two >>"$ALICE/Documents/plans/trip.md"
        python3 -c 'import os; os.pwrite(3, b"mine alone, and longer", 0); os.ftruncate(3, 22)'
        exec 3>&-
        same "$(attribute conflict "$ALICE/Documents/plans/trip.md")" 2

        as alice notices | grep -F "bob@example.com edited trip.md, but not based on version 2"
        # It is told to him who did it, who may not know.
        as bob notices | grep -F "bob@example.com edited trip.md, but not based on version 2"
        as carol notices | grep -F "bob@example.com edited trip.md, but not based on version 2"
        as alice versions "$ALICE/Documents/plans/trip.md" | grep -E '^ *3 .*, based on 1'
        same "$(as bob versions "$BOB/$shared/trip.md" --json | value 'json[-1]["base"]')" 1
        same "$(as alice status | grep Conflicts | tr -s ' ')" "Conflicts 1 document; see: sheaf find --conflicts"
        same "$(as alice status --json | value 'json["conflicts"]')" 1
        same "$(as alice find --conflicts)" "$ALICE/Documents/plans/trip.md"
        same "$(as bob find --conflicts --by bob@example.com)" "$BOB/$shared/trip.md"
        same "$(as bob find --conflicts quiet)" ""
        refused "do not go together" as alice find --conflicts --deleted
        # The next save on top, or a word, ends it.
        as bob resolve "$BOB/$shared/trip.md" >/dev/null
        for name in alice bob carol; do same "$(as $name find --conflicts)" ""; done
        as alice status | { ! grep Conflicts; }
        same "$(as alice status --json | value 'json["conflicts"]')" 0
        """)
    }
  }

  /// What was autosaved in a share and taken back leaves its number, and is no conflict. A save by a new file that takes
  /// the place of one that was not read is.
  @Test func onlyWhatIsOneIsTold() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        as() { local who=$1; shift; "$SHEAF" "$@" --library "$LIBRARY" --as "$who@example.com"; }
        mkdir "$ALICE/Documents/plans"; shared=Shared/alice@example.com/plans
        for name in back safe; do echo one >"$ALICE/Documents/plans/$name.md"; done
        invite "$ALICE/Documents/plans" bob edit
        for name in alice bob; do as $name notices --clear >/dev/null; done
        SHEAF="$SHEAF" python3 - "$ALICE/Documents/plans/back.md" <<'END'
        import os, subprocess, sys
        file = os.open(sys.argv[1], os.O_RDWR)
        os.pwrite(file, b"two!", 0)
        os.fsync(file)
        subprocess.run([os.environ["SHEAF"], "versions", sys.argv[1]], check=True, stdout=subprocess.DEVNULL)
        os.pwrite(file, b"one\\n", 0)
        os.close(file)
        END
        echo three >"$ALICE/Documents/plans/back.md"
        as bob notices | { ! grep "not based"; }
        as alice versions "$ALICE/Documents/plans/back.md" | { ! grep based; }
        python3 - "$BOB/$shared/safe.md" "$ALICE/Documents/plans/safe.md" <<'END'
        import os, subprocess, sys
        mine, hers = sys.argv[1:]
        open(mine).read()
        subprocess.run(["sh", "-c", 'echo two >"$0"', hers], check=True)
        with open(mine + ".tmp", "w") as new: new.write("bob's\\n")
        os.rename(mine + ".tmp", mine)
        END
        same "$(attribute conflict "$ALICE/Documents/plans/safe.md")" 2
        for name in alice bob; do as $name notices | grep -F "safe.md, but not based on version 2"; done
        as alice versions "$ALICE/Documents/plans/safe.md" | grep -E '^ *3 .*, based on 1'
        """)
    }
  }

  /// Who joined after the version that was passed over does not hear of it.
  @Test func whatWasBeforeJoiningIsNotFound() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        as() { local who=$1; shift; "$SHEAF" "$@" --library "$LIBRARY" --as "$who@example.com"; }
        echo one >"$ALICE/Documents/trip.md"
        exec 3<>"$ALICE/Documents/trip.md"; cat <&3 >/dev/null
        sh -c 'echo two >>"$0"' "$ALICE/Documents/trip.md"
        python3 -c 'import os; os.pwrite(3, b"three", 0); os.ftruncate(3, 5)'
        exec 3>&-
        same "$(attribute conflict "$ALICE/Documents/trip.md")" 2
        same "$(as alice find --conflicts)" "$ALICE/Documents/trip.md"
        invite "$ALICE/Documents/trip.md" bob edit
        same "$(as bob find --conflicts)" ""
        # A save that was based on a version from before says so without its number.
        exec 3<>"$ALICE/Documents/trip.md"; cat <&3 >/dev/null
        sh -c 'echo more >>"$0"' "$ALICE/Documents/trip.md"
        as bob notices | { ! grep "not based"; }
        python3 -c 'import os; os.pwrite(3, b"other", 0); os.ftruncate(3, 5)'
        exec 3>&-
        as bob notices | grep -F "edited trip.md, but not based on version 4"
        same "$(as bob find trip)" "$BOB/Shared/alice@example.com/trip.md"
        """)
    }
  }
}
