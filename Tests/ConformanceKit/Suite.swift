import CTestSystem
import Glibc

/// One named behaviour of a POSIX file system.
public struct Case: Sendable {
  public let name: String
  public let needs: Features
  let body: @Sendable (any FileSystem) throws -> Void

  init(
    _ name: String, needs: Features = [], _ body: @escaping @Sendable (any FileSystem) throws -> Void
  ) {
    self.name = name
    self.needs = needs
    self.body = body
  }

  /// Runs the case in an empty folder as `fileSystem`, with umask 022; throws the fault that it found.
  public func run(on fileSystem: any FileSystem) throws {
    try fileSystem.acting(as: Credentials(umask: 0o022), body)
  }

  /// Every case, grouped by what it is about.
  public static let all: [Case] = [
    creation, openingErrors, reading, writing, renaming, renamingFlags, linking, symlinks, folders, listing, times,
    statuses, attributes, sparseness, allocation, copying, mapping, locking, permissions, setIdBits, specialFiles,
    unnamedFiles, paths,
  ].flatMap(\.self)

  /// The cases for a file system of these features.
  public static func applicable(to features: Features) -> [Case] { all.filter { features.isSuperset(of: $0.needs) } }
}

/// The outcome of one case in a run.
public struct Outcome: Sendable {
  public let name: String
  /// Nil for a case that passed.
  public let failure: String?
}

extension PlainDirectory {
  /// Runs `cases` below `folder`, each in a new folder of its own, and removes what they leave.
  public static func run(
    _ cases: [Case], below folder: String, features: Features, report: (Outcome) -> Void = { _ in }
  ) -> [Outcome] {
    cases.map { one in
      let place = "\(folder)/case-\(one.name.map { $0.isLetter || $0.isNumber ? String($0) : "-" }.joined())"
      var failure: String?
      do {
        guard Glibc.mkdir(place, 0o755) == 0 else { throw Errno.last("mkdir \(place)") }
        try one.run(on: PlainDirectory(root: place, features: features))
      } catch {
        failure = String(describing: error)
      }
      do {
        try removeTree(place)
      } catch {
        failure = failure ?? "what the case left cannot be removed: \(error)"
      }
      let outcome = Outcome(name: one.name, failure: failure)
      report(outcome)
      return outcome
    }
  }

  /// The features of `folder` and this process, found out by trying.
  public static func probe(_ folder: String, helper: Bool) throws -> Features {
    var features: Features = [.kernel, .descriptors]
    if geteuid() == 0 { features.insert(.root) }
    if helper { features.insert(.helper) }
    let unnamed = Glibc.open(folder, unnamedFile | O_RDWR | O_CLOEXEC, 0o600)
    if unnamed >= 0 {
      features.insert(.temporaryFiles)
      Glibc.close(unnamed)
    }
    let probe = "\(folder)/.probe"
    let file = Glibc.open(probe, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw Errno.last("open \(probe)") }
    if fsetxattr(file, "user.large", [UInt8](repeating: 7, count: 65536), 65536, 0) == 0 {
      features.insert(.largeAttributes)
    }
    Glibc.close(file)
    Glibc.unlink(probe)
    return features
  }
}

/// Removes a folder with all below it, names of any bytes and folders without permissions included.
public func removeTree(_ root: String) throws {
  let system = try PlainDirectory(root: root, features: [])
  try system.removeEverything(below: "")
  guard Glibc.rmdir(root) == 0 else { throw Errno.last("rmdir \(root)") }
}

extension FileSystem {
  /// Empties a folder.
  public func removeEverything(below folder: Path) throws {
    for name in try names(folder) {
      let path = folder / name
      if try lstat(path).kind == .folder {
        try chmod(path, 0o700)
        try removeEverything(below: path)
        try rmdir(path)
      } else {
        try unlink(path)
      }
    }
  }
}
