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
      func summary() throws -> String { try people.as(.alice) { try $0.attribute("share.summary", "Documents/doc") } }
      #expect(try summary() == "Everyone with the link can edit")
      people.clock.advance(1)
      #expect(try summary() == "Everyone with the link can edit; the link has ended")
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
      }
      // Only who may change the share sets it.
      try people.as(.alice) { _ = try $0.share("Documents/doc", with: [.bob]) }
      try people.as(.bob) { (bob) throws in
        _ = try bob.accept(share.url)
        expect(.accessDenied) { _ = try bob.share("Shared/alice@example.com/doc") { $0.linkSeconds = 60 } }
      }
    }
  }

  /// The URL is the same, so whoever had it would be let in again.
  @Test func whatIsSharedAnewDoesNotBringAnEndedLinkBack() throws {
    try People.story { people in
      try people.as(.alice) { try $0.save("Documents/doc", "one") }
      let share = try people.as(.alice) { (alice) throws in
        try alice.share("Documents/doc") { ($0.anyone, $0.linkSeconds) = (.readWrite, 60) }
      }
      people.clock.advance(60)
      func shareAnew(_ change: (inout ShareChange) -> Void = { _ in }) throws -> Share {
        try people.as(.alice) { (alice) throws in
          try alice.library.unshare(alice.path("Documents/doc"))
          return try alice.share("Documents/doc") {
            $0.anyone = .readWrite
            change(&$0)
          }
        }
      }
      let again = try shareAnew()
      #expect(again.url == share.url && again.expires == share.expires)
      try people.as(.dan) { (dan) throws in expect(.notFound) { _ = try dan.accept(again.url) } }
      // Neither does a move to the trash and back.
      try people.as(.alice) { (alice) throws in
        try alice.unlink("Documents/doc")
        _ = try alice.library.recover(alice.path("Documents/doc"), id: nil) { _ in }
        #expect(try alice.share("Documents/doc") { $0.anyone = .readWrite }.expires == share.expires)
      }
      try people.as(.dan) { (dan) throws in expect(.notFound) { _ = try dan.accept(again.url) } }
      // The owner says so.
      #expect(try shareAnew { $0.linkSeconds = 0 }.expires == nil)
      try people.as(.dan) { _ = try $0.accept(again.url) }
      // An item that takes the number of a destroyed one has nothing of it.
      try people.as(.alice) { (alice) throws in
        _ = try alice.share("Documents/doc") { $0.linkSeconds = 60 }
        try alice.library.purge(alice.path("Documents/doc"), version: nil)
        let left = try alice.library.read { try $0.numberSettings(after: "linkEnds.") }
        #expect(left.isEmpty)
      }
    }
  }
}
