import CTestSystem
import ConformanceKit
import Glibc

/// Extended attributes that tests set and ask for by calls of their own: `user.mark` above all.
public enum Attributes {
  static func set(_ path: String, _ value: String) throws(Errno) {
    let bytes = Array(value.utf8)
    guard setxattr(path, "user.mark", bytes, bytes.count, 0) == 0 else { throw Errno(errno, "setxattr \(path)") }
  }

  static func remove(_ path: String) throws(Errno) {
    guard removexattr(path, "user.mark") == 0 else { throw Errno(errno, "removexattr \(path)") }
  }

  /// `user.sheaf.state` of an open document.
  public static func state(_ file: Int32) -> String? {
    var buffer = [UInt8](repeating: 0, count: 256)
    let count = fgetxattr(file, "user.sheaf.state", &buffer, buffer.count)
    return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
  }

  /// `user.mark` of a file; nil if there is none.
  static func get(_ path: String) -> String? {
    var buffer = [UInt8](repeating: 0, count: 256)
    let count = getxattr(path, "user.mark", &buffer, buffer.count)
    return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
  }
}
