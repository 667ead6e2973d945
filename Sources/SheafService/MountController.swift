package import SheafModel

/// Mounts a library's accounts, for a service that knows nothing of file systems.
package protocol MountController: Sendable {
  /// Mounts, and returns once the mount answers.
  ///
  /// - Throws: ``SheafError``: `busy` where the place is taken, `unavailable` where the process is ending.
  func mount(_ request: MountRequest) async throws -> MountInfo

  /// Saves everything and unmounts; what was saved survives power loss when it returns.
  ///
  /// - Parameter lazy: Whether a mount that is in use goes too, as soon as its users let go of it.
  /// - Returns: How many mounts are left.
  /// - Throws: ``SheafError``: `notFound` where this process has no such mount, `busy` naming who holds it, `inputOutput`
  ///   where it is unmounted and not all could be saved.
  func unmount(mountpoint: String, lazy: Bool) async throws -> Int

  /// The mounts that are up.
  func mounts() async -> [MountInfo]
}
