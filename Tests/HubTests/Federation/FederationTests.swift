import AsyncHTTPClient
import Crypto
import Foundation
import HubKit
import NIOCore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Alice at one hub, bob with his devices at another one: what each of them and each hub may do.
@Suite struct FederationTests {
  private static let bob = "bob@two.example"

  /// Whether somebody has no part in a share. That their session is over, a process may hear a moment later.
  private static func isOut(_ answer: HubClient.Answer) -> Bool {
    answer.problem == .unauthorized || answer.problem == .notFound
  }

  @Test(arguments: StoreEngine.available)
  func aPersonOfAnotherHubTakesPart(_ engine: StoreEngine) async throws {
    try await TwoHubs.with(engine) { hubs in
      let (one, two) = (hubs.one.client, hubs.two.client)
      let (_, alice) = try await hubs.one.member("alice@one.example")
      let bob = try await GuestDevice(Self.bob, at: hubs.two)
      let (share, path) = try await hubs.share(alice)
      #expect(share.url.hasPrefix("https://one.example/s/"))
      let invited = try await hubs.invite(Self.bob, to: path, ParticipantSettings(permission: .readOnly), by: alice)
      #expect(invited.status == 200)
      #expect(try invited.decode(ShareParticipant.self).acceptance == .pending)

      // The invitation lies in his inbox at his own hub.
      let entry = try #require(try await bob.inbox().first)
      #expect(entry.hub == "https://one.example" && entry.acceptance == .pending && entry.owner == "alice@one.example")
      #expect(entry.offer?.url == share.url && entry.offer?.permission == .readOnly && entry.share == share.share)
      let known = try await bob.collaboration(share.share)
      #expect(known.hub == "https://one.example" && known.leaves.count == 8)

      // He proves himself, sees the offer and accepts, and both hubs say so.
      let guest = try await bob.session(share.share, at: hubs.one)
      #expect(try await one.send("GET", "\(path)/feed", token: guest).problem == .forbidden)
      let link = ShareLink(url: share.url)
      let offer: ShareOfferFacts = try await one.send("POST", "/v1/offers", json: link, token: guest).decode()
      #expect(offer.way == .join && offer.owner == "alice@one.example")
      #expect(try await bob.acceptAbroad(WireID()).problem == .notFound)
      #expect(try await bob.acceptAbroad(share.share).status == 204)
      let accepted: ShareAcceptance = try await one.send("POST", "/v1/acceptances", json: link, token: guest).decode()
      #expect(accepted == ShareAcceptance(requested: false, share: share.share, permission: .readOnly))
      #expect(try await bob.inbox().map(\.acceptance) == [.accepted])
      let seen: ShareState = try await one.send("GET", path, token: guest).decode()
      #expect(seen.participants.map(\.handle) == ["alice@one.example", Self.bob])

      // He reads, and may not write before alice lets him; the change reaches his inbox.
      let feed: SharedFeedPage = try await one.send("GET", "\(path)/feed", token: guest).decode()
      let item = try #require(feed.changes.first?.state)
      var edit = Send.document("plan.md", "Tuesday", serial: 1, item: item.item)
      edit.version?.base = item.version?.id
      (edit.base, edit.places) = (item.number, nil)
      let sends = SendRequest(groups: [[edit]])
      let denied: SendAnswer = try await one.send("POST", "\(path)/sends", json: sends, token: guest).decode()
      #expect(denied.verdicts.map(\.outcome) == [.refused] && denied.verdicts.first?.reason == .denied)
      _ = try await hubs.invite(Self.bob, to: path, ParticipantSettings(permission: .readWrite), by: alice)
      #expect(try await bob.inbox().map(\.offer?.permission) == [.readWrite])
      edit.serial = 2
      let again = SendRequest(groups: [[edit]])
      let done: SendAnswer = try await one.send("POST", "\(path)/sends", json: again, token: guest).decode()
      #expect(done.verdicts.map(\.outcome) == [.done], "\(done)")
      let versions: VersionList = try await one.send(
        "GET", "/v1/items/\(item.item)/versions", token: alice
      ).decode()
      #expect(versions.versions.count == 2 && versions.versions.last?.author == Self.bob)

      // A guest's session is for that share alone.
      for other in ["/v1/account", "/v1/feed", "/v1/inbox", "/v1/devices", "/v1/events", "/v1/keys", "/v1/stream"] {
        #expect(try await one.send("GET", other, token: guest).problem == .forbidden, "\(other)")
      }
      for other in ["/v1/links", "/v1/sends"] {
        #expect(try await one.send("POST", other, json: sends, token: guest).problem == .forbidden, "\(other)")
      }
      let (second, secondPath) = try await hubs.share(alice, "other.md")
      _ = try await hubs.invite(Self.bob, to: secondPath, by: alice)
      #expect(try await one.send("GET", secondPath, token: guest).problem == .notFound)
      #expect(
        try await one.send("POST", "/v1/acceptances", json: ShareLink(url: second.url), token: guest).problem
          == .notFound)
      #expect(try await two.send("GET", path, token: guest).problem == .unauthorized)

      // He leaves, and alice's hub tells his.
      let own = TwoHubs.participant(Self.bob, of: path)
      #expect(try await one.send("DELETE", own, token: guest).status == 204)
      #expect(try await bob.inbox().first { $0.share == share.share }?.acceptance == .removed)
      #expect(Self.isOut(try await one.send("GET", path, token: guest)))
      #expect(try await bob.enter(known, at: hubs.one).problem == .forbidden)
      // What ended for him has no keys any more; a new invitation takes others.
      let ended = try await two.send("GET", "/v1/collaborations/\(share.share)", token: bob.token)
      #expect(ended.problem == .notFound)
      _ = try await hubs.invite(Self.bob, to: path, by: alice)
      #expect(try await bob.collaboration(share.share).key != known.key)
      #expect(try await bob.enter(try await bob.collaboration(share.share), at: hubs.one).status == 201)
      #expect(try await hubs.one.hub.hub.check() == [])
      #expect(try await hubs.two.hub.hub.check() == [])
    }
  }

  /// A new device gets in without alice, and a removed one is out at once.
  @Test(arguments: StoreEngine.available)
  func devicesComeAndGoWithoutTheOwner(_ engine: StoreEngine) async throws {
    try await TwoHubs.with(engine) { hubs in
      let one = hubs.one.client
      let (_, alice) = try await hubs.one.member("alice@one.example")
      // Alice can invite somebody whose devices have deposited nothing.
      let late = try await GuestDevice(Self.bob, at: hubs.two, keys: 0)
      let (share, path) = try await hubs.share(alice)
      #expect(try await hubs.invite(Self.bob, to: path, by: alice).status == 200)
      #expect(try await late.collaboration(share.share).key == nil)
      let laptop = try await GuestDevice(Self.bob, at: hubs.two)
      let first = try await laptop.collaboration(share.share)
      let token = try await laptop.session(share.share, at: hubs.one)
      let link = ShareLink(url: share.url)
      #expect(try await laptop.acceptAbroad(share.share).status == 204)
      #expect(try await one.send("POST", "/v1/acceptances", json: link, token: token).status == 200)
      #expect(try await one.send("GET", "\(path)/feed", token: token).status == 200)
      let stream = try await one.start("GET", "\(path)/stream", token: token)

      let phone = try await GuestDevice(Self.bob, at: hubs.two)
      let phones = try await phone.collaboration(share.share)
      let phoneToken = try await phone.session(share.share, at: hubs.one)
      #expect(try await one.send("GET", "\(path)/feed", token: phoneToken).status == 200)
      // The root before is no way in any more, and what began by it is over; the new one is.
      #expect(try await one.send("GET", "\(path)/feed", token: token).problem == .unauthorized)
      for try await _ in stream.body {}
      #expect(try await laptop.enter(first, at: hubs.one).problem == .forbidden)
      let renewed = try await laptop.collaboration(share.share)
      #expect(renewed.key == first.key && renewed.leaves != first.leaves)
      #expect(try await laptop.enter(renewed, at: hubs.one).status == 201)

      let removed = try await hubs.two.client.send(
        "DELETE", "/v1/devices/\(phone.enrolled.device)", token: laptop.token)
      #expect(removed.status == 204)
      #expect(try await one.send("GET", "\(path)/feed", token: phoneToken).problem == .unauthorized)
      #expect(try await phone.enter(phones, at: hubs.one).problem == .forbidden)
      #expect(try await laptop.enter(try await laptop.collaboration(share.share), at: hubs.one).status == 201)
      #expect(try await laptop.enter(renewed, at: hubs.one).problem == .forbidden)
    }
  }

  /// Where the hub of the share was put back, a device that came since then gets in when it asks its own hub again.
  @Test(arguments: StoreEngine.available)
  func aNewDeviceGetsInAtAHubThatWentBack(_ engine: StoreEngine) async throws {
    try await TwoHubs.with(engine) { hubs in
      let (_, alice) = try await hubs.one.member("alice@one.example")
      _ = try await GuestDevice(Self.bob, at: hubs.two)
      let (share, path) = try await hubs.share(alice)
      #expect(try await hubs.invite(Self.bob, to: path, by: alice).status == 200)
      let database = hubs.one.hub.hub.database
      let former = try #require(
        try await database.read { try $0.query("SELECT root, size, revision FROM guests").first })
      let phone = try await GuestDevice(Self.bob, at: hubs.two)
      _ = try await phone.session(share.share, at: hubs.one)
      try await database.write { [root = try former.blob(0), revision = try former.integer(2)] connection in
        _ = try connection.execute(
          "UPDATE guests SET root = $1, revision = $2", [.blob(root), .integer(revision)])
      }
      // The other hub is asked no more often than that.
      let asked = hubs.dialer.exchanges.count
      #expect(try await phone.enter(try await phone.collaboration(share.share), at: hubs.one).problem == .forbidden)
      #expect(hubs.dialer.exchanges.count == asked)
      for hub in [hubs.one, hubs.two] { hub.hub.clock.advance(seconds: 301) }
      #expect(try await phone.enter(try await phone.collaboration(share.share), at: hubs.one).status == 201)
      #expect(hubs.dialer.exchanges.count > asked)
      let told = hubs.dialer.exchanges.count
      #expect(try await phone.enter(try await phone.collaboration(share.share), at: hubs.one).status == 201)
      #expect(hubs.dialer.exchanges.count == told)
    }
  }

  @Test(arguments: StoreEngine.available)
  func whoIsRevokedIsOutAtOnce(_ engine: StoreEngine) async throws {
    try await TwoHubs.with(engine) { hubs in
      let one = hubs.one.client
      let (_, alice) = try await hubs.one.member("alice@one.example")
      let bob = try await GuestDevice(Self.bob, at: hubs.two)
      let (share, path) = try await hubs.share(alice)
      _ = try await hubs.invite(Self.bob, to: path, by: alice)
      let token = try await bob.session(share.share, at: hubs.one)
      #expect(try await bob.acceptAbroad(share.share).status == 204)
      _ = try await one.send("POST", "/v1/acceptances", json: ShareLink(url: share.url), token: token)
      let known = try await bob.collaboration(share.share)
      let stream = try await one.start("GET", "\(path)/stream", token: token)
      let began = ContinuousClock.now
      let waiting = try await hubs.two.client.send("GET", "/v1/inbox", token: bob.token).decode(InboxPage.self)
      async let heard = hubs.two.client.send("GET", "/v1/inbox?wait=60&known=\(waiting.number)", token: bob.token)
      #expect(
        try await one.send("DELETE", TwoHubs.participant(Self.bob, of: path), token: alice).status == 204)
      for try await _ in stream.body {}
      #expect(try await heard.decode(InboxPage.self).entries.map(\.acceptance) == [.removed])
      #expect(ContinuousClock.now - began < .seconds(20))
      #expect(Self.isOut(try await one.send("GET", "\(path)/feed", token: token)))
      #expect(try await bob.enter(known, at: hubs.one).problem == .forbidden)

      // A share that is stopped ends likewise.
      _ = try await hubs.invite(Self.bob, to: path, by: alice)
      let second = try await bob.session(share.share, at: hubs.one)
      #expect(try await one.send("DELETE", path, token: alice).status == 204)
      #expect(Self.isOut(try await one.send("GET", path, token: second)))
      #expect(try await bob.inbox().map(\.acceptance) == [.removed])
    }
  }

  /// What another hub is to know waits until it is there, and arrives once, the newest alone.
  @Test(arguments: StoreEngine.available)
  func newsWaitForAHubThatIsAway(_ engine: StoreEngine) async throws {
    try await TwoHubs.with(engine) { hubs in
      let (_, alice) = try await hubs.one.member("alice@one.example")
      let bob = try await GuestDevice(Self.bob, at: hubs.two)
      let (_, path) = try await hubs.share(alice)
      let base = hubs.two.client.base
      hubs.dialer.lead("two.example", nil)
      #expect(try await hubs.invite(Self.bob, to: path, by: alice).problem == .unavailable)
      hubs.dialer.lead("two.example", toHubAt: base)
      #expect(try await hubs.invite(Self.bob, to: path, by: alice).status == 200)
      #expect(try await hubs.invite("nobody@two.example", to: path, by: alice).problem == .notFound)
      hubs.dialer.lead("two.example", nil)
      for role in [WireRole.administrator, .privateUser] {
        let changed = try await hubs.invite(
          Self.bob, to: path, ParticipantSettings(permission: .readWrite, role: role), by: alice)
        #expect(changed.status == 200)
      }
      #expect(
        try await hubs.one.client.send("DELETE", TwoHubs.participant(Self.bob, of: path), token: alice).status == 204)
      #expect(try await bob.inbox().map(\.acceptance) == [.pending])
      let number = try await hubs.two.client.send("GET", "/v1/inbox", token: bob.token).decode(InboxPage.self).number
      hubs.dialer.lead("two.example", toHubAt: base)
      // The rounds of the server bring it.
      let told: InboxPage = try await hubs.two.client.send(
        "GET", "/v1/inbox?wait=60&known=\(number)", token: bob.token
      ).decode()
      #expect(told.entries.map(\.acceptance) == [.removed] && told.number == number + 1)
    }
  }

  /// Only who may invite has another hub asked, and an account of one hub is none of another one.
  @Test func strangersHaveNobodyAsked() async throws {
    try await TwoHubs.with { hubs in
      let one = hubs.one.client
      let (_, alice) = try await hubs.one.member("alice@one.example")
      let (_, carol) = try await hubs.one.member("carol@one.example")
      let (_, other) = try await hubs.one.member("alice@elsewhere.example")
      _ = try await GuestDevice(Self.bob, at: hubs.two)
      let (_, path) = try await hubs.share(alice)
      #expect(try await hubs.invite(Self.bob, to: path, by: carol).problem == .notFound)
      _ = try await hubs.invite("carol@one.example", to: path, by: alice)
      #expect(try await hubs.invite(Self.bob, to: path, by: carol).problem == .forbidden)
      for handle in ["nobody@one.example", "bob@10.0.0.1:80", "bob@localhost", "bob@two.example.", "x"] {
        #expect(try await hubs.invite(handle, to: path, by: alice).problem == .notFound, "\(handle)")
      }
      #expect(hubs.dialer.exchanges.isEmpty)
      // The hub speaks for its domains alone.
      let document = Send.document("own.md", "Monday", serial: 1)
      _ = try await one.send("POST", "/v1/sends", json: SendRequest(groups: [[document]]), token: other)
      let shared: ShareState = try await one.send(
        "PUT", "/v1/items/\(document.item)/share", json: ShareSettings(), token: other
      ).decode()
      #expect(try await hubs.invite(Self.bob, to: "/v1/shares/\(shared.share)", by: other).problem == .conflict)
      #expect(hubs.dialer.exchanges.isEmpty)
    }
  }
}
