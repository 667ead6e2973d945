import SheafModel
import SheafWire

/// The form of a share in an inbox.
struct InboxNote: Hashable, Sendable, Codable {
  struct Offer: Hashable, Sendable, Codable {
    let token: String
    let title: String
    let ownerName: String
    let kind: ItemKind
    let role: Role
    let permission: SharePermission
    let anyone: PublicPermission
    let requests: Int
    /// Of what the account may know of the share; nil in a row that an older program wrote.
    let tag: String?
  }

  /// A request for access that has no answer yet, as the share was when the account made it.
  struct Asked: Hashable, Sendable, Codable {
    let title: String
    let ownerName: String
    let kind: ItemKind
    /// Nanoseconds since 1970.
    let time: Int64
  }

  let owner: String
  let acceptance: Acceptance
  /// Nil for somebody who is out: they learn nothing more.
  let offer: Offer?
  /// What somebody who is out asks for.
  let asked: Asked?
  /// Where the hub of the share is dialled; nil for this hub.
  let address: String?
  /// What the account is to hear, which does not see the log of the share.
  var news: OutsiderNews?

  /// What another hub tells of a share that it has, for the person of a handle.
  ///
  /// - Throws: ``HubError`` of kind `invalid` for anything that is none, or would be of another hub's share.
  init(_ entry: InboxEntry, at address: HubAddress, for person: String, now: Timestamp) throws {
    let invalid = HubError(.invalid, "the entry is none")
    owner = entry.owner
    // People of other hubs take part by invitation alone.
    asked = nil
    self.address = address.description
    acceptance = try Self.word(entry.acceptance.rawValue)
    guard let offer = entry.offer, acceptance != .removed else {
      guard acceptance == .removed else { throw invalid }
      self.offer = nil
      return
    }
    guard let url = try? ShareURL(offer.url), url.place == .address(address.description), offer.role != .owner,
      offer.requests >= 0, offer.tag?.utf8.count ?? 0 <= 64
    else { throw invalid }
    self.offer = Offer(
      token: url.token.text, title: try CheckedText.title(offer.title),
      ownerName: try CheckedText.name(offer.ownerName, upTo: 255), kind: offer.kind,
      role: try Self.word(offer.role.rawValue), permission: try Self.word(offer.permission.rawValue),
      anyone: try Self.word(offer.anyone.rawValue), requests: offer.requests, tag: offer.tag)
    if acceptance == .pending { news = self.offer.flatMap { OutsiderNews($0, by: owner, to: person, at: now) } }
  }

  private static func word<Word: RawRepresentable>(_ text: String) throws -> Word where Word.RawValue == String {
    guard let word = Word(rawValue: text) else { throw HubError(.invalid, "the entry is none") }
    return word
  }

  /// As devices and other hubs get it.
  ///
  /// - Parameter url: The URL of a share of this hub.
  func entry(of share: WireID, url: (ShareToken) -> String) -> InboxEntry {
    InboxEntry(
      share: share, owner: owner, acceptance: acceptance.wire,
      offer: offer.map { offer in
        let token = ShareToken(stored: offer.token)
        return InboxOffer(
          url: address.map { token.url(address: $0, library: "") } ?? url(token), title: offer.title,
          ownerName: offer.ownerName, kind: offer.kind, role: offer.role.wire, permission: offer.permission.wire,
          anyone: offer.anyone.wire, requests: offer.requests, tag: offer.tag)
      },
      asked: asked.map {
        InboxRequest(
          title: $0.title, ownerName: $0.ownerName, kind: $0.kind,
          time: Timestamp(nanoseconds: $0.time).secondsText)
      }, hub: address.map { "https://\($0)" })
  }
}
