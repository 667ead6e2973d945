import Foundation
import Glibc
import MountKit
import Testing

/// What two machines with mounts survive: a full disk, a copied library, programs that write all the time.
@Suite(.serialized) struct ReplicaFaultProgramTests {
  private func withMachines(
    disk: String? = nil, _ body: (HubPlace, ReplicaMachine, ReplicaMachine) throws -> Void
  ) throws {
    let place = try HubPlace()
    _ = try place.serve()
    let (laptop, desktop) = (
      try ReplicaMachine("laptop", place, disk: disk), try ReplicaMachine("desktop", place)
    )
    defer { for machine in [laptop, desktop] { try? machine.library.tearDown() } }
    try laptop.succeed("connect", place.link, "--name", "laptop")
    try laptop.mount()
    let link = try laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
    try desktop.succeed("connect", link, "--name", "desktop")
    try desktop.mount()
    try body(place, laptop, desktop)
    for machine in [laptop, desktop] { #expect(try machine.library.check() == []) }
  }

  private struct Connected: Decodable {
    let movedBytes: Int64
  }

  private func expectSame(_ machines: [ReplicaMachine]) throws {
    for machine in machines + machines { try machine.wait() }
    let trees = try machines.map { try $0.tree() }
    #expect(trees[0] == trees[1])
  }

  @Test(.enabled(if: TestUser.isRoot, "a small disk needs root"))
  func whatDoesNotFitWaitsUntilThereIsRoomAndTheRestGoesOn() throws {
    try withTemporaryFolder { folder in
      let disk = try LoopFileSystem(below: folder, mebibytes: 96)
      defer { disk.detach() }
      try withMachines(disk: disk.mountpoint) { _, laptop, desktop in
        try desktop.shell("echo one > small")
        try expectSame([laptop, desktop])
        // Others fill the disk but for 16 MiB.
        let room = "\(disk.mountpoint)/others"
        try Command.shell(
          "fallocate --length $(($(stat -f -c '%a * %S' '\(disk.mountpoint)') - (16 << 20))) '\(room)'"
        ).succeed()
        try desktop.shell("head -c 40000000 /dev/urandom > large")
        try desktop.shell("echo two > small; mkdir d; echo more > d/more; echo last > zz")
        try desktop.wait()
        try eventually("the rest arrives", within: .seconds(120)) {
          (try? laptop.shell("cat small d/more zz")) == "two\nmore\nlast"
        }
        try eventually("the status names what does not fit", within: .seconds(120)) {
          try laptop.succeed("status").text.contains("Documents/large:")
        }
        // Its name and its size are there. Whoever reads it hears why its contents are not.
        #expect(try laptop.shell("stat -c %s large") == "40000000")
        #expect(try laptop.shell("getfattr --only-values -n user.sheaf.local large") == "remote")
        let read = try Command.shell("cat '\(laptop.library.documents)/large' > /dev/null").run()
        #expect(read.status == 1 && read.errorText.contains("No space left on device"), "\(read)")
        // What is saved on the full machine reaches the other one.
        try laptop.shell("echo three > small")
        try eventually("the other machine has it", within: .seconds(120)) {
          try desktop.shell("cat small") == "three"
        }
        for machine in [desktop, laptop] { try machine.wait() }
        // What does not fit is not fetched again and again.
        let moved = try JSONDecoder().decode(Connected.self, from: Data(laptop.succeed("sync", "--json").output))
        #expect(moved.movedBytes < 60_000_000)
        #expect(unlink(room) == 0)
        // It comes by itself within a minute: nobody reads it, and nothing else happens.
        try eventually("what did not fit is there", within: .seconds(60)) {
          try laptop.shell("getfattr --only-values -n user.sheaf.local large") == "here"
        }
        try eventually("the status names it no more", within: .seconds(30)) {
          try !laptop.succeed("status").text.contains("Documents/large:")
        }
        try expectSame([laptop, desktop])
        #expect(try laptop.shell("sha256sum < large") == desktop.shell("sha256sum < large"))
        try laptop.library.unmount()
        #expect(try laptop.library.check() == [])
        try laptop.mount()
      }
    }
  }

  /// A copy of a library, such as a backup that somebody mounts to look into it, leaves the library's connection alone. It
  /// takes the library's place once that is gone.
  @Test func aCopyIsNoDeviceWhileTheLibraryIsThere() throws {
    try withMachines { place, laptop, desktop in
      try laptop.shell("echo one > one")
      try expectSame([laptop, desktop])
      let copies = try ["copy", "second"].map { try ReplicaMachine($0, place, home: laptop.home) }
      defer { for copy in copies { try? copy.library.tearDown() } }
      let (copy, second) = (copies[0], copies[1])
      for copy in copies { _ = try laptop.succeed("backup", copy.library.library) }
      try laptop.shell("echo first > two")
      try expectSame([laptop, desktop])
      try copy.mount()
      try copy.shell("echo copy > three; rm one")
      let file = laptop.library.library
      #expect(try copy.succeed("status").text.contains("is used by the library \(file), of which this one is a copy"))
      for words in [["sync"], ["device", "add"]] {
        let refused = try copy.sheaf(words)
        #expect(refused.status != 0 && refused.errorText.contains("move the other file away"), "\(words): \(refused)")
      }
      try laptop.shell("echo more > four")
      try expectSame([laptop, desktop])
      #expect(try desktop.shell("cat one two four; ls") == "one\nfirst\nmore\nfour\none\ntwo")
      // By whatever name it is called, and wherever it was moved, the library is the device.
      try laptop.library.unmount()
      try Command(["mv", file, "\(file).moved"]).succeed()
      try Command(["ln", "-s", "\(file).moved", file]).succeed()
      try laptop.mount()
      try laptop.shell("echo linked > five")
      try expectSame([laptop, desktop])
      try copy.library.unmount()
      try copy.mount()
      #expect(try copy.succeed("status").text.contains("\(file).moved, of which this one is a copy"))
      try copy.library.unmount()
      // What was put back to its place is the library, and the former file a copy.
      try laptop.library.unmount()
      try Command.shell("cd '\(place.folder.path)' && rm '\(file)' && cp '\(copy.library.library)' '\(file)'").succeed()
      let former = try ReplicaMachine("former", place, home: laptop.home)
      try Command(["mv", "\(file).moved", former.library.library]).succeed()
      try laptop.mount()
      try laptop.wait()
      try former.mount()
      #expect(try former.succeed("status").text.contains("\(file), of which this one is a copy"))
      try former.library.tearDown()
      try expectSame([laptop, desktop])
      // Without it, the first copy that asks is, and no other one.
      try laptop.library.unmount()
      try Command(["rm", file]).succeed()
      try copy.mount()
      try copy.wait()
      try second.mount()
      #expect(try second.succeed("status").text.contains("\(copy.library.library), of which this one is a copy"))
      try second.library.unmount()
      try expectSame([copy, desktop])
      // Moved to another place, it still is, also with another library in its former one.
      try copy.library.unmount()
      try Command(["mv", copy.library.library, file]).succeed()
      try Command.shell("rm '\(copy.library.library)'-*").succeed()
      _ = try copy.succeed("account", "add", "zoe@hub.example")
      try laptop.mount()
      try expectSame([laptop, desktop])
      #expect(try desktop.shell("cat two three four five; ls") == "first\ncopy\nmore\nlinked\nfive\nfour\nthree\ntwo")
    }
  }

  /// Two copies that run with one key in spite of that: each is the only one that it can see.
  @Test func ofTwoCopiesThatRunTheFirstOneStopsAndBothKeepWhatTheyHave() throws {
    try withMachines { place, laptop, desktop in
      try laptop.shell("echo one > one")
      try expectSame([laptop, desktop])
      try laptop.library.unmount()
      let copy = try ReplicaMachine("copy", place, home: laptop.home)
      defer { try? copy.library.tearDown() }
      try Command(["cp", laptop.library.library, copy.library.library]).succeed()
      // As where each is in a container of its own.
      let holder = "rm '\(laptop.home)'/.local/state/sheaf/devices/*.library"
      try laptop.mount()
      try laptop.shell("echo first > two")
      try expectSame([laptop, desktop])
      try Command.shell(holder).succeed()
      try copy.mount()
      try copy.shell("echo copy > three")
      try eventually("what the copy saved is at the other machine", within: .seconds(60)) {
        (try? desktop.shell("cat three")) == "copy"
      }
      // The first one has more to send: it stops, and says why.
      try laptop.shell("echo more > four")
      try eventually("the first one says that there are two", within: .seconds(60)) {
        try laptop.succeed("status").text.contains("used by a copy of this library")
      }
      #expect(access("\(desktop.library.documents)/four", F_OK) != 0)
      #expect(try laptop.shell("cat one two four") == "one\nfirst\nmore")
      // The copy ends; the first one goes on where its process begins anew.
      try copy.shell("echo still > five")
      try copy.wait()
      try copy.library.unmount()
      try laptop.library.unmount()
      try laptop.mount()
      try expectSame([laptop, desktop])
      #expect(try desktop.shell("cat one two three four five") == "one\nfirst\ncopy\nmore\nstill")
    }
  }

  /// Beside the library of which it is a copy, a library becomes a device of its own, and none again.
  @Test func aCopyThatConnectsAnewLeavesTheFirstOneAlone() throws {
    try withMachines { place, laptop, desktop in
      try laptop.shell("echo one > one")
      try expectSame([laptop, desktop])
      try laptop.library.unmount()
      let copy = try ReplicaMachine("copy", place, home: laptop.home)
      defer { try? copy.library.tearDown() }
      try Command(["cp", "-a", laptop.library.library, copy.library.library]).succeed()
      let link = try desktop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
      _ = try copy.succeed("disconnect", "--discard-unsent")
      _ = try copy.succeed("connect", link, "--as", HubPlace.handle, "--name", "copy")
      try copy.mount()
      try laptop.mount()
      try laptop.shell("echo first > two")
      try copy.shell("echo copy > three")
      try expectSame([laptop, desktop, copy])
      let devices = try desktop.succeed("device", "list").text
      for name in ["laptop", "desktop", "copy"] { #expect(devices.contains(name), "\(devices)") }
      _ = try copy.succeed("disconnect")
      try laptop.library.unmount()
      try laptop.mount()
      try laptop.shell("echo more > four")
      try expectSame([laptop, desktop])
      #expect(try desktop.shell("cat one two three four") == "one\nfirst\ncopy\nmore")
      // The key that nobody uses any more is gone, and the other one is there.
      let keys = try Command.shell("ls '\(laptop.home)'/.local/state/sheaf/devices/*.json | wc -l").succeed().text
      #expect(keys == "1")
    }
  }

  /// All of a machine's disk is put back: its library, and what lies beside its key.
  @Test func aMachineThatWasPutBackAsAWholeLosesNothing() throws {
    try withMachines { place, laptop, desktop in
      try laptop.shell("echo one > one")
      try expectSame([laptop, desktop])
      try laptop.library.unmount()
      let (file, kept) = (laptop.library.library, "\(place.folder.path)/kept")
      try Command.shell("mkdir '\(kept)'; cp -a '\(laptop.home)' '\(kept)/home'; cp '\(file)' '\(kept)/library'")
        .succeed()
      try laptop.mount()
      try laptop.shell("echo between > two; echo between > three; rm one")
      try expectSame([laptop, desktop])
      try laptop.library.unmount()
      try Command.shell(
        "rm -r '\(laptop.home)'; cp -a '\(kept)/home' '\(laptop.home)'; cp '\(kept)/library' '\(file)'"
      ).succeed()
      try laptop.mount()
      // The serials of these were given to others before.
      try laptop.shell("echo after > four; echo after > five; echo more > six")
      try expectSame([laptop, desktop])
      #expect(try desktop.shell("cat two three four five six") == "between\nbetween\nafter\nafter\nmore")
    }
  }

  /// What was done at both machines while one was disconnected is there on both, each deed for itself. What the other
  /// machine did stays done, what is destroyed stays so, and what is missing here comes back.
  @Test func whoIsConnectedAgainGoesOnWithWhatBothHad() throws {
    try withMachines { place, laptop, desktop in
      try laptop.shell(
        """
        mkdir in out && for i in moved mode attribute name purged gone saved both kept; do echo $i > in/$i; done
        ln -s one in/link
        """)
      try expectSame([laptop, desktop])
      try desktop.succeed("disconnect", "--as", HubPlace.handle)
      try laptop.shell(
        """
        mv in/moved out/; chmod 600 in/mode; setfattr -n user.k -v new in/attribute; mv in/name in/renamed; rm in/gone
        echo more >> in/saved; echo laptop > in/both; ln -sfn two in/link; rm in/purged
        """)
      try laptop.succeed("purge", "Documents/in/purged", "--yes")
      try laptop.wait()
      try desktop.shell("echo new > in/new; mv in/both in/ours; chmod 640 in/saved; rm in/kept")
      let link = try laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
      try desktop.succeed("connect", link, "--name", "desktop", "--as", HubPlace.handle, "--yes")
      try expectSame([laptop, desktop])
      for machine in [laptop, desktop] {
        let tree = try machine.shell("find in out -printf '%p %m\\n' | sort")
        #expect(
          tree == """
            in 755
            in/attribute 644
            in/kept 644
            in/link 777
            in/mode 600
            in/new 644
            in/ours 644
            in/renamed 644
            in/saved 640
            out 755
            out/moved 644
            """)
        #expect(try machine.shell("cat in/saved in/ours; readlink in/link") == "saved\nmore\nlaptop\ntwo")
        #expect(try machine.shell("getfattr --only-values -n user.k in/attribute") == "new")
        #expect(try !machine.succeed("deleted").text.contains("purged"))
      }
      // It was saved on no other machine, so nothing is told of it.
      let log = try laptop.succeed("activity", "--limit", "100").text
      #expect(!log.contains("again") && !log.contains("(2)"), "\(log)")
    }
  }

  /// A program keeps a document mapped, and another one appends to one, while the other machine saves both.
  @Test func whatProgramsHoldOpenIsComparedWhenTheyCloseIt() throws {
    try withMachines { place, laptop, desktop in
      try laptop.shell("for i in 1 2 3 4 5 6 7 8 9; do echo line $i; done > mapped.md; cp mapped.md appended.md")
      try expectSame([laptop, desktop])
      let (written, end) = ("\(laptop.home)/written", "\(laptop.home)/end")
      try Command(["mkfifo", written, end]).succeed()
      let program = try BackgroundCommand(
        Command(
          [
            "/usr/bin/python3", "-c",
            """
            import mmap, os, sys
            mapped = os.open("mapped.md", os.O_RDWR)
            memory = mmap.mmap(mapped, 0)
            memory[0:4] = b"LINE"
            memory.flush()
            appended = os.open("appended.md", os.O_WRONLY | os.O_APPEND)
            os.write(appended, b"line 10\\n")
            open(sys.argv[1], "w").close()
            open(sys.argv[2]).close()
            memory[0:4] = b"Line"
            os.write(appended, b"line 11\\n")
            memory.flush()
            """, written, end,
          ], in: laptop.library.documents))
      defer { program.end() }
      try Command(["cat", written]).succeed()
      try desktop.shell("sed -i 's/line 5/other 5/' mapped.md appended.md; echo also > new")
      try desktop.wait()
      try eventually("the rest arrives", within: .seconds(60)) {
        (try? laptop.shell("cat new")) == "also"
      }
      #expect(try laptop.shell("head -n 1 mapped.md; tail -n 1 appended.md") == "LINE 1\nline 10")
      try Command.shell(": > '\(end)'").succeed()
      try program.wait(limit: .seconds(60))
      try expectSame([laptop, desktop])
      let mapped = try laptop.shell("cat mapped*.md"), appended = try laptop.shell("cat appended*.md")
      #expect(mapped.contains("Line 1") && mapped.contains("other 5"), "\(mapped)")
      #expect(appended.contains("line 11") && appended.contains("other 5"), "\(appended)")
      #expect(try laptop.shell("ls").split(separator: "\n") == ["appended.md", "mapped.md", "new"])
    }
  }
}
