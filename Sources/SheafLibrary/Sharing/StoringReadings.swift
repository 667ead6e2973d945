import Foundation
import SheafModel
import SheafStore

/// Keeps what programs read for the next process of the library: who read a document before that ended, and not since,
/// goes on from the version that they read (rule 5 of ``Readings``).
///
/// It is stored when the library is closed and, while it changes, whenever upkeep syncs. A process that is killed loses
/// the last of it, so that a save may be marked as based on a later version than it was. Sessions and programs are
/// those of one run of the machine, and a program also has its beginning: numbers of processes are given again.
///
/// Rooms: `Readings`.
extension Library {
  static let readingsKey = "readings"

  /// Readings that are stored at most, the latest.
  private static let storedReadings = 1024

  /// Whether programs read something since readings were stored.
  var hasUnstoredReadings: Bool { locked { readings.isChanged } }

  /// Stores what programs read, where that changed.
  func storeReadings() throws {
    guard let readings = locked({ self.readings.takeChanged(Self.storedReadings) }) else { return }
    // Without the lock, since it asks the kernel for each program.
    let text = StoredReadings(readings).text
    do {
      try locked { try makeChange(.times) { try $0.rows.setSetting(Self.readingsKey, text) } }
    } catch {
      locked { self.readings.markChanged() }
      throw error
    }
  }

  /// Takes up what an earlier process stored.
  func restoreReadings() {
    // A library that holds something else there is as good.
    guard let text = (try? read { try $0.setting(Self.readingsKey) }) ?? nil else { return }
    let time = clock()
    for reading in StoredReadings(text: text).readings(at: time).suffix(Self.storedReadings) { readings.add(reading) }
    _ = readings.takeChanged(0)
  }
}

/// Readings as the library's file has them: a line with the run of the machine, then one for each, `ITEM ACCOUNT
/// VERSION TIME`, with ` session ID`, ` program ID START` or, if that never read, ` writer ID START` for those that are not
/// the account's.
struct StoredReadings {
  let text: String

  init(text: String) { self.text = text }

  /// - Parameter readings: The oldest first; those of programs that ended are left out.
  init(_ readings: [Readings.Reading]) {
    var lines = [Self.run]
    for reading in readings {
      var line = "\(reading.item) \(reading.account) \(reading.version) \(reading.time.nanoseconds)"
      switch reading.reader {
      case .account: break
      case .session(let session): line += " session \(session)"
      case .program(let process):
        guard let start = Caller.start(of: process) else { continue }
        line += " \(reading.hasRead ? "program" : "writer") \(process) \(start)"
      }
      lines.append(line)
    }
    text = lines.joined(separator: "\n")
  }

  /// What of it counts now, the oldest first: of programs that go on, of sessions of this run of the machine, and of
  /// accounts.
  func readings(at time: Timestamp) -> [Readings.Reading] {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let isSameRun = lines.first.map(String.init) == Self.run && !Self.run.isEmpty
    return lines.dropFirst().compactMap { line in
      let words = line.split(separator: " ")
      let numbers = words.prefix(4).compactMap { Int64($0) }
      guard numbers.count == 4, numbers[0] > 0, numbers[1] > 0, numbers[2] >= 0, numbers[3] >= 0,
        numbers[3] <= time.nanoseconds,
        let reader = Self.reader(words.dropFirst(4), isSameRun)
      else { return nil }
      return .init(
        item: numbers[0], account: numbers[1], reader: reader, version: numbers[2],
        time: Timestamp(nanoseconds: numbers[3]), hasRead: words.dropFirst(4).first != "writer")
    }
  }

  private static func reader(_ words: ArraySlice<Substring>, _ isSameRun: Bool) -> Readings.Reader? {
    if words.isEmpty { return .account }
    let numbers = words.dropFirst().compactMap { Int64($0) }
    guard isSameRun, numbers.count == words.count - 1, let id = numbers.first.flatMap(Int32.init(exactly:)) else {
      return nil
    }
    switch words.first {
    case "session" where numbers.count == 1: return .session(id)
    case "program", "writer":
      return numbers.count == 2 && id > 0 && Caller.start(of: id) == numbers[1] ? .program(id) : nil
    default: return nil
    }
  }

  /// The run of the machine, until it starts anew; empty where the kernel does not tell.
  private static let run: String = {
    let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
    return text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
  }()
}
