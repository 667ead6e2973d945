package import SheafModel
import SheafStore

extension Library {
  /// Saves what can be read of a damaged library into a new one; the damaged one stays as it is.
  ///
  /// - Throws: ``SheafError``: `notFound`; `busy` while a process has it open; `exists` where the new one is there;
  ///   `corrupt` where nothing can be read; `newerFormat`, `noSpace`.
  package static func repair(
    _ damaged: LibraryLocation, to saved: LibraryLocation
  ) throws(SheafError) -> RepairReport {
    try Store.repair(
      damaged.path, lockPath: damaged.lockPath, to: saved.path, destinationLockPath: saved.lockPath)
  }
}
