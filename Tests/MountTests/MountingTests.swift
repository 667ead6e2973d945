import Foundation
import Glibc
import MountKit
import Testing

/// `sheaf mount` and `sheaf unmount`: what they refuse, what they mend, whom they name.
@Suite(.serialized) struct MountingTests {
  /// Expects a refusal in one line that names `subject`.
  private func expectRefusal(
    _ output: Command.Output, naming subject: String, location: SourceLocation = #_sourceLocation
  ) {
    #expect(output.status == 1, "\(output)", sourceLocation: location)
    #expect(output.errorText.contains(subject), "it does not name \(subject): \(output)", sourceLocation: location)
    #expect(
      !output.errorText.isEmpty && !output.errorText.contains("\n"), "not one line: \(output)",
      sourceLocation: location)
  }

  /// Says no more than that, since messages with whole files in them help nobody.
  private func expectUntouched(_ before: Data, _ after: Data, location: SourceLocation = #_sourceLocation) {
    let isUntouched = before == after
    #expect(isUntouched, "the file was \(before.count) bytes, is \(after.count) and differs", sourceLocation: location)
  }

  /// A library that is not mounted at first.
  private func withLibrary(as user: TestUser? = nil, _ body: (MountedLibrary) throws -> Void) throws {
    let library = try MountedLibrary(as: user)
    do {
      _ = try guarded(within: .seconds(240), late: library.breakMount) { try body(library) }
      try library.tearDown()
    } catch {
      try? library.tearDown()
      throw error
    }
  }

  @Test(arguments: Owner.possible)
  func mountPointsThatWillNotDo(_ owner: Owner) throws {
    try withLibrary(as: try owner.user()) { library in
      let missing = "\(library.mountpoint)/missing"
      expectRefusal(try library.sheaf("mount", missing, "--library", library.library), naming: missing)
      try Command.shell("echo text > '\(library.mountpoint)/file'", as: library.user).succeed()
      expectRefusal(try library.tryMount(), naming: library.mountpoint)
      let file = "\(library.mountpoint)/file"
      expectRefusal(try library.sheaf("mount", file, "--library", library.library), naming: file)
      try Command(["rm", file]).succeed()
      let hidden = "\(library.mountpoint)/library.sqlite"
      expectRefusal(try library.sheaf("mount", library.mountpoint, "--library", hidden), naming: hidden)
      // That left nothing which would be in the way.
      try library.mount()
      expectRefusal(try library.tryMount(), naming: library.mountpoint)
      try library.shell("echo text > still-works")
    }
  }

  @Test(arguments: Owner.possible)
  func aDeadMountIsClearedAndMountedAnew(_ owner: Owner) throws {
    try withLibrary(as: try owner.user()) { library in
      try library.mount()
      try library.shell("echo kept > document")
      try library.killServer()
      #expect(library.isMounted)
      let dead = try Command(["stat", library.documents], as: library.user).run()
      // The latter at first, while the kernel still takes the connection down.
      let words = ["Transport endpoint is not connected", "Software caused connection abort"]
      #expect(words.contains(where: dead.errorText.contains), "\(dead)")
      try library.mount()
      #expect(try library.shell("cat document").text == "kept")
      // Also for a shell that stands in what is dead.
      let server = try #require(library.server)
      try Command.shell(
        """
        cd '\(library.documents)'
        kill -9 \(server)
        while kill -0 \(server) 2>/dev/null && ls >/dev/null 2>&1; do :; done
        '\(try SheafProgram.path())' mount '\(library.mountpoint)' --library '\(library.library)' --as \(library.handle)
        cat '\(library.documents)/document'
        """, as: library.user
      ).succeed()
      // Once only: no dead mount is left below the new one.
      try library.unmount()
      #expect(!library.isMounted)
    }
  }

  @Test func aLibraryOfANewerProgramIsRefusedUntouched() throws {
    try withLibrary { library in
      try library.mount()
      try library.shell("echo text > document")
      try library.unmount()
      try Command(["sqlite3", library.library, "PRAGMA user_version = 1000000"]).succeed()
      let before = try Data(contentsOf: URL(fileURLWithPath: library.library))
      expectRefusal(try library.tryMount(), naming: library.library)
      expectRefusal(try library.sheaf("status", "--library", library.library), naming: library.library)
      let after = try Data(contentsOf: URL(fileURLWithPath: library.library))
      expectUntouched(before, after)
      #expect(!library.isMounted)
    }
  }

  @Test func whatIsNoLibraryIsRefusedUntouched() throws {
    try withLibrary { library in
      let text = "This is a letter, not a database.\n"
      try text.write(toFile: library.library, atomically: false, encoding: .utf8)
      expectRefusal(try library.tryMount(), naming: library.library)
      #expect(try String(contentsOfFile: library.library, encoding: .utf8) == text)
      func filesBeside() throws -> [String] {
        let file = URL(fileURLWithPath: library.library)
        return try FileManager.default.contentsOfDirectory(atPath: file.deletingLastPathComponent().path)
          .filter { $0.hasPrefix(file.lastPathComponent + "-") }
      }
      #expect(try filesBeside() == [])
      try Command(["rm", library.library]).succeed()
      try Command(["sqlite3", library.library, "CREATE TABLE other (x)"]).succeed()
      let before = try Data(contentsOf: URL(fileURLWithPath: library.library))
      expectRefusal(try library.tryMount(), naming: library.library)
      let after = try Data(contentsOf: URL(fileURLWithPath: library.library))
      expectUntouched(before, after)
      #expect(try filesBeside() == [])
    }
  }

  @Test func aBusyMountSaysWhoHoldsIt() throws {
    try withLibrary { library in
      try library.mount()
      try library.shell("echo text > document")
      let file = open("\(library.documents)/document", O_RDONLY | O_CLOEXEC)
      try #require(file >= 0)
      let refused = try library.sheaf("unmount", library.mountpoint)
      close(file)
      expectRefusal(refused, naming: "\(getpid())")
      #expect(library.isMounted)
      #expect(try library.shell("cat document").text == "text")
      try library.unmount()
      #expect(!library.isMounted)
      expectRefusal(try library.sheaf("unmount", library.mountpoint), naming: library.mountpoint)
    }
  }

  /// Containers, and services with a view of their own, have a copy of every mount that was there when they began.
  @Test(.enabled(if: TestUser.isRoot, "mount namespaces need root"))
  func aCopyOfTheMountInAnotherNamespaceHoldsUpNobody() throws {
    try withMount { library in
      let ready = library.folder.path + "/ready"
      let other = try BackgroundCommand(
        Command([
          "unshare", "--mount", "--propagation", "private", "sh", "-c",
          "exec <'\(library.mountpoint)/Documents'; mkfifo '\(ready)-held'; touch '\(ready)'; read -r _ <'\(ready)-held'",
        ]))
      defer { other.end() }
      try library.shell("while [ ! -e '\(ready)' ]; do :; done; echo one > document", limit: .seconds(30))
      let output = try library.sheaf("unmount", library.mountpoint, limit: .seconds(40))
      #expect(output.status == 0, "\(output)")
      #expect(try library.check() == [])
      try library.mount()
      try library.shell("[ \"$(cat document)\" = one ]")
    }
  }

  /// The process of the library mounts where it lives, which another namespace does not see.
  @Test(.enabled(if: TestUser.isRoot, "mount namespaces need root"))
  func aMountThatAnotherNamespaceWouldNotSeeIsRefused() throws {
    try withMount { library in
      let (here, there) = (try library.folder.folder("here"), try library.folder.folder("there"))
      let before = try library.sheafSucceeds("status", "--library", library.library).text
      let program = try SheafProgram.path()
      let output = try Command([
        "unshare", "--mount", "--propagation", "private", program, "mount", there, "--library", library.library,
      ]).run()
      #expect(output.status == 1, "\(output)")
      #expect(output.errorText.contains("mount namespace"), "\(output)")
      #expect(try library.sheafSucceeds("status", "--library", library.library).text == before)
      // One that does see it, as a service whose view follows that of the machine, has its mount.
      try library.sheafSucceeds("mount", here, "--library", library.library)
      try library.sheafSucceeds("unmount", here)
    }
  }

  @Test func aSecondMountJoinsTheProcessThatRuns() throws {
    try withLibrary { library in
      try library.mount()
      let second = try library.folder.folder("second")
      expectRefusal(
        try library.sheaf("mount", second, "--library", library.library, "--as", "bob@example.com"),
        naming: "bob@example.com")
      try library.sheafSucceeds("account", "add", "bob@example.com", "--library", library.library)
      try library.sheafSucceeds("mount", second, "--library", library.library, "--as", "bob@example.com")
      defer { _ = try? library.sheaf("unmount", second) }
      try library.shell("echo alice > document")
      try Command.shell("test ! -e document; echo bob > document", in: "\(second)/Documents").succeed()
      #expect(try library.shell("cat document").text == "alice")
      struct Status: Decodable {
        struct Mount: Decodable { let mountpoint, account: String }
        let library: String
        let pid: Int32
        let mounts: [Mount]
      }
      let output = try library.sheafSucceeds("status", "--library", library.library, "--json").output
      let status = try JSONDecoder().decode(Status.self, from: Data(output))
      #expect(status.pid == library.server)
      #expect(Set(status.mounts.map(\.mountpoint)) == [library.mountpoint, second])
      #expect(Set(status.mounts.map(\.account)) == ["alice@example.com", "bob@example.com"])
      try library.sheafSucceeds("unmount", second)
      #expect(try library.shell("cat document").text == "alice")
      try library.unmount()
      try eventually("the end of the process after its last mount") { library.server == nil }
    }
  }

  @Test func aProcessThatDoesNotAnswerIsNamed() throws {
    try withLibrary { library in
      try library.mount()
      let server = try #require(library.server)
      let second = try library.folder.folder("second")
      kill(server, SIGSTOP)
      defer { kill(server, SIGCONT) }
      let output = try library.sheaf("mount", second, "--library", library.library, limit: .seconds(60))
      expectRefusal(output, naming: "\(server)")
    }
  }

  @Test func anUnmountThatCannotSaveSaysSo() throws {
    try withLibrary { library in
      // Only unmount and fsync(2) have the record suffice, and not the first time.
      try library.mount(environment: ["SHEAF_FAULT": "changes.sync:fail"])
      try library.shell("dd if=/dev/zero of=first count=1 conv=fsync 2>&1")
      let second = try library.folder.folder("second")
      defer { _ = try? library.sheaf("unmount", second) }
      // Upkeep may sync just before.
      try eventually("an unmount that has something to sync", within: .seconds(60)) {
        try library.sheafSucceeds("mount", second, "--library", library.library)
        try Command.shell("date +%N > document", in: "\(second)/Documents").succeed()
        let output = try library.sheaf("unmount", second)
        if output.status == 0 { return false }
        expectRefusal(output, naming: "\(second): is unmounted, but not all of it could be saved")
        return true
      }
      #expect(try Command(["findmnt", second]).run().status == 1)
      try library.unmount()
    }
  }

  @Test func theLibraryOfAnUnmountMayBeARelativePath() throws {
    try withLibrary { library in
      try library.mount()
      try Command.shell(
        "'\(try SheafProgram.path())' unmount '\(library.mountpoint)' --library library/library.sqlite",
        in: library.folder.path
      ).succeed()
      #expect(!library.isMounted)
    }
  }

  @Test(arguments: Owner.possible)
  func twoLibrariesAtOnePlaceAreRefused(_ owner: Owner) throws {
    try withLibrary(as: try owner.user()) { library in
      let script = """
        mount() { '\(try SheafProgram.path())' mount '\(library.mountpoint)' --library "$1"; }
        for round in 1 2 3; do
          mount one.sqlite & first=$!
          mount two.sqlite & second=$!
          done=0
          wait $first && done=$((done + 1)) || true
          wait $second && done=$((done + 1)) || true
          echo "$done $(grep -c ' \(library.mountpoint) ' /proc/self/mounts)"
          '\(try SheafProgram.path())' unmount '\(library.mountpoint)'
        done
        """
      let folder = "\(library.folder.path)/library"
      let output = try Command.shell(script, as: library.user, in: folder).succeed()
      #expect(
        output.text.split(separator: "\n").filter { $0.first?.isNumber ?? false } == ["1 1", "1 1", "1 1"], "\(output)")
    }
  }

  @Test func whoFollowsAProcessThatIsKilledSaysSo() throws {
    try withLibrary { library in
      try library.mount()
      let second = try library.folder.folder("second")
      let log = "\(library.folder.path)/follower.log"
      let output = "\(library.folder.path)/follower.output"
      let follower = try BackgroundCommand(
        .shell(
          """
          status=0
          '\(try SheafProgram.path())' mount --foreground '\(second)' --library '\(library.library)' \
            > '\(output)' 2> '\(log)' || status=$?
          test "$status" = 1
          """))
      defer { follower.end() }
      // A process that is killed before it has answered leaves an error of another kind.
      try eventually("the answer to the second mount", within: .seconds(30)) {
        (try? String(contentsOfFile: output, encoding: .utf8))?.contains("Mounted") ?? false
      }
      try library.killServer()
      try follower.wait(limit: .seconds(30))
      #expect(
        try String(contentsOfFile: log, encoding: .utf8).contains(
          "\(second): the process that had it mounted was killed"))
      // The dead mount has gone with it.
      #expect(try Command(["findmnt", second]).run().status == 1)
    }
  }

  /// In a folder that everybody may write to, anybody can make the library's socket while no process owns the library.
  @Test(.enabled(if: TestUser.isRoot, "acting as a stranger needs root"))
  func aStrangerAtTheSocketIsToldNothing() throws {
    let user = try TestUser.ordinary()
    try withLibrary { library in
      try library.sheafSucceeds("account", "add", library.handle, "--library", library.library)
      let folder = "\(library.folder.path)/library"
      #expect(chmod(folder, 0o1777) == 0)
      let heard = "\(folder)/heard"
      let stranger = try BackgroundCommand(
        Command(
          [
            "/usr/bin/python3", "-c",
            """
            import socket, sys
            server = socket.socket(socket.AF_UNIX)
            server.bind(sys.argv[1] + "-socket")
            server.listen()
            while True:
                peer, _ = server.accept()
                data = peer.recv(65536)
                if data: open(sys.argv[2], "ab").write(data)
                peer.close()
            """, library.library, heard,
          ], as: user))
      defer { stranger.end() }
      try eventually("the stranger's socket") { FileManager.default.fileExists(atPath: library.library + "-socket") }
      #expect(chmod(library.library + "-socket", 0o777) == 0)
      let list = try library.sheaf("account", "list", "--library", library.library)
      expectRefusal(list, naming: "of user \(user.user), whose library it is not")
      let url = "sheaf://\(UUID().uuidString)/s/AAAAAAAAAAAAAAAAAAAAAAAA"
      expectRefusal(try library.sheaf("accept", url, "--library", library.library), naming: "whose library it is not")
      #expect(!FileManager.default.fileExists(atPath: heard))
    }
  }

  @Test func terminatingTheProcessSavesAndUnmounts() throws {
    try withLibrary { library in
      try library.mount()
      let file = open("\(library.documents)/document", O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
      #expect(write(file, "not closed", 10) == 10)
      kill(try #require(library.server), SIGTERM)
      close(file)
      try eventually("the end of the terminated process", within: .seconds(30)) {
        library.server == nil && !library.isMounted
      }
      try library.mount()
      #expect(try library.shell("cat document").text == "not closed")
    }
  }

  /// A killed process cannot end by itself while it tells the kernel of one account's changes for another one's mount: it
  /// waits for the folders of programs that wait for its answers.
  @Test func aKilledProcessIsFollowedByTheNextWhateverItWasDoing() throws {
    try withLibrary { library in
      let second = try library.folder.folder("second")
      let bob = "bob@example.com"
      try library.mount()
      _ = try library.sheafSucceeds("account", "add", bob, "--library", library.library)
      try library.shell("mkdir team")
      let url = try library.sheafSucceeds("share", "\(library.documents)/team", "--with", bob, "--can", "edit").text
        .split(separator: "\n")[0]
      _ = try library.sheafSucceeds("accept", String(url), "--as", bob, "--library", library.library)
      let shared = "\(second)/Shared/\(library.handle)/team"
      let writing = """
        while :; do
          cd "$0" 2> /dev/null || { sleep 0.05; continue; }
          for i in 1 2 3 4 5 6 7 8 9; do
            echo $i > $1.$i; echo x > $1.tmp; mv $1.tmp $1.r; mv $1.$i $1.m; rm $1.m; ls > /dev/null
          done 2> /dev/null
          cd /
        done
        """
      var writers: [BackgroundCommand] = []
      defer {
        // Where the rule is broken, this alone lets everybody go.
        for place in [second, library.mountpoint] {
          _ = try? Command(["umount", "--force", place]).run()
          _ = try? Command(["umount", "--lazy", place]).run()
        }
        for writer in writers { writer.end() }
      }
      for round in 1...3 {
        if round > 1 { try library.mount() }
        try library.sheafSucceeds("mount", second, "--library", library.library, "--as", bob)
        if writers.isEmpty {
          for (place, name) in [("\(library.documents)/team", "a"), (shared, "b"), (shared, "c")] {
            writers.append(try BackgroundCommand(Command(["/bin/bash", "-c", writing, place, name])))
          }
        }
        try eventually("round \(round): all of them write") {
          try Command.shell("ls '\(shared)'").succeed().text.split(separator: "\n").count > 6
        }
        kill(try #require(library.server), SIGKILL)
      }
      try library.mount()
      for writer in writers { writer.end() }
      writers = []
      try library.unmount()
      #expect(try library.check() == [])
    }
  }

  @Test func theDefaultLibraryIsPrivate() throws {
    let user = try TestUser.ordinary()
    let folder = try TemporaryFolder(for: user)
    let mountpoint = try folder.folder("mnt", for: user)
    let data = try folder.folder("data", for: user)
    let environment = ["XDG_DATA_HOME": data]
    let output = try SheafProgram.run(["mount", mountpoint], as: user, environment: environment)
    #expect(output.status == 0, "\(output)")
    let modes = try Command(["stat", "-c", "%a %n", "\(data)/sheaf", "\(data)/sheaf/library.sqlite"]).run()
    #expect(modes.text == "700 \(data)/sheaf\n600 \(data)/sheaf/library.sqlite")
    let others = try Command(["find", "\(data)/sheaf", "-mindepth", "1", "-perm", "/077"]).run()
    #expect(others.text == "", "others may read or write these")
    let accounts = try SheafProgram.run(["account", "list", "--json"], as: user, environment: environment)
    #expect(accounts.text.contains("\"\(user.name)@"), "\(accounts)")
    _ = try SheafProgram.run(["unmount", mountpoint], as: user)
    _ = try Command(["umount", "--lazy", mountpoint]).run()
    try folder.remove()
  }

  @Test func aReadOnlyMountMakesNoLibrary() throws {
    let library = try MountedLibrary()
    defer { try? library.tearDown() }
    let output = try library.sheaf(
      "mount", library.mountpoint, "--library", library.library, "--as", library.handle, "--read-only")
    #expect(output.status == 1 && output.errorText.contains("there is no library yet"), "\(output)")
    #expect(access(library.library, F_OK) != 0 && !library.isMounted)
  }

  @Test func aReadOnlyMountRefusesChanges() throws {
    try withLibrary { library in
      try library.mount()
      try library.shell("echo text > document")
      try library.unmount()
      try library.sheafSucceeds(
        "mount", library.mountpoint, "--library", library.library, "--as", library.handle, "--read-only")
      #expect(try Command.shell("cat document", in: library.documents).succeed().text == "text")
      for script in ["echo x > new", "echo x > document", "rm document", "mkdir folder", "chmod 600 document"] {
        let output = try Command.shell(script, in: library.documents).run()
        #expect(output.status != 0 && output.errorText.contains("Read-only file system"), "\(script): \(output)")
      }
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "mounting for another user needs root"))
  func rootMountsForOneUser() throws {
    let user = try TestUser.ordinary()
    try withLibrary { library in
      try library.sheafSucceeds(
        "mount", library.mountpoint, "--library", library.library, "--as", library.handle, "--for", user.name)
      try Command.shell("echo mine > document", as: user, in: library.documents).succeed()
      let owner = try Command(["stat", "-c", "%U", "\(library.documents)/document"], as: user).succeed()
      #expect(owner.text == user.name)
      let other = try Command(["setpriv", "--reuid=65534", "--clear-groups", "ls", library.documents]).run()
      #expect(other.errorText.contains("Permission denied"), "\(other)")
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "hiding the device needs root"))
  func whatIsMissingIsNamed() throws {
    let user = try TestUser.ordinary()
    try withLibrary(as: user) { library in
      let mount =
        "setpriv --reuid=\(user.user) --regid=\(user.group) --init-groups "
        + "'\(try SheafProgram.path())' mount '\(library.mountpoint)' --library '\(library.library)'"
      let hiddenDevice = "mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3; \(mount)"
      let output = try Command(["unshare", "--mount", "bash", "-c", hiddenDevice]).run()
      expectRefusal(output, naming: "/dev/fuse")
      let hiddenHelper = "mount --bind /dev/null \"$(readlink -f \"$(command -v fusermount3)\")\"; \(mount)"
      expectRefusal(try Command(["unshare", "--mount", "bash", "-c", hiddenHelper]).run(), naming: "fusermount3")
    }
  }

  @Test func wrongUsageHasAStatusOfItsOwn() throws {
    #expect(try SheafProgram.run(["mount", "--nonsense"]).status == 64)
    #expect(try SheafProgram.run(["nonsense"]).status == 64)
    // The program's version is no answer to this.
    #expect(try SheafProgram.run(["diff", "Documents/a.txt", "--version", "3"]).status == 64)
    for (words, hint) in [
      (["verions", "a.txt"], "there is no command verions; did you mean: sheaf versions"),
      (["umount", "a"], "there is no command umount; did you mean: sheaf unmount"),
      (["participant", "ad", "a"], "there is no command participant ad; did you mean: sheaf participant add"),
      (["frobnicate"], "there is no command frobnicate; see: sheaf --help"),
    ] {
      let output = try SheafProgram.run(words)
      #expect(output.status == 64 && output.errorText == "sheaf: " + hint, "\(output)")
    }
    #expect(try SheafProgram.run(["--version"]).text == "0.1.0")
    let help = try SheafProgram.run(["--help"])
    #expect(help.status == 0)
    for word in ["mount", "unmount", "versions", "restore", "check", "backup"] { #expect(help.text.contains(word)) }
  }
}
