import Foundation
import SheafModel
import SheafStore

/// Names: looking up, making and listing entries.
///
/// Rooms: `Identity`, `InodeTable`, `LinkedPlaces`, `Numbers`.
extension Library {
  /// The folder of earlier versions that every folder has without listing it.
  package static let versionsName = Array(".versions".utf8)

  /// The folder of deleted items that every folder has without listing it.
  package static let trashName = Array(".deleted".utf8)

  /// Whether nothing can be given a name, since Sheaf shows something of its own under it.
  static func isReserved(_ name: [UInt8]) -> Bool { name == versionsName || name == trashName }

  // MARK: - Looking up

  /// The inode of `name` in the folder `parent`.
  ///
  /// - Throws: `notFound`, `notDirectory`, `accessDenied`, `nameTooLong`.
  package func lookup(_ parent: Int64, _ name: [UInt8], _ caller: Caller) throws -> Attributes {
    try locked {
      let folder = try self.folder(parent)
      try permit(folder, caller, Permission.execute)
      try Self.checkLength(name)
      guard let entry = try entry(parent, name), case let inode = try inode(entry.ino), !isOutOfSight(inode, caller)
      else { throw SheafError(.notFound) }
      return try attributes(inode, caller)
    }
  }

  /// The answer of stat(2).
  ///
  /// - Throws: `accessDenied` if the caller's account does not see the inode.
  package func attributes(_ ino: Int64, _ caller: Caller) throws -> Attributes {
    try locked { try attributes(inode(ino), caller) }
  }

  func entry(_ parent: Int64, _ name: [UInt8]) throws -> EntryRow? {
    try read { try $0.entry(parent, hash: nameHash(name), name: name) }
  }

  /// - Throws: `notDirectory`; `notFound` for a folder that was removed.
  func folder(_ ino: Int64) throws -> Inode {
    let inode = try inode(ino)
    guard inode.isFolder else { throw SheafError(.notDirectory) }
    return inode
  }

  static func checkLength(_ name: [UInt8]) throws {
    guard name.count <= 255 else { throw SheafError(.nameTooLong) }
  }

  /// Checks that `caller` may make `name` in `folder`.
  func permitMaking(_ name: [UInt8], in folder: Inode, _ caller: Caller) throws {
    try Self.checkLength(name)
    try permit(folder, caller, Permission.execute)
    guard !Self.isReserved(name), try entry(folder.ino, name) == nil else { throw SheafError(.exists) }
    guard folder.row.nlink > 0 else { throw SheafError(.notFound) }
    try permit(folder, caller, Permission.write)
    try permitRules(name, in: folder, caller)
  }

  /// Checks that `caller` may take `inode`'s name out of `folder`: sticky folders guard their entries (chmod(2)).
  func permitRemoving(_ inode: Inode, from folder: Inode, _ caller: Caller) throws {
    try permit(folder, caller, Permission.write | Permission.execute)
    if isForeign(inode, caller) { return }
    guard folder.row.mode & 0o1000 != 0, caller.uid != 0 else { return }
    let owners = [folder, inode].map { shownUser(of: $0, caller).uid }
    guard owners.contains(caller.uid) else { throw SheafError(.notPermitted) }
  }

  // MARK: - Making

  /// The kind of inode to make.
  package enum NewNode: Sendable {
    case file, folder
    case symbolicLink(target: [UInt8])
    /// A fifo, socket or device node with its type bits.
    case special(type: UInt32, rdev: UInt64)
  }

  /// Makes an entry.
  ///
  /// - Parameter mode: permission bits, the umask applied.
  /// - Throws: `exists`, `notFound`, `notDirectory`, `accessDenied`, `nameTooLong`, `noSpace`.
  package func make(
    _ node: NewNode, _ parent: Int64, _ name: [UInt8], mode: UInt32, _ caller: Caller
  ) throws -> Attributes {
    try lockedNear([parent]) { try attributes(makeInode(node, parent, name, mode: mode, caller), caller) }
  }

  func makeInode(
    _ node: NewNode, _ parent: Int64, _ name: [UInt8], mode: UInt32, _ caller: Caller
  ) throws -> Inode {
    let folder = try self.folder(parent)
    try permitMaking(name, in: folder, caller)
    if isForeign(folder, caller), case .special(let type, _) = node, type == S_IFBLK || type == S_IFCHR {
      throw SheafError(.notPermitted)
    }
    let time = clock()
    if case .file = node, let former = try formerDocument(parent, name, isOpen: true, caller, time) {
      return try remake(former.inode, former.memory, folder, name, mode: mode, caller, time)
    }
    let (type, kind, step): (UInt32, ItemKind?, DurableStep) =
      switch node {
      case .file: (S_IFREG, .document, .create)
      case .folder: (S_IFDIR, .folder, .mkdir)
      case .symbolicLink: (S_IFLNK, .symbolicLink, .symlink)
      case .special(let type, _): (type, nil, .create)
      }
    var row = newRow(type, in: folder, name, mode: mode, caller, time)
    switch node {
    case .symbolicLink(let target):
      guard target.count < 4096 else { throw SheafError(.nameTooLong) }
      row.target = target
      row.size = Int64(target.count)
      row.mode = S_IFLNK | 0o777
    case .special(_, let rdev): row.rdev = rdev
    case .file: row.content = .empty
    case .folder: row.nlink = 2
    }
    var item = kind.map { newItem($0, owner: row.owner, creator: caller.actor(in: row), time: time) }
    if item != nil { item?.isQuiet = try isIgnored(parent, name, isFolder: type == S_IFDIR) }
    row.item = item?.id
    let inode = Inode(row)
    // A folder is what it is at once, unless a program means it for its temporary files.
    let isPassing = !inode.isFolder || FileRole.looksPassing(name)
    try makeChange(step, by: caller, at: time) { [item] change in
      if let item { try change.rows.insert(item) }
      try change.rows.insert(row)
      try change.rows.insert(EntryRow(parent: parent, hash: nameHash(name), name: name, ino: row.ino, since: time))
      try touch(folder, time, links: inode.isFolder ? 1 : 0, change)
      if let item {
        if !item.isQuiet { try makeKnown(parent, change) }
        let data = try eventData(item, parent: parent, name: name)
        try logEvent(
          .created, item, ino: row.ino, data, actor: caller.actor(in: row), thread: caller.thread, opens: isPassing,
          change)
      }
      change.whenRecorded { [self] in
        inode.item = item
        inode.xattrSpace = XattrSpace()
        inodes.insert(inode)
        identity.settle(parent, name)
        if isPassing { identity.noteCreated(row.ino, process: caller.process, at: time) }
        tell(.made(NamedInode(inode, parent, name)), from: caller.door)
      }
    }
    return inode
  }

  /// A row for a new inode in `folder`; set-group-id folders hand down their group (inode(7)).
  func newRow(
    _ type: UInt32, in folder: Inode, _ name: [UInt8], mode: UInt32, _ caller: Caller, _ time: Timestamp
  ) -> InodeRow {
    let inheritsGroup = folder.row.mode & UInt32(S_ISGID) != 0
    // Inodes that participants make belong to the user of the folder, and have no set-id bits.
    let isForeign = isForeign(folder, caller)
    let bits = mode & (isForeign ? 0o1777 : 0o7777)
    return InodeRow(
      ino: numbers.nextIno(), item: nil, owner: folder.row.owner, parent: folder.ino, name: name,
      mode: type | bits | (inheritsGroup && type == S_IFDIR ? UInt32(S_ISGID) : 0), nlink: 1,
      uid: isForeign ? folder.row.uid : caller.uid,
      gid: isForeign ? folder.row.gid : inheritsGroup ? shownUser(of: folder, caller).gid : caller.gid, time: time)
  }

  /// Writes a folder's times and link count after its entries changed.
  func touch(_ folder: Inode, _ time: Timestamp, links: Int64 = 0, _ change: Change) throws {
    let nlink = folder.row.nlink + links
    try change.rows.touch(folder: folder.ino, time: time, nlink: nlink)
    change.whenRecorded {
      folder.row.mtime = time
      folder.row.ctime = time
      folder.row.nlink = nlink
    }
  }

  /// Gives `ino` another name, or its first one (``nameNameless(_:_:_:_:)``); the returned inode may be a copy (rule 16
  /// of ``Identity``).
  ///
  /// - Throws: `notPermitted` for folders, and where the link would cross a share's border; as ``make(_:_:_:mode:_:)``.
  package func link(_ ino: Int64, _ parent: Int64, _ name: [UInt8], _ caller: Caller) throws -> Attributes {
    try locked {
      let inode = try inode(ino)
      let folder = try self.folder(parent)
      guard !inode.isFolder else { throw SheafError(.notPermitted) }
      guard inode.row.nlink > 0 && !inode.isOrphan || inode.isNameless else { throw SheafError(.notFound) }
      // A temporary file beside a document lies in no folder: programs copy it.
      guard inode.row.owner == folder.row.owner, inode.temporaryOf == nil else { throw SheafError(.crossDevice) }
      try allow(.write, inode, caller)
      if inode.isNameless { return try nameNameless(inode, folder, name, caller) }
      if let backup = try linkBackup(of: inode, folder, name, caller) { return try attributes(backup, caller) }
      try permitKeeping(of: inode, from: self.folder(inode.row.parent), to: folder, caller)
      try checkLink(of: inode, in: folder)
      guard inode.row.nlink < 65_000 else { throw SheafError(.tooManyLinks) }
      try permitMaking(name, in: folder, caller)
      let time = clock()
      // Rule 5 of identity: the document lives on here once the other name is gone.
      let mayReturn =
        try inode.isRegular && inode.row.nlink == 1 && identity.isOwn(ino, of: caller.process, at: time)
        && formerDocument(parent, name, caller, time) != nil
      // Another program may take the name before this one removes the first.
      noteStanding(inode, inode.row.name, time)
      let isProved = isProved(inode, name)
      if mayReturn { linkedPlaces.insert(.init(parent: parent, name: name, time: time), for: ino) }
      try makeChange(.link, by: caller, at: time) { change in
        try change.rows.insert(
          EntryRow(parent: parent, hash: nameHash(name), name: name, ino: ino, isExtra: true, since: change.placed))
        var row = inode.row
        row.nlink += 1
        row.ctime = time
        try change.rows.update(row)
        try touch(folder, time, change)
        if let item = try item(of: inode), !item.isQuiet { try makeKnown(parent, change) }
        change.whenRecorded { [self] in
          inode.row.nlink = row.nlink
          inode.row.ctime = time
          identity.named(ino, by: caller.process, isProved: isProved, isLasting: !FileRole.looksPassing(name))
          if !mayReturn { identity.settle(parent, name) }
          tell(.made(NamedInode(inode, parent, name)), from: caller.door)
          tellPlace(of: inode)
        }
      }
      return try attributes(inode, caller)
    }
  }

  /// The target of a symbolic link.
  ///
  /// - Parameter notesAccess: whether reading is to be noted in the access time.
  /// - Throws: `invalid` for what is none; `accessDenied` for one that someone else made and that leads out of its
  ///   share.
  package func readLink(_ ino: Int64, notesAccess: Bool = true, _ caller: Caller) throws -> [UInt8] {
    try locked {
      let inode = try inode(ino)
      let target = try target(of: inode, caller)
      if notesAccess { noteAccess(inode) }
      return target
    }
  }

  /// - Throws: as ``readLink(_:notesAccess:_:)``.
  func target(of inode: Inode, _ caller: Caller) throws -> [UInt8] {
    try allow(.read, inode, caller)
    try checkTarget(of: inode, caller)
    guard let target = inode.row.target else { throw SheafError(.invalid) }
    return target
  }

  // MARK: - Listing

  /// An entry of a folder, as readdirplus gives it.
  package struct Listed: Sendable {
    package let name: [UInt8]
    package let ino: Int64
    /// Nil where they are damaged.
    package let attributes: Attributes?
    /// Where to go on after it.
    package let cookie: Int64
  }

  /// The entries of a folder after `cookie` (0 for the first), about `limit` of them; empty at the end.
  ///
  /// The order is that of a hash of the names, so an entry that exists throughout is listed once, whatever else comes
  /// and goes. Entries of one cookie come together.
  ///
  /// - Parameter notesAccess: whether beginning to read is to be noted in the access time.
  package func list(
    _ ino: Int64, after cookie: Int64, limit: Int, notesAccess: Bool = true, _ caller: Caller
  ) throws -> [Listed] {
    try locked {
      let folder = try self.folder(ino)
      try allow(.read, folder, caller)
      if cookie == 0, notesAccess { noteAccess(folder) }
      var after = cookie
      while true {
        let rows = try read { [after] in try $0.readableListing(ino, after: after, limit: limit) }
        guard let last = rows.last else { return [] }
        try Self.requireOrder(rows.map(\.hash), of: ino)
        let listed = try rows.compactMap { row -> Listed? in
          guard let inode = inodes[row.ino] ?? row.inode.map({ inodes.insert(Inode($0)) }) else {
            // Whose it is, and what others may see of it, nobody knows.
            return isForeign(folder, caller)
              ? nil : Listed(name: row.name, ino: row.ino, attributes: nil, cookie: row.hash)
          }
          return isOutOfSight(inode, caller)
            ? nil : Listed(name: row.name, ino: row.ino, attributes: try attributes(inode, caller), cookie: row.hash)
        }
        if !listed.isEmpty { return listed }
        after = last.hash
      }
    }
  }

  /// Names of a folder that may have one cookie: they fit what readdir(3) asks for at a time.
  private static let namesOfCookie = 8

  /// Refuses names that no listing could get past. No names that Sheaf orders are such.
  private static func requireOrder(_ cookies: [Int64], of folder: Int64) throws {
    // Those before are of `.` and `..`.
    var isOrdered = cookies.allSatisfy { $0 > 2 }
    for (cookie, later) in zip(cookies, cookies.dropFirst(namesOfCookie)) where cookie == later { isOrdered = false }
    guard isOrdered else {
      throw SheafError(
        .corrupt, subject: "folder \(folder)", reason: "has names in an order that is none", advice: "run `sheaf check`"
      )
    }
  }

  /// Where a folder is in an account's mount.
  package enum ParentPlace: Sendable {
    case folder(Int64)
    /// Beside `Shared`.
    case mount
    /// In `Shared/OWNER/`.
    case shared(owner: Int64)
  }

  /// The place that a folder is in, as the caller's account sees it.
  package func parent(of ino: Int64, _ caller: Caller) throws -> ParentPlace {
    try locked {
      let folder = try folder(ino)
      if isForeign(folder, caller) {
        guard let share = try share(of: folder) else { throw Self.denied }
        if share.row.item == folder.row.item { return .shared(owner: share.owner) }
      }
      return folder.row.parent == 0 ? .mount : .folder(folder.row.parent)
    }
  }
}
