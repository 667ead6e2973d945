import Foundation

/// A version as `sheaf versions --json` tells it (docs/REFERENCE.md, "JSON").
public struct VersionFact: Decodable, Hashable, Sendable {
  public let number: Int
  public let time: String
  public let author: String
  public let size: Int
  public let cause: String
  public let label: String?
  public let base: Int?
  public let open: Bool
}

extension MountedLibrary {
  /// Runs a script as the mount's user in a folder, by default `Documents`, and expects it to succeed.
  @discardableResult
  public func shell(
    _ script: String, in folder: String? = nil, environment: [String: String?] = [:], limit: Duration = .seconds(120)
  ) throws -> Command.Output {
    let variables = environment.merging(["SHEAF": try SheafProgram.path(), "LIBRARY": library]) { mine, _ in mine }
    return try Command.shell(script, as: user, in: folder ?? documents, environment: variables, limit: limit)
      .succeed()
  }

  /// The path of a name in `Documents`; one that begins at the root is its own.
  public func path(_ name: String) -> String { name.hasPrefix("/") ? name : "\(documents)/\(name)" }

  /// The versions of a document in `Documents`, oldest first.
  public func versions(_ name: String) throws -> [VersionFact] {
    let output = try sheafSucceeds("versions", path(name), "--json")
    return try JSONDecoder().decode([VersionFact].self, from: Data(output.output))
  }

  /// The bytes of a version of a document in `Documents`.
  public func show(_ name: String, version: Int) throws -> [UInt8] {
    try sheafSucceeds("show", path(name), "--version", "\(version)").output
  }

  /// One extended attribute's text.
  public func attribute(_ attribute: String, of name: String) throws -> String {
    let command = ["getfattr", "--only-values", "--absolute-names", "-n", attribute, path(name)]
    return String(decoding: try Command(command, as: user).succeed().output, as: UTF8.self)
  }
}

/// Paths of the repository that the tests are of.
public enum Repository {
  public static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().path
  public static func path(_ name: String) -> String { "\(root)/\(name)" }
}
