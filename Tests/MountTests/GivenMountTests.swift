import Foundation
import Glibc
import MountKit
import Testing

/// Mounts that root gives to a user, who owns the folders on the way and puts symbolic links there.
@Suite(.serialized, .enabled(if: TestUser.isRoot, "mounting for another user needs root")) struct GivenMountTests {
  /// A library with a mount of root's, a folder of the user's, and one of root's that the user would like to have
  /// covered.
  private struct Place {
    let library: MountedLibrary
    let user: TestUser
    let theirs: String
    let roots: String

    /// Asks for a mount by the command, which looks at the path first.
    func mount(_ path: String) throws -> Command.Output {
      try library.sheaf("mount", path, "--library", library.library, "--as", library.handle, "--for", user.name)
    }

    /// Asks the process that mounts, which nobody looks for.
    func request(_ path: String) throws -> Command.Output {
      let body =
        #"{"mountpoint":"\#(path)","account":"\#(library.handle)","readOnly":false,"allowOther":false,"#
        + #""forUser":"\#(user.name)","options":[]}"#
      return try Command([
        "curl", "--silent", "--max-time", "30", "--unix-socket", library.library + "-socket", "--request", "POST",
        "--header", "content-type: application/json", "--data", body, "http://sheaf/v1/mounts",
      ]).succeed()
    }

    /// The mount points below the test's folder, without root's own.
    func mounts() throws -> [String] {
      MountedLibrary.mounts
        .map { String($0.split(separator: " ")[1]) }
        .filter { $0.hasPrefix(library.folder.path + "/") && $0 != library.mountpoint }
    }
  }

  private func withPlace(_ body: (Place) throws -> Void) throws {
    let user = try TestUser.ordinary()
    try withMount { library in
      let theirs = try library.folder.folder("theirs", for: user)
      let roots = try library.folder.folder("roots")
      try body(Place(library: library, user: user, theirs: theirs, roots: roots))
    }
  }

  @Test func whatLeadsElsewhereIsRefused() throws {
    try withPlace { place in
      try Command.shell(
        "mkdir own; ln -s '\(place.roots)' link; ln -s '\(place.library.folder.path)' out", as: place.user,
        in: place.theirs
      ).succeed()
      try Command(["mkdir", "\(place.theirs)/given"]).succeed()
      for (name, reason) in [
        ("link", "is a symbolic link, or lies behind one"), ("out/roots", "is a symbolic link, or lies behind one"),
        ("given", "does not belong to \(place.user.name)"),
      ] {
        let path = "\(place.theirs)/\(name)"
        let refused = try place.mount(path)
        #expect(refused.status == 1 && refused.errorText.contains("\(path): \(reason)"), "\(refused)")
        let answer = try place.request(path).text
        #expect(answer.contains(reason), "\(answer)")
        #expect(try place.mounts() == [])
      }
      for path in ["\(place.theirs)/own/../own", "own", ""] {
        let answer = try place.request(path).text
        #expect(answer.contains("\"kind\""), "\(answer)")
      }
      // Their own folder, and root's where only root can have put it, also by a link of root's.
      #expect(symlink(place.roots, "\(place.library.folder.path)/root-link") == 0)
      for (given, path) in [
        ("\(place.theirs)/own", "\(place.theirs)/own"), ("\(place.library.folder.path)/root-link", place.roots),
      ] {
        let output = try place.mount(given)
        #expect(output.status == 0, "\(output)")
        #expect(try place.mounts() == [path])
        try place.library.sheafSucceeds("unmount", path)
      }
    }
  }

  /// Else a user could have root's library mounted for them, or another's mount taken away.
  @Test func rootFollowsNoLinkOfTheUsersToALibraryOrAMount() throws {
    try withPlace { place in
      try Command.shell(
        "mkdir own; ln -s '\(place.library.library)' library.sqlite; ln -s '\(place.library.folder.path)' out",
        as: place.user, in: place.theirs
      ).succeed()
      let name = place.library.library.split(separator: "/").last ?? ""
      for path in ["library.sqlite", "out/\(name)"].map({ place.theirs + "/" + $0 }) {
        let refused = try place.library.sheaf(
          "mount", "\(place.theirs)/own", "--library", path, "--as", place.library.handle, "--for", place.user.name)
        #expect(
          refused.status == 1 && refused.errorText.contains("is a symbolic link that others than root can change"),
          "\(refused)")
      }
      let mountpoint = place.library.mountpoint.split(separator: "/").last ?? ""
      let kept = try place.library.sheaf("unmount", "\(place.theirs)/out/\(mountpoint)")
      #expect(kept.status == 1 && kept.errorText.contains("is not mounted"), "\(kept)")
      let copy = try place.library.sheaf("backup", "\(place.theirs)/out/copy", "--library", place.library.library)
      #expect(copy.status == 1 && copy.errorText.contains("is a symbolic link"), "\(copy)")
      #expect(try place.mounts() == [])
      try place.library.shell("ls")
    }
  }

  /// Where the kernel lets users make such a link, it may be any file, and root's process would write to it.
  @Test func rootsLogIsNoFileOfAnotherName() throws {
    try withPlace { place in
      let (library, other) = ("\(place.roots)/other.sqlite", "\(place.roots)/precious")
      try "precious".write(toFile: other, atomically: false, encoding: .utf8)
      try Command(["ln", other, library + "-log"]).succeed()
      let mount = ["mount", try place.library.folder.folder("third"), "--library", library]
      let refused = try SheafProgram.run(mount)
      #expect(
        refused.status == 1 && refused.errorText.contains("\(library)-log: has another name, a hard link"), "\(refused)"
      )
      #expect(try String(contentsOfFile: other, encoding: .utf8) == "precious")
      try Command(["rm", library + "-log"]).succeed()
      #expect(try SheafProgram.run(mount).status == 0)
      try place.library.sheafSucceeds("unmount", mount[1])
    }
  }

  /// Has the user put their folder `place`, and a link to the folder of root's, under one name by turns.
  private func swapper(_ place: Place) throws -> BackgroundCommand {
    let swapper = try BackgroundCommand(
      Command(
        [
          "/usr/bin/python3", "-c",
          """
          import os, sys
          os.chdir(sys.argv[1])
          os.mkdir("place"); os.symlink(sys.argv[2], "link")
          open("ready", "w").close()
          while True:
              for old, new in ("place", "aside"), ("link", "place"), ("place", "link"), ("aside", "place"):
                  try: os.rename(old, new)
                  except OSError: break
          """, place.theirs, place.roots,
        ], as: place.user))
    try eventually("the swapping") { FileManager.default.fileExists(atPath: "\(place.theirs)/ready") }
    return swapper
  }

  @Test func aLinkThatIsSwappedInIsNotFollowed() throws {
    try withPlace { place in
      let swapper = try swapper(place)
      defer { swapper.end() }
      let path = "\(place.theirs)/place"
      for _ in 1...40 {
        _ = try place.mount(path)
        let mounts = try place.mounts()
        #expect(!mounts.contains(place.roots))
        // One that came to lie elsewhere may have gone by itself.
        for mount in mounts { _ = try Command(["umount", "--lazy", mount]).run() }
        try eventually("the end of what was mounted") {
          guard try place.mounts().isEmpty else { return false }
          struct Status: Decodable {
            struct Mount: Decodable {}
            let mounts: [Mount]
          }
          let status = try place.library.sheafSucceeds("status", "--library", place.library.library, "--json")
          return try JSONDecoder().decode(Status.self, from: Data(status.output)).mounts.count == 1
        }
      }
      var status = stat()
      #expect(lstat(place.roots, &status) == 0 && status.st_uid == 0)
    }
  }

  /// Root's copies, which nobody else may read, lie where root put them or nowhere.
  @Test func aBackupIsNotLedElsewhere() throws {
    try withPlace { place in
      let swapper = try swapper(place)
      defer { swapper.end() }
      let path = "\(place.theirs)/place/copy.sqlite"
      var made = 0
      for _ in 1...60 {
        // The process that copies is asked: the command looks at the path before.
        let answer = try Command([
          "curl", "--silent", "--max-time", "30", "--unix-socket", place.library.library + "-socket", "--request",
          "POST", "--header", "content-type: application/json", "--data", #"{"file":"\#(path)"}"#,
          "http://sheaf/v1/backup",
        ]).succeed().text
        if answer.contains("\"result\"") { made += 1 } else { #expect(answer.contains("\"kind\""), "\(answer)") }
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.roots) == [])
        for folder in ["place", "aside"] { unlink("\(place.theirs)/\(folder)/copy.sqlite") }
      }
      #expect(made > 0)
    }
  }

  /// Every thread of the process, since capabilities are a thread's.
  @Test func theProcessOfRootsMountsMayDoWhatTheyNeed() throws {
    try withPlace { place in
      let server = try #require(place.library.server)
      let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(server)/task")
      #expect(threads.count > 1)
      for thread in threads {
        let status = try String(contentsOfFile: "/proc/\(server)/task/\(thread)/status", encoding: .utf8)
        for name in ["CapPrm", "CapEff", "CapBnd"] {
          let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("\(name):") })
          let set = try #require(UInt64(line.split(separator: "\t")[1], radix: 16))
          // CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, SETGID, SETUID, SYS_PTRACE, SYS_ADMIN, SYS_RESOURCE.
          #expect(set & ~0x128_00CF == 0, "\(line)")
          #expect(set & 1 << 21 != 0, "\(line)")
        }
        #expect(status.contains("NoNewPrivs:\t1\n"))
      }
    }
  }

  @Test func rootTakesAwayWhatRootGave() throws {
    try withPlace { place in
      try Command.shell("mkdir own", as: place.user, in: place.theirs).succeed()
      let own = "\(place.theirs)/own"
      let mounted = try place.mount(own)
      #expect(mounted.status == 0, "\(mounted)")
      let refused = try SheafProgram.run(["unmount", own], as: place.user)
      #expect(refused.status == 1, "\(refused)")
      #expect(refused.errorText.contains("\(own): root gave this mount to you, and alone takes it away"), "\(refused)")
      // Nor is another mount of the library theirs.
      let other = try SheafProgram.run(["unmount", place.library.mountpoint], as: place.user)
      #expect(other.status == 1, "\(other)")
      #expect(
        other.errorText.contains("\(place.library.mountpoint): is not the mount that root gave to you"), "\(other)")
      #expect(try place.mounts() == [own])
      try place.library.sheafSucceeds("unmount", own)
    }
  }

  @Test func rootTakesAwayWhatRootGaveToRoot() throws {
    try withPlace { place in
      let (library, second) = (place.library, try place.library.folder.folder("second"))
      for path in [place.roots, second] {
        try library.sheafSucceeds(
          "mount", path, "--library", library.library, "--as", library.handle, "--for", "root")
      }
      #expect(try Set(place.mounts()) == [place.roots, second])
      // Root's commands have the whole library, as ever.
      #expect(
        try library.sheafSucceeds("account", "list", "--library", library.library).text.contains(library.handle))
      for path in [place.roots, second] { try library.sheafSucceeds("unmount", path) }
      #expect(try place.mounts() == [])
    }
  }

  /// Whose process was killed, root's as well, is dead, and is not theirs to clear.
  @Test func aDeadMountOfRootsSaysSo() throws {
    try withPlace { place in
      try Command.shell("mkdir own", as: place.user, in: place.theirs).succeed()
      let own = "\(place.theirs)/own"
      let mounted = try place.mount(own)
      #expect(mounted.status == 0, "\(mounted)")
      try place.library.killServer()
      let refused = try SheafProgram.run(["unmount", own], as: place.user)
      #expect(refused.status == 1 && refused.errorText.contains("the dead mount there cannot be cleared"), "\(refused)")
      #expect(refused.errorText.contains("clear it as root: umount -l \(own)"), "\(refused)")
      try place.library.sheafSucceeds("unmount", own)
    }
  }

  @Test func aMountWhoseFolderWasMovedEndsWithItsProcess() throws {
    try withPlace { place in
      try Command.shell("mkdir -p sub/mnt", as: place.user, in: place.theirs).succeed()
      let output = try place.mount("\(place.theirs)/sub/mnt")
      #expect(output.status == 0, "\(output)")
      // Where the mount was is now, by a link of the user's, another file system of root's.
      let other = "\(place.roots)/mnt"
      try Command(["mkdir", other]).succeed()
      try Command(["mount", "-t", "tmpfs", "none", other]).succeed()
      defer { umount2(other, Int32(MNT_DETACH)) }
      try Command.shell("mv sub moved; ln -s '\(place.roots)' sub", as: place.user, in: place.theirs).succeed()
      let refused = try place.library.sheaf("unmount", "\(place.theirs)/sub/mnt")
      #expect(refused.status == 1, "\(refused)")
      kill(try #require(place.library.server), SIGTERM)
      try eventually("the end of the process", within: .seconds(30)) { place.library.server == nil }
      #expect(try place.mounts() == [other])
    }
  }

  /// What root made for a user, who makes a program of it, runs as the user wherever it goes.
  @Test func programsAreTheUsers() throws {
    try withPlace { place in
      let (library, user) = (place.library, place.user)
      try library.shell("for name in u g both; do echo template >$name; done; mkdir -m 2777 folder")
      let (given, copies) = ("\(place.theirs)/given", "\(library.folder.path)/copies")
      try Command(["mkdir", given], as: user).succeed()
      #expect(try place.mount(given).status == 0)
      defer { _ = try? Command(["umount", "--lazy", given]).run() }
      try Command.shell(
        """
        for name in u g both; do cat /usr/bin/id >$name; done; cp /usr/bin/id folder/made
        chmod 4755 u; chmod 2755 g; chmod 6755 both; chmod 2755 folder/made
        test -u u && test -g g && test -u both && test -g folder/made
        """, as: user, in: "\(given)/Documents"
      ).succeed()
      // As a backup has them, which root makes.
      try Command(["cp", "-a", library.documents, copies]).succeed()
      for name in ["u", "g", "both", "folder/made"] {
        for path in ["\(library.documents)/\(name)", "\(copies)/\(name)"] {
          let facts = try Command(["stat", "-c", "%A %u %g", path]).succeed().text.split(separator: " ")
          #expect(facts[0].contains("s") && facts[1] == "\(user.user)" && facts[2] != "0", "\(path): \(facts)")
        }
      }
    }
  }
}
