import Foundation
import SheafModel
import SheafStore

/// Paths of commands and the API, resolved without following symbolic links.
///
/// Rooms: `AccountTable`, `Identity`.
extension Library {
  /// The inode at `path`.
  ///
  /// - Throws: `notFound`, `notDirectory` that name the path; `corrupt` where folders of a damaged library lie in each
  ///   other.
  func resolve(_ path: ItemPath) throws -> Inode {
    let (root, rest) = try root(of: path)
    var inode = root
    for component in rest {
      guard inode.isFolder else { throw SheafError(.notDirectory, subject: "\(path)") }
      guard let entry = try entry(inode.ino, component) else {
        throw SheafError(.notFound, subject: "\(path)", advice: "`sheaf deleted` shows what can be recovered")
      }
      let folder = inode.ino
      inode = try self.inode(entry.ino)
      try checkPlace(of: inode, in: folder, component)
      // As each folder has one place, a way that never ends comes back to where it began.
      guard inode.ino != root.ino else { throw Self.liesInItself(inode.ino) }
    }
    return inode
  }

  /// Checks that a folder that was found under a name has that name, as each has one. In a damaged library a folder may
  /// be found in itself: a walk down from one to the next would never end.
  ///
  /// - Throws: `corrupt` that names the folder.
  func checkPlace(of inode: Inode, in folder: Int64, _ name: [UInt8]) throws {
    guard inode.isFolder, inode.row.parent != folder || inode.row.name != name else { return }
    throw SheafError(
      .corrupt, subject: "folder \(inode.ino)",
      reason: "lies elsewhere than in folder \(folder), where it is found as "
        + String(decoding: name, as: UTF8.self).printable, advice: "run sheaf check")
  }

  /// The document at `path`, with its item.
  ///
  /// - Throws: `accessDenied` where the path's account may not do `operation` with it.
  func document(_ path: ItemPath, for operation: ShareOperation) throws -> (inode: Inode, item: ItemRow) {
    let inode = try resolve(path)
    try allow(operation, inode, on: path)
    // A command that named it makes it known (rule 1 of identity).
    identity.becomesKnown(inode.ino)
    guard inode.isRegular, let item = try item(of: inode) else {
      throw SheafError(
        .invalid, subject: "\(path)", reason: "is not a document", advice: "only documents have versions")
    }
    return (inode, item)
  }

  /// Checks that the path's account may do something with the inode there.
  ///
  /// - Throws: `accessDenied` that names the path.
  func allow(_ operation: ShareOperation, _ inode: Inode, on path: ItemPath) throws {
    do {
      try allow(operation, inode, .api(account(path.account).id))
    } catch let error as SheafError where error.kind == .accessDenied {
      throw error.about("\(path)")
    }
  }

  /// The folder, or the shared item, that a path begins with, and the components behind it.
  func root(of path: ItemPath) throws -> (inode: Inode, rest: ArraySlice<[UInt8]>) {
    let account = try account(path.account)
    let components = path.components
    switch components.first {
    case Array("Documents".utf8): return (try inode(account.documents), components.dropFirst())
    case Array("Shared".utf8) where components.count > 2:
      let entries = try accountTable.called(components[1]).compactMap {
        try listing(of: account.id, owner: $0.id)[components[2]]
      }
      guard let entry = entries.first else {
        throw SheafError(
          .notFound, subject: "\(path)", reason: "nothing is shared under that name",
          advice: "an invitation shows there once it is accepted: sheaf accept URL")
      }
      return (try inode(entry.ino), components.dropFirst(3))
    case Array("Shared".utf8):
      throw SheafError(
        .invalid, subject: "\(path)", reason: "is no item, but a list of what others share",
        advice: "name an item in it")
    default:
      throw SheafError(.notFound, subject: "\(path)", advice: "paths begin with Documents/ or Shared/")
    }
  }

  /// Folders of one path, there and deleted ones, in which a deleted item is looked for.
  private static let formerFolders = 64

  /// The latest deleted inode at `path`, whose folders may be deleted too, also where others have their names by now.
  func resolveDeleted(_ path: ItemPath) throws -> DeletedRow {
    let (root, components) = try root(of: path)
    let caller = Caller.api(try account(path.account).id)
    var folders = [root.ino]
    // What was deleted from a share before it came to this machine is in the trash of its owner's machines.
    let isElsewhere = try read { try $0.replica(root.row.owner)?.share != nil }
    let missing = SheafError(
      .notFound, subject: "\(path)", reason: "is not among the deleted",
      advice: isElsewhere
        ? "\(try handle(root.row.owner)) can recover what was deleted before it came to this machine"
        : "`sheaf deleted` shows what can be recovered")
    guard let last = components.last else { throw missing }
    func deleted(_ name: [UInt8], from folder: Int64, limit: Int) throws -> [DeletedRow] {
      var found: [DeletedRow] = []
      for row in try read({ try $0.deleted(from: folder, name: name) })
      where try found.count < limit && isVisible(row, caller) { found.append(row) }
      return found
    }
    for component in components.dropLast() {
      var inner: [Int64] = []
      for folder in folders where inner.count < Self.formerFolders {
        if let entry = try entry(folder, component), try inode(entry.ino).isFolder { inner.append(entry.ino) }
        inner += try deleted(component, from: folder, limit: Self.formerFolders - inner.count).map(\.ino)
      }
      folders = inner
    }
    let found = try folders.compactMap { try deleted(last, from: $0, limit: 1).first }
    guard let row = found.max(by: { $0.time < $1.time }) else { throw missing }
    return row
  }
}
