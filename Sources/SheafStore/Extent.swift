package import SheafModel

/// A run of a document's bytes: part of a chunk, a hole, or bytes that a hub has and this machine has not.
package struct Extent: Hashable, Sendable {
  /// Chunk numbers from here on stand for contents of versions that are at a hub (`absent_contents`).
  package static let firstAbsent: Int64 = 1 << 62

  /// Row of the chunk; 0 for a hole, which reads as zeros; from ``firstAbsent`` on a row of `absent_contents`.
  package var chunk: Int64
  /// Bytes of the chunk before the run; of absent contents, bytes of the version before it.
  package var offset: Int64
  /// Bytes of the run; never 0.
  package var length: Int64

  package init(chunk: Int64, offset: Int64 = 0, length: Int64) {
    self.chunk = chunk
    self.offset = offset
    self.length = length
  }

  package static func hole(_ length: Int64) -> Extent { Extent(chunk: 0, length: length) }

  package var isHole: Bool { chunk == 0 }

  /// Whether its bytes are not on this machine.
  package var isAbsent: Bool { chunk >= Self.firstAbsent }

  /// Whether it is part of a chunk that is on this machine.
  package var isStored: Bool { !isHole && !isAbsent }

  /// The run without its first `count` bytes.
  package func dropping(first count: Int64) -> Extent {
    Extent(chunk: chunk, offset: isHole ? 0 : offset + count, length: length - count)
  }

  /// The run's first `count` bytes.
  package func prefix(_ count: Int64) -> Extent { Extent(chunk: chunk, offset: offset, length: count) }
}

/// A group of consecutive extents, stored as one chunk of a large document so that versions share it.
package struct ExtentNode: Hashable, Sendable {
  /// Row of the chunk that holds the encoded extents.
  package let chunk: Int64
  /// Bytes of the document that it covers.
  package let length: Int64
  /// Bytes of them that are not holes.
  package let data: Int64
  /// Bytes of those that are not on this machine.
  package let absent: Int64

  package init(chunk: Int64, length: Int64, data: Int64, absent: Int64 = 0) {
    self.chunk = chunk
    self.length = length
    self.data = data
    self.absent = absent
  }
}

/// The stored form of a document's contents: `content` of inodes and versions (docs/FORMAT.md, "Contents").
package enum StoredContent: Hashable, Sendable {
  case extents([Extent])
  case nodes([ExtentNode])

  package static let empty = StoredContent.extents([])

  /// Contents of which nothing is on this machine.
  ///
  /// - Parameters:
  ///   - id: Their row in `absent_contents`.
  ///   - length: Bytes, not 0.
  package static func absent(_ id: Int64, length: Int64) -> StoredContent {
    .extents([Extent(chunk: id, length: length)])
  }

  /// Bytes of the largest document: 8 EiB less one, as `off_t` has it, less room to round.
  package static let maximumLength = Int64.max - (1 << 20)

  /// Whether it is a short list, as a small document has it.
  var isShort: Bool {
    switch self {
    case .extents(let extents): extents.count <= 8
    case .nodes: false
    }
  }

  /// Bytes of the document.
  package var length: Int64 {
    switch self {
    case .extents(let extents): extents.reduce(0) { $0 + $1.length }
    case .nodes(let nodes): nodes.reduce(0) { $0 + $1.length }
    }
  }

  /// Bytes of the document that are not holes.
  package var dataLength: Int64 {
    switch self {
    case .extents(let extents): extents.reduce(0) { $0 + ($1.isHole ? 0 : $1.length) }
    case .nodes(let nodes): nodes.reduce(0) { $0 + $1.data }
    }
  }

  /// Bytes of the document that are not on this machine.
  package var absentLength: Int64 {
    switch self {
    case .extents(let extents): extents.reduce(0) { $0 + ($1.isAbsent ? $1.length : 0) }
    case .nodes(let nodes): nodes.reduce(0) { $0 + $1.absent }
    }
  }

  /// Chunks that it names, nodes among them.
  package var chunks: [Int64] {
    switch self {
    case .extents(let extents): extents.filter(\.isStored).map(\.chunk)
    case .nodes(let nodes): nodes.map(\.chunk)
    }
  }

  /// One byte for the form (0 extents, 1 nodes, 2 nodes with absent bytes), then LEB128 numbers.
  package var encoded: [UInt8] {
    switch self {
    case .extents(let extents): [0] + Self.encode(extents)
    case .nodes(let nodes):
      nodes.reduce(into: [absentLength > 0 ? 2 : 1]) { bytes, node in
        bytes.append(varint: node.chunk)
        bytes.append(varint: node.length)
        bytes.append(varint: node.data)
        if bytes[0] == 2 { bytes.append(varint: node.absent) }
      }
    }
  }

  /// - Throws: ``SheafError`` of kind `corrupt`.
  package init(encoded bytes: [UInt8]) throws(SheafError) {
    guard let form = bytes.first else { throw Self.damaged }
    var reader = VarintReader(bytes: bytes.dropFirst())
    switch form {
    case 0: self = .extents(try Self.decode(&reader))
    case 1, 2:
      var nodes: [ExtentNode] = []
      var total: Int64 = 0
      while !reader.isAtEnd {
        let node = ExtentNode(
          chunk: try reader.next(), length: try reader.next(), data: try reader.next(),
          absent: form == 2 ? try reader.next() : 0)
        guard (1..<Extent.firstAbsent).contains(node.chunk), node.length > 0, node.data <= node.length,
          node.absent <= node.data
        else { throw Self.damaged }
        total = try Self.sum(total, node.length)
        nodes.append(node)
      }
      // Contents have one form.
      guard form == 1 || nodes.contains(where: { $0.absent > 0 }) else { throw Self.damaged }
      self = .nodes(nodes)
    default: throw Self.damaged
    }
  }

  /// The bytes of a node's chunk: chunk, offset and length of each extent.
  package static func encode(_ extents: some Sequence<Extent>) -> [UInt8] {
    var bytes: [UInt8] = []
    for extent in extents {
      bytes.append(varint: extent.chunk)
      bytes.append(varint: extent.offset)
      bytes.append(varint: extent.length)
    }
    return bytes
  }

  /// The extents of a node's chunk.
  package static func decodeNode(_ bytes: [UInt8]) throws(SheafError) -> [Extent] {
    var reader = VarintReader(bytes: bytes[...])
    return try decode(&reader)
  }

  private static func decode(_ reader: inout VarintReader) throws(SheafError) -> [Extent] {
    var extents: [Extent] = []
    var total: Int64 = 0
    while !reader.isAtEnd {
      let extent = Extent(chunk: try reader.next(), offset: try reader.next(), length: try reader.next())
      guard extent.length > 0, !extent.isHole || extent.offset == 0 else { throw damaged }
      _ = try sum(extent.offset, extent.length)
      total = try sum(total, extent.length)
      extents.append(extent)
    }
    return extents
  }

  private static func sum(_ left: Int64, _ right: Int64) throws(SheafError) -> Int64 {
    let (sum, overflow) = left.addingReportingOverflow(right)
    guard !overflow, sum <= maximumLength else { throw damaged }
    return sum
  }

  static let damaged = SheafError(
    .corrupt, subject: "a document's list of extents", advice: "run sheaf check")
}

extension [UInt8] {
  /// Appends an unsigned LEB128 number.
  mutating func append(varint value: Int64) {
    var rest = UInt64(bitPattern: value)
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(rest))
  }
}

/// Reads unsigned LEB128 numbers.
struct VarintReader {
  let bytes: ArraySlice<UInt8>
  /// Index of the next byte.
  private(set) var position: Int

  init(bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  var isAtEnd: Bool { position == bytes.endIndex }

  /// The next `count` bytes.
  mutating func bytes(_ count: Int64) throws(SheafError) -> ArraySlice<UInt8> {
    guard count <= Int64(bytes.endIndex - position) else { throw StoredContent.damaged }
    defer { position += Int(count) }
    return bytes[position..<(position + Int(count))]
  }

  mutating func next() throws(SheafError) -> Int64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      guard position < bytes.endIndex, shift < 64 else { throw StoredContent.damaged }
      let byte = bytes[position]
      position += 1
      // The tenth byte has one bit left, which would make the number negative.
      guard shift < 63 || byte == 0 else { throw StoredContent.damaged }
      value |= UInt64(byte & 0x7F) << shift
      if byte & 0x80 == 0 { break }
      shift += 7
    }
    guard let signed = Int64(exactly: value) else { throw StoredContent.damaged }
    return signed
  }
}
