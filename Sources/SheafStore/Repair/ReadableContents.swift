internal import SheafModel

/// What can still be read of contents of which some chunks are lost: holes take the place of these.
struct ReadableContents {
  /// Bytes of the chunks that are there.
  private let sizes: [Int64: Int64]
  /// Chunks that others stand for, which have the same bytes.
  private let twins: [Int64: Int64]
  /// What nodes became, and bytes of them that are lost.
  private var nodes: [ExtentNode: (node: ExtentNode, lost: Int64)] = [:]
  private var lastChunk: Int64

  /// - Parameters:
  ///   - rows: Of a library whose chunks all have their hash.
  ///   - twins: By chunks that are not there, others with the same bytes.
  init(_ rows: StoreTransaction, twins: [Int64: Int64]) throws {
    self.twins = twins
    sizes = try Dictionary(
      uniqueKeysWithValues: rows.all(
        "SELECT id, size FROM chunks", decode: { (try $0[0] as Int64, try $0[1] as Int64) }))
    lastChunk = sizes.keys.max() ?? 0
  }

  /// The contents as far as they can be read, and how many bytes are lost, which are zeros now.
  ///
  /// Nodes of which something is lost are stored anew.
  ///
  /// - Returns: nil if nothing can be read.
  mutating func rest(
    of bytes: [UInt8], _ rows: StoreTransaction
  ) throws -> (content: StoredContent, lost: Int64)? {
    guard let content = try? StoredContent(encoded: bytes) else { return nil }
    let (rest, lost): (StoredContent, Int64)
    switch content {
    case .extents(let extents):
      let left = self.rest(of: extents)
      (rest, lost) = (.extents(left.extents), left.lost)
    case .nodes(let list):
      let left = try list.map { try self.rest(of: $0, rows) }
      (rest, lost) = (.nodes(left.map(\.node)), left.reduce(0) { $0 + $1.lost })
    }
    return lost > 0 && rest.dataLength == 0 ? nil : (rest, lost)
  }

  private func rest(of extents: [Extent]) -> (extents: [Extent], lost: Int64) {
    var lost: Int64 = 0
    let rest = extents.map { extent in
      var extent = extent
      extent.chunk = twins[extent.chunk] ?? extent.chunk
      // What is at a hub alone is no part of what is mended: that is connected with none.
      let isThere = sizes[extent.chunk].map { extent.offset <= $0 && extent.length <= $0 - extent.offset }
      if extent.isHole || isThere ?? false { return extent }
      lost += extent.length
      return .hole(extent.length)
    }
    return (rest, lost)
  }

  private mutating func rest(
    of node: ExtentNode, _ rows: StoreTransaction
  ) throws -> (node: ExtentNode, lost: Int64) {
    if let known = nodes[node] { return known }
    var (extents, lost) = ([Extent.hole(node.length)], node.data)
    var chunk: Int64?
    let own = twins[node.chunk] ?? node.chunk
    if sizes[own] != nil, let stored = try? StoredContent.decodeNode(rows.chunkBytes(own)),
      StoredContent.extents(stored).length == node.length
    {
      (extents, lost) = rest(of: stored)
      if extents == stored { chunk = own }
    }
    let rest = ExtentNode(
      chunk: try chunk ?? store(extents, rows), length: node.length, data: StoredContent.extents(extents).dataLength)
    nodes[node] = (rest, lost)
    return (rest, lost)
  }

  /// Stores the extents of a node; returns its chunk.
  private mutating func store(_ extents: [Extent], _ rows: StoreTransaction) throws -> Int64 {
    let bytes = StoredContent.encode(extents)
    return try bytes.withUnsafeBytes { bytes in
      let hash = ChunkHash(of: bytes)
      if let known = try rows.chunk(hash: hash) { return known }
      lastChunk += 1
      try rows.insertChunk(lastChunk, hash: hash, bytes: bytes)
      return lastChunk
    }
  }
}
