import SheafWire

/// Compares what the replica knows with everything that the hub has.
struct Rereading {
  private var draft: ReplicaDraft

  init(_ draft: ReplicaDraft) { self.draft = draft }

  mutating func reread(
    known: [WireID], news: [WireID], states: [ItemState], chain: (WireID) throws -> [LocalVersion]
  ) throws -> ReplicaDraft {
    var told: [WireID: ItemState] = [:]
    for state in states { told[state.item] = state }
    for id in news where told[id] == nil { draft.setNews(id, nil) }
    for id in known.sorted() {
      let state = told[id]
      guard let base = try draft.base(id) else {
        // What was deleted at the hub and is to come back there.
        if state?.isDeleted ?? true { try sendAgain(id, after: nil, chain) }
        continue
      }
      if let state, !state.isDeleted, state.number >= base.number {
        // Whether the hub ever had what is here cannot be told by numbers: they may have been given twice.
        if state.version?.id != base.version?.id { try sendAgain(id, after: state.version?.id, chain) }
        continue
      }
      if let state, state.isDeleted, state.number > base.number { continue }
      // The hub went back to before it had this.
      told[id] = nil
      draft.setNews(id, nil)
      let left = state.flatMap { $0.isDeleted ? nil : $0 }
      try draft.setBase(id, left)
      if try draft.mark(id) == .undone {
        // What was to be shown again is shown as it was then.
        if let left { draft.setNews(id, left) } else { try draft.setMark(id, nil) }
      }
      if left?.version?.id != base.version?.id || left == nil { try sendAgain(id, after: left?.version?.id, chain) }
    }
    for state in told.values.sorted(by: { $0.item < $1.item }) { draft.setNews(state.item, state) }
    return draft
  }

  /// Has the versions of a document sent that came after one; a hub that has them does nothing.
  private mutating func sendAgain(
    _ id: WireID, after version: WireID?, _ chain: (WireID) throws -> [LocalVersion]
  ) throws {
    guard var local = try draft.local(id), local.kind == .document else { return }
    let versions = try chain(id)
    let first = versions.lastIndex { $0.id == version }.map { $0 + 1 } ?? 0
    let unsent = Set(local.unsent.map(\.id))
    local.unsent = versions[first...].filter { !unsent.contains($0.id) } + local.unsent
    try draft.put(local)
  }
}
