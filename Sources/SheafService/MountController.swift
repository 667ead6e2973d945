package import SheafModel

/// Mounts a library's accounts, for a service that knows nothing of file systems.
package protocol MountController: Sendable {
  /// Mounts, and returns once the mount answers.
  ///
  /// - Throws: ``SheafError``: `busy` if the place is taken, `unavailable` if the process is ending.
  func mount(_ request: MountRequest) async throws -> MountInfo

  /// Saves everything and unmounts. When it returns, all saves survive power loss.
  ///
  /// - Parameter lazy: Whether to unmount a mount in use, too, which goes as soon as its users close their files.
  /// - Returns: How many mounts are left.
  /// - Throws: ``SheafError``: `notFound` if this process has no such mount, `busy` naming the processes that use it,
  ///   `inputOutput` if it is unmounted and not all could be saved.
  func unmount(mountpoint: String, lazy: Bool) async throws -> Int

  /// Whether an existing folder is in one of these mounts, by whatever path.
  func contains(folder: String) async -> Bool

  /// The mounts that are up.
  func mounts() async -> [MountInfo]
}
