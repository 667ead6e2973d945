import Synchronization

/// The memory for large bodies that are under way at the same time: those that arrive and are worked on, or those that
/// clients are given.
///
/// A body gets its place before its first byte is read, and keeps it until it is done with. Where there is no room, the
/// request is refused and comes again.
final class BodyRoom: Sendable {
  private struct State {
    var used = 0
    var usedByZone: [String: Int] = [:]
  }

  private let limit: Int
  private let state = Mutex(State())

  init(limit: Int) { self.limit = limit }

  /// Bytes that are taken.
  var used: Int { state.withLock(\.used) }

  /// Takes room for one body of an account, which has a quarter of all at most.
  ///
  /// - Throws: ``HubError`` of kind `unavailable` where there is none.
  func take(_ bytes: Int, for caller: Caller) throws -> Place {
    let zone = caller.zone
    try state.withLock { state in
      let own = state.usedByZone[zone, default: 0]
      // One body alone always has room.
      guard (state.used == 0 || bytes <= limit - state.used) && (own == 0 || bytes <= limit / 4 - own) else {
        throw HubError(.unavailable, "as many large requests are under way as there may be")
      }
      state.used += bytes
      state.usedByZone[zone] = own + bytes
    }
    return Place { [self] in
      state.withLock { state in
        state.used -= bytes
        let own = state.usedByZone[zone, default: 0] - bytes
        state.usedByZone[zone] = own == 0 ? nil : own
      }
    }
  }

  /// A body's place. It is given back when nothing refers to it.
  final class Place: Sendable {
    private let release: @Sendable () -> Void

    fileprivate init(_ release: @escaping @Sendable () -> Void) { self.release = release }

    deinit { release() }
  }
}
