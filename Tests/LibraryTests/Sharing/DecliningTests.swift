import SheafModel
import Testing

@testable import SheafLibrary

/// Invitations that are declined, requests that are taken back, and what becomes of both when a share ends.
struct DecliningTests {
  private let item = "Documents/plans"

  /// Runs a story in which people may ask for access to alice's folder by its link.
  private func shared(_ body: (People, String) throws -> Void) throws {
    try People.story { people in
      let url = try people.as(.alice) { (alice) throws in
        try alice.mkdir(item)
        return try alice.share(item) { $0.allowRequests = true }.url
      }
      try body(people, url)
    }
  }

  private func decline(_ url: String, _ person: People.Name, _ people: People) throws -> DeclinedLink {
    try people.library.decline(url, as: person.handle)
  }

  @Test func anInvitationIsDeclined() throws {
    try shared { people, url in
      func isTold() throws -> Bool {
        try people.library.notices(for: People.Name.bob.handle).notices.contains { $0.text.contains("invites you") }
      }
      try people.as(.alice) { try $0.add(item, .bob, .readWrite) }
      #expect(try people.library.shares(of: People.Name.bob.handle).invitations.count == 1)
      #expect(try isTold())
      #expect(try decline(url, .bob, people) == DeclinedLink(declined: .invitation, title: "plans"))
      #expect(try people.library.shares(of: People.Name.bob.handle).invitations.isEmpty)
      #expect(try !isTold())
      let told = try people.library.notices(for: People.Name.alice.handle).notices.map(\.text)
      #expect(told.contains { $0.hasSuffix("declined the invitation to plans") }, "\(told)")
      expect(.notFound) { _ = try decline(url, .bob, people) }
      // He can ask, be invited again, and then takes part; what he takes part in he leaves by its path.
      try people.as(.alice) { try $0.add(item, .bob, .readOnly) }
      #expect(try isTold())
      try people.as(.bob) { _ = try $0.accept(url) }
      #expect(try !isTold())
      expect(.invalid) { _ = try decline(url, .bob, people) }
      expect(.invalid) { _ = try decline(url, .alice, people) }
    }
  }

  @Test func aRequestIsTakenBack() throws {
    try shared { people, url in
      let path = try people.as(.alice) { try $0.path(item) }
      expect(.notFound) { _ = try decline(url, .dan, people) }
      try people.as(.dan) { _ = try $0.accept(url) }
      #expect(try people.library.accessRequests(path).map(\.handle) == [People.Name.dan.handle])
      #expect(try people.library.shares(of: People.Name.dan.handle).ownRequests.count == 1)
      func isTold() throws -> Bool {
        try people.library.notices(for: People.Name.alice.handle).notices.contains { $0.type == .accessRequested }
      }
      #expect(try isTold())
      #expect(try decline(url, .dan, people).declined == .request)
      #expect(try people.library.shares(of: People.Name.dan.handle).isEmpty)
      #expect(try people.library.accessRequests(path).isEmpty)
      // What was taken back is no news, until it is asked for again.
      #expect(try !isTold())
      try people.as(.dan) { _ = try $0.accept(url) }
      #expect(try isTold())
      #expect(try decline(url, .dan, people).declined == .request)
      expect(.notFound) { _ = try decline(url, .dan, people) }
      // Nobody who is blocked learns or changes anything.
      try people.library.answer(path, .init(handle: People.Name.dan.handle, answer: .block))
      expect(.notFound) { _ = try decline(url, .dan, people) }
      #expect(try people.library.accessRequests(path).map(\.blocked) == [true])
    }
  }

  /// Whoever asks and takes it back again and again is heard of once a day.
  @Test func whoAsksAgainWithinADayIsNotHeardOfAgain() throws {
    try shared { people, url in
      let path = try people.as(.alice) { try $0.path(item) }
      func heard() throws -> Int {
        try people.library.events(after: 0, limit: 100, for: People.Name.alice.handle).events
          .count { $0.type == .accessRequested }
      }
      for _ in 0..<3 {
        try people.as(.dan) { _ = try $0.accept(url) }
        #expect(try people.library.accessRequests(path).count == 1)
        #expect(try heard() == 1)
        #expect(try decline(url, .dan, people).declined == .request)
        people.clock.advance(28_000)
      }
      people.clock.advance(3_000)
      try people.as(.dan) { _ = try $0.accept(url) }
      #expect(try heard() == 2)
      // Whoever was let in and is out again asks anew.
      try people.library.answer(path, .init(handle: People.Name.dan.handle, answer: .approve))
      #expect(try people.library.store.read { try $0.numberSettings(after: "withdrawn.") }.isEmpty)
    }
  }

  @Test func whoStillAsksIsTurnedDownWhenTheShareEnds() throws {
    try shared { people, url in
      try people.as(.dan) { _ = try $0.accept(url) }
      try people.as(.alice) { try $0.library.unshare($0.path(item)) }
      let told = try people.library.events(after: 0, limit: 100, for: People.Name.dan.handle).events
      #expect(told.last?.type == .accessDeclined)
      // Once it is shared anew, they may ask at once.
      try people.as(.alice) { try $0.share(item) { $0.allowRequests = true } }
      try people.as(.dan) { _ = try $0.accept(url) }
      #expect(try people.as(.alice) { try $0.library.accessRequests($0.path(item)).count } == 1)
    }
  }
}
