import CTestSystem
import Glibc
import Synchronization

/// An open file of a kernel.
final class PlainFile: OpenFile {
  private let path: Path
  private let owner: PlainDirectory
  private let number: Int32
  private let isOpen = Mutex(true)

  init(_ number: Int32, _ path: Path, of owner: PlainDirectory) {
    self.number = number
    self.path = path
    self.owner = owner
  }

  deinit {
    if isOpen.withLock({ $0 }) { Glibc.close(number) }
  }

  var descriptor: Int32? { number }

  func read(_ count: Int) throws(Errno) -> [UInt8] {
    try filled(count, "read \(path)") { Glibc.read(number, $0, count) }
  }

  func pread(_ count: Int, at offset: Int64) throws(Errno) -> [UInt8] {
    try filled(count, "pread \(path)") { Glibc.pread(number, $0, count, Int(offset)) }
  }

  private func filled(
    _ count: Int, _ operation: @autoclosure () -> String, _ call: (UnsafeMutableRawPointer?) -> Int
  ) throws(Errno) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: count)
    let result = buffer.withUnsafeMutableBytes { call($0.baseAddress) }
    guard result >= 0 else { throw .last(operation()) }
    if result < count { buffer.removeSubrange(result...) }
    return buffer
  }

  func write(_ bytes: [UInt8]) throws(Errno) -> Int {
    let result = Glibc.write(number, bytes, bytes.count)
    guard result >= 0 else { throw .last("write \(path)") }
    return result
  }

  func pwrite(_ bytes: [UInt8], at offset: Int64) throws(Errno) -> Int {
    let result = Glibc.pwrite(number, bytes, bytes.count, Int(offset))
    guard result >= 0 else { throw .last("pwrite \(path)") }
    return result
  }

  func seek(_ offset: Int64, _ whence: Int32) throws(Errno) -> Int64 {
    let result = lseek(number, Int(offset), whence)
    guard result >= 0 else { throw .last("lseek \(path)") }
    return Int64(result)
  }

  func status() throws(Errno) -> FileStatus {
    var facts = Glibc.stat()
    try check(fstat(number, &facts), "fstat \(path)")
    return FileStatus(facts)
  }

  func truncate(_ size: Int64) throws(Errno) { try check(ftruncate(number, Int(size)), "ftruncate \(path)") }

  func synchronize(dataOnly: Bool) throws(Errno) {
    try check(dataOnly ? fdatasync(number) : fsync(number), "fsync \(path)")
  }

  func allocate(_ mode: Int32, _ offset: Int64, _ length: Int64) throws(Errno) {
    try check(sheaf_test_allocate(number, mode, Int(offset), Int(length)), "fallocate \(path)")
  }

  func copyRange(
    _ offset: Int64, to target: any OpenFile, _ targetOffset: Int64, _ count: Int
  ) throws(Errno) -> Int {
    let result = sheaf_test_copy_range(number, Int(offset), target.descriptor ?? -1, Int(targetOffset), count)
    guard result >= 0 else { throw .last("copy_file_range \(path)") }
    return result
  }

  func chmod(_ mode: UInt32) throws(Errno) { try check(fchmod(number, mode), "fchmod \(path)") }

  func chown(user: UInt32?, group: UInt32?) throws(Errno) {
    try check(fchown(number, user ?? .max, group ?? .max), "fchown \(path)")
  }

  func utimens(accessed: TimeChange, modified: TimeChange) throws(Errno) {
    try check(futimens(number, [accessed.timespec, modified.timespec]), "futimens \(path)")
  }

  func getxattr(_ name: Path) throws(Errno) -> [UInt8] {
    try readAttribute("fgetxattr \(name) of \(path)") { buffer, size in
      name.withCString { fgetxattr(number, $0, buffer, size) }
    }
  }

  func setxattr(_ name: Path, _ value: [UInt8], flags: Int32) throws(Errno) {
    try check(
      name.withCString { fsetxattr(number, $0, value, value.count, flags) }, "fsetxattr \(name) of \(path)")
  }

  func link(to path: Path) throws(Errno) {
    let result = Path("/proc/self/fd/\(number)").withCString { source in
      path.withCString { linkat(AT_FDCWD, source, owner.descriptor, $0, AT_SYMLINK_FOLLOW) }
    }
    try check(result, "link the open file to \(path)")
  }

  func close() throws(Errno) {
    isOpen.withLock { open in
      precondition(open, "\(path) is closed already")
      open = false
    }
    try check(Glibc.close(number), "close \(path)")
  }
}
