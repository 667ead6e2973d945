import Foundation
import Glibc
import SheafModel
import SheafStore
import Synchronization
import Testing

@testable import SheafLibrary

/// A library in a folder of its own, with one account and a clock that only the test moves.
final class LibraryFixture: Sendable {
  let folder: String
  let library: Library
  let clock: TestClock
  let account: AccountHandle
  /// As whom it does everything.
  let caller: Caller

  /// - Parameter rapidSaves: those of tests follow each other at once, and nearly all tests look for each of them.
  init(
    at path: String? = nil, clock: TestClock = TestClock(), rapidSaves: RapidSavesSetting = .keep,
    by caller: Caller = .library
  ) throws {
    self.caller = caller
    var template = Array("/var/tmp/sheaf-library-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    self.clock = clock
    account = try AccountHandle("alice@example.com")
    library = try Library.open(LibraryLocation(path: path ?? folder + "/library.sqlite")) { clock.now }
    _ = try library.change(.init(rapidSaves: rapidSaves))
    if try library.accounts().isEmpty { _ = try library.addAccount(account, name: "Alice") }
  }

  var path: String { library.location.path }
  var root: Int64 { get throws { try library.documents(of: account) } }

  func path(_ text: String) throws -> ItemPath { try ItemPath(account: account, "Documents/" + text) }

  /// Checks that nothing is wrong, closes, and removes the folder.
  func finish() throws {
    try expectSound()
    try library.close()
    try? FileManager.default.removeItem(atPath: folder)
  }

  func expectSound(_ location: SourceLocation = #_sourceLocation) throws {
    let problems = try library.check { _ in }.problems
    #expect(problems == [], sourceLocation: location)
  }

  // MARK: - Names

  /// The inode at a path below Documents; nil where there is none.
  func find(_ text: String) throws -> Int64? {
    var ino = try root
    for name in text.split(separator: "/") {
      do {
        ino = try library.lookup(ino, Array(name.utf8), caller).ino
      } catch let error as SheafError where error.kind == .notFound {
        return nil
      }
    }
    return ino
  }

  func ino(_ text: String) throws -> Int64 {
    guard let ino = try find(text) else { throw SheafError(.notFound, subject: text) }
    return ino
  }

  /// The folder and the name of a path.
  func place(_ text: String) throws -> (parent: Int64, name: [UInt8]) {
    let parts = text.split(separator: "/")
    return (try ino(parts.dropLast().joined(separator: "/")), Array((parts.last ?? "").utf8))
  }

  func mkdir(_ text: String) throws {
    let (parent, name) = try place(text)
    _ = try library.make(.folder, parent, name, mode: 0o755, caller)
  }

  func unlink(_ text: String) throws {
    let (parent, name) = try place(text)
    try library.unlink(parent, name, caller)
  }

  func rmdir(_ text: String) throws {
    let (parent, name) = try place(text)
    try library.rmdir(parent, name, caller)
  }

  func rename(_ text: String, _ to: String) throws {
    let (parent, name) = try place(text)
    let (newParent, newName) = try place(to)
    try library.rename(parent, name, to: newParent, newName, .replace, caller)
  }

  func names(_ text: String = "") throws -> [String] {
    var cookie: Int64 = 0
    var names: [String] = []
    let ino = try ino(text)
    while true {
      let page = try library.list(ino, after: cookie, limit: 100, caller)
      guard let last = page.last else { return names.sorted() }
      names += page.map { String(decoding: $0.name, as: UTF8.self) }
      cookie = last.cookie
    }
  }

  // MARK: - Contents

  /// - Parameter process: The program that opens it; nil for this one.
  func open(_ text: String, _ flags: Int32 = O_RDWR, by process: Int32? = nil) throws -> UInt64 {
    let caller = process.map { Caller(uid: 0, gid: 0, thread: $0, door: 0) { [] } } ?? caller
    if flags & O_CREAT != 0, try find(text) == nil {
      let (parent, name) = try place(text)
      return try library.create(parent, name, mode: 0o644, flags: flags, caller).handle
    }
    return try library.open(try ino(text), flags: flags, caller)
  }

  /// Writes in requests of 1 MiB at most, as the kernel does.
  func write(_ handle: UInt64, _ bytes: [UInt8], at offset: Int64 = 0) throws {
    try bytes.withUnsafeBytes { bytes in
      for start in stride(from: 0, to: bytes.count, by: 1 << 20) {
        let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + (1 << 20), bytes.count)])
        try library.write(handle, at: offset + Int64(start), piece)
      }
    }
  }

  func close(_ handle: UInt64) throws {
    try library.flush(handle)
    try library.release(handle)
  }

  /// Cuts a document short some time after it was saved, for a version of its own, and lets time pass.
  func cutShort(_ text: String, to size: Int64) throws {
    clock.advance(60)
    let handle = try open(text)
    _ = try library.setAttributes(ino(text), .init(size: size), handle: handle, caller)
    try close(handle)
    clock.advance(60)
  }

  /// Writes a whole document as a program does that opens, writes and closes.
  func save(_ text: String, _ bytes: [UInt8]) throws {
    let handle = try open(text, O_RDWR | O_CREAT | O_TRUNC)
    try write(handle, bytes)
    try close(handle)
  }

  func save(_ text: String, _ contents: String) throws { try save(text, Array(contents.utf8)) }

  func read(_ handle: UInt64) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      let count = try buffer.withUnsafeMutableBytes { try library.read(handle, at: Int64(bytes.count), into: $0) }
      guard count > 0 else { return bytes }
      bytes += buffer.prefix(count)
    }
  }

  func read(_ text: String) throws -> [UInt8] {
    let handle = try open(text, O_RDONLY)
    defer { try? library.release(handle) }
    return try read(handle)
  }

  /// Whether a large document holds just these bytes; a test that fails would take long to tell how they differ.
  func holds(_ text: String, _ bytes: [UInt8]) throws -> Bool { try read(text) == bytes }

  func text(_ text: String) throws -> String { String(decoding: try read(text), as: UTF8.self) }

  // MARK: - Versions

  func versions(_ text: String) throws -> [Version] { try library.versions(try path(text)) }

  func version(_ text: String, _ number: Int64) throws -> String {
    var bytes: [UInt8] = []
    try library.readVersion(try path(text), number: number) { bytes += $0 }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Compacts after a long time in which nothing was done here: the clock is believed a day later.
  func compactAfterLong() throws -> CompactReport {
    let report = try library.compact { _ in }
    #expect(report.isClockDoubted && report.versionsThinned == 0)
    clock.advance(86_400)
    return try library.compact { _ in }
  }

  func autosave() { library.autosaveInSteps() }

  var chunkCount: Int { get throws { try library.check { _ in }.chunks } }
}

/// A clock that stands still until it is moved.
final class TestClock: Sendable {
  private struct State {
    var time: Timestamp
    var ticks: Bool
  }

  private let state: Mutex<State>

  /// - Parameter ticks: whether it is a nanosecond later each time that somebody looks, as no two things are done at one
  ///   time.
  init(_ time: Timestamp = Timestamp(seconds: 1_800_000_000), ticks: Bool = false) {
    state = Mutex(State(time: time, ticks: ticks))
  }

  var now: Timestamp {
    state.withLock {
      if $0.ticks { $0.time.nanoseconds += 1 }
      return $0.time
    }
  }

  /// Has it tick from now on, or not any more.
  func ticks(_ ticks: Bool) { state.withLock { $0.ticks = ticks } }

  func advance(_ seconds: Int64) { advance(milliseconds: seconds * 1000) }

  func advance(milliseconds: Int64) { state.withLock { $0.time.nanoseconds += milliseconds * 1_000_000 } }
}

/// SplitMix64 from `SHEAF_SEED`, or a new seed that every failure prints.
struct SeededRandom: RandomNumberGenerator {
  let seed: UInt64
  private var state: UInt64

  init() {
    self.init(seed: ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max))
  }

  init(seed: UInt64) {
    self.seed = seed
    state = seed
  }

  /// What a failed expectation says.
  var note: Comment { "SHEAF_SEED=\(seed)" }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Bytes without a pattern, so that no two chunks are equal.
  mutating func bytes(_ count: Int) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: (count + 7) / 8 * 8)
    result.withUnsafeMutableBytes { raw in
      for word in 0..<(raw.count / 8) { raw.storeBytes(of: next(), toByteOffset: word * 8, as: UInt64.self) }
    }
    result.removeLast(result.count - count)
    return result
  }
}

extension Library {
  /// All bytes of a version, or of the current contents where `number` is nil, in pieces.
  func readVersion(_ path: ItemPath, number: Int64?, into sink: (UnsafeRawBufferPointer) throws -> Void) throws {
    try readAll(try versionReader(path, number: number), into: sink)
  }

  func readAll(_ reader: VersionReader, into sink: (UnsafeRawBufferPointer) throws -> Void) throws {
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    var offset: Int64 = 0
    while true {
      let count = try buffer.withUnsafeMutableBytes { try read(reader, at: offset, into: $0) }
      guard count > 0 else { return }
      try buffer.withUnsafeBytes { try sink(UnsafeRawBufferPointer(rebasing: $0.prefix(count))) }
      offset += Int64(count)
    }
  }
}
