import Foundation
import MountKit
import Testing

/// What `--json` prints: described by `docs/schema`, for each command that has it.
@Suite(.serialized) struct JSONTests {
  /// The commands that take `--json`, by their names with `-` between, as the program tells them.
  private func commands() throws -> Set<String> {
    let dump = try JSONSerialization.jsonObject(with: Data(SheafProgram.run(["--experimental-dump-help"]).output))
    var names: Set<String> = []
    func visit(_ command: [String: Any], _ path: [String]) {
      let path = path + [command["commandName"] as? String ?? ""]
      let arguments = command["arguments"] as? [[String: Any]] ?? []
      let takesJSON = arguments.contains { argument in
        (argument["names"] as? [[String: Any]] ?? []).contains { $0["name"] as? String == "json" }
      }
      if takesJSON { names.insert(path.dropFirst().joined(separator: "-")) }
      for child in command["subcommands"] as? [[String: Any]] ?? [] where child["commandName"] as? String != "help" {
        visit(child, path)
      }
    }
    let root = (dump as? [String: Any])?["command"] as? [String: Any]
    visit(try #require(root), [])
    return names
  }

  @Test func everyCommandPrintsWhatItsSchemaSays() throws {
    try withMount { library in
      var seen: Set<String> = []
      let file = library.library
      let alice = library.documents
      let bob = ["--library", file, "--as", "bob@example.com"]

      /// Runs a command and compares what it prints with the schema of its name, the longest of its words that has one.
      @discardableResult
      func run(_ arguments: [String], schema name: String? = nil) throws -> Data {
        let name = name ?? arguments[0]
        let output = try SheafProgram.run(arguments + ["--json"])
        #expect(output.status == 0, "\(arguments): \(output)")
        #expect(try JSONSchema(name).problems(in: output.output) == [], "\(arguments): \(output.text)")
        seen.insert(name)
        return Data(output.output)
      }
      func text(_ key: String, _ json: Data) throws -> String {
        try #require((JSONSerialization.jsonObject(with: json) as? [String: Any])?[key] as? String)
      }

      for handle in ["bob", "carol", "dan"] {
        try run(["account", "add", "\(handle)@example.com", "--library", file], schema: "account-add")
      }
      try run(["account", "list", "--library", file], schema: "account-list")
      try run(["library", "show", "--library", file], schema: "library-show")
      try run(["library", "set", "--public-address", "files.example.com", "--library", file], schema: "library-set")
      try library.shell(
        "mkdir -p plans/deep; echo one > plans/a.md; echo two > plans/a.md; echo x > plans/deep/b; echo > c")
      let plans = "\(alice)/plans"
      let document = "\(plans)/a.md"
      try run(["status", "--library", file])
      try run(["status", document])
      try run(["versions", document])
      try run(["label", document, "final"])
      try run(["restore", document, "--version", "1"])
      try run(["restore", document, "--version", "1"])
      let share = try run(["share", plans, "--with", "bob@example.com", "--allow-requests", "--expires", "7d"])
      let url = try text("url", share)
      try run(["inspect", url] + bob)
      try run(["accept", url] + bob)
      try run(["accept", url, "--library", file, "--as", "carol@example.com"])
      try run(["requests", plans], schema: "requests-list")
      try run(["shares", "--library", file])
      try run(["shares"] + bob)
      try run(["status", "\(library.mountpoint)/Shared"], schema: "shares")
      try run(["requests", "approve", plans, "carol@example.com"], schema: "requests-approve")
      try run(["accept", url, "--library", file, "--as", "dan@example.com"])
      try run(["leave", url, "--library", file, "--as", "dan@example.com"])
      try run(["accept", url, "--library", file, "--as", "dan@example.com"])
      for answer in ["deny", "block"] {
        try run(["requests", answer, plans, "dan@example.com"], schema: "requests-\(answer)")
      }
      try run(["participants", plans])
      try run(["participant", "set", plans, "carol@example.com", "--can", "view"], schema: "participant-set")
      try run(["participant", "remove", plans, "carol@example.com"], schema: "participant-remove")
      try run(["participant", "add", plans, "carol@example.com"], schema: "participant-add")
      try run(["invite", plans, "--one-time"])
      try run(["invite", plans, "--revoke"])
      try run(["comment", document, "See this, @bob@example.com."])
      try run(["notices"] + bob)
      try run(["status", plans])
      try run(["send-copy", document, "\(library.folder.path)/copy.md"])
      try run(["resolve", document])
      try run(["leave", "Shared/alice@example.com/plans"] + bob)
      try run(["unshare", plans, "--yes"])
      let offer = try run(["transfer", document, "bob@example.com"])
      #expect(String(decoding: offer, as: UTF8.self).contains("\"toMe\""))
      try run(["transfer"] + bob)
      try run(["shares"] + bob)
      try run(["transfer", "--withdraw", document])
      try library.shell("rm c; rm -r plans/deep")
      try run(["deleted", "--library", file])
      try run(["recover", "\(plans)/deep"])
      let restored = try run(["restore", plans, "--time", Date().ISO8601Format()])
      #expect(try JSONSerialization.jsonObject(with: restored) is [String: Any])
      try run(["usage", alice])
      for way in [["a"], ["--deleted"], ["--versions"]] { try run(["find", "--library", file] + way) }
      try run(["retain", plans, "--keep-deleted", "2d", "--yes"])
      try run(["purge", plans, "--yes"])
      try run(["purge", "--deleted", "--older-than", "1y", "--yes"] + bob)
      try run(["activity", "--library", file])
      try run(["check", "--library", file])
      try run(["compact", "--library", file])
      try run(["backup", "\(library.folder.path)/backup.sqlite", "--library", file])
      try run(["account", "remove", "dan@example.com", "--library", file], schema: "account-remove")
      let backup = "\(library.folder.path)/backup.sqlite"
      try run(["repair", backup, "--to", "\(library.folder.path)/repaired.sqlite"])
      let second = try library.folder.folder("second")
      try run(["mount", second, "--library", file])
      // The mount goes without a word to its process, as at a crash.
      try Command(["umount", "--lazy", second]).succeed()
      try eventually("it is missed", within: .seconds(30)) {
        try SheafProgram.run(["status", "--library", file]).text.contains("\(second) for")
          && SheafProgram.run(["status", "--library", file]).text.contains("mount --all")
      }
      try run(["mount", "--all", "--library", file])
      try run(["unmount", second])

      // Those that need a hub are tried with one (`ReplicaProgramTests`).
      seen.formUnion([
        "connect", "disconnect", "sync", "keep", "free", "device-add", "device-list", "device-remove",
      ])
      let commands = try commands()
      #expect(commands.count > 30)
      #expect(commands.symmetricDifference(seen) == [], "commands and schemas that were compared differ")
      let described = try FileManager.default.contentsOfDirectory(atPath: Repository.path("docs/schema"))
        .map { String($0.dropLast(".json".count)) }
      #expect(Set(described).subtracting(["types", "error"]).symmetricDifference(seen) == [])
    }
  }

  @Test func failuresAreJSONToo() throws {
    try withMount { library in
      let missing = "\(library.documents)/missing"
      for arguments in [["status", missing], ["recover", missing], ["check", "--library", "/no/such/l.sqlite"]] {
        let output = try SheafProgram.run(arguments + ["--json"])
        #expect(output.status == 1 && output.output.isEmpty, "\(output)")
        #expect(!output.errorText.contains("\n"))
        #expect(try JSONSchema("error").problems(in: Array(output.errorText.utf8)) == [], "\(output)")
      }
      #expect(try SheafProgram.run(["status", missing]).errorText.hasPrefix("sheaf: Documents/missing: "))
      for arguments in [
        ["purge"], ["status", "--no-such"], ["no-such"], ["restore"], ["label"],
      ] {
        let output = try SheafProgram.run(arguments + ["--json"])
        #expect(output.status == 64 && output.output.isEmpty, "\(output)")
        #expect(try JSONSchema("error").problems(in: Array(output.errorText.utf8)) == [], "\(output)")
        let plain = try SheafProgram.run(arguments)
        #expect(plain.status == 64 && !plain.errorText.hasPrefix("{"), "\(plain)")
      }
    }
  }

  /// A name that is not UTF-8 has no path in JSON that leads to it; its id does.
  @Test func anIdNamesWhatNoTextNames() throws {
    try withMount { library in
      let name = #"$'caf\xe9.txt'"#
      try library.shell("printf one > \(name); printf two > \(name)")
      func id(_ path: String) throws -> String {
        try library.shell(
          "\"$SHEAF\" status \(path) --json | python3 -c 'import json,sys; print(json.load(sys.stdin)[\"id\"])'"
        ).text
      }
      let item = "id:\(try id(name))"
      try library.shell(
        """
        same() { [ "$1" = "$2" ] || { echo "expected: $2; is: $1" >&2; exit 1; }; }
        same "$("$SHEAF" show \(item) --version 1)" one
        "$SHEAF" versions \(item) | grep replace || true
        rm \(name)
        "$SHEAF" deleted --json | grep '\(item.dropFirst(3))'
        "$SHEAF" recover \(item)
        same "$(cat \(name))" two
        # It is that item wherever it went, and no other one of its name.
        mkdir elsewhere; mv \(name) elsewhere/moved; printf other > \(name)
        same "$("$SHEAF" show \(item))" two
        rm elsewhere/moved; printf new > elsewhere/moved
        ! "$SHEAF" purge \(item) --yes 2> /dev/null
        same "$(cat elsewhere/moved)" new
        cd /; "$SHEAF" recover \(item) --library "$LIBRARY"
        """)
      #expect(try library.shell("cat 'elsewhere/moved (2)'").text == "two")
      let nobody = try library.sheaf("status", "id:00000000-0000-0000-0000-000000000000", "--library", library.library)
      #expect(nobody.status == 1 && nobody.errorText.contains("no such item"), "\(nobody)")
      // Somebody else's is no item to them.
      try library.sheafSucceeds("account", "add", "bob@example.com", "--library", library.library)
      let foreign = try library.sheaf("status", item, "--library", library.library, "--as", "bob@example.com")
      #expect(foreign.status == 1 && foreign.errorText.contains("no such item"), "\(foreign)")
    }
  }
}
