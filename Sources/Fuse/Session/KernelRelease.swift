import Glibc

/// The running kernel, as uname(2) tells it, for decisions that come before there is a mount to ask.
package enum KernelRelease {
  /// Whether ``Notifier/expireNames()`` works: since Linux 6.16 (`FUSE_NOTIFY_INC_EPOCH`, protocol 7.44).
  package static let expiresNames = isAtLeast(6, 16)

  private static func isAtLeast(_ major: Int, _ minor: Int) -> Bool {
    var names = utsname()
    guard uname(&names) == 0 else { return false }
    let release = withUnsafeBytes(of: &names.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    return isRelease(release, atLeast: major, minor)
  }

  /// Whether a release such as `6.18.2-1-amd64` is one of that version or a later one.
  static func isRelease(_ release: String, atLeast major: Int, _ minor: Int) -> Bool {
    let numbers = release.split(separator: ".", maxSplits: 2).prefix(2).map { Int($0.prefix { $0.isNumber }) ?? 0 }
    guard numbers.count == 2 else { return false }
    return numbers[0] > major || numbers[0] == major && numbers[1] >= minor
  }
}
