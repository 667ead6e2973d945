import Glibc

/// A folder that this program made for files of its own, and removes with them. It is held open: whoever can put another
/// folder, or a link to one, in its place has nothing of that removed.
package final class OwnFolder: Sendable {
  package let path: String
  private let descriptor: CInt

  /// O_PATH of open(2), which the Glibc module does not declare.
  private static let pathOnly: CInt = 0o10_000_000

  /// Makes a folder (0700) of a name that begins with `prefix`.
  ///
  /// - Parameter call: Makes a system call with the rights that the folder needs.
  package init(_ prefix: String, in parent: String, with call: (() -> CInt) -> CInt = { $0() }) throws(SheafError) {
    var template = Array("\(parent)/\(prefix)XXXXXX".utf8CString)
    guard call({ mkdtemp(&template) == nil ? -1 : 0 }) == 0 else {
      throw SheafError(systemError: errno, subject: parent.printable)
    }
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    self.path = path
    descriptor = call { Self.open(path) }
    guard descriptor >= 0 else { throw SheafError(systemError: errno, subject: path.printable) }
  }

  /// The folder of such a name that another process of this user made; nil where `path` is anything else.
  package init?(_ prefix: String, at path: String) {
    guard let name = path.split(separator: "/").last, name.hasPrefix(prefix) else { return nil }
    self.path = path
    descriptor = Self.open(path)
    var status = stat()
    guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_uid == geteuid(), status.st_mode & 0o777 == 0o700
    else { return nil }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  private static func open(_ path: String) -> CInt {
    Glibc.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
  }

  /// Removes the folder with the files in it.
  package func remove(with call: (() -> CInt) -> CInt = { $0() }) {
    guard let listing = fdopendir(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)) else { return }
    defer { closedir(listing) }
    var names: [String] = []
    rewinddir(listing)
    while let entry = readdir(listing) {
      withUnsafePointer(to: entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { names.append(String(cString: $0)) }
      }
    }
    for name in names where name != "." && name != ".." { _ = call { unlinkat(descriptor, name, 0) } }
    let parent = openat(descriptor, "..", Self.pathOnly | O_DIRECTORY | O_CLOEXEC)
    guard parent >= 0 else { return }
    defer { close(parent) }
    let name = String(path.split(separator: "/").last ?? "")
    if descriptor.isNamed(name, in: parent) { _ = call { unlinkat(parent, name, AT_REMOVEDIR) } }
  }
}

/// A file that this program made, and takes away again if it cannot be filled.
package final class OwnFile: Sendable {
  package let descriptor: CInt
  private let folder: CInt
  private let name: String

  /// Makes a file (0600) where nothing is.
  package init(_ path: String) throws(SheafError) {
    var parts = path.split(separator: "/", omittingEmptySubsequences: false)
    name = String(parts.popLast() ?? "")
    let place = parts.joined(separator: "/")
    folder = open(place.isEmpty ? path.hasPrefix("/") ? "/" : "." : place, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { throw SheafError(systemError: errno, subject: place.printable) }
    descriptor = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else {
      let error = errno
      throw SheafError(
        systemError: error, subject: path.printable,
        advice: error == EEXIST ? "name a file that is not there yet" : nil)
    }
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    close(folder)
  }

  /// Takes the file away, unless something else has its name by now.
  package func remove() {
    if descriptor.isNamed(name, in: folder) { unlinkat(folder, name, 0) }
  }
}

extension CInt {
  /// Whether a name in a folder, given by a descriptor, is what this is a descriptor of.
  fileprivate func isNamed(_ name: String, in folder: CInt) -> Bool {
    var (own, named) = (stat(), stat())
    return fstat(self, &own) == 0 && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0
      && own.st_dev == named.st_dev && own.st_ino == named.st_ino
  }
}
