/// The doors of a library, by which requests come: its mounts, and others that are told what changes.
///
/// An operation notes here what it changed while it holds the library's lock. ``takeNotifications()`` hands that over,
/// once, and whoever lets go of the lock delivers it.
struct Doors {
  typealias Listener = @Sendable ([LibraryNews]) -> Void

  fileprivate struct Door {
    /// The account whose door it is; nil for one that is told everything.
    let account: Int64?
    let listen: Listener
  }

  /// A change, with those who are told of it.
  fileprivate struct Notification {
    /// The door by which the change came, which knows of it.
    let door: Int
    let audience: Set<Int64>?
    /// The one door that is told, where it is one.
    var only: Int?
    let news: LibraryNews

    func isFor(_ door: Int, _ account: Int64?) -> Bool {
      if let only { return door == only }
      guard door != self.door else { return false }
      guard let account, let audience else { return true }
      return audience.contains(account)
    }
  }

  /// The notifications for doors of one operation.
  struct Notifications {
    private var notifications: [Notification] = []
    private var doors: [Int: Door] = [:]

    init() {}

    fileprivate init(_ notifications: [Notification], to doors: [Int: Door]) {
      self.notifications = notifications
      self.doors = doors
    }

    /// Tells the doors; called without the lock.
    func deliver() {
      for (number, door) in doors {
        let news = notifications.filter { $0.isFor(number, door.account) }.map(\.news)
        if !news.isEmpty { door.listen(news) }
      }
    }
  }

  private var doors: [Int: Door] = [:]
  private var lastNumber = 0
  private var notifications: [Notification] = []
  private var accessChanges: Set<Int64> = []

  // MARK: - Opening and closing

  /// Opens a door; returns its number, for ``Caller/door``.
  mutating func open(account: Int64?, _ listener: @escaping Listener) -> Int {
    lastNumber += 1
    doors[lastNumber] = Door(account: account, listen: listener)
    return lastNumber
  }

  mutating func close(_ door: Int) { doors[door] = nil }

  /// Whether none is open.
  var isEmpty: Bool { doors.isEmpty }

  /// Whether more than one is open.
  var areSeveral: Bool { doors.count > 1 }

  func isOpen(_ door: Int) -> Bool { doors[door] != nil }

  /// Whether one is open besides `door`.
  func hasOthers(than door: Int) -> Bool { doors.contains { $0.key != door } }

  /// The accounts that have doors of their own; once for each door.
  var accounts: [Int64] { doors.values.compactMap(\.account) }

  // MARK: - Notifications

  /// Tells doors of a change once the lock is free, but not the one by which it came.
  ///
  /// - Parameter audience: the accounts whose doors are told; nil for all.
  mutating func notify(_ news: LibraryNews, _ audience: Set<Int64>?, from door: Int) {
    notifications.append(Notification(door: door, audience: audience, news: news))
  }

  /// Tells one door of a change once the lock is free.
  mutating func notify(_ news: LibraryNews, only door: Int) {
    notifications.append(Notification(door: 0, audience: nil, only: door, news: news))
  }

  /// Takes what is to be told of the operation that ends.
  mutating func takeNotifications() -> Notifications {
    if notifications.isEmpty { return Notifications() }
    defer { notifications = [] }
    return Notifications(notifications, to: doors)
  }

  // MARK: - Access

  /// Notes that an account may do something else than before with what others share.
  mutating func noteAccessChange(of account: Int64) { accessChanges.insert(account) }

  /// Takes the accounts that may do something else than before.
  mutating func takeAccessChanges() -> Set<Int64> {
    if accessChanges.isEmpty { return [] }
    defer { accessChanges = [] }
    return accessChanges
  }
}
