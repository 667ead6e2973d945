import SheafModel
import SheafWire
import Testing

@testable import SheafLibrary

/// What a library takes over of what its hub tells of the spans for which folders keep things.
@Suite struct RetentionMergeTests {
  /// A connected account with two folders that its hub has.
  private struct Story {
    let machine: LibraryMachine
    let a = WireID()
    let b = WireID()

    var library: Library { machine.library }

    init() throws {
      machine = try LibraryMachine("machine")
      let states = [(a, "a"), (b, "b")].enumerated().map { index, folder in
        ItemState(
          number: Int64(index) + 1, item: folder.0, kind: .folder, isDeleted: false,
          places: [Place(parent: .root, folder.1)], mode: 0o755, mtime: 1, target: nil, attributes: [:], version: nil,
          copyOf: nil)
      }
      let account = machine.account
      try library.noteListed(states, begins: true, of: account)
      try library.endListing(token: "1", read: 2, of: account)
      for _ in 0..<20 {
        guard let (number, step) = try library.step(of: account) else {
          if case .settled = try library.plan(account) { return }
          continue
        }
        #expect(try library.carryOut(number, step, of: account, contents: nil))
      }
    }

    private func path(_ name: String) throws -> ItemPath {
      try ItemPath(account: AccountHandle("alice@hub.example"), "Documents/\(name)")
    }

    func say(_ name: String, deleted: Int64? = nil, versions: Int64? = nil) throws {
      _ = try library.retain(
        path(name),
        RetentionChange(
          keepDeleted: deleted.map { $0 * day }, keepVersions: versions.map { $0 * day },
          isDefault: deleted == nil && versions == nil))
    }

    /// Days that a folder says.
    func said(_ name: String) throws -> [Int64?] {
      let retention = try library.retention(path(name))
      return [retention.ownKeepDeleted, retention.ownKeepVersions].map { $0.map { $0 / day } }
    }

    @discardableResult
    func hear(_ folders: [(WireID, Int64?, Int64?)]) throws -> Bool {
      try library.noteRetentions(
        RetentionList(
          folders: folders.map { folder in
            FolderRetention(
              item: folder.0, keepDeleted: folder.1.map { $0 * day }, keepVersions: folder.2.map { $0 * day })
          }, keepDeleted: 30 * day, keepVersions: nil), of: machine.account)
    }

    func waiting() throws -> Set<WireID> { Set(try library.waitingRetentions(of: machine.account).map(\.item)) }

    func sendAll() throws {
      for folder in try library.waitingRetentions(of: machine.account) {
        try library.noteSent(folder, of: machine.account)
      }
    }
  }

  @Test func atFirstTheLongerSpanHolds() throws {
    let story = try Story()
    try story.say("a", deleted: 10, versions: 500)
    try story.sendAll()
    // Nothing that a machine knew of its hub before.
    try story.hear([(story.a, 20, 400), (story.b, 5, nil)])
    #expect(try story.said("a") == [20, 500] && story.said("b") == [5, nil])
    #expect(try story.waiting() == [story.a])
    try story.sendAll()
    #expect(try story.waiting() == [])
    try story.machine.finish()
  }

  @Test func connectingShortensNothingAtTheHub() throws {
    let story = try Story()
    try story.say("a", deleted: 10, versions: 500)
    try story.say("b", deleted: 35)
    try story.sendAll()
    // The hub keeps deleted items for 30 days and versions for ever, where no folder says anything.
    try story.hear([])
    #expect(try story.said("a") == [nil, nil] && story.said("b") == [35, nil])
    #expect(try story.waiting() == [story.b])
    try story.machine.finish()
  }

  @Test func theFoldersAroundCountToo() throws {
    let story = try Story()
    try story.say("a", deleted: 100)
    try story.say("b", deleted: 300, versions: 900)
    try story.sendAll()
    try story.hear([(.root, 200, 800)])
    #expect(try story.said("a") == [nil, nil] && story.said("b") == [300, 900])
    #expect(try story.waiting() == [story.b])
    try story.machine.finish()
  }

  @Test func laterTheHubHasTheWord() throws {
    let story = try Story()
    try story.hear([(story.a, 100, nil)])
    try story.hear([(story.a, 50, nil), (story.b, nil, 70)])
    #expect(try story.said("a") == [50, nil] && story.said("b") == [nil, 70])
    try story.hear([(story.b, nil, 70)])
    #expect(try story.said("a") == [nil, nil])
    // But for what it does not know yet.
    try story.say("b", versions: 60)
    try story.say("a", deleted: 9)
    try story.hear([(story.b, nil, 70)])
    #expect(try story.said("a") == [9, nil] && story.said("b") == [nil, 60])
    #expect(try story.waiting() == [story.a, story.b])
    // What was said anew while it was sent is sent, too.
    let sent = try story.library.waitingRetentions(of: story.machine.account)
    try story.say("a")
    for folder in sent { try story.library.noteSent(folder, of: story.machine.account) }
    #expect(try story.waiting() == [story.a])
    // Folders that are not here may come.
    #expect(try !story.hear([(WireID(), 9, nil)]))
    #expect(try story.hear([]))
    try story.machine.finish()
  }

  @Test func aHubThatWentBackShortensNothing() throws {
    let story = try Story()
    try story.hear([(story.a, 100, nil), (story.b, 2, nil)])
    try story.library.reread(story.machine.account, isGone: true)
    try story.hear([])
    // What is shorter than the hub's own rules may have been taken back.
    #expect(try story.said("a") == [100, nil] && story.said("b") == [nil, nil])
    #expect(try story.waiting() == [story.a])
    try story.machine.finish()
  }

  @Test func documentsAreAFolderToo() throws {
    let story = try Story()
    try story.hear([(.root, 40, 80)])
    #expect(try story.said("") == [40, 80])
    try story.say("", deleted: 41)
    #expect(try story.waiting() == [.root])
    try story.sendAll()
    #expect(try story.waiting() == [])
    try story.machine.finish()
  }
}

private let day: Int64 = 86_400
