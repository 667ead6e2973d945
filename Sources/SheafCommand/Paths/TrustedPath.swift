import Glibc
import SheafModel
import SheafMount

extension SystemPath {
  /// The path, resolved as far as it exists. Root follows no symbolic links that others than root may have put there.
  ///
  /// - Throws: `invalid` that names such a link.
  static func trusted(_ path: [UInt8]) throws(SheafError) -> [UInt8] {
    guard geteuid() == 0 else { return resolvingExisting(path) }
    let followed = Array(MountFolder.following(rootsLinksIn: path.readable).utf8)
    var (folder, known) = (followed, [UInt8]())
    while folder.count > 1 {
      var status = stat()
      if lstat(folder.readable, &status) == 0, status.st_mode & S_IFMT == S_IFLNK { known = folder }
      folder = split(folder).parent
    }
    guard known.isEmpty else {
      throw SheafError(
        .invalid, subject: known.readable, reason: "is a symbolic link that others than root can change",
        advice: "name the place to which it leads")
    }
    return followed
  }
}
