import Foundation

/// A library with several people, each with a mount of their own in one process.
///
/// Scripts find the mounts as `$ALICE`, `$BOB` and so on, the library as `$LIBRARY` and the command as `$SHEAF`.
public struct SharedMounts: Sendable {
  public let library: MountedLibrary
  /// Mount points by first name.
  public let places: [String: String]

  public static func handle(_ name: String) -> String { "\(name)@example.com" }

  /// A path in a person's mount.
  public func path(of name: String, _ path: String) -> String { "\(places[name] ?? "/nobody")/\(path)" }

  /// Runs a script that ends at its first failure.
  @discardableResult
  public func shell(_ script: String, limit: Duration = .seconds(120)) throws -> Command.Output {
    try command(script, limit: limit).succeed()
  }

  /// Runs a script, which may fail.
  public func attempt(_ script: String, limit: Duration = .seconds(120)) throws -> Command.Output {
    try command(script, limit: limit).run()
  }

  private func command(_ script: String, limit: Duration) throws -> Command {
    var variables: [String: String?] = ["SHEAF": try SheafProgram.path(), "LIBRARY": library.library]
    for (name, place) in places { variables[name.uppercased()] = place }
    return .shell(Self.functions + script, as: library.user, in: "/", environment: variables, limit: limit)
  }

  /// Functions for scripts: `accept bob URL`, `refused ERRNO-TEXT COMMAND…`, `attribute NAME PATH`.
  private static let functions = """
    accept() { "$SHEAF" accept "$2" --library "$LIBRARY" --as "$1@example.com"; }
    attribute() { getfattr --absolute-names --only-values -n "user.sheaf.$1" "$2"; }
    url() { attribute share.url "$1"; }
    invite() { "$SHEAF" share "$1" --with "$2@example.com" --can "$3" >/dev/null; accept "$2" "$(url "$1")" >/dev/null; }
    refused() {
      local reason=$1 said; shift
      if said=$("$@" 2>&1); then echo "not refused: $*" >&2; return 1; fi
      case $said in *"$reason"*) ;; *) echo "$* said: $said" >&2; return 1 ;; esac
    }
    same() { [ "$1" = "$2" ] || { echo "expected: $2; is: $1" >&2; return 1; }; }

    """
}

/// Mounts a new library for each of `people` (alice first), runs `body`, and removes everything.
public func withSharedMounts(
  _ people: [String] = ["alice", "bob"], as user: TestUser? = nil, limit: Duration = .seconds(300),
  _ body: (SharedMounts) throws -> Void
) throws {
  try withMount(handle: SharedMounts.handle(people[0]), as: user, limit: limit) { library in
    var places = [people[0]: library.mountpoint]
    for name in people.dropFirst() {
      try library.sheafSucceeds("account", "add", SharedMounts.handle(name), "--library", library.library)
      let place = try library.folder.folder(name, for: user)
      try library.sheafSucceeds("mount", place, "--library", library.library, "--as", SharedMounts.handle(name))
      places[name] = place
    }
    defer { for name in people.dropFirst() { _ = try? library.sheaf("unmount", places[name] ?? "") } }
    try body(SharedMounts(library: library, places: places))
    let problems = try library.check()
    if !problems.isEmpty { throw Command.Failure(description: problems.joined(separator: "\n")) }
  }
}
