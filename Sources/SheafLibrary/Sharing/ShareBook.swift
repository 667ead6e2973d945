import SheafModel
import SheafStore

/// The shares of a library and who takes part, in memory as accounts are, with what is remembered of where they lie.
///
/// Changed only once the rows are committed.
struct ShareBook {
  /// A share with its participants, the owner among them.
  struct Entry {
    var row: ShareRow
    var participants: [Int64: ParticipantRow] = [:]

    /// The account whose item it is.
    var owner: Int64 { participants.values.first { $0.role == .owner }?.account ?? 0 }

    /// Those who see the item, the owner among them.
    var members: [ParticipantRow] { participants.values.filter { $0.acceptance == .accepted } }

    /// The participant, if they joined and are still there.
    func member(_ account: Int64) -> ParticipantRow? {
      participants[account].flatMap { $0.acceptance == .accepted ? $0 : nil }
    }
  }

  /// Folders of which it is remembered in which share they are.
  private static let folderLimit = 16_384
  /// Folders of which it is remembered where they are, with 4 KiB each at most.
  private static let placeLimit = 1024

  /// By shared item; stopped ones too.
  private var shares: [Int64: Entry] = [:]
  private var tokens: [ShareToken: Int64] = [:]
  private var joined: [Int64: Set<Int64>] = [:]
  /// Shares of items that are no more, for as long as the process lives: their people are yet to hear of it.
  private(set) var gone: [Int64: Entry] = [:]
  private var activeCount = 0
  /// The share that a folder is in; 0 for none.
  private var folders: [Int64: Int64] = [:]
  /// Where folders are.
  private var toldPlaces: [Int64: ToldPlace] = [:]
  /// The inode that a shared item was last, with its place.
  private var roots: [Int64: Root] = [:]
  private var places: Set<Place> = []

  struct Place: Hashable {
    let parent: Int64
    let name: [UInt8]
  }

  private struct Root {
    let ino: Int64
    let place: Place
  }

  /// Whether nothing is shared, so that no one needs to look.
  var isEmpty: Bool { activeCount == 0 }

  /// Shares of which an account is told something, stopped ones too.
  subscript(item: Int64) -> Entry? { shares[item] }

  /// All, by shared item; stopped ones too.
  var byItem: [Int64: Entry] { shares }

  /// The share of an item that is shared now.
  func active(_ item: Int64) -> Entry? {
    guard activeCount > 0, let entry = shares[item], entry.row.isActive else { return nil }
    return entry
  }

  func active(_ token: ShareToken) -> Entry? { tokens[token].flatMap { active($0) } }

  /// All shares, stopped ones too.
  var all: [Entry] { Array(shares.values) }

  /// The items of the active shares.
  var activeItems: [Int64] { shares.values.filter(\.row.isActive).map(\.row.item) }

  /// The shares that an account joined, the owner's not among them.
  func joined(by account: Int64) -> [Entry] {
    (joined[account] ?? []).compactMap { active($0) }
  }

  // MARK: - Changes

  mutating func set(_ entry: Entry) {
    remove(entry.row.item)
    shares[entry.row.item] = entry
    tokens[entry.row.token] = entry.row.item
    if entry.row.isActive { activeCount += 1 }
    for member in entry.members where member.role != .owner {
      joined[member.account, default: []].insert(entry.row.item)
    }
  }

  mutating func remove(_ item: Int64) {
    forgetFolders()
    guard let old = shares.removeValue(forKey: item) else { return }
    tokens[old.row.token] = nil
    if old.row.isActive { activeCount -= 1 }
    for account in old.participants.keys { joined[account]?.remove(item) }
  }

  /// Removes a share whose item is no more.
  mutating func bury(_ item: Int64) {
    gone[item] = shares[item]
    remove(item)
  }

  /// Forgets that an account took part in what is no more.
  mutating func forgetGone(by account: Int64) {
    for item in gone.keys { gone[item]?.participants[account] = nil }
  }

  // MARK: - What is remembered

  /// The share that a folder is in, where that is remembered: 0 for none.
  func share(ofFolder ino: Int64) -> Int64? { folders[ino] }

  /// Notes which share folders above one another are in: of very many some, to which the others are near.
  mutating func note(_ inos: [Int64], in share: Int64) {
    let step = 1 + inos.count / 1024
    if folders.count + inos.count / step > Self.folderLimit { folders = [:] }
    for index in stride(from: 0, to: inos.count, by: step) { folders[inos[index]] = share }
  }

  /// Where a folder is, if that is remembered.
  func place(ofFolder ino: Int64) -> ToldPlace? { toldPlaces[ino] }

  mutating func note(_ place: ToldPlace, ofFolder ino: Int64) {
    if toldPlaces.count >= Self.placeLimit { toldPlaces = [:] }
    toldPlaces[ino] = place
  }

  /// Forgets where folders are: one was moved or recovered under another name, or one that is shared was deleted or recovered.
  mutating func forgetFolders() {
    folders = [:]
    toldPlaces = [:]
  }

  /// The inode that a shared item was last.
  func root(_ item: Int64) -> Int64? { roots[item]?.ino }

  mutating func noteRoot(_ item: Int64, ino: Int64, _ place: Place) {
    if let old = roots[item], old.place != place { places.remove(old.place) }
    roots[item] = Root(ino: ino, place: place)
    places.insert(place)
  }

  /// Whether a shared item was last seen at a place.
  func isRoot(_ place: Place) -> Bool { places.contains(place) }
}
