import Glibc
import SheafModel
import SheafStore

/// Where chunks come from while contents are read.
protocol ChunkSource: AnyObject {
  /// A chunk's bytes.
  func chunk(_ id: Int64) throws -> [UInt8]
}

/// Where chunks come from and go to while contents are changed.
protocol ChunkStorage: ChunkSource {
  /// The ids of chunks with these bytes, each stored now if it was not yet.
  func store(_ pieces: [UnsafeRawBufferPointer]) throws -> [Int64]
}

extension ChunkStorage {
  func store(_ bytes: UnsafeRawBufferPointer) throws -> Int64 { try store([bytes])[0] }
}

/// A document's stored contents as a sequence of extents, in groups that large documents' versions share.
///
/// A group is loaded when it is first needed and becomes a node of its own when it is stored, so that a change of one
/// page touches one group, whatever the document's size (rule 7 of docs/ARCHITECTURE.md).
struct Content {
  private struct Group {
    /// The stored node, nil once the extents differ from it.
    var node: Int64?
    var length: Int64
    /// Bytes that are not holes.
    var data: Int64
    /// Bytes that are not on this machine.
    var absent: Int64
    var extents: [Extent]?

    init(_ extents: [Extent]) {
      length = extents.reduce(0) { $0 + $1.length }
      data = extents.reduce(0) { $0 + ($1.isHole ? 0 : $1.length) }
      absent = extents.reduce(0) { $0 + ($1.isAbsent ? $1.length : 0) }
      self.extents = extents
    }

    init(_ stored: ExtentNode) {
      node = stored.chunk
      length = stored.length
      data = stored.data
      absent = stored.absent
    }
  }

  private var groups: [Group]
  /// Bytes of the document.
  private(set) var length: Int64
  /// How many extents more, or fewer, refer to a chunk since ``forgetReferences()``, without the first of a chunk that
  /// was new.
  private(set) var references: [Int64: Int] = [:]

  /// Extents of a group past which it is divided.
  private static let groupLimit = 512
  /// Extents up to which a document's list is stored with its version.
  private static let inlineLimit = 64

  init(_ stored: StoredContent) {
    length = stored.length
    switch stored {
    case .extents(let extents): groups = extents.isEmpty ? [] : [Group(extents)]
    case .nodes(let nodes): groups = nodes.map(Group.init)
    }
  }

  /// Bytes of the document that are not holes.
  var dataLength: Int64 { groups.reduce(0) { $0 + $1.data } }

  /// Bytes of the document that are not on this machine.
  var absentLength: Int64 { groups.reduce(0) { $0 + $1.absent } }

  /// The form in which inodes and versions hold it; stores the groups that are new.
  mutating func stored(in storage: any ChunkStorage) throws -> StoredContent {
    if groups.isEmpty { return .empty }
    if groups.count == 1, let extents = groups[0].extents, extents.count <= Self.inlineLimit {
      return .extents(extents)
    }
    var nodes: [ExtentNode] = []
    for index in groups.indices {
      if groups[index].node == nil {
        let bytes = StoredContent.encode(groups[index].extents ?? [])
        groups[index].node = try bytes.withUnsafeBytes { try storage.store($0) }
      }
      nodes.append(
        ExtentNode(
          chunk: groups[index].node!, length: groups[index].length, data: groups[index].data,
          absent: groups[index].absent))
    }
    return .nodes(nodes)
  }

  /// Every chunk and node that the contents refer to.
  func referredChunks(_ storage: any ChunkSource) throws -> [Int64] {
    var chunks: [Int64] = []
    for group in groups {
      if let node = group.node { chunks.append(node) }
      let extents = try group.extents ?? StoredContent.decodeNode(storage.chunk(group.node!))
      chunks += extents.lazy.filter { !$0.isAbsent }.map(\.chunk)
    }
    return chunks
  }

  private mutating func load(_ index: Int, from storage: any ChunkSource) throws -> [Extent] {
    if let extents = groups[index].extents { return extents }
    let node = groups[index].node!
    let extents = try StoredContent.decodeNode(storage.chunk(node))
    // A read of missing bytes would return whatever memory held before.
    guard extents.reduce(0, { $0 + $1.length }) == groups[index].length else {
      throw SheafError(.corrupt, subject: "node \(node)", reason: "has another length", advice: "run sheaf check")
    }
    groups[index].extents = extents
    return extents
  }

  /// The extents of the group in which `offset` lies, with the offset at which each begins; none past the end.
  mutating func groupExtents(
    at offset: Int64, from storage: any ChunkSource
  ) throws -> [(start: Int64, extent: Extent)] {
    var start: Int64 = 0
    for index in groups.indices {
      let end = start + groups[index].length
      if offset < end { return try extents(touching: max(offset, start)..<end, from: storage) }
      start = end
    }
    return []
  }

  /// The extents that touch `range`, with the offset at which each begins; past the end there are none.
  mutating func extents(
    touching range: Range<Int64>, from storage: any ChunkSource
  ) throws -> [(start: Int64, extent: Extent)] {
    var result: [(start: Int64, extent: Extent)] = []
    var start: Int64 = 0
    for index in groups.indices {
      let end = start + groups[index].length
      defer { start = end }
      if end <= range.lowerBound { continue }
      if start >= range.upperBound { break }
      var position = start
      for extent in try load(index, from: storage) {
        if position >= range.upperBound { break }
        if position + extent.length > range.lowerBound { result.append((position, extent)) }
        position += extent.length
      }
    }
    return result
  }

  /// Adds to `plan` where the bytes of `range`, which lies within ``length``, come from.
  ///
  /// - Parameter place: the first byte's place in what is read.
  mutating func plan(
    _ range: Range<Int64>, at place: Int, _ plan: inout ReadPlan, from storage: any ChunkSource
  ) throws {
    for (start, extent) in try extents(touching: range, from: storage) {
      let lower = max(start, range.lowerBound)
      let upper = min(start + extent.length, range.upperBound)
      let first = place + Int(lower - range.lowerBound)
      plan.add(extent.dropping(first: lower - start).prefix(upper - lower), at: first)
    }
  }

  /// The first extent of bytes that are not on this machine.
  mutating func firstAbsent(from storage: any ChunkSource) throws -> Extent? {
    guard let index = groups.firstIndex(where: { $0.absent > 0 }) else { return nil }
    return try load(index, from: storage).first(where: \.isAbsent)
  }

  /// The same contents with the bytes of `range` of absent contents that were fetched.
  ///
  /// - Parameters:
  ///   - id: Row of the absent contents.
  ///   - fetched: Extents of the bytes of `range`.
  mutating func fill(
    _ id: Int64, _ range: Range<Int64>, with fetched: inout Content, from storage: any ChunkSource
  ) throws {
    var places: [(start: Int64, extent: Extent)] = []
    var start: Int64 = 0
    for index in groups.indices {
      var position = start
      start += groups[index].length
      guard groups[index].absent > 0 else { continue }
      for extent in try load(index, from: storage) {
        if extent.chunk == id, extent.offset < range.upperBound, extent.offset + extent.length > range.lowerBound {
          places.append((position, extent))
        }
        position += extent.length
      }
    }
    for (place, extent) in places {
      let bytes = max(extent.offset, range.lowerBound)..<min(extent.offset + extent.length, range.upperBound)
      let wanted = (bytes.lowerBound - range.lowerBound)..<(bytes.upperBound - range.lowerBound)
      let parts = try fetched.extents(touching: wanted, from: storage).map { first, part in
        let lower = max(first, wanted.lowerBound)
        return part.dropping(first: lower - first).prefix(min(first + part.length, wanted.upperBound) - lower)
      }
      let first = place + bytes.lowerBound - extent.offset
      try replace(first..<(first + Int64(bytes.count)), with: parts, from: storage)
    }
  }

  /// Copies the bytes of `range`, which lies within ``length``, to `buffer`.
  mutating func read(
    _ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer, from storage: any ChunkSource
  ) throws {
    var plan = ReadPlan(count: range.count)
    try self.plan(range, at: 0, &plan, from: storage)
    try plan.fetch(from: storage)
    try plan.copy(to: buffer)
  }

  /// Puts `replacement` in the place of `range`; the rest moves where the lengths differ.
  ///
  /// - Parameter range: within ``length``, empty to insert.
  mutating func replace(
    _ range: Range<Int64>, with replacement: [Extent], from storage: any ChunkSource
  ) throws {
    var first = 0
    var start: Int64 = 0
    while first < groups.count, start + groups[first].length <= range.lowerBound, first < groups.count - 1 {
      start += groups[first].length
      first += 1
    }
    var last = first
    var end = start
    while last < groups.count {
      end += groups[last].length
      last += 1
      if end >= range.upperBound { break }
    }
    var before: [Extent] = []
    var after: [Extent] = []
    var position = start
    for index in first..<last {
      if let node = groups[index].node { references[node, default: 0] -= 1 }
      for extent in try load(index, from: storage) {
        let next = position + extent.length
        if position < range.upperBound, next > range.lowerBound, extent.isStored {
          let pieces = (position < range.lowerBound ? 1 : 0) + (next > range.upperBound ? 1 : 0)
          references[extent.chunk, default: 0] += pieces - 1
        }
        if position < range.lowerBound { before.append(extent.prefix(min(extent.length, range.lowerBound - position))) }
        if next > range.upperBound { after.append(extent.dropping(first: max(0, range.upperBound - position))) }
        position = next
      }
    }
    var merged: [Extent] = []
    merged.reserveCapacity(before.count + replacement.count + after.count)
    for extent in before + replacement + after { Self.append(extent, to: &merged) }
    groups.replaceSubrange(first..<last, with: Self.divide(merged))
    length += replacement.reduce(0) { $0 + $1.length } - Int64(range.count)
  }

  mutating func forgetReferences() { references = [:] }

  /// Whether two stored contents are the same bytes, however they are divided into chunks; reads only where they
  /// differ.
  static func areSame(
    _ left: StoredContent, _ right: StoredContent, from storage: any ChunkSource
  ) throws -> Bool {
    if left == right { return true }
    guard left.length == right.length else { return false }
    var (left, right) = (ExtentCursor(left), ExtentCursor(right))
    while true {
      if let node = left.nodeAhead, node == right.nodeAhead {
        left.skipNode()
        right.skipNode()
        continue
      }
      let heads = (try left.head(storage), try right.head(storage))
      guard let one = heads.0, let other = heads.1 else { return heads.0 == nil && heads.1 == nil }
      let count = min(one.length, other.length)
      let isShared = one.chunk == other.chunk && (one.isHole || one.offset == other.offset)
      if !isShared, try !areSame(one.prefix(count), other.prefix(count), from: storage) { return false }
      left.drop(count)
      right.drop(count)
    }
  }

  /// Where two stored contents have the same part of a chunk, or a hole, at the same place, in order; reads no data.
  static func sharedRanges(
    _ left: StoredContent, _ right: StoredContent, from storage: any ChunkSource
  ) throws -> [Range<Int64>] {
    var (left, right) = (ExtentCursor(left), ExtentCursor(right))
    var ranges: [Range<Int64>] = []
    var offset: Int64 = 0
    func add(_ count: Int64) {
      if let last = ranges.last, last.upperBound == offset {
        ranges[ranges.count - 1] = last.lowerBound..<(offset + count)
      } else {
        ranges.append(offset..<(offset + count))
      }
    }
    while true {
      if let node = left.nodeAhead, node == right.nodeAhead {
        let count = left.skipNode()
        right.skipNode()
        add(count)
        offset += count
        continue
      }
      guard let one = try left.head(storage), let other = try right.head(storage) else { return ranges }
      let count = min(one.length, other.length)
      if one.chunk == other.chunk, one.isHole || one.offset == other.offset { add(count) }
      left.drop(count)
      right.drop(count)
      offset += count
    }
  }

  private static func areSame(_ one: Extent, _ other: Extent, from storage: any ChunkSource) throws -> Bool {
    // Of what is not here nobody knows.
    if one.isAbsent || other.isAbsent { return false }
    if one.isHole { return try bytes(of: other, from: storage).allSatisfy { $0 == 0 } }
    if other.isHole { return try bytes(of: one, from: storage).allSatisfy { $0 == 0 } }
    return try bytes(of: one, from: storage).withUnsafeBytes { left in
      try bytes(of: other, from: storage).withUnsafeBytes {
        memcmp(left.baseAddress!, $0.baseAddress!, left.count) == 0
      }
    }
  }

  private static func bytes(of extent: Extent, from storage: any ChunkSource) throws -> ArraySlice<UInt8> {
    let bytes = try storage.chunk(extent.chunk)
    guard extent.offset + extent.length <= Int64(bytes.count) else {
      throw SheafError(.corrupt, subject: "chunk \(extent.chunk)", reason: "is too short", advice: "run sheaf check")
    }
    return bytes[Int(extent.offset)..<Int(extent.offset + extent.length)]
  }

  /// Appends, joining neighbours that are one run.
  private static func append(_ extent: Extent, to extents: inout [Extent]) {
    if let last = extents.last, last.chunk == extent.chunk, last.isHole || last.offset + last.length == extent.offset {
      extents[extents.count - 1].length += extent.length
    } else {
      extents.append(extent)
    }
  }

  private static func divide(_ extents: [Extent]) -> [Group] {
    let pieces = max(1, (extents.count + groupLimit - 1) / groupLimit)
    let size = (extents.count + pieces - 1) / pieces
    return stride(from: 0, to: extents.count, by: max(1, size)).map { lower in
      Group(Array(extents[lower..<min(lower + size, extents.count)]))
    }
  }
}

/// Goes through stored contents from front to back, loading a node only where it is looked into.
private struct ExtentCursor {
  private var nodes: ArraySlice<ExtentNode>
  private var extents: ArraySlice<Extent>

  init(_ stored: StoredContent) {
    switch stored {
    case .extents(let list): (nodes, extents) = ([], list[...])
    case .nodes(let list): (nodes, extents) = (list[...], [])
    }
  }

  /// The node that begins here.
  var nodeAhead: Int64? { extents.isEmpty ? nodes.first?.chunk : nil }

  /// Passes that node; returns the bytes that it covers.
  @discardableResult
  mutating func skipNode() -> Int64 { nodes.removeFirst().length }

  /// The extent that begins here; nil at the end.
  mutating func head(_ storage: any ChunkSource) throws -> Extent? {
    while extents.isEmpty, let node = nodes.popFirst() {
      extents = try StoredContent.decodeNode(storage.chunk(node.chunk))[...]
    }
    return extents.first
  }

  mutating func drop(_ count: Int64) {
    guard let first = extents.first else { return }
    if first.length > count {
      extents[extents.startIndex] = first.dropping(first: count)
    } else {
      extents.removeFirst()
    }
  }
}
