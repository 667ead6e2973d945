import Glibc
import SheafLibrary
import SheafModel
import SheafMount

/// Finds the library that a command means.
enum LibraryChoice {
  /// The library of `--library`, otherwise of `SHEAF_LIBRARY`, otherwise of the mount that the working directory is in,
  /// otherwise the person's own.
  ///
  /// - Parameters:
  ///   - changing: Whether the command changes the library, which it does not in a mount of it that is read-only.
  ///   - environment: The value of a variable; an empty one counts as absent.
  /// - Throws: ``SheafError``: `notFound` if a library is named in a folder that does not exist. Sheaf does not make
  ///   the folder: it may be on a disk that is not mounted. `readOnly`.
  static func location(
    named file: String?, changing: Bool = false, environment: (String) -> String? = Environment.value
  ) throws(SheafError) -> LibraryLocation {
    let here = (try? SystemPath.workingDirectory()).flatMap { try? MountTable.current().entry(containing: $0) }
    let mount = here.flatMap { $0.isSheaf ? $0 : nil }
    func refuseReadOnly(_ location: LibraryLocation) throws(SheafError) {
      guard changing, let mount, mount.isReadOnly, mount.source.readable == location.path else { return }
      throw readOnly(mount.mountpoint.readable)
    }
    if let path = file ?? environment("SHEAF_LIBRARY") {
      let location = try location(path: path)
      let folder = SystemPath.split(Array(location.path.utf8)).parent.readable
      guard access(folder, F_OK) == 0 || errno != ENOENT else {
        throw SheafError(
          .notFound, subject: folder, reason: "the folder of the library does not exist",
          advice: "mount the disk that it is on; for a new library make it: mkdir -p \(folder)")
      }
      try refuseReadOnly(location)
      return location
    }
    if let mount {
      let location = try location(path: mount.source.readable)
      try refuseReadOnly(location)
      return location
    }
    let own = try LibraryLocation.ownPath(data: environment("XDG_DATA_HOME"), home: try home(environment))
    return try location(path: own)
  }

  /// Refuses a library behind a symbolic link that leads nowhere, as to a disk that is not mounted.
  ///
  /// - Throws: ``SheafError`` of kind `notFound`.
  private static func refuseLinkToNothing(on path: String) throws(SheafError) {
    var way = ""
    for name in path.split(separator: "/") {
      way += "/\(name)"
      var status = stat()
      guard lstat(way, &status) == 0 else { return }
      guard status.st_mode & S_IFMT == S_IFLNK, stat(way, &status) != 0, [ENOENT, ELOOP].contains(errno) else {
        continue
      }
      let leadsToItself = errno == ELOOP
      throw SheafError(
        .notFound, subject: way.printable,
        reason: leadsToItself ? "is a link that leads to itself" : "is a link to something that is not there",
        advice: (leadsToItself ? "" : "mount the disk that it leads to, or ") + "take the link away")
    }
  }

  /// The failure of a command that would change something through a read-only mount.
  static func readOnly(_ mountpoint: String) -> SheafError {
    SheafError(
      .readOnly, subject: mountpoint.printable,
      reason: "is mounted read-only, and commands change nothing through it", advice: "use a mount that can be written")
  }

  /// The folder of the keys of this machine's devices, by the XDG Base Directory Specification.
  ///
  /// - Returns: nil for a user without a home.
  static func devicesFolder(environment: (String) -> String? = Environment.value) -> String? {
    let state = environment("XDG_STATE_HOME").flatMap { $0.hasPrefix("/") ? $0 : nil }
    return (state ?? (try? home(environment)).map { $0 + "/.local/state" }).map { $0 + "/sheaf/devices" }
  }

  private static func home(_ environment: (String) -> String?) throws(SheafError) -> String {
    guard let home = environment("HOME") ?? LinuxUser.current()?.home else {
      throw SheafError(
        .notFound, subject: "HOME", reason: "is not set, and the user has no home", advice: "name a library: --library")
    }
    return home
  }

  /// The location of a library's file, absolute and without symbolic links, so that one library has one lock. Root
  /// follows no links of others.
  ///
  /// - Throws: `invalid`, `isDirectory`, `notFound` behind a link that leads nowhere.
  static func location(path: String) throws(SheafError) -> LibraryLocation {
    let given = RawArguments.bytes(path)
    guard String(validating: given, as: UTF8.self) != nil, !path.isEmpty else {
      throw SheafError(.invalid, subject: "--library", reason: "is empty or not UTF-8")
    }
    let absolute = try SystemPath.absolute(given)
    guard !SystemPath.split(absolute).name.isEmpty else { throw SheafError(.isDirectory, subject: path.printable) }
    try refuseLinkToNothing(on: absolute.readable)
    let resolved = try SystemPath.trusted(absolute).readable
    var status = stat()
    guard lstat(resolved, &status) != 0 || status.st_mode & S_IFMT != S_IFDIR else {
      throw SheafError(.isDirectory, subject: path.printable, advice: "name the file of a library, such as one in it")
    }
    return LibraryLocation(path: resolved)
  }
}

/// A user of this machine, from the user database.
struct LinuxUser: Equatable {
  let name: String
  let uid: uid_t
  let gid: gid_t
  let home: String
  /// The GECOS field's first part: the person's name.
  let fullName: String

  static func current() -> LinuxUser? { getpwuid(getuid()).map(LinuxUser.init) }

  static func named(_ name: String) -> LinuxUser? { getpwnam(name).map(LinuxUser.init) }

  init(name: String, uid: uid_t, gid: gid_t, home: String, fullName: String) {
    self.name = name
    self.uid = uid
    self.gid = gid
    self.home = home
    self.fullName = fullName
  }

  private init(_ entry: UnsafeMutablePointer<passwd>) {
    let gecos = entry.pointee.pw_gecos.map { String(cString: $0) } ?? ""
    self.init(
      name: String(cString: entry.pointee.pw_name), uid: entry.pointee.pw_uid, gid: entry.pointee.pw_gid,
      home: String(cString: entry.pointee.pw_dir), fullName: gecos.prefix { $0 != "," }.description)
  }
}
