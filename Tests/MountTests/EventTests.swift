import Foundation
import MountKit
import Testing

/// The event log as people see it at a mount.
@Suite(.serialized) struct EventTests {
  /// An event as `sheaf activity --json` tells it.
  private struct Told: Decodable {
    struct Item: Decodable {
      let id: String
      let path: String
    }
    struct Details: Decodable {
      let item: Item
      let previousPath: String?
      let contents: [Item]?
      let contentCount: Int?
    }

    let type: String
    let sequence: String
    let data: Details

    /// `moved team/big was big`.
    var line: String {
      "\(type.split(separator: ".").last ?? "") \(data.item.path)" + (data.previousPath.map { " was \($0)" } ?? "")
    }
  }

  /// The latest events that someone sees, oldest first.
  private func activity(_ mounts: SharedMounts, _ name: String = "alice", limit: Int = 1000) throws -> [Told] {
    let output = try mounts.library.sheafSucceeds(
      "activity", "--library", mounts.library.library, "--as", SharedMounts.handle(name), "--limit", "\(limit)",
      "--json")
    return try JSONDecoder().decode([Told].self, from: Data(output.output))
  }

  /// The last events once the last one is this.
  private func lines(
    _ mounts: SharedMounts, _ name: String = "alice", _ count: Int, endingWith last: String
  ) throws -> [String] {
    try eventually("\(last), for \(name)", within: .seconds(60)) {
      try activity(mounts, name, limit: 1).last?.line == last
    }
    return try activity(mounts, name, limit: count).map(\.line)
  }

  @Test func whatPeopleDoIsToldInTheirWords() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        mkdir "$ALICE/Documents/team"
        invite "$ALICE/Documents/team" bob edit
        cd "$ALICE/Documents/team"
        echo one > Plan.md
        getfattr -n user.sheaf.id Plan.md >/dev/null
        for number in 1 2 3; do echo "$number" > Plan.md; done
        """)
      #expect(
        try lines(mounts, "bob", 4, endingWith: "edit team/Plan.md")
          == ["created team/Plan.md", "edit team/Plan.md", "edit team/Plan.md", "edit team/Plan.md"])
      let notices = try mounts.library.sheafSucceeds(
        "notices", "--library", mounts.library.library, "--as", "bob@example.com", "--clear")
      #expect(notices.text.hasPrefix("alice@example.com created Plan.md, "), "\(notices)")
      try mounts.shell(
        """
        cd "$ALICE/Documents/team"
        mv Plan.md "Trip plan.md"
        """)
      _ = try lines(mounts, "bob", 1, endingWith: "renamed team/Trip plan.md was team/Plan.md")
      try mounts.shell(
        """
        notices() { "$SHEAF" notices --library "$LIBRARY" --as "$1@example.com"; }
        same "$(notices bob | sed 's/, [^,]*$//')" "alice@example.com renamed Plan.md to Trip plan.md"
        same "$(notices alice | grep -c "Plan.md" || true)" 0
        "$SHEAF" comment "$BOB/Shared/alice@example.com/team" "Good, @alice@example.com!" >/dev/null
        same "$(notices alice | head -n 1 | sed 's/, [^,]*$//')" \
          "bob@example.com mentioned you in a comment on team: Good, @alice@example.com!"
        """)
    }
  }

  @Test func whatIsDoneToALargeFolderIsOneEvent() throws {
    let count = 5000
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        cd "$ALICE/Documents"
        mkdir team
        invite team bob edit
        mkdir -p big/inner
        python3 -c 'for i in range(\(count - 1)): open("big/n" + str(i), "w").close()'
        """)
      try eventually("all are known", within: .seconds(120)) {
        let last = try activity(mounts, limit: 1000)
        return last.count(where: { $0.line.hasPrefix("created big/n") }) >= 999
          && last.last?.line == "created big/n\(count - 2)"
      }
      let former = try activity(mounts, limit: 1).last?.sequence
      try mounts.shell("mv \"$ALICE/Documents/big\" \"$ALICE/Documents/team/\"")
      #expect(try lines(mounts, "alice", 1, endingWith: "moved team/big was big").count == 1)
      #expect(try lines(mounts, "bob", 1, endingWith: "created team/big").count == 1)
      try mounts.shell("mv \"$ALICE/Documents/team/big\" \"$ALICE/Documents/\"")
      #expect(try lines(mounts, "bob", 2, endingWith: "deleted team/big") == ["created team/big", "deleted team/big"])
      try mounts.shell("rm -r \"$ALICE/Documents/big\"")
      try eventually("the deletion", within: .seconds(60)) {
        try activity(mounts, limit: 1).last?.line == "deleted big"
      }
      let deleted = try #require(try activity(mounts, limit: 1).last)
      #expect(deleted.data.contentCount == count && deleted.data.contents?.count == 100)
      try mounts.shell("\"$SHEAF\" recover Documents/big --library \"$LIBRARY\" >/dev/null")
      let recovered = try #require(try activity(mounts, limit: 1).last)
      #expect(recovered.line == "created big" && recovered.data.item.id == deleted.data.item.id)
      #expect(recovered.data.contentCount == count)
      // Nothing else was told since.
      let events = try activity(mounts, limit: 6)
      #expect(
        events.map(\.line).suffix(4) == [
          "moved team/big was big", "moved big was team/big", "deleted big", "created big",
        ])
      #expect(Int(events.last?.sequence ?? "") == (Int(former ?? "") ?? 0) + 4)
    }
  }

  @Test func followingGoesOnOverANewProcess() throws {
    try withMount { library in
      let file = "\(library.folder.path)/followed"
      try library.shell("mkdir first")
      let follower = try BackgroundCommand(
        .shell(
          "exec '\(try SheafProgram.path())' activity '\(library.documents)' --follow --json > \(file) 2>&1",
          as: library.user))
      defer { follower.end() }
      func paths() throws -> [String] {
        let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
        // What follows the last newline is still being written.
        return try text.components(separatedBy: "\n").dropLast().map {
          try JSONDecoder().decode(Told.self, from: Data($0.utf8)).data.item.path
        }
      }
      try eventually("what was", within: .seconds(30)) { try paths() == ["first"] }
      for number in 1...3 {
        try library.shell("mkdir before-\(number)")
        if number == 2 {
          try library.unmount()
        } else {
          try library.killServer()
          library.breakMount()
        }
        try library.mount()
        try library.shell("mkdir after-\(number)")
      }
      let expected = ["first"] + (1...3).flatMap { ["before-\($0)", "after-\($0)"] }
      try eventually("all that happened", within: .seconds(30)) { try paths().count >= expected.count }
      #expect(try paths() == expected)
    }
  }
}
