import Glibc
import NIOCore
import SheafModel

/// Two versions in files without names, for diff(1) to compare. The files go with this process, however it ends.
struct VersionComparison {
  /// A version in a file.
  struct Side {
    let descriptor: CInt
    /// The version's number, or `nothing`.
    let title: String
    /// The name that diff(1) shows.
    let label: String
    /// Whether it contains a NUL, which no text does.
    let isBinary: Bool

    /// The path at which other programs of this user find the file.
    var path: String { "/proc/\(getpid())/fd/\(descriptor)" }
  }

  let target: ItemTarget
  let versions: [Version]

  /// Writes a version to a file, which the caller closes; an empty file for nil.
  func take(_ number: Int64?) async throws -> Side {
    let folder = Environment.value("TMPDIR") ?? "/tmp"
    var name = Array((folder + "/sheaf-diff-XXXXXX").utf8CString)
    let descriptor = mkstemp(&name)
    guard descriptor >= 0 else { throw SheafError(systemError: errno, subject: folder) }
    unlink(name)
    guard let number else {
      return Side(descriptor: descriptor, title: "nothing", label: "/dev/null", isBinary: false)
    }
    var isBinary = false
    do {
      try await target.client.content(of: target.address, version: number) { bytes in
        if !isBinary { isBinary = bytes.readableBytesView.contains(0) }
        try StandardOutput.write(bytes.readableBytesView, to: descriptor, named: folder)
      }
    } catch {
      close(descriptor)
      throw error
    }
    let time = versions.first { $0.number == number }.map { Format.time($0.time) + " " } ?? ""
    return Side(
      descriptor: descriptor, title: "\(number)", label: "\(target.name.escapingControls)\t\(time)version \(number)",
      isBinary: isBinary)
  }

  func areEqual(_ old: Side, _ new: Side) throws -> Bool {
    try diff(["-q", "-a", "--", old.path, new.path], output: open("/dev/null", O_WRONLY | O_CLOEXEC))
  }

  func printDifference(_ old: Side, _ new: Side) throws {
    let arguments = ["-u", "-a", "--label", old.label, "--label", new.label, "--", old.path, new.path]
    _ = try diff(arguments, output: STDOUT_FILENO)
  }

  /// Runs diff(1).
  ///
  /// - Returns: Whether the files are equal.
  private func diff(_ arguments: [String], output: CInt) throws -> Bool {
    defer { if output != STDOUT_FILENO { close(output) } }
    guard let program = ChildProcess.find("diff") else {
      throw SheafError(
        .notFound, subject: "diff", reason: "is not installed", advice: "install it: apt install diffutils")
    }
    let status = try ChildProcess(program, arguments, descriptors: [STDIN_FILENO, output, STDERR_FILENO]).wait()
    switch status {
    case 0: return true
    case 1: return false
    case 128 + SIGPIPE: throw OutputClosed()
    default: throw SheafError(.inputOutput, subject: program, reason: "ended with \(status)")
    }
  }
}
