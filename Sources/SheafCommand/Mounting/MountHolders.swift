import Glibc
import SheafModel

/// The processes that keep a mount busy, as far as this user may look.
///
/// This reads only links and lists of `/proc`, and touches nothing in the mount.
struct MountHolders {
  /// A process, its name and id.
  struct Holder: Hashable {
    let pid: pid_t
    let command: String
  }

  private static let shown = 3

  let mountpoint: String
  let holders: [Holder]

  init(mountpoint: String, holders: [Holder]) {
    self.mountpoint = mountpoint
    self.holders = holders
  }

  /// Looks through all processes but this one.
  init(of mountpoint: String) {
    let place = Array(mountpoint.utf8)
    let processes = DirectoryNames.of("/proc").compactMap { pid_t($0) }.filter { $0 != getpid() }
    let holders = processes.filter { Self.holds($0, place) }.map { pid in
      let command = (try? SmallFile.read("/proc/\(pid)/comm"))?.prefix { $0 != UInt8(ascii: "\n") }.readable
      return Holder(pid: pid, command: command ?? "process")
    }
    self.init(mountpoint: mountpoint, holders: holders.sorted { $0.pid < $1.pid })
  }

  /// The error that names them.
  var error: SheafError {
    guard !holders.isEmpty else {
      return SheafError(
        .busy, subject: mountpoint, reason: "is in use by a process that cannot be seen from here",
        advice: "close what is open there and try again")
    }
    let named = holders.prefix(Self.shown).map { "\($0.command.printable) (\($0.pid))" }.joined(separator: ", ")
    let more = holders.count > Self.shown ? " and \(holders.count - Self.shown) more" : ""
    return SheafError(
      .busy, subject: mountpoint, reason: "is in use by \(named)\(more)",
      advice: "close what is open there and try again")
  }

  private static func holds(_ pid: pid_t, _ place: [UInt8]) -> Bool {
    let folder = "/proc/\(pid)"
    let links = ["cwd", "root", "exe"] + DirectoryNames.of(folder + "/fd").map { "fd/" + $0 }
    for link in links where readLink("\(folder)/\(link)").map({ contains(place, $0) }) == true { return true }
    let maps = (try? SmallFile.read(folder + "/maps")) ?? []
    return maps.split(separator: UInt8(ascii: "\n")).contains { line in
      line.firstIndex(of: SystemPath.slash).map { contains(place, Array(line[$0...])) } ?? false
    }
  }

  private static func contains(_ place: [UInt8], _ path: [UInt8]) -> Bool {
    SystemPath.part(of: path, below: place) != nil
  }

  private static func readLink(_ path: String) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = buffer.withUnsafeMutableBytes { bytes in
      readlink(path, bytes.baseAddress!.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    return count > 0 ? Array(buffer[..<count]) : nil
  }
}
