import Glibc
import SheafLibrary
import SheafModel
import SheafMount

/// Starts the process that owns a library and its mounts.
enum Background {
  /// The descriptor at which the process finds its end of the pipe.
  private static let readyDescriptor: CInt = 3

  /// Starts `sheaf mount` in the background and waits until its mount is up.
  ///
  /// - Throws: ``SheafError``: the error that the process reports, or, if it ends without a word, the last line of its
  ///   log.
  static func start(_ plan: MountPlan) throws -> MountInfo {
    try Library.refuseStranger(at: plan.location)
    let log = try LogFile.open(for: plan.location)
    defer { close(log) }
    let null = open("/dev/null", O_RDWR | O_CLOEXEC)
    guard null >= 0 else { throw SheafError(systemError: errno, subject: "/dev/null") }
    defer { close(null) }
    var ends: [CInt] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SheafError(systemError: errno, subject: "pipe") }
    defer { close(ends[0]) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let child: ChildProcess
    do {
      defer { close(ends[1]) }
      if geteuid() == 0 {
        do {
          try Privileges.limit()
        } catch {
          throw SheafError(systemError: error.rawValue, subject: "capabilities")
        }
      }
      child = try ChildProcess(
        "/proc/self/exe", name: "sheaf", arguments(plan), descriptors: [null, null, log, ends[1]], newSession: true)
    }
    let answer: MountInfo?
    do {
      answer = try Readiness.wait(ends[0])
    } catch {
      // Until the process has ended, its open files keep the library's disk busy.
      _ = child.wait()
      throw error
    }
    guard let mount = answer else {
      let status = child.wait()
      let last = LogFile.lastLine(of: plan.location).map { ": \($0)" } ?? ""
      throw SheafError(
        .unavailable, subject: plan.location.path, reason: "the process that mounts it ended with \(status)\(last)",
        advice: "see \(LogFile.path(of: plan.location))")
    }
    return mount
  }

  private static func arguments(_ plan: MountPlan) -> [String] {
    var arguments = ["mount", "--foreground", "--ready-descriptor", "\(readyDescriptor)"]
    arguments += ["--library", plan.location.path]
    if let account = plan.account { arguments += ["--as", account.description] }
    if plan.readOnly { arguments.append("--read-only") }
    if plan.isCopy { arguments.append("--removes-library") }
    if plan.allowOther { arguments.append("--allow-other") }
    if let user = plan.forUser { arguments += ["--for", user] }
    if !plan.options.isEmpty { arguments += ["-o", plan.options.joined(separator: ",")] }
    return arguments + ["--", plan.mountpoint.path]
  }
}
