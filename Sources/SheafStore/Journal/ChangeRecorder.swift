internal import Glibc
internal import SheafModel

/// The record of changes that are not committed yet: a killed process leaves it to the next one.
///
/// Transactions of SQLite hold many changes each (``Writer``). Until a transaction is committed, the statements of its
/// changes stand in this mapped file. Its contents are the kernel's and outlive the process, at the price of a copy in
/// memory. docs/FORMAT.md, "Changes", has the form. Syncing it is also the cheapest way to make changes survive power
/// loss: they need not be in SQLite's log yet, nor that log on the disk. Without a sync, power loss may leave any part
/// of it.
///
/// Rules:
/// 1. A change is in the record as a whole or not at all: its checksum is written with it, over all its bytes.
/// 2. Changes are numbered, those that are not recorded too. The library file's setting `change` is the last one that
///    the file holds; only changes that follow it without a gap are done again.
/// 3. Each opening of the library goes on from another random number, so that no record of an earlier opening fits.
final class ChangeRecorder {
  enum Kind: UInt8 { case null, integer, text, blob }

  /// Bytes of the file: some thousand changes.
  static let capacity = 4 << 20
  /// Bytes of a change past which it is committed at once rather than written twice.
  private static let changeLimit = 512 << 10
  /// Bytes that are filled at a time.
  private static let fillBytes = 256 << 10
  static let headerBytes = 24

  private let path: String
  private let memory: UnsafeMutableRawPointer
  private let descriptor: Int32
  /// Number of the last change that is recorded or committed.
  private(set) var number: Int64
  /// Number of the last change before those that the record holds.
  private(set) var first: Int64
  /// Whether the record holds every change since ``first``.
  private(set) var isWhole = true
  /// Bytes up to which every block has been written once.
  private var filled = 0
  /// Offsets at which the running change begins, and at which to write next.
  private var start = 0
  private var position = 0
  /// Bytes up to which there may be a record of an earlier use, by this or another process.
  private var reach = ChangeRecorder.capacity
  /// Whether the running change is too large to be recorded.
  private(set) var isTooLarge = false
  private var isRecording = false
  private var group: UInt64 = 1
  private var statementCount: UInt32 = 0
  /// Recorded statements that SQLite has yet to run.
  let queue = ApplyQueue()

  /// Takes the file at `path` into use anew, whatever it holds.
  ///
  /// - Parameters:
  ///   - library: the path of the library's file.
  ///   - number: the setting `change`.
  /// - Returns: nil if there is no room for it.
  init?(path: String, of library: String, number: Int64) {
    guard let descriptor = try? LibraryFolder.openFile(at: path, beside: library) else { return nil }
    // Allocates the blocks: a store into the mapping must not find the disk full.
    guard posix_fallocate(descriptor, 0, off_t(Self.capacity)) == 0,
      let memory = mmap(nil, Self.capacity, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), memory != MAP_FAILED
    else {
      close(descriptor)
      LibraryFolder.remove(path)
      return nil
    }
    self.path = path
    self.memory = memory
    self.descriptor = descriptor
    self.number = number
    first = number
  }

  deinit {
    munmap(memory, Self.capacity)
    close(descriptor)
  }

  /// Whether another change may not fit.
  var isAlmostFull: Bool { start > Self.capacity - Self.changeLimit }

  /// Whether so much was recorded that the record should soon begin anew: pages in steady use stay in the processor's
  /// caches, and are written to the disk once.
  var isLong: Bool { start > Self.capacity / 2 }

  /// Begins a change.
  func begin() {
    position = start + Self.headerBytes
    isTooLarge = false
    isRecording = true
  }

  /// Ends a change that succeeded.
  ///
  /// - Returns: false if it was too large to be recorded; then it has to be committed at once.
  func seal() -> Bool {
    isRecording = false
    reach = max(reach, position)
    defer { queue.seal() }
    guard !isTooLarge else {
      // The texts of its statements are not in the record.
      group += 1
      statementCount = 0
      return false
    }
    number += 1
    let length = position - start
    Self.seal(UnsafeMutableRawBufferPointer(start: memory + start, count: length), number: number)
    start = position
    return true
  }

  /// Writes the header of a change, before its body.
  static func seal(_ change: UnsafeMutableRawBufferPointer, number: Int64) {
    change.storeBytes(of: UInt64(change.count), as: UInt64.self)
    change.storeBytes(of: number, toByteOffset: 8, as: Int64.self)
    let seed = checksum(UnsafeRawBufferPointer(rebasing: change[8..<16]), seed: 0)
    let body = UnsafeRawBufferPointer(rebasing: change[headerBytes...])
    change.storeBytes(of: checksum(body, seed: seed), toByteOffset: 16, as: UInt64.self)
  }

  /// Forgets a change that came to nothing.
  func discard() {
    isRecording = false
    reach = max(reach, position)
    group += 1
    statementCount = 0
  }

  /// Begins anew: all recorded changes are committed.
  func reset() {
    start = 0
    first = number
    isWhole = true
    group += 1
    statementCount = 0
  }

  /// Overwrites the record, all of which is committed, and begins anew: contents that a purge destroys must not stay
  /// here.
  func erase() {
    reset()
    memset(memory, 0, reach)
    reach = 0
  }

  /// Gives a number to a change that is committed and was not recorded.
  func skip() {
    number += 1
    isWhole = false
  }

  /// Writes the next blocks once, if they may never have been written: from then on syncing them changes no metadata.
  func fillAhead() {
    guard filled < min(start + Self.fillBytes / 2, Self.capacity) else { return }
    let end = min(start + Self.fillBytes, Self.capacity)
    let from = max(filled, start)
    memset(memory + from, 0, end - from)
    filled = end
  }

  /// Marks the record as unreliable until ``reset()``.
  func markUnreliable() { isWhole = false }

  /// Makes recorded changes survive power loss; may run while more are recorded.
  ///
  /// - Throws: ``SheafError``.
  func sync() throws(SheafError) {
    guard fdatasync(descriptor) == 0 else { throw SheafError(systemError: errno, subject: path) }
  }

  // MARK: - Recording

  /// Records a statement of the running change. Its arguments append themselves next.
  ///
  /// - Parameter count: how many arguments there are.
  /// - Returns: The address that they will have; nil if they are not recorded.
  func record(_ statement: Statement, count: Int) -> UnsafeRawPointer? {
    guard isRecording, !isTooLarge else { return nil }
    let isKnown = statement.recorded.group == group
    if !isKnown {
      statement.recorded = (group, statementCount)
      statementCount += 1
    }
    guard reserve(8) else { return nil }
    memory.storeBytes(of: statement.recorded.number, toByteOffset: position, as: UInt32.self)
    memory.storeBytes(of: UInt32(count) | (isKnown ? 0 : 1 << 31), toByteOffset: position + 4, as: UInt32.self)
    position += 8
    if !isKnown {
      var text = statement.sql
      text.withUTF8 { append(UnsafeRawBufferPointer($0), as: .text) }
    }
    return UnsafeRawPointer(memory + position)
  }

  func appendNull() {
    guard reserve(1) else { return }
    memory.storeBytes(of: Kind.null.rawValue, toByteOffset: position, as: UInt8.self)
    position += 1
  }

  func append(_ value: Int64) {
    guard reserve(9) else { return }
    memory.storeBytes(of: Kind.integer.rawValue, toByteOffset: position, as: UInt8.self)
    memory.storeBytes(of: value, toByteOffset: position + 1, as: Int64.self)
    position += 9
  }

  func append(_ bytes: UnsafeRawBufferPointer, as kind: Kind) {
    guard reserve(5 + bytes.count) else { return }
    memory.storeBytes(of: kind.rawValue, toByteOffset: position, as: UInt8.self)
    memory.storeBytes(of: UInt32(bytes.count), toByteOffset: position + 1, as: UInt32.self)
    if let source = bytes.baseAddress { memcpy(memory + position + 5, source, bytes.count) }
    position += 5 + bytes.count
  }

  private func reserve(_ count: Int) -> Bool {
    if position - start + count > Self.changeLimit || position + count > Self.capacity { isTooLarge = true }
    return !isTooLarge
  }

  /// Four lanes of eight bytes, multiplied and mixed; enough to tell whole bytes from torn ones.
  static func checksum(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
    let prime: UInt64 = 0x9E37_79B9_7F4A_7C15
    var lanes = SIMD4<UInt64>(seed, seed ^ 1, seed ^ 2, seed ^ 3)
    var index = 0
    while index + 32 <= bytes.count {
      lanes = (lanes ^ bytes.loadUnaligned(fromByteOffset: index, as: SIMD4<UInt64>.self)) &* SIMD4(repeating: prime)
      lanes ^= lanes &>> 29
      index += 32
    }
    var hash = (UInt64(bytes.count) ^ seed) &* prime
    for lane in 0..<4 { hash = (hash ^ lanes[lane]) &* prime ^ (hash >> 32) }
    while index < bytes.count {
      hash = (hash ^ UInt64(bytes[index])) &* 0x100_0000_01B3
      index += 1
    }
    return hash ^ (hash >> 31)
  }

  // MARK: - Doing again

  /// A statement of a recorded change.
  struct Recorded {
    let sql: String
    let arguments: [any Bindable]

    /// The stand-in for a statement that cannot be read; SQLite refuses it.
    fileprivate static var unreadable: Recorded { Recorded(sql: "", arguments: []) }
  }

  /// The changes since this opening that wait to be committed, as ``read(path:after:)`` gives them.
  func pending(after last: Int64) -> [[Recorded]] {
    Self.changes(in: UnsafeRawBufferPointer(start: memory, count: start), after: last)
  }

  /// The changes in the file at `path` that follow the one numbered `last` without a gap, each as its statements.
  ///
  /// - Throws: ``SheafError`` if one cannot be read.
  static func read(path: String, after last: Int64) throws(SheafError) -> [[Recorded]] {
    guard let descriptor = try LibraryFolder.openExisting(at: path) else { return [] }
    defer { close(descriptor) }
    let bytes = try bytes(of: descriptor, path)
    return bytes.withUnsafeBytes { changes(in: $0, after: last) }
  }

  /// Gives the room of a record that no process uses back to the disk, except for its changes.
  static func shorten(_ path: String, of library: String) throws(SheafError) {
    guard access(path, F_OK) == 0 else { return }
    let descriptor = try LibraryFolder.openFile(at: path, beside: library)
    defer { close(descriptor) }
    let bytes = try bytes(of: descriptor, path)
    var end = 0
    bytes.withUnsafeBytes { bytes in forEachChange(in: bytes) { _, range in end = range.upperBound } }
    ftruncate(descriptor, off_t(end))
  }

  /// What a record's file holds.
  private static func bytes(of descriptor: Int32, _ path: String) throws(SheafError) -> ArraySlice<UInt8> {
    var bytes = [UInt8](repeating: 0, count: capacity)
    var done = 0
    while done < capacity {
      let count = bytes.withUnsafeMutableBytes {
        pread(descriptor, $0.baseAddress! + done, $0.count - done, off_t(done))
      }
      if count == 0 { break }
      guard count > 0 || errno == EINTR else { throw LibraryFolder.unreadable(path) }
      done += max(0, count)
    }
    return bytes.prefix(done)
  }

  /// The changes of a record that follow the one numbered `last` without a gap.
  static func changes(in bytes: UnsafeRawBufferPointer, after last: Int64) -> [[Recorded]] {
    var changes: [[Recorded]] = []
    var texts: [UInt32: String] = [:]
    forEachChange(in: bytes) { number, range in
      // A statement's text stands where it comes first, even in a change that the library file holds already.
      var reader = RecordReader(bytes: UnsafeRawBufferPointer(rebasing: bytes[range].dropFirst(headerBytes)))
      var statements: [Recorded] = []
      do {
        while !reader.isAtEnd { statements.append(try reader.statement(&texts)) }
      } catch {
        statements = [.unreadable]
      }
      if number == last &+ 1 &+ Int64(changes.count) { changes.append(statements) }
    }
    return changes
  }

  /// Calls `body` with the number and the bytes of each change of a record, headers included.
  private static func forEachChange(in bytes: UnsafeRawBufferPointer, _ body: (Int64, Range<Int>) -> Void) {
    var start = 0
    var latest = Int64.min
    while start + headerBytes <= bytes.count {
      let length = bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self)
      let number = bytes.loadUnaligned(fromByteOffset: start + 8, as: Int64.self)
      // Changes of an earlier use of the file have lower numbers.
      guard length >= headerBytes, length <= UInt64(bytes.count - start), number > latest else { break }
      let range = start..<(start + Int(length))
      let record = UnsafeRawBufferPointer(rebasing: bytes[range])
      let seed = checksum(UnsafeRawBufferPointer(rebasing: record[8..<16]), seed: 0)
      let contents = UnsafeRawBufferPointer(rebasing: record[headerBytes...])
      guard checksum(contents, seed: seed) == record.loadUnaligned(fromByteOffset: 16, as: UInt64.self) else { break }
      body(number, range)
      latest = number
      start = range.upperBound
    }
  }
}

/// Reads the statements of a record whose checksum is right. Anybody can give a record a right checksum.
private struct RecordReader {
  let bytes: UnsafeRawBufferPointer
  private var position = 0

  /// Most arguments of a statement that are believed (SQLite, "Maximum Number Of Host Parameters").
  private static let argumentLimit = 32_766

  /// The record ends within a statement, or one has no text.
  struct Unreadable: Error {}

  init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var isAtEnd: Bool { position == bytes.count }

  mutating func statement(_ texts: inout [UInt32: String]) throws(Unreadable) -> ChangeRecorder.Recorded {
    let number = try next(UInt32.self)
    let count = try next(UInt32.self)
    if count >> 31 == 1, let text = try value() as? String { texts[number] = text }
    var arguments: [any Bindable] = []
    guard count & 0x7FFF_FFFF <= Self.argumentLimit else { throw Unreadable() }
    for _ in 0..<(count & 0x7FFF_FFFF) { arguments.append(try value()) }
    guard let text = texts[number] else { throw Unreadable() }
    return .init(sql: text, arguments: arguments)
  }

  private mutating func value() throws(Unreadable) -> any Bindable {
    switch ChangeRecorder.Kind(rawValue: try next(UInt8.self)) {
    case .integer: return try next(Int64.self)
    case .text: return String(decoding: try content(), as: UTF8.self)
    case .blob: return [UInt8](try content())
    case .null: return Int64?.none
    case nil: throw Unreadable()
    }
  }

  private mutating func content() throws(Unreadable) -> UnsafeRawBufferPointer { try take(Int(next(UInt32.self))) }

  private mutating func next<Number: FixedWidthInteger & BitwiseCopyable>(
    _ type: Number.Type
  ) throws(Unreadable) -> Number {
    try take(MemoryLayout<Number>.size).loadUnaligned(as: type)
  }

  private mutating func take(_ count: Int) throws(Unreadable) -> UnsafeRawBufferPointer {
    guard count <= bytes.count - position else { throw Unreadable() }
    defer { position += count }
    return UnsafeRawBufferPointer(rebasing: bytes[position..<(position + count)])
  }
}
