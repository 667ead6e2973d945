import HubKit
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// How far the logs go that an account may read, and the places in them.
@Suite struct EventLogTests {
  /// The ends of an account's logs, by share.
  private func ends(_ story: SharedStory, _ person: Person) async throws -> [WireID?: Int64] {
    let logs = try await story.hub.logs.all(of: person.zone)
    #expect(logs.first?.place == nil && logs.dropFirst().allSatisfy { $0.place?.account == person.zone })
    return Dictionary(uniqueKeysWithValues: logs.map { ($0.place?.share, $0.last) })
  }

  @Test(arguments: StoreEngine.available)
  func membersAreToldOfASharesLogUntilTheyAreOut(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let folder = try await story.folder("shared")
      let share = try await story.share(folder, with: [story.bob, story.carol])
      try await story.hub.sharing.inboxes.deliverAll()
      try await story.document("a", "1", in: folder)
      let joined = try await ends(story, story.bob)
      let last = try await story.hub.sharedEvents.page(after: .number(0), limit: 100, of: story.place(share, story.bob))
        .last
      // Their own log has the invitation.
      #expect(joined == [nil: 1, share.id: last])
      // What the owner shares is in the owner's log.
      #expect(try await ends(story, story.alice).keys.map { $0 } == [nil])
      try await story.remove(story.bob, from: share)
      try await story.document("b", "2", in: folder)
      let bob = try await ends(story, story.bob)
      // Their removal is the last that they are told.
      #expect(bob == [nil: 1, share.id: last + 1])
      #expect(try #require(try await ends(story, story.carol)[share.id]) > last + 1)
      let place = story.place(share, story.bob)
      #expect(try await story.hub.logs.log(of: place).map { $0.last == last + 1 && !$0.isOpen } == true)
      // Who never took part is told of nothing.
      let other = try await story.document("other", "3")
      let alone = try await story.share(other)
      #expect(try await story.hub.logs.log(of: story.place(alone, story.bob)) == nil)
      #expect(try await ends(story, story.bob).keys.contains(alone.id) == false)
    }
  }

  /// Places in a log of a share are good in it alone, and lead on in a copy.
  @Test func placesAreOfOneLogAndOneTime() async throws {
    try await StoreEngine.sqlite.withDatabase { database in
      let story = try await SharedStory(database)
      let folder = try await story.folder("shared")
      let share = try await story.share(folder, with: [story.bob])
      for name in ["a", "b", "c"] { try await story.document(name, name, in: folder) }
      let (log, place) = (story.hub.sharedEvents, story.place(share, story.bob))
      let whole = try await log.page(after: .number(0), limit: 100, of: place)
      let token = try LogToken(whole.token)
      #expect(token.number == whole.next && whole.next == whole.last)
      let rest = try await log.page(after: .token(token, after: whole.next - 1), limit: 100, of: place)
      #expect(rest.events.map(\.data.item.name) == ["c"] && rest.token == whole.token)
      func isGone(_ position: LogPosition, of place: SharedPlace? = nil) async throws -> Bool {
        try await problem {
          if let place {
            _ = try await log.page(after: position, limit: 1, of: place)
          } else {
            _ = try await story.hub.events.page(after: position, limit: 1, of: story.alice.zone)
          }
        } == .gone
      }
      #expect(try await isGone(.token(token, after: nil)))
      #expect(try await isGone(.former(token, after: nil)))
      #expect(try await isGone(.token(token, after: whole.last + 1), of: place))
      try await database.write { connection in try Zone.beginEpochs(in: &connection) }
      try await story.document("d", "d", in: folder)
      #expect(try await isGone(.token(token, after: nil), of: place))
      for (after, names) in [(whole.last - 1, ["c", "d"]), (whole.last, ["d"]), (whole.last + 5, ["d"])] {
        let page = try await log.page(after: .former(token, after: after), limit: 100, of: place)
        #expect(page.events.map(\.data.item.name) == names)
      }
      // Of two epochs before, it leads to where the first one ended.
      try await database.write { connection in try Zone.beginEpochs(in: &connection) }
      let page = try await log.page(after: .former(token, after: whole.last + 5), limit: 100, of: place)
      #expect(page.events.map(\.data.item.name) == ["d"])
    }
  }
}
