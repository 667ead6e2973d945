import Glibc
import SheafLibrary
import SheafModel

/// A library that a command makes because there is none: who meant another one is to see that.
enum NewLibrary {
  /// Whether opening a library makes it.
  static func wouldBeMade(at location: LibraryLocation) -> Bool {
    var status = stat()
    return lstat(location.path, &status) != 0 || status.st_size == 0
  }

  /// Says that it was made; beside JSON on standard error.
  static func announce(at location: LibraryLocation, _ output: OutputOptions) throws {
    let line = "Made a new library at \(location.path.escapingControls)."
    try output.json ? StandardError.write(line + "\n") : StandardOutput.line(line)
  }

  /// What a command says that makes none.
  ///
  /// - Throws: ``SheafError`` of kind `notFound`, which says so where something of a former library lies there.
  static func refuse(at location: LibraryLocation) throws {
    try Library.refuseStranger(at: location)
    throw SheafError(
      .notFound, subject: location.path, reason: "there is no library yet",
      advice: "make one with: sheaf mount --library \(location.path)")
  }
}
