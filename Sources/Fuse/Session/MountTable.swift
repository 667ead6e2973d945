/// The mounts of this process's namespace.
///
/// Source: proc(5), `/proc/self/mountinfo`. Unlike stat(2), reading it asks no mounted file system anything.
enum MountTable {
  /// A mounted file system.
  struct Mount: Hashable, Sendable {
    /// The mount's own number; free for another once the mount is gone.
    let id: String
    /// The number of its superblock, `MAJOR:MINOR`; free for another once the superblock is gone.
    let device: String
    let mountpoint: String
  }

  /// What one sees at a path: the last mount there.
  static func topmost(at path: String) -> Mount? {
    mounts().last { $0.mountpoint == path }
  }

  /// All mounts, those on top of others after them.
  static func mounts() -> [Mount] {
    guard let table = try? readFile("/proc/self/mountinfo") else { return [] }
    return table.split(separator: UInt8(ascii: "\n")).compactMap(parse)
  }

  /// A line such as `36 35 0:98 / /mnt rw,nosuid - fuse.sheaf …`.
  static func parse(_ line: ArraySlice<UInt8>) -> Mount? {
    let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
    guard fields.count == 6 else { return nil }
    return Mount(
      id: String(decoding: fields[0], as: UTF8.self), device: String(decoding: fields[2], as: UTF8.self),
      mountpoint: String(decoding: unescaped(fields[4]), as: UTF8.self))
  }

  /// Blanks, line ends and backslashes are `\` and three octal digits.
  private static func unescaped(_ field: ArraySlice<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = field
    while let byte = rest.popFirst() {
      let digits = rest.prefix(3)
      if byte == UInt8(ascii: "\\"), digits.count == 3, digits.allSatisfy({ (48...55).contains($0) }) {
        bytes.append(digits.reduce(0) { $0 &* 8 &+ ($1 - 48) })
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
      }
    }
    return bytes
  }
}
