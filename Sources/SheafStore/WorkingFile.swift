internal import CLinux
internal import Glibc
internal import Synchronization
package import SheafModel

/// A file beside the library for bytes that were written to documents and are not stored yet, if they are more than
/// memory holds.
///
/// Writes go there as fast as the kernel takes them, and are cut into chunks later, while programs go on. Each working
/// copy has an ``Area`` of it. A row of `working_copies` says which of its bytes were promised to a program.
///
/// Rules:
/// 1. Bytes in an area never change; every write takes new places.
/// 2. A row that refers to an area is durable only after the area's bytes: ``sync()`` comes before every commit and
///    every sync of the changes that hold it (``Writer``).
/// 3. An area's places are given back to the disk only when it is durable that no row refers to them:
///    ``takeReleased()`` before the log is synced, ``free(_:)`` after.
/// 4. Linux reports bytes that it could not write once, and takes them for written from then on. So after a failed sync
///    no sync is believed until every area of that time is gone: its bytes are stored as chunks, or nobody needs them
///    any more.
package final class WorkingFile: Sendable {
  private struct State {
    var descriptor: Int32 = -1
    /// Offset of the next write.
    var end: Int64 = 0
    /// Bytes that areas have, or had until a moment ago.
    var live: Int64 = 0
    var used: Int64 = 0
    var released: [Range<Int64>] = []
    /// How often a sync failed, how many areas have got bytes since the last failure, and how many before.
    var failures = 0
    var sound = 0
    var doubtful = 0
  }

  let path: String
  private let library: String
  private let state = Mutex(State())
  /// How often bytes were promised, and how many of these promises the disk is known to keep.
  private let promised = Atomic(0)
  private let synced = Atomic(0)
  private let syncing = Mutex<Void>(())

  /// The first write makes the file.
  ///
  /// - Parameter library: the path of the library's file.
  init(path: String, of library: String) {
    self.path = path
    self.library = library
  }

  deinit { state.withLock { if $0.descriptor >= 0 { close($0.descriptor) } } }

  // MARK: - Areas

  /// Places of the file that belong to one working copy, for as long as anything refers to it.
  package final class Area: Sendable {
    private let file: WorkingFile
    private let ranges: Mutex<[Range<Int64>]>
    /// How often a sync of the file had failed when this area got its first bytes; -1 before them, -2 once nobody
    /// depends on them.
    private let failures = Atomic(-1)

    fileprivate init(_ file: WorkingFile, _ ranges: [Range<Int64>]) {
      self.file = file
      self.ranges = Mutex(ranges)
      if !ranges.isEmpty { failures.store(file.noteArea(), ordering: .relaxed) }
    }

    deinit {
      abandon()
      file.release(ranges.withLock { $0 })
    }

    /// Notes that nobody's durability depends on these bytes any more: their document is gone, and lives on for
    /// programs that have it open.
    package func abandon() {
      let known = failures.exchange(-2, ordering: .relaxed)
      if known >= 0 { file.forgetArea(since: known) }
    }

    /// Bytes written so far.
    package var count: Int64 { ranges.withLock { $0.reduce(0) { $0 + Int64($1.count) } } }

    /// Appends `bytes`; returns their place.
    ///
    /// - Throws: ``SheafError``: `noSpace` with nothing written, `inputOutput`.
    package func append(_ bytes: UnsafeRawBufferPointer) throws(SheafError) -> Int64 {
      // Before the write: a sync that fails meanwhile may concern these bytes.
      if failures.load(ordering: .relaxed) == -1 { failures.store(file.noteArea(), ordering: .relaxed) }
      let place = try file.append(bytes)
      let range = place..<(place + Int64(bytes.count))
      ranges.withLock { ranges in
        if let last = ranges.last, last.upperBound == range.lowerBound {
          ranges[ranges.count - 1] = last.lowerBound..<range.upperBound
        } else {
          ranges.append(range)
        }
      }
      return place
    }

    /// Fills `buffer` from `place`.
    ///
    /// - Throws: ``SheafError``: `inputOutput`, also where the file is shorter.
    package func read(at place: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(SheafError) {
      try file.read(at: place, into: buffer)
    }
  }

  /// An area without any bytes.
  package func area() -> Area { Area(self, []) }

  /// The area that a row tells of, if it holds the row's bytes.
  ///
  /// - Returns: nil if the file does not hold these bytes.
  ///
  /// - Throws: ``SheafError`` if the file cannot be read.
  package func area(of log: WriteLog) throws(SheafError) -> Area? {
    guard try Self.holds(log, path: path) else { return nil }
    _ = try opened()
    let places = log.places
    state.withLock { state in
      state.live += Self.length(of: places)
      state.used += Self.length(of: places)
    }
    return Area(self, places)
  }

  /// Bytes that wait to be stored.
  package var liveBytes: Int64 { state.withLock { $0.live } }

  private static func length(of ranges: [Range<Int64>]) -> Int64 { ranges.reduce(0) { $0 + Int64($1.count) } }

  private func opened() throws(SheafError) -> Int32 {
    try state.withLock { (state) throws(SheafError) -> Int32 in try open(&state) }
  }

  private func open(_ state: inout State) throws(SheafError) -> Int32 {
    if state.descriptor >= 0 { return state.descriptor }
    let descriptor = try LibraryFolder.openFile(at: path, beside: library)
    var status = stat()
    // Bytes that an earlier process left stay where they are.
    if fstat(descriptor, &status) == 0 { state.end = Int64(status.st_size) }
    state.descriptor = descriptor
    return descriptor
  }

  private func append(_ bytes: UnsafeRawBufferPointer) throws(SheafError) -> Int64 {
    let (descriptor, place) = try state.withLock { (state) throws(SheafError) -> (Int32, Int64) in
      let descriptor = try open(&state)
      let place = state.end
      state.end += Int64(bytes.count)
      state.live += Int64(bytes.count)
      state.used += Int64(bytes.count)
      return (descriptor, place)
    }
    var written = 0
    while written < bytes.count {
      let count = pwrite(
        descriptor, bytes.baseAddress! + written, bytes.count - written, off_t(place) + off_t(written))
      if count > 0 {
        written += count
      } else if errno != EINTR {
        let error = SheafError(systemError: errno, subject: path)
        state.withLock { $0.live -= Int64(bytes.count) }
        free([place..<(place + Int64(bytes.count))])
        throw error
      }
    }
    return place
  }

  fileprivate func read(at place: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(SheafError) {
    guard try Self.read(opened(), path, at: place, into: buffer) else {
      throw SheafError(.inputOutput, subject: path, reason: "is shorter than what was written to it")
    }
  }

  /// Reads into the buffer; returns false if the file ends before.
  private static func read(
    _ descriptor: Int32, _ path: String, at place: Int64, into buffer: UnsafeMutableRawBufferPointer
  ) throws(SheafError) -> Bool {
    var done = 0
    while done < buffer.count {
      let count = pread(descriptor, buffer.baseAddress! + done, buffer.count - done, off_t(place) + off_t(done))
      if count == 0 { return false }
      guard count > 0 || errno == EINTR else { throw SheafError(systemError: errno, subject: path) }
      done += max(0, count)
    }
    return true
  }

  // MARK: - Durability

  /// Notes that a row is about to refer to written bytes.
  package func promise() { promised.add(1, ordering: .acquiringAndReleasing) }

  /// Whether a sync has anything to do, or to wait for.
  package var needsSync: Bool {
    let target = promised.load(ordering: .acquiring)
    return synced.load(ordering: .acquiring) < target
  }

  /// Makes promised bytes survive power loss. Returns when they do, whichever of several callers does the work.
  ///
  /// - Throws: ``SheafError`` of kind `inputOutput`.
  package func sync() throws(SheafError) {
    guard needsSync else { return }
    try syncing.withLock { (_) throws(SheafError) in
      guard needsSync else { return }
      let target = promised.load(ordering: .acquiring)
      let descriptor = state.withLock { $0.descriptor }
      if descriptor >= 0 {
        try Faults.pass(.workingSync)
        guard state.withLock({ $0.doubtful == 0 }) else {
          throw SheafError(.inputOutput, subject: path, reason: "could not be written a moment ago")
        }
        guard fdatasync(descriptor) == 0 else {
          let error = SheafError(systemError: errno, subject: path)
          markUnreliable()
          throw error
        }
      }
      synced.store(target, ordering: .releasing)
    }
  }

  /// Marks the bytes of all present areas as unreliable.
  func markUnreliable() {
    state.withLock { state in
      state.failures += 1
      state.doubtful += state.sound
      state.sound = 0
    }
  }

  /// Counts an area that gets its first bytes; returns how often a sync has failed.
  private func noteArea() -> Int {
    state.withLock { state in
      state.sound += 1
      return state.failures
    }
  }

  /// Stops counting an area.
  private func forgetArea(since failures: Int) {
    state.withLock { state in
      if failures == state.failures { state.sound -= 1 } else { state.doubtful -= 1 }
    }
  }

  // MARK: - Giving places back

  private func release(_ ranges: [Range<Int64>]) {
    guard !ranges.isEmpty else { return }
    state.withLock { state in
      state.live -= Self.length(of: ranges)
      state.released += ranges
    }
  }

  /// The places released so far, to give to ``free(_:)`` once the log is synced, or back to ``putBack(_:)``.
  package func takeReleased() -> [Range<Int64>] {
    state.withLock { state in
      defer { state.released = [] }
      return state.released
    }
  }

  /// Takes back places that could not be freed yet.
  package func putBack(_ ranges: [Range<Int64>]) { state.withLock { $0.released += ranges } }

  /// Bytes that are given back at a time.
  private static let freedBytes = 8 << 20

  /// Gives places back to the disk.
  package func free(_ ranges: [Range<Int64>]) {
    guard !ranges.isEmpty else { return }
    let descriptor = state.withLock { $0.descriptor }
    guard descriptor >= 0 else { return }
    // Freeing much takes the disk a while. Nobody uses these places any more, so the only ones to wait, a piece at a
    // time, are writers to other places: the kernel locks the file.
    for range in ranges {
      for start in stride(from: range.lowerBound, to: range.upperBound, by: Self.freedBytes) {
        fallocate(
          descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(start),
          off_t(min(Int64(Self.freedBytes), range.upperBound - start)))
      }
    }
    state.withLock { state in
      state.used -= Self.length(of: ranges)
      guard state.used == 0 else { return }
      ftruncate(descriptor, 0)
      state.end = 0
    }
  }

  /// Removes the file if nobody needs it; for callers that have synced the log and have no area any more.
  package func removeIfUnused() {
    state.withLock { state in
      state.used -= Self.length(of: state.released)
      state.released = []
      if state.used == 0 { LibraryFolder.remove(path) }
    }
  }

  /// Removes the file that an earlier process left, if no row referred to it.
  package func discardLeftover() {
    state.withLock { state in
      if state.descriptor < 0 { LibraryFolder.remove(path) }
    }
  }

  /// Whether the file at `path` holds the bytes of `log`.
  ///
  /// - Throws: ``SheafError`` if the file cannot be read.
  static func holds(_ log: WriteLog, path: String) throws(SheafError) -> Bool {
    guard let descriptor = try LibraryFolder.openExisting(at: path) else { return log.places.isEmpty }
    defer { close(descriptor) }
    for case .write(_, let length, let place, let checksum) in log.steps {
      let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 8)
      defer { piece.deallocate() }
      guard try read(descriptor, path, at: place, into: piece),
        WriteLog.checksum(UnsafeRawBufferPointer(piece)) == checksum
      else { return false }
    }
    return true
  }
}
