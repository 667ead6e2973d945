import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// What alice gives to bob, each at a machine of their own.
extension SharedReplicaTests {
  private static func offer(_ people: People, _ path: String) throws -> String {
    let said = try people.alice.succeed("transfer", "Documents/\(path)", bob).text
    let id = try #require(said.firstMatch(of: /id:[0-9a-f-]{36}/))
    return String(id.0)
  }

  /// What alice deleted before the hub had it is in her trash alone, and stays there when she gives the folder away.
  @Test func whatTheHubNeverHadStaysInTheTrash() throws {
    try withPeople { people in
      try people.alice.shell("mkdir -p plans/sub && echo keep > plans/keep && echo x > plans/sub/x")
      try people.alice.wait()
      try people.alice.shell("echo 'only here' > plans/g && echo 'here, too' > plans/sub/h && rm plans/g plans/sub/h")
      try people.alice.shell("rm -r plans/sub")
      try people.alice.wait()
      try people.settle()
      let id = try Self.offer(people, "plans")
      #expect(try people.bob.succeed("accept", id).text == "Documents/plans")
      try people.settle()
      try eventually("the folder is gone", within: .seconds(60)) {
        try people.alice.shell("ls -A") == ""
      }
      #expect(try people.alice.shell("ls .deleted; cat .deleted/g .deleted/h") == "g\nh\nonly here\nhere, too")
      try people.alice.succeed("recover", "Documents/g")
      try people.alice.wait()
      #expect(try people.alice.shell("cat g") == "only here")
      #expect(try people.bob.shell("find . .deleted -name g -o -name h") == "")
      #expect(try people.place.hub.succeed("check").contains("Nothing is wrong"))
      for machine in [people.alice, people.bob] { #expect(try machine.library.check() == [], "\(machine.name)") }
    }
  }

  @Test func whatAliceGivesAwayBobHasWithItsHistory() throws {
    try withPeople { people in
      try people.alice.shell(
        """
        mkdir -p plans/sub other && echo one > plans/doc && echo x > plans/sub/x && echo y > plans/gone && ln -s doc plans/l
        mkdir plans/empty && echo own > other/own
        """)
      try people.alice.wait()
      try people.alice.shell("sh -c 'echo two > plans/doc'; rm plans/gone; setfattr -n user.color -v red plans/sub/x")
      try people.alice.succeed("label", "Documents/plans/doc", "draft", "--version", "1")
      try people.alice.wait()
      let id = try Self.offer(people, "plans")
      let byMe = try people.alice.succeed("transfer").text
      #expect(byMe.contains("Documents/plans") && byMe.contains(Self.bob), "\(byMe)")
      try people.settle()
      let notices = try people.bob.succeed("notices").text
      #expect(notices.contains("offers you plans") && notices.contains(id), "\(notices)")
      let toMe = try people.bob.succeed("shares").text
      #expect(toMe.contains("plans") && toMe.contains(id), "\(toMe)")
      // Whoever is offered nothing learns nothing, and nothing changes by a word that is wrong.
      let wrong = try people.bob.sheaf("accept", "id:0197c1f0-5d3e-7a51-9c3f-6a4a4e2f7c10")
      #expect(wrong.status != 0 && wrong.errorText.contains("not offered"), "\(wrong)")

      #expect(try people.bob.succeed("accept", id).text == "Documents/plans")
      try people.settle()
      let documents = people.bob.library.documents
      for (path, text) in [("doc", "two"), ("sub/x", "x"), ("l", "two")] {
        #expect(people.text("\(documents)/plans/\(path)") == text + "\n", "\(path)")
      }
      #expect(try people.bob.succeed("show", "Documents/plans/doc", "--version", "draft").text == "one")
      #expect(
        try people.bob.shell("getfattr --only-values -n user.color plans/sub/x; ls -d plans/empty") == "redplans/empty")
      let versions = try people.bob.succeed("versions", "Documents/plans/doc").text
      #expect(versions.components(separatedBy: HubPlace.handle).count == 3 && versions.contains("draft"), "\(versions)")
      try people.bob.succeed("recover", "Documents/plans/gone")
      #expect(people.text("\(documents)/plans/gone") == "y\n")
      // It is bob's alone, who goes on with it.
      #expect(try people.alice.shell("ls -A . .deleted; cat other/own") == ".:\nother\n\n.deleted:\nown")
      let told = try people.alice.succeed("notices").text
      #expect(told.contains("took over plans"), "\(told)")
      try people.bob.shell("echo three > plans/doc")
      try people.bob.wait()
      #expect(try people.bob.succeed("transfer").text.contains("Nothing is offered"))
      #expect(try people.place.hub.succeed("check").contains("Nothing is wrong"))
    }
  }

  @Test func whatAliceSavedWithoutTheHubStaysHers() throws {
    try withPeople { people in
      try people.alice.shell("mkdir plans && echo one > plans/doc && echo one > plans/other")
      try people.alice.wait()
      let id = try Self.offer(people, "plans")
      try people.alice.succeed("sync", "--pause")
      try people.alice.shell("sh -c 'echo hers > plans/doc'; sh -c 'echo new > plans/new'")
      try people.bob.succeed("accept", id)
      try people.alice.succeed("sync", "--resume")
      try people.settle()
      #expect(try people.bob.shell("cat plans/doc; ls plans") == "one\ndoc\nother")
      let hers = try people.alice.shell("cat plans/*; ls plans")
      #expect(hers == "hers\nnew\ndoc\nnew", "\(hers)")
    }
  }

  @Test func offersAreDeclinedAndTakenBack() throws {
    try withPeople { people in
      try people.alice.shell("echo one > doc; mkdir team; echo x > team/x")
      try people.alice.wait()
      let first = try Self.offer(people, "doc")
      try people.bob.succeed("transfer", "--decline", first)
      try people.settle()
      #expect(try people.alice.succeed("notices").text.contains("declined doc"))
      let second = try Self.offer(people, "doc")
      try people.alice.succeed("transfer", "--withdraw", "Documents/doc")
      let late = try people.bob.sheaf("accept", second)
      #expect(late.status != 0 && late.errorText.contains("no longer"), "\(late)")
      let none = try people.alice.sheaf("transfer", "--withdraw", "Documents/doc")
      #expect(none.status != 0 && none.errorText.contains("offered to nobody"), "\(none)")
      // What cannot go along is named.
      try people.join("team", can: "edit")
      let shared = try people.alice.sheaf("transfer", "Documents/team", Self.bob)
      #expect(shared.status != 0 && shared.errorText.contains("sheaf unshare"), "\(shared)")
      let nobody = try people.alice.sheaf("transfer", "Documents/doc", "nobody@hub.example")
      #expect(nobody.status != 0 && nobody.errorText.contains("has no account at"), "\(nobody)")
      #expect(try people.alice.shell("cat doc team/x") == "one\nx")
    }
  }
}
