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

  let library: Library
  private let folder: DeviceFolder?
  private let logger: Logger
  private let threads = NIOThreadPool(numberOfThreads: threadCount)
  private let running = Mutex<[Int64: Running]>([:])

  private struct Running {
    let shares: AccountShares
    let task: Task<Void, Never>

    var engine: ReplicaEngine { shares.own }
  }

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
    for replica in try library.replicas() where replica.reader == nil {
      guard let zone = WireID(bytes: replica.zone) else { continue }
      do {
        begin(replica.account, zone, try devices().file(of: zone).read(), try devices())
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
    for each in all { each.task.cancel() }
    for each in all { await each.task.value }
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
  private func begin(_ account: Int64, _ zone: WireID, _ device: Device, _ devices: DeviceFolder) -> AccountShares {
    let client = DeviceClient(device)
    let engine = ReplicaEngine(
      device.handle, .zone, account, library, client, threads: threads, serials: devices.serials(of: zone),
      logger: logger)
    let shares = AccountShares(
      engine, account, library, threads: threads, serials: { devices.serials(of: zone, share: $0) }, logger: logger)
    let task = Task {
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await engine.run() }
        group.addTask { await shares.run() }
        await group.waitForAll()
      }
      await client.shutdown()
    }
    running.withLock { $0[account] = Running(shares: shares, task: task) }
    return shares
  }

  private func engine(_ handle: AccountHandle) throws -> ReplicaEngine { try shares(of: handle).own }

  /// The shares of a connected account.
  ///
  /// - Throws: ``SheafError`` of kind `notFound` for an account that is not connected.
  func shares(of handle: AccountHandle) throws -> AccountShares {
    guard let shares = try connected(handle) else {
      throw SheafError(
        .notFound, subject: "\(handle)", reason: "is connected to no hub",
        advice: "sheaf connect LINK, with a link from the hub's administrator or from another device")
    }
    return shares
  }

  /// The same; nil for an account that is not connected.
  func connected(_ handle: AccountHandle) throws -> AccountShares? {
    if let known = running.withLock({ $0.values.first { $0.engine.account == handle }?.shares }) { return known }
    // A process that serves one command connects when it has to.
    let account = try library.number(of: handle)
    guard let replica = try library.replica(account), let zone = WireID(bytes: replica.zone) else { return nil }
    return begin(account, zone, try devices().file(of: zone).read(), try devices())
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
    begin(account, zone, device, try devices())
    return try await status(of: self.shares(of: device.handle))
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
    let numbers = Set(try library.replicas().filter { $0.reader == nil }.map(\.account))
    return try library.accounts().map(\.handle).filter { numbers.contains(try library.number(of: $0)) }
  }

  package func connections() async -> [ConnectionStatus] {
    var all: [ConnectionStatus] = []
    for shares in running.withLock({ $0.values.map(\.shares) }).sorted(by: { "\($0.own.account)" < "\($1.own.account)" }
    ) {
      if let status = try? await status(of: shares) { all.append(status) }
    }
    return all
  }

  package func synchronize(_ handle: AccountHandle) async throws -> ConnectionStatus {
    let shares = try shares(of: handle)
    try library.saveClosed()
    shares.wake()
    for engine in [shares.own] + shares.engines { engine.wake(readsFeed: true) }
    return try await status(of: shares)
  }

  /// How an account is with its hub, with the shares of others that it takes part in.
  private func status(of shares: AccountShares) async throws -> ConnectionStatus {
    var status = try await shares.own.status()
    status.isSettled = status.isSettled && shares.isSettled
    for engine in shares.engines {
      let other = try await engine.status()
      status.unsent += other.unsent
      status.unfetched += other.unfetched
      status.isSettled = status.isSettled && (other.isSettled || other.state == .failed)
      status.notices += other.notices
    }
    return status
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
    try removeSerials(of: zone)
    guard
      rename("\(prefix)-new.json", "\(prefix)-\(zone).json") == 0
    else {
      throw SheafError(systemError: errno, subject: "\(prefix)-\(zone).json".printable)
    }
  }

  func serials(of zone: WireID) -> SerialFile { SerialFile("\(prefix)-\(zone).serial") }

  /// The serials of sends to a share of somebody else's, by the device of an account.
  func serials(of zone: WireID, share: WireID) -> SerialFile { SerialFile("\(prefix)-\(zone)-\(share).serial") }

  func remove(_ zone: WireID) throws {
    try removeSerials(of: zone)
    let path = "\(prefix)-\(zone).json"
    guard unlink(path) == 0 || errno == ENOENT else { throw SheafError(systemError: errno, subject: path.printable) }
  }

  private func removeSerials(of zone: WireID) throws {
    let folder = String(prefix.prefix(upTo: prefix.lastIndex(of: "/") ?? prefix.startIndex))
    let start = "\(prefix.dropFirst(folder.count + 1))-\(zone)"
    for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    where name.hasPrefix(start) && name.hasSuffix(".serial") {
      let path = "\(folder)/\(name)"
      guard unlink(path) == 0 || errno == ENOENT else { throw SheafError(systemError: errno, subject: path.printable) }
    }
  }
}
