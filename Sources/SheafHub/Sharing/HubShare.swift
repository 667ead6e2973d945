import Crypto
import SheafModel
import SheafWire

/// An account as shares know it.
struct Person: Hashable, Sendable {
  let zone: String
  let handle: String
  /// The display name; nil if only the handle is known.
  var name: String?
}

/// Somebody's part in a share.
struct Member: Hashable, Sendable {
  var person: Person
  var role: Role
  var permission: SharePermission
  var acceptance: Acceptance
  var since: Timestamp
}

/// Somebody who asked for access, or was blocked.
struct Asking: Hashable, Sendable {
  enum State: String, Sendable {
    case asked, declined, blocked
    /// They took it back. Who does so again and again is heard of once a day.
    case withdrawn
  }

  let person: Person
  var time: Timestamp
  var state: State
}

/// A link that one person can join by.
struct Invitation: Hashable, Sendable {
  let permission: SharePermission
  /// The zone of who gave it out.
  let inviter: String
  let expires: Timestamp
}

/// A share with everybody in it, and what each may do to it. All rules of sharing are here, on values: an operation
/// changes the value or throws, and the caller stores the difference.
///
/// Strangers learn nothing: every operation is `notFound` for them, as if there were no share.
struct HubShare: Hashable, Sendable {
  /// Participants, the owner and those who have yet to accept among them.
  static let mostMembers = 100
  /// One-time links that nobody claimed, and people who wait for an answer.
  static let mostWaiting = 100
  /// People who were removed or blocked.
  static let mostKeptOut = 1_000
  /// Seconds for which a one-time link is good.
  static let invitationLifetime: Int64 = 7 * 86_400
  /// Seconds for which somebody who was turned down does not ask again.
  static let declinedLifetime: Int64 = 86_400

  let id: WireID
  let item: WireID
  let kind: ItemKind
  var token: ShareToken
  var title: String
  var isActive: Bool
  var anyone: PublicPermission
  var permission: SharePermission
  var allowsInvites: Bool
  var allowsRequests: Bool
  /// From when on no stranger joins by the URL, or asks for access; nil if it does not end. It outlasts the share, as
  /// the URL does.
  var linkEnd: Timestamp?
  /// By zone.
  var members: [String: Member]
  /// By zone.
  var asking: [String: Asking]
  /// By the hash of the token.
  var invitations: [[UInt8]: Invitation]

  static func hash(_ token: ShareToken) -> [UInt8] { Array(SHA256.hash(data: Array(token.text.utf8))) }

  /// The member of a zone, unless it was removed or nothing is shared any more.
  func member(_ zone: String) -> Member? {
    guard isActive, let member = members[zone], member.acceptance != .removed else { return nil }
    return member
  }

  var owner: Member? { members.values.first { $0.role == .owner } }

  private static func allows(_ operation: ShareOperation, _ member: Member) -> Bool {
    ShareRules.allows(
      operation, role: member.role, permission: member.permission, acceptance: member.acceptance)
  }

  /// - Throws: ``HubError`` of kind `notFound` for strangers, and `forbidden` for members who may not.
  @discardableResult
  func require(_ operation: ShareOperation, by zone: String) throws -> Member {
    guard let member = member(zone) else { throw Self.nothing }
    guard Self.allows(operation, member) else { throw Self.denied }
    return member
  }

  static let nothing = HubError(.notFound, "there is no such share, or it is not for this account")
  private static let denied = HubError(.forbidden, "the account's part in the share does not allow it")
  private static let full = HubError(.conflict, "the share has as many people as it may have")

  // MARK: - The share itself

  /// Begins to share again what was shared before, under the same URL, with nobody but the owner.
  mutating func beginAgain(by owner: Person, at now: Timestamp) {
    isActive = true
    anyone = .none
    permission = .readWrite
    allowsInvites = false
    allowsRequests = false
    members[owner.zone] = Member(
      person: owner, role: .owner, permission: .readWrite, acceptance: .accepted, since: now)
  }

  mutating func change(_ settings: ShareSettings, by zone: String, at now: Timestamp) throws {
    try require(.changeShare, by: zone)
    if let seconds = settings.linkSeconds {
      guard (0...WireLimits.longestLink).contains(seconds) else {
        throw HubError(.invalid, "linkSeconds: 0 to \(WireLimits.longestLink)")
      }
      linkEnd = seconds == 0 ? nil : Timestamp(seconds: now.seconds + seconds)
    }
    if let title = settings.title { self.title = try CheckedText.title(title) }
    if let permission = settings.permission { self.permission = SharePermission(permission) }
    if let allow = settings.allowRequests { allowsRequests = allow }
    if settings.newLink == true { token = .random() }
    if let allow = settings.allowInvites {
      allowsInvites = allow
      revokeInvitations()
    }
    if let anyone = settings.anyone { setPublic(PublicPermission(anyone)) }
  }

  /// Changes what members who joined by the public permission may do. Without a public permission they are out. They
  /// are strangers then, not people who were removed.
  private mutating func setPublic(_ anyone: PublicPermission) {
    self.anyone = anyone
    for (zone, member) in members where member.role == .publicUser {
      members[zone]?.permission = anyone.permission ?? member.permission
      if anyone.permission == nil { members[zone] = nil }
    }
    revokeInvitations()
  }

  /// Ends all participation. Those who took part are strangers to whatever is shared later.
  mutating func stop(by zone: String) throws {
    try require(.unshare, by: zone)
    isActive = false
    members = members.filter { $0.value.role == .owner || $0.value.acceptance == .removed }
    invitations = [:]
    asking = asking.filter { $0.value.state == .blocked }
  }

  // MARK: - People

  /// Invites somebody, or changes what a participant may do.
  ///
  /// A member who does not see the others learns nothing of them: the answer is always that of an invitation, though
  /// nobody who takes part or was blocked is invited.
  ///
  /// - Parameter person: Nil for a handle that has no account, which only those learn who may invite.
  mutating func invite(
    _ person: Person?, _ settings: ParticipantSettings, by zone: String, at now: Timestamp
  ) throws -> Member {
    let inviter = try require(.listPeople, by: zone)
    let manages = Self.allows(.managePeople, inviter)
    guard manages || allowsInvites else { throw Self.denied }
    guard let person else { throw HubError(.notFound, "no account has this handle") }
    let seesOthers = Self.allows(.listEveryone, inviter)
    let role = settings.role.map { Role($0) }
    let there = member(person.zone)
    if let there, seesOthers {
      guard there.role == .publicUser || settings.permission != nil || role != nil else { return there }
      return try alter(there, settings, role ?? (there.role == .publicUser ? .privateUser : nil), by: zone)
    }
    let wanted = settings.permission.map { SharePermission($0) } ?? permission
    let isBlocked = !manages && asking[person.zone]?.state == .blocked
    if !manages {
      guard role == nil || role == .privateUser, !isBlocked || !seesOthers,
        wanted == .readOnly || inviter.permission == .readWrite
      else { throw Self.denied }
    }
    try check(role: role, by: zone)
    try checkRoom()
    let invited = Member(
      person: person, role: role ?? .privateUser, permission: role == .administrator ? .readWrite : wanted,
      acceptance: .pending, since: now)
    if there != nil || isBlocked { return invited }
    members[person.zone] = invited
    asking[person.zone] = nil
    return invited
  }

  private mutating func alter(
    _ there: Member, _ settings: ParticipantSettings, _ role: Role?, by zone: String
  ) throws -> Member {
    try require(.managePeople, by: zone)
    try check(target: there, by: zone)
    try check(role: role, by: zone)
    var member = there
    if let role { member.role = role }
    if let permission = settings.permission { member.permission = SharePermission(permission) }
    if member.role == .administrator {
      guard settings.permission != .readOnly else { throw HubError(.invalid, "administrators can always edit") }
      member.permission = .readWrite
    }
    members[member.person.zone] = member
    revokeInvitations()
    return member
  }

  /// Removes somebody, who then needs a new invitation to come back. Members who remove themselves leave.
  mutating func remove(_ handle: String, by zone: String, at now: Timestamp) throws {
    guard let remover = member(zone) else { throw Self.nothing }
    if remover.person.handle == handle { return try leave(zone) }
    try require(.managePeople, by: zone)
    guard var there = members.values.first(where: { $0.person.handle == handle && $0.acceptance != .removed }) else {
      throw HubError(.notFound, "nobody of this handle takes part")
    }
    try check(target: there, by: zone)
    try checkKeptOut()
    there.acceptance = .removed
    there.role = .privateUser
    there.since = now
    members[there.person.zone] = there
    revokeInvitations()
  }

  /// Leaves, or declines an invitation: a stranger from here on.
  mutating func leave(_ zone: String) throws {
    guard let member = member(zone) else { throw Self.nothing }
    guard member.acceptance == .pending || Self.allows(.leave, member) else { throw Self.denied }
    members[zone] = nil
    revokeInvitations()
  }

  /// Nobody changes themselves or the owner, and administrators no other one.
  private func check(target: Member, by zone: String) throws {
    guard target.role != .owner, target.person.zone != zone else { throw Self.denied }
    if target.role == .administrator { try require(.manageAdministrators, by: zone) }
  }

  private func check(role: Role?, by zone: String) throws {
    switch role {
    case nil, .privateUser: return
    case .administrator: try require(.manageAdministrators, by: zone)
    case .owner, .publicUser: throw HubError(.invalid, "role: administrator or privateUser")
    }
  }

  private func checkRoom() throws {
    guard members.values.count(where: { $0.acceptance != .removed }) < Self.mostMembers else { throw Self.full }
  }

  private func checkKeptOut() throws {
    let count =
      members.values.count { $0.acceptance == .removed } + asking.values.count { $0.state == .blocked }
    guard count < Self.mostKeptOut else { throw Self.full }
  }

  // MARK: - Joining

  /// How somebody may join.
  enum Way {
    case member(Member)
    /// As that; an invitation that is used up has its hash.
    case join(Member, invitation: [UInt8]?)
    case ask
  }

  /// How somebody may join by a link.
  ///
  /// - Throws: ``HubError`` of kind `notFound`, the same for a link that is none and for one that is not theirs;
  ///   `forbidden` for those who were turned down less than a day ago.
  func way(_ person: Person, by link: ShareToken, at now: Timestamp) throws -> Way {
    let (invitation, hash) = try invitation(link, at: now)
    switch members[person.zone]?.acceptance {
    case .accepted:
      if let member = members[person.zone] { return .member(member) }
    case .pending:
      if var member = members[person.zone] {
        member.person = person
        member.acceptance = .accepted
        member.since = now
        return .join(member, invitation: nil)
      }
    case .removed, nil: break
    }
    let state = asking[person.zone]?.state
    if state == .blocked { throw Self.nothing }
    if invitation == nil, let linkEnd, hasEnded(at: now) {
      throw HubError(.notFound, "the link was good until \(linkEnd.secondsText)")
    }
    // A person who was removed needs a new invitation, or asks for access.
    if members[person.zone] == nil, let permission = invitation?.permission ?? anyone.permission {
      let role = invitation == nil ? Role.publicUser : .privateUser
      let member = Member(person: person, role: role, permission: permission, acceptance: .accepted, since: now)
      return .join(member, invitation: hash)
    }
    guard allowsRequests, invitation == nil else { throw Self.nothing }
    if let asked = asking[person.zone], asked.state == .declined,
      (0..<Self.declinedLifetime).contains(now.seconds - asked.time.seconds)
    {
      throw HubError(.forbidden, "the account was turned down less than a day ago")
    }
    return .ask
  }

  /// The invitation that a link is; nil for the share's own URL.
  ///
  /// - Throws: ``HubError`` of kind `notFound`.
  private func invitation(_ link: ShareToken, at now: Timestamp) throws -> (Invitation?, [UInt8]?) {
    guard isActive else { throw Self.nothing }
    if link == token { return (nil, nil) }
    let hash = Self.hash(link)
    guard let invitation = invitations[hash], invitation.expires > now else { throw Self.nothing }
    return (invitation, hash)
  }

  /// Whether no stranger joins by the URL any more.
  private func hasEnded(at now: Timestamp) -> Bool { linkEnd.map { $0 <= now } ?? false }

  /// Whether a link tells something to somebody of whom nothing is known.
  func tellsStrangers(_ link: ShareToken, at now: Timestamp) -> Bool {
    guard let found = try? invitation(link, at: now) else { return false }
    return found.0 != nil || (anyone != .none || allowsRequests) && !hasEnded(at: now)
  }

  /// Joins, or asks for access.
  ///
  /// - Returns: the member; nil for one who asked.
  mutating func accept(_ person: Person, by link: ShareToken, at now: Timestamp) throws -> Member? {
    switch try way(person, by: link, at: now) {
    case .member(let member): return member
    case .join(let member, let hash):
      if members[person.zone] == nil { try checkRoom() }
      if let hash { invitations[hash] = nil }
      members[person.zone] = member
      asking[person.zone] = nil
      return member
    case .ask:
      if asking[person.zone]?.state == .asked { return nil }
      guard asking.values.count(where: { $0.state == .asked }) < Self.mostWaiting else { throw Self.nothing }
      // Whoever took it back within a day asks as of then.
      let former = asking[person.zone].flatMap { asked in
        asked.state == .withdrawn && (0..<Self.declinedLifetime).contains(now.seconds - asked.time.seconds)
          ? asked.time : nil
      }
      asking[person.zone] = Asking(person: person, time: former ?? now, state: .asked)
      return nil
    }
  }

  /// Takes back that somebody asked for access.
  mutating func withdraw(by zone: String) throws {
    guard let time = request(of: zone)?.time.seconds else { throw Self.nothing }
    asking = asking.filter { $0.value.state != .withdrawn || time - $0.value.time.seconds < Self.declinedLifetime }
    asking[zone]?.state = .withdrawn
  }

  /// Makes a one-time link.
  mutating func invite(
    by zone: String, permission: SharePermission?, at now: Timestamp
  ) throws -> (token: ShareToken, invitation: Invitation) {
    let inviter = try require(.listPeople, by: zone)
    let wanted = permission ?? self.permission
    guard mayInvite(inviter, to: wanted) else { throw Self.denied }
    invitations = invitations.filter { $0.value.expires > now }
    guard invitations.count < Self.mostWaiting else {
      throw HubError(.conflict, "the share has as many one-time links as it may have")
    }
    let token = ShareToken.random()
    let invitation = Invitation(
      permission: wanted, inviter: zone, expires: Timestamp(seconds: now.seconds + Self.invitationLifetime))
    invitations[Self.hash(token)] = invitation
    return (token, invitation)
  }

  /// Revokes the one-time links that nobody claimed: all of them for those who manage people, else one's own.
  ///
  /// - Returns: how many could still be claimed.
  @discardableResult
  mutating func revoke(by zone: String, at now: Timestamp) throws -> Int {
    let all = Self.allows(.managePeople, try require(.listPeople, by: zone))
    let count = invitations.values.count(where: { (all || $0.inviter == zone) && $0.expires > now })
    invitations = invitations.filter { !all && $0.value.inviter != zone }
    return count
  }

  private func mayInvite(_ inviter: Member, to permission: SharePermission) -> Bool {
    if Self.allows(.managePeople, inviter) { return true }
    return inviter.acceptance == .accepted && allowsInvites
      && (permission == .readOnly || inviter.permission == .readWrite)
  }

  /// Drops the one-time links that their inviters could not give out any more.
  private mutating func revokeInvitations() {
    let counting = invitations.filter { invitation in
      member(invitation.value.inviter).map { mayInvite($0, to: invitation.value.permission) } ?? false
    }
    invitations = counting
  }

  // MARK: - Those who ask

  /// Those who ask and those who were blocked, first come first.
  func requests(for zone: String) throws -> [Asking] {
    try require(.answerRequests, by: zone)
    return asking.values.filter { $0.state == .asked || $0.state == .blocked }.sorted {
      ($0.time, $0.person.handle) < ($1.time, $1.person.handle)
    }
  }

  /// The request of an account that has no answer yet.
  func request(of zone: String) -> Asking? {
    guard isActive, let asked = asking[zone], asked.state == .asked else { return nil }
    return asked
  }

  /// Lets somebody in who asked, turns them down, or keeps anybody out for good; a block takes back an invitation that
  /// was not accepted yet.
  ///
  /// - Parameters:
  ///   - person: Whom the handle names now; nil where no account has it.
  ///   - given: What somebody who is let in may do; nil for what the share gives people who are invited.
  mutating func answer(
    _ handle: String, _ person: Person?, _ answer: ShareAnswer.Answer, given: SharePermission? = nil, by zone: String,
    at now: Timestamp
  ) throws {
    try require(.answerRequests, by: zone)
    let unknown = HubError(.notFound, "nobody of this handle asked")
    let asked = person.flatMap { asking[$0.zone] } ?? asking.values.first { $0.person.handle == handle }
    switch answer {
    case .approve:
      guard let asked, asked.state == .asked || asked.state == .blocked, asked.person.zone == person?.zone else {
        throw unknown
      }
      let account = asked.person.zone
      if member(account) == nil {
        try checkRoom()
        members[account] = Member(
          person: asked.person, role: .privateUser, permission: given ?? permission, acceptance: .accepted,
          since: now)
      }
      asking[account] = nil
    case .deny:
      guard let asked, asked.state == .asked || asked.state == .blocked else { throw unknown }
      // Nobody is let ask again by being turned down once more.
      if asked.state == .blocked { return }
      asking = asking.filter {
        $0.value.state != .declined || now.seconds - $0.value.time.seconds < Self.declinedLifetime
      }
      asking[asked.person.zone] = Asking(person: asked.person, time: now, state: .declined)
    case .block:
      guard let person, members[person.zone]?.role != .owner else { throw unknown }
      if asked?.state == .blocked { return }
      try checkKeptOut()
      asking[person.zone] = Asking(person: asked?.person ?? person, time: asked?.time ?? now, state: .blocked)
      if members[person.zone]?.acceptance == .pending { members[person.zone] = nil }
    }
  }

  // MARK: - What people see

  /// The participants that a member sees, the owner first.
  func people(for zone: String) throws -> [Member] {
    let reader = try require(.listPeople, by: zone)
    let all = members.values.filter { $0.acceptance != .removed }
    let seen =
      Self.allows(.listEveryone, reader)
      ? all : all.filter { $0.role == .owner || $0.person.zone == zone }
    return seen.sorted {
      ($0.role == .owner ? 0 : 1, $0.since, $0.person.handle) < ($1.role == .owner ? 0 : 1, $1.since, $1.person.handle)
    }
  }

  /// The permissions in one phrase, and whether the time for strangers to join is over.
  func summary(at now: Timestamp) -> String {
    anyone != .none && hasEnded(at: now) ? summary + ShareSummary.linkHasEnded : summary
  }

  /// The permissions in one phrase.
  var summary: String {
    let invited = members.values.filter {
      $0.acceptance != .removed && ($0.role == .administrator || $0.role == .privateUser)
    }
    return ShareSummary.text(anyone: anyone, invited: invited.map(\.permission), otherwise: permission)
  }

  /// How many people wait for an answer of a member.
  func waiting(for member: Member) -> Int {
    guard Self.allows(.answerRequests, member) else { return 0 }
    return asking.values.count { $0.state == .asked }
  }
}
