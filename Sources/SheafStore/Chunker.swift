internal import SheafModel

/// The boundaries of a library's chunks. They are no part of the file format: with others, files stay readable and fewer
/// duplicates are found.
package enum Chunker {
  /// Bytes of the smallest chunk: no boundary comes before them, and a smaller document is one chunk.
  package static let minimum = 32 * 1024
  /// Bytes from which on a boundary is likely.
  package static let normal = 64 * 1024
  /// Bytes of the largest chunk.
  package static let maximum = 256 * 1024

  private static let boundaries = ChunkBoundaries(minimum: minimum, normal: normal, maximum: maximum)

  /// Length of the first chunk of `bytes`.
  ///
  /// - Parameter bytes: at least ``maximum`` bytes, or the rest of the document.
  package static func firstChunkLength(_ bytes: UnsafeRawBufferPointer) -> Int { boundaries.firstChunkLength(bytes) }
}
