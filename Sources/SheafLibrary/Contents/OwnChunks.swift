import SheafModel
import SheafStore

/// The chunks that a session's version alone holds, and which are freed as soon as it is renewed without them
/// (docs/ARCHITECTURE.md, "Sessions").
///
/// Rooms: `Chunks`.
extension Library {
  /// Frees chunks that this session's version held alone until this renewal replaced the last extent that referred to
  /// them.
  ///
  /// - Parameter references: ``Content/references`` of the new contents.
  func freeReplaced(
    _ references: [Int64: Int], _ session: EditingSession, _ inode: Inode, _ change: Change
  ) throws -> Set<Int64> {
    var freed: Set<Int64> = []
    for (chunk, difference) in references where difference < 0 {
      let own =
        chunks.isOwned(chunk, by: inode.ino)
        ? session.ownChunks[chunk] : change.storedChunks.contains(chunk) ? 1 : nil
      guard let own, own + difference <= 0 else { continue }
      try change.rows.deleteChunk(chunk)
      chunks.cache.remove(chunk)
      freed.insert(chunk)
    }
    return freed
  }

  /// Notes that the session of `draft` alone holds the chunks `own`, unless another account has the file open: its
  /// draft takes what is saved, and may give it on.
  func claim(_ own: Set<Int64>, _ inode: Inode, _ draft: Draft) {
    guard inode.drafts.allSatisfy({ $0 === draft || $0.working == nil && $0.session == nil }) else { return }
    for chunk in own {
      draft.session?.ownChunks[chunk] = 1
      chunks.setOwner(of: chunk, inode.ino)
    }
  }

  /// Notes that the draft does not hold the chunks `shared` alone any more.
  func disown(_ shared: some Sequence<Int64>, _ draft: Draft) {
    for chunk in shared where draft.session?.ownChunks.removeValue(forKey: chunk) != nil {
      chunks.removeOwner(of: chunk)
    }
  }

  /// Lets the chunks of `draft` outlive later renewals: something else refers to them now, or to parts of them.
  func shareChunks(of draft: Draft) {
    for chunk in draft.session?.ownChunks.keys ?? [:].keys { chunks.removeOwner(of: chunk) }
    draft.session?.ownChunks = [:]
  }

  /// Lets the chunks of every draft of `inode` outlive later renewals: a copy of what is saved refers to them now.
  func shareChunks(of inode: Inode) {
    for draft in inode.drafts { shareChunks(of: draft) }
  }
}
