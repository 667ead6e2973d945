import SheafStore

/// Those who wait for changes of the event log, and whom the events concern of which they were not told yet.
struct EventObservers {
  typealias Listener = @Sendable (EventNews) -> Void

  /// The notification for observers of one operation.
  struct Notification {
    let news: EventNews
    fileprivate let listeners: [Int: Listener]

    /// Tells the observers; called without the lock.
    func deliver() {
      for listener in listeners.values { listener(news) }
    }
  }

  private var listeners: [Int: Listener] = [:]
  /// Number of the newest event that was told.
  private var last: Int64
  /// Those whose items the events are of, or who are named in them.
  private var accounts: Set<Int64> = []
  private var shares: Set<Int64> = []
  private var webhooksChanged = false

  /// - Parameter last: number of the newest event.
  init(after last: Int64) { self.last = last }

  /// Adds an observer; returns a number for ``remove(_:)``.
  mutating func add(_ listener: @escaping Listener) -> Int {
    let number = (listeners.keys.max() ?? 0) + 1
    listeners[number] = listener
    return number
  }

  mutating func remove(_ number: Int) { listeners[number] = nil }

  /// Notes an event that is to be told.
  ///
  /// - Parameter account: whom the event is about, who need not take part in the share.
  mutating func note(_ row: EventRow, about account: Int64?) {
    accounts.insert(row.owner)
    if let account { accounts.insert(account) }
    for mark in [row.share, row.previousShare] { if let mark { shares.insert(mark.share) } }
  }

  /// Notes an event of a hub's log, which one account sees.
  mutating func note(_ account: Int64) { accounts.insert(account) }

  mutating func noteWebhooks() { webhooksChanged = true }

  /// Takes the news up to an event, for everyone whom ``EventVisibility`` may show some of it, as the shares are now;
  /// nil where there is none.
  mutating func takeNotification(upTo number: Int64, in book: ShareBook) -> Notification? {
    guard number != last || webhooksChanged else { return nil }
    var audience = accounts
    for share in shares {
      if let participants = (book[share] ?? book.gone[share])?.participants { audience.formUnion(participants.keys) }
    }
    let news = EventNews(audience: audience, webhooks: webhooksChanged)
    (last, accounts, shares, webhooksChanged) = (number, [], [], false)
    return Notification(news: news, listeners: listeners)
  }
}

/// The news for those who wait for changes of the log.
package struct EventNews: Sendable {
  /// Accounts that may see the new events, by the library's numbers (``Library/number(of:)``); nobody else sees any.
  package let audience: Set<Int64>
  /// Whether webhooks changed.
  package let webhooks: Bool
}
