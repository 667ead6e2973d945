import SheafModel

@testable import SheafStore

extension Decoder {
  /// Lists of extents and of nodes.
  static let contents = Decoder(name: "contents") { bytes in
    if let content = try attempt({ try StoredContent(encoded: bytes) }) {
      try expect(StoredContent(encoded: content.encoded) == content, "encoded and decoded it is another one")
      try expect((0...StoredContent.maximumLength).contains(content.length), "its length is \(content.length)")
      try expect((0...content.length).contains(content.dataLength), "its data are \(content.dataLength) bytes")
      try expect(content.chunks.count <= bytes.count, "it has \(content.chunks.count) chunks")
    }
    if let extents = try attempt({ try StoredContent.decodeNode(bytes) }) {
      try expect(StoredContent.decodeNode(StoredContent.encode(extents)) == extents, "a node is another one")
    }
  }

  /// A base, and a delta for it; or two texts, and the delta between them.
  static let deltas = Decoder(name: "deltas") { bytes in
    var input = Input(bytes)
    let base = input.piece()
    let rest = input.all()
    var result: [UInt8] = []
    if try attempt({ try Delta.apply(rest[...], to: base, into: &result) }) != nil {
      try expect(Int64(result.count) <= Pack.memberLimit, "it made \(result.count) bytes")
    }
    guard let delta = Delta.encode(rest, from: base) else { throw Finding("there is no delta without a limit") }
    try Delta.apply(delta[...], to: base, into: &result)
    try expect(result == rest, "a delta makes something else")
  }

  /// A pack's row and a place in a pack. The bytes stand for what a frame holds: a fuzzer finds no way into one.
  static let packs = Decoder(name: "packs") { bytes in
    var input = Input(bytes)
    let (base, chunks, start) = (input.piece(), input.piece(), input.piece())
    _ = try attempt { try PackPlace(encoded: base) }
    let frame = try Zstandard.compress(input.all(), level: 1)
    guard let pack = try attempt({ try Pack(id: 1, base: base, chunks: chunks, data: frame) }) else { return }
    let again = try Pack(id: 1, base: base, chunks: chunks, data: pack.encodedDeltas)
    try expect(again.deltas == pack.deltas, "its deltas are others")
    var reader = PackReader(pack, base: start)
    while try attempt({ try reader.advance() }) ?? false {
      try expect(Int64(reader.bytes.count) <= Pack.memberLimit, "a member has \(reader.bytes.count) bytes")
    }
  }

  /// Frames of Zstandard.
  static let frames = Decoder(name: "frames") { bytes in
    let limit = 1 << 16
    if let found = Zstandard.decompress(bytes, limit: limit) {
      try expect(found.count <= limit, "it holds \(found.count) bytes")
    }
    let frame = try Zstandard.compress(bytes, level: 1)
    try expect(Zstandard.decompress(frame, limit: bytes.count) == bytes, "it holds something else")
    try expect(
      bytes.isEmpty || Zstandard.decompress(frame, limit: bytes.count - 1) == nil, "it is larger than it may be")
  }

  /// Boundaries of chunks; each byte stands for many.
  static let chunks = Decoder(name: "chunks") { bytes in
    let whole = bytes.flatMap { byte in (0..<256).map { byte &+ UInt8($0) &* (byte | 1) } }
    try whole.withUnsafeBytes { whole in
      var rest = whole
      while !rest.isEmpty {
        let length = Chunker.firstChunkLength(rest)
        try expect((1...min(rest.count, Chunker.maximum)).contains(length), "a chunk of \(length) bytes")
        try expect(length > Chunker.minimum || length == rest.count, "a chunk of only \(length) bytes")
        rest = UnsafeRawBufferPointer(rebasing: rest[length...])
      }
    }
  }

  /// Steps of working copies.
  static let writeLogs = Decoder(name: "write-logs") { bytes in
    guard let log = try attempt({ try WriteLog(encoded: bytes) }) else { return }
    try expect(WriteLog(encoded: log.encoded) == log, "encoded and decoded it is another one")
    try expect(log.places.allSatisfy { $0.lowerBound >= 0 }, "a place before the file's start")
  }

  /// The file of changes that a killed process leaves: as it is, and as one change whose checksum is right.
  static let changeRecords = Decoder(name: "change-records") { bytes in
    func read(_ record: [UInt8], after last: Int64) throws -> [[ChangeRecorder.Recorded]] {
      try record.withUnsafeBytes { record in
        let changes = ChangeRecorder.changes(in: record, after: last)
        let count = changes.reduce(0) { $0 + $1.reduce(1) { $0 + 1 + $1.arguments.count } }
        try expect(count <= record.count + changes.count, "\(record.count) bytes hold \(count) things")
        return changes
      }
    }
    for last in [0, -1, Int64.max, .min] { _ = try read(bytes, after: last) }
    var record = [UInt8](repeating: 0, count: ChangeRecorder.headerBytes) + bytes
    record.withUnsafeMutableBytes { ChangeRecorder.seal($0, number: 1) }
    try expect(read(record, after: 0).count == 1, "a whole change is not read")
  }
}
