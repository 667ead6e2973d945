import SheafModel

/// Which version of a shared document a program has seen when it saves: the base of its version.
///
/// A save does not say from which version it was made: neither one that replaces the whole document, by a new file
/// under its name or by truncating it first, nor one in place, which may write contents made from an earlier version.
/// So the library remembers which program read which version:
/// 1. A program has read the version that its account saw when the program read from the document, or opened it for
///    reading only. (Reads may be answered from the kernel's cache, so the library sees only the opening.) Opening it
///    for writing counts if the program had not read it yet: to save, programs open a document again without looking at
///    it. A program knows a version that it saves as if it had read it.
/// 2. A file that takes a document's name is based on the version that the renaming program had read, else on the one
///    that its account read last (by the program that made the file), else on the current version.
/// 3. A document that is emptied by its name, as open(2) with O_TRUNC does, is based on the version that this program
///    had read, else on the one that another program of its session (setsid(2)) read last, as in
///    `text=$(cat doc); … > doc`, else on the current version. A program that never read the document itself, as a shell
///    does not, and only knows what it saved, also knows what another one of its session read since. What a program saved
///    counts for that program alone: those of a session that make a document anew each time are made from nothing that
///    they read.
/// 4. A program, and so an account, knows the versions that its account saved. It does not know versions in which its
///    account appended to one that none of its programs had read.
/// 5. This is remembered for a day, for 4096 readers of documents, where a program, its session and its account are a
///    reader each; those that read longest ago are forgotten first. Only documents in a share
///    are remembered, and those of connected accounts: another machine changes them as another account would. It
///    outlives the library's process (`StoringReadings.swift`).
/// 6. A save in place is based on the version that the writing program had read, else on the current one. If it writes
///    through a file that it opened to read and write, that is the version that it saw there last, also if its own
///    account saved a later one, unless the program did that itself. Appending is based on the current version, and so
///    is writing while the program, or another one of its session (setsid(2)), holds a lock of the file: programs that
///    take turns look at the writes of the others. When a program joins a session, its first write elsewhere than at the
///    end is checked: if it had read an older version than the session's base, the session's next version is based on
///    that.
/// 7. If a file becomes another item (rules 3, 9 and 10 of ``Identity``), a program that saw its latest contents
///    through it has seen the version that these are from then on. A program that saw only earlier contents has seen
///    nothing of the item.
struct Readings {
  /// Nanoseconds.
  static let window: Int64 = 86_400_000_000_000
  private static let limit = 4096

  /// Who reads, of an account.
  enum Reader: Hashable {
    /// Whatever program of the account.
    case account
    /// Whatever program of a session (setsid(2)), by its id.
    case session(Int32)
    case program(Int32)
  }

  /// A reader, and the version that it read last.
  struct Reading: Hashable {
    let item: Int64
    let account: Int64
    let reader: Reader
    let version: Int64
    let time: Timestamp
    /// Whether the reader ever read from the document, and did not only save it or open it for writing.
    var hasRead = true
  }

  private struct Key: Hashable {
    let item: Int64
    let account: Int64
    let reader: Reader
  }

  private var readings = AgingTable<Key, Reading>()
  /// Whether anything changed since ``takeChanged(_:)``.
  private(set) var isChanged = false

  var count: Int { readings.count }

  /// Notes that a program read a version, and with it its session and its account.
  ///
  /// - Parameters:
  ///   - session: That of the program; nil where it is not known.
  ///   - hasRead: Whether the program may have read it; else it saved it, or opened it for writing.
  mutating func note(
    _ version: Int64, of item: Int64, by account: Int64, _ process: Int32, of session: Int32?, hasRead: Bool = true,
    at time: Timestamp
  ) {
    let readers: [Reader?] = [process == 0 ? nil : .program(process), session.map { .session($0) }, .account]
    for reader in readers.compactMap(\.self) {
      let former = readings[Key(item: item, account: account, reader: reader)]
      add(
        Reading(
          item: item, account: account, reader: reader, version: version, time: time,
          hasRead: hasRead || former?.hasRead ?? false))
    }
  }

  /// Notes that a program saved a version, which its account knows from then on (rules 1, 3 and 4).
  mutating func noteSaved(
    _ version: Int64, of item: Int64, by account: Int64, _ process: Int32, of session: Int32?, at time: Timestamp
  ) {
    if let session { readings.remove(Key(item: item, account: account, reader: .session(session))) }
    note(version, of: item, by: account, process, of: nil, hasRead: false, at: time)
  }

  mutating func add(_ reading: Reading) {
    readings.append(Key(item: reading.item, account: reading.account, reader: reading.reader), reading)
    while readings.count > Self.limit, let oldest = readings.oldestKey { readings.remove(oldest) }
    isChanged = true
  }

  /// Notes that versions of a document have other numbers, by the former ones.
  mutating func renumber(_ item: Int64, _ numbers: [Int64: Int64]) {
    for reading in readings.newestValues(Self.limit).reversed() {
      guard reading.item == item, let number = numbers[reading.version] else { continue }
      add(
        Reading(
          item: item, account: reading.account, reader: reading.reader, version: number, time: reading.time,
          hasRead: reading.hasRead))
    }
  }

  /// The versions of a document that readers are remembered to know.
  func versions(of item: Int64) -> Set<Int64> {
    Set(readings.newestValues(Self.limit).lazy.filter { $0.item == item }.map(\.version))
  }

  /// The version that a reader read last; nil where none is remembered.
  func version(of item: Int64, by account: Int64, _ reader: Reader, at time: Timestamp) -> Int64? {
    reading(of: item, by: account, reader, at: time)?.version
  }

  private func reading(of item: Int64, by account: Int64, _ reader: Reader, at time: Timestamp) -> Reading? {
    let reading = readings[Key(item: item, account: account, reader: reader)]
    return reading.flatMap { time.nanoseconds - $0.time.nanoseconds < Self.window ? $0 : nil }
  }

  /// The version that a program knows which empties a document (rule 3); nil where none is remembered.
  func version(
    of item: Int64, by account: Int64, emptiedBy process: Int32, of session: Int32?, at time: Timestamp
  ) -> Int64? {
    let own = process == 0 ? nil : reading(of: item, by: account, .program(process), at: time)
    if let own, own.hasRead { return own.version }
    let others = session.flatMap { version(of: item, by: account, .session($0), at: time) }
    return [own?.version, others].compactMap(\.self).max()
  }

  /// The latest of what is remembered, the oldest of them first; nil where that is as it was when this was asked last.
  mutating func takeChanged(_ limit: Int) -> [Reading]? {
    guard isChanged else { return nil }
    isChanged = false
    return readings.newestValues(limit).reversed()
  }

  /// Notes that what ``takeChanged(_:)`` gave could not be stored.
  mutating func markChanged() { isChanged = true }
}
