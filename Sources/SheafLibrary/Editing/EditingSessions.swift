/// The editing sessions that go on, and what of them waits to be stored.
struct EditingSessions {
  /// The inodes that have a session, by number.
  private var active: [Int64: Inode] = [:]
  /// Those whose contents wait in the working file for being stored.
  private var kept: [Int64: Inode] = [:]
  /// The sessions whose version is stored and only waits to be ended, oldest first.
  private(set) var ended: [EndedSession] = []
  /// Bytes in memory that are not stored, of all drafts.
  private(set) var unsavedBytes = 0

  // MARK: - Sessions

  var isEmpty: Bool { active.isEmpty }

  /// The inodes that have a session.
  var inodes: some Collection<Inode> { active.values }

  /// The inode of a number, if it has a session.
  func inode(_ ino: Int64) -> Inode? { active[ino] }

  /// Notes that a session of an inode goes on.
  mutating func insert(_ inode: Inode) { active[inode.ino] = inode }

  mutating func remove(_ ino: Int64) { active[ino] = nil }

  /// Removes an inode whose last session ended.
  mutating func removeIfEnded(_ inode: Inode) {
    if !inode.hasSession { active[inode.ino] = nil }
  }

  // MARK: - Kept contents

  var hasKept: Bool { !kept.isEmpty }

  /// The inodes whose contents wait in the working file.
  var keptInodes: some Collection<Inode> { kept.values }

  /// The inode of a number, where its contents wait in the working file.
  func keptInode(_ ino: Int64) -> Inode? { kept[ino] }

  mutating func insertKept(_ inode: Inode) { kept[inode.ino] = inode }

  mutating func removeKept(_ ino: Int64) { kept[ino] = nil }

  // MARK: - Ended sessions

  mutating func insert(_ session: EndedSession) { ended.append(session) }

  /// Removes the sessions that ended first.
  mutating func removeEnded(_ count: Int) { ended.removeFirst(count) }

  // MARK: - Unsaved bytes

  /// Notes how many bytes more, or fewer, are not stored.
  mutating func addUnsaved(_ bytes: Int) { unsavedBytes += bytes }
}
