import Glibc
import SheafModel
import SheafStore

/// Temporary files that programs make in `Shared/OWNER`, beside a document that is shared by itself: editors write a
/// new file there and rename it over the document, or rename the document to a backup first.
///
/// Rules:
/// 1. Only the account that made such a file sees it, by its own `Shared/OWNER`. The store knows nothing of it: it is no
///    item, has no version and no event, and nobody's quota counts it. At most its bytes are in chunks, which the next
///    sweep frees once it is gone.
/// 2. A program can make one where the account may write a document in that `Shared/OWNER`, and under a name that says
///    that it will not stay (``FileRole/looksPassing(_:)``), or as mkstemp(3) opens it. Anything else would be lost to
///    a person who believes to have shared it, and is refused (EACCES). So is what a database has beside its file until
///    a transaction is over: others would take up a half transaction without it.
/// 3. It is gone when it is removed, 15 s after nobody has it open and its program has ended, when its account loses
///    the share, and with the process.
/// 4. Renamed over a document that its account may write it is that document's next version, as below a shared folder
///    (rules 3 and 4 of ``Identity``).
/// 5. A document that a program renames to the name of a backup, or links to one, stays where it is for everybody: the
///    backup is a temporary file with the contents of that moment. The program itself does not find the document any
///    more, for 15 s or until it makes the name again, by which it makes the document anew.
///
/// Rooms: `InodeTable`, `ShownEntries`, `TemporaryFiles`.
extension Library {
  /// Bytes of a document that can be set aside.
  private static let asideLimit: Int64 = 1 << 30

  // MARK: - Finding

  /// The inode of a name in `Shared/OWNER`: an entry, or a temporary file of the account.
  func shared(_ account: Int64, owner: Int64, _ name: [UInt8], _ caller: Caller) throws -> Inode? {
    let place = TemporaryFiles.Name(account: account, owner: owner, name: name)
    if let entry = try listing(of: account, owner: owner)[name] {
      return temporaryFiles.isAside(place, for: caller.process, at: clock()) ? nil : try inode(entry.ino)
    }
    guard let inode = temporary(place) else { return nil }
    return try participant(account, in: inode) == nil ? nil : inode
  }

  /// The temporary file that has a name; nil for none.
  private func temporary(_ place: TemporaryFiles.Name) -> Inode? {
    temporaryFiles[place].flatMap { temporary($0, of: place.account) }
  }

  private func temporary(_ file: TemporaryFiles.File, of account: Int64) -> Inode? {
    inodes[file.ino].flatMap { $0.isOrphan && $0.temporaryOf == account ? $0 : nil }
  }

  /// The temporary files of an account in `Shared/OWNER`, as entries of no share.
  func temporaryEntries(_ account: Int64, owner: Int64, but entries: [SharedEntry]) throws -> [SharedEntry] {
    if temporaryFiles.isEmpty { return [] }
    let taken = Set(entries.map(\.name))
    return try temporaryFiles.names(of: account, owner: owner).compactMap { place in
      guard !taken.contains(place.name), let inode = temporary(place), try participant(account, in: inode) != nil else {
        return nil
      }
      return SharedEntry(name: place.name, share: 0, ino: inode.ino)
    }
  }

  // MARK: - Making

  /// Makes a temporary file and opens it (rule 2).
  func createTemporary(
    _ account: Int64, owner: Int64, _ name: [UInt8], mode: UInt32, flags: Int32, _ caller: Caller
  ) throws -> (attributes: Attributes, handle: UInt64) {
    let isNamedByChance = flags & (O_ACCMODE | O_EXCL) == O_RDWR | O_EXCL && mode & 0o777 == 0o600
    let place = TemporaryFiles.Name(account: account, owner: owner, name: name)
    // patch(1) puts an `o` before the six, and opens with the document's mode.
    let plain = TemporaryFiles.Name(account: account, owner: owner, name: Array(name.dropLast(7) + name.suffix(6)))
    let isPatched =
      try flags & O_EXCL != 0 && name.dropLast(6).last == UInt8(ascii: "o") && isNamedAfterEntry(plain)
    let inode = try makeTemporary(
      place, mode: S_IFREG | mode, isPassing: isNamedByChance || isPatched, caller)
    return (try attributes(inode, caller), register(OpenFile(inode: inode, flags: flags, caller)))
  }

  /// Makes a symbolic link beside a document, as emacs does for a lock.
  ///
  /// - Throws: `accessDenied` where no temporary file can be made; `exists`, `nameTooLong`, `noSpace`.
  package func symlinkShared(
    _ account: Int64, owner: Int64, _ name: [UInt8], target: [UInt8], _ caller: Caller
  ) throws -> Attributes {
    try locked {
      guard target.count < 4096 else { throw SheafError(.nameTooLong) }
      if try shared(account, owner: owner, name, caller) != nil { throw SheafError(.exists) }
      let inode = try makeTemporary(
        TemporaryFiles.Name(account: account, owner: owner, name: name), mode: S_IFLNK | 0o777, caller)
      (inode.row.target, inode.row.size) = (target, Int64(target.count))
      return try attributes(inode, caller)
    }
  }

  /// Whether a name is that of an entry with what mkstemp(3) puts behind it: a dot and six letters and digits.
  private func isNamedAfterEntry(_ place: TemporaryFiles.Name) throws -> Bool {
    let (name, ending) = (Array(place.name.dropLast(7)), place.name.suffix(7))
    guard ending.first == UInt8(ascii: "."),
      ending.dropFirst().allSatisfy({ (48...57).contains($0) || (65...90).contains($0 & ~32) && $0 > 64 })
    else { return false }
    return try listing(of: place.account, owner: place.owner)[name] != nil
  }

  /// Whether a name is that of the journal, the log or the index of the log of an entry (SQLite, "Temporary Files Used
  /// By SQLite").
  private func isOfDatabase(_ place: TemporaryFiles.Name) throws -> Bool {
    let entries = try listing(of: place.account, owner: place.owner)
    return ["-journal", "-wal", "-shm"].contains { ending in
      place.name.suffix(ending.utf8.count).elementsEqual(ending.utf8)
        && entries[Array(place.name.dropLast(ending.utf8.count))] != nil
    }
  }

  private func makeTemporary(
    _ place: TemporaryFiles.Name, mode: UInt32, isPassing: Bool = false, _ caller: Caller
  ) throws -> Inode {
    try Self.checkLength(place.name)
    guard try isPassing || FileRole.looksPassing(place.name) || isNamedAfterEntry(place), !Self.isReserved(place.name),
      try !isOfDatabase(place), let (document, share) = try documentBeside(place, caller)
    else { throw Self.denied }
    guard temporaryFiles.count(of: place.account) < TemporaryFiles.limit else {
      throw SheafError(
        .noSpace, reason: "is one of too many temporary files beside shared documents",
        advice: "remove some, or end the programs that made them")
    }
    try requireRoom(for: 0)
    let time = clock()
    var row = newRow(mode & S_IFMT, in: try folder(document.row.parent), place.name, mode: mode & 0o7777, caller, time)
    if mode & S_IFMT == S_IFREG { row.content = .empty }
    let inode = Inode(row)
    (inode.isOrphan, inode.isNameless) = (true, inode.isRegular)
    (inode.orphanShare, inode.temporaryOf) = (share, place.account)
    inode.xattrSpace = XattrSpace()
    inodes.insert(inode)
    // As if somebody had it open for as long as it has the name.
    inode.draft(of: place.account).openCount += 1
    if inode.isRegular { load(inode, inode.draft(of: place.account)) }
    temporaryFiles.insert(.init(ino: inode.ino, process: caller.process, time: time), place)
    return inode
  }

  /// A document in the folder of a name that the caller may write, if any; the one after which the name is named, if
  /// there is one.
  private func documentBeside(_ place: TemporaryFiles.Name, _ caller: Caller) throws -> (document: Inode, share: Int64)?
  {
    let entries = try listing(of: place.account, owner: place.owner).entries
    let namesake = entries.first { FileRole.isNamedAfter(place.name, $0.name) }
    for entry in [namesake].compactMap({ $0 }) + entries {
      let inode = try inode(entry.ino)
      guard inode.isRegular, let member = try participant(place.account, in: inode), Self.allows(.write, member)
      else { continue }
      return (inode, entry.share)
    }
    return nil
  }

  // MARK: - Renaming and removing

  /// Renames a temporary file (rule 4).
  func renameTemporary(_ place: TemporaryFiles.Name, to newName: [UInt8], _ mode: RenameMode, _ caller: Caller) throws {
    guard let inode = temporary(place) else { throw SheafError(.notFound) }
    try allow(.write, inode, caller)
    let newPlace = TemporaryFiles.Name(account: place.account, owner: place.owner, name: newName)
    if let entry = try listing(of: place.account, owner: place.owner)[newName] {
      let isAside = temporaryFiles.isAside(newPlace, for: caller.process, at: clock())
      if mode == .noReplace, !isAside { throw SheafError(.exists) }
      return try replace(entry, at: newPlace, with: inode, from: place, caller)
    }
    guard FileRole.looksPassing(newName), !Self.isReserved(newName), try !isOfDatabase(newPlace) else {
      throw Self.denied
    }
    if temporaryFiles[newPlace] != nil {
      if mode == .noReplace { throw SheafError(.exists) }
      removeTemporary(newPlace)
    }
    temporaryFiles.rename(place, to: newPlace, at: clock())
    inode.row.name = newName
  }

  /// Makes a temporary file the next version of a document.
  private func replace(
    _ entry: SharedEntry, at newPlace: TemporaryFiles.Name, with inode: Inode, from place: TemporaryFiles.Name,
    _ caller: Caller
  ) throws {
    let document = try self.inode(entry.ino)
    if document.isFolder { throw SheafError(.isDirectory) }
    try allow(.write, document, caller)
    guard inode.isNameless, document.isRegular, document.row.nlink == 1 else { throw Self.denied }
    let draft = inode.draft(of: place.account)
    try prepareNaming(inode, draft, clock())
    // While the file can still be found by its own name: a full disk leaves both as they are.
    try storeChunks(of: inode, draft)
    shownEntries.begin(.init(account: place.account, door: caller.door, names: [place.name, newPlace.name]))
    // It was made beside any of the documents. What others share one by one is a zone each here, with its own owner.
    if inode.row.owner != document.row.owner { inode.setOwner(document.row.owner) }
    let remade = Result {
      try remake(
        document, nil, folder(document.row.parent), document.row.name, mode: inode.row.mode, caller, clock(),
        holding: inode)
    }
    // Even if storing the version failed, the file can have the name by now. Autosave then stores the version.
    if !inode.isNameless {
      temporaryFiles.remove(place)
      temporaryFiles.endAside(newPlace)
      draft.openCount -= 1
    }
    _ = try remade.get()
    if let item = try item(of: inode) {
      noteKnown(SeenVersion(item: item.id, number: item.version), of: inode, by: caller)
    }
    tell(.appearance(inode.ino), from: 0)
    if draft.writerCount == 0 { try endAfterClose(inode, draft) }
  }

  /// Makes a temporary file with the contents of a document, which stays where it is (rule 5).
  ///
  /// - Parameter hides: whether the program does not find the document any more.
  func setAside(
    _ entry: SharedEntry, _ place: TemporaryFiles.Name, as newName: [UInt8], hides: Bool, _ mode: RenameMode,
    _ caller: Caller
  ) throws -> Inode {
    let document = try inode(entry.ino)
    try allow(.write, document, caller)
    guard document.isRegular else { throw Self.denied }
    try makeVersions(document)
    let content = document.row.content ?? .empty
    try requireContents(content)
    guard content.length <= Self.asideLimit, FileRole(newName) != .document else { throw Self.denied }
    let newPlace = TemporaryFiles.Name(account: place.account, owner: place.owner, name: newName)
    if mode == .noReplace, temporaryFiles[newPlace] != nil { throw SheafError(.exists) }
    // A former backup stays until this one is whole.
    let former = temporaryFiles.remove(newPlace)
    let inode: Inode
    do {
      inode = try makeBackup(newPlace, of: document, content, caller)
    } catch {
      removeTemporary(newPlace)
      if let former { temporaryFiles.insert(former, newPlace) }
      throw error
    }
    if let former { drop(former, of: place.account) }
    if hides { temporaryFiles.setAside(place, by: caller.process, at: clock()) }
    return inode
  }

  private func makeBackup(
    _ place: TemporaryFiles.Name, of document: Inode, _ content: StoredContent, _ caller: Caller
  ) throws -> Inode {
    let inode = try makeTemporary(place, mode: document.row.mode & (S_IFMT | 0o777), caller)
    inode.row.mtime = document.row.mtime
    shareChunks(of: document)
    let draft = inode.draft(of: place.account)
    var source = WorkingCopy(content)
    let extents = try source.extents(of: 0..<content.length, from: self)
    try draft.working?.truncate(to: content.length, from: self)
    if !extents.isEmpty { try draft.working?.replace(0..<content.length, with: extents, from: self) }
    return inode
  }

  /// Links a document, or a temporary file, to the name of a backup in `Shared/OWNER` (rule 5).
  ///
  /// - Throws: `accessDenied` where no temporary file can be made; `exists`.
  package func linkShared(
    _ ino: Int64, _ account: Int64, owner: Int64, _ newName: [UInt8], _ caller: Caller
  ) throws -> Attributes {
    try locked {
      let listing = try listing(of: account, owner: owner)
      guard let entry = listing.entries.first(where: { $0.ino == ino }) else { throw Self.denied }
      guard try shared(account, owner: owner, newName, caller) == nil else { throw SheafError(.exists) }
      let place = TemporaryFiles.Name(account: account, owner: owner, name: entry.name)
      return try attributes(setAside(entry, place, as: newName, hides: false, .noReplace, caller), caller)
    }
  }

  /// Makes a document anew that its program set aside (rule 5), and opens it.
  func createAside(
    _ entry: SharedEntry, _ place: TemporaryFiles.Name, mode: UInt32, flags: Int32, _ caller: Caller
  ) throws -> (attributes: Attributes, handle: UInt64) {
    let document = try inode(entry.ino)
    try allow(.write, document, caller)
    guard document.isRegular, document.row.nlink == 1 else { throw Self.denied }
    shownEntries.begin(.init(account: place.account, door: caller.door, names: [place.name]))
    let inode = try remake(
      document, nil, folder(document.row.parent), document.row.name, mode: mode, caller, clock())
    temporaryFiles.endAside(place)
    return (try attributes(inode, caller), register(OpenFile(inode: inode, flags: flags, caller)))
  }

  /// Takes its name from a temporary file; it is gone once nobody has it open.
  func removeTemporary(_ place: TemporaryFiles.Name) {
    if let file = temporaryFiles.remove(place) { drop(file, of: place.account) }
  }

  private func drop(_ file: TemporaryFiles.File, of account: Int64) {
    guard let inode = temporary(file, of: account) else { return }
    let draft = inode.draft(of: account)
    inode.row.nlink = 0
    draft.openCount -= 1
    discardUnopened(inode, draft)
    if inode.openCount == 0 { inodes.remove(inode.ino) }
  }

  /// Removes the temporary files that nobody uses any more, if ``temporaryFiles`` has any (rule 3); says whether some
  /// wait to be removed.
  func dissolveTemporaryFiles() -> Bool {
    locked {
      var waits = false
      let time = clock()
      for (place, file) in temporaryFiles.all {
        guard let inode = temporary(place) else {
          temporaryFiles.remove(place)
          continue
        }
        let isUsed = inode.openCount > 1
        if (try? participant(place.account, in: inode)) ?? nil == nil, !isUsed {
          removeTemporary(place)
        } else if isUsed {
          temporaryFiles.noteUse(place, at: time)
        } else if Caller.lives(file.process) {
          // Every later round looks at it again.
          continue
        } else if file.time > time {
          temporaryFiles.noteUse(place, at: time)
        } else if time.nanoseconds - file.time.nanoseconds >= Identity.window {
          removeTemporary(place)
        } else {
          waits = true
        }
      }
      return waits
    }
  }
}
