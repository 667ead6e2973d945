import Glibc
import Logging
import SheafLibrary
import SheafModel
import SheafMount
import SheafService

/// Mounts a library's account as a FUSE file system: the one place where the commands and SheafMount meet.
///
/// The caller has checked that the account exists.
///
/// - Parameter contents: Who fetches contents that are not on this machine.
func startLibraryMount(
  _ library: Library, _ request: MountRequest, _ logger: Logger, contents: any ContentsSource
) async throws -> any LiveMount {
  var options = LibraryMount.Options()
  options.readOnly = request.readOnly
  options.allowOther = request.allowOther
  options.extra = request.options
  var owner: LinuxUser?
  if let name = request.forUser {
    guard getuid() == 0 else {
      throw SheafError(
        .notPermitted, subject: "--for \(name)".printable, reason: "is for a library whose process runs as root",
        advice: "unmount it everywhere, and mount it as root first")
    }
    guard let user = LinuxUser.named(name) else {
      throw SheafError(.notFound, subject: name.printable, reason: "there is no such user on this machine")
    }
    options.owner = (user.uid, user.gid)
    owner = user
  }
  let mount = try LibraryMount(library: library, contents: contents, account: request.account, options: options)
  try await BlockingWork.run { [owner] in
    try Mountpoint.alone(at: request.mountpoint, for: owner) { try mount.start(on: $0) }
  }
  // Root is served at the library's own socket.
  guard let owner = options.owner, owner.uid != 0 else { return ServedMount(mount: mount, service: nil) }
  do {
    let info = MountInfo(mountpoint: request.mountpoint, account: request.account, readOnly: request.readOnly)
    let door = UserDoor(mount: info, uid: owner.uid, gid: owner.gid)
    let service = try SheafService(library: library, mounts: nil, door: door, logger: logger)
    try await service.start()
    return ServedMount(mount: mount, service: service)
  } catch {
    try await BlockingWork.run { try mount.unmount(lazily: true) }
    throw error
  }
}

/// A mount of SheafMount in the form that ``ProcessMounts`` takes, with the service of its user.
private struct ServedMount: LiveMount {
  let mount: LibraryMount
  /// The socket of the user to whom the mount was given.
  let service: SheafService?

  func unmount(lazy: Bool) async throws { try await BlockingWork.run { try mount.unmount(lazily: lazy) } }

  func waitUntilGone() async {
    await withCheckedContinuation { continuation in mount.whenEnded { continuation.resume() } }
    try? await service?.stop(patience: .zero)
  }
}
