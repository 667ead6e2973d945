import NIOCore
import SheafHubClient
import SheafLibrary
import SheafModel
import SheafReplica
import SheafWire

/// What is done once everything current is the same: what people did with versions, and what the hub has of earlier ones.
extension ReplicaEngine {
  /// What comparing came to.
  enum Histories {
    /// Something was done; other things may have to be done before there is more.
    case went
    /// What is left has to wait.
    case later
    /// What is left does not fit on the disk.
    case lacksRoom
    case done
  }

  /// Requests that are made before anything else is looked at.
  private static let requestLimit = 32
  /// Versions that one request is for, and their bytes, unless one alone has more.
  private static let batch = (versions: 64, bytes: Int64(8 << 20))

  func compareHistories() async throws -> Histories {
    let requests = try await call { try $0.replicaRequests(of: $1, limit: Self.requestLimit) }
    var destroyed: Set<WireID> = []
    for request in requests where !destroyed.contains(request.item) {
      let isDone = try await ask(request)
      if isDone, request.kind == .purge { destroyed.insert(request.item) }
      try await call { try $0.remove(request, isDone: isDone, of: $1) }
    }
    if !requests.isEmpty { return .went }
    var bound = Int64.max
    var result = Histories.done
    while true {
      let before = bound
      guard let due = try await call({ try $0.nextHistory(of: $1, toldBefore: before) }) else { return result }
      switch try await compare(due) {
      case .went, .done: return .went
      case .lacksRoom: if result == .done { result = .lacksRoom }
      case .later: result = .later
      }
      bound = min(bound, due.told)
    }
  }

  /// Has the hub do what was done here.
  ///
  /// - Returns: whether it has.
  private func ask(_ request: ReplicaRequest) async throws -> Bool {
    do {
      switch request.kind {
      case .label(let version, let label):
        try await client.label(version, of: request.item, as: label, in: subject.scope)
      case .purgeVersion(let version): try await client.purge(version, of: request.item)
      case .purge: try await client.purge(request.item)
      case .comment(let comment):
        try await client.comment(comment, on: request.item, in: subject.scope)
        readLog()
      }
      return true
    } catch let failure as HubFailure {
      switch (failure.kind, request.kind) {
      case (.refused(.notFound), .label) where subject.scope != .own, (.refused(.conflict), .label),
        (.refused(.forbidden), .label):
        // An older hub takes no labels of members, and has no such path.
        tell(ItemNotice(item: request.item, text: "the hub does not take the label: \(failure)"))
        return false
      case (.refused(.notFound), _): return true  // The hub has nothing of it.
      case (.refused(.conflict), .purge):
        let text = "was changed elsewhere before it was purged, so it is back; what the hub had of it goes"
        tell(ItemNotice(item: request.item, text: text))
        return false
      case (.refused(.conflict), _), (.refused(.invalid), _), (.refused(.method), _), (.refused(.forbidden), _):
        tell(ItemNotice(item: request.item, text: "\(failure)"))
        return false
      default: throw failure
      }
    }
  }

  /// Compares an item.
  private func compare(_ due: DueHistory) async throws -> Histories {
    let list: VersionList
    do {
      list = try await client.versions(of: due.item, after: due.listedAfter, in: subject.scope)
    } catch let failure as HubFailure where failure.kind == .refused(.notFound) {
      // It left the share meanwhile, which the feed tells.
      try await call { try $0.finishHistory(due, VersionList(versions: []), of: $1) }
      return .went
    }
    var left: ArraySlice<ItemVersion>
    switch try await call({ try $0.compareHistory(due, with: list, of: $1) }) {
    case .missing(let missing): left = missing[...]
    case .anew: return .went
    case .later: return .later
    }
    let wakes = wakes
    while !left.isEmpty {
      var (count, bytes) = (0, Int64(0))
      for version in left {
        if count > 0, count == Self.batch.versions || bytes + version.size > Self.batch.bytes { break }
        (count, bytes) = (count + 1, bytes + version.size)
      }
      do {
        try await fetch(Array(left.prefix(count)), due)
      } catch let error as SheafError where error.kind == .noSpace {
        tellLacking(due.item, error)
        return .lacksRoom
      } catch let error as OtherSize {
        // Whatever the hub gives out, it is not that version.
        left.removeAll { $0.id == error.version }
        continue
      }
      left = left.dropFirst(count)
      // What happened meanwhile comes before the rest, which is compared again.
      if !left.isEmpty, self.wakes != wakes { return .went }
    }
    try await call { try $0.finishHistory(due, list, of: $1) }
    return .went
  }

  /// Fetches what a large version has that the one that is here has not, if the hub still has it.
  private func fetchLarge(_ version: ItemVersion, _ due: DueHistory) async throws {
    let handle = try await call { try $0.beginContents(of: $1) }
    do {
      if try await fetch(due.item, version, to: handle) {
        try await call { try $0.addVersion(version, to: due, of: $1, contents: .file(handle)) }
      }
    } catch {
      // Also where the task was cancelled, in which nothing more is called.
      await Task { try? await call { library, _ in try library.release(handle) } }.value
      throw error
    }
    try await call { library, _ in try library.release(handle) }
  }

  /// Fetches versions, as far as the hub still has them.
  private func fetch(_ versions: [ItemVersion], _ due: DueHistory) async throws {
    let fetches = try await call { try $0.fetchesHistory(due, of: $1) }
    for version in versions where version.size == 0 || !fetches {
      try await call { try $0.addVersion(version, to: due, of: $1, contents: nil) }
    }
    for version in versions where version.size >= Self.copiedLength && fetches { try await fetchLarge(version, due) }
    let whole = fetches ? versions.filter { (1..<Self.copiedLength).contains($0.size) } : []
    guard !whole.isEmpty else { return }
    try await requireRoom(for: whole.reduce(0) { $0 + $1.size })
    var handle: UInt64?
    var offset: Int64 = 0
    func release() async throws {
      guard let open = handle else { return }
      (handle, offset) = (nil, 0)
      try await call { library, _ in try library.release(open) }
    }
    do {
      try await client.contents(
        whole.map { .init(item: due.item, version: $0.id) }, of: subject.scope
      ) { index, bytes in
        guard offset + Int64(bytes.readableBytes) <= whole[index].size else {
          throw OtherSize(version: whole[index].id)
        }
        let open: UInt64
        if let handle { open = handle } else { open = try await call { try $0.beginContents(of: $1) } }
        handle = open
        try await write(bytes, to: open, at: offset)
        offset += Int64(bytes.readableBytes)
      } end: { index, failure in
        let contents = handle.map { ReceivedContents.file($0) }
        switch failure?.kind {
        case nil: try await call { try $0.addVersion(whole[index], to: due, of: $1, contents: contents) }
        // It is no more by now, or damaged there.
        case .refused(.notFound), .refused(.gone), .refused(.failure): break
        default: if let failure { throw failure }
        }
        try await release()
      }
    } catch {
      try? await release()
      throw error
    }
  }
}
