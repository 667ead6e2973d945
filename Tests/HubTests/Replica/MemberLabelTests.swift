import Foundation
import MountKit
import Testing

/// Labels that people give in what others share with them, at machines of their own.
@Suite(.serialized) struct MemberLabelTests {
  private struct Version: Decodable {
    let number: Int
    let label: String?
  }

  private static let carol = "carol@hub.example"
  private static let own = "Documents/plans/doc"
  private static let shared = "Shared/\(HubPlace.handle)/plans/doc"

  /// Runs a story in which bob may edit alice's `plans`. Of the three versions of its `doc` he sees the last two; alice
  /// labelled the first one `private`.
  private func story(_ body: (SharedReplicaTests.People) throws -> Void) throws {
    try SharedReplicaTests().withPeople { people in
      try people.alice.shell("mkdir plans && sh -c 'echo one > plans/doc' && sh -c 'echo two > plans/doc'")
      try people.alice.wait()
      _ = try people.alice.succeed("label", Self.own, "private", "--version", "1")
      try people.join("plans", can: "edit")
      try people.alice.shell("sh -c 'echo three > plans/doc'")
      try people.settle()
      try body(people)
    }
  }

  private func labels(_ machine: ReplicaMachine, _ path: String = Self.shared) throws -> [Int: String] {
    let output = try machine.succeed("versions", path, "--json").output
    let versions = try JSONDecoder().decode([Version].self, from: Data(output))
    return versions.reduce(into: [:]) { labels, version in labels[version.number] = version.label }
  }

  @Test func bobLabelsAVersionAndAllSeeIt() throws {
    try story { people in
      let carol = try ReplicaMachine("carol", people.place, handle: Self.carol)
      defer { try? carol.library.tearDown() }
      _ = try carol.succeed("connect", people.place.hub.succeed("account", "add", Self.carol), "--name", "tablet")
      try carol.mount()
      _ = try people.alice.succeed("share", "Documents/plans", "--with", Self.carol, "--can", "view")
      _ = try carol.succeed("accept", people.url("plans"))
      _ = try people.bob.succeed("label", Self.shared, "final")
      try people.settle()
      try carol.wait()
      #expect(try labels(people.alice, Self.own) == [1: "private", 3: "final"])
      #expect(try labels(people.bob) == [3: "final"])
      #expect(try labels(carol) == [3: "final"])
      // Carol only views.
      let refused = try carol.sheaf("label", Self.shared, "mine")
      #expect(refused.status != 0 && refused.errorText.contains("the share does not allow it"), "\(refused)")
      // It moves, whoever gives it again.
      _ = try people.bob.succeed("label", Self.shared, "final", "--version", "2")
      try people.settle()
      #expect(try labels(people.alice, Self.own) == [1: "private", 2: "final"])
      _ = try people.alice.succeed("label", Self.own, "final", "--version", "1")
      try people.settle()
      try carol.wait()
      #expect(try labels(people.alice, Self.own) == [1: "final"])
      #expect(try labels(people.bob) == [:])
      #expect(try labels(carol) == [:])
      #expect(try carol.library.check() == [])
    }
  }

  @Test func aLabelThatIsGivenWhilePausedTravelsLater() throws {
    try story { people in
      _ = try people.bob.succeed("sync", "--pause")
      _ = try people.bob.succeed("label", Self.shared, "draft", "--version", "2")
      // One of a version that the hub does not have yet.
      try Command.shell("sh -c 'echo four > \"\(people.shared("plans/doc"))\"'").succeed()
      _ = try people.bob.succeed("label", Self.shared, "final")
      try people.alice.wait()
      #expect(try labels(people.alice, Self.own) == [1: "private"])
      _ = try people.bob.succeed("sync", "--resume")
      try people.settle()
      #expect(try labels(people.alice, Self.own) == [1: "private", 2: "draft", 4: "final"])
      #expect(try labels(people.bob) == [2: "draft", 4: "final"])
    }
  }

  /// Bob's machine does not know of the version that has the label.
  @Test func theLabelOfAVersionFromBeforeStaysWhereItIs() throws {
    try story { people in
      _ = try people.bob.succeed("label", Self.shared, "private")
      try people.settle()
      #expect(try labels(people.alice, Self.own) == [1: "private"])
      #expect(try labels(people.bob) == [:])
      let status = try people.bob.succeed("status", "--json").text
      #expect(status.contains("the hub does not take the label"), "\(status)")
    }
  }

  /// What the hub refuses is shown as the hub has it.
  @Test func whoMayNotEditAnyMoreHasTheHubsLabels() throws {
    try story { people in
      _ = try people.bob.succeed("label", Self.shared, "final", "--version", "2")
      try people.settle()
      _ = try people.bob.succeed("sync", "--pause")
      _ = try people.bob.succeed("label", Self.shared, "final", "--version", "3")
      _ = try people.alice.succeed(
        "participant", "set", "Documents/plans", SharedReplicaTests.bob, "--can", "view")
      try people.alice.wait()
      _ = try people.bob.succeed("sync", "--resume")
      try people.settle()
      #expect(try labels(people.alice, Self.own) == [1: "private", 2: "final"])
      #expect(try labels(people.bob) == [2: "final"])
    }
  }
}
