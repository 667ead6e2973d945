package import SheafModel

/// The steps since a document's contents were stored, in order. Applied to the stored contents they make the present
/// ones.
///
/// The bytes written lie in the ``WorkingFile``. Encoded it is `writes` of `working_copies` (docs/FORMAT.md).
package struct WriteLog: Hashable, Sendable {
  package enum Step: Hashable, Sendable {
    /// Bytes written at an offset of the document, their place in the working file and their checksum.
    case write(offset: Int64, length: Int, place: Int64, checksum: Int64)
    /// The document's size became this.
    case truncate(Int64)
    /// A range within the document became a hole.
    case hole(Range<Int64>)
  }

  /// Steps after which storing the contents is better.
  package static let limit = 16_384

  package private(set) var steps: [Step] = []

  package init() {}

  /// That of contents which became none, and were not written since.
  package static let emptied: WriteLog = {
    var log = WriteLog()
    log.append(.truncate(0))
    return log
  }()

  package mutating func append(_ step: Step) { steps.append(step) }

  /// Places in the working file; adjacent ones are joined.
  package var places: [Range<Int64>] {
    var places: [Range<Int64>] = []
    for case .write(_, let length, let place, _) in steps {
      if let last = places.last, last.upperBound == place {
        places[places.count - 1] = last.lowerBound..<(place + Int64(length))
      } else {
        places.append(place..<(place + Int64(length)))
      }
    }
    return places
  }

  /// The checksum of written bytes; not negative.
  package static func checksum(_ bytes: UnsafeRawBufferPointer) -> Int64 {
    Int64(bitPattern: ChangeRecorder.checksum(bytes, seed: 0) >> 1)
  }

  private enum Kind: Int64 { case write, truncate, hole }

  /// LEB128 numbers: for each step its kind and its numbers.
  package var encoded: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(steps.count * 24)
    for step in steps {
      switch step {
      case .write(let offset, let length, let place, let checksum):
        for number in [Kind.write.rawValue, offset, Int64(length), place, checksum] { bytes.append(varint: number) }
      case .truncate(let size):
        for number in [Kind.truncate.rawValue, size] { bytes.append(varint: number) }
      case .hole(let range):
        for number in [Kind.hole.rawValue, range.lowerBound, Int64(range.count)] { bytes.append(varint: number) }
      }
    }
    return bytes
  }

  /// - Throws: ``SheafError`` of kind `corrupt`.
  package init(encoded bytes: [UInt8]) throws(SheafError) {
    var reader = VarintReader(bytes: bytes[...])
    while !reader.isAtEnd {
      switch Kind(rawValue: try reader.next()) {
      case .write:
        let (offset, length, place) = (try reader.next(), try reader.next(), try reader.next())
        guard length > 0, length <= 1 << 30, offset <= .max - length, place <= .max - length else {
          throw StoredContent.damaged
        }
        steps.append(.write(offset: offset, length: Int(length), place: place, checksum: try reader.next()))
      case .truncate: steps.append(.truncate(try reader.next()))
      case .hole:
        let (offset, length) = (try reader.next(), try reader.next())
        guard offset <= .max - length else { throw StoredContent.damaged }
        steps.append(.hole(offset..<(offset + length)))
      case nil: throw StoredContent.damaged
      }
    }
  }
}
