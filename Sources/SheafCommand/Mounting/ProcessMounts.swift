import Glibc
import Logging
import SheafLibrary
import SheafModel
import SheafMount
import SheafService

/// A mount that is up.
protocol LiveMount: Sendable {
  /// Saves everything and unmounts; with `lazy` also a mount in use.
  ///
  /// - Throws: ``SheafError`` of kind `busy` if the mount is in use.
  func unmount(lazy: Bool) async throws

  /// Returns once the mount is gone, even if another process unmounted it.
  func waitUntilGone() async
}

/// Mounts, and returns once the mount answers.
typealias MountStarter = @Sendable (Library, MountRequest, Logger) async throws -> any LiveMount

/// The mounts of this process, which ends with the last one.
actor ProcessMounts: MountController {
  /// How long a mount may go on in other mount namespaces after it was unmounted here.
  private static let patienceElsewhere = Duration.seconds(5)

  private let library: Library
  private let logger: Logger
  private let start: MountStarter
  private var live: [String: (info: MountInfo, mount: any LiveMount, owner: UInt32?, number: Int)] = [:]
  /// The number of the latest mount.
  private var lastNumber = 0
  private var starting: [String: UInt32?] = [:]
  /// How many mounts are being unmounted by callers that wait until everything in them is safe.
  private var saving = 0
  private var hasMounted = false
  /// Whether it accepts no more mounts.
  private var ending = false
  /// Whether ``end()`` has unmounted as many mounts as it could.
  private var hasEnded = false
  /// Whether no mount is up, and none will be.
  private var isOver = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(library: Library, logger: Logger, start: @escaping MountStarter) {
    self.library = library
    self.logger = logger
    self.start = start
  }

  func mount(_ request: MountRequest) async throws -> MountInfo {
    guard !ending else { throw isEnding }
    guard live[request.mountpoint] == nil, starting[request.mountpoint] == nil else {
      throw SheafError(.busy, subject: request.mountpoint, reason: "is already mounted")
    }
    let owner = request.forUser.flatMap { LinuxUser.named($0)?.uid }
    try checkFirst(for: owner, request)
    starting[request.mountpoint] = .some(owner)
    defer {
      starting[request.mountpoint] = nil
      endIfLast()
    }
    let mount = try await start(library, request, logger)
    await keep(request.mountpoint) { try $0.rememberMount(request) }
    let info = MountInfo(mountpoint: request.mountpoint, account: request.account, readOnly: request.readOnly)
    lastNumber += 1
    let number = lastNumber
    Task {
      await mount.waitUntilGone()
      self.forget(request.mountpoint, number)
    }
    guard !ending else {
      try await mount.unmount(lazy: true)
      throw isEnding
    }
    live[request.mountpoint] = (info, mount, owner, number)
    hasMounted = true
    if !request.readOnly { await planTidying() }
    logger.notice("mounted", metadata: ["mountpoint": "\(info.mountpoint)", "account": "\(info.account)"])
    return info
  }

  /// Notes in the library that a mount came or went. A mount works without, so nothing fails for that.
  private func keep(_ mountpoint: String, _ work: @escaping @Sendable (Library) throws -> Void) async {
    do {
      try await BlockingWork.run { [library] in try work(library) }
    } catch {
      logger.warning(
        "`sheaf mount --all` will not know of it: \(error)", metadata: ["mountpoint": "\(mountpoint)"])
    }
  }

  /// Has the library's history thinned from now on, since somebody may write to it. A mount works without.
  private func planTidying() async {
    do {
      try await BlockingWork.run { [library] in try library.planTidying() }
    } catch {
      logger.warning("history is not thinned while this process runs: \(error)")
    }
  }

  private var isEnding: SheafError {
    SheafError(
      .unavailable, subject: library.location.path, reason: "the process that owns it is ending", advice: "try again")
  }

  /// Checks that a user who is to get a mount has none yet: their socket speaks for one account at one place. Root has
  /// none.
  private func checkFirst(for owner: UInt32?, _ request: MountRequest) throws {
    guard let owner, owner != 0, let user = request.forUser else { return }
    let places = live.filter { $0.value.owner == owner }.map(\.key) + starting.filter { $0.value == owner }.map(\.key)
    guard let place = places.first else { return }
    throw SheafError(
      .busy, subject: user.printable, reason: "has a mount of this library already, at \(place)",
      advice: "unmount that first: sheaf unmount \(place.shellWord)")
  }

  func unmount(mountpoint: String, lazy: Bool) async throws -> Int {
    guard let (_, mount, _, number) = live[mountpoint] else {
      throw SheafError(.notFound, subject: mountpoint, reason: "is no mount of this library")
    }
    saving += 1
    defer {
      saving -= 1
      endIfLast()
    }
    do {
      try await mount.unmount(lazy: lazy)
    } catch let error as SheafError where error.kind == .busy {
      throw MountHolders(of: mountpoint).error
    }
    // The kernel's last writes and closes have come once the mount is gone. For a mount in use nobody knows when that
    // will be.
    if !lazy { await waitUntilGone(mountpoint, number) }
    forget(mountpoint, number)
    await keep(mountpoint) { _ = try $0.forgetMount(at: mountpoint) }
    do {
      try await BlockingWork.run { [library] in try library.saveClosed() }
    } catch {
      throw SheafError(
        .inputOutput, subject: mountpoint, reason: "is unmounted, but not all of it could be saved: \(error)",
        advice: "see that the disk of \(library.location.path) works, and mount it again")
    }
    return live.count + starting.count
  }

  /// Waits for the end of a mount that was unmounted here. It may go on in another mount namespace, such as that of a
  /// container or a service, for as long as that one and this process last.
  private func waitUntilGone(_ mountpoint: String, _ number: Int) async {
    let deadline = ContinuousClock.now + Self.patienceElsewhere
    while live[mountpoint]?.number == number, ContinuousClock.now < deadline {
      try? await Task.sleep(for: .milliseconds(2))
    }
    if live[mountpoint]?.number == number {
      logger.notice("goes on in another mount namespace", metadata: ["mountpoint": "\(mountpoint)"])
    }
  }

  func contains(folder: String) async -> Bool {
    guard !live.isEmpty, let table = try? MountTable.current() else { return false }
    // The threads of the mounts answer, which wait for nothing here.
    var status = stat()
    guard stat(folder, &status) == 0 else { return false }
    return table.entries(ofDevice: UInt64(status.st_dev)).contains { entry in
      entry.isSheaf && live.keys.contains { Array($0.utf8) == entry.mountpoint }
    }
  }

  func mounts() async -> [MountInfo] { live.values.map(\.info).sorted { $0.mountpoint < $1.mountpoint } }

  /// Returns once the last mount is gone, or ``end()`` is done.
  func waitUntilEmpty() async {
    if isOver { return }
    await withCheckedContinuation { waiting.append($0) }
  }

  /// Accepts no more mounts and unmounts all, those in use lazily. It waits for a mount that is just being made.
  func end() async {
    ending = true
    for (mountpoint, entry) in live {
      do {
        do {
          try await entry.mount.unmount(lazy: false)
        } catch let error as SheafError where error.kind == .busy {
          logger.notice("still in use, unmounted lazily", metadata: ["mountpoint": "\(mountpoint)"])
          try await entry.mount.unmount(lazy: true)
        }
        forget(mountpoint, entry.number)
      } catch {
        logger.error("cannot be unmounted: \(error)", metadata: ["mountpoint": "\(mountpoint)"])
      }
    }
    hasEnded = true
    endIfLast()
    await waitUntilEmpty()
  }

  /// Forgets a mount, if no other one has taken its place.
  private func forget(_ mountpoint: String, _ number: Int) {
    guard live[mountpoint]?.number == number else { return }
    live[mountpoint] = nil
    logger.notice("unmounted", metadata: ["mountpoint": "\(mountpoint)"])
    endIfLast()
  }

  private func endIfLast() {
    guard starting.isEmpty, saving == 0, hasEnded || hasMounted && live.isEmpty else { return }
    ending = true
    isOver = true
    for continuation in waiting { continuation.resume() }
    waiting = []
  }
}
