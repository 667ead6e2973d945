import Foundation
import Glibc
import SheafModel
import SheafWire
import Testing

@testable import SheafLibrary

/// What a library does with what leaves a share of somebody elsewhere, one step after the other, with programs in
/// between.
@Suite struct LeavingShareTests {
  /// A machine whose account takes part in a share of carol's.
  private struct Member {
    static let texts = ["out/a.md": "a\n", "b.md": "b\n", "c.md": "c\n"]

    let machine: LibraryMachine
    let share: FollowedShare
    /// The shared folder.
    let top: Int64
    let ids: [String: WireID]
    /// As the hub tells it all.
    let states: [ItemState]

    var library: Library { machine.library }

    /// - Parameter isEverything: Whether carol shares all of her documents, and not one folder.
    init(isEverything: Bool) throws {
      machine = try LibraryMachine("member")
      let (library, account) = (machine.library, machine.account)
      let (id, team) = (WireID(), isEverything ? WireID.root : WireID())
      let url = "https://hub.example/s/\(ShareToken.random().text)"
      try library.noteInbox(
        [
          InboxEntry(
            share: id, owner: "carol@hub.example", acceptance: .accepted,
            offer: InboxOffer(
              url: url, title: "team", ownerName: "Carol", kind: .folder, role: .privateUser, permission: .readWrite,
              anyone: .none, requests: 0))
        ],
        [
          ShareState(
            share: id, item: team, url: url, title: "team", owner: "carol@hub.example", anyone: .none,
            permission: .readWrite, allowInvites: false, allowRequests: false, summary: "",
            participants: [
              ShareParticipant(
                handle: "carol@hub.example", name: "Carol", role: .owner, permission: .readWrite, acceptance: .accepted),
              ShareParticipant(
                handle: "alice@hub.example", name: "Alice", role: .privateUser, permission: .readWrite,
                acceptance: .accepted),
            ])
        ], of: account)
      let share = try #require(try library.shareDuties(of: account).followed.first)
      self.share = share
      var states: [ItemState] = []
      var ids: [String: WireID] = [:]
      var number: Int64 = 0
      func add(_ name: String, _ kind: ItemKind, in parent: WireID, _ id: WireID = WireID()) -> WireID {
        number += 1
        let version = Self.texts[name].map { text in
          ItemVersion(
            id: WireID(), number: 1, base: nil, cause: .save, time: 1, arrived: 1, size: Int64(text.utf8.count))
        }
        states.append(
          ItemState(
            number: number, item: id, kind: kind, isDeleted: false,
            places: [Place(parent: parent, String(name.split(separator: "/").last ?? ""))], mode: 0o755, mtime: 1,
            target: nil, attributes: [:], version: version, copyOf: nil))
        return id
      }
      if !isEverything { _ = add("team", .folder, in: .root, team) }
      let out = add("out", .folder, in: team)
      ids["out"] = out
      for name in Self.texts.keys.sorted() {
        ids[name] = add(name, .document, in: name.hasPrefix("out/") ? out : team)
      }
      self.ids = ids
      self.states = states
      try library.noteAllShared(states, left: [], token: "1", of: share)
      try Self.carryOut(machine, share, Self.texts(ids))
      #expect(try library.showShares(of: account, except: []) == 0)
      let documents = try library.locked { try library.documents(ofConnected: share.account) }
      top = try isEverything ? documents : library.lookup(documents, Array("team".utf8), .api(share.account)).ino
    }

    private static func texts(_ ids: [String: WireID]) -> [WireID: String] {
      Dictionary(ids.compactMap { name, id in texts[name].map { (id, $0) } }) { $1 }
    }

    func carryOut() throws { try Self.carryOut(machine, share, Self.texts(ids)) }

    /// Carries out what is planned, until nothing is.
    private static func carryOut(_ machine: LibraryMachine, _ share: FollowedShare, _ texts: [WireID: String]) throws {
      let library = machine.library
      for _ in 0..<100 {
        guard let (number, step) = try library.step(of: share.account) else {
          if case .settled = try library.plan(share.account) { return }
          continue
        }
        var contents: UInt64?
        if let needed = try library.needsContents(step, of: share.account) {
          let handle = try library.beginContents(of: share.account)
          try machine.write(Array((texts[needed.item] ?? "").utf8), to: handle)
          contents = handle
        }
        #expect(try library.carryOut(number, step, of: share.account, contents: contents.map { .file($0) }))
        if let contents { try library.release(contents) }
      }
      throw LibraryMachine.Broken(description: "comes to no rest")
    }

    func inode(_ path: String) throws -> Int64 {
      try path.split(separator: "/").reduce(top) { folder, name in
        try library.lookup(folder, Array(name.utf8), machine.program).ino
      }
    }

    func open(_ path: String) throws -> UInt64 { try library.open(inode(path), flags: O_RDWR, machine.program) }

    var names: [String] {
      get throws {
        try library.list(top, after: 0, limit: 1, machine.program).flatMap { first in
          [first] + (try library.list(top, after: first.cookie, limit: 100, machine.program))
        }.map { String(decoding: $0.name, as: UTF8.self) }.sorted()
      }
    }
  }

  /// What leaves and comes back before anything was planned is there again, and nobody is told that it was deleted here.
  @Test(arguments: [false, true])
  func whatComesBackAtOnceIsThereAgain(isEverything: Bool) throws {
    let member = try Member(isEverything: isEverything)
    let (library, share) = (member.library, member.share)
    let gone = Set(try ["out", "out/a.md"].map { try #require(member.ids[$0]) })
    try library.noteAllShared(member.states.filter { !gone.contains($0.item) }, left: [], token: "2", of: share)
    #expect(throws: SheafError.self) { try member.inode("out") }
    try library.noteAllShared(member.states, left: [], token: "3", of: share)
    try member.carryOut()
    #expect(try library.sends(of: share.account, limit: 10).isEmpty)
    #expect(try member.machine.text(member.inode("out/a.md")) == "a\n")
    try member.machine.finish()
  }

  /// What was deleted, recovered here, and is not taken back by the hub, is kept as a document of who recovered it.
  @Test func whatWasRecoveredInVainIsKept() throws {
    let member = try Member(isEverything: false)
    let (library, share) = (member.library, member.share)
    let id = try #require(member.ids["b.md"])
    var state = try #require(member.states.first { $0.item == id })
    (state.number, state.isDeleted, state.deleted, state.version) = (20, true, 1, nil)
    try library.noteDeleted([state], in: share)
    try member.carryOut()
    #expect(try member.names == ["c.md", "out"])
    let account = try library.connectedHandle(member.machine.account)
    _ = try library.recover(ItemPath(account: account, "Shared/carol@hub.example/team/b.md"), id: nil) { _ in }
    #expect(try member.names == ["b.md", "c.md", "out"])
    try library.giveUp([id], in: share)
    #expect(try member.names == ["c.md", "out"])
    let documents = try library.documents(of: account)
    let kept = try library.lookup(documents, Array("b (not saved).md".utf8), .api(member.machine.account)).ino
    #expect(try member.machine.text(kept) == "b\n")
    try member.machine.finish()
  }

  /// The same where it comes back by itself, under whatever number, and where the process ended in between.
  @Test(arguments: [false, true], [Int64(1), 100])
  func whatTheFeedBringsBackIsThereAgain(restarts: Bool, number: Int64) throws {
    let member = try Member(isEverything: false)
    let (machine, share) = (member.machine, member.share)
    let ids = try ["out", "out/a.md", "b.md"].map { try #require(member.ids[$0]) }
    try member.library.noteAllShared(
      member.states.filter { !ids[..<2].contains($0.item) }, left: [], token: "2", of: share)
    try member.library.noteShared([], left: [ids[2]], token: "3", of: share)
    if restarts { try machine.restart() }
    let back = member.states.filter { ids.contains($0.item) }.map { state in
      var state = state
      state.number = number
      return state
    }
    try machine.library.noteShared(back, left: [], token: "4", of: share)
    try member.carryOut()
    #expect(try machine.library.sends(of: share.account, limit: 10).isEmpty)
    #expect(try machine.text(member.inode("out/a.md")) == "a\n")
    #expect(try machine.text(member.inode("b.md")) == "b\n")
    try machine.finish()
  }

  /// What was told and could not be shown, since its folder was not here, and left with that: nothing waits for it.
  @Test func whatWasNeverShownCanLeave() throws {
    let member = try Member(isEverything: false)
    let (library, share) = (member.library, member.share)
    var state = try #require(member.states.last)
    (state.item, state.places, state.number) = (WireID(), [Place(parent: WireID(), "d.md")], 100)
    try library.noteShared([state], left: [], token: "2", of: share)
    try member.carryOut()
    #expect(try library.replicaCounts(share.account).news == 1)
    try library.noteAllShared(member.states, left: [], token: "3", of: share)
    try member.carryOut()
    let counts = try library.replicaCounts(share.account)
    #expect(counts.news == 0 && counts.changes == 0 && counts.histories == 0, "\(counts)")
    #expect(try library.sends(of: share.account, limit: 10).isEmpty)
    try member.machine.finish()
  }

  /// What left is not taken for deleted by a process that begins before anything was planned.
  @Test func whatLeftIsNotDeletedByTheNextProcess() throws {
    let member = try Member(isEverything: false)
    let gone = Set(try ["out", "out/a.md"].map { try #require(member.ids[$0]) })
    try member.library.noteAllShared(
      member.states.filter { !gone.contains($0.item) }, left: [], token: "2", of: member.share)
    try member.machine.restart()
    try member.carryOut()
    #expect(try member.library.sends(of: member.share.account, limit: 10).isEmpty)
    try member.machine.finish()
  }

  /// A hub that was put back to a backup has less than members were told that it has. What they saved themselves they
  /// send again, or keep.
  @Test func whatAMemberSavedOutlivesAHubThatGoesBack() throws {
    let member = try Member(isEverything: false)
    let (machine, share) = (member.machine, member.share)
    func save(_ text: String, _ folder: Int64, _ name: String) throws {
      try machine.save(text, folder, name, machine.program)
      machine.rest()
    }
    try save("b by the member\n", member.top, "b.md")
    try save("new\n", member.top, "new.md")
    try save("in a folder\n", member.inode("out"), "inner.md")
    // The hub has all of it.
    var number: Int64 = 50
    while true {
      _ = try member.library.plan(share.account)
      let sends = try member.library.sends(of: share.account, limit: 10).map(\.send)
      if sends.isEmpty { break }
      let verdicts = sends.map { send in
        number += 1
        return Verdict(
          serial: send.serial, outcome: .done, item: send.item, number: number, version: send.version?.id,
          versionNumber: send.version.map { _ in send.base == nil ? 1 : 2 })
      }
      _ = try member.library.settle(verdicts, of: share.account)
    }
    try #require(number == 53)
    // It goes back to before that, and to before there was one of the folders.
    let gone = Set(try ["out", "out/a.md"].map { try #require(member.ids[$0]) })
    try member.library.reread(share.account, isGone: true)
    try member.library.noteAllShared(member.states.filter { !gone.contains($0.item) }, left: [], token: "9", of: share)
    _ = try member.library.plan(share.account)
    let sends = try member.library.sends(of: share.account, limit: 10).map(\.send)
    let names = sends.map { $0.places?.first.map { String(decoding: $0.name, as: UTF8.self) } }
    #expect(Set(names) == [nil, "new.md"] && sends.allSatisfy { $0.version != nil && !$0.isDeletion }, "\(sends)")
    #expect(sends.first { $0.places == nil }?.item == member.ids["b.md"])
    #expect(try member.names == ["b.md", "c.md", "new.md"])
    #expect(try machine.text(member.inode("b.md")) == "b by the member\n")
    #expect(try machine.inode("inner (not saved).md").map { try machine.text($0) } == "in a folder\n")
    // What others saved there is not the member's to send.
    #expect(try machine.inode("a (not saved).md") == nil)
    try machine.finish()
  }

  /// Programs that have it open can save nothing from the first step on: what they saved later would go with it.
  @Test(arguments: [false, true])
  func whatLeavesIsOutOfSightThenKeptThenDestroyed(isEverything: Bool) throws {
    let member = try Member(isEverything: isEverything)
    let (library, machine) = (member.library, member.machine)
    let left = Set(try ["out", "b.md"].map { try #require(member.ids[$0]) })
    let (a, b) = (try member.open("out/a.md"), try member.open("b.md"))
    try machine.write(Array("mine\n".utf8), to: a)
    #expect(try member.names == ["b.md", "c.md", "out"])

    func denied(_ handle: UInt64) {
      let error = #expect(throws: SheafError.self) { try machine.write(Array("late\n".utf8), to: handle) }
      #expect(error?.kind == .accessDenied)
    }
    let hidden = try library.hide(left, in: member.share)
    denied(a)
    denied(b)
    #expect(try member.names == ["c.md"])
    #expect(throws: SheafError.self) { try member.inode("out") }
    for ino in hidden { #expect(throws: SheafError.self) { try library.attributes(ino, machine.program) } }

    try library.keepUnsent(of: left, in: member.share)
    denied(a)
    #expect(try machine.inode("a (not saved).md").map { try machine.text($0) } == "mine\n")
    #expect(try machine.inode("b (not saved).md") == nil)

    try library.destroyHere(left, in: member.share)
    library.locked { library.shares.endLeaving(hidden) }
    denied(a)
    denied(b)
    // close(2) says that it was not saved where it was written.
    #expect(throws: SheafError.self) { try library.flush(a) }
    for handle in [a, b] { try library.release(handle) }
    for name in ["out", "out/a.md", "b.md"] {
      let id = try #require(member.ids[name])
      #expect(try library.locked { try library.replicaInode(id, of: member.share.account) } == nil, "\(name)")
    }
    #expect(try member.names == ["c.md"])
    let c = try member.open("c.md")
    try machine.write(Array("more\n".utf8), to: c)
    try library.flush(c)
    try library.release(c)
    try machine.finish()
  }

  /// A process may end between the hub's verdict and giving up: the next one asks once more, and gives up then.
  @Test func whatIsDeniedIsGivenUpByTheNextProcess() throws {
    let member = try Member(isEverything: false)
    let (machine, share) = (member.machine, member.share)
    let id = try #require(member.ids["b.md"])
    let handle = try member.open("b.md")
    try machine.write(Array("mine\n".utf8), to: handle)
    try member.library.flush(handle)
    try member.library.release(handle)
    machine.rest()

    func deny() throws {
      _ = try member.library.plan(share.account)
      let sends = try member.library.sends(of: share.account, limit: 10).map(\.send)
      try #require(sends.map(\.item) == [id])
      let verdicts = sends.map { Verdict(serial: $0.serial, outcome: .refused, reason: .denied, item: id) }
      _ = try member.library.settle(verdicts, of: share.account)
    }
    try deny()
    try machine.restart()
    try deny()
    try member.library.giveUp([id], in: share)
    try member.carryOut()
    #expect(try member.library.sends(of: share.account, limit: 10).isEmpty)
    #expect(try machine.text(member.inode("b.md")) == "b\n")
    #expect(try machine.inode("b (not saved).md").map { try machine.text($0) } == "mine\n")
    try machine.finish()
  }
}
