import Glibc
import Synchronization

/// An open folder of a kernel, read by one thread at a time.
final class PlainFolder: OpenFolder, @unchecked Sendable {
  private let path: Path
  private let stream: OpaquePointer
  private let isOpen = Mutex(true)

  init(_ stream: OpaquePointer, _ path: Path) {
    self.stream = stream
    self.path = path
  }

  deinit {
    if isOpen.withLock({ $0 }) { closedir(stream) }
  }

  func next() throws(Errno) -> FolderEntry? {
    errno = 0
    guard let entry = readdir(stream) else {
      guard errno == 0 else { throw .last("readdir \(path)") }
      return nil
    }
    let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
      pointer.withMemoryRebound(to: UInt8.self, capacity: 256) {
        Array(UnsafeBufferPointer(start: $0, count: strlen(pointer)))
      }
    }
    return FolderEntry(
      name: Path(name), inode: UInt64(entry.pointee.d_ino),
      kind: FileStatus.Kind(rawValue: UInt32(entry.pointee.d_type) << 12), position: telldir(stream))
  }

  func rewind() { rewinddir(stream) }
  func seek(_ position: Int) { seekdir(stream, position) }

  func status() throws(Errno) -> FileStatus {
    var facts = Glibc.stat()
    try check(fstat(dirfd(stream), &facts), "fstat \(path)")
    return FileStatus(facts)
  }

  func synchronize() throws(Errno) { try check(fsync(dirfd(stream)), "fsync \(path)") }

  func close() throws(Errno) {
    isOpen.withLock { open in
      precondition(open, "\(path) is closed already")
      open = false
    }
    try check(closedir(stream), "closedir \(path)")
  }
}
