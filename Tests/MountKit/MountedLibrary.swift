import ConformanceKit
import Foundation
import Glibc

/// A library in a folder of its own with one mount of it, made for a test and removed after it.
public struct MountedLibrary: Sendable {
  public let folder: TemporaryFolder
  /// The library file.
  public let library: String
  public let mountpoint: String
  public let handle: String
  /// The user whose mount it is; nil for the user who runs the tests.
  public let user: TestUser?
  /// Options of `sheaf mount` beside library and account.
  public let options: [String]

  public var documents: String { "\(mountpoint)/Documents" }

  /// Names a library that is not mounted yet.
  ///
  /// - Parameter place: the folder that holds the library; nil for one beside the mount point.
  public init(
    handle: String = "alice@example.com", as user: TestUser? = nil, options: [String] = [], place: String? = nil
  ) throws {
    folder = try TemporaryFolder(for: user)
    let place = try place ?? folder.folder("library", for: user)
    library = "\(place)/library.sqlite"
    mountpoint = try folder.folder("mnt", for: user)
    self.handle = handle
    self.user = user
    self.options = options
  }

  /// Runs `sheaf` with arguments as the mount's user.
  @discardableResult
  public func sheaf(
    _ arguments: String..., environment: [String: String?] = [:], limit: Duration = .seconds(120)
  ) throws -> Command.Output {
    try SheafProgram.run(arguments, as: user, environment: environment, limit: limit)
  }

  /// Runs `sheaf` and expects status 0.
  @discardableResult
  public func sheafSucceeds(
    _ arguments: String..., environment: [String: String?] = [:], limit: Duration = .seconds(120)
  ) throws -> Command.Output {
    let output = try SheafProgram.run(arguments, as: user, environment: environment, limit: limit)
    guard output.status == 0 else {
      throw Command.Failure(description: "sheaf \(arguments.joined(separator: " ")): \(output)")
    }
    return output
  }

  /// Mounts; returns the output of `sheaf mount`.
  public func tryMount(environment: [String: String?] = [:]) throws -> Command.Output {
    try SheafProgram.run(
      ["mount", mountpoint, "--library", library, "--as", handle] + options, as: user, environment: environment,
      limit: .seconds(60))
  }

  /// Mounts and expects success.
  public func mount(environment: [String: String?] = [:]) throws {
    let output = try tryMount(environment: environment)
    guard output.status == 0 else { throw Command.Failure(description: "sheaf mount: \(output)") }
    guard isMounted else { throw Command.Failure(description: "sheaf mount returned, and nothing is mounted") }
  }

  public func unmount() throws { try sheafSucceeds("unmount", mountpoint) }

  /// Whether the kernel has a mount there, answering or dead.
  public var isMounted: Bool {
    Self.mounts.contains { $0.split(separator: " ")[1] == mountpoint }
  }

  /// The lines of /proc/self/mounts. Each read(2) of it ends with some line, so it is read until nothing comes; and
  /// others' mount points need not be UTF-8.
  public static var mounts: [Substring] {
    let file = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    var (text, piece) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
    while case let count = read(file, &piece, piece.count), count > 0 { text += piece.prefix(count) }
    return String(decoding: text, as: UTF8.self).split(separator: "\n")
  }

  /// The process that owns the library, by its lock file; nil if none runs.
  public var server: Int32? {
    guard let text = try? String(contentsOfFile: library + "-lock", encoding: .utf8),
      let number = pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines)), Self.runs(number),
      let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(number)/exe"),
      program.hasSuffix("/sheaf")
    else { return nil }
    return number
  }

  private static func runs(_ number: pid_t) -> Bool {
    guard let status = try? String(contentsOfFile: "/proc/\(number)/stat", encoding: .utf8) else { return false }
    guard status.split(separator: ")").last?.hasPrefix(" Z") ?? true else { return true }
    // A thread of it that is not yet out of a system call keeps its files open.
    return (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(number)/task").count > 1) ?? false
  }

  /// What each thread of a process is doing, where the kernel tells: a line of its name, its state and its stack.
  private static func threads(of number: pid_t) -> String {
    let folder = "/proc/\(number)/task"
    return ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).map { thread in
      ["comm", "stat", "wchan", "stack"].map {
        ((try? String(contentsOfFile: "\(folder)/\(thread)/\($0)", encoding: .utf8)) ?? "")
          .trimmingCharacters(in: .whitespacesAndNewlines).replacing("\n", with: " < ")
      }.joined(separator: " | ")
    }.joined(separator: "\n")
  }

  /// Kills the owning process as `kill -9` does, and waits until it is gone.
  public func killServer() throws {
    guard let server else { throw Command.Failure(description: "no process owns \(library)") }
    try kill(server)
  }

  /// Kills a process that owned the library, whose lock file may be out of reach by now.
  public func kill(_ server: Int32) throws {
    guard Glibc.kill(server, SIGKILL) == 0 else { throw Errno(errno, "kill \(server)") }
    do {
      try eventually("the end of the killed process", within: .seconds(60)) { !Self.runs(server) }
    } catch {
      throw Command.Failure(description: "\(error)\n\(Self.threads(of: server))")
    }
  }

  /// Runs `sheaf check` and returns the problems that it found.
  public func check() throws -> [String] {
    struct Report: Decodable { let problems: [String] }
    let output = try sheaf("check", "--library", library, "--json", limit: .seconds(300))
    guard let report = try? JSONDecoder().decode(Report.self, from: Data(output.output)) else {
      return ["sheaf check: \(output)"]
    }
    return report.problems + (output.status == 0 || !report.problems.isEmpty ? [] : ["sheaf check: \(output)"])
  }

  /// Ends mount and process by all means.
  public func breakMount() {
    if let server { Glibc.kill(server, SIGKILL) }
    if isMounted { _ = try? Command(["umount", "--lazy", mountpoint], limit: .seconds(20)).run() }
    if isMounted { _ = try? Command(["fusermount3", "-uz", mountpoint], as: user, limit: .seconds(20)).run() }
  }

  /// Unmounts, forcibly if need be, and removes everything.
  ///
  /// - Throws: the failure of `sheaf unmount`; the rest is done all the same.
  public func tearDown() throws {
    var failure: (any Error)?
    if isMounted {
      do { try unmount() } catch { failure = error }
    }
    breakMount()
    do { try folder.remove() } catch { failure = failure ?? error }
    if let failure { throw failure }
  }
}

/// Mounts a new library, runs `body`, and removes everything, also after a failure or when `limit` has passed.
@discardableResult
public func withMount<Result>(
  handle: String = "alice@example.com", as user: TestUser? = nil, options: [String] = [], place: String? = nil,
  environment: [String: String?] = [:], limit: Duration = .seconds(300), _ body: (MountedLibrary) throws -> Result
) throws -> Result {
  let library = try MountedLibrary(handle: handle, as: user, options: options, place: place)
  do {
    try library.mount(environment: environment)
    let (result, late) = try guarded(within: limit, late: library.breakMount) { try body(library) }
    guard !late else { throw Command.Failure(description: "not done after \(limit)") }
    try library.tearDown()
    return result
  } catch {
    try? library.tearDown()
    throw error
  }
}
