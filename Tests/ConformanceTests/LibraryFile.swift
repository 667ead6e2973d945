import ConformanceKit
import Glibc
import SheafLibrary
import SheafModel
import Synchronization

/// An open file of a library, with the position that a kernel would keep.
final class LibraryFile: ConformanceKit.OpenFile {
  private let directory: LibraryDirectory
  private let ino: Int64
  /// Nil for a folder, which can be opened and not read.
  private let handle: UInt64?
  private let flags: Int32
  private let position = Mutex<Int64>(0)
  private let isOpen = Mutex(true)

  init(_ directory: LibraryDirectory, _ ino: Int64, _ handle: UInt64?, _ flags: Int32) {
    self.directory = directory
    self.ino = ino
    self.handle = handle
    self.flags = flags
  }

  deinit {
    if let handle, isOpen.withLock({ $0 }) { try? directory.library.release(handle) }
  }

  var descriptor: Int32? { nil }
  private var canWrite: Bool { flags & O_ACCMODE != O_RDONLY }

  private var file: UInt64 {
    get throws {
      guard let handle else { throw SheafError(.isDirectory) }
      return handle
    }
  }

  private func failing<Value>(_ operation: String, _ body: () throws -> Value) throws(ConformanceKit.Errno) -> Value {
    try directory.failing("\(operation) of inode \(ino)", body)
  }

  func pread(_ count: Int, at offset: Int64) throws(ConformanceKit.Errno) -> [UInt8] {
    try failing("read") {
      // The kernel knows what the handle is for.
      if flags & O_ACCMODE == O_WRONLY { throw SheafError(.badDescriptor) }
      var buffer = [UInt8](repeating: 0, count: count)
      let result = try buffer.withUnsafeMutableBytes { try directory.library.read(file, at: offset, into: $0) }
      return Array(buffer[..<result])
    }
  }

  func pwrite(_ bytes: [UInt8], at offset: Int64) throws(ConformanceKit.Errno) -> Int {
    try failing("write") {
      if !canWrite { throw SheafError(.badDescriptor) }
      try clearSetID()
      try bytes.withUnsafeBytes { try directory.library.write(file, at: offset, $0, appends: flags & O_APPEND != 0) }
      return bytes.count
    }
  }

  func read(_ count: Int) throws(ConformanceKit.Errno) -> [UInt8] {
    let bytes = try pread(count, at: position.withLock { $0 })
    position.withLock { $0 += Int64(bytes.count) }
    return bytes
  }

  func write(_ bytes: [UInt8]) throws(ConformanceKit.Errno) -> Int {
    let count = try pwrite(bytes, at: position.withLock { $0 })
    let size = try status().size
    position.withLock { $0 = flags & O_APPEND != 0 ? size : $0 + Int64(count) }
    return count
  }

  func seek(_ offset: Int64, _ whence: Int32) throws(ConformanceKit.Errno) -> Int64 {
    let size = try status().size
    return try failing("lseek") {
      let target: Int64
      switch whence {
      case SEEK_SET: target = offset
      case SEEK_CUR: target = position.withLock { $0 } + offset
      case SEEK_END: target = size + offset
      case 3: target = try directory.library.seek(file, offset, hole: false)
      case 4: target = try directory.library.seek(file, offset, hole: true)
      default: throw SheafError(.invalid)
      }
      guard target >= 0 else { throw SheafError(.invalid) }
      position.withLock { $0 = target }
      return target
    }
  }

  func status() throws(ConformanceKit.Errno) -> FileStatus {
    try failing("fstat") { FileStatus(try directory.library.attributes(ino, .library)) }
  }

  func truncate(_ size: Int64) throws(ConformanceKit.Errno) {
    try failing("ftruncate") {
      if !canWrite { throw SheafError(.invalid) }
      try directory.change(ino, .init(size: size), handle: handle)
    }
  }

  func synchronize(dataOnly: Bool) throws(ConformanceKit.Errno) {
    try failing("fsync") { try directory.library.fsync(ino) }
  }

  func allocate(_ mode: Int32, _ offset: Int64, _ length: Int64) throws(ConformanceKit.Errno) {
    try failing("fallocate") {
      let allocation: Library.Allocation
      switch mode {
      case 0: allocation = .preallocate(keepsSize: false)
      case 1: allocation = .preallocate(keepsSize: true)
      case 3: allocation = .punchHole
      case 16: allocation = .zero(keepsSize: false)
      case 17: allocation = .zero(keepsSize: true)
      default: throw SheafError(.notSupported)
      }
      guard offset >= 0, length > 0 else { throw SheafError(.invalid) }
      let (end, overflow) = offset.addingReportingOverflow(length)
      if overflow { throw SheafError(.tooLarge) }
      try clearSetID()
      try directory.library.allocate(file, offset..<end, allocation)
    }
  }

  /// A change of contents takes set-id bits away; the kernel asks for that by a SETATTR that changes nothing.
  private func clearSetID() throws {
    guard try directory.library.attributes(ino, .library).mode & 0o6000 != 0 else { return }
    try directory.change(ino, .init(), handle: handle)
  }

  func copyRange(
    _ offset: Int64, to target: any ConformanceKit.OpenFile, _ targetOffset: Int64, _ count: Int
  ) throws(ConformanceKit.Errno) -> Int {
    try failing("copy_file_range") {
      guard let target = target as? LibraryFile else { throw SheafError(.crossDevice) }
      if target.flags & O_APPEND != 0 { throw SheafError(.badDescriptor) }
      try target.clearSetID()
      return Int(
        try directory.library.copy(
          from: file, at: offset, to: target.file, at: targetOffset, count: Int64(count)))
    }
  }

  func chmod(_ mode: UInt32) throws(ConformanceKit.Errno) {
    try failing("fchmod") {
      try directory.change(ino, .init(mode: mode), handle: handle)
    }
  }

  func chown(user: UInt32?, group: UInt32?) throws(ConformanceKit.Errno) {
    try failing("fchown") {
      let found = try directory.library.attributes(ino, .library)
      try directory.change(ino, directory.ownership(user, group, of: found), handle: handle)
    }
  }

  func utimens(accessed: TimeChange, modified: TimeChange) throws(ConformanceKit.Errno) {
    try failing("futimens") {
      try directory.change(ino, .init(atime: .init(accessed), mtime: .init(modified)))
    }
  }

  func getxattr(_ name: Path) throws(ConformanceKit.Errno) -> [UInt8] {
    try failing("fgetxattr") { try directory.library.xattr(ino, name.bytes, directory.credentials) }
  }

  func setxattr(_ name: Path, _ value: [UInt8], flags: Int32) throws(ConformanceKit.Errno) {
    try failing("fsetxattr") {
      let mode: Library.XattrMode = flags == 1 ? .create : flags == 2 ? .replace : .set
      try directory.library.setXattr(ino, name.bytes, value, mode, directory.credentials)
    }
  }

  func link(to path: Path) throws(ConformanceKit.Errno) {
    try failing("link") {
      let (parent, name) = try directory.place(path)
      _ = try directory.library.link(ino, parent, name, directory.credentials)
    }
  }

  func close() throws(ConformanceKit.Errno) {
    isOpen.withLock { open in
      precondition(open, "inode \(ino) is closed already")
      open = false
    }
    guard let handle else { return }
    try failing("close") {
      defer { try? directory.library.release(handle) }
      try directory.library.flush(handle)
    }
  }
}

/// An open folder of a library.
final class LibraryFolder: OpenFolder {
  private let directory: LibraryDirectory
  private let ino: Int64
  /// Entries that wait to be given, and the cookie to go on after them; the dots come first.
  private let state = Mutex<(waiting: [FolderEntry], cookie: Int64?)>(([], nil))

  init(_ directory: LibraryDirectory, _ ino: Int64) {
    self.directory = directory
    self.ino = ino
  }

  func next() throws(ConformanceKit.Errno) -> FolderEntry? {
    try directory.failing("readdir of inode \(ino)") {
      try state.withLock { state in
        if state.waiting.isEmpty {
          if let cookie = state.cookie {
            state.waiting = try directory.library.list(ino, after: cookie, limit: 16, .library).map { listed in
              FolderEntry(
                name: Path(listed.name), inode: UInt64(listed.ino),
                kind: .init(rawValue: (listed.attributes?.mode ?? 0) & S_IFMT), position: Int(listed.cookie))
            }
          } else {
            var parent = ino
            if case .folder(let above) = try directory.library.parent(of: ino, .library) { parent = above }
            state.waiting = [
              FolderEntry(name: ".", inode: UInt64(ino), kind: .folder, position: Self.afterDot),
              FolderEntry(name: "..", inode: UInt64(parent), kind: .folder, position: 0),
            ]
          }
          state.cookie = state.waiting.last.map { Int64($0.position) } ?? state.cookie
        }
        return state.waiting.isEmpty ? nil : state.waiting.removeFirst()
      }
    }
  }

  func rewind() { state.withLock { $0 = ([], nil) } }

  func seek(_ position: Int) {
    rewind()
    if position == Self.afterDot { _ = try? next() } else { state.withLock { $0.cookie = Int64(position) } }
  }

  /// The position after the first entry, which no cookie is.
  private static let afterDot = -1

  func status() throws(ConformanceKit.Errno) -> FileStatus {
    try directory.failing("fstat of inode \(ino)") { FileStatus(try directory.library.attributes(ino, .library)) }
  }

  func synchronize() throws(ConformanceKit.Errno) {
    try directory.failing("fsync of inode \(ino)") { try directory.library.sync() }
  }

  func close() throws(ConformanceKit.Errno) {}
}
