import ConformanceKit
import Foundation
import MountKit
import Testing

/// Two machines with networks of their own, joined by cables to a third one with the hub, over a bad network.
@Suite(.serialized, .enabled(if: NetworkNamespace.isPossible, "cables between networks need root and veth"))
struct ReplicaNetworkTests {
  private static let seed = ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap { UInt64($0) }
  /// Where the hub is, in its network; the proxy is before it.
  private static let hubPort = 8444

  /// A machine at the other end of a cable.
  private struct Place {
    let network: NetworkNamespace
    let number: Int

    init(_ number: Int, _ hub: NetworkNamespace, _ address: String) throws {
      self.number = number
      network = try NetworkNamespace()
      try network.run(
        """
        ip link add name cable type veth peer name cable\(number) netns \(hub.process)
        ip address add 10.91.\(number).2/24 dev cable
        ip link set cable up
        """)
      try hub.run(
        "ip address add 10.91.\(number).1/24 dev cable\(number); ip link set cable\(number) up")
      try network.run("ip route add \(address)/32 via 10.91.\(number).1")
    }

    func pull() throws { try network.run("ip link set cable down") }

    func plug(_ address: String) throws {
      try network.run("ip link set cable up; ip route replace \(address)/32 via 10.91.\(number).1")
    }
  }

  /// Both write while cables are pulled, packets vanish, and connections are delayed, stalled and cut: at the end both
  /// show the same, and every text is there.
  @Test(.timeLimit(.minutes(5))) func badNetworksLoseNothing() throws {
    let seed = Self.seed ?? UInt64.random(in: 0...UInt64.max)
    print("SHEAF_SEED=\(seed)")
    var random = SeededRandom(seed: seed)
    let address = "10.91.0.1"
    let place = try HubPlace(address: address)
    let hubNetwork = try NetworkNamespace()
    try hubNetwork.run("ip address add \(address)/32 dev lo")
    let places = try [1, 2].map { try Place($0, hubNetwork, address) }
    let hub = try serve(place, hubNetwork)
    defer { hub.end() }
    let proxy = try BackgroundCommand(
      Command(
        hubNetwork.prefix + [
          "python3", URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/hub-proxy", address,
          "\(place.port)", "\(Self.hubPort)", "\(seed % 1_000_000)",
        ]))
    defer { proxy.end() }
    let machines = try zip(["laptop", "desktop"], places).map {
      try ReplicaMachine($0, place, network: $1.network)
    }
    defer { for machine in machines { try? machine.library.tearDown() } }
    try eventually("the hub answers", within: .seconds(60)) {
      try machines[0].sheaf("connect", place.link, "--name", "laptop").status == 0
    }
    try machines[0].mount()
    let second = try machines[0].succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
    try machines[1].succeed("connect", second, "--name", "desktop")
    try machines[1].mount()
    try machines[0].shell("seq 20 > both.md && mkdir d")
    for machine in machines + machines { try machine.wait() }

    var texts: [String] = []
    for round in 0..<6 {
      let fault = Int.random(in: 0..<6, using: &random)
      let cut = places[round % 2]
      print("round \(round): fault \(fault) at place \(cut.number)")
      switch fault {
      case 0: try cut.pull()
      // The hub's answers vanish on their way; nobody says so.
      case 1: try hubNetwork.run("ip route add blackhole 10.91.\(cut.number).2/32")
      case 2: try hubNetwork.run("ip address del \(address)/32 dev lo")
      case 3: try proxy.say("delay 100")
      case 4: try proxy.say("stall")
      default: try proxy.say("cut \([300, 3_000, 30_000].randomElement(using: &random)!)")
      }
      for (index, machine) in machines.enumerated() {
        let text = "\(machine.name) \(round) \(random.next())"
        texts.append(text)
        let line = Int.random(in: 1...20, using: &random)
        try machine.shell(
          """
          echo '\(text)' > \(machine.name)\(round) && sed -i '\(line)s/.*/\(text)/' both.md
          head -c \(Int.random(in: 1...400_000, using: &random)) /dev/urandom > d/blob\(index)
          [ \(round) = 0 ] || mv \(machine.name)\(round - 1) d/
          """)
      }
      Thread.sleep(forTimeInterval: Double.random(in: 0.5...2, using: &random))
      switch fault {
      case 0: try cut.plug(address)
      case 1: try hubNetwork.run("ip route del blackhole 10.91.\(cut.number).2/32")
      case 2: try hubNetwork.run("ip address add \(address)/32 dev lo")
      default: try proxy.say("clear")
      }
    }
    for machine in machines + machines { try machine.wait() }
    let trees = try machines.map { try $0.tree() }
    #expect(trees[0] == trees[1], "SHEAF_SEED=\(seed)")
    // In a document, or in a version of one that somebody can open.
    let found = try machines.map { machine in
      try machine.shell(
        "find . -type f -not -name 'blob*' -exec cat {} +; cat .versions/*/* d/.versions/[!b]*/*")
    }.joined(separator: "\n")
    for text in texts { #expect(found.contains(text), "SHEAF_SEED=\(seed): \(text) is lost") }
    for machine in machines { #expect(try machine.library.check() == [], "SHEAF_SEED=\(seed)") }
  }

  private func serve(_ place: HubPlace, _ network: NetworkNamespace) throws -> BackgroundCommand {
    try BackgroundCommand(
      Command(
        network.prefix + [
          "/bin/sh", "-c", "exec \"$@\" 2>>'\(place.hub.folder)/log'", "sh", try HubProgram.path(), "serve", "--listen",
          "127.0.0.1:\(Self.hubPort)",
        ], environment: ["SHEAF_HUB": place.hub.hubFolder]))
  }
}
