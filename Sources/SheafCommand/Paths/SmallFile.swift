import Glibc
import SheafModel

/// Files that are read whole: those of `/proc`, and the library's lock and log.
enum SmallFile {
  /// The file's bytes.
  ///
  /// - Parameters:
  ///   - limit: The most bytes to read; of a larger file that can be positioned, the last ones.
  ///   - followingLinks: Whether the path may be a symbolic link.
  static func read(
    _ path: String, limit: Int = 16 * 1024 * 1024, followingLinks: Bool = true
  ) throws(SheafError) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (followingLinks ? 0 : O_NOFOLLOW))
    guard descriptor >= 0 else { throw SheafError(systemError: errno, subject: path.printable) }
    defer { close(descriptor) }
    let size = lseek(descriptor, 0, SEEK_END)
    lseek(descriptor, max(0, size - off_t(limit)), SEEK_SET)
    var result: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    while result.count < limit {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw SheafError(systemError: errno, subject: path.printable) }
      if count == 0 { break }
      result += buffer[..<count]
    }
    return result
  }
}
