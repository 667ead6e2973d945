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
/// 3. A document that is truncated at open(2) is based on the version that this program had read, else on the current
///    version.
/// 4. A program, and so an account, knows the versions that its account saved. It does not know versions in which its
///    account appended to one that none of its programs had read.
/// 5. This is remembered for a day, for 4096 pairs of program and document; those read longest ago are forgotten first.
///    Only documents in a share are remembered.
/// 6. A save in place is based on the version that the writing program had read, as in rule 3. If it writes through a
///    file that it opened to read and write, that is the version that it saw there last, also if its own account saved
///    a later one, unless the program did that itself. Appending is based on the current version, and so is writing a
///    locked range: programs that take turns look at the writes of the others. When a program joins a session, its
///    first write elsewhere than at the end is checked: if it had read an older version than the session's base, the
///    session's next version is based on that.
/// 7. If a file becomes another item (rules 3, 9 and 10 of ``Identity``), a program that saw its latest contents
///    through it has seen the version that these are from then on. A program that saw only earlier contents has seen
///    nothing of the item.
struct Readings {
  /// Nanoseconds.
  private static let window: Int64 = 86_400_000_000_000
  private static let limit = 4096

  private struct Reader: Hashable {
    let item: Int64
    let account: Int64
    /// 0 for whatever program of the account read last.
    let process: Int32
  }

  private struct Reading {
    let version: Int64
    let time: Timestamp
  }

  private var readings = AgingTable<Reader, Reading>()

  var count: Int { readings.count }

  mutating func note(_ version: Int64, of item: Int64, by account: Int64, _ process: Int32, at time: Timestamp) {
    for process in process == 0 ? [0] : [process, 0] {
      readings.append(
        Reader(item: item, account: account, process: process), Reading(version: version, time: time))
    }
    while readings.count > Self.limit, let oldest = readings.oldestKey { readings.remove(oldest) }
  }

  /// The version that a program read, or with process 0 any of the account; nil where none is remembered.
  func version(of item: Int64, by account: Int64, _ process: Int32, at time: Timestamp) -> Int64? {
    let reading = readings[Reader(item: item, account: account, process: process)]
    return reading.flatMap { time.nanoseconds - $0.time.nanoseconds < Self.window ? $0.version : nil }
  }
}
