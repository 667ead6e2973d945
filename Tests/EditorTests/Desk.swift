import Foundation
import MountKit
import SheafLibrary
import SheafModel
import Synchronization

/// A library without a mount, and a clock that only the test moves.
final class Desk: Sendable {
  let folder: TemporaryFolder
  let path: String
  private let opened: Mutex<Library?>
  private let now: NowClock

  /// Time that stands still until it is moved.
  final class NowClock: Sendable {
    let time = Mutex(Timestamp(seconds: 1_700_000_000))
  }

  init() throws {
    folder = try TemporaryFolder()
    path = "\(folder.path)/library.sqlite"
    now = NowClock()
    opened = Mutex(nil)
    try open()
    _ = try library.addAccount(AccountHandle("alice@example.com"), name: nil)
  }

  deinit { try? close() }

  var library: Library {
    guard let library = opened.withLock({ $0 }) else { fatalError("the library is closed") }
    return library
  }

  func open() throws {
    let now = now
    let library = try Library.open(LibraryLocation(path: path)) { now.time.withLock { $0 } }
    opened.withLock { $0 = library }
  }

  func close() throws {
    let library = opened.withLock { library in
      defer { library = nil }
      return library
    }
    try library?.close()
  }

  /// Lets time pass.
  func wait(_ seconds: Int64) {
    now.time.withLock { $0 = Timestamp(nanoseconds: $0.nanoseconds + seconds * 1_000_000_000) }
  }

  /// A program of the given number, which must not be a process of this system to count as ended.
  func program(_ number: Int32) -> Program { Program(desk: self, process: number) }

  /// What `sheaf.change` and `sheaf.persistence` events say, once the library settled what is due.
  func events() throws -> [String] {
    library.keepUp()
    return try query(
      """
      SELECT type || ' ' || coalesce(json_extract(data, '$.previousPath') || ' ', '') || json_extract(data, '$.item.path')
      FROM events ORDER BY sequence
      """)
  }

  /// Asks the library file, once what changed a moment ago is committed for others to read.
  func query(_ sql: String) throws -> [String] {
    _ = try library.counts()
    let text = try Command(["sqlite3", "-cmd", ".timeout 5000", path, sql]).succeed().text
    return text.isEmpty ? [] : text.components(separatedBy: "\n")
  }

  func check() throws -> [String] { try library.check { _ in }.problems }
}

/// What one process does in `Documents` of a ``Desk``.
struct Program: Sendable {
  let desk: Desk
  let process: Int32

  var caller: Caller { Caller(uid: 0, gid: 0, umask: 0o022, thread: process, door: 0, groups: { [] }) }
  var documents: Int64 {
    get throws { try desk.library.documents(of: AccountHandle("alice@example.com")) }
  }

  private func bytes(_ name: String) -> [UInt8] { Array(name.utf8) }

  func ino(_ name: String) throws -> Int64 { try desk.library.lookup(documents, bytes(name), caller).ino }

  /// Makes a file and closes it.
  func make(_ name: String, _ text: String, mode: UInt32 = 0o644) throws {
    let handle = try desk.library.create(
      documents, bytes(name), mode: mode, flags: O_WRONLY | O_CREAT | O_EXCL, caller
    ).handle
    try write(handle, text)
    try close(handle)
  }

  func open(_ name: String, _ flags: Int32) throws -> UInt64 { try desk.library.open(ino(name), flags: flags, caller) }

  func write(_ handle: UInt64, _ text: String) throws {
    try bytes(text).withUnsafeBytes { try desk.library.write(handle, at: 0, $0) }
  }

  func close(_ handle: UInt64) throws {
    try desk.library.flush(handle)
    try desk.library.release(handle)
  }

  /// Saves in place, as `>` does.
  func overwrite(_ name: String, _ text: String) throws {
    let handle = try open(name, O_WRONLY | O_TRUNC)
    try write(handle, text)
    try close(handle)
  }

  func rename(_ name: String, _ newName: String, _ mode: Library.RenameMode = .replace) throws {
    try desk.library.rename(documents, bytes(name), to: documents, bytes(newName), mode, caller)
  }

  func link(_ name: String, _ newName: String) throws {
    _ = try desk.library.link(ino(name), documents, bytes(newName), caller)
  }

  func unlink(_ name: String) throws { try desk.library.unlink(documents, bytes(name), caller) }

  func chmod(_ name: String, _ mode: UInt32) throws {
    _ = try desk.library.setAttributes(ino(name), .init(mode: mode), handle: nil, caller)
  }

  func mode(_ name: String) throws -> UInt32 { try desk.library.attributes(ino(name), .library).mode & 0o7777 }

  func text(_ name: String) throws -> String {
    let handle = try open(name, O_RDONLY)
    defer { try? desk.library.release(handle) }
    return try read(handle)
  }

  func read(_ handle: UInt64) throws -> String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = try buffer.withUnsafeMutableBytes { try desk.library.read(handle, at: 0, into: $0) }
    return String(decoding: buffer[..<count], as: UTF8.self)
  }

  /// The id, without asking the library for it, which would make the file known.
  func id(_ name: String) throws -> String {
    let rows = try desk.query(
      "SELECT lower(hex(uuid)) FROM items JOIN inodes ON items.id = inodes.item WHERE inodes.ino = \(ino(name))")
    return rows.first ?? ""
  }

  /// Asks for the id, as getfattr(1) does.
  @discardableResult
  func ask(_ name: String) throws -> String {
    String(decoding: try desk.library.xattr(ino(name), bytes("user.sheaf.id"), caller), as: UTF8.self)
  }

  /// Number and text of each version.
  func versions(_ name: String) throws -> [String] {
    let path = try ItemPath(account: AccountHandle("alice@example.com"), "Documents/" + name)
    return try desk.library.versions(path).map { version in
      var all: [UInt8] = []
      try desk.library.readVersion(path, number: version.number) { all += Array($0) }
      return String(decoding: all, as: UTF8.self)
    }
  }

  var names: [String] {
    get throws {
      try desk.library.list(documents, after: 0, limit: 10_000, .library).map {
        String(decoding: $0.name, as: UTF8.self)
      }
      .sorted()
    }
  }

  /// What can be recovered.
  var deleted: [String] {
    get throws { try desk.library.deleted(AccountHandle("alice@example.com"), below: nil).map(\.path).sorted() }
  }
}

/// Tests of what three programs do at one desk.
protocol ProgramTests {
  var desk: Desk { get }
}

extension ProgramTests {
  // Numbers of processes that there are none of.
  var maker: Program { desk.program(5_000_001) }
  var editor: Program { desk.program(5_000_002) }
  var other: Program { desk.program(5_000_003) }

  /// A document that is no longer young.
  func establish(_ name: String = "doc", _ text: String = "old") throws -> String {
    try maker.make(name, text, mode: 0o640)
    desk.wait(20)
    _ = try desk.events()
    return try maker.id(name)
  }
}

extension Library {
  /// All bytes of a version, or of the current contents where `number` is nil, in pieces.
  func readVersion(_ path: ItemPath, number: Int64?, into sink: (UnsafeRawBufferPointer) throws -> Void) throws {
    let reader = try versionReader(path, number: number)
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
