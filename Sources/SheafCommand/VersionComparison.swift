import Glibc
import NIOCore
import SheafModel

/// Two versions in files of a folder that only this user sees, for diff(1) to compare.
struct VersionComparison {
  /// A version in a file.
  struct Side {
    let file: String
    /// The version's number, or `nothing`.
    let title: String
    /// What diff(1) shows for a name.
    let label: String
    /// Whether it contains a NUL, which no text does.
    let isBinary: Bool
  }

  private let folder: String

  init() throws {
    var template = Array(((Environment.value("TMPDIR") ?? "/tmp") + "/sheaf-diff-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else { throw SheafError(code: errno, subject: "/tmp") }
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Writes a version to a file; nothing at all for nil.
  func take(_ number: Int64?, of target: ItemTarget, among versions: [Version]) async throws -> Side {
    let file = "\(folder)/\(number ?? 0)"
    let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw SheafError(code: errno, subject: file) }
    defer { close(descriptor) }
    guard let number else { return Side(file: file, title: "nothing", label: "/dev/null", isBinary: false) }
    var isBinary = false
    try await target.client.content(of: target.address, version: number) { bytes in
      if !isBinary { isBinary = bytes.readableBytesView.contains(0) }
      try StandardOutput.write(bytes.readableBytesView, to: descriptor, named: file)
    }
    let time = versions.first { $0.number == number }.map { Format.time($0.time) + " " } ?? ""
    return Side(
      file: file, title: "\(number)", label: "\(target.name.escapingControls)\t\(time)version \(number)",
      isBinary: isBinary)
  }

  func areEqual(_ old: Side, _ new: Side) throws -> Bool {
    try diff(["-q", "-a", "--", old.file, new.file], output: open("/dev/null", O_WRONLY | O_CLOEXEC))
  }

  func printDifference(_ old: Side, _ new: Side) throws {
    let arguments = ["-u", "-a", "--label", old.label, "--label", new.label, "--", old.file, new.file]
    _ = try diff(arguments, output: STDOUT_FILENO)
  }

  /// Removes the files.
  func remove() {
    guard let stream = opendir(folder) else { return }
    while let entry = readdir(stream) {
      withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        _ = pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unlinkat(dirfd(stream), $0, 0) }
      }
    }
    closedir(stream)
    rmdir(folder)
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
