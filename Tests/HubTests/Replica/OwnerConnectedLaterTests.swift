import MountKit
import Testing

/// A library in which somebody takes part in a share, and whose owner is connected in it later: it has the share once.
@Suite(.serialized) struct OwnerConnectedLaterTests {
  private static let shared = "Shared/\(HubPlace.handle)"

  /// Runs a story in which bob takes part in alice's `team`, and then alice's account is connected on his machine, too.
  private func story(
    _ before: (SharedReplicaTests.People) throws -> Void = { _ in },
    _ body: (SharedReplicaTests.People) throws -> Void
  ) throws {
    try SharedReplicaTests().withPeople { people in
      try people.alice.shell("mkdir -p team/in private && echo a > team/in/a && echo b > team/b && echo p > private/p")
      try people.join("team", can: "edit")
      try before(people)
      let link = try people.alice.succeed("device", "add").text
      let told = try people.bob.succeed("connect", link, "--name", "bob's").text
      #expect(told.contains(HubPlace.handle), "\(told)")
      try body(people)
    }
  }

  private func bob(_ people: SharedReplicaTests.People, _ script: String) throws -> String {
    try Command.shell("cd '\(people.bob.library.mountpoint)' && \(script)").succeed().text
  }

  private func settle(_ people: SharedReplicaTests.People) throws {
    for _ in 0..<2 {
      try people.alice.wait()
      for handle in [SharedReplicaTests.bob, HubPlace.handle] {
        try people.bob.succeed("sync", "--wait", "120", "--as", handle)
      }
    }
  }

  @Test func theShareIsThereOnceAndGoesOn() throws {
    try story { people in
      try settle(people)
      #expect(
        try bob(people, "ls Shared; cat \(Self.shared)/team/in/a \(Self.shared)/team/b") == "\(HubPlace.handle)\na\nb")
      // Both ways, for each of the three.
      _ = try bob(people, "echo his >> \(Self.shared)/team/b")
      try people.alice.shell("echo hers >> team/in/a")
      try settle(people)
      #expect(try people.alice.shell("cat team/b") == "b\nhis")
      #expect(try bob(people, "cat \(Self.shared)/team/in/a") == "a\nhers")
      let hers = try people.bob.succeed("find", "--name", "a", "--as", HubPlace.handle).text
      #expect(hers.contains("Documents/team/in/a"), "\(hers)")
      #expect(try people.bob.succeed("shares").text.components(separatedBy: "team").count == 2)
      // After the process begins anew it is the same.
      try people.bob.library.unmount()
      try people.bob.mount()
      try settle(people)
      #expect(try bob(people, "ls Shared; cat \(Self.shared)/team/b") == "\(HubPlace.handle)\nb\nhis")
      // What alice disconnects stays hers, and nothing waits for ever.
      _ = try people.bob.succeed("disconnect", "--as", HubPlace.handle)
      try people.bob.succeed("sync", "--wait", "60", "--as", SharedReplicaTests.bob)
    }
  }

  /// What bob saved before, and the hub does not have yet, is sent first.
  @Test func whatHeHadNotSentIsSent() throws {
    try story { people in
      _ = try people.bob.succeed("sync", "--pause", "--as", SharedReplicaTests.bob)
      _ = try bob(people, "sh -c 'echo his > \(Self.shared)/team/b; echo new > \(Self.shared)/team/new'")
    } _: { people in
      _ = try people.bob.succeed("sync", "--resume", "--as", SharedReplicaTests.bob)
      try settle(people)
      #expect(try people.alice.shell("cat team/b team/new") == "his\nnew")
      #expect(try bob(people, "cat \(Self.shared)/team/b \(Self.shared)/team/new; ls Documents") == "his\nnew")
    }
  }
}
