import ArgumentParser
import Glibc
import SheafClient
import SheafLibrary
import SheafModel
import SheafMount

struct Unmount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Save everything and unmount.",
    discussion: """
      Returns once all is safely stored. A mount that is in use stays, and the error says who uses it. When the last \
      mount of a library goes, its process ends. A dead mount is cleared. `sheaf mount --all` does not make the mount \
      again.

      Examples:
        sheaf unmount
        sheaf unmount /mnt/work
        sheaf unmount /mnt/bob --as bob@example.com   only if it is bob's
      """)

  /// How long the process may take to close the library after its last mount.
  private static let patience = Duration.seconds(60)
  /// How long the process may take from then to its end.
  private static let endPatience = Duration.seconds(5)

  @Argument(help: "The mount point (default: ~/Sheaf).")
  var mountpoint: PathArgument?

  /// The library and the account that the mount must be of.
  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let place = try Mountpoint(given: mountpoint, user: nil)
    try await unmount(place)
    if output.json { return try JSON.write(UnmountOutput(mountpoint: place.path)) }
    try StandardOutput.line("Unmounted \(place.path).".escapingControls)
  }

  private func unmount(_ place: Mountpoint) async throws {
    let expected = try library.file.map { try LibraryChoice.location(path: $0) }
    // Otherwise this process would itself be using the mount.
    chdir("/")
    guard let entry = try MountTable.current().entry(at: Array(place.path.utf8)) else {
      if try await forget(place, of: try expected ?? LibraryChoice.location(named: nil)) { return }
      throw SheafError(
        .notFound, subject: place.path, reason: "is not mounted",
        advice: "see what is with: sheaf status; what another library remembers goes with: "
          + "sheaf unmount \(place.path.shellWord) --library FILE")
    }
    guard entry.isSheaf else {
      throw SheafError(
        .invalid, subject: place.path, reason: "is no mount of Sheaf, but \(entry.source.readable) (\(entry.type))")
    }
    let location = LibraryLocation(path: entry.source.readable)
    let account = try library.account()
    if let expected, expected != location {
      throw SheafError(
        .invalid, subject: place.path, reason: "is a mount of \(location.path), not of the library of --library",
        advice: "leave out --library")
    }
    OwnerProcess.releaseKilled(location)
    guard let connection = try await Self.join(location, mountedAt: place.path) else {
      guard MountProbe.isDead(place.path) else {
        throw SheafError(
          .unavailable, subject: place.path,
          reason: "is mounted, but no process answers at \(location.path); the library's disk may be unmounted itself",
          advice: "unmount it with: umount \(place.path.shellWord)")
      }
      try LibraryMount.clear(at: place.path)
      // The library may be on a disk that is away; the dead mount is cleared all the same.
      _ = try? await forget(place, of: location)
      return
    }
    do {
      guard connection.info.mounts else { throw try await Self.cannot(unmount: place.path, connection) }
      if let account { try await check(place.path, isOf: account, connection.client) }
      let result = try await connection.client.unmount(place.path, lazy: false)
      await connection.close()
      if result.remaining == 0 { try await waitForEnd(of: location, connection.info.pid) }
    } catch {
      await connection.close()
      guard (error as? SheafError)?.kind == .notFound, MountProbe.isDead(place.path) else { throw error }
      try LibraryMount.clear(at: place.path)
      _ = try? await forget(place, of: location)
    }
  }

  /// Makes the library forget a mount that is not up; returns whether it remembered one there.
  private func forget(_ place: Mountpoint, of location: LibraryLocation) async throws -> Bool {
    guard !NewLibrary.wouldBeMade(at: location) else { return false }
    return try await LibraryConnection.with(location) { connection in
      guard try await connection.client.status().notMounted.contains(where: { $0.mountpoint == place.path }) else {
        return false
      }
      _ = try await connection.client.unmount(place.path, lazy: false)
      return true
    }
  }

  /// The connection to the process that serves a mount's library; nil if none does, also where a dead mount's library is
  /// not this user's.
  private static func join(_ location: LibraryLocation, mountedAt place: String) async throws -> LibraryConnection? {
    do {
      return try await LibraryConnection.join(location)
    } catch let error as SheafError where error.kind == .accessDenied && MountProbe.isDead(place) {
      return nil
    }
  }

  /// The error for a process that answers and cannot unmount.
  private static func cannot(unmount place: String, _ connection: LibraryConnection) async throws -> SheafError {
    let info = connection.info
    guard info.account != nil else {
      return SheafError(
        .unavailable, subject: place, reason: "the library is in use by process \(info.pid), which does not mount",
        advice: "try again when it has ended")
    }
    let isTheirs = try await connection.client.mounts().contains { $0.mountpoint == place }
    return SheafError(
      .notPermitted, subject: place,
      reason: isTheirs
        ? "root gave this mount to you, and alone takes it away" : "is not the mount that root gave to you",
      advice: "ask root for: sheaf unmount \(place.shellWord)")
  }

  private func check(_ place: String, isOf account: AccountHandle, _ client: SheafClient) async throws {
    let mount = try await client.mounts().first { $0.mountpoint == place }
    guard let mount, mount.account != account else { return }
    throw SheafError(
      .invalid, subject: place, reason: "is the mount of \(mount.account)",
      advice: "leave out --as, or name the mount point of \(account)'s")
  }

  /// Waits until the process has closed the library, so that the next command finds it free, and has ended, so that it
  /// does not keep the library's disk busy.
  ///
  /// - Throws: ``SheafError`` if it keeps the library open.
  private func waitForEnd(of location: LibraryLocation, _ pid: pid_t) async throws {
    guard try await wait(atMost: Self.patience, while: { Self.isLocked(location.lockPath) }) else {
      throw SheafError(
        .unavailable, subject: location.path,
        reason: "is unmounted, and all is saved, but process \(pid) has not closed it after \(Self.patience)",
        advice: "see \(LogFile.path(of: location))")
    }
    _ = try await wait(atMost: Self.endPatience) { OwnerProcess(pid: pid).isRunning }
  }

  /// Waits while `isSo` holds; returns whether it ended in time.
  private func wait(atMost limit: Duration, while isSo: () -> Bool) async throws -> Bool {
    let deadline = ContinuousClock.now + limit
    while isSo() {
      guard ContinuousClock.now < deadline else { return false }
      try await Task.sleep(for: .milliseconds(20))
    }
    return true
  }

  private static func isLocked(_ path: String) -> Bool {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return flock(descriptor, LOCK_SH | LOCK_NB) != 0
  }
}
