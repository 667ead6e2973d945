import Foundation
import SheafHubClient
import SheafLibrary
import SheafModel
import SheafService
import SheafWire

/// What commands do with shares at a hub: the hub is asked, and then its answer shown.
struct HubSharing: Sendable {
  /// How long a command waits for something to come here, or to reach the hub.
  private static let patience = Duration.seconds(30)
  private static let pause = Duration.milliseconds(50)
  /// Shares that are asked about at once.
  private static let askedShares = 8
  /// How long a list waits for what another hub may add to it.
  private static let elsewhere = Duration.seconds(3)

  let shares: AccountShares
  /// The account's own hub. About what others share, the hub is asked that has it.
  let client: DeviceClient

  init(_ shares: AccountShares) {
    self.shares = shares
    client = shares.own.client
  }

  private func client(of share: WireID) async throws -> DeviceClient { try await shares.client(of: share) }

  func asked<Value>(_ body: () async throws -> Value) async throws -> Value {
    do {
      return try await body()
    } catch let failure as HubFailure {
      throw failure.sheafError
    }
  }

  // MARK: - Sharing

  func share(_ path: ItemPath, _ change: ShareChange) async throws -> Share {
    try await asked {
      try await check(.change(change), path)
      switch try await facts(of: path) {
      case .local: throw Self.notShared(path)
      case .item(let item, _, _):
        try await sent(item, path)
        let state = try await begin(item, change)
        do {
          try checkEnd(change, state, path)
          try await invite(change, to: state)
        } catch {
          // Nobody else takes part, so it began just now.
          if state.participants.count == 1 {
            try? await client.stopSharing(state.share)
            // The hub's stream may have told of it meanwhile.
            try? await shares.refresh()
          }
          throw error
        }
      case .share(let share, _, let item, let top, let isItem):
        guard isItem else { throw Self.isPart(path, of: top) }
        try await invite(change, to: try await client(of: share).share(share))
        if change.changesShare { try checkEnd(change, await client.share(item: item, change.settings), path) }
      }
      try await shares.refresh()
    }
    let shown = try await shares.call { library, _ in try library.share(of: path) }
    guard let shown else { throw Self.notShared(path) }
    return shown
  }

  /// Shares an item at the hub, if those who are to be invited have accounts there.
  private func begin(_ item: WireID, _ change: ShareChange) async throws -> ShareState {
    var settings = change.settings
    if !change.with.isEmpty { settings.people = change.with.map(\.description) }
    do {
      return try await client.share(item: item, settings)
    } catch let failure as HubFailure where failure.kind == .refused(.notFound) && settings.people != nil {
      throw SheafError(
        .notFound, subject: failure.hub, reason: failure.reason,
        advice: Self.needsAccount)
    }
  }

  /// Waits until the hub has all that was done in an item: what comes after the share began, people there see.
  ///
  /// - Throws: `unavailable` where that takes long, or the hub is not reached.
  private func sent(_ item: WireID, _ path: ItemPath) async throws {
    let now = Self.now
    let isSent: Bool? = try await waited { library, account in
      try library.hasUnsent(below: item, savedBy: now, of: account) ? nil : true
    }
    guard isSent != nil else {
      throw SheafError(
        .unavailable, subject: "\(path)",
        reason: "has changes that the hub does not have yet, and people are not to see what was before",
        advice: "share it once `sheaf sync --wait` says that everything is sent")
    }
  }

  /// Notices a hub that does not know of links that end.
  ///
  /// - Throws: `notSupported`.
  private func checkEnd(_ change: ShareChange, _ state: ShareState, _ path: ItemPath) throws {
    guard let seconds = change.linkSeconds, seconds > 0, state.expires == nil else { return }
    throw SheafError(
      .notSupported, subject: shares.own.hub, reason: "knows of no links that end: its program is older",
      advice: "end the link with: sheaf share \(path.description.shellWord) --new-link")
  }

  /// Invites the people of a change: all of them or, where one cannot be, nobody.
  private func invite(_ change: ShareChange, to state: ShareState) async throws {
    var invited: [AccountHandle] = []
    do {
      for handle in change.with {
        let isThere = state.participants.contains { $0.handle == handle.description && $0.acceptance != .removed }
        if isThere, change.permission == nil { continue }
        _ = try await setParticipant(
          handle, of: state.share, ParticipantSettings(permission: change.permission.map(\.wire)))
        if !isThere { invited.append(handle) }
      }
    } catch {
      for handle in invited { try? await client(of: state.share).removeParticipant(handle, of: state.share) }
      throw error
    }
  }

  func unshare(_ path: ItemPath) async throws {
    try await change(path, .unshare) { share in try await client.stopSharing(share) }
  }

  func leave(_ path: ItemPath) async throws {
    try await change(path, .leave) { share in
      do {
        try await client(of: share).removeParticipant(shares.own.account, of: share)
      } catch let failure as HubFailure where failure.kind == .unreachable {
        // Whoever is out has no connection to the share's hub any more, and that may end before the answer comes.
        let entries = try await client.inbox().entries
        if entries.contains(where: { $0.share == share && $0.acceptance == .accepted }) { throw failure }
      }
    }
  }

  func setParticipant(_ path: ItemPath, _ settings: ParticipantChange, isNew: Bool) async throws -> Participant {
    let participant = try await change(path, .participant(settings)) { share in
      if !isNew {
        let state = try await client(of: share).share(share)
        let isThere = state.participants.contains {
          $0.handle == settings.handle.description && $0.acceptance != .removed
        }
        guard isThere else { throw Self.notThere(settings.handle, path) }
      }
      return try await setParticipant(
        settings.handle, of: share,
        ParticipantSettings(permission: settings.permission.map(\.wire), role: settings.role?.wire))
    }
    let shown = try await shares.call { library, _ in try library.participants(path) }
    // Who may not see the others gets the hub's answer alone.
    if let known = shown.first(where: { $0.handle == settings.handle }) { return known }
    return Participant(
      handle: settings.handle, name: participant.name, role: participant.role.local,
      permission: participant.permission.local, acceptance: participant.acceptance.local, since: Self.now)
  }

  /// Invites somebody, or changes what they may do.
  private func setParticipant(
    _ handle: AccountHandle, of share: WireID, _ settings: ParticipantSettings
  ) async throws -> ShareParticipant {
    do {
      return try await client(of: share).setParticipant(handle, of: share, settings)
    } catch let failure as HubFailure where failure.kind == .refused(.notFound) {
      // The share is there, or this says that it is not.
      _ = try await client(of: share).share(share)
      throw SheafError(
        .notFound, subject: "\(handle)", reason: "has no account at \(failure.hub)",
        advice: Self.needsAccount)
    }
  }

  func removeParticipant(_ path: ItemPath, _ handle: AccountHandle) async throws {
    try await change(path, .remove(handle)) { share in
      do {
        try await client(of: share).removeParticipant(handle, of: share)
      } catch let failure as HubFailure where failure.kind == .refused(.notFound) {
        _ = try await client(of: share).share(share)
        throw Self.notThere(handle, path)
      }
    }
  }

  func inviteOnce(_ path: ItemPath, permission: SharePermission?) async throws -> OneTimeLink {
    let facts = try await change(path, .oneTimeLink(permission)) { share in
      try await client(of: share).inviteOnce(to: share, OneTimeLinkSettings(permission: permission.map(\.wire)))
    }
    return OneTimeLink(
      url: facts.url, permission: facts.permission.local, expires: Timestamp(rfc3339: facts.expires) ?? Self.now)
  }

  func revokeOneTimeLinks(_ path: ItemPath) async throws -> RevokedLinks {
    try await change(path, nil) { share in
      RevokedLinks(count: try await client(of: share).revokeLinks(to: share))
    }
  }

  // MARK: - Those who ask

  func accessRequests(_ path: ItemPath) async throws -> [AccessRequest] {
    try await asked {
      try await check(.accessRequests, path)
      guard case .share(let share, _, _, let top, _) = try await facts(of: path) else { throw Self.notShared(path) }
      return try await requests(for: share, at: top)
    }
  }

  private func requests(for share: WireID, at path: String) async throws -> [AccessRequest] {
    try await client(of: share).requests(for: share).compactMap { request in
      guard let handle = try? AccountHandle(request.handle), let time = Timestamp(rfc3339: request.time) else {
        return nil
      }
      return AccessRequest(handle: handle, name: request.name, time: time, blocked: request.isBlocked, path: path)
    }
  }

  /// The people who ask the account for access to anything, and those whom it blocked. The inbox counts the former alone.
  /// So all other shares are asked, too, and those of other hubs, some at once and for a few seconds: another hub that is
  /// away holds up nothing.
  func accessRequests() async throws -> [AccessRequest] {
    try await asked {
      let entries = try await client.inbox().entries.filter { entry in
        entry.acceptance == .accepted && (entry.offer?.role == .owner || entry.offer?.role == .administrator)
      }
      var all: [AccessRequest] = []
      let asked = entries.filter { $0.hub == nil && $0.offer?.requests ?? 0 > 0 }
      for entry in asked { all += try await requests(in: entry) }
      return all + (await soon(entries.filter { entry in !asked.contains { $0.share == entry.share } }))
    }
  }

  /// Those who ask and who are blocked, as far as the hubs of their shares tell soon.
  private func soon(_ entries: [InboxEntry]) async -> [AccessRequest] {
    await withTaskGroup(of: [AccessRequest]?.self) { group in
      group.addTask {
        try? await Task.sleep(for: Self.elsewhere)
        return nil
      }
      var all: [AccessRequest] = []
      var rest = entries.dropFirst(Self.askedShares)
      var asked = 0
      for entry in entries.prefix(Self.askedShares) {
        group.addTask { (try? await requests(in: entry)) ?? [] }
        asked += 1
      }
      // The clock's is none.
      while asked > 0, let some = await group.next() ?? nil {
        all += some
        asked -= 1
        guard let entry = rest.popFirst() else { continue }
        group.addTask { (try? await requests(in: entry)) ?? [] }
        asked += 1
      }
      group.cancelAll()
      return all
    }
  }

  private func requests(in entry: InboxEntry) async throws -> [AccessRequest] {
    let path = try await shares.call { library, number in try library.sharePath(entry.share, for: number) }
    do {
      return try await requests(for: entry.share, at: path ?? entry.offer?.title ?? "")
    } catch let failure as HubFailure
      where failure.kind == .refused(.notFound) || failure.kind == .refused(.forbidden)
    {
      // It ended meanwhile, its item is deleted, or others answer.
      return []
    }
  }

  func answer(_ path: ItemPath, _ answer: RequestAnswer) async throws {
    try await change(path, .accessRequests) { share in
      do {
        try await client(of: share).answer(
          ShareAnswer(answer: answer.answer.wire, permission: answer.permission?.wire), to: answer.handle, of: share)
      } catch let failure as HubFailure where failure.kind == .refused(.notFound) {
        _ = try await client(of: share).share(share)
        throw SheafError(
          .notFound, subject: "\(answer.handle)", reason: "does not ask for access to \(path), or was answered already",
          advice: "invite them with: sheaf participant add \(path.description.shellWord) \(answer.handle)")
      }
    }
  }

  // MARK: - Links

  /// As ``asked(_:)``, with the words for links that the hub refuses.
  private func askedOfLink<Value>(_ body: () async throws -> Value) async throws -> Value {
    try await asked {
      do {
        return try await body()
      } catch let failure as HubFailure where failure.kind == .refused(.notFound) {
        throw SheafError(
          .notFound, subject: "the link", reason: failure.reason,
          advice: "ask whoever gave it to you for an invitation", times: failure.times)
      } catch let failure as HubFailure where failure.kind == .refused(.forbidden) {
        throw SheafError(
          .accessDenied, subject: "the link", reason: failure.reason,
          advice: "ask again when a day has passed, or have its owner invite you", times: failure.times)
      }
    }
  }

  func inspect(_ url: String) async throws -> ShareOffer {
    try await askedOfLink {
      let entry = try await client.inbox().entries.first { $0.offer?.url == url }
      let offer = try await asker(entry).offer(url)
      guard let owner = try? AccountHandle(offer.owner) else { throw SheafError(.inputOutput, subject: "the link") }
      var path: String?
      if let share = entry?.share {
        path = try await shares.call { library, number in try library.sharePath(share, for: number) }
      }
      let warnings = [
        Lookalikes.warning(of: offer.title, called: "the title \"\(offer.title)\""),
        Lookalikes.warning(of: offer.ownerName, called: "the owner's name \"\(offer.ownerName)\""),
      ].compactMap { $0 }
      return ShareOffer(
        title: offer.title, owner: owner, ownerName: offer.ownerName,
        kind: offer.kind == .folder ? "folder" : "document", permission: offer.permission.local,
        acceptance: entry?.acceptance.local == .removed ? nil : entry?.acceptance.local, path: path,
        asksFirst: offer.way == .ask, expires: offer.expires.flatMap { Timestamp(rfc3339: $0) }, warnings: warnings)
    }
  }

  /// Who asks about a link: where it leads to a share of another hub, the account was invited.
  private func asker(_ entry: InboxEntry?) async throws -> DeviceClient {
    guard let entry, entry.hub != nil else { return client }
    return try await client(of: entry.share)
  }

  func accept(_ url: String) async throws -> AcceptResult {
    try await askedOfLink {
      let entry = try await client.inbox().entries.first { $0.offer?.url == url }
      if let share = entry?.share, try await shares.call({ library, number in try library.isLeaving(share, number) }) {
        // The hub would take it for nothing new, and hear of the leaving after that.
        throw SheafError(
          .accessDenied, subject: "the link", reason: "you have just left what it is for",
          advice: "have its owner invite you again")
      }
      let asker = try await asker(entry)
      let offer = try await asker.offer(url)
      // By another hub's word alone nobody takes part.
      if let entry, entry.hub != nil { try await client.acceptAbroad(entry.share) }
      let answer = try await asker.accept(url)
      let owner = try? AccountHandle(offer.owner)
      guard let share = answer.share, !answer.requested else {
        try await shares.refresh()
        return AcceptResult(path: nil, title: nil, owner: nil, permission: nil, requested: true)
      }
      try await shares.refresh()
      let path = try await waited(for: { try $0.sharePath(share, for: $1) })
      return AcceptResult(
        path: path, title: offer.title, owner: owner, permission: answer.permission?.local, requested: false,
        warnings: [Lookalikes.warning(of: offer.title, called: "the title \"\(offer.title)\"")].compactMap { $0 })
    }
  }

  /// Declines an invitation, or takes a request for access back.
  func decline(_ url: String) async throws -> DeclinedLink {
    try await askedOfLink {
      guard let entry = try await client.inbox().entries.first(where: { $0.offer?.url == url }) else {
        try await client.withdraw(url)
        try await shares.refresh()
        return DeclinedLink(declined: .request, title: nil)
      }
      guard entry.acceptance == .pending else {
        let path = try await shares.call { library, number in try library.sharePath(entry.share, for: number) }
        throw DeclinedLink.takesPart(at: path)
      }
      try await client(of: entry.share).removeParticipant(shares.own.account, of: entry.share)
      try await shares.refresh()
      return DeclinedLink(declined: .invitation, title: entry.offer?.title)
    }
  }

  // MARK: - Common ground

  private static var now: Timestamp { Timestamp(nanoseconds: Int64(Date().timeIntervalSince1970 * 1_000_000_000)) }

  private static let needsAccount =
    "people need an account there to take part; one whose handle you do not know joins by: sheaf invite PATH --one-time"

  private static func notShared(_ path: ItemPath) -> SheafError {
    SheafError(
      .notFound, subject: "\(path)", reason: "is not shared",
      advice: "share it with: sheaf share \(path.description.shellWord)")
  }

  private static func isPart(_ path: ItemPath, of top: String) -> SheafError {
    SheafError(
      .notPermitted, subject: "\(path)", reason: "is shared as a part of \(top)",
      advice: "name that, or move it out")
  }

  private static func notThere(_ handle: AccountHandle, _ path: ItemPath) -> SheafError {
    SheafError(
      .notFound, subject: "\(handle)", reason: "takes no part in \(path)",
      advice: "`sheaf participants` shows who does")
  }

  /// Refuses what the hub would refuse as well, in words that say what to do.
  private func check(_ request: SharingRequest, _ path: ItemPath) async throws {
    try await shares.call { library, _ in try library.check(request, at: path) }
  }

  /// Does something with the share of a path, and shows what came of it.
  ///
  /// - Throws: `notPermitted` for what lies in a shared folder.
  @discardableResult
  private func change<Value>(
    _ path: ItemPath, _ request: SharingRequest?, _ body: (WireID) async throws -> Value
  ) async throws -> Value {
    try await asked {
      if let request { try await check(request, path) }
      let known = try await shares.call { library, _ in try library.hubShare(of: path) }
      guard case .share(let share, _, _, let top, let isItem) = known else { throw Self.notShared(path) }
      guard isItem else {
        guard case .leave = request else { throw Self.isPart(path, of: top) }
        throw Self.isPart(path, of: top).advising("to leave all of that: sheaf leave \(top.shellWord)")
      }
      let value = try await body(share)
      try await shares.refresh()
      return value
    }
  }

  /// What a path is to the hub, once the hub has it.
  func facts(of path: ItemPath) async throws -> HubShareFacts {
    try await shares.call { library, _ in try library.saveClosed() }
    shares.own.wake()
    let found: HubShareFacts? = try await waited { library, _ in
      let facts = try library.hubShare(of: path)
      if case .item(_, _, false) = facts { return nil }
      return facts
    }
    guard let found else {
      throw SheafError(
        .unavailable, subject: "\(path)", reason: "is not at the hub yet, so it cannot be shared there",
        advice: "`sheaf status` says what it waits for")
    }
    return found
  }

  /// What `body` finds; nil if that takes too long, or the hub is not reached.
  func waited<Value: Sendable>(
    for body: @escaping @Sendable (Library, Int64) throws -> Value?
  ) async throws -> Value? {
    let end = ContinuousClock.now + Self.patience
    while true {
      if let value = try await shares.call(body) { return value }
      let status = try await shares.own.status()
      if status.state == .failed || status.state == .disconnected {
        // A problem names the hub, and what to do.
        if let problem = status.problem { throw SheafError(.unavailable, reason: problem) }
        throw SheafError(
          .unavailable, subject: shares.own.hub,
          reason: status.isPaused ? "\(shares.own.account) is paused here" : "cannot be reached",
          advice: status.isPaused ? "go on first: sheaf sync --resume" : "try again once it is reached")
      }
      if ContinuousClock.now > end { return nil }
      try await Task.sleep(for: Self.pause)
    }
  }
}

extension ShareChange {
  fileprivate var settings: ShareSettings {
    ShareSettings(
      title: title, anyone: anyone.map(\.wire), permission: with.isEmpty ? permission.map(\.wire) : nil,
      allowInvites: allowInvites, allowRequests: allowRequests, newLink: newLink ? true : nil,
      linkSeconds: linkSeconds)
  }
}

extension SharePermission {
  fileprivate var wire: WirePermission { self == .readWrite ? .readWrite : .readOnly }
}

extension PublicPermission {
  fileprivate var wire: WirePublicPermission { WirePublicPermission(rawValue: rawValue) ?? .none }
}

extension Role {
  fileprivate var wire: WireRole { WireRole(rawValue: rawValue) ?? .publicUser }
}

extension RequestAnswer.Answer {
  fileprivate var wire: ShareAnswer.Answer { ShareAnswer.Answer(rawValue: rawValue) ?? .deny }
}
