package import SheafWire

/// What a replica is to do: changes of this machine and of what it remembers, in one transaction, and what to ask of the
/// hub.
package struct Plan: Hashable, Sendable {
  package let changes: [LocalChange]
  package let records: [RecordChange]
  /// Groups of sends in their order, without serials. Versions have no contents yet.
  package let groups: [[Send]]
  package let notices: [ReplicaNotice]
  /// The items of verdicts that are on this machine as the hub has them, once the changes are carried out.
  package let settled: [WireID]

  init(_ draft: ReplicaDraft, groups: [[Send]] = [], settled: [WireID] = []) {
    changes = draft.changes
    records = draft.records
    notices = draft.notices
    self.groups = groups
    self.settled = settled
  }
}

/// Compares what is on this machine, what the hub had when both last agreed, and what the hub told since.
///
/// It is a function of these three trees alone. It plans when every send of the plan before has its verdict, and the
/// feed was read to its end.
package enum Planner {
  /// - Parameters:
  ///   - changed: Items that were changed on this machine since they agreed with the hub.
  ///   - news: Items of which the hub told something that is not shown yet.
  ///   - read: The newest number of the feed that was read.
  ///   - isWhole: Whether these are all items that were changed.
  package static func plan(
    changed: [WireID], news: [WireID], read: Int64, isWhole: Bool = true, _ reader: any ReplicaReader
  ) throws -> Plan {
    var arrivals = Arrivals(ReplicaDraft(reader))
    var draft = try arrivals.arrive(news)
    // To a deletion what is not shown yet is unknown.
    var shown = read
    for id in news { if let held = try draft.news(id) { shown = min(shown, held.number - 1) } }
    var departures = Departures(draft, read: max(0, shown), isWhole: isWhole)
    let (groups, planned) = try departures.depart(changed)
    return Plan(planned, groups: groups)
  }

  /// Whether an item of this machine is as the hub has it, and everything that was saved here was sent.
  ///
  /// - Parameters:
  ///   - local: The item; nil where this machine has none.
  ///   - base: The hub's state; nil where the hub has none.
  package static func isSettled(_ local: LocalItem?, _ base: ItemState?) -> Bool {
    guard let local else { return base == nil }
    return Departures.isClean(local, base)
  }

  /// What follows from the hub's verdicts.
  ///
  /// - Parameter verdicts: Each with its send, in the order of their serials.
  package static func settle(
    _ verdicts: [(send: Send, verdict: Verdict)], _ reader: any ReplicaReader
  ) throws -> Plan {
    var settlement = Settlement(ReplicaDraft(reader))
    var draft = try settlement.settle(verdicts)
    let settled = try Set(verdicts.map(\.send.item)).filter { id in
      let (local, base) = (try draft.local(id), try draft.base(id))
      // Whether something that is missing was deleted, the next plan finds out.
      guard let local, let base, try draft.mark(id) == nil, try draft.news(id) == nil else { return false }
      return isSettled(local, base) && local.version == base.version?.id
    }
    return Plan(draft, settled: settled.sorted())
  }

  /// What follows when everything was read anew, since the hub does not have the change any more that was read last: it
  /// went back to an earlier state, or has forgotten deletions.
  ///
  /// What the hub does not have as the replica knows it is sent again. Nothing is deleted.
  ///
  /// - Parameters:
  ///   - known: Every item of the base, and every document of this machine.
  ///   - news: The items of which there was news that was not shown.
  ///   - states: What the hub has now.
  ///   - chain: A document's versions on this machine, the oldest first.
  package static func reread(
    known: [WireID], news: [WireID], states: [ItemState], chain: (WireID) throws -> [LocalVersion],
    _ reader: any ReplicaReader
  ) throws -> Plan {
    var rereading = Rereading(ReplicaDraft(reader))
    let draft = try rereading.reread(known: known, news: news, states: states, chain: chain)
    return Plan(draft)
  }
}
