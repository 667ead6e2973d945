import Foundation
import Glibc
import Logging
import SheafHub
import SheafHubStore
import SheafModel

/// The decisions of `sheaf-hub init`, in the file `hub.json` of the hub's folder.
struct HubSettings: Codable, Hashable {
  /// Whether a text is a connection string for libpq.
  static func isPostgres(_ store: String) -> Bool {
    ["postgresql://", "postgres://"].contains { store.hasPrefix($0) } || store.contains("=")
  }

  /// How the hub proves to devices who it is.
  enum Security: String, Codable {
    /// A certificate that the hub made itself; links have its fingerprint.
    case own
    /// Files that somebody else renews.
    case files
    /// Plain HTTP, for this machine or a proxy on it.
    case plain
  }

  /// `sqlite`, or a connection string for libpq.
  var store: String
  var addresses: [String]
  var security: Security
  var certificate: String?
  var key: String?
  /// The domains for which the hub speaks to others; nil for a hub that is by itself.
  var domains: [String]?
}

/// The folder of a hub.
struct HubFolder {
  static let environment = "SHEAF_HUB"
  static let usual = "/var/lib/sheaf-hub"

  let path: String

  /// - Parameter path: The folder that the user named; nil for the usual one.
  init(_ path: String?) { self.path = path ?? Environment.value(Self.environment) ?? Self.usual }

  var settingsFile: String { "\(path)/hub.json" }
  var certificateFile: String { "\(path)/certificate.pem" }
  var keyFile: String { "\(path)/key.pem" }
  var databaseFile: String { "\(path)/hub.sqlite" }
  private var lockFile: String { "\(path)/lock" }
  private var usersFile: String { "\(path)/users" }

  /// - Throws: ``SheafError`` if there is no hub.
  func settings() throws -> HubSettings {
    guard let data = FileManager.default.contents(atPath: settingsFile) else {
      var status = stat()
      let isMissing = lstat(settingsFile, &status) != 0 && errno == ENOENT
      throw SheafError(
        .notFound, subject: (isMissing ? path : settingsFile).printable,
        reason: isMissing ? "has no hub" : "cannot be read by this user",
        advice: isMissing ? "make one with sheaf-hub init" : "run this as the hub's user, whose file it is to be")
    }
    do {
      return try JSONDecoder().decode(HubSettings.self, from: data)
    } catch {
      throw SheafError(.corrupt, subject: settingsFile.printable, reason: "is no file of a hub")
    }
  }

  /// Makes the folder, its files and the settings, for the user alone, and has `fill` make the store. If any of it
  /// fails, what was made is removed, but for the folders above.
  ///
  /// - Throws: ``SheafError`` if there is a hub already; what `fill` throws.
  func make(
    _ settings: HubSettings, files: [(path: String, text: String)], _ fill: () async throws -> Void
  ) async throws {
    let isNew = !FileManager.default.fileExists(atPath: path)
    try attempt(path) {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
    let text = try Self.text(settings)
    var made: [String] = []
    do {
      for file in [(path: settingsFile, text: text)] + files {
        try write(file.text, to: file.path)
        made.append(file.path)
      }
      // One that was there before is somebody's, and so is what one left that was moved away.
      if !FileManager.default.fileExists(atPath: databaseFile) {
        for left in ["-wal", "-journal"].map({ databaseFile + $0 }) where FileManager.default.fileExists(atPath: left) {
          throw SheafError(
            .exists, subject: left.printable, reason: "is there already, and may hold what a hub stored last",
            advice: "name another folder, or move it away")
        }
        made += ["", "-wal", "-shm", "-journal"].map { databaseFile + $0 }
      }
      try await fill()
    } catch {
      for path in made { unlink(path) }
      if isNew { rmdir(path) }
      throw error
    }
  }

  func addresses(_ settings: HubSettings) throws -> HubAddresses {
    HubAddresses(try settings.addresses.map { try HubAddress($0) })
  }

  /// The store of a hub that is there.
  ///
  /// - Throws: ``SheafError`` of kind `notFound` where its file is missing: an empty hub would know nobody.
  func database(_ settings: HubSettings) throws -> any Database {
    if settings.store == "sqlite", isLost(databaseFile) {
      throw SheafError(
        .notFound, subject: databaseFile.printable, reason: "is missing or empty, and everything of this hub was in it",
        advice: "bring it back, with the files whose names begin like it, or serve the folder of the last backup")
    }
    return try newDatabase(settings)
  }

  private func isLost(_ file: String) -> Bool {
    var status = stat()
    guard lstat(file, &status) == 0 else { return errno == ENOENT }
    return status.st_size == 0
  }

  /// The store of a hub that is being made.
  func newDatabase(_ settings: HubSettings) throws -> any Database {
    guard settings.store == "sqlite" else { return PostgresDatabase(target: settings.store) }
    // SQLite gives the files that it makes beside it to the same user.
    if !FileManager.default.fileExists(atPath: databaseFile) { try write("", to: databaseFile) }
    return try SQLiteDatabase(path: databaseFile)
  }

  /// The certificate to serve with; nil for plain HTTP.
  func certificate(_ settings: HubSettings, logger: Logger) throws -> CertificateFiles? {
    switch settings.security {
    case .plain: nil
    case .own: try CertificateFiles(certificate: certificateFile, key: keyFile, logger: logger)
    case .files:
      try CertificateFiles(certificate: settings.certificate ?? "", key: settings.key ?? "", logger: logger)
    }
  }

  /// The fingerprint of a certificate that the hub made itself; nil for others.
  func fingerprint(_ settings: HubSettings) throws -> String? {
    settings.security == .own ? try HubCertificate.fingerprint(pem: text(of: certificateFile)) : nil
  }

  /// The file of the certificate to serve with, and until when it is valid; nil for plain HTTP.
  func certificateFacts(_ settings: HubSettings) throws -> (file: String, end: Timestamp)? {
    guard settings.security != .plain else { return nil }
    let file = settings.security == .own ? certificateFile : settings.certificate ?? ""
    return (file, try HubCertificate.end(pem: text(of: file)))
  }

  /// Whether others than its user may read the key to serve with.
  func isKeyExposed(_ settings: HubSettings) -> Bool {
    let file = settings.security == .own ? keyFile : settings.key ?? ""
    var status = stat()
    return settings.security != .plain && stat(file, &status) == 0 && status.st_mode & 0o004 != 0
  }

  private func text(of file: String) throws -> String {
    guard let data = FileManager.default.contents(atPath: file) else {
      throw SheafError(.notFound, subject: file.printable, reason: "cannot be read")
    }
    return String(decoding: data, as: UTF8.self)
  }

  /// Keeps a second process from serving the same SQLite file, until this one ends.
  ///
  /// - Throws: ``SheafError`` of kind `busy`.
  func lock() throws {
    _ = try lock(lockFile, LOCK_EX, reason: "is being served by another process", advice: nil)
  }

  /// Keeps the hub from being moved to another store, until this process ends.
  ///
  /// - Returns: what ``useAlone(since:_:)`` takes.
  /// - Throws: ``SheafError`` of kind `busy` while it is.
  func use() throws -> Int32 {
    try lock(
      usersFile, LOCK_SH, reason: "is being moved to another store, or upgraded", advice: "wait for that to end")
  }

  /// Keeps all others from the hub while `body` runs. After an error it ends with this process.
  ///
  /// - Parameter use: What ``use()`` returned.
  /// - Throws: ``SheafError`` of kind `busy` while somebody else uses it; what `body` throws.
  func useAlone(since use: Int32, _ body: () async throws -> Void) async throws {
    guard flock(use, LOCK_EX | LOCK_NB) == 0 else {
      throw SheafError(
        .busy, subject: path.printable, reason: "is in use by another process, and is to be upgraded",
        advice: "end sheaf-hub serve and other commands of the older program")
    }
    try await body()
    flock(use, LOCK_SH)
  }

  /// Keeps all others from the hub, until this process ends.
  ///
  /// - Throws: ``SheafError`` of kind `busy` while somebody else uses it.
  func useAlone() throws {
    _ = try lock(
      usersFile, LOCK_EX, reason: "is in use by another process", advice: "end sheaf-hub serve and other commands")
  }

  private func lock(_ path: String, _ operation: Int32, reason: String, advice: String?) throws -> Int32 {
    var file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    if file >= 0 { giveToOwner(file) } else { file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) }
    guard file >= 0 else {
      throw SheafError(systemError: errno, subject: path.printable, advice: Self.advice(after: errno))
    }
    guard flock(file, operation | LOCK_NB) == 0 else {
      close(file)
      throw SheafError(.busy, subject: self.path.printable, reason: reason, advice: advice)
    }
    return file
  }

  private static func advice(after error: Int32) -> String {
    switch error {
    case EACCES: "run this as the hub's user; a file of another user there is to be given to that user (chown)"
    case EROFS: "copy the folder to a disk that can be written, and name the copy with --hub"
    default: "see that the hub's user can make files in the folder"
    }
  }

  /// Gives a file that was just made to the user of the hub's folder: root may run commands of a hub that another user
  /// serves.
  private func giveToOwner(_ file: Int32) {
    var status = stat()
    guard geteuid() == 0, stat(path, &status) == 0 else { return }
    // A file that stays root's is reported to whoever cannot open it.
    _ = fchown(file, status.st_uid, status.st_gid)
  }

  /// Replaces the settings in one step.
  func replace(_ settings: HubSettings) throws {
    let next = settingsFile + ".new"
    unlink(next)
    try write(Self.text(settings), to: next)
    guard rename(next, settingsFile) == 0 else {
      throw SheafError(.inputOutput, subject: settingsFile.printable, reason: String(cString: strerror(errno)))
    }
    let folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { return }
    fsync(folder)
    close(folder)
  }

  private static func text(_ settings: HubSettings) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(settings), as: UTF8.self) + "\n"
  }

  /// Writes a new file with mode 0600, of the folder's user.
  private func write(_ text: String, to path: String) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else {
      let reason = errno == EEXIST ? "is there already" : String(cString: strerror(errno))
      throw SheafError(.exists, subject: path.printable, reason: reason)
    }
    giveToOwner(file)
    let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
    do {
      try attempt(path) {
        try handle.write(contentsOf: Data(text.utf8))
        try handle.synchronize()
      }
    } catch {
      unlink(path)
      throw error
    }
  }

  private func attempt(_ path: String, _ body: () throws -> Void) throws {
    do {
      try body()
    } catch {
      if let cause = (error as? CocoaError)?.underlying as? POSIXError {
        throw SheafError(systemError: cause.code.rawValue, subject: path.printable)
      }
      throw SheafError(.inputOutput, subject: path.printable, reason: error.localizedDescription)
    }
  }
}
