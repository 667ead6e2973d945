import SheafModel
import Testing

@testable import SheafLibrary

/// Links that let nobody new in after a time.
struct LinkEndTests {
  @Test func nobodyNewJoinsByALinkThatHasEnded() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/doc", "one") }
      let share = try people.as(.alice) { (alice) throws in
        try alice.share("Documents/doc", with: [.carol]) {
          ($0.anyone, $0.linkSeconds) = (.readWrite, 3600)
        }
      }
      #expect(share.expires == Timestamp(seconds: people.clock.now.seconds + 3600))
      try people.as(.bob) { _ = try $0.accept(share.url) }
      people.clock.advance(3599)
      _ = try people.as(.dan) { try $0.inspect(share.url) }
      people.clock.advance(1)
      try people.as(.dan) { (dan) throws in
        expect(.notFound) { _ = try dan.inspect(share.url) }
        do {
          _ = try dan.accept(share.url)
          Issue.record("dan joined")
        } catch let error as SheafError {
          #expect(error.reason.contains("was good until"), "\(error)")
        }
      }
      // Who takes part stays, and who was invited can still join.
      try people.as(.bob) { (bob) throws in
        #expect(try bob.read("Shared/alice@example.com/doc") == "one")
        #expect(try bob.attribute("share.expires", "Shared/alice@example.com/doc").hasSuffix("Z"))
        _ = try bob.inspect(share.url)
      }
      try people.as(.carol) { _ = try $0.accept(share.url) }
      // Nobody can ask, either.
      try people.as(.alice) {
        _ = try $0.share("Documents/doc") { ($0.anyone, $0.allowRequests) = (PublicPermission.none, true) }
      }
      try people.as(.dan) { (dan) throws in expect(.notFound) { _ = try dan.accept(share.url) } }
      // A new span, and none.
      let longer = try people.as(.alice) { try $0.share("Documents/doc") { $0.linkSeconds = 60 } }
      #expect(longer.expires == Timestamp(seconds: people.clock.now.seconds + 60))
      #expect(try people.as(.dan) { try $0.accept(share.url) }.requested)
      let forever = try people.as(.alice) { try $0.share("Documents/doc") { $0.linkSeconds = 0 } }
      #expect(forever.expires == nil)
      try people.as(.alice) { (alice) throws in
        for seconds in [-1, Int64.max] {
          expect(.invalid) { _ = try alice.share("Documents/doc") { $0.linkSeconds = seconds } }
        }
        // It ends with the share.
        _ = try alice.share("Documents/doc") { $0.linkSeconds = 60 }
        try alice.library.unshare(alice.path("Documents/doc"))
        #expect(try alice.share("Documents/doc").expires == nil)
      }
      // Only who may change the share sets it.
      try people.as(.alice) { _ = try $0.share("Documents/doc", with: [.bob]) }
      try people.as(.bob) { (bob) throws in
        _ = try bob.accept(share.url)
        expect(.accessDenied) { _ = try bob.share("Shared/alice@example.com/doc") { $0.linkSeconds = 60 } }
      }
    }
  }
}
