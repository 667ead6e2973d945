import Foundation
import Logging
import NIOCore
import SheafModel
import Synchronization

/// The sink makes no attempts until a person resumes it.
struct SinkDisabled: Error {
  let reason: String
}

/// Sends dead letters again, once each, that a person wants sent after all.
///
/// Letters take turns with the events. Their failures are counted apart: they delay the next letter, and no event.
final class DeadLetterRetry: Sendable {
  private let name: String
  private let schedule: RetrySchedule
  private let turns: SinkTurns
  private let state: SidecarState
  private let board: StatusBoard
  private let clock: any SidecarClock
  private let random: @Sendable () -> Double
  private let log: Logger
  /// How many attempts failed in a row, and when the next one is due.
  private let failing = Mutex<(count: Int, until: Timestamp?)>((0, nil))

  init(
    name: String, schedule: RetrySchedule, turns: SinkTurns, state: SidecarState, board: StatusBoard,
    clock: any SidecarClock, random: @escaping @Sendable () -> Double, log: Logger
  ) {
    self.name = name
    self.schedule = schedule
    self.turns = turns
    self.state = state
    self.board = board
    self.clock = clock
    self.random = random
    self.log = log
  }

  /// Makes an attempt at each letter; returns when none is left to send.
  ///
  /// - Throws: ``SinkDisabled`` and ``ReaderGone``; the remaining letters then wait.
  func run(_ key: SinkKey) async throws {
    while let letter = try state.nextToRetry(of: key) {
      if let due = failing.withLock({ $0.until }) { try await clock.sleep(until: due) }
      let event = try JSONDecoder().decode(Event.self, from: Data(letter.event.utf8))
      let delivery = Delivery(event: event, json: ByteBuffer(string: letter.event))
      if let failure = try await turns.attempt([delivery]) {
        log.warning("still dead: \(failure.description)", metadata: ["sink": "\(name)", "event": "\(event.id)"])
        switch failure.consequence {
        case .end: throw ReaderGone()
        case .disable: throw SinkDisabled(reason: failure.description)
        case .retry(let asked):
          try state.keep(letter, reason: failure.description)
          failing.withLock { failing in
            failing.count += 1
            let wait = schedule.wait(afterFailures: failing.count, asked: asked, random: random())
            failing.until = clock.now.adding(wait)
          }
        }
      } else {
        try state.remove(letter)
        failing.withLock { $0 = (0, nil) }
        board.update(name, deadLetters: Int64(try state.deadLetterCount(of: key)))
      }
    }
  }
}
