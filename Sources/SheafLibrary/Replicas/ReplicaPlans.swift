import Foundation
package import SheafModel
package import SheafReplica
package import SheafStore
package import SheafWire

/// What a connected account's replica remembers, and its plans.
///
/// Rules:
/// 1. A change of an item is noted in its own transaction (`replica_changes`), so no change is forgotten. What is noted
///    too often costs a look, and nothing else.
/// 2. A plan is one transaction: what the replica remembers from then on, the steps that are to be carried out, and the
///    sends with their serials. It is made of the tree as it is at that moment.
/// 3. Nothing is planned before each step was carried out and each send has its verdict. So a plan never sees what a
///    half-done one left.
///
/// Rooms: `ConnectedAccounts`, `EditingSessions`, `ShareBook`.
extension Library: ReplicaInterface {
  /// Items that are looked at in one plan, with the lock held.
  private static let planLimit = 32
  /// Serials that are left out where one was used before.
  private static let serialLeap: Int64 = 1_000

  // MARK: - Connecting

  /// Makes an account's documents a replica of its zone at a hub. Everything is compared with the hub first.
  ///
  /// - Parameter hub: Its address: people whom it names are known by that.
  /// - Throws: `exists` for an account that is connected.
  package func connect(_ account: Int64, zone: WireID, hub: String) throws {
    try locked {
      guard try read({ try $0.replica(account) }) == nil else {
        throw SheafError(
          .exists, subject: "\(try handle(account))", reason: "is connected to a hub already",
          advice: "disconnect it before: sheaf disconnect --as \(try handle(account))")
      }
      if let wipe = try read({ try $0.wipe(of: account) }), wipe.state == .begun {
        throw SheafError(
          .busy, subject: "\(try handle(account))", reason: "is still being wiped from this machine",
          advice: "wait until `sheaf status` says that it is done")
      }
      try settleSessions()
      // What was done before is told by this library, as ever.
      try settleEvents(all: true)
      try makeChange(.replica) { change in
        try beginLog(of: account, zone, change)
        if try change.rows.formerReplica(account)?.zone == zone.bytes {
          try change.rows.resumeReplica(account, hub: hub, undone: replicaTexts.encode(ReplicaMark.undone))
        } else {
          // What was agreed on with another hub is not so here.
          try change.rows.deleteReplica(account)
          try change.rows.insert(
            ReplicaRow(account: account, zone: zone.bytes, seed: UUID.timeOrdered(change.time).bytes, hub: hub))
          try change.rows.forgetSentVersions(of: account)
        }
        try change.rows.setPace(ReplicaPace(), of: account)
        try forgetHubRetention(of: account, change)
        try change.rows.setNotesChanges(true)
        try change.rows.noteAllReplicaChanges(of: account)
        try change.rows.setWipe(nil, of: account)
        change.whenRecorded { [self] in connectedAccounts.insert(account) }
      }
    }
  }

  /// Ends that. Everything that is here stays.
  ///
  /// - Throws: `notFound` for an account that is not connected.
  package func disconnect(_ account: Int64) throws {
    try locked {
      _ = try connected(account)
      let followed = try read { try $0.replicas() }.filter { $0.reader == account }
      // What others share stays to be read. Nobody hears of what would be written there.
      for replica in followed {
        for var share in shares.all where share.row.isActive && share.row.url != nil {
          guard try sharedInode(share.row.item)?.row.owner == replica.account else { continue }
          for number in share.participants.keys where share.participants[number]?.role != .owner {
            share.participants[number]?.permission = .readOnly
            // Administrators edit whatever their permission is.
            if share.participants[number]?.role == .administrator { share.participants[number]?.role = .privateUser }
          }
          try makeChange(.share) { [share] in try update(share, $0) }
        }
      }
      try makeChange(.replica) { change in
        for replica in followed { try endLog(of: replica.account, change) }
        try endLog(of: account, change)
        // What was agreed on and not done yet is to be shown.
        for row in try change.rows.replicaSteps(of: account) {
          for id in (try replicaTexts.decode(row.step) as ReplicaStep).items { try tellAgain(id, account, change) }
        }
        try change.rows.keepFormerReplica(account)
        try endReplica(of: account, change)
      }
    }
  }

  /// Ends an account's replica, of which the caller has kept or deleted what it and the hub agreed on.
  func endReplica(of account: Int64, _ change: Change) throws {
    try change.rows.setPace(ReplicaPace(), of: account)
    try forgetReplicaDevice(of: account, change)
    try forgetHubRetention(of: account, change)
    if try change.rows.replicas().isEmpty { try change.rows.setNotesChanges(false) }
    change.whenRecorded { [self] in connectedAccounts.remove(account) }
  }

  /// The handle of an account that is connected, or was.
  package func connectedHandle(_ account: Int64) throws -> AccountHandle { try locked { try key(account) } }

  package func replicas() throws -> [ReplicaRow] { try locked { try read { try $0.replicas() } } }

  package func replica(_ account: Int64) throws -> ReplicaRow? {
    try locked { try read { try $0.replica(account) } }
  }

  /// Has the serials of sends go on above one that this machine has used, if the library does not know of it: it was put
  /// back to an earlier state.
  package func raiseSerial(to serial: Int64, of account: Int64) throws {
    try locked {
      var replica = try connected(account)
      guard serial > replica.serial else { return }
      replica.serial = serial
      let raised = replica
      try makeChange(.replica) { try $0.rows.update(raised) }
    }
  }

  package func replicaCounts(_ account: Int64) throws -> ReplicaCounts {
    // First: a save that is kept meanwhile is among the changes then.
    let saves = locked { Int64(sessions.keptInodes.count { $0.row.owner == account }) }
    // There may be very many, and counting them need not keep anybody from anything.
    var counts = try store.snapshot {
      ReplicaCounts(
        changes: try $0.countReplicaChanges(of: account), saves: saves,
        sends: try $0.countReplicaSends(of: account) + $0.countReplicaRequests(of: account)
          + $0.countReplicaComments(of: account),
        news: try $0.countReplicaNews(of: account), histories: try $0.countReplicaHistories(of: account))
    }
    if (1...Int64(Self.planLimit)).contains(counts.changes) {
      counts.settled = min(counts.changes, try locked { try countSettled(of: account) })
    }
    return counts
  }

  /// Where whoever uses this library finds an item of a connected account; nil where it has no name here.
  package func replicaPath(_ id: WireID, of account: Int64) throws -> String? {
    try locked {
      guard let inode = try replicaInode(id, of: account), inode.row.nlink > 0 else { return nil }
      return try mountPath(inode, for: connected(account).reader ?? account)
    }
  }

  private func countSettled(of account: Int64) throws -> Int64 {
    guard let replica = try read({ try $0.replica(account) }) else { return 0 }
    // A save that was closed just now is among what is sent once its version ended.
    try settleSessionsWithRoom()
    guard sessions.ended.isEmpty else { return 0 }
    let noted = try read { try $0.replicaChanges(of: account, after: [], limit: Self.planLimit) }
    var tree = try ReplicaTree(self, replica)
    return try Int64(noted.compactMap { WireID(bytes: $0) }.filter { try Self.isSettled($0, &tree) }.count)
  }

  /// Whether a changed item is as the hub has it, or the hub never hears of it.
  private static func isSettled(_ id: WireID, _ tree: inout ReplicaTree) throws -> Bool {
    let (local, base) = (try tree.local(id), try tree.base(id))
    return Planner.isSettled(local, base) || (local?.readiness == .never && base == nil)
  }

  /// - Throws: `notFound` for an account that is not connected.
  func connected(_ account: Int64) throws -> ReplicaRow {
    guard let replica = try read({ try $0.replica(account) }) else {
      throw SheafError(
        .notFound, subject: "\(try handle(account))", reason: "is connected to no hub",
        advice: "sheaf connect LINK, with a link from the hub's administrator or from another device")
    }
    return replica
  }

  // MARK: - The feed

  /// Notes what a page of the feed tells, and where the feed goes on.
  package func note(_ page: FeedPage, of account: Int64) throws {
    try locked {
      var replica = try connected(account)
      try makeChange(.replica) { change in
        for state in page.items { try note(state, of: account, change) }
        replica.token = page.token
        replica.read = max(replica.read, page.items.last?.number ?? 0)
        try change.rows.update(replica)
      }
    }
  }

  /// Notes what the hub told of an item.
  func note(_ state: ItemState, of account: Int64, _ change: Change) throws {
    if state.item == .root { return }
    var row = try change.rows.replicaItem(of: account, state.item.bytes)
    try forgetDestroyed(&row, state.item, of: account, change)
    let base: ItemState? = try row.base.map { try replicaTexts.decode($0) }
    // The numbers of a hub that went back are lower than before, and what it told since is the news.
    guard state.number >= row.newsNumber ?? base?.number ?? 0 else { return }
    try noteHistory(of: state, after: row, account, change)
    if let base, row.news == nil, row.mark == nil, state.isAnswered(base) {
      // It is what this machine sent, and there is nothing to show.
      row.base = try replicaTexts.encode(state)
    } else {
      row.news = try replicaTexts.encode(state)
      row.newsNumber = state.number
    }
    try change.rows.setReplicaItem(of: account, state.item.bytes, row)
  }

  // MARK: - The first reading

  /// Items that are noted with the lock held.
  private static let notedAtOnce = 64

  /// Forgets some of what a first reading noted that was cut short: what the hub deleted since, no other one tells.
  ///
  /// - Returns: whether there was anything.
  private func forgetListed(of account: Int64) throws -> Bool {
    try locked {
      let news = try read { try $0.replicaNews(of: account, limit: Self.notedAtOnce) }
      if news.isEmpty { return false }
      try makeChange(.replica) { change in
        for (item, _) in news {
          var row = try change.rows.replicaItem(of: account, item)
          (row.news, row.newsNumber) = (nil, nil)
          try change.rows.setReplicaItem(of: account, item, row)
          try change.rows.removeReplicaHistory(of: account, item)
        }
      }
      return true
    }
  }

  /// Notes a part of what the hub has when an account reads all of it for the first time. Nothing is planned before
  /// ``endListing(token:read:of:)``.
  ///
  /// - Parameters:
  ///   - states: In the order of the numbers.
  ///   - begins: Whether it is the first part.
  package func noteListed(_ states: [ItemState], begins: Bool, of account: Int64) throws {
    while begins, try forgetListed(of: account) {}
    for start in stride(from: 0, to: states.count, by: Self.notedAtOnce) {
      try locked {
        try makeChange(.replica) { change in
          for state in states[start...].prefix(Self.notedAtOnce) { try note(state, of: account, change) }
        }
      }
    }
  }

  /// Notes that an account has read all that the hub has for the first time.
  ///
  /// - Parameters:
  ///   - token: After which the feed goes on.
  ///   - read: The newest number that was read.
  package func endListing(token: String, read: Int64, of account: Int64) throws {
    try locked {
      var replica = try connected(account)
      (replica.token, replica.read, replica.rereads) = (token, read, false)
      let listed = replica
      try makeChange(.replica) { change in
        try change.rows.update(listed)
        try requestLabels(of: listed, change)
      }
    }
  }

  /// Has everything compared with the hub before the next plan.
  ///
  /// - Parameter isGone: Whether that is since the hub does not take the feed's token any more, as when it went back.
  package func reread(_ account: Int64, isGone: Bool) throws {
    try locked {
      let replica = try connected(account)
      try makeChange(.replica) { try reread(replica, isGone: isGone, $0) }
    }
  }

  func reread(_ replica: ReplicaRow, isGone: Bool, _ change: Change) throws {
    var replica = replica
    replica.rereads = true
    // Of a share that says so; an account's own zone without a token is one that was never read.
    if isGone, replica.share != nil { replica.token = nil }
    // A hub that went back may have forgotten what was said since.
    if isGone, replica.share == nil { try noteFormerHub(of: replica.account, change) }
    try change.rows.update(replica)
  }

  /// Compares everything that the hub has with what a replica remembers that has read all of it before.
  ///
  /// - Parameters:
  ///   - states: What the hub has, in the order of the numbers.
  ///   - token: After which the feed goes on.
  package func noteAll(_ states: [ItemState], token: String, of account: Int64) throws {
    try locked {
      var replica = try connected(account)
      try settleSessions()
      let tree = try ReplicaTree(self, replica)
      let news = try read { try $0.replicaNews(of: account, limit: .max) }.compactMap { WireID(bytes: $0.item) }
      let known = try read { try $0.replicaBases(of: account) + $0.documents(of: account) }
        .compactMap { WireID(bytes: $0) }
      let plan = try Planner.reread(
        known: Array(Set(known)), news: news, states: states.filter { $0.item != .root },
        chain: { try self.chain(of: $0, replica) }, tree)
      replica.token = token
      replica.read = states.last?.number ?? 0
      replica.rereads = false
      let read = replica
      try makeChange(.replica) { change in
        _ = try record(plan, read, tree, change)
        try change.rows.noteAllReplicaChanges(of: account)
        // Whatever was compared was compared with another state of the hub.
        try change.rows.removeReplicaHistories(of: account)
        for state in states where state.item != .root {
          try noteHistory(of: state, after: ReplicaItemRow(), account, change)
        }
        try requestLabels(of: read, change)
      }
    }
  }

  /// A document's versions that ended, the oldest first.
  private func chain(of id: WireID, _ replica: ReplicaRow) throws -> [LocalVersion] {
    guard let inode = try replicaInode(id, of: replica.account), let item = try item(of: inode) else { return [] }
    return try replicaVersions(of: item, replica, withSent: true).unsent
  }

  // MARK: - Plans

  /// Plans some of what is to be done, if no step and no send is left of the plan before.
  package func plan(_ account: Int64, sending sends: PlannedSends = .all) throws -> ReplicaProgress {
    var limit = Self.planLimit
    let holdsDeletions = try locked { try mayReturn(deletionsOfItemsOf: account) }
    while true {
      // The others, of which there may be very many, are not even looked at.
      let chosen: [[UInt8]]? =
        switch (sends, holdsDeletions) {
        case (.all, false): nil
        case (.all, true): try store.snapshot { try $0.lastingReplicaChanges(of: account, limit: limit) }
        case (.allBut(let items), let holdsDeletions):
          try store.snapshot { rows in
            let limit = limit + items.count
            return holdsDeletions
              ? try rows.lastingReplicaChanges(of: account, limit: limit)
              : try rows.replicaChanges(of: account, after: [], limit: limit)
          }.filter { WireID(bytes: $0).map { !items.contains($0) } ?? true }
        case (.deletions, false): try store.snapshot { try $0.deletedReplicaChanges(of: account, limit: limit) }
        case (.deletions, true): []
        }
      if let progress = try locked({ try plan(account, limit: limit, chosen) }) {
        // What is held back is looked at again soon.
        if holdsDeletions, case .settled(let waiting) = progress { return .settled(waiting: max(1, waiting)) }
        return progress
      }
      // What can be planned may need what comes later.
      limit *= 4
    }
  }

  /// - Parameter chosen: The changed items that alone are to be sent; nil for all that changed.
  /// - Returns: nil if nothing could be planned of so many, and there are more.
  private func plan(_ account: Int64, limit: Int, _ chosen: [[UInt8]]?) throws -> ReplicaProgress? {
    let replica = try connected(account)
    guard !replica.rereads, try read({ try $0.replicaStep(of: account) }) == nil,
      try read({ try $0.replicaSends(of: account, limit: 1) }).isEmpty
    else { return .planned([]) }
    try settleSessions()
    try meetPlainFolders(of: replica, limit: limit)
    let noted = try chosen ?? read { try $0.replicaChanges(of: account, after: [], limit: limit) }
    let told = try read { try $0.replicaNews(of: account, limit: limit + 1) }
    let changed = noted.compactMap { WireID(bytes: $0) }
    try makeFirstVersions(of: changed, replica)
    let news = told.prefix(limit).compactMap { WireID(bytes: $0.item) }
    var tree = try ReplicaTree(self, replica, changed: changed)
    let read = told.count > limit ? min(replica.read, told[limit].number - 1) : replica.read
    let plan = try Planner.plan(changed: changed, news: news, read: read, isWhole: noted.count < limit, tree)
    let touched = plan.items
    let settled = try changed.filter { id in try !touched.contains(id) && Self.isSettled(id, &tree) }
    let isDone = plan.changes.isEmpty && plan.records.isEmpty && plan.groups.isEmpty && settled.isEmpty
    if isDone {
      if noted.count < limit, told.count <= limit { try forgetTold(of: account) }
      return noted.count < limit && told.count <= limit ? .settled(waiting: noted.count) : nil
    }
    let former = tree
    let notices = try makeChange(.replica) { change in
      for id in changed where touched.contains(id) || settled.contains(id) {
        try forgetRefusal(of: id, account, change)
      }
      let notices = try record(plan, replica, former, change)
      for id in settled { try change.rows.removeReplicaChange(of: account, id.bytes) }
      // What changes from now on is noted anew; the verdict has all others compared.
      for send in plan.groups.joined() { try change.rows.removeReplicaChange(of: account, send.item.bytes) }
      return notices
    }
    return .planned(notices)
  }

  /// Gives documents that were made and never closed a first version, since only what has versions travels: mknod(2) makes
  /// such, and whatever ends between open(2) and close(2). A program that has one open for long and writes nothing keeps it
  /// from nobody.
  private func makeFirstVersions(of changed: [WireID], _ replica: ReplicaRow) throws {
    let time = clock()
    var lacking: [(item: ItemRow, inode: Inode)] = []
    for id in changed {
      guard let row = try read({ try $0.item(uuid: UUID(bytes: id.bytes)) }), row.kind == .document,
        row.lastVersion == 0, let inode = try replicaInode(id, of: replica.account), inode.row.nlink > 0,
        inode.isRegular, inode.drafts.allSatisfy({ $0.session == nil && !$0.isChanged }),
        let item = try item(of: inode), item.lastVersion == 0
      else { continue }
      switch try readiness(of: inode, item, isKnown: false, at: time) {
      case .ready: break
      // Everyone hears of it by now, also of what a program has open.
      case .waiting where time.nanoseconds &- item.created.nanoseconds >= Identity.window: break
      case .waiting, .never: continue
      }
      lacking.append((item, inode))
    }
    if lacking.isEmpty { return }
    try makeChange(.replica) { change in
      for (item, inode) in lacking {
        var item = item
        try insertContents(of: &item, inode, by: item.creator, change)
        try change.rows.update(item)
        let final = item
        change.whenRecorded { inode.item = final }
      }
    }
  }

  /// Makes known the plain folders that have the names of folders which come from the hub: each is to be one with that
  /// folder. Programs look for what is in it, as in `node_modules`, by its name.
  private func meetPlainFolders(of replica: ReplicaRow, limit: Int) throws {
    var tree = try ReplicaTree(self, replica)
    var folders: [Int64] = []
    for row in try read({ try $0.replicaNews(of: replica.account, limit: limit) }) {
      guard let id = WireID(bytes: row.item), let state = try tree.news(id), state.kind == .folder, !state.isDeleted
      else { continue }
      for place in state.places {
        guard let occupant = try tree.localOccupant(of: place), occupant != id, let inode = try tree.inode(occupant),
          inode.isFolder, try item(of: inode)?.isQuiet ?? false
        else { continue }
        folders.append(inode.ino)
      }
    }
    if folders.isEmpty { return }
    try makeChange(.replica) { change in
      for folder in folders { try makeKnown(folder, change) }
    }
  }

  /// Notes that what the hub refused of an item has changed since.
  private func forgetRefusal(of id: WireID, _ account: Int64, _ change: Change) throws {
    var row = try change.rows.replicaItem(of: account, id.bytes)
    guard let text = row.mark, case .refused = try replicaTexts.decode(text) as ReplicaMark else { return }
    row.mark = nil
    try change.rows.setReplicaItem(of: account, id.bytes, row)
  }

  /// Stores a plan.
  private func record(
    _ plan: Plan, _ replica: ReplicaRow, _ tree: ReplicaTree, _ change: Change
  ) throws -> [ReplicaNotice] {
    let account = replica.account
    for record in plan.records { try self.record(record, account, change) }
    var fetched: Set<WireID> = []
    for case .put(_, let version?) in plan.changes { fetched.insert(version.id) }
    for case .base(let id, let state?) in plan.records {
      guard let version = state.version, !fetched.contains(version.id) else { continue }
      try noteUnseen(version, of: id, told: state.number, account, change)
    }
    var reader = tree
    var number = try change.rows.lastReplicaStep(of: account)
    var steps = try ReplicaSteps.order(
      plan.changes, isTaken: { try reader.localOccupant(of: $0) != nil }, { try reader.local($0) })[...]
    // What no other step comes before needs none of its own.
    while number == 0, case .set(let item, let before, nil)? = steps.first, item.isAcknowledged(before) {
      try setSent(item, since: before, account, change)
      try wakeHistory(of: item.item, account, change)
      steps.removeFirst()
    }
    for step in steps {
      number += 1
      try change.rows.insertReplicaStep(of: account, number, try replicaTexts.encode(step))
    }
    var replica = replica
    for group in plan.groups {
      let first = replica.serial + 1
      for var send in group {
        replica.serial += 1
        send.serial = replica.serial
        send.time = try time(of: send, account)
        // People in a share are not to see since when something was there before.
        if let time = send.time, send.places != nil, let entry = try reader.entry(send.item) {
          send.time = max(time, entry.time)
        }
        send.previousName = try previousName(of: send, account)
        try change.rows.insert(
          ReplicaSendRow(serial: send.serial, first: first, send: try replicaTexts.encode(send)), of: account)
      }
    }
    try change.rows.update(replica)
    return plan.notices
  }

  func record(_ record: RecordChange, _ account: Int64, _ change: Change) throws {
    let id =
      switch record {
      case .base(let id, _), .news(let id, _), .mark(let id, _), .alias(let id, _): id
      }
    var row = try change.rows.replicaItem(of: account, id.bytes)
    switch record {
    case .base(_, let state):
      if let former: ItemState = try row.base.map({ try replicaTexts.decode($0) }) {
        for place in former.places {
          try change.rows.removeReplicaName(of: account, place.parent.bytes, place.name, id.bytes)
        }
      }
      for place in state?.places ?? [] {
        try change.rows.setReplicaName(of: account, place.parent.bytes, place.name, id.bytes)
      }
      row.base = try state.map { try replicaTexts.encode($0) }
    case .news(_, let state):
      row.news = try state.map { try replicaTexts.encode($0) }
      row.newsNumber = state?.number
    case .mark(_, let mark): row.mark = try mark.map { try replicaTexts.encode($0) }
    case .alias(_, let other): row.alias = other?.bytes
    }
    try change.rows.setReplicaItem(of: account, id.bytes, row)
    // Whatever it was compared with is another state now.
    try change.rows.noteReplicaChange(of: account, id.bytes)
  }

  // MARK: - Sends

  /// The sends that wait for their verdicts, in the order of their serials: whole groups, about `limit` sends.
  package func sends(of account: Int64, limit: Int) throws -> [ReplicaSend] {
    try locked {
      let rows = try read { try $0.replicaSends(of: account, limit: limit + WireLimits.sendsPerRequest) }
      var end = min(limit, rows.count)
      while end < rows.count, rows[end].first != rows[end].serial { end += 1 }
      return try rows[..<end].map { ReplicaSend(send: try replicaTexts.decode($0.send), first: $0.first) }
    }
  }

  /// Opens a version that is to be sent; nil if it is no more.
  package func versionReader(_ version: WireID, ofItem id: WireID, of account: Int64) throws -> VersionReader? {
    completeSaves()
    return try locked {
      let replica = try connected(account)
      guard let inode = try replicaInode(id, of: account), let item = try item(of: inode),
        let number = try replicaVersions(of: item, replica).numbers[version],
        let row = try read({ try $0.version(item.id, number) })
      else { return nil }
      return reader(of: row.content, item.id, number, inode, .library)
    }
  }

  /// Takes back a group of sends, since a version that was to be sent is no more, and all that follow. If the hub had
  /// done them, its feed says so.
  ///
  /// - Parameter first: The serial of the first send of the group.
  package func withdrawSends(from first: Int64, of account: Int64) throws {
    try locked {
      let rows = try read { try $0.replicaSends(of: account, limit: .max) }.filter { $0.serial >= first }
      try makeChange(.replica) { change in
        for row in rows {
          let send: Send = try replicaTexts.decode(row.send)
          try change.rows.noteReplicaChange(of: account, send.item.bytes)
          try change.rows.removeReplicaSend(of: account, row.serial)
        }
      }
    }
  }

  /// Takes the hub's verdicts on the first sends that wait.
  ///
  /// - Parameter verdicts: In the order of the serials, of whole groups.
  /// - Throws: `invalid` where they are of other sends.
  package func settle(_ verdicts: [Verdict], of account: Int64) throws -> [ReplicaNotice] {
    try locked {
      var replica = try connected(account)
      try settleSessions()
      let rows = try read { try $0.replicaSends(of: account, limit: verdicts.count) }
      guard rows.map(\.serial) == verdicts.map(\.serial), let last = rows.last?.serial else {
        throw SheafError(
          .invalid, subject: "hub", reason: "answers what it was not asked", advice: "see whether it is as new as this")
      }
      let sends: [Send] = try rows.map { try replicaTexts.decode($0.send) }
      let changed = try Set(
        sends.map(\.item).filter { id in try read { try $0.hasReplicaChange(of: account, id.bytes) } })
      // What is to be given up in a share stays noted until it is: if this process ends before, it is sent once more.
      let givenUp = Set(replica.reader == nil ? [] : zip(sends, verdicts).filter(\.1.isGivenUp).map(\.0.item))
      let tree = try ReplicaTree(self, replica)
      let plan = try Planner.settle(Array(zip(sends, verdicts)), tree)
      // Somebody used these serials before: this machine, if its disk was put back to an earlier state, or a copy of it.
      if verdicts.contains(where: { $0.reason == .confirmed }) { replica.serial += Self.serialLeap }
      replica.confirmed = last
      let confirmed = replica
      return try makeChange(.replica) { change in
        for serial in rows.map(\.serial) { try change.rows.removeReplicaSend(of: account, serial) }
        for (send, verdict) in zip(sends, verdicts) {
          for id in Set([send.item, verdict.item]) { try change.rows.noteReplicaChange(of: account, id.bytes) }
        }
        try noteHistories(of: Array(zip(sends, verdicts)), account, change)
        let notices = try record(plan, confirmed, tree, change)
        // The next plan need not compare these.
        if try change.rows.replicaStep(of: account) == nil {
          for id in plan.settled { try change.rows.removeReplicaChange(of: account, id.bytes) }
        }
        // What was refused is sent again once it changes: not for what was noted just now.
        for case .mark(let id, .refused) in plan.records where !changed.contains(id) && !givenUp.contains(id) {
          try change.rows.removeReplicaChange(of: account, id.bytes)
        }
        return notices
      }
    }
  }
}

extension ItemState {
  /// Whether it is what the hub's verdict told of it, which says less of the version.
  fileprivate func isAnswered(_ verdict: ItemState) -> Bool {
    var told = verdict
    told.places = places
    told.version = version
    return told == self && Set(verdict.places) == Set(places) && verdict.version?.id == version?.id
      && verdict.version?.number == version?.number
  }
}

extension Plan {
  /// Items that it changes, or of which it changes what is remembered.
  fileprivate var items: Set<WireID> {
    var items: Set<WireID> = []
    for change in changes {
      switch change {
      case .put(let item, _): items.insert(item.item)
      case .delete(let id, _), .destroy(let id), .destroySent(let id), .renew(let id): items.insert(id)
      case .identify(let id, let other, _), .absorb(let id, let other): items.formUnion([id, other])
      case .moveVersion(_, let id, let other): items.formUnion([id, other.item])
      }
    }
    for record in records {
      switch record {
      case .base(let id, _), .news(let id, _), .mark(let id, _), .alias(let id, _): items.insert(id)
      }
    }
    for send in groups.joined() { items.insert(send.item) }
    return items
  }
}
