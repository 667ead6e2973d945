import HubKit
import ConformanceKit
import Foundation
import GRDB
import Glibc
import MountKit
import Testing

/// Sidecar, mount process and receiver are killed at random, and every event arrives: at least once, in order, with one
/// id.
@Suite(.serialized) struct KillTests {
  /// Events in all; `SHEAF_EVENTS` says otherwise.
  private static var target: Int { ProcessInfo.processInfo.environment["SHEAF_EVENTS"].flatMap { Int($0) } ?? 600 }

  private enum Victim: CaseIterable { case sidecar, mount, receiver, nobody }

  @Test func everyEventArrivesWhoeverIsKilled() throws {
    let seed = ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    let note = Comment(rawValue: "SHEAF_SEED=\(seed)")
    let mounted = try MountedLibrary()
    defer { mounted.breakMount() }
    try mounted.mount()
    // These are looked at one by one.
    try mounted.sheafSucceeds("library", "set", "--rapid-saves", "keep", "--library", mounted.library)
    let receiver = try Receiver(in: mounted.folder, ["--random", "\(seed % 1_000_000)"])
    var sidecar = try startSidecar(mounted, receiver)
    let documents = try makeDocuments(mounted)
    var written = 0
    while written < Self.target {
      for _ in 0..<Int.random(in: 1...40, using: &random) {
        let document = documents.randomElement(using: &random)!
        let file = open(document, O_WRONLY | O_TRUNC | O_CLOEXEC)
        guard file >= 0 else { throw Errno(errno, "open \(document)") }
        written += 1
        let text = "contents \(written)"
        #expect(write(file, text, text.utf8.count) == text.utf8.count, note)
        #expect(close(file) == 0, note)
      }
      switch Victim.allCases.randomElement(using: &random)! {
      case .sidecar:
        sidecar.end()
        sidecar = try startSidecar(mounted, receiver)
      case .mount:
        try mounted.killServer()
        mounted.breakMount()
        try mounted.mount()
      case .receiver:
        receiver.kill()
        try receiver.restart(["--random", "\(random.next() % 1_000_000)"])
      case .nobody: break
      }
    }
    // What is settled now is all there is.
    try mounted.unmount()
    try mounted.mount()
    let log = try events(mounted)
    #expect(log.map(\.sequence) == Array(1...Int64(log.count)), note)
    // Each save is an edit, but for those that made a first version before the event of their document was settled.
    #expect(log.count(where: { $0.type == "sheaf.change.edit" }) >= written - documents.count, note)
    try eventually("the last event", within: .seconds(60 + Self.target / 10)) {
      try receiver.requests().last(where: \.taken)?.event().sequence == log.last?.sequence
    }
    try judge(try receiver.requests(), log, note)
    sidecar.end()
    try mounted.tearDown()
  }

  private struct Logged {
    let sequence: Int64
    let id: String
    let type: String
  }

  private func judge(_ requests: [Receiver.Request], _ log: [Logged], _ note: Comment) throws {
    var taken: Int64 = 0
    for request in requests {
      let event = try request.event()
      #expect(event.id == request.id && event.id == log[Int(event.sequence) - 1].id, note)
      // The next one comes only when this one was taken; the sidecar may not have heard that it was.
      #expect(event.sequence <= taken + 1, note)
      if request.taken { taken = max(taken, event.sequence) }
    }
    #expect(taken == log.last?.sequence, note)
  }

  private func makeDocuments(_ mounted: MountedLibrary) throws -> [String] {
    try (1...10).map { number in
      let path = "\(mounted.documents)/document \(number)"
      try "new".write(toFile: path, atomically: false, encoding: .utf8)
      // Whose id was read is a document whatever this program does: its event is settled.
      _ = try mounted.attribute("user.sheaf.id", of: "document \(number)")
      return path
    }
  }

  private func startSidecar(_ mounted: MountedLibrary, _ receiver: Receiver) throws -> BackgroundCommand {
    let configuration = "\(mounted.folder.path)/sidecar.toml"
    try """
    [[sink]]
    webhook = "\(receiver.url)"
    secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
    retry-base = 0.01
    retry-cap = 0.1
    """.write(toFile: configuration, atomically: true, encoding: .utf8)
    let program = try SheafProgram.path() + "-sidecar"
    return try BackgroundCommand(
      .shell(
        """
        exec '\(program)' --library '\(mounted.library)' --state '\(mounted.folder.path)/sidecar.sqlite' \
          --config '\(configuration)' >> '\(mounted.folder.path)/log' 2>&1
        """))
  }

  private func events(_ mounted: MountedLibrary) throws -> [Logged] {
    var configuration = Configuration()
    configuration.readonly = true
    let database = try DatabaseQueue(path: mounted.library, configuration: configuration)
    return try database.read { database in
      try Row.fetchAll(database, sql: "SELECT sequence, uuid, type FROM events ORDER BY sequence").map { row in
        let bytes: Data = row["uuid"]
        let uuid = bytes.withUnsafeBytes { UUID(uuid: $0.load(as: uuid_t.self)) }
        return Logged(sequence: row["sequence"], id: uuid.uuidString.lowercased(), type: row["type"])
      }
    }
  }
}
