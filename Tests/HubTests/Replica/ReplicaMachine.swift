import ConformanceKit
import Foundation
import MountKit

/// A machine: a library, its mount, and a home for the keys.
struct ReplicaMachine {
  let library: MountedLibrary
  let home: String

  init(_ name: String, _ place: HubPlace, handle: String = HubPlace.handle) throws {
    library = try MountedLibrary(handle: handle)
    home = try place.folder.folder(name)
  }

  var environment: [String: String?] { ["HOME": home, "XDG_STATE_HOME": nil] }

  func sheaf(_ arguments: String...) throws -> Command.Output {
    try SheafProgram.run(arguments + ["--library", library.library], environment: environment)
  }

  func succeed(_ arguments: String...) throws -> Command.Output {
    let output = try SheafProgram.run(arguments + ["--library", library.library], environment: environment)
    guard output.status == 0 else { throw Command.Failure(description: "\(arguments): \(output)") }
    return output
  }

  func mount() throws { try library.mount(environment: environment) }

  func wait() throws { _ = try succeed("sync", "--wait", "120") }

  /// Every name below `Documents` with what it is, and its contents.
  func tree() throws -> String {
    try Command.shell(
      """
      cd '\(library.documents)' && find . -mindepth 1 -printf '%P %y %m %l\\n' | sort
      find . -type f -printf '%P\\n' | sort | while read -r f; do echo "$f: $(sha256sum < "$f") $(stat -c %y "$f")"; done
      find . -mindepth 1 | sort | while read -r f; do getfattr -h --only-values -n user.sheaf.id "$f" || true; echo; done
      """
    ).succeed().text
  }

  func shell(_ script: String) throws {
    try Command.shell("cd '\(library.documents)' && \(script)").succeed()
  }
}
