import Foundation
import Glibc
package import Logging
import SheafHubClient
package import SheafLibrary
package import SheafModel
import SheafService
import SheafWire
import Synchronization

/// The connections of a library's accounts with their hubs, while one process has the library open.
package final class LibraryConnections: ConnectionController {
  private static let threadCount = 2
  /// How long the end of a connection waits for the hub.
  private static let removalPatience = Duration.seconds(5)

  let library: Library
  private let folder: DeviceFolder?
  private let logger: Logger
  private let begun = ReplicaEngine.now
  private let threads = ReplicaThreads(count: threadCount)
  private let running = Mutex<[Int64: Running]>([:])
  /// What destroys the accounts from which this machine was removed for that, and tells their hubs.
  private let wiping = Mutex<[Int64: Task<Void, Never>]>([:])
  /// Finishes what former processes began.
  private let finishing = Mutex<Task<Void, Never>?>(nil)
  private let hasStarted = Mutex(false)
  private let connectsOnDemand: Bool

  private struct Running {
    let shares: AccountShares
    let task: Task<Void, Never>

    var engine: ReplicaEngine { shares.own }
  }

  /// - Parameters:
  ///   - folder: Where the keys of this machine's devices are: not in the library, since a copied library is no device.
  ///     Nil for a user without a home, who has none.
  ///   - connectsOnDemand: Whether an account is connected when something asks for it, before ``start()``.
  package init(library: Library, folder: String?, connectsOnDemand: Bool = true, logger: Logger) {
    self.connectsOnDemand = connectsOnDemand
    self.library = library
    self.folder = folder.map { DeviceFolder($0, library: library.id) }
    self.logger = logger
  }

  /// Begins to keep every connected account and its hub the same, and finishes to disconnect and to wipe those that a
  /// former process did not finish.
  ///
  /// Further calls do nothing.
  package func start() throws {
    guard
      hasStarted.withLock({ started in
        defer { started = true }
        return !started
      })
    else { return }
    finishing.withLock { $0 = Task { await finishDisconnecting() } }
    for account in try library.accounts() {
      do {
        try goOnWiping(library.number(of: account.handle))
      } catch {
        logger.error("an account is not wiped", metadata: ["account": "\(account.handle)", "error": "\(error)"])
      }
    }
    for replica in try library.replicas() where replica.reader == nil {
      guard let zone = WireID(bytes: replica.zone) else { continue }
      do {
        try begin(replica.account, key(replica.account, zone))
      } catch {
        logger.error(
          "a connected account has no connection with its hub", metadata: ["zone": "\(zone)", "error": "\(error)"])
      }
    }
  }

  /// Takes away what accounts that are not connected any more have without contents, where the process that
  /// disconnected them ended in the middle of it.
  private func finishDisconnecting() async {
    for account in (try? library.accounts()) ?? [] {
      do {
        _ = try await removeAbsent(of: library.number(of: account.handle))
      } catch is CancellationError {
        return
      } catch {
        logger.error(
          "documents without contents stay", metadata: ["account": "\(account.handle)", "error": "\(error)"])
      }
    }
  }

  /// - Returns: How many documents went.
  private func removeAbsent(of account: Int64) async throws -> Int {
    var (removed, next): (Int, Int64?) = (0, 0)
    while let after = next {
      try Task.checkCancellation()
      let some = try await threads.run { [library] in try library.removeAbsent(of: account, after: after) }
      (removed, next) = (removed + some.removed, some.next)
    }
    return removed
  }

  /// Ends all of that.
  package func stop() async {
    let begun = finishing.withLock { $0 }
    begun?.cancel()
    await begun?.value
    let all = running.withLock { running in
      defer { running = [:] }
      return running.values.map(\.task)
    }
    for task in all { task.cancel() }
    for task in all { await task.value }
    // One of those may have begun another one.
    let wipes = wiping.withLock { wiping in
      defer { wiping = [:] }
      return Array(wiping.values)
    }
    for task in wipes { task.cancel() }
    for task in wipes { await task.value }
    try? await threads.shutDown()
  }

  /// - Throws: ``SheafError`` of kind `notFound`.
  private func devices() throws -> DeviceFolder {
    guard let folder else {
      throw SheafError(
        .notFound, subject: "HOME", reason: "is not set, and the user has no home", advice: "set XDG_STATE_HOME")
    }
    return folder
  }

  /// The key of a connected account.
  private func key(_ account: Int64, _ zone: WireID) throws -> DeviceKeyFile {
    try devices().key(of: zone, device: library.replicaDevice(account)?.id)
  }

  /// What keeps an account and its hub the same, and does not run yet.
  private func make(
    _ account: Int64, _ key: DeviceKeyFile
  ) throws -> (shares: AccountShares, log: AccountLog, device: Device) {
    let device = try key.file.read()
    let (client, gate) = (DeviceClient(device), PauseGate())
    let log = AccountLog(device.handle, account, library, client, gate: gate, threads: threads, logger: logger)
    let engine = ReplicaEngine(
      device.handle, .zone, account, library, client, log: log, gate: gate, threads: threads, serials: key.serials,
      logger: logger)
    let shares = AccountShares(
      engine, account, library, threads: threads, serials: { key.serials(ofShare: $0) }, keys: key.keys, logger: logger)
    // An account that is not connected any more is none that goes on.
    if let pace = try? library.replicaPace(account) { shares.set(pace) }
    return (shares, log, device)
  }

  /// - Throws: ``SheafError``; `busy` if this library is a copy of the one that is the device.
  @discardableResult
  private func begin(_ account: Int64, _ key: DeviceKeyFile) throws -> AccountShares {
    // What an earlier program connected names no file.
    let isOriginal = try library.replicaDevice(account)?.isOriginal ?? true
    try key.holder.take(for: library.location.path, isOriginal: isOriginal)
    let (shares, log, device) = try make(account, key)
    let engine = shares.own
    let task = Task {
      await withTaskGroup(of: Bool.self) { group in
        group.addTask {
          await engine.run()
          return engine.isWiped
        }
        group.addTask {
          await shares.run()
          return false
        }
        group.addTask {
          await log.run()
          return false
        }
        // All of it ends before anything is destroyed.
        for await isWiped in group where isWiped { group.cancelAll() }
      }
      await shares.shutdown()
      await engine.client.shutdown()
      guard engine.isWiped else { return }
      running.withLock { _ = $0.removeValue(forKey: account) }
      wipe(account, device.id)
    }
    running.withLock { $0[account] = Running(shares: shares, task: task) }
    return shares
  }

  private func engine(_ handle: AccountHandle) throws -> ReplicaEngine { try shares(of: handle).own }

  /// The shares of a connected account.
  ///
  /// - Throws: ``SheafError`` of kind `notFound` for an account that is not connected.
  func shares(of handle: AccountHandle) throws -> AccountShares {
    guard let shares = try connected(handle) else { throw Self.notConnected(handle) }
    return shares
  }

  private static func notConnected(_ handle: AccountHandle) -> SheafError {
    SheafError(
      .notFound, subject: "\(handle)", reason: "is connected to no hub",
      advice: "sheaf connect LINK, with a link from the hub's administrator or from another device")
  }

  /// The same; nil for an account that is not connected.
  func connected(_ handle: AccountHandle) throws -> AccountShares? {
    if let known = runningShares(of: handle) { return known }
    guard connects, let (account, key) = try key(of: handle) else { return nil }
    return try begin(account, key)
  }

  /// Whether accounts are connected here: a process that serves one command connects them when it has to.
  private var connects: Bool { connectsOnDemand || hasStarted.withLock { $0 } }

  private func runningShares(of handle: AccountHandle) -> AccountShares? {
    running.withLock { $0.values.first { $0.engine.account == handle }?.shares }
  }

  /// The number and the key of an account; nil for one that is not connected.
  private func key(of handle: AccountHandle) throws -> (account: Int64, key: DeviceKeyFile)? {
    let account = try library.number(of: handle)
    guard let replica = try library.replica(account), let zone = WireID(bytes: replica.zone) else { return nil }
    return (account, try key(account, zone))
  }

  /// Asks the hub of an account something. If the account and its hub are not kept the same already, that does not begin:
  /// who only asks changes nothing here, least of all a backup.
  ///
  /// - Returns: nil for an account that is not connected.
  func asked<Value>(_ handle: AccountHandle, _ body: (AccountShares) async throws -> Value) async throws -> Value? {
    if let known = runningShares(of: handle) { return try await body(known) }
    guard let (account, key) = try key(of: handle) else { return nil }
    let shares = try make(account, key).shares
    @Sendable func end() async {
      await shares.shutdown()
      await shares.own.client.shutdown()
    }
    do {
      let value = try await body(shares)
      await end()
      return value
    } catch {
      // A connection that is still being made is so for seconds.
      Task { await end() }
      throw error
    }
  }

  /// The same, of which nobody waits for longer than `limit`.
  ///
  /// - Throws: ``SheafError`` of kind `unavailable` for a hub that has not answered by then.
  func asked<Value: Sendable>(
    _ handle: AccountHandle, within limit: Duration, _ body: @escaping @Sendable (AccountShares) async throws -> Value
  ) async throws -> Value? {
    try await asked(handle) { shares in
      do {
        return try await withTimeout(limit) { try await body(shares) }
      } catch is TimedOut {
        throw shares.own.client.silence.sheafError
      }
    }
  }

  // MARK: - ConnectionController

  package func preview(_ request: ConnectionRequest) async throws -> ConnectionPreview {
    let (account, zone, hub) = try await LinkPreview.ask(request, file: devices().newFile)
    if try library.accounts().contains(where: { $0.handle == account }),
      let replica = try library.replica(try library.number(of: account)), replica.reader == nil
    {
      try await refuse(account, replica.account, of: replica.zone, link: zone, hub)
    }
    return ConnectionPreview(account: account, hub: hub, hasDocuments: try library.ownsDocuments(account))
  }

  /// Refuses to connect an account that is connected, unless its hub knows this machine no more.
  private func refuse(
    _ account: AccountHandle, _ number: Int64, of connected: [UInt8], link zone: WireID, _ hub: String
  ) async throws {
    let another = "to connect it anew, end that first: sheaf disconnect --as \(account); the link stays good for a day"
    guard connected == zone.bytes else {
      throw SheafError(.exists, subject: "\(account)", reason: "is connected with another hub", advice: another)
    }
    guard let device = try? key(number, zone).file.read() else { return }
    let client = DeviceClient(device)
    let isKnown = (try? await client.account()) != nil
    await client.shutdown()
    if isKnown {
      throw SheafError(
        .exists, subject: "\(account)", reason: "is connected with \(hub) already",
        advice: "see how it is: sheaf status; " + another)
    }
  }

  package func connect(_ request: ConnectionRequest) async throws -> ConnectionStatus {
    _ = try await preview(request)
    let device: Device
    do {
      device = try await DeviceClient.enroll(
        by: try Enrolment(request.link), name: request.device, file: devices().newFile)
    } catch let failure as HubFailure {
      throw failure.sheafError
    }
    guard let zone = WireID(device.zone) else { throw SheafError(.inputOutput, subject: "\(device.hub)") }
    if try library.accounts().contains(where: { $0.handle == device.handle }) == false {
      _ = try library.addAccount(device.handle, name: nil)
    }
    let account = try library.number(of: device.handle)
    if try library.replica(account) == nil {
      if let wipe = try library.wipe(of: account), wipe.state != .begun { try await forgetWipe(of: account, wipe) }
      // What went with a former connection is not deleted for the new one.
      await finishing.withLock { $0 }?.value
      _ = try await removeAbsent(of: account)
      try library.connect(account, zone: zone, hub: device.hub.description)
    }
    let former = try library.replicaDevice(account)
    await end(account)
    try library.setReplicaDevice(device.id, of: account)
    let key = try self.key(account, zone)
    try devices().keep(as: key)
    if let former, former.isOriginal, former.id != device.id { try devices().key(of: zone, device: former.id).remove() }
    let shares = try begin(account, key)
    noteOtherAccounts(than: account)
    return try await status(of: shares)
  }

  /// Has the shares of the library's other accounts looked at: their owner may be connected here by now, or no more.
  private func noteOtherAccounts(than account: Int64) {
    for other in running.withLock({ $0.filter { $0.key != account }.map(\.value.shares) }) { other.noteOtherAccounts() }
  }

  /// Ends what goes on for an account.
  private func end(_ account: Int64) async {
    if let former = running.withLock({ $0.removeValue(forKey: account) }) {
      former.task.cancel()
      await former.task.value
    }
    // One that could not begin to wipe it has nothing to wipe any more.
    await endWiping(account)
  }

  package func disconnect(_ handle: AccountHandle, discardsUnsent: Bool) async throws -> Disconnection {
    let account = try library.number(of: handle)
    guard let replica = try library.replica(account) else {
      guard let wipe = try library.wipe(of: account), wipe.state != .begun else {
        throw SheafError(.notFound, subject: "\(handle)", reason: "is connected to no hub")
      }
      try await forgetWipe(of: account, wipe)
      return Disconnection(account: handle, removed: 0, isDeviceRemoved: true)
    }
    if !discardsUnsent, case let counts = try library.replicaCounts(account), counts.unsent > 0 {
      let isPaused = try library.replicaPace(account).isPaused
      let status = try await runningShares(of: handle)?.own.status()
      let wait =
        isPaused
        ? "go on first: sheaf sync --resume; or "
        : status?.state == .failed ? "nothing can be sent any more; " : "wait for it: sheaf sync --wait 60; or "
      throw SheafError(
        .busy, subject: "\(handle)",
        reason: "has \(Self.items(counts.unsent)) that the hub does not have yet",
        advice: wait + "leave it so: --discard-unsent")
    }
    await end(account)
    let device = try library.replicaDevice(account)
    let key = try WireID(bytes: replica.zone).map { try self.key(account, $0) }
    try library.disconnect(account)
    var isDeviceRemoved = true
    // The file that this one is a copy of may be the device still.
    if device?.isOriginal ?? true, let key {
      isDeviceRemoved = await removeOwnDevice(key)
      try key.remove()
    }
    noteOtherAccounts(than: account)
    let removed = try await removeAbsent(of: account)
    return Disconnection(account: handle, removed: removed, isDeviceRemoved: isDeviceRemoved)
  }

  /// Takes the device of a key away from its account.
  ///
  /// - Returns: whether it is no device of the account any more; false where the hub does not answer in time.
  private func removeOwnDevice(_ key: DeviceKeyFile) async -> Bool {
    guard let device = try? key.file.read(), let id = WireID(device.id) else { return false }
    let client = DeviceClient(device)
    let isRemoved: Bool
    do {
      try await withTimeout(Self.removalPatience) { try await client.removeDevice(id) }
      isRemoved = true
    } catch {
      isRemoved = (error as? HubFailure)?.kind == .deviceRemoved
    }
    // A connection that is still being made is so for seconds.
    Task { await client.shutdown() }
    return isRemoved
  }

  private static func items(_ count: Int64) -> String { count == 1 ? "1 item" : "\(count) items" }

  package func change(_ change: ConnectionChange, of handle: AccountHandle) async throws -> ConnectionStatus {
    if let limit = change.limit, limit != 0, limit < ConnectionChange.lowestLimit {
      throw SheafError(
        .invalid, subject: "a limit of \(limit) bytes a second", reason: "is too low",
        advice: "give \(ConnectionChange.lowestLimit) or more, or 0 for none")
    }
    let account = try library.number(of: handle)
    var pace = try library.replicaPace(account)
    if let isPaused = change.isPaused { pace.isPaused = isPaused }
    if let limit = change.limit { pace.limit = limit == 0 ? nil : limit }
    try library.setReplicaPace(pace, of: account)
    let shares = try shares(of: handle)
    shares.set(pace)
    return try await status(of: shares)
  }

  package func connectedAccounts() async throws -> [AccountHandle] {
    let numbers = Set(try library.replicas().filter { $0.reader == nil }.map(\.account))
    return try library.accounts().map(\.handle).filter { numbers.contains(try library.number(of: $0)) }
  }

  // MARK: - Being wiped

  /// Goes on to destroy what an account has here, if that is begun and not over.
  private func goOnWiping(_ account: Int64) throws {
    if let mark = try library.wipe(of: account), mark.state != .told { wipe(account, mark.device) }
  }

  /// Destroys what an account has here, and tries again where that fails.
  ///
  /// - Parameter device: The device that the machine was.
  private func wipe(_ account: Int64, _ device: String) {
    logger.notice("this machine was removed from an account and is wiped of it", metadata: ["device": "\(device)"])
    wiping.withLock { wiping in
      wiping[account] = Task {
        var pause = Self.wipePauses.first
        while !Task.isCancelled {
          do {
            if try library.wipe(of: account) == nil { try library.beginWiping(account, device: device) }
            return try await wipe(account)
          } catch let failure as HubFailure {
            logger.info("the hub is not told that an account is wiped", metadata: ["reason": "\(failure)"])
          } catch is CancellationError {
            return
          } catch {
            logger.error("an account is not wiped yet", metadata: ["device": "\(device)", "error": "\(error)"])
          }
          try? await Task.sleep(for: .seconds(pause))
          pause = min(pause * 2, Self.wipePauses.longest)
        }
      }
    }
  }

  /// Ends that.
  private func endWiping(_ account: Int64) async {
    let task = wiping.withLock { $0.removeValue(forKey: account) }
    task?.cancel()
    await task?.value
  }

  /// Between two attempts to destroy what an account has, or to tell its hub, at first and at most.
  private static let wipePauses = (first: 1.0, longest: 600.0)

  /// Destroys what an account has here, tells its hub, and forgets this machine's key.
  private func wipe(_ account: Int64) async throws {
    guard var mark = try library.wipe(of: account) else { return }
    // What a former process disconnected goes before.
    await finishing.withLock { $0 }?.value
    if mark.state == .begun {
      try await threads.run { [library] in try library.destroyWiped(account) }
      mark.state = .done
      try library.setWipe(mark, of: account)
    }
    if let key = key(of: mark), let device = try? key.file.read() {
      let client = DeviceClient(device)
      do {
        try await client.tellWiped()
      } catch let failure as HubFailure where failure.kind == .refused(.unauthorized) {
        // Nobody waits for it any more.
      } catch {
        await client.shutdown()
        throw error
      }
      await client.shutdown()
      try key.remove()
    }
    mark.state = .told
    try library.setWipe(mark, of: account)
  }

  /// The key of the device that the machine was; nil where it is gone.
  private func key(of mark: WipeMark) -> DeviceKeyFile? {
    guard let devices = try? devices() else { return nil }
    // An earlier program did not name the file after the device.
    let keys = [mark.device, nil].map { devices.key(of: mark.zone, device: $0) }
    return keys.first { (try? $0.file.read())?.id == mark.device }
  }

  /// Forgets that an account was wiped, whether or not its hub knows it.
  private func forgetWipe(of account: Int64, _ mark: WipeMark) async throws {
    await endWiping(account)
    try key(of: mark)?.remove()
    try library.setWipe(nil, of: account)
  }

  /// How an account is that is wiped, or was; nil for others.
  private func wiped(_ handle: AccountHandle, _ account: Int64) -> ConnectionStatus? {
    guard let mark = try? library.wipe(of: account) else { return nil }
    let problem =
      mark.state == .begun
      ? "this machine was removed from the account, and what it has of it is being destroyed"
      : "this machine was removed from the account, and what it had of it is destroyed; to connect it anew: "
        + "sheaf connect LINK; to forget this: sheaf disconnect --as \(handle)"
    return ConnectionStatus(
      account: handle, hub: nil, state: .failed, since: mark.time, problem: problem, unsent: 0, unfetched: 0,
      isSettled: false, isPaused: false, limit: nil, movedBytes: 0, notices: [])
  }

  package func connections() async -> [ConnectionStatus] {
    let connections = running.withLock { $0.mapValues(\.shares) }
    var all: [ConnectionStatus] = []
    for shares in connections.values {
      if let status = try? await status(of: shares) { all.append(status) }
    }
    for handle in (try? library.accounts().map(\.handle)) ?? [] {
      guard let account = try? library.number(of: handle), connections[account] == nil else { continue }
      guard let replica = try? library.replica(account) else {
        if let status = wiped(handle, account) { all.append(status) }
        continue
      }
      guard replica.reader == nil, let status = unconnected(handle, account, WireID(bytes: replica.zone)) else {
        continue
      }
      all.append(status)
    }
    return all.sorted { "\($0.account)" < "\($1.account)" }
  }

  /// How a connected account is for which this machine has no key, or whose key is another library's; nil for others.
  private func unconnected(_ handle: AccountHandle, _ account: Int64, _ zone: WireID?) -> ConnectionStatus? {
    guard let zone, let counts = try? library.replicaCounts(account), let pace = try? library.replicaPace(account)
    else { return nil }
    do {
      let key = try key(account, zone)
      _ = try key.file.read()
      // What is only looked into connects nothing, and takes no key.
      if connects { try key.holder.check(library.location.path) }
      return nil
    } catch {
      return ConnectionStatus(
        account: handle, hub: nil, state: .failed, since: begun, problem: "\(error)",
        unsent: counts.unsent, unfetched: counts.news, isSettled: false, isPaused: pace.isPaused,
        limit: pace.limit, movedBytes: 0, notices: [])
    }
  }

  package func synchronize(_ handle: AccountHandle) async throws -> ConnectionStatus {
    let shares = try shares(of: handle)
    try library.saveClosed()
    shares.wake()
    for engine in [shares.own] + shares.engines { engine.wake(readsFeed: true) }
    shares.own.log.wake()
    return try await status(of: shares)
  }

  package func fetch(_ absent: AbsentContents) async throws {
    guard let replica = try library.replica(absent.account),
      let shares = try connected(library.connectedHandle(replica.reader ?? absent.account)),
      let engine = ([shares.own] + shares.engines).first(where: { $0.number == absent.account })
    else {
      throw SheafError(
        .unreachable, subject: "contents", reason: "are at a hub with which this process has no connection",
        advice: "see how it is: sheaf status")
    }
    try await engine.fetchOnDemand(absent)
  }

  /// How an account is with its hub, with the shares of others that it takes part in.
  private func status(of shares: AccountShares) async throws -> ConnectionStatus {
    var status = try await shares.own.status()
    let areShown = try await shares.isSettled()
    status.isSettled = status.isSettled && areShown && shares.own.log.isSettled
    for engine in shares.engines {
      let other = try await engine.status()
      status.unsent += other.unsent
      status.unfetched += other.unfetched
      status.isSettled = status.isSettled && (other.isSettled || other.state == .failed)
      // That the account's own hub cannot be reached is said once.
      if other.state == .connected || other.state == .disconnected && other.hub != status.hub {
        status.problem = status.problem ?? other.problem
      }
      status.notices += other.notices
    }
    return status
  }

  package func devices(of handle: AccountHandle) async throws -> [ConnectedDevice] {
    guard let devices = try await asked(handle, { try await $0.own.devices() }) else { throw Self.notConnected(handle) }
    return devices
  }

  package func addDevice(to handle: AccountHandle) async throws -> DeviceLink {
    try await engine(handle).addDevice()
  }

  package func revokeDeviceLinks(of handle: AccountHandle) async throws -> RevokedDeviceLinks {
    try await engine(handle).revokeDeviceLinks()
  }

  package func removeDevice(_ id: String, of handle: AccountHandle, wipes: Bool) async throws {
    try await engine(handle).removeDevice(id, wipes: wipes)
  }
}

/// Where the keys of a library's devices are: a file for each device, and one for an enrolment that goes on.
private struct DeviceFolder: Sendable {
  private let prefix: String
  /// The library's id.
  private let library: String

  init(_ folder: String, library: String) {
    self.library = library
    prefix = "\(folder)/\(library)"
  }

  var newFile: DeviceFile { DeviceFile("\(prefix)-new.json") }

  /// - Parameter device: The device's id; nil for one that an earlier program enrolled.
  func key(of zone: WireID, device: String?) -> DeviceKeyFile {
    DeviceKeyFile("\(prefix)-\(zone)\(device.map { "-\($0)" } ?? "")", of: library, isNamed: device != nil)
  }

  /// Keeps the key of the enrolment that was finished.
  func keep(as key: DeviceKeyFile) throws {
    guard rename("\(prefix)-new.json", key.file.path) == 0 else {
      throw SheafError(systemError: errno, subject: key.file.path.printable)
    }
  }
}

/// The file of a device's key, with those that note the serials of its sends.
private struct DeviceKeyFile: Sendable {
  private let name: String
  private let library: String
  /// Whether the device's id is part of the name, so that no other device's files begin with it.
  private let isNamed: Bool

  init(_ name: String, of library: String, isNamed: Bool) {
    self.name = name
    self.library = library
    self.isNamed = isNamed
  }

  var file: DeviceFile { DeviceFile("\(name).json") }

  var serials: SerialFile { SerialFile("\(name).serial") }

  /// Which library uses the key.
  var holder: KeyHolder { KeyHolder("\(name).library", ofLibrary: library) }

  /// The keys that stand for the device in shares of other hubs.
  var keys: KeyFile { KeyFile("\(name).keys") }

  /// The serials of sends to a share of somebody else's.
  func serials(ofShare share: WireID) -> SerialFile { SerialFile("\(name)-\(share).serial") }

  func remove() throws {
    try holder.remove()
    let folder = String(name.prefix(upTo: name.lastIndex(of: "/") ?? name.startIndex))
    let start = "\(name.dropFirst(folder.count + 1))-"
    let shares = isNamed ? (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] : []
    for path in shares.filter({ $0.hasPrefix(start) && $0.hasSuffix(".serial") }).map({ "\(folder)/\($0)" })
      + ["\(name).serial", "\(name).keys", file.path]
    {
      guard unlink(path) == 0 || errno == ENOENT else { throw SheafError(systemError: errno, subject: path.printable) }
    }
  }
}
