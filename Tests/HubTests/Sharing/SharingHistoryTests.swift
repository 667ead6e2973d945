import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Synchronization
import Testing

@testable import SheafHub

/// Random histories of sharing, in a store that is away every now and then, before a transaction or after its commit.
/// After each step everybody's inbox must say what the owner's zone says, and nobody may see what the table denies.
@Suite struct SharingHistoryTests {
  /// A generator whose seed is known (SplitMix64).
  private struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var value = state
      value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
      value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
      return value ^ (value >> 31)
    }
  }

  /// A store that is away for some transactions.
  private final class FailingDatabase: Database {
    private let inner: any Database
    private let generator: Mutex<Generator>

    init(_ inner: any Database, seed: UInt64) {
      self.inner = inner
      generator = Mutex(Generator(state: seed))
    }

    func write<T: Sendable>(
      _ body: @escaping @Sendable (inout any SQLConnection) throws -> T
    ) async throws -> T {
      let fate = generator.withLock { Int.random(in: 0..<10, using: &$0) }
      if fate == 0 { throw HubStoreError.unavailable("before") }
      let value = try await inner.write(body)
      if fate == 1 { throw HubStoreError.unavailable("after") }
      return value
    }

    func read<T: Sendable>(_ body: @escaping @Sendable (inout any SQLConnection) throws -> T) async throws -> T {
      try await inner.read(body)
    }

    func close() async {}
  }

  @Test(arguments: StoreEngine.available)
  func everybodyIsToldWhatTheyMaySeeAndNothingElse(_ engine: StoreEngine) async throws {
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? 20
    let steps = environment["SHEAF_STEPS"].flatMap { Int($0) } ?? 250
    print("SHEAF_SEED=\(seed)")
    try await engine.withDatabase { database in
      let story = try await SharingTests.Story(database)
      let failing = Sharing(
        database: FailingDatabase(database, seed: seed), clock: story.hub.clock.clock, courier: story.hub.hub.courier)
      var generator = Generator(state: seed)
      var tokens: [ShareToken] = []
      var together = 0
      for step in 0..<steps {
        await Self.attempt(failing, story, &tokens, &generator)
        // The upkeep, which comes back until the store is there.
        while true {
          do {
            try await failing.inboxes.deliverAll()
            break
          } catch HubStoreError.unavailable {
            continue
          }
        }
        together += try await check(story, "step \(step) of SHEAF_SEED=\(seed)")
      }
      #expect(together > 50, "people hardly took part")
      #expect(try await story.hub.hub.check() == [])
    }
  }

  /// One random try of somebody, who repeats it a few times while the store is away.
  private static func attempt(
    _ sharing: Sharing, _ story: SharingTests.Story, _ tokens: inout [ShareToken], _ generator: inout Generator
  ) async {
    let items = [story.folder, story.document]
    let (actor, other) = (
      Int.random(in: 0..<5, using: &generator), Int.random(in: 0..<4, using: &generator)
    )
    // The owner does more than others, so that something happens.
    let (person, target) = (story.people[actor % 4], story.people[other])
    let now = Timestamp(seconds: 1_800_000_000)
    let link = tokens.randomElement(using: &generator) ?? .random()
    let permission = WirePermission.allCases.randomElement(using: &generator)
    let settings = ShareSettings(
      anyone: WirePublicPermission.allCases.randomElement(using: &generator), permission: permission,
      allowInvites: Bool.random(using: &generator), allowRequests: Bool.random(using: &generator),
      newLink: Int.random(in: 0..<3, using: &generator) == 0)
    let role = [nil, WireRole.administrator, .privateUser].randomElement(using: &generator) ?? nil
    let answer = ShareAnswer.Answer.allCases.randomElement(using: &generator) ?? .deny
    let (kind, item) = (
      Int.random(in: 0..<12, using: &generator), items.randomElement(using: &generator) ?? story.folder
    )
    let known = try? await story.sharing.share(item, of: story.people[0])
    let id = known?.id ?? WireID()
    for _ in 0..<3 {
      do {
        switch kind {
        case 0, 1: tokens.append(try await sharing.share(item, settings, by: person).token)
        case 2, 3:
          let wanted = ParticipantSettings(permission: permission, role: role)
          _ = try await sharing.change(id, by: person) { try $0.invite(target, wanted, by: person.zone, at: now) }
        case 4: try await sharing.change(id, by: person) { try $0.remove(target.handle, by: person.zone, at: now) }
        case 5: try await sharing.change(id, by: person) { try $0.leave(person.zone) }
        case 6:
          try await sharing.change(id, by: person) {
            try $0.answer(target.handle, target, answer, by: person.zone, at: now)
          }
        case 7:
          tokens.append(
            try await sharing.change(id, by: person) {
              try $0.invite(by: person.zone, permission: permission.map { SharePermission($0) }, at: now)
            }.token)
        case 8 where Int.random(in: 0..<3, using: &generator) == 0:
          try await sharing.change(id, by: person) { try $0.stop(by: person.zone) }
        default: _ = try await sharing.accept(link, by: person)
        }
        return
      } catch HubStoreError.unavailable {
        continue
      } catch {
        return
      }
    }
  }

  /// - Returns: how many people take part in what is another's.
  private func check(_ story: SharingTests.Story, _ place: String) async throws -> Int {
    var together = 0
    for item in [story.folder, story.document] {
      guard let share = try await story.sharing.share(item, of: story.people[0]) else { continue }
      let owner = try #require(share.owner).person
      for person in story.people {
        let entries = try await story.sharing.inboxes.page(after: nil, limit: 100, of: person.zone).entries
        let note = entries.first { $0.share == share.id }?.note
        let member = share.member(person.zone)
        if let member, member.role != .owner, member.acceptance == .accepted { together += 1 }
        #expect(note?.acceptance ?? .removed == member?.acceptance ?? .removed, "\(place)")
        #expect(note?.offer == InboxNote(share, for: person.zone, owner).offer, "\(place)")
        let seen = try await problem { _ = try await story.sharing.share(share.id, for: person) }
        #expect(seen == (member == nil ? .notFound : member?.acceptance == .pending ? .forbidden : nil), "\(place)")
      }
    }
    return together
  }
}

extension Sharing {
  /// The share of an item as its owner's zone has it.
  fileprivate func share(_ item: WireID, of owner: Person) async throws -> HubShare? {
    try await database.read { connection in
      var rows = ShareRows(zone: owner.zone, connection: connection)
      return try rows.share(of: item)
    }
  }
}
