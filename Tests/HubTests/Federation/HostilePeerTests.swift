import AsyncHTTPClient
import Crypto
import Foundation
import HubKit
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Hubs that lie about whom they speak for, or answer what no hub answers.
@Suite struct HostilePeerTests {
  private static let bob = "bob@two.example"

  /// A hub that signs what it likes.
  private struct Eve {
    let key = P256.Signing.PrivateKey()
    let hubs: TwoHubs

    init(_ hubs: TwoHubs) {
      self.hubs = hubs
      describe(
        HubDescription(hub: "https://eve.example", domains: ["eve.example"], key: key.publicKey.x963Representation))
    }

    func describe(_ description: HubDescription, at host: String = "eve.example") {
      hubs.dialer.lead(host) { _ in
        HubAnswer(status: 200, body: [UInt8](try JSONEncoder().encode(description)))
      }
    }

    /// Posts something as the hub of a domain.
    func post(
      _ value: some Encodable, _ path: String, as domain: String = "eve.example", to hub: RunningHub,
      authority: String = "two.example", signedPath: String? = nil, ago: Int64 = 0,
      sent: ((Data) -> Data)? = nil
    ) async throws -> HubClient.Answer {
      let body = try JSONEncoder().encode(value)
      let message = HubSignature.Message(path: signedPath ?? path, body: body)
      let now = Timestamp(seconds: hub.hub.clock.clock.now.seconds - ago)
      let signature = try HubSignature(of: message, to: authority, by: key, for: domain, at: now)
      return try await hub.client.send(
        "POST", path, body: sent?(body) ?? body,
        headers: [
          ("content-digest", message.digest), ("signature-input", signature.inputField),
          ("signature", signature.signatureField),
        ])
    }
  }

  private static func request(_ owner: String, _ share: WireID = WireID()) -> CollaborationRequest {
    CollaborationRequest(handle: bob, owner: owner, share: share, zone: WireID())
  }

  private static func news(
    _ owner: String, of share: WireID, at address: String, _ acceptance: WireAcceptance = .pending,
    revision: Int64 = 1 << 40
  ) -> InboxNews {
    InboxNews(
      handle: bob, revision: revision,
      entry: InboxEntry(
        share: share, owner: owner, acceptance: acceptance,
        offer: InboxOffer(
          url: ShareToken.random().url(address: address, library: ""), title: "Plan", ownerName: "Eve",
          kind: .document, role: .privateUser, permission: .readOnly, anyone: .none, requests: 0)))
  }

  /// A request counts if it is whole, of now, for this hub, and signed by the hub of the domain that it names.
  @Test func requestsAreSigned() async throws {
    try await TwoHubs.with { hubs in
      let bob = try await GuestDevice(Self.bob, at: hubs.two)
      let eve = Eve(hubs)
      let (path, asked) = (Federation.keysPath, Self.request("eve@eve.example"))
      #expect(try await hubs.two.client.send("POST", path, json: asked).problem == .unauthorized)
      #expect(try await eve.post(asked, path, as: "one.example", to: hubs.two).problem == .unauthorized)
      #expect(try await eve.post(asked, path, as: "two.example", to: hubs.two).problem == .unauthorized)
      #expect(try await eve.post(asked, path, as: "nobody.example", to: hubs.two).problem == .unauthorized)
      #expect(try await eve.post(asked, path, to: hubs.two, authority: "one.example").problem == .unauthorized)
      #expect(try await eve.post(asked, path, to: hubs.two, signedPath: Federation.rootsPath).problem == .unauthorized)
      #expect(try await eve.post(asked, path, to: hubs.two, sent: { $0 + [0x20] }).problem == .unauthorized)
      for ago in [HubSignature.tolerance + 1, -HubSignature.tolerance - 1] {
        #expect(try await eve.post(asked, path, to: hubs.two, ago: ago).problem == .unauthorized)
      }
      // With her own name she may ask, for whoever is of her domain.
      #expect(try await eve.post(asked, path, to: hubs.two).status == 200)
      #expect(try await eve.post(Self.request("alice@one.example"), path, to: hubs.two).problem == .forbidden)
      let unknown = CollaborationRequest(
        handle: "nobody@two.example", owner: "eve@eve.example", share: WireID(), zone: WireID())
      #expect(try await eve.post(unknown, path, to: hubs.two).problem == .notFound)
      #expect(try await bob.inbox().isEmpty)
    }
  }

  /// Who has a domain decides which hub speaks for it, and the hub has to agree.
  @Test func aHubSpeaksForDomainsThatNameIt() async throws {
    try await TwoHubs.with { hubs in
      _ = try await GuestDevice(Self.bob, at: hubs.two)
      let (eve, path) = (Eve(hubs), Federation.keysPath)
      let own = eve.key.publicKey.x963Representation
      // She says that she speaks for a domain that names another hub.
      eve.describe(HubDescription(hub: "https://eve.example", domains: ["eve.example", "one.example"], key: own))
      let asked = Self.request("alice@one.example")
      #expect(try await eve.post(asked, path, as: "one.example", to: hubs.two).problem == .unauthorized)
      // A domain names her, for which she does not speak; one that names what is no address; one that names herself by
      // another one's address.
      let other = Self.request("x@other.example")
      for said in [
        HubDescription(hub: "https://eve.example", domains: nil, key: nil),
        HubDescription(hub: "http://eve.example", domains: ["other.example"], key: own),
        HubDescription(hub: "https://eve.example/x", domains: ["other.example"], key: own),
        HubDescription(hub: "https://two.example", domains: ["other.example"], key: own),
        HubDescription(hub: "https://other.example", domains: ["another.example"], key: own),
        HubDescription(hub: "https://other.example", domains: ["other.example"], key: own.dropLast()),
      ] {
        eve.describe(said, at: "other.example")
        #expect(try await eve.post(other, path, as: "other.example", to: hubs.two).problem == .unauthorized, "\(said)")
      }
      // Both agree.
      eve.describe(HubDescription(hub: "https://eve.example", domains: ["eve.example", "other.example"], key: own))
      eve.describe(HubDescription(hub: "https://eve.example", domains: nil, key: nil), at: "other.example")
      #expect(try await eve.post(other, path, as: "other.example", to: hubs.two).status == 200)
    }
  }

  /// A hub tells of its own shares alone, and only those whom it asked for keys.
  @Test func noHubTellsOfTheSharesOfOthers() async throws {
    try await TwoHubs.with { hubs in
      let (_, alice) = try await hubs.one.member("alice@one.example")
      let bob = try await GuestDevice(Self.bob, at: hubs.two)
      let (share, path) = try await hubs.share(alice)
      _ = try await hubs.invite(Self.bob, to: path, by: alice)
      let (eve, inbox) = (Eve(hubs), Federation.inboxPath)
      let before = try await bob.inbox()
      for (news, kind) in [
        (Self.news("alice@one.example", of: share.share, at: "one.example"), Problem.Kind.forbidden),
        (Self.news("eve@eve.example", of: share.share, at: "eve.example"), .notFound),
        (Self.news("eve@eve.example", of: WireID(), at: "eve.example"), .notFound),
      ] {
        #expect(try await eve.post(news, inbox, to: hubs.two).problem == kind)
      }
      #expect(
        try await eve.post(Self.request("eve@eve.example", share.share), Federation.keysPath, to: hubs.two).problem
          == .conflict)
      // Of her own she tells what she can: no URL of another hub, no owner's role, nothing that controls a display.
      let own = WireID()
      #expect(try await eve.post(Self.request("eve@eve.example", own), Federation.keysPath, to: hubs.two).status == 200)
      #expect(
        try await eve.post(Self.news("eve@eve.example", of: own, at: "one.example"), inbox, to: hubs.two).problem
          == .invalid)
      var owner = Self.news("eve@eve.example", of: own, at: "eve.example")
      var entry = owner.entry
      entry.offer?.role = .owner
      owner = InboxNews(handle: Self.bob, revision: 1, entry: entry)
      #expect(try await eve.post(owner, inbox, to: hubs.two).problem == .invalid)
      entry.offer?.role = .privateUser
      entry.offer?.title = "a\u{1B}[2J"
      let display = InboxNews(handle: Self.bob, revision: 1, entry: entry)
      #expect(try await eve.post(display, inbox, to: hubs.two).problem == .invalid)
      #expect(try await bob.inbox() == before)
      let good = Self.news("eve@eve.example", of: own, at: "eve.example", revision: 5)
      #expect(try await eve.post(good, inbox, to: hubs.two).status == 204)
      #expect(try await bob.inbox().first { $0.share == own }?.hub == "https://eve.example")
      // An older one, and the same again, change nothing.
      let page: InboxPage = try await hubs.two.client.send("GET", "/v1/inbox", token: bob.token).decode()
      for revision in [Int64(4), 5] {
        let old = Self.news("eve@eve.example", of: own, at: "eve.example", .removed, revision: revision)
        #expect(try await eve.post(old, inbox, to: hubs.two).status == 204)
      }
      #expect(try await hubs.two.client.send("GET", "/v1/inbox", token: bob.token).decode() == page)
      // Nor does she tell roots of people for whom she does not speak.
      let known = try await bob.collaboration(share.share)
      let root = CollaborationRoot(
        handle: Self.bob, name: nil, share: share.share, zone: known.zone, root: Data(repeating: 1, count: 32), size: 8,
        revision: 1 << 40)
      #expect(
        try await eve.post(root, Federation.rootsPath, to: hubs.one, authority: "one.example").problem == .forbidden)
      #expect(try await bob.enter(known, at: hubs.one).status == 201)
    }
  }

  /// A hub that took the id of a share of this hub for its own is believed no more than this hub itself.
  @Test func aShareOfThisHubIsOfNoOther() async throws {
    try await TwoHubs.with { hubs in
      let (_, carol) = try await hubs.two.member("carol@two.example")
      let bob = try await GuestDevice(Self.bob, at: hubs.two)
      let document = Send.document("plan.md", "Monday", serial: 1)
      _ = try await hubs.two.client.send("POST", "/v1/sends", json: SendRequest(groups: [[document]]), token: carol)
      let share: ShareState = try await hubs.two.client.send(
        "PUT", "/v1/items/\(document.item)/share", json: ShareSettings(), token: carol
      ).decode()
      let eve = Eve(hubs)
      let asked = Self.request("eve@eve.example", share.share)
      #expect(try await eve.post(asked, Federation.keysPath, to: hubs.two).status == 200)
      let news = Self.news("eve@eve.example", of: share.share, at: "eve.example")
      #expect(try await eve.post(news, Federation.inboxPath, to: hubs.two).status == 204)
      let own = "/v1/shares/\(share.share)/participants/bob%40two.example"
      #expect(try await hubs.two.client.send("PUT", own, json: ParticipantSettings(), token: carol).status == 200)
      let entries = try await bob.inbox()
      #expect(entries.map(\.owner) == ["carol@two.example"] && entries.first?.hub == nil)
      #expect(try await eve.post(news, Federation.inboxPath, to: hubs.two).problem == .notFound)
      #expect(try await eve.post(asked, Federation.keysPath, to: hubs.two).problem == .conflict)
    }
  }

  /// By another hub's word nobody takes part in a share of it, and it can use up neither keys nor places.
  @Test func nobodyTakesPartByAnotherHubsWord() async throws {
    try await TwoHubs.with { hubs in
      let bob = try await GuestDevice(Self.bob, at: hubs.two)
      let (eve, share) = (Eve(hubs), WireID())
      func tell(_ acceptance: WireAcceptance, _ revision: Int64) async throws {
        let news = Self.news("eve@eve.example", of: share, at: "eve.example", acceptance, revision: revision)
        #expect(try await eve.post(news, Federation.inboxPath, to: hubs.two).status == 204)
      }
      let asked = Self.request("eve@eve.example", share)
      #expect(try await eve.post(asked, Federation.keysPath, to: hubs.two).status == 200)
      try await tell(.accepted, 1)
      #expect(try await bob.inbox().isEmpty)
      try await tell(.pending, 2)
      try await tell(.accepted, 3)
      #expect(try await bob.inbox().map(\.acceptance) == [.pending])
      // Once he is out, it takes his word again.
      #expect(try await bob.acceptAbroad(share).status == 204)
      try await tell(.accepted, 4)
      #expect(try await bob.inbox().map(\.acceptance) == [.accepted])
      try await tell(.removed, 5)
      try await tell(.accepted, 6)
      #expect(try await bob.inbox().map(\.acceptance) == [.removed])
      for _ in 0..<Collaborations.mostUnanswered {
        let more = Self.request("eve@eve.example")
        #expect(try await eve.post(more, Federation.keysPath, to: hubs.two).status == 200)
      }
      let last = Self.request("eve@eve.example")
      #expect(try await eve.post(last, Federation.keysPath, to: hubs.two).problem == .conflict)
      // Others may invite him.
      let (_, alice) = try await hubs.one.member("alice@one.example")
      let (_, path) = try await hubs.share(alice)
      #expect(try await hubs.invite(Self.bob, to: path, by: alice).status == 200)
    }
  }

  /// The owner's hub takes no answer that is another one than it asked for.
  @Test func answersAreChecked() async throws {
    try await TwoHubs.with { hubs in
      let (_, alice) = try await hubs.one.member("alice@one.example")
      let (share, path) = try await hubs.share(alice)
      let eve = Eve(hubs)
      let description = try JSONEncoder().encode(
        HubDescription(
          hub: "https://eve.example", domains: ["eve.example"], key: eve.key.publicKey.x963Representation))
      let zone = try await hubs.one.hub.accounts.zone(of: try AccountHandle("alice@one.example"))
      func root(handle: String = "eve@eve.example", share id: WireID? = nil, root: Int = 32, size: Int = 8) throws
        -> Data
      {
        try JSONEncoder().encode(
          CollaborationRoot(
            handle: handle, name: nil, share: id ?? share.share, zone: try #require(WireID(zone)),
            root: Data(repeating: 1, count: root), size: size, revision: 1))
      }
      for (status, body, kind) in [
        (200, try root(handle: "carol@one.example"), Problem.Kind.unavailable),
        (200, try root(share: WireID()), .unavailable), (200, try root(root: 31), .unavailable),
        (200, try root(size: 32), .unavailable), (200, Data("{}".utf8), .unavailable),
        (302, Data(), .conflict), (500, Data(), .unavailable), (403, Data(), .conflict), (404, Data(), .notFound),
      ] {
        hubs.dialer.lead("eve.example") { exchange in
          exchange.body == nil
            ? HubAnswer(status: 200, body: [UInt8](description)) : HubAnswer(status: status, body: [UInt8](body))
        }
        #expect(try await hubs.invite("eve@eve.example", to: path, by: alice).problem == kind, "\(status)")
      }
      let people: ShareState = try await hubs.one.client.send("GET", path, token: alice).decode()
      #expect(people.participants.count == 1)
    }
  }

  /// Other hubs are dialled at port 443 of public addresses, and their answers are bounded.
  @Test func hubsAreDialledWithCare() async throws {
    let ask = HubExchange(path: Federation.wellKnown, body: nil, headers: [])
    for (address, reason) in [
      ("127.0.0.1", "not public"), ("localhost", "not public"), ("10.0.0.1", "not public"),
      ("[::1]", "not public"), ("192.168.1.1", "not public"), ("9.9.9.9:8443", "443 alone"),
    ] {
      let failure = await #expect(throws: HubDialFailure.self) {
        try await HubDialer().exchange(ask, with: try HubAddress(address))
      }
      #expect(failure?.description.contains(reason) ?? false, "\(address): \(failure?.description ?? "")")
    }
    for (size, isTaken) in [(HubDialer.longestAnswer, true), (HubDialer.longestAnswer + 1, false)] {
      let server = try ScriptedServer { _ in .json(String(repeating: "x", count: size)) }
      defer { server.close() }
      let answer = try? await HubDialer.answer(
        to: ask, at: "http://127.0.0.1:\(server.port)", HubDialer.configuration(for: "127.0.0.1", at: "127.0.0.1"))
      #expect((answer != nil) == isTaken, "\(size)")
    }
    // Where it is sent, it does not go.
    let server = try ScriptedServer { _ in
      .bytes("HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    }
    defer { server.close() }
    let answer = try await HubDialer.answer(
      to: ask, at: "http://127.0.0.1:\(server.port)", HubDialer.configuration(for: "127.0.0.1", at: "127.0.0.1"))
    #expect(answer.status == 302 && server.asked == [Federation.wellKnown])
  }
}
