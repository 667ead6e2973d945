import MountKit

/// Where a program saves a document that alice and bob share, and who of them runs it.
enum SharedPlace: CaseIterable {
  /// Alice shared the document on its own, and saves it.
  case document
  /// Alice shared the folder around it, and bob saves it.
  case folder
  /// Alice shared the document on its own, and bob saves it, beside which nobody can make a document.
  case entry

  /// A script that makes a document by `make`, with a mode and an attribute, and shares it.
  func preparation(_ name: String = "doc", making make: String) -> String {
    let make = "\(make); chmod 640 \(name); setfattr -n user.color -v blue \(name)"
    return switch self {
    case .document, .entry: "cd $ALICE/Documents; \(make); invite \(name) bob edit"
    case .folder: "cd $ALICE/Documents; mkdir plans; invite plans bob edit; cd plans; \(make)"
    }
  }

  /// The folder that the document is in for the program that saves it.
  func folder(_ people: SharedMounts) -> String {
    switch self {
    case .document: people.path(of: "alice", "Documents")
    case .folder: people.path(of: "bob", "Shared/alice@example.com/plans")
    case .entry: people.path(of: "bob", "Shared/alice@example.com")
    }
  }

  /// The document as the other of the two sees it.
  func otherPath(_ people: SharedMounts, _ name: String = "doc") -> String {
    switch self {
    case .document: people.path(of: "bob", "Shared/alice@example.com/\(name)")
    case .folder, .entry: people.path(of: "alice", "Documents/\(eventPath(name))")
    }
  }

  /// The document as events tell it to its owner.
  func eventPath(_ name: String = "doc") -> String {
    switch self {
    case .document, .entry: name
    case .folder: "plans/\(name)"
    }
  }

  /// Who saves.
  var author: String {
    switch self {
    case .document: SharedMounts.handle("alice")
    case .folder, .entry: SharedMounts.handle("bob")
    }
  }

  /// Whether what lies beside the document is shared, too.
  var sharesBackups: Bool { self == .folder }
}
