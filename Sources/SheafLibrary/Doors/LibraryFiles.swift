package import SheafModel
import SheafStore

/// The place of a library's files, for those who look at it or put something beside them.
extension Library {
  /// Refuses a file that is there and no library, a place where a library was, and a disk that cannot be written,
  /// before anything is made beside it.
  ///
  /// - Throws: ``SheafError``: `corrupt`, `newerFormat`; `notFound` for what is left of a former library; `readOnly`;
  ///   what the file cannot be read for.
  package static func refuseStranger(at location: LibraryLocation) throws(SheafError) {
    try Store.refuseStranger(at: location.path, lockPath: location.lockPath)
  }

  /// The id of a library by its file, which is not opened as one; nil where it cannot be read.
  package static func id(ofFileAt path: String) -> String? { Store.setting("library", ofFileAt: path) }

  /// Opens the folder of the library's files as a place alone (O_PATH), for the caller to close.
  ///
  /// - Throws: ``SheafError``: `busy` where another folder is at the library's path by now.
  package func openFolder() throws(SheafError) -> CInt { try store.openFolder() }
}
