import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// Two people whose programs save, move and remove in a share all the time, at three machines, while rights change,
/// machines pause and processes are killed. In the end all have the same, nothing waits, and everything that somebody
/// saved is at the hub or in a library.
@Suite(.serialized) struct RandomShareTests {
  private static let bob = "bob@hub.example"
  private static let worker = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/share-worker"
  /// What alice has beside the share.
  private static let away = "find away -name '.*.tmp' -prune -o -print | sort"
  /// What each program does: some tens of seconds of it.
  private static let deeds = 700

  @Test(.timeLimit(.minutes(10))) func nothingIsLostAndNothingWaits() throws {
    let begin = ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
    var random = SeededRandom(seed: begin)
    let place = try HubPlace()
    _ = try place.serve()
    let link = try place.hub.succeed("account", "add", Self.bob)
    let (alice, bob) = (try ReplicaMachine("alice", place), try ReplicaMachine("bob", place, handle: Self.bob))
    let desktop = try ReplicaMachine("desktop", place)
    let machines = [alice, desktop, bob]
    defer { for machine in machines { try? machine.library.tearDown() } }
    func connect(_ machine: ReplicaMachine, _ link: String) throws {
      try machine.succeed("connect", link, "--name", machine.name)
      try machine.mount()
      try machine.succeed("library", "set", "--rapid-saves", "keep")
    }
    try connect(alice, place.link)
    try connect(desktop, alice.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines))
    try connect(bob, link)
    try alice.shell("mkdir team")
    func letIn() throws {
      try alice.succeed("share", "Documents/team", "--with", Self.bob, "--can", "edit")
      let url = try alice.shell("getfattr --only-values -n user.sheaf.share.url team")
      try eventually("bob is in", within: .seconds(60)) { try bob.sheaf("accept", url).status == 0 }
    }
    try letIn()
    let shared = "\(bob.library.mountpoint)/Shared/\(HubPlace.handle)/team"
    let folders = ["\(alice.library.documents)/team", "\(desktop.library.documents)/team", shared]
    try eventually("all see it", within: .seconds(60)) { folders.allSatisfy { access($0, F_OK) == 0 } }

    let seed = UInt64.random(in: 1...1_000_000, using: &random)
    let workers = try zip(machines, folders).map { machine, folder in
      let output = "\(place.folder.path)/\(machine.name).saved"
      return (
        output,
        try BackgroundCommand(
          .shell("exec python3 '\(Self.worker)' work '\(folder)' \(machine.name) \(seed) \(Self.deeds) > '\(output)'"))
      )
    }
    func areWorking() -> Bool { workers.contains { Self.runs($1.process) } }
    var said: [String] = []
    while areWorking() {
      let machine = machines.randomElement(using: &random) ?? alice
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<3:
        let permission = ["view", "edit"].randomElement(using: &random) ?? "edit"
        said.append("bob can \(permission)")
        _ = try alice.sheaf("participant", "set", "Documents/team", Self.bob, "--can", permission)
      case 3..<5:
        said.append("\(machine.name) pauses")
        _ = try machine.sheaf("sync", "--pause")
        try alice.shell("ls -lR team > /dev/null 2>&1 || true")
        _ = try machine.sheaf("sync", "--resume")
      case 5..<8:
        said.append("\(machine.name) is killed")
        try machine.library.killServer()
        try machine.mount()
      case 8:
        said.append("bob is removed, and let in again")
        _ = try alice.sheaf("participant", "remove", "Documents/team", Self.bob)
        try letIn()
      default: _ = try alice.shell("find team -type f -exec cat {} + > /dev/null 2>&1 || true")
      }
    }
    for (_, worker) in workers { try worker.wait(limit: .seconds(60)) }
    _ = try alice.sheaf("participant", "set", "Documents/team", Self.bob, "--can", "edit")
    let note: Comment = "SHEAF_SEED=\(begin): \(said)"
    for machine in machines + machines { #expect(try machine.sheaf("sync", "--wait", "180").status == 0, note) }
    // A temporary file stays at its machine: what a program could not rename any more.
    let trees = try folders.map { folder in
      try Command.shell(
        """
        cd '\(folder)' && find . \\( -type l -o -type f ! -name '.*.tmp' \\) | sort | while read -r f; do
          stat -c '%N %a' "$f"; [ -h "$f" ] || sha256sum "$f"; getfattr -h -d "$f" | grep colour || true
        done
        """
      ).succeed().text
    }
    #expect(trees[0] == trees[1] && trees[0] == trees[2], note)
    #expect(try alice.shell(Self.away) == desktop.shell(Self.away), note)
    for machine in machines { #expect(try machine.library.check() == [], note) }
    // What was deleted before the hub heard of it is in the trash here.
    var files = ["\(place.hub.hubFolder)/hub.sqlite"]
    for machine in machines {
      let copy = "\(place.folder.path)/\(machine.name).sqlite"
      try machine.succeed("backup", copy)
      files.append(copy)
    }
    try place.hub.stop()
    let lost = try workers.map { output, _ in
      try Command.shell("python3 '\(Self.worker)' lost \(files.joined(separator: " ")) < '\(output)'").succeed().text
    }
    #expect(lost.allSatisfy { $0.isEmpty }, "\(lost) \(note)")
    #expect(try workers.allSatisfy { output, _ in try !String(contentsOfFile: output, encoding: .utf8).isEmpty }, note)
  }

  private static func runs(_ process: Int32) -> Bool {
    let status = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
    return !status.isEmpty && !status.contains(") Z ")
  }
}
