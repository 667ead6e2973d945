import ConformanceKit
import Foundation
import MountKit
import Testing

/// A document stays itself, whatever program saves it: real programs on a real mount.
@Suite(.serialized) struct SavingTests {
  static let old = "old contents\n"

  /// Whether the program of a scenario is installed.
  static func isThere(_ scenario: Scenario) -> Bool {
    guard let program = scenario.program else { return true }
    if program == "gi" {
      return (try? Command(["/usr/bin/python3", "-c", "from gi.repository import Gio"]).run().status) == 0
    }
    return (try? Command.shell("command -v \(program)").run().status) == 0
  }

  @Test(arguments: Scenario.all.filter(isThere), SharedPlace.allCases)
  func keepsEverything(_ scenario: Scenario, _ place: SharedPlace) throws {
    if place == .entry, scenario.needsFolder { return try isRefusedBesideADocument(scenario) }
    try withSharedMounts { people in
      let mounted = people.library
      let outside = try mounted.folder.folder("out")
      // Another program than any of those that save.
      try people.shell(place.preparation(making: "printf '%s' '\(Self.old)' >doc"))
      let (folder, theirs) = (place.folder(people), place.otherPath(people))
      let doc = "\(folder)/doc"
      try mounted.sheafSucceeds("label", doc, "first")
      let environment: [String: String?] = [
        "OUT": outside, "DANCE": Repository.path("Tests/EditorTests/dance"), "HOME": outside,
      ]
      if !scenario.prepare.isEmpty { try mounted.shell(scenario.prepare, in: folder, environment: environment) }
      let before = try DocumentFacts(mounted, doc)
      try mounted.settle()
      let lastEvent = try mounted.lastEvent()
      if scenario.keys.isEmpty {
        for text in ["one", "two"] {
          try mounted.shell(
            "echo $TEXT > $OUT/new; " + scenario.save, in: folder,
            environment: environment.merging(["TEXT": text]) { mine, _ in mine })
          #expect(try mounted.text(doc) == "\(text)\n")
          #expect(try mounted.text(theirs) == "\(text)\n")
        }
      } else {
        let keys = scenario.keys.dropFirst().map { $0.replacingOccurrences(of: "\r", with: "\\r") }
        try Command.shell(
          #"program=$1; shift; eval "exec \"\$TYPE\" \"\$@\" -- $program""#,
          in: folder, environment: environment
        ).with(["TYPE": Repository.path("Tests/EditorTests/type-keys")], [scenario.keys[0]] + keys).succeed()
        #expect(try mounted.text(doc).trimmingCharacters(in: .newlines) == "two")
        #expect(try mounted.text(theirs) == mounted.text(doc))
      }
      try mounted.settle()
      let after = try DocumentFacts(mounted, doc)
      #expect(after.id == before.id)
      #expect(after.color == "blue")
      #expect(after.mode == before.mode)
      #expect(after.share == before.share)
      let versions = try mounted.versions(doc)
      #expect(versions.count == before.version + 2 * scenario.versions)
      #expect(versions.first { $0.number == 1 }?.label == "first")
      #expect(versions.dropFirst(before.version).allSatisfy { $0.author == place.author })
      #expect(String(decoding: try mounted.show(doc, version: before.version), as: UTF8.self) == Self.old)
      if scenario.versions == 1, versions.count == before.version + 2 {
        let first = try mounted.show(doc, version: before.version + 1)
        #expect(String(decoding: first, as: UTF8.self).trimmingCharacters(in: .newlines) == "one")
      }
      #expect(!versions.contains { $0.size == 0 })
      let events = try mounted.events(after: lastEvent)
      #expect(
        events == Array(repeating: "sheaf.change.edit \(place.eventPath())", count: 2 * scenario.versions))
      if place == .entry {
        // What programs made beside it was never there for anybody else.
        #expect(try people.shell("ls -A $ALICE/Documents").text == "doc")
      } else if let backup = scenario.backup.map({ "\(folder)/\($0)" }) {
        // Some programs make one backup in a session, some with each save.
        let texts = scenario.keys.isEmpty ? ["one\n"] : [Self.old, "one\n", "one"]
        #expect(texts.contains(try mounted.text(backup)))
        #expect(try mounted.attribute("user.sheaf.id", of: backup) != before.id)
        let url = try? mounted.attribute("user.sheaf.share.url", of: backup)
        #expect(url == (place.sharesBackups ? before.share : nil))
      }
    }
  }

  /// What programs leave beside a document that is shared by itself is gone after a while.
  @Test func whatIsLeftBesideADocumentGoes() throws {
    try withSharedMounts { people in
      let (mounted, place) = (people.library, SharedPlace.entry)
      let outside = try mounted.folder.folder("out")
      try people.shell(place.preparation(making: "printf '%s' '\(Self.old)' >doc"))
      let (folder, theirs) = (place.folder(people), place.otherPath(people))
      let leaving = Scenario.all.filter {
        $0.backup != nil && $0.keys.isEmpty && !$0.needsFolder && Self.isThere($0)
      }
      try #require(leaving.count >= 3)
      for scenario in leaving {
        try mounted.shell(
          "\(scenario.prepare)\necho $TEXT > $OUT/new; \(scenario.save)", in: folder,
          environment: [
            "OUT": outside, "DANCE": Repository.path("Tests/EditorTests/dance"), "HOME": outside,
            "TEXT": scenario.name,
          ])
      }
      #expect(try mounted.shell("ls -A", in: folder).text != "doc")
      try eventually("that temporary files are gone", within: .seconds(60)) {
        try mounted.shell("touch '\(theirs)'; ls -A", in: folder).text == "doc"
      }
    }
  }

  /// mv(1) makes a copy of a temporary file elsewhere; the document beside it, whose removal would leave the share, stays.
  @Test func aTemporaryFileIsCopiedElsewhere() throws {
    try withSharedMounts { people in
      try people.shell(SharedPlace.entry.preparation(making: "printf '%s' '\(Self.old)' >doc"))
      let folder = SharedPlace.entry.folder(people)
      try people.shell(
        """
        cd '\(folder)'; echo temporary >s1.tmp
        mv s1.tmp "$BOB/Documents/kept"; same "$(cat "$BOB/Documents/kept")" temporary; same "$(ls)" doc
        refused "Operation not permitted" mv doc "$BOB/Documents/"
        same "$(ls)" doc
        """)
    }
  }

  /// A program that has to make documents or folders beside a document that is shared by itself cannot, and the document
  /// keeps what it had.
  private func isRefusedBesideADocument(_ scenario: Scenario) throws {
    try withSharedMounts { people in
      let mounted = people.library
      let outside = try mounted.folder.folder("out")
      try people.shell(SharedPlace.entry.preparation(making: "printf '%s' '\(Self.old)' >doc"))
      let folder = SharedPlace.entry.folder(people)
      let environment: [String: String?] = [
        "OUT": outside, "DANCE": Repository.path("Tests/EditorTests/dance"), "HOME": outside, "TEXT": "one",
      ]
      let script = "set -e; echo $TEXT > $OUT/new; \(scenario.prepare)\n\(scenario.save)"
      // Not every program says that it could not.
      _ = try Command.shell(script, in: folder, environment: environment).run()
      #expect(try people.shell("cat $ALICE/Documents/doc; ls -A $ALICE/Documents").text == "old contents\ndoc")
    }
  }

  /// One program makes a document and saves it at once, as a script for a test does, whether it asked for the id or
  /// not.
  @Test(arguments: Scenario.danceNames, [false, true])
  func keepsOwn(_ dance: String, asks: Bool) throws {
    let mounted = try MountedLibrary()
    defer { mounted.breakMount() }
    try mounted.mount()
    let path = Repository.path("Tests/EditorTests/dance")
    let output = try mounted.shell("\(path) --make \(asks ? "--ask" : "") \(dance) doc new").text
    #expect(try mounted.text("doc") == "new\n")
    if asks { #expect(try mounted.attribute("user.sheaf.id", of: "doc") == output) }
    try mounted.settle()
    #expect(try mounted.attribute("user.color", of: "doc") == "blue")
    let versions = try mounted.versions("doc")
    #expect(versions.count == 2)
    #expect(String(decoding: try mounted.show("doc", version: 1), as: UTF8.self) == "made here\n")
    #expect(try mounted.events(after: 0) == ["sheaf.persistence.created doc", "sheaf.change.edit doc"])
    try mounted.unmount()
    #expect(try mounted.check().isEmpty)
  }
}

/// What must not change when a document is saved.
struct DocumentFacts {
  let id: String
  let color: String
  let mode: String
  let version: Int
  /// The URL of its share; nil where it is in none.
  let share: String?

  init(_ mounted: MountedLibrary, _ name: String) throws {
    id = try mounted.attribute("user.sheaf.id", of: name)
    color = try mounted.attribute("user.color", of: name)
    mode = try mounted.shell("stat -c %a '\(mounted.path(name))'").text
    share = try? mounted.attribute("user.sheaf.share.url", of: name)
    version = Int(try mounted.attribute("user.sheaf.version", of: name)) ?? 0
  }
}

extension MountedLibrary {
  func text(_ name: String) throws -> String {
    String(decoding: try Data(contentsOf: URL(fileURLWithPath: path(name))), as: UTF8.self)
  }

  /// Asks the library file, once what changed a moment ago is committed for others to read.
  func query(_ sql: String) throws -> [String] {
    try sheafSucceeds("status", "--library", library)
    let text = try Command(["sqlite3", "-cmd", ".timeout 5000", library, sql]).succeed().text
    return text.isEmpty ? [] : text.components(separatedBy: "\n")
  }

  /// Waits until no event's meaning is open.
  func settle() throws {
    try eventually("that all events are settled", within: .seconds(40)) {
      try query("SELECT count(*) FROM pending_events") == ["0"]
        && query("SELECT count(*) FROM versions WHERE open") == ["0"]
    }
  }

  func lastEvent() throws -> Int { Int(try query("SELECT coalesce(max(sequence), 0) FROM events").first ?? "") ?? 0 }

  /// `TYPE PATH`, and `PREVIOUS-PATH` before it where there is one.
  func events(after sequence: Int) throws -> [String] {
    try query(
      """
      SELECT type || ' ' || coalesce(json_extract(data, '$.previousPath') || ' ', '') || json_extract(data, '$.item.path')
      FROM events WHERE sequence > \(sequence) ORDER BY sequence
      """)
  }
}

extension Command {
  /// With more variables, and words after the script's.
  func with(_ variables: [String: String?], _ words: [String]) -> Command {
    var command = self
    command.environment.merge(variables) { _, new in new }
    command.arguments += ["bash"] + words
    return command
  }
}
