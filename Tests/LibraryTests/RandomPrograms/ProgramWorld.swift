import Foundation
import Glibc
import SheafModel
import SheafStore

@testable import SheafLibrary

/// A library in which a random program's steps are done: what belongs to the people lies in `Documents` of alice, and
/// every path of a step is relative to that, whoever does it. What was given to bob lies below `@bob`.
///
/// Nothing happens but by steps: the library has no threads of its own, and the clock moves a little with each step.
final class ProgramWorld {
  /// An open file of a step's slot.
  struct OpenSlot {
    let handle: UInt64
    let ino: Int64
    let actor: ProgramStep.Actor
    let mayWrite: Bool
    /// Where what it has read or written last ends.
    var known: Int64 = 0
  }

  let clock = TestClock(ticks: true)
  private let folder: String
  private var generation = 0
  private(set) var library: Library
  let accounts: [People.Name: Int64]
  var slots: [Int: OpenSlot] = [:]
  private(set) var written = 0

  static let people: [People.Name] = [.alice, .bob, .carol]
  /// Three programs that live, and one that ended.
  private static let processes: [Int32] = [getpid(), getppid(), 1, 4_300_000]

  init() throws {
    let place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/var/tmp"
    var template = Array("\(place)/sheaf-program-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw SheafError(.inputOutput) }
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    library = try Self.open(folder, 0, clock)
    var accounts: [People.Name: Int64] = [:]
    for name in Self.people {
      _ = try library.addAccount(name.handle, name: nil, uid: name.uid, gid: name.uid)
      accounts[name] = try library.number(of: name.handle)
    }
    self.accounts = accounts
  }

  private static func open(_ folder: String, _ generation: Int, _ clock: TestClock) throws -> Library {
    let path = "\(folder)/\(generation)/library.sqlite"
    try FileManager.default.createDirectory(atPath: "\(folder)/\(generation)", withIntermediateDirectories: true)
    return try Library.open(LibraryLocation(path: path), keepsItselfUp: false) { clock.now }
  }

  /// Closes the library and removes it.
  func remove() {
    try? library.close()
    try? FileManager.default.removeItem(atPath: folder)
  }

  func account(_ actor: ProgramStep.Actor) -> Int64 { accounts[actor.person] ?? 0 }

  func process(_ actor: ProgramStep.Actor) -> Int32 { Self.processes[actor.program % Self.processes.count] }

  func caller(_ actor: ProgramStep.Actor) -> Caller {
    Caller(
      uid: actor.person.uid, gid: actor.person.uid, umask: 0o022, thread: process(actor), door: 0,
      account: account(actor), user: .init(uid: actor.person.uid, gid: actor.person.uid, ownsAll: true)
    ) { [] }
  }

  // MARK: - Paths

  /// Whose `Documents` a path begins in, and its names below that.
  static func parts(_ path: String) -> (owner: People.Name, names: ArraySlice<String>) {
    let names = path.split(separator: "/").map(String.init)
    guard let first = names.first, first.hasPrefix("@"), let owner = People.Name(rawValue: String(first.dropFirst()))
    else { return (.alice, names[...]) }
    return (owner, names.dropFirst())
  }

  /// The path of what lies at a place in somebody's `Documents`.
  func path(_ path: String, of owner: Int64) -> String {
    guard let name = accounts.first(where: { $0.value == owner })?.key, name != .alice else { return path }
    return path.isEmpty ? "@\(name.rawValue)" : "@\(name.rawValue)/\(path)"
  }

  /// The inode at a path; nil where there is none.
  func find(_ path: String) -> Int64? {
    let (owner, names) = Self.parts(path)
    guard var ino = try? library.documents(of: owner.handle) else { return nil }
    for name in names {
      guard let found = try? library.lookup(ino, Array(name.utf8), .library) else { return nil }
      ino = found.ino
    }
    return ino
  }

  func ino(_ path: String) throws -> Int64 {
    guard let ino = find(path) else { throw SheafError(.notFound, subject: path) }
    return ino
  }

  func place(_ path: String) throws -> (parent: Int64, name: [UInt8]) {
    let parts = path.split(separator: "/")
    return (try ino(parts.dropLast().joined(separator: "/")), Array((parts.last ?? "").utf8))
  }

  /// The path as its person names it in a command: below the entry of `Shared` by which they see it.
  func commandPath(_ path: String, _ actor: ProgramStep.Actor) throws -> ItemPath {
    let (owner, parts) = Self.parts(path)
    if actor.person == owner {
      return try ItemPath(account: owner.handle, (["Documents"] + parts).joined(separator: "/"))
    }
    let entries = try library.sharedEntries(account(actor), owner: accounts[owner] ?? 0)
    for count in stride(from: parts.count, to: 0, by: -1) {
      guard let ino = find(self.path(parts.prefix(count).joined(separator: "/"), of: accounts[owner] ?? 0)),
        let entry = entries.first(where: { $0.ino == ino })
      else { continue }
      let rest = parts.dropFirst(count).map { "/" + $0 }.joined()
      let name = String(decoding: entry.name, as: UTF8.self)
      return try ItemPath(account: actor.person.handle, "Shared/\(owner.handle)/\(name)\(rest)")
    }
    throw SheafError(.notFound, subject: path)
  }

  // MARK: - Contents

  /// A text that was never written before.
  func freshText() -> String {
    written += 1
    return "<\(written)>"
  }

  /// What an account has of a file's contents now, looked at without being a reader of it.
  func contents(_ handle: UInt64) -> String? {
    library.locked {
      guard let file = library.files[handle], var working = file.draft.working else { return nil }
      var bytes = [UInt8](repeating: 0, count: Int(working.size))
      guard (try? bytes.withUnsafeMutableBytes { try working.read(at: 0, into: $0, from: library) }) != nil else {
        return nil
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  func write(
    _ text: String, _ slot: OpenSlot, at offset: Int64, appends: Bool = false, isWriteBack: Bool = false
  ) throws {
    try Array(text.utf8).withUnsafeBytes {
      try library.write(slot.handle, at: offset, $0, appends: appends, isWriteBack: isWriteBack)
    }
  }

  func read(_ slot: OpenSlot) throws -> String {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = try buffer.withUnsafeMutableBytes { try library.read(slot.handle, at: 0, into: $0) }
    return String(decoding: buffer.prefix(count), as: UTF8.self)
  }

  func read(_ reader: VersionReader) throws -> String {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = try buffer.withUnsafeMutableBytes { try library.read(reader, at: 0, into: $0) }
    return String(decoding: buffer.prefix(count), as: UTF8.self)
  }

  /// Opens as open(2) does, making the file with O_CREAT.
  func open(_ path: String, _ flags: Int32, _ actor: ProgramStep.Actor) throws -> OpenSlot {
    let caller = caller(actor)
    let mayWrite = flags & O_ACCMODE != O_RDONLY
    if flags & O_CREAT != 0, find(path) == nil {
      let (parent, name) = try place(path)
      let made = try library.create(parent, name, mode: 0o644, flags: flags, caller)
      return OpenSlot(handle: made.handle, ino: made.attributes.ino, actor: actor, mayWrite: mayWrite)
    }
    let ino = try ino(path)
    return OpenSlot(
      handle: try library.open(ino, flags: flags, caller), ino: ino, actor: actor, mayWrite: mayWrite)
  }

  func release(_ slot: OpenSlot) { try? library.release(slot.handle) }

  // MARK: - Ends of the process

  /// Ends the library's process in order, and opens the library with another one.
  func restart() throws {
    slots = [:]
    try library.close()
    library = try Self.open(folder, generation, clock)
  }

  /// Kills the library's process: what it recorded is there for the next one, and nothing else.
  func crash() throws {
    slots = [:]
    let former = library
    let old = "\(folder)/\(generation)/"
    generation += 1
    try former.copyAsKilled(to: "\(folder)/\(generation)")
    library = try Self.open(folder, generation, clock)
    try? former.close()
    try? FileManager.default.removeItem(atPath: old)
  }
}

extension ProgramWorld {
  func writerCount(of ino: Int64, for account: Int64) -> Int {
    library.locked { library.inodes[ino]?.drafts.first { $0.account == account }?.writerCount ?? 0 }
  }

  /// The links of an inode, and whether `name` is not its oldest one.
  func names(of ino: Int64) -> (count: Int64, oldest: (parent: Int64, name: [UInt8]))? {
    library.locked { (try? library.inode(ino)).map { ($0.row.nlink, ($0.row.parent, $0.row.name)) } }
  }
}
