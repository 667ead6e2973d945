import Foundation
import Glibc
import MountKit

/// The command `sheaf-sidecar` under test, in a folder of its own.
struct SidecarProgram {
  let folder: TemporaryFolder
  /// Path of the library's file.
  let library: String

  var state: String { "\(folder.path)/state/sidecar.sqlite" }
  /// What it said on standard error when it ran in the background.
  var log: String { (try? String(contentsOfFile: "\(folder.path)/sidecar.log", encoding: .utf8)) ?? "" }

  static func path() throws -> String { try SheafProgram.path() + "-sidecar" }

  /// Runs it to its end.
  func run(_ arguments: String..., environment: [String: String?] = [:]) throws -> Command.Output {
    try Command([try Self.path()] + arguments, environment: environment, limit: .seconds(60)).run()
  }

  /// Starts it for the library, with its state beside; words are for the shell.
  func start(_ words: String, environment: [String: String?] = [:]) throws -> BackgroundCommand {
    try BackgroundCommand(
      .shell(
        "exec '\(try Self.path())' --library '\(library)' --state '\(state)' \(words) 2>> '\(folder.path)/sidecar.log'",
        environment: environment))
  }

  /// Asks a running one to end, and expects that it does with status 0.
  func stop(_ sidecar: BackgroundCommand) throws {
    kill(sidecar.process, SIGTERM)
    try sidecar.wait(limit: .seconds(30))
  }

  /// Writes a configuration; returns its path.
  func configuration(_ text: String, name: String = "sidecar.toml") throws -> String {
    let path = "\(folder.path)/\(name)"
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  func lines(_ name: String) -> [String] {
    let text = (try? String(contentsOfFile: "\(folder.path)/\(name)", encoding: .utf8)) ?? ""
    return text.split(separator: "\n").map(String.init)
  }
}

extension ServedLibrary {
  var program: SidecarProgram { SidecarProgram(folder: folder, library: library.location.path) }
}

/// Runs `body` with a library that is served and the program for it, and ends what serves it in any case.
func withLibrary(_ body: (ServedLibrary, SidecarProgram) throws -> Void) async throws {
  let served = try await ServedLibrary()
  do {
    try body(served, served.program)
  } catch {
    try? await served.end()
    throw error
  }
  try await served.end()
}
