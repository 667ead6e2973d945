import SheafModel

/// Which version of a shared document a program had before it when it saves: what its version is based on.
///
/// A save says nothing of what it was made from: not one that replaces the document whole, by a new file under its name
/// or by truncating it first, and not one in place, which may write what it made of an earlier version. So it is
/// remembered who read what:
/// 1. A program has read the version that its account saw when the program read from the document, or opened it for
///    reading only. (What it reads may come from the kernel's cache, so that only the opening is seen.) Opening it to
///    write counts where the program had not read it yet: to save, programs open a document again without looking at
///    it. What a program saves it knows as if it had read it.
/// 2. A file that takes a document's name is based on what the program that renames it had read, else on what its
///    account read last (by the program that made the file), else on the current version.
/// 3. A document that is truncated as it is opened is based on what that program had read, else on the current version.
/// 4. A program, and so an account, knows what its account saved on top of what it read. It does not know what that
///    appended to a version which it had not read.
/// 5. It is remembered for a day, of 4096 programs and documents; those read longest ago are forgotten first. Only what
///    is in a share is remembered.
/// 6. A save in place is based on what the program that writes it had read, as in rule 3. Where it writes through a
///    file that it opened to read and write, that is the version that it saw there last, also where its own account
///    saved a later one, unless the program did that itself. Appending is on top of what is there, and so is writing
///    what is locked: programs that take turns look at what the others wrote. Each program that joins a session is
///    looked at when it first writes elsewhere than at the end: where it had read less than the session began from, the
///    session's next version is based on that.
/// 7. Where a file becomes another item (rules 3, 9 and 10 of ``Identity``), who saw through it the latest that it held
///    has seen the version which that is from then on. Who saw less has seen nothing of the item.
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
