import SheafModel
import SheafStore

/// Thinning what programs save faster than people do.
///
/// Rooms: `EditingSessions`, `Numbers`, `RapidSaves`.
extension Library {
  /// Versions that one transaction takes away at most.
  private static let rapidBatch = 64

  /// Removes some versions that are surplus, with their events; returns whether there may be more.
  ///
  /// Those stay that somebody named, that a conflict or an open session refers to, those with which the document entered
  /// a share, and those that passed over what somebody else had saved: nobody else would tell them of it.
  func thinRapidSaves() throws -> Bool {
    guard !rapidSaves.isEmpty else { return false }
    if try rapidSavesSetting() == .keep {
      rapidSaves.removeAll()
      return false
    }
    let saves = rapidSaves.takeSurplus(Self.rapidBatch, at: clock())
    guard !saves.isEmpty else { return false }
    let bases = sessionBases()
    var bytes: Int64 = 0
    // The newest number in the log is never given again, so its version waits for the next event. One that is being sent
    // to a hub waits for the answer.
    var waiting: [RapidSaves.Save] = []
    try makeChange(.thin, freesSpace: true) { change in
      (bytes, waiting) = (0, [])
      let newest = try change.rows.newestEdit()
      for (item, saves) in Dictionary(grouping: saves, by: \.item) {
        guard let row = try change.rows.item(item) else { continue }
        let spared = try entryVersions(of: item).union(bases[item] ?? [])
        let sent = try versionsBeingSent(of: row)
        var thinned: Set<Int64> = []
        for save in saves where save.number != row.conflict && !spared.contains(save.number) {
          guard newest?.item != item || newest?.version != save.number, !sent.contains(save.number) else {
            waiting.append(save)
            continue
          }
          guard try !passesOverOthers(item, save.number, change), try change.rows.thinVersion(item, save.number)
          else { continue }
          thinned.insert(save.number)
          bytes = bytes.addingSaturated(save.size)
        }
        guard let first = saves.map(\.event).min(), !thinned.isEmpty else { continue }
        try dropPending(item, types: [.edit], ofVersions: thinned, change)
        try change.rows.dropEdits(of: item, versions: thinned, after: first, before: numbers.event)
      }
    }
    rapidSaves.putBack(waiting)
    noteDiscarded(bytes: bytes)
    return waiting.count < saves.count
  }

  /// Whether a version was not based on the one before it, which another person had saved.
  private func passesOverOthers(_ item: Int64, _ number: Int64, _ change: Change) throws -> Bool {
    guard let version = try change.rows.version(item, number), let base = version.base, base < number - 1,
      let former = try change.rows.version(item, number - 1)
    else { return false }
    return former.author != version.author
  }

  /// The versions from which sessions go on, by item.
  private func sessionBases() -> [Int64: Set<Int64>] {
    var bases: [Int64: Set<Int64>] = [:]
    for inode in sessions.inodes {
      guard let item = inode.row.item else { continue }
      bases[item, default: []].formUnion(inode.drafts.compactMap { $0.session?.base })
    }
    return bases
  }
}
