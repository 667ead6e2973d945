import Foundation
import HTTPTypes
import Hummingbird
import SheafModel
import SheafWire

extension HubRoutes {
  /// Shares: of the account, and those that it takes part in.
  func addShareRoutes(to routes: some RouterMethods<HubContext>) {
    let sharing = hub.sharing
    add(
      "v1/items/:item/share", to: routes,
      [
        .put: { request, context in
          let caller = try context.requireCaller()
          let item = try shareID("item", context)
          let settings = try await request.json(ShareSettings.self, upTo: Self.smallBody)
          let share = try await sharing.share(item, settings, by: caller.person)
          await watch.check()
          return try .json(try state(of: share, for: caller))
        }
      ])
    add(
      "v1/shares/:share", to: routes,
      [
        .get: { _, context in
          let (caller, place) = try await shared(context)
          let share = try await sharing.share(place.share, for: caller.person, in: place.zone)
          return try .json(try state(of: share, for: caller))
        },
        .delete: { _, context in
          let (caller, place) = try await shared(context)
          try await sharing.change(place.share, in: place.zone, by: caller.person) { try $0.stop(by: caller.zone) }
          await watch.check()
          return Response(status: .noContent)
        },
      ])
    addPeopleRoutes(to: routes)
    addJoiningRoutes(to: routes)
    addWithdrawalRoute(to: routes)
    add(
      "v1/inbox", to: routes,
      [
        .get: { request, context in
          let caller = try context.requireCaller()
          let after = try request.parameter("after").map { text in
            guard let id = WireID(text) else { throw HubError(.invalid, "after: not an id") }
            return id
          }
          let (limit, known) = (try pageLimit(request), try request.number("known"))
          let wait = try request.number("wait", upTo: Self.longestWait) ?? 0
          let page = { @Sendable in
            let page = try await sharing.inboxes.page(after: after, limit: limit, of: caller.zone)
            return InboxPage(entries: page.entries.map { $0.note.entry(of: $0.share, url: url) }, number: page.number)
          }
          return try .json(
            try await waiting(wait, for: caller, key: Inboxes.feed(of: caller.zone), page) { $0.number != known })
        }
      ])
  }

  private func addPeopleRoutes(to routes: some RouterMethods<HubContext>) {
    let (sharing, clock) = (hub.sharing, hub.clock)
    add(
      "v1/shares/:share/participants/:handle", to: routes,
      [
        .put: { request, context in
          let (caller, place) = try await shared(context)
          let settings = try await request.json(ParticipantSettings.self, upTo: Self.smallBody)
          let person = try await sharing.invitee(handle(context), to: place.share, settings, by: caller, hub.guests)
          let member = try await sharing.change(place.share, in: place.zone, by: caller.person) {
            try $0.invite(person, settings, by: caller.zone, at: clock.now)
          }
          return try .json(Self.participant(member))
        },
        .delete: { _, context in
          let (caller, place) = try await shared(context)
          let handle = handle(context)
          try await sharing.change(place.share, in: place.zone, by: caller.person) {
            try $0.remove(handle, by: caller.zone, at: clock.now)
          }
          await watch.check()
          return Response(status: .noContent)
        },
      ])
    add(
      "v1/shares/:share/requests", to: routes,
      [
        .get: { _, context in
          let (caller, place) = try await shared(context)
          let share = try await sharing.share(place.share, for: caller.person, in: place.zone)
          let requests = try share.requests(for: caller.zone).map {
            ShareRequest(
              handle: $0.person.handle, name: $0.person.name ?? $0.person.handle, time: $0.time.secondsText,
              isBlocked: $0.state == .blocked)
          }
          return try .json(ShareRequests(requests: requests))
        }
      ])
    add(
      "v1/shares/:share/requests/:handle", to: routes,
      [
        .put: { request, context in
          let (caller, place) = try await shared(context)
          let handle = handle(context)
          let answer = try await request.json(ShareAnswer.self, upTo: Self.smallBody)
          let person = try await sharing.person(handle)
          try await sharing.change(place.share, in: place.zone, by: caller.person) {
            try $0.answer(
              handle, person, answer.answer, given: answer.permission.map { SharePermission($0) }, by: caller.zone,
              at: clock.now)
          }
          return Response(status: .noContent)
        }
      ])
  }

  private func addJoiningRoutes(to routes: some RouterMethods<HubContext>) {
    let (sharing, clock) = (hub.sharing, hub.clock)
    add(
      "v1/shares/:share/links", to: routes,
      [
        .post: { request, context in
          let (caller, place) = try await shared(context)
          let settings = try await request.json(OneTimeLinkSettings.self, upTo: Self.smallBody)
          let made = try await sharing.change(place.share, in: place.zone, by: caller.person) {
            try $0.invite(by: caller.zone, permission: settings.permission.map { SharePermission($0) }, at: clock.now)
          }
          return try .json(
            OneTimeLinkFacts(
              url: url(of: made.token), permission: made.invitation.permission.wire,
              expires: made.invitation.expires.secondsText), status: .created)
        },
        .delete: { _, context in
          let (caller, place) = try await shared(context)
          let count = try await sharing.change(place.share, in: place.zone, by: caller.person) {
            try $0.revoke(by: caller.zone, at: clock.now)
          }
          return try .json(RevokedLinkFacts(revoked: count))
        },
      ])
    add(
      "v1/offers", to: routes,
      [
        .post: { request, context in
          let caller = try context.requireCaller(in: nil)
          let link = try token(try await request.json(ShareLink.self, upTo: Self.smallBody))
          let (offer, way) = try await sharing.offer(link, to: caller.person, guest: caller.guest)
          return try .json(Self.facts(offer, way))
        }
      ])
    add(
      "v1/acceptances", to: routes,
      [
        .post: { request, context in
          let caller = try context.requireCaller(in: nil)
          let link = try token(try await request.json(ShareLink.self, upTo: Self.smallBody))
          let (share, member) = try await sharing.accept(link, by: caller.person, guest: caller.guest)
          guard let member else { return try .json(ShareAcceptance(requested: true)) }
          return try .json(
            ShareAcceptance(requested: false, share: share, permission: member.permission.wire))
        }
      ])
  }

  /// Taking back that access was asked for.
  private func addWithdrawalRoute(to routes: some RouterMethods<HubContext>) {
    let sharing = hub.sharing
    add(
      "v1/withdrawals", to: routes,
      [
        .post: { request, context in
          let caller = try context.requireCaller()
          let link = try token(try await request.json(ShareLink.self, upTo: Self.smallBody))
          try await sharing.withdraw(link, by: caller.person)
          return Response(status: .noContent)
        }
      ])
  }

  // MARK: - What requests say

  func shareID(_ name: String, _ context: HubContext) throws -> WireID {
    guard let id = context.parameters.get(name).flatMap({ WireID($0) }) else { throw HubShare.nothing }
    return id
  }

  /// The handle of a path. One that has no form of a handle names nobody.
  private func handle(_ context: HubContext) -> String {
    let text = context.parameters.get("handle") ?? ""
    return text.removingPercentEncoding ?? text
  }

  /// The token of a URL of this hub, or of one without an address.
  private func token(_ link: ShareLink) throws -> ShareToken {
    guard let url = try? ShareURL(link.url) else { throw HubError(.invalid, "url: not the URL of a share") }
    switch url.place {
    case .any: return url.token
    case .address(let address) where hub.addresses.contains(address): return url.token
    case .address, .library: throw HubShare.nothing
    }
  }

  // MARK: - What answers say

  /// The URL of a share. Where the hub's certificate is its own, it has the fingerprint behind it, as links for devices
  /// do. A hub behind a proxy is dialled by https, too.
  func url(of token: ShareToken) -> String {
    token.url(address: hub.addresses.first?.description, library: "") + (fingerprint.map { "#\($0)" } ?? "")
  }

  private func state(of share: HubShare, for caller: Caller) throws -> ShareState {
    ShareState(
      share: share.id, item: share.item, url: url(of: share.token), title: share.title,
      owner: share.owner?.person.handle ?? "", anyone: share.anyone.wire, permission: share.permission.wire,
      allowInvites: share.allowsInvites, allowRequests: share.allowsRequests, expires: share.linkEnd?.secondsText,
      summary: share.summary(at: hub.clock.now),
      participants: try share.people(for: caller.zone).map(Self.participant))
  }

  private static func participant(_ member: Member) -> ShareParticipant {
    ShareParticipant(
      handle: member.person.handle, name: member.person.name ?? member.person.handle, role: member.role.wire,
      permission: member.permission.wire, acceptance: member.acceptance.wire)
  }

  private static func facts(_ offer: Sharing.Offer, _ way: HubShare.Way) -> ShareOfferFacts {
    let (word, permission): (ShareOfferFacts.Way, SharePermission) =
      switch way {
      case .member(let member): (.member, member.permission)
      case .join(let member, _): (.join, member.permission)
      case .ask: (.ask, offer.share.permission)
      }
    var end = offer.share.linkEnd
    if case .join(_, let invitation?) = way { end = offer.share.invitations[invitation]?.expires }
    return ShareOfferFacts(
      way: word, title: offer.share.title, owner: offer.owner.handle, ownerName: offer.owner.name ?? offer.owner.handle,
      kind: offer.share.kind, permission: permission.wire, expires: end?.secondsText)
  }
}

extension Caller {
  var person: Person { Person(zone: zone, handle: handle, name: name) }
}
