import Fuse
import Glibc

/// Functions of the C library that the module Glibc does not show (`_GNU_SOURCE`, `<sys/xattr.h>`).
enum Posix {
  private typealias RenameAt2 =
    @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32
  private typealias Fallocate = @convention(c) (Int32, Int32, Int, Int) -> Int32
  private typealias CopyFileRange =
    @convention(c) (
      Int32, UnsafeMutablePointer<Int>?, Int32, UnsafeMutablePointer<Int>?, Int, UInt32
    ) -> Int
  private typealias SetXattr =
    @convention(c) (
      UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafePointer<UInt8>, Int, Int32
    ) -> Int32
  private typealias GetXattr =
    @convention(c) (
      UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeMutablePointer<UInt8>?, Int
    ) -> Int
  private typealias ListXattr = @convention(c) (UnsafePointer<CChar>, UnsafeMutablePointer<UInt8>?, Int) -> Int
  private typealias RemoveXattr = @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>) -> Int32

  private static func function<Function>(_ name: String, as type: Function.Type) -> Function {
    unsafeBitCast(dlsym(nil, name), to: type)
  }

  static func rename(_ old: String, _ new: String, flags: UInt32) -> Int {
    Int(function("renameat2", as: RenameAt2.self)(AT_FDCWD, old, AT_FDCWD, new, flags))
  }

  static func fallocate(_ descriptor: Int32, mode: Int32, offset: Int, length: Int) -> Int {
    Int(function("fallocate", as: Fallocate.self)(descriptor, mode, offset, length))
  }

  static func copyFileRange(_ source: Int32, at from: Int, _ target: Int32, at to: Int, length: Int) -> Int {
    var from = from
    var to = to
    return function("copy_file_range", as: CopyFileRange.self)(source, &from, target, &to, length, 0)
  }

  static func setxattr(_ path: String, _ name: String, _ value: String, flags: Int32 = 0) -> Int {
    Int(function("setxattr", as: SetXattr.self)(path, name, Array(value.utf8), value.utf8.count, flags))
  }

  static func getxattr(_ path: String, _ name: String, capacity: Int) -> (count: Int, value: String) {
    var buffer = [UInt8](repeating: 0, count: capacity)
    let count = function("getxattr", as: GetXattr.self)(path, name, &buffer, capacity)
    return (count, String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self))
  }

  static func listxattr(_ path: String, capacity: Int) -> (count: Int, names: String) {
    var buffer = [UInt8](repeating: 0, count: capacity)
    let count = function("listxattr", as: ListXattr.self)(path, &buffer, capacity)
    return (count, String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self))
  }

  static func removexattr(_ path: String, _ name: String) -> Int {
    Int(function("removexattr", as: RemoveXattr.self)(path, name))
  }

  /// Gives this process a mount namespace in which everyone may open `/dev/fuse`, as on a usual desktop.
  static func openDeviceToAll(in directory: String) throws(Errno) {
    let unshare = function("unshare", as: (@convention(c) (Int32) -> Int32).self)
    let privately = UInt(MS_REC | MS_PRIVATE)
    let device = "\(directory)/device"
    mkdir(device, 0o755)
    guard unshare(0x0002_0000) == 0, mount(nil, "/", nil, privately, nil) == 0,
      mount("tmpfs", device, "tmpfs", 0, nil) == 0, mknod("\(device)/fuse", S_IFCHR | 0o666, 10 << 8 | 229) == 0,
      chmod("\(device)/fuse", 0o666) == 0, mount("\(device)/fuse", "/dev/fuse", nil, UInt(MS_BIND), nil) == 0
    else { throw .current }
  }

  /// Writes bytes to a file that it makes or empties; the number of bytes, or -1.
  static func writeFile(_ path: String, _ text: String) -> Int {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    guard descriptor >= 0 else { return -1 }
    defer { close(descriptor) }
    return write(descriptor, text, text.utf8.count)
  }

  /// A file's contents up to 4 KiB, nil where it cannot be read.
  static func readFile(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = read(descriptor, &buffer, buffer.count)
    return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
  }

  static func stat(_ path: String) -> stat? {
    var status = Glibc.stat()
    return lstat(path, &status) == 0 ? status : nil
  }

  /// The names in a directory but `.` and `..`, nil where reading fails.
  static func list(_ path: String) -> [String]? {
    guard let directory = opendir(path) else { return nil }
    defer { closedir(directory) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(directory) else { return errno == 0 ? names : nil }
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
  }
}
