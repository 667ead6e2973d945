import Dispatch
import Fuse
import Glibc
import Logging
import Synchronization

/// A file system mounted below the scenario's directory, and the thread that serves it.
final class TestMount: Sendable {
  let path: String
  let session: Session
  private let ended = DispatchSemaphore(value: 0)
  private let error = Mutex<Errno?>(nil)

  init(
    _ fileSystem: any FileSystem, _ name: String = "mount", threads: Int = 10, logger: Logger = Logger(label: "test"),
    configure: (inout SessionOptions) -> Void = { _ in }
  ) throws {
    path = "\(scenarioDirectory)/\(name)"
    mkdir(path, 0o755)
    var options = SessionOptions(source: name, subtype: "fixture")
    configure(&options)
    session = try Session(fileSystem, options: options, logger: logger)
    try session.mount(at: path)
    onThread { [self] in
      do throws(Errno) {
        try session.run(threads: threads)
      } catch {
        self.error.withLock { $0 = error }
      }
      ended.signal()
    }
    expect(session.waitUntilReady(), "the mount to answer")
  }

  /// Waits for the end of run.
  func waitUntilEnded() -> Errno? {
    ended.wait()
    ended.signal()
    return error.withLock { $0 }
  }

  /// Unmounts, and waits for the end of run.
  func unmount() throws {
    try session.unmount()
    let error = waitUntilEnded()
    expect(error == nil, "run to end without \(error.map { "\($0)" } ?? "")")
    expect(!session.isMounted, "the mount to be gone")
  }
}

/// Runs `body` on a thread of its own.
func onThread(_ body: @escaping @Sendable () -> Void) {
  final class Box: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var thread = pthread_t()
  let box = Unmanaged.passRetained(Box(body))
  let result = pthread_create(
    &thread, nil,
    { argument in
      guard let argument else { return nil }
      Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
      return nil
    }, box.toOpaque())
  precondition(result == 0, "no thread")
  pthread_detach(thread)
}

/// Runs bodies on threads of their own, and waits for all.
func concurrently(_ bodies: (@Sendable () -> Void)...) {
  let done = DispatchSemaphore(value: 0)
  for body in bodies {
    onThread {
      body()
      done.signal()
    }
  }
  for _ in bodies { done.wait() }
}

/// Keeps what is logged.
struct RecordingLogHandler: LogHandler {
  final class Records: Sendable {
    let lines = Mutex<[String]>([])
    /// Signalled with every error.
    let hasError = DispatchSemaphore(value: 0)
  }

  let records: Records
  var metadata: Logger.Metadata = [:]
  var logLevel: Logger.Level = .trace

  init(_ records: Records) {
    self.records = records
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let metadata = event.metadata ?? [:]
    let text = metadata.keys.sorted().map { " \($0)=\(metadata[$0].map { "\($0)" } ?? "")" }.joined()
    records.lines.withLock { $0.append("\(event.level): \(event.message)\(text)") }
    if event.level == .error { records.hasError.signal() }
  }
}

extension Session {
  func mount(at path: String) throws(MountError) {
    let folder: MountFolder
    do {
      folder = try MountFolder(at: path)
    } catch {
      throw MountError(mountpoint: path, reason: error.description)
    }
    try mount(on: folder)
  }
}
