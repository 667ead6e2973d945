import ArgumentParser
import Glibc
import SheafClient
import SheafLibrary
import SheafModel

struct SendCopy: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "send-copy", abstract: "Make a plain copy, with nothing of the share in it.",
    discussion: """
      The copy has the contents, names, permissions and times, and is no part of any share or history. A symbolic link \
      that someone else made and that leads out of the share is left out; the command says so, and fails.

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
      let item = try await target.client.status(of: target.address)
      if item.kind == "folder" { try await Self.checkOutside(place, of: item.id, target) }
      var leftOut: [[UInt8]] = []
      try await copy(target.client, target.address, kind: item.kind, to: place, &leftOut)
      guard let first = leftOut.first else { return }
      let others = leftOut.count > 1 ? " (and \(Format.count(leftOut.count - 1, "other")))" : ""
      throw SheafError(
        .accessDenied, subject: first.readable + others,
        reason: "was left out of the copy: a symbolic link that someone else made, and leads out of the share",
        advice: "all else is copied; ask who made it, or remove it there")
    }
  }

  /// Checks that a copy of a folder does not come to lie in it, by whichever mount and account: it would never end.
  private static func checkOutside(_ place: [UInt8], of id: String, _ target: ItemTarget) async throws {
    guard case .success(let parent) = SystemPath.resolve(SystemPath.split(try SystemPath.absolute(place)).parent),
      case .mount(let library, let mountpoints, let inside)? = try? PathResolution.current().place(of: parent),
      LibraryLocation(path: library) == LibraryLocation(path: target.connection.info.library),
      let mount = try await target.client.mounts().first(where: { mountpoints.contains($0.mountpoint) })
    else { return }
    var folders = inside.split(separator: SystemPath.slash)
    while !folders.isEmpty {
      let address = ItemAddress(account: mount.account, path: Array(folders.joined(separator: [SystemPath.slash])))
      // What is no item, as Shared, is in none.
      if let folder = try? await target.client.status(of: address), folder.id == id {
        throw SheafError(
          .invalid, subject: place.readable, reason: "is inside of \(target.name), which cannot be copied into itself",
          advice: "name another destination")
      }
      folders.removeLast()
    }
  }

  /// - Parameter leftOut: Gets the paths of links of which the library does not tell where they lead.
  private func copy(
    _ client: SheafClient, _ item: ItemAddress, kind: String, to place: [UInt8], mode: UInt32? = nil,
    mtime: Timestamp? = nil, _ leftOut: inout [[UInt8]]
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
          if child.kind == "symlink" {
            leftOut.append(address.path ?? [])
            continue
          }
          try await copy(
            client, address, kind: child.kind, to: inside, mode: child.mode, mtime: child.mtime, &leftOut)
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
