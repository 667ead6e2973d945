import Glibc
import MountKit
import Testing

/// Programs that ask much of a file system, run inside the mount.
@Suite(.serialized) struct ProgramTests {
  @Test(arguments: Owner.possible, ["DELETE", "TRUNCATE", "PERSIST", "WAL"])
  func sqliteKeepsADatabase(_ owner: Owner, _ journal: String) throws {
    try withMount(as: try owner.user()) { library in
      try library.shell(
        """
        sqlite3 data.db 'PRAGMA journal_mode=\(journal); CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT);' >/dev/null
        for writer in 1 2 3; do
          (for i in $(seq 40); do
             sqlite3 -cmd '.timeout 60000' data.db \
               "BEGIN IMMEDIATE; INSERT INTO t(x) VALUES ('$writer-$i'), (hex(randomblob(500))); COMMIT;"
           done) &
        done
        wait
        test "$(sqlite3 data.db 'PRAGMA integrity_check')" = ok
        test "$(sqlite3 data.db 'SELECT count(*) FROM t')" = 240
        sqlite3 data.db 'DELETE FROM t WHERE id % 2; VACUUM; PRAGMA integrity_check' | grep -qx ok
        """, limit: .seconds(240))
      try library.killServer()
      try library.mount()
      #expect(try library.shell("sqlite3 data.db 'PRAGMA integrity_check; SELECT count(*) FROM t'").text == "ok\n120")
    }
  }

  @Test(arguments: Owner.possible)
  func gitKeepsARepository(_ owner: Owner) throws {
    try withMount(as: try owner.user()) { library in
      try library.shell(
        """
        export HOME=$PWD GIT_CONFIG_NOSYSTEM=1
        git config --global user.name Alice; git config --global user.email alice@example.com
        git init -q -b main project; cd project
        for i in $(seq 60); do mkdir -p "d$((i % 7))"; seq "$i" $((i * 50)) > "d$((i % 7))/file-$i"; done
        git add .; git commit -q -m first
        git checkout -q -b side; sed -i 's/1/one/' d*/file-*; git commit -q -am side
        git checkout -q main; git mv d0 d0-moved; chmod +x d1/file-1; git commit -q -am main
        git merge -q side -m merge
        git checkout -q side~1; test ! -x d1/file-1; git checkout -q main; test -x d1/file-1
        test -z "$(git status --porcelain)"
        git stash list; echo change >> d1/file-1; git stash -q; git stash pop -q; git checkout -q .
        git gc -q --aggressive --prune=now; git fsck --full --strict
        test -z "$(git status --porcelain)"
        git clone -q . ../clone; diff -r --exclude=.git . ../clone
        rm -r d2; git checkout -q .; test -z "$(git status --porcelain)"
        """, limit: .seconds(240))
    }
  }

  @Test(arguments: Owner.possible)
  func copiesAndArchivesAreFaithful(_ owner: Owner) throws {
    try withMount(as: try owner.user()) { library in
      let compare = "find . -mindepth 1 -printf '%P %y %m %s %n %l %T@\\n' | sort"
      try library.shell(
        """
        mkdir -p source/deep/er; cd source
        echo text > file; ln file hard; ln -s file soft; ln -s /nowhere dangling; mkfifo fifo
        truncate -s 50M sparse; printf x | dd of=sparse bs=1 seek=20000000 conv=notrunc status=none
        head -c 2000000 /dev/urandom > deep/er/random; printf 'odd' > $'odd\\n\\xffname'
        setfattr -n user.color -v blue file; setfattr -n user.note -v 0x00ff deep
        chmod 640 file; chmod 1750 deep; touch -d '2001-02-03 04:05:06.123456789' file deep/er deep
        \(compare) > ../facts; cd ..
        cp -a source copied; (cd copied; \(compare) | diff ../facts -)
        rsync -aHX --sparse source/ synced/
        # rsync does not set the times of links and fifos.
        (cd synced; \(compare) | grep -av ' [lp] ' | diff <(grep -av ' [lp] ' ../facts) -)
        tar --xattrs -cf archive.tar -C source .; mkdir unpacked
        tar --xattrs --xattrs-include='user.*' -xpf archive.tar -C unpacked; (cd unpacked; \(compare) | diff ../facts -)
        for copy in copied synced unpacked; do
          cmp source/deep/er/random $copy/deep/er/random; cmp source/sparse $copy/sparse
          test "$(getfattr --only-values -n user.color $copy/file)" = blue
          test "$(getfattr --only-values -n user.sheaf.id $copy/file)" != \
            "$(getfattr --only-values -n user.sheaf.id source/file)"
        done
        test "$(stat -c %b copied/sparse)" -lt 20000
        rsync -aH --itemize-changes source/ synced/ | tee changes; test ! -s changes
        """, limit: .seconds(240))
    }
  }

  @Test func copiesOutOfAndIntoTheMountAreFaithful() throws {
    try withMount { library in
      let outside = try library.folder.folder("outside")
      try library.shell(
        """
        mkdir tree; for i in $(seq 200); do head -c $((i * 777)) /dev/urandom > tree/$i; done
        cp -a tree '\(outside)/tree'; diff -r tree '\(outside)/tree'
        cp -a '\(outside)/tree' back; diff -r tree back
        rsync -aX --checksum --delete '\(outside)/tree/' back/; diff -r tree back
        """)
    }
  }

  @Test func programsMapFilesIntoMemory() throws {
    try withMount { library in
      try library.shell(
        """
        python3 - <<'END'
        import mmap, os
        with open('mapped', 'w+b') as file:
            file.truncate(1 << 20)
            with mmap.mmap(file.fileno(), 0) as memory:
                for i in range(0, 1 << 20, 4096): memory[i:i+8] = i.to_bytes(8, 'big')
                memory.flush()
                assert os.pread(file.fileno(), 8, 4096 * 100) == (4096 * 100).to_bytes(8, 'big')
                os.pwrite(file.fileno(), b'written!', 8192)
                assert memory[8192:8200] == b'written!'
        with open('mapped', 'rb') as file: assert file.read()[4096:4104] == (4096).to_bytes(8, 'big')
        END
        """)
      try library.killServer()
      try library.mount()
      #expect(try library.shell("stat -c %s mapped; head -c 8200 mapped | tail -c 8").text == "1048576\nwritten!")
    }
  }

  @Test(arguments: [
    "printf 'one\\n' > doc; printf '2\\n' > tmp; mv tmp doc",
    "printf 'one\\n' > doc; sed -i s/one/2/ doc",
    "printf 'one\\n' > doc; perl -pi -e s/one/2/ doc",
    "printf 'one\\n' > doc; printf '2\\n' | dd of=doc conv=notrunc status=none; truncate -s 2 doc",
    "printf 'one\\n' > doc; printf '2\\n' | tee doc >/dev/null",
    "printf 'one\\n' > doc; printf '%s\\n' '1s/one/2/' w q | ed -s doc",
  ])
  func aDocumentStaysItselfThroughSaves(_ script: String) throws {
    try withMount { library in
      let (first, second) = try #require(
        script.firstRange(of: "; ").map { range in
          (String(script[..<range.lowerBound]), String(script[range.upperBound...]))
        })
      try library.shell(first)
      let id = try library.attribute("user.sheaf.id", of: "doc")
      try library.shell(second)
      #expect(try library.shell("cat doc").text == "2")
      #expect(try library.attribute("user.sheaf.id", of: "doc") == id)
      #expect(try library.versions("doc").last?.number ?? 0 >= 2)
      #expect(try library.show("doc", version: 1) == Array("one\n".utf8))
    }
  }

  @Test func buildToolsWork() throws {
    try withMount { library in
      try library.shell(
        """
        mkdir project; cd project
        for i in $(seq 20); do printf 'int f%d(void) { return %d; }\\n' "$i" "$i" > "f$i.c"; done
        printf 'int main(void) { return 0; }\\n' > main.c
        printf 'OBJECTS = $(patsubst %%.c,%%.o,$(wildcard *.c))\\nprogram: $(OBJECTS)\\n\\tcc -o $@ $^\\n' > Makefile
        if command -v make cc >/dev/null; then
          make -s -j4; ./program; make -q; touch f3.c; ! make -q; make -s; make -q
        else
          # Without a compiler: what make relies on.
          touch -d '1 hour ago' a; touch b; test b -nt a
        fi
        """, limit: .seconds(240))
    }
  }
}
