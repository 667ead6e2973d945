import SheafModel

// SEAM: SheafMount is plugged in here, and nowhere else. The closure gets the open library, the request (mount point
// checked: an empty folder, nothing mounted there; account exists) and a logger; it returns once the mount answers.

/// Mounts a library's account as a FUSE file system.
let startLibraryMount: MountStarter = { _, request, _ in
  throw SheafError(.notSupported, subject: request.mountpoint, reason: "this build cannot mount")
}
