import Glibc

/// One of the two file systems with its open handles. Outcomes are texts, equal where the two behave alike.
final class World {
  let system: any FileSystem
  private var handles: [Int: any OpenFile] = [:]

  init(_ system: any FileSystem) { self.system = system }

  func closeAll() throws {
    for handle in handles.values { try handle.close() }
    handles = [:]
  }

  /// Takes a step; returns its result, or its errno's name.
  func apply(_ operation: Operation) throws -> String {
    do {
      return try perform(operation)
    } catch let failure as Errno {
      return Errno.name(failure.code)
    }
  }

  private func perform(_ operation: Operation) throws -> String {
    switch operation {
    case .open(let slot, let path, let flags, let mode):
      // Fifos would wait for their other end.
      let opened = try system.open(path, flags | O_NONBLOCK, mode: mode)
      try handles.updateValue(opened, forKey: slot)?.close()
      return "ok"
    case .mkdir(let path, let mode): try system.mkdir(path, mode: mode)
    case .rmdir(let path): try system.rmdir(path)
    case .unlink(let path): try system.unlink(path)
    case .rename(let from, let to, let flags): try system.rename(from, to, flags: flags)
    case .link(let existing, let new): try system.link(existing, new)
    case .symlink(let target, let path): try system.symlink(target, at: path)
    case .readlink(let path): return try system.readlink(path).description
    case .mknod(let path): try system.mknod(path, mode: S_IFIFO | 0o600, device: 0)
    case .truncate(let path, let size): try system.truncate(path, size)
    case .chmod(let path, let mode): try system.chmod(path, mode)
    case .utimens(let path, let time, let following):
      try system.utimens(path, accessed: .set(time), modified: .set(time), following: following)
    case .setxattr(let path, let name, let count, let seed, let flags):
      try system.setxattr(path, name, pattern(count, seed: seed), flags: flags)
    case .getxattr(let path, let name): return World.brief(try system.getxattr(path, name))
    case .removexattr(let path, let name): try system.removexattr(path, name)
    case .lstat(let path): return World.describe(try system.lstat(path))
    case .list(let path): return try listing(path)
    default: return try performOnHandle(operation)
    }
    return "ok"
  }

  private func performOnHandle(_ operation: Operation) throws -> String {
    guard let handle = handles[operation.slot] else { return "no handle" }
    switch operation {
    case .close(let slot): try handles.removeValue(forKey: slot)!.close()
    case .read(_, let count): return World.brief(try handle.read(count))
    case .pread(_, let offset, let count): return World.brief(try handle.pread(count, at: offset))
    case .write(_, let count, let seed): return "\(try handle.write(pattern(count, seed: seed)))"
    case .pwrite(_, let offset, let count, let seed):
      return "\(try handle.pwrite(pattern(count, seed: seed), at: offset))"
    case .seek(_, let offset, let whence):
      // Every file system has positions of its own in folders.
      guard try handle.status().kind == .file else { return "not a file" }
      return "\(try handle.seek(offset, whence))"
    case .ftruncate(_, let size): try handle.truncate(size)
    case .allocate(_, let mode, let offset, let count): try handle.allocate(mode, offset, count)
    case .fsync: try handle.synchronize(dataOnly: false)
    case .fstat: return World.describe(try handle.status())
    case .fchmod(_, let mode): try handle.chmod(mode)
    case .copy(_, let offset, let other, let offset2, let count):
      guard let target = handles[other] else { return "no handle" }
      var done = 0
      while done < count {
        let part = try handle.copyRange(offset + Int64(done), to: target, offset2 + Int64(done), count - done)
        guard part > 0 else { break }
        done += part
      }
      return "\(done)"
    case .store(_, let offset, let count, let seed): return try store(handle, offset, pattern(count, seed: seed))
    default: preconditionFailure("\(operation) has no handle")
    }
    return "ok"
  }

  /// Stores into a mapping, if the file reaches that far: past its end a store gets SIGBUS.
  private func store(_ handle: any OpenFile, _ offset: Int, _ bytes: [UInt8]) throws -> String {
    let status = try handle.status()
    guard status.kind == .file, let descriptor = handle.descriptor, Int(status.size) >= offset + bytes.count else {
      return "too short"
    }
    let start = offset & ~4095
    let length = offset + bytes.count - start
    let map = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, start)
    guard let map, map != MAP_FAILED else { throw Errno.last("mmap") }
    map.advanced(by: offset - start).copyMemory(from: bytes, byteCount: bytes.count)
    try check(msync(map, length, Int32(MS_SYNC)), "msync")
    try check(munmap(map, length), "munmap")
    return "ok"
  }

  private func listing(_ path: Path) throws -> String {
    let folder = try system.openFolder(path)
    var names: [String] = []
    while let entry = try folder.next() { names.append("\(entry.name)") }
    try folder.close()
    return names.sorted().joined(separator: " ")
  }

  /// The whole tree, with a text for each path.
  func tree() throws -> [Path: String] {
    var tree: [Path: String] = [:]
    try collect("", into: &tree)
    return tree
  }

  private func collect(_ folder: Path, into tree: inout [Path: String]) throws {
    for name in try system.names(folder) {
      let path = folder / name
      let status = try system.lstat(path)
      var text = World.describe(status)
      switch status.kind {
      case .symlink: text += " to \(try system.readlink(path))"
      case .file:
        text += " \(World.describe(try attributes(path))) \(World.brief(try system.contents(path)))"
      case .folder:
        text += " \(World.describe(try attributes(path)))"
        try collect(path, into: &tree)
      default: break
      }
      tree[path] = text
    }
  }

  /// The user's own attributes.
  func attributes(_ path: Path) throws -> [String: [UInt8]] {
    var all: [String: [UInt8]] = [:]
    for name in try system.ownAttributes(path) { all[name.description] = try system.getxattr(path, name) }
    return all
  }

  /// The facts that two file systems must agree on. Times count if they were set: then they lie before 2001.
  static func describe(_ status: FileStatus) -> String {
    let size = status.kind == .folder ? "" : " \(status.size) bytes"
    // The kernel keeps the times of a fifo that is written to, and does so for its own file systems alone.
    let isSet = status.modified.seconds < 1_000_000_000 && status.kind != .fifo
    let time = isSet ? " of \(status.modified)" : ""
    let mode = String(status.mode, radix: 8)
    return "\(status.kind) \(mode) \(status.links) links \(status.owner):\(status.group)\(size)\(time)"
  }

  /// The names with shortened values, sorted.
  static func describe(_ attributes: [String: [UInt8]]) -> String {
    let sorted = attributes.sorted { $0.key < $1.key }
    return "[" + sorted.map { "\($0.key)=\(brief($0.value))" }.joined(separator: ", ") + "]"
  }

  private static func brief(_ bytes: [UInt8]) -> String {
    return "\(bytes.count) bytes #\(String(fingerprint(bytes), radix: 16))"
  }
}

extension Operation {
  /// The place of the handle that the step is about.
  var slot: Int {
    switch self {
    case .close(let slot), .read(let slot, _), .pread(let slot, _, _), .write(let slot, _, _),
      .pwrite(let slot, _, _, _), .seek(let slot, _, _), .ftruncate(let slot, _), .allocate(let slot, _, _, _),
      .fsync(let slot), .fstat(let slot), .fchmod(let slot, _), .copy(let slot, _, _, _, _),
      .store(let slot, _, _, _), .open(let slot, _, _, _):
      slot
    default: -1
    }
  }
}
