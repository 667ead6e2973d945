import Glibc
import SheafModel

/// The place of a file of a copy: a name in an open folder, or a path that the person gave.
struct CopyPlace {
  /// `AT_FDCWD` for a path.
  let folder: CInt
  let name: [UInt8]
  /// For messages.
  let path: [UInt8]

  /// A path that the person gave.
  init(_ path: [UInt8]) { (folder, name, self.path) = (AT_FDCWD, path, path) }

  /// A name that a library gave, in a folder of the copy.
  ///
  /// - Throws: ``SheafError`` of kind `invalid` for anything but one component of a path.
  init(_ name: [UInt8], in folder: CInt, _ parent: [UInt8]) throws(SheafError) {
    guard ItemPath.isComponent(name) else {
      throw SheafError(
        .invalid, subject: parent.readable.printable,
        reason: "the library names \(name.readable.printable) in it, which is no name",
        advice: "see what is wrong with the library: sheaf check")
    }
    (self.folder, self.name, path) = (folder, name, SystemPath.join(parent, name))
  }

  var failure: SheafError { SheafError(systemError: errno, subject: path.readable, advice: "name another destination") }

  /// Makes a file and lets `body` write it. Until it is whole, only its owner can read it; then it gets the permissions
  /// of `facts`.
  func makeFile(_ facts: CopyFacts, _ body: (CInt) async throws -> Void) async throws {
    let file = openat(folder, cName, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw failure }
    do {
      try await body(file)
      try facts.set(file, self)
    } catch {
      close(file)
      throw error
    }
    // Some file systems report only then that there was no room.
    guard close(file) == 0 else { throw failure }
  }

  /// Makes a symbolic link.
  func makeLink(to target: [UInt8], at time: Timestamp) throws {
    guard symlinkat(target.cString, folder, cName) == 0 else { throw failure }
    guard utimensat(folder, cName, time.ofBoth, AT_SYMLINK_NOFOLLOW) == 0 else { throw failure }
  }

  /// Makes a folder that only its owner can enter, and opens it.
  func makeFolder() throws -> CInt {
    guard mkdirat(folder, cName, 0o700) == 0 else { throw failure }
    let made = openat(folder, cName, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard made >= 0 else { throw failure }
    return made
  }

  private var cName: [CChar] { name.cString }
}

/// Permissions and time of something that is copied.
struct CopyFacts {
  let mode: UInt32
  let mtime: Timestamp

  /// Applies them to an open file or folder.
  func set(_ descriptor: CInt, _ place: CopyPlace) throws {
    guard fchmod(descriptor, mode & 0o777) == 0, futimens(descriptor, mtime.ofBoth) == 0 else { throw place.failure }
  }
}

/// A folder of a copy that is being filled.
struct CopiedFolder {
  let place: CopyPlace
  let item: ItemAddress
  let facts: CopyFacts
  /// The items that are still to be copied, the next one last.
  var children: [FolderItem]
  private let device: dev_t
  private let number: ino_t

  init(_ descriptor: CInt, _ place: CopyPlace, _ item: ItemAddress, _ facts: CopyFacts, _ children: [FolderItem]) throws
  {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw place.failure }
    (device, number) = (status.st_dev, status.st_ino)
    (self.place, self.item, self.facts, self.children) = (place, item, facts, children.reversed())
  }

  /// Opens it anew from a folder in it: of nested folders only one is open at a time.
  ///
  /// - Throws: ``SheafError`` if the folder was moved meanwhile.
  func reopen(from inner: CInt) throws -> CInt {
    let descriptor = openat(inner, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw place.failure }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_dev == device, status.st_ino == number else {
      close(descriptor)
      throw SheafError(
        .inputOutput, subject: place.path.readable, reason: "was moved while it was being filled",
        advice: "copy it again")
    }
    return descriptor
  }
}

extension [UInt8] {
  fileprivate var cString: [CChar] { map { CChar(bitPattern: $0) } + [0] }
}

extension Timestamp {
  /// The argument of utimensat(2) that sets both the time of access and the time of modification.
  fileprivate var ofBoth: [timespec] {
    let moment = timespec(tv_sec: Int(seconds), tv_nsec: Int(subsecondNanoseconds))
    return [moment, moment]
  }
}
