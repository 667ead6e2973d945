import Glibc

/// The program that another process runs, compared with this one: a mount goes on with its own while a new version is
/// installed.
enum RunningProgram {
  /// Whether a process runs the same program as this one, byte for byte; nil where this user may not know.
  ///
  /// Source: proc_pid_exe(5), which leads to the program's file even after that was replaced.
  static func isOwn(of process: pid_t) -> Bool? {
    let (own, other) = (
      open("/proc/self/exe", O_RDONLY | O_CLOEXEC), open("/proc/\(process)/exe", O_RDONLY | O_CLOEXEC)
    )
    let isSame = own >= 0 && other >= 0 ? isSame(own, other) : nil
    for descriptor in [own, other] where descriptor >= 0 { close(descriptor) }
    return isSame
  }

  /// Whether two files have the same contents; nil where they cannot be read.
  private static func isSame(_ first: CInt, _ second: CInt) -> Bool? {
    var (one, two) = (stat(), stat())
    guard fstat(first, &one) == 0, fstat(second, &two) == 0 else { return nil }
    if one.st_dev == two.st_dev, one.st_ino == two.st_ino { return true }
    guard one.st_size == two.st_size else { return false }
    let size = 1 << 20
    var (left, right) = ([UInt8](repeating: 0, count: size), [UInt8](repeating: 0, count: size))
    var offset = off_t(0)
    while offset < one.st_size {
      let length = min(size, Int(one.st_size - offset))
      guard pread(first, &left, length, offset) == length, pread(second, &right, length, offset) == length else {
        return nil
      }
      guard left == right else { return false }
      offset += off_t(length)
    }
    return true
  }
}
