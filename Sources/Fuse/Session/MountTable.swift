/// The mounts of this process's namespace.
///
/// Source: proc(5), `/proc/self/mountinfo`. Unlike stat(2), reading it asks no mounted file system anything.
package struct MountTable: Sendable {
  /// A mounted file system: one line of the table.
  package struct Entry: Hashable, Sendable {
    /// The mount's own number; free for another once the mount is gone.
    package let id: String
    /// The number of the superblock, `MAJOR:MINOR`, wherever it is mounted; free for another once it is gone.
    package let device: String
    /// The folder of the file system that is mounted: `/`, or a part of it for a bind mount.
    package let root: [UInt8]
    package let mountpoint: [UInt8]
    package let type: String
    /// The mounted thing: a device, or what the file system says of itself.
    package let source: [UInt8]
    /// Whether nothing can be changed by it.
    package let isReadOnly: Bool

    /// The mount point as text.
    var path: String { String(decoding: mountpoint, as: UTF8.self) }
  }

  /// In the order in which they were mounted: of several at one place the last shows.
  package let entries: [Entry]

  /// Reads the table of this process.
  package static func read() throws(Errno) -> MountTable {
    MountTable(parsing: try readFile("/proc/self/mountinfo"))
  }

  /// The mount that shows at a path; nil also where the table cannot be read.
  static func topmost(at path: String) -> Entry? { (try? read())?.entry(at: Array(path.utf8)) }

  /// Parses lines such as `36 35 0:98 / /mnt rw,nosuid shared:1 - fuse.sheaf SOURCE rw`, and passes over others.
  package init(parsing bytes: [UInt8]) {
    entries = bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
      let fields = line.split(separator: UInt8(ascii: " "))
      guard let dash = fields.firstIndex(where: { $0 == [UInt8(ascii: "-")] }), dash >= 6, fields.count >= dash + 3
      else { return nil }
      return Entry(
        id: String(decoding: fields[0], as: UTF8.self), device: String(decoding: fields[2], as: UTF8.self),
        root: Self.unescaped(fields[3]), mountpoint: Self.unescaped(fields[4]),
        type: String(decoding: fields[dash + 1], as: UTF8.self), source: Self.unescaped(fields[dash + 2]),
        isReadOnly: ([fields[5]] + fields[(dash + 3)...]).contains { options in
          options.split(separator: UInt8(ascii: ",")).contains { $0.elementsEqual("ro".utf8) }
        })
    }
  }

  /// The mount that shows exactly at a path.
  package func entry(at mountpoint: [UInt8]) -> Entry? { entries.last { $0.mountpoint == mountpoint } }

  /// The mount that an absolute path without symbolic links is in.
  package func entry(containing path: [UInt8]) -> Entry? {
    var best: Entry?
    for entry in entries where Self.isPart(path, of: entry.mountpoint) {
      if entry.mountpoint.count >= best?.mountpoint.count ?? 0 { best = entry }
    }
    return best
  }

  /// All places where the file system of `entry` is mounted.
  package func mountpoints(sharing entry: Entry) -> [[UInt8]] {
    entries.filter { $0.device == entry.device && $0.type == entry.type }.map(\.mountpoint)
  }

  /// The mounts of a superblock.
  ///
  /// - Parameter device: `st_dev` of stat(2), of which makedev(3) says what lies where.
  package func entries(ofDevice device: UInt64) -> [Entry] {
    let major = (device >> 8) & 0xFFF | (device >> 32) & 0xFFFF_F000
    let minor = device & 0xFF | (device >> 12) & 0xFFFF_FF00
    return entries.filter { $0.device == "\(major):\(minor)" }
  }

  /// Whether a path is a folder's or leads to something below it.
  private static func isPart(_ path: [UInt8], of folder: [UInt8]) -> Bool {
    let slash = UInt8(ascii: "/")
    return path == folder || path.starts(with: folder == [slash] ? folder : folder + [slash])
  }

  /// The bytes of a field: in the table, as in fstab(5), blanks, line ends and backslashes are `\` and three octal digits.
  package static func unescaped(_ field: ArraySlice<UInt8>) -> [UInt8] {
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
