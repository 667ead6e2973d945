import CZstd

/// Compressed bodies (RFC 8878).
enum Zstandard {
  /// The bytes of a frame that has them at its front.
  ///
  /// - Parameter limit: Bytes that may come out.
  /// - Throws: ``HubError`` of kind `invalid` for anything but one frame, and `tooLarge` for more bytes.
  static func decompressed(_ frame: [UInt8], upTo limit: Int) throws -> [UInt8] {
    let size = ZSTD_getFrameContentSize(frame, frame.count)
    guard size != UInt64(bitPattern: -2), ZSTD_findFrameCompressedSize(frame, frame.count) == frame.count else {
      throw HubError(.invalid, "the body is no zstd frame")
    }
    // A frame need not tell its size; then there is room for as much as is allowed.
    let isKnown = size != UInt64(bitPattern: -1)
    guard !isKnown || size <= UInt64(limit) else { throw HubError(.tooLarge, "at most \(limit) bytes") }
    var isWhole = true
    let bytes = [UInt8](unsafeUninitializedCapacity: isKnown ? Int(size) : limit) { buffer, count in
      let written = ZSTD_decompress(buffer.baseAddress, buffer.count, frame, frame.count)
      isWhole = ZSTD_isError(written) == 0
      count = isWhole ? written : 0
    }
    guard isWhole else { throw HubError(.invalid, "the body is damaged, or has more than \(limit) bytes") }
    return bytes
  }
}
