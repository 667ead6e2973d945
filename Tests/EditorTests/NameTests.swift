import ConformanceKit
import Foundation
import MountKit
import Testing

/// What people do with names keeps its meaning, and who watches sees what every file system shows.
@Suite(.serialized) struct NameTests {
  /// What a script logs, with the folder that it works in made and settled before.
  private func events(_ prepare: String, _ script: String, _ body: (MountedLibrary) throws -> Void = { _ in })
    throws -> [String]
  {
    let mounted = try MountedLibrary()
    defer { mounted.breakMount() }
    try mounted.mount()
    try mounted.shell(prepare)
    try mounted.settle()
    let last = try mounted.lastEvent()
    try mounted.shell(script)
    try mounted.settle()
    try body(mounted)
    let events = try mounted.events(after: last)
    try mounted.unmount()
    #expect(try mounted.check().isEmpty)
    return events
  }

  @Test func moving() throws {
    #expect(try events("echo a > a", "mv a b") == ["sheaf.persistence.renamed a b"])
    #expect(try events("echo a > a; mkdir f", "mv a f/a") == ["sheaf.persistence.moved a f/a"])
    #expect(
      try events("true", "echo a > a; mv a b") == ["sheaf.persistence.created a", "sheaf.persistence.renamed a b"])
    #expect(try events("mkdir f; echo a > f/a", "mv f g") == ["sheaf.persistence.renamed f g"])
  }

  /// Rule 16 of ``Identity``: what programs link as a backup of a document that is shared on its own is a copy.
  @Test func linkingASharedDocument() throws {
    try withSharedMounts { people in
      try people.shell(
        """
        cd "$ALICE/Documents"; echo old >doc; chmod 640 doc; setfattr -n user.color -v blue doc; touch -d @1000000000 doc
        invite doc bob edit
        refused "not permitted" ln doc elsewhere
        mkdir folder; refused "not permitted" ln doc folder/doc.bak
        ln doc doc.bak
        same "$(stat -c %h doc) $(stat -c %h doc.bak)" "1 1"
        same "$(stat -c '%a %s %Y' doc.bak)" "640 4 1000000000"
        same "$(getfattr --only-values -n user.color doc.bak)" blue
        if url doc.bak 2>/dev/null; then exit 1; fi
        echo new >doc
        same "$(cat doc.bak)" old
        same "$(cat "$BOB/Shared/alice@example.com/doc")" new
        same "$(ls "$BOB/Shared/alice@example.com")" doc
        """)
    }
  }

  @Test func replacingAndCopying() throws {
    #expect(try events("echo a > a; echo b > b; getfattr -d a b", "mv b a") == ["sheaf.change.edit b a"])
    #expect(try events("echo a > a", "cp a b") == ["sheaf.persistence.created b"])
    #expect(try events("echo a > a", "cp -a --backup a b; cp -a --backup a b") == ["sheaf.persistence.created b"])
  }

  @Test func removingAndMakingByOthers() throws {
    let events = try events("echo a > a", "getfattr --only-values -n user.sheaf.id a > ../../id; rm a; echo b > a; ")
    #expect(events == ["sheaf.persistence.deleted a", "sheaf.persistence.created a"])
  }

  @Test func swapping() throws {
    let swapped = try events("echo a > a; echo b > b", "mv a c; mv b a; mv c b") { (mounted: MountedLibrary) throws in
      #expect(try mounted.text("a") == "b\n")
      #expect(try mounted.versions("a").count == 1)
      #expect(try mounted.versions("b").count == 1)
    }
    #expect(
      swapped.sorted() == [
        "sheaf.persistence.renamed a c", "sheaf.persistence.renamed b a", "sheaf.persistence.renamed c b",
      ])
  }

  /// What inotifywait(1) tells of a script that works in a folder.
  private func watched(_ folder: String, _ script: String) throws -> [String] {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let text = try Command.shell(
      """
      cd "$0"; printf 'old\\n' > doc; log=$(mktemp)
      inotifywait -m --format '%e %f' . > $log 2> $log.errors & watch=$!
      until grep -q established $log.errors; do sleep 0.02; done
      \(script)
      : > end; until grep -q ' end$' $log; do sleep 0.02; done
      kill $watch; grep -v ' end$' $log; rm $log $log.errors
      """
    ).with(["DANCE": Repository.path("Tests/EditorTests/dance")], []).words([folder]).succeed().text
    let lines = text.components(separatedBy: "\n").map { line in
      line.replacing(#/(sed|tmp|\.goutputstream-)[A-Za-z0-9_]{6,8}$/#, with: { "\($0.output.1)*" })
    }
    // The kernel joins equal events that nobody has read yet (inotify(7)).
    return lines.indices.filter { $0 == 0 || lines[$0] != lines[$0 - 1] }.map { lines[$0] }
  }

  @Test(arguments: [
    "sed -i s/old/new/ doc", "sed -i.bak s/old/new/ doc", "printf x >> doc",
    "\"$DANCE\" backup_create_unlink doc new", "\"$DANCE\" recreate doc new", "\"$DANCE\" atomic doc new",
    "\"$DANCE\" exchanged doc new", "\"$DANCE\" unlink_link doc new", "mv doc other; cp other doc; rm other",
  ])
  func watchersSeeTheSame(_ script: String) throws {
    guard try Command.shell("command -v inotifywait").run().status == 0 else { return }
    let mounted = try MountedLibrary()
    defer { mounted.breakMount() }
    try mounted.mount()
    let plain = try watched(mounted.folder.path + "/plain", script)
    let onMount = try watched(mounted.documents + "/watched", script)
    #expect(onMount == plain)
    try mounted.unmount()
  }
}

extension Command {
  /// With the words that follow the script, the first one as `$0`.
  func words(_ words: [String]) -> Command {
    var command = self
    command.arguments = Array(command.arguments.prefix { $0 != "bash" }) + words
    return command
  }
}
