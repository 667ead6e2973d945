internal import CLinux
internal import Foundation
internal import Glibc
internal import SheafModel

/// The folder that holds a library, and the checks of the file before SQLite opens it.
enum LibraryFolder {
  /// Makes the folder (0700) where it is missing.
  static func make(for path: String) throws(SheafError) {
    let folder = (path as NSString).deletingLastPathComponent
    var made: [String] = []
    var missing = folder
    while !missing.isEmpty, access(missing, F_OK) != 0, errno == ENOENT {
      made.append(missing)
      missing = (missing as NSString).deletingLastPathComponent
    }
    for each in made.reversed() where OwnerRights.acting(on: path, { mkdir(each, 0o700) }) != 0 && errno != EEXIST {
      throw SheafError(systemError: errno, subject: each)
    }
  }

  /// Refuses a library on a disk that cannot be written: opening it makes files beside it.
  static func refuseReadOnlyDisk(of path: String) throws(SheafError) {
    guard access(path, W_OK) != 0, errno == EROFS else { return }
    throw SheafError(
      .readOnly, subject: path, reason: "is on a disk that is mounted read-only",
      advice: "mount it with sheaf mount --read-only, or copy the file to another disk and use the copy")
  }

  /// Opens a library's file, or one beside it. The folder's owner can neither lead a root process elsewhere by a
  /// symbolic link, nor hold it up by a fifo.
  ///
  /// - Returns: A descriptor, or -1 with errno(3).
  static func open(_ path: String, _ flags: Int32, _ mode: mode_t = 0) -> Int32 {
    OwnerRights.acting(on: path) {
      Glibc.open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode)
    }
  }

  /// Removes a library's file, or one beside it.
  static func remove(_ path: String) { _ = OwnerRights.acting(on: path) { unlink(path) } }

  /// Copies a file beside the library, if it is there, under a name that nothing has. Its holes are holes in the copy.
  ///
  /// - Parameter length: Bytes of it to copy; nil for all.
  static func copy(_ path: String, to copiedPath: String, upTo length: Int64? = nil) throws(SheafError) {
    guard let original = try openExisting(at: path) else { return }
    defer { close(original) }
    let copied = open(copiedPath, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    guard copied >= 0 else { throw SheafError(systemError: errno, subject: copiedPath) }
    defer { close(copied) }
    guard copyData(of: original, to: copied, upTo: length ?? .max) else {
      let code = errno
      remove(copiedPath)
      throw SheafError(systemError: code, subject: copiedPath)
    }
  }

  /// Copies what lies between the holes of a file, however long these are; returns false, with errno(3), if that fails.
  private static func copyData(of original: CInt, to copied: CInt, upTo length: Int64) -> Bool {
    var status = stat()
    guard fstat(original, &status) == 0 else { return false }
    let end = min(status.st_size, off_t(length))
    var place: off_t = 0
    while place < end {
      let start = lseek(original, place, SEEK_DATA)
      // Nothing but a hole is left.
      if start < 0, errno == ENXIO { break }
      guard start >= 0 else { return false }
      let hole = lseek(original, start, SEEK_HOLE)
      guard hole >= 0, start >= end || lseek(copied, start, SEEK_SET) == start else { return false }
      place = start
      while place < min(hole, end) {
        let count = sendfile(copied, original, &place, Int(min(min(hole, end) - place, 1 << 20)))
        // It became shorter meanwhile.
        if count == 0 { return true }
        guard count > 0 || errno == EINTR else { return false }
      }
    }
    return ftruncate(copied, end) == 0
  }

  /// Opens the folder of a library's file as a place alone (O_PATH).
  static func openFolder(of path: String) throws(SheafError) -> Int32 {
    let folder = (path as NSString).deletingLastPathComponent
    let descriptor = OwnerRights.acting(on: path) {
      Glibc.open(folder.isEmpty ? "." : folder, clinux_path_only | O_DIRECTORY | O_CLOEXEC)
    }
    guard descriptor >= 0 else { throw SheafError(systemError: errno, subject: folder) }
    return descriptor
  }

  /// Checks that the opened thing is a regular file.
  private static func verify(_ descriptor: Int32, _ path: String) throws(SheafError) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw SheafError(systemError: errno, subject: path) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw SheafError(
        .inputOutput, subject: path, reason: "is no file", advice: "take it away, or name another library")
    }
  }

  /// Refuses anything but regular files where SQLite keeps its own files beside the library, and in the place of the
  /// reserve, without which every change would be refused as on a full disk.
  static func refuseStrangers(beside path: String) throws(SheafError) {
    for file in ["-journal", "-wal", "-shm", Store.reserveSuffix].map({ path + $0 }) {
      var status = stat()
      guard lstat(file, &status) == 0, status.st_mode & S_IFMT != S_IFREG else { continue }
      if status.st_mode & S_IFMT == S_IFLNK { throw isLink(file) }
      throw SheafError(.inputOutput, subject: file, reason: "is no file", advice: "take it away")
    }
  }

  /// How every SQLite database begins.
  static let databaseMark = Array("SQLite format 3\0".utf8)

  /// Refuses files that have the names of a library's own, and cannot be its own: they would be written over.
  static func refuseForeignFiles(beside path: String, lockPath: String) throws(SheafError) {
    // A process's id; after a loss of power, zeros.
    try refuse(lockPath) { $0.count <= 32 && $0.allSatisfy { $0 == 0 || $0 == 10 || (48...57).contains($0) } }
    try refuse(path + Store.reserveSuffix) { $0.allSatisfy { $0 == 0 } }
    try refuse(path + Store.recordSuffix) { !$0.starts(with: databaseMark) }
  }

  private static func refuse(_ path: String, unless isOwn: (ArraySlice<UInt8>) -> Bool) throws(SheafError) {
    let file = open(path, O_RDONLY)
    guard file >= 0 else { return }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(file, &bytes, bytes.count)
    guard count > 0, !isOwn(bytes.prefix(count)) else { return }
    throw SheafError(
      .exists, subject: path, reason: "is there, and is no file of this library's",
      advice: "move it away, or name another library")
  }

  private static func isLink(_ path: String) -> SheafError {
    SheafError(.inputOutput, subject: path, reason: "is a symbolic link", advice: "take it away")
  }

  /// Makes the file (0600) if it is missing, and takes others' rights from it. A file that is no library must have been
  /// refused before.
  static func makeFile(at path: String) throws(SheafError) {
    // An empty file is a valid empty database. It is made here so that it never exists with other rights.
    let descriptor = open(path, O_RDWR | O_CREAT, 0o600)
    guard descriptor >= 0 else { throw SheafError(systemError: errno, subject: path) }
    defer { close(descriptor) }
    try verify(descriptor, path)
    fchmod(descriptor, 0o600)
  }

  /// Opens a file beside the library for reading and writing, making it (0600) where it is missing; returns its
  /// descriptor.
  ///
  /// A file that root makes belongs to the owner of the library's file, who may be the next to open the library. SQLite
  /// treats the files that it makes alike.
  static func openFile(at path: String, beside library: String) throws(SheafError) -> Int32 {
    while true {
      let made = open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
      if made >= 0 {
        var status = stat()
        if geteuid() == 0, lstat(library, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
          fchown(made, status.st_uid, status.st_gid)
        }
        return made
      }
      guard errno == EEXIST else { throw SheafError(systemError: errno, subject: path) }
      let found = open(path, O_RDWR)
      if found >= 0 {
        do throws(SheafError) {
          try verify(found, path)
        } catch {
          close(found)
          throw error
        }
        return found
      }
      // Otherwise another process removed it just now.
      guard errno == ENOENT else {
        throw errno == ELOOP ? isLink(path) : SheafError(systemError: errno, subject: path)
      }
    }
  }

  /// Reads `application_id` and `user_version` from the file's header (SQLite file format, 1.3).
  ///
  /// - Throws: `newerFormat`; `corrupt` for a file that is no library. Nothing is written.
  static func checkHeader(of path: String) throws(SheafError) -> Header {
    let descriptor = open(path, O_RDONLY)
    guard descriptor >= 0 else { throw SheafError(systemError: errno, subject: path) }
    // Closing is safe here: SQLite holds no POSIX lock on the file yet that this would drop.
    defer { close(descriptor) }
    try verify(descriptor, path)
    var header = [UInt8](repeating: 0, count: 100)
    let count = read(descriptor, &header, 100)
    guard count >= 0 else { throw SheafError(systemError: errno, subject: path) }
    if count == 0 { return .empty }
    func number(at offset: Int) -> Int32 {
      Int32(bitPattern: header[offset..<(offset + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
    }
    let version = number(at: 60)
    let application = number(at: 68)
    guard count == 100, header.starts(with: databaseMark),
      application == Schema.applicationID || (application == 0 && version == 0)
    else { throw notALibrary(path) }
    guard version <= Schema.version else {
      throw SheafError(
        .newerFormat, subject: path,
        reason: "was written by a newer version of Sheaf (format \(version), this program knows \(Schema.version))",
        advice: "update Sheaf; the file was not touched")
    }
    if application == 0 { return .unmarked }
    guard version > 0 else { throw SchemaCheck.noFormat(version, path) }
    return .library
  }

  /// Where the header has the two versions of the file format: 2 for a file with a log, 1 for one without (SQLite,
  /// "Database File Format", 1.3.3).
  private static let formatVersions: off_t = 18

  /// Notes in an open file whether it has a log; returns false, with errno(3), where that cannot be written.
  static func note(hasLog: Bool, in descriptor: CInt) -> Bool {
    pwrite(descriptor, [UInt8](repeating: hasLog ? 2 : 1, count: 2), 2, formatVersions) == 2
  }

  /// The bytes that SQLite locks: a program that reads the file, with or without a log, has some of them
  /// (SQLite, "File Locking And Concurrency", 3.0).
  private static let lockBytes = (start: off_t(0x4000_0000), length: off_t(512))

  /// Whether no process has had the file open without closing it.
  static func isClosed(_ path: String) throws(SheafError) -> Bool {
    guard let descriptor = try openExisting(at: path) else { return false }
    // Closing is safe here: SQLite holds no POSIX lock on the file yet that this would drop.
    defer { close(descriptor) }
    var versions: [UInt8] = [0, 0]
    return pread(descriptor, &versions, 2, formatVersions) == 2 && versions == [1, 1]
  }

  /// Notes that a file is about to have a log. SQLite would do so by a journal, which, left by a crash, it would play
  /// into whatever comes to lie in the file's place.
  ///
  /// - Parameter seconds: How long it waits for programs that read the file.
  /// - Throws: ``SheafError`` of kind `busy` if one reads it for longer.
  static func markAsOpen(_ path: String, waiting seconds: Int) throws(SheafError) {
    guard try isClosed(path) else { return }
    let descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw SheafError(systemError: errno, subject: path) }
    // SQLite has no lock on the file yet, and those that are taken here end with the descriptor.
    defer { close(descriptor) }
    try verify(descriptor, path)
    var tries = seconds * 20
    while let reader = lockAlone(descriptor) {
      guard tries > 0 else {
        throw SheafError(
          .busy, subject: path, reason: "process \(reader) reads it with SQLite",
          advice: "try again when that has ended")
      }
      tries -= 1
      poll(nil, 0, 50)
    }
    guard note(hasLog: true, in: descriptor), fdatasync(descriptor) == 0 else {
      throw SheafError(systemError: errno, subject: path)
    }
  }

  /// Takes SQLite's locks on a file, as far as its disk knows locks; the process that has one of them if that fails.
  private static func lockAlone(_ descriptor: CInt) -> pid_t? {
    var lock = flock()
    (lock.l_type, lock.l_whence) = (Int16(F_WRLCK), Int16(SEEK_SET))
    (lock.l_start, lock.l_len) = lockBytes
    guard fcntl(descriptor, F_SETLK, &lock) != 0, errno == EAGAIN || errno == EACCES else { return nil }
    guard fcntl(descriptor, F_GETLK, &lock) == 0, lock.l_type != Int16(F_UNLCK) else { return 0 }
    return lock.l_pid
  }

  /// Notes that a file has no log, record or journal any more, so that changes of another file that come to lie beside it
  /// are told from its own. If that fails, they are not told apart.
  ///
  /// - Parameter folder: A descriptor of the folder in which the file is.
  static func markAsClosed(_ name: String, in folder: CInt) {
    for file in FormerLibrary.unfinished(name) {
      guard faccessat(folder, file, F_OK, AT_SYMLINK_NOFOLLOW) != 0, errno == ENOENT else { return }
    }
    let descriptor = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    // SQLite has closed the file, and has no lock on it. Another program that reads it counts on its log.
    defer { close(descriptor) }
    guard lockAlone(descriptor) == nil else { return }
    var mark = [UInt8](repeating: 0, count: databaseMark.count)
    guard pread(descriptor, &mark, mark.count, 0) == mark.count, mark == databaseMark,
      note(hasLog: false, in: descriptor)
    else { return }
    fdatasync(descriptor)
  }

  /// The file by its header: empty, a database of any program, or a library.
  enum Header { case empty, unmarked, library }

  static func notALibrary(_ path: String) -> SheafError {
    SheafError(.corrupt, subject: path, reason: "is not a library of Sheaf", advice: "name another file")
  }

  /// Opens a file beside the library for reading; nil where there is none.
  ///
  /// - Throws: ``SheafError`` if it cannot be read: to take it for empty would lose its contents.
  static func openExisting(at path: String) throws(SheafError) -> Int32? {
    let descriptor = open(path, O_RDONLY)
    if descriptor >= 0 {
      do throws(SheafError) {
        try verify(descriptor, path)
      } catch {
        close(descriptor)
        throw error
      }
      return descriptor
    }
    guard errno == ENOENT else { throw unreadable(path) }
    return nil
  }

  /// The error for a file beside the library that holds the latest saves, by errno(3).
  static func unreadable(_ path: String) -> SheafError {
    // Nothing that Sheaf wrote lies there then.
    if errno == ELOOP || errno == ENXIO {
      let reason = errno == ELOOP ? "is a symbolic link" : "is no file"
      return SheafError(.inputOutput, subject: path, reason: reason, advice: "take it away")
    }
    let error = SheafError(systemError: errno, subject: path)
    return SheafError(
      error.kind, subject: path, reason: "cannot be read, and holds what was saved last: \(error.reason)",
      advice: "have it be readable for you; moving it away gives up what is in it")
  }

  /// Makes the names in the folder of `path` durable.
  static func sync(containing path: String) throws(SheafError) {
    let folder = (path as NSString).deletingLastPathComponent
    let descriptor = Glibc.open(folder.isEmpty ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SheafError(systemError: errno, subject: folder) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw SheafError(systemError: errno, subject: folder) }
  }
}
