package import SheafModel
import SheafStore

/// Deleted items as people see them: a folder is one item, with everything that went with it.
///
/// Rooms: `ShareBook`.
extension Library {
  /// Rows that are looked at with the lock held, so that nobody waits for a long list.
  private static let treeBatch = 128

  /// The deleted items that can be recovered, latest first, without those in deleted folders: each folder has the
  /// number of these.
  ///
  /// - Parameters:
  ///   - path: a folder, for what was deleted below it; a deleted item, for all that was deleted there, and for what
  ///     was in it; nil for all there is.
  ///   - limit: how many are returned.
  /// - Throws: `notFound` for an unknown account.
  package func deletedTrees(_ handle: AccountHandle, below path: ItemPath?, limit: Int) throws -> DeletedTrees {
    var found: [(ino: Int64, item: DeletedItem, since: Timestamp)] = []
    var more = 0
    let folder = path.flatMap { path in try? locked { try resolveDeleted(path).ino } }
    var last: DeletedRow?
    repeat {
      last = try locked {
        let account = try account(handle)
        let owners = Set([account.id] + shares.owners(sharingWith: account.id))
        let rows = try read { try $0.deleted(before: last, limit: Self.treeBatch) }
        for (row, owner) in rows where owners.contains(person(of: owner)) {
          // An item in a deleted folder comes back with the folder, or is listed by the folder's path.
          let isTop = try inode(row.parent).row.nlink > 0 || row.parent == folder
          guard isTop, let item = try item(of: inode(row.ino)), try isVisible(row, .api(account.id)) else { continue }
          let place = try mountPath(row.parent, row.name, for: account.id)
          guard row.parent == folder || lies(place, at: path) else { continue }
          guard found.count < limit else {
            more += 1
            continue
          }
          let told = DeletedItem(id: item.uuid.text, path: place, time: row.time, actor: try self.handle(row.actor))
          // Participants do not learn how much was deleted before they could see it.
          let since = try visibleDeletions(from: row.ino, .api(account.id)) ?? Timestamp(nanoseconds: .min)
          found.append((row.ino, told, since))
        }
        return rows.count < Self.treeBatch ? nil : rows.last?.row
      }
    } while last != nil
    let trees = try store.snapshot { transaction in
      try found.map {
        DeletedTree(
          item: $0.item, items: try transaction.countBelow($0.ino, deletedSince: $0.since, limit: PurgeExtent.limit))
      }
    }
    return DeletedTrees(trees: trees, more: more)
  }

  private func lies(_ place: String, at path: ItemPath?) -> Bool {
    guard let path else { return true }
    let (whole, place) = (path.bytes, Array(place.utf8))
    return place == whole || place.starts(with: whole + Array("/".utf8))
  }
}
