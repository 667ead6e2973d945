import Glibc
import SheafModel

/// A started program that has the given descriptors and no others.
///
/// swift-subprocess cannot start the process of ``Background``: it passes on no descriptor but 0, 1 and 2, and returns
/// only after the program has ended.
struct ChildProcess {
  let pid: pid_t

  /// - Parameters:
  ///   - program: Path of the program.
  ///   - name: The name that the program gets as its own; nil for its path.
  ///   - arguments: Without the program's name.
  ///   - descriptors: The child's descriptors 0, 1, 2, …; at least three.
  ///   - newSession: Whether it leaves this process's session and terminal (setsid(2)).
  /// - Throws: ``SheafError`` if it cannot be started.
  init(
    _ program: String, name: String? = nil, _ arguments: [String],
    descriptors: [CInt] = [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO], newSession: Bool = false
  ) throws(SheafError) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (target, source) in descriptors.enumerated() {
      posix_spawn_file_actions_adddup2(&actions, source, CInt(target))
    }

    // Descriptors that this process inherited itself may lack the flag.
    for descriptor in DirectoryNames.of("/proc/self/fd").compactMap({ CInt($0) }) where descriptor > STDERR_FILENO {
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var defaults = sigset_t()
    sigemptyset(&defaults)
    sigaddset(&defaults, SIGPIPE)
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    // The threads of this process may block signals that the program needs.
    var blocked = sigset_t()
    sigemptyset(&blocked)
    posix_spawnattr_setsigmask(&attributes, &blocked)
    let flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | (newSession ? Self.spawnSetSession : 0)
    posix_spawnattr_setflags(&attributes, Int16(flags))

    var list = ([name ?? program] + arguments).map { strdup($0) } + [nil]
    defer { for argument in list { free(argument) } }
    var pid = pid_t()
    let code = posix_spawn(&pid, program, &actions, &attributes, &list, environ)
    guard code == 0 else { throw SheafError(systemError: code, subject: program) }
    self.pid = pid
  }

  /// POSIX_SPAWN_SETSID of <spawn.h>, which the importer leaves out.
  private static let spawnSetSession: CInt = 0x80

  /// Waits for its end.
  ///
  /// - Returns: Its exit status; 128 plus the signal's number if a signal ended it.
  func wait() -> CInt {
    var status: CInt = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    let signal = status & 0x7F
    return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
  }

  /// The program of that name in the PATH; nil if there is none.
  static func find(_ name: String) -> String? {
    let path = Environment.value("PATH") ?? "/usr/local/bin:/usr/bin:/bin"
    return path.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
  }
}
