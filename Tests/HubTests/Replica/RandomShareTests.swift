import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// Two people whose programs save, move and remove in a share all the time, at machines of their own, while rights
/// change, machines pause and processes are killed. In the end both have the same, nothing waits, and everything that
/// somebody saved is at the hub or in a library.
@Suite(.serialized) struct RandomShareTests {
  private static let bob = "bob@hub.example"
  private static let worker = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/share-worker"
  /// What each program does: some tens of seconds of it.
  private static let deeds = 700

  @Test(.timeLimit(.minutes(10))) func nothingIsLostAndNothingWaits() throws {
    let begin = ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
    var random = SeededRandom(seed: begin)
    let place = try HubPlace()
    _ = try place.serve()
    let link = try place.hub.succeed("account", "add", Self.bob)
    let (alice, bob) = (try ReplicaMachine("alice", place), try ReplicaMachine("bob", place, handle: Self.bob))
    let machines = [alice, bob]
    defer { for machine in machines { try? machine.library.tearDown() } }
    for (machine, link) in [(alice, place.link), (bob, link)] {
      try machine.succeed("connect", link, "--name", machine.name)
      try machine.mount()
      try machine.succeed("library", "set", "--rapid-saves", "keep")
    }
    try alice.shell("mkdir team")
    func letIn() throws {
      try alice.succeed("share", "Documents/team", "--with", Self.bob, "--can", "edit")
      let url = try alice.shell("getfattr --only-values -n user.sheaf.share.url team")
      try eventually("bob is in", within: .seconds(60)) { try bob.sheaf("accept", url).status == 0 }
    }
    try letIn()
    let shared = "\(bob.library.mountpoint)/Shared/\(HubPlace.handle)/team"
    try eventually("bob sees it", within: .seconds(60)) { access(shared, F_OK) == 0 }

    let seed = UInt64.random(in: 1...1_000_000, using: &random)
    let folders = ["\(alice.library.documents)/team", shared]
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
        "cd '\(folder)' && find . -type f ! -name '.*.tmp' | sort | while read -r f; do sha256sum \"$f\"; done"
      ).succeed().text
    }
    #expect(trees[0] == trees[1], note)
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
    #expect(lost == ["", ""], note)
    #expect(try workers.allSatisfy { output, _ in try !String(contentsOfFile: output, encoding: .utf8).isEmpty }, note)
  }

  private static func runs(_ process: Int32) -> Bool {
    let status = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
    return !status.isEmpty && !status.contains(") Z ")
  }
}
