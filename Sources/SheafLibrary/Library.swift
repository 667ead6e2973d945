package import SheafModel

/// A library in use: accounts, items, versions and events of one file, owned by this process while it is open.
package final class Library: Sendable {
  package let location: LibraryLocation

  /// Opens the library, making it where there is none.
  ///
  /// - Throws: ``SheafError``: `busy` where another process owns it, `newerFormat`, `corrupt`, `noSpace`, `inputOutput`.
  package static func open(_ location: LibraryLocation) throws -> Library { fatalError() }

  init(location: LibraryLocation) { self.location = location }

  /// Saves everything, makes it durable and lets go of the lock.
  package func close() throws { fatalError() }

  package func accounts() throws -> [Account] { fatalError() }
  package func addAccount(_ handle: AccountHandle, name: String?) throws -> Account { fatalError() }
  /// - Throws: `notFound`; `notEmpty` while it owns documents.
  package func removeAccount(_ handle: AccountHandle) throws { fatalError() }
  package func setPublicAddress(_ host: String?) throws { fatalError() }
  /// `mounts` is empty: the service fills it in.
  package func status() throws -> LibraryStatus { fatalError() }
  package func itemStatus(_ path: ItemPath) throws -> ItemStatus { fatalError() }
  /// The document's versions, oldest first.
  package func versions(_ path: ItemPath) throws -> [Version] { fatalError() }
  /// Passes a version's bytes (the current contents where `number` is nil) to `sink`, in order, at most 1 MiB at a time.
  package func readVersion(
    _ path: ItemPath, number: Int64?, into sink: (UnsafeRawBufferPointer) throws -> Void
  ) throws { fatalError() }
  /// The new version, or nil where the contents are equal already.
  package func restore(_ path: ItemPath, version: Int64) throws -> Version? { fatalError() }
  package func label(_ path: ItemPath, name: String, version: Int64?) throws -> Version { fatalError() }
  /// What was deleted at or below `path` (a folder, a deleted item's former path, or nil for all) and can be recovered.
  package func deleted(_ account: AccountHandle, below path: ItemPath?) throws -> [DeletedItem] { fatalError() }
  /// Paths of what came back, the top one first.
  package func recover(
    _ path: ItemPath, id: String?, progress: (Progress) -> Void
  ) throws -> [String] { fatalError() }
  /// Destroys an item (existing or deleted) with its history, or one version that is not the current one.
  package func purge(_ path: ItemPath, version: Int64?) throws { fatalError() }
  package func check(progress: (Progress) -> Void) throws -> CheckReport { fatalError() }
  package func compact(progress: (Progress) -> Void) throws -> CompactReport { fatalError() }
  /// Writes a consistent copy to `file`, which must not exist.
  package func backup(to file: String, progress: (Progress) -> Void) throws { fatalError() }
}
