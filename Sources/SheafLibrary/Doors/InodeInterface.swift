package import SheafModel

/// The interface of a library for mounts: items by inode, each request with its caller.
///
/// Every function takes the lock itself, and is documented where it is implemented.
package protocol InodeInterface: AnyObject, Sendable {
  var location: LibraryLocation { get }
  var locks: FileLocks { get }

  // MARK: - Doors

  func observe(account: Int64?, _ observer: @escaping @Sendable ([LibraryNews]) -> Void) -> Int
  func endObserving(_ door: Int)

  // MARK: - Accounts

  func number(of handle: AccountHandle) throws -> Int64
  func documents(of handle: AccountHandle) throws -> Int64

  // MARK: - Names

  func lookup(_ parent: Int64, _ name: [UInt8], _ caller: Caller) throws -> Attributes
  func list(
    _ ino: Int64, after cookie: Int64, limit: Int, notesAccess: Bool, _ caller: Caller
  ) throws -> [Library.Listed]
  func parent(of ino: Int64, _ caller: Caller) throws -> Library.ParentPlace
  func make(
    _ node: Library.NewNode, _ parent: Int64, _ name: [UInt8], mode: UInt32, _ caller: Caller
  ) throws -> Attributes
  func link(_ ino: Int64, _ parent: Int64, _ name: [UInt8], _ caller: Caller) throws -> Attributes
  func readLink(_ ino: Int64, notesAccess: Bool, _ caller: Caller) throws -> [UInt8]
  func unlink(_ parent: Int64, _ name: [UInt8], _ caller: Caller) throws
  @discardableResult
  func rmdir(_ parent: Int64, _ name: [UInt8], _ caller: Caller) throws -> Int64
  @discardableResult
  func rename(
    _ parent: Int64, _ name: [UInt8], to newParent: Int64, _ newName: [UInt8], _ mode: Library.RenameMode,
    _ caller: Caller
  ) throws -> Int64?
  func forget(_ inos: [Int64])

  // MARK: - Attributes

  func attributes(_ ino: Int64, _ caller: Caller) throws -> Attributes
  func setAttributes(
    _ ino: Int64, _ change: Library.AttributeChange, handle: UInt64?, _ caller: Caller
  ) throws -> Attributes
  func checkAccess(_ ino: Int64, _ wanted: Int32, _ caller: Caller) throws
  func xattr(_ ino: Int64, _ name: [UInt8], _ caller: Caller) throws -> [UInt8]
  func xattrNames(_ ino: Int64, listsComputed: Bool, _ caller: Caller) throws -> [[UInt8]]
  func setXattr(_ ino: Int64, _ name: [UInt8], _ value: [UInt8], _ mode: Library.XattrMode, _ caller: Caller) throws
  func removeXattr(_ ino: Int64, _ name: [UInt8], _ caller: Caller) throws

  // MARK: - Open files

  func permitLock(_ handle: UInt64) throws -> Bool
  func saveBeforeUnlocking(_ account: Int64, thread: Int32)
  func showSavedAfterLocking(_ account: Int64)
  func create(
    _ parent: Int64, _ name: [UInt8], mode: UInt32, flags: Int32, _ caller: Caller
  ) throws -> (attributes: Attributes, handle: UInt64, isNew: Bool)
  func createNameless(
    _ parent: Int64, mode: UInt32, flags: Int32, _ caller: Caller
  ) throws -> (attributes: Attributes, handle: UInt64)
  func open(_ ino: Int64, flags: Int32, allowsUnlinked: Bool, _ caller: Caller) throws -> UInt64
  func read(_ handle: UInt64, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int
  func write(
    _ handle: UInt64, at offset: Int64, _ data: UnsafeRawBufferPointer, appends: Bool,
    isWriteBack: Bool, by writer: Caller?, thread: Int32, clearsCapability: Bool
  ) throws
  func flush(_ handle: UInt64) throws
  func fsync(_ ino: Int64) throws
  func sync() throws
  func release(_ handle: UInt64) throws
  func allocate(_ handle: UInt64, _ range: Range<Int64>, _ allocation: Library.Allocation) throws
  func seek(_ handle: UInt64, _ offset: Int64, hole: Bool) throws -> Int64
  func copy(
    from sourceHandle: UInt64, at offset: Int64, to target: UInt64, at targetOffset: Int64, count: Int64
  ) throws -> Int64
  func space() -> (total: Int64, free: Int64, available: Int64)

  // MARK: - Versions

  func versionFolders(of ino: Int64, _ caller: Caller) throws -> [Library.VersionFolder]
  func versionFolder(of ino: Int64, _ name: [UInt8], _ caller: Caller) throws -> Library.VersionFolder
  func versionFiles(of item: Int64, _ caller: Caller) throws -> [Library.VersionFile]
  func versionFile(of item: Int64, number: Int64, _ caller: Caller) throws -> Library.VersionFile
  func sees(version number: Int64, of item: Int64, _ account: Int64) -> Bool
  func versionOwner(of item: Int64, _ caller: Caller) throws -> (uid: UInt32, gid: UInt32)
  func folder(ofItem item: Int64) throws -> Int64
  func openVersion(of item: Int64, number: Int64, _ caller: Caller) throws -> VersionReader
  func read(
    _ reader: VersionReader, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
  ) throws -> Int
  func seek(_ reader: VersionReader, _ offset: Int64, hole: Bool) throws -> Int64

  // MARK: - Folders as they were

  func pastFolder(_ ino: Int64, at time: Timestamp, _ caller: Caller) throws -> Attributes
  func pastEntry(
    _ parent: Int64, _ name: [UInt8], below top: Int64, at time: Timestamp, _ caller: Caller
  ) throws -> Library.PastEntry
  func pastEntries(of ino: Int64, below top: Int64, at time: Timestamp, _ caller: Caller) throws -> [Library.PastEntry]
  func pastLink(_ ino: Int64, _ caller: Caller) throws -> (attributes: Attributes, target: [UInt8])
  // MARK: - The trash

  func hasOwnTrashName(_ folder: Int64) throws -> Bool
  func trash(of folder: Int64, _ caller: Caller) throws -> [Library.TrashEntry]
  func trashEntry(of folder: Int64, _ name: [UInt8], _ caller: Caller) throws -> Attributes
  func attributes(deleted ino: Int64, _ caller: Caller) throws -> Attributes
  func attributes(deleted ino: Int64, openAs reader: VersionReader, _ caller: Caller) throws -> Attributes
  func trashPlace(of ino: Int64, _ caller: Caller) throws -> Library.TrashPlace
  func sees(deleted ino: Int64, _ account: Int64) -> Bool
  func readLink(deleted ino: Int64, _ caller: Caller) throws -> [UInt8]
  func xattr(deleted ino: Int64, _ name: [UInt8], _ caller: Caller) throws -> [UInt8]
  func xattrNames(deleted ino: Int64, listsComputed: Bool, _ caller: Caller) throws -> [[UInt8]]
  func openDeleted(_ ino: Int64, _ caller: Caller) throws -> VersionReader
  func recover(
    _ name: [UInt8], deletedFrom folder: Int64, to newFolder: Int64, _ newName: [UInt8], _ caller: Caller
  ) throws

  // MARK: - What others share

  func sees(_ ino: Int64, _ account: Int64) -> Bool
  func leftOwner(_ account: Int64, _ owner: [UInt8], _ caller: Caller) -> Int64?
  func createShared(
    _ account: Int64, owner: Int64, _ name: [UInt8], mode: UInt32, flags: Int32, _ caller: Caller
  ) throws -> (attributes: Attributes, handle: UInt64)
  func symlinkShared(
    _ account: Int64, owner: Int64, _ name: [UInt8], target: [UInt8], _ caller: Caller
  ) throws -> Attributes
  func linkShared(
    _ ino: Int64, _ account: Int64, owner: Int64, _ newName: [UInt8], _ caller: Caller
  ) throws -> Attributes
  func whereabouts(
    of place: LibraryPlace, _ ino: Int64, for account: Int64
  ) -> (folders: [[UInt8]], place: LibraryPlace)?
  func sharedOwners(_ account: Int64) -> [(account: Int64, handle: AccountHandle)]
  func sharedEntries(_ account: Int64, owner: Int64) throws -> [SharedEntry]
  func sharedEntry(_ account: Int64, owner: Int64, _ name: [UInt8], _ caller: Caller) throws -> Attributes
  func isTemporary(_ account: Int64, owner: Int64, _ name: [UInt8]) throws -> Bool
  func renameSharedEntry(
    _ account: Int64, owner: Int64, _ name: [UInt8], to newName: [UInt8], _ mode: Library.RenameMode, _ caller: Caller
  ) throws
  @discardableResult
  func removeSharedEntry(_ account: Int64, owner: Int64, _ name: [UInt8], _ caller: Caller) throws -> Int64
}
