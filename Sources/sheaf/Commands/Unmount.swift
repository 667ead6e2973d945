import ArgumentParser
import Glibc
import SheafClient
import SheafLibrary
import SheafModel

struct Unmount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Save everything and unmount.",
    discussion: """
      Returns once all is safely stored. A mount that is in use stays, and the error says who uses it. When the last \
      mount of a library goes, its process ends. A dead mount is cleared.

      Examples:
        sheaf unmount
        sheaf unmount /mnt/work
      """)

  /// How long the process may take to end after its last mount.
  private static let patience = Duration.seconds(60)

  @Argument(help: "The mount point (default: ~/Sheaf).")
  var mountpoint: PathArgument?

  func run() async throws {
    let place = try Mountpoint(given: mountpoint, user: nil)
    // So that this process is not one of those that use the mount.
    chdir("/")
    guard let entry = try MountTable.current().entry(at: Array(place.path.utf8)) else {
      throw SheafError(
        .notFound, subject: place.path, reason: "is not mounted", advice: "see what is with: sheaf status")
    }
    guard entry.isSheaf else {
      throw SheafError(
        .invalid, subject: place.path, reason: "is no mount of Sheaf, but \(entry.source.readable) (\(entry.type))")
    }
    let location = LibraryLocation(path: entry.source.readable)
    guard let connection = try await LibraryConnection.join(location), connection.info.mounts else {
      guard MountProbe.isDead(place.path) else {
        throw SheafError(
          .unavailable, subject: place.path, reason: "is mounted, but no process serves \(location.path)",
          advice: "unmount it with: umount \(place.path)")
      }
      return try DeadMount.clear(place.path)
    }
    do {
      let result = try await connection.client.unmount(place.path, lazy: false)
      try await connection.close()
      if result.remaining == 0 { try await waitForEnd(of: location) }
    } catch {
      try? await connection.close()
      guard (error as? SheafError)?.kind == .notFound, MountProbe.isDead(place.path) else { throw error }
      try DeadMount.clear(place.path)
    }
  }

  /// Waits until the process has closed the library, so that what comes next finds it free.
  private func waitForEnd(of location: LibraryLocation) async throws {
    let deadline = ContinuousClock.now + Self.patience
    while ContinuousClock.now < deadline, Self.isLocked(location.lockPath) {
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  private static func isLocked(_ path: String) -> Bool {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return flock(descriptor, LOCK_SH | LOCK_NB) != 0
  }
}
