import HubKit
import Foundation
import MountKit
import SheafLibrary
import SheafModel
import Testing

@testable import SheafSidecar

/// Webhooks that accounts register, and where they must not reach.
@Suite(.serialized) struct AccountWebhookTests {
  @Test(arguments: [
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.9", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1",
    "fc00::1", "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
    "2001:db8::1", "2001::1", "::127.0.0.1", "localhost", "2130706433", "0x7f000001", "0177.0.0.1",
  ])
  func whatIsNotPublicIsRefused(_ host: String) async throws {
    let failure = await #expect(throws: AddressGuard.Refusal.self) { try await AddressGuard.resolve(host) }
    #expect(failure?.description.contains(host) ?? false)
  }

  @Test(arguments: ["1.1.1.1", "93.184.216.34", "172.32.0.1", "2606:4700::1111", "2a00:1450::1", "::ffff:1.1.1.1"])
  func whatIsPublicPasses(_ address: String) async throws {
    #expect(try await AddressGuard.resolve(address) == address)
  }

  @Test(arguments: ["http://127.0.0.1:PORT/", "http://localhost:PORT/", "http://[::ffff:127.0.0.1]:PORT/"])
  func aGuardedWebhookDoesNotConnect(_ url: String) async throws {
    let served = try await ServedLibrary()
    let receiver = try Receiver(in: served.folder)
    let place = url.replacingOccurrences(of: "PORT", with: "\(receiver.port)")
    try served.mkdir("folder")
    let event = try #require(try served.library.events(after: nil, limit: 1, for: nil).events.first)
    let delivery = Delivery(event: event, json: .init(bytes: try JSONEncoder().encode(event)))
    for isGuarded in [true, false] {
      let sink = WebhookSink(
        url: place, secrets: [], account: nil, batch: 1, timeout: .seconds(5), isGuarded: isGuarded, clock: RealClock())
      if isGuarded {
        let failure = await #expect(throws: DeliveryFailure.self) { try await sink.deliver([delivery]) }
        #expect(failure?.description.contains("not public") ?? false, "\(failure?.description ?? "")")
      } else if !url.contains("[") {
        try await sink.deliver([delivery])
      }
      await sink.close()
    }
    #expect(try receiver.requests().count == (url.contains("[") ? 0 : 1))
    receiver.kill()
    try await served.end()
  }

  @Test func accountsHaveWhatTheySeePosted() async throws {
    let served = try await ServedLibrary()
    let receiver = try Receiver(in: served.folder)
    let bob = try AccountHandle("bob@example.com")
    _ = try served.library.addAccount(bob, name: "Bob")
    let webhook = try served.library.addWebhook(
      for: bob, WebhookRequest(url: receiver.url, types: ["sheaf.persistence.*"]))
    #expect(try served.library.webhooks(of: bob).map(\.secret) == [nil])
    try await served.delivering([], accounts: true, isGuarded: false) {
      try eventually("the webhook is served") { try served.record("webhook \(webhook.id)").position != nil }
      try served.mkdir("alice's own")
      _ = try served.library.make(.folder, served.library.documents(of: bob), Array("mine".utf8), mode: 0o755, .library)
      let request = try receiver.requests(1)[0]
      #expect(try request.event().data.item.path == "mine")
      let secret = try WebhookSecret(try #require(webhook.secret))
      #expect(
        request.signature
          == secret.signature(
            id: request.id, timestamp: try #require(Int64(request.timestamp)), body: Data(request.body.utf8)))
    }
    #expect(try receiver.requests().count == 1)
    receiver.kill()
    try await served.end()
  }

  @Test func whatIsRegisteredIsChecked() async throws {
    let served = try await ServedLibrary()
    for url in ["ftp://x/", "http://", "https://user@example.com/", "file:///etc/passwd", "http+unix://%2Fx/", "x"] {
      #expect(throws: SheafError.self, "\(url)") {
        try served.library.addWebhook(for: served.account, WebhookRequest(url: url))
      }
    }
    for number in 1...16 {
      _ = try served.library.addWebhook(for: served.account, WebhookRequest(url: "https://example.com/\(number)"))
    }
    #expect(throws: SheafError.self) {
      try served.library.addWebhook(for: served.account, WebhookRequest(url: "https://example.com/"))
    }
    let first = try served.library.webhooks(of: served.account)[0].id
    let bob = try AccountHandle("bob@example.com")
    _ = try served.library.addAccount(bob, name: "Bob")
    #expect(throws: SheafError.self) { try served.library.removeWebhook(first, of: bob) }
    try served.library.removeWebhook(first, of: served.account)
    #expect(try served.library.webhooks().count == 15)
    #expect(try served.library.check { _ in }.problems == [])
    try await served.end()
  }
}
