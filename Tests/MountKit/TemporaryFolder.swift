import ConformanceKit
import Foundation
import Glibc

/// A new folder on a local disk, for one test.
public struct TemporaryFolder: Sendable {
  public let path: String

  /// - Parameter user: the user whom it belongs to; nil for the user who runs the tests.
  public init(for user: TestUser? = nil) throws {
    let parent = ProcessInfo.processInfo.environment["SHEAF_TEST_FOLDER"] ?? "/var/tmp"
    var template = Array("\(parent)/sheaf-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Errno(errno, "mkdtemp in \(parent)") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard chmod(path, 0o755) == 0 else { throw Errno(errno, "chmod \(path)") }
    if let user, chown(path, user.user, user.group) != 0 { throw Errno(errno, "chown \(path)") }
  }

  /// Makes a folder inside.
  public func folder(_ name: String, for user: TestUser? = nil) throws -> String {
    guard mkdir("\(path)/\(name)", 0o755) == 0 else { throw Errno(errno, "mkdir \(path)/\(name)") }
    if let user, chown("\(path)/\(name)", user.user, user.group) != 0 { throw Errno(errno, "chown \(name)") }
    return "\(path)/\(name)"
  }

  /// Removes it with everything in it. Nothing may be mounted there any more.
  public func remove() throws { try removeTree(path) }
}

/// Runs `body` with a new folder, which is removed afterwards.
@discardableResult
public func withTemporaryFolder<Result>(_ body: (TemporaryFolder) throws -> Result) throws -> Result {
  let folder = try TemporaryFolder()
  do {
    let result = try body(folder)
    try folder.remove()
    return result
  } catch {
    try? folder.remove()
    throw error
  }
}
