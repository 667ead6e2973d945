import Foundation
import NIOCore
import SheafHubClient
import SheafLibrary
import SheafModel
import SheafWire

/// That the account's quota has no room for the contents of some items, which are sent together or not at all.
struct LackOfQuota: Error {
  let items: Set<WireID>
  let failure: HubFailure
}

/// The contents of versions that go to the hub: small ones in the sends themselves, the chunks of others before them.
struct SentContents: Sendable {
  /// Bytes of contents that a request has, and one version more.
  private static let inlineLimit = 4 << 20
  /// Bytes of a version that are read at once.
  private static let piece = 1 << 20
  /// Chunks of which the hub is asked at once, and those that are on their way at the same time.
  private static let (uploadBatch, uploads) = (16, 4)

  private let calls: LibraryCalls
  private let client: DeviceClient
  private let scope: HubScope
  private let manifests = SentManifests()
  private let lacking = LackingBytes()

  init(_ calls: LibraryCalls, _ client: DeviceClient, _ scope: HubScope) {
    (self.calls, self.client, self.scope) = (calls, client, scope)
  }

  /// What a request has of a version.
  private enum Part: Sendable {
    case inline(Data)
    /// Extents, once the hub has the chunks.
    case extents
    /// The version, or some of its contents, are no more here.
    case gone
  }

  /// Forgets which extents the hub knows: it misses chunks.
  func forget() { manifests.forget() }

  /// Gives sends the contents of their versions.
  ///
  /// - Returns: The groups of as many as a request has room for, in their order, up to one of which a version is no more,
  ///   or for which the quota has no room: none if of the first one a version is no more.
  /// - Throws: ``LackOfQuota`` for the first group; ``HubFailure``.
  func filled(_ waiting: [ReplicaSend]) async throws -> [[Send]] {
    var groups: [[Send]] = []
    var inlined = 0
    let parts = try await calls.run { library, account in try Self.parts(of: waiting.map(\.send), library, account) }
    for each in waiting {
      if each.first == each.send.serial {
        if inlined >= Self.inlineLimit { break }
        groups.append([])
      }
      let filled: Send?
      do {
        // What a large group has no room for goes before it.
        let part = inlined >= Self.inlineLimit && each.send.version != nil ? Part.extents : parts[each.send.serial]
        filled = try await self.filled(each.send, part)
      } catch let failure as HubFailure where failure.kind == .refused(.quota) {
        guard groups.count == 1 else {
          groups.removeLast()
          break
        }
        throw LackOfQuota(items: Set(waiting.filter { $0.first == each.first }.map(\.send.item)), failure: failure)
      }
      guard let send = filled else {
        groups.removeLast()
        break
      }
      inlined += send.version?.contents?.count ?? 0
      groups[groups.count - 1].append(send)
    }
    return groups
  }

  /// The contents of the versions of some sends, by serials: of as many as a request has room for, and one more.
  private static func parts(
    of sends: [Send], _ library: any ReplicaEngine.ReplicaLibrary, _ account: Int64
  ) throws -> [Int64: Part] {
    var (parts, length): ([Int64: Part], Int) = ([:], 0)
    for send in sends where length < inlineLimit {
      guard let version = send.version else { continue }
      guard let reader = try library.versionReader(version.id, ofItem: send.item, of: account) else {
        parts[send.serial] = .gone
        continue
      }
      guard reader.size <= WireLimits.inlineBytes else {
        parts[send.serial] = .extents
        continue
      }
      let bytes: [UInt8]
      do {
        bytes = try [UInt8](unsafeUninitializedCapacity: Int(reader.size)) { space, count in
          count = try library.read(reader, at: 0, into: UnsafeMutableRawBufferPointer(space))
        }
      } catch is AbsentContents {
        // The hub had it, and lost it.
        parts[send.serial] = .gone
        continue
      }
      length += bytes.count
      parts[send.serial] = bytes.count == reader.size ? .inline(Data(bytes)) : .extents
    }
    return parts
  }

  /// A send with the contents of its version, or their extents once the hub has the chunks; nil if the version is no
  /// more.
  ///
  /// - Parameter part: What is known of the contents; nil where they were not looked at.
  private func filled(_ send: Send, _ part: Part?) async throws -> Send? {
    guard var version = send.version else { return send }
    let known =
      if let part { part } else {
        try await calls.run { library, account in try Self.parts(of: [send], library, account)[send.serial] }
      }
    var send = send
    switch known {
    case .gone, nil: return nil
    case .inline(let bytes): version.contents = bytes
    case .extents:
      let id = version.id
      let item = send.item
      guard let reader = try await calls.run({ try $0.versionReader(id, ofItem: item, of: $1) }) else { return nil }
      do {
        version.extents = try await upload(reader, version, of: send.item)
      } catch is AbsentContents {
        return nil
      }
    }
    send.version = version
    return send
  }

  // MARK: - Chunks

  private func read(_ reader: VersionReader, at offset: Int64) async throws -> ByteBuffer {
    try await calls.run { library, _ in
      var bytes = ByteBuffer()
      _ = try bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: Self.piece) { space in
        try library.read(
          reader, at: offset, into: UnsafeMutableRawBufferPointer(rebasing: space.prefix(Self.piece)))
      }
      return bytes
    }
  }

  /// Cuts a version into chunks, uploads those that the hub does not have, and returns its extents. Of what a version
  /// that this machine sent has, too, the extents are known.
  ///
  /// Nothing is uploaded if the hub has no room for all of it: a part would only take the room of what others save.
  private func upload(_ reader: VersionReader, _ version: SentVersion, of item: WireID) async throws -> [Extent] {
    let known = try await known(version, of: item, size: reader.size)
    if let bytes = lacking[version.id] { _ = try await client.missing([], bytes: bytes, of: scope) }
    let extents: [Extent]
    do {
      extents = try await upload(reader, known, bytes: reader.size - known.length)
    } catch let failure as HubFailure where failure.kind == .refused(.quota) {
      // The hub may have a part of it already.
      let bytes = try await missingBytes(reader, known)
      lacking.keep(bytes, of: version.id)
      extents = try await upload(reader, known, bytes: bytes)
    }
    lacking.remove(version.id)
    manifests.keep(extents, of: version.id)
    return extents
  }

  /// - Parameter bytes: How many the hub may not have yet.
  private func upload(_ reader: VersionReader, _ known: KnownExtents, bytes: Int64) async throws -> [Extent] {
    var chunks: [(ChunkHash, ByteBuffer)] = []
    var announced = bytes
    let extents = try await cut(reader, known) { hash, bytes in
      chunks.append((hash, bytes))
    } step: {
      guard chunks.count >= Self.uploadBatch else { return }
      try await upload(&chunks, announcing: announced)
      announced = 0
    }
    try await upload(&chunks, announcing: announced)
    return extents
  }

  /// Bytes of a version's chunks that the hub does not have.
  private func missingBytes(_ reader: VersionReader, _ known: KnownExtents) async throws -> Int64 {
    let extents = try await cut(reader, known, chunk: { _, _ in }, step: {})
    var lengths: [ChunkHash: Int64] = [:]
    for extent in extents { if let hash = extent.hash { lengths[hash] = extent.length } }
    return try await client.missing(Array(lengths.keys), of: scope).reduce(0) { $0 + (lengths[$1] ?? 0) }
  }

  /// Cuts a version into chunks, and returns its extents.
  ///
  /// - Parameters:
  ///   - chunk: Gets each chunk that is not known.
  ///   - step: Runs after each piece that was read.
  private func cut(
    _ reader: VersionReader, _ known: KnownExtents, chunk: (ChunkHash, ByteBuffer) -> Void,
    step: () async throws -> Void
  ) async throws -> [Extent] {
    var cutter = ContentCutter()
    while true {
      try cutter.take(known)
      let offset = cutter.length
      // Holes are not read.
      let data = try await calls.run { library, _ -> Int64? in
        do {
          return try library.seek(reader, offset, hole: false)
        } catch let error as SheafError where error.kind == .noSuchAddress {
          return nil
        }
      }
      guard let data else {
        if reader.size > offset { try cutter.hole(reader.size - offset) }
        break
      }
      if data > offset { try cutter.hole(data - offset) }
      let bytes = try await read(reader, at: data)
      if bytes.readableBytes == 0 { break }
      try cutter.append(bytes, chunk: chunk)
      try await step()
    }
    return try cutter.finish(chunk: chunk)
  }

  /// The extents that a version has of the one on which it is based.
  private func known(_ version: SentVersion, of item: WireID, size: Int64) async throws -> KnownExtents {
    guard let base = version.base, let extents = manifests[base] else { return .none }
    let id = version.id
    let same = try await calls.run { try $0.sameRanges(id, base, ofItem: item, of: $1) }
    return KnownExtents(extents, same: same, size: size)
  }

  /// - Parameter bytes: For how many the hub is asked whether it has room.
  private func upload(_ chunks: inout [(ChunkHash, ByteBuffer)], announcing bytes: Int64) async throws {
    let missing = Set(try await client.missing(chunks.map(\.0), bytes: bytes, of: scope))
    let (client, scope) = (client, scope)
    try await withThrowingTaskGroup(of: Void.self) { group in
      var running = 0
      for (hash, bytes) in Dictionary(chunks, uniquingKeysWith: { $1 }) where missing.contains(hash) {
        if running == Self.uploads {
          try await group.next()
          running -= 1
        }
        group.addTask { try await client.upload(hash, bytes, to: scope) }
        running += 1
      }
      try await group.waitForAll()
    }
    chunks = []
  }
}
