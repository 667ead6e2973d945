import CFuse
import Glibc

/// A folder to mount on, held open from the first look at it: a moment later its path may lead to another one.
package final class MountFolder: Sendable {
  /// Absolute, without symbolic links.
  package let path: String
  /// The user to whom it belongs.
  package let owner: UInt32
  /// Whether it is root's, and nobody but root can put something else at its path.
  package let isRoots: Bool
  private let descriptor: Int32

  /// Opens a folder by an absolute path of which no component is a symbolic link.
  ///
  /// - Throws: ELOOP where a component is one.
  package init(at path: String) throws(Errno) {
    guard path.hasPrefix("/") else { throw .invalidArgument }
    let place = try Place(path.split(separator: "/").map(String.init))
    var status = stat()
    let descriptor = openat(place.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .current }
    guard fstat(descriptor, &status) == 0 else {
      let error = Errno.current
      close(descriptor)
      throw error
    }
    self.descriptor = descriptor
    self.path = path
    owner = status.st_uid
    isRoots = place.isHeldByRoot && status.st_uid == 0
  }

  deinit { close(descriptor) }

  /// A path of this folder itself, whatever lies at ``path`` by now, for this process and for as long as this object is
  /// there.
  package var ownPath: String { "/proc/self/fd/\(descriptor)" }

  /// Where the folder is now; nil where it is in no folder any more.
  var currentPath: String? {
    var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = buffer.withUnsafeMutableBytes { bytes in
      readlink(ownPath, bytes.baseAddress!.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
  }

  /// Takes the folder's lock (flock(2)) without waiting; it goes with this object.
  ///
  /// - Returns: False where another process has it. A file system that has no such locks lets everybody in.
  package func lock() -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK }

  /// Makes a folder with a user's rights, so that it belongs to them.
  package static func make(at path: String, user: UInt32, group: UInt32) throws(Errno) {
    var names = path.split(separator: "/").map(String.init)
    guard let name = names.popLast() else { throw .fileExists }
    let parent = try Place(names)
    guard cfuse_make_folder(parent.descriptor, name, 0o700, user, group) == 0 else { throw .current }
  }

  /// Follows those symbolic links in an absolute path that only root can have put there. Other links and missing
  /// components stay as they are.
  package static func following(rootsLinksIn path: String) -> String {
    var rest = path.split(separator: "/").map(String.init)
    var known: [String] = []
    var links = 0
    while let name = rest.first {
      rest.removeFirst()
      switch name {
      case ".": continue
      case "..": _ = known.popLast()
      default:
        guard links < 40, let target = (try? Place(known))?.rootsLink(named: name) else {
          known.append(name)
          continue
        }
        links += 1
        if target.hasPrefix("/") { known = [] }
        rest = target.split(separator: "/").map(String.init) + rest
      }
    }
    return "/" + known.joined(separator: "/")
  }
}

/// A folder as a descriptor for paths, reached from the root without following a symbolic link.
package final class Place {
  package let descriptor: Int32
  /// Whether all folders on the way belong to root, and others can replace nothing of root's in them.
  let isHeldByRoot: Bool

  /// Those of open(2) for a folder that is a place for paths and nothing more, which needs no right to read it.
  package static let flags = cfuse_path_only | O_DIRECTORY | O_CLOEXEC

  /// - Parameter names: the components of its path.
  /// - Throws: ELOOP where one of them is a symbolic link.
  package init(_ names: [String]) throws(Errno) {
    var folder = open("/", Self.flags)
    guard folder >= 0 else { throw .current }
    var isHeldByRoot = true
    for name in names {
      isHeldByRoot = isHeldByRoot && Self.isRoots(folder)
      let next = name == ".." ? -1 : openat(folder, name, Self.flags | O_NOFOLLOW)
      guard next >= 0 else {
        let error = name == ".." ? Errno.invalidArgument : Errno.current
        let isLink = Self.status(of: name, in: folder).map { $0.st_mode & S_IFMT == S_IFLNK } ?? false
        close(folder)
        throw isLink ? Errno(rawValue: ELOOP) : error
      }
      close(folder)
      folder = next
    }
    descriptor = folder
    self.isHeldByRoot = isHeldByRoot
  }

  deinit { close(descriptor) }

  /// The target of a symbolic link in this folder; nil if there is none, or if others than root can have put it there.
  func rootsLink(named name: String) -> String? {
    guard isHeldByRoot, Self.isRoots(descriptor), let status = Self.status(of: name, in: descriptor),
      status.st_mode & S_IFMT == S_IFLNK, status.st_uid == 0
    else { return nil }
    var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = buffer.withUnsafeMutableBytes { bytes in
      readlinkat(descriptor, name, bytes.baseAddress!.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
  }

  /// Whether a folder belongs to root, and others can replace nothing of root's in it.
  private static func isRoots(_ folder: Int32) -> Bool {
    var status = stat()
    guard fstat(folder, &status) == 0, status.st_uid == 0 else { return false }
    return status.st_mode & 0o022 == 0 || status.st_mode & S_ISVTX != 0
  }

  private static func status(of name: String, in folder: Int32) -> stat? {
    var status = stat()
    return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
  }
}
