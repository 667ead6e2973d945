import MountKit

/// Whose mount a story happens on.
enum Owner: String, CaseIterable, Sendable, CustomStringConvertible {
  case ordinaryUser = "an ordinary user"
  case root

  var description: String { rawValue }

  func user() throws -> TestUser? { self == .root ? nil : try TestUser.ordinary() }

  /// All whom this process can be.
  static var possible: [Owner] { TestUser.isRoot ? allCases : [.ordinaryUser] }
}
