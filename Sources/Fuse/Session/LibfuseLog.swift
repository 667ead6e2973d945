import CFuse
import Glibc
import Logging
import Synchronization

/// Passes libfuse's own messages to the log, or to the caller of the function that fails with them.
///
/// libfuse has one log function for the process; this installs it on first use.
enum LibfuseLog {
  private static let logger: Logger = {
    cfuse_set_log { level, message in
      guard let message else { return }
      LibfuseLog.receive(level, String(cString: message))
    }
    return Logger(label: "fuse.libfuse")
  }()

  /// The messages of threads that collect theirs.
  private static let collected = Mutex<[pthread_t: String]>([:])

  /// Calls `body`, and returns its result with the messages of libfuse on this thread.
  static func collect<Result>(_ body: () -> Result) -> (Result, String) {
    _ = logger
    let thread = pthread_self()
    collected.withLock { $0[thread] = "" }
    let result = body()
    let messages = collected.withLock { $0.removeValue(forKey: thread) } ?? ""
    return (result, tidied(messages))
  }

  /// As ``collect(_:)``, together with the reasons that fusermount3 writes to standard error.
  ///
  /// It redirects standard error of the whole process, so one call runs at a time. Lines of others are passed on
  /// afterwards.
  static func collectWithStandardError(_ body: () -> Int32) -> (Int32, String) {
    standardError.withLock { _ in
      let saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
      let memory = cfuse_memory_file()
      guard saved >= 0, memory >= 0 else {
        if saved >= 0 { close(saved) }
        if memory >= 0 { close(memory) }
        return collect(body)
      }
      defer {
        close(saved)
        close(memory)
      }
      dup2(memory, STDERR_FILENO)
      var (result, messages) = collect(body)
      dup2(saved, STDERR_FILENO)
      let text = (try? readFile("/proc/self/fd/\(memory)")) ?? []
      for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
        if result != 0, line.hasPrefix("fuse") {
          messages += (messages.isEmpty ? "" : "; ") + line
        } else {
          let line = line + "\n"
          _ = write(saved, String(line), line.utf8.count)
        }
      }
      return (result, messages)
    }
  }

  private static let standardError = Mutex(())

  private static func receive(_ level: fuse_log_level, _ message: String) {
    let thread = pthread_self()
    let isCollected = collected.withLock { collected in
      guard collected[thread] != nil else { return false }
      collected[thread]?.append(message)
      return true
    }
    guard !isCollected else { return }
    let text = tidied(message)
    if !text.isEmpty { logger.log(level: Logger.Level(level), "\(text)") }
  }

  private static func tidied(_ messages: String) -> String {
    messages.split(separator: "\n").joined(separator: "; ")
  }
}

extension Logger.Level {
  fileprivate init(_ level: fuse_log_level) {
    switch level {
    case FUSE_LOG_EMERG, FUSE_LOG_ALERT, FUSE_LOG_CRIT: self = .critical
    case FUSE_LOG_ERR: self = .error
    case FUSE_LOG_WARNING: self = .warning
    case FUSE_LOG_NOTICE: self = .notice
    case FUSE_LOG_INFO: self = .info
    default: self = .debug
    }
  }
}
