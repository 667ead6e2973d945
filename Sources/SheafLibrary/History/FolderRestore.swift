import Foundation
package import SheafModel
import SheafStore

/// Restoring a folder as it was, by one ordinary change after the other, so that others can work meanwhile.
///
/// Rules:
/// 1. ``FolderRestorePlan`` has the actions. Each action looks at its item anew: an item that somebody else moved or
///    deleted meanwhile stays as they left it.
/// 2. Each action is a change with its event, and needs the same rights as always. If an action is refused, its item is
///    left alone, unless the right to restore is gone.
/// 3. Nothing is lost: deleted items can be recovered, and unsaved contents of programs become a version first.
/// 4. An interrupted restoration can be repeated: items that are restored already need no action.
extension Library {
  /// Makes a folder what it was at a time, or undoes what one person did in it since then, or in a span of time; with
  /// `dryRun` only says what that is.
  ///
  /// - Throws: `notFound` where the folder or the person does not exist, or the folder did not then; `invalid` for what
  ///   is no folder, a time that is yet to come, and a span without a person or that ends before it begins; `accessDenied`; `noSpace`.
  package func restoreFolder(
    _ path: ItemPath, _ request: FolderRestoreRequest, progress: (SheafModel.Progress) -> Void
  ) throws -> FolderRestoration {
    completeSaves()
    try settleEventsInSteps()
    let (top, caller, person, time) = try locked { try beginRestore(of: path, request) }
    do {
      _ = try pastFolder(top, at: time, caller)
    } catch let error as SheafError where error.kind == .notFound {
      throw SheafError(
        .notFound, subject: "\(path)", reason: "is not to be seen as it was at \(time.secondsText)",
        advice: "give a time since it was made, or since it was shared with you", times: [time])
    }
    let plan =
      try person.map {
        try restorePlan(of: top, undoing: PersonalActions(person: $0, since: time, until: request.until), caller)
      }
      ?? restorePlan(of: top, at: time, caller)
    let left =
      try plan.leftAlone.compactMap { action in try step(near: action, caller) }
    if request.dryRun ?? false {
      let steps = try plan.actions.compactMap { action in try step(near: action, caller) }
      return FolderRestoration(time: time, before: nil, steps: steps + left)
    }
    let before = Timestamp(nanoseconds: clock().nanoseconds - 1)
    var steps: [FolderRestoration.Step] = []
    // A folder that is not empty yet is deleted once all else is done.
    var waiting: [FolderRestorePlan.Action] = []
    let total = Int64(plan.actions.count)
    // Whoever interrupts it can undo what was done until then.
    if total > 0 { progress(SheafModel.Progress(done: 0, total: total, before: before)) }
    var order = try placementOrder(of: plan)
    var done: Int64 = 0
    func carryOut(_ action: FolderRestorePlan.Action) throws -> Bool {
      do {
        steps += try self.carryOut(action, plan.leaving, top, path, caller)
      } catch let error as SheafError where error.kind == .notEmpty {
        return false
      }
      order.note(action.item)
      done += 1
      progress(SheafModel.Progress(done: done, total: total))
      return true
    }
    for action in plan.deletions where try !carryOut(action) { waiting.append(action) }
    // A document has its contents before its place, and may have no other action.
    for action in plan.contents {
      steps += try self.carryOut(action, plan.leaving, top, path, caller)
      done += 1
      progress(SheafModel.Progress(done: done, total: total))
    }
    while true {
      if let action = order.next() {
        _ = try carryOut(action)
        continue
      }
      let count = waiting.count
      waiting = try waiting.filter { try !carryOut($0) }
      guard waiting.count == count else { continue }
      guard let action = order.nextOfPlan() else { break }
      _ = try carryOut(action)
    }
    for action in waiting {
      if let stays = try step(near: action, caller) {
        steps.append(.init(.leave, stays.path, reason: SheafError(.notEmpty).reason))
      }
    }
    return FolderRestoration(time: time, before: steps.isEmpty ? nil : before, steps: steps + left)
  }

  /// The order in which a plan's items get their places, found some at a time.
  private func placementOrder(of plan: FolderRestorePlan) throws -> FolderRestoreOrder {
    try FolderRestoreOrder(plan) { item in
      guard let row = try locked({ try read { try $0.inode(item: item) } }) else { return nil }
      return .init(ino: row.ino, parent: row.parent, isPresent: row.nlink > 0)
    } parent: { folder in
      guard let row = try locked({ try read { try $0.inode(folder) } }), row.parent != folder else { return nil }
      return row.parent
    }
  }

  private func beginRestore(
    of path: ItemPath, _ request: FolderRestoreRequest
  ) throws -> (top: Int64, caller: Caller, person: Int64?, time: Timestamp) {
    try settleSessions()
    let inode = try resolve(path)
    guard inode.isFolder else {
      throw SheafError(
        .invalid, subject: "\(path)", reason: "is not a folder",
        advice: "restore a document by its version; `sheaf versions` shows those it has")
    }
    try allow(.restore, inode, on: path)
    let now = clock()
    guard request.time.seconds <= now.seconds else {
      throw SheafError(
        .invalid, subject: request.time.secondsText, reason: "is yet to come", advice: "give a time that has passed",
        times: [request.time])
    }
    if let until = request.until {
      guard request.by != nil else {
        throw SheafError(
          .invalid, subject: "until", reason: "goes with a person alone", advice: "say whose actions are undone")
      }
      guard until > request.time else {
        throw SheafError(
          .invalid, subject: until.secondsText, reason: "is not after \(request.time.secondsText)",
          advice: "give the beginning of the span first, and then its end", times: [until, request.time])
      }
    }
    let caller = try account(path.account).id
    return (inode.ino, .api(caller), try request.by.map { try person($0, for: caller) }, min(request.time, now))
  }

  // MARK: - Actions

  /// The folder in which the item of an action lies, and the one to which the action takes it.
  private func folders(of action: FolderRestorePlan.Action) throws -> [Int64] {
    let (row, target) = (try locked { try read { try $0.inode(item: action.item) } }, action.place?.parent)
    return [row?.parent, target].compactMap { $0 }
  }

  /// As ``step(of:_:)``, without the lock held.
  private func step(
    near action: FolderRestorePlan.Action, _ caller: Caller
  ) throws -> FolderRestoration.Step? {
    try lockedNear(folders(of: action)) { try step(of: action, caller) }
  }

  /// The step of an action, as people see it; nil if there is nothing to do any more.
  private func step(of action: FolderRestorePlan.Action, _ caller: Caller) throws -> FolderRestoration.Step? {
    guard let row = try read({ try $0.inode(item: action.item) }) else { return nil }
    func place(_ parent: Int64, _ name: [UInt8]) throws -> String {
      try mountPath(parent, name, for: caller.actor(in: row), item: row.item)
    }
    switch action {
    case .delete(_, let parent, let name): return .init(.delete, try place(parent, name))
    case .place(_, let parent, let name):
      guard row.nlink > 0 else { return .init(.recover, try place(parent, name)) }
      return .init(.move, try place(row.parent, row.name), to: try place(parent, name))
    case .contents(_, let version): return .init(.restore, try place(row.parent, row.name), version: version)
    case .leave(_, let parent, let name, let reason): return .init(.leave, try place(parent, name), reason: reason)
    }
  }

  /// Does one thing; returns what was done, or left alone (rule 2).
  ///
  /// - Throws: `notEmpty` for a folder that cannot be deleted yet; `accessDenied` where the caller may restore no more.
  private func carryOut(
    _ action: FolderRestorePlan.Action, _ leaving: Set<Int64>, _ top: Int64, _ path: ItemPath, _ caller: Caller
  ) throws -> [FolderRestoration.Step] {
    completeSaves()
    // Earlier actions have earlier events.
    try settleEventsInSteps()
    let folders = try folders(of: action)
    var ways = Ways()
    if let target = action.place?.parent, folders.count > 1, folders[0] != target {
      ways.up = try? wayUp(from: target)
    }
    return try lockedNear([top] + folders, asksTime: true) {
      try allow(.restore, inode(top), on: path)
      guard let step = try step(of: action, caller) else { return [] }
      do {
        let done: FolderRestoration.Step? =
          switch action {
          case .delete(let item, let parent, let name): try delete(item, parent, name, caller) ? step : nil
          case .place(let item, let parent, let name): try put(item, parent, name, leaving, ways, caller)
          case .contents(let item, let version): try restore(item, version, caller) ? step : nil
          case .leave: step
          }
        return done.map { [$0] } ?? []
      } catch let error as SheafError where Self.refusals.contains(error.kind) {
        return [.init(.leave, step.path, reason: error.reason)]
      }
    }
  }

  /// Failures that are about one item.
  private static let refusals: Set<SheafError.Kind> = [
    .accessDenied, .notPermitted, .crossDevice, .notFound, .exists, .busy, .invalid, .nameTooLong, .gone,
  ]

  /// Deletes an item that is still where it was; returns whether it did.
  private func delete(_ item: Int64, _ parent: Int64, _ name: [UInt8], _ caller: Caller) throws -> Bool {
    guard let row = try read({ try $0.inode(item: item) }) else { return false }
    if row.mode & S_IFMT == S_IFDIR {
      // It may have made way for what had its name.
      guard row.nlink > 0 else { return false }
      _ = try removeFolder(row.parent, row.name, caller)
      return true
    }
    guard let entry = try entry(parent, name), entry.ino == row.ino else { return false }
    try unlinkFile(parent, name, caller)
    return true
  }

  /// Gives an item the name that it had. Returns the step; nil if it has the name already.
  ///
  /// If another item has the name by now and is to leave it, that item makes way. If the other item stays, it keeps the
  /// name, and this one gets ` (2)`.
  private func put(
    _ item: Int64, _ parent: Int64, _ name: [UInt8], _ leaving: Set<Int64>, _ ways: Ways, _ caller: Caller
  ) throws -> FolderRestoration.Step? {
    guard let row = try read({ try $0.inode(item: item) }) else { return nil }
    guard let folder = try? self.folder(parent), folder.row.nlink > 0 else {
      throw SheafError(.notFound, reason: Self.withoutFolder)
    }
    var target = name
    if let occupant = try entry(parent, name) {
      if occupant.ino == row.ino { return nil }
      let free = try freeName(name, in: parent, isFolder: row.mode & S_IFMT == S_IFDIR)
      if let other = try inode(occupant.ino).row.item, leaving.contains(other) {
        _ = try rename(parent, name, to: parent, free, .noReplace, settled: (0, 0), ways, caller)
      } else {
        target = free
      }
    }
    func place(_ parent: Int64, _ name: [UInt8]) throws -> String {
      try mountPath(parent, name, for: caller.actor(in: row), item: item)
    }
    let new = try place(parent, target)
    if row.nlink > 0 {
      let old = try place(row.parent, row.name)
      _ = try rename(row.parent, row.name, to: parent, target, .noReplace, settled: (0, 0), ways, caller)
      return .init(.move, old, to: new)
    }
    try recover(row.ino, to: folder, target, caller)
    return .init(.recover, new)
  }

  /// Brings back what was deleted, alone, to a folder that may be another than that from which it was deleted.
  private func recover(_ ino: Int64, to folder: Inode, _ name: [UInt8], _ caller: Caller) throws {
    let inode = try inode(ino)
    guard let row = try read({ try $0.deleted(ino) }), try isVisible(row, caller) else {
      throw SheafError(.notFound, reason: "is not among the deleted any more")
    }
    try allow(.recover, inode, caller)
    try permit(folder, caller, Permission.write | Permission.execute)
    try permitKeeping(of: inode, from: self.folder(row.parent), to: folder, caller)
    try makeVersionsBeforeReturn()
    let (here, there) = (try share(ofFolder: row.parent)?.row.item, try share(ofFolder: folder.ino)?.row.item)
    try makeChange(.recover, by: caller) { change in
      let destination = Recovery.Destination(folder: folder.ino, name: name, mover: caller)
      var action = TreeAction()
      // An item that was elsewhere when it was deleted enters the share now.
      let returned = try giveBack(row, to: destination, entersShare: there != nil && here != there, change)
      try markReturned(row, change)
      if let part = returned.part { action.add(part) }
      try log(.created, action, change)
    }
  }

  /// Makes a version's contents current; returns whether they were not.
  private func restore(_ item: Int64, _ number: Int64, _ caller: Caller) throws -> Bool {
    guard let row = try read({ try $0.inode(item: item) }) else { return false }
    let inode = try inode(row.ino)
    if row.nlink == 0 {
      guard let deleted = try read({ try $0.deleted(row.ino) }), try isVisible(deleted, caller) else { return false }
    }
    try allow(.restore, inode, caller)
    if number == Self.beforeFirst { return try makeCurrent(.empty, of: inode, by: caller) != nil }
    guard try number >= firstVisibleVersion(of: item, inode, caller) else { throw Self.denied }
    // It may be the version of a session, which is renewed before its contents come back.
    if inode.hasSession { shareChunks(of: inode) }
    guard let version = try read({ try $0.version(item, number) }) else {
      throw SheafError(.gone, reason: "its version \(number) is not kept any more")
    }
    return try makeCurrent(version.content, of: inode, by: caller) != nil
  }
}
