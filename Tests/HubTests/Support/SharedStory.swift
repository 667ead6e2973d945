import Foundation
import SheafHubStore
import SheafModel
import SheafWire
import Synchronization
import Testing

@testable import SheafHub

/// A hub on which Alice shares folders with others, who read and send.
final class SharedStory: Sendable {
  let test: TestHub
  let (alice, bob, carol): (Person, Person, Person)
  private let serials = Mutex<[String: Int64]>([:])

  /// The same people on another hub, which has a copy of the store.
  private init(_ test: TestHub, of story: SharedStory) {
    self.test = test
    (alice, bob, carol) = (story.alice, story.bob, story.carol)
    serials.withLock { $0 = story.serials.withLock { $0 } }
  }

  /// The story goes on from here in a copy of the store.
  func copy(to database: any Database) async throws -> SharedStory {
    try await Hub.prepare(database)
    _ = try await StoreMove(from: hub.database, to: database).run()
    return SharedStory(try await TestHub(database), of: self)
  }

  init(_ database: any Database) async throws {
    let test = try await TestHub(database)
    self.test = test
    func person(_ name: String) async throws -> Person {
      let handle = "\(name)@hub.example"
      return Person(zone: try await test.account(handle), handle: handle, name: name)
    }
    (alice, bob, carol) = (try await person("alice"), try await person("bob"), try await person("carol"))
  }

  var hub: Hub { test.hub }

  private func author(_ person: Person) -> SendAuthor {
    SendAuthor(
      device: "device of \(person.handle)", deviceName: "laptop", handle: person.handle, name: person.name ?? "",
      now: hub.clock.now)
  }

  /// Shares an item with people, who accept.
  @discardableResult
  func share(
    _ item: WireID, with people: [Person] = [], _ permission: WirePermission = .readWrite
  ) async throws -> HubShare {
    let share = try await hub.sharing.share(item, ShareSettings(), by: alice)
    for person in people { try await invite(person, to: share, permission) }
    return share
  }

  func invite(_ person: Person, to share: HubShare, _ permission: WirePermission = .readWrite) async throws {
    let (owner, now) = (alice.zone, hub.clock.now)
    _ = try await hub.sharing.change(share.id, by: alice) {
      try $0.invite(person, ParticipantSettings(permission: permission), by: owner, at: now)
    }
    _ = try await hub.sharing.accept(share.token, by: person)
  }

  func remove(_ person: Person, from share: HubShare) async throws {
    let (owner, now) = (alice.zone, hub.clock.now)
    try await hub.sharing.change(share.id, by: alice) { try $0.remove(person.handle, by: owner, at: now) }
  }

  /// A person's place, which their inbox need not name.
  func place(_ share: HubShare, _ person: Person) -> SharedPlace {
    SharedPlace(share: share.id, zone: alice.zone, account: person.zone)
  }

  // MARK: - Sending

  /// Sends a group of Alice's.
  @discardableResult
  func send(_ group: Send...) async throws -> [Verdict] { try await send(group) }

  func send(_ group: [Send]) async throws -> [Verdict] {
    try await hub.zones.send(request(group, alice.zone), to: alice.zone, by: author(alice)).verdicts
  }

  /// Sends a group of somebody's to a share.
  @discardableResult
  func send(_ group: Send..., to share: HubShare, by person: Person) async throws -> [Verdict] {
    try await answer(group, to: share, by: person).verdicts
  }

  func answer(_ group: [Send], to share: HubShare, by person: Person) async throws -> SendAnswer {
    let request = request(group, "\(share.id) \(person.zone)")
    return try await hub.zones.send(request, to: place(share, person), by: author(person))
  }

  private func request(_ group: [Send], _ sender: String) -> SendRequest {
    SendRequest(
      groups: [
        group.map { send in
          var send = send
          send.serial = serials.withLock { serials in
            serials[sender, default: 0] += 1
            return serials[sender] ?? 0
          }
          return send
        }
      ])
  }

  /// Makes a folder of Alice's.
  func folder(_ name: String, in parent: WireID = .root) async throws -> WireID {
    let id = WireID()
    let made = try await send(Send(serial: 0, item: id, kind: .folder, places: [Place(parent: parent, name)]))
    try #require(made.map(\.outcome) == [.done])
    return id
  }

  /// Makes a document of Alice's.
  @discardableResult
  func document(_ name: String, _ text: String, in parent: WireID = .root) async throws -> WireID {
    let id = WireID()
    let made = try await send(.document(id, at: [Place(parent: parent, name)], version: WireID(), text))
    try #require(made.map(\.outcome) == [.done])
    return id
  }

  /// Saves a next version as Alice.
  @discardableResult
  func save(_ item: WireID, _ text: String) async throws -> Verdict {
    let base = try await hub.feeds.item(item, in: alice.zone)?.version?.id
    let verdict = try await send(.save(item, WireID(), base: base, text))
    return try #require(verdict.first)
  }

  @discardableResult
  func move(_ item: WireID, _ kind: ItemKind = .folder, to parent: WireID, _ name: String) async throws -> Verdict {
    try #require(try await send(.move(item, kind, to: Place(parent: parent, name), base: 1 << 40)).first)
  }

  @discardableResult
  func delete(_ item: WireID, _ kind: ItemKind = .document) async throws -> Verdict {
    try #require(try await send(.deletion(item, kind, base: 1 << 40, read: 1 << 40)).first)
  }

  // MARK: - Reading

  /// The texts of the versions that somebody sees, the oldest first; nil for what is not there for them.
  func texts(_ item: WireID, _ share: HubShare, _ person: Person) async throws -> [String]? {
    let place = place(share, person)
    do {
      var texts: [String] = []
      for version in try await hub.sharedFeeds.versions(of: item, after: 0, limit: 100, of: place).versions {
        texts.append(try await text(version.id, item, place))
      }
      return texts
    } catch let error as HubError where error.kind == .notFound {
      return nil
    }
  }

  func text(_ version: WireID, _ item: WireID, _ place: SharedPlace) async throws -> String {
    let (facts, manifest) = try await hub.sharedFeeds.version(version, of: item, of: place)
    var reader = ContentReader(hub.contents, manifest, 0..<facts.size, of: version, item, in: place)
    var bytes: [UInt8] = []
    while let piece = try await reader.next() { bytes += piece }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// A member's machine, which follows a feed and lists what enters.
  struct Follower {
    let place: SharedPlace
    private(set) var items: [WireID: ItemState] = [:]
    private(set) var changes: [SharedChange] = []
    var token: SharedToken?
    private var top: WireID?

    init(_ place: SharedPlace) { self.place = place }

    /// Reads pages of `limit` until there is no more. What has no way to the shared item then is gone.
    mutating func follow(_ hub: Hub, limit: Int = 100) async throws {
      changes = []
      while true {
        let page = try await hub.sharedFeeds.page(after: token, limit: limit, of: place)
        if token == nil { (items, top) = ([:], page.changes.first?.item) }
        token = try SharedToken(page.token)
        changes += page.changes
        for change in page.changes {
          items[change.item] = change.state
          if change.change == .entered { try await list(change.item, hub, limit) }
        }
        if !page.hasMore { break }
      }
      items = items.filter { isReachable($0.key) }
    }

    /// Lists a folder that entered, with those in it. What was known in it and is not there now waits for another
    /// place.
    private mutating func list(_ item: WireID, _ hub: Hub, _ limit: Int) async throws {
      var folders = [item]
      while let folder = folders.popLast() {
        for id in items.keys { items[id]?.places.removeAll { $0.parent == folder && id != top } }
        guard items[folder]?.kind == .folder else { continue }
        var after: [UInt8] = []
        while true {
          let page: SharedFolderPage
          do {
            page = try await hub.sharedFeeds.children(of: folder, after: after, limit: limit, of: place)
          } catch let error as HubError where error.kind == .notFound {
            break
          }
          for state in page.items {
            items[state.item] = state
            if state.kind == .folder { folders.append(state.item) }
          }
          guard let next = page.next.flatMap({ Hexadecimal.bytes(of: $0) }) else { break }
          after = next
        }
      }
    }

    private func isReachable(_ item: WireID) -> Bool {
      var (next, steps) = (item, 0)
      while next != top {
        guard let parent = items[next]?.places.first?.parent, steps < 1_000 else { return false }
        (next, steps) = (parent, steps + 1)
      }
      return items[next] != nil
    }

    /// Names below the shared item, by path.
    var paths: [String] {
      items.values.map { state in
        var words: [String] = []
        var next: ItemState? = state
        while let state = next, words.count < 100 {
          words.append(String(decoding: state.places.first?.name ?? [], as: UTF8.self))
          next = (state.places.first?.parent).flatMap { $0 == .root ? nil : items[$0] }
        }
        return words.reversed().joined(separator: "/")
      }.sorted()
    }
  }
}
