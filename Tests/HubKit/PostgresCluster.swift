import Foundation
import MountKit
import Synchronization

/// A PostgreSQL server for tests, in a temporary folder and reached by a Unix socket there alone.
///
/// A shell starts it and stops it, and removes its folder when the tests end, however they end: the shell reads
/// commands from a pipe of this process. The server runs as an ordinary user, since PostgreSQL refuses root.
package final class PostgresCluster: Sendable {
  /// The newest server of the machine; nil where none is installed.
  private static let programs: String? = {
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
    let newest = versions.compactMap(Int.init).sorted().reversed()
    return newest.map { "/usr/lib/postgresql/\($0)/bin" }.first {
      FileManager.default.isExecutableFile(atPath: "\($0)/initdb")
        && FileManager.default.isExecutableFile(atPath: "\($0)/postgres")
    }
  }()

  package static var isInstalled: Bool { programs != nil }

  /// The server of all tests that do not kill it.
  package static let shared = Result { try PostgresCluster(syncs: false) }

  /// Makes the folder and runs the server by commands: `start`, `kill`, `follow FOLDER`, which makes it anew as the
  /// standby of the server there; it stops at the end of its input.
  private static let script = """
    cd "$1"
    trap 'kill -QUIT "$(cat pid)"; wait; cd /; rm -rf "$1"' EXIT
    [ "$4" ] || "$2/initdb" -D data -U postgres -A trust -E UTF8 --locale=C --no-sync >log 2>&1 || exit 1
    start() {
      # It ends with 1 where what a killed one left is still being cleared away.
      (
        while :; do
          "$2/postgres" -D data -k "$1" -c listen_addresses= -c fsync="$3" -c max_connections=200 \\
            -c shared_buffers=32MB -c max_wal_size=128MB -c deadlock_timeout=100ms >>log 2>&1 &
          echo $! >pid.new
          mv pid.new pid
          wait $!
          [ $? = 1 ] || exit 0
          sleep 0.1
        done
      ) &
    }
    while read -r word place; do
      case $word in
        start) start "$1" "$2" "$3" ;;
        kill) p=$(cat pid); kill -9 "$p" $(cat /proc/"$p"/task/"$p"/children); wait ;;
        follow)
          rm -rf data
          "$2/pg_basebackup" -D data -h "$place" -U postgres -R -X stream -c fast --no-sync >>log 2>&1 ;;
      esac
      echo "$word" >done
    done
    """

  /// Where its socket is.
  package let folder: String
  private let psqlProgram: String
  private let supervisor: Mutex<Supervisor>
  private let schemas = Mutex(0)

  private final class Supervisor {
    let shell: BackgroundCommand
    init(_ shell: BackgroundCommand) { self.shell = shell }
  }

  /// - Parameters:
  ///   - syncs: Whether commits are durable, as a server that is killed must have them.
  ///   - primary: The server that it is a standby of; nil for one by itself.
  package init(syncs: Bool, standbyOf primary: PostgresCluster? = nil) throws {
    guard let programs = Self.programs else { throw Command.Failure(description: "PostgreSQL is not installed") }
    psqlProgram = "\(programs)/psql"
    // A socket's path has 107 bytes at most, so not below the folder of the tests.
    var template = Array("/var/tmp/sheaf-pg-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Command.Failure(description: "no folder for a server") }
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    var words = [
      "/bin/sh", "-c", Self.script, "sh", folder, programs, syncs ? "on" : "off", primary == nil ? "" : "standby",
    ]
    if TestUser.isRoot {
      let entry = getpwnam("postgres") ?? getpwnam("nobody")
      guard let entry else { throw Command.Failure(description: "there is no user for a server") }
      let (user, group) = (entry.pointee.pw_uid, entry.pointee.pw_gid)
      chown(folder, user, group)
      words = ["setpriv", "--reuid=\(user)", "--regid=\(group)", "--clear-groups"] + words
    }
    supervisor = Mutex(Supervisor(try BackgroundCommand(Command(words, in: folder))))
    if let primary { try follow(primary) } else { try start() }
  }

  /// Makes it anew as a standby of another server, and returns once it answers.
  package func follow(_ primary: PostgresCluster) throws {
    try say("follow", primary.folder)
    try start()
  }

  /// Makes a standby the one that takes writes.
  package func promote() throws { try psql("SELECT pg_promote(true, 60)") }

  /// Starts the server, and returns once it answers.
  package func start() throws {
    try say("start")
    try eventually("PostgreSQL in \(folder) answers", within: .seconds(120)) {
      try Command([psqlProgram, "-X", "-h", folder, "-U", "postgres", "-d", "postgres", "-c", ""]).run().status == 0
    }
  }

  /// Kills the server with all its processes.
  package func kill() throws {
    try say("kill")
  }

  /// Stops the server and removes everything.
  package func stop() {
    supervisor.withLock { $0.shell.endInput() }
    try? eventually("PostgreSQL in \(folder) is gone", within: .seconds(60)) {
      !FileManager.default.fileExists(atPath: folder)
    }
    supervisor.withLock { $0.shell.end() }
  }

  /// Has a command done.
  private func say(_ word: String, _ place: String = "") throws {
    let done = "\(folder)/done"
    try? FileManager.default.removeItem(atPath: done)
    try supervisor.withLock { try $0.shell.say("\(word) \(place)") }
    try eventually("PostgreSQL in \(folder) did \(word)", within: .seconds(120)) {
      (try? String(contentsOfFile: done, encoding: .utf8)) == "\(word)\n"
    }
  }

  /// Runs SQL as the server's administrator.
  @discardableResult
  package func psql(_ sql: String) throws -> String {
    try Command([psqlProgram, "-X", "-At", "-h", folder, "-U", "postgres", "-d", "postgres", "-c", sql]).succeed().text
  }

  /// A place for the tables of one hub, as a URI of libpq.
  ///
  /// - Parameters:
  ///   - standby: A server that may take over.
  ///   - tablespace: Where the tables lie; nil for the usual place.
  package func newPlace(standby: PostgresCluster? = nil, tablespace: String? = nil) throws -> String {
    let schema = schemas.withLock { count in
      count += 1
      return "test\(count)"
    }
    try psql("CREATE SCHEMA \(schema)")
    let hosts = ([self] + (standby.map { [$0] } ?? [])).map { $0.folder.replacing("/", with: "%2F") }
    let user = "user=postgres&application_name=\(schema)"
    let writable = standby == nil ? "" : "&target_session_attrs=read-write"
    let space = tablespace.map { "-cdefault_tablespace%3D\($0)%20" } ?? ""
    return "postgresql:///postgres?host=\(hosts.joined(separator: ","))&\(user)\(writable)"
      + "&options=\(space)-csearch_path%3D\(schema)"
  }

  /// The schema of a place, which is its connections' `application_name`, too.
  package static func schema(of place: String) -> String { String(place.split(separator: "%3D").last ?? "") }

  /// Ends all connections to a place, as a network that breaks does.
  package func disconnect(_ place: String) throws {
    let name = Self.schema(of: place)
    try psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '\(name)'")
  }
}
