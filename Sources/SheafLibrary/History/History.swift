import Foundation
package import SheafModel
import SheafStore

/// A document's versions: listing, reading, restoring, labelling.
extension Library {
  /// The document's versions, oldest first.
  package func versions(_ path: ItemPath) throws -> [Version] {
    completeSaves()
    let (item, reader) = try locked { () -> (Int64, Caller) in
      try settleSessions()
      return (try pastDocument(path).item.id, .api(try account(path.account).id))
    }
    return try visibleVersions(of: item, reader) { row, _, first in try version(row, seenFrom: first) }
  }

  /// The document at a path; where there is none, the one that was deleted there last.
  ///
  /// - Throws: `accessDenied` where the path's account may not read its history.
  private func pastDocument(_ path: ItemPath) throws -> (inode: Inode, item: ItemRow) {
    do {
      return try document(path, for: .readHistory)
    } catch let error as SheafError where error.kind == .notFound {
      guard let row = try? resolveDeleted(path), case let inode = try inode(row.ino), inode.isRegular,
        let item = try item(of: inode)
      else { throw error }
      try allow(.readHistory, inode, on: path)
      return (inode, item)
    }
  }

  /// - Parameter first: Number of the first version that the reader sees.
  private func version(_ row: VersionRow, seenFrom first: Int64) throws -> Version {
    Version(
      number: row.number, time: row.time, author: try handle(row.author), size: row.size, cause: row.cause,
      label: row.label, base: row.base.flatMap { $0 >= first ? $0 : nil }, open: row.isOpen)
  }

  private func versionRow(_ item: Int64, _ number: Int64, _ inode: Inode, _ path: ItemPath) throws -> VersionRow {
    guard let row = try read({ try $0.version(item, number) }),
      try number >= firstVisibleVersion(of: item, inode, .api(account(path.account).id))
    else {
      throw SheafError(
        .notFound, subject: "\(path)", reason: "has no version \(number)", advice: "`sheaf versions` shows those it has"
      )
    }
    return row
  }

  /// Opens a version, or the current contents where `number` is nil, for reading.
  ///
  /// - Throws: `notFound`, `accessDenied`.
  package func versionReader(_ path: ItemPath, number: Int64?) throws -> VersionReader {
    completeSaves()
    return try locked {
      let (inode, item) = try pastDocument(path)
      try makeOwnVersions(inode, path)
      // Chunks of an open version must outlast its renewal while they are read.
      shareChunks(of: inode)
      let caller = Caller.api(try account(path.account).id)
      guard let number else { return reader(of: inode.row.content ?? .empty, item.id, .max, inode, caller) }
      return reader(of: try versionRow(item.id, number, inode, path).content, item.id, number, inode, caller)
    }
  }

  /// Saves what the path's account wrote, since it reads its own unsaved changes.
  private func makeOwnVersions(_ inode: Inode, _ path: ItemPath) throws {
    let account = try account(path.account).id
    for draft in inode.drafts where draft.account == account { try makeVersion(inode, draft, cause: .autosave) }
  }

  /// Makes an earlier version's contents current, as a new version; nil where they are so already.
  package func restore(_ path: ItemPath, version number: Int64) throws -> Version? {
    completeSaves()
    return try locked {
      let (inode, item) = try document(path, for: .restore)
      try endSession(inode)
      let row = try versionRow(item.id, number, inode, path)
      let author = try account(path.account).id
      guard let restored = try makeCurrent(row.content, of: inode, by: .api(author)) else { return nil }
      return try version(restored, seenFrom: firstVisibleVersion(of: item.id, inode, .api(author)))
    }
  }

  /// Gives a document contents, as a new version; nil if it has them already. Unsaved contents of programs become a
  /// version first.
  func makeCurrent(_ content: StoredContent, of inode: Inode, by caller: Caller) throws -> VersionRow? {
    try endSession(inode)
    guard var item = try item(of: inode) else { throw SheafError(.notFound) }
    try requireContents(content)
    // Where the current contents are damaged they are other ones.
    if (try? Content.areSame(content, inode.row.content ?? .empty, from: self)) ?? false { return nil }
    let author = caller.actor(in: inode.row)
    try clearPrivileges(of: inode, changedBy: nil, from: 0)
    let time = clock()
    let restored = VersionRow(
      item: item.id, number: item.lastVersion + 1, time: time, author: author, size: content.length,
      cause: .restore, base: item.version == 0 ? nil : item.version, content: content, isOpen: false)
    try makeChange(.restore) { change in
      try change.rows.insert(restored)
      item.conflict = nil
      try show(restored, of: item, inode, mtime: time, ctime: time, change)
    }
    return restored
  }

  /// Makes a version that is stored the current one, for every program that has the document open, too.
  func show(
    _ version: VersionRow, of item: ItemRow, _ inode: Inode, mtime: Timestamp, ctime: Timestamp, _ change: Change
  ) throws {
    var (item, row) = (item, inode.row)
    item.version = version.number
    item.lastVersion = max(item.lastVersion, version.number)
    try change.rows.update(item)
    (row.content, row.size) = (version.content, version.content.length)
    (row.mtime, row.ctime) = (mtime, ctime)
    try change.rows.update(row)
    if inode.keptEmptyBy != nil { try change.rows.deleteWorkingCopy(row.ino) }
    try logSave(version, of: item, inode: row, by: .unknown, change)
    let (final, finalItem) = (row, item)
    change.whenRecorded { [self] in
      inode.item = finalItem
      inode.row = final
      inode.keptEmptyBy = nil
      for draft in inode.drafts where draft.working != nil { draft.working = WorkingCopy(version.content) }
      tell(.saved(inode.ino), from: 0)
    }
  }

  /// Gives a version (the current one where `number` is nil) a label, unique in its document.
  ///
  /// - Throws: `invalid` for an empty label, one over 200 characters, or control characters; `exists` where a version
  ///   has the label that the path's account does not see, and that keeps it.
  package func label(_ path: ItemPath, name: String, version number: Int64?) throws -> Version {
    guard VersionLabel.isSound(name) else {
      throw SheafError(
        .invalid, subject: "label \(name.printable)", reason: "is empty, too long or has control characters",
        advice: "give 1 to 200 printable characters")
    }
    guard Int64(name) == nil else {
      throw SheafError(
        .invalid, subject: "label \(name)", reason: "is a number, and commands take a number for that of a version",
        advice: "give a label that is no number")
    }
    completeSaves()
    return try locked {
      let (inode, item) = try document(path, for: .label)
      try makeOwnVersions(inode, path)
      let current = try self.item(of: inode)?.version ?? item.version
      guard number != nil || current > 0 else {
        throw SheafError(
          .notFound, subject: "\(path)", reason: "has no versions: it is temporary or ignored (.sheafignore)")
      }
      let row = try versionRow(item.id, number ?? current, inode, path)
      let first = try firstVisibleVersion(of: item.id, inode, .api(account(path.account).id))
      if let holder = try read({ try $0.version(item.id, label: name) }) {
        guard holder.number >= first else {
          throw SheafError(
            .exists, subject: "label \(name)", reason: "is that of a version from before \(path) was shared",
            advice: "give another label")
        }
        // What changes nothing here must not undo what was done elsewhere meanwhile.
        if holder.number == row.number, !row.isOpen { return try version(row, seenFrom: first) }
      }
      try makeChange(.label) { change in
        // Later writes belong to another version than the one that gets the label.
        if row.isOpen {
          for draft in inode.drafts where draft.session?.number == row.number {
            try endVersion(of: draft, inode, change)
          }
        }
        try change.rows.setLabel(item.id, row.number, name)
        try requestLabel(name, ofVersion: row.number, item, change)
      }
      return try version(versionRow(item.id, row.number, inode, path), seenFrom: first)
    }
  }
}
