import Glibc
import SheafModel
import SheafStore

/// Which version of a shared document a program had before it when it saves: what its version is based on.
///
/// A save says nothing of what it was made from: not one that replaces the document whole, by a new file under its name or by
/// truncating it first, and not one in place, which may write what it made of an earlier version. So it is remembered who
/// read what:
/// 1. A program has read the version that its account saw when the program read from the document, or opened it for
///    reading only. (What it reads may come from the kernel's cache, so that only the opening is seen.) Opening it to write
///    counts where the program had not read it yet: to save, programs open a document again without looking at it.
/// 2. A file that takes a document's name is based on what the program that renames it had read, else on what its account
///    read last (by the program that made the file), else on the current version.
/// 3. A document that is truncated as it is opened is based on what that program had read, else on the current version.
/// 4. A program, and so an account, knows what its account saved: versions of its own are on top of what it read.
/// 5. It is remembered for a day, of 4096 programs and documents; those read longest ago are forgotten first. Only what is
///    in a share is remembered.
/// 6. A save in place is based on what the program that writes it had read, as in rule 3. Where it writes through a file that it
///    opened to read and write, that is the version that it saw there last, also where its own account saved a later one,
///    unless the program did that itself. Appending is on top of what is there, and so is writing what is locked: programs
///    that take turns look at what the others wrote.
/// 7. Where a file becomes another item (rules 3, 9 and 10 of ``Identity``), who saw through it the latest that it held has seen
///    the version which that is from then on. Who saw less has seen nothing of the item.
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

  /// Notes which version someone sees who may write what they make of it through the same open file (rule 6 of
  /// ``Readings``).
  func noteSeen(_ file: OpenFile) throws {
    guard file.canRead, file.canWrite, file.inode.isRegular, let item = try item(of: file.inode) else { return }
    // What the account has changed and not saved yet is in its next version.
    let number = file.draft.session.map { $0.number ?? item.lastVersion + 1 } ?? item.version
    file.seen = number > 0 ? SeenVersion(item: item.id, number: number) : nil
  }

  /// Has those who have a file open know what it holds as a version of the item that it is from now on (rule 7 of
  /// ``Readings``).
  ///
  /// - Parameters:
  ///   - former: The version that was current of the item that it was.
  ///   - latter: The version of the item that it is which holds its contents.
  func carrySeen(_ ino: Int64, from former: SeenVersion, to latter: SeenVersion) {
    guard let inode = inodes[ino], inode.openCount > 0 else { return }
    for file in files.values where file.inode === inode {
      guard let seen = file.seen, seen.item == former.item else { continue }
      file.seen = SeenVersion(item: latter.item, number: seen.number >= former.number ? latter.number : 0)
    }
    inode.savers = inode.savers.compactMapValues {
      $0.item == former.item && $0.number >= former.number ? latter : nil
    }
  }

  /// Programs of which it is noted what they saved in a file that others have open, too.
  private static let saverLimit = 64

  /// Notes that those who wrote in a session have seen the version that it made.
  func noteSaved(_ version: SeenVersion, by session: EditingSession, _ inode: Inode) {
    let isTogether = inode.openCount > 1
    for handle in session.writers.keys {
      guard let file = files[handle] else { continue }
      file.seen = version
      guard isTogether else { continue }
      if inode.savers.count >= Self.saverLimit { inode.savers = [:] }
      inode.savers[Caller.process(of: file.thread)] = version
    }
  }

  /// The version that a save in place is based on (rule 6 of ``Readings``); nil before any.
  func base(of item: ItemRow, _ inode: Inode, writtenThrough file: OpenFile) throws -> Int64? {
    let process = Caller.process(of: file.thread)
    guard process != 0, !locks.isLocked(UInt64(inode.ino)) else { return item.version }
    let read = try base(of: item, inode, savedBy: file.account, process, asksOthers: false)
    guard let seen = file.seen, seen.item == item.id else { return read }
    let saved = inode.savers[process].flatMap { $0.item == item.id ? $0.number : nil } ?? 0
    let known = max(seen.number, saved)
    return known == 0 ? nil : read.map { min($0, known) }
  }

  /// The version that a save of the whole document by `caller` is based on (rules 2 to 4 of ``Readings``); nil before any.
  ///
  /// - Parameter asksOthers: Whether another program of the account may have read what is saved.
  func base(of item: ItemRow, _ inode: Inode, savedBy caller: Caller, asksOthers: Bool) throws -> Int64? {
    try base(of: item, inode, savedBy: caller.account, caller.process, asksOthers: asksOthers)
  }

  private func base(
    of item: ItemRow, _ inode: Inode, savedBy account: Int64?, _ process: Int32, asksOthers: Bool
  ) throws -> Int64? {
    guard item.version > 0 else { return nil }
    guard !shares.isEmpty, let account,
      try shares.active(item.id) != nil || share(ofFolder: inode.row.parent) != nil
    else { return item.version }
    let time = clock()
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
