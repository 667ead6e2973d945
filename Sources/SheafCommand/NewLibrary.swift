import Glibc
import SheafLibrary
import SheafModel
import SheafMount

/// A library that a command makes because there is none. The command says so, for a person who meant another one.
enum NewLibrary {
  /// Whether opening a library makes it.
  static func wouldBeMade(at location: LibraryLocation) -> Bool {
    var status = stat()
    return lstat(location.path, &status) != 0 || status.st_size == 0
  }

  /// Prints that the library was made; with `--json` on standard error.
  static func announce(at location: LibraryLocation, _ output: OutputOptions) throws {
    let line = "Made a new library at \(location.path.escapingControls)."
    try output.json ? StandardError.write(line + "\n") : StandardOutput.line(line)
  }

  /// The error of a command that makes no library.
  ///
  /// - Throws: ``SheafError`` of kind `notFound`, which names the remains of a former library if there are any.
  static func refuse(at location: LibraryLocation) throws {
    try Library.refuseStranger(at: location)
    let mount = try? MountTable.current().entries.last { $0.isSheaf && $0.source == Array(location.path.utf8) }
    if let mount {
      throw SheafError(
        .notFound, subject: location.path, reason: "is mounted at \(mount.mountpoint.readable), but is not there",
        advice: "see that its disk is mounted; this ends the mount: umount \(mount.mountpoint.readable)")
    }
    throw SheafError(
      .notFound, subject: location.path, reason: "there is no library yet",
      advice: "if it is on a disk, mount that; else make one with: sheaf mount --library \(location.path)")
  }

  /// Refuses to make a library on a folder that only stands for a disk which is not mounted.
  ///
  /// - Throws: ``SheafError`` of kind `notFound`, which names the place of the disk.
  static func refuseWithoutDisk(at location: LibraryLocation) throws {
    guard let mounted = try? MountTable.current(),
      let place = FileSystemTable.current().absentDisk(for: location.path, mounted)?.escapingControls
    else { return }
    throw SheafError(
      .notFound, subject: location.path,
      reason: "there is no library, and the disk that /etc/fstab names for \(place) is not mounted",
      advice: "mount the disk: mount \(place)")
  }
}
