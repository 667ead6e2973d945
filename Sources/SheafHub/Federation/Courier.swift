import Foundation
import Logging
import ServiceLifecycle
import SheafHubStore
import SheafModel
import SheafWire
import Synchronization

/// Brings the news of zones to other hubs: what became of somebody's part in a share (`outgoing_abroad`), and new roots
/// of somebody's devices (`outgoing_roots`). Each row is written with the change that it tells of, brought at least once
/// by any process, and deleted when the other hub has it or refuses it for good.
struct Courier: Sendable {
  /// How long a request waits for its own news to arrive; they go on afterwards.
  private static let patience = Duration.seconds(5)
  private static let step: Int64 = 100

  let database: any Database
  let clock: HubClock
  let federation: Federation
  let addresses: HubAddresses
  private let pauses = Pauses()

  init(database: any Database, clock: HubClock, federation: Federation, addresses: HubAddresses) {
    self.database = database
    self.clock = clock
    self.federation = federation
    self.addresses = addresses
  }

  private struct Letter: Sendable {
    let share: WireID
    let account: String
    let revision: Int64
    let entry: String
  }

  /// Brings the news of a zone, as far as that is possible now and does not take long.
  func deliver(from zone: String) async {
    if federation.domains.isEmpty { return }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { try? await bringAll(of: zone) }
      group.addTask { try? await Task.sleep(for: Self.patience) }
      await group.next()
      group.cancelAll()
    }
  }

  /// Brings what is left of every zone.
  func deliverAll() async throws {
    if federation.domains.isEmpty { return }
    let zones = try await database.read { connection in
      let letters = try connection.query("SELECT zone FROM outgoing_abroad").map { try $0.text(0) }
      return Set(letters + (try connection.query("SELECT zone FROM outgoing_roots").map { try $0.text(0) }))
    }
    for zone in zones.sorted() {
      try Task.checkCancellation()
      try await bringAll(of: zone)
    }
  }

  /// The root of somebody of another hub who is to be invited.
  ///
  /// - Returns: nil for a handle that has no account there.
  /// - Throws: ``HubError`` of kind `unavailable` if that hub cannot be asked, and `conflict` if it refuses.
  func keys(of handle: String, share: WireID, zone: String, owner: String) async throws -> CollaborationRoot? {
    guard federation.speaks(for: owner), let place = WireID(zone) else {
      throw HubError(.conflict, "the owner is of no domain for which this hub speaks")
    }
    let request = CollaborationRequest(handle: handle, owner: owner, share: share, zone: place)
    let domain = Federation.domain(of: handle)
    let answer: HubAnswer
    do {
      answer = try await federation.post(request, to: Federation.keysPath, of: domain, for: owner)
    } catch let failure as HubDialFailure {
      throw HubError(.unavailable, "the hub of \(domain) cannot be asked: \(failure)")
    }
    switch answer.status {
    case 200:
      guard let root: CollaborationRoot = try? JSONText.decode(CollaborationRoot.self, answer.body),
        root.handle == handle, root.share == share, root.zone == place, (try? root.check()) != nil
      else { throw HubError(.unavailable, "the hub of \(domain) answers with something else than was asked for") }
      return root
    case 404: return nil
    case 401, 429, 500...: throw HubError(.unavailable, "the hub of \(domain) answers \(answer.status)")
    default: throw HubError(.conflict, "the hub of \(domain) refuses (\(answer.status))")
    }
  }

  private func bringAll(of zone: String) async throws {
    try await bringLetters(of: zone)
    try await bringRoots(of: zone)
  }

  private func bringLetters(of zone: String) async throws {
    guard let owner = try await handle(of: zone) else { return }
    var last: (share: [UInt8], account: [UInt8]) = ([], [])
    while true {
      let after = last
      let letters = try await database.read { connection in
        try connection.query(
          """
          SELECT share, account, revision, entry FROM outgoing_abroad
          WHERE zone = $1 AND (share > $2 OR (share = $2 AND account > $3)) ORDER BY share, account LIMIT $4
          """, [.text(zone), .blob(after.share), .blob(after.account), .integer(Self.step)]
        ).map {
          Letter(
            share: try StoredZone.id($0.blob(0)), account: String(decoding: try $0.blob(1), as: UTF8.self),
            revision: try $0.integer(2), entry: try $0.text(3))
        }
      }
      for letter in letters {
        let note: InboxNote = try StoredZone.decoded(letter.entry)
        let entry = note.entry(of: letter.share) { $0.url(address: addresses.first?.description, library: "") }
        let news = InboxNews(handle: letter.account, revision: letter.revision, entry: entry)
        guard await bring(news, to: Federation.inboxPath, Federation.domain(of: letter.account), for: owner) else {
          continue
        }
        _ = try await database.write { connection in
          try connection.execute(
            "DELETE FROM outgoing_abroad WHERE zone = $1 AND share = $2 AND account = $3 AND revision = $4",
            [
              .text(zone), .blob(letter.share.bytes), .blob(Array(letter.account.utf8)), .integer(letter.revision),
            ])
        }
      }
      guard letters.count == Self.step, let end = letters.last else { return }
      last = (end.share.bytes, Array(end.account.utf8))
    }
  }

  private func bringRoots(of zone: String) async throws {
    let shares = try await database.read { connection in
      try connection.query("SELECT share FROM outgoing_roots WHERE zone = $1", [.text(zone)])
        .map { try StoredZone.id($0.blob(0)) }
    }
    for share in shares {
      let found = try await database.read { connection in try Collaborations.root(of: share, zone: zone, &connection) }
      guard let (root, owner) = found else { continue }
      guard await bring(root, to: Federation.rootsPath, Federation.domain(of: owner), for: root.handle) else {
        continue
      }
      let now = clock.now
      try await database.write { connection in
        // A newer one is still to be told.
        guard try Collaborations.root(of: share, zone: zone, &connection)?.root.revision == root.revision else {
          return
        }
        try Collaborations.noteTold(share, of: zone, at: now, &connection)
      }
    }
  }

  /// - Returns: whether the other hub has it, or refuses it for good.
  private func bring(_ news: some Encodable, to path: String, _ domain: String, for handle: String) async -> Bool {
    guard federation.speaks(for: handle) else { return true }
    guard pauses.mayTry(domain) else { return false }
    do {
      let status = try await federation.post(news, to: path, of: domain, for: handle).status
      // Later, or once the other hub knows this one's key.
      guard status < 500, status != 401, status != 429 else {
        pauses.fail(domain)
        return false
      }
      pauses.succeed(domain)
      return true
    } catch is CancellationError {
      return false
    } catch {
      if !Task.isCancelled { pauses.fail(domain) }
      return false
    }
  }

  private func handle(of zone: String) async throws -> String? {
    try await database.read { connection in
      try connection.query("SELECT handle FROM accounts WHERE zone = $1", [.text(zone)]).first?.text(0)
    }
  }
}

/// When to try again to reach the hub of a domain: after growing pauses.
private final class Pauses: Sendable {
  private static let first = Duration.seconds(1)
  private static let longest = Duration.seconds(600)

  private let failed = Mutex<[String: (pause: Duration, until: ContinuousClock.Instant)]>([:])

  func mayTry(_ domain: String) -> Bool { failed.withLock { $0[domain].map { $0.until <= .now } ?? true } }

  func succeed(_ domain: String) { failed.withLock { _ = $0.removeValue(forKey: domain) } }

  func fail(_ domain: String) {
    failed.withLock { failed in
      let pause = failed[domain].map { min($0.pause * 2, Self.longest) } ?? Self.first
      failed[domain] = (pause, .now + pause)
    }
  }
}

/// Brings each second what is left of the news for other hubs, while a server runs.
struct CourierRounds: Service {
  private static let interval = Duration.seconds(1)

  let courier: Courier
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do {
          try await courier.deliverAll()
        } catch is CancellationError {
          return
        } catch {
          logger.warning("news for other hubs wait", metadata: ["reason": "\(type(of: error))"])
        }
        try? await Task.sleep(for: Self.interval)
      }
    }
  }
}
