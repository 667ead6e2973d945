internal import Glibc
internal import GRDBSQLite
internal import SheafModel

/// A part of a chunk that is to be read.
package struct ChunkPart {
  let chunk: Int64
  /// In bytes.
  let offset: Int64
  let length: Int64
  /// Where its first byte goes in what is read.
  let place: Int

  package init(_ extent: Extent, at place: Int) {
    (chunk, offset, length) = (extent.chunk, extent.offset, extent.length)
    self.place = place
  }
}

/// What became of parts of chunks that were to be read: each was copied, or its chunk is here.
package struct ChunkPartsRead {
  /// Places in the list of parts.
  package fileprivate(set) var copied: Set<Int> = []
  /// The bytes of whole chunks.
  package fileprivate(set) var chunks: [Int64: [UInt8]] = [:]
}

/// Connections that read chunks beside the writer, in the state that was committed last.
///
/// Rules:
/// 1. A read is one transaction: packing moves a chunk's bytes from one row to another in one change.
/// 2. Nothing waits for a connection. If none is available (all are in use, no descriptor or no memory is left, the
///    library's file was moved away), or if a chunk is not committed yet or cannot be read, the answer is nil: the
///    caller then reads by the writer's connection, which knows everything and says what is wrong.
/// 3. ``close()`` returns once every reader that has begun has ended.
/// 4. A chunk that was stored anew since its row was damaged is not read here before that is committed.
// Sendable: `state` is touched only with `condition` locked, and a connection only by the thread that took it.
package final class ChunkReaders: @unchecked Sendable {
  private struct State {
    var idle: [Connection] = []
    var connections = 0
    /// Readers that have begun.
    var readers = 0
    var isClosed = false
  }

  /// Connections at most; each has ``cacheKibibytes`` of memory.
  private static let limit = 4
  private static let cacheKibibytes = 256

  private let path: String
  /// The library's file when it was opened.
  private let file: (device: dev_t, number: ino_t)
  private let condition = MonotonicCondition()
  private var state = State()

  init(path: String) {
    self.path = path
    file = Self.file(at: path) ?? (0, 0)
  }

  private static func file(at path: String) -> (dev_t, ino_t)? {
    var status = stat()
    return lstat(path, &status) == 0 ? (status.st_dev, status.st_ino) : nil
  }

  private func locked<Value>(_ body: (inout State) -> Value) -> Value {
    condition.lock()
    defer { condition.unlock() }
    return body(&state)
  }

  // MARK: - Readers

  /// Notes that a reader begins, which ``close()`` waits for until ``end()``.
  package func begin() { locked { $0.readers += 1 } }

  package func end() {
    locked { state in
      state.readers -= 1
      if state.readers == 0 { condition.broadcast() }
    }
  }

  /// Whether ``close()`` was called.
  package var isClosed: Bool { locked { $0.isClosed } }

  /// Waits for the readers that have begun, and closes the connections.
  func close() {
    condition.lock()
    state.isClosed = true
    // Each look is an access of its own: others change the state while this waits.
    while state.readers > 0 { condition.wait() }
    let idle = state.idle
    state.idle = []
    condition.unlock()
    for connection in idle { connection.close() }
  }

  // MARK: - Reading

  /// Parts of chunks that are as long as this are copied from where they lie, without the rest of their chunk.
  private static let directLength: Int64 = 16 * 1024

  /// Reads parts of chunks into `buffer`, or gives the chunks; nil where they cannot be had here (rule 2), and then
  /// `buffer` may hold anything.
  func read(_ parts: [ChunkPart], into buffer: UnsafeMutableRawBufferPointer) -> ChunkPartsRead? {
    guard let connection = take() else { return nil }
    var found: ChunkPartsRead? = ChunkPartsRead()
    var isSound = true
    do {
      try connection.run(connection.statement("BEGIN"))
      let rows = StoreTransaction(connection)
      var blob: Blob?
      // An open one keeps the transaction from ending.
      defer { blob?.close() }
      for (index, part) in parts.enumerated() where found?.chunks[part.chunk] == nil {
        if part.length >= Self.directLength, let size = try rows.plainSize(of: part.chunk),
          part.offset + part.length <= size
        {
          if blob == nil {
            blob = try Blob(connection, table: "chunks", column: "data", row: part.chunk)
          } else {
            try blob?.move(to: part.chunk)
          }
          if blob?.count == size {
            let target = buffer[part.place..<(part.place + Int(part.length))]
            try blob?.read(at: part.offset, into: UnsafeMutableRawBufferPointer(rebasing: target))
            found?.copied.insert(index)
            continue
          }
        }
        found?.chunks[part.chunk] = try rows.chunkBytes(part.chunk)
      }
    } catch {
      found = nil
      isSound = error is SheafError
    }
    do {
      if connection.isInTransaction { try connection.run(connection.statement("COMMIT")) }
    } catch {
      isSound = false
    }
    giveBack(connection, isSound: isSound)
    return found
  }

  private func take() -> Connection? {
    let (idle, opens) = locked { state -> (Connection?, Bool) in
      if state.isClosed { return (nil, false) }
      if let idle = state.idle.popLast() { return (idle, false) }
      guard state.connections < Self.limit else { return (nil, false) }
      state.connections += 1
      return (nil, true)
    }
    guard opens else { return idle }
    guard let made = try? open() else {
      locked { $0.connections -= 1 }
      return nil
    }
    return made
  }

  private func giveBack(_ connection: Connection, isSound: Bool) {
    if isSound { return locked { $0.idle.append(connection) } }
    connection.close()
    locked { $0.connections -= 1 }
  }

  /// Opens a connection to the library's file; nil where another file is at its path by now.
  ///
  /// The first statement opens the log and its index, by the path: for another file SQLite would take this library's
  /// index for one that nobody uses, and make it anew.
  private func open() throws -> Connection? {
    let connection = try Connection(path: path)
    guard isOpen(in: connection) else { return nil }
    try connection.execute("PRAGMA query_only = ON; PRAGMA cache_size = -\(Self.cacheKibibytes)")
    return isOpen(in: connection) ? connection : nil
  }

  private func isOpen(in connection: Connection) -> Bool {
    var hasMoved: Int32 = 0
    guard sqlite3_file_control(connection.handle, nil, SQLITE_FCNTL_HAS_MOVED, &hasMoved) == SQLITE_OK, hasMoved == 0,
      let found = Self.file(at: path)
    else { return false }
    return found == file
  }
}

extension Store {
  /// Reads parts of chunks beside the writer: for callers that hold no lock, between ``ChunkReaders/begin()`` and
  /// ``ChunkReaders/end()``.
  ///
  /// - Returns: nil where they cannot be had so; ``read(_:)`` has them or says what is wrong. `buffer` may hold anything
  ///   then.
  package func readBeside(_ parts: [ChunkPart], into buffer: UnsafeMutableRawBufferPointer) -> ChunkPartsRead? {
    guard writer.isCommitted(mended.load(ordering: .acquiring)) else { return nil }
    return readers.read(parts, into: buffer)
  }

  /// Notes that the last change stored a chunk anew whose row was damaged (rule 4 of ``ChunkReaders``).
  package func noteMended() { mended.store(writer.number, ordering: .releasing) }
}
