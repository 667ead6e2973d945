import Foundation
package import SheafModel
import SheafStore

/// The contents of `.versions/`: a folder for each document of a folder, and for each one deleted from it; in each a
/// file for each version.
///
/// Rooms: `VersionReaders`.
extension Library {
  /// A document's folder of versions.
  package struct VersionFolder: Hashable, Sendable {
    /// The document's name, or that of ``DeletedNames``.
    package let name: [UInt8]
    package let item: Int64
    package let mtime: Timestamp
  }

  /// A version as a read-only file.
  package struct VersionFile: Hashable, Sendable {
    package let name: [UInt8]
    package let item: Int64
    package let number: Int64
    package let size: Int64
    package let mtime: Timestamp
    package let isOpen: Bool
    /// Whether another account than that which asks owns it.
    package let isForeign: Bool
  }

  /// Documents, and versions, that are looked at with everybody waiting.
  static let listingStep = 256

  /// The folders of `.versions/` in the folder `ino`.
  ///
  /// They are gathered some at a time, with the lock free in between: as readdir(3) has it, what comes or goes meanwhile
  /// may be among them.
  package func versionFolders(of ino: Int64, _ caller: Caller) throws -> [VersionFolder] {
    var folders: [VersionFolder] = []
    var used: Set<[UInt8]> = []
    var cookie: Int64? = 0
    while let start = cookie {
      let page = try locked { try someEntries(of: ino, after: start, caller) }
      used.formUnion(page.names)
      folders += page.folders
      cookie = page.next
    }
    let deleted = try deletedNames(.documents, from: ino, used, caller)
    for start in stride(from: 0, to: deleted.count, by: Self.listingStep) {
      folders += try locked {
        try allow(.readHistory, inode(ino), caller)
        return try deleted[start..<min(start + Self.listingStep, deleted.count)].compactMap { document in
          // One that is back, or purged, by now is not among them.
          guard try read({ try $0.deleted(document.row.ino) }) == document.row else { return nil }
          return try versionFolder(of: document.row, document.name)
        }
      }
    }
    return folders
  }

  /// Names in a folder that a listing of its `.versions/` comes to next, and the documents among them; `next` is nil
  /// where there are no more.
  func someEntries(
    of ino: Int64, after cookie: Int64, _ caller: Caller
  ) throws -> (names: [[UInt8]], folders: [VersionFolder], next: Int64?) {
    try allow(.readHistory, inode(ino), caller)
    let entries = try read { try $0.entries(ino, after: cookie, limit: Self.listingStep) }
    let folders = try entries.compactMap { entry -> VersionFolder? in
      let inode = try inode(entry.ino)
      guard inode.isRegular, let item = inode.row.item else { return nil }
      // That name leads to the folder as it was.
      if Self.pastTime(entry.name) != nil { return nil }
      return VersionFolder(name: entry.name, item: item, mtime: inode.row.mtime)
    }
    return (entries.map(\.name), folders, entries.last?.hash)
  }

  /// The folder of `.versions/` called `name`.
  ///
  /// - Throws: `notFound`.
  package func versionFolder(of ino: Int64, _ name: [UInt8], _ caller: Caller) throws -> VersionFolder {
    try locked {
      try allow(.readHistory, inode(ino), caller)
      if let entry = try entry(ino, name) {
        let inode = try inode(entry.ino)
        if inode.isRegular, let item = inode.row.item {
          return VersionFolder(name: name, item: item, mtime: inode.row.mtime)
        }
        throw SheafError(.notFound)
      }
      guard let row = try deleted(.documents, shownAs: name, in: ino, caller, { try self.entry(ino, $0) != nil }),
        let folder = try versionFolder(of: row, name)
      else { throw SheafError(.notFound) }
      return folder
    }
  }

  private func versionFolder(of row: DeletedRow, _ name: [UInt8]) throws -> VersionFolder? {
    let inode = try inode(row.ino)
    return inode.row.item.map { VersionFolder(name: name, item: $0, mtime: inode.row.mtime) }
  }

  /// The files of a document's folder of versions, oldest first.
  package func versionFiles(of item: Int64, _ caller: Caller) throws -> [VersionFile] {
    completeSaves()
    try locked { try settleSessions() }
    return try visibleVersions(of: item, caller) { row, inode, _ in try versionFile(row, of: inode, caller) }
  }

  /// The versions of a document that someone sees, oldest first, read some at a time with the lock free in between.
  ///
  /// - Parameter value: Makes a value from a version, its document's inode and the number of the first version that
  ///   they see.
  func visibleVersions<Value>(
    of item: Int64, _ caller: Caller, _ value: (VersionRow, Inode, Int64) throws -> Value
  ) throws -> [Value] {
    var values: [Value] = []
    var next: Int64? = .max
    while let end = next {
      try locked {
        let (inode, first) = try history(of: item, caller)
        let rows = try someVersions(of: item, below: end, from: first)
        values += try rows.map { try value($0, inode, first) }
        next = rows.count < Self.listingStep ? nil : rows.last?.number
      }
    }
    return values.reversed()
  }

  /// Versions of a document that a list of them comes to next, latest first.
  func someVersions(of item: Int64, below end: Int64, from first: Int64) throws -> [VersionRow] {
    try read { try $0.versions(item, below: end, limit: Self.listingStep) }.filter { $0.number >= first }
  }

  /// The inode of a document whose versions someone looks at, and the number of the first that they see.
  private func history(of item: Int64, _ caller: Caller) throws -> (inode: Inode, first: Int64) {
    guard let row = try read({ try $0.inode(item: item) }) else { throw SheafError(.notFound) }
    let inode = try inode(row.ino)
    try allow(.readHistory, inode, caller)
    if row.nlink == 0, let deleted = try read({ try $0.deleted(row.ino) }) {
      guard try isVisible(deleted, caller) else { throw Self.denied }
    }
    return (inode, try firstVisibleVersion(of: item, inode, caller))
  }

  /// The row of a version that someone looks at.
  private func visibleVersion(of item: Int64, number: Int64, _ caller: Caller) throws -> (inode: Inode, row: VersionRow)
  {
    let (inode, first) = try history(of: item, caller)
    guard number >= first, let row = try read({ try $0.version(item, number) }) else { throw SheafError(.notFound) }
    return (inode, row)
  }

  /// One version as a file.
  package func versionFile(of item: Int64, number: Int64, _ caller: Caller) throws -> VersionFile {
    completeSaves()
    return try locked {
      if number == Self.beforeFirst { return try unsavedFile(of: item, caller) }
      let (inode, row) = try visibleVersion(of: item, number: number, caller)
      return try versionFile(row, of: inode, caller)
    }
  }

  /// The number that stands for a document before its first version, which is empty.
  static let beforeFirst: Int64 = 0

  /// A document before its first version, as a file without a name in `.versions/`.
  private func unsavedFile(of item: Int64, _ caller: Caller) throws -> VersionFile {
    let inode = try history(of: item, caller).inode
    let created = try self.item(of: inode)?.created ?? inode.row.mtime
    return VersionFile(
      name: [], item: item, number: Self.beforeFirst, size: 0, mtime: created, isOpen: false,
      isForeign: isForeign(inode, caller))
  }

  /// `NUMBER~TIME~AUTHOR.EXT`; an extension too long is dropped.
  private func versionFile(_ row: VersionRow, of inode: Inode, _ caller: Caller) throws -> VersionFile {
    let digits = "\(row.number)"
    let number = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    var name = Array("\(number)~\(row.time.nameText)~\(try handle(row.author))".utf8)
    if let dot = inode.row.name.lastIndex(of: UInt8(ascii: ".")), dot > 0 {
      let ending = inode.row.name[dot...]
      if name.count + ending.count <= 255 { name += ending }
    }
    return VersionFile(
      name: Array(name.prefix(255)), item: row.item, number: row.number, size: row.size, mtime: row.time,
      isOpen: row.isOpen, isForeign: isForeign(inode, caller))
  }

  /// Whether an account sees a version, of its own document or of one shared with it.
  package func sees(version number: Int64, of item: Int64, _ account: Int64) -> Bool {
    locked { (try? history(of: item, .api(account))).map { number >= $0.first } ?? false }
  }

  /// The owner of a document's versions in the mount: the uid and gid of its file.
  package func versionOwner(of item: Int64, _ caller: Caller) throws -> (uid: UInt32, gid: UInt32) {
    try locked {
      let shown = try attributes(history(of: item, caller).inode, caller)
      return (shown.uid, shown.gid)
    }
  }

  /// The folder that a document lies in, or was deleted from.
  package func folder(ofItem item: Int64) throws -> Int64 {
    try locked {
      guard let inode = try read({ try $0.inode(item: item) }) else { throw SheafError(.notFound) }
      return inode.parent
    }
  }

  /// Opens a version for reading.
  ///
  /// - Throws: `notFound`, `accessDenied` where the caller may not read the document.
  package func openVersion(of item: Int64, number: Int64, _ caller: Caller) throws -> VersionReader {
    completeSaves()
    return try locked {
      try settleSessions()
      if number == Self.beforeFirst {
        let inode = try history(of: item, caller).inode
        try permit(inode, caller, Permission.read)
        return reader(of: .empty, item, number, inode, caller)
      }
      let (inode, row) = try visibleVersion(of: item, number: number, caller)
      // Whom the document keeps out, its history does too.
      try permit(inode, caller, Permission.read)
      if row.isOpen { shareChunks(of: inode) }
      return reader(of: row.content, item, number, inode, caller)
    }
  }

  /// A reader of contents whose chunks stay for as long as it does, whatever becomes of the version.
  func reader(
    of content: StoredContent, _ item: Int64, _ number: Int64, _ inode: Inode, _ caller: Caller
  ) -> VersionReader {
    versionReaders.insert(VersionReader(content, access: isForeign(inode, caller) ? (item, number, caller) : nil))
  }

  /// Reads into `buffer` from `offset` of an open version; returns the number of bytes, 0 at the end.
  package func read(
    _ reader: VersionReader, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
  ) throws -> Int {
    try read(reader, at: offset, into: buffer) {}
  }

  /// - Parameter beforeFetching: called without the lock, if chunks have to be fetched.
  func read(
    _ reader: VersionReader, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer, beforeFetching: () -> Void
  ) throws -> Int {
    try readBeside(into: buffer, beforeFetching) {
      try check(reader)
      return try reader.copy.plan(at: offset, count: buffer.count, from: self)
    }
  }

  /// Gives those who have versions open the bytes of absent contents that were fetched.
  ///
  /// - Parameters:
  ///   - id: Row of the absent contents.
  ///   - range: Which bytes of them.
  func fillReaders(_ id: Int64, _ range: Range<Int64>, with fetched: Content) {
    var fetched = fetched
    for reader in versionReaders.all where reader.copy.content.absentLength > 0 {
      do {
        try reader.copy.fill(id, range, with: &fetched, from: self)
      } catch {
        // Its next read fails, and says why.
        log.error("fetched contents did not reach a reader", metadata: ["error": "\(error)"])
      }
    }
  }

  /// Checks that the reader of a version that another account shares may still read it.
  func check(_ reader: VersionReader) throws {
    guard let access = reader.access else { return }
    guard try access.number >= history(of: access.item, access.caller).first else { throw Self.denied }
  }

  /// As ``seek(_:_:hole:)-(UInt64,_,_)``, in an open version.
  package func seek(_ reader: VersionReader, _ offset: Int64, hole: Bool) throws -> Int64 {
    try locked {
      try check(reader)
      guard offset >= 0, offset < reader.copy.size else { throw SheafError(.noSuchAddress) }
      if let found = try reader.copy.next(hole: hole, at: offset, from: self) { return found }
      guard hole else { throw SheafError(.noSuchAddress) }
      return reader.copy.size
    }
  }
}
