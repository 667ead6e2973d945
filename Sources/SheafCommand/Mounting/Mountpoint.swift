import Glibc
import SheafModel
import SheafMount

/// The place of a mount.
struct Mountpoint: Equatable {
  /// Absolute, without symbolic links.
  let path: String

  /// The name of the folder in a person's home where a library is mounted by default.
  static let defaultName = "Sheaf"

  /// The given place, otherwise `~/Sheaf` of `user`, found without entering a mount that is there.
  ///
  /// Root follows only root's own symbolic links: the owner of any other one chooses where it leads.
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
    if geteuid() == 0 {
      // An existing mount is not entered.
      let place = MountFolder.following(rootsLinksIn: parent.readable) + "/" + name.readable
      let isMount = isPlain && table.entry(at: Array(place.utf8))?.isSheaf == true
      path = isMount ? place : MountFolder.following(rootsLinksIn: absolute.readable)
      return
    }
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

  /// Makes the folder at the default place, if there is none yet; for `user` with that user's rights.
  func create(for user: LinuxUser?) throws(SheafError) {
    do {
      try MountFolder.make(at: path, user: user?.uid ?? geteuid(), group: user?.gid ?? getegid())
    } catch {
      if error.rawValue == EEXIST || error.rawValue == ENOTCONN { return }
      throw Self.unfit(path, code: error.rawValue)
    }
  }

  /// Checks that the mount would not hide its own library.
  func verify(isOutside location: LibraryLocation) throws(SheafError) {
    guard SystemPath.part(of: Array(location.path.utf8), below: Array(path.utf8)) != nil else { return }
    throw SheafError(
      .invalid, subject: location.path, reason: "the library lies below its mount point \(path)",
      advice: "name another mount point or another library")
  }

  /// The library of a dead mount that is here; nil for root, since the mount's owner chose what it says.
  func deadLibrary() throws(SheafError) -> LibraryLocation? {
    guard geteuid() != 0, let entry = try MountTable.current().entry(at: Array(path.utf8)), entry.isSheaf else {
      return nil
    }
    let location = LibraryLocation(path: entry.source.readable)
    OwnerProcess.releaseKilled(location)
    return MountProbe.isDead(path) ? location : nil
  }

  /// For how long a mount is asked again whose process has ended.
  private static let endPatience = Duration.seconds(2)

  /// Clears a dead mount of a library, and checks that it can be mounted here.
  ///
  /// - Throws: ``SheafError`` that names the obstacle; `busy` for a dead mount of another library, whose documents would
  ///   seem to be lost.
  func prepare(for user: LinuxUser?, _ location: LibraryLocation) throws(SheafError) {
    let deadline = ContinuousClock.now + Self.endPatience
    while let entry = try MountTable.current().entry(at: Array(path.utf8)) {
      let dead = LibraryLocation(path: entry.source.readable)
      if entry.isSheaf { OwnerProcess.releaseKilled(dead) }
      guard entry.isSheaf, MountProbe.isDead(path) else {
        // It may have answered with its last breath.
        guard entry.isSheaf, OwnerProcess.hasEnded(dead) else { throw Self.taken(path, by: entry) }
        guard ContinuousClock.now < deadline else {
          throw SheafError(
            .busy, subject: path,
            reason: "is the mount of a process that was killed while programs wait for its answers",
            advice: "cut it as root: umount -f \(path.shellWord)")
        }
        usleep(20_000)
        continue
      }
      guard dead == location || ReadOnlyCopy.isOne(dead) else {
        throw SheafError(
          .busy, subject: path, reason: "has the dead mount of another library, \(dead.path)",
          advice: "\(Self.revival(of: dead)), or clear it: sheaf unmount \(path.shellWord)")
      }
      try LibraryMount.clear(at: path)
    }
    _ = try Self.folder(at: path, for: user)
  }

  /// What to do about the dead mounts of a library.
  static func revival(of location: LibraryLocation) -> String {
    "bring it back with: sheaf mount --all --library \(location.path.shellWord)"
  }

  /// Runs `body`, which mounts on the folder at `path`, with no other process of Sheaf mounting there meanwhile.
  ///
  /// - Parameter user: The user to whom root gives the mount.
  /// - Throws: ``SheafError``: `busy` if something is mounted there by now, or about to be; the fault of the folder.
  static func alone<Value>(at path: String, for user: LinuxUser?, _ body: (MountFolder) throws -> Value) throws -> Value
  {
    func verify() throws(SheafError) {
      if let entry = try MountTable.current().entry(at: Array(path.utf8)) { throw taken(path, by: entry) }
    }
    try verify()
    // The lock is released with it.
    let folder = try folder(at: path, for: user)
    guard folder.lock() else {
      throw SheafError(
        .busy, subject: path, reason: "another process mounts there just now", advice: "name another mount point")
    }
    try verify()
    return try body(folder)
  }

  /// Opens the folder, and checks the opened one: it is empty, and belongs to the user to whom root gives the mount, or
  /// to root, in a place that only root can change.
  private static func folder(at path: String, for user: LinuxUser?) throws(SheafError) -> MountFolder {
    let folder: MountFolder
    do {
      folder = try MountFolder(at: path)
    } catch {
      throw unfit(path, code: error.rawValue)
    }
    if let user, folder.owner != user.uid, !folder.isRoots {
      throw SheafError(
        .notPermitted, subject: path, reason: "does not belong to \(user.name)".printable,
        advice: "name an empty folder of theirs")
    }
    guard DirectoryNames.of(folder.ownPath).isEmpty else {
      throw SheafError(.notEmpty, subject: path, reason: "the mount point is not empty", advice: "name an empty folder")
    }
    return folder
  }

  /// The error for a mount point that cannot be opened or made.
  private static func unfit(_ path: String, code: CInt) -> SheafError {
    switch code {
    case ENOENT:
      SheafError(
        .notFound, subject: path, reason: "the mount point does not exist", advice: "make it: mkdir \(path.shellWord)")
    case ENOTDIR: SheafError(.notDirectory, subject: path, reason: "is not a folder", advice: "name an empty folder")
    case ELOOP:
      SheafError(
        .invalid, subject: path, reason: "is a symbolic link, or lies behind one",
        advice: "name the folder to which it leads")
    default: SheafError(systemError: code, subject: path, advice: "name an empty folder of your own")
    }
  }

  private static func taken(_ path: String, by entry: MountTable.Entry) -> SheafError {
    let what = entry.isSheaf ? "the library \(entry.source.readable)" : "\(entry.source.readable) (\(entry.type))"
    let advice = entry.isSheaf ? "unmount it first with: sheaf unmount \(path)" : "name another mount point"
    return SheafError(.busy, subject: path, reason: "is already mounted: \(what)", advice: advice)
  }
}
