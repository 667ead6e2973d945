import Glibc

/// Calls with defaults for arguments that most cases do not set, and a few compound steps.
extension FileSystem {
  func open(_ path: Path, _ flags: Int32) throws(Errno) -> any OpenFile { try open(path, flags, mode: 0o644) }
  func mkdir(_ path: Path) throws(Errno) { try mkdir(path, mode: 0o755) }
  func rename(_ from: Path, _ to: Path) throws(Errno) { try rename(from, to, flags: 0) }
  func link(_ existing: Path, _ new: Path) throws(Errno) { try link(existing, new, following: false) }
  func chown(_ path: Path, user: UInt32?, group: UInt32?) throws(Errno) {
    try chown(path, user: user, group: group, following: true)
  }
  func utimens(_ path: Path, accessed: TimeChange, modified: TimeChange) throws(Errno) {
    try utimens(path, accessed: accessed, modified: modified, following: true)
  }
  func getxattr(_ path: Path, _ name: Path) throws(Errno) -> [UInt8] {
    try getxattr(path, name, following: true)
  }
  func setxattr(_ path: Path, _ name: Path, _ value: [UInt8], flags: Int32 = 0) throws(Errno) {
    try setxattr(path, name, value, flags: flags, following: true)
  }
  func removexattr(_ path: Path, _ name: Path) throws(Errno) { try removexattr(path, name, following: true) }

  /// The attributes that are the user's own, sorted by name.
  func ownAttributes(_ path: Path) throws -> [Path] {
    try listxattr(path, following: true)
      .filter { $0.bytes.starts(with: "user.".utf8) && !$0.bytes.starts(with: "user.sheaf.".utf8) }
      .sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
  }

  /// Makes or empties a file and writes `bytes`.
  func put(_ path: Path, _ bytes: [UInt8] = [], mode: UInt32 = 0o644) throws {
    let file = try open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: mode)
    try file.writeAll(bytes)
    try file.close()
  }

  func put(_ path: Path, _ text: String, mode: UInt32 = 0o644) throws {
    try put(path, Array(text.utf8), mode: mode)
  }

  /// All bytes of a file.
  func contents(_ path: Path) throws -> [UInt8] {
    let file = try open(path, O_RDONLY)
    let bytes = try file.readAll()
    try file.close()
    return bytes
  }

  func text(_ path: Path) throws -> String { String(decoding: try contents(path), as: UTF8.self) }

  func exists(_ path: Path) throws -> Bool {
    do {
      _ = try lstat(path)
      return true
    } catch  where error.code == ENOENT {
      return false
    }
  }

  /// The names in a folder, `.` and `..` left out, in the order in which they came.
  func names(_ path: Path = "") throws -> [Path] {
    let folder = try openFolder(path)
    var names: [Path] = []
    while let entry = try folder.next() {
      if entry.name != ".", entry.name != ".." { names.append(entry.name) }
    }
    try folder.close()
    return names
  }

  /// Makes file after file until one has a change time later than `path`'s, so that a change from now on shows.
  func passTime(since path: Path) throws {
    let before = try lstat(path).changed
    let clock = ContinuousClock.now
    while clock.duration(to: .now) < .seconds(10) {
      try put(".tick")
      let now = try lstat(".tick").changed
      try unlink(".tick")
      if now > before { return }
    }
    throw Deviation("the change time of new files stands still at \(before)", #fileID, #line)
  }
}

extension OpenFile {
  func writeAll(_ bytes: [UInt8]) throws {
    var rest = bytes
    while !rest.isEmpty { rest.removeFirst(try write(rest)) }
  }

  func pwriteAll(_ bytes: [UInt8], at offset: Int64) throws {
    var done = 0
    while done < bytes.count { done += try pwrite(Array(bytes[done...]), at: offset + Int64(done)) }
  }

  /// The bytes from the handle's position on.
  func readAll() throws -> [UInt8] {
    var all: [UInt8] = []
    while true {
      let part = try read(1 << 20)
      guard !part.isEmpty else { return all }
      all += part
    }
  }
}

/// `count` bytes that are the same each time and repeat nowhere soon.
public func pattern(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
  var random = SeededRandom(seed: seed)
  let words = (0..<(count + 7) / 8).map { _ in random.next() }
  return words.withUnsafeBytes { Array($0.prefix(count)) }
}

public func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

/// A number that differs for different bytes, but by chance: FNV-1a of words of eight.
public func fingerprint(_ bytes: [UInt8]) -> UInt64 {
  var hash: UInt64 = 0xcbf2_9ce4_8422_2325
  bytes.withUnsafeBytes { raw in
    for offset in stride(from: 0, to: raw.count & ~7, by: 8) {
      hash = (hash ^ raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) &* 0x100_0000_01b3
      hash ^= hash >> 29
    }
    for offset in (raw.count & ~7)..<raw.count { hash = (hash ^ UInt64(raw[offset])) &* 0x100_0000_01b3 }
  }
  return hash
}
