import MountKit

/// Where a program saves a document that alice and bob share, and who of them runs it.
enum SharedPlace: CaseIterable {
  /// Alice shared the document on its own, and saves it.
  case document
  /// Alice shared the folder around it, and bob saves it.
  case folder

  /// A script that makes and shares `doc` with `contents`, a mode and an attribute.
  func preparation(contents: String) -> String {
    let make =
      """
      printf '%s' '\(contents)' > doc; chmod 640 doc; setfattr -n user.color -v blue doc

      """
    return switch self {
    case .document: "cd $ALICE/Documents; \(make) invite doc bob edit"
    case .folder: "cd $ALICE/Documents; mkdir plans; invite plans bob edit; cd plans; \(make)"
    }
  }

  /// The folder that `doc` is in for the program that saves it.
  func folder(_ people: SharedMounts) -> String {
    switch self {
    case .document: people.path(of: "alice", "Documents")
    case .folder: people.path(of: "bob", "Shared/alice@example.com/plans")
    }
  }

  /// `doc` as the other of the two sees it.
  func otherPath(_ people: SharedMounts) -> String {
    switch self {
    case .document: people.path(of: "bob", "Shared/alice@example.com/doc")
    case .folder: people.path(of: "alice", "Documents/plans/doc")
    }
  }

  /// `doc` as events tell it to its owner.
  var eventPath: String {
    switch self {
    case .document: "doc"
    case .folder: "plans/doc"
    }
  }

  /// Who saves.
  var author: String {
    switch self {
    case .document: SharedMounts.handle("alice")
    case .folder: SharedMounts.handle("bob")
    }
  }

  /// Whether what lies beside `doc` is shared, too.
  var sharesBackups: Bool { self == .folder }
}
