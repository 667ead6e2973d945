import Glibc
import SheafModel
import SheafStore

/// Which version of a shared document a program had before it when it saves: what its version is based on.
///
/// A save in place is based on the version that was current at its first write. One that replaces the document whole, by a
/// new file under its name or by truncating it first, says nothing of what it was made from. So it is remembered who read
/// what:
/// 1. A program has read the version that its account saw when the program read from the document, or opened it for
///    reading only. (What it reads may come from the kernel's cache, so that only the opening is seen.) Opening it to write
///    counts where the program had not read it yet: to save, programs open a document again without looking at it.
/// 2. A file that takes a document's name is based on what the program that renames it had read, else on what its account
///    read last (by the program that made the file), else on the current version.
/// 3. A document that is truncated as it is opened is based on what that program had read, else on the current version.
/// 4. A program, and so an account, knows what its account saved: versions of its own are on top of what it read.
/// 5. It is remembered for a day, of 4096 programs and documents; those read longest ago are forgotten first. Only what is
///    in a share is remembered: alone, nobody is passed over.
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

  private var readings: [Reader: Reading] = [:]
  private var order = AgeQueue<Reader>()

  var count: Int { readings.count }

  mutating func note(_ version: Int64, of item: Int64, by account: Int64, _ process: Int32, at time: Timestamp) {
    for process in process == 0 ? [0] : [process, 0] {
      let reader = Reader(item: item, account: account, process: process)
      readings[reader] = Reading(version: version, time: time)
      order.append(reader)
    }
    while readings.count > Self.limit, let oldest = order.popFirst() { readings[oldest] = nil }
    order.compact(keeping: readings.count) { readings[$0] != nil }
  }

  /// The version that a program read, or with process 0 any of the account; nil where none is remembered.
  func version(of item: Int64, by account: Int64, _ process: Int32, at time: Timestamp) -> Int64? {
    let reading = readings[Reader(item: item, account: account, process: process)]
    return reading.flatMap { time.nanoseconds - $0.time.nanoseconds < Self.window ? $0.version : nil }
  }
}

extension Library {
  /// Notes what a program reads through an open file (rule 1 of ``Readings``).
  ///
  /// - Parameter opens: Whether it just opened it.
  func noteReading(_ file: OpenFile, opens: Bool = false) {
    if shares.isEmpty { return }
    let inode = file.inode
    guard let account = file.account, let item = try? item(of: inode), item.version > 0 else { return }
    let version = file.draft.session.flatMap { $0.number ?? $0.base } ?? item.version
    guard version != file.readVersion, (try? share(of: inode)) ?? nil != nil else { return }
    let process = Caller.process(of: file.thread)
    let time = clock()
    if opens, file.canWrite, readings.version(of: item.id, by: account, process, at: time) != nil { return }
    file.readVersion = version
    readings.note(version, of: item.id, by: account, process, at: time)
  }

  /// The version that a save of the whole document by `caller` is based on (rules 2 to 4 of ``Readings``); nil before any.
  ///
  /// - Parameter asksOthers: Whether another program of the account may have read what is saved.
  func base(of item: ItemRow, _ inode: Inode, savedBy caller: Caller, asksOthers: Bool) throws -> Int64? {
    guard item.version > 0 else { return nil }
    guard !shares.isEmpty, let account = caller.account,
      try shares.active(item.id) != nil || share(ofFolder: inode.row.parent) != nil
    else { return item.version }
    let time = clock()
    let process = caller.process
    var read = process == 0 ? nil : readings.version(of: item.id, by: account, process, at: time)
    if read == nil, asksOthers { read = readings.version(of: item.id, by: account, 0, at: time) }
    guard let read, read < item.version else { return item.version }
    for number in stride(from: item.version, to: max(read, item.version - 64), by: -1)
    where try self.read({ try $0.version(item.id, number) })?.author == account {
      return number
    }
    return read
  }
}
