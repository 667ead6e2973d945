import Crypto
import Foundation
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// What is taken apart and put together, without a store.
@Suite struct AccountValueTests {
  @Test func linksAreTakenApart() throws {
    let link = EnrollmentLink(scheme: "https", address: "hub.example:8443", code: "abc-_1", fingerprint: "Zm9v")
    #expect(link.description == "https://hub.example:8443/enrol/abc-_1#Zm9v")
    #expect(EnrollmentLink(link.description) == link)
    let plain = EnrollmentLink(scheme: "http", address: "localhost", code: "c", fingerprint: nil)
    #expect(EnrollmentLink(plain.description) == plain)
    for text in [
      "", "https://hub.example/enrol", "https://hub.example/enrol/", "https://hub.example/enrol/#f",
      "https://hub.example/enrol/c#", "https://hub.example/enrol/c/d#f", "ftp://hub.example/enrol/c",
      "https:///enrol/c", "https://a/b/enrol/c", "https://hub.example#/enrol/c", String(repeating: "x", count: 5_000),
    ] {
      #expect(EnrollmentLink(text) == nil, "\(text)")
    }
  }

  @Test func addressesHaveOneForm() throws {
    for (text, form) in [
      ("hub.example", "hub.example"), ("Hub.Example:443", "hub.example"), ("hub.example:8443", "hub.example:8443"),
      ("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:8443", "[::1]:8443"), ("[::1]", "[::1]"),
    ] {
      #expect(try HubAddress(text).description == form)
    }
    for text in [
      "", ":1", "a:", "a:x", "a:65536", "a:-1", "a b", "a/b", "::1", "[::1", "[]:1", "[x]:1", "a\u{0}", "-a",
    ] {
      #expect(throws: SheafError.self, "\(text)") { try HubAddress(text) }
    }
    #expect(try HubAddress("127.0.0.1:1").isLoopback && HubAddress("[::1]:1").isLoopback)
    #expect(try !HubAddress("128.0.0.1:1").isLoopback)
    for text in ["unix:relative", "unix:/" + String(repeating: "x", count: 107)] {
      #expect(throws: SheafError.self) { try ListenAddress(text) }
    }
    #expect(try ListenAddress("unix:/run/hub").isLocal && ListenAddress("localhost:1").isLocal)
    #expect(try !ListenAddress("0.0.0.0:1").isLocal)
  }

  @Test func secretsAndNoncesAreTheirOwn() throws {
    let zone = UUID()
    let secret = ZonedSecret(zone: zone, length: ZonedSecret.tokenLength)
    let read = try #require(ZonedSecret(secret.text, length: ZonedSecret.tokenLength))
    #expect(read.zone == zone.uuidString.lowercased() && read.hash == secret.hash)
    #expect(ZonedSecret(secret.text, length: ZonedSecret.codeLength) == nil)
    for text in [
      "", secret.text + "A", String(secret.text.dropLast()), secret.text.replacing(secret.text.suffix(1), with: "="),
    ] {
      #expect(ZonedSecret(text, length: ZonedSecret.tokenLength) == nil)
    }
    let now = Timestamp(seconds: 1_000_000)
    let nonces = Nonces(secret: [1, 2, 3])
    let nonce = nonces.make(now: now).nonce
    #expect(nonces.check(nonce, now: now)?.expires == Timestamp(seconds: 1_000_000 + Nonces.lifetime))
    #expect(Nonces(secret: [1, 2, 3]).check(nonce, now: now) != nil)
    #expect(Nonces(secret: [1, 2, 4]).check(nonce, now: now) == nil)
    #expect(nonces.check(nonce, now: Timestamp(seconds: 1_000_000 + Nonces.lifetime)) == nil)
    // Each bit counts.
    let bytes = try #require(Base64URL.bytes(nonce))
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 1
      #expect(nonces.check(Base64URL.text(changed), now: now) == nil)
    }
  }

  @Test func keysAreUncompressedPoints() throws {
    let key = P256.Signing.PrivateKey().publicKey
    #expect(try DeviceKey(key.x963Representation).bytes == [UInt8](key.x963Representation))
    var off = key.x963Representation
    off[40] ^= 1
    for bytes in [Data(), key.compressedRepresentation, key.rawRepresentation, off, key.x963Representation + [0]] {
      #expect(throws: HubError.self) { try DeviceKey(bytes) }
    }
  }

  @Test func theMessageHasBordersThatNothingShifts() throws {
    let laptop = TestDevice()
    let key = try DeviceKey(laptop.key)
    let signature = try laptop.sign(.session, address: "a", "b\u{0}c")
    // With zero bytes two addresses and nonces could give the same message.
    #expect(!key.verifies(signature, of: .session, address: "a", secret: "b\u{0}c"))
    #expect(!key.verifies(signature, of: .session, address: "a\u{0}b", secret: "c"))
    let good = try laptop.sign(.session, address: "a", "b")
    #expect(key.verifies(good, of: .session, address: "a", secret: "b"))
    #expect(!key.verifies(good, of: .enroll, address: "a", secret: "b"))
    #expect(!key.verifies(good + Data(count: 80), of: .session, address: "a", secret: "b"))
    #expect(!key.verifies(Data(), of: .session, address: "a", secret: "b"))
  }

  @Test func problemsTellTheirKind() throws {
    for kind in Problem.Kind.allCases {
      let problem = Problem(kind, detail: "x")
      let read = try JSONDecoder().decode(Problem.self, from: try JSONEncoder().encode(problem))
      #expect(read == problem && read.kind == kind && read.status == kind.status && !read.title.isEmpty)
    }
    // A device that is to be wiped is gone, too, and a hub without room has none for an account; each for a reason of
    // its own.
    let kinds = Problem.Kind.allCases.filter { $0 != .wiped && $0 != .full }
    #expect(Set(kinds.map(\.status)).count == kinds.count && Problem.Kind.wiped.status == Problem.Kind.gone.status)
    #expect(Problem.Kind.full.status == Problem.Kind.quota.status)
  }
}
