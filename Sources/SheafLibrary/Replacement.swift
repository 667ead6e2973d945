import Foundation
import SheafModel
import SheafStore

/// A document's identity passing to another inode: the rules of ``Identity``, carried out.
extension Library {
  /// The document that the program of `caller` took the name from, if it still can come back there.
  func lostDocument(
    _ parent: Int64, _ name: [UInt8], _ caller: Caller, _ time: Timestamp
  ) throws -> (inode: Inode, item: ItemRow)? {
    guard let lost = identity.lost(parent, name, thread: caller.thread, at: time),
      let inode = try? inode(lost.ino), inode.row.item == lost.item, let item = try item(of: inode)
    else { return nil }
    return (inode, item)
  }

  /// Makes a remembered document's file anew: empty for its writer, while the store keeps the contents it had until
  /// something is written, so that a crash in between leaves the old contents rather than none (rule 3).
  func remake(
    _ lost: (inode: Inode, item: ItemRow), _ folder: Inode, _ name: [UInt8], mode: UInt32, _ caller: Caller,
    _ time: Timestamp
  ) throws -> Inode {
    let old = lost.inode
    try endSession(old)
    guard let item = try item(of: old) else { throw SheafError(.notFound) }
    var row = newRow(S_IFREG, in: folder, name, mode: mode, caller, time)
    row.mode = old.row.mode
    row.item = item.id
    row.content = old.row.content ?? .empty
    row.size = old.row.size
    let inode = Inode(row)
    try transaction(.create) { transaction in
      let xattrs = try transaction.xattrs(old.ino)
      try partFromItem(old, item, caller, time, transaction)
      try transaction.insert(row)
      for xattr in xattrs where Self.isUserAttribute(xattr.name) {
        try transaction.setXattr(row.ino, xattr.name, xattr.value)
      }
      try transaction.insert(EntryRow(parent: folder.ino, hash: nameHash(name), name: name, ino: row.ino))
      try touch(folder, time, transaction)
      whenCommitted { [self] in
        inode.item = item
        load(inode)
        remember(inode)
        identity.settle(folder.ino, name)
        tell(.entry(parent: folder.ino, name: name), from: caller.door)
      }
    }
    try inode.working?.truncate(to: 0, from: self)
    if inode.row.size > 0 { try beginSession(inode, handle: nil, at: time) }
    return inode
  }

  /// Takes the item from the inode that had it: what is left of that becomes a plain document, or is gone.
  func partFromItem(
    _ old: Inode, _ item: ItemRow, _ caller: Caller, _ time: Timestamp, _ transaction: StoreTransaction
  ) throws {
    if old.row.nlink > 0 {
      // Renamed away, or another name of the file: a document of its own with the contents, and no event.
      try dropPending(item.id, types: [.renamed, .moved], transaction)
      var fresh = newItem(.document, owner: old.row.owner, time: time)
      fresh.isQuiet = true
      fresh.version = 1
      fresh.lastVersion = 1
      try transaction.insert(fresh)
      try transaction.insert(
        VersionRow(
          item: fresh.id, number: 1, time: time, author: old.row.owner, size: old.row.size, cause: .save, base: nil,
          content: old.row.content ?? .empty, isOpen: false))
      var row = old.row
      row.item = fresh.id
      try transaction.update(row)
      whenCommitted { [self] in
        old.row.item = fresh.id
        old.item = fresh
        shareChunks(of: old)
        identity.born(old.ino, thread: caller.thread, at: time)
      }
    } else {
      try dropPending(item.id, types: [.deleted], transaction)
      try transaction.removeDeleted(old.ino)
      try detach(old, transaction)
    }
  }

  /// Has `inode`, about to take the name of a document, be that document from now on (rule 2 of ``Identity``).
  ///
  /// Runs in the transaction of the rename. Both sessions have ended.
  ///
  /// - Parameters:
  ///   - old: The inode that was the document.
  ///   - nameTaken: Whether `old` loses the name now, rather than before by an unlink or a rename.
  func takeOver(
    _ inode: Inode, identityOf old: Inode, _ item: ItemRow, nameTaken: Bool, _ row: inout InodeRow,
    source: EntryRow, _ caller: Caller, _ time: Timestamp, _ transaction: StoreTransaction
  ) throws {
    let isYoung = identity.isYoung(inode.ino, at: time)
    let oldXattrs = try transaction.xattrs(old.ino)
    var document = item
    // The item that the new inode was.
    if let dissolved = row.item {
      row.item = nil
      let isQuiet = try self.item(of: inode)?.isQuiet ?? false
      if isYoung || isQuiet {
        try transaction.update(row)
        try dropPending(dissolved, transaction)
        try transaction.deleteItem(dissolved)
      } else {
        try leaveTombstone(of: inode, item: dissolved, at: source, time, transaction)
      }
    }
    if nameTaken {
      var oldRow = old.row
      oldRow.nlink -= 1
      oldRow.ctime = time
      if oldRow.nlink > 0, var heir = try transaction.extraEntry(old.ino) {
        heir.isExtra = false
        try transaction.update(heir)
        oldRow.parent = heir.parent
        oldRow.name = heir.name
      }
      let before = old.row
      old.row = oldRow
      defer { old.row = before }
      try partFromItem(old, item, caller, time, transaction)
      whenCommitted {
        let item = old.row.item
        old.row = oldRow
        old.row.item = item
      }
    } else {
      try partFromItem(old, item, caller, time, transaction)
    }
    row.item = document.id
    if isYoung, !inode.modeIsChosen { row.mode = row.mode & S_IFMT | old.row.mode & 0o7777 }
    let present = Set(try transaction.xattrs(inode.ino).map(\.name))
    for xattr in oldXattrs where Self.isUserAttribute(xattr.name) && !present.contains(xattr.name) {
      try transaction.setXattr(inode.ino, xattr.name, xattr.value)
    }
    let content = row.content ?? .empty
    let current = try transaction.version(document.id, document.version)
    if current?.content != content {
      let version = VersionRow(
        item: document.id, number: document.lastVersion + 1, time: time, author: row.owner, size: row.size,
        cause: .replace, base: document.version == 0 ? nil : document.version, content: content, isOpen: false)
      try transaction.insert(version)
      document.version = version.number
      document.lastVersion = version.number
      try transaction.update(document)
      if !isYoung {
        var data = try eventData(document, parent: row.parent, name: row.name)
        data.version = .init(version)
        data.previousPath = String(decoding: try path(source.parent, source.name), as: UTF8.self)
        data.previousName = String(decoding: source.name, as: UTF8.self)
        try logEvent(
          .edit, document, ino: row.ino, data, owner: row.owner, thread: 0, opens: false, transaction)
      } else {
        try logSave(version, of: document, inode: row, transaction)
      }
    }
    let final = row
    whenCommitted { [self] in
      inode.row = final
      inode.item = document
      inode.modeIsChosen = false
      inode.hasNoXattrs = false
      shareChunks(of: inode)
      identity.forget(inode.ino)
      tell(.attributes(inode.ino), from: 0)
    }
  }

  /// Leaves the history of a document whose inode became another's contents among the deleted (rule 6 of DESIGN.md).
  private func leaveTombstone(
    of inode: Inode, item: Int64, at source: EntryRow, _ time: Timestamp, _ transaction: StoreTransaction
  ) throws {
    var row = inode.row
    row.item = nil
    try transaction.update(row)
    row.ino = newInodeNumber()
    row.item = item
    row.nlink = 0
    row.parent = source.parent
    row.name = source.name
    try transaction.insert(row)
    for xattr in try transaction.xattrs(inode.ino) { try transaction.setXattr(row.ino, xattr.name, xattr.value) }
    try dropPending(item, types: [.renamed, .moved], transaction)
    try transaction.insert(
      DeletedRow(ino: row.ino, parent: source.parent, name: source.name, time: time, actor: row.owner))
  }
}
