/// Which parts of a version another version of the same document has, too: whoever has that one needs the rest only.
public struct ContentCopies: Hashable, Sendable, Codable {
  /// A part of the version.
  public struct Copy: Hashable, Sendable, Codable {
    /// Where it begins in the version.
    public var offset: Int64
    /// Where it begins in the other version; null for a hole, which reads as zeros.
    public var source: Int64?
    /// Bytes, at least one.
    public var length: Int64

    public init(offset: Int64, source: Int64?, length: Int64) {
      self.offset = offset
      self.source = source
      self.length = length
    }
  }

  /// In the version's order; no two overlap.
  public var copies: [Copy]

  public init(copies: [Copy]) { self.copies = copies }
}
