import Crypto
package import SheafWire

/// The extents of a version's contents, in their stored form: for each extent a hash of 32 bytes, zeros for a hole, and
/// a length of eight bytes, the highest first.
package struct Manifest: Hashable, Sendable {
  /// Extents of a version.
  package static let limit = WireLimits.extentsPerVersion
  /// Bytes of a document, holes included.
  package static let sizeLimit = WireLimits.documentBytes

  package let extents: [Extent]
  package let size: Int64

  /// - Returns: nil for a length or a number of extents that is out of bounds.
  package init?(_ extents: [Extent]) {
    guard extents.count <= Self.limit else { return nil }
    var size: Int64 = 0
    for extent in extents {
      let limit = extent.hash == nil ? Self.sizeLimit : Int64(WireLimits.chunkBytes)
      guard (1...limit).contains(extent.length) else { return nil }
      size += extent.length
      guard size <= Self.sizeLimit else { return nil }
    }
    self.extents = extents
    self.size = size
  }

  /// - Returns: nil for bytes that are no manifest.
  init?(bytes: [UInt8]) {
    guard bytes.count % 40 == 0 else { return nil }
    let extents = stride(from: 0, to: bytes.count, by: 40).map { start in
      let hash = Array(bytes[start..<(start + 32)])
      let length = bytes[(start + 32)..<(start + 40)].reduce(Int64(0)) { $0 << 8 | Int64($1) }
      return Extent(hash: hash.allSatisfy { $0 == 0 } ? nil : ChunkHash(bytes: hash), length: length)
    }
    self.init(extents)
  }

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(extents.count * 40)
    for extent in extents {
      bytes += extent.hash?.bytes ?? [UInt8](repeating: 0, count: 32)
      withUnsafeBytes(of: extent.length.bigEndian) { bytes += $0 }
    }
    return bytes
  }

  /// Equal for equal extents.
  var digest: [UInt8] { Array(SHA256.hash(data: bytes)) }

  /// The parts that a version with another manifest has, too, and the holes. What follows a part there follows it here as
  /// far as it goes, so that a document with one change has two parts.
  func copies(from base: Manifest) -> ContentCopies {
    // By hash and length: that all extents of a chunk have its length is a rule of the hub, not of a manifest.
    var (places, parts): ([Extent: Int64], [Int64: Extent]) = ([:], [:])
    var place: Int64 = 0
    for extent in base.extents {
      if extent.hash != nil {
        parts[place] = extent
        if places[extent] == nil { places[extent] = place }
      }
      place += extent.length
    }
    var copies: [ContentCopies.Copy] = []
    var offset: Int64 = 0
    for extent in extents {
      defer { offset += extent.length }
      if extent.hash == nil {
        copies.append(.init(offset: offset, source: nil, length: extent.length))
      } else if let last = copies.last, let source = last.source, last.offset + last.length == offset,
        parts[source + last.length] == extent
      {
        copies[copies.count - 1].length += extent.length
      } else if let source = places[extent] {
        copies.append(.init(offset: offset, source: source, length: extent.length))
      }
    }
    return ContentCopies(copies: copies)
  }

  /// The chunks, each once.
  var hashes: Set<ChunkHash> { Set(extents.compactMap(\.hash)) }
}

extension SentVersion {
  /// What a version is stored as: its manifest, nil where that is out of bounds, and the chunk of contents that came
  /// with it.
  var stored: (manifest: Manifest?, chunk: Chunk?) {
    guard let contents, !contents.isEmpty else { return (Manifest(extents), nil) }
    let chunk = Chunk(Array(contents))
    return (Manifest([Extent(hash: chunk.hash, length: Int64(contents.count))]), chunk)
  }
}
