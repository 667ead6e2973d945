package import SheafModel
package import SheafWire

/// The device and person that send, and the time.
package struct SendAuthor: Hashable, Sendable {
  package let device: String
  package let deviceName: String
  package let handle: String
  package let name: String
  package let now: Timestamp

  package init(device: String, deviceName: String, handle: String, name: String, now: Timestamp) {
    self.device = device
    self.deviceName = deviceName
    self.handle = handle
    self.name = name
    self.now = now
  }
}

/// A send with the digest and size of its contents.
package struct Proposal: Hashable, Sendable {
  package let send: Send
  /// Of the version's manifest.
  package let digest: [UInt8]
  package let size: Int64
  /// What was made of its version and the current one, if those can be merged.
  package let merge: PreparedMerge?

  package init(send: Send, digest: [UInt8] = [], size: Int64 = 0, merge: PreparedMerge? = nil) {
    self.send = send
    self.digest = digest
    self.size = size
    self.merge = merge
  }
}

/// Decides what becomes of a group of sends (docs/HUB.md, "When two did something at once").
///
/// It depends on the zone's rows and the sends alone, and changes a draft alone.
package struct Decision {
  /// Items that the deletion of one folder takes along at most.
  static let deletionLimit = 10_000
  /// Folders in each other at most.
  static let depthLimit = 1_000
  /// Numbers that are tried for a name that is taken.
  static let nameLimit = 1_000
  /// The bits of a mode that give a program another user's or group's rights.
  private static let setID = 0o6000

  private struct Refusal: Error {
    let reason: Verdict.Reason
  }

  private let author: SendAuthor
  /// Whether another account owns the zone: then nothing that its author sends gets set-id bits.
  private let isForeign: Bool
  private(set) package var draft: ZoneDraft
  /// The items that the group is about, so that none is changed twice.
  private var sent: [WireID] = []
  /// Those of them that the group says nothing about: what was sent of another document went to them.
  private var copies: Set<WireID> = []
  private var verdicts: [Verdict] = []
  /// The items that went along with a deleted folder.
  private(set) package var takenAlong: [WireID: [WireID]] = [:]
  /// What went beside a document though it has a base in common with what is there.
  private(set) package var conflicts: [SaveConflict] = []

  package init(_ author: SendAuthor, on reader: any ZoneReader, isForeign: Bool = false) {
    self.author = author
    self.isForeign = isForeign
    draft = ZoneDraft(reader)
  }

  /// - Returns: a verdict for each send. If one is refused, all are, and the draft counts for nothing.
  package mutating func decide(_ group: [Proposal]) throws -> [Verdict] {
    for (index, proposal) in group.enumerated() {
      do {
        verdicts.append(try decide(proposal))
      } catch let refusal as Refusal {
        return Self.refuse(group, index, refusal.reason)
      }
    }
    do {
      try settleNames()
      try checkDepth()
    } catch let refusal as Refusal {
      return Self.refuse(group, 0, refusal.reason)
    }
    for index in verdicts.indices {
      if let row = try draft.item(verdicts[index].item), row.places != group[index].send.places, !row.isDeleted,
        verdicts[index].outcome != .kept
      {
        verdicts[index].places = row.places
      }
    }
    return verdicts
  }

  package static func refuse(_ group: [Proposal], _ index: Int, _ reason: Verdict.Reason) -> [Verdict] {
    group.enumerated().map { place, proposal in
      Verdict(
        serial: proposal.send.serial, outcome: .refused, reason: place == index ? reason : .group,
        item: proposal.send.item)
    }
  }

  private mutating func take(_ id: WireID) throws {
    // One item by two of its ids would be changed twice.
    guard id != .root, !sent.contains(id) else { throw Refusal(reason: .invalid) }
    sent.append(id)
  }

  private mutating func decide(_ proposal: Proposal) throws -> Verdict {
    let send = proposal.send
    let id = try draft.resolve(send.item)
    if draft.isNew(id), sent.contains(id) { return try goOn(id, proposal) }
    try take(id)
    guard let row = try draft.item(id) else { return try create(id, proposal) }
    guard !row.isPurged else { throw Refusal(reason: .purged) }
    guard row.kind == send.kind else { throw Refusal(reason: .invalid) }
    return send.isDeletion ? try delete(row, send) : try change(row, proposal)
  }

  // MARK: - Making and changing

  private mutating func create(_ id: WireID, _ proposal: Proposal) throws -> Verdict {
    let send = proposal.send
    guard !send.isDeletion, send.base == nil, let places = send.places else { throw Refusal(reason: .unknown) }
    // A document without contents is one that came back, of which the hub knows nothing.
    guard send.kind != .document || send.version != nil else { throw Refusal(reason: .unknown) }
    guard send.version == nil || send.kind == .document,
      (send.target != nil) == (send.kind == .symlink)
    else { throw Refusal(reason: .invalid) }
    var row = ItemRow(
      item: id, kind: send.kind, number: 0, device: author.device, others: 0, deleted: nil,
      places: try usable(places, of: send.kind), mode: allowed(send.mode ?? 0o600),
      mtime: send.mtime ?? author.now.nanoseconds,
      target: send.target.map { [UInt8]($0) }, attributes: send.attributes ?? [:], version: nil, versions: 0,
      copyOf: nil)
    var verdict = Verdict(serial: send.serial, outcome: .done, item: id)
    if let version = send.version {
      guard try draft.version(version.id) == nil else { throw Refusal(reason: .invalid) }
      add(version, proposal, to: &row, &verdict)
    }
    try draft.put(row)
    return verdict
  }

  /// Adds the next version to a document that the group makes.
  private mutating func goOn(_ id: WireID, _ proposal: Proposal) throws -> Verdict {
    let send = proposal.send
    guard var row = try draft.item(id), row.kind == .document, send.kind == .document, !send.isDeletion,
      send.places == nil, send.mode == nil, send.mtime == nil, send.target == nil, send.attributes == nil,
      let version = send.version, version.base == row.version, try draft.version(version.id) == nil
    else { throw Refusal(reason: .invalid) }
    var verdict = Verdict(serial: send.serial, outcome: .done, item: id)
    add(version, proposal, to: &row, &verdict)
    try draft.put(row)
    return verdict
  }

  private mutating func change(_ row: ItemRow, _ proposal: Proposal) throws -> Verdict {
    let send = proposal.send
    var row = row
    let original = row
    var verdict = Verdict(serial: send.serial, outcome: .done, item: row.item)
    // Of a document that expired nothing is left that could come back.
    guard row.kind != .document || row.version != nil || send.version != nil else { throw Refusal(reason: .purged) }
    // An item that was saved or changed here, and deleted there, comes back where it was.
    row.deleted = nil
    if let places = send.places {
      row.places = try usable(places, of: row.kind)
    } else if original.isDeleted {
      row.places = try usable(row.places, of: row.kind)
    }
    if let target = send.target {
      guard row.kind == .symlink else { throw Refusal(reason: .invalid) }
      row.target = [UInt8](target)
    }
    if let version = send.version {
      guard row.kind == .document else { throw Refusal(reason: .invalid) }
      let base = try version.base.map { try draft.resolve($0) }
      // An id of a version that became one with another means that one.
      let known = try draft.version(try draft.resolve(version.id))
      if let known, known.item != row.item {
        // Another device sent it before, when it went beside: both have it from a hub that went back since.
        guard let copy = try draft.item(known.item), copy.copyOf == row.item, !copy.isPurged,
          try draft.isSeen(copy)
        else {
          throw Refusal(reason: .invalid)
        }
        if row != original { try draft.put(row) }
        verdict.outcome = .beside
        (verdict.item, verdict.version, verdict.versionNumber) = (copy.item, known.id, known.number)
        return verdict
      } else if let known {
        guard !known.isPurged else { throw Refusal(reason: .purged) }
      } else if !isForeign, base != row.version, let same = try draft.same(as: version, proposal.digest, of: row.item) {
        // Another device has the same save, of a copy of the library in which it was made.
        draft.add(alias: version.id, of: same.id)
        verdict.outcome = .joined
        (verdict.version, verdict.versionNumber) = (same.id, same.number)
      } else if original.isDeleted || base == row.version {
        add(version, proposal, to: &row, &verdict)
      } else if try !saveMerged(&row, version, proposal, &verdict) {
        // Neither is based on the other: the version that came first stays, and the names may be the device's.
        if row != original { try draft.put(row) }
        return try saveBeside(row, base: base, version, proposal)
      }
    }
    setAttributes(of: &row, send)
    // Programs see by the time that the contents are others than those that were saved here.
    if verdict.outcome == .merged { row.mtime = author.now.nanoseconds }
    if row != original { try draft.put(row) }
    return verdict
  }

  /// A mode that the author may give: others' folders keep their set-id bits, and others' files get none.
  private func allowed(_ mode: Int, instead former: Int = 0, of kind: ItemKind = .document) -> Int {
    isForeign ? mode & ~Self.setID | (kind == .folder ? former & Self.setID : 0) : mode
  }

  private func setAttributes(of row: inout ItemRow, _ send: Send) {
    if let mode = send.mode { row.mode = allowed(mode, instead: row.mode, of: row.kind) }
    if let mtime = send.mtime { row.mtime = mtime }
    if let attributes = send.attributes { row.attributes = attributes }
  }

  /// Adds a version that is not based on the current one, and the one in which both are merged, which is current then.
  ///
  /// - Returns: whether that was prepared for what is current now.
  private mutating func saveMerged(
    _ row: inout ItemRow, _ version: SentVersion, _ proposal: Proposal, _ verdict: inout Verdict
  ) throws -> Bool {
    guard let merge = proposal.merge, merge.item == row.item, merge.current == row.version,
      try draft.version(merge.version) == nil
    else { return false }
    add(version, proposal, to: &row, &verdict)
    let merged = SentVersion(
      id: merge.version, base: merge.current, cause: .merge, time: author.now.nanoseconds)
    add(merged, Proposal(send: proposal.send, digest: merge.digest, size: merge.size), to: &row, &verdict)
    verdict.outcome = .merged
    return true
  }

  /// Contents that are not based on the current version become a document beside it, or that document's next version.
  private mutating func saveBeside(
    _ row: ItemRow, base: WireID?, _ version: SentVersion, _ proposal: Proposal
  ) throws -> Verdict {
    let send = proposal.send
    var verdict = Verdict(serial: send.serial, outcome: .beside, item: row.item)
    if let base, let known = try draft.version(base), known.item != row.item, var copy = try draft.item(known.item),
      copy.copyOf == row.item, copy.version == base
    {
      try take(copy.item)
      copies.insert(copy.item)
      if copy.isDeleted {
        copy.deleted = nil
        copy.places = try usable(copy.places, of: .document)
      }
      verdict.item = copy.item
      add(version, proposal, to: &copy, &verdict)
      setAttributes(of: &copy, send)
      try draft.put(copy)
      return verdict
    }
    if let base, let current = row.version, try draft.version(base)?.item == row.item {
      conflicts.append(SaveConflict(item: row.item, sent: version.id, base: base, current: current))
    }
    guard let place = row.places.first else { throw Refusal(reason: .invalid) }
    let id = Self.copy(of: version.id)
    guard try draft.item(id) == nil else { throw Refusal(reason: .invalid) }
    var copy = ItemRow(
      item: id, kind: .document, number: 0, device: author.device, others: 0, deleted: nil,
      places: [Place(parent: place.parent, name: Names.beside(place.name, author: author))], mode: row.mode,
      mtime: author.now.nanoseconds, target: nil, attributes: row.attributes, version: nil, versions: 0,
      copyOf: row.item)
    verdict.item = id
    add(version, proposal, to: &copy, &verdict)
    setAttributes(of: &copy, send)
    try draft.put(copy)
    return verdict
  }

  /// The id of the document that a version was put into: the same for the same version.
  static func copy(of version: WireID) -> WireID { WireID(hashOf: Array("beside".utf8) + version.bytes) }

  private mutating func add(
    _ version: SentVersion, _ proposal: Proposal, to row: inout ItemRow, _ verdict: inout Verdict
  ) {
    row.versions += 1
    // Who writes others' files takes those bits away (inode(7)).
    row.mode = allowed(row.mode)
    draft.add(
      VersionRow(
        id: version.id, item: row.item, number: row.versions, base: version.base, cause: version.cause,
        time: version.time, arrived: author.now.nanoseconds, size: proposal.size, digest: proposal.digest,
        author: isForeign ? author.handle : nil))
    row.version = version.id
    verdict.version = version.id
    verdict.versionNumber = row.versions
  }

  // MARK: - Parents and names

  /// The places with their present parents. Deleted parents come back.
  private mutating func usable(_ places: [Place], of kind: ItemKind) throws -> [Place] {
    guard !places.isEmpty, kind != .folder || places.count == 1, Set(places).count == places.count else {
      throw Refusal(reason: .invalid)
    }
    var found: [Place] = []
    for place in places {
      let parent = try draft.resolve(place.parent)
      try bringBack(parent)
      found.append(Place(parent: parent, name: place.name))
    }
    guard Set(found).count == found.count else { throw Refusal(reason: .invalid) }
    return found
  }

  /// Brings back a folder and those above it that were deleted.
  private mutating func bringBack(_ folder: WireID) throws {
    var next = folder
    for _ in 0..<Self.depthLimit {
      if next == .root { return }
      guard var row = try draft.item(next), row.kind == .folder, let place = row.places.first else {
        throw Refusal(reason: .noParent)
      }
      if !row.isDeleted { return }
      row.deleted = nil
      try draft.put(row)
      next = place.parent
    }
    throw Refusal(reason: .tooLarge)
  }

  /// Names are checked when all of the group is done: an item whose name is taken becomes one with its occupant, or
  /// gets another name.
  private mutating func settleNames() throws {
    var wanted: [Place: WireID] = [:]
    let kept = Set(verdicts.filter { $0.outcome == .kept }.map(\.item))
    // What was to go and stays has its name before what was to take it.
    let asked = sent.filter { !copies.contains($0) }
    for id in asked where !kept.contains(id) {
      guard let row = try draft.item(id), !row.isDeleted else { continue }
      for place in row.places where wanted.updateValue(id, forKey: place) != nil { throw Refusal(reason: .invalid) }
    }
    // Sent items come before those that the hub brought back or put beside.
    let others = draft.changed.map(\.item).filter { !asked.contains($0) }
    for id in asked + others {
      guard var row = try draft.item(id), !row.isDeleted, draft.isChanged(id) else { continue }
      // A parent of this group may have become another folder a moment ago.
      row.places = try row.places.map { Place(parent: try draft.resolve($0.parent), name: $0.name) }
      try draft.put(row)
      var isMoved = false
      for index in row.places.indices {
        let place = row.places[index]
        guard let occupant = try draft.occupant(of: place, except: id) else { continue }
        if try join(row, with: occupant) { break }
        row.places[index].name = try freeName(place, of: row, besides: wanted)
        try draft.put(row)
        isMoved = true
      }
      if isMoved, let index = verdicts.firstIndex(where: { $0.item == id && $0.outcome == .done }) {
        verdicts[index].outcome = .renamed
      }
    }
  }

  /// Makes a new item one with an older one that is the same. Of two documents the current contents are; the one has
  /// the versions of both then.
  private mutating func join(_ row: ItemRow, with occupant: WireID) throws -> Bool {
    guard sent.contains(row.item), row.places.count == 1, draft.isNew(row.item), !draft.isChanged(occupant),
      let other = try draft.item(occupant), other.kind == row.kind, other.target == row.target,
      // Nobody learns by equal contents what else there is.
      try draft.isSeen(other)
    else { return false }
    let indices = verdicts.indices.filter { verdicts[$0].item == row.item }
    guard row.kind == .document else {
      try draft.withdraw(row.item)
      draft.add(alias: row.item, of: occupant)
      for index in indices {
        verdicts[index] = Verdict(
          serial: verdicts[index].serial, outcome: .joined, item: occupant, version: other.version)
      }
      return true
    }
    guard let mine = row.version, let theirs = other.version, let digest = try draft.version(mine)?.digest,
      digest == (try draft.version(theirs)?.digest)
    else { return false }
    let versions = draft.newVersions.filter { $0.item == row.item }
    let alike = try alike(versions, upTo: theirs)
    // Nobody in a share is told what was saved outside of it.
    if alike == nil, try draft.isShared(other) { return false }
    try draft.withdraw(row.item)
    draft.add(alias: row.item, of: occupant)
    var whole = other
    for (place, (version, index)) in zip(versions, indices).enumerated() {
      var verdict = Verdict(serial: verdicts[index].serial, outcome: .joined, item: occupant)
      if let alike {
        // From now on the id of the dropped version means the version that stays.
        draft.add(alias: version.id, of: alike[place])
        verdict.version = alike[place]
      } else {
        whole.versions += 1
        whole.version = version.id
        // The last one holds what is current, so nobody has missed anything.
        let base = version.id == mine ? theirs : version.base
        draft.add(version.of(occupant, number: whole.versions, base: base))
        (verdict.version, verdict.versionNumber) = (version.id, whole.versions)
      }
      verdicts[index] = verdict
    }
    if whole != other { try draft.put(whole) }
    return true
  }

  /// The versions up to `last`, each based on the one before, that hold what `versions` do; nil where some do not.
  private mutating func alike(_ versions: [VersionRow], upTo last: WireID) throws -> [WireID]? {
    var found: [WireID] = []
    var next: WireID? = last
    for version in versions.reversed() {
      guard let id = next, let other = try draft.version(id), other.digest == version.digest else { return nil }
      found.append(id)
      next = other.base
    }
    return found.reversed()
  }

  private mutating func freeName(_ place: Place, of row: ItemRow, besides wanted: [Place: WireID]) throws -> [UInt8] {
    for number in 2...Self.nameLimit {
      let name = MarkedName.numbered(place.name, number, isFolder: row.kind == .folder)
      let candidate = Place(parent: place.parent, name: name)
      if wanted[candidate] == nil, try draft.occupant(of: candidate, except: row.item) == nil,
        !row.places.contains(candidate)
      {
        return name
      }
    }
    throw Refusal(reason: .tooLarge)
  }

  /// No folder is inside of itself, and everything has a way to the root.
  private mutating func checkDepth() throws {
    for id in draft.changed.map(\.item) {
      guard let row = try draft.item(id), !row.isDeleted else { continue }
      for place in row.places {
        var next = place.parent
        var depth = 0
        while next != .root {
          guard next != id else { throw Refusal(reason: .loop) }
          depth += 1
          guard depth <= Self.depthLimit else {
            throw Refusal(reason: try isLoop(place.parent) ? .loop : .tooLarge)
          }
          guard let folder = try draft.item(next), folder.kind == .folder, !folder.isDeleted,
            let above = folder.places.first
          else { throw Refusal(reason: .noParent) }
          next = above.parent
        }
      }
    }
  }

  /// Whether the way up from a folder comes to a folder twice.
  private mutating func isLoop(_ folder: WireID) throws -> Bool {
    var seen: Set<WireID> = []
    var next = folder
    while next != .root {
      if !seen.insert(next).inserted { return true }
      guard let above = try draft.item(next)?.places.first else { return false }
      next = above.parent
    }
    return false
  }

  // MARK: - Deleting

  private mutating func delete(_ row: ItemRow, _ send: Send) throws -> Verdict {
    var row = row
    var verdict = Verdict(serial: send.serial, outcome: .done, item: row.item)
    if row.isDeleted { return verdict }
    // An item that another device changed meanwhile stays.
    if row.isChanged(since: send.base ?? send.read, unseenBy: author.device) {
      verdict.outcome = .kept
      return verdict
    }
    if row.kind == .folder {
      let isWhole = try deleteContents(of: row.item, read: send.read)
      verdict.outcome = isWhole ? .done : .kept
      if !isWhole { return verdict }
    }
    row.deleted = author.now.nanoseconds
    try draft.put(row)
    return verdict
  }

  /// Deletes what is in a folder, but for what another device changed after `read`, and the folders above that.
  ///
  /// - Returns: whether nothing stays.
  private mutating func deleteContents(of folder: WireID, read: Int64) throws -> Bool {
    var parents: [WireID: WireID] = [:]
    var found: [WireID] = []
    var folders = [folder]
    var next = 0
    while next < folders.count {
      guard let children = try draft.children(of: folders[next], limit: Self.deletionLimit - found.count) else {
        throw Refusal(reason: .tooLarge)
      }
      for child in children where parents[child] == nil {
        parents[child] = folders[next]
        found.append(child)
        if try draft.item(child)?.kind == .folder { folders.append(child) }
      }
      next += 1
    }
    let inside = Set(folders)
    var kept: Set<WireID> = []
    for id in found {
      guard let row = try draft.item(id), row.isChanged(since: read, unseenBy: author.device) else { continue }
      kept.insert(id)
      // It stays with each of its names.
      for place in row.places where inside.contains(place.parent) {
        var above: WireID? = place.parent
        while let id = above, id != folder, kept.insert(id).inserted { above = parents[id] }
      }
    }
    var deleted: [WireID] = []
    for id in found where !kept.contains(id) {
      guard var row = try draft.item(id) else { continue }
      // A further name elsewhere keeps a document.
      let elsewhere = row.places.filter { !inside.contains($0.parent) }
      if elsewhere.isEmpty {
        row.deleted = author.now.nanoseconds
        deleted.append(id)
      } else {
        row.places = elsewhere
      }
      try draft.put(row)
    }
    if kept.isEmpty { takenAlong[folder] = deleted }
    return kept.isEmpty
  }
}
