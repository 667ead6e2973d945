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

  /// Folders of which it is remembered in which share they are, and since when.
  private static let folderLimit = 16_384
  /// Folders of which it is remembered where they are, with 4 KiB each at most.
  private static let placeLimit = 1024
  /// Moves of folders that are remembered.
  private static let moveLimit = 256

  /// By shared item; stopped ones too.
  private var shares: [Int64: Entry] = [:]
  private var tokens: [ShareToken: Int64] = [:]
  /// The active shares that accounts joined, by account and owner.
  private var joined: [Int64: [Int64: Set<Int64>]] = [:]
  /// The active shares of each owner.
  private var owned: [Int64: Set<Int64>] = [:]
  /// The entries of each `Shared/OWNER/`, as far as somebody looked since they changed.
  private var listings: [SharedFolder: SharedListing] = [:]
  /// The folders in which something changed since that was taken.
  private var changedFolders: Set<SharedFolder> = []
  /// Shares of items that are no more, for as long as the process lives: their people are yet to hear of it.
  private(set) var gone: [Int64: Entry] = [:]
  private var activeCount = 0
  /// The share that a folder is in; 0 for none.
  private var folders = RecentTable<Int64, Int64>(limit: folderLimit)
  /// Where folders are.
  private var toldPlaces = RecentTable<Int64, ToldPlace>(limit: placeLimit)
  /// Places of folders that have so many above them, or a multiple: operations deep down do not make the library forget
  /// them.
  private var placesOnTheWay = RecentTable<Int64, ToldPlace>(limit: placeLimit)
  static let placeDistance = 256
  /// When the latest of a folder and those above it in its share entered that.
  private var entryTimes = RecentTable<Int64, Timestamp>(limit: folderLimit)
  /// The folders that moved last, the latest one last.
  private var movedFolders: [Int64] = []
  /// How many folders have moved.
  private(set) var moveCount = 0
  /// The inode that a shared item was last, with its place.
  private var roots: [Int64: Root] = [:]
  /// Inodes that are in no share any more, wherever they still lie, with all that is in them.
  private var leaving: Set<Int64> = []
  private var places: [Place: Set<Int64>] = [:]

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

  /// Shares of which an account sees anything, stopped ones too.
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

  /// The active shares of an owner.
  func owned(by account: Int64) -> [Entry] { (owned[account] ?? []).compactMap { active($0) } }

  /// How many active shares an owner has.
  func countOwned(by account: Int64) -> Int { owned[account]?.count ?? 0 }

  /// The shares that an account joined, its own not among them.
  func joined(by account: Int64) -> [Entry] {
    owners(sharingWith: account).flatMap { joined(by: account, owner: $0) }
  }

  /// Those of them that one owner has.
  func joined(by account: Int64, owner: Int64) -> [Entry] {
    (joined[account]?[owner] ?? []).compactMap { active($0) }
  }

  /// How many shares an account joined.
  func countJoined(by account: Int64) -> Int { (joined[account] ?? [:]).values.reduce(0) { $0 + $1.count } }

  /// The active shares to which an account is invited.
  func pending(for account: Int64) -> [Entry] {
    shares.values.filter { $0.row.isActive && $0.participants[account]?.acceptance == .pending }
  }

  /// The owners of the shares that an account joined.
  func owners(sharingWith account: Int64) -> [Int64] { joined[account].map { Array($0.keys) } ?? [] }

  // MARK: - Changes

  mutating func set(_ entry: Entry) {
    let item = entry.row.item
    // A change of participants does not change in which share folders are.
    if shares[item]?.row.isActive ?? false != entry.row.isActive { forgetFolders() }
    remove(item)
    shares[item] = entry
    tokens[entry.row.token] = item
    guard entry.row.isActive else { return }
    activeCount += 1
    let owner = entry.owner
    owned[owner, default: []].insert(item)
    for member in entry.members where member.role != .owner {
      joined[member.account, default: [:]][owner, default: []].insert(item)
    }
    forgetListings(of: item)
  }

  private mutating func remove(_ item: Int64) {
    guard let old = shares[item] else { return }
    forgetListings(of: item)
    shares[item] = nil
    tokens[old.row.token] = nil
    guard old.row.isActive else { return }
    activeCount -= 1
    let owner = old.owner
    owned[owner]?.remove(item)
    for member in old.members where member.role != .owner {
      joined[member.account]?[owner]?.remove(item)
      if joined[member.account]?[owner]?.isEmpty ?? false { joined[member.account]?[owner] = nil }
    }
  }

  /// Removes a share whose item is no more.
  mutating func removeDestroyed(_ item: Int64) {
    gone[item] = shares[item]
    forgetFolders()
    remove(item)
  }

  /// Forgets that an account took part in what is no more.
  mutating func forgetGone(by account: Int64) {
    for item in gone.keys { gone[item]?.participants[account] = nil }
  }

  // MARK: - What stands in `Shared`

  /// The entries of `Shared/OWNER/`; nil if nobody looked since they changed.
  func listing(_ folder: SharedFolder) -> SharedListing? { listings[folder] }

  mutating func note(_ listing: SharedListing, of folder: SharedFolder) { listings[folder] = listing }

  /// Forgets the listings in which a share stands: it, its people, or the name or the inode of its item changed.
  mutating func forgetListings(of item: Int64) {
    guard let share = active(item) else { return }
    let owner = share.owner
    for member in share.members where member.role != .owner {
      let folder = SharedFolder(account: member.account, owner: owner)
      listings[folder] = nil
      changedFolders.insert(folder)
    }
  }

  /// Forgets all listings, since the facts that they were made of changed.
  mutating func forgetListings() { listings = [:] }

  /// Takes the folders in which something changed.
  mutating func takeChangedFolders() -> Set<SharedFolder> {
    if changedFolders.isEmpty { return [] }
    defer { changedFolders = [] }
    return changedFolders
  }

  // MARK: - What leaves

  /// Whether an inode leaves its share, and is in it no more.
  func isLeaving(_ ino: Int64) -> Bool { leaving.contains(ino) }

  /// Takes inodes out of the shares that they are in, with all that is in them, until they are gone.
  mutating func beginLeaving(_ inos: [Int64]) {
    leaving.formUnion(inos)
    forgetFolders()
  }

  /// Forgets inodes that are gone.
  mutating func endLeaving(_ inos: [Int64]) {
    leaving.subtract(inos)
    forgetFolders()
  }

  // MARK: - What is remembered

  /// The share that a folder is in, where that is remembered: 0 for none.
  func share(ofFolder ino: Int64) -> Int64? { folders[ino] }

  /// Notes which share folders above one another are in: of very many some, to which the others are near.
  mutating func note(_ inos: [Int64], in share: Int64) {
    let step = 1 + inos.count / 1024
    for index in stride(from: 0, to: inos.count, by: step) { folders.note(inos[index], share) }
  }

  /// Where a folder is, if that is remembered.
  func place(ofFolder ino: Int64) -> ToldPlace? { toldPlaces[ino] ?? placesOnTheWay[ino] }

  mutating func note(_ place: ToldPlace, ofFolder ino: Int64) {
    if place.depth % Self.placeDistance == 0 { placesOnTheWay.note(ino, place) } else { toldPlaces.note(ino, place) }
  }

  /// When the latest of a folder and those above it in its share entered that, if it is remembered.
  func entryTime(ofFolder ino: Int64) -> Timestamp? { entryTimes[ino] }

  mutating func note(_ time: Timestamp, ofFolder ino: Int64) { entryTimes.note(ino, time) }

  /// Forgets when folders entered their shares: one has entered another time.
  mutating func forgetEntryTimes() { entryTimes.removeAll() }

  /// Forgets where folders are: one was moved or recovered under another name, or one that is shared was deleted or
  /// recovered.
  mutating func forgetFolders() {
    folders.removeAll()
    toldPlaces.removeAll()
    placesOnTheWay.removeAll()
    entryTimes.removeAll()
  }

  /// Notes that a folder was moved.
  mutating func noteMove(ofFolder ino: Int64) {
    forgetFolders()
    if movedFolders.count == Self.moveLimit { movedFolders.removeFirst(Self.moveLimit / 2) }
    movedFolders.append(ino)
    moveCount += 1
  }

  /// Whether one of some folders may have moved since ``moveCount`` was `count`.
  func mayHaveMoved(_ inos: Set<Int64>, since count: Int) -> Bool {
    let moves = moveCount - count
    return moves > movedFolders.count || movedFolders.suffix(moves).contains(where: inos.contains)
  }

  /// The inode that a shared item was last.
  func root(_ item: Int64) -> Int64? { roots[item]?.ino }

  mutating func noteRoot(_ item: Int64, ino: Int64, _ place: Place) {
    if let old = roots[item]?.place, old != place {
      places[old]?.remove(item)
      if places[old]?.isEmpty ?? false { places[old] = nil }
    }
    roots[item] = Root(ino: ino, place: place)
    places[place, default: []].insert(item)
  }

  /// The shared items that were last seen at a place.
  func roots(at place: Place) -> Set<Int64> { places[place] ?? [] }
}
