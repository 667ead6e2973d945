package import SheafModel
import SheafReplica
package import SheafWire

extension Library {
  /// Changes that are looked at with the lock held.
  private static let unsentStep = 64

  /// Whether something was saved or made in an item, deleted, or moved anywhere, that the hub does not have yet. If the
  /// item were shared before that is sent, people there would see what was before.
  ///
  /// - Parameter time: What was saved later does not count.
  /// - Throws: `notFound` for an account that is not connected.
  package func hasUnsent(below item: WireID, savedBy time: Timestamp, of account: Int64) throws -> Bool {
    try locked { try settleSessionsWithRoom() }
    var last: [UInt8]? = []
    while let start = last {
      let (isUnsent, next) = try locked { try unsent(below: item, savedBy: time, after: start, of: account) }
      if isUnsent { return true }
      last = next
    }
    return false
  }

  /// - Returns: whether some of the changes after one are such, and the last that was looked at; nil where it was the
  ///   last one of all.
  private func unsent(
    below top: WireID, savedBy time: Timestamp, after start: [UInt8], of account: Int64
  ) throws -> (isUnsent: Bool, next: [UInt8]?) {
    let replica = try connected(account)
    var tree = try ReplicaTree(self, replica)
    let sent: Set<WireID> =
      start.isEmpty
      ? try Set(
        read { try $0.replicaSends(of: account, limit: .max) }.map {
          (try replicaTexts.decode($0.send) as Send).item
        }) : []
    let noted = try read { try $0.replicaChanges(of: account, after: start, limit: Self.unsentStep) }
    for id in Set(noted.compactMap { WireID(bytes: $0) }).union(sent) {
      let (local, base) = (try tree.local(id), try tree.base(id))
      if case .refused = try tree.mark(id) { continue }
      if let local, base == nil {
        // What never travels, and what is still being written for the first time.
        if local.readiness == .never || local.readiness == .waiting && local.unsent.isEmpty { continue }
      }
      if !sent.contains(id), Planner.isSettled(local, base) { continue }
      guard let local, let inode = try tree.inode(id) else { return (true, nil) }
      if let base, Set(base.places) != local.places { return (true, nil) }
      // Who goes on saving is not waited for.
      let isOld = local.unsent.contains { $0.time <= time.nanoseconds } || local.unsent.isEmpty
      if isOld, try isBelow(inode, top, &tree) { return (true, nil) }
    }
    return (false, noted.count < Self.unsentStep ? nil : noted.last)
  }

  private func isBelow(_ inode: Inode, _ top: WireID, _ tree: inout ReplicaTree) throws -> Bool {
    if top == .root { return true }
    guard let shared = try tree.inode(top) else { return false }
    if inode.ino == shared.ino { return true }
    var isBelow = false
    try ascend(from: inode.row.parent) { folder in
      isBelow = folder.ino == shared.ino
      return !isBelow
    }
    return isBelow
  }
}
