import Glibc
import SheafModel
import SheafStore

/// Carries out `.sheafignore`: plain files, which have no versions and no events.
///
/// Rules:
/// 1. A file is plain if it is made under an ignored name, or in an ignored folder, or if the program that made it gives
///    it such a name before any event reported it, and before anybody else knows it. It is a quiet item whose version
///    stays 0: its inode has the contents.
/// 2. An item that had a version stays a document, whatever rules come later, as git(1) goes on tracking files that it
///    tracks.
/// 3. A plain file that gets another name, and is not ignored under that, is a document from then on, with its contents
///    as the first version. A file that rules no longer ignore is a document from its next save on, with what it held
///    before as the first version.
/// 4. A plain file leaves nothing behind when its last name goes.
/// 5. Only the owner of a folder makes rules for it, since files that the rules name are lost when they are deleted.
///    Nobody else gives the owner's folder a name or a place that is ignored. Nobody else makes a file of this name, and
///    rules that others save in one have no effect until the owner saves it again. Everybody waits while a name is
///    compared with rules. So only few bytes of rules count for each folder (``ruleBytes``), and fewer of rules that try
///    many places of a path.
/// 6. Rules that a folder holds, or one below it, have no effect once somebody else than the owner moved that folder,
///    until the owner saves them again: moving rules is making them. So they have none if somebody else brought them
///    back from the trash.
/// 7. Rules may cancel others. So where a folder's rules have no effect, since others moved or saved them, and where
///    others took them away, the rules from further outside and those that hold by default have none, either: nothing
///    is ignored there, or below, until the owner saves rules there that are new. So it is in a folder that others took to
///    where other rules apply, or to a place that is ignored later. Marks of that, and of rule 6, are settings; where
///    there are too many, the top folder of the owner gets them.
/// 8. Within a file the last matching rule decides; a deeper file decides before the others. Everything in an ignored
///    folder is ignored, whatever rules say of it.
/// 9. A folder in which a document has a name is an item as any other: it has events, a past and a place at the hub. What
///    is made in it is plain as before.
///
/// Rooms: `AccountTable`, `IgnoredFolders`.
extension Library {
  /// The name of the files that hold rules, for their folder and all below it.
  static let ignoreName = Array(".sheafignore".utf8)

  /// Bytes of rules that count for what is in a folder, those of the folders above it first; and of rules with `**`.
  private static let ruleBytes = 16 << 10
  private static let wildBytes = 1 << 10
  /// Names of a path that rules of paths are compared with.
  private static let pathLimit = 16

  /// Whether something of a name in a folder is ignored.
  func isIgnored(_ folder: Int64, _ name: [UInt8], isFolder: Bool) throws -> Bool {
    guard name != Self.ignoreName else { return false }
    let place = try ignoredPlace(of: folder)
    return try place.isIgnored || verdict(place, folder, name, isFolder: isFolder)
  }

  /// Whether a file is a plain one (rule 1).
  func isPlain(_ item: ItemRow, _ inode: Inode) throws -> Bool {
    guard item.isQuiet, item.lastVersion == 0, inode.row.nlink > 0, inode.row.parent != 0 else { return false }
    return try isIgnored(inode.row.parent, inode.row.name, isFolder: inode.isFolder)
  }

  /// Whether what is made in a folder, or written to a file, leaves nothing behind.
  func isIgnored(_ inode: Inode, _ item: ItemRow) throws -> Bool {
    guard inode.isFolder else { return try isPlain(item, inode) }
    guard inode.row.nlink > 0, inode.row.parent != 0 else { return false }
    return try isIgnored(inode.row.parent, inode.row.name, isFolder: true)
  }

  /// Checks that who gives something a name makes no rules for what another account owns (rule 5).
  func permitRules(_ name: [UInt8], in folder: Inode, _ caller: Caller) throws {
    guard name == Self.ignoreName, isForeign(folder, caller) else { return }
    throw SheafError(
      .notPermitted, reason: "says what is lost when it is deleted, which the owner of the folder decides",
      advice: "ask the owner to make it")
  }

  /// Checks that nobody gives another account's folder a name or a place by which its new files would be ignored
  /// (rule 5).
  func permitIgnoring(
    _ inode: Inode, from folder: Inode, _ name: [UInt8], to newFolder: Inode, _ newName: [UInt8], _ caller: Caller
  ) throws {
    guard inode.isFolder, isForeign(newFolder, caller), try isIgnored(newFolder.ino, newName, isFolder: true),
      try !isIgnored(folder.ino, name, isFolder: true)
    else { return }
    throw SheafError(
      .notPermitted, reason: "would be ignored, and what is made in it would be lost when it is deleted",
      advice: "ask the owner to rename it")
  }

  /// Forgets what rules said where a change may have others hold.
  func noteRules(_ change: LibraryChange) {
    let isOfRules =
      switch change {
      case .saved(let ino): ignored.holdsRules(ino)
      case .made(let named), .removed(let named): named.place.name == Self.ignoreName
      case .renamed(let named, let place, let replaced, _):
        [named.mode, replaced?.mode ?? 0].contains { $0 & S_IFMT == S_IFDIR }
          || [named.place.name, place.name].contains(Self.ignoreName)
      default: false
      }
    if isOfRules { ignored.forget() }
  }

  /// Notes that a document was saved, which may hold rules.
  func noteRules(savedIn inode: Inode) {
    if inode.row.name == Self.ignoreName { ignored.forget() }
  }

  // MARK: - Marks

  /// Notes that an account moves a folder, with the rules in it (rules 6 and 7).
  func markMoved(_ inode: Inode, from folder: Inode, to newFolder: Inode, _ change: Change) throws {
    guard inode.isFolder, isForeign(inode, change.caller) else { return }
    let (here, there) = (try ignoredPlace(of: folder.ino), try ignoredPlace(of: newFolder.ino))
    // Those that name paths mean others inside when the folder has another name. Where others changed the rules, the
    // owner may save them again, and has not seen the folder there.
    let appliesAsBefore =
      here.sources.map(\.folder) == there.sources.map(\.folder) && there.sources.first?.folder == 0
      && !there.sources.contains(where: \.rules.needPaths)
    try mark(inode.row, isMoved: true, changesRules: !appliesAsBefore, change)
  }

  /// Notes that an account brought something back from the trash (rules 6 and 7).
  ///
  /// - Parameter deleted: its place before.
  func markReturned(_ deleted: DeletedRow, _ change: Change) throws {
    guard let row = try change.rows.inode(deleted.ino), change.caller.account ?? row.owner != row.owner else { return }
    let isMoved = row.parent != deleted.parent || row.name != deleted.name
    if row.name == Self.ignoreName || isMoved && row.mode & S_IFMT == S_IFDIR {
      try mark(row, isMoved: true, changesRules: isMoved, change)
    }
  }

  /// Notes that an account takes a name from a file, which may hold the rules of a folder (rule 7).
  func markTaken(_ name: [UInt8], from parent: Int64, by actor: Int64, _ change: Change) throws {
    guard name == Self.ignoreName, let row = try change.rows.inode(parent),
      person(of: actor) != person(of: row.owner)
    else { return }
    try mark(row, isMoved: false, changesRules: true, change)
  }

  private func mark(_ row: InodeRow, isMoved: Bool, changesRules: Bool, _ change: Change) throws {
    var (ino, isMoved, changesRules) = (row.ino, isMoved, changesRules)
    if ignored.mark(of: ino) == nil, !ignored.hasRoom, let owner = accountTable[row.owner] {
      (ino, isMoved, changesRules) = (owner.documents, true, true)
    }
    let time = change.time
    if isMoved { try change.rows.setSetting("\(IgnoredFolders.movedKey).\(ino)", time.nanoseconds) }
    if changesRules { try change.rows.setSetting("\(IgnoredFolders.rulesKey).\(ino)", time.nanoseconds) }
    let (marked, moves, changes) = (ino, isMoved, changesRules)
    change.whenRecorded { [self] in
      ignored.mark(marked, time, isMoved: moves, changesRules: changes)
      ignored.forget()
    }
  }

  /// Forgets the mark of what is no more.
  func removeMark(of ino: Int64, _ change: Change) throws {
    guard ignored.mark(of: ino) != nil else { return }
    for key in [IgnoredFolders.movedKey, IgnoredFolders.rulesKey] { try change.rows.setSetting("\(key).\(ino)", nil) }
    change.whenRecorded { [self] in ignored.removeMark(ino) }
  }

  // MARK: - Places

  /// Whether it is remembered by which rules what is in a folder is ignored.
  func knowsRules(of folder: Int64) -> Bool { ignored[folder] != nil }

  func ignoredPlace(of folder: Int64) throws -> IgnoredFolders.Place {
    var place = IgnoredFolders.Place()
    var passed: [Inode] = []
    try ascend(from: folder) { inode in
      if let known = ignored[inode.ino] {
        place = known
        return false
      }
      passed.append(inode)
      return true
    }
    for inode in passed.reversed() {
      let mark = ignored.mark(of: inode.ino)
      place.moved = [place.moved, mark?.moved].compactMap(\.self).max()
      if inode.row.parent != 0, !place.isIgnored {
        place.isIgnored = try verdict(place, inode.row.parent, inode.row.name, isFolder: true)
      }
      let left = Self.ruleBytes - place.sources.reduce(0) { $0 + $1.bytes }
      let own =
        try place.isIgnored && mark?.rules == nil
        ? nil : rules(in: inode.ino, savedAfter: place.moved, atMost: max(0, left))
      switch own {
      case .owners(let source, let time) where mark?.rules.map({ $0 < time }) ?? true:
        if !source.rules.isEmpty, !place.isIgnored { place.sources.append(source) }
      case .others(let changed) where mark?.rules == nil: place.lose(changed)
      default:
        if let changed = mark?.rules {
          place.isIgnored = false
          place.lose(changed)
        }
      }
      ignored.note(place, of: inode.ino)
    }
    return place
  }

  private func verdict(
    _ place: IgnoredFolders.Place, _ folder: Int64, _ name: [UInt8], isFolder: Bool
  ) throws -> Bool {
    for source in place.sources.reversed() {
      var path = [name]
      if source.rules.needPaths, source.folder != folder {
        try ascend(from: folder) { inode in
          guard inode.ino != source.folder else { return false }
          path.append(inode.row.name)
          return path.count <= Self.pathLimit
        }
        path.reverse()
      }
      if let found = source.rules.verdict(path, isFolder: isFolder) { return found }
    }
    return false
  }

  /// The file of rules that a folder has.
  private enum FolderRules {
    /// As the owner saved it at that time.
    case owners(IgnoredFolders.Source, Timestamp)
    /// Without effect, since others saved it, brought it back, or moved it at that time (rules 5 and 6).
    case others(Timestamp)
  }

  /// The rules that a folder's own file holds, as it was saved last; nil where there is none.
  ///
  /// - Parameter moved: When somebody else than the owner moved the folder.
  private func rules(in folder: Int64, savedAfter moved: Timestamp?, atMost left: Int) throws -> FolderRules? {
    guard let entry = try entry(folder, Self.ignoreName) else { return nil }
    let file = try inode(entry.ino)
    guard file.isRegular, let content = file.row.content else { return nil }
    ignored.noteFile(file.ino)
    guard let item = try item(of: file), let version = try read({ try $0.version(item.id, item.version) }) else {
      return nil
    }
    let changed = [moved, ignored.mark(of: file.ino)?.moved].compactMap(\.self).max()
    guard person(of: version.author) == person(of: file.row.owner), changed.map({ $0 < version.time }) ?? true else {
      return .others(max(changed ?? version.time, version.time))
    }
    var buffer = [UInt8](repeating: 0, count: Int(min(content.length, Int64(left))))
    // `check` reports damage; damaged rules ignore nothing.
    var copy = WorkingCopy(content)
    let count = try? buffer.withUnsafeMutableBytes { try copy.read(at: 0, into: $0, from: self) }
    let star = UInt8(ascii: "*")
    var wild = Self.wildBytes
    let lines = buffer.prefix(count ?? 0).split(separator: UInt8(ascii: "\n")).filter { line in
      guard zip(line, line.dropFirst()).contains(where: { $0 == star && $1 == star }) else { return true }
      wild -= line.count
      return wild >= 0
    }
    let rules = IgnoreRules(Array(lines.joined(separator: [UInt8(ascii: "\n")])))
    return .owners(.init(folder: folder, rules: rules, bytes: count ?? 0), version.time)
  }

  // MARK: - Becoming plain, and a document

  /// Has a folder in which a document gets a name, and those around it, be items as any other (rule 9). Their events come
  /// before the document's.
  func makeKnown(_ folder: Int64, _ change: Change) throws {
    var plain: [(inode: Inode, item: ItemRow)] = []
    try ascend(from: folder) { inode in
      guard try item(of: inode)?.isQuiet ?? false, let id = inode.row.item, let item = try change.rows.item(id),
        item.isQuiet
      else { return false }
      plain.append((inode, item))
      return true
    }
    for (inode, var item) in plain.reversed() {
      item.isQuiet = false
      try change.rows.update(item)
      let known = item
      change.whenRecorded { inode.item = known }
      try logEvent(
        .created, item, ino: inode.ino, eventData(item, parent: inode.row.parent, name: inode.row.name),
        actor: change.caller.actor(in: inode.row), thread: 0, opens: false, change)
    }
  }

  /// Makes a plain file of one of which nobody was told yet (rule 1), whose row the caller's change writes.
  func becomePlain(_ inode: Inode, _ item: ItemRow, _ change: Change) throws {
    var item = item
    try dropPending(item.id, change)
    for number in stride(from: 1, through: item.lastVersion, by: 1) { try change.rows.deleteVersion(item.id, number) }
    (item.version, item.lastVersion, item.isQuiet, item.conflict) = (0, 0, true, nil)
    try change.rows.update(item)
    let final = item
    change.whenRecorded { [self] in
      inode.item = final
      shareChunks(of: inode)
      for draft in inode.drafts {
        draft.session?.number = nil
        draft.session?.base = nil
      }
    }
  }

  /// Makes a document of a plain file that rules no longer ignore, in the change that saves it (rule 3); the caller
  /// writes the item.
  ///
  /// - Parameter author: the account that saves it.
  func makeDocument(of item: inout ItemRow, _ inode: Inode, by author: Int64, _ change: Change) throws {
    try insertFirstVersion(of: &item, inode, change)
    let (parent, name) = (inode.row.parent, inode.row.name)
    // Before, its name was that of a plain file, which has no past.
    if var entry = try entry(parent, name), entry.ino == inode.ino {
      entry.since = change.time
      try change.rows.update(entry)
    }
    try makeKnown(parent, change)
    var data = try eventData(item, parent: parent, name: name)
    if let version = try change.rows.version(item.id, item.version) { data.version = .init(version) }
    try logEvent(.created, item, ino: inode.ino, data, actor: author, thread: 0, opens: false, change)
  }

  /// Gives a plain file that is about to be a document its contents as the first version (rule 3), if it has any; the
  /// caller writes the item.
  func insertFirstVersion(of item: inout ItemRow, _ inode: Inode, _ change: Change) throws {
    guard inode.isRegular, item.lastVersion == 0, inode.row.content?.length ?? 0 > 0 else { return }
    try insertContents(of: &item, inode, by: change.caller.actor(in: inode.row), change)
  }

  /// Gives a document without versions what it contains as the first one; the caller writes the item.
  func insertContents(of item: inout ItemRow, _ inode: Inode, by author: Int64, _ change: Change) throws {
    let content = inode.row.content ?? .empty
    (item.version, item.lastVersion) = (1, 1)
    try change.rows.insert(
      VersionRow(
        item: item.id, number: 1, time: change.time, author: author, size: content.length, cause: .save, base: nil,
        content: content, isOpen: false))
    change.whenRecorded { [self] in
      shareChunks(of: inode)
      for draft in inode.drafts where draft.session != nil {
        draft.session?.base = 1
        draft.session?.baseContent = content
      }
    }
  }
}
