/// The limits of a hub. Clients may rely on these.
public enum WireLimits {
  /// Bytes of a chunk.
  public static let chunkBytes = 4 * 1024 * 1024
  /// Extents of a version.
  public static let extentsPerVersion = 65_536
  /// Bytes of a document, holes included.
  public static let documentBytes: Int64 = 1 << 53
  /// Bytes of contents that travel in a send.
  public static let inlineBytes = 64 * 1024
  /// Bytes of a name.
  public static let nameBytes = 255
  /// Sends of one request, and of one group.
  public static let sendsPerRequest = 256
  /// Bytes of a request of sends.
  public static let bytesPerRequest = 8 * 1024 * 1024
  /// Hashes that one request asks for.
  public static let hashesPerRequest = 1_000
  /// Contents that one request asks for.
  public static let contentsPerRequest = 1_000
  /// Seconds for which the URL of a share can be good.
  public static let longestLink: Int64 = 1_000_000_000_000
  /// Folders of an account that say for how long they keep things.
  public static let retainingFolders = 1_000
  /// Seconds for which a folder keeps things.
  public static let keptSeconds: ClosedRange<Int64> = 86_400...1_000_000_000_000
  /// Characters of the mark of what folders say.
  public static let retentionMark = 64
  /// Rows of a page.
  public static let rowsPerPage = 1_000
}
