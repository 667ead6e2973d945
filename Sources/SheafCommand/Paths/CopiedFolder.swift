import Glibc
import SheafModel
import SheafMount

/// The folder in which a copy is made, held open from the first look at it, and the name of the copy there.
final class CopyDestination {
  let folder: CInt
  let name: [UInt8]
  /// For messages.
  let path: [UInt8]

  /// - Parameters:
  ///   - given: a name that does not exist, or a folder. Root is led by no link that others can change.
  ///   - source: the name of what is copied, which the copy gets in a folder.
  /// - Throws: ``SheafError``: `invalid` for such a link.
  init(_ given: [UInt8], named source: [UInt8]) throws(SheafError) {
    let outer: CInt
    let last: [UInt8]
    let whole: [UInt8]
    if geteuid() == 0 {
      whole = try SystemPath.trusted(SystemPath.absolute(given))
      let (parent, name) = SystemPath.split(whole)
      do {
        let place = try Place(parent.split(separator: SystemPath.slash).map(\.readable))
        outer = withExtendedLifetime(place) { openat(place.descriptor, ".", Place.flags) }
      } catch {
        throw SheafError(systemError: error.rawValue, subject: parent.readable, advice: Self.advice)
      }
      last = name
    } else {
      whole = given
      let start = given.lastIndex { $0 != SystemPath.slash }.flatMap { given[...$0].lastIndex(of: SystemPath.slash) }
      let parent = start.map { Array(given[...$0]) } ?? [UInt8(ascii: ".")]
      last = start.map { Array(given[($0 + 1)...]) } ?? given
      outer = open(parent.cString, Place.flags)
    }
    guard outer >= 0 else { throw SheafError(systemError: errno, subject: whole.readable, advice: Self.advice) }
    // Of a person's own links the last one may lead to a folder, too.
    let inner = openat(
      outer, (last.isEmpty ? Array(".".utf8) : last).cString, Place.flags | (geteuid() == 0 ? O_NOFOLLOW : 0))
    if inner >= 0 {
      close(outer)
      (folder, name, path) = (inner, source, SystemPath.join(whole, source))
    } else {
      (folder, name, path) = (outer, last, whole)
    }
  }

  deinit { close(folder) }

  /// Where the folder is now.
  var folderPath: [UInt8] {
    guard case .success(let path) = SystemPath.resolve(Array("/proc/self/fd/\(folder)".utf8)) else { return path }
    return path
  }

  fileprivate static let advice = "name another destination"
}

/// The place of a file of a copy: a name in an open folder.
struct CopyPlace {
  let folder: CInt
  let name: [UInt8]
  /// For messages.
  let path: [UInt8]

  /// The place that the person gave, for as long as `destination` is there.
  init(_ destination: CopyDestination) {
    (folder, name, path) = (destination.folder, destination.name, destination.path)
  }

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

  var failure: SheafError { SheafError(systemError: errno, subject: path.readable, advice: CopyDestination.advice) }

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
