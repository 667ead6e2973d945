import CTestSystem
import ConformanceKit
import Glibc

/// The extended attribute `user.mark`.
enum PlainMark {
  static func set(_ path: String, _ value: String) throws(Errno) {
    let bytes = Array(value.utf8)
    guard setxattr(path, "user.mark", bytes, bytes.count, 0) == 0 else { throw Errno(errno, "setxattr \(path)") }
  }

  static func remove(_ path: String) throws(Errno) {
    guard removexattr(path, "user.mark") == 0 else { throw Errno(errno, "removexattr \(path)") }
  }

  /// Nil where there is none.
  static func get(_ path: String) -> String? {
    var buffer = [UInt8](repeating: 0, count: 256)
    let count = getxattr(path, "user.mark", &buffer, buffer.count)
    return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
  }
}
