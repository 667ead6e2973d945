internal import CZstd
package import SheafModel

/// Zstandard frames (RFC 8878), each of which tells the size of its contents.
package enum Zstandard {
  /// The level for a chunk that may be read at any time: all levels decode equally fast, and this one encodes some 40
  /// MB a second.
  package static let chunkLevel: Int32 = 9
  /// The level for small things that are kept for long.
  package static let packLevel: Int32 = 19

  /// One frame with these bytes.
  ///
  /// - Throws: ``SheafError`` of kind `inputOutput` if there is no memory for it.
  package static func compress(_ bytes: [UInt8], level: Int32) throws(SheafError) -> [UInt8] {
    let bound = ZSTD_compressBound(bytes.count)
    var failed = false
    let frame = [UInt8](unsafeUninitializedCapacity: bound) { buffer, count in
      let size = bytes.withUnsafeBytes { ZSTD_compress(buffer.baseAddress, bound, $0.baseAddress, $0.count, level) }
      failed = ZSTD_isError(size) != 0
      count = failed ? 0 : size
    }
    if failed { throw SheafError(.inputOutput, subject: "\(bytes.count) bytes", reason: "could not be compressed") }
    return frame
  }

  /// The bytes of a frame, `limit` of them at most; nil where it is damaged.
  package static func decompress(_ frame: [UInt8], limit: Int) -> [UInt8]? {
    let size = frame.withUnsafeBytes { ZSTD_getFrameContentSize($0.baseAddress, $0.count) }
    // The two highest values mean that it is no frame, or does not tell its size.
    guard limit >= 0, size <= UInt64(limit) else { return nil }
    var written = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: Int(size)) { buffer, count in
      written = frame.withUnsafeBytes { ZSTD_decompress(buffer.baseAddress, Int(size), $0.baseAddress, $0.count) }
      count = ZSTD_isError(written) != 0 ? 0 : written
    }
    return bytes.count == Int(size) && ZSTD_isError(written) == 0 ? bytes : nil
  }
}
