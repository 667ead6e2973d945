import ArgumentParser
import Glibc
import SheafClient
import SheafModel

struct SendCopy: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "send-copy", abstract: "Make a plain copy, with nothing of the share in it.",
    discussion: """
      The copy has the contents, names, permissions and times, and is no part of any share or history.

      Examples:
        sheaf send-copy ~/Sheaf/Shared/alice@example.com/plan.md ~/plan.md
        sheaf send-copy ~/Sheaf/Documents/plans /mnt/stick
      """)

  @Argument(help: "A document or a folder.")
  var path: PathArgument

  @Argument(help: "Where to: a name that does not exist, or a folder.")
  var destination: PathArgument

  @OptionGroup var library: LibraryOptions

  func run() async throws {
    try await ItemTarget.with(path, library) { target in
      let source = target.address.path ?? []
      var place = destination.bytes
      var status = stat()
      if stat(Self.cString(place), &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
        place = SystemPath.join(place, SystemPath.split(source).name)
      }
      try await copy(
        target.client, target.address, kind: try await target.client.status(of: target.address).kind, to: place)
    }
  }

  private func copy(
    _ client: SheafClient, _ item: ItemAddress, kind: String, to place: [UInt8], mode: UInt32? = nil,
    mtime: Timestamp? = nil
  ) async throws {
    switch kind {
    case "document":
      let file = open(Self.cString(place), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode ?? 0o666)
      guard file >= 0 else { throw Self.failure(place) }
      defer { close(file) }
      try await client.content(of: item, version: nil) { bytes in
        try StandardOutput.write(bytes.readableBytesView, to: file, named: place.readable)
      }
      try Self.setTime(mtime, place)
    case "folder":
      guard mkdir(Self.cString(place), 0o777) == 0 else { throw Self.failure(place) }
      for child in try await client.children(of: item) {
        guard let name = PercentCoding.decode(child.name.utf8), child.kind != "other" else { continue }
        let inside = SystemPath.join(place, name)
        if let target = child.target.flatMap({ PercentCoding.decode($0.utf8) }) {
          guard symlink(Self.cString(target), Self.cString(inside)) == 0 else { throw Self.failure(inside) }
        } else {
          let address = ItemAddress(account: item.account, path: SystemPath.join(item.path ?? [], name))
          try await copy(client, address, kind: child.kind, to: inside, mode: child.mode, mtime: child.mtime)
        }
      }
      if let mode { chmod(Self.cString(place), mode) }
      try Self.setTime(mtime, place)
    default:
      throw SheafError(
        .invalid, subject: (item.path ?? []).readable, reason: "is neither a document nor a folder")
    }
  }

  private static func setTime(_ time: Timestamp?, _ place: [UInt8]) throws {
    guard let time else { return }
    let moment = timespec(tv_sec: Int(time.seconds), tv_nsec: Int(time.subsecondNanoseconds))
    guard utimensat(AT_FDCWD, cString(place), [moment, moment], 0) == 0 else { throw failure(place) }
  }

  private static func cString(_ path: [UInt8]) -> [CChar] { path.map { CChar(bitPattern: $0) } + [0] }

  private static func failure(_ place: [UInt8]) -> SheafError {
    SheafError(code: errno, subject: place.readable, advice: "name another destination")
  }
}
