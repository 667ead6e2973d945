import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// Two machines, each with a library that is mounted, and a hub over TLS between them.
@Suite(.serialized) struct ReplicaProgramTests {
  private typealias Machine = ReplicaMachine

  private func withMachines(_ body: (HubPlace, Machine, Machine) throws -> Void) throws {
    try withNewMachines { place, laptop, desktop in
      _ = try laptop.succeed("connect", place.link, "--name", "laptop")
      try laptop.mount()
      try connect(desktop, by: laptop)
      try body(place, laptop, desktop)
    }
  }

  private func connect(_ desktop: Machine, by laptop: Machine) throws {
    let link = try laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
    _ = try desktop.succeed("connect", link, "--name", "desktop")
    try desktop.mount()
  }

  /// Machines that are not connected yet.
  private func withNewMachines(_ body: (HubPlace, Machine, Machine) throws -> Void) throws {
    let place = try HubPlace()
    _ = try place.serve()
    let (laptop, desktop) = (try Machine("laptop", place), try Machine("desktop", place))
    defer {
      try? laptop.library.tearDown()
      try? desktop.library.tearDown()
    }
    try body(place, laptop, desktop)
    for machine in [laptop, desktop] { #expect(try machine.library.check() == []) }
  }

  /// - Parameter travelling: whether there is more than what travels.
  private func expectSame(_ machines: [Machine], _ comment: Comment, travelling: Bool = false) throws {
    // What one sends the other one fetches.
    for machine in machines + machines { try machine.wait() }
    if travelling { return }
    let trees = try machines.map { try $0.tree() }
    #expect(trees[0] == trees[1], comment)
  }

  /// The hub knows nothing of a share that began before its owner was connected, so it cannot tell what was private.
  @Test func whoSharesTheLibraryAloneSeesNothingOfBefore() throws {
    try withNewMachines { place, laptop, desktop in
      let bob = "bob@here.example"
      try laptop.mount()
      try laptop.succeed("account", "add", bob)
      try laptop.shell("mkdir team && echo p > team/p && echo gone > gone")
      try laptop.succeed("share", "Documents/team", "--with", bob, "--can", "edit")
      let url = try laptop.shell("getfattr --only-values -n user.sheaf.share.url team")
      try laptop.succeed("accept", url, "--as", bob)
      try laptop.succeed("connect", place.link, "--name", "laptop")
      try laptop.wait()
      try connect(desktop, by: laptop)
      try desktop.wait()

      try laptop.succeed("sync", "--pause")
      // Each is at the hub before the next one.
      for script in [
        "echo SECRET1 > d; mkdir priv; echo SECRET2 > priv/f; echo SECRET3 > priv/name; mv team/p p",
        "echo open > d; echo open > priv/f; rm priv/name; echo SECRET4 > p", "echo public > p", "mv d priv p team/",
      ] {
        try desktop.shell(script)
        try desktop.wait()
      }
      try laptop.succeed("sync", "--resume")
      try laptop.wait()
      for (path, text) in [("d", "open"), ("priv/f", "open"), ("p", "public")] {
        let shared = "Shared/\(HubPlace.handle)/team/\(path)"
        let versions = try laptop.succeed("versions", shared, "--as", bob, "--json").text
        #expect(versions.components(separatedBy: "\"number\"").count == 2, "\(versions)")
        #expect(try laptop.succeed("show", shared, "--as", bob).text == text)
      }
      let deleted = try laptop.succeed("deleted", "Shared/\(HubPlace.handle)/team", "--as", bob).text
      #expect(!deleted.contains("name"), "\(deleted)")
      #expect(try laptop.shell("cat team/.versions/p/* team/priv/.deleted/name") == "p\nSECRET4\npublic\nSECRET3")
    }
  }

  @Test func whatOneMachineDoesTheOtherShows() throws {
    try withMachines { _, laptop, desktop in
      try laptop.shell(
        """
        mkdir -p trips/italy && echo one > notes.md && echo Rome > trips/italy/plan.md
        head -c 3000000 /dev/urandom > trips/photo.raw && ln -s notes.md link && chmod 600 notes.md
        setfattr -n user.colour -v blue trips/italy/plan.md && touch -d '2020-01-02 03:04:05' trips/photo.raw
        printf x | dd of=sparse bs=1 seek=5000000 status=none
        """)
      try expectSame([laptop, desktop], "what is new")
      #expect(try Command.shell("cat '\(desktop.library.documents)/trips/italy/plan.md'").succeed().text == "Rome")
      try desktop.shell(
        """
        echo two >> notes.md && mv trips/italy/plan.md trips/rome.md && rmdir trips/italy && rm link
        printf y | dd of=trips/photo.raw bs=1 seek=1500000 conv=notrunc status=none
        """)
      try expectSame([laptop, desktop], "what the other one changes")
      // A save by rename, a swap, and a name that changes hands.
      try laptop.shell(
        "echo three > .notes.tmp && mv .notes.tmp notes.md && mv trips/rome.md x && mv notes.md trips/rome.md && mv x notes.md"
      )
      try expectSame([laptop, desktop], "a swap")
      let versions = try desktop.succeed("versions", "Documents/trips/rome.md", "--json").text
      #expect(versions.components(separatedBy: "\"number\"").count > 3, "\(versions)")
    }
  }

  /// A machine that was away shows folders as they were while it was, and has nothing to restore.
  @Test func whatAMachineHearsOfLaterHasItsTime() throws {
    try withMachines { _, laptop, desktop in
      try laptop.shell(
        """
        mkdir f && echo one > f/moved && echo two > f/deleted && echo three > f/kept && echo five > f/name
        ln f/name f/other
        """)
      for machine in [laptop, desktop] { try machine.wait() }
      let early = try laptop.shell("sleep 1.1; date -u +%Y-%m-%dT%H-%M-%SZ; sleep 1.1")
      _ = try desktop.succeed("sync", "--pause")
      try laptop.shell(
        "mv f/moved f/there && rm f/deleted f/other && echo four > f/new && mkdir f/box && mv f/kept f/box/")
      try laptop.wait()
      let time = try laptop.shell("sleep 1.1; date -u +%Y-%m-%dT%H-%M-%SZ; sleep 1.1")
      try laptop.wait()
      _ = try desktop.succeed("sync", "--resume")
      for machine in [laptop, desktop] {
        try machine.wait()
        let before = try machine.shell("cd f/.versions/@\(early) && find . | sort | xargs echo")
        #expect(before == ". ./deleted ./kept ./moved ./name ./other", "\(machine.name): \(before)")
        let past = try machine.shell("cd f/.versions/@\(time) && find . | sort | xargs echo")
        #expect(past == ". ./box ./box/kept ./name ./new ./there", "\(machine.name): \(past)")
        // A deletion counts from when it was done, and not from when it came here.
        let undone = try machine.succeed(
          "restore", "Documents/f", "--time", "@\(early)", "--by", HubPlace.handle, "--until", "@\(time)", "--dry-run")
        #expect(undone.text.contains("recover  Documents/f/deleted"), "\(machine.name): \(undone)")
        let nothing = try machine.succeed("restore", "Documents", "--time", "@\(time)", "--dry-run").text
        #expect(nothing.contains("Nothing to do"), "\(machine.name): \(nothing)")
      }
    }
  }

  /// A backup that is mounted read-only stays what it was, whatever the hub has by now; mounted as a library, it follows
  /// once the library is gone.
  @Test func aBackupThatIsLookedIntoStays() throws {
    try withMachines { place, laptop, desktop in
      try laptop.shell("echo 'my thesis' > thesis && echo monday > day")
      for machine in [laptop, desktop] { try machine.wait() }
      let (backup, mount) = ("\(place.folder.path)/backup.sqlite", try place.folder.folder("looking"))
      try laptop.succeed("backup", backup)
      try laptop.shell("echo friday > day")
      try laptop.succeed("purge", "Documents/thesis", "--yes")
      for machine in [laptop, desktop] { try machine.wait() }
      func sheaf(_ arguments: String...) throws -> String {
        try Command([try SheafProgram.path()] + arguments, environment: laptop.environment).succeed().text
      }
      // Nor does who only asks have it follow the hub.
      for command in [["status"], ["shares"], ["requests"], ["device", "list"], ["check"]] {
        _ = try Command(
          [try SheafProgram.path()] + command + ["--library", backup], environment: laptop.environment
        ).succeed()
      }
      _ = try sheaf("mount", mount, "--library", backup, "--read-only")
      defer { _ = try? sheaf("unmount", mount) }
      let read = "cd '\(mount)/Documents' && cat day thesis"
      // Whatever asks about the account connects it neither.
      for command in ["status", "shares", "requests"] { _ = try sheaf(command, "--library", backup) }
      try desktop.shell("echo saturday > day")
      for machine in [desktop, laptop, desktop] { try machine.wait() }
      #expect(try Command.shell(read).succeed().text == "monday\nmy thesis")
      #expect(try !sheaf("status", "--library", backup).contains("Hub"))
      _ = try sheaf("unmount", mount)
      _ = try sheaf("mount", mount, "--library", backup)
      #expect(try sheaf("status", "--library", backup).contains("of which this one is a copy"))
      #expect(try Command.shell(read).succeed().text == "monday\nmy thesis")
      // It takes the place of the library.
      _ = try sheaf("unmount", mount)
      try laptop.library.unmount()
      try Command(["mv", laptop.library.library, "\(place.folder.path)/aside.sqlite"]).succeed()
      defer { _ = try? Command(["mv", "\(place.folder.path)/aside.sqlite", laptop.library.library]).run() }
      _ = try sheaf("mount", mount, "--library", backup)
      try eventually("it follows the hub", within: .seconds(30)) {
        try Command.shell("cat '\(mount)/Documents/day'").succeed().text == "saturday"
      }
    }
  }

  @Test func whatWasDoneWithoutTheHubIsSentLater() throws {
    try withMachines { place, laptop, desktop in
      try laptop.shell("echo one > both.bin && echo a > gone && mkdir d && echo b > d/kept")
      try expectSame([laptop, desktop], "the beginning")
      try place.hub.stop()
      try laptop.shell("printf 'laptop\\0' > both.bin && rm gone && rm -r d && echo new > offline")
      try desktop.shell(
        "printf 'desktop\\0' > both.bin && mv gone elsewhere && echo more >> d/kept && echo new > offline")
      // The hub is away, and everything works.
      #expect(try laptop.sheaf("sync", "--wait", "2").status == 1)
      let status = try laptop.succeed("status").text
      #expect(status.contains("not connected"), "\(status)")
      _ = try place.serve()
      try expectSame([laptop, desktop], "what was done meanwhile")
      let names = try Command.shell("cd '\(laptop.library.documents)' && ls && cat both*").succeed().text
      for text in ["laptop", "desktop", "offline"] { #expect(names.contains(text), "\(names)") }
      #expect(names.contains("both ("), "\(names)")
      let kept = try Command.shell("cat '\(laptop.library.documents)/d/kept'").succeed().text
      #expect(kept == "b\nmore", "\(kept)")
    }
  }

  /// What others do comes, and what is deleted goes, while a document of this machine has no room at the hub. It takes no
  /// room, and keeps nothing else waiting that has room.
  @Test func aUsedUpQuotaKeepsNothingFromComing() throws {
    try withMachines { place, laptop, desktop in
      try laptop.shell("echo one > notes.md && echo old > old.md")
      try expectSame([laptop, desktop], "the beginning")
      _ = try place.hub.succeed("account", "quota", HubPlace.handle, "300000")
      try laptop.shell("head -c 1000000 /dev/urandom > large && echo small > small")
      try eventually("status says whose quota is used up", within: .seconds(60)) {
        try laptop.succeed("status").text.contains("quota is used up")
      }
      try desktop.shell(
        "echo two >> notes.md && mkdir new && echo new > new/new.md && head -c 200000 /dev/urandom > new/200k")
      let documents = laptop.library.documents
      try eventually("what the other machine did is here", within: .seconds(60)) {
        (try? String(contentsOfFile: "\(documents)/notes.md", encoding: .utf8)) == "one\ntwo\n"
          && (try? String(contentsOfFile: "\(documents)/new/new.md", encoding: .utf8)) == "new\n"
          && (try? Data(contentsOf: URL(filePath: "\(documents)/new/200k")).count) == 200_000
      }
      try eventually("what has room is there", within: .seconds(60)) {
        (try? String(contentsOfFile: "\(desktop.library.documents)/small", encoding: .utf8)) == "small\n"
      }
      try laptop.shell("rm old.md")
      try eventually("what was deleted is gone there", within: .seconds(60)) {
        access("\(desktop.library.documents)/old.md", F_OK) != 0
      }
      #expect(try laptop.sheaf("sync", "--wait", "2").status == 1)
      #expect(try laptop.succeed("status").text.contains("quota is used up"))
      _ = try place.hub.succeed("account", "quota", HubPlace.handle, "none")
      try expectSame([laptop, desktop], "once there is room")
      #expect(try !laptop.succeed("status").text.contains("quota"))
    }
  }

  /// Contents have filled the hub's disk: what is deleted goes there, and what was saved waits.
  @Test(.enabled(if: TestUser.isRoot, "a disk of its own needs root"))
  func aHubWhoseDiskIsFullTakesDeletions() throws {
    try withMachines { place, laptop, desktop in
      let disk = try LoopFileSystem(below: place.folder, mebibytes: 32)
      defer { disk.detach() }
      try laptop.shell("echo old > old.md")
      try expectSame([laptop, desktop], "the beginning")
      try place.hub.stop()
      let hub = place.hub.hubFolder
      try Command.shell("mv '\(hub)' '\(disk.mountpoint)/hub' && ln -s '\(disk.mountpoint)/hub' '\(hub)'").succeed()
      _ = try place.serve()
      let ballast = "\(disk.mountpoint)/ballast"
      try Command.shell(
        "fallocate -l $(($(stat -fc '%a * %S' '\(disk.mountpoint)') - 2500000)) '\(ballast)'"
      ).succeed()
      try laptop.shell("echo small > small")
      try eventually("status says that the hub's disk is full", within: .seconds(60)) {
        try laptop.succeed("status").text.contains("the hub's disk has no room")
      }
      func sync() throws -> String {
        try Command(["getfattr", "--only-values", "-n", "user.sheaf.sync", "\(laptop.library.documents)/small"])
          .succeed().text
      }
      #expect(try sync() == "waiting")
      try laptop.shell("rm old.md")
      try eventually("what was deleted is gone there", within: .seconds(60)) {
        access("\(desktop.library.documents)/old.md", F_OK) != 0
      }
      #expect(access("\(desktop.library.documents)/small", F_OK) != 0)
      unlink(ballast)
      try expectSame([laptop, desktop], "once there is room")
      #expect(try !laptop.succeed("status").text.contains("no room"))
      #expect(try sync() == "synced")
      try place.hub.stop()
    }
  }

  /// Processes are killed in the middle, and the hub begins anew.
  @Test func whoIsKilledGoesOn() throws {
    try withMachines { place, laptop, desktop in
      let seed = UInt64.random(in: 0...UInt64.max)
      var random = SeededRandom(seed: seed)
      for round in 0..<6 {
        // What comes from the other machine meanwhile may keep a folder from going the first time.
        try laptop.shell(
          """
          mkdir -p r\(round) && for i in $(seq 20); do echo $i \(round) > r\(round)/$i; done
          rm -rf r\(round - 2) || rm -rf r\(round - 2)
          """)
        try desktop.shell(
          "echo \(round) >> log.txt; for f in r*/1*; do [ -e \"$f\" ] && mv \"$f\" \"$f.moved\" || true; done")
        for _ in 0..<Int.random(in: 0...4, using: &random) { _ = try laptop.sheaf("sync") }
        let machine = Bool.random(using: &random) ? laptop : desktop
        try machine.library.killServer()
        machine.library.breakMount()
        try machine.mount()
        if round == 3 {
          place.hub.kill()
          _ = try place.serve()
        }
      }
      try expectSame([laptop, desktop], "seed \(seed)")
      let log = try Command.shell("cat '\(laptop.library.documents)/log.txt'").succeed().text
      #expect(log == "0\n1\n2\n3\n4\n5", "\(log) seed \(seed)")
    }
  }

  /// Of a small document the hub lost the bytes, and of a large one some are damaged. All others come, and these too once
  /// the hub has them again.
  @Test func damageAtTheHubKeepsNothingElseBack() throws {
    try withNewMachines { place, laptop, desktop in
      _ = try laptop.succeed("connect", place.link, "--name", "laptop")
      try laptop.mount()
      try laptop.shell(
        """
        echo lost > a; head -c 3000000 /dev/urandom > large
        for n in $(seq 9); do echo $n > b$n; done; head -c 3000000 /dev/urandom > other
        for n in 1 2 3; do head -c 3000000 /dev/urandom > former; tail -c 100 former > '\(laptop.home)/last'$n; done; echo now > former
        """)
      try laptop.wait()
      let former = try laptop.shell("od -An -v -tx1 '\(laptop.home)/last2' | tr -d ' \\n'")
      let database = "\(place.hub.hubFolder)/hub.sqlite"
      func change(_ sql: String) throws {
        try place.hub.stop()
        try Command(["sqlite3", database, sql]).succeed()
        _ = try place.serve()
      }
      let last = try laptop.shell("tail -c 100 large | od -An -v -tx1 | tr -d ' \\n'")
      try change(
        """
        CREATE TABLE kept AS SELECT * FROM chunk_bytes WHERE bytes = CAST('lost\n' AS BLOB)
          OR instr(bytes, x'\(last)') OR instr(bytes, x'\(former)');
        DELETE FROM chunk_bytes WHERE bytes = CAST('lost\n' AS BLOB);
        UPDATE chunk_bytes SET bytes = zeroblob(length(bytes))
          WHERE instr(bytes, x'\(last)') OR instr(bytes, x'\(former)')
        """)
      try connect(desktop, by: laptop)
      let same = "cmp '\(laptop.library.documents)/other' other && cat b*"
      try eventually("the others are here", within: .seconds(60)) {
        try Command.shell("cd '\(desktop.library.documents)' && timeout 5 bash -c \"\(same)\"").run().text
          == (1...9).map { "\($0)" }.joined(separator: "\n")
      }
      try eventually("the damage is told", within: .seconds(60)) {
        try desktop.succeed("status").text.contains("the hub's store has these contents no more, or damaged")
      }
      // The first answer with damaged contents breaks off.
      try eventually("it is connected", within: .seconds(60)) {
        try desktop.sheaf("status").text.contains("connected with")
      }
      // Of a history all but the damaged version comes.
      try eventually("the other versions are here", within: .seconds(60)) {
        try desktop.shell("ls .versions/former | wc -l") == "3"
      }
      try change(
        """
        DELETE FROM chunk_bytes WHERE (zone, hash) IN (SELECT zone, hash FROM kept);
        INSERT INTO chunk_bytes SELECT * FROM kept; DROP TABLE kept
        """)
      for command in ["--pause", "--resume"] { try desktop.succeed("sync", command) }
      try expectSame([laptop, desktop], "once the hub has them again")
    }
  }

  /// Some editors give the document the name of a backup before they write it anew. Others hear of one save.
  @Test func aBackupBesideADocumentIsNoRename() throws {
    try withMachines { place, laptop, desktop in
      try laptop.shell("echo one > doc.txt")
      try expectSame([laptop, desktop], "the beginning")
      let save = """
        import os, time
        os.rename("doc.txt", "doc.txt~"); time.sleep(0.3)
        open("doc.txt", "w").write("two\\n")
        """
      try laptop.shell("python3 -c '\(save)'")
      try expectSame([laptop, desktop], "the save", travelling: true)
      #expect(try desktop.shell("ls; cat doc.txt") == "doc.txt\ntwo")
      let activity = try desktop.succeed("activity").text
      #expect(!activity.contains("renamed"), "\(activity)")
    }
  }

  /// At each step of a replica its process is killed, the step fails, or the disk is full.
  @Test(arguments: ["begin", "commit", "committed"])
  func whatFailsIsDoneAgain(_ point: String) throws {
    // Which step it is depends on what comes first: the log, the feed, or what was planned.
    let faults = ["kill:4"] + (point == "committed" ? [] : ["full:4"] + (2...6).map { "fail:\($0)" })
    try withMachines { _, laptop, desktop in
      for round in faults.indices {
        try laptop.shell(
          """
          mkdir -p \(round)/a/b && cd \(round) && echo one > a/b/one && echo two > a/two && echo x > x && echo y > y
          """)
      }
      try expectSame([laptop, desktop], "the beginning")
      for (round, fault) in faults.enumerated() {
        try laptop.library.unmount()
        // A folder goes and another one comes, two names change hands, and a document has a new version.
        try desktop.shell(
          """
          cd \(round) && mv x z && mv y x && mv z y && mkdir c && mv a/b/one c/uno && rm -r a/b && echo more >> a/two
          ln a/two c/due
          """)
        try desktop.wait()
        // It may be killed before the command hears of its mount.
        _ = try laptop.library.tryMount(
          environment: ["HOME": laptop.home, "XDG_STATE_HOME": nil, "SHEAF_FAULT": "replica.\(point):\(fault)"])
        if fault.hasPrefix("kill") {
          try eventually("the process is killed", within: .seconds(60)) { laptop.library.server == nil }
          laptop.library.breakMount()
          try laptop.mount()
        }
        try expectSame([laptop, desktop], "replica.\(point):\(fault)")
      }
    }
  }

  /// A step fails while the hub is reached, and nothing else is left to be asked of it: it is connected all the same.
  @Test func aLateFailureIsForgotten() throws {
    try withMachines { _, laptop, desktop in
      try laptop.shell("echo one > a")
      try expectSame([laptop, desktop], "the beginning")
      for number in 15..<18 {
        try laptop.library.unmount()
        _ = try laptop.library.tryMount(
          environment: ["HOME": laptop.home, "XDG_STATE_HOME": nil, "SHEAF_FAULT": "replica.commit:fail:\(number)"])
        for turn in 0..<8 {
          try desktop.shell("echo \(number) \(turn) > a")
          try desktop.wait()
          // `sheaf sync` would ask the hub, and find it there.
          try eventually("\(number): turn \(turn) is here, and the hub is reached", within: .seconds(20)) {
            try laptop.shell("cat a") == "\(number) \(turn)" && !laptop.succeed("status").text.contains("Problem")
          }
        }
      }
      try expectSame([laptop, desktop], "the end")
    }
  }

  /// The machine's key lies outside of its library, which is put back to an earlier state, as by a backup.
  @Test func aLibraryThatWasPutBackLosesNothing() throws {
    try withMachines { _, laptop, desktop in
      try laptop.shell("for i in 1 2 3; do echo old > f$i; done")
      try expectSame([laptop, desktop], "the beginning")
      try laptop.library.unmount()
      let file = laptop.library.library
      try Command(["cp", file, "\(laptop.home)/earlier"]).succeed()
      try laptop.mount()
      try laptop.shell("for i in 4 5 6; do echo between > f$i; done; echo between > f1; rm f2")
      try expectSame([laptop, desktop], "what the library does not know later")
      try laptop.library.unmount()
      try Command(["cp", "\(laptop.home)/earlier", file]).succeed()
      try laptop.mount()
      try laptop.shell("for i in 7 8 9; do echo after > f$i; done; echo after > f3")
      try expectSame([laptop, desktop], "the end")
      let texts = try Command.shell("cd '\(desktop.library.documents)' && grep -c . f[13456789] && cat f3 f5 f9")
        .succeed()
      #expect(texts.text.hasSuffix("after\nbetween\nafter"), "\(texts.text)")
    }
  }

  @Test func anotherHubGetsEverything() throws {
    try withMachines { _, laptop, _ in
      try laptop.shell("mkdir d && echo one > d/a && echo two > d/a && echo b > b && ln -s b link")
      try laptop.wait()
      _ = try laptop.succeed("disconnect")
      let other = try HubPlace()
      _ = try other.serve()
      _ = try laptop.succeed("connect", other.link, "--name", "laptop")
      let third = try Machine("third", other)
      defer { try? third.library.tearDown() }
      let link = try laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
      _ = try third.succeed("connect", link, "--name", "third")
      try third.mount()
      try expectSame([laptop, third], "another hub")
      #expect(try Command.shell("cat '\(third.library.documents)/d/a'").succeed().text == "two")
    }
  }

  /// What never travels is no reason for a folder to come back, but for files that would be gone for good.
  @Test func aFolderGoesWithItsTemporaryFiles() throws {
    try withMachines { _, laptop, desktop in
      try laptop.shell("mkdir d e && echo one > d/a && echo swap > d/.a.swp && echo two > e/b && mkdir e/node_modules")
      try laptop.shell("echo big > e/node_modules/module")
      try expectSame([laptop, desktop], "the beginning", travelling: true)
      try desktop.shell("rm -r d e")
      for machine in [desktop, laptop, desktop] { try machine.wait() }
      #expect(access("\(laptop.library.documents)/d", F_OK) != 0)
      let module = try Command.shell("cat '\(laptop.library.documents)/e/node_modules/module'").succeed().text
      #expect(module == "big")
      #expect(access("\(laptop.library.documents)/e/b", F_OK) != 0)
    }
  }

  /// By mknod(2), or by a program that was in the middle of its first save when the machine ended.
  @Test func whatNobodyClosedTravelsToo() throws {
    try withMachines { _, laptop, desktop in
      try laptop.shell("python3 -c 'import os; os.mknod(\"made\")'")
      let made = open("\(laptop.library.documents)/begun", O_CREAT | O_WRONLY, 0o600)
      try #require(made >= 0)
      try laptop.library.killServer()
      close(made)
      laptop.library.breakMount()
      try laptop.mount()
      let held = open("\(laptop.library.documents)/held", O_CREAT | O_WRONLY, 0o600)
      try #require(held >= 0)
      try expectSame([laptop, desktop], "empty documents")
      #expect(try desktop.shell("stat -c '%n %s' *") == "begun 0\nheld 0\nmade 0")
      #expect(write(held, "held", 4) == 4)
      close(held)
      try desktop.shell("echo two > begun && echo two > made")
      try expectSame([laptop, desktop], "the next versions")
      #expect(try laptop.shell("cat begun made held") == "two\ntwo\nheld")
    }
  }

  /// Whoever empties a document may be about to write it, so that version ends a moment later.
  @Test func whatWasEmptiedIsSent() throws {
    try withMachines { _, laptop, desktop in
      try laptop.shell("echo one > a; echo one > b")
      try expectSame([laptop, desktop], "the beginning")
      try laptop.shell(": > a; : > b")
      for name in ["a", "b"] {
        try eventually("\(name) is empty at the other machine", within: .seconds(30)) {
          var status = stat()
          return stat("\(desktop.library.documents)/\(name)", &status) == 0 && status.st_size == 0
        }
      }
      // The next save by the same shell is based on that.
      let shell = """
        echo one > c; \(try SheafProgram.path()) sync --wait 60 --library '\(laptop.library.library)' > /dev/null
        : > c; while [ "$(getfattr --only-values -n user.sheaf.version c)" -lt 2 ] \
          || [ "$(getfattr --only-values -n user.sheaf.sync c)" != synced ]; do read -t 0.2 < <(:) || true; done
        echo two > c
        """
      try laptop.shell("echo two > a; echo two > b; \(shell)")
      try expectSame([laptop, desktop], "the next saves")
      #expect(try desktop.shell("ls; cat a b c") == "a\nb\nc\ntwo\ntwo\ntwo")
    }
  }

  /// Something else answered in the hub's place for a moment, by another key.
  @Test func whoSawAnotherKeyComesBack() throws {
    try withMachines { place, laptop, desktop in
      try laptop.shell("echo one > a")
      try expectSame([laptop, desktop], "the beginning")
      let files = "cd '\(place.hub.hubFolder)'; cp certificate.pem key.pem '\(place.folder.path)'"
      try place.hub.stop()
      try Command.shell(
        """
        \(files); openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem \
          -out certificate.pem -days 9 -subj /CN=other -addext subjectAltName=IP:127.0.0.1 2>&1
        """
      ).succeed()
      _ = try place.serve()
      try eventually("it is noticed", within: .seconds(60)) {
        try laptop.succeed("status").text.contains("shows another key")
      }
      try place.hub.stop()
      try Command.shell(
        "cd '\(place.hub.hubFolder)' && cp '\(place.folder.path)'/*.pem . && chmod 600 key.pem"
      ).succeed()
      _ = try place.serve()
      try laptop.shell("echo two > b")
      for machine in [laptop, desktop] {
        try eventually("\(machine.name) is connected", within: .seconds(90)) {
          try machine.succeed("status").text.contains("connected with")
        }
      }
      try expectSame([laptop, desktop], "with the right key")
    }
  }

  @Test func aMachineThatWasRemovedKeepsWhatItHas() throws {
    try withMachines { place, laptop, desktop in
      try laptop.shell("echo one > a")
      try expectSame([laptop, desktop], "the beginning")
      _ = try laptop.succeed("device", "remove", "desktop")
      try desktop.shell("echo two > b")
      try eventually("the removed machine says so", within: .seconds(60)) {
        try desktop.succeed("status").text.contains("Problem")
      }
      #expect(try Command.shell("cat '\(desktop.library.documents)/a'").succeed().text == "one")
      let refused = try desktop.sheaf("disconnect")
      #expect(refused.status == 1 && refused.errorText.contains("--discard-unsent"), "\(refused)")
      _ = try desktop.succeed("disconnect", "--discard-unsent")
      #expect(try Command.shell("cat '\(desktop.library.documents)/b'").succeed().text == "two")
      // It comes back by a new link, and what it has goes up.
      let link = try laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
      _ = try desktop.succeed("connect", link, "--name", "desktop")
      try expectSame([laptop, desktop], "connected anew")
      #expect(try Command.shell("cat '\(laptop.library.documents)/b'").succeed().text == "two")
    }
  }

  /// A save that is stored after its program closed the file is that program's all the same: nothing goes beside.
  @Test func aProgramKnowsItsLargeSaves() throws {
    try withMachines { _, laptop, desktop in
      try laptop.shell(
        """
        python3 -c '
        import os
        for i in range(4):
            with open("large", "wb") as f: f.write(b"%d" % i + os.urandom(9_000_000))'
        """)
      try expectSame([laptop, desktop], "large saves")
      #expect(try laptop.shell("ls") == "large" && laptop.shell("head -c 1 large") == "3")
      #expect(try laptop.succeed("versions", "Documents/large").text.split(separator: "\n").count == 5)
    }
  }

  /// Whoever renames what the hub put beside a document over it has decided, also where that was saved.
  @Test(arguments: [false, true]) func whatIsRenamedOverTheDocumentIsItsNextVersion(_ isElsewhere: Bool) throws {
    try withMachines { _, laptop, desktop in
      try laptop.shell("mkdir m && head -c 3000 /dev/urandom > m/p.png")
      try expectSame([laptop, desktop], "the beginning")
      _ = try laptop.succeed("sync", "--pause")
      try laptop.shell("head -c 5000 /dev/urandom > m/p.png")
      try desktop.shell("head -c 6000 /dev/urandom > m/p.png")
      try desktop.wait()
      _ = try laptop.succeed("sync", "--resume")
      // Nobody reads the document: what a program reads, it knows.
      for machine in [laptop, desktop] { try machine.wait() }
      try #require(try laptop.shell("stat -c %s m/p.png m/p\\ *.png") == "6000\n5000")
      try (isElsewhere ? desktop : laptop).shell("mv m/p\\ *.png m/p.png")
      try expectSame([laptop, desktop], "what was chosen")
      for machine in [laptop, desktop] {
        #expect(try machine.shell("stat -c '%s %n' m/*") == "5000 m/p.png")
        #expect(try machine.succeed("versions", "Documents/m/p.png").text.split(separator: "\n").count == 4)
      }
    }
  }

  @Test func itsJSONIsAsDescribed() throws {
    try withMachines { place, laptop, desktop in
      func check(_ arguments: [String], _ schema: String) throws {
        let output = try SheafProgram.run(
          arguments + ["--json", "--library", laptop.library.library],
          environment: ["HOME": laptop.home, "XDG_STATE_HOME": nil])
        #expect(output.status == 0, "\(arguments): \(output)")
        #expect(try JSONSchema(schema).problems(in: output.output) == [], "\(arguments): \(output.text)")
      }
      try check(["sync", "--wait", "60"], "sync")
      try check(["status"], "status")
      try check(["keep", "Documents"], "keep")
      try check(["free", "Documents"], "free")
      try check(["device", "list"], "device-list")
      try check(["device", "add"], "device-add")
      try check(["device", "add", "--revoke"], "device-add")
      try check(["device", "remove", "desktop"], "device-remove")
      try check(["disconnect", "--discard-unsent"], "disconnect")
      try check(["connect", try place.hub.succeed("account", "link", HubPlace.handle), "--name", "again"], "connect")
    }
  }
}
