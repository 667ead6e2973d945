import Foundation
import Glibc
package import Logging
import NIOPosix
import SheafHubClient
package import SheafLibrary
package import SheafModel
import SheafService
import SheafWire
import Synchronization

/// The connections of a library's accounts with their hubs, while one process has the library open.
package final class LibraryConnections: ConnectionController {
  private static let threadCount = 2

  private let library: Library
  private let folder: DeviceFolder?
  private let logger: Logger
  private let threads = NIOThreadPool(numberOfThreads: threadCount)
  private let running = Mutex<[Int64: (engine: ReplicaEngine, task: Task<Void, Never>)]>([:])

  /// - Parameter folder: Where the keys of this machine's devices are: not in the library, since a copied library is no
  ///   device. Nil for a user without a home, who has none.
  package init(library: Library, folder: String?, logger: Logger) {
    self.library = library
    self.folder = folder.map { DeviceFolder($0, library: library.id) }
    self.logger = logger
    threads.start()
  }

  /// Begins to keep every connected account and its hub the same.
  package func start() throws {
    for replica in try library.replicas() {
      guard let zone = WireID(bytes: replica.zone) else { continue }
      do {
        begin(replica.account, try devices().file(of: zone).read(), try devices().serials(of: zone))
      } catch {
        logger.error(
          "an account is connected, but this machine has no key for it",
          metadata: ["zone": "\(zone)", "error": "\(error)"])
      }
    }
  }

  /// Ends all of that.
  package func stop() async {
    let all = running.withLock { running in
      defer { running = [:] }
      return Array(running.values)
    }
    for (_, task) in all { task.cancel() }
    for (_, task) in all { await task.value }
    try? await threads.shutdownGracefully()
  }

  /// - Throws: ``SheafError`` of kind `notFound`.
  private func devices() throws -> DeviceFolder {
    guard let folder else {
      throw SheafError(
        .notFound, subject: "HOME", reason: "is not set, and the user has no home", advice: "set XDG_STATE_HOME")
    }
    return folder
  }

  @discardableResult
  private func begin(_ account: Int64, _ device: Device, _ serials: SerialFile) -> ReplicaEngine {
    let engine = ReplicaEngine(
      device.handle, account, library, device, threads: threads, serials: serials, logger: logger)
    let task = Task { await engine.run() }
    running.withLock { $0[account] = (engine, task) }
    return engine
  }

  private func engine(_ handle: AccountHandle) throws -> ReplicaEngine {
    if let engine = running.withLock({ $0.values.first { $0.engine.account == handle }?.engine }) { return engine }
    // A process that serves one command connects when it has to.
    let account = try library.number(of: handle)
    guard let replica = try library.replica(account), let zone = WireID(bytes: replica.zone) else {
      throw SheafError(
        .notFound, subject: "\(handle)", reason: "is connected to no hub",
        advice: "sheaf connect LINK, with a link from the hub's administrator or from another device")
    }
    return begin(account, try devices().file(of: zone).read(), try devices().serials(of: zone))
  }

  // MARK: - ConnectionController

  package func connect(_ request: ConnectionRequest) async throws -> ConnectionStatus {
    let enrolment = try Enrolment(request.link)
    guard (1...DeviceClient.longestName).contains(request.device.utf8.count) else {
      throw SheafError(
        .invalid, subject: "--name \(request.device.printable)", reason: "is empty or too long",
        advice: "give 1 to \(DeviceClient.longestName) bytes")
    }
    let device: Device
    do {
      device = try await DeviceClient.enroll(by: enrolment, name: request.device, file: devices().newFile)
    } catch let failure as HubFailure {
      throw failure.sheafError
    }
    guard let zone = WireID(device.zone) else { throw SheafError(.inputOutput, subject: "\(device.hub)") }
    if try library.accounts().contains(where: { $0.handle == device.handle }) == false {
      _ = try library.addAccount(device.handle, name: nil)
    }
    let account = try library.number(of: device.handle)
    if try library.replica(account) == nil {
      try library.connect(account, zone: zone)
    } else if try library.replica(account)?.zone != zone.bytes {
      throw SheafError(
        .exists, subject: "\(device.handle)", reason: "is connected to another hub",
        advice: "disconnect it before: sheaf disconnect --as \(device.handle)")
    }
    try devices().keep(zone)
    if let former = running.withLock({ $0.removeValue(forKey: account) }) {
      former.task.cancel()
      await former.task.value
    }
    begin(account, device, try devices().serials(of: zone))
    return try await engine(device.handle).status()
  }

  package func disconnect(_ handle: AccountHandle, discardsUnsent: Bool) async throws {
    let account = try library.number(of: handle)
    guard let replica = try library.replica(account) else {
      throw SheafError(.notFound, subject: "\(handle)", reason: "is connected to no hub")
    }
    if !discardsUnsent, case let counts = try library.replicaCounts(account), counts.changes + counts.sends > 0 {
      throw SheafError(
        .busy, subject: "\(handle)",
        reason: "has \(counts.changes + counts.sends) items that the hub does not have yet",
        advice: "wait for it: sheaf sync --wait 60; or leave it so: --discard-unsent")
    }
    if let former = running.withLock({ $0.removeValue(forKey: account) }) {
      former.task.cancel()
      await former.task.value
    }
    try library.disconnect(account)
    if let zone = WireID(bytes: replica.zone) { try devices().remove(zone) }
  }

  package func connectedAccounts() async throws -> [AccountHandle] {
    let numbers = Set(try library.replicas().map(\.account))
    return try library.accounts().map(\.handle).filter { numbers.contains(try library.number(of: $0)) }
  }

  package func connections() async -> [ConnectionStatus] {
    var all: [ConnectionStatus] = []
    for (engine, _) in running.withLock({ $0.values.sorted { "\($0.engine.account)" < "\($1.engine.account)" } }) {
      if let status = try? await engine.status() { all.append(status) }
    }
    return all
  }

  package func synchronize(_ handle: AccountHandle) async throws -> ConnectionStatus {
    let engine = try engine(handle)
    try library.saveClosed()
    engine.wake(readsFeed: true)
    return try await engine.status()
  }

  package func devices(of handle: AccountHandle) async throws -> [ConnectedDevice] {
    try await engine(handle).devices()
  }

  package func addDevice(to handle: AccountHandle) async throws -> DeviceLink {
    try await engine(handle).addDevice()
  }

  package func removeDevice(_ id: String, of handle: AccountHandle) async throws {
    try await engine(handle).removeDevice(id)
  }
}

/// Where the keys of a library's devices are: a file for each zone, and one for an enrolment that goes on.
private struct DeviceFolder: Sendable {
  private let prefix: String

  init(_ folder: String, library: String) { prefix = "\(folder)/\(library)" }

  var newFile: DeviceFile { DeviceFile("\(prefix)-new.json") }

  func file(of zone: WireID) -> DeviceFile { DeviceFile("\(prefix)-\(zone).json") }

  /// Keeps the key of the enrolment that was finished.
  func keep(_ zone: WireID) throws {
    // A new device begins at the first serial.
    guard unlink("\(prefix)-\(zone).serial") == 0 || errno == ENOENT,
      rename("\(prefix)-new.json", "\(prefix)-\(zone).json") == 0
    else {
      throw SheafError(systemError: errno, subject: "\(prefix)-\(zone).json".printable)
    }
  }

  func serials(of zone: WireID) -> SerialFile { SerialFile("\(prefix)-\(zone).serial") }

  func remove(_ zone: WireID) throws {
    for path in ["\(prefix)-\(zone).json", "\(prefix)-\(zone).serial"] where unlink(path) != 0 && errno != ENOENT {
      throw SheafError(systemError: errno, subject: path.printable)
    }
  }
}
