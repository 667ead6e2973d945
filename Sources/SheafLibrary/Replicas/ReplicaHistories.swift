import Foundation
import SheafModel
import SheafStore
package import SheafWire

/// An item whose history at the hub is to be compared with what is here.
package struct DueHistory: Hashable, Sendable {
  package let item: WireID
  /// The number of the hub's state that told of it.
  package let told: Int64
  /// Versions up to this number are not fetched.
  let after: Int64
  let isWhole: Bool
  /// The hub's state of an item that was deleted there and never was here, or that was destroyed there for good.
  let deleted: ItemState?

  /// The number after which the hub is to list versions.
  package var listedAfter: Int64 { isWhole ? 0 : after }
}

/// What a comparison of an item's history came to.
package enum HistoryComparison: Hashable, Sendable {
  /// These versions are missing here; in this order they are to be fetched.
  case missing([ItemVersion])
  /// What was listed does not say all of the numbers: it is compared with the whole list.
  case anew
  /// A program has the document open, so it is compared later.
  case later
}

/// The histories of a connected account's items: what the hub has of each, and this machine has not.
///
/// Rules:
/// 1. An item is due (`replica_histories`) from the transaction that notes what the hub told of it until all of it is
///    here. What is cut short is compared again, so nothing is forgotten, and what is here is not fetched twice. An item
///    that cannot be shown yet waits (`told` -1) until it is.
/// 2. A version has its number of the hub, and lies there among the others. Versions that the hub does not have, or not
///    yet, make way.
/// 3. What the hub destroyed for good is destroyed here, too, also in the trash.
/// 4. What was deleted at the hub before it could come here comes into the trash.
/// 5. Versions that this machine thinned, or that a person destroyed here, do not come back: only what is newer than what
///    was compared before is fetched.
///
/// Rooms: `EventLog`, `Numbers`, `OpenFiles`, `RapidSaves`, `Readings`.
extension Library {
  /// Versions of a document that are fetched at most: the newest.
  private static let historyLimit = 1_000
  /// Versions that get other numbers at once.
  private static let renumberLimit = 1_000
  /// Folders above what was deleted that are looked at.
  private static let depthLimit = 1_000

  // MARK: - What is due

  /// Notes what the hub told of an item, if more is to be fetched than its state says.
  ///
  /// - Parameter row: What the replica remembered of the item before.
  func noteHistory(of state: ItemState, after row: ReplicaItemRow, _ account: Int64, _ change: Change) throws {
    let id = state.item
    let isPurgedHere = try change.rows.replicaRequests(of: account, item: id.bytes).contains { $0.version.isEmpty }
    let inode = try replicaInode(id, of: account)
    if isPurgedHere || state.kind == .folder && !state.isDeleted || state.isPurged && inode == nil {
      return try change.rows.removeReplicaHistory(of: account, id.bytes)
    }
    if state.isPurged || state.isDeleted && inode == nil {
      guard state.isPurged || state.kind != .document || state.version != nil else {
        return try change.rows.removeReplicaHistory(of: account, id.bytes)
      }
      return try change.rows.set(
        ReplicaHistoryRow(
          item: id.bytes, told: state.number, after: 0, isWhole: true, state: replicaTexts.encode(state)), of: account)
    }
    if var due = try change.rows.replicaHistory(of: account, id.bytes), due.state != nil {
      // It is back before all of it came to the trash: what is missing comes all the same.
      due.state = nil
      due.told = state.number
      try change.rows.set(due, of: account)
    }
    guard let version = state.version else { return }
    let news: ItemState? = try row.news.map { try replicaTexts.decode($0) }
    let base: ItemState? = try row.base.map { try replicaTexts.decode($0) }
    let former = news ?? base
    let known = former?.version?.number ?? 0
    // Of two that were told after each other, the first one is not shown any more.
    let isPassedOver = news?.version.map { $0.id != version.id } ?? false
    // What is deleted is not shown any more, either.
    let isUnseen = try state.isDeleted && !isHere(version, inode, account)
    let hasGap = version.number > known + 1 || isPassedOver || isUnseen
    let hasOtherNumber = try hasOtherNumber(version, inode, account)
    let isWhole = hasOtherNumber || state.purges != former?.purges ?? 0 || state.labels != former?.labels
    guard hasGap || isWhole else { return }
    let after =
      isPassedOver ? min(known, base?.version?.number ?? 0) : hasGap ? min(known, version.number - 1) : version.number
    try noteHistory(id, told: state.number, after: after, isWhole: isWhole, account, change)
  }

  /// Notes the items of which versions of others came before those that were sent, or whose versions the hub had.
  func noteHistories(of settled: [(send: Send, verdict: Verdict)], _ account: Int64, _ change: Change) throws {
    var known: [WireID: Int64] = [:]
    for (send, verdict) in settled
    where send.version != nil && verdict.outcome != .beside && verdict.outcome != .refused {
      let base: ItemState? = try change.rows.replicaItem(of: account, verdict.item.bytes).base.map {
        try replicaTexts.decode($0)
      }
      if verdict.outcome == .joined {
        // It takes the place of one in the trash, with the history of that. Of one that was not known the feed tells.
        if base != nil {
          try noteHistory(verdict.item, told: verdict.number ?? 0, after: 0, isWhole: true, account, change)
        }
        continue
      }
      let former = known[verdict.item] ?? base?.version?.number ?? 0
      // One without a number the hub, which went back, has from another machine, under a number of its own.
      let number = verdict.sentNumber
      if number.map({ $0 > former + 1 }) ?? true {
        try noteHistory(
          verdict.item, told: verdict.number ?? 0, after: former, isWhole: number == nil, account, change)
      }
      known[verdict.item] = number ?? former
    }
  }

  /// Notes an item whose current version at the hub is not shown here, since something was saved here meanwhile.
  func noteUnseen(_ version: ItemVersion, of id: WireID, told: Int64, _ account: Int64, _ change: Change) throws {
    let inode = try replicaInode(id, of: account)
    guard inode != nil, try !isHere(version, inode, account) else { return }
    try noteHistory(id, told: told, after: version.number - 1, isWhole: false, account, change)
  }

  /// Whether a version is here.
  private func isHere(_ version: ItemVersion, _ inode: Inode?, _ account: Int64) throws -> Bool {
    guard let inode, let item = try item(of: inode) else { return false }
    return try replicaVersions(of: item, connected(account)).numbers[version.id] != nil
  }

  /// Whether a version has another number here than the hub's.
  private func hasOtherNumber(_ version: ItemVersion, _ inode: Inode?, _ account: Int64) throws -> Bool {
    guard let inode, let item = try item(of: inode), item.version != version.number else { return false }
    return try replicaVersions(of: item, connected(account)).numbers[version.id].map { $0 != version.number } ?? false
  }

  /// Has the labels of an item compared with those at the hub, though it told nothing of them.
  func noteLabels(of id: WireID, _ account: Int64, _ change: Change) throws {
    let row = try change.rows.replicaItem(of: account, id.bytes)
    guard let state: ItemState = try (row.news ?? row.base).map({ try replicaTexts.decode($0) }),
      let version = state.version
    else { return }
    try noteHistory(id, told: state.number, after: version.number, isWhole: true, account, change)
  }

  /// Notes that an item is due.
  func noteHistory(
    _ id: WireID, told: Int64, after: Int64, isWhole: Bool, _ account: Int64, _ change: Change
  ) throws {
    var row =
      try change.rows.replicaHistory(of: account, id.bytes)
      ?? ReplicaHistoryRow(item: id.bytes, told: told, after: after, isWhole: isWhole)
    row.told = max(row.told, told)
    row.after = min(row.after, after)
    row.isWhole = row.isWhole || isWhole
    try change.rows.set(row, of: account)
  }

  /// The next item whose history is to be compared: of which the hub told last, and a folder before what was deleted from
  /// it.
  ///
  /// - Parameter number: Those told at this number or later are left for another time.
  package func nextHistory(of account: Int64, toldBefore number: Int64) throws -> DueHistory? {
    try locked {
      guard let row = try read({ try $0.replicaHistory(of: account, toldBefore: number) }) else { return nil }
      var due = try dueHistory(row)
      for _ in 0..<Self.depthLimit {
        guard let parent = due.deleted?.places.min()?.parent, parent != .root,
          try replicaInode(parent, of: account) == nil,
          let above = try read({ try $0.replicaHistory(of: account, parent.bytes) }), above.state != nil
        else { break }
        due = try dueHistory(above)
      }
      return due
    }
  }

  private func dueHistory(_ row: ReplicaHistoryRow) throws -> DueHistory {
    guard let item = WireID(bytes: row.item) else { throw SheafError(.corrupt, subject: "replica") }
    return DueHistory(
      item: item, told: row.told, after: row.after, isWhole: row.isWhole,
      deleted: try row.state.map { try replicaTexts.decode($0) })
  }

  // MARK: - Comparing

  /// Compares an item with what the hub lists of its versions.
  ///
  /// - Parameter list: What the hub has after ``DueHistory/listedAfter``.
  package func compareHistory(
    _ due: DueHistory, with list: VersionList, of account: Int64
  ) throws -> HistoryComparison {
    try settleDueEventsInSteps()
    if let state = due.deleted, state.isPurged { return try destroy(state, account) }
    let isHere = try locked { try replicaInode(due.item, of: account) != nil }
    guard isHere else {
      guard let state = due.deleted else {
        try locked { try waitUntilShown(due, account) }
        return .missing([])
      }
      guard let version = state.version else {
        try makeDeleted(state, nil, nil, account)
        return .missing([])
      }
      // The item is made with its current version.
      let others = list.versions.suffix(Self.historyLimit).reversed().filter { $0.id != version.id }
      return .missing([version] + others)
    }
    for id in list.purged where try !destroy(id, of: due.item, account) { return .later }
    return try locked {
      try settleSessions()
      guard let inode = try replicaInode(due.item, of: account), let item = try item(of: inode),
        item.kind == .document, item.version > 0
      else { return .missing([]) }
      let versions = try replicaVersions(of: item, connected(account))
      if Self.hasOtherNumbers(versions, list, after: due.listedAfter) {
        try makeChange(.replica) {
          try noteHistory(due.item, told: due.told, after: due.after, isWhole: true, account, $0)
        }
        return .anew
      }
      guard try align(inode, item, list, account) else { return .later }
      let here = try replicaVersions(of: item, connected(account)).numbers
      return .missing(
        list.versions.suffix(Self.historyLimit).reversed().filter { $0.number > due.after && here[$0.id] == nil })
    }
  }

  /// Destroys a version that is no more at the hub; returns whether nothing keeps it for now.
  private func destroy(_ version: WireID, of id: WireID, _ account: Int64) throws -> Bool {
    let found = try locked { () -> (number: Int64, isNamed: Bool, handle: AccountHandle)? in
      guard let inode = try replicaInode(id, of: account), let item = try item(of: inode),
        let number = try replicaVersions(of: item, connected(account)).numbers[version]
      else { return nil }
      return (number, inode.row.nlink > 0, try key(account))
    }
    guard let found else { return true }
    if found.isNamed {
      do {
        try purge(path(ofItem: id.description, for: found.handle, isExact: true), version: found.number)
      } catch let error as SheafError where error.kind == .busy || error.kind == .notFound {
        return false
      }
      return true
    }
    let isDone = try locked { () -> Bool in
      guard let inode = try replicaInode(id, of: account), let item = try item(of: inode),
        item.version != found.number, inode.row.nlink == 0
      else { return false }
      try makeChange(.purge, freesSpace: true) { change in
        try notePurge(change)
        try change.rows.deleteVersion(item.id, found.number)
      }
      return true
    }
    if isDone { try freePurged() }
    return isDone
  }

  /// Destroys what is in the trash here and was destroyed at the hub. What has a name is left to the next plan.
  private func destroy(_ state: ItemState, _ account: Int64) throws -> HistoryComparison {
    let found = try locked { () -> (row: DeletedRow, isEmpty: Bool)? in
      guard let inode = try replicaInode(state.item, of: account), let item = try item(of: inode),
        let row = try read({ try $0.deleted(inode.ino) }),
        // The hub never had this.
        try replicaVersions(of: item, connected(account)).unsent.isEmpty
      else { return nil }
      return (row, try read { try $0.deleted(from: inode.ino, limit: 1).isEmpty })
    }
    guard let found else { return .missing([]) }
    if !found.isEmpty {
      // The hub leaves what was deleted from a folder; the folder goes with the last of it.
      try locked { try makeChange(.replica) { try wait(state.item, account, $0) } }
      return .missing([])
    }
    try destroy(found.row, of: account)
    try locked { try wakeFolder(found.row.parent, account) }
    return .missing([])
  }

  /// Destroys what is in the trash of an account.
  func destroy(_ row: DeletedRow, of account: Int64) throws {
    try settleEventsInSteps()
    var purge: Purge? = Purge(
      path: try ItemPath(account: locked { try key(account) }, "Documents"), top: .deleted(row),
      caller: .replica(account))
    while let begun = purge {
      try locked {
        try settleEvents(all: true)
        let isThere = try read { try $0.deleted(row.ino) == row }
        purge = isThere ? try eraseSome(begun) : nil
      }
    }
    try freePurged()
  }

  /// Has a folder looked at that waits until nothing is in it any more.
  private func wakeFolder(_ ino: Int64, _ account: Int64) throws {
    guard let id = try read({ try $0.inode(ino) })?.item, let item = try read({ try $0.item(id) }) else { return }
    try makeChange(.replica) { try wakeHistory(of: WireID(item.uuid), account, $0) }
  }

  // MARK: - What waits

  /// Has an item that is not here looked at once it is, if it is still to be shown.
  private func waitUntilShown(_ due: DueHistory, _ account: Int64) throws {
    let row = try read { try $0.replicaItem(of: account, due.item.bytes) }
    guard let news: ItemState = try row.news.map({ try replicaTexts.decode($0) }), !news.isDeleted else { return }
    try makeChange(.replica) { try wait(due.item, account, $0) }
  }

  private func wait(_ id: WireID, _ account: Int64, _ change: Change) throws {
    guard var row = try change.rows.replicaHistory(of: account, id.bytes) else { return }
    row.told = -1
    try change.rows.set(row, of: account)
  }

  /// Has an item looked at again that waited.
  func wakeHistory(of id: WireID, _ account: Int64, _ change: Change) throws {
    guard var row = try change.rows.replicaHistory(of: account, id.bytes), row.told < 0 else { return }
    row.told = 0
    try change.rows.set(row, of: account)
  }

  // MARK: - Numbers

  /// Gives the versions of a document the hub's numbers; returns whether nothing kept it from doing so for now.
  private func align(_ inode: Inode, _ item: ItemRow, _ list: VersionList, _ account: Int64) throws -> Bool {
    let versions = try replicaVersions(of: item, connected(account))
    let gone = try goneVersions(of: item, inode, versions)
    let moves = Self.moves(versions, list, gone: gone)
    guard !moves.isEmpty else { return true }
    guard moves.count <= Self.renumberLimit else {
      log.notice("a document keeps the numbers of this machine: it has too many versions")
      return true
    }
    // Programs and events that wait know a version by its number.
    guard !inode.drafts.contains(where: { $0.session != nil || $0.isChanged || $0.writerCount > 0 }),
      !events.has(item.id)
    else { return false }
    var renumbered = item
    renumbered.version = moves[item.version] ?? item.version
    renumbered.conflict = item.conflict.flatMap { moves[$0] ?? $0 }
    let forgotten = try read { try $0.replicaVersions(of: item.id) }.map(\.number).filter {
      versions.ids[$0] == nil && gone[$0] == nil
    }
    let numbers =
      (Array(versions.ids.keys) + gone.keys).map { moves[$0] ?? $0 }
      + list.versions.map { min($0.number, Self.highestVersion) }
    renumbered.lastVersion = max(renumbered.version, numbers.max() ?? 0)
    let final = renumbered
    let unsent = Set(versions.unsent.map(\.id))
    try makeChange(.replica) { change in
      for number in forgotten { try change.rows.removeReplicaVersion(of: item.id, number) }
      // The id of a version that was not noted follows from its number.
      for number in moves.keys.sorted() {
        guard let id = versions.ids[number] else { continue }
        try change.rows.set(
          ReplicaVersionRow(number: number, uuid: id.bytes, isSent: !unsent.contains(id)), of: item.id)
      }
      try change.rows.renumberVersions(item.id, moves)
      try change.rows.update(final)
      change.whenRecorded { [self] in
        inode.item = final
        inode.savers = inode.savers.mapValues { saved in
          saved.item == final.id ? SeenVersion(item: final.id, number: moves[saved.number] ?? saved.number) : saved
        }
        for file in files.all where file.inode === inode {
          if let seen = file.seen, seen.item == final.id, let number = moves[seen.number] {
            file.seen = SeenVersion(item: final.id, number: number)
          }
        }
        readings.renumber(final.id, moves)
        rapidSaves.renumber(
          final.id, Dictionary(uniqueKeysWithValues: versions.ids.keys.map { ($0, moves[$0] ?? $0) }))
        tell(.appearance(inode.ino), from: 0)
      }
    }
    return true
  }

  /// Whether versions that the hub got have numbers here that are among those that it listed, and are not its own.
  ///
  /// - Parameter after: Versions up to this number were not listed.
  private static func hasOtherNumbers(_ versions: ReplicaVersions, _ list: VersionList, after: Int64) -> Bool {
    guard after > 0 else { return false }
    let known = Set(list.versions.map(\.id)).union(versions.unsent.map(\.id))
    return versions.ids.contains { $0.key > after && !known.contains($0.value) }
  }

  /// Versions of a document that are gone here and at the hub are another document's, as far as anybody knows them who
  /// may save on top of them.
  private func goneVersions(
    of item: ItemRow, _ inode: Inode, _ versions: ReplicaVersions
  ) throws -> [Int64: WireID] {
    let noted = try notedVersions(of: item).filter { versions.ids[$0.key] == nil }
    if noted.isEmpty { return [:] }
    var known = readings.versions(of: item.id)
    known.formUnion(try read { try $0.versionFacts(item.id) }.compactMap(\.base))
    for seen in files.all.lazy.filter({ $0.inode === inode }).compactMap(\.seen) + inode.savers.values
    where seen.item == item.id { known.insert(seen.number) }
    return noted.filter { known.contains($0.key) }
  }

  /// The versions whose numbers are others than the hub's, or in the way of those.
  ///
  /// - Parameter gone: Versions of which this library has nothing but the ids.
  static func moves(
    _ versions: ReplicaVersions, _ list: VersionList, gone: [Int64: WireID] = [:]
  ) -> [Int64: Int64] {
    let known = Dictionary(list.versions.map { ($0.id, min($0.number, highestVersion)) }) { $1 }
    let unsent = Set(versions.unsent.map(\.id))
    var taken = Set(known.values)
    var top = taken.max() ?? 0
    var moves: [Int64: Int64] = [:]
    let local = versions.ids.merging(gone) { own, _ in own }.sorted { $0.key < $1.key }
    for (number, id) in local {
      guard let wanted = known[id], wanted != number else { continue }
      moves[number] = wanted
    }
    for (number, id) in local where known[id] == nil {
      // What is not sent yet comes after everything that the hub has.
      if !taken.contains(number), number > top || !unsent.contains(id) {
        if unsent.contains(id) { top = number }
      } else {
        repeat { top += 1 } while taken.contains(top)
        moves[number] = top
      }
      taken.insert(moves[number] ?? number)
    }
    return moves
  }

  // MARK: - What was missing

  /// Adds a version that was missing.
  ///
  /// - Parameter contents: Its contents; nil if it has none.
  /// - Throws: `inputOutput` and what else keeps this library from changing.
  package func addVersion(
    _ version: ItemVersion, to due: DueHistory, of account: Int64, contents: ReceivedContents?
  ) throws {
    let isHere = try locked { try replicaInode(due.item, of: account) != nil }
    if !isHere {
      // Without its current version it does not come.
      guard let state = due.deleted, state.version?.id == version.id else { return }
      return try makeDeleted(state, version, contents, account)
    }
    try locked {
      guard let inode = try replicaInode(due.item, of: account), let item = try item(of: inode),
        item.kind == .document, item.version > 0, (1...Self.highestVersion).contains(version.number),
        case let versions = try replicaVersions(of: item, connected(account)), versions.numbers[version.id] == nil,
        try read({ try $0.version(item.id, version.number) }) == nil
      else { return }
      let author = try author(of: version, account)
      try makeChange(.replica) { change in
        let isAbsent = try contents == nil && version.size > 0 && historyComesAbsent(inode)
        let content =
          isAbsent
          ? try absentContent(of: version, item.id, change) : try storedContents(contents, account, change)
        guard content.length == version.size else {
          // The hub gives something else; whatever it is, it is not that version.
          return try change.deleteStored()
        }
        let base = version.base.flatMap { versions.numbers[$0] }.flatMap { $0 < version.number ? $0 : nil }
        try change.rows.insert(
          VersionRow(
            item: item.id, number: version.number, time: Timestamp(nanoseconds: version.time), author: author,
            size: content.length, cause: version.cause.local, base: base, content: content, isOpen: false))
        try change.rows.set(
          ReplicaVersionRow(number: version.number, uuid: version.id.bytes, isSent: true), of: item.id)
        if try isSharedHereAlone(inode.row.parent) {
          let latest = try change.rows.versionFacts(item.id).map(\.time).max()
          try stampEntry(of: inode, max(change.time, latest ?? change.time), change)
        }
        guard version.number > item.lastVersion, let item = try change.rows.item(item.id) else { return }
        var raised = item
        raised.lastVersion = version.number
        try change.rows.update(raised)
        change.whenRecorded { [raised] in inode.item = raised }
      }
    }
  }

  /// Notes that all of an item's history is here that the hub listed: labels and bases are as there.
  package func finishHistory(_ due: DueHistory, _ list: VersionList, of account: Int64) throws {
    try locked {
      let versions = try replicaInode(due.item, of: account).flatMap { inode in
        try item(of: inode).map { item in (item, try replicaVersions(of: item, connected(account)).numbers) }
      }
      try makeChange(.replica) { change in
        if let (item, numbers) = versions, item.kind == .document {
          try setBases(of: item, list, numbers, change)
          try setLabels(of: item, list, numbers, account, change)
        }
        if try change.rows.replicaHistory(of: account, due.item.bytes)?.told == due.told {
          try change.rows.removeReplicaHistory(of: account, due.item.bytes)
        }
      }
    }
  }

  private func setBases(
    of item: ItemRow, _ list: VersionList, _ numbers: [WireID: Int64], _ change: Change
  ) throws {
    let bases = Dictionary(list.versions.map { ($0.id, $0.base) }) { $1 }
    let ids = Dictionary(numbers.map { ($0.value, $0.key) }) { $1 }
    for fact in try change.rows.versionFacts(item.id) where !fact.isOpen {
      guard let id = ids[fact.number], let known = bases[id], let base = known.flatMap({ numbers[$0] }),
        base < fact.number, base != fact.base
      else { continue }
      try change.rows.setBase(item.id, fact.number, base)
    }
  }

  private func setLabels(
    of item: ItemRow, _ list: VersionList, _ numbers: [WireID: Int64], _ account: Int64, _ change: Change
  ) throws {
    // What was given here and is not there yet is told again once it is.
    guard try change.rows.replicaRequests(of: account, item: item.uuid.bytes).isEmpty else { return }
    var wanted: [Int64: String] = [:]
    for version in list.versions {
      guard let number = numbers[version.id], let label = version.label, VersionLabel.isSound(label) else { continue }
      wanted[number] = label
    }
    let listed = Set(list.versions.compactMap { numbers[$0.id] })
    for (number, label) in try change.rows.labels(item.id) where listed.contains(number) && wanted[number] != label {
      try change.rows.removeLabel(item.id, number)
    }
    for (number, label) in wanted { try change.rows.setLabel(item.id, number, label) }
  }

  // MARK: - The trash

  /// Makes an item that was deleted at the hub, as one of the deleted here.
  private func makeDeleted(
    _ state: ItemState, _ version: ItemVersion?, _ contents: ReceivedContents?, _ account: Int64
  ) throws {
    let documents = try locked { try self.documents(ofConnected: account) }
    let parent = try locked { () -> Int64 in
      guard let place = state.places.min(), place.parent != .root,
        let inode = try replicaInode(place.parent, of: account), inode.isFolder
      else { return documents }
      return inode.ino
    }
    try locked {
      // Ids are the hub's word: another account's item may have this one.
      guard let place = state.places.min(), !Self.isReserved(place.name),
        try read({ try $0.item(uuid: UUID(bytes: state.item.bytes)) }) == nil
      else { return }
      let folder = try folder(parent)
      let (caller, time) = (Caller.replica(account), clock())
      let type = state.kind == .folder ? S_IFDIR : state.kind == .symlink ? S_IFLNK : S_IFREG
      let mode = state.kind == .symlink ? 0o777 : UInt32(truncatingIfNeeded: state.mode) & 0o1777
      var row = newRow(type, in: folder, place.name, mode: mode, caller, time)
      (row.uid, row.gid, row.nlink) = (folder.row.uid, folder.row.gid, 0)
      if state.kind != .folder { row.mtime = Timestamp(nanoseconds: state.mtime) }
      if state.kind == .symlink {
        guard let target = state.target, Self.isTarget(target) else { return }
        row.target = [UInt8](target)
        row.size = Int64(target.count)
      }
      let origin = try origin(of: state.item, state, version, account)
      let deletion = Caller.Deed(
        person: try person(state.placedBy, account),
        time: min(state.deleted.map { Timestamp(nanoseconds: $0) } ?? time, time))
      var item = ItemRow(
        id: numbers.nextItem(), uuid: UUID(bytes: state.item.bytes), kind: state.kind.local, owner: row.owner,
        creator: origin.creator, created: min(origin.created ?? time, time))
      row.item = item.id
      if try isSharedHereAlone(parent) { item.entered = max(time, Timestamp(nanoseconds: version?.time ?? 0)) }
      try makeChange(.replica, by: caller, at: time) { change in
        if state.kind == .document {
          let isAbsent = try contents == nil && version?.size ?? 0 > 0 && historyComesAbsent(nil)
          let content =
            try isAbsent
            ? version.map { try absentContent(of: $0, item.id, change) } ?? .empty
            : storedContents(contents, account, change)
          guard let version, content.length == version.size, (1...Self.highestVersion).contains(version.number) else {
            return try change.deleteStored()
          }
          (row.content, row.size) = (content, content.length)
          (item.version, item.lastVersion) = (version.number, version.number)
          try change.rows.insert(item)
          try change.rows.insert(
            VersionRow(
              item: item.id, number: version.number, time: Timestamp(nanoseconds: version.time), author: origin.author,
              size: content.length, cause: version.cause.local, base: nil, content: content, isOpen: false))
          try change.rows.set(
            ReplicaVersionRow(number: version.number, uuid: version.id.bytes, isSent: true), of: item.id)
        } else {
          try change.rows.insert(item)
        }
        try change.rows.insert(row)
        for (name, value) in state.attributes.sorted(by: { $0.key < $1.key }) where Self.travels(Array(name.utf8)) {
          try change.rows.setXattr(row.ino, Array(name.utf8), [UInt8](value))
        }
        try change.rows.insert(
          DeletedRow(
            ino: row.ino, parent: parent, name: place.name, time: deletion.time, actor: deletion.person))
        let since = origin.placed ?? item.created
        if since < deletion.time {
          try change.rows.insert(
            PastNameRow(
              parent: parent, name: place.name, until: deletion.time, item: item.id, since: since,
              actor: deletion.person))
        }
        // It was deleted where it was made; events there tell of it.
      }
    }
  }
}
