import Foundation
import SheafModel
import SheafStore

/// Paths of commands and the API, resolved without following symbolic links.
extension Library {
  /// The inode at `path`.
  ///
  /// - Throws: `notFound`, `notDirectory` that name the path.
  func resolve(_ path: ItemPath) throws -> Inode {
    var inode = try root(of: path)
    for component in path.components.dropFirst() {
      guard inode.isFolder else { throw SheafError(.notDirectory, subject: "\(path)") }
      guard let entry = try entry(inode.ino, component) else {
        throw SheafError(.notFound, subject: "\(path)", advice: "`sheaf deleted` shows what can be recovered")
      }
      inode = try self.inode(entry.ino)
    }
    return inode
  }

  /// The document at `path`, with its item.
  func document(_ path: ItemPath) throws -> (inode: Inode, item: ItemRow) {
    let inode = try resolve(path)
    // Who named it in a command knows it (rule 1 of identity).
    identity.becomesKnown(inode.ino)
    guard inode.isRegular, let item = try item(of: inode) else {
      throw SheafError(
        .invalid, subject: "\(path)", reason: "is not a document", advice: "only regular files have versions")
    }
    return (inode, item)
  }

  func root(of path: ItemPath) throws -> Inode {
    let account = try account(path.account)
    guard path.components.first == Array("Documents".utf8) else {
      throw SheafError(.notFound, subject: "\(path)", advice: "paths begin with Documents/")
    }
    return try inode(account.documents)
  }

  /// The latest deleted inode at `path`, whose folders may be deleted too.
  func resolveDeleted(_ path: ItemPath) throws -> DeletedRow {
    var folder = try root(of: path).ino
    let components = path.components.dropFirst()
    let missing = SheafError(
      .notFound, subject: "\(path)", reason: "was not deleted, or not lately",
      advice: "`sheaf deleted` shows what can be recovered")
    guard let last = components.last else { throw missing }
    for component in components.dropLast() {
      if let entry = try entry(folder, component), try inode(entry.ino).isFolder {
        folder = entry.ino
      } else if let row = try read({ try $0.deleted(from: folder, name: component) }).first {
        folder = row.ino
      } else {
        throw missing
      }
    }
    guard let row = try read({ try $0.deleted(from: folder, name: last) }).first else { throw missing }
    return row
  }

  /// The path in the account's mount of a name in a folder, such as `Documents/plans/a.md`.
  func mountPath(_ parent: Int64, _ name: [UInt8]) throws -> String {
    "Documents/" + String(decoding: try path(parent, name), as: UTF8.self)
  }
}
