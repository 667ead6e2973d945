import Foundation
package import SheafModel
import SheafStore

extension Library {
  /// Where an item is, or was when it was deleted, in an account's mount: for who has its id, since a name need not be
  /// UTF-8 and an item may have moved.
  ///
  /// - Parameter isExact: whether the path must lead to that item. Another one may have its name by now, or been
  ///   deleted there later.
  /// - Throws: `notFound`, in the same words for an item that the account may not see; `busy` where the path leads
  ///   elsewhere.
  package func path(ofItem id: String, for handle: AccountHandle, isExact: Bool) throws -> ItemPath {
    try locked {
      let account = try account(handle).id
      let missing = SheafError(
        .notFound, subject: "id:\(id)", reason: "no such item", advice: "`sheaf status PATH --json` tells the id of one"
      )
      guard let uuid = UUID(uuidString: id), let item = try read({ try $0.item(uuid: uuid) }),
        let row = try read({ try $0.inode(item: item.id) })
      else { throw missing }
      let inode = try inode(row.ino)
      if let deleted = try read({ try $0.deleted(inode.ino) }) {
        guard try isMine(inode, account) || share(ofFolder: deleted.parent)?.member(account) != nil,
          try isVisible(deleted, .api(account))
        else { throw missing }
        let path = try itemPath(deleted.parent, deleted.name, item.id, handle, account)
        if isExact, (try? resolve(path)) != nil || (try? resolveDeleted(path))?.ino != inode.ino {
          throw SheafError(
            .busy, subject: "\(path)", reason: "names another item by now",
            advice: "recover this one first: sheaf recover id:\(id)")
        }
        return path
      }
      guard inode.row.nlink > 0, try isMine(inode, account) || share(of: inode)?.member(account) != nil else {
        throw missing
      }
      return try itemPath(inode.row.parent, inode.row.name, item.id, handle, account)
    }
  }

  private func isMine(_ inode: Inode, _ account: Int64) -> Bool { inode.row.owner == account }

  private func itemPath(
    _ parent: Int64, _ name: [UInt8], _ item: Int64, _ handle: AccountHandle, _ account: Int64
  ) throws -> ItemPath {
    let components = try mountComponents(parent, name, for: account, item: item)
    return try ItemPath(account: handle, bytes: components.joined(separator: [UInt8(ascii: "/")]))
  }
}
