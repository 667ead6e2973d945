/// The numbers that were given last: to inodes, items, chunks, events, and events that wait for their meaning.
struct Numbers {
  private(set) var ino: Int64
  private(set) var item: Int64
  private(set) var chunk: Int64
  private(set) var event: Int64
  private(set) var pending: Int64

  /// The highest numbers that mounts give to what they make up themselves; inode 1 is their root, 2 their `Shared`.
  private static let reservedInos: Int64 = 15

  init(highest: (ino: Int64, item: Int64, chunk: Int64, event: Int64, pending: Int64)) {
    (ino, item, chunk, event, pending) = highest
    ino = max(ino, Self.reservedInos)
  }

  mutating func nextIno() -> Int64 {
    ino += 1
    return ino
  }

  mutating func nextItem() -> Int64 {
    item += 1
    return item
  }

  mutating func nextChunk() -> Int64 {
    chunk += 1
    return chunk
  }

  mutating func nextEvent() -> Int64 {
    event += 1
    return event
  }

  mutating func nextPending() -> Int64 {
    pending += 1
    return pending
  }

  /// Takes the numbers of events back that were given since `earlier`, since they have no gaps.
  mutating func takeBackEvents(since earlier: Numbers) {
    event = earlier.event
    pending = earlier.pending
  }
}
