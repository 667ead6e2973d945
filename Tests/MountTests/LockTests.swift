import Foundation
import MountKit
import Testing

/// Locks of one person keep out the other, whose programs run in a mount of their own.
@Suite(.serialized) struct LockTests {
  /// `hold KIND FILE`: locks the file, says so with a file `$0.held`, and lets go when `$0.go` is there. `try KIND
  /// FILE` says what becomes of a lock that does not wait.
  private static let functions = """
    cat >"$TMP/lock.py" <<'END'
    import errno, fcntl, os, signal, struct, sys, time
    how, kind, path = sys.argv[1:4]
    start, length = (int(sys.argv[4]), int(sys.argv[5])) if len(sys.argv) > 5 else (0, 0)
    file = os.open(path, os.O_RDWR if 'shared' not in kind else os.O_RDONLY)
    def lock(waits):
        operation = fcntl.LOCK_SH if 'shared' in kind else fcntl.LOCK_EX
        if not waits: operation |= fcntl.LOCK_NB
        if kind.startswith('flock'): fcntl.flock(file, operation)
        elif kind.startswith('ofd'):
            block = struct.pack('hhqqi4x', fcntl.F_WRLCK if 'shared' not in kind else fcntl.F_RDLCK, 0, start, length, 0)
            fcntl.fcntl(file, 38 if waits else 37, block)
        else: fcntl.lockf(file, operation, length, start)
    class Alarm(Exception): pass
    def alarm(*_): raise Alarm
    if how == 'try':
        try:
            lock(False)
            print('got it')
        except OSError as error: print(errno.errorcode[error.errno])
    elif how == 'wait':
        signal.signal(signal.SIGALRM, alarm)
        signal.alarm(int(os.environ.get('ALARM', '0')))
        try:
            lock(True)
            print('got it')
        except Alarm: print('interrupted')
        except OSError as error: print(errno.errorcode[error.errno])
    else:
        lock(False)
        open(os.environ['TMP'] + '/held', 'w').close()
        while not os.path.exists(os.environ['TMP'] + '/go'): time.sleep(0.01)
    END
    export TMP
    lock() { python3 "$TMP/lock.py" "$@"; }
    hold() { rm -f "$TMP/held" "$TMP/go"; python3 "$TMP/lock.py" hold "$@" & holder=$!; until [ -e "$TMP/held" ]; do sleep 0.01; done; }
    release() { touch "$TMP/go"; wait $holder; }
    mkdir "$ALICE/Documents/plans"; echo one >"$ALICE/Documents/plans/a"
    invite "$ALICE/Documents/plans" bob edit
    mine="$ALICE/Documents/plans/a"; theirs="$BOB/Shared/alice@example.com/plans/a"

    """

  private func run(_ script: String, as user: TestUser? = nil) throws {
    try withSharedMounts(as: user) { mounts in
      let folder = try mounts.library.folder.folder("locks", for: user)
      try mounts.shell("TMP='\(folder)'\n" + Self.functions + script, limit: .seconds(60))
    }
  }

  @Test(arguments: Owner.possible)
  func oneKeepsOutTheOther(_ owner: Owner) throws {
    try run(
      """
      for kind in flock posix ofd; do
        same "$(lock try $kind "$theirs")" "got it"
        hold $kind "$mine"
        same "$(lock try $kind "$theirs")" EAGAIN
        same "$(lock try $kind-shared "$theirs")" EAGAIN
        same "$(lock try $kind "$mine")" EAGAIN
        release
        same "$(lock try $kind "$theirs")" "got it"
        hold $kind-shared "$theirs"
        same "$(lock try $kind-shared "$mine")" "got it"
        same "$(lock try $kind "$mine")" EAGAIN
        release
      done
      # Those of flock(2) know nothing of those of fcntl(2).
      hold flock "$mine"; same "$(lock try posix "$theirs")" "got it"; release
      # Ranges.
      hold posix "$mine" 100 50
      same "$(lock try posix "$theirs" 149 1)" EAGAIN
      same "$(lock try ofd "$theirs" 100 1)" EAGAIN
      same "$(lock try posix "$theirs" 150 1)" "got it"
      same "$(lock try posix "$theirs" 0 100)" "got it"
      release
      """, as: owner.user())
  }

  @Test func whoWaitsIsLetInOrInterrupted() throws {
    try run(
      """
      for kind in flock posix ofd; do
        hold $kind "$mine"
        python3 "$TMP/lock.py" wait $kind "$theirs" >"$TMP/waited" & waiter=$!
        same "$(ALARM=1 lock wait $kind "$theirs")" interrupted
        same "$(cat "$TMP/waited")" ""
        release; wait $waiter
        same "$(cat "$TMP/waited")" "got it"
        # Who waits can be killed, and who holds.
        hold $kind "$theirs"
        python3 "$TMP/lock.py" wait $kind "$mine" & waiter=$!
        sleep 0.3; kill -KILL $waiter; wait $waiter || true
        kill -KILL $holder; wait $holder || true
        same "$(ALARM=10 lock wait $kind "$mine")" "got it"
      done
      """)
  }

  @Test func locksGoWithTheMountAndWithAccess() throws {
    try run(
      """
      hold flock "$theirs"
      lock wait posix "$theirs" >/dev/null
      fusermount3 -uz "$BOB"; kill -KILL $holder; wait $holder || true
      same "$(ALARM=10 lock wait flock "$mine")" "got it"
      "$SHEAF" mount "$BOB" --library "$LIBRARY" --as bob@example.com
      hold flock "$theirs"
      same "$(lock try flock "$mine")" EAGAIN
      "$SHEAF" participant remove "$ALICE/Documents/plans" bob@example.com
      same "$(lock try flock "$mine")" "got it"
      release
      """)
  }

  @Test func twoProgramsShareADatabase() throws {
    try run(
      """
      cat >"$TMP/add.py" <<'END'
      import sqlite3, sys
      base = sqlite3.connect(sys.argv[1], timeout=60)
      base.execute('create table if not exists t (n integer)')
      for n in range(100):
          with base: base.execute('update t set n = n + 1')
      END
      database="$ALICE/Documents/plans/base"; other="$BOB/Shared/alice@example.com/plans/base"
      sqlite() { python3 -c 'import sqlite3, sys; base = sqlite3.connect(sys.argv[1]); print(base.execute(sys.argv[2]).fetchall()); base.commit()' "$@"; }
      sqlite "$database" 'create table t (n integer)'; sqlite "$database" 'insert into t values (0)'
      for n in 1 2 3; do python3 "$TMP/add.py" "$database" & done; wait
      same "$(sqlite "$database" 'select n from t')" "[(300,)]"
      same "$(sqlite "$database" 'pragma integrity_check')" "[('ok',)]"
      """)
  }
}
