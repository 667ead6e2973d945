import AsyncHTTPClient
import Foundation
import HubKit
import NIOCore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Sharing over HTTP, and the page of a share's URL. What it means has tests of its own.
@Suite struct ShareRouteTests {
  @Test(arguments: StoreEngine.available)
  func aDocumentIsShared(_ engine: StoreEngine) async throws {
    try await RunningHub.with(engine) { running in
      let client = running.client
      let (_, alice) = try await running.member()
      let (_, bob) = try await running.member("bob@hub.example")
      let (_, carol) = try await running.member("carol@hub.example")
      let document = Send.document("plan.md", "Monday", serial: 1)
      _ = try await client.send("POST", "/v1/sends", json: SendRequest(groups: [[document]]), token: alice)
      let place = "/v1/items/\(document.item)/share"
      let share: ShareState = try await client.send("PUT", place, json: ShareSettings(), token: alice).decode()
      let path = "/v1/shares/\(share.share)"
      #expect(share.url.hasPrefix("https://127.0.0.1:\(running.port)/s/"))

      // Not there, and not theirs: one answer.
      let (foreign, absent) = (
        try await client.send("GET", path, token: bob),
        try await client.send("GET", "/v1/shares/\(WireID())", token: bob)
      )
      #expect(foreign.problem == .notFound && foreign.body == absent.body)
      let link = ShareLink(url: share.url)
      let guessed = ShareLink(url: ShareToken.random().text)
      for resource in ["/v1/offers", "/v1/acceptances"] {
        let real = try await client.send("POST", resource, json: link, token: bob)
        let none = try await client.send("POST", resource, json: guessed, token: bob)
        #expect(real.problem == .notFound && real.body == none.body)
      }
      #expect(try await client.send("PUT", place, json: ShareSettings(), token: bob).problem == .notFound)

      // An invitation.
      let bobs = "\(path)/participants/bob%40hub.example"
      let wanted = ParticipantSettings(permission: .readOnly)
      let invited: ShareParticipant = try await client.send("PUT", bobs, json: wanted, token: alice).decode()
      #expect(invited.acceptance == .pending && invited.handle == "bob@hub.example")
      let inbox: InboxPage = try await client.send("GET", "/v1/inbox", token: bob).decode()
      #expect(inbox.entries.map(\.acceptance) == [.pending])
      #expect(inbox.entries.first?.offer?.url == share.url)
      let offer: ShareOfferFacts = try await client.send("POST", "/v1/offers", json: link, token: bob).decode()
      #expect(offer.way == .join && offer.permission == .readOnly && offer.owner == "alice@hub.example")
      let accepted: ShareAcceptance = try await client.send("POST", "/v1/acceptances", json: link, token: bob).decode()
      #expect(accepted == ShareAcceptance(requested: false, share: share.share, permission: .readOnly))
      let seen: ShareState = try await client.send("GET", path, token: bob).decode()
      #expect(seen.participants.map(\.handle) == ["alice@hub.example", "bob@hub.example"])
      #expect(try await client.send("DELETE", path, token: bob).problem == .forbidden)
      #expect(try await client.send("PUT", "\(path)/participants/x", json: wanted, token: bob).problem == .forbidden)
      #expect(try await client.send("GET", "\(path)/requests", token: bob).problem == .forbidden)

      // A one-time link.
      let made = try await client.send("POST", "\(path)/links", json: OneTimeLinkSettings(), token: alice)
      let once: OneTimeLinkFacts = try made.decode()
      let claim = ShareLink(url: once.url)
      #expect(made.status == 201)
      #expect(try await client.send("POST", "/v1/acceptances", json: claim, token: carol).status == 200)
      let revoked: RevokedLinkFacts = try await client.send("DELETE", "\(path)/links", token: carol).decode()
      #expect(revoked.revoked == 0)
      #expect(try await client.send("DELETE", "\(path)/participants/carol%40hub.example", token: carol).status == 204)
      #expect(try await client.send("GET", path, token: carol).problem == .notFound)
      #expect(try await client.send("POST", "/v1/acceptances", json: claim, token: carol).problem == .notFound)

      // Somebody asks.
      let open = ShareSettings(allowRequests: true)
      #expect(try await client.send("PUT", place, json: open, token: alice).status == 200)
      let asked: ShareAcceptance = try await client.send("POST", "/v1/acceptances", json: link, token: carol).decode()
      #expect(asked == ShareAcceptance(requested: true))
      let requests: ShareRequests = try await client.send("GET", "\(path)/requests", token: alice).decode()
      #expect(requests.requests.map(\.handle) == ["carol@hub.example"])
      let block = ShareAnswer(answer: .block)
      let carols = "\(path)/requests/carol%40hub.example"
      #expect(try await client.send("PUT", carols, json: block, token: alice).status == 204)
      #expect(try await client.send("POST", "/v1/acceptances", json: link, token: carol).problem == .notFound)

      #expect(try await client.send("DELETE", bobs, token: alice).status == 204)
      #expect(try await client.send("GET", path, token: bob).problem == .notFound)
      #expect(try await client.send("DELETE", path, token: alice).status == 204)
      #expect(try await client.send("GET", path, token: alice).problem == .notFound)
    }
  }

  /// Who waits hears that their inbox changed, and nobody else does.
  @Test(arguments: StoreEngine.available)
  func aChangeOfAnInboxWakesWhoWaits(_ engine: StoreEngine) async throws {
    try await RunningHub.with(engine) { running in
      let client = running.client
      let (_, alice) = try await running.member()
      let (_, bob) = try await running.member("bob@hub.example")
      let (_, carol) = try await running.member("carol@hub.example")
      let document = Send.document("plan.md", "Monday", serial: 1)
      _ = try await client.send("POST", "/v1/sends", json: SendRequest(groups: [[document]]), token: alice)
      let place = "/v1/items/\(document.item)/share"
      let share: ShareState = try await client.send("PUT", place, json: ShareSettings(), token: alice).decode()
      /// What a stream says next, comments left out.
      func next(_ parts: inout HTTPClientResponse.Body.AsyncIterator) async throws -> String {
        while let part = try await parts.next() {
          let lines = String(buffer: part).split(separator: "\n").filter { $0.hasPrefix("data: ") }
          if let line = lines.last { return String(line) }
        }
        return "the end"
      }
      let (bobs, carols) = (
        try await client.start("GET", "/v1/stream", token: bob),
        try await client.start("GET", "/v1/stream", token: carol)
      )
      var (heard, others) = (bobs.body.makeAsyncIterator(), carols.body.makeAsyncIterator())
      #expect(try await next(&heard) == "data: {\"number\":0,\"inbox\":0}")
      #expect(try await next(&others) == "data: {\"number\":0,\"inbox\":0}")
      let empty: InboxPage = try await client.send("GET", "/v1/inbox", token: bob).decode()
      #expect(empty == InboxPage(entries: [], number: 0))
      async let waiting = client.send("GET", "/v1/inbox?wait=60&known=0", token: bob)
      let path = "/v1/shares/\(share.share)/participants"
      _ = try await client.send("PUT", "\(path)/bob%40hub.example", json: ParticipantSettings(), token: alice)
      #expect(try await next(&heard) == "data: {\"number\":0,\"inbox\":1}")
      let page: InboxPage = try await waiting.decode()
      #expect(page.entries.map(\.share) == [share.share] && page.number == 1)
      // What is known already is told at once only without a wish to wait for more.
      let known: InboxPage = try await client.send("GET", "/v1/inbox?known=1", token: bob).decode()
      #expect(known == page)
      _ = try await client.send("DELETE", "\(path)/bob%40hub.example", token: alice)
      #expect(try await next(&heard) == "data: {\"number\":0,\"inbox\":2}")
      // The first that Carol hears of is her own.
      _ = try await client.send("PUT", "\(path)/carol%40hub.example", json: ParticipantSettings(), token: alice)
      #expect(try await next(&others) == "data: {\"number\":0,\"inbox\":1}")
    }
  }

  /// The page tells what the link tells anybody, as text, and one page is for every link that tells nothing.
  @Test func thePageOfALink() async throws {
    try await RunningHub.with { running in
      let client = running.client
      let (_, alice) = try await running.member()
      let document = Send.document("<b>Plan & \"more\".md", "Monday", serial: 1)
      _ = try await client.send("POST", "/v1/sends", json: SendRequest(groups: [[document]]), token: alice)
      let place = "/v1/items/\(document.item)/share"
      let share: ShareState = try await client.send("PUT", place, json: ShareSettings(), token: alice).decode()
      let path = "/s/" + (share.url.split(separator: "/").last ?? "")
      let secret = try await client.send("GET", path)
      let none = try await client.send("GET", "/s/\(ShareToken.random().text)")
      #expect(secret.status == 404 && secret.body == none.body)
      #expect(try await client.send("GET", "/s/x").body == none.body)
      let open = ShareSettings(anyone: .readOnly)
      _ = try await client.send("PUT", place, json: open, token: alice)
      let shown = try await client.send("GET", path)
      let text = String(decoding: shown.body, as: UTF8.self)
      #expect(shown.status == 200)
      for expected in [
        "&lt;b&gt;Plan &amp; &quot;more&quot;", "alice@hub.example", "Everyone with the link can view",
        "A document", "sheaf accept \(share.url)",
      ] {
        #expect(text.contains(expected), "\(text)")
      }
      #expect(!text.contains("<b>"))
      for page in [shown, none] {
        #expect(page.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'")
        #expect(page.headers["cache-control"] == "no-store" && page.headers["referrer-policy"] == "no-referrer")
        #expect(page.headers["content-type"] == "text/html; charset=utf-8")
      }
      _ = try await client.send("DELETE", "/v1/shares/\(share.share)", token: alice)
      #expect(try await client.send("GET", path).body == none.body)
    }
  }

  @Test func pagesHaveAPace() throws {
    let (pace, start) = (RequestPace(), ContinuousClock.now)
    for _ in 0..<Int(RequestPace.burst) { try pace.take("192.0.2.1", at: start) }
    #expect(throws: HubError(.tooMany, "requests come too fast")) { try pace.take("192.0.2.1", at: start) }
    try pace.take("192.0.2.2", at: start)
    try pace.take("192.0.2.1", at: start + .seconds(1))
  }
}
