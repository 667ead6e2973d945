import Foundation
import SheafModel
import SheafStore

/// The actions that make a folder as it was. They are found in steps, between which the lock is free.
///
/// Rules:
/// 1. Undoing everybody's actions: each item that was in the folder comes back to where it was, with the contents that
///    it had. Items that were made since are deleted, and so are items that were deleted then. Items that were
///    elsewhere go back there.
/// 2. Undoing one person's actions: those of a span of time that nobody followed up. A document goes back to before the
///    last versions, if these are all theirs and of the span, and an item to before their last moves of it. Items that
///    they deleted are recovered, and items that they made are deleted. An item that others went on with is left alone,
///    and so is one with which they went on themselves after the span.
/// 3. What goes back out of the folder has the contents of then if a restoration gave it those of now.
/// 4. An item is left alone if nothing tells its former state any more, or if it has several names that are not those
///    of then, and so is a plain file, which nothing could bring back. Folders that hold such items stay.
struct FolderRestorePlan {
  /// One thing to do.
  enum Action {
    /// Deletes the name of an item.
    case delete(item: Int64, parent: Int64, name: [UInt8])
    /// Gives an item a name, from the deleted or from elsewhere.
    case place(item: Int64, parent: Int64, name: [UInt8])
    /// Makes a version's contents current; 0 for empty ones.
    case contents(item: Int64, version: Int64)
    case leave(item: Int64, parent: Int64, name: [UInt8], reason: String)

    var item: Int64 {
      switch self {
      case .delete(let item, _, _), .place(let item, _, _), .contents(let item, _), .leave(let item, _, _, _): item
      }
    }

    /// The name that it is about.
    var place: (parent: Int64, name: [UInt8])? {
      switch self {
      case .delete(_, let parent, let name), .place(_, let parent, let name), .leave(_, let parent, let name, _):
        (parent, name)
      case .contents: nil
      }
    }
  }

  /// In this order: deletions come first, each folder after its contents; then documents get their contents, those that
  /// are among the deleted, too; then items get their places, by ``FolderRestoreOrder``. So participants of a share into
  /// which something comes back see nothing of what it was in between.
  private(set) var deletions: [Action] = []
  private(set) var contents: [Action] = []
  private(set) var placements: [Action] = []
  private(set) var leftAlone: [Action] = []

  var actions: [Action] { deletions + contents + placements }
  /// The items that leave their names.
  var leaving: Set<Int64> { Set((deletions + placements).map(\.item)) }

  mutating func add(_ action: Action) {
    switch action {
    case .delete: deletions.append(action)
    case .place: placements.append(action)
    case .contents: contents.append(action)
    case .leave: leftAlone.append(action)
    }
  }

  /// Leaves items alone whose place would be in a folder that is not there and does not come back.
  ///
  /// - Parameters:
  ///   - folder: the item of a folder, and whether it is there; nil where nothing is left of it.
  ///   - left: what is said of an item that is left alone.
  fileprivate mutating func leaveWithoutFolder(
    _ folder: (Int64) throws -> (item: Int64, isPresent: Bool)?, as left: (Action) throws -> Action
  ) throws {
    let parents = Dictionary(placements.map { ($0.item, $0.place?.parent) }) { first, _ in first }
    var known: [Int64: Bool] = [:]
    /// Whether a folder is there, or comes back to one that will be.
    func willBeThere(_ ino: Int64) throws -> Bool {
      var (passed, next, answer): ([Int64], Int64?, Bool) = ([], ino, false)
      while let ino = next {
        if let before = known[ino] {
          answer = before
          break
        }
        guard !passed.contains(ino), let found = try folder(ino) else { break }
        passed.append(ino)
        if found.isPresent {
          answer = true
          break
        }
        next = parents[found.item] ?? nil
      }
      for ino in passed { known[ino] = answer }
      return answer
    }
    var kept: [Action] = []
    for action in placements {
      if let parent = action.place?.parent, try !willBeThere(parent) {
        leftAlone.append(try left(action))
      } else {
        kept.append(action)
      }
    }
    placements = kept
  }
}

/// What one person did in a span of time.
struct PersonalActions {
  let person: Int64
  /// The span, without its beginning.
  let since: Timestamp
  /// The last moment of the span; nil for no end.
  let until: Timestamp?

  /// Whether an action is one of them.
  func include(_ actor: Int64, _ time: Timestamp) -> Bool { actor == person && time > since && !isLater(time) }

  func isLater(_ time: Timestamp) -> Bool { until.map { time > $0 } ?? false }

  /// Who may have gone on with an item.
  var followers: String { until == nil ? "others have" : "somebody has" }
}

extension Library {
  /// An item in a folder that is there.
  struct PresentItem {
    let ino: Int64
    let parent: Int64
    let name: [UInt8]
    let item: ItemRow
    let links: Int64
    /// Whether something is written to it that is no version yet.
    let isEdited: Bool

    var isFolder: Bool { item.kind == .folder }

    /// Whether it has no history: a plain file, or a temporary one. What is destroyed of it is gone.
    var isPlain: Bool { item.isQuiet && item.lastVersion == 0 }

    func leave(_ reason: String) -> FolderRestorePlan.Action {
      .leave(item: item.id, parent: parent, name: name, reason: reason)
    }
  }

  /// An item that was in a folder.
  private struct PastItem {
    let parent: Int64
    let entry: PastEntry
  }

  /// Where an item was.
  private enum Whereabouts {
    case at(parent: Int64, name: [UInt8])
    /// It had no name.
    case deleted
    case unknown
  }

  /// Past names of one item that are looked at.
  private static let pastNamesLookedAt = 256

  /// The items in some folders and below them, each folder before what is in it.
  private func presentItems(below tops: [Int64], _ caller: Caller) throws -> [PresentItem] {
    var items: [PresentItem] = []
    var folders = tops
    var known = Set(tops)
    var next = 0
    while next < folders.count {
      var cookie: Int64? = 0
      while let start = cookie {
        cookie = try locked {
          guard let folder = try? self.folder(folders[next]), folder.row.nlink > 0 else { return nil }
          try allow(.readHistory, folder, caller)
          let page = try read { try $0.entries(folder.ino, after: start, limit: Self.pastStep) }
          for entry in page {
            let inode = try inode(entry.ino)
            guard let item = try presentItem(inode, folder.ino, entry.name) else { continue }
            items.append(item)
            if inode.isFolder, known.insert(inode.ino).inserted { folders.append(inode.ino) }
          }
          return page.last?.hash
        }
      }
      next += 1
    }
    return items
  }

  private func presentItem(_ inode: Inode, _ parent: Int64, _ name: [UInt8]) throws -> PresentItem? {
    try item(of: inode).map {
      PresentItem(
        ino: inode.ino, parent: parent, name: name, item: $0, links: inode.row.nlink, isEdited: inode.hasSession)
    }
  }

  /// An item that is there, wherever it is; nil for one that is not.
  private func presentItem(_ id: Int64) throws -> PresentItem? {
    guard let row = try read({ try $0.inode(item: id) }), row.nlink > 0 else { return nil }
    return try presentItem(inode(row.ino), row.parent, row.name)
  }

  /// The items that were in a folder and below it, each folder before what was in it.
  private func pastItems(below top: Int64, at time: Timestamp, _ caller: Caller) throws -> [PastItem] {
    var items: [PastItem] = []
    var folders = [top]
    var known: Set<Int64> = [top]
    var next = 0
    while next < folders.count {
      let folder = folders[next]
      next += 1
      for entry in try pastEntries(of: folder, below: top, at: time, caller) {
        items.append(PastItem(parent: folder, entry: entry))
        if case .folder(let ino) = entry.kind, known.insert(ino).inserted { folders.append(ino) }
      }
    }
    return items
  }

  /// Where an item was at a time, as far as its names tell.
  private func whereabouts(of item: PresentItem, at time: Timestamp, _ caller: Caller) throws -> Whereabouts {
    try lockedNear(placesAsked(of: item.item.id, item.parent, since: time, caller), asksTime: true) {
      // Where it was before it entered the share is not theirs to know.
      guard try visibleSince(item.ino, time, caller) == time else { return .unknown }
      let later = try read {
        try $0.pastNames(of: item.item.id, after: time, limit: Self.pastNamesLookedAt)
      }
      if let row = later.first(where: { $0.holds(at: time) }) {
        return try mayMove(to: row.parent, caller) ? .at(parent: row.parent, name: row.name) : .unknown
      }
      guard let present = try entry(item.parent, item.name), present.ino == item.ino else { return .unknown }
      if present.since <= time { return .at(parent: item.parent, name: item.name) }
      guard later.count < Self.pastNamesLookedAt else { return .unknown }
      // It had a name before and one after, and none between: it was deleted, unless it had names for so short that
      // they are not kept.
      guard let former = try read({ try $0.lastPastName(of: item.item.id, upTo: time) }) else { return .unknown }
      let begin = min(present.since, later.map(\.since).min() ?? present.since)
      let gap = begin.seconds - former.until.seconds
      return gap >= Self.keptNameSeconds(age: clock().seconds - time.seconds) ? .deleted : .unknown
    }
  }

  /// The folders in which an item is and was, of which it is asked what the caller may do there: owners are not asked.
  private func placesAsked(
    of item: Int64, _ parent: Int64, since time: Timestamp, _ caller: Caller
  ) throws -> [Int64] {
    try locked {
      guard let folder = try? inode(parent), isForeign(folder, caller) else { return [] }
      let names = try read { try $0.pastNames(of: item, after: time, limit: Self.pastNamesLookedAt) }
      return [parent] + Set(names.map(\.parent))
    }
  }

  /// The time from `time` on of which the caller is told something of an item: participants of what has been since it
  /// entered the share.
  private func visibleSince(_ ino: Int64, _ time: Timestamp, _ caller: Caller) throws -> Timestamp {
    let inode = try inode(ino)
    guard isForeign(inode, caller) else { return time }
    guard let share = try share(of: inode) else { return Timestamp(nanoseconds: .max) }
    return try max(time, entryTime(of: inode, in: share))
  }

  /// Whether the caller's account may put things into a folder. It learns nothing of folders that it does not see.
  private func mayMove(to folder: Int64, _ caller: Caller) throws -> Bool {
    guard let inode = try? inode(folder) else { return false }
    do {
      try allow(.write, inode, caller)
      return true
    } catch let error as SheafError where error.kind == .accessDenied {
      return false
    }
  }

  // MARK: - Everybody's actions

  /// - Throws: `notFound` where the folder did not exist then.
  func restorePlan(of top: Int64, at time: Timestamp, _ caller: Caller) throws -> FolderRestorePlan {
    var plan = FolderRestorePlan()
    let past = try pastItems(below: top, at: time, caller)
    // Items that are by now in a folder that comes back from elsewhere come with it, or are deleted, too.
    let pastFolders = past.compactMap { if case .folder(let ino) = $0.entry.kind { ino } else { nil } }
    let present = try presentItems(below: [top] + pastFolders, caller)
    let places = Dictionary(grouping: past, by: \.entry.item)
    var names = Dictionary(grouping: present, by: \.item.id)
    for id in places.keys where names[id] == nil {
      if let item = try locked({ try presentItem(id) }) { names[id] = [item] }
    }
    var doomed: [PresentItem] = []
    /// Folders whose insides are no part of what was.
    var outside: Set<Int64> = []
    for item in present where places[item.item.id] == nil {
      if outside.contains(item.parent) {
        if item.isFolder { outside.insert(item.ino) }
        try addUndoneContents(of: item, at: time, caller, &plan)
        continue
      }
      if item.isPlain { continue }
      if item.item.made > time {
        doomed.append(item)
        continue
      }
      switch try whereabouts(of: item, at: time, caller) {
      case .at(item.parent, item.name): break
      case .at(let parent, let name) where item.links == 1 || item.isFolder:
        if item.isFolder { outside.insert(item.ino) }
        plan.add(.place(item: item.item.id, parent: parent, name: name))
        try addUndoneContents(of: item, at: time, caller, &plan)
      case .at: plan.add(item.leave("has several names"))
      case .deleted: doomed.append(item)
      case .unknown: plan.add(item.leave("nothing tells where it was then"))
      }
    }
    for (id, then) in places where then.count > 1 || (names[id]?.count ?? 0) > 1 {
      let now = names[id] ?? []
      let same =
        Set(then.map { [[UInt8]("\($0.parent)/".utf8), $0.entry.name] })
        == Set(now.map { [[UInt8]("\($0.parent)/".utf8), $0.name] })
      if !same, let one = now.first {
        plan.add(one.leave("has several names"))
      } else if !same, let one = then.first {
        plan.add(
          .leave(item: id, parent: one.parent, name: one.entry.name, reason: "had several names, and is deleted"))
      }
    }
    for item in past {
      let id = item.entry.item
      let now = names[id] ?? []
      guard now.count < 2, places[id]?.count == 1 else { continue }
      if let one = now.first, one.parent == item.parent, one.name == item.entry.name { continue }
      plan.add(.place(item: id, parent: item.parent, name: item.entry.name))
    }
    addDeletions(of: doomed, below: top, present, to: &plan)
    var seen: Set<Int64> = []
    for item in past {
      guard case .document(let id, let version) = item.entry.kind, seen.insert(id).inserted else { continue }
      guard try names[id]?.first?.isEdited ?? false || locked({ try differs(id, from: version) }) else { continue }
      if version == Self.beforeFirst, try locked({ try isOfTheFuture(id) }) {
        plan.add(
          .leave(
            item: id, parent: item.parent, name: item.entry.name, reason: "its versions are of a time yet to come"))
      } else {
        plan.add(.contents(item: id, version: version))
      }
    }
    return plan
  }

  /// Adds the contents that a document had which goes back out of the folder, if a restoration gave it those of now: so
  /// restoring to before a restoration undoes all of it. What people did to such a document stays.
  private func addUndoneContents(
    of item: PresentItem, at time: Timestamp, _ caller: Caller, _ plan: inout FolderRestorePlan
  ) throws {
    guard item.item.kind == .document, !item.isEdited else { return }
    let id = item.item.id
    try lockedNear(placesAsked(of: id, item.parent, since: time, caller), asksTime: true) {
      guard let last = try read({ try $0.version(id, item.item.version) }), last.cause == .restore, last.time > time,
        let number = try versionNumber(of: item.item, at: time), number != Self.beforeFirst,
        try number >= firstVisibleVersion(of: id, inode(item.ino), caller), try differs(id, from: number)
      else { return }
      plan.add(.contents(item: id, version: number))
    }
  }

  /// Whether all versions of a document have times after now, as from a machine whose clock is wrong.
  private func isOfTheFuture(_ id: Int64) throws -> Bool {
    try read { rows in
      guard let first = try rows.firstVersion(id), let version = try rows.version(id, first) else { return false }
      return version.time > clock()
    }
  }

  /// Whether a document has other contents than a version of it, as far as can be told without reading them.
  private func differs(_ id: Int64, from number: Int64) throws -> Bool {
    guard let item = try read({ try $0.item(id) }), item.version != number else { return false }
    func content(_ number: Int64) throws -> StoredContent {
      number == Self.beforeFirst ? .empty : try read { try $0.version(id, number)?.content } ?? .empty
    }
    return try content(item.version) != content(number)
  }

  /// Adds the deletions of items, each folder after what is in it. A folder stays that holds what is left alone.
  private func addDeletions(
    of doomed: [PresentItem], below top: Int64, _ present: [PresentItem], to plan: inout FolderRestorePlan
  ) {
    let leaving = Set(doomed.map(\.item.id)).union(plan.leaving)
    let names = Set(doomed.map { EntryName(parent: $0.parent, name: $0.name) })
    /// Folders with something in them that stays.
    var kept: Set<Int64> = []
    for item in present.reversed() {
      let isDoomed = names.contains(EntryName(parent: item.parent, name: item.name))
      let stays = item.isFolder && kept.contains(item.ino)
      if isDoomed, !stays {
        plan.add(.delete(item: item.item.id, parent: item.parent, name: item.name))
      } else if isDoomed {
        plan.add(item.leave("holds what is left as it is"))
      }
      if item.parent != top, stays || !leaving.contains(item.item.id) { kept.insert(item.parent) }
    }
  }

  private struct EntryName: Hashable {
    let parent: Int64
    let name: [UInt8]
  }

  // MARK: - One person's actions

  func restorePlan(
    of top: Int64, undoing actions: PersonalActions, _ caller: Caller
  ) throws -> FolderRestorePlan {
    var plan = FolderRestorePlan()
    let time = actions.since
    let present = try presentItems(below: [top], caller)
    var doomed: [PresentItem] = []
    for item in present {
      try lockedNear(placesAsked(of: item.item.id, item.parent, since: time, caller), asksTime: true) {
        try addActions(actions, to: item, caller, &plan, &doomed)
      }
    }
    let here = Set(present.map(\.item.id))
    for folder in [top] + present.filter(\.isFolder).map(\.ino) {
      let since = try lockedNear(placesAsked(of: 0, folder, since: time, caller), asksTime: true) {
        try visibleSince(folder, time, caller)
      }
      for id in try itemsTaken(from: folder, actions, since: since) where !here.contains(id) {
        let parent = try locked { try presentItem(id)?.parent ?? folder }
        try lockedNear(placesAsked(of: id, parent, since: time, caller), asksTime: true) {
          guard let item = try presentItem(id), try mayMove(to: item.parent, caller) else { return }
          try addMoves(of: item, actions, caller, &plan)
        }
      }
    }
    for row in try deletions(below: top, present, actions) {
      let item = locked { (try? inode(row.ino))?.row.item ?? 0 }
      try lockedNear(placesAsked(of: item, row.parent, since: time, caller), asksTime: true) {
        try addRecovery(of: row, actions, caller, &plan)
      }
    }
    addDeletions(of: doomed, below: top, present, to: &plan)
    try plan.leaveWithoutFolder { folder in
      guard let row = try locked({ try read { try $0.inode(folder) } }) else { return nil }
      return row.item.map { ($0, row.nlink > 0) }
    } as: { action in
      let place = try locked { try presentItem(action.item).map { ($0.parent, $0.name) } } ?? action.place
      return .leave(
        item: action.item, parent: place?.0 ?? top, name: place?.1 ?? [], reason: Self.withoutFolder)
    }
    return plan
  }

  /// Why an item is left alone whose folder is gone.
  static let withoutFolder = "the folder that it was in is not there"

  /// Adds what undoes a person's actions to an item that is there (rule 2).
  private func addActions(
    _ actions: PersonalActions, to item: PresentItem, _ caller: Caller, _ plan: inout FolderRestorePlan,
    _ doomed: inout [PresentItem]
  ) throws {
    if item.isPlain { return }
    let id = item.item.id
    let since = try visibleSince(item.ino, actions.since, caller)
    let moves = try read { try $0.pastNames(of: id, after: since, limit: Self.pastNamesLookedAt) }
    let own = moves.prefix { actions.include($0.actor, $0.until) }
    if actions.include(item.item.creator, item.item.created) {
      if own.count < moves.count {
        return plan.add(item.leave("\(actions.followers) moved it since"))
      }
      if try read({ try $0.hasVersions(of: id, notBy: actions.person, orAfter: actions.until) }) {
        return plan.add(item.leave("\(actions.followers) changed it since"))
      }
      return doomed.append(item)
    }
    try addMoves(of: item, actions, caller, &plan)
    guard item.item.kind == .document else { return }
    try addContents(of: item, actions, caller, &plan)
  }

  /// Adds going back to before a person's last moves.
  private func addMoves(
    of item: PresentItem, _ actions: PersonalActions, _ caller: Caller, _ plan: inout FolderRestorePlan
  ) throws {
    let since = try visibleSince(item.ino, actions.since, caller)
    let moves = try read { try $0.pastNames(of: item.item.id, after: since, limit: Self.pastNamesLookedAt) }
    let own = moves.prefix { actions.include($0.actor, $0.until) }
    guard let first = own.last else {
      if moves.contains(where: { actions.include($0.actor, $0.until) }) {
        plan.add(item.leave("\(actions.followers) moved it since"))
      }
      return
    }
    guard first.parent != item.parent || first.name != item.name else { return }
    if try !mayMove(to: first.parent, caller) {
      plan.add(item.leave("nothing tells where it was then"))
    } else if item.links > 1, !item.isFolder {
      plan.add(item.leave("has several names"))
    } else if try !areMoves(own, of: item) {
      plan.add(item.leave("had several names"))
    } else {
      plan.add(.place(item: item.item.id, parent: first.parent, name: first.name))
    }
  }

  /// Whether names became each other and at last the present one, as by rename(2). Otherwise one was taken from an item
  /// that had others.
  ///
  /// - Parameter names: the newest first.
  private func areMoves(_ names: ArraySlice<PastNameRow>, of item: PresentItem) throws -> Bool {
    var since = try entry(item.parent, item.name)?.since ?? Timestamp(nanoseconds: .min)
    for name in names {
      if since < name.until { return false }
      since = name.since
    }
    return true
  }

  /// Items that a person took from a folder.
  ///
  /// - Parameter time: what happened until then is not the caller's to know.
  private func itemsTaken(from folder: Int64, _ actions: PersonalActions, since time: Timestamp) throws -> Set<Int64> {
    var items: Set<Int64> = []
    var last: PastNameRow?
    repeat {
      let page = try locked { try read { try $0.pastNames(in: folder, after: last, limit: Self.pastStep) } }
      for row in page where row.until > time && actions.include(row.actor, row.until) { items.insert(row.item) }
      last = page.last
    } while last != nil
    return items
  }

  /// Adds going back to before a person's last versions.
  private func addContents(
    of item: PresentItem, _ actions: PersonalActions, _ caller: Caller, _ plan: inout FolderRestorePlan
  ) throws {
    let (id, current) = (item.item.id, item.item.version)
    let firstVisible = try firstVisibleVersion(of: id, inode(item.ino), caller)
    func add(_ number: Int64) {
      plan.add(
        number < firstVisible && firstVisible > 1
          ? item.leave("its versions of then are not kept") : .contents(item: id, version: number))
    }
    guard current > 0, let last = try read({ try $0.version(id, current) }), last.time > actions.since else { return }
    guard actions.include(last.author, last.time) else {
      if try read({ try $0.versions(id, below: current, limit: Self.pastStep) })
        .contains(where: { actions.include($0.author, $0.time) })
      {
        plan.add(item.leave("\(actions.followers) changed it since"))
      }
      return
    }
    var below = current
    while true {
      let rows = try read { try $0.versions(id, below: below, limit: Self.pastStep) }
      if let before = rows.first(where: { !actions.include($0.author, $0.time) }) {
        return add(before.number)
      }
      guard let end = rows.last?.number else { break }
      below = end
    }
    let names = try read { try $0.pastNames(of: id, after: actions.since, limit: Self.pastNamesLookedAt) }
    let since = try (names.map(\.since) + [entry(item.parent, item.name)?.since].compactMap { $0 }).min()
    // It may have been a plain file before, whose contents nothing tells.
    if below == 1, let since, since <= actions.since { return add(Self.beforeFirst) }
    plan.add(item.leave("its versions of then are not kept"))
  }

  /// The items that a person deleted in a folder and below it, each folder before its contents.
  private func deletions(
    below top: Int64, _ present: [PresentItem], _ actions: PersonalActions
  ) throws -> [DeletedRow] {
    try store.snapshot { transaction in
      var found: [DeletedRow] = []
      var folders = [top] + present.filter(\.isFolder).map(\.ino)
      var known = Set(folders)
      var next = 0
      while next < folders.count {
        let inside = try transaction.deletedFolders(from: folders[next])
        for row in try transaction.deleted(from: folders[next]) where row.time > actions.since {
          if try actions.include(row.actor, Self.deletionTime(of: row, transaction)) { found.append(row) }
          if inside.contains(row.ino), known.insert(row.ino).inserted { folders.append(row.ino) }
        }
        next += 1
      }
      return found
    }
  }

  /// When an item was deleted. It may have come to the trash later: machines hear of each other's deletions when they
  /// are connected.
  private static func deletionTime(of row: DeletedRow, _ transaction: StoreTransaction) throws -> Timestamp {
    guard let item = try transaction.inode(row.ino)?.item,
      let name = try transaction.lastPastName(of: item, upTo: row.time), name.parent == row.parent,
      name.name == row.name
    else { return row.time }
    return name.until
  }

  /// Adds bringing back what a person deleted, to where it was before they moved it.
  private func addRecovery(
    of row: DeletedRow, _ actions: PersonalActions, _ caller: Caller, _ plan: inout FolderRestorePlan
  ) throws {
    guard let inode = try? inode(row.ino), let item = try item(of: inode), !item.isQuiet,
      try isVisible(row, caller), !actions.include(item.creator, item.created)
    else { return }
    let since = try visibleSince(inode.ino, actions.since, caller)
    let moves = try read { try $0.pastNames(of: item.id, after: since, limit: Self.pastNamesLookedAt) }
    let first = moves.prefix { actions.include($0.actor, $0.until) }.last
    guard try mayMove(to: first?.parent ?? row.parent, caller) else { return }
    plan.add(.place(item: item.id, parent: first?.parent ?? row.parent, name: first?.name ?? row.name))
  }
}
