import Foundation
import SheafModel
import Testing

@testable import SheafLibrary

/// What people are told, in a person's words.
struct NoticeTests {
  private let alice: AccountHandle
  private let bob: Account
  private static let start = Timestamp(seconds: 1_800_000_000)

  init() throws {
    alice = try AccountHandle("alice@example.com")
    bob = Account(handle: try AccountHandle("bob@example.com"), name: "Bob")
  }

  private func event(
    _ number: Int64, _ type: EventType, _ name: String, item: String = "1", by actor: Account? = nil,
    after seconds: Int64,
    _ change: (inout EventDetails) -> Void = { _ in }
  ) -> Event {
    var data = EventDetails(item: .init(id: item, kind: "document", name: name, path: name), actor: actor ?? bob)
    change(&data)
    return Event(
      id: "event \(number)", source: "sheaf://x", type: type, subject: item,
      time: Timestamp(seconds: Self.start.seconds + seconds), sequence: number, data: data)
  }

  private func texts(_ events: [Event]) -> [String] { Notice.notices(of: events, for: alice).map(\.text) }

  @Test func burstsAreOneNotice() {
    let saves = (0..<10).map { event(Int64($0), .edit, "a", after: Int64($0) * 6) }
    #expect(texts(saves) == ["Bob edited a 10 times"])
    #expect(texts([saves[0], event(20, .edit, "a", after: 3600)]) == ["Bob edited a", "Bob edited a"])
    #expect(texts([saves[0], event(20, .edit, "b", item: "2", after: 1)]) == ["Bob edited b", "Bob edited a"])
    let carol = Account(handle: try! AccountHandle("carol@example.com"), name: "Carol")
    #expect(texts([saves[0], event(20, .edit, "a", by: carol, after: 1), saves[1]]).count == 3)
  }

  @Test func ownActionsMakeNone() {
    let own = Account(handle: alice, name: "Alice")
    #expect(texts([event(1, .edit, "a", by: own, after: 0)]).isEmpty)
  }

  /// What a hub put beside another save is told by itself, also to the one who saved it.
  @Test func aSaveThatWentBesideAnotherIsTold() {
    let id = "5f0c1f2e-5d3e-8a51-9c3f-6a4a4e2f7c10"
    let own = Account(handle: alice, name: "Alice")
    func created(_ name: String, item: String = id, by actor: Account? = nil, device: String? = "desk") -> Event {
      event(1, .created, name, item: item, by: actor, after: 0) {
        $0.version = .init(number: 1, base: nil, size: 1, cause: "save")
        $0.device = device.map { .init(id: $0, name: $0) }
      }
    }
    let (bobs, alices) = ("a (bob@example.com 2026-11-30 desk).dat", "a (alice@example.com 2026-11-30 desk).dat")
    func told(_ who: String, _ name: String) -> String {
      "\(who) and another machine saved at once; what \(who) wrote is in \(name)"
    }
    #expect(texts([created(bobs)]) == [told("Bob", bobs)])
    #expect(
      texts([created(bobs), event(2, .edit, bobs, item: id, after: 5)]) == ["Bob edited \(bobs)", told("Bob", bobs)])
    #expect(texts([created(alices, by: own)]) == [told("Alice", alices)])
    // What somebody copied or named so themselves is not that.
    #expect(texts([created(bobs, item: "0197c1f0-5d3e-7a51-9c3f-6a4a4e2f7c10")]) == ["Bob created \(bobs)"])
    #expect(texts([created(alices)]) == ["Bob created \(alices)"])
    #expect(texts([created(bobs, device: nil)]) == ["Bob created \(bobs)"])
  }

  /// What passed over another save is told by itself, also to the one who did it.
  @Test func aSaveThatPassedOverAnotherIsTold() {
    func save(
      _ number: Int64, base: Int64?, by actor: Account? = nil, cause: String = "save", device: String? = nil
    ) -> Event {
      event(number, .edit, "a", by: actor, after: number) {
        $0.version = .init(number: number, base: base, size: 1, cause: cause)
        $0.device = device.map { .init(id: $0, name: $0) }
      }
    }
    func texts(_ events: [Event]) -> [String] {
      let passedOver = events.compactMap { event in event.passedOver.map { (event.id, $0) } }
      let notices = Notice.notices(of: events, for: alice, passedOver: Dictionary(uniqueKeysWithValues: passedOver))
      return notices.map(\.text)
    }
    let (own, told) = (Account(handle: alice, name: "Alice"), "edited a, but not based on version 3")
    #expect(texts([save(4, base: 2)]) == ["Bob \(told)"])
    #expect(texts([save(4, base: 2, by: own)]) == ["Alice \(told)"])
    #expect(texts([save(4, base: 2, cause: "replace")]) == ["Bob \(told)"])
    // A version of that number is gone, or is not to be known.
    #expect(self.texts([save(4, base: 2)]) == ["Bob edited a"])
    #expect(
      texts([save(3, base: 2), save(4, base: 2), save(5, base: 4), save(6, base: 5)])
        == ["Bob edited a 2 times", "Bob \(told)", "Bob edited a"])
    #expect(texts([save(2, base: 1), save(3, base: 2)]) == ["Bob edited a 2 times"])
    let created = event(1, .created, "a", after: 0)
    #expect(texts([created, save(2, base: 1), save(4, base: 2)]) == ["Bob \(told)", "Bob created a"])
    // A first version, one that came back, and what a hub merged are based on what they should be.
    #expect(texts([save(4, base: nil)]) == ["Bob edited a"])
    #expect(texts([save(4, base: 2, cause: "restore")]) == ["Bob restored an earlier version of a"])
    #expect(texts([save(4, base: 2, device: "laptop")]) == ["Bob edited a"])
  }

  @Test func renamesAreTold() {
    let first = event(1, .renamed, "Trip plan.md", after: 0) { $0.previousName = "Plan.md" }
    #expect(texts([first]) == ["Bob renamed Plan.md to Trip plan.md"])
    let second = event(2, .renamed, "Trip.md", after: 30) { $0.previousName = "Trip plan.md" }
    #expect(texts([first, second]) == ["Bob renamed Plan.md to Trip.md"])
  }

  @Test func mentionsReplaceTheirComment() {
    let comment = event(1, .comment, "a", after: 0) { $0.comment = "hi @alice@example.com" }
    let mention = event(2, .mention, "a", after: 0) {
      $0.comment = "hi @alice@example.com"
      $0.mentioned = Account(handle: alice, name: "Alice")
    }
    #expect(texts([comment, mention]) == ["Bob mentioned you in a comment on a: hi @alice@example.com"])
    #expect(texts([comment]) == ["Bob commented on a: hi @alice@example.com"])
  }

  @Test func invitationsSayWhere() {
    let invitation = event(1, .shareUpdated, "a", after: 0) {
      $0.participant = .init(
        handle: alice.description, name: "Alice", role: "privateUser", permission: "readWrite", acceptance: "pending")
      $0.share = .init(id: "x", url: "sheaf://x/s/y", title: "a")
    }
    #expect(texts([invitation]) == ["Bob invites you to a: sheaf://x/s/y"])
  }

  @Test(arguments: [
    (0, "just now"), (59, "just now"), (60, "1 minute ago"), (150, "2 minutes ago"), (7200, "2 hours ago"),
    (86_400, "1 day ago"), (20 * 86_400, "2 weeks ago"), (800 * 86_400, "2 years ago"),
  ])
  func agesAreRough(_ seconds: Int64, _ text: String) {
    #expect(Self.start.ago(at: Timestamp(seconds: Self.start.seconds + seconds)) == text)
  }
}
