import Glibc
import Logging
import SheafClient
import SheafLibrary
import SheafModel
import SheafMount
import SheafReplication
import SheafService
import UnixSignals

/// The process that owns a library, from its first mount to its last.
enum MountProcess {
  /// The signals that save everything, unmount and end the process.
  private static let endSignals: [UnixSignal] = [.sigterm, .sigint, .sighup]

  /// Limits malloc(3) to few arenas: with an arena for each answering thread, no thread would reuse the memory that
  /// another one frees.
  ///
  /// Call it before there are threads.
  static func limitArenas() {
    // The module Glibc does not have <malloc.h>: int mallopt(int param, int value), M_ARENA_MAX.
    guard let symbol = dlsym(nil, "mallopt") else { return }
    let mallopt = unsafeBitCast(symbol, to: (@convention(c) (CInt, CInt) -> CInt).self)
    _ = mallopt(-8, 4)
  }

  /// Lets the process open as many files as the hard limit allows: each client's connection takes one, and the usual
  /// limit is for programs that call select(2).
  static func raiseDescriptorLimit() {
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(resource, &limit)
  }

  /// Serves a library and mounts it; closes it when the last mount is gone.
  ///
  /// - Parameters:
  ///   - library: The plan's library, newly opened.
  ///   - mounted: Called once the mount answers.
  static func run(
    _ library: Library, _ plan: MountPlan, logger: Logger, mounted: (MountInfo) throws -> Void
  ) async throws {
    let signals = await UnixSignalsSequence(trapping: endSignals)
    do {
      let connections = LibraryConnections(
        library: library, folder: LibraryChoice.devicesFolder(), connectsOnDemand: !plan.readOnly, logger: logger)
      let mounts = ProcessMounts(library: library, logger: logger) { library, request, logger in
        let mount = try await startLibraryMount(library, request, logger, contents: connections)
        if plan.readOnly, !request.readOnly { try connections.start() }
        return mount
      }
      let service = try SheafService(library: library, mounts: mounts, connections: connections, logger: logger)
      try await service.start()
      do {
        let client = try SheafClient(socket: plan.location.socketPath, library: plan.location.path)
        do {
          let info = try await plan.mount(with: client)
          await client.shutdown()
          try plan.verify()
          // What is mounted read-only stays as it is: a backup is not to become what its hub has today, nor to have
          // purged what was purged since.
          if !plan.readOnly { try connections.start() }
          try mounted(info)
        } catch {
          await client.shutdown()
          throw error
        }
        await wait(for: mounts, or: signals)
      } catch {
        await connections.stop()
        await mounts.end()
        try? await service.stop(patience: .zero)
        throw error
      }
      await connections.stop()
      try await service.stop(patience: .seconds(1))
    } catch {
      try? library.close()
      throw error
    }
    try library.close()
  }

  /// Stays while another process has the mount up, and unmounts it on a signal.
  ///
  /// - Throws: ``SheafError`` of kind `unavailable` if that process was killed; then the dead mount is cleared.
  static func follow(_ mount: MountInfo, of location: LibraryLocation, by owner: OwnerProcess) async throws {
    let signals = await UnixSignalsSequence(trapping: endSignals)
    let signalled = await withTaskGroup(of: Bool.self) { group in
      group.addTask {
        while !Task.isCancelled, isListed(mount), owner.isRunning {
          try? await Task.sleep(for: .milliseconds(500))
        }
        return false
      }
      group.addTask {
        for await _ in signals { return true }
        return false
      }
      let first = await group.next() ?? false
      group.cancelAll()
      return first
    }
    guard owner.isRunning else {
      // The process has unmounted before it ended, unless it was killed.
      guard isListed(mount) else { return }
      try LibraryMount.clear(at: mount.mountpoint)
      throw SheafError(
        .unavailable, subject: mount.mountpoint, reason: "the process that had it mounted was killed",
        advice: "mount it again")
    }
    guard signalled, let connection = try await LibraryConnection.join(location) else { return }
    do {
      _ = try await connection.client.unmount(mount.mountpoint, lazy: false)
    } catch let error as SheafError where error.kind == .busy {
      _ = try await connection.client.unmount(mount.mountpoint, lazy: true)
    }
    await connection.close()
  }

  private static func isListed(_ mount: MountInfo) -> Bool {
    (try? MountTable.current().entry(at: Array(mount.mountpoint.utf8)))?.isSheaf ?? false
  }

  private static func wait(for mounts: ProcessMounts, or signals: UnixSignalsSequence) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await mounts.waitUntilEmpty() }
      group.addTask {
        for await _ in signals {
          await mounts.end()
          return
        }
      }
      await group.next()
      group.cancelAll()
    }
  }
}
