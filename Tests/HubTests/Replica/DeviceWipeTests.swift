import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// `sheaf device remove --wipe`: alice's laptop and desktop, and bob, who shares something with her.
@Suite(.serialized) struct DeviceWipeTests {
  private static let bob = "bob@hub.example"
  /// Stands in everything that is to be gone.
  private static let secret = "a-secret-of-alice"

  private struct Machines {
    let place: HubPlace
    let laptop: ReplicaMachine
    let desktop: ReplicaMachine
    let bob: ReplicaMachine

    func settle() throws { for machine in [bob, laptop, desktop, bob, laptop, desktop] { try machine.wait() } }

    /// How the desktop is with the hub.
    func status() throws -> String { try desktop.succeed("status").text }

    func isWiped() throws -> Bool { try status().contains("what it had of it is destroyed") }

    /// The files of the desktop's library and state in which a text stands.
    func files(with text: String) throws -> String {
      let folder = URL(fileURLWithPath: desktop.library.library).deletingLastPathComponent().path
      return try Command.shell("grep -rlaF '\(text)' '\(folder)' '\(desktop.home)' || true").succeed().text
    }
  }

  private func withMachines(_ body: (Machines) throws -> Void) throws {
    let place = try HubPlace()
    _ = try place.serve()
    let link = try place.hub.succeed("account", "add", Self.bob)
    let (laptop, desktop) = (try ReplicaMachine("laptop", place), try ReplicaMachine("desktop", place))
    let bob = try ReplicaMachine("bob", place, handle: Self.bob)
    let all = [laptop, desktop, bob]
    defer { for machine in all { try? machine.library.tearDown() } }
    _ = try laptop.succeed("connect", place.link, "--name", "laptop")
    try laptop.mount()
    let own = try laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
    _ = try desktop.succeed("connect", own, "--name", "desktop")
    try desktop.mount()
    _ = try bob.succeed("connect", link, "--name", "bob")
    try bob.mount()
    try body(Machines(place: place, laptop: laptop, desktop: desktop, bob: bob))
    for machine in all { #expect(try machine.library.check() == []) }
    let check = try place.hub.run("check")
    #expect(check.status == 0, "\(check)")
  }

  /// What alice has on both machines, and what bob shares with her, each with the secret in contents and names.
  private func fill(_ machines: Machines) throws {
    let secret = Self.secret
    try machines.laptop.shell(
      """
      mkdir -p d/\(secret)-folder && echo '\(secret) one' > a && echo '\(secret) two' > a
      echo '\(secret)' > d/\(secret)-folder/b && ln d/\(secret)-folder/b linked && ln -s \(secret) link
      echo '\(secret)' > gone && rm gone && setfattr -n user.note -v '\(secret)' a
      for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo "\(secret) $i" > d/$i; done
      """)
    try machines.bob.shell("mkdir team && echo '\(secret) of bob' > team/plan")
    try machines.bob.wait()
    _ = try machines.bob.succeed("share", "Documents/team", "--with", HubPlace.handle, "--can", "edit")
    let url = try machines.bob.shell("getfattr --only-values -n user.sheaf.share.url team")
    try machines.laptop.wait()
    _ = try machines.laptop.succeed("accept", url)
    try machines.settle()
    let shared = "\(machines.desktop.library.mountpoint)/Shared/\(Self.bob)/team/plan"
    try eventually("the share is there", within: .seconds(30)) { access(shared, F_OK) == 0 }
    try machines.settle()
  }

  @Test func aLostMachineDestroysWhatItHas() throws {
    try withMachines { machines in
      try fill(machines)
      let (laptop, desktop) = (machines.laptop, machines.desktop)
      // Somebody else's, in the same library.
      try desktop.succeed("account", "add", "kim@example.com")
      let kim = try TemporaryFolder()
      defer { try? kim.remove() }
      let mount = ["mount", kim.path, "--library", desktop.library.library, "--as", "kim@example.com"]
      #expect(try desktop.sheaf(Array(mount.prefix(2)) + ["--as", "kim@example.com"]).status == 0)
      defer { _ = try? desktop.sheaf("unmount", kim.path) }
      try Command.shell("echo kims > '\(kim.path)/Documents/mine'").succeed()
      let before = try laptop.tree()
      #expect(try !machines.files(with: Self.secret).isEmpty)
      // A program has a document open, reads it later, and saves what it has.
      let results = try TemporaryFolder()
      defer { try? results.remove() }
      let reader = try BackgroundCommand(
        .shell(
          """
          set +e; trap - ERR
          exec 3< '\(desktop.library.documents)/a' 4<> '\(desktop.library.documents)/d/1'
          echo open > '\(results.path)/open'
          while ! [ -e '\(results.path)/go' ]; do sleep 0.1; done
          cat <&3 > '\(results.path)/read' 2> '\(results.path)/errors'; echo "read $?" > '\(results.path)/status'
          (echo more >&4) 2>> '\(results.path)/errors'; echo "written $?" >> '\(results.path)/status'
          touch '\(results.path)/over'
          """))
      defer { reader.end() }
      try eventually("the program has them open", within: .seconds(20)) { access("\(results.path)/open", F_OK) == 0 }

      let asked = try laptop.sheaf("device", "remove", "desktop", "--wipe")
      #expect(asked.status != 0 && asked.errorText.contains("--yes"), "\(asked)")
      #expect(try !laptop.succeed("device", "list").text.contains("to be wiped"))
      let said = try laptop.succeed("device", "remove", "desktop", "--wipe", "--yes").text
      #expect(said.contains("destroys what it has"), "\(said)")
      try eventually("the desktop is wiped", within: .seconds(60)) { try machines.isWiped() }
      try eventually("the laptop hears of it", within: .seconds(30)) {
        try laptop.succeed("device", "list").text.contains("wiped 2")
      }
      try Command.shell("touch '\(results.path)/go'").succeed()
      try eventually("the program ended", within: .seconds(20)) { access("\(results.path)/over", F_OK) == 0 }
      let status = try Command.shell("cat '\(results.path)/status' '\(results.path)/errors'").succeed().text
      #expect(try Command.shell("cat '\(results.path)/read'").succeed().text.isEmpty)
      #expect(status.contains("read 1") && status.contains("written 1"), "\(status)")

      #expect(try desktop.shell("find . -mindepth 1") == "")
      #expect(try Command.shell("find '\(desktop.library.mountpoint)/Shared' -mindepth 1").succeed().text == "")
      #expect(try !desktop.succeed("deleted", "--as", HubPlace.handle).text.contains(Self.secret))
      #expect(try !desktop.succeed("activity", "--as", HubPlace.handle).text.contains(Self.secret))
      #expect(try Command.shell("cat '\(kim.path)/Documents/mine'").succeed().text == "kims")
      let keys = try Command.shell("find '\(desktop.home)' -name '*.json' -o -name '*.keys' -o -name '*.serial'")
        .succeed().text
      #expect(keys.isEmpty, "\(keys)")
      _ = try desktop.sheaf("unmount", kim.path)
      try desktop.library.unmount()
      #expect(try machines.files(with: Self.secret) == "")
      // Nobody else noticed.
      try laptop.wait()
      #expect(try laptop.tree() == before)
      #expect(try machines.bob.shell("cat team/plan") == "\(Self.secret) of bob")
      // It may come back, and has everything then.
      try desktop.mount()
      try desktop.shell("echo new > new")
      let link = try laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
      _ = try desktop.succeed("connect", link, "--name", "desktop", "--yes")
      for machine in [desktop, laptop, desktop, laptop] { try machine.wait() }
      #expect(try desktop.tree() == laptop.tree())
      #expect(try desktop.shell("cat new a") == "new\n\(Self.secret) two")
      #expect(try laptop.shell("ls | wc -l") == desktop.shell("ls | wc -l"))
    }
  }

  /// It was away, has something that nobody else has, is killed again and again meanwhile, and cannot reach the hub when
  /// it is done.
  @Test func whatItBeganItFinishes() throws {
    let seed = ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    try withMachines { machines in
      try fill(machines)
      let (laptop, desktop) = (machines.laptop, machines.desktop)
      try laptop.shell("mkdir many && for i in $(seq 400); do echo '\(Self.secret) '$i > many/$i; done")
      try machines.settle()
      let before = try laptop.tree()
      try desktop.library.unmount()
      _ = try laptop.succeed("device", "remove", "desktop", "--wipe", "--yes")
      #expect(try laptop.succeed("device", "list").text.contains("to be wiped"))
      var kills = 0
      while kills < 8 {
        try desktop.mount()
        // From before it hears of it to after it is done.
        for _ in 0..<Int.random(in: 0...4, using: &random) { _ = try desktop.sheaf("status") }
        if kills == 4 { machines.place.hub.kill() }
        try desktop.library.killServer()
        desktop.library.breakMount()
        kills += 1
      }
      try desktop.mount()
      _ = try machines.place.serve()
      try eventually("SHEAF_SEED=\(seed): the desktop is wiped", within: .seconds(120)) { try machines.isWiped() }
      try eventually("SHEAF_SEED=\(seed): the laptop hears of it", within: .seconds(60)) {
        try laptop.succeed("device", "list").text.contains("wiped 2")
      }
      #expect(try desktop.shell("find . -mindepth 1") == "", "SHEAF_SEED=\(seed)")
      try desktop.library.unmount()
      #expect(try machines.files(with: Self.secret) == "", "SHEAF_SEED=\(seed)")
      try laptop.wait()
      #expect(try laptop.tree() == before, "SHEAF_SEED=\(seed)")
      try desktop.mount()
      _ = try desktop.succeed("disconnect", "--as", HubPlace.handle)
      #expect(try !machines.isWiped())
    }
  }

  /// Whoever finds the machine in time takes it back.
  @Test func itIsTakenBackBeforeItBegins() throws {
    try withMachines { machines in
      try fill(machines)
      let (laptop, desktop) = (machines.laptop, machines.desktop)
      try desktop.library.unmount()
      _ = try laptop.succeed("device", "remove", "desktop", "--wipe", "--yes")
      let said = try laptop.succeed("device", "remove", "desktop").text
      #expect(said.contains("stays there"), "\(said)")
      #expect(try !laptop.succeed("device", "list").text.contains("desktop"))
      try desktop.mount()
      try eventually("the removed machine says so", within: .seconds(60)) {
        try machines.status().contains("Problem")
      }
      #expect(try desktop.shell("cat a") == "\(Self.secret) two")
      _ = try desktop.succeed("disconnect", "--discard-unsent")
    }
  }
}
