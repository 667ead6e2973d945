import SheafModel

/// The temporary files of programs in `Shared/OWNER` of their accounts (BesideDocuments.swift), bounded (rule 7 of
/// docs/ARCHITECTURE.md).
struct TemporaryFiles {
  /// A name in `Shared/OWNER` of an account.
  struct Name: Hashable {
    let account: Int64
    let owner: Int64
    let name: [UInt8]
  }

  struct File {
    let ino: Int64
    /// The program that made it.
    let process: Int32
    /// When it was made, got its name, or was last seen in use.
    var time: Timestamp
  }

  /// A document that a program set aside, to make its name again.
  private struct Aside {
    let process: Int32
    let time: Timestamp
  }

  /// Files of an account, and documents that its programs set aside, at most.
  static let limit = 256

  private var files: [Name: File] = [:]
  private var asides: [Name: Aside] = [:]

  var isEmpty: Bool { files.isEmpty }

  subscript(name: Name) -> File? { files[name] }

  /// All of them.
  var all: [(name: Name, file: File)] { files.map { ($0.key, $0.value) } }

  func count(of account: Int64) -> Int { files.keys.count { $0.account == account } }

  /// The names in one folder.
  func names(of account: Int64, owner: Int64) -> [Name] {
    files.keys.filter { $0.account == account && $0.owner == owner }
  }

  mutating func insert(_ file: File, _ name: Name) { files[name] = file }

  mutating func rename(_ name: Name, to newName: Name, at time: Timestamp) {
    guard var file = files.removeValue(forKey: name) else { return }
    file.time = time
    files[newName] = file
  }

  /// Notes that somebody uses it.
  mutating func noteUse(_ name: Name, at time: Timestamp) { files[name]?.time = time }

  @discardableResult
  mutating func remove(_ name: Name) -> File? { files.removeValue(forKey: name) }

  // MARK: - Documents set aside

  mutating func setAside(_ name: Name, by process: Int32, at time: Timestamp) {
    guard process != 0 else { return }
    if asides.keys.count(where: { $0.account == name.account }) >= Self.limit {
      asides = asides.filter { $0.key.account != name.account }
    }
    asides[name] = Aside(process: process, time: time)
  }

  /// Whether a program set a document aside a moment ago, and has not made its name again.
  ///
  /// - Parameter process: the program, which is looked up only where somebody did.
  func isAside(_ name: Name, for process: @autoclosure () -> Int32, at time: Timestamp) -> Bool {
    guard let aside = asides[name], time.nanoseconds - aside.time.nanoseconds < Identity.window else { return false }
    return aside.process == process()
  }

  mutating func endAside(_ name: Name) { asides[name] = nil }
}
