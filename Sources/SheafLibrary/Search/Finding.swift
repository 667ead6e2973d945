import Foundation
import HeapModule
package import SheafModel
import SheafStore

/// Looking for items by name, contents, person and time.
///
/// Rules:
/// 1. The search reads names without the lock, in snapshots of the store. Then it looks at matching items again with
///    the lock held, some at a time. So it decides as late as possible whether an item is still there, and whether the
///    account sees it (``allow(_:_:_:)``).
/// 2. A participant learns nothing from before an item entered the share: neither its maker, nor its versions, nor
///    items that were deleted from it.
/// 3. Each name costs the same however deep it lies.
/// 4. Who wants few items gets the first by path, whatever the order in which the walk meets them; of deleted ones, the
///    latest. What comes after as many is not looked at.
/// 5. Of a document whose contents are at a hub alone nobody here knows whether they have the text. It is counted, as far
///    as the account sees it and everything else is met.
///
/// Rooms: `AccountTable`, `ShareBook`.
extension Library {
  /// Names that one snapshot reads, and finds that are looked at with everybody waiting.
  private static let walkStep = 512
  static let findStep = 32

  /// The conditions of a search, as the walk needs them.
  private struct Criteria {
    let request: FindRequest
    let account: Int64
    /// The account of `by`; nil where any will do.
    let by: Int64?
    let words: NameWords?
    let pattern: NamePattern?
    /// The versions whose contents have the text.
    let contents: [Int64: SearchIndex.Document]
    /// Whether contents are searched, too.
    let searchesContents: Bool
    /// The items with a conflict, where these alone are meant, and what a hub put beside another document.
    let conflicts: Set<Int64>?

    /// Whether what has a name and an item may be meant, as far as these tell.
    func fits(_ name: [UInt8], _ item: Int64) -> Bool {
      guard fitsWithoutText(name, item) else { return false }
      guard let words else { return true }
      return contents[item] != nil || words.areIn(name)
    }

    private func fitsWithoutText(_ name: [UInt8], _ item: Int64) -> Bool {
      if let conflicts, !conflicts.contains(item), !HubCopyName.isOne(name) { return false }
      return pattern?.matches(name) ?? true
    }

    /// Whether only its contents can tell, of a document whose contents are not here (rule 5).
    func isUndecided(_ name: [UInt8], _ item: Int64) -> Bool {
      searchesContents && words != nil && !fits(name, item) && fitsWithoutText(name, item)
    }

    /// As ``fits(_:_:)``, of an item with its current version: the index's words of another version do not count (rule
    /// 2 of ``SearchIndex``).
    func means(_ name: [UInt8], _ item: ItemRow, _ time: Timestamp?) -> Bool {
      guard fits(name, item.id) else { return false }
      guard let words, let indexed = contents[item.id] else { return true }
      return indexed.number == item.version && indexed.time == time || words.areIn(name)
    }

    /// Whether what somebody did then is meant.
    func fits(_ actor: Int64, _ time: Timestamp) -> Bool {
      (by ?? actor) == actor && time >= request.since ?? time
    }
  }

  /// Where something was found.
  private enum Place {
    case entry(parent: Int64, name: [UInt8], ino: Int64, item: Int64)
    /// The item that others share.
    case shared(item: Int64)
  }

  /// A place that may be meant, and its path as far as the walk knows it.
  private struct Candidate {
    let place: Place
    let path: [UInt8]
  }

  /// What was found and comes first by path: as much as one answer may have, and one more.
  private struct FirstFinds {
    private struct Find: Comparable {
      let path: [UInt8]
      let item: FoundItem

      static func < (left: Self, right: Self) -> Bool {
        if left.path != right.path { return left.path.lexicographicallyPrecedes(right.path) }
        return (left.item.version ?? 0, left.item.id) < (right.item.version ?? 0, right.item.id)
      }

      static func == (left: Self, right: Self) -> Bool { !(left < right) && !(right < left) }
    }

    private let limit: Int
    private var heap = Heap<Find>()

    init(limit: Int) { self.limit = limit }

    /// Whether what lies at a path may be among them.
    func takes(_ path: [UInt8]) -> Bool {
      guard heap.count > limit, let last = heap.max else { return true }
      return !last.path.lexicographicallyPrecedes(path)
    }

    mutating func add(_ item: FoundItem, at path: [UInt8]) {
      heap.insert(Find(path: path, item: item))
      if heap.count > limit + 1 { heap.removeMax() }
    }

    /// All of them, by path.
    var items: [FoundItem] { heap.unordered.sorted().map(\.item) }
  }

  /// Bytes of a folder's path by which what lies in it is put in order. Below a longer one names decide.
  private static let longestOrder = 4096

  /// Folders of which the names are still to be gone through.
  private struct Walk {
    var open: [(ino: Int64, path: [UInt8], last: NamedItemRow?)]
    /// A damaged library may have a folder in itself.
    var passed: Set<Int64> = []
    var looked: Int64 = 0
  }

  /// The items that an account sees and that meet the request, by path.
  ///
  /// - Parameter path: Only items in this folder, which may be `Shared` or `Shared/OWNER`. Everything if nil.
  /// - Throws: `notFound` also for a person that is no account here, `accessDenied`, `notDirectory`, `invalid`.
  package func find(
    _ handle: AccountHandle, in path: ItemPath?, _ request: FindRequest, progress: (SheafModel.Progress) -> Void
  ) throws -> FoundItems {
    completeSaves()
    try locked { try settleSessions() }
    let contents = try request.text.map { try self.contents(with: $0, progress: progress) } ?? [:]
    let pattern = try request.name.map { try NamePattern($0) }
    let conflicts = request.conflicts ? Set(try store.snapshot { try $0.itemsWithConflicts() }) : nil
    let criteria = try locked {
      Criteria(
        request: request, account: try account(handle).id,
        by: try request.by.map { try person($0, for: account(handle).id) },
        words: request.text.map { NameWords($0) }, pattern: pattern, contents: contents,
        searchesContents: try searchesContents(), conflicts: conflicts)
    }
    var notSearched = 0
    var items =
      request.deleted
      ? try findDeleted(handle, in: path, criteria, &notSearched)
      : try findPresent(in: path, criteria, &notSearched, progress)
    let more = items.count > request.limit
    items.removeLast(max(0, items.count - request.limit))
    if request.deleted { items.sort { ($0.path, $1.time) < ($1.path, $0.time) } }
    return FoundItems(items: items, more: more, notSearched: notSearched)
  }

  // MARK: - What is there

  private func findPresent(
    in path: ItemPath?, _ criteria: Criteria, _ notSearched: inout Int, _ progress: (SheafModel.Progress) -> Void
  ) throws -> [FoundItem] {
    var (walk, candidates) = try locked { try tops(of: path, for: criteria.account) }
    var found = FirstFinds(limit: criteria.request.limit)
    repeat {
      candidates.removeAll { !found.takes($0.path) }
      for start in stride(from: 0, to: candidates.count, by: Self.findStep) {
        let some = candidates[start..<min(start + Self.findStep, candidates.count)]
        let seen = try locked {
          try some.compactMap { candidate in
            try look(at: candidate.place, criteria, &notSearched).map { (candidate.path, $0.item, $0.found) }
          }
        }
        for (path, item, fact) in seen {
          guard criteria.request.versions else {
            found.add(fact, at: path)
            continue
          }
          guard fact.kind == ItemKind.document.word, found.takes(path) else { continue }
          for version in try versions(of: item, fact, criteria) { found.add(version, at: path) }
        }
      }
      candidates = []
      guard !walk.open.isEmpty else { break }
      try store.snapshot { try Self.go(&walk, criteria, &candidates, $0) }
      progress(SheafModel.Progress(done: walk.looked, total: 0))
    } while true
    return found.items
  }

  /// Where a search begins: folders, and the items that others share.
  private func tops(of path: ItemPath?, for account: Int64) throws -> (Walk, [Candidate]) {
    let components = path?.components ?? []
    let isShared = components.first == Array("Shared".utf8) && components.count < 3
    if let path, !isShared {
      let folder = try resolve(path)
      try allow(.read, folder, on: path)
      guard folder.isFolder else {
        throw SheafError(
          .notDirectory, subject: "\(path)", reason: "is not a folder", advice: "name the folder to search")
      }
      return (Walk(open: [(folder.ino, Self.order(path.bytes), nil)]), [])
    }
    var walk = Walk(open: [])
    var places: [Candidate] = []
    for owner in shares.owners(sharingWith: account) {
      let name = Array(try handle(owner).description.utf8)
      if components.count == 2, name != components[1] { continue }
      for entry in try listing(of: account, owner: owner).entries {
        let path = Array([Array("Shared".utf8), name, entry.name].joined(separator: [UInt8(ascii: "/")]))
        places.append(Candidate(place: .shared(item: entry.share), path: path))
        if try inode(entry.ino).isFolder { walk.open.append((entry.ino, path, nil)) }
      }
    }
    guard let path else {
      guard let documents = accountTable[account]?.documents else { return (walk, places) }
      walk.open.append((documents, Array("Documents".utf8), nil))
      return (walk, places)
    }
    if components.count == 2, places.isEmpty {
      throw SheafError(.notFound, subject: "\(path)", reason: "shares nothing with you")
    }
    return (walk, places)
  }

  /// Goes on through the names, some of them.
  private static func go(
    _ walk: inout Walk, _ criteria: Criteria, _ places: inout [Candidate], _ transaction: StoreTransaction
  ) throws {
    var left = walkStep
    while left > 0, let (folder, path, last) = walk.open.popLast() {
      if last == nil, !walk.passed.insert(folder).inserted { continue }
      let page = try transaction.namedItems(in: folder, after: last, limit: left)
      if page.count == left { walk.open.append((folder, path, page.last)) }
      left -= page.count + 1
      walk.looked += Int64(page.count)
      for row in page {
        guard let item = row.item else { continue }
        let place = path + [UInt8(ascii: "/")] + row.name
        if row.isFolder { walk.open.append((row.ino, order(place), nil)) }
        guard criteria.fits(row.name, item) || row.isAbsent && criteria.isUndecided(row.name, item) else { continue }
        // A version of it may be meant, whoever made the current one.
        let fits = if let author = row.author, let time = row.time { criteria.fits(author, time) } else { true }
        guard criteria.request.versions ? !row.isFolder : fits else { continue }
        places.append(
          Candidate(place: .entry(parent: folder, name: row.name, ino: row.ino, item: item), path: place))
      }
    }
  }

  /// As much of a folder's path as decides the order.
  private static func order(_ path: [UInt8]) -> [UInt8] { Array(path.prefix(longestOrder)) }

  /// The item that is at a place now, if the account sees it and it meets the request (rule 1).
  ///
  /// - Parameter notSearched: Becomes one more if only contents that are not here can tell (rule 5).
  private func look(
    at place: Place, _ criteria: Criteria, _ notSearched: inout Int
  ) throws -> (item: Int64, found: FoundItem)? {
    let caller = Caller.api(criteria.account)
    let (inode, path, shown): (Inode, String, [UInt8])
    do {
      switch place {
      case .entry(let parent, let name, let ino, let item):
        guard try entry(parent, name)?.ino == ino else { return nil }
        inode = try self.inode(ino)
        guard inode.row.item == item else { return nil }
        try allow(.read, inode, caller)
        let isOldest = inode.row.parent == parent && inode.row.name == name
        path = try mountPath(parent, name, for: criteria.account, item: isOldest ? item : nil)
        shown = name
      case .shared(let item):
        guard let shared = try sharedInode(item), shared.row.nlink > 0 else { return nil }
        inode = shared
        try allow(.read, inode, caller)
        path = try mountPath(inode, for: criteria.account)
        shown = path.utf8.split(separator: UInt8(ascii: "/")).last.map(Array.init) ?? []
        guard criteria.fits(shown, item) || isAbsent(inode) && criteria.isUndecided(shown, item) else { return nil }
      }
    } catch let error as SheafError where [.accessDenied, .notFound].contains(error.kind) {
      return nil
    }
    guard let item = try self.item(of: inode) else { return nil }
    let beside = criteria.request.conflicts ? try hubCopy(item, named: shown, caller) : nil
    // Of a version that a participant may not see they learn nothing.
    if criteria.request.conflicts, beside == nil, try conflict(of: item, inode, caller) == nil { return nil }
    let version = item.version == 0 ? nil : try read { try $0.version(item.id, item.version) }
    let (actor, time) = try version.map { ($0.author, $0.time) } ?? maker(of: item, inode, caller)
    guard criteria.request.versions || criteria.fits(actor, time) else { return nil }
    guard criteria.means(shown, item, version?.time) else {
      if isAbsent(inode), criteria.isUndecided(shown, item.id) { notSearched += 1 }
      return nil
    }
    let found = FoundItem(
      id: item.uuid.text, kind: item.kind.word, path: path,
      size: item.kind == .document ? version?.size ?? inode.row.size : nil, time: time, by: try handle(actor),
      version: version?.number, label: version?.label, beside: beside)
    return (item.id, found)
  }

  /// Whether a document's contents are not all on this machine.
  private func isAbsent(_ inode: Inode) -> Bool { inode.row.content?.absentLength ?? 0 > 0 }

  /// The maker of an item without a version, and the time, as far as the caller may know them (rule 2).
  private func maker(of item: ItemRow, _ inode: Inode, _ caller: Caller) throws -> (Int64, Timestamp) {
    // What came from a hub may have been made by the account that stands for a share.
    let creator = person(of: item.creator)
    guard isForeign(inode, caller), let share = try share(of: inode) else { return (creator, item.created) }
    let entered = try entryTime(of: inode, in: share)
    return item.created < entered ? (person(of: inode.row.owner), entered) : (creator, item.created)
  }

  /// The versions of a document that are meant.
  private func versions(of item: Int64, _ fact: FoundItem, _ criteria: Criteria) throws -> [FoundItem] {
    do {
      return try visibleVersions(of: item, .api(criteria.account)) { row, _, _ -> FoundItem? in
        guard criteria.fits(row.author, row.time) else { return nil }
        return FoundItem(
          id: fact.id, kind: fact.kind, path: fact.path, size: row.size, time: row.time, by: try handle(row.author),
          version: row.number, label: row.label, beside: fact.beside)
      }.compactMap { $0 }
    } catch let error as SheafError where [.accessDenied, .notFound].contains(error.kind) {
      return []
    }
  }

  // MARK: - What was deleted

  private func findDeleted(
    _ handle: AccountHandle, in path: ItemPath?, _ criteria: Criteria, _ notSearched: inout Int
  ) throws -> [FoundItem] {
    var found: [FoundItem] = []
    var last: DeletedRow?
    repeat {
      last = try locked { try addDeleted(before: last, in: path, criteria, to: &found, &notSearched) }
    } while last != nil && found.count <= criteria.request.limit
    return found
  }

  /// Adds some of what was deleted before `last`; returns the last that was looked at, nil at the end.
  private func addDeleted(
    before last: DeletedRow?, in path: ItemPath?, _ criteria: Criteria, to found: inout [FoundItem],
    _ notSearched: inout Int
  ) throws -> DeletedRow? {
    let prefix = path.map { $0.bytes + [UInt8(ascii: "/")] }
    let owners = Set([criteria.account] + shares.owners(sharingWith: criteria.account))
    let rows = try read { try $0.deleted(before: last, limit: Self.findStep) }
    for (row, owner) in rows where owners.contains(person(of: owner)) && criteria.fits(row.actor, row.time) {
      let inode = try inode(row.ino)
      guard let item = try item(of: inode) else { continue }
      let isMeant =
        try criteria.fits(row.name, item.id)
        && criteria.means(row.name, item, read { try $0.version(item.id, item.version) }?.time)
      guard isMeant || isAbsent(inode) && criteria.isUndecided(row.name, item.id),
        try isVisible(row, .api(criteria.account))
      else { continue }
      let place = try mountPath(row.parent, row.name, for: criteria.account)
      if let prefix, !Array(place.utf8).starts(with: prefix) { continue }
      guard isMeant else {
        notSearched += 1
        continue
      }
      found.append(
        FoundItem(
          id: item.uuid.text, kind: item.kind.word, path: place, size: item.kind == .document ? inode.row.size : nil,
          time: row.time, by: try self.handle(row.actor), version: item.version == 0 ? nil : item.version, label: nil,
          beside: nil))
    }
    return rows.count < Self.findStep ? nil : rows.last?.row
  }
}
