import SheafModel

/// The mounts of this process's namespace, from `/proc/self/mountinfo`.
struct MountTable: Sendable {
  /// One line of it.
  struct Entry: Hashable, Sendable {
    /// `MAJOR:MINOR`; the same for all places where one file system shows.
    let device: String
    /// Which folder of the file system is mounted: `/`, or a part of it for a bind mount.
    let root: [UInt8]
    let mountpoint: [UInt8]
    let type: String
    /// What is mounted; for Sheaf the library's path.
    let source: [UInt8]

    var isSheaf: Bool { type == "fuse.sheaf" }
  }

  /// In the order in which they were mounted: of several at one place the last shows.
  let entries: [Entry]

  init(entries: [Entry]) { self.entries = entries }

  /// Reads the table of this process.
  static func current() throws(SheafError) -> MountTable {
    MountTable(parsing: try SmallFile.read("/proc/self/mountinfo"))
  }

  /// Parses lines of proc(5), "mountinfo"; what is no such line is passed over.
  init(parsing bytes: [UInt8]) {
    entries = bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
      let fields = line.split(separator: UInt8(ascii: " "))
      guard let dash = fields.firstIndex(where: { $0 == [UInt8(ascii: "-")] }), dash >= 6, fields.count >= dash + 3
      else { return nil }
      return Entry(
        device: fields[2].readable, root: Self.unescape(fields[3]), mountpoint: Self.unescape(fields[4]),
        type: fields[dash + 1].readable, source: Self.unescape(fields[dash + 2]))
    }
  }

  /// What is mounted exactly at `mountpoint`, on top.
  func entry(at mountpoint: [UInt8]) -> Entry? { entries.last { $0.mountpoint == mountpoint } }

  /// The mount that an absolute path without symbolic links is in.
  func entry(containing path: [UInt8]) -> Entry? {
    var best: Entry?
    for entry in entries where SystemPath.part(of: path, below: entry.mountpoint) != nil {
      if entry.mountpoint.count >= best?.mountpoint.count ?? 0 { best = entry }
    }
    return best
  }

  /// All places where the file system of `entry` shows.
  func mountpoints(sharing entry: Entry) -> [[UInt8]] {
    entries.filter { $0.device == entry.device && $0.type == entry.type }.map(\.mountpoint)
  }

  /// Turns the kernel's `\040` back into the byte.
  private static func unescape(_ field: ArraySlice<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    var rest = field
    while let byte = rest.popFirst() {
      let digits = rest.prefix(3)
      if byte == UInt8(ascii: "\\"), digits.count == 3,
        digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "7")).contains($0) })
      {
        result.append(digits.reduce(0) { $0 << 3 | ($1 - UInt8(ascii: "0")) })
        rest = rest.dropFirst(3)
      } else {
        result.append(byte)
      }
    }
    return result
  }
}
