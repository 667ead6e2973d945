import CZstd
import NIOCore

/// Compressed bodies (RFC 8878).
enum Zstandard {
  /// The level for what is sent once and unpacked at once: others are slower than the networks that they spare.
  private static let level: Int32 = 1

  /// A frame with these bytes; nil if it is not smaller.
  static func smaller(_ bytes: ByteBuffer) -> ByteBuffer? {
    // Where the frame needs more room than this, it is not worth making.
    let room = bytes.readableBytes - 1
    guard room > 0 else { return nil }
    var frame = ByteBuffer()
    var isSmaller = false
    frame.writeWithUnsafeMutableBytes(minimumWritableBytes: room) { target in
      let size = bytes.withUnsafeReadableBytes {
        ZSTD_compress(target.baseAddress, room, $0.baseAddress, $0.count, level)
      }
      isSmaller = ZSTD_isError(size) == 0
      return isSmaller ? size : 0
    }
    return isSmaller ? frame : nil
  }
}
