import Logging
import SheafLibrary
import SheafModel
import SheafMount

/// Mounts a library's account as a FUSE file system: the one place where the commands and SheafMount meet.
///
/// The mount point has been checked to be an empty folder with nothing mounted there, the account to exist.
let startLibraryMount: MountStarter = { library, request, _ in
  if let user = request.forUser {
    throw SheafError(.notSupported, subject: "--for \(user)", reason: "mounts for other users are not supported yet")
  }
  var options = LibraryMount.Options()
  options.readOnly = request.readOnly
  options.allowOther = request.allowOther
  options.extra = request.options
  let mount = try LibraryMount(library: library, account: request.account, options: options)
  try await BlockingWork.run { try mount.start(at: request.mountpoint) }
  return MountedLibrary(mount: mount)
}

/// A mount of SheafMount, as ``ProcessMounts`` wants it.
private struct MountedLibrary: LiveMount {
  let mount: LibraryMount

  func unmount(lazy: Bool) async throws { try await BlockingWork.run { try mount.unmount(lazily: lazy) } }

  func waitUntilGone() async {
    await withCheckedContinuation { continuation in mount.whenEnded { continuation.resume() } }
  }
}
