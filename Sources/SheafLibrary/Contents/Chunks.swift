import SheafModel

/// The knowledge in memory of a library's chunks: bytes read lately, chunks known to have their hashes, their owners,
/// and chunks that a sweep must leave.
struct Chunks {
  /// Bytes of files that went without a trace, and of surplus versions, after which what they left is freed at once:
  /// databases and compilers make and remove such files all day, and the library's file is larger by as much.
  static let discardLimit: Int64 = 8 << 20
  /// Bytes of chunks that are kept in memory.
  private static let cacheLimit = 24 << 20

  /// The bytes of chunks that were read or stored lately.
  let cache = ChunkCache(limit: cacheLimit)
  private var sound: SoundChunks
  /// The inode whose session's version alone holds a chunk, so that a renewal can free it.
  private var owners: [Int64: Int64] = [:]
  /// Chunks that a running sweep must leave; nil while none runs.
  private var spared: Set<Int64>?
  /// Bytes of files that went for good since the last sweep was asked for.
  private var discardedBytes: Int64 = 0

  /// - Parameter last: number of the newest chunk.
  init(after last: Int64) { sound = SoundChunks(after: last) }

  // MARK: - Bytes

  /// Whether a chunk is known to hold the bytes of its hash.
  func isSound(_ id: Int64) -> Bool { sound.contains(id) }

  mutating func noteSound(_ id: Int64) { sound.insert(id) }

  // MARK: - Storing

  /// Notes that a chunk is stored.
  mutating func noteStored(_ id: Int64) { spared?.insert(id) }

  /// Notes that something else refers to a chunk that was there: it has several users from now on.
  mutating func noteFound(_ id: Int64) {
    owners[id] = nil
    spared?.insert(id)
  }

  // MARK: - Owners

  /// Chunks that a single session's version holds.
  var ownedCount: Int { owners.count }

  func isOwned(_ id: Int64, by ino: Int64) -> Bool { owners[id] == ino }

  mutating func setOwner(of id: Int64, _ ino: Int64) { owners[id] = ino }

  mutating func removeOwner(of id: Int64) { owners[id] = nil }

  // MARK: - Sweeping

  /// Notes that a sweep begins: it leaves what is stored or found from now on.
  mutating func beginSweep() { spared = [] }

  mutating func endSweep() { spared = nil }

  /// The chunks that the running sweep must leave.
  var sparedChunks: Set<Int64> { spared ?? [] }

  /// Notes that contents of so many bytes have no use any more, beside what else may have the same; says whether there
  /// are so many by now that they should be freed.
  mutating func noteDiscarded(_ bytes: Int64) -> Bool {
    discardedBytes = discardedBytes.addingSaturated(bytes)
    return discardedBytes >= Self.discardLimit
  }

  /// Takes what has no use any more, to be freed; says whether there was any.
  mutating func takeDiscarded() -> Bool {
    defer { discardedBytes = 0 }
    return discardedBytes > 0
  }
}
