import SheafWire

/// What the hub's verdicts change on this machine. The feed tells the rest.
struct Settlement {
  private var draft: ReplicaDraft

  init(_ draft: ReplicaDraft) { self.draft = draft }

  mutating func settle(_ verdicts: [(send: Send, verdict: Verdict)]) throws -> ReplicaDraft {
    for (send, verdict) in verdicts {
      let id = try draft.resolve(send.item)
      switch verdict.outcome {
      case .done, .merged, .renamed:
        if send.isDeletion {
          try draft.setBase(id, nil)
        } else if verdict.item != id {
          // It had become another item before, for another device.
          try join(id, send, verdict)
        } else {
          try acknowledge(id, send, verdict)
        }
        try draft.setMark(id, nil)
        if verdict.outcome == .renamed { draft.notify(id, .renamed) }
      case .beside: try putBeside(id, send, verdict)
      case .joined: try join(id, send, verdict)
      case .kept: try keep(id)
      case .refused: try refuse(id, send, verdict.reason ?? .invalid)
      }
    }
    return draft
  }

  /// The base is as it was sent. If the hub made something else of it, the feed says so.
  private mutating func acknowledge(_ id: WireID, _ send: Send, _ verdict: Verdict) throws {
    if let sent = send.version { try forget(sent.id, of: id) }
    let base = try draft.base(id)
    guard base != nil || send.places != nil else { return }
    let places = if let sent = send.places { try current(sent) } else { base?.places ?? [] }
    let made = verdict.version == nil ? nil : send.version
    let version = made.map { sent in
      ItemVersion(
        id: sent.id, number: verdict.sentNumber ?? 0, base: sent.base, cause: sent.cause, time: sent.time,
        arrived: 0, size: 0)
    }
    try draft.setBase(
      id,
      ItemState(
        number: verdict.number ?? base?.number ?? 0, item: id, kind: send.kind, isDeleted: false,
        places: places, mode: send.mode ?? base?.mode ?? 0,
        mtime: send.mtime ?? base?.mtime ?? 0, target: send.target ?? base?.target,
        attributes: send.attributes ?? base?.attributes ?? [:], version: version ?? base?.version,
        copyOf: base?.copyOf, purges: base?.purges ?? 0, labels: base?.labels))
  }

  /// Places with the ids that their parents have now.
  private mutating func current(_ places: [Place]) throws -> [Place] {
    try places.map { Place(parent: try draft.resolve($0.parent), name: $0.name) }
  }

  /// Notes that the hub has a version.
  private mutating func forget(_ version: WireID, of id: WireID) throws {
    guard var local = try draft.local(id), local.unsent.contains(where: { $0.id == version }) else { return }
    local.unsent.removeAll { $0.id == version }
    try draft.put(local)
  }

  /// What was saved here is a document of its own, beside the one that another device saved.
  private mutating func putBeside(_ id: WireID, _ send: Send, _ verdict: Verdict) throws {
    guard let sent = send.version else { return }
    guard try isOther(verdict.item, than: id, of: .document) else { return try refuse(id, send, .invalid) }
    let base = try draft.base(id)
    if var base, let places = send.places {
      base.places = try current(places)
      try draft.setBase(id, base)
    }
    let known = try draft.base(verdict.item)
    let version = ItemVersion(
      id: sent.id, number: verdict.versionNumber ?? 0, base: sent.base, cause: sent.cause, time: sent.time,
      arrived: 0, size: 0)
    draft.notify(id, .beside(document: verdict.item))
    // Where it was deleted here meanwhile, the feed brings what is beside it.
    guard let local = try draft.local(id) else { return }
    // It was sent before, and what it is in was deleted since: it is in the trash there.
    guard let places = known?.places ?? verdict.places else { return try forget(sent.id, of: id) }
    var copy = ItemState(
      number: verdict.number ?? 0, item: verdict.item, kind: .document, isDeleted: false,
      places: places, mode: send.mode ?? known?.mode ?? base?.mode ?? local.mode,
      mtime: send.mtime ?? known?.mtime ?? local.mtime, target: nil,
      attributes: send.attributes ?? known?.attributes ?? base?.attributes ?? local.attributes, version: version,
      copyOf: id)
    if try draft.local(verdict.item) == nil {
      // Its folder may be missing here, or its name be taken. Until the feed tells of it, it is as near as can be.
      copy.places = try copy.places.map { place in
        let isThere = try place.parent == .root || draft.local(place.parent) != nil
        let parent = isThere ? place.parent : local.places.min()?.parent ?? .root
        return try draft.freePlace(Place(parent: parent, name: place.name), kind: .document)
      }
    }
    // If another device had sent it before, the hub has changed nothing now, and the feed does not tell it again.
    if known.map({ $0.number < copy.number }) ?? true { try draft.setBase(verdict.item, copy) }
    try draft.moveVersion(sent.id, from: id, to: LocalItem(copy), back: base?.version?.id)
    if base == nil, let left = try draft.local(id), left.unsent.isEmpty, left.version == nil {
      // It was another document of the hub under an id that became that one's, and nothing of its own is left.
      try draft.delete(id)
    }
  }

  /// Whether an id can be that of another item of a kind, as far as this machine knows of it. A hub that says otherwise
  /// has not done what was sent.
  private mutating func isOther(_ other: WireID, than id: WireID, of kind: ItemKind) throws -> Bool {
    guard other != id, other != .root else { return false }
    return try [draft.local(other)?.kind, draft.base(other)?.kind].allSatisfy { $0 == nil || $0 == kind }
  }

  /// It is one with an item that had the name at the hub.
  private mutating func join(_ id: WireID, _ send: Send, _ verdict: Verdict) throws {
    let other = verdict.item
    if other == id {
      // It is that item already. Its version may be one that the hub had.
      var send = send
      if let mine = send.version?.id, let theirs = verdict.version, mine != theirs {
        try forget(mine, of: id)
        try draft.identify(id, as: id, versions: [mine: theirs])
        send.version?.id = theirs
      }
      return try acknowledge(id, send, verdict)
    }
    guard try isOther(other, than: id, of: send.kind) else { return try refuse(id, send, .invalid) }
    try draft.addAlias(id, of: other)
    var versions: [WireID: WireID] = [:]
    if let mine = send.version?.id, let theirs = verdict.version { versions[mine] = theirs }
    if let sent = send.version { try forget(sent.id, of: id) }
    if try draft.local(other) == nil {
      try draft.identify(id, as: other, versions: versions)
    } else {
      try draft.absorb(id, into: other)
    }
    if try draft.base(id) != nil { try draft.setBase(id, nil) }
    if try draft.base(other) == nil {
      let version = verdict.version.map { theirs in
        ItemVersion(id: theirs, number: 0, base: nil, cause: .save, time: 0, arrived: 0, size: 0)
      }
      try draft.setBase(
        other,
        ItemState(
          number: verdict.number ?? 0, item: other, kind: send.kind, isDeleted: false,
          places: try current(send.places ?? []), mode: send.mode ?? 0, mtime: send.mtime ?? 0, target: send.target,
          attributes: send.attributes ?? [:], version: version, copyOf: nil))
    }
  }

  /// It was deleted here, and stays: it is shown as the hub has it, with all that was deleted in it.
  private mutating func keep(_ id: WireID) throws {
    draft.notify(id, .kept)
    var next = [id]
    var seen: Set<WireID> = []
    while let each = next.popLast() {
      guard seen.insert(each).inserted, let base = try draft.base(each) else { continue }
      if base.kind == .folder { next += try draft.baseChildren(of: each) }
      guard try draft.local(each) == nil else { continue }
      try show(base)
    }
  }

  /// Has the hub's state shown as if it had been told now.
  private mutating func show(_ base: ItemState) throws {
    try draft.setMark(base.item, .undone)
    if try draft.news(base.item) == nil { draft.setNews(base.item, base) }
  }

  private mutating func refuse(_ id: WireID, _ send: Send, _ reason: Verdict.Reason) throws {
    switch reason {
    case .group, .confirmed:
      // The next plan has it without what was refused.
      return
    case .unknown, .noParent:
      // The hub does not have what it had: it went back. So it takes the feed's token no more, and once everything is
      // read anew, this is sent again.
      return
    case .purged where try isKept(id, send):
      // Nothing of the item is left at the hub. What was saved here is a new document, and a folder in which something
      // is left, as what is ignored, a new folder.
      try draft.setBase(id, nil)
      let new = try draft.keepUnsent(id)
      if send.kind == .document { draft.notify(new, .purgedElsewhere) }
    case .tooLarge where send.isDeletion && send.kind == .folder:
      try draft.setMark(id, .deletedInParts)
    case .invalid where try [nil, .returning].contains(draft.mark(id)):
      try draft.setMark(id, .alone)
    case .invalid where send.version != nil, .loop where send.places != nil && send.base == nil:
      try renew(id, reason)
    default:
      draft.notify(id, .refused(reason))
      if let base = try draft.base(id), send.isDeletion || send.places != nil || send.version == nil {
        // What was saved goes by itself then.
        try show(base)
      } else {
        try draft.setMark(id, .refused(reason))
      }
    }
  }

  /// Whether something is kept of an item of which nothing is left at the hub.
  private mutating func isKept(_ id: WireID, _ send: Send) throws -> Bool {
    if send.version != nil { return true }
    if send.isDeletion { return false }
    if send.kind == .folder { return true }
    guard send.kind == .document, send.base == nil, let local = try draft.local(id) else { return false }
    return try draft.mark(id) != .returning && local.isBroughtBack
  }

  /// Gives new ids to what was saved here, and to the item where the hub does not have it: after the hub went back,
  /// others sent some of these versions as those of another document, or a folder became another one.
  private mutating func renew(_ id: WireID, _ reason: Verdict.Reason) throws {
    guard let local = try draft.local(id), try draft.mark(id) != .renewed else {
      draft.notify(id, .refused(reason))
      return try draft.setMark(id, .refused(reason))
    }
    let new = try draft.base(id) == nil ? draft.newID() : id
    var versions: [WireID: WireID] = [:]
    for version in local.unsent { versions[version.id] = draft.newID() }
    try draft.identify(id, as: new, versions: versions)
    try draft.setMark(new, .renewed)
  }
}
