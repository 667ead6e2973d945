import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// The rules of sharing on a hub, on values.
@Suite struct HubShareTests {
  private static let now = Timestamp(seconds: 1_800_000_000)
  private static let (alice, bob, carol, dora) = (person("alice"), person("bob"), person("carol"), person("dora"))

  private static func person(_ name: String) -> Person {
    Person(zone: "zone of \(name)", handle: "\(name)@hub.example", name: name)
  }

  /// A share of Alice's.
  private static func share(_ settings: ShareSettings = ShareSettings()) throws -> HubShare {
    var share = HubShare(
      id: WireID(), item: WireID(), kind: .folder, token: .random(), title: "Trip", isActive: false, anyone: .none,
      permission: .readWrite, allowsInvites: false, allowsRequests: false, members: [:], asking: [:], invitations: [:])
    share.beginAgain(by: alice, at: now)
    try share.change(settings, by: alice.zone, at: Self.now)
    return share
  }

  private static func invite(
    _ person: Person, _ settings: ParticipantSettings = ParticipantSettings(), by inviter: Person = alice,
    to share: inout HubShare
  ) throws {
    _ = try share.invite(person, settings, by: inviter.zone, at: now)
    _ = try share.accept(person, by: share.token, at: now)
  }

  /// The kind of problem that a rule answers with; nil for none.
  private func refusal(_ body: () throws -> Void) throws -> Problem.Kind? {
    do {
      try body()
      return nil
    } catch let error as HubError {
      return error.kind
    }
  }

  /// Every operation on the share itself is refused as the table has it, whoever tries it.
  @Test func theTableDecides() throws {
    for role in Role.allCases {
      for permission in SharePermission.allCases {
        for acceptance in Acceptance.allCases {
          var share = try Self.share()
          share.members[Self.bob.zone] = Member(
            person: Self.bob, role: role, permission: permission, acceptance: acceptance, since: Self.now)
          for operation in ShareOperation.allCases {
            let isAllowed = ShareRules.allows(
              operation, role: role, permission: permission, acceptance: acceptance)
            let answer = try refusal { try share.require(operation, by: Self.bob.zone) }
            #expect(
              answer == (acceptance == .removed ? .notFound : isAllowed ? nil : .forbidden),
              "\(operation) by \(role), \(permission), \(acceptance)")
          }
          let zone = Self.bob.zone
          let tries: [(ShareOperation, (inout HubShare) throws -> Void)] = [
            (.changeShare, { try $0.change(ShareSettings(title: "Mine"), by: zone, at: Self.now) }),
            (.unshare, { try $0.stop(by: zone) }),
            (.managePeople, { _ = try $0.invite(Self.dora, ParticipantSettings(), by: zone, at: Self.now) }),
            (.managePeople, { _ = try $0.invite(by: zone, permission: nil, at: Self.now) }),
            (.answerRequests, { _ = try $0.requests(for: zone) }),
            (.listPeople, { _ = try $0.people(for: zone) }),
          ]
          for (operation, attempt) in tries {
            var changed = share
            let isAllowed = ShareRules.allows(
              operation, role: role, permission: permission, acceptance: acceptance)
            #expect(try (refusal { try attempt(&changed) } == nil) == isAllowed, "\(operation) by \(role)")
          }
        }
      }
    }
  }

  @Test func strangersLearnNothing() throws {
    let share = try Self.share()
    let zone = Self.bob.zone
    let attempts: [(inout HubShare) throws -> Void] = [
      { try $0.change(ShareSettings(title: "Mine"), by: zone, at: Self.now) }, { try $0.stop(by: zone) },
      { try $0.leave(zone) },
      { _ = try $0.invite(Self.dora, ParticipantSettings(), by: zone, at: Self.now) },
      { _ = try $0.invite(nil, ParticipantSettings(), by: zone, at: Self.now) },
      { try $0.remove(Self.alice.handle, by: zone, at: Self.now) },
      { _ = try $0.revoke(by: zone, at: Self.now) },
      { _ = try $0.invite(by: zone, permission: nil, at: Self.now) }, { _ = try $0.requests(for: zone) },
      { try $0.answer(Self.dora.handle, Self.dora, .block, by: zone, at: Self.now) },
      { _ = try $0.people(for: zone) }, { _ = try $0.accept(Self.bob, by: $0.token, at: Self.now) },
      { _ = try $0.accept(Self.bob, by: .random(), at: Self.now) },
    ]
    for attempt in attempts {
      var changed = share
      do {
        try attempt(&changed)
        Issue.record("a stranger did something")
      } catch let error as HubError {
        // The same words for all of it.
        #expect(error == HubShare.nothing)
      }
      #expect(changed == share)
    }
  }

  @Test func anInvitationIsAccepted() throws {
    var share = try Self.share()
    #expect(try share.invite(Self.bob, ParticipantSettings(), by: Self.alice.zone, at: Self.now).acceptance == .pending)
    #expect(try refusal { _ = try share.people(for: Self.bob.zone) } == .forbidden)
    #expect(try share.accept(Self.bob, by: share.token, at: Self.now)?.role == .privateUser)
    #expect(try share.people(for: Self.bob.zone).map(\.person) == [Self.alice, Self.bob])
    #expect(share.summary == "Only invited people can edit")
    // Carol was not invited.
    #expect(try refusal { _ = try share.accept(Self.carol, by: share.token, at: Self.now) } == .notFound)
  }

  @Test func whoWasRemovedNeedsANewInvitation() throws {
    var share = try Self.share(ShareSettings(anyone: .readOnly))
    #expect(try share.accept(Self.bob, by: share.token, at: Self.now)?.role == .publicUser)
    try share.remove(Self.bob.handle, by: Self.alice.zone, at: Self.now)
    #expect(try refusal { _ = try share.accept(Self.bob, by: share.token, at: Self.now) } == .notFound)
    try Self.invite(Self.bob, to: &share)
    #expect(share.member(Self.bob.zone)?.acceptance == .accepted)
    // Who leaves is a stranger, whom the public permission lets in.
    try share.leave(Self.bob.zone)
    #expect(try share.accept(Self.bob, by: share.token, at: Self.now)?.role == .publicUser)
    #expect(try refusal { try share.leave(Self.alice.zone) } == .forbidden)
  }

  @Test func thePublicPermissionCountsForThoseWhoJoinedByIt() throws {
    var share = try Self.share(ShareSettings(anyone: .readWrite))
    try Self.invite(Self.carol, ParticipantSettings(permission: .readOnly), to: &share)
    _ = try share.accept(Self.bob, by: share.token, at: Self.now)
    // They see the owner and themselves, and learn nothing of others.
    #expect(try share.people(for: Self.bob.zone).map(\.person) == [Self.alice, Self.bob])
    try share.change(ShareSettings(allowInvites: true), by: Self.alice.zone, at: Self.now)
    let answer = try share.invite(Self.carol, ParticipantSettings(), by: Self.bob.zone, at: Self.now)
    #expect(answer.acceptance == .pending && share.member(Self.carol.zone)?.acceptance == .accepted)
    try share.change(ShareSettings(anyone: .readOnly), by: Self.alice.zone, at: Self.now)
    #expect(share.member(Self.bob.zone)?.permission == .readOnly)
    try share.change(ShareSettings(anyone: WirePublicPermission.none), by: Self.alice.zone, at: Self.now)
    #expect(share.member(Self.bob.zone) == nil && share.member(Self.carol.zone) != nil)
  }

  @Test func participantsInviteToNoMoreThanTheyMay() throws {
    var share = try Self.share(ShareSettings(allowInvites: true))
    try Self.invite(Self.bob, ParticipantSettings(permission: .readOnly), to: &share)
    let (edit, view) = (ParticipantSettings(permission: .readWrite), ParticipantSettings(permission: .readOnly))
    let chief = ParticipantSettings(role: .administrator)
    let zone = Self.bob.zone
    #expect(try refusal { _ = try share.invite(Self.carol, edit, by: zone, at: Self.now) } == .forbidden)
    #expect(try refusal { _ = try share.invite(Self.carol, chief, by: zone, at: Self.now) } == .forbidden)
    #expect(try refusal { _ = try share.invite(by: zone, permission: .readWrite, at: Self.now) } == .forbidden)
    _ = try share.invite(Self.carol, view, by: zone, at: Self.now)
    _ = try share.invite(by: zone, permission: .readOnly, at: Self.now)
    #expect(share.invitations.count == 1)
    // Who has an account is told to those alone who may invite.
    try share.change(ShareSettings(allowInvites: false), by: Self.alice.zone, at: Self.now)
    #expect(try refusal { _ = try share.invite(nil, view, by: zone, at: Self.now) } == .forbidden)
    #expect(try refusal { _ = try share.invite(nil, view, by: Self.alice.zone, at: Self.now) } == .notFound)
    #expect(share.invitations.isEmpty)
  }

  @Test func administratorsChangeNoOtherOne() throws {
    var share = try Self.share()
    try Self.invite(Self.bob, ParticipantSettings(role: .administrator), to: &share)
    try Self.invite(Self.carol, ParticipantSettings(role: .administrator), to: &share)
    try Self.invite(Self.dora, to: &share)
    let zone = Self.bob.zone
    #expect(try refusal { try share.remove(Self.carol.handle, by: zone, at: Self.now) } == .forbidden)
    #expect(try refusal { try share.remove(Self.alice.handle, by: zone, at: Self.now) } == .forbidden)
    let settings = ParticipantSettings(role: .administrator)
    #expect(try refusal { _ = try share.invite(Self.dora, settings, by: zone, at: Self.now) } == .forbidden)
    let viewing = ParticipantSettings(permission: .readOnly)
    #expect(try refusal { _ = try share.invite(Self.bob, viewing, by: Self.alice.zone, at: Self.now) } == .invalid)
    try share.remove(Self.dora.handle, by: zone, at: Self.now)
    #expect(share.member(Self.dora.zone) == nil)
    try share.remove(Self.carol.handle, by: Self.alice.zone, at: Self.now)
    #expect(share.member(Self.carol.zone) == nil)
  }

  @Test func aOneTimeLinkIsForOnePersonAndAWeek() throws {
    var share = try Self.share()
    let made = try share.invite(by: Self.alice.zone, permission: .readOnly, at: Self.now)
    #expect(try share.accept(Self.bob, by: made.token, at: Self.now)?.permission == .readOnly)
    #expect(try refusal { _ = try share.accept(Self.carol, by: made.token, at: Self.now) } == .notFound)
    let late = try share.invite(by: Self.alice.zone, permission: nil, at: Self.now)
    let end = Timestamp(seconds: Self.now.seconds + 7 * 86_400)
    #expect(try refusal { _ = try share.accept(Self.carol, by: late.token, at: end) } == .notFound)
    // A participant's counts for as long as they could give it out.
    try share.change(ShareSettings(allowInvites: true), by: Self.alice.zone, at: Self.now)
    let bobs = try share.invite(by: Self.bob.zone, permission: .readOnly, at: Self.now)
    try share.remove(Self.bob.handle, by: Self.alice.zone, at: Self.now)
    #expect(try refusal { _ = try share.accept(Self.carol, by: bobs.token, at: Self.now) } == .notFound)
    #expect(try share.revoke(by: Self.alice.zone, at: Self.now) > 0)
    #expect(try share.revoke(by: Self.alice.zone, at: Self.now) == 0)
    #expect(share.invitations.isEmpty)
  }

  @Test func peopleAskWhereTheShareLetsThem() throws {
    var share = try Self.share(ShareSettings(allowRequests: true))
    let alice = Self.alice.zone
    func ask(_ person: Person, at time: Timestamp = Self.now) throws -> Member? {
      try share.accept(person, by: share.token, at: time)
    }
    #expect(try ask(Self.bob) == nil)
    #expect(try share.requests(for: alice).map(\.person) == [Self.bob])
    #expect(share.waiting(for: try #require(share.owner)) == 1)
    try share.answer(Self.bob.handle, Self.bob, .approve, by: alice, at: Self.now)
    #expect(share.member(Self.bob.zone)?.acceptance == .accepted && share.asking.isEmpty)
    #expect(share.member(Self.bob.zone)?.permission == .readWrite)
    // With another permission than the share gives, from the first moment.
    #expect(try ask(Self.dora) == nil)
    try share.answer(Self.dora.handle, Self.dora, .approve, given: .readOnly, by: alice, at: Self.now)
    #expect(share.member(Self.dora.zone)?.permission == .readOnly)
    // Turned down for a day.
    #expect(try ask(Self.carol) == nil)
    try share.answer(Self.carol.handle, nil, .deny, by: alice, at: Self.now)
    #expect(try refusal { _ = try ask(Self.carol) } == .forbidden)
    #expect(try ask(Self.carol, at: Timestamp(seconds: Self.now.seconds + 86_400)) == nil)
    // Blocked for good, until somebody who manages people invites.
    try share.answer(Self.carol.handle, Self.carol, .block, by: alice, at: Self.now)
    try share.answer(Self.carol.handle, Self.carol, .deny, by: alice, at: Self.now)
    try share.change(ShareSettings(anyone: .readWrite), by: alice, at: Self.now)
    #expect(try refusal { _ = try ask(Self.carol) } == .notFound)
    try Self.invite(Self.carol, to: &share)
    #expect(share.member(Self.carol.zone) != nil)
    #expect(
      try refusal { try share.answer(Self.dora.handle, Self.dora, .approve, by: alice, at: Self.now) } == .notFound)
    #expect(
      try refusal { try share.answer(Self.alice.handle, Self.alice, .block, by: alice, at: Self.now) } == .notFound)
    // An account that took the handle of one that is gone did not ask.
    try share.change(ShareSettings(anyone: WirePublicPermission.none), by: alice, at: Self.now)
    #expect(try ask(Person(zone: "gone", handle: Self.dora.handle, name: nil)) == nil)
    #expect(
      try refusal { try share.answer(Self.dora.handle, Self.dora, .approve, by: alice, at: Self.now) } == .notFound)
  }

  @Test func whatEndedBeginsAgainUnderTheSameLink() throws {
    var share = try Self.share(ShareSettings(anyone: .readWrite, allowRequests: true))
    _ = try share.accept(Self.bob, by: share.token, at: Self.now)
    try share.remove(Self.bob.handle, by: Self.alice.zone, at: Self.now)
    try Self.invite(Self.carol, to: &share)
    let link = share.token
    try share.stop(by: Self.alice.zone)
    #expect(try refusal { _ = try share.accept(Self.dora, by: link, at: Self.now) } == .notFound)
    #expect(try refusal { _ = try share.people(for: Self.carol.zone) } == .notFound)
    #expect(!share.tellsStrangers(link, at: Self.now))
    share.beginAgain(by: Self.alice, at: Self.now)
    #expect(share.token == link && share.anyone == .none && !share.allowsRequests)
    #expect(share.member(Self.carol.zone) == nil)
    try share.change(ShareSettings(anyone: .readOnly), by: Self.alice.zone, at: Self.now)
    // Who was removed stays so.
    #expect(try refusal { _ = try share.accept(Self.bob, by: link, at: Self.now) } == .notFound)
    #expect(try share.accept(Self.carol, by: link, at: Self.now)?.permission == .readOnly)
    try share.change(ShareSettings(newLink: true), by: Self.alice.zone, at: Self.now)
    #expect(try refusal { _ = try share.accept(Self.dora, by: link, at: Self.now) } == .notFound)
  }

  /// Nobody new joins by a link that has ended, or asks for access, also if the item is shared anew. People who take
  /// part stay, and those who are invited join.
  @Test func aLinkEnds() throws {
    let alice = Self.alice.zone
    var share = try Self.share(ShareSettings(anyone: .readOnly, allowRequests: true, linkSeconds: 60))
    let (end, late) = (Timestamp(seconds: Self.now.seconds + 60), Timestamp(seconds: Self.now.seconds + 61))
    #expect(share.linkEnd == end)
    #expect(share.tellsStrangers(share.token, at: Self.now) && !share.tellsStrangers(share.token, at: end))
    _ = try share.accept(Self.bob, by: share.token, at: Self.now)
    try Self.invite(Self.carol, to: &share)
    let invitation = try share.invite(by: alice, permission: nil, at: Self.now).token
    #expect(try refusal { _ = try share.accept(Self.dora, by: share.token, at: end) } == .notFound)
    #expect(share.asking.isEmpty && share.summary(at: late).hasSuffix("the link has ended"))
    #expect(!share.summary(at: Self.now).contains("ended"))
    #expect(try share.accept(Self.bob, by: share.token, at: late) != nil)
    #expect(try share.accept(Self.carol, by: share.token, at: late)?.acceptance == .accepted)
    #expect(try share.accept(Self.dora, by: invitation, at: late)?.role == .privateUser)
    // It outlasts the share, as the link does, until it is given another end.
    try share.stop(by: alice)
    share.beginAgain(by: Self.alice, at: late)
    try share.change(ShareSettings(anyone: .readOnly), by: alice, at: late)
    let eve = Self.person("eve")
    #expect(try refusal { _ = try share.accept(eve, by: share.token, at: late) } == .notFound)
    for seconds in [-1, WireLimits.longestLink + 1, .max] {
      let settings = ShareSettings(linkSeconds: seconds)
      #expect(try refusal { try share.change(settings, by: alice, at: late) } == .invalid)
    }
    #expect(share.linkEnd == end)
    try share.change(ShareSettings(linkSeconds: 0), by: alice, at: late)
    #expect(share.linkEnd == nil)
    #expect(try share.accept(eve, by: share.token, at: late) != nil)
  }

  @Test func aShareHasBounds() throws {
    var share = try Self.share()
    for number in 1..<HubShare.mostMembers { try Self.invite(Self.person("guest\(number)"), to: &share) }
    #expect(try refusal { try Self.invite(Self.bob, to: &share) } == .conflict)
    for _ in 0..<HubShare.mostWaiting { _ = try share.invite(by: Self.alice.zone, permission: nil, at: Self.now) }
    #expect(try refusal { _ = try share.invite(by: Self.alice.zone, permission: nil, at: Self.now) } == .conflict)
    for title in ["", "a\u{1b}b", String(repeating: "x", count: 256)] {
      let settings = ShareSettings(title: title)
      #expect(try refusal { try share.change(settings, by: Self.alice.zone, at: Self.now) } == .invalid)
    }
  }

  /// What the wire says is what the rules know.
  @Test func theWordsAreTheSame() {
    #expect(WireRole.allCases.map { Role($0).rawValue } == WireRole.allCases.map(\.rawValue))
    #expect(Role.allCases.map(\.wire.rawValue) == Role.allCases.map(\.rawValue))
    #expect(SharePermission.allCases.map { SharePermission($0.wire) } == SharePermission.allCases)
    #expect(SharePermission.allCases.map(\.wire.rawValue) == SharePermission.allCases.map(\.rawValue))
    #expect(PublicPermission.allCases.map { PublicPermission($0.wire) } == PublicPermission.allCases)
    #expect(PublicPermission.allCases.map(\.wire.rawValue) == PublicPermission.allCases.map(\.rawValue))
    #expect(Acceptance.allCases.map(\.wire.rawValue) == Acceptance.allCases.map(\.rawValue))
  }
}
