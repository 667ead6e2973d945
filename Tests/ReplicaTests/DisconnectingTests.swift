import Logging
import SheafWire
import Testing

@testable import SheafLibrary
@testable import SheafReplication

/// How a connection with a hub ends.
@Suite struct DisconnectingTests {
  /// Documents of which nothing is here go, also where the process that disconnected ended before it was done.
  @Test(.timeLimit(.minutes(1))) func theNextProcessFinishesToDisconnect() async throws {
    let machine = try LibraryMachine("machine")
    let account = machine.account
    try machine.limit()
    try machine.save("mine\n", machine.documents, "mine.md", machine.program)
    let states = (1...3).map { number in
      ItemState(
        number: number, item: WireID(), kind: .document, isDeleted: false,
        // One of them has two names.
        places: (["\(number).md"] + (number == 2 ? ["second.md"] : [])).map { Place(parent: .root, $0) }, mode: 0o644,
        mtime: 1, target: nil, attributes: [:],
        version: ItemVersion(id: WireID(), number: 1, base: nil, cause: .save, time: 1, arrived: 1, size: 10),
        copyOf: nil)
    }
    try machine.library.noteListed(states, begins: true, of: account)
    try machine.library.endListing(token: "1", read: 3, of: account)
    for _ in 0..<20 {
      if let (number, step) = try machine.library.step(of: account) {
        #expect(try machine.library.needsContents(step, of: account) == nil)
        #expect(try machine.library.carryOut(number, step, of: account, contents: nil))
      } else {
        _ = try machine.library.plan(account)
      }
    }
    try #require(try names(machine) == ["1.md", "2.md", "3.md", "mine.md", "second.md"])

    try machine.library.disconnect(account)
    try machine.restart()
    let connections = LibraryConnections(library: machine.library, folder: nil, logger: Logger(label: "test"))
    try connections.start()
    while try !Task.isCancelled && names(machine) != ["mine.md"] { await Task.yield() }
    await connections.stop()
    #expect(try names(machine) == ["mine.md"])
    try machine.finish()
  }

  /// What the hub had told, and was planned or not, is shown once the account is connected to the same zone again; to
  /// another one it begins anew.
  @Test(arguments: [0, 1, 2], [true, false])
  func whatTheHubToldIsShownLater(_ stepsDone: Int, isSameZone: Bool) throws {
    let machine = try LibraryMachine("machine")
    let (library, account) = (machine.library, machine.account)
    let known = try #require(try library.replica(account))
    let zone = try #require(WireID(bytes: known.zone))
    let state = ItemState(
      number: 1, item: WireID(), kind: .folder, isDeleted: false, places: [Place(parent: .root, "a")], mode: 0o755,
      mtime: 1, target: nil, attributes: [:], version: nil, copyOf: nil)
    func carryOut(_ most: Int) throws {
      for _ in 0..<most {
        guard let (number, step) = try library.step(of: account) else {
          if case .settled = try library.plan(account) { return }
          continue
        }
        #expect(try library.carryOut(number, step, of: account, contents: nil))
      }
    }
    try library.noteListed([state], begins: true, of: account)
    try library.endListing(token: "1", read: 1, of: account)
    try carryOut(20)
    var moved = state
    (moved.number, moved.places) = (2, [Place(parent: .root, "b")])
    try library.note(FeedPage(items: [moved], token: "2", hasMore: false), of: account)
    try carryOut(stepsDone)
    try library.disconnect(account)
    #expect(try library.replica(account) == nil && library.replicas().isEmpty)
    try library.connect(account, zone: isSameZone ? zone : WireID(), hub: "https://hub.example")
    let replica = try #require(try library.replica(account))
    #expect(replica.token == (isSameZone ? "2" : nil) && replica.hub == "https://hub.example")
    guard isSameZone else {
      #expect(try library.replicaCounts(account).news == 0)
      return try machine.finish()
    }
    try carryOut(20)
    #expect(try names(machine) == ["b"])
    #expect(try library.sends(of: account, limit: 10).isEmpty)
    try machine.finish()
  }

  private func names(_ machine: LibraryMachine) throws -> [String] {
    try machine.library.list(machine.documents, after: 0, limit: 100, machine.other)
      .map { String(decoding: $0.name, as: UTF8.self) }.sorted()
  }
}
