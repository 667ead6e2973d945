internal import CLinux
internal import Glibc
internal import Synchronization
package import SheafModel

/// A file beside the library for what was written to documents and is not stored yet, where that is more than memory holds.
///
/// What is written goes there as fast as the kernel takes it, and is cut into chunks later, behind the writer's back. Each
/// working copy has an ``Area`` of it. A row of `working_copies` says what of it somebody was promised.
///
/// Rules:
/// 1. Bytes in an area never change; writing always takes new places.
/// 2. A row that refers to an area is durable only after the area's bytes: ``sync()`` comes before every commit and every
///    sync of the changes that hold it (``Writer``).
/// 3. An area's places are given back to the disk only when it is durable that no row refers to them:
///    ``takeReleased()`` before the log is synced, ``free(_:)`` after.
/// 4. Linux tells once of bytes that it could not write, and takes them for written from then on. So after a sync that failed
///    none is believed until every area that there was is gone: its bytes are stored as chunks, or nobody's any more.
package final class WorkingFile: Sendable {
  private struct State {
    var descriptor: Int32 = -1
    /// Where to write next.
    var end: Int64 = 0
    /// Bytes that areas have, and with those that they had until a moment ago.
    var live: Int64 = 0
    var used: Int64 = 0
    var released: [Range<Int64>] = []
    /// How often a sync failed, and how many areas have got bytes since the last time, and how many before.
    var failures = 0
    var sound = 0
    var doubtful = 0
  }

  let path: String
  private let library: String
  private let state = Mutex(State())
  /// How often somebody was promised bytes, and how many of these promises the disk is known to bear out.
  private let promised = Atomic(0)
  private let synced = Atomic(0)
  private let syncing = Mutex<Void>(())

  /// The file is made when something is first written.
  ///
  /// - Parameter library: the path of the library's file.
  init(path: String, of library: String) {
    self.path = path
    self.library = library
  }

  deinit { state.withLock { if $0.descriptor >= 0 { close($0.descriptor) } } }

  // MARK: - Areas

  /// Places of the file that belong to one working copy, for as long as it is referred to.
  package final class Area: Sendable {
    private let file: WorkingFile
    private let ranges: Mutex<[Range<Int64>]>
    /// How often a sync of the file had failed when this got its first bytes; -1 before, -2 where that is all the same.
    private let failures = Atomic(-1)

    fileprivate init(_ file: WorkingFile, _ ranges: [Range<Int64>]) {
      self.file = file
      self.ranges = Mutex(ranges)
      if !ranges.isEmpty { failures.store(file.noteArea(), ordering: .relaxed) }
    }

    deinit {
      disclaim()
      file.release(ranges.withLock { $0 })
    }

    /// Has nobody's durability depend on these bytes any more: their file went, and lives on for who has it open.
    package func disclaim() {
      let known = failures.exchange(-2, ordering: .relaxed)
      if known >= 0 { file.forgetArea(since: known) }
    }

    /// Bytes of all that was written.
    package var count: Int64 { ranges.withLock { $0.reduce(0) { $0 + Int64($1.count) } } }

    /// Writes `bytes` behind all that is there; returns their place.
    ///
    /// - Throws: ``SheafError``: `noSpace` with nothing written, `inputOutput`.
    package func append(_ bytes: UnsafeRawBufferPointer) throws(SheafError) -> Int64 {
      // Before they are written: a sync that fails meanwhile may be of them.
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

  /// The area of which a row tells, if it is as the row says.
  ///
  /// - Returns: nil where the file does not hold what was written.
  ///
  /// - Throws: ``SheafError`` where that cannot be told.
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

  /// Bytes that are to be stored yet.
  package var liveBytes: Int64 { state.withLock { $0.live } }

  private static func length(of ranges: [Range<Int64>]) -> Int64 { ranges.reduce(0) { $0 + Int64($1.count) } }

  private func opened() throws(SheafError) -> Int32 {
    try state.withLock { (state) throws(SheafError) -> Int32 in try open(&state) }
  }

  private func open(_ state: inout State) throws(SheafError) -> Int32 {
    if state.descriptor >= 0 { return state.descriptor }
    let descriptor = try LibraryFolder.openFile(at: path, beside: library)
    var status = stat()
    // What an earlier process left stays where it is.
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

  /// Returns false where the file ends before.
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

  /// Notes that a row is about to refer to what was written.
  package func promise() { promised.add(1, ordering: .acquiringAndReleasing) }

  /// Whether a sync has anything to do, or to wait for.
  package var needsSync: Bool {
    let target = promised.load(ordering: .acquiring)
    return synced.load(ordering: .acquiring) < target
  }

  /// Makes what was promised survive power loss; returns when it does, whoever of several callers does the work.
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
          distrust()
          throw error
        }
      }
      synced.store(target, ordering: .releasing)
    }
  }

  /// Has nobody rely on what lies in the areas that there are.
  func distrust() {
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

  /// Counts an area no more.
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

  /// What was let go of so far; to be given to ``free(_:)`` once the log is synced, or back to ``putBack(_:)``.
  package func takeReleased() -> [Range<Int64>] {
    state.withLock { state in
      defer { state.released = [] }
      return state.released
    }
  }

  /// Takes back what could not be freed yet.
  package func putBack(_ ranges: [Range<Int64>]) { state.withLock { $0.released += ranges } }

  /// Bytes that are given back at a time.
  private static let freedBytes = 8 << 20

  /// Gives places back to the disk.
  package func free(_ ranges: [Range<Int64>]) {
    guard !ranges.isEmpty else { return }
    let descriptor = state.withLock { $0.descriptor }
    guard descriptor >= 0 else { return }
    // Much of it takes the disk a while. Nobody else has these places any more, so that nobody need wait but, for a
    // piece at a time, who writes to other places: the kernel locks the file.
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

  /// Takes the file away if nobody needs it; for who has synced the log, and has no area any more.
  package func removeIfUnused() {
    state.withLock { state in
      state.used -= Self.length(of: state.released)
      state.released = []
      if state.used == 0 { LibraryFolder.remove(path) }
    }
  }

  /// Takes away what an earlier process left, to which no row refers.
  package func discardLeftover() {
    state.withLock { state in
      if state.descriptor < 0 { LibraryFolder.remove(path) }
    }
  }

  /// Whether the file at `path` holds what `log` says was written.
  ///
  /// - Throws: ``SheafError`` where that cannot be told.
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
