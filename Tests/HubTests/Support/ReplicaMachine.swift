import Foundation
import MountKit

/// A machine of a person: a library with its mount, a home for the key, and, where one is given, a network of its own.
struct ReplicaMachine {
  let name: String
  let library: MountedLibrary
  let home: String
  private let network: NetworkNamespace?

  /// - Parameters:
  ///   - disk: The folder that holds the library; nil for one beside the mount point.
  ///   - home: Where the key is; nil for a home of its own.
  init(
    _ name: String, _ place: HubPlace, handle: String = HubPlace.handle, disk: String? = nil, home: String? = nil,
    network: NetworkNamespace? = nil
  ) throws {
    self.name = name
    self.network = network
    library = try MountedLibrary(handle: handle, place: disk)
    self.home = try home ?? place.folder.folder(name)
  }

  var environment: [String: String?] { ["HOME": home, "XDG_STATE_HOME": nil] }

  private func command(_ arguments: [String], limit: Duration = .seconds(180)) throws -> Command {
    Command(
      (network?.prefix ?? []) + [try SheafProgram.path()] + arguments,
      environment: environment, limit: limit)
  }

  func sheaf(_ arguments: String...) throws -> Command.Output { try sheaf(arguments) }

  func sheaf(_ arguments: [String]) throws -> Command.Output {
    try command(arguments + ["--library", library.library]).run()
  }

  @discardableResult
  func succeed(_ arguments: String...) throws -> Command.Output {
    try command(arguments + ["--library", library.library]).succeed()
  }

  func mount() throws {
    try command(["mount", library.mountpoint, "--library", library.library, "--as", library.handle]).succeed()
  }

  /// Runs a script in `Documents`, and returns what it prints.
  @discardableResult
  func shell(_ script: String) throws -> String {
    try Command.shell("cd '\(library.documents)' && \(script)").succeed().text
  }

  func wait(seconds: Int = 120) throws { try succeed("sync", "--wait", "\(seconds)") }

  /// Every name below `Documents` with what it is, its contents and its id.
  func tree() throws -> String {
    try shell(
      """
      find . -mindepth 1 -printf '%P %y %m %l\\n' | sort
      find . -type f -printf '%P\\n' | sort | while read -r f; do echo "$f: $(sha256sum < "$f" 2>&1) $(stat -c %y "$f")"; done
      find . -mindepth 1 | sort | while read -r f; do getfattr -h --only-values -n user.sheaf.id "$f" || true; echo; done
      """)
  }
}
