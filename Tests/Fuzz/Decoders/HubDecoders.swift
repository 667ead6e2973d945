import Foundation
import SheafModel
import SheafWire

@testable import SheafHub

/// What devices send to a hub, and what hubs tell devices.
extension Decoder {
  /// Requests of sends.
  static let hubSends = Decoder(name: "hub-sends") { bytes in
    guard let request: SendRequest = json(bytes) else { return }
    try expect(json(JSONEncoder().encode(request)) == request, "encoded and decoded it is another one")
    guard try refusable({ try SendCheck.check(request) }) != nil else { return }
    var last: Int64 = 0
    for send in request.groups.joined() {
      try expect(send.serial > last, "serials that do not rise")
      last = send.serial
      for place in send.places ?? [] {
        let isName = (1...255).contains(place.name.count) && !place.name.contains { $0 == 0 || $0 == 0x2F }
        let words = [".", "..", ".versions", ".deleted"].map { Array($0.utf8) }
        try expect(isName && !words.contains(place.name), "a name that no item can have")
      }
      for name in send.attributes?.keys.map({ Array($0.utf8) }) ?? [] {
        try expect(
          name.starts(with: "user.".utf8) && !name.starts(with: "user.sheaf.".utf8), "an attribute that is not sent")
      }
      try expect((0...0o7777).contains(send.mode ?? 0), "a mode of more bits")
      guard let version = send.version else { continue }
      let (manifest, chunk) = version.stored
      try expect(manifest != nil && manifest?.size ?? 0 >= chunk?.bytes.count ?? 0, "a version without a manifest")
    }
  }

  /// Pages that a hub answers, as a device reads them.
  static let hubPages = Decoder(name: "hub-pages") { bytes in
    func check<Page: Codable & Hashable>(_ type: Page.Type) throws {
      guard let page: Page = json(bytes) else { return }
      try expect(json(JSONEncoder().encode(page)) == page, "encoded and decoded it is another one")
    }
    try check(FeedPage.self)
    try check(SharedFeedPage.self)
    try check(SharedFolderPage.self)
    try check(VersionList.self)
    try check(SendAnswer.self)
    try check(LogNews.self)
    try check(ChunkHashes.self)
    try check(FeedNews.self)
    try check(InboxPage.self)
    try check(ShareState.self)
    try check(ShareOfferFacts.self)
    try check(ShareSettings.self)
    try check(ParticipantSettings.self)
  }

  /// The keys and signatures by which devices prove themselves.
  static let hubProofs = Decoder(name: "hub-proofs") { bytes in
    var input = Input(bytes)
    let (key, signature) = (Data(input.piece()), Data(input.piece()))
    let address = String(decoding: input.piece(), as: UTF8.self)
    let secret = String(decoding: input.piece(), as: UTF8.self)
    for purpose in DeviceProof.Purpose.allCases {
      let message = DeviceProof(purpose: purpose, address: address, secret: secret, key: key).message
      if !address.utf8.contains(0), !secret.utf8.contains(0) {
        let parts = message.split(separator: 0, maxSplits: 4, omittingEmptySubsequences: false)
        let words = ["sheaf", purpose.rawValue, address, secret].map { Data($0.utf8) } + [key]
        try expect(parts.map { Data($0) } == words, "two proofs have one message")
      }
      guard let known = try refusable({ try DeviceKey(key) }) else { continue }
      try expect(known.bytes == [UInt8](key), "a key is another one")
      // The corpus has no secret keys.
      try expect(
        !known.verifies(signature, of: purpose, address: address, secret: secret), "a signature that nobody made")
    }
    _ = json(bytes) as DeviceRequest?
    _ = json(bytes) as SessionRequest?
  }

  /// Links, addresses, and the tokens of feeds and logs.
  static let hubLinks = Decoder(name: "hub-links") { bytes in
    let text = String(decoding: bytes, as: UTF8.self)
    if let link = EnrollmentLink(text) { try expect(link.description == text, "a link is another one") }
    if let address = HubAddress(parsing: text) {
      try expect(HubAddress(parsing: address.description) == address, "an address is another one")
    }
    if let token = try refusable({ try FeedToken(text) }) {
      try expect(token.text == text && token.number >= 0, "a token is another one")
    }
    if let token = try refusable({ try SharedToken(text) }) {
      try expect(token.text == text && (0...token.number).contains(token.since), "a share's token is another one")
    }
    if let token = try refusable({ try LogToken(text) }) {
      try expect(token.text == text && token.number >= 0, "a log's token is another one")
    }
    if let link = try? ShareURL(text) {
      if case .address(let address) = link.place {
        try expect(
          (try? ShareURL("https://\(address)/s/\(link.token.text)")) == link, "a share's link is another one")
      }
      try expect((try? ShareURL("/s/\(link.token.text)"))?.token == link.token, "a share's token is another one")
    }
    if let id = WireID(text) { try expect(id.description == text.lowercased(), "an id is another one") }
    if let hash = ChunkHash(text) { try expect(hash.description == text, "a hash is another one") }
    if let bytes = Base64URL.bytes(text) { try expect(Base64URL.text(bytes) == text, "Base64 is another one") }
  }

  /// Manifests as they are stored.
  static let hubManifests = Decoder(name: "hub-manifests") { bytes in
    guard let manifest = Manifest(bytes: bytes) else { return }
    try expect(manifest.bytes == bytes && Manifest(manifest.extents) == manifest, "a manifest is another one")
    try expect((0...Manifest.sizeLimit).contains(manifest.size), "a size of \(manifest.size)")
    try expect(manifest.hashes.count <= manifest.extents.count, "more chunks than extents")
    // The reverse has every chunk at another place.
    guard let other = Manifest(manifest.extents.reversed()) else { return }
    for (one, base) in [(manifest, manifest), (manifest, other)] {
      let copies = one.copies(from: base)
      try expect(copies.isSound(size: one.size, from: base.size), "copies of what is not there")
      try expect(copies.copies.reduce(0) { $0 + $1.length } == one.size, "a chunk of the other one is not copied")
    }
  }

  /// What one hub tells another, what a guest's device tells a hub, and labels.
  static let hubPeers = Decoder(name: "hub-peers") { bytes in
    func check<Message: Codable & Hashable>(_ type: Message.Type) throws -> Message? {
      guard let message: Message = json(bytes) else { return nil }
      try expect(json(JSONEncoder().encode(message)) == message, "encoded and decoded it is another one")
      return message
    }
    _ = try check(HubDescription.self)
    _ = try check(CollaborationRequest.self)
    _ = try check(KeyDeposit.self)
    if let root = try check(CollaborationRoot.self), try refusable({ try root.check() }) != nil {
      try expect(root.root.count == 32 && [8, 16].contains(root.size), "a root of another size")
      try expect(root.name.map(isShown) ?? true, "a name that controls the display")
    }
    if let request = try check(GuestRequest.self), let root = IdentityRoot(above: request.proof) {
      try expect(request.proof.publicKeyIndex < root.size, "a key that is not among the others")
    }
    if let list = try check(RetentionList.self), list.isSound {
      try expect(
        list.folders.allSatisfy { ($0.keepDeleted ?? 86_400) >= 86_400 && ($0.keepVersions ?? 86_400) >= 86_400 },
        "a span that is too short")
    }
    if let label = try check(SentLabel.self)?.label, VersionLabel.isSound(label) {
      try expect(isShown(label) && (1...200).contains(label.count), "a label that nobody can read")
    }
    if let news = try check(InboxNews.self), let hub = HubAddress(parsing: "hub.example"),
      let note = try refusable({
        try InboxNote(news.entry, at: hub, for: news.handle, now: Timestamp(seconds: 1_795_000_000))
      })
    {
      try expect(note.offer != nil || note.acceptance == .removed, "somebody takes part in nothing")
      try expect(note.news == nil || note.acceptance == .pending, "news of what is no invitation")
      let entry = note.entry(of: news.entry.share) { _ in "" }
      try expect(entry.hub == "https://hub.example" && entry.owner == news.entry.owner, "the share of another hub")
      if let offer = note.offer {
        try expect(isShown(offer.title) && isShown(offer.ownerName), "a title that controls the display")
        try expect(offer.role != .owner && offer.requests >= 0, "a part that nobody can have")
        let again = try refusable {
          try InboxNote(entry, at: hub, for: news.handle, now: Timestamp(seconds: 1_795_000_000))
        }
        try expect(again == note, "told again it is another one")
      }
    }
    var input = Input(bytes)
    let (field, signature) = (
      String(decoding: input.piece(), as: UTF8.self), String(decoding: input.piece(), as: UTF8.self)
    )
    if let signed = HubSignature(input: field, signature: signature) {
      try expect(signed.inputField == field && signed.signatureField == signature, "a signature is another one")
    }
  }

  /// Whether a text is there and does not control the display.
  private static func isShown(_ text: String) -> Bool {
    !text.isEmpty && !text.unicodeScalars.contains(where: \.isControl)
  }

  private static func json<Value: Decodable>(_ bytes: some Collection<UInt8>) -> Value? {
    let shape = JSONShape(of: bytes)
    guard shape.depth <= JSONShape.deepest, shape.number <= JSONShape.longestNumber else { return nil }
    return try? JSONDecoder().decode(Value.self, from: Data(bytes))
  }

  /// What `decode` makes, nil where it refuses as a hub does.
  private static func refusable<Value>(_ decode: () throws -> Value) throws -> Value? {
    do {
      return try decode()
    } catch let error as HubError where error.kind == .invalid || error.kind == .tooLarge {
      return nil
    } catch {
      throw Finding("refused with \(error)")
    }
  }
}
