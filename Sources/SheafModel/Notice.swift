/// A notice to a person about the actions of others: one line for an event, or for a burst of events.
package struct Notice: Hashable, Sendable, Codable {
  /// Id of the first of its events.
  package let id: String
  package private(set) var type: EventType
  package let actor: Account
  /// The item as it was in the end.
  package private(set) var item: EventDetails.Item
  /// The action as a person says it: `Bob renamed Plan.md to Trip plan.md`.
  package private(set) var text: String
  /// How many events it covers.
  package private(set) var count: Int
  /// When the last of them was.
  package private(set) var time: Timestamp
  /// Number of the last of them.
  package private(set) var sequence: Int64
  /// Where that is in the library's log.
  private var position: Int64 = 0
  /// The former name, if the name changed.
  private var formerName: String?
  /// Whether it tells of a save that was not based on the version before it, or that went beside another one.
  private var tellsOfConflict = false

  private enum CodingKeys: CodingKey { case id, type, actor, item, text, count, time, sequence }

  /// Seconds without a further action after which the next one is another burst.
  private static let burst: Int64 = 600

  /// - Parameters:
  ///   - account: The account that gets the notice.
  ///   - tellsURL: Whether an invitation contains the link to join by, which is a secret.
  ///   - passedOver: Number of the version before the one that was saved, where the save was not based on it.
  package init(_ event: Event, for account: AccountHandle? = nil, tellsURL: Bool = true, passedOver: Int64? = nil) {
    id = event.id
    type = event.type
    actor = event.data.actor
    item = event.data.item
    text =
      event.sentence(for: account, tellsURL: tellsURL)
      + (passedOver.map { ", but not based on version \($0)" } ?? "")
    count = 1
    time = event.time
    sequence = event.sequence
    position = event.position
    formerName = event.data.previousName
    tellsOfConflict = passedOver != nil || event.isBeside
  }

  /// Adds a later event on the same item by the same person, if both belong to one burst.
  ///
  /// - Returns: Whether it added the event.
  package mutating func absorb(_ event: Event) -> Bool {
    guard event.data.item.id == item.id, event.data.actor.handle == actor.handle,
      (0...Self.burst).contains(event.time.seconds - time.seconds), !tellsOfConflict
    else { return false }
    switch (type, event.type) {
    case (.created, .edit):
      text = "\(actor.name) created \(event.data.item.name)"
    case (.created, .renamed):
      text = "\(actor.name) created \(event.data.item.name)"
    case (.edit, .edit) where event.data.previousName == nil:
      text = "\(actor.name) edited \(event.data.item.name) \(count + 1) times"
    case (.renamed, .renamed):
      text =
        formerName == event.data.item.name
        ? "\(actor.name) renamed \(event.data.item.name), and gave it its name back"
        : "\(actor.name) renamed \(formerName ?? "something") to \(event.data.item.name)"
    default: return false
    }
    item = event.data.item
    count += 1
    time = event.time
    sequence = event.sequence
    position = event.position
    return true
  }

  /// Whether an event makes a notice of an account, wherever its save was based: one of somebody else's, or of a change
  /// that the account could not save, or that went beside another one.
  package static func tells(of event: Event, _ account: AccountHandle) -> Bool {
    event.data.actor.handle != account || event.keepsUnsaved || event.isBeside
  }

  /// The notices of an account about events, latest first: one for a burst, a mention instead of its comment, and none
  /// of the account's own actions except changes that it could not save, and saves that passed over another one or went
  /// beside it.
  ///
  /// - Parameter passedOver: Of events whose save was not based on the version before it the number of that version, by
  ///   their ids.
  package static func notices(
    of events: [Event], for account: AccountHandle, passedOver: [String: Int64] = [:]
  ) -> [Notice] {
    var notices: [Notice] = []
    var latest: [String: Int] = [:]
    let mentions = events.filter { $0.type == .mention && $0.data.mentioned?.handle == account }
    for event in events where tells(of: event, account) || passedOver[event.id] != nil {
      if event.type == .comment,
        mentions.contains(where: { $0.subject == event.subject && $0.data.comment == event.data.comment })
      {
        continue
      }
      let over = passedOver[event.id]
      if over == nil, let index = latest[event.subject], notices[index].absorb(event) { continue }
      latest[event.subject] = notices.count
      notices.append(Notice(event, for: account, passedOver: over))
    }
    return notices.sorted { $0.position > $1.position }
  }
}

/// The account's notices, and the position in the log that they reach.
package struct NoticeList: Sendable, Codable {
  /// Latest first.
  package var notices: [Notice]
  /// Sequence number up to which they cover the log, to clear them with.
  package var through: Int64

  package init(notices: [Notice], through: Int64) {
    self.notices = notices
    self.through = through
  }
}

extension Event {
  /// The action as a person says it.
  ///
  /// - Parameters:
  ///   - account: The account that it is said to.
  ///   - tellsURL: As in ``Notice/init(_:for:tellsURL:)``.
  package func sentence(for account: AccountHandle? = nil, tellsURL: Bool = true) -> String {
    let who = data.actor.name
    let name = data.item.name
    switch type {
    case .created where keepsUnsaved:
      let former = data.previousName ?? ""
      guard data.actor.handle == account else { return "\(who) kept what could not be saved of \(former) as \(name)" }
      return "What you wrote to \(former) could not be saved, and is in Documents/\(data.item.path)"
    case .created where isBeside: return "\(who) and another machine saved at once; what \(who) wrote is in \(name)"
    case .created where isTransfer, .deleted where isTransfer: return "\(who) took over \(name)"
    case .created:
      return "\(who) \(isRecovery ? "recovered" : "created") \(name)" + withContents
    case .edit:
      if data.version?.cause == "restore" { return "\(who) restored an earlier version of \(name)" }
      return data.previousName.map { "\(who) replaced \(name) with \($0)" } ?? "\(who) edited \(name)"
    case .deleted: return "\(who) deleted \(name)" + withContents
    case .renamed where data.previousName == name: return "\(who) gave \(name) its name back"
    case .renamed: return "\(who) renamed \(data.previousName ?? "something") to \(name)"
    case .moved:
      let place = Self.folder(of: data.item.path).map { "to \($0)" } ?? "to the top folder"
      guard let former = data.previousName, former != name else { return "\(who) moved \(name) \(place)" }
      return "\(who) moved \(former) \(place) as \(name)"
    case .comment: return "\(who) commented on \(name): \(data.comment ?? "")"
    case .mention: return "\(who) mentioned you in a comment on \(name): \(data.comment ?? "")"
    case .memberAdded: return isAboutActor ? "\(who) joined \(name)" : "\(who) added \(whom(account)) to \(name)"
    case .memberRemoved where data.participant?.acceptance == Acceptance.pending.rawValue:
      return isAboutActor
        ? "\(who) declined the invitation to \(name)" : "\(who) no longer invites \(whom(account)) to \(name)"
    case .memberRemoved: return isAboutActor ? "\(who) left \(name)" : "\(who) removed \(whom(account)) from \(name)"
    case .accessRequested: return "\(who) asks for access to \(name)"
    case .accessDeclined:
      guard data.participant?.handle == account?.description else {
        return "\(who) declined \(whom(account))'s request for access to \(name)"
      }
      return "\(who) declined your request for access to \(name)"
    case .shareCreated: return "\(who) shared \(name)"
    case .shareUpdated:
      guard let participant = data.participant else { return "\(who) changed how \(name) is shared" }
      if isTransfer { return transferSentence(participant, for: account) }
      guard participant.acceptance == "pending" else {
        return "\(who) changed what \(whom(account)) may do with \(name)"
      }
      guard participant.handle == account?.description else { return "\(who) invited \(participant.name) to \(name)" }
      return "\(who) invites you to \(name)" + (tellsURL ? data.share.map { ": \($0.url)" } ?? "" : "")
    case .shareStopped: return "\(who) stopped sharing \(name)"
    }
  }

  /// Whether it tells of an item that is given to another account, or offered.
  private var isTransfer: Bool { data.participant?.role == Role.owner.rawValue }

  private func transferSentence(_ recipient: EventDetails.Participant, for account: AccountHandle?) -> String {
    let (who, name) = (data.actor.name, data.item.name)
    let isYou = recipient.handle == account?.description
    switch Acceptance(rawValue: recipient.acceptance) {
    case .pending where isYou: return "\(who) offers you \(name): sheaf accept id:\(data.item.id)"
    case .pending: return "\(who) offers \(name) to \(recipient.name)"
    case .removed where isAboutActor: return "\(who) declined \(name), which was offered"
    case .removed: return "\(who) no longer offers \(name) to \(isYou ? "you" : recipient.name)"
    case .accepted, nil: return "\(who) took over \(name)"
    }
  }

  /// Whether it tells an account that it is invited. Where the account takes no part, the item has the id of the share.
  package func isInvitation(of account: AccountHandle) -> Bool {
    type == .shareUpdated && !isTransfer && data.participant?.handle == account.description
      && data.participant?.acceptance == Acceptance.pending.rawValue
  }

  /// Whether it tells an account that something is offered to it, to be its own.
  package func isOffer(to account: AccountHandle) -> Bool {
    type == .shareUpdated && isTransfer && data.participant?.handle == account.description
      && data.participant?.acceptance == Acceptance.pending.rawValue
  }

  /// Whether the item came back rather than being made.
  package var isRecovery: Bool { type == .created && data.contentCount != nil }

  /// The version that a save was not based on, if the document has one of this number: the one before it. Of what a hub
  /// numbered, the hub has made one of both.
  package var passedOver: Int64? {
    guard type == .edit, data.device == nil, let version = data.version, let base = version.base,
      VersionCause(rawValue: version.cause)?.isSave ?? false, base < version.number - 1
    else { return nil }
    return version.number - 1
  }

  /// Whether it tells of a save that a hub put beside what another machine had saved (docs/HUB.md, "When two did something
  /// at once"): only a hub makes such an id, and the name has the author's handle.
  fileprivate var isBeside: Bool {
    type == .created && data.device != nil && data.version?.number == 1 && subject.dropFirst(14).first == "8"
      && data.item.name.contains(" (\(data.actor.handle) ")
  }

  /// Whether it tells of a document with changes that its author could no longer save in the one of `previousName`.
  fileprivate var keepsUnsaved: Bool { type == .created && data.previousName != nil }

  private var isAboutActor: Bool { data.participant.map { $0.handle == data.actor.handle.description } ?? true }

  /// The participant, to `account`.
  private func whom(_ account: AccountHandle?) -> String {
    guard let participant = data.participant else { return "someone" }
    return participant.handle == account?.description ? "you" : participant.name
  }

  private var withContents: String {
    guard let count = data.contentCount, count > 0 else { return "" }
    return " with \(count == 1 ? "the item" : "\(count) items") in it"
  }

  /// The name of the folder that a path lies in; nil at the top.
  private static func folder(of path: String) -> String? {
    path.split(separator: "/").dropLast().last.map(String.init)
  }
}

extension Timestamp {
  /// How long before `now` it was, as a person says it: `just now`, `2 minutes ago`, `3 weeks ago`.
  package func ago(at now: Timestamp) -> String {
    let seconds = max(0, now.seconds - self.seconds)
    let units: [(name: String, seconds: Int64)] = [
      ("year", 31_536_000), ("month", 2_592_000), ("week", 604_800), ("day", 86_400), ("hour", 3600), ("minute", 60),
    ]
    guard let unit = units.first(where: { seconds >= $0.seconds }) else { return "just now" }
    let count = seconds / unit.seconds
    return "\(count) \(unit.name)\(count == 1 ? "" : "s") ago"
  }
}
