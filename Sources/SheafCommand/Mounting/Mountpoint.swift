import Glibc
import SheafModel

/// The place of a mount.
struct Mountpoint: Equatable {
  /// Absolute, without symbolic links.
  let path: String

  /// The name of the folder in a person's home where a library is mounted by default.
  static let defaultName = "Sheaf"

  /// The place that was given, else `~/Sheaf` of `user`, found without entering a mount that is there.
  init(given: PathArgument?, user: LinuxUser?) throws(SheafError) {
    let bytes: [UInt8]
    if let given {
      bytes = given.bytes
    } else {
      guard let home = user?.home ?? Environment.value("HOME") ?? LinuxUser.current()?.home else {
        throw SheafError(
          .notFound, subject: "HOME", reason: "is not set, and the user has no home", advice: "name a mount point")
      }
      bytes = Array((home + "/" + Self.defaultName).utf8)
    }
    guard String(validating: bytes, as: UTF8.self) != nil, !bytes.isEmpty else {
      throw SheafError(.invalid, subject: bytes.readable.printable, reason: "is no mount point: empty or not UTF-8")
    }
    let absolute = try SystemPath.absolute(bytes)
    let table = try MountTable.current()
    let (parent, name) = SystemPath.split(absolute)
    let isPlain = !name.isEmpty && name != Array(".".utf8) && name != Array("..".utf8)
    if isPlain, case .success(let folder) = SystemPath.resolve(parent) {
      let place = SystemPath.join(folder, name)
      if table.entry(at: place)?.isSheaf == true {
        path = place.readable
        return
      }
    }
    if case .success(let resolved) = SystemPath.resolve(absolute) {
      path = resolved.readable
    } else if isPlain, case .success(let folder) = SystemPath.resolve(parent) {
      path = SystemPath.join(folder, name).readable
    } else {
      path = absolute.readable
    }
  }

  /// Makes the folder, for the default place of a person who has none yet.
  func create(for user: LinuxUser?) throws(SheafError) {
    guard mkdir(path, 0o700) == 0 else {
      if errno == EEXIST || errno == ENOTCONN { return }
      throw SheafError(code: errno, subject: path, advice: "name another mount point")
    }
    if let user, getuid() == 0 { chown(path, user.uid, user.gid) }
  }

  /// Checks that the mount will not hide its own library.
  func verify(isOutside location: LibraryLocation) throws(SheafError) {
    guard SystemPath.part(of: Array(location.path.utf8), below: Array(path.utf8)) != nil else { return }
    throw SheafError(
      .invalid, subject: location.path, reason: "the library lies below its mount point \(path)",
      advice: "name another mount point or another library")
  }

  /// Clears a dead mount, and checks that a mount can be made here.
  ///
  /// - Throws: ``SheafError`` that says what is in the way.
  func prepare() throws(SheafError) {
    while let entry = try MountTable.current().entry(at: Array(path.utf8)) {
      guard entry.isSheaf, MountProbe.isDead(path) else { throw Self.taken(path, by: entry) }
      try DeadMount.clear(path)
    }
    guard let stream = opendir(path) else {
      switch errno {
      case ENOENT:
        throw SheafError(
          .notFound, subject: path, reason: "the mount point does not exist", advice: "make it: mkdir \(path)")
      case ENOTDIR:
        throw SheafError(.notDirectory, subject: path, reason: "is not a folder", advice: "name an empty folder")
      case let code: throw SheafError(code: code, subject: path, advice: "name an empty folder of your own")
      }
    }
    closedir(stream)
    guard DirectoryNames.of(path).isEmpty else {
      throw SheafError(.notEmpty, subject: path, reason: "the mount point is not empty", advice: "name an empty folder")
    }
  }

  /// Runs `body`, which mounts at `path`, with no other process of Sheaf mounting there meanwhile.
  ///
  /// - Throws: ``SheafError`` of kind `busy` where something is mounted there by now, or about to be.
  static func alone<Value>(at path: String, _ body: () throws -> Value) throws -> Value {
    func verify() throws(SheafError) {
      if let entry = try MountTable.current().entry(at: Array(path.utf8)) { throw taken(path, by: entry) }
    }
    try verify()
    let folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { throw SheafError(code: errno, subject: path, advice: "name an empty folder of your own") }
    // That lets go of the lock.
    defer { close(folder) }
    // A file system that has no such locks lets everybody in.
    guard flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
      throw SheafError(
        .busy, subject: path, reason: "another process mounts there just now", advice: "name another mount point")
    }
    try verify()
    return try body()
  }

  private static func taken(_ path: String, by entry: MountTable.Entry) -> SheafError {
    let what = entry.isSheaf ? "the library \(entry.source.readable)" : "\(entry.source.readable) (\(entry.type))"
    let advice = entry.isSheaf ? "unmount it first with: sheaf unmount \(path)" : "name another mount point"
    return SheafError(.busy, subject: path, reason: "is already mounted: \(what)", advice: advice)
  }
}
