import Glibc

/// The room on the disk of a store in a file.
///
/// A store keeps back some of it, so that deletions, purges and revocations go on when contents have filled the disk.
struct StoreRoom: Sendable {
  private let path: String

  /// - Parameter path: The store's file; its log is beside it.
  init(path: String) { self.path = path }

  /// Whether there is more room than is kept back: an eighth of the disk, and not more than 64 MiB.
  ///
  /// What is in the log comes into the file, too, so it counts twice. Half of what is kept back is for the log alone,
  /// since pages of the file that are free are of no use to it. A disk that cannot be asked has room.
  ///
  /// - Parameter free: Bytes of the file's free pages; asked where the disk alone has no room.
  func isLeft(free: () throws -> Int64) -> Bool {
    var disk = statvfs()
    guard statvfs(path, &disk) == 0 else { return true }
    let block = Int64(clamping: disk.f_frsize)
    func bytes(_ blocks: UInt) -> Int64 {
      let (bytes, isTooMany) = Int64(clamping: blocks).multipliedReportingOverflow(by: block)
      return isTooMany ? .max : bytes
    }
    let kept = min(bytes(disk.f_blocks) / 8, 64 << 20)
    var log = stat()
    let logged = stat(path + "-wal", &log) == 0 ? Int64(log.st_size) : 0
    let room = bytes(disk.f_bavail) - logged
    if room > kept { return true }
    guard bytes(disk.f_bavail) > kept / 2, let free = try? free() else { return false }
    return room + free > kept
  }
}
