import SheafStore

/// An entry of the library's log: an event of its own, or one of the log of a hub.
enum LogEntry {
  case own(EventRow)
  case hub(ReplicaEventRow)

  /// Its place in the library's log.
  var number: Int64 {
    switch self {
    case .own(let row): row.number
    case .hub(let row): row.sequence
    }
  }

  /// Whether a hub had it before its account was connected.
  var isPast: Bool {
    switch self {
    case .own: false
    case .hub(let row): row.isPast
    }
  }
}

extension StoreTransaction {
  /// Entries of the log after a place, oldest first.
  func log(after number: Int64, limit: Int) throws -> [LogEntry] {
    let (own, hubs) = (try events(after: number, limit: limit), try replicaEvents(after: number, limit: limit))
    return Self.merged(own, hubs, limit) { $0 < $1 }
  }

  /// Entries of the log before a place, newest first.
  func log(before number: Int64, limit: Int) throws -> [LogEntry] {
    let (own, hubs) = (try events(before: number, limit: limit), try replicaEvents(before: number, limit: limit))
    return Self.merged(own, hubs, limit) { $0 > $1 }
  }

  static func merged(
    _ own: [EventRow], _ hubs: [ReplicaEventRow], _ limit: Int, _ isFirst: (Int64, Int64) -> Bool
  ) -> [LogEntry] {
    let entries = own.map { LogEntry.own($0) } + hubs.map { LogEntry.hub($0) }
    return Array(entries.sorted { isFirst($0.number, $1.number) }.prefix(limit))
  }
}
