import ConformanceKit
import CTestSystem
import Foundation
import Glibc

/// A program to run to its end, with a deadline.
public struct Command: Sendable {
  public var arguments: [String]
  public var input: [UInt8] = []
  /// Added to this process's environment; nil removes.
  public var environment: [String: String?] = [:]
  public var folder: String?
  /// The user who runs it; nil for the user of this process.
  public var user: TestUser?
  public var limit: Duration

  public init(
    _ arguments: [String], as user: TestUser? = nil, in folder: String? = nil, environment: [String: String?] = [:],
    limit: Duration = .seconds(60)
  ) {
    self.arguments = arguments
    self.user = user
    self.folder = folder
    self.environment = environment
    self.limit = limit
  }

  /// A script for `bash`, which ends at its first failure and names the failed command on standard error. As at a
  /// prompt, each program in it is a process of its own: `bash -c` would become the last one.
  public static func shell(
    _ script: String, as user: TestUser? = nil, in folder: String? = nil, environment: [String: String?] = [:],
    limit: Duration = .seconds(60)
  ) -> Command {
    Command(
      ["/bin/bash", "-Eeuo", "pipefail", "-c", "trap 'echo \"failed: $BASH_COMMAND\" >&2' ERR\n\(script)\n:"],
      as: user, in: folder, environment: environment, limit: limit)
  }

  /// The result of a program.
  public struct Output: Sendable, CustomStringConvertible {
    /// The exit status; 128 plus the signal's number if a signal ended it.
    public var status: Int32
    public var output: [UInt8]
    public var errors: [UInt8]

    /// Standard output, without the last newline.
    public var text: String { Output.text(output) }
    /// Standard error, without the last newline.
    public var errorText: String { Output.text(errors) }

    private static func text(_ bytes: [UInt8]) -> String {
      String(decoding: bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...], as: UTF8.self)
    }

    public var description: String {
      "exit status \(status)" + (text.isEmpty ? "" : "\n\(text)") + (errorText.isEmpty ? "" : "\n\(errorText)")
    }
  }

  /// The reason why a program gave no output to judge.
  public struct Failure: Error, CustomStringConvertible {
    public init(description: String) { self.description = description }

    public let description: String
  }

  /// Starts the program and waits for its end, but not for processes that it leaves in the background.
  ///
  /// - Throws: `Failure` if it passes its limit (it is killed with its process group); `Errno` if it cannot start.
  public func run() throws -> Output {
    let process = try start()
    defer { process.closeEnds() }
    return try process.finish(input: input, limit: limit, name: arguments.joined(separator: " "))
  }

  /// Runs the program and expects status 0.
  ///
  /// - Throws: `Failure` with everything that it printed, if it ended otherwise.
  @discardableResult
  public func succeed() throws -> Output {
    let output = try run()
    guard output.status == 0 else { throw Failure(description: "\(arguments.joined(separator: " ")): \(output)") }
    return output
  }

  /// Starts the program with pipes for its three streams.
  func start() throws -> RunningCommand {
    // A user's mount may be closed to the user who starts this: the mount's user changes to that folder in a shell of
    // their own.
    let going = user == nil ? nil : folder
    let words =
      (user?.prefix ?? []) + (going.map { ["sh", "-c", "cd \"$0\" && exec \"$@\"", $0] } ?? []) + arguments
    var variables = ProcessInfo.processInfo.environment
    if let user { variables.merge(user.environment) { _, new in new } }
    for (name, value) in environment { variables[name] = value }
    return try RunningCommand(words, variables.map { "\($0)=\($1)" }, folder: going == nil ? folder : nil)
  }
}

/// A started program with its pipes.
final class RunningCommand {
  let child: pid_t
  private var input: Int32
  private var output: Int32
  private var errors: Int32
  private let ending: Int32

  init(_ words: [String], _ variables: [String], folder: String?) throws {
    var pipes: [[Int32]] = [[0, 0], [0, 0], [0, 0]]
    for index in pipes.indices where sheaf_test_pipe(&pipes[index]) != 0 { throw Errno(errno, "pipe") }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, pipes[0][0], 0)
    posix_spawn_file_actions_adddup2(&actions, pipes[1][1], 1)
    posix_spawn_file_actions_adddup2(&actions, pipes[2][1], 2)
    if let folder { sheaf_test_spawn_folder(&actions, folder) }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK))
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
    var environment: [UnsafeMutablePointer<CChar>?] = variables.map { strdup($0) }
    arguments.append(nil)
    environment.append(nil)
    var child: pid_t = 0
    let result = posix_spawnp(&child, words[0], &actions, &attributes, &arguments, &environment)
    arguments.forEach { free($0) }
    environment.forEach { free($0) }
    posix_spawnattr_destroy(&attributes)
    posix_spawn_file_actions_destroy(&actions)
    for number in [pipes[0][0], pipes[1][1], pipes[2][1]] { close(number) }
    self.child = child
    input = pipes[0][1]
    output = pipes[1][0]
    errors = pipes[2][0]
    ending = result == 0 ? sheaf_test_pidfd(child) : -1
    guard result == 0 else {
      closeEnds()
      throw Errno(result, "start \(words[0])")
    }
    for number in [input, output, errors] { _ = fcntl(number, F_SETFL, O_NONBLOCK) }
  }

  func closeEnds() {
    for number in [input, output, errors, ending] where number >= 0 { close(number) }
    (input, output, errors) = (-1, -1, -1)
  }

  /// Writes a line to the program's standard input, which must have room for it.
  func say(_ line: String) throws {
    signal(SIGPIPE, SIG_IGN)
    let bytes = Array("\(line)\n".utf8)
    guard Glibc.write(input, bytes, bytes.count) == bytes.count else { throw Errno(errno, "write to a program") }
  }

  func endInput() {
    if input >= 0 { close(input) }
    input = -1
  }

  /// Feeds and drains the pipes until the program ends.
  func finish(input bytes: [UInt8], limit: Duration, name: String) throws -> Command.Output {
    signal(SIGPIPE, SIG_IGN)
    let deadline = ContinuousClock.now + limit
    var result = Command.Output(status: -1, output: [], errors: [])
    var pending = bytes[...]
    var ended = false
    while !ended {
      if pending.isEmpty, input >= 0 {
        close(input)
        input = -1
      }
      var events = [
        pollfd(fd: ending, events: Int16(POLLIN), revents: 0), pollfd(fd: output, events: Int16(POLLIN), revents: 0),
        pollfd(fd: errors, events: Int16(POLLIN), revents: 0), pollfd(fd: input, events: Int16(POLLOUT), revents: 0),
      ]
      let left = (deadline - .now) / .milliseconds(1)
      guard left > 0 else {
        kill(-child, SIGKILL)
        var status: Int32 = 0
        waitpid(child, &status, 0)
        throw Command.Failure(description: "\(name): not done after \(limit)\n\(result)")
      }
      _ = poll(&events, 4, Int32(min(left, 60_000)) + 1)
      ended = events[0].revents != 0
      if events[3].revents != 0 {
        let count = pending.withUnsafeBytes { Glibc.write(input, $0.baseAddress, $0.count) }
        if count > 0 { pending = pending.dropFirst(count) } else if errno != EAGAIN { pending = [] }
      }
      RunningCommand.drain(&output, into: &result.output)
      RunningCommand.drain(&errors, into: &result.errors)
    }
    var status: Int32 = 0
    waitpid(child, &status, 0)
    result.status = status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
    return result
  }

  /// Takes the present bytes of a pipe, and closes it at its end.
  private static func drain(_ number: inout Int32, into bytes: inout [UInt8]) {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while number >= 0 {
      let count = Glibc.read(number, &buffer, buffer.count)
      guard count > 0 else {
        if count == 0 {
          close(number)
          number = -1
        }
        return
      }
      bytes += buffer[..<count]
    }
  }
}
