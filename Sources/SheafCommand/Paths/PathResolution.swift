import Glibc
import SheafLibrary
import SheafModel
import SheafMount

/// The place that a PATH leads to: in a mount, or in the named library.
enum ItemPlace: Equatable {
  /// - Parameters:
  ///   - library: Path of the mounted library.
  ///   - mountpoints: The places at which this mount shows; the process that serves it knows one of them.
  ///   - path: `Documents/…` or `Shared/…`.
  case mount(library: String, mountpoints: [String], path: [UInt8])
  /// In no mount; the path is as given, `Documents/…`, `Shared/…` or `id:UUID`.
  case library(path: [UInt8])
}

/// Finds the item that a PATH means.
///
/// It never follows the last component, which need not exist, nor need the folders above it: a deleted item is named by
/// its former path.
struct PathResolution {
  let table: MountTable
  let workingDirectory: [UInt8]
  let resolve: ([UInt8]) -> Result<[UInt8], SystemError>

  init(
    table: MountTable, workingDirectory: [UInt8],
    resolve: @escaping ([UInt8]) -> Result<[UInt8], SystemError> = SystemPath.resolve
  ) {
    self.table = table
    self.workingDirectory = workingDirectory
    self.resolve = resolve
  }

  /// Resolves with the machine's mounts and this process's working directory.
  static func current() throws(SheafError) -> PathResolution {
    PathResolution(table: try .current(), workingDirectory: try SystemPath.workingDirectory())
  }

  /// The mount whose top folder a path leads to, which has everything of its account; nil for any other path.
  ///
  /// - Throws: ``SheafError`` of kind `unavailable` for a dead mount.
  func mount(at path: [UInt8]) throws(SheafError) -> (library: String, mountpoints: [String])? {
    guard ItemAddress.itemID(path) == nil, Self.printed(path) == nil, !path.isEmpty, !path.contains(0) else {
      return nil
    }
    let absolute = try withoutLinks(path)
    guard let entry = table.entry(containing: absolute), entry.isSheaf, absolute == entry.mountpoint,
      entry.root == [SystemPath.slash]
    else { return nil }
    return (entry.source.readable, table.mountpoints(sharing: entry).map(\.readable))
  }

  /// - Throws: ``SheafError``: `unavailable` for a dead mount, `invalid` for paths that name no item.
  func place(of path: [UInt8]) throws(SheafError) -> ItemPlace {
    if ItemAddress.itemID(path) != nil { return .library(path: path) }
    guard !path.isEmpty, !path.contains(0) else {
      throw SheafError(.invalid, subject: "PATH", reason: "is empty or has a NUL")
    }
    if let place = try printedPlace(path) { return place }
    let absolute = try withoutLinks(path)
    guard let entry = table.entry(containing: absolute), entry.isSheaf,
      let below = SystemPath.part(of: absolute, below: entry.mountpoint)
    else { return .library(path: try checked(path, given: path, outside: true)) }
    let inside = SystemPath.join(entry.root, below).drop { $0 == SystemPath.slash }
    return .mount(
      library: entry.source.readable, mountpoints: table.mountpoints(sharing: entry).map(\.readable),
      path: try checked(Array(inside), given: path, outside: false))
  }

  /// A relative path that begins with `Documents` or `Shared`, as commands print them; nil for any other one.
  static func printed(_ path: [UInt8]) -> [UInt8]? {
    guard path.first != SystemPath.slash else { return nil }
    let components = path.split(separator: SystemPath.slash).filter { $0 != [UInt8(ascii: ".")] }
    guard let top = components.first?.readable, top == "Documents" || top == "Shared",
      !components.contains(where: { $0.readable == ".." })
    else { return nil }
    return Array(components.joined(separator: [SystemPath.slash]))
  }

  /// The place of a path as commands print them, where one stands in a mount and the folder has no such entry.
  private func printedPlace(_ path: [UInt8]) throws(SheafError) -> ItemPlace? {
    guard let inside = Self.printed(path), let entry = table.entry(containing: workingDirectory), entry.isSheaf,
      let top = inside.split(separator: SystemPath.slash).first,
      case .failure(let error) = resolve(SystemPath.join(workingDirectory, Array(top))), error.code == ENOENT
    else { return nil }
    return .mount(
      library: entry.source.readable, mountpoints: table.mountpoints(sharing: entry).map(\.readable),
      path: try checked(inside, given: path, outside: false))
  }

  /// The absolute path with the links above its last component resolved, as far as these folders exist.
  private func withoutLinks(_ path: [UInt8]) throws(SheafError) -> [UInt8] {
    let absolute = SystemPath.absolute(path, from: workingDirectory)
    var (parent, name) = SystemPath.split(absolute)
    if name == Array(".".utf8) || name == Array("..".utf8) { (parent, name) = (absolute, []) }
    var missing = name
    while true {
      switch resolve(parent) {
      case .success(let resolved): return SystemPath.join(resolved, try normalized(missing, given: path))
      case .failure(let error) where error.code == ENOTCONN || error.code == ECONNABORTED:
        let mount = table.entries.last { $0.isSheaf && SystemPath.part(of: parent, below: $0.mountpoint) != nil }
        throw Self.dead((mount?.mountpoint ?? parent).readable, of: mount?.source.readable)
      case .failure(let error) where error.code == ENOENT || error.code == ENOTDIR:
        guard parent != [SystemPath.slash] else { return absolute }
        let (above, last) = SystemPath.split(parent)
        missing = missing.isEmpty ? last : last + [SystemPath.slash] + missing
        parent = above
      case .failure(let error): throw SheafError(systemError: error.code, subject: parent.readable)
      }
    }
  }

  /// Drops `.` from what does not exist; `..` has no meaning there.
  private func normalized(_ missing: [UInt8], given: [UInt8]) throws(SheafError) -> [UInt8] {
    let components = missing.split(separator: SystemPath.slash).filter { $0 != [UInt8(ascii: ".")] }
    guard !components.contains(where: { $0 == [UInt8(ascii: "."), UInt8(ascii: ".")] }) else {
      throw SheafError(.notFound, subject: given.readable, reason: "leads through .. of a folder that does not exist")
    }
    return Array(components.joined(separator: [SystemPath.slash]))
  }

  /// Checks that a path inside a library can name an item.
  private func checked(_ inside: [UInt8], given: [UInt8], outside: Bool) throws(SheafError) -> [UInt8] {
    let components = inside.split(separator: SystemPath.slash).filter { $0 != [UInt8(ascii: ".")] }
    let top = components.first.map { $0.readable }
    guard !inside.starts(with: "id:".utf8) else {
      throw SheafError(
        .invalid, subject: given.readable, reason: "is no id",
        advice: "write id: and the UUID that user.sheaf.id and --json have")
    }
    guard inside.first != SystemPath.slash, top == "Documents" || top == "Shared" else {
      guard !outside else {
        // One that is there needs a mount; one that is not may be mistyped.
        let isThere =
          if case .success = resolve(SystemPath.absolute(given, from: workingDirectory)) { true } else { false }
        throw SheafError(
          .invalid, subject: given.readable,
          reason: isThere ? "is in no mounted library" : "does not exist, and is in no mounted library",
          advice: (isThere ? "" : "see how it is written; ")
            + "mount the library with: sheaf mount, or write the path as Documents/…")
      }
      throw
        SheafError(
          .invalid, subject: given.readable, reason: "is not below Documents or Shared of the mount",
          advice: "name a document or a folder there")
    }
    guard !components.contains(where: { $0.readable == ".versions" }) else {
      throw SheafError(
        .invalid, subject: given.readable, reason: "is inside .versions, which is a view of the history",
        advice: "name the document itself")
    }
    guard !components.contains(where: { $0.readable == ".deleted" }) else {
      throw SheafError(
        .invalid, subject: given.readable, reason: "is inside .deleted, which shows what was deleted from a folder",
        advice: "name the item by the path that it had: `sheaf deleted` lists them, `sheaf recover` brings one back")
    }
    return Array(components.joined(separator: [SystemPath.slash]))
  }

  /// The error for a mount whose process has ended.
  ///
  /// - Parameter library: The path of its library.
  static func dead(_ mountpoint: String, of library: String?) -> SheafError {
    let location = library.map { LibraryLocation(path: $0) }
    return SheafError(
      .unavailable, subject: mountpoint, reason: "the mount is dead: its process has ended",
      advice: location.flatMap { ReadOnlyCopy.isOne($0) ? nil : Mountpoint.revival(of: $0) }
        ?? "clear it with: sheaf unmount \(mountpoint.shellWord)")
  }
}
