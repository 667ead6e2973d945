import Glibc

/// The room on the disk of a store in a file.
///
/// A store keeps back some of it, so that deletions, purges and revocations go on when contents have filled the disk.
struct StoreRoom: Sendable {
  private let path: String

  /// - Parameter path: The store's file; its log is beside it.
  init(path: String) { self.path = path }

  /// What is left beside what is kept back: an eighth of the disk, and not more than 64 MiB. Uploads leave half as much
  /// again.
  ///
  /// What is in the log comes into the file, too, so it counts twice. Half of what is kept back is for the log alone,
  /// since pages of the file that are free are of no use to it. A disk that cannot be asked has room.
  ///
  /// - Parameters:
  ///   - wanted: Bytes for which that is asked.
  ///   - free: Bytes of the file's free pages; asked where the disk alone may have no room.
  func left(for wanted: Int64, free: () throws -> Int64) -> RoomLeft {
    var disk = statvfs()
    guard statvfs(path, &disk) == 0 else { return .unknown }
    let block = Int64(clamping: disk.f_frsize)
    func bytes(_ blocks: UInt) -> Int64 {
      let (bytes, isTooMany) = Int64(clamping: blocks).multipliedReportingOverflow(by: block)
      return isTooMany ? .max : bytes
    }
    let kept = min(bytes(disk.f_blocks) / 8, 64 << 20)
    var log = stat()
    let logged = stat(path + "-wal", &log) == 0 ? Int64(log.st_size) : 0
    let available = bytes(disk.f_bavail)
    var room = available - logged - kept
    if room < Self.plenty || room - kept / 2 < wanted, available > kept / 2, let free = try? free() {
      let (sum, overflow) = room.addingReportingOverflow(free)
      room = overflow ? .max : sum
    }
    return RoomLeft(versions: room, uploads: room - kept / 2)
  }

  /// More than any request of sends, or chunk, needs.
  private static let plenty: Int64 = 256 << 20
}
