package import SheafModel
import SheafStore

/// The spans for which folders keep their versions and deleted items (``RetentionPolicy``).
extension Library {
  /// Folders of a library that can say something.
  private static let retainingLimit = 1000

  /// For how long versions and deleted items of a folder are kept.
  ///
  /// - Throws: `notFound`, `accessDenied` for what another account owns, `notDirectory`.
  package func retention(_ path: ItemPath) throws -> Retention {
    try locked { try retention(of: retainingFolder(path), path) }
  }

  /// Changes what a folder says; returns what holds then.
  ///
  /// - Throws: as ``retention(_:)``; `invalid` for a span that is too short or too long; `tooLarge` where too many
  ///   folders say something.
  package func retain(_ path: ItemPath, _ wanted: RetentionChange) throws -> Retention {
    for span in [wanted.keepDeleted, wanted.keepVersions] { try RetentionPolicy.check(span) }
    return try locked {
      let folder = try retainingFolder(path)
      guard let item = folder.row.item else { throw SheafError(.invalid, subject: "\(path)", reason: "is no item") }
      let policy = try read { try RetentionPolicy($0) }
      guard wanted.isDefault || policy.items.contains(item) || policy.items.count < Self.retainingLimit else {
        throw SheafError(
          .tooLarge, subject: "\(path)", reason: "\(Self.retainingLimit) folders say for how long they keep things",
          advice: "take one back with: sheaf retain PATH --default")
      }
      let before = policy.ownSpans(of: item)
      try makeChange(.accounts) { change in
        for (key, span) in [
          (RetentionPolicy.deletedKey, wanted.keepDeleted), (RetentionPolicy.versionsKey, wanted.keepVersions),
        ] {
          if let span {
            try change.rows.setSetting("\(key).\(item)", span)
          } else if wanted.isDefault {
            try change.rows.setSetting("\(key).\(item)", nil as String?)
          }
        }
        if try RetentionPolicy(change.rows).ownSpans(of: item) != before { try requestRetention(of: item, change) }
      }
      return try retention(of: folder, path)
    }
  }

  private func retainingFolder(_ path: ItemPath) throws -> Inode {
    let folder = try resolve(path)
    try allow(.purge, folder, on: path)
    guard folder.isFolder else {
      throw SheafError(
        .notDirectory, subject: "\(path)", reason: "is no folder", advice: "name the folder that it is in")
    }
    return folder
  }

  private func retention(of folder: Inode, _ path: ItemPath) throws -> Retention {
    let hub = try hubRetention(of: folder)
    return try read { transaction in
      var policy = try RetentionPolicy(transaction)
      let spans = try policy.spans(in: folder.ino, transaction)
      let around = try policy.spans(in: folder.row.parent, transaction)
      func own(_ key: String) throws -> Int64? {
        try folder.row.item.flatMap { try transaction.numberSetting("\(key).\($0)") }
      }
      return Retention(
        path: "\(path)", keepDeleted: spans.deleted, keepVersions: spans.versions,
        ownKeepDeleted: try own(RetentionPolicy.deletedKey), ownKeepVersions: try own(RetentionPolicy.versionsKey),
        aroundKeepDeleted: around.deleted, aroundKeepVersions: around.versions, hub: hub)
    }
  }
}
