import Glibc

/// The only ways in which a mount may differ from a local file system, each asked for by name.
///
/// All come from "a document keeps its identity through every way in which editors save". They concern user attributes
/// and modes when a document is replaced or made anew. Contents never deviate.
public enum AllowedDeviation: String, CaseIterable, Sendable {
  /// A file renamed over a document: the document keeps its mode, unless the program set the file's.
  case replacementKeepsMode
  /// A file renamed over a document: the document keeps its user attributes, but for those set on the file.
  case replacementKeepsAttributes
  /// A document made again under its name, by creating or renaming, has its user attributes again.
  case recreationKeepsAttributes
  /// A document made again under its name has its mode again; made by open(2), with the execute bits asked for there.
  case recreationKeepsMode
  /// Two documents, one of which is young, are exchanged: contents swap, mode and user attributes stay on the names.
  case exchangeSwapsContents
}

/// Mode and user attributes of a document.
struct Marks: Hashable, CustomStringConvertible {
  var mode: UInt32
  var attributes: [String: [UInt8]]

  var description: String { "\(String(mode, radix: 8)) \(World.describe(attributes))" }

  /// The other's attributes below one's own.
  func over(_ other: Marks) -> [String: [UInt8]] { attributes.merging(other.attributes) { own, _ in own } }
}

/// The place of a name, by whichever path: the parent's inode and the last component.
struct Place: Hashable {
  let parent: UInt64
  let name: Path
}

extension World {
  /// The marks of a regular file; nil for anything else.
  func marks(_ path: Path) throws -> Marks? {
    do {
      let status = try system.lstat(path)
      guard status.kind == .file else { return nil }
      return Marks(mode: status.mode, attributes: try attributes(path))
    } catch is Errno {
      return nil
    }
  }

  /// The path that symbolic links in the last component of a path lead to, whether it exists or not.
  func resolved(_ path: Path, depth: Int = 0) -> Path {
    guard depth < 40, let status = try? system.lstat(path), status.kind == .symlink,
      let target = try? system.readlink(path)
    else { return path }
    let folder = path.bytes.lastIndex(of: UInt8(ascii: "/")).map { Path(Array(path.bytes[..<$0])) } ?? ""
    return resolved(folder / target, depth: depth + 1)
  }

  func place(_ path: Path) -> Place? {
    guard let slash = path.bytes.lastIndex(of: UInt8(ascii: "/")) else {
      return (try? system.stat("")).map { Place(parent: $0.inode, name: path) }
    }
    let parent = Path(Array(path.bytes[..<slash]))
    let name = Path(Array(path.bytes[(slash + 1)...]))
    return (try? system.stat(parent)).map { Place(parent: $0.inode, name: name) }
  }

  /// The path of a place; nil where its folder is gone.
  func path(of place: Place) throws -> Path? {
    var folders: [Path] = [""]
    while let folder = folders.popLast() {
      if try system.stat(folder).inode == place.parent { return folder / place.name }
      for name in try system.names(folder) where try system.lstat(folder / name).kind == .folder {
        folders.append(folder / name)
      }
    }
    return nil
  }

  /// Gives a file other marks, and keeps its modification time.
  func adopt(_ marks: Marks, at path: Path) throws {
    for name in try attributes(path).keys where marks.attributes[name] == nil {
      try system.removexattr(path, Path(name))
    }
    for (name, value) in marks.attributes { try system.setxattr(path, Path(name), value) }
    try system.chmod(path, marks.mode)
  }
}
