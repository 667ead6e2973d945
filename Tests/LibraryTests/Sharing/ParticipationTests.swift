import Foundation
import SheafModel
import Testing

@testable import SheafLibrary

/// Who takes part in a share, and how they come and go.
struct ParticipationTests {
  private func plans(_ body: (People, String) throws -> Void) throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      let share = try people.as(.alice) { try $0.share("Documents/plans") }
      try body(people, share.url)
    }
  }

  private let there = "Shared/alice@example.com/plans"
  private let item = "Documents/plans"

  @Test func strangersLearnNothing() throws {
    try plans { people, url in
      let unknown = url.dropLast(24) + String(repeating: "A", count: 24)
      try people.as(.bob) { (bob) throws in
        let errors = [url, String(unknown)].map { link in
          do {
            _ = try bob.inspect(link)
            return nil as SheafError?
          } catch {
            return error as? SheafError
          }
        }
        #expect(errors[0] == errors[1] && errors[0]?.kind == .notFound)
        #expect(errors[0]?.description.contains(url) == false)
        expect(.notFound) { _ = try bob.accept(url) }
        expect(.notFound) { _ = try bob.read("\(there)/a") }
      }
    }
  }

  @Test func thePublicPermissionLetsPeopleInAndOut() throws {
    try plans { people, url in
      try people.as(.alice) {
        try $0.share(item) { $0.anyone = .readOnly }
        try $0.share(item, with: [.dan], .readWrite)
      }
      try people.as(.dan) { _ = try $0.accept(url) }
      for name in [People.Name.bob, .carol] {
        try people.as(name) { (me) throws in #expect(try me.accept(url).permission == .readOnly) }
      }
      try people.as(.bob) { (bob) throws in
        #expect(try bob.attribute("share.role", there) == "publicUser")
        // A public user sees the owner and themselves.
        #expect(try bob.participants(there).map(\.handle) == [People.Name.alice.handle, .init("bob@example.com")])
        expect(.accessDenied) { try bob.mkdir("\(there)/x") }
      }
      try people.as(.alice) { try $0.share(item) { $0.anyone = .readWrite } }
      try people.as(.bob) { try $0.mkdir("\(there)/x") }
      try people.as(.alice) { try $0.remove(item, .carol) }
      try people.as(.carol) { (carol) throws in expect(.notFound) { _ = try carol.accept(url) } }
      let share = try people.as(.alice) { try $0.share(item) { $0.anyone = PublicPermission.none } }
      #expect(share.participants.map(\.handle.description) == ["alice@example.com", "dan@example.com"])
      try people.as(.bob) { (bob) throws in
        #expect(try bob.entries(.alice) == [])
        expect(.notFound) { _ = try bob.accept(url) }
      }
      // Open again, who was let out by the closing comes back, and who was removed does not.
      try people.as(.alice) { try $0.share(item) { $0.anyone = .readOnly } }
      try people.as(.bob) { _ = try $0.accept(url) }
      try people.as(.carol) { (carol) throws in expect(.notFound) { _ = try carol.accept(url) } }
      try people.as(.alice) { try $0.add(item, .carol, .readOnly) }
      try people.as(.carol) { _ = try $0.accept(url) }
    }
  }

  @Test func administratorsManagePeopleButNotEachOtherNorTheOwner() throws {
    try plans { people, url in
      try people.as(.alice) {
        try $0.share(item, with: [.bob, .carol], .readOnly)
        try $0.set(item, .bob, role: .administrator)
      }
      for name in [People.Name.bob, .carol] { try people.as(name) { _ = try $0.accept(url) } }
      try people.as(.bob) { (bob) throws in
        #expect(try bob.attribute("share.permission", there) == "readWrite")
        try bob.mkdir("\(there)/x")
        try bob.add(there, .dan)
        try bob.set(there, .carol, .readWrite)
        expect(.notPermitted) { try bob.set(there, .bob, .readOnly) }
        expect(.notPermitted) { try bob.set(there, .alice, .readOnly) }
        expect(.notPermitted) { try bob.remove(there, .alice) }
        expect(.accessDenied) { try bob.set(there, .carol, role: .administrator) }
        expect(.accessDenied) { try bob.share(there) { $0.anyone = .readWrite } }
        expect(.accessDenied) { try bob.share(there) { $0.newLink = true } }
        expect(.accessDenied) { try bob.library.unshare(bob.path(there)) }
      }
      try people.as(.alice) { try $0.set(item, .carol, role: .administrator) }
      try people.as(.bob) { (bob) throws in
        expect(.accessDenied) { try bob.set(there, .carol, role: .privateUser) }
        expect(.accessDenied) { try bob.remove(there, .carol) }
        try bob.remove(there, .dan)
      }
      try people.as(.alice) { (alice) throws in
        expect(.invalid) { try alice.set(item, .bob, .readOnly) }
        expect(.invalid) { try alice.set(item, .bob, role: .owner) }
        try alice.set(item, .bob, .readOnly, role: .privateUser)
      }
      try people.as(.bob) { (bob) throws in
        expect(.accessDenied) { try bob.mkdir("\(there)/y") }
        expect(.accessDenied) { try bob.add(there, .dan) }
      }
    }
  }

  @Test func participantsInviteWithNoMoreThanTheyHave() throws {
    try plans { people, url in
      try people.as(.alice) { try $0.share(item, with: [.bob], .readOnly) { $0.allowInvites = true } }
      try people.as(.bob) { (bob) throws in
        _ = try bob.accept(url)
        expect(.accessDenied) { try bob.add(there, .carol, .readWrite) }
        expect(.accessDenied) { try bob.add(there, .carol, role: .administrator) }
        try bob.add(there, .carol, .readOnly)
        expect(.accessDenied) { try bob.set(there, .carol, .readWrite) }
        expect(.accessDenied) { _ = try bob.library.inviteOnce(bob.path(there), permission: .readWrite) }
        _ = try bob.library.inviteOnce(bob.path(there), permission: .readOnly)
      }
      try people.as(.carol) { (me) throws in #expect(try me.accept(url).permission == .readOnly) }
      try people.as(.alice) { try $0.share(item) { $0.allowInvites = false } }
      try people.as(.bob) { (bob) throws in expect(.accessDenied) { try bob.add(there, .dan, .readOnly) } }
    }
  }

  @Test func aOneTimeLinkIsClaimedOnce() throws {
    try plans { people, url in
      let link = try people.as(.alice) { try $0.library.inviteOnce($0.path(item), permission: .readOnly) }
      #expect(link.expires == Timestamp(seconds: people.clock.now.seconds + 7 * 86_400))
      try people.as(.bob) { (me) throws in
        #expect(try me.inspect(link.url).permission == .readOnly)
        #expect(try me.accept(link.url).path == there)
        #expect(try me.attribute("share.role", there) == "privateUser")
      }
      try people.as(.carol) { (carol) throws in expect(.notFound) { _ = try carol.accept(link.url) } }
      let revoked = try people.as(.alice) { try $0.library.inviteOnce($0.path(item), permission: nil) }
      let counts = try people.as(.alice) { alice in
        try (1...2).map { _ in try alice.library.revokeOneTimeLinks(alice.path(item)) }
      }
      #expect(counts == [1, 0])
      try people.as(.carol) { (carol) throws in expect(.notFound) { _ = try carol.accept(revoked.url) } }
      let old = try people.as(.alice) { try $0.library.inviteOnce($0.path(item), permission: nil) }
      people.clock.advance(7 * 86_400)
      try people.as(.carol) { (carol) throws in expect(.notFound) { _ = try carol.accept(old.url) } }
      let dead = try people.as(.alice) { try $0.library.inviteOnce($0.path(item), permission: nil) }
      try people.as(.alice) {
        try $0.library.unshare($0.path(item))
        try $0.share(item)
      }
      try people.as(.carol) { (carol) throws in expect(.notFound) { _ = try carol.accept(dead.url) } }
    }
  }

  @Test func strangersAskWhereTheyMay() throws {
    try plans { people, url in
      try people.as(.alice) { try $0.share(item, with: [], .readOnly) { $0.allowRequests = true } }
      for name in [People.Name.bob, .carol, .dan] {
        try people.as(name) { (me) throws in
          #expect(try me.inspect(url).asksFirst)
          let result = try me.accept(url)
          #expect(result.requested && result.path == nil)
          #expect(try me.entries(.alice) == [])
        }
      }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.library.accessRequests(alice.path(item)).count == 3)
        try alice.library.answer(alice.path(item), .init(handle: People.Name.bob.handle, answer: .approve))
        try alice.library.answer(alice.path(item), .init(handle: People.Name.carol.handle, answer: .deny))
        try alice.library.answer(alice.path(item), .init(handle: People.Name.dan.handle, answer: .block))
        expect(.notFound) {
          try alice.library.answer(alice.path(item), .init(handle: People.Name.carol.handle, answer: .approve))
        }
      }
      try people.as(.bob) { (bob) throws in
        #expect(try bob.attribute("share.permission", there) == "readOnly")
        expect(.accessDenied) { _ = try bob.library.accessRequests(bob.path(there)) }
      }
      try people.as(.dan) { (dan) throws in expect(.notFound) { _ = try dan.accept(url) } }
    }
  }

  /// Whoever gets the handle of an account that is gone has not asked. Where that was blocked, so is this.
  @Test func anAccountThatIsRemovedAsksNoMore() throws {
    try plans { people, url in
      try people.as(.alice) { try $0.share(item, with: [], .readOnly) { $0.allowRequests = true } }
      for name in [People.Name.carol, .dan] { try people.as(name) { _ = try $0.accept(url) } }
      func asking() throws -> [AccountHandle] {
        try people.as(.alice) { try $0.library.accessRequests($0.path(item)).map(\.handle) }
      }
      try people.as(.alice) {
        try $0.library.answer($0.path(item), .init(handle: People.Name.dan.handle, answer: .block))
      }
      #expect(try Set(asking()) == [People.Name.carol.handle, People.Name.dan.handle])
      for name in [People.Name.carol, .dan] { try people.library.removeAccount(name.handle) }
      #expect(try asking() == [People.Name.dan.handle])
      for name in [People.Name.carol, .dan] { _ = try people.library.addAccount(name.handle, name: "Anew") }
      #expect(try asking() == [People.Name.dan.handle])
    }
  }

  /// Each list of an account's shares holds what is meant for it, and tells nothing of others that they may not know.
  @Test func theSharesOfAnAccountAreInOneList() throws {
    try plans { people, url in
      func shares(_ name: People.Name) throws -> AccountShares { try people.library.shares(of: name.handle) }
      #expect(try shares(.bob).isEmpty)
      try people.as(.alice) {
        try $0.share(item, with: [.bob, .carol], .readOnly) { $0.allowRequests = true }
      }
      #expect(try shares(.alice).byMe.map(\.path) == [item])
      #expect(try shares(.alice).byMe.map(\.people) == [0])
      #expect(try shares(.alice).byMe.map(\.invited) == [2])
      #expect(try shares(.bob).invitations.map(\.url) == [url])
      #expect(try shares(.bob).withMe.isEmpty)
      try people.as(.bob) { _ = try $0.accept(url) }
      #expect(try shares(.alice).byMe.map(\.people) == [1])
      #expect(try shares(.alice).byMe.map(\.invited) == [1])
      let joined = try #require(try shares(.bob).withMe.first)
      #expect(joined.path == there && joined.permission == .readOnly && joined.owner == People.Name.alice.handle)
      #expect(try shares(.bob).invitations.isEmpty && shares(.bob).byMe.isEmpty)
      try people.as(.dan) { _ = try $0.accept(url) }
      #expect(try shares(.alice).requests.map(\.handle) == [People.Name.dan.handle])
      #expect(try shares(.bob).requests.isEmpty && shares(.bob).ownRequests.isEmpty)
      let asked = try #require(try shares(.dan).ownRequests.first)
      #expect(asked.title == "plans" && asked.kind == "folder" && asked.owner == People.Name.alice.handle)
      try people.as(.alice) { (alice) throws in
        try alice.library.removeParticipant(alice.path(item), People.Name.bob.handle)
        try alice.library.removeParticipant(alice.path(item), People.Name.carol.handle)
      }
      #expect(try shares(.bob).isEmpty && shares(.carol).isEmpty)
      try people.as(.alice) { try $0.library.unshare($0.path(item)) }
      #expect(try shares(.alice).isEmpty)
    }
  }

  /// A person who was turned down leaves those in peace for a day who answer.
  @Test func whoWasTurnedDownAsksAgainADayLater() throws {
    try plans { people, url in
      try people.as(.alice) { try $0.share(item) { $0.allowRequests = true } }
      func answer(_ answer: RequestAnswer.Answer) throws {
        try people.as(.alice) {
          try $0.library.answer($0.path(item), .init(handle: People.Name.carol.handle, answer: answer))
        }
      }
      func asked() throws -> Int {
        try people.library.store.read { try $0.events(after: 0, limit: 100) }
          .count { $0.type == EventType.accessRequested.rawValue }
      }
      for round in 1...3 {
        try people.as(.carol) { (me) throws in #expect(try me.accept(url).requested) }
        try answer(.deny)
        for seconds: Int64 in [0, 86_399] {
          people.clock.advance(seconds)
          try people.as(.carol) { (me) throws in
            expect(.accessDenied) { _ = try me.accept(url) }
            expect(.accessDenied) { _ = try me.inspect(url) }
          }
        }
        #expect(try asked() == round)
        people.clock.advance(1)
      }
      // Nobody else waits for that, and it goes when its day is over.
      try people.as(.dan) { (me) throws in #expect(try me.accept(url).requested) }
      #expect(try people.library.store.read { try $0.numberSettings(after: "declined.") }.count == 1)
      // An invitation lifts it: who was in, and left, asks at once.
      try people.as(.carol) { (me) throws in #expect(try me.accept(url).requested) }
      try answer(.deny)
      try people.as(.alice) { try $0.add(item, .carol, .readOnly) }
      try people.as(.carol) { (me) throws in
        _ = try me.accept(url)
        try me.removeEntry(.alice, "plans")
        #expect(try me.accept(url).requested)
      }
      #expect(try people.library.store.read { try $0.numberSettings(after: "declined.") }.isEmpty)
      // With the share goes what is known of those who asked.
      try answer(.deny)
      try people.as(.alice) { (alice) throws in
        try alice.rmdir(item)
        try alice.library.purge(alice.path(item), version: nil)
      }
      #expect(try people.library.store.read { try $0.numberSettings(after: "declined.") }.isEmpty)
    }
  }

  /// Somebody who sees nobody but the owner learns nothing by inviting people.
  @Test func anInvitationDoesNotTellWhoTakesPart() throws {
    try plans { people, url in
      try people.as(.alice) {
        try $0.share(item, with: [.carol], .readOnly) {
          $0.anyone = .readWrite
          $0.allowInvites = true
        }
      }
      try people.as(.carol) { _ = try $0.accept(url) }
      try people.as(.alice) { (alice) throws in
        try alice.library.answer(alice.path(item), .init(handle: People.Name.dan.handle, answer: .block))
      }
      let erin = try AccountHandle("erin@example.com")
      _ = try people.library.addAccount(erin, name: nil)
      let before = try people.as(.alice) { try $0.participants(item) }
      try people.as(.bob) { (bob) throws in
        _ = try bob.accept(url)
        #expect(try bob.participants(there).map(\.handle) == [People.Name.alice.handle, bob.name.handle])
        let summary = try bob.attribute("share.summary", there)
        func invite(_ handle: AccountHandle, _ permission: SharePermission?) throws -> Participant {
          try bob.library.addParticipant(
            bob.path(there), ParticipantChange(handle: handle, permission: permission, role: nil))
        }
        for permission: SharePermission? in [nil, .readWrite, .readOnly] {
          // In the share, its owner, blocked, and a stranger who is invited by that.
          for handle in [People.Name.carol.handle, People.Name.alice.handle, People.Name.dan.handle, erin] {
            let answer = try invite(handle, permission)
            #expect(answer.role == .privateUser && answer.acceptance == .pending, "\(handle)")
            #expect(try answer.permission == permission ?? bob.library.share(of: bob.path(there))?.permission)
          }
        }
        #expect(try bob.attribute("share.summary", there) == summary)
        // By sharing with them, too.
        #expect(try bob.share(there, with: [.carol, .dan]).participants.count == 2)
      }
      // Nobody became anything else, and whoever was blocked stays out.
      let after = try people.as(.alice) { try $0.participants(item) }
      #expect(after.filter { $0.handle != erin && $0.handle != People.Name.bob.handle } == before)
      #expect(after.first { $0.handle == erin }?.acceptance == .pending)
      try people.as(.dan) { (dan) throws in expect(.notFound) { _ = try dan.accept(url) } }
    }
  }

  /// Whom others invited, and to what, is not told by the summary either.
  @Test func theSummarySpeaksOfThoseWhoAreSeen() throws {
    try plans { people, url in
      try people.as(.alice) { try $0.share(item) { $0.anyone = .readOnly } }
      try people.as(.bob) { _ = try $0.accept(url) }
      let before = try people.as(.bob) { try $0.attribute("share.summary", there) }
      try people.as(.alice) { try $0.add(item, .carol, .readWrite) }
      #expect(
        try people.as(.alice) { try $0.attribute("share.summary", item) }
          == "Everyone with the link can view; invited people can edit")
      try people.as(.bob) { (bob) throws in
        #expect(try bob.attribute("share.summary", there) == before)
        #expect(try bob.library.share(of: bob.path(there))?.summary == before)
      }
      try people.as(.carol) { (carol) throws in
        _ = try carol.accept(url)
        #expect(try carol.attribute("share.summary", there) != before)
      }
    }
  }

  /// A full share is full for everybody.
  @Test func aFullShareDoesNotTellWhoTakesPart() throws {
    try plans { people, url in
      try people.as(.alice) {
        try $0.share(item) {
          $0.anyone = .readWrite
          $0.allowInvites = true
        }
      }
      try people.as(.bob) { _ = try $0.accept(url) }
      for number in 2..<Library.participantLimit {
        let handle = try AccountHandle("p\(number)@example.com")
        _ = try people.library.addAccount(handle, name: nil)
        try people.as(.alice) {
          _ = try $0.library.addParticipant($0.path(item), ParticipantChange(handle: handle))
        }
      }
      try people.as(.bob) { (bob) throws in
        for handle in [try AccountHandle("p2@example.com"), People.Name.carol.handle] {
          expect(.tooLarge) {
            _ = try bob.library.addParticipant(bob.path(there), ParticipantChange(handle: handle))
          }
        }
      }
    }
  }

  @Test func aShareHasAHundredParticipantsAtMost() throws {
    try plans { people, url in
      for number in 1..<Library.participantLimit {
        let handle = try AccountHandle("p\(number)@example.com")
        _ = try people.library.addAccount(handle, name: nil)
        try people.as(.alice) {
          _ = try $0.library.addParticipant($0.path(item), ParticipantChange(handle: handle))
        }
      }
      try people.as(.alice) { (alice) throws in expect(.tooLarge) { try alice.add(item, .bob) } }
      try people.as(.alice) { try $0.share(item) { $0.anyone = .readOnly } }
      try people.as(.bob) { (bob) throws in expect(.tooLarge) { _ = try bob.accept(url) } }
    }
  }

  @Test(arguments: ["", "two\nlines", "\u{202E}cba", "nul\u{0}", String(repeating: "x", count: 10_000_000), "\u{2028}"])
  func hostileTitlesAreRefused(_ title: String) throws {
    try plans { people, _ in
      try people.as(.alice) { (alice) throws in expect(.invalid) { try alice.share(item) { $0.title = title } } }
    }
  }

  @Test func hostileNamesMakeFitTitles() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for name in ["\u{202E}gpj.exe", "new\nline", "\u{7}"] {
          try alice.save("Documents/\(name)", "x")
          let title = try alice.share("Documents/\(name)").title
          #expect(
            !title.isEmpty && title.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x202E }, "\(title)")
        }
      }
    }
  }

  @Test func comingAndGoingIsLogged() throws {
    try plans { people, url in
      try people.as(.alice) { try $0.share(item, with: [.bob], .readWrite) }
      try people.as(.bob) { _ = try $0.accept(url) }
      try people.as(.alice) {
        try $0.set(item, .bob, .readOnly)
        try $0.remove(item, .bob)
        try $0.library.unshare($0.path(item))
      }
      let events = try people.library.store.read { try $0.events(after: 0, limit: 100) }.filter {
        $0.type.hasPrefix("sheaf.share.") || $0.type.hasPrefix("sheaf.membership.")
      }
      #expect(
        events.map(\.type) == [
          "sheaf.share.created", "sheaf.share.updated", "sheaf.membership.added", "sheaf.share.updated",
          "sheaf.membership.removed", "sheaf.share.stopped",
        ])
      #expect(events.allSatisfy { $0.share?.depth == 0 })
      #expect(events[2].data.contains(#""participant":{"acceptance":"accepted","handle":"bob@example.com""#))
      // Nobody's log has the token.
      let token = try ShareURL(url).token.text
      #expect(!events.contains { $0.data.contains(token) })
    }
  }

  @Test func eventsKnowTheirShareAndTheParticipantsPath() throws {
    try People.story { people in
      try people.as(.alice) {
        for folder in ["work", "work/plans", "work/plans/deep"] { try $0.mkdir("Documents/\(folder)") }
      }
      try people.share("Documents/work/plans", with: [(.bob, .readWrite)])
      let share = try people.as(.alice) { (alice) throws in
        let ino = try alice.inode("Documents/work/plans")
        return try alice.library.locked { try alice.library.inode(ino).row.item }
      }
      try people.as(.bob) { try $0.save("Shared/alice@example.com/plans/deep/a.md", "a") }
      people.clock.advance(20)
      try people.library.locked { try people.library.settleEvents() }
      people.library.expireIdentity()
      try people.as(.alice) { try $0.rename("Documents/work/plans/deep/a.md", "Documents/a.md") }
      try people.library.locked { try people.library.settleEvents(all: true) }
      let events = try people.library.store.read { try $0.events(after: 0, limit: 100) }
      let created = try #require(events.last { $0.type == "sheaf.persistence.created" })
      #expect(created.share?.share == share && created.share?.depth == 1)
      #expect(created.data.contains(#""path":"work/plans/deep/a.md""#))
      let moved = try #require(events.last { $0.type == "sheaf.persistence.moved" })
      #expect(moved.share == nil && moved.previousShare?.share == share && moved.previousShare?.depth == 1)
    }
  }
}
