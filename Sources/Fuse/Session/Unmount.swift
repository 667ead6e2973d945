import Glibc

/// Ending a mount, and no other that may have taken its place.
enum Unmount {
  /// Unmounts, unless it is gone already.
  static func unmount(_ mount: MountTable.Mount, lazily: Bool) throws(MountError) {
    // umount2 and fusermount3 take a path, and whatever is on top there.
    guard MountTable.mounts().contains(mount) else { return }
    guard MountTable.topmost(at: mount.mountpoint) == mount else {
      throw MountError(mountpoint: mount.mountpoint, reason: "something else is mounted over it")
    }
    let flags = Int32(UMOUNT_NOFOLLOW) | (lazily ? Int32(MNT_DETACH) : 0)
    if umount2(mount.mountpoint, flags) == 0 { return }
    let error = Errno.current
    guard error == .notPermitted else {
      // Somebody else may have been quicker.
      guard MountTable.mounts().contains(mount) else { return }
      throw MountError(mountpoint: mount.mountpoint, reason: error.description)
    }
    try callFusermount(mount.mountpoint, lazily: lazily)
  }

  /// Asks the set-user-id program fusermount3(1) to unmount.
  private static func callFusermount(_ mountpoint: String, lazily: Bool) throws(MountError) {
    let (result, messages) = LibfuseLog.collectWithStandardError {
      let arguments = ["fusermount3", "-u"] + (lazily ? ["-z"] : []) + ["--", mountpoint]
      var pointers = arguments.map { strdup($0) } + [nil]
      defer { pointers.forEach { free($0) } }
      var process = pid_t()
      let spawned = posix_spawnp(&process, "fusermount3", nil, nil, &pointers, environ)
      guard spawned == 0 else { return spawned }
      var status: Int32 = 0
      while waitpid(process, &status, 0) < 0 {
        guard errno == EINTR else { return errno }
      }
      return status
    }
    guard result == 0 else {
      throw MountError(
        mountpoint: mountpoint, reason: messages.isEmpty ? "fusermount3 could not unmount it" : messages)
    }
  }
}
