import SheafModel
import SheafStore

/// Notes which versions programs have seen when they save: carries out the rules of ``Readings``.
///
/// Rooms: `ConnectedAccounts`, `InodeTable`, `OpenFiles`, `Readings`, `ShareBook`.
extension Library {
  /// Notes what a program reads through an open file (rule 1 of ``Readings``).
  ///
  /// - Parameter opens: Whether it just opened it.
  func noteReading(_ file: OpenFile, opens: Bool = false) {
    let inode = file.inode
    guard !shares.isEmpty || connectedAccounts.contains(inode.row.owner) else { return }
    guard let account = file.account, let item = try? item(of: inode), item.version > 0 else { return }
    let version = file.draft.session.flatMap { $0.number ?? $0.base } ?? item.version
    guard version != file.readVersion, hasOthers(inode) else { return }
    let process = file.process
    let time = clock()
    if opens, file.canWrite, readings.version(of: item.id, by: account, .program(process), at: time) != nil { return }
    file.readVersion = version
    // What is opened to be written need not have been looked at.
    let session = opens && file.canWrite ? nil : Caller.session(of: process)
    let hasRead = !(opens && file.canWrite) || file.canRead && !file.truncates
    readings.note(version, of: item.id, by: account, process, of: session, hasRead: hasRead, at: time)
    maintenance.wake(isChanged: false)
  }

  /// Whether somebody else may change a document: people of its share, or another machine of its owner's.
  private func hasOthers(_ inode: Inode) -> Bool {
    connectedAccounts.contains(inode.row.owner) || (try? share(of: inode)) ?? nil != nil
  }

  /// Notes which version someone sees who may write what they make of it through the same open file (rule 6 of
  /// ``Readings``).
  func noteSeen(_ file: OpenFile) throws {
    guard file.canRead, file.canWrite, file.inode.isRegular, let item = try item(of: file.inode) else { return }
    // Unsaved changes of the account will be in its next version.
    let number = file.draft.session.map { $0.number ?? item.lastVersion + 1 } ?? item.version
    file.seen = number > 0 ? SeenVersion(item: item.id, number: number) : nil
  }

  /// Notes that those who have a file open know what it holds as a version of the item that it is from now on (rule 7
  /// of ``Readings``).
  ///
  /// - Parameters:
  ///   - former: The version that was current of the item that it was.
  ///   - latter: The version of the item that it is which holds its contents.
  func carrySeen(_ ino: Int64, from former: SeenVersion, to latter: SeenVersion) {
    guard let inode = inodes[ino], inode.openCount > 0 else { return }
    for file in files.all where file.inode === inode {
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
    // Whoever only emptied it wrote through no handle.
    if session.writers.isEmpty, let caller = session.truncater { noteKnown(version, of: inode, by: caller) }
    let isTogether = inode.openCount > 1
    for (handle, writer) in session.writers {
      guard let file = files[handle] else {
        // It closed the file before its save was complete.
        if !writer.onlyAppends { _ = noteKnown(version, of: inode, by: writer.account, writer.saver.process) }
        continue
      }
      // A program that only appended need not know the contents before.
      if writer.onlyAppends, let base = session.base, let item = inode.item {
        let known = try? self.base(of: item, inode, writtenThrough: file)
        if known ?? 0 < base { continue }
      }
      file.seen = version
      noteKnown(version, by: file)
      guard isTogether else { continue }
      if inode.savers.count >= Self.saverLimit { inode.savers = [:] }
      inode.savers[file.process] = version
    }
  }

  /// Notes that a program knows the version that it saved (rule 1 of ``Readings``).
  private func noteKnown(_ version: SeenVersion, by file: OpenFile) {
    guard noteKnown(version, of: file.inode, by: file.account, file.process) else { return }
    file.readVersion = version.number
  }

  /// Notes that a program knows the version that it made by giving a file the document's name.
  func noteKnown(_ version: SeenVersion, of inode: Inode, by caller: Caller) {
    _ = noteKnown(version, of: inode, by: caller.account, caller.process)
  }

  private func noteKnown(_ version: SeenVersion, of inode: Inode, by account: Int64?, _ process: Int32) -> Bool {
    guard process != 0, let account, !shares.isEmpty || connectedAccounts.contains(inode.row.owner), hasOthers(inode)
    else { return false }
    readings.noteSaved(
      version.number, of: version.item, by: account, process, of: Caller.session(of: process), at: clock())
    return true
  }

  /// The version that a save in place is based on (rule 6 of ``Readings``); nil before any.
  func base(of item: ItemRow, _ inode: Inode, writtenThrough file: OpenFile) throws -> Int64? {
    let process = file.process
    guard process != 0, !holdsLock(process, of: inode) else { return item.version }
    // What is written to a document that was emptied for it is based on what its emptying was.
    let company: Company = file.truncates ? .session : .program
    let read = try base(of: item, inode, savedBy: file.account, process, orReadBy: company)
    guard let seen = file.seen, seen.item == item.id else { return read }
    let saved = inode.savers[process].flatMap { $0.item == item.id ? $0.number : nil } ?? 0
    let known = max(seen.number, saved)
    return known == 0 ? nil : read.map { min($0, known) }
  }

  /// Whether a program, or another one of its session, holds a lock of a file.
  private func holdsLock(_ process: Int32, of inode: Inode) -> Bool {
    let holders = locks.holders(of: UInt64(inode.ino))
    if holders.isEmpty || holders.contains(process) { return !holders.isEmpty }
    guard let session = Caller.session(of: process) else { return false }
    return holders.contains { Caller.session(of: $0) == session }
  }

  /// Programs of which one may have read what another one saves.
  enum Company {
    case program, session, account
  }

  /// The version that a save of the whole document by `caller` is based on (rules 2 to 4 of ``Readings``); nil before
  /// any.
  ///
  /// - Parameter company: The programs that may have read what is saved, if that program did not.
  func base(of item: ItemRow, _ inode: Inode, savedBy caller: Caller, orReadBy company: Company) throws -> Int64? {
    try base(of: item, inode, savedBy: caller.account, caller.process, orReadBy: company)
  }

  private func base(
    of item: ItemRow, _ inode: Inode, savedBy account: Int64?, _ process: Int32, orReadBy company: Company
  ) throws -> Int64? {
    guard item.version > 0 else { return nil }
    let isConnected = connectedAccounts.contains(item.owner)
    guard !shares.isEmpty || isConnected, let account,
      try isConnected || shares.active(item.id) != nil || share(ofFolder: inode.row.parent) != nil
    else { return item.version }
    let time = clock()
    func version(readBy reader: Readings.Reader) -> Int64? {
      readings.version(of: item.id, by: account, reader, at: time)
    }
    let own = process == 0 ? nil : version(readBy: .program(process))
    let read =
      switch company {
      case .program: own
      case .session:
        readings.version(
          of: item.id, by: account, emptiedBy: process, of: Caller.session(of: process), at: time)
      case .account: own ?? version(readBy: .account)
      }
    // What a program saved may have gone beside the document since, which has an earlier version again then.
    if isConnected, let read, read > item.version, read <= item.lastVersion { return read }
    guard let read, read < item.version else { return item.version }
    let readByAny = version(readBy: .account) ?? 0
    let first = max(read + 1, item.version - Self.knownLimit)
    for number in stride(from: min(item.version, readByAny), through: first, by: -1) {
      guard let version = try self.read({ try $0.version(item.id, number) }), version.author == account,
        try !isConnected || !isReceived(version, of: item)
      else { continue }
      return number
    }
    return read > 0 ? read : nil
  }

  /// How many versions are looked at to find one that an account knows.
  private static let knownLimit: Int64 = 256
}
