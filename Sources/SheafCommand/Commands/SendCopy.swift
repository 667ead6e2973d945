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
  @OptionGroup var output: OutputOptions

  func run() async throws {
    try await ItemTarget.with(path, library) { target in
      let item = try await target.client.status(of: target.address)
      // An id is no name for a copy.
      let source = target.address.itemID == nil ? target.address.path ?? [] : Array(item.path.utf8)
      let destination = try CopyDestination(destination.bytes, named: SystemPath.split(source).name)
      if item.kind == "folder" { try await Self.checkOutside(destination, of: item.id, target) }
      let facts = CopyFacts(mode: item.mode, mtime: item.mtime)
      let leftOut = try await copy(target.client, target.address, kind: item.kind, facts, to: CopyPlace(destination))
      let path = withExtendedLifetime(destination) { destination.path }
      guard let first = leftOut.first else {
        if output.json { return try JSON.write(CopyOutput(path: target.given, destination: path.readable)) }
        return try StandardOutput.line("Copied \(target.name) to \(path.readable).".escapingControls)
      }
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

  /// An item that the copy leaves out.
  private struct LeftOut {
    let path: [UInt8]
    /// Whether it is a symbolic link whose target the library does not tell.
    let isLink: Bool
  }

  /// Checks that the copy of a folder is not made inside of that folder, by whichever mount and account: it would never
  /// end.
  private static func checkOutside(_ destination: CopyDestination, of id: String, _ target: ItemTarget) async throws {
    guard
      case .mount(let library, let mountpoints, let inside)? = try? PathResolution.current().place(
        of: destination.folderPath),
      LibraryLocation(path: library) == LibraryLocation(path: target.connection.info.library),
      let mount = try await target.client.mounts().first(where: { mountpoints.contains($0.mountpoint) })
    else { return }
    var folders = inside.split(separator: SystemPath.slash)
    while !folders.isEmpty {
      let address = ItemAddress(account: mount.account, path: Array(folders.joined(separator: [SystemPath.slash])))
      // A folder that is no item, such as Shared, lies in none.
      if let folder = try? await target.client.status(of: address), folder.id == id {
        throw SheafError(
          .invalid, subject: destination.path.readable,
          reason: "is inside of \(target.name), which cannot be copied into itself",
          advice: "name another destination")
      }
      folders.removeLast()
    }
  }

  /// Copies `item`, with everything in it, to `place`; returns the items that it left out.
  private func copy(
    _ client: SheafClient, _ item: ItemAddress, kind: String, _ facts: CopyFacts, to place: CopyPlace
  ) async throws -> [LeftOut] {
    switch kind {
    case "document": try await copyDocument(client, item, facts, to: place)
    case "folder": return try await copyFolder(client, item, facts, to: place)
    default:
      throw SheafError(.invalid, subject: (item.path ?? []).readable, reason: "is neither a document nor a folder")
    }
    return []
  }

  private func copyDocument(
    _ client: SheafClient, _ item: ItemAddress, _ facts: CopyFacts, to place: CopyPlace
  ) async throws {
    try await place.makeFile(facts) { file in
      try await client.content(of: item, version: nil) { bytes in
        try StandardOutput.write(bytes.readableBytesView, to: file, named: place.path.readable)
      }
    }
  }

  /// The address of a folder by its id, where its path leaves little room for names in it: what a request takes is
  /// limited, and how deep folders lie is not.
  private func short(_ folder: ItemAddress, _ client: SheafClient) async throws -> ItemAddress {
    guard folder.path?.count ?? 0 > ItemAddress.pathLength / 2 else { return folder }
    let id = try await client.status(of: folder).id
    return ItemAddress(account: folder.account, path: Array("id:\(id)".utf8))
  }

  private func copyFolder(
    _ client: SheafClient, _ item: ItemAddress, _ facts: CopyFacts, to place: CopyPlace
  ) async throws -> [LeftOut] {
    var leftOut: [LeftOut] = []
    // The open folders: the one that is being filled last, and before it the folders that it lies in.
    var folders: [CopiedFolder] = []
    var current: CInt = -1
    defer { if current >= 0 { close(current) } }

    func enter(_ item: ItemAddress, _ facts: CopyFacts, _ place: CopyPlace) async throws {
      // Before anything is made for a folder that cannot be read.
      let children = try await client.children(of: item)
      let made = try place.makeFolder()
      if current >= 0 { close(current) }
      current = made
      folders.append(try CopiedFolder(made, place, item, facts, children))
    }

    func leave(_ folder: CopiedFolder) throws {
      folders.removeLast()
      let outer = try folders.last?.reopen(from: current) ?? -1
      defer {
        close(current)
        current = outer
      }
      try folder.facts.set(current, folder.place)
    }

    try await enter(short(item, client), facts, place)
    while !folders.isEmpty {
      // Done before there is a second reference to the list, which would copy the list.
      let next = folders[folders.count - 1].children.popLast()
      let folder = folders[folders.count - 1]
      guard let child = next else {
        try leave(folder)
        continue
      }
      let facts = CopyFacts(mode: child.mode, mtime: child.mtime)
      let inside = try CopyPlace(PercentCoding.decode(child.name.utf8) ?? [], in: current, folder.place.path)
      let address = ItemAddress(
        account: folder.item.account, path: SystemPath.join(folder.item.path ?? [], inside.name))
      if let target = child.target.flatMap({ PercentCoding.decode($0.utf8) }) {
        try inside.makeLink(to: target, at: child.mtime)
      } else if child.kind == "folder" {
        try await enter(short(address, client), facts, inside)
      } else if child.kind == "document" {
        try await copyDocument(client, address, facts, to: inside)
      } else {
        leftOut.append(LeftOut(path: address.path ?? [], isLink: child.kind == "symlink"))
      }
    }
    return leftOut
  }
}
