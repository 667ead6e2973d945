import ArgumentParser
import Glibc
import SheafClient
import SheafLibrary
import SheafModel

struct SendCopy: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "send-copy", abstract: "Make a plain copy, with nothing of the share in it.",
    discussion: """
      The copy has the contents, names, permissions and times, and is no part of any share or history. Fifos, sockets and \
      devices are left out, and so is a symbolic link that someone else made and that leads out of the share; the command \
      says so, and fails.

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
      var leftOut: [LeftOut] = []
      try await copy(
        target.client, target.address, kind: item.kind, to: place, mode: item.mode, mtime: item.mtime, &leftOut)
      guard let first = leftOut.first else { return }
      let others = leftOut.count > 1 ? " (and \(Format.count(leftOut.count - 1, "other")))" : ""
      throw SheafError(
        first.isLink ? .accessDenied : .notSupported, subject: first.path.readable + others,
        reason: "was left out of the copy: "
          + (first.isLink
            ? "a symbolic link that someone else made, and leads out of the share"
            : "a fifo, socket or device, which Sheaf only stores"),
        advice: "all else is copied" + (first.isLink ? "; ask who made it, or remove it there" : ""))
    }
  }

  /// Something that no copy is made of.
  private struct LeftOut {
    let path: [UInt8]
    /// Whether it is a symbolic link, of which the library does not tell where it leads.
    let isLink: Bool
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

  private func copy(
    _ client: SheafClient, _ item: ItemAddress, kind: String, to place: [UInt8], mode: UInt32, mtime: Timestamp,
    _ leftOut: inout [LeftOut]
  ) async throws {
    switch kind {
    case "document":
      // For nobody else until it is whole, and may be for nobody else then.
      let file = open(Self.cString(place), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      guard file >= 0 else { throw Self.failure(place) }
      do {
        try await client.content(of: item, version: nil) { bytes in
          try StandardOutput.write(bytes.readableBytesView, to: file, named: place.readable)
        }
        guard fchmod(file, mode) == 0 else { throw Self.failure(place) }
      } catch {
        close(file)
        throw error
      }
      // Some file systems tell only then that there was no room.
      guard close(file) == 0 else { throw Self.failure(place) }
      try Self.setTime(mtime, place)
    case "folder":
      guard mkdir(Self.cString(place), 0o700) == 0 else { throw Self.failure(place) }
      for child in try await client.children(of: item) {
        guard let name = PercentCoding.decode(child.name.utf8) else { continue }
        let inside = SystemPath.join(place, name)
        if let target = child.target.flatMap({ PercentCoding.decode($0.utf8) }) {
          guard symlink(Self.cString(target), Self.cString(inside)) == 0 else { throw Self.failure(inside) }
          try Self.setTime(child.mtime, inside)
        } else {
          let address = ItemAddress(account: item.account, path: SystemPath.join(item.path ?? [], name))
          if child.kind == "symlink" || child.kind == "other" {
            leftOut.append(LeftOut(path: address.path ?? [], isLink: child.kind == "symlink"))
            continue
          }
          try await copy(
            client, address, kind: child.kind, to: inside, mode: child.mode, mtime: child.mtime, &leftOut)
        }
      }
      guard chmod(Self.cString(place), mode) == 0 else { throw Self.failure(place) }
      try Self.setTime(mtime, place)
    default:
      throw SheafError(
        .invalid, subject: (item.path ?? []).readable, reason: "is neither a document nor a folder")
    }
  }

  private static func setTime(_ time: Timestamp, _ place: [UInt8]) throws {
    let moment = timespec(tv_sec: Int(time.seconds), tv_nsec: Int(time.subsecondNanoseconds))
    guard utimensat(AT_FDCWD, cString(place), [moment, moment], AT_SYMLINK_NOFOLLOW) == 0 else { throw failure(place) }
  }

  private static func cString(_ path: [UInt8]) -> [CChar] { path.map { CChar(bitPattern: $0) } + [0] }

  private static func failure(_ place: [UInt8]) -> SheafError {
    SheafError(code: errno, subject: place.readable, advice: "name another destination")
  }
}
