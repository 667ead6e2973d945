import Foundation
package import SheafModel
package import SheafWire

/// The shares of the account, and those that it takes part in.
extension DeviceClient {
  /// Shares in an inbox at most.
  private static let mostShares = 5_000

  /// All shares that the account owns, takes part in or is invited to, and those that ended.
  package func inbox() async throws -> InboxPage {
    var all = InboxPage(entries: [], number: 0)
    repeat {
      let after = all.entries.last.map { "&after=\($0.share)" } ?? ""
      let page: InboxPage = try await fetch("/v1/inbox?limit=\(WireLimits.rowsPerPage)\(after)")
      let shares = all.entries.suffix(1).map(\.share) + page.entries.map(\.share)
      guard page.number >= 0, page.entries.count <= WireLimits.rowsPerPage, all.entries.count <= Self.mostShares,
        zip(shares, shares.dropFirst()).allSatisfy({ $0 < $1 }), page.entries.allSatisfy(\.isSound)
      else { throw nonsense("gives out an inbox that is none") }
      // What changes while pages are read raises the number; whoever reads again sees it.
      if all.entries.isEmpty { all.number = page.number }
      all.entries += page.entries
      if page.entries.count < WireLimits.rowsPerPage { return all }
    } while true
  }

  /// A share as the account sees it.
  package func share(_ share: WireID) async throws -> ShareState {
    try checked(try await fetch("/v1/shares/\(share)")) { $0.share == share }
  }

  /// Shares an item of the account's zone, or changes the share that is there.
  package func share(item: WireID, _ settings: ShareSettings) async throws -> ShareState {
    try checked(try await fetch(HubRequest(.PUT, settings, to: "/v1/items/\(item)/share"))) { $0.item == item }
  }

  private func checked(_ state: ShareState, _ isAsked: (ShareState) -> Bool) throws -> ShareState {
    guard isAsked(state), state.isSound else { throw nonsense("tells of a share that is none") }
    return state
  }

  /// Ends a share of the account.
  package func stopSharing(_ share: WireID) async throws {
    try await perform(HubRequest("/v1/shares/\(share)", method: .DELETE))
  }

  /// Invites somebody, or changes what they may do.
  package func setParticipant(_ handle: AccountHandle, of share: WireID, _ settings: ParticipantSettings) async throws
    -> ShareParticipant
  {
    let participant: ShareParticipant = try await fetch(
      HubRequest(
        .PUT, settings, to: "/v1/shares/\(share)/participants/\(PercentCoding.encode(handle.description.utf8))"))
    guard participant.handle == handle.description, participant.isSound else {
      throw nonsense("invites somebody else")
    }
    return participant
  }

  /// Takes somebody out of a share; the account itself leaves.
  package func removeParticipant(_ handle: AccountHandle, of share: WireID) async throws {
    try await perform(
      HubRequest("/v1/shares/\(share)/participants/\(PercentCoding.encode(handle.description.utf8))", method: .DELETE))
  }

  /// A link by which one person can join.
  package func inviteOnce(to share: WireID, _ settings: OneTimeLinkSettings) async throws -> OneTimeLinkFacts {
    let facts: OneTimeLinkFacts = try await fetch(HubRequest(posting: settings, to: "/v1/shares/\(share)/links"))
    guard (try? ShareURL(facts.url)) != nil, facts.url.isPrintable, Timestamp(rfc3339: facts.expires) != nil else {
      throw nonsense("makes a link that is none")
    }
    return facts
  }

  /// Ends the one-time links that nobody claimed.
  ///
  /// - Returns: how many there were; nil from a hub whose program is older.
  package func revokeLinks(to share: WireID) async throws -> Int? {
    let request = HubRequest("/v1/shares/\(share)/links", method: .DELETE)
    guard let facts = try await fetchIfAny(request, as: RevokedLinkFacts.self) else { return nil }
    guard facts.revoked >= 0 else { throw nonsense("revokes fewer links than none") }
    return facts.revoked
  }

  /// Those who ask for access.
  package func requests(for share: WireID) async throws -> [ShareRequest] {
    let answer: ShareRequests = try await fetch("/v1/shares/\(share)/requests")
    let isSound = answer.requests.allSatisfy {
      (try? AccountHandle($0.handle)) != nil && $0.name.isPrintable && Timestamp(rfc3339: $0.time) != nil
    }
    guard isSound else { throw nonsense("tells of requests that are none") }
    return answer.requests
  }

  /// Answers somebody who asked.
  package func answer(_ answer: ShareAnswer, to handle: AccountHandle, of share: WireID) async throws {
    try await perform(
      HubRequest(
        .PUT, answer,
        to: "/v1/shares/\(share)/requests/\(PercentCoding.encode(handle.description.utf8))"))
  }

  /// What a link offers.
  package func offer(_ url: String) async throws -> ShareOfferFacts {
    let offer: ShareOfferFacts = try await fetch(HubRequest(posting: ShareLink(url: url), to: "/v1/offers"))
    guard (try? AccountHandle(offer.owner)) != nil, offer.title.isPrintable, offer.ownerName.isPrintable,
      offer.expires.map({ Timestamp(rfc3339: $0) != nil }) ?? true
    else { throw nonsense("makes an offer that is none") }
    return offer
  }

  /// Joins by a link, or asks for access.
  package func accept(_ url: String) async throws -> ShareAcceptance {
    let answer: ShareAcceptance = try await fetch(HubRequest(posting: ShareLink(url: url), to: "/v1/acceptances"))
    guard answer.requested || answer.share != nil && answer.permission != nil else {
      throw nonsense("lets the account into no share")
    }
    return answer
  }

  /// Takes back that the account asked for access by a link.
  package func withdraw(_ url: String) async throws {
    try await perform(HubRequest(posting: ShareLink(url: url), to: "/v1/withdrawals"))
  }

  // MARK: - Items that go to another account

  /// Offers an item of the account to another one.
  package func offer(_ item: WireID, to handle: AccountHandle) async throws -> TransferFacts {
    let facts: TransferFacts = try await fetch(
      HubRequest(.PUT, TransferSettings(handle: handle.description), to: "/v1/items/\(item)/transfer"))
    guard facts.recipient == handle.description, facts.isSound else { throw nonsense("makes an offer that is none") }
    return facts
  }

  /// Takes the offer of an item back.
  package func withdraw(_ item: WireID) async throws {
    try await perform(HubRequest("/v1/items/\(item)/transfer", method: .DELETE))
  }

  /// What is offered, by the account and to it.
  package func transfers() async throws -> TransferLists {
    let lists: TransferLists = try await fetch("/v1/transfers")
    guard (lists.byMe + lists.toMe).allSatisfy(\.isSound), lists.byMe.allSatisfy({ $0.item != nil }) else {
      throw nonsense("tells of offers that are none")
    }
    return lists
  }

  /// Declines what is offered to the account.
  package func decline(_ transfer: WireID) async throws {
    try await perform(HubRequest("/v1/transfers/\(transfer)", method: .DELETE))
  }

  /// Makes what is offered to the account its own, as far as one request does that.
  package func acceptTransfer(_ transfer: WireID) async throws -> TransferProgress {
    let progress: TransferProgress = try await fetch(
      HubRequest("/v1/transfers/\(transfer)/acceptance", method: .POST))
    guard !progress.isDone || progress.item != nil else { throw nonsense("gives the account nothing") }
    return progress
  }

  // MARK: - What is in a share

  /// What changed in a share after a token. Without one, the shared item, and the token after which changes follow.
  package func feed(of share: WireID, after token: String?, limit: Int = 100) async throws -> SharedFeedPage {
    let page: SharedFeedPage = try await fetch(
      "/v1/shares/\(share)/feed?limit=\(limit)" + (token.map { "&token=\($0)" } ?? ""))
    try checkToken(page.token)
    let isSound = page.changes.allSatisfy { change in
      HubNumbers.range.contains(change.number)
        && (change.change == .left
          ? change.state == nil : change.state.map { $0.isSound && $0.item == change.item } ?? false)
        && change.deleted.map {
          $0.isSound && $0.item == change.item && $0.isDeleted && !$0.isPurged && change.change == .left
        } ?? true
    }
    guard isSound, page.changes.count <= max(1, limit), token == nil || !page.hasMore || !page.changes.isEmpty else {
      throw nonsense("gives out a page of a feed that is none")
    }
    return page
  }

  /// All that is in a folder of a share.
  package func children(of folder: WireID, in share: WireID) async throws -> [ItemState] {
    var (all, next): ([ItemState], String?) = ([], nil)
    var seen: Set<String> = []
    repeat {
      let page: SharedFolderPage = try await fetch(
        "/v1/shares/\(share)/items/\(folder)/children?limit=\(WireLimits.rowsPerPage)"
          + (next.map { "&after=\($0)" } ?? ""))
      let isSound = page.items.allSatisfy { item in
        item.isSound && !item.isDeleted && item.places.contains { $0.parent == folder }
      }
      guard isSound, page.items.count <= WireLimits.rowsPerPage else {
        throw nonsense("lists a folder that is none")
      }
      all += page.items
      next = page.next
      if let next {
        try checkToken(next)
        guard seen.insert(next).inserted else { throw nonsense("lists a folder without an end") }
      }
    } while next != nil
    return all
  }
}

extension String {
  /// Whether people see all of it, and it is no longer than titles and names are.
  fileprivate var isPrintable: Bool { count <= 1_024 && printable == self }
}

extension InboxEntry {
  fileprivate var isSound: Bool {
    guard (try? AccountHandle(owner)) != nil else { return false }
    if let asked {
      guard asked.title.isPrintable, asked.ownerName.isPrintable, Timestamp(rfc3339: asked.time) != nil else {
        return false
      }
    }
    return offer.map {
      $0.title.isPrintable && $0.ownerName.isPrintable && $0.requests >= 0 && (try? ShareURL($0.url)) != nil
    } ?? true
  }
}

extension TransferFacts {
  fileprivate var isSound: Bool {
    (try? AccountHandle(owner)) != nil && (try? AccountHandle(recipient)) != nil && ownerName.isPrintable
      && recipientName.isPrintable && name.utf8.count <= 4 * WireLimits.nameBytes && Timestamp(rfc3339: time) != nil
  }
}

extension ShareParticipant {
  fileprivate var isSound: Bool { (try? AccountHandle(handle)) != nil && name.isPrintable }
}

extension ShareState {
  /// Whether it is a share: with one owner, and each participant once.
  fileprivate var isSound: Bool {
    (try? ShareURL(url)) != nil && url.isPrintable && (1...255).contains(title.unicodeScalars.count)
      && title.isPrintable && participants.allSatisfy(\.isSound)
      && Set(participants.map(\.handle)).count == participants.count
      && participants.filter { $0.role == .owner }.map(\.handle) == [owner]
  }
}
