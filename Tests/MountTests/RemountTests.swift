import Foundation
import MountKit
import Testing

/// Mounts that come back after their process was killed.
@Suite(.serialized) struct RemountTests {
  private struct Status: Decodable {
    struct Mount: Decodable, Equatable {
      let mountpoint: String
      let account: String
      let readOnly: Bool
    }

    let mounts: [Mount]
    let notMounted: [Mount]
  }

  private func status(_ library: MountedLibrary) throws -> Status {
    let output = try library.sheafSucceeds("status", "--library", library.library, "--json")
    return try JSONDecoder().decode(Status.self, from: Data(output.output))
  }

  @Test func allMountsOfALibraryComeBackAsTheyWere() throws {
    try withMount { library in
      try library.sheafSucceeds("account", "add", "bob@example.com", "--library", library.library)
      let (second, third) = (try library.folder.folder("second"), try library.folder.folder("third"))
      try library.sheafSucceeds(
        "mount", second, "--library", library.library, "--as", "bob@example.com", "--read-only", "-o", "noexec")
      try library.sheafSucceeds("mount", third, "--library", library.library, "--as", library.handle)
      try library.sheafSucceeds("unmount", third)
      let before = try status(library)
      #expect(before.mounts.map(\.mountpoint).sorted() == [library.mountpoint, second].sorted())
      #expect(before.notMounted == [])

      try library.killServer()
      let dead = try status(library)
      #expect(dead.mounts == [])
      #expect(dead.notMounted == before.mounts)
      let text = try library.sheafSucceeds("status", "--library", library.library).text
      #expect(text.contains("\(library.handle), the default account"))
      #expect(text.contains("\(second) for bob@example.com, not mounted any more, though nobody unmounted it"))

      let output = try library.sheafSucceeds("mount", "--all", "--library", library.library, "--json").output
      let made = try JSONDecoder().decode([Status.Mount].self, from: Data(output))
      #expect(made.map(\.mountpoint).sorted() == [library.mountpoint, second].sorted())
      #expect(try status(library).mounts == before.mounts)
      #expect(try status(library).notMounted == [])
      let options = MountedLibrary.mounts
        .first { $0.contains(" \(second) ") }
      #expect(options?.contains("ro,") == true && options?.contains("noexec") == true)
      #expect(
        try library.sheafSucceeds("mount", "--all", "--library", library.library).text
          == "All mounts of \(library.library) are up.")
      let none = try library.sheafSucceeds("mount", "--all", "--library", library.library, "--json").output
      #expect(try JSONDecoder().decode([Status.Mount].self, from: Data(none)) == [])
      try library.sheafSucceeds("unmount", second)
      try library.unmount()
      #expect(
        try library.sheafSucceeds("mount", "--all", "--library", library.library).text
          == "\(library.library) has no mount to make again: none was made, or `sheaf unmount` took it away.")
    }
  }

  /// Another library where the documents were would look like the loss of everything.
  @Test(arguments: [false, true]) func afterAKillTheSameLibraryComesBack(_ isOrdinaryUser: Bool) throws {
    guard TestUser.isRoot || !isOrdinaryUser else { return }
    try withMount(as: isOrdinaryUser ? .ordinary() : nil) { library in
      try library.shell("echo text >doc")
      let other = try library.folder.folder("other", for: library.user) + "/other.sqlite"
      try library.killServer()
      let refused = try library.sheaf("mount", library.mountpoint, "--library", other)
      #expect(refused.status == 1, "\(refused)")
      #expect(refused.errorText.contains("has the dead mount of another library, \(library.library)"))
      #expect(access(other, F_OK) != 0)
      // Root follows nothing that a mount says of itself.
      let unnamed = try library.sheaf("mount", library.mountpoint)
      #expect(unnamed.status == (library.user == nil && TestUser.isRoot ? 1 : 0), "\(unnamed)")
      if unnamed.status != 0 {
        let dead = try library.sheaf("versions", "\(library.documents)/doc")
        let advice = try #require(dead.errorText.split(separator: "sheaf mount --all ").last)
        #expect(dead.errorText.contains("bring it back with: sheaf mount --all --library \(library.library)"))
        let words = ["mount", "--all"] + advice.split(whereSeparator: \.isWhitespace).map(String.init)
        let back = try SheafProgram.run(words, as: library.user, limit: .seconds(60))
        #expect(back.status == 0, "\(back)")
      }
      #expect(try library.shell("cat doc").text == "text")
    }
  }

  @Test func oneThatFailsKeepsNoOtherBack() throws {
    try withMount { library in
      let second = try library.folder.folder("second")
      try library.sheafSucceeds("mount", second, "--library", library.library, "--as", library.handle)
      try library.killServer()
      try library.sheafSucceeds("unmount", second)
      #expect(try status(library).notMounted.map(\.mountpoint) == [library.mountpoint])
      // Unmounted while no process had it, it is forgotten. Mounted and killed once more, its folder is then in use.
      try library.sheafSucceeds("mount", second, "--library", library.library, "--as", library.handle)
      try library.killServer()
      try Command(["umount", second], limit: .seconds(20)).succeed()
      try Data().write(to: URL(fileURLWithPath: "\(second)/file"))
      let output = try library.sheaf("mount", "--all", "--library", library.library)
      #expect(output.status == 1 && output.errorText.contains("not empty"))
      #expect(library.isMounted)
      #expect(try status(library).notMounted.map(\.mountpoint) == [second])
      // What is not mounted and not wanted again is forgotten.
      try library.sheafSucceeds("unmount", second, "--library", library.library)
      #expect(try status(library).notMounted == [])
      #expect(try library.sheaf("unmount", second, "--library", library.library).errorText.contains("is not mounted"))
    }
  }

  /// Whichever it is: units look at the exit status.
  @Test func allMountsButOneAreAFailure() throws {
    try withMount { library in
      let places = [library.mountpoint, "\(library.folder.path)/a", "\(library.folder.path)/z"]
      for place in places.dropFirst() {
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        try library.sheafSucceeds("mount", place, "--library", library.library, "--as", library.handle)
      }
      for place in places {
        try library.killServer()
        for each in places { _ = try Command(["umount", each], limit: .seconds(20)).run() }
        try Data().write(to: URL(fileURLWithPath: "\(place)/file"))
        let output = try library.sheaf("mount", "--all", "--library", library.library)
        #expect(output.status == 1 && output.errorText.contains("not empty"), "\(place): \(output)")
        #expect(try status(library).notMounted.map(\.mountpoint) == [place])
        #expect(unlink("\(place)/file") == 0)
        try library.sheafSucceeds("mount", "--all", "--library", library.library)
      }
      for place in places.dropFirst() { try library.sheafSucceeds("unmount", place) }
    }
  }

  /// It would mount where the original does.
  @Test func aBackupMountsNothingByItself() throws {
    try withMount { library in
      let backup = "\(library.folder.path)/backup.sqlite"
      try library.sheafSucceeds("backup", backup, "--library", library.library)
      let output = try library.sheafSucceeds("status", "--library", backup, "--json")
      #expect(try JSONDecoder().decode(Status.self, from: Data(output.output)).notMounted == [])
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "needs root")) func rootMountsNothingThatAnotherUserChose() throws {
    try withMount(as: try .ordinary()) { library in
      try library.killServer()
      let output = try SheafProgram.run(["mount", "--all", "--library", library.library], as: nil)
      #expect(output.status == 1 && output.errorText.contains("others than root can write it"))
      try library.sheafSucceeds("mount", "--all", "--library", library.library)
      #expect(library.isMounted)
    }
  }

  /// What runs goes on where another version is installed.
  @Test func statusTellsAnotherBuildApart() throws {
    try withMount { library in
      struct Build: Decodable { let isSameProgram: Bool? }
      func build(_ program: String) throws -> (Bool?, text: String) {
        let arguments = [program, "status", "--library", library.library]
        let json = try Command(arguments + ["--json"], limit: .seconds(60)).succeed()
        return (
          try JSONDecoder().decode(Build.self, from: Data(json.output)).isSameProgram,
          try Command(arguments, limit: .seconds(60)).succeed().text
        )
      }
      let (copy, other) = ("\(library.folder.path)/copy", "\(library.folder.path)/other")
      try FileManager.default.copyItem(atPath: try SheafProgram.path(), toPath: copy)
      #expect(try build(copy).0 == true)
      try Command.shell("cp '\(copy)' '\(other)' && printf x >>'\(other)'").succeed()
      let told = try build(other)
      #expect(told.0 == false && told.text.contains("another build than this command"))
      try library.killServer()
      #expect(try build(copy).0 == nil)
    }
  }

  @Test func allTakesNothingBesideIt() throws {
    let output = try SheafProgram.run(["mount", "--all", "--read-only"], as: nil)
    #expect(output.status == 64 && output.errorText.contains("--all makes each mount as it was"))
  }
}
