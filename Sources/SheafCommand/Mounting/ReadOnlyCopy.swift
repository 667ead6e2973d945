import Glibc
import SheafLibrary
import SheafModel

/// A copy of a library that lies where nothing can be written, as a backup on read-only media does, or one that is
/// somebody else's: using a library makes files beside it. The copy lies in a folder of its own in TMPDIR or /var/tmp,
/// and goes with the command or the mount that uses it.
struct ReadOnlyCopy {
  /// The copy.
  let location: LibraryLocation
  private let folder: OwnFolder

  private static let prefix = "sheaf-readonly-"

  /// Whether a library lies on a disk that is mounted read-only, or cannot be changed (chattr(1), `+i`), or whether this
  /// user may read it, and change neither it nor the folder, and nobody has it open: of one that changes a copy may be
  /// torn.
  static func isNeeded(for library: LibraryLocation) -> Bool {
    guard access(library.path, R_OK) == 0 else { return false }
    if access(library.path, W_OK) != 0, errno == EROFS || errno == EPERM { return true }
    let folder = SystemPath.split(Array(library.path.utf8)).parent.readable
    func isForeign(_ path: String) -> Bool { access(path, W_OK) != 0 && errno == EACCES }
    return (isForeign(library.path) || isForeign(folder)) && access(library.path + "-socket", F_OK) != 0
  }

  /// Copies a library, with the changes that lie beside it.
  ///
  /// - Throws: ``SheafError``; `noSpace` that names the folder.
  init(of library: LibraryLocation) throws(SheafError) {
    let parent = Environment.value("TMPDIR") ?? "/var/tmp"
    do throws(SheafError) {
      folder = try OwnFolder(Self.prefix, in: parent)
    } catch {
      throw SheafError(
        error.kind, subject: parent, reason: error.reason, advice: "name another folder with TMPDIR")
    }
    location = LibraryLocation(path: "\(folder.path)/\(SystemPath.split(Array(library.path.utf8)).name.readable)")
    do {
      for suffix in ["", "-wal", "-changes", "-working"] {
        try Self.copy(library.path + suffix, to: location.path + suffix, isNeeded: suffix.isEmpty)
      }
    } catch {
      remove()
      guard error.kind == .noSpace else { throw error }
      throw SheafError(
        .noSpace, subject: parent, reason: "has no room for a copy of \(library.path)",
        advice: "name a folder with room: TMPDIR=FOLDER sheaf …")
    }
  }

  /// The copy that another process made; nil for any other library.
  init?(at location: LibraryLocation) {
    let parent = SystemPath.split(Array(location.path.utf8)).parent.readable
    guard let folder = OwnFolder(Self.prefix, at: parent) else { return nil }
    self.location = location
    self.folder = folder
  }

  /// Whether a library is such a copy.
  static func isOne(_ location: LibraryLocation) -> Bool {
    let folder = SystemPath.split(Array(location.path.utf8)).parent
    return SystemPath.split(folder).name.starts(with: prefix.utf8)
  }

  /// Removes the copy with the files beside it, once nobody uses it.
  func remove() { folder.remove() }

  /// An error that names the copy, as one about the library, which alone a person knows.
  func naming(_ library: LibraryLocation, in error: any Error) -> any Error {
    guard let error = error as? SheafError else { return error }
    func named(_ text: String) -> String { text.replacing(location.path, with: library.path) }
    return SheafError(
      error.kind, subject: named(error.subject), reason: named(error.reason), advice: error.advice.map(named))
  }

  private static func copy(_ path: String, to copiedPath: String, isNeeded: Bool) throws(SheafError) {
    let original = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard original >= 0 else {
      if !isNeeded, errno == ENOENT { return }
      throw SheafError(systemError: errno, subject: path)
    }
    defer { close(original) }
    let copied = open(copiedPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard copied >= 0 else { throw SheafError(systemError: errno, subject: copiedPath) }
    defer { close(copied) }
    while true {
      let count = sendfile(copied, original, nil, 1 << 24)
      if count == 0 { return }
      if count < 0, errno != EINTR { throw SheafError(systemError: errno, subject: copiedPath) }
    }
  }
}
