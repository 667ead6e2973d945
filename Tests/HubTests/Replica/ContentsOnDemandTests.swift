import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// Contents that stay at the hub until somebody needs them: on a laptop that has everything, and on a desktop whose
/// library has a limit.
@Suite(.serialized) struct ContentsOnDemandTests {
  private static let seed = ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap { UInt64($0) }

  private struct Machines {
    let place: HubPlace
    let laptop: ReplicaMachine
    let desktop: ReplicaMachine

    /// Waits until each machine has what the other one did.
    func settle() throws { for machine in [laptop, desktop, laptop, desktop] { try machine.wait() } }

    /// What `user.sheaf.local` says of a document on the desktop.
    func local(_ path: String) throws -> String {
      try desktop.shell("getfattr --only-values -n user.sheaf.local '\(path)'")
    }

    /// Whether a document has the same bytes on both machines.
    func areSame(_ path: String) throws -> Bool {
      try Command.shell("cmp '\(laptop.library.documents)/\(path)' '\(desktop.library.documents)/\(path)'").run().status
        == 0
    }

    /// Bytes of contents that the desktop sent and fetched.
    func moved() throws -> Int {
      let text = try desktop.succeed("sync", "--json").text
      guard let match = text.firstMatch(of: #/"movedBytes" ?: ?([0-9]+)/#), let bytes = Int(match.1) else {
        throw Command.Failure(description: text)
      }
      return bytes
    }

    /// Sees whether a script in the desktop's `Documents` fetches nothing.
    func expectNothingFetched(_ script: String) throws {
      let before = try moved()
      try desktop.shell(script)
      #expect(try moved() == before, "\(script)")
    }
  }

  /// - Parameters:
  ///   - cache: The limit on the desktop; nil for none.
  ///   - script: What the laptop has before the desktop is connected.
  private func withMachines(
    cache: String? = "100M", making script: String, _ body: (Machines) throws -> Void
  ) throws {
    let place = try HubPlace()
    _ = try place.serve()
    try withMachines(place, cache: cache, making: script, body)
  }

  private func withMachines(
    _ place: HubPlace, cache: String?, making script: String, _ body: (Machines) throws -> Void
  ) throws {
    let (laptop, desktop) = (try ReplicaMachine("laptop", place), try ReplicaMachine("desktop", place))
    defer {
      try? laptop.library.tearDown()
      try? desktop.library.tearDown()
    }
    try eventually("the hub answers", within: .seconds(60)) {
      try laptop.sheaf("connect", place.link, "--name", "laptop").status == 0
    }
    try laptop.mount()
    try laptop.shell(script)
    try laptop.wait()
    let link = try laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
    if let cache {
      _ = try desktop.succeed("connect", link, "--name", "desktop", "--cache", cache)
    } else {
      _ = try desktop.succeed("connect", link, "--name", "desktop")
    }
    try desktop.mount()
    try desktop.wait()
    try body(Machines(place: place, laptop: laptop, desktop: desktop))
    for machine in [laptop, desktop] { #expect(try machine.library.check() == []) }
  }

  /// A text that is at the hub alone is not searched, and that is said. Once it is here it is found, though it is the same
  /// version.
  @Test func textsAreFoundOnceTheyAreHere() throws {
    try withMachines(
      making: "mkdir f && seq 60000 > f/a.txt && echo zeppelin >> f/a.txt && (echo zeppelin; seq 60000) > f/b.txt"
    ) { machines in
      let desktop = machines.desktop
      try desktop.succeed("library", "set", "--search-contents", "on")
      try #require(try ["f/a.txt", "f/b.txt"].map(machines.local) == ["remote", "remote"])
      func expect(_ found: [String], _ told: String?, _ more: String...) throws {
        for way in [[], ["--versions"]] {
          let output = try desktop.sheaf(["find", "zeppelin"] + more + way)
          // One of them has two versions.
          let names = Set(output.text.matches(of: #/[ab]\.txt/#).map { String($0.output) })
          #expect(output.status == 0 && names == Set(found), "\(way): \(output)")
          #expect(output.errorText.contains("names alone") == (told != nil), "\(way): \(output)")
          if let told { #expect(output.errorText.contains("alone of \(told) whose"), "\(way): \(output)") }
        }
      }
      let moved = try machines.moved()
      try expect([], "2 documents")
      try expect([], "1 document", "--name", "b*")
      try expect([], nil, "--since", "2099-01-01T00:00:00Z", "--name", "c*")
      #expect(try machines.moved() == moved)
      try desktop.shell("tail -n 1 f/a.txt && cat f/a.txt >/dev/null")
      try expect(["a.txt"], "1 document")
      _ = try desktop.succeed("keep", "Documents/f")
      try desktop.wait()
      try expect(["a.txt", "b.txt"], nil)
    }
  }

  @Test func whatNobodyReadsIsNotFetched() throws {
    try withMachines(
      making: """
        mkdir -p pictures/deep && for i in 1 2 3; do head -c 400000 /dev/urandom > pictures/$i.jpg; done
        seq 200000 > pictures/deep/long.txt && echo small > small.txt && ln -s small.txt link
        git init -q repository && cd repository && git config user.email a@b.c && git config user.name a
        seq 1000 > file && git add file && git commit -qm one
        """
    ) { machines in
      // Git has to read everything once, since it knows the files of another machine.
      try machines.desktop.shell("cd repository && git status --porcelain && git update-index --refresh")
      _ = try machines.desktop.succeed("free", "Documents/repository/file")
      #expect(try machines.local("repository/file") == "remote")
      for script in [
        "find . -type f -size +0", "ls -lR", "du -s . && du -sb .",
        "rsync -an . /var/tmp/nowhere-$$/", "getfattr -R -d -m - .",
        "gio list -a standard::content-type,standard::size pictures", "stat pictures/*", "cp -al pictures linked",
        "mv linked again && rm -r again", "chmod 600 small.txt && touch small.txt", "tar -cf /dev/null .",
      ] {
        try machines.expectNothingFetched(script)
      }
      try machines.expectNothingFetched("cd repository && git status --porcelain")
      #expect(try machines.local("small.txt") == "remote")
      // Sizes are right, and archivers see data.
      #expect(try machines.desktop.shell("stat -c '%s' pictures/1.jpg").hasPrefix("400000"))
      #expect(try machines.desktop.shell("[ $(stat -c %b small.txt) -ge 1 ] && echo yes").contains("yes"))
    }
  }

  @Test func whatIsReadIsFetched() throws {
    try withMachines(
      making: """
        head -c 5000000 /dev/urandom > large && seq 1000 > small
        printf x | dd of=sparse bs=1 seek=3000000 status=none
        """
    ) { machines in
      let (mount, other) = (machines.desktop.library.documents, machines.laptop.library.documents)
      try Command.shell(
        "cmp <(dd if='\(mount)/large' bs=4096 skip=700 count=2 status=none) <(dd if='\(other)/large' bs=4096 skip=700 count=2 status=none)"
      ).succeed()
      #expect(try machines.local("large") == "partly")
      for name in ["large", "small", "sparse"] { #expect(try machines.areSame(name), "\(name)") }
      for name in ["large", "small", "sparse"] { #expect(try machines.local(name) == "here", "\(name)") }
      // What is here is not fetched twice, also after a restart.
      try machines.desktop.library.unmount()
      try machines.desktop.mount()
      try machines.desktop.wait()
      try machines.expectNothingFetched("cat large small sparse > /dev/null")
    }
  }

  /// What programs do with documents that are not here comes out as on a disk.
  @Test(.timeLimit(.minutes(5))) func writesToWhatIsNotHereComeOutAsOnADisk() throws {
    let seed = Self.seed ?? UInt64.random(in: 0...UInt64.max)
    print("SHEAF_SEED=\(seed)")
    var random = SeededRandom(seed: seed)
    let names = (0..<12).map { "d\($0)" }
    let make = names.enumerated().map { index, name in
      "head -c \([1, 4_096, 60_000, 900_000, 1_500_000, 6_000_000][index % 6]) /dev/urandom > \(name)"
    }
    try withMachines(making: make.joined(separator: "\n")) { machines in
      let disk = try TemporaryFolder()
      defer { try? disk.remove() }
      try Command.shell("cp -a '\(machines.laptop.library.documents)/.' '\(disk.path)/'").succeed()
      for step in 0..<40 {
        let (name, other) = (names.randomElement(using: &random)!, names.randomElement(using: &random)!)
        let place = Int.random(in: 0..<7_000_000, using: &random)
        let length = Int.random(in: 1..<200_000, using: &random)
        let mapping = """
          import mmap, os, sys
          f = os.open(sys.argv[1], os.O_RDWR)
          n = os.fstat(f).st_size
          m = mmap.mmap(f, n) if n else None
          if m and int(sys.argv[2]) % 2: m[n // 2] = 65
          """
        let deeds = [
          "dd if=/dev/zero of=\(name) bs=\(length) count=1 oflag=seek_bytes seek=\(place) conv=notrunc status=none",
          "truncate -s \(place) \(name)", "echo '\(step)' >> \(name)", "echo '\(step)' > \(name)",
          "cp --reflink=auto \(name) copy\(step)",
          "[ \(name) = \(other) ] || mv \(name) \(other); echo \(step) >> \(name)",
          "fallocate --punch-hole -o \(place) -l \(length) \(name)",
          "sed -i '1s/^/x/' \(name)", "ln \(name) link\(step)",
          "python3 -c '\(mapping)' \(name) \(step)",
          "dd if=\(name) of=part\(step) bs=4096 count=3 iflag=skip_bytes skip=\(place) status=none",
        ]
        let deed = deeds.randomElement(using: &random)!
        // Then it is not here again, unless it is not sent.
        if step % 3 == 0 {
          try machines.desktop.wait()
          _ = try machines.desktop.succeed("free", "Documents")
        }
        let results = try [disk.path, machines.desktop.library.documents].map {
          try Command.shell("cd '\($0)' && { \(deed); }").run().status
        }
        #expect(results[0] == results[1], "SHEAF_SEED=\(seed) step \(step): \(deed)")
      }
      try machines.settle()
      for machine in [machines.laptop, machines.desktop] {
        let difference = try Command.shell("diff -r '\(disk.path)' '\(machine.library.documents)'").run()
        #expect(difference.status == 0, "SHEAF_SEED=\(seed): \(difference.text)")
      }
    }
  }

  /// What is made of a document that is not here has its contents: what is left under its other names, or under the name
  /// of a backup, when another file takes its place.
  @Test func whatIsLeftOfAReplacedDocumentHasItsContents() throws {
    let names = ["linked", "moved", "made", "shared"]
    try withMachines(
      making: "for name in \(names.joined(separator: " ")); do echo $name > $name; done; ln linked other; ln made kept"
    ) { machines in
      _ = try machines.place.hub.succeed("account", "add", "bob@hub.example")
      _ = try machines.laptop.succeed("share", "Documents/shared", "--with", "bob@hub.example")
      try machines.settle()
      _ = try machines.desktop.succeed("free", "Documents")
      for name in names { #expect(try machines.local(name) == "remote", "\(name)") }
      let save = """
        import os
        def write(name):
            with open(name, "x") as file: file.write("new\\n")
        os.rename("moved", "moved~"); write("moved")
        os.unlink("made"); write("made")
        os.link("shared", "shared~"); write("t"); os.rename("t", "shared")
        write("u"); os.rename("u", "linked")
        """
      try machines.desktop.shell("python3 - <<'END'\n\(save)\nEND")
      try machines.settle()
      for machine in [machines.laptop, machines.desktop] {
        #expect(try machine.shell("cat \(names.joined(separator: " "))") == "new\nnew\nnew\nnew")
        #expect(try machine.shell("cat other kept") == "linked\nmade")
      }
      // Backups do not travel.
      #expect(try machines.desktop.shell("cat moved~ shared~") == "moved\nshared")
    }
  }

  @Test func withoutTheHubWhatIsHereWorksAndWhatIsNotFailsAtOnce() throws {
    try withMachines(making: "seq 1000 > a && seq 2000 > b && seq 3000 > c && seq 4000 > d") { machines in
      try machines.desktop.shell("cat a > /dev/null")
      try machines.place.hub.stop()
      try eventually("it is noticed", within: .seconds(20)) {
        try machines.desktop.succeed("status").text.contains("not connected")
      }
      let failed = try Command.shell("cd '\(machines.desktop.library.documents)' && cat b", limit: .seconds(3)).run()
      #expect(failed.status != 0 && failed.errorText.contains("No route to host"), "\(failed)")
      let shown = try machines.desktop.sheaf("show", "Documents/b")
      #expect(shown.status != 0 && shown.errorText.contains("cannot be reached"), "\(shown)")
      let changed = try Command.shell("cd '\(machines.desktop.library.documents)' && echo x >> b").run()
      #expect(changed.status != 0, "\(changed)")
      // What is here, and what needs nothing of what is not.
      try machines.desktop.shell("tail -1 a && echo new > new && echo other > c && mv d e && ls -l && stat b")
      let kept = try machines.desktop.succeed("keep", "Documents/b").text
      #expect(kept.contains("once the hub is reached"), "\(kept)")
      _ = try machines.place.serve()
      try machines.settle()
      try eventually("what is kept comes", within: .seconds(20)) { try machines.local("b") == "kept" }
      for name in ["a", "b", "c", "e", "new"] { #expect(try machines.areSame(name), "\(name)") }
    }
  }

  @Test func aPersonSaysWhatIsHere() throws {
    try withMachines(
      making: "mkdir -p films/old && head -c 2000000 /dev/urandom > films/a && seq 9 > films/old/b && seq 100 > c"
    ) { machines in
      #expect(try machines.local("films/a") == "remote")
      let kept = try machines.desktop.succeed("keep", "Documents/films").text
      #expect(kept.contains("2 documents"), "\(kept)")
      #expect(try machines.local("films/a") == "kept" && machines.local("films/old/b") == "kept")
      #expect(try machines.local("c") == "remote")
      // What comes later, too.
      try machines.laptop.shell("seq 100000 > films/old/new && seq 200000 > films/a")
      try machines.settle()
      #expect(try machines.local("films/old/new") == "kept" && machines.local("films/a") == "kept")
      // An open document stays, and what the hub has had for less than a day.
      try machines.desktop.shell("echo more >> films/old/b")
      try machines.settle()
      let freed = try machines.desktop.shell(
        "exec 3< films/a; \(try SheafProgram.path()) free films; cat <&3 | wc -l")
      #expect(freed.contains("1 document stayed: open"), "\(freed)")
      #expect(freed.contains("1 document stayed: at the hub for less than a day"), "\(freed)")
      #expect(try machines.local("films/a") == "here" && machines.local("films/old/new") == "remote")
      _ = try machines.desktop.succeed("free", "Documents/films")
      #expect(try machines.local("films/a") == "remote" && machines.local("films/old/b") == "here")
      // Freed is freed, also for what comes.
      try machines.laptop.shell("seq 5 > films/more")
      try machines.settle()
      #expect(try machines.local("films/more") == "remote")
      // What says something else itself is not waited for.
      _ = try machines.desktop.succeed("free", "Documents/films/more")
      let most = try machines.desktop.succeed("keep", "Documents/films").text
      #expect(most.contains("1 document in it stay freed"), "\(most)")
      #expect(try machines.local("films/a") == "kept" && machines.local("films/more") == "remote")
      _ = try machines.desktop.succeed("keep", "Documents/films", "--default")
      for name in ["films/a", "films/old/b", "films/old/new", "films/more"] { #expect(try machines.areSame(name)) }
      let wrong = try machines.desktop.sheaf("keep", "Documents/nothing")
      #expect(wrong.status != 0 && wrong.errorText.contains("no such item"), "\(wrong)")
    }
  }

  @Test func aLimitHolds() throws {
    try withMachines(
      cache: "1M", making: "for i in 1 2 3 4 5 6; do head -c 400000 /dev/urandom > $i; done"
    ) { machines in
      for name in ["1", "2", "3", "4", "5", "6"] {
        #expect(try machines.areSame(name))
        // An access time has a second at least, as relatime(8) has it.
        try machines.desktop.shell("touch -a -d '2026-01-0\(name)' \(name)")
      }
      try eventually("the first ones went", within: .seconds(20)) {
        try machines.desktop.wait()
        return try machines.local("1") == "remote" && machines.local("2") == "remote"
      }
      #expect(try machines.local("6") == "here")
      _ = try machines.desktop.succeed("library", "set", "--cache", "none")
      try machines.desktop.wait()
      try eventually("everything comes", within: .seconds(20)) {
        try machines.desktop.wait()
        return try ["1", "2", "3", "4"].allSatisfy { try machines.local($0) == "here" }
      }
    }
  }

  /// A person changes a large document here and there: both machines have the same then, and what did not change does
  /// not travel. It is saved in place: a copy that takes longer than a second is a document of its own meanwhile.
  @Test func ofALargeDocumentOnlyWhatChangedTravels() throws {
    let seed = Self.seed ?? UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let size = 24_000_000
    try withMachines(cache: nil, making: "head -c \(size) /dev/urandom > large") { machines in
      try machines.settle()
      try eventually("all of it is here", within: .seconds(60)) {
        try machines.desktop.wait()
        return try machines.local("large") == "here"
      }
      for turn in 0..<12 {
        let (from, to) =
          turn.isMultiple(of: 2) ? (machines.laptop, machines.desktop) : (machines.desktop, machines.laptop)
        let offset = Int.random(in: 0..<size, using: &random)
        let script =
          switch Int.random(in: 0..<6, using: &random) {
          case 0:
            "head -c 4096 /dev/urandom | dd of=large bs=64k oflag=seek_bytes seek=\(offset) conv=notrunc status=none"
          case 1: "fallocate -p -o \(offset) -l 1000000 large"
          case 2: "truncate -s \(offset + 2_000_000) large"
          case 3:
            // Bytes of another place: the other machine has them, too. They are read before they are written, since a
            // place that overlaps its copy would repeat a short piece, and the chunks of that are new.
            """
            t=$(mktemp)
            dd if=large of=$t bs=4096 count=1000 skip=\(Int.random(in: 0..<4_000, using: &random)) status=none
            dd if=$t of=large bs=4096 seek=\(Int.random(in: 0..<4_000, using: &random)) conv=notrunc status=none
            rm $t
            """
          case 4: "head -c 70000 /dev/urandom >> large"
          default: "truncate -s -100000 large; truncate -s +300000 large"
          }
        let before = (try machines.moved(), try Int(from.shell("stat -c %s large")) ?? 0)
        try from.shell(script)
        try eventually("SHEAF_SEED=\(seed): the other machine has turn \(turn), \(script)", within: .seconds(60)) {
          for machine in [from, to] { try machine.wait() }
          return try machines.areSame("large")
        }
        #expect(try machines.areSame("large"), "SHEAF_SEED=\(seed): turn \(turn), \(script)")
        let grown = max(0, (try Int(to.shell("stat -c %s large")) ?? 0) - before.1)
        #expect(
          try machines.moved() - before.0 < 2_500_000 + grown, "SHEAF_SEED=\(seed): turn \(turn), \(script)")
      }
      for machine in [machines.laptop, machines.desktop] { #expect(try machine.library.check() == []) }
    }
  }

  /// A large document is stored after its close. Whoever waits waits for that, too, and nobody has to ask for it.
  @Test func aLargeSaveIsWaitedForAndTravelsByItself() throws {
    try withMachines(cache: nil, making: "head -c 24000000 /dev/urandom > large") { machines in
      try machines.settle()
      for turn in 0..<3 {
        try machines.laptop.shell("t=$(mktemp); (cat large; echo \(turn)) > $t; cat $t > large; rm $t")
        try machines.laptop.wait()
        try machines.desktop.wait()
        #expect(try machines.areSame("large"))
      }
      try machines.laptop.shell("t=$(mktemp); (cat large; echo last) > $t; cat $t > large; rm $t")
      try eventually("the other machine has it", within: .seconds(60)) { try machines.areSame("large") }
    }
  }

  /// Programs empty a document and write it anew. If the other machine has the empty one, it has the former one still.
  @Test func ofADocumentThatWasEmptiedOnlyWhatChangedTravels() throws {
    try withMachines(cache: nil, making: "head -c 12000000 /dev/urandom > large") { machines in
      try machines.settle()
      try eventually("all of it is here", within: .seconds(60)) {
        try machines.desktop.wait()
        return try machines.local("large") == "here"
      }
      let folder = try TemporaryFolder()
      defer { try? folder.remove() }
      for turn in 0..<2 {
        let before = try machines.moved()
        try machines.laptop.shell("cp large '\(folder.path)/copy'; : > large")
        // What is written at once would be part of the same version.
        try eventually("the other machine has the empty one", within: .seconds(60)) {
          try machines.settle()
          return try machines.desktop.shell("stat -c %s large") == "0"
        }
        try machines.laptop.shell("(cat '\(folder.path)/copy'; echo \(turn)) > large")
        try machines.settle()
        #expect(try machines.areSame("large"))
        #expect(try machines.moved() - before < 2_500_000, "turn \(turn)")
      }
    }
  }

  @Test func earlierVersionsComeWhenTheyAreRead() throws {
    try withMachines(making: "seq 1000 > a") { machines in
      try machines.laptop.shell("seq 2000 > a")
      try machines.settle()
      try machines.laptop.shell("seq 3000 > a")
      try machines.settle()
      #expect(try machines.desktop.succeed("versions", "Documents/a").text.split(separator: "\n").count == 4)
      let before = try machines.moved()
      #expect(try machines.desktop.shell("ls -l .versions/a | wc -l").isEmpty == false)
      #expect(try machines.moved() == before)
      #expect(try machines.desktop.succeed("show", "Documents/a", "--version", "1").text.hasSuffix("\n1000"))
      let lasts = try machines.desktop.shell("for f in .versions/a/*; do tail -1 \"$f\"; done")
      #expect(lasts.split(separator: "\n").count >= 3)
      _ = try machines.desktop.succeed("free", "Documents/a")
      _ = try machines.desktop.succeed("restore", "Documents/a", "--version", "2")
      try machines.settle()
      #expect(try machines.laptop.shell("tail -1 a") == "2000")
      #expect(try machines.areSame("a"))
    }
  }

  @Test func whatIsNotHereGoesWithTheConnection() throws {
    try withMachines(making: "seq 1000 > a && seq 2000 > b && mkdir d && seq 3000 > d/c") { machines in
      try machines.desktop.shell("cat a > /dev/null && echo mine > mine")
      try machines.settle()
      let said = try machines.desktop.succeed("disconnect").text
      #expect(said.contains("2 documents"), "\(said)")
      #expect(try machines.desktop.shell("find . -type f | sort") == "./a\n./mine")
      #expect(try machines.desktop.shell("tail -1 a") == "1000")
      // The hub has them, and they come back.
      let link = try machines.laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
      _ = try machines.desktop.succeed("connect", link, "--yes")
      try machines.settle()
      for name in ["a", "b", "d/c", "mine"] { #expect(try machines.areSame(name), "\(name)") }
    }
  }

  /// The network becomes a black hole during reads: everything else goes on, and the reads end.
  @Test(.timeLimit(.minutes(3))) func readsIntoABlackHoleHoldUpNothing() throws {
    let place = try HubPlace()
    let hidden = try HubPlace.freePort()
    _ = try place.hub.serve("--listen", "127.0.0.1:\(hidden)")
    let proxy = try BackgroundCommand(
      Command([
        "python3", URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/hub-proxy", "127.0.0.1",
        "\(place.port)", "\(hidden)", "1",
      ]))
    defer { proxy.end() }
    try withMachines(
      place, cache: "100M", making: "for i in $(seq 50); do head -c 300000 /dev/urandom > r$i; done; seq 10 > here"
    ) { machines in
      try machines.desktop.shell("cat here > /dev/null")
      let documents = machines.desktop.library.documents
      let results = try TemporaryFolder()
      defer { try? results.remove() }
      // Two others on the same machine, of whom one lets the other see something.
      let (kim, lee) = (try results.folder("kim"), try results.folder("lee"))
      let desktop = machines.desktop
      for (name, place) in [("kim", kim), ("lee", lee)] {
        try desktop.succeed("account", "add", "\(name)@example.com")
        try desktop.succeed("mount", place, "--as", "\(name)@example.com")
      }
      defer { for place in [kim, lee] { _ = try? desktop.sheaf("unmount", place) } }
      try Command.shell("echo plan > '\(kim)/Documents/plan'").succeed()
      let shared = try desktop.succeed(
        "share", "Documents/plan", "--with", "lee@example.com", "--as", "kim@example.com", "--json")
      let url = try #require(shared.text.firstMatch(of: #/sheaf:[^"]+/#)).output
      try desktop.succeed("accept", String(url), "--as", "lee@example.com")
      let seen = "\(lee)/Shared/kim@example.com/plan"
      #expect(try String(contentsOfFile: seen, encoding: .utf8) == "plan\n")
      let open = try FileHandle(forReadingFrom: URL(fileURLWithPath: seen))
      defer { try? open.close() }
      try proxy.say("stall")
      let reads = try BackgroundCommand(
        .shell(
          """
          cd '\(documents)'
          for i in $(seq 50); do (cat r$i > /dev/null 2> /dev/null && echo done || echo failed) >> '\(results.path)/reads' & done
          cp r1 '\(results.path)/copy' 2> /dev/null && echo done >> '\(results.path)/copies' || true
          tar -cSf '\(results.path)/tar' r2 r3 2> /dev/null && echo done >> '\(results.path)/copies' || true
          wait
          """))
      defer { reads.end() }
      let began = ContinuousClock.now
      try Command.shell(
        "cd '\(documents)' && stat r* > /dev/null && echo new > new && echo more >> here && cat here > /dev/null",
        limit: .seconds(2)
      ).succeed()
      // Another document's owner takes it back meanwhile, also from who has it open.
      let unshare = ["unshare", "Documents/plan", "--as", "kim@example.com", "--library", desktop.library.library]
      try Command(
        [try SheafProgram.path()] + unshare + ["--yes"], environment: desktop.environment, limit: .seconds(2)
      ).succeed()
      #expect(throws: (any Error).self) { try open.read(upToCount: 1) }
      #expect(access(seen, F_OK) != 0)
      // An interrupted read ends at once.
      let interrupted = try Command.shell("cd '\(documents)' && timeout -s INT 0.5 cat r9", limit: .seconds(2)).run()
      #expect(interrupted.status == 124, "\(interrupted)")
      try reads.wait(limit: .seconds(60))
      let ends = try String(contentsOfFile: "\(results.path)/reads", encoding: .utf8).split(separator: "\n")
      #expect(ends.count == 50 && ends.allSatisfy { $0 == "failed" }, "\(ends)")
      // Nothing was written that is not in the documents.
      #expect(access("\(results.path)/copies", F_OK) != 0)
      let zeros = "[ ! -s '\(results.path)/copy' ] || tr -d '\\0' < '\(results.path)/copy' | grep -q ."
      #expect(try Command.shell(zeros).run().status == 0)
      print("reads ended after \(ContinuousClock.now - began)")
      try proxy.say("clear")
      try machines.settle()
      for name in ["r1", "r50", "new", "here"] { #expect(try machines.areSame(name), "\(name)") }
    }
  }

  /// A machine that is killed while contents come has them, or fetches them again.
  @Test func aKillDuringAFetchLosesNothing() throws {
    try withMachines(making: "head -c 30000000 /dev/urandom > large") { machines in
      for _ in 0..<4 {
        let reading = try BackgroundCommand(
          .shell("cat '\(machines.desktop.library.documents)/large' > /dev/null 2> /dev/null; echo over"))
        try eventually("something came", within: .seconds(20)) { try machines.local("large") != "remote" }
        if let server = machines.desktop.library.server { kill(server, SIGKILL) }
        reading.end()
        _ = try Command.shell("umount -l '\(machines.desktop.library.mountpoint)'").run()
        #expect(try machines.desktop.library.check() == [])
        try machines.desktop.mount()
        try machines.desktop.wait()
      }
      #expect(try machines.areSame("large"))
    }
  }
}
